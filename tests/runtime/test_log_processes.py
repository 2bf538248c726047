"""The log among processes: sudden death, several writers, and readers beside them."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Self

import anyio
import pytest
from ptc.runtime.log import LogUnavailableError, Session, SqliteEventStore, SqliteLogReader
from ptc.runtime.log.reading import read_session

if TYPE_CHECKING:
    from pathlib import Path

WRITER = """
import os, signal, sys, anyio
from ptc.runtime.log import Session, SqliteEventStore

async def main(path, name, count, then):
    store = SqliteEventStore(path, busy_ms=60_000)
    await store.open()
    session = Session(store, agent=name, id=name)
    await session.append("x/ready", {"ignorable": True})
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(count):
        await session.append("x/y", {"ignorable": True, "n": n, "by": os.getpid()})
    if then == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    await store.close()

anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
"""

START_AND_DIE = """
import os, signal, sys, anyio
from ptc.runtime.log import Session, SqliteEventStore

async def main(path):
    store = SqliteEventStore(path)
    await store.open()
    session = Session(store, agent="support", id="s1")
    call = {"turn": 1, "step": 1, "callId": "c1", "name": "run_code", "arguments": '{"code": "x", "description": "d"}'}
    await session.append("tool/call", call)
    ids = {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "c1:ptc:1"}
    await session.append("tool/ptc-dispatch-start", {**ids, "name": "pay", "arguments": {"amount": 7}})
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main, sys.argv[1])
"""


class Writer:
    """A child process that appends to a log when it is told to."""

    def __init__(self, path: Path, name: str, count: int, then: str = "close") -> None:
        command = [sys.executable, "-c", WRITER, str(path), name, str(count), then]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> int:
        self.process.communicate()
        return self.process.returncode


def read_all(path: Path) -> None:
    with SqliteLogReader(path) as reader:
        for info in reader.sessions():
            reader.events(info.id)


def assert_chained(path: Path) -> None:
    """Recomputes every session's chain from the stored bytes."""
    connection = sqlite3.connect(path)
    for key, previous in connection.execute("SELECT key, hash FROM sessions").fetchall():
        rows = connection.execute(
            "SELECT id - (? << 32), time_us, mono_us, cites, type, data, hash FROM events "
            "WHERE id >> 32 = ? ORDER BY id",
            (key, key),
        ).fetchall()
        for index, (seq, time_us, mono_us, cites, kind, data, digest) in enumerate(rows):
            assert seq == index
            line = f"{seq} {time_us} {mono_us} {'-' if cites is None else cites} {kind}\n{data}"
            previous = hashlib.sha256(previous + line.encode()).digest()
            assert digest == previous
    connection.close()


@pytest.mark.contract("I14")
def test_what_was_appended_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    done = subprocess.run([sys.executable, "-c", START_AND_DIE, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    with SqliteLogReader(path) as reader:
        (info,) = reader.sessions()
        (run,) = read_session(info, reader.events(info.id)).runs
    assert run.outcome == "outcome unknown"
    assert [(sub.name, sub.arguments, sub.outcome) for sub in run.calls] == [("pay", {"amount": 7}, "outcome unknown")]


@pytest.mark.contract("I1")
def test_every_append_before_a_kill_is_there_and_the_session_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Writer(path, "s1", 500, "die") as writer:
        writer.ready()
        writer.go()
        assert writer.end() == -signal.SIGKILL
    with Writer(path, "s1", 10) as writer:
        writer.ready()
        writer.go()
        assert writer.end() == 0
    with SqliteLogReader(path) as reader:
        numbers = [event.data.get("n") for event in reader.events("s1")]
    assert numbers == [None, *range(500), None, *range(10)]
    assert_chained(path)


@pytest.mark.contract("I1")
@pytest.mark.parametrize("names", [("s1", "s2"), ("same", "same")])
def test_two_processes_append_to_one_file_at_the_same_time(tmp_path: Path, names: tuple[str, str]) -> None:
    path = tmp_path / "log.db"
    with Writer(path, names[0], 400) as one, Writer(path, names[1], 400) as two:
        for writer in (one, two):
            writer.ready()
        for writer in (one, two):
            writer.go()
        assert [one.end(), two.end()] == [0, 0]
    with SqliteLogReader(path) as reader:
        assert {info.id: info.events for info in reader.sessions()} == {
            name: 401 * names.count(name) for name in set(names)
        }
        for name in set(names):
            events = reader.events(name)
            assert [event.seq for event in events] == list(range(len(events)))
            by: dict[object, list[object]] = {}
            for event in events:
                if event.type == "x/y":
                    by.setdefault(event.data["by"], []).append(event.data["n"])
            assert list(by.values()) == [list(range(400))] * names.count(name)
    assert_chained(path)


def test_several_processes_make_the_file_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    writers = [Writer(path, f"s{n}", 1) for n in range(4)]
    try:
        for writer in writers:
            writer.ready()
            writer.go()
        assert [writer.end() for writer in writers] == [0, 0, 0, 0]
    finally:
        for writer in writers:
            writer.__exit__()
    with SqliteLogReader(path) as reader:
        assert sorted((info.id, info.events) for info in reader.sessions()) == [(f"s{n}", 2) for n in range(4)]


def test_reading_beside_a_writer_sees_what_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Writer(path, "s1", 3) as writer:
        writer.ready()
        with SqliteLogReader(path) as reader:
            assert [event.type for event in reader.events("s1")] == ["x/ready"]
            writer.go()
            assert writer.end() == 0
            assert len(reader.events("s1")) == 4


def test_reading_a_closed_log_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Writer(path, "s1", 3) as writer:
        writer.ready()
        writer.go()
        writer.end()
    before = path.read_bytes(), path.stat().st_mtime_ns
    with SqliteLogReader(path) as reader:
        assert len(reader.events("s1")) == 4
        assert os.listdir(tmp_path) == ["log.db"]
    assert os.listdir(tmp_path) == ["log.db"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_reading_after_a_kill_changes_no_record(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Writer(path, "s1", 3, "die") as writer:
        writer.ready()
        writer.go()
        writer.end()
    wal = tmp_path / "log.db-wal"
    before = path.read_bytes(), wal.read_bytes()
    for _ in range(2):
        with SqliteLogReader(path) as reader:
            assert len(reader.events("s1")) == 4
    assert (path.read_bytes(), wal.read_bytes()) == before


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    for then in ("close", "die"):
        with Writer(path, then, 1, then) as writer:
            writer.ready()
            writer.go()
            writer.end()
        with SqliteLogReader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._connection.execute("CREATE TABLE x (y)")


@pytest.mark.anyio
async def test_a_reader_notices_a_writer_that_came_and_went(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a")
        await session.append("x/y", {"ignorable": True})
    with SqliteLogReader(path) as reader:
        assert len(reader.events(session.id)) == 1
        for n in range(3):
            async with SqliteEventStore(path) as store:
                again = Session(store, agent="a", id=session.id)
                for _ in range(50):
                    await again.append("x/y", {"ignorable": True, "text": "x" * 1000})
            assert len(reader.events(session.id)) == 1 + 50 * (n + 1)


@pytest.mark.contract("I1")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE events SET data = '{'", "event 0 of session"),
        ("UPDATE events SET data = '[]'", "event 0 of session"),
        ("UPDATE events SET data = '{\"a\": NaN}'", "event 0 of session"),
        ("UPDATE events SET data = x'00'", "event 0 of session"),
        ("UPDATE sessions SET labels = 'x'", "the labels of session"),
    ],
)
def test_a_record_that_is_not_what_was_written_is_reported(tmp_path: Path, change: str, says: str) -> None:
    path = tmp_path / "log.db"

    async def write() -> None:
        async with SqliteEventStore(path) as store:
            await Session(store, agent="a").append("x/y", {})

    anyio.run(write)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER events_no_update")
        connection.execute("DROP TRIGGER sessions_no_update")
        connection.execute(change)
    connection.close()
    with pytest.raises(LogUnavailableError, match=says) as caught:
        read_all(path)
    assert caught.value.reason == "damaged"
    assert str(path) in caught.value.message


def test_a_file_with_broken_pages_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    async def write() -> None:
        async with SqliteEventStore(path) as store:
            session = Session(store, agent="a", id="s1")
            for _ in range(100):
                await session.append("x/y", {"text": "x" * 500})

    anyio.run(write)
    raw = bytearray(path.read_bytes())
    raw[8192:] = b"\xff" * (len(raw) - 8192)
    path.write_bytes(raw)
    with pytest.raises(LogUnavailableError, match="damaged") as caught:
        read_all(path)
    assert caught.value.reason == "damaged"
