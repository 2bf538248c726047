"""`ptc audit list`, and the command line as a whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from ptc.runtime.cli.audit_find import list_runs
from ptc.runtime.log import Session, SqliteEventStore, SqliteLogReader

if TYPE_CHECKING:
    from pathlib import Path


def ptc(*arguments: str, program: tuple[str, ...] = ("-m", "ptc.runtime.cli")) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("PTC_LOG", "FORCE_COLOR")}
    command = [sys.executable, *program, *arguments]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, env={**environment, "PYTHONUTF8": "1"}
    )


class Clock:
    """A clock that the test sets, in ms."""

    def __init__(self) -> None:
        self.ms = 1_764_411_330_000

    def us(self) -> int:
        return self.ms * 1000


async def add_run(
    session: Session, clock: Clock, call_id: str, at_ms: int, *, takes_ms: int | None = 5, **more: Any
) -> None:
    """Adds one run that starts `at_ms` after the clock's start."""
    arguments = json.dumps({"code": "pass", "description": more.get("description", f"purpose of {call_id}")})
    call: dict[str, Any] = {
        "turn": 1,
        "step": 1,
        "callId": call_id,
        "name": more.get("tool", "run_code"),
        "arguments": arguments,
    }
    clock.ms = 1_764_411_330_000 + at_ms
    seq = await session.append("tool/call", call)
    for n in range(more.get("calls", 0)):
        ids = {"rootCallId": call_id, "parentCallId": call_id, "subCallId": f"{session.id}:{call_id}:ptc:{n}"}
        await session.append("tool/ptc-dispatch-start", {**ids, "name": "search", "arguments": {}})
    if takes_ms is not None:
        clock.ms += takes_ms
        message: dict[str, Any] = {"callId": call_id, "isError": more.get("failed", False), "content": []}
        await session.append("tool/result", {"turn": 1, "step": 1, "message": message}, cites=seq)


async def write_sessions(path: Path) -> None:
    """Two sessions whose runs are interleaved in time: a1, b1, a2, b2, a3."""
    clock = Clock()
    async with SqliteEventStore(path, clock=clock.us, monotonic=clock.us) as store:
        one = Session(store, agent="support", id="20261129T101530-aaaaaaaaaa")
        two = Session(store, agent="evil [bold]\x1b[31m\u202e", id="20261129T101530-bbbbbbbbbb")
        await add_run(one, clock, "a1", 0, calls=2)
        await add_run(two, clock, "b1", 100, failed=True, description="line\n\x1b[2J")
        await add_run(one, clock, "a2", 200, tool="search")
        await add_run(two, clock, "b2", 300, takes_ms=1500)
        await add_run(one, clock, "a3", 400, takes_ms=None, calls=1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "ptc.db"
    anyio.run(write_sessions, path)
    return path


@pytest.mark.contract("I7", "I14")
def test_list_shows_the_latest_runs_first(log: Path) -> None:
    done = ptc("audit", "list", "--log", str(log))
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.split("\n")]
    assert lines == [
        "RUN STARTED (UTC) AGENT WHAT CALLS OUTCOME TIME",
        "20261129T101530-aaaaaaaaaa/3 2025-11-29 10:15:30 support purpose of a3 1 outcome unknown -",
        "20261129T101530-bbbbbbbbbb/2 2025-11-29 10:15:30 evil [bold]\\x1b[31m\\u20… purpose of b2 0 ok 1.500 s",
        "20261129T101530-aaaaaaaaaa/2 2025-11-29 10:15:30 support search 0 ok 5.000 ms",
        "20261129T101530-bbbbbbbbbb/1 2025-11-29 10:15:30 evil [bold]\\x1b[31m\\u20… line\\n\\x1b[2J 0 failed 5.000 ms",
        "20261129T101530-aaaaaaaaaa/1 2025-11-29 10:15:30 support purpose of a1 2 ok 5.000 ms",
        "",
    ]


def test_list_json(log: Path) -> None:
    done = ptc("audit", "list", "--log", str(log), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    listed = json.loads(done.stdout)
    assert {key: value for key, value in listed.items() if key != "runs"} == {
        "format": "ptc.audit.list/1",
        "log": str(log),
        "more": False,
        "unpaired": {},
        "unreadable": {},
    }
    assert listed["runs"][0] == {
        "run": "20261129T101530-aaaaaaaaaa/3",
        "session": "20261129T101530-aaaaaaaaaa",
        "agent": "support",
        "started": "2025-11-29T10:15:30.400000Z",
        "tool": "run_code",
        "description": "purpose of a3",
        "calls": 1,
        "jobs": {},
        "outcome": "outcome unknown",
        "durationMs": None,
    }
    assert [run["description"] for run in listed["runs"]] == [
        "purpose of a3",
        "purpose of b2",
        None,
        "line\n\x1b[2J",
        "purpose of a1",
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
def test_list_is_limited_to_the_latest(log: Path, limit: int) -> None:
    listed = json.loads(ptc("audit", "list", "--log", str(log), "--json", "--limit", str(limit)).stdout)
    latest = ["aaaaaaaaaa/3", "bbbbbbbbbb/2", "aaaaaaaaaa/2", "bbbbbbbbbb/1", "aaaaaaaaaa/1"]
    assert [run["run"].removeprefix("20261129T101530-") for run in listed["runs"]] == latest[:limit]
    assert listed["more"] is (limit < 5)
    said = ptc("audit", "list", "--log", str(log), "-n", str(limit)).stdout
    assert ("older runs are not shown; --limit shows more" in said) is (limit < 5)


def test_list_of_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"

    async def write() -> None:
        async with SqliteEventStore(path):
            pass

    anyio.run(write)
    done = ptc("audit", "list", "--log", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path} has no runs yet\n"


@pytest.mark.contract("I15", "I8")
def test_one_session_that_cannot_be_read_does_not_hide_the_others(log: Path) -> None:
    async def write() -> None:
        async with SqliteEventStore(log) as store:
            await Session(store, agent="a", id="later").append("tool/later", {})
            session = Session(store, agent="a", id="odd")
            ids = {"rootCallId": "c", "parentCallId": "c", "subCallId": "c:ptc:1"}
            data: dict[str, Any] = {**ids, "name": "pay", "arguments": {}, "isError": False, "content": []}
            await session.append("tool/ptc-dispatch", data)

    anyio.run(write)
    done = ptc("audit", "list", "--log", str(log))
    assert done.returncode == 1
    assert done.stdout.count("20261129T101530-") == 5
    assert "session later cannot be read: event 0 of session later has the type 'tool/later'" in done.stderr
    assert "session odd: 1 events do not pair; `ptc audit show odd` lists them" in done.stderr


def test_list_while_the_log_is_written(log: Path) -> None:
    async def main() -> None:
        async with SqliteEventStore(log) as store:
            session = Session(store, agent="busy")
            await session.append("tool/call", {"turn": 1, "step": 1, "callId": "c", "name": "t", "arguments": ""})
            done = await anyio.run_process(
                [sys.executable, "-m", "ptc.runtime.cli", "audit", "list", "--log", str(log), "--json"]
            )
            assert json.loads(done.stdout)["runs"][0]["agent"] == "busy"
            assert await session.append("x/y", {"ignorable": True}) == 1

    anyio.run(main)


@pytest.mark.parametrize(
    "arguments", [("--help",), ("audit", "--help"), ("audit", "list", "--help"), ("audit", "show", "-h")]
)
def test_help(arguments: tuple[str, ...]) -> None:
    done = ptc(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: ptc" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("audit", "nonsense"),
        ("audit", "list", "--limit", "0"),
        ("audit", "list", "--nonsense"),
        ("audit", "show", "a", "b"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    done = ptc(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: ptc" in done.stderr


def test_sessions_whose_calls_are_too_old_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred sessions that are all still busy: only those are read that hold one of the latest runs."""
    path = tmp_path / "ptc.db"

    async def write() -> None:
        clock = Clock()
        async with SqliteEventStore(path, clock=clock.us, monotonic=clock.us) as store:
            sessions = [Session(store, agent="a", id=f"s{n}") for n in range(100)]
            for n, session in enumerate(sessions):
                await add_run(session, clock, "c", n)
                await add_run(session, clock, "", n)
            for session in sessions:
                clock.ms += 10_000
                await session.append("x/y", {"ignorable": True})

    anyio.run(write)
    read: list[str] = []
    events = SqliteLogReader.events

    def noted(self: SqliteLogReader, session: str, **bounds: Any) -> Any:
        read.append(session)
        return events(self, session, **bounds)

    monkeypatch.setattr(SqliteLogReader, "events", noted)
    with SqliteLogReader(path) as reader:
        listing = list_runs(reader, 3)
    assert [run.id for _session, run in listing.runs] == ["s99/1", "s98/1", "s97/1"]
    assert listing.more
    assert sorted(read) == ["s97", "s98", "s99"]
