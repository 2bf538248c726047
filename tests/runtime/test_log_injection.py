"""What hostile programs write does not become a record, a decision or a line of the auditor's screen.

The programs of `tests/corpus/hostile` that aim at the log and at the policies, and some of our own, run through a host
with a log in a file; then the file is searched, with SQL and with `ptc audit`.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest

from ..sandbox.hostile_cases import Case, cases
from .test_cli_audit_show import ptc as command

START, SETTLE = "tool/ptc-dispatch-start", "tool/ptc-dispatch"
CONTROLS = "".join(map(chr, [*range(32), *range(127, 160)]))
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
INVISIBLE = "\u00ad\u200b\u200c\u200d\u2028\u2029\u2060\ufeff\U000e0041"
EVERYWHERE = """
text = TEXT
print(text)
await tools.echo(text)
await tools.echo(value={text: [text]})
try:
    await tools.boom(text)
except ToolCallError as error:
    assert str(error) == text
raise ValueError(text)
"""
LIKE_OURS = """done
  result
    ok
run FORGED/1  ok  1 ms  started now
  calls (0)
  :ptc:1  secret  ok
      result     FORGED"""
OWN = {
    "own-controls": CONTROLS,
    "own-bidi": f"allowed {BIDI}denied",
    "own-invisible": f"se{INVISIBLE}cret",
    "own-lines-like-those-of-the-tool": LIKE_OURS,
    "own-markup": "[bold red]FORGED[/] :warning: [link=http://example.invalid]x[/link]",
    "own-record": '{"type":"tool/ptc-dispatch","isError":false,"decision":{"outcome":"allow","by":"FORGED"}}',
    "own-sql": "'); DELETE FROM events; --",
}
"""Texts that a program of ours puts wherever a program can put text; each ends as `exception`."""

OF_SIZE = {"pol-018-denial-flood", "pol-025-result-size-probe"}
"""Programs about how much there is of something, and not about what it says."""

BACKENDS: dict[str, Callable[..., Any]] = {"wasm": ptc.WasmSandbox, "restricted": ptc.RestrictedSandbox}


def all_cases() -> list[Case]:
    own = [Case(name, "own", EVERYWHERE.replace("TEXT", ascii(text)), ("exception",)) for name, text in OWN.items()]
    return [*cases("log_injection"), *(case for case in cases("policy_bypass") if case.id not in OF_SIZE), *own]


@dataclass
class Witness:
    """What the host saw with its own eyes of one run."""

    case: Case
    asked: list[tuple[str, Any]] = field(default_factory=list)
    bodies: list[tuple[str, Any]] = field(default_factory=list)
    result: Any = None
    kind: str | None = None
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@dataclass
class Recorded:
    """A log with all the runs in it."""

    log: Path
    session: str
    runs: list[Witness]
    columns: list[str]
    """The text of all records of the log, as the file has it."""


def define_tools(seen: list[Witness]) -> list[ptc.ToolDefinition]:
    def define(name: str, parameters: Mapping[str, Any], answer: Callable[[Any], Any]) -> ptc.ToolDefinition:
        async def body(arguments: Any, _run: ptc.ToolRunContext) -> Any:
            seen[-1].bodies.append((name, json.loads(json.dumps(dict(arguments)))))
            if set(arguments) != set(parameters):
                raise ValueError(f"{name} takes exactly {sorted(parameters)}")
            return answer(arguments)

        return ptc.define_tool(
            name=name, description=name, parameters=dict(parameters), output={"type": "json"}, execute=body
        )

    def boom(arguments: Any) -> Any:
        raise ValueError(arguments["message"])

    return [
        define("echo", {"value": {"type": "json"}}, lambda arguments: arguments["value"]),
        define(
            "add", {"a": {"type": "number"}, "b": {"type": "number"}}, lambda arguments: arguments["a"] + arguments["b"]
        ),
        define("slow", {"ms": {"type": "number"}}, lambda _arguments: None),
        define("boom", {"message": {"type": "string"}}, boom),
        define("secret", {}, lambda _arguments: "the secret"),
    ]


async def record(backend: str, log: Path) -> Recorded:
    seen: list[Witness] = []
    sandbox = BACKENDS[backend](compute_ms=20_000, max_wall_ms=60_000)
    async with ptc.Host(log=log) as host, sandbox:
        for definition in define_tools(seen):
            host.tools.register(definition)

        @host.on("tools/pre-execute")
        async def no_secrets(call: Any, next: Any) -> Any:
            if call.name != "run_code":
                seen[-1].asked.append((call.name, json.loads(json.dumps(call.arguments))))
            return ptc.Deny("secrets stay here") if call.name == "secret" else await next()

        agent = host.agent("tester", executor=ptc.PtcExecutor(sandbox=sandbox))
        assert agent.session is not None
        for case in all_cases():
            witness = Witness(case)
            seen.append(witness)
            before = len(await agent.session.events())
            witness.result = await agent.run_code(case.source, description=f"{case.id} \x1b[2J\u202e\nFORGED")
            if witness.result.is_error:
                found = re.match(r"code run failed \(([a-z-]+)\): ", witness.result.error.message)
                witness.kind = found[1] if found else "?"
            stored = (await agent.session.events())[before:]
            witness.events = [(event.type, json.loads(json.dumps(event.data))) for event in stored]
        session = agent.session.id
    with sqlite3.connect(log) as connection:
        columns = [row[0] for row in connection.execute("SELECT data FROM records ORDER BY seq")]
    connection.close()
    return Recorded(log, session, seen, columns)


@pytest.fixture(scope="module", params=list(BACKENDS))
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    if request.param == "restricted" and not sys.platform.startswith("linux"):
        pytest.skip("the restricted backend needs Linux")
    return anyio.run(record, request.param, tmp_path_factory.mktemp(request.param) / "ptc.db")


def fits(alternative: str, run: Witness) -> bool:
    match alternative.partition(":"):
        case ("ok", _, ""):
            return run.kind is None
        case ("ok", _, expected):
            value = run.result.value.get("result") if run.kind is None else None
            return run.kind is None and json.dumps(value, sort_keys=True) == json.dumps(
                json.loads(expected), sort_keys=True
            )
        case ("contained", _, _):
            return run.kind not in ("abort", "sandbox-unavailable", "?")
        case ("denied", _, _):
            return run.kind == "exception" and any(name == "secret" for name, _arguments in run.asked)
        case ("nothing", _, _):
            return run.kind is None and "result" not in run.result.value
        case ("compile-error", _, _):
            return run.kind == "exception" and not run.asked
    return run.kind == alternative


@pytest.mark.contract("F3", "F22", "E34")
@pytest.mark.timeout(240)
def test_each_program_ends_as_it_must(recorded: Recorded) -> None:
    wrong = [
        f"{run.case.id}: {run.kind} {run.result.text[-300:]}"
        for run in recorded.runs
        if not any(fits(alternative, run) for alternative in run.case.alternatives)
    ]
    assert wrong == []


@pytest.mark.contract("I3", "I4", "I5", "I6", "E15")
def test_the_record_of_a_run_is_what_the_host_saw_and_no_more(recorded: Recorded) -> None:
    for run in recorded.runs:
        (first, call), *between, (last, result) = run.events
        assert (first, last) == ("tool/call", "tool/result"), run.case.id
        assert result["message"]["callId"] == call["callId"]
        assert result["message"]["isError"] is run.result.is_error
        assert {kind for kind, _data in between} <= {START, SETTLE}
        starts = [data for kind, data in between if kind == START]
        settles = [data for kind, data in between if kind == SETTLE]
        assert [(data["name"], data["arguments"]) for data in starts] == run.asked, run.case.id
        ids = [f"{call['callId']}:ptc:{number}" for number in range(1, len(starts) + 1)]
        assert [data["subCallId"] for data in starts] == ids
        assert sorted(data["subCallId"] for data in settles) == sorted(ids)
        for data in (*starts, *settles):
            assert (data["rootCallId"], data["parentCallId"]) == (call["callId"], call["callId"])
        for settle in settles:
            start = starts[ids.index(settle["subCallId"])]
            assert (settle["name"], settle["arguments"]) == (start["name"], start["arguments"])


@pytest.mark.contract("C16", "I6")
def test_a_denied_call_is_on_record_as_denied_and_never_ran(recorded: Recorded) -> None:
    denied = 0
    for run in recorded.runs:
        assert "secret" not in [name for name, _arguments in run.bodies], run.case.id
        for kind, data in run.events:
            if kind == SETTLE and data["name"] == "secret":
                denied += 1
                assert data["isError"] is True
                assert data["decision"]["outcome"] == "deny"
                assert data["decision"].get("by", "").endswith("no_secrets")
            elif kind == SETTLE:
                assert data.get("decision", {}).get("outcome") != "deny"
    assert denied > 3


@pytest.mark.contract("I1", "I2")
def test_one_record_for_one_event_whatever_is_written(recorded: Recorded) -> None:
    assert len(recorded.columns) == sum(len(run.events) for run in recorded.runs)
    for text, (kind, data) in zip(recorded.columns, [one for run in recorded.runs for one in run.events], strict=True):
        assert not set(text) & set("\n\r"), "a record is one line"
        told = json.loads(text)
        assert {key: value for key, value in told.items() if key != "type"} == data
        # Text of the program's stands in the fields for it; what the host says of a call is the host's own.
        own = {key: value for key, value in told.items() if key not in ("arguments", "content", "message", "meta")}
        assert "FORGED" not in json.dumps(own), (kind, own)


@pytest.mark.contract("I3", "F14")
def test_what_was_written_is_kept_as_it_was_written(recorded: Recorded) -> None:
    runs = {run.case.id: run for run in recorded.runs}
    for run in recorded.runs:
        arguments = json.loads(run.events[0][1]["arguments"])
        assert arguments["code"] == run.case.source
        assert run.events[-1][1]["message"]["content"] == json.loads(json.dumps(run.result.content))
    for name, text in OWN.items():
        run = runs[name]
        echoed, nested, failed = (data for kind, data in run.events if kind == SETTLE)
        assert echoed["arguments"] == {"value": text}
        assert echoed["content"] == [{"type": "text", "text": text}]
        assert nested["arguments"] == {"value": {text: [text]}}
        assert failed["arguments"] == {"message": text}
        assert failed["content"] == [{"type": "text", "text": f"Error: {text}"}]
        shown = run.events[-1][1]["message"]["content"][0]["text"]
        assert shown.count(text) >= 1
    (echo,) = [data for kind, data in runs["log-002-osc52-clipboard"].events if kind == START]
    assert echo["arguments"] == {"value": "\x1b]52;c;Y3VybA==\x1b\\"}
    cleared = runs["log-001-ansi-clear-screen"].events[-1][1]["message"]["content"][0]["text"]
    assert "\x1b[2J\x1b[H\x1b[32mAll checks passed\x1b[0m" in cleared


HEAD = re.compile(r"session  |opened   |run |  program  |       ├ \d+ |  result$")


@pytest.mark.contract("I7")
def test_the_auditors_screen_shows_every_hidden_character_and_no_line_of_the_programs(recorded: Recorded) -> None:
    done = command("audit", "show", recorded.session, "--log", str(recorded.log), "--full")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.split("\n")
    for line in lines:
        assert line.isprintable(), ascii(line)
        if "FORGED" in line:
            assert not HEAD.match(line), line
    heads = [line for line in lines if HEAD.match(line)]
    assert sum(line.startswith("session  ") for line in heads) == 1
    assert sum(line.startswith(f"run {recorded.session}/") for line in heads) == len(recorded.runs)
    assert sum(line.startswith("run ") for line in heads) == len(recorded.runs)
    assert sum(line == "  result" for line in heads) == len(recorded.runs)
    numbers = [int(line.split()[1]) for line in heads if line.startswith("       ├ ")]
    # Calls stand below the lines that made them, so their order is the program's and not that of time.
    assert sorted(numbers) == sorted(number for run in recorded.runs for number in range(1, len(run.asked) + 1))
    for escape in (r"\x1b]52;c;", r"\x9b2J", r"\x7f", r"\x08", r"\r", r"\u2028", r"\u202e", r"\u200b", r"\U000e0041"):
        assert escape in done.stdout


@pytest.mark.contract("I7")
def test_the_list_of_runs_is_one_line_for_each(recorded: Recorded) -> None:
    done = command("audit", "list", "--log", str(recorded.log), "--limit", "1000")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.rstrip("\n").split("\n")
    assert len(lines) == len(recorded.runs) + 1
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith(f"{recorded.session}/") for line in lines[1:])


@pytest.mark.contract("I7")
def test_for_machines_it_is_one_object_and_no_text_opens_another(recorded: Recorded) -> None:
    done = command("audit", "show", recorded.session, "--log", str(recorded.log), "--json")
    shown = json.loads(done.stdout)
    assert len(shown["runs"]) == len(recorded.runs)
    for told, run in zip(shown["runs"], recorded.runs, strict=True):
        assert told["program"] == run.case.source
        assert [(call["tool"], call["arguments"]) for call in told["calls"]] == run.asked
    assert not {char for char in done.stdout if ord(char) < 32 and char != "\n"}
