"""The picture that `ptc audit show` draws: calls below their lines, on one scale of time, on any screen."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from ptc.runtime.cli.audit_query import short_duration
from ptc.runtime.log import Session, SqliteEventStore
from rich.cells import cell_len

from .audit_logs import HOSTILE, SECRET, all_calls, assert_printable, real_log, run

ROOT = Path(__file__).resolve().parent.parent.parent
TOUR = ROOT / "examples" / "audit_tour"
MARKS = {"ok": "", "failed": "✗", "denied": "⊘", "cancelled": "┤", "outcome unknown": "?"}
ROW = re.compile(r" {7}├ (?P<label>.*?)  (?P<outcome>ok|failed|denied|cancelled|outcome unknown)\s")


def shown(log: Path, *options: str, columns: int = 100, **environment: str) -> list[str]:
    done = run("show", "--log", str(log), *options, COLUMNS=str(columns), **environment)
    assert done.exit_code == 0, done.stderr
    assert_printable(done.stdout)
    return done.stdout.split("\n")


def rows(lines: list[str]) -> dict[str, tuple[str, int, int]]:
    """Returns the outcome of each call's row, and between which columns its bar is."""
    found: dict[str, tuple[str, int, int]] = {}
    for line in lines:
        row = ROW.match(line)
        if row is not None:
            bar = re.compile(r"[█░]*[█░✗⊘┤?]").search(line, row.end("outcome"))
            assert bar is not None, line
            found[row["label"]] = (row["outcome"], bar.start(), bar.end())
    return found


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return real_log(tmp_path)


def session_of(log: Path, agent: str) -> str:
    return next(one["session"].id for one in all_calls(log) if one["session"].agent == agent)


@pytest.mark.parametrize("columns", [80, 100, 160])
def test_each_call_stands_below_its_line_with_a_bar_at_its_time(log: Path, columns: int) -> None:
    lines = shown(log, f"{session_of(log, 'support')}/1", columns=columns)
    whole = re.compile(r" +\d+ │ |    │ ")  # the program and the result are not cut, and a pipe folds nothing
    assert max(cell_len(line) for line in lines[5:] if not whole.match(line)) <= columns
    found = rows(lines)
    assert {label: outcome for label, (outcome, _from, _to) in found.items()} == {
        "1 nap": "ok", "2 nap": "ok", "3 nap": "ok", "4 nap": "ok", "5 fail": "failed", "6 delete_order": "denied",
        "7 pay": "denied", "8 refund": "ok", "9 refund": "denied", "10 echo": "ok", "11 echo": "ok", "12 echo": "ok",
    }  # fmt: skip
    naps = [found[f"{n} nap"] for n in range(1, 5)]
    assert max(start for _outcome, start, _end in naps) < min(end for _outcome, _start, end in naps)  # side by side
    assert found["5 fail"][1] >= max(end for _outcome, _start, end in naps) - 1  # and this one after them
    assert min(start for _outcome, start, _end in found.values()) > columns // 3
    assert max(end for _outcome, _start, end in found.values()) <= columns - 20
    source = next(n for n, line in enumerate(lines) if "asyncio.gather(" in line)
    assert [lines[source + 1 + 2 * n].split()[1:3] for n in range(4)] == [[str(n + 1), "nap"] for n in range(4)]
    for line in lines:
        row = ROW.match(line)
        if row is not None:
            assert cell_len(line) == columns
            assert MARKS[row["outcome"]] in line


def test_it_tells_who_denied_and_why_and_who_was_asked(log: Path) -> None:
    text = "\n".join(shown(log, f"{session_of(log, 'support')}/1", columns=160))
    place = "tests.runtime.audit_logs."
    for expected in (
        '│   {"id":3} → Error: nobody deletes orders\n       │   denied by ',
        '│   {"amount":7} → Error: payments are closed\n       │   denied by ',
        "│   asked allowed-once after ",
        ": refunds cost money\n       │   allowed by ",
        " (approval: rejected)\n       │   error APPROVAL_REJECTED (ApprovalError)",
        '│   {"why":"no such order"} → Error: no such order',
    ):
        assert expected in text, text
    assert f"denied by {place}nobody_deletes\n" in text
    assert f"denied by {place}paying_is_closed\n" in text


def test_cancelled_and_unknown_calls_are_marked(log: Path) -> None:
    cancelled = rows(shown(log, f"{session_of(log, 'support')}/2"))
    assert cancelled["1 nap"][0] == "cancelled"
    assert cancelled["1 nap"][2] - cancelled["1 nap"][1] > 10  # nearly all of the run
    lines = shown(log, session_of(log, "doomed"))
    assert rows(lines)["1 launch"][0] == "outcome unknown"
    assert any(line.startswith("       ├ 1 launch  outcome unknown") and line.endswith("  -") for line in lines)
    assert '       │   {"target":"moon"}' in lines


def test_both_sandboxes_and_native_calls(log: Path) -> None:
    native = [one["session"].id for one in all_calls(log) if one["session"].agent.startswith("billing")]
    lines = shown(log, native[0])
    assert "  tool       delete_order" in lines
    assert not rows(lines)
    if sys.platform.startswith("linux"):
        assert rows(shown(log, session_of(log, "other")))["1 nap"][0] == "ok"


@pytest.mark.parametrize("columns", [20, 40, 64, 80])
@pytest.mark.parametrize("options", [(), ("--full",)])
def test_foreign_text_steers_nothing_on_any_screen(log: Path, columns: int, options: tuple[str, ...]) -> None:
    for session in ("20300101T000000-hostile", session_of(log, "support")):
        lines = shown(log, session, *options, columns=columns)  # which looks for control characters
        for line in lines:
            assert "\x1b" not in line
    text = "\n".join(shown(log, "20300101T000000-hostile", "--full"))
    assert text.count("\\u202eevil\\u2066") > 8
    assert text.count("\\x1b[2J") > 8


def test_nothing_is_coloured_in_a_pipe_and_with_no_color(log: Path) -> None:
    command = [sys.executable, "-m", "ptc.runtime.cli", "audit", "show", "--log", str(log), session_of(log, "support")]
    for extra in ({}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}):
        environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
        done = subprocess.run(command, capture_output=True, env={**environment, **extra}, check=True)
        assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", done.stdout)
        assert b"denied" in done.stdout


_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(log: Path, *arguments: str, until: str | None = None) -> list[str]:
    """Returns the lines that a terminal of 80 columns gets; interrupts the command when it has printed `until`."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ptc.runtime.cli", "audit", *arguments, "--log", str(log)]
    environment = {**os.environ, "COLUMNS": "80", "LINES": "40", "TERM": "xterm", "PYTHONUTF8": "1", "NO_COLOR": "1"}
    told = b""
    with subprocess.Popen(command, stdout=theirs, env=environment) as process:
        os.close(theirs)
        try:
            while piece := os.read(ours, 65536):
                told += piece
                if until is not None and until in _STYLES.sub("", told.decode(errors="replace")):
                    process.send_signal(signal.SIGINT)
                    until = None
        except OSError:  # what Linux says when the other side is closed
            assert told
        finally:
            process.terminate()  # nothing when it has ended; a failing test leaves no process behind
            os.close(ours)
    assert process.returncode == 0
    return _STYLES.sub("", told.decode()).replace("\r\n", "\n").split("\n")


def test_on_a_terminal_no_line_is_wider_than_it(log: Path) -> None:
    """The terminal would fold it without our margin, and what it begins a line with could pass for ours."""
    lines = on_terminal(log, "show", session_of(log, "support"))
    first = next(n for n, line in enumerate(lines) if line.startswith("  program"))
    last = next(n for n, line in enumerate(lines) if line.startswith("  result"))
    assert any("┆" in line for line in lines)
    assert max(map(cell_len, lines[first:last])) <= 80


async def write_forged(path: Path) -> None:
    """Writes a run in which all foreign text is one long line that has what would pass for one of ours everywhere."""
    forged = "".join(f"{'x' * 7}run s/9  ok  FORGED  {at:04}  " for at in range(40))
    code = json.dumps({"code": f"# {forged}", "description": forged})
    async with SqliteEventStore(path) as store:
        session = Session(store, agent=forged, id="s")
        call = {"turn": 1, "step": 1, "callId": forged, "name": "run_code", "arguments": code}
        cites = await session.append("tool/call", call)
        ids = {"rootCallId": forged, "parentCallId": forged, "subCallId": f"{forged}:ptc:1", "name": forged}
        content: Any = [{"type": "text", "text": forged}]
        error = {"name": "PolicyError", "code": "READ_ONLY", "reason": forged}
        await session.append("tool/ptc-dispatch-start", {**ids, "arguments": forged})
        await session.append(
            "tool/ptc-dispatch", {**ids, "arguments": forged, "isError": True, "content": content, "error": error}
        )
        message = {"callId": forged, "isError": False, "content": content}
        await session.append("tool/result", {"turn": 1, "step": 1, "message": message}, cites=cites)


@pytest.mark.parametrize(
    ("arguments", "until"),
    [
        (("show",), None),
        (("show", "--full"), None),
        (("query",), None),
        (("tail", "--since", "1d"), "< run_code"),
    ],
)
def test_no_foreign_text_begins_a_row_of_a_terminal(
    tmp_path: Path, arguments: tuple[str, ...], until: str | None
) -> None:
    path = tmp_path / "ptc.db"
    anyio.run(write_forged, path)
    lines = on_terminal(path, *arguments, until=until)
    assert any("FORGED" in line for line in lines)
    assert max(map(cell_len, lines)) <= 80
    ours = re.compile(r" {4}|  (call|purpose|error|decision)  |session  s  agent |\d\d(\d\d-\d\d-\d\d \d\d)?:\d\d:")
    assert [line for line in lines if ("FORGED" in line or "xxx" in line) and not ours.match(line)] == []


async def write_many(path: Path, calls: int, lines: int, *, failing: frozenset[int] = frozenset()) -> None:
    """Writes a run whose calls are spread over the lines of its program."""
    now = 1_764_411_330_000_000

    def clock() -> int:
        nonlocal now
        now += 1_000
        return now

    async with SqliteEventStore(path, clock=clock, monotonic=lambda: now) as store:
        session = Session(store, agent="a", id="s1")
        code = "\n".join(f"await tools.get(n={n})" for n in range(1, lines + 1))
        arguments = json.dumps({"code": code, "description": "Many"})
        call = {"turn": 1, "step": 1, "callId": "c", "name": "run_code", "arguments": arguments}
        seq = await session.append("tool/call", call)
        for n in range(1, calls + 1):
            ids = {"rootCallId": "c", "parentCallId": "c", "subCallId": f"c:ptc:{n}"}
            told: dict[str, Any] = {**ids, "name": "get", "arguments": {"n": n}}
            await session.append("tool/ptc-dispatch-start", {**told, "line": (n - 1) * lines // calls + 1})
            content = [{"type": "text", "text": f"answer {n}"}]
            await session.append("tool/ptc-dispatch", {**told, "isError": n in failing, "content": content})
        message = {"callId": "c", "isError": False, "content": []}
        await session.append("tool/result", {"turn": 1, "step": 1, "message": message}, cites=seq)


def test_one_call(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"
    anyio.run(write_many, log, 1, 1)
    lines = shown(log, columns=80)
    assert [line for line in lines if line.startswith("     ")] == [
        "     1 │ await tools.get(n=1)",
        "       ├ 1 get  ok                           ████████          1.00 ms   1.00 ms",
        '       │   {"n":1} → answer 1',
    ]


def test_five_hundred_calls_of_one_line_are_cut_and_those_that_failed_are_not(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"
    anyio.run(lambda: write_many(log, 500, 1, failing=frozenset({100, 300})))
    lines = shown(log, columns=80)
    assert len(lines) < 150
    found = rows(lines)
    assert (found["100 get"][0], found["300 get"][0]) == ("failed", "failed")
    assert {"1 get", "24 get", "493 get", "500 get"} <= set(found)
    assert "25 get" not in found
    more = [line for line in lines if " more calls  " in line]
    assert [re.findall(r"(\d+) more calls  (\d+ ok)", line) for line in more] == [
        [("75", "75 ok")], [("199", "199 ok")], [("192", "192 ok")]
    ]  # fmt: skip
    assert all(cell_len(line) == 80 for line in more)
    assert "  466 of 500 calls are not shown; --full shows them" in lines
    full = shown(log, "--full")
    assert len(rows(full)) == 500
    assert "not shown" not in "\n".join(full)
    assert '       │   arguments  {"n":25}' in full
    assert "       │   result     answer 25" in full


def test_five_hundred_calls_of_as_many_lines(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"
    anyio.run(write_many, log, 500, 500)
    lines = shown(log, columns=80)
    sources = [n for n, line in enumerate(lines) if "│ await tools.get" in line]
    assert len(sources) == 500
    assert lines[sources[299] + 1].startswith("       ├ 1 more call  1 ok")
    assert len(rows(lines)) == 32


def test_a_call_whose_line_is_beyond_the_program_or_unknown_is_still_there(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"

    async def write() -> None:
        async with SqliteEventStore(log) as store:
            session = Session(store, agent="a", id="s1")
            arguments = json.dumps({"code": "pass", "description": "d"})
            call: dict[str, Any] = {"turn": 1, "step": 1, "callId": "c", "name": "run_code", "arguments": arguments}
            await session.append("tool/call", call)
            for n, line in enumerate((99, -5, None), 1):
                ids = {"rootCallId": "c", "parentCallId": "c", "subCallId": f"c:ptc:{n}"}
                more = {} if line is None else {"line": line}
                await session.append("tool/ptc-dispatch-start", {**ids, "name": "get", "arguments": {}, **more})
            ids = {"rootCallId": "c", "parentCallId": "c:ptc:1", "subCallId": "c:ptc:1:ptc:1"}
            await session.append("tool/ptc-dispatch-start", {**ids, "name": "inner", "arguments": {}, "line": 1})

    anyio.run(write)
    lines = shown(log)
    assert sorted(rows(lines)) == ["  1.1 inner", "1 get", "2 get", "3 get"]
    assert "    99 │ (a line that is not shown)" in lines
    assert "     ? │ (the line is not known)" in lines


def test_a_terminal_without_our_signs_gets_plain_ones(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"
    anyio.run(lambda: write_many(log, 3, 1, failing=frozenset({2})))
    command = [sys.executable, "-m", "ptc.runtime.cli", "audit", "show", "--log", str(log)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    (failed,) = (line for line in done.stdout.split("\n") if "2 get" in line)
    assert re.fullmatch(r" {7}\| 2 get  failed +#+x +3\.00 ms +1\.00 ms", failed)
    assert '       |   {"n":2} > answer 2' in done.stdout


def test_long_values_are_cut_to_the_screen_with_what_is_missing(log: Path) -> None:
    lines = shown(log, f"{session_of(log, 'support')}/1", columns=80)
    (arguments,) = (line for line in lines if line.startswith('       │   {"text":"xxxx'))
    assert re.fullmatch(r" {7}│ {3}\{\"text\":\"x{20,}… 19,9\d\d more bytes", arguments)
    assert cell_len(arguments) <= 80
    assert any(SECRET in line for line in lines)
    full = shown(log, f"{session_of(log, 'support')}/1", "--full")
    assert any("x" * 20_000 in line for line in full)
    assert repr(HOSTILE)  # its escapes are looked for above


def test_durations_are_short_and_clear() -> None:
    told = {0: "0.00 ms", 0.27: "0.27 ms", 41.06: "41.1 ms", 412.4: "412 ms", 1_204: "1.20 s", 61_000: "61.0 s",
            200_000: "3m 20s", 3 * 3_600_000: "3h 00m"}  # fmt: skip
    assert {ms: short_duration(ms) for ms in told} == told


def settled(picture: str) -> list[str]:
    """Takes out of a picture what differs from run to run: ids, times, and where bars begin and end."""
    text = re.sub(r"\d{8}T\d{6}-[0-9a-f]{10}", "SESSION", picture)
    text = re.sub(r"call_[0-9a-f]{12}", "CALL", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    text = re.sub(r"[\d.]+ m?s\b", "DURATION", text)
    text = re.sub(r"█+", "█", text)
    return [" ".join(line.split()) for line in text.split("\n")]


def test_the_picture_of_the_tour_is_what_is_printed_today() -> None:
    kept = (TOUR / "picture.txt").read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, str(TOUR / "picture.py")], capture_output=True, encoding="utf-8", check=True)
    assert settled(done.stdout) == settled(kept)
    found = rows(kept.split("\n"))
    checks = [found[f"{n} check_payment"] for n in range(2, 6)]
    assert max(start for _outcome, start, _end in checks) < min(end for _outcome, _start, end in checks)
    assert sorted(outcome for outcome, _start, _end in found.values()) == ["denied"] * 2 + ["failed"] + ["ok"] * 5
    assert max(map(cell_len, kept.split("\n"))) <= 100
