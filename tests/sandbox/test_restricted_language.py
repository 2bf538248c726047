"""The restricted language: what it admits is Python, and what it refuses cannot be reached.

No program runs in this process: see `restricted_child.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ptc.sandbox.restricted.inside.language import refusals

from .restricted_escapes import ESCAPES, REFUSED
from .restricted_harness import ROOT, Answer, run_jobs, run_program
from .restricted_programs import PROGRAMS

ORDINARY: dict[str, Any] = json.loads((ROOT / "sandbox" / "conformance" / "ordinary_programs.json").read_text("utf-8"))
HOSTILE = sorted((ROOT / "tests" / "corpus" / "hostile").glob("*.json"))
PURE_RESOURCES = {"resource_exhaustion"}
# A single mapping is the arguments object itself (ruling 35); these mean it as the one argument.
AS_ONE_ARGUMENT = {'tools.echo({"n": n})': 'tools.echo(value={"n": n})', "tools.echo(a)": "tools.echo(value=a)"}


# Everyday Python


@pytest.fixture(scope="module")
def pairs() -> dict[str, tuple[Answer, Answer]]:
    """Each program's answers in the restricted language and in plain Python."""
    jobs = [{"program": program, "native": native} for program in PROGRAMS.values() for native in (False, True)]
    answers = run_jobs(jobs)
    return dict(zip(PROGRAMS, zip(answers[::2], answers[1::2], strict=True), strict=True))


@pytest.mark.contract("F5", "F15")
@pytest.mark.parametrize("name", PROGRAMS)
def test_everyday_python_gives_what_python_gives(pairs: dict[str, tuple[Answer, Answer]], name: str) -> None:
    restricted, plain = pairs[name]
    assert (restricted.kind, restricted.value) == (plain.kind, plain.value)
    assert restricted.output == plain.output


def test_the_programs_that_are_compared_run_to_their_end(pairs: dict[str, tuple[Answer, Answer]]) -> None:
    failing = [name for name, (_, plain) in pairs.items() if plain.kind != "value"]
    assert failing == [
        "uncaught error",
        "uncaught group",
        "attribute error of own class",
        "wrong call",
        "syntax error",
    ]


def test_deep_source_that_python_takes_is_taken() -> None:
    additions = "return " + " + ".join(["1"] * 300)
    branches = "x = 5\nif x == 0: y = 0\n" + "".join(f"elif x == {n}: y = {n}\n" for n in range(1, 90)) + "return y"
    assert [answer.value for answer in run_jobs([{"program": additions}, {"program": branches}])] == [300, 5]


def test_source_beyond_the_compiler_is_an_error_of_the_program() -> None:
    answer = run_program("return " + "-" * 50_000 + "1")
    assert answer.kind in ("error", "died")


# Refusals


@pytest.mark.contract("F26")
@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_tells_the_line_and_the_way_out(name: str) -> None:
    program, told = REFUSED[name]
    answer = run_program(f"print('ran')\n{program}" if "line" not in told[0] else program)
    assert answer.kind == "error"
    assert answer.output == ""
    assert "SyntaxError: " in answer.value
    for text in told:
        assert text in answer.value


def test_what_is_held_ready_for_failure_fails_when_it_is_reached() -> None:
    program = """
out = []
try: out.append(().__subclasses__)
except AttributeError as error: out.append(str(error)[:34])
try: open("x")
except NameError as error: out.append(str(error))
for get in (lambda: print.__self__, lambda: 1):
    try: out.append(get())
    except AttributeError: out.append("refused")
return out
"""
    assert run_program(program).value == [
        "the attribute '__subclasses__' is ",
        "name 'open' is not defined",
        "refused",
        1,
    ]


def test_a_name_like_a_missing_builtin_is_the_programs_own() -> None:
    assert run_program("def open(x): return x\ndef f(input): return input\nreturn [open(1), f(2)]").value == [1, 2]


@pytest.mark.parametrize(
    ("statement", "error", "told"),
    [
        ("import os", "ModuleNotFoundError", [refusals.MODULES["os"]]),
        ("import os.path", "ModuleNotFoundError", [refusals.MODULES["os"]]),
        ("import requests", "ModuleNotFoundError", ["use the tools"]),
        ("import statistic", "ModuleNotFoundError", ["did you mean statistics"]),
        ("import qwertz", "ModuleNotFoundError", ["modules that can be imported: abc, array, asyncio"]),
        ("from json import dump_s", "ImportError", ["cannot import name 'dump_s' from 'json'", "did you mean dumps"]),
        ("import json\njson.decoder", "AttributeError", ["module 'json' has no attribute 'decoder'"]),
        ("import math\nmath.sqr(4)", "AttributeError", ["did you mean sqrt"]),
    ],
)
def test_an_import_that_is_refused_says_what_there_is(statement: str, error: str, told: list[str]) -> None:
    answer = run_program(statement)
    assert answer.kind == "error"
    assert f"\n{error}: " in answer.value
    assert "Hint" not in answer.value
    for text in told:
        assert text in answer.value


# Ways out


@pytest.fixture(scope="module")
def escapes() -> dict[str, Answer]:
    return dict(zip(ESCAPES, run_jobs({"program": program} for program in ESCAPES.values()), strict=True))


@pytest.mark.contract("F42")
@pytest.mark.parametrize("name", ESCAPES)
def test_a_way_out_is_closed(escapes: dict[str, Answer], name: str) -> None:
    answer = escapes[name]
    assert answer.kind in ("error", "value")
    if answer.kind == "value":
        assert not str(answer.value).startswith("REACHED")
    else:
        assert "Error: " in answer.value


def walk(*plants: str) -> dict[str, Any]:
    script = Path(__file__).with_name("restricted_walk.py")
    done = subprocess.run(
        [sys.executable, "-I", str(script), str(ROOT), *plants], capture_output=True, check=True, timeout=110
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.contract("F42")
def test_nothing_that_a_program_can_reach_leads_out() -> None:
    walked = walk()
    assert walked["found"] == []
    assert walked["seen"] > 10_000


def test_the_walk_finds_what_must_not_be_there() -> None:
    plants = ["module", "frame", "getattr", "loop", "metaclass", "names of a module", "formatter"]
    for plant in plants:
        assert any("planted" in path for path in walk(plant)["found"]), plant


# Collections of programs


def same(a: Any, b: Any) -> bool:
    """Tells whether two JSON values are the same, numbers by type as well."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def test_ordinary_programs_give_their_exact_results() -> None:
    jobs: list[dict[str, Any]] = []
    for one in ORDINARY["programs"]:
        source = one["program"]
        for written, meant in AS_ONE_ARGUMENT.items():
            source = source.replace(written, meant)
        jobs.append({"program": source, "data": ORDINARY["data"]})
    wrong: list[str] = []
    for one, answer in zip(ORDINARY["programs"], run_jobs(jobs), strict=True):
        expected = one["expect"]
        fits = answer.kind in ("value", "nothing")
        if expected.startswith("ok:"):
            fits = fits and same(answer.value, json.loads(expected.removeprefix("ok:")))
        if one.get("stdout") is not None:
            fits = fits and answer.output.rstrip("\n") == one["stdout"].rstrip("\n")
        if not fits:
            wrong.append(f"{one['id']}: {answer}")
    assert wrong == []


@pytest.mark.contract("F42")
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "path", [path for path in HOSTILE if path.stem not in PURE_RESOURCES], ids=lambda path: path.stem
)
def test_hostile_programs_reach_nothing(path: Path) -> None:
    cases = json.loads(path.read_text("utf-8"))
    jobs: list[dict[str, Any]] = []
    for one in cases:
        source = one["program"]
        if "generate" in one:
            parts = one["generate"]
            source = parts["prefix"] + parts["unit"] * parts["count"] + parts["suffix"]
        wait_s = 1 if "timeout" in one["expect"] or "memory" in one["expect"] else 5
        jobs.append({"program": source, "data": ORDINARY["data"], "wait_s": wait_s})
    shown: list[str] = []
    for one, job, answer in zip(cases, jobs, run_jobs(jobs, timeout_s=230), strict=True):
        text = answer.text
        for line in job["program"].splitlines():  # a traceback quotes the program's own lines
            text = text.replace(json.dumps(line.strip(), ensure_ascii=False)[1:-1], "") if line.strip() else text
        shown.extend(f"{one['id']} shows {marker}" for marker in ("PIVOT:", "ESCAPED:", str(ROOT)) if marker in text)
    assert shown == []


# What a host adds


def test_a_host_may_allow_another_module_with_what_is_below_it() -> None:
    program = """
import email.utils
from email.header import Header
out = [email.utils.parseaddr("A <a@b>"), str(Header("x"))]
hidden = (lambda: email.utils.os, lambda: email.utils._parseaddr, lambda: email._policybase, lambda: email.utils.socket)
for get in hidden:
    try: out.append(str(get()))
    except AttributeError: out.append("refused")
try: email.message_from_string = 1
except AttributeError: out.append("read-only")
return out
"""
    allowed, default = run_jobs([{"program": program, "modules": ["email"]}, {"program": program}])
    assert allowed.value == [["A", "a@b"], "x", "refused", "refused", "refused", "refused", "read-only"]
    assert default.kind == "error"
    assert "No module named 'email.utils'" in default.value


def test_a_module_that_a_host_allows_must_be_there() -> None:
    with pytest.raises(AssertionError, match="No module named 'no_such_module'"):
        run_program("return 1", modules=["no_such_module"])
