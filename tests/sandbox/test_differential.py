"""The same programs natively and in both sandboxes: the same result and lines, or the same failure and place."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from ptc.sandbox.restricted import RestrictedSandbox
from ptc.sandbox.seam import Sandbox, SandboxRequest, SandboxResult
from ptc.sandbox.wasm import WasmSandbox

from .differential_native import FRAME
from .generated_programs import generate

NATIVE = Path(__file__).with_name("differential_native.py")
AT_ONCE = 4
COLLECTED: dict[str, str] = dict(
    re.findall(
        r"^=== (\S+)\n(.*?)\n(?=\n===|\Z)",
        Path(__file__).with_name("collected_programs.txt").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
PROGRAMS = {**COLLECTED, **{f"generated-{seed}": generate(seed) for seed in range(160)}}

GUEST = (3, 14)
"""The Python inside WebAssembly."""

REWORDED = re.compile(
    r"""
    .*is[ ]not[ ]JSON[ ]serializable | re[.]error: | .*must[ ]be[ ]in[ ]1[.][.]12 | Can't[ ]instantiate
    | .*has[ ]no[ ]attribute[ ]'b'$ | .*too[ ]many[ ]values[ ]to[ ]unpack | .*context[ ]manager[ ]protocol
    | .*is[ ]not[ ]in[ ]list | .*arg[ ]is[ ]an[ ]empty[ ]sequence | .*dictionary[ ]update[ ]sequence | .*float[ ]modulo
    | .*negative[ ]power | .*unhashable[ ]type | .*math[ ]domain | .*Can't[ ]instantiate[ ]abstract
    """,
    re.VERBOSE,
)
"""Failures that not all of Python 3.11 to 3.14 tell in the same words."""

OWN_WORDS = ("ModuleNotFoundError", "ImportError")
"""Failures that a sandbox tells in its own words."""

RENAMED = {"re.error": "re.PatternError"}


@dataclass(frozen=True)
class Outcome:
    """What a program came to.

    Attributes:
        value: the JSON text of its result.
        logs: the lines that it printed.
        failed: the exception, as a traceback tells it.
        frames: lines and names of the program's frames.
    """

    value: str | None
    logs: list[str]
    failed: str | None
    frames: list[tuple[int, str]]


@pytest.fixture(scope="module")
def native() -> dict[str, Outcome]:
    done = subprocess.run(
        [sys.executable, "-I", str(NATIVE)],
        input=json.dumps(list(PROGRAMS.values())),
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: _native_outcome(told) for name, told in zip(PROGRAMS, json.loads(done.stdout), strict=True)}


def _native_outcome(told: dict[str, Any]) -> Outcome:
    logs = told["logs"].split("\n")
    frames = [(int(line), "<program>" if name == "<module>" else name) for line, name in told["frames"]]
    return Outcome(told["value"], logs[:-1] if logs[-1] == "" else logs, told["failed"], frames)


@pytest.fixture(scope="module")
def in_sandbox() -> Callable[[Callable[..., Sandbox]], dict[str, SandboxResult]]:
    """Runs all programs in a sandbox, a few at once; each kind of sandbox once."""
    known: dict[Any, dict[str, SandboxResult]] = {}

    async def run_all(make: Callable[..., Sandbox]) -> dict[str, SandboxResult]:
        results: dict[str, SandboxResult] = {}
        async with make(compute_ms=20_000, max_concurrent_runs=AT_ONCE) as sandbox, anyio.create_task_group() as tasks:

            async def go(name: str, program: str) -> None:
                results[name] = await sandbox.run(SandboxRequest(program=f"{program}\nreturn result"))

            for name, program in PROGRAMS.items():
                tasks.start_soon(go, name, program)
        return results

    def run(make: Callable[..., Sandbox]) -> dict[str, SandboxResult]:
        if make not in known:
            known[make] = anyio.run(run_all, make)
        return known[make]

    return run


def outcome(result: SandboxResult) -> Outcome:
    if result.error is None:
        return Outcome(result.value_json, list(result.logs), None, [])
    text = re.sub(r"\nHint: .*\Z", "", result.error.message)
    return Outcome(None, list(result.logs), text, [(int(line), name) for line, name in FRAME.findall(text)])


def kind_of(failed: str) -> str:
    name = failed.partition(":")[0].partition("\n")[0]
    return RENAMED.get(name, name)


def tells(text: str, failed: str, *, exact: bool) -> bool:
    """Tells whether a sandbox's report is of this failure."""
    kind = kind_of(failed)
    if kind == "StopIteration":
        # It cannot leave a coroutine, and so the report says; a program is the body of one.
        text = text.removesuffix(
            "\n\nThe above exception was the direct cause of the following exception:\n\n"
            "RuntimeError: coroutine raised StopIteration"
        )
    if kind == "ExceptionGroup":
        return f"  | {failed}\n" in text
    if kind in OWN_WORDS or (not exact and REWORDED.match(failed)):
        return f"\n{kind}: " in text
    return f"\n{text}".endswith(f"\n{failed}")


def without_comprehensions(frames: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Since Python 3.12 comprehensions have no frames of their own."""
    return [frame for frame in frames if frame[1] not in ("<listcomp>", "<dictcomp>", "<setcomp>")]


@pytest.mark.contract("F5", "F14", "F15")
@pytest.mark.parametrize("make", [RestrictedSandbox, WasmSandbox], ids=["restricted", "wasm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_comes_to_what_it_comes_to_natively(
    name: str, make: Callable[..., Sandbox], native: dict[str, Outcome], in_sandbox: Callable[..., Any]
) -> None:
    expected, got = native[name], outcome(in_sandbox(make)[name])
    same_python = make is RestrictedSandbox or sys.version_info[:2] == GUEST
    assert (got.value, got.logs, got.failed is None) == (expected.value, expected.logs, expected.failed is None), got
    if expected.failed is not None:
        assert got.failed is not None
        assert tells(got.failed, expected.failed, exact=same_python), (got.failed, expected.failed)
        assert without_comprehensions(got.frames) == without_comprehensions(expected.frames)


def test_there_are_enough_programs_and_most_of_them_run_to_their_end(native: dict[str, Outcome]) -> None:
    assert len(COLLECTED) > 150
    generated = [native[name] for name in PROGRAMS if name.startswith("generated")]
    assert sum(one.failed is None for one in generated) > 100
    assert len({kind_of(one.failed) for one in native.values() if one.failed is not None}) > 25
