"""`ptc audit show`: what an auditor sees of a run, and what foreign text cannot do to the screen."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from ptc.runtime.cli.terminal import cut, visible
from ptc.runtime.log import Session, SqliteEventStore

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = 'rows = await tools.search(q="refunds")\nawait tools.delete(id=1)\nprint(len(rows))'

BIDI = "\u202eevil\u2066"
HOSTILE = "\x1b[2J\x1b]0;root@prod\x07 \r \x9b1m \x7f \x00 \u2028 \u200b \ufeff [red]markup[/red] :smile: " + BIDI
FORGED = 'ok\n  calls (0)\nrun 20990101T000000-0000000000/1  ok\n{"event": "FORGED"}'


def ptc(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ptc.runtime.cli", *arguments]
    plain = {key: value for key, value in os.environ.items() if key not in ("PTC_LOG", "FORCE_COLOR", "NO_COLOR")}
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, env={**plain, "PYTHONUTF8": "1", **environment}
    )


class Clock:
    """Goes on by 2.5 ms with each event."""

    def __init__(self) -> None:
        self.us = 1_764_411_330_120_956

    def wall_us(self) -> int:
        self.us += 2_500
        return self.us

    def mono_us(self) -> int:
        return self.us


def text(value: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value}]


async def write_run(
    path: Path,
    name: str = "20261129T101530-4f2a9c01d7",
    *,
    code: str = PROGRAM,
    result: str = "2",
    found: str = "[1, 2]",
    runs: int = 1,
) -> None:
    """Writes a session of runs with one good call, one denied, and one that never ended."""
    clock = Clock()
    async with SqliteEventStore(path, clock=clock.wall_us, monotonic=clock.mono_us) as store:
        session = Session(store, agent="support", id=name, labels={"sandbox": "wasm"})
        for run in range(1, runs + 1):
            root = f"call_{run}"
            arguments = json.dumps({"code": code, "description": "Weekly refunds"})
            call: dict[str, Any] = {"turn": 1, "step": run, "callId": root, "name": "run_code", "arguments": arguments}
            cites = await session.append("tool/call", call)

            async def event(kind: str, n: int, tool: str, root: str = root, **more: Any) -> None:
                ids = {"rootCallId": root, "parentCallId": root, "subCallId": f"{root}:ptc:{n}"}
                await session.append(kind, {**ids, "name": tool, "arguments": {"q": "refunds"}, **more})

            await event("tool/ptc-dispatch-start", 1, "search", line=1)
            await event("tool/ptc-dispatch", 1, "search", isError=False, content=text(found))
            await event("tool/ptc-dispatch-start", 2, "delete", line=2)
            question: dict[str, Any] = {"id": f"approval_{run}", "toolName": "delete", "callId": f"{root}:ptc:2"}
            asked = await session.append("approval/asked", {**question, "reason": "deletes for good"})
            await session.append("approval/decided", {"id": f"approval_{run}", "outcome": "rejected"}, cites=asked)
            denial = {"outcome": "deny", "by": "approval", "approval": "rejected"}
            error = {"name": "PolicyError", "code": "READ_ONLY", "reason": "scope is read-only"}
            refused = text("Error: read-only")
            await event("tool/ptc-dispatch", 2, "delete", isError=True, content=refused, decision=denial, error=error)
            await event("tool/ptc-dispatch-start", 3, "pay")
            message = {"callId": root, "isError": False, "content": text(result)}
            await session.append("tool/result", {"turn": 1, "step": run, "message": message}, cites=cites)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "ptc.db"
    anyio.run(write_run, path)
    return path


@pytest.mark.contract("I5", "I6", "I7")
def test_show_prints_program_calls_and_result(log: Path) -> None:
    done = ptc("audit", "show", "--log", str(log))
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.split("\n")]
    position = -1
    for expected in (
        "session 20261129T101530-4f2a9c01d7 agent support",
        "labels sandbox=wasm",
        "run 20261129T101530-4f2a9c01d7/1 ok 20.000 ms started 2025-11-29T10:15:30.125956Z",
        "purpose Weekly refunds",
        "call call_1",
        "program 0 20.0 ms began took",
        '1 │ rows = await tools.search(q="refunds")',
        "├ 1 search ok ████ 2.50 ms 2.50 ms",
        '│ {"q":"refunds"} → [1, 2]',
        "2 │ await tools.delete(id=1)",
        "├ 2 delete denied ██████████⊘ 7.50 ms 7.50 ms",
        '│ {"q":"refunds"} → Error: read-only',
        "│ asked rejected after 2.50 ms: deletes for good",
        "│ denied by approval (approval: rejected)",
        "│ error READ_ONLY (PolicyError): scope is read-only",
        "3 │ print(len(rows))",
        "? │ (the line is not known)",
        "├ 3 pay outcome unknown ░░░? 17.5 ms -",
        '│ {"q":"refunds"}',
        "result",
        "│ 2",
    ):
        assert expected in lines, done.stdout
        position = lines.index(expected, position + 1)


@pytest.mark.contract("I6")
def test_show_json_is_one_stable_object(log: Path) -> None:
    done = ptc("audit", "show", "--log", str(log), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert list(shown) == ["format", "log", "session", "settings", "runs", "questions", "jobs", "unpaired"]
    assert (shown["settings"], shown["questions"], shown["jobs"]) == ([], [], [])
    assert (shown["format"], shown["log"], shown["unpaired"]) == ("ptc.audit.show/1", str(log), [])
    assert shown["session"] == {
        "id": "20261129T101530-4f2a9c01d7",
        "agent": "support",
        "opened": "2025-11-29T10:15:30.123456Z",
        "labels": {"sandbox": "wasm"},
        "events": 9,
    }
    (run,) = shown["runs"]
    calls = run.pop("calls")
    assert run == {
        "run": "20261129T101530-4f2a9c01d7/1",
        "callId": "call_1",
        "tool": "run_code",
        "description": "Weekly refunds",
        "program": PROGRAM,
        "preflight": None,
        "arguments": json.dumps({"code": PROGRAM, "description": "Weekly refunds"}),
        "outcome": "ok",
        "error": None,
        "decision": None,
        "approvals": [],
        "jobs": [],
        "started": "2025-11-29T10:15:30.125956Z",
        "durationMs": 20.0,
        "content": text("2"),
        "meta": None,
        "seq": 0,
        "settledSeq": 8,
    }
    assert [call["outcome"] for call in calls] == ["ok", "denied", "outcome unknown"]
    assert calls[1] == {
        "callId": "call_1:ptc:2",
        "parentCallId": "call_1",
        "tool": "delete",
        "arguments": {"q": "refunds"},
        "outcome": "denied",
        "error": {"name": "PolicyError", "code": "READ_ONLY", "reason": "scope is read-only"},
        "decision": {"outcome": "deny", "by": "approval", "approval": "rejected"},
        "approvals": [
            {
                "reason": "deletes for good",
                "outcome": "rejected",
                "detail": None,
                "waitedMs": 2.5,
                "seq": 4,
                "decidedSeq": 5,
            }
        ],
        "jobs": [],
        "line": 2,
        "started": "2025-11-29T10:15:30.133456Z",
        "durationMs": 7.5,
        "content": text("Error: read-only"),
        "meta": None,
        "seq": 3,
        "settledSeq": 6,
    }
    assert (calls[2]["durationMs"], calls[2]["content"], calls[2]["settledSeq"]) == (None, None, None)
    assert list(calls[2]) == list(calls[1])


@pytest.mark.contract("I14")
def test_after_a_kill_the_call_in_flight_is_outcome_unknown(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"
    code = """
import os, signal, sys, anyio
from ptc.runtime.log import Session, SqliteEventStore

async def main():
    store = SqliteEventStore(sys.argv[1])
    await store.open()
    session = Session(store, agent="support")
    call = {"turn": 1, "step": 1, "callId": "c1", "name": "run_code", "arguments": '{"code": "x", "description": "d"}'}
    await session.append("tool/call", call)
    ids = {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "c1:ptc:1"}
    await session.append("tool/ptc-dispatch-start", {**ids, "name": "pay", "arguments": {"amount": 7}})
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    done = ptc("audit", "show", "--log", str(path))
    assert done.returncode == 0
    lines = [" ".join(line.split()) for line in done.stdout.split("\n")]
    assert any(line.startswith("├ 1 pay outcome unknown ") and line.endswith(" ms -") for line in lines)
    assert '│ {"amount":7}' in lines
    assert any(line.startswith("run ") and "/1 outcome unknown - started" in line for line in lines)


@pytest.mark.parametrize("extra", [(), ("--json",), ("--full",)])
@pytest.mark.parametrize("colour", [{}, {"FORCE_COLOR": "1", "COLUMNS": "40"}])
def test_foreign_text_cannot_steer_the_terminal(tmp_path: Path, extra: tuple[str, ...], colour: dict[str, str]) -> None:
    path = tmp_path / "ptc.db"
    anyio.run(lambda: write_run(path, code=f"# {HOSTILE}", result=HOSTILE, found=HOSTILE))
    done = ptc("audit", "show", "--log", str(path), *extra, **colour)
    assert (done.returncode, done.stderr) == (0, "")
    ours = done.stdout
    if colour:
        # Our own styles are the only sequences there are: they end in `m` and hold digits.
        ours = re.sub(r"\x1b\[[0-9;]*m", "", ours)
    assert [char for char in ours if not char.isprintable() and char != "\n"] == []
    if "--json" in extra:
        assert json.loads(done.stdout)["runs"][0]["content"] == text(HOSTILE)
        assert done.stdout.isascii()
    else:
        times = 3 if "--full" in extra else 2  # the result of a call is cut to the screen
        for seen in ("\\x1b[2J", "\\x1b]0;root@prod\\x07", "\\r", "\\x9b1m", "\\x7f", "\\x00", "\\u2028", "\\u200b"):
            assert ours.count(seen) >= times, seen
        for seen in ("\\ufeff", "\\u202eevil\\u2066", "[red]markup[/red]", ":smile:"):
            assert ours.count(seen) >= times, seen


def test_foreign_lines_cannot_pass_for_ours(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"
    anyio.run(lambda: write_run(path, code=FORGED, result=FORGED, found=FORGED))
    done = ptc("audit", "show", "--log", str(path))
    lines = done.stdout.split("\n")
    assert sum(line.startswith("run ") for line in lines) == 1
    assert sum(line.startswith("  calls (") for line in lines) == 0
    assert sum(line.startswith("  program ") for line in lines) == 1
    forged = [line for line in lines if "FORGED" in line]
    assert len(forged) == 3
    assert all(line.lstrip("0123456789 ").startswith("│") for line in forged)


def test_escapes_are_unambiguous_one_line_and_complete() -> None:
    assert visible("a\tb\nc").plain == "a\\tb\\nc"
    assert visible("é 你 😀").plain == "é 你 😀"
    assert visible("\u2003\xa0\u3164\ufe0f\U000e0041\ue000").plain == "\\u2003\\xa0\\u3164\\ufe0f\\U000e0041\\ue000"
    for code in (
        *range(0x20),
        *range(0x7F, 0xA0),
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    ):
        shown = visible(f"a{chr(code)}b").plain
        assert shown.startswith("a\\"), hex(code)
        assert shown.isprintable()
    assert visible("\ud800").plain == "\\ud800"


def test_long_values_are_cut_at_a_character_and_the_missing_bytes_are_counted() -> None:
    assert cut("é" * 10, 20) == ("é" * 10, None)
    assert cut("é" * 10, 19) == ("é" * 9, "… 2 of 20 bytes are not shown; --full shows them")
    assert cut("x" * 3000, 1000) == ("x" * 1000, "… 2,000 of 3,000 bytes are not shown; --full shows them")
    assert cut("x" * 3000, None) == ("x" * 3000, None)


def test_long_values_are_cut_unless_all_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"
    code = "\n".join(f"line_{n} = {n}" for n in range(10_000))
    anyio.run(lambda: write_run(path, code=code, result="r" * 50_000, found="f" * 50_000))
    short = ptc("audit", "show", "--log", str(path))
    assert short.stdout.count("are not shown; --full shows them") == 2
    assert re.search(r"│   → f{20,}… 49,9\d\d more bytes\n", short.stdout)
    assert "line_9999" not in short.stdout
    assert len(short.stdout) < 80_000
    full = ptc("audit", "show", "--log", str(path), "--full")
    assert "more bytes" not in full.stdout
    assert "not shown" not in full.stdout
    assert "10000 │ line_9999 = 9999\n" in full.stdout
    assert "r" * 50_000 in full.stdout
    assert "f" * 50_000 in full.stdout


def test_which_run_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"
    anyio.run(lambda: write_run(path, "20261129T101530-aaaaaaaaaa", runs=3))
    anyio.run(lambda: write_run(path, "20261129T101530-bbbbbbbbbb", runs=1))

    def shown(*name: str) -> list[str]:
        done = ptc("audit", "show", *name, "--log", str(path), "--json")
        assert done.returncode == 0, done.stderr
        return [run["run"].removeprefix("20261129T101530-") for run in json.loads(done.stdout)["runs"]]

    assert shown() == ["aaaaaaaaaa/3"]
    assert shown("20261129T101530-bbbbbbbbbb") == ["bbbbbbbbbb/1"]
    assert shown("20261129T101530-a") == ["aaaaaaaaaa/1", "aaaaaaaaaa/2", "aaaaaaaaaa/3"]
    assert shown("20261129T101530-a/2") == ["aaaaaaaaaa/2"]

    for name, says in (
        ("2026", "2 sessions begin with '2026': .*aaaaaaaaaa.*give more of the id"),
        ("nobody", "has no session 'nobody'; `ptc audit list` shows what it has"),
        ("20261129T101530-a/4", "has runs 1 to 3, and no run '4'"),
        ("20261129T101530-a/x", "has runs 1 to 3, and no run 'x'"),
        ("20261129T101530-b/0", "has one run, number 1, and no run '0'"),
        ("\x1b[2J", "has no session"),
    ):
        assert_usage_error(ptc("audit", "show", name, "--log", str(path)), says)


def assert_usage_error(done: subprocess.CompletedProcess[str], says: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"ptc: .*{says}.*\n", done.stderr), done.stderr
    assert all(char.isprintable() for char in done.stderr.rstrip("\n"))


@pytest.mark.parametrize("command", ["show", "list"])
def test_a_log_that_cannot_be_used_is_one_clear_message(tmp_path: Path, command: str) -> None:
    missing = tmp_path / "none.db"
    assert_usage_error(ptc("audit", command, "--log", str(missing)), "there is no log at .*none.db; give the path")
    assert_usage_error(ptc("audit", command, "--log", str(tmp_path)), "it is a directory; give the path of a file")
    other = tmp_path / "other.db"
    other.write_text("plain text " * 50)
    assert_usage_error(ptc("audit", command, "--log", str(other)), "it is not a ptc log; give the path of one")
    assert sorted(os.listdir(tmp_path)) == ["other.db"]


def test_the_log_is_found_by_the_environment_and_in_the_working_directory(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    assert ptc("audit", "show").returncode == 0
    monkeypatch.chdir(log.parent.parent)
    assert ptc("audit", "show").returncode == 2
    assert ptc("audit", "show", PTC_LOG=str(log)).returncode == 0


def test_events_that_do_not_pair_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"

    async def write() -> None:
        async with SqliteEventStore(path) as store:
            session = Session(store, agent="a", id="s1")
            ids = {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "c1:ptc:1\x1b[2J"}
            data: dict[str, Any] = {**ids, "name": "pay", "arguments": {}, "isError": False, "content": []}
            await session.append("tool/ptc-dispatch", data)

    anyio.run(write)
    shown = ptc("audit", "show", "s1", "--log", str(path))
    assert shown.returncode == 0
    assert "no runs" in shown.stdout
    assert "event 0    c1:ptc:1\\x1b[2J: the sub-call ended and never started" in shown.stdout
    as_json = json.loads(ptc("audit", "show", "s1", "--log", str(path), "--json").stdout)
    assert as_json["unpaired"] == [
        {"seq": 0, "callId": "c1:ptc:1\x1b[2J", "problem": "the sub-call ended and never started"}
    ]
    latest = ptc("audit", "show", "--log", str(path))
    assert latest.returncode == 2
    assert "has no run" in latest.stderr


@pytest.mark.contract("I15")
def test_a_session_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"

    async def write() -> None:
        async with SqliteEventStore(path) as store:
            await Session(store, agent="a", id="s1").append("tool/later", {})

    anyio.run(write)
    done = ptc("audit", "show", "s1", "--log", str(path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "'tool/later'" in done.stderr
    assert "newer version" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_native_call_is_shown_with_its_raw_arguments(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"

    async def write() -> None:
        async with SqliteEventStore(path) as store:
            session = Session(store, agent="a", id="s1")
            call: dict[str, Any] = {"turn": 1, "step": 1, "callId": "c1", "name": "search", "arguments": '{"q": \x1b}'}
            await session.append("tool/call", call)
            image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
            message: dict[str, Any] = {"callId": "c1", "isError": False, "content": [*text("two\nlines"), image]}
            await session.append("tool/result", {"turn": 1, "step": 1, "message": message}, cites=0)

    anyio.run(write)
    done = ptc("audit", "show", "--log", str(path))
    assert "tool       search" in done.stdout
    assert 'arguments  {"q": \\x1b}' in done.stdout
    assert "    │ two\n    │ lines\n    │ [image image/png, 4 characters of base64]\n" in done.stdout
    assert "program" not in done.stdout


def test_output_into_a_closed_pipe_ends_quietly(log: Path) -> None:
    command = f"{sys.executable} -m ptc.runtime.cli audit show --full --log {log} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_a_terminal_without_the_letters_still_shows_everything(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"
    anyio.run(lambda: write_run(path, result="naïve 你"))
    done = ptc("audit", "show", "--log", str(path), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "na\\xefve \\u4f60" in done.stdout
