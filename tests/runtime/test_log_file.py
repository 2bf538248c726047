"""The file of the log: what it refuses, what refuses to be changed in it, and its hash chain."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from ptc.runtime.log import LogUnavailableError, Session, SqliteEventStore, SqliteLogReader, database
from ptc.runtime.log.database import APPLICATION_ID, SCHEMA_VERSION, connect_writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def write(path: Path, events: int = 2, agent: str = "support") -> str:
    async with SqliteEventStore(path) as store:
        session = Session(store, agent=agent, labels={"sandbox": "wasm", "a": "é"})
        for n in range(events):
            await session.append("x/y", {"n": n, "text": "é"}, cites=n - 1 if n else None)
    return session.id


@pytest.mark.contract("I1")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET data = '{}'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT id, type, time_us, mono_us, cites, hash, '{}' FROM events",
        "REPLACE INTO events (id, type, time_us, mono_us, hash, data) SELECT id, 'x', 1, 1, x'', '{}' FROM events",
        "UPDATE OR IGNORE events SET type = 'z'",
        "UPDATE sessions SET agent = 'x'",
        "DELETE FROM sessions",
        "REPLACE INTO sessions SELECT key, id, 'other', opened_us, labels, hash FROM sessions",
        "REPLACE INTO sessions SELECT key + 1, id, 'other', opened_us, labels, hash FROM sessions",
    ],
)
def test_the_log_only_grows(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "log.db"
    anyio.run(write, path)
    with sqlite3.connect(path) as connection:
        before = list(connection.iterdump())
        with pytest.raises(sqlite3.IntegrityError, match="the log only grows"):
            connection.execute(statement)
        assert list(connection.iterdump()) == before
    connection.close()


@pytest.mark.contract("I1")
def test_every_record_is_in_the_hash_chain_as_the_documentation_says(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    session = anyio.run(write, path, 4)
    connection = sqlite3.connect(path)
    (row,) = connection.execute("SELECT id, agent, opened_us, labels, hash, key FROM sessions").fetchall()
    name, agent, opened_us, labels, genesis, key = row
    assert name == session
    assert json.loads(labels) == {"sandbox": "wasm", "a": "é"}
    told = dict(sorted(json.loads(labels).items()))
    header = json.dumps([name, agent, opened_us, told], ensure_ascii=False, separators=(",", ":"))
    previous = hashlib.sha256(b"ptc-session 1\n" + header.encode()).digest()
    assert genesis == previous
    rows = connection.execute("SELECT id, time_us, mono_us, cites, type, data, hash FROM events ORDER BY id").fetchall()
    connection.close()
    assert len(rows) == 4
    for packed, time_us, mono_us, cites, kind, data, digest in rows:
        seq = packed - (key << 32)
        cited = "-" if cites is None else cites
        canonical = f"{seq} {time_us} {mono_us} {cited} {kind}\n{data}".encode()
        previous = hashlib.sha256(previous + canonical).digest()
        assert digest == previous


def test_the_view_for_other_tools(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    session = anyio.run(write, path, 2)
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT session, agent, seq, type, cites, data FROM records ORDER BY seq").fetchall()
    connection.close()
    assert rows == [
        (session, "support", 0, "x/y", None, '{"n":0,"text":"é"}'),
        (session, "support", 1, "x/y", 0, '{"n":1,"text":"é"}'),
    ]


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    anyio.run(write, path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    connection.close()


async def append_one(path: Path) -> None:
    async with SqliteEventStore(path, busy_ms=50) as store:
        await Session(store, agent="a").append("x/y", {})


def read_all(path: Path) -> None:
    with SqliteLogReader(path) as reader:
        for session in reader.sessions():
            reader.events(session.id)


def _directory(path: Path) -> None:
    path.mkdir()


def _text(path: Path) -> None:
    path.write_text("no database, and long enough to have had a header of one hundred bytes " * 3)


def _another_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE events (x)")
    connection.close()


def _another_application(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA application_id = 7")
        connection.execute("CREATE TABLE events (x)")
    connection.close()


def _newer(path: Path) -> None:
    anyio.run(write, path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()


@pytest.mark.contract("I1")
@pytest.mark.parametrize(
    ("make", "reason", "says"),
    [
        (_directory, "not-a-log", "it is a directory; give the path of a file"),
        (_text, "not-a-log", "it is not a ptc log"),
        (_another_database, "not-a-log", "it is not a ptc log"),
        (_another_application, "not-a-log", "it is not a ptc log"),
        (_newer, "newer", f"has format {SCHEMA_VERSION + 1}.*upgrade ptc"),
    ],
)
@pytest.mark.parametrize("use", ["append", "read"])
def test_a_path_that_is_no_log_is_refused_and_left_alone(
    tmp_path: Path, make, reason: str, says: str, use: str
) -> None:
    path = tmp_path / "log.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LogUnavailableError, match=re.escape(str(path))) as caught:
        anyio.run(append_one, path) if use == "append" else read_all(path)
    assert re.search(says, caught.value.message)
    assert (caught.value.code, caught.value.reason) == ("LOG_UNAVAILABLE", reason)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no" / "log.db"
    with pytest.raises(LogUnavailableError, match=f"there is no directory {re.escape(str(path.parent))}; create it"):
        anyio.run(append_one, path)
    assert not path.parent.exists()


def test_a_missing_log_is_not_made_by_reading(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with pytest.raises(LogUnavailableError, match="there is no log at") as caught:
        read_all(path)
    assert caught.value.reason == "missing"
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_log_for_a_writer_and_is_none_for_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.touch()
    with pytest.raises(LogUnavailableError, match="not a ptc log"):
        read_all(path)
    anyio.run(append_one, path)
    read_all(path)


def test_many_open_a_new_log_at_the_same_moment(tmp_path: Path) -> None:
    """Each of them switches to WAL, finds the file empty or not, and makes the tables if nobody else did."""
    together = threading.Barrier(8)
    problems: list[str] = []

    def open_it(path: Path) -> None:
        together.wait()
        try:
            connect_writer(path, "process", wait_ms=10_000).close()
        except Exception as error:
            problems.append(str(error))

    for n in range(10):
        threads = [threading.Thread(target=open_it, args=(tmp_path / f"{n}.db",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems == []


class Interrupted:
    """A connection on which something happens just before one statement."""

    def __init__(self, connection: sqlite3.Connection, word: str, happen: Callable[[], object]) -> None:
        self._connection = connection
        self._word = word
        self._happen = happen

    def execute(self, statement: str) -> sqlite3.Cursor:
        if self._word in statement:
            self._happen()
        return self._connection.execute(statement)


@pytest.mark.parametrize("word", ["sqlite_master", "user_version", "application_id"])
def test_a_log_that_is_being_made_is_not_taken_for_a_foreign_file(tmp_path: Path, word: str) -> None:
    path = tmp_path / "log.db"
    path.touch()
    connection = sqlite3.connect(path, isolation_level=None)
    racing: Any = Interrupted(connection, word, lambda: connect_writer(path, "process", wait_ms=1_000).close())
    assert database._is_ours(racing, path)
    connection.close()


def test_the_switch_to_wal_is_tried_again_while_another_makes_it(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    tries: list[int] = []

    def refuse(times: int) -> None:
        tries.append(1)
        if len(tries) <= times:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error

    twice: Any = Interrupted(connection, "journal_mode", lambda: refuse(2))
    database._in_wal_mode(twice, tmp_path / "log.db", 60_000)
    assert len(tries) == 3
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    always: Any = Interrupted(connection, "journal_mode", lambda: refuse(1_000_000))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        database._in_wal_mode(always, tmp_path / "log.db", 20)
    connection.close()


def test_a_file_locked_by_another_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.touch()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LogUnavailableError, match="another process keeps it locked") as caught:
        anyio.run(append_one, path)
    other.close()
    assert caught.value.reason == "locked"
    assert str(path) in caught.value.message


UNPRIVILEGED = """
import os, sys, anyio
from pathlib import Path
from ptc.registry.errors import HarnessError
from ptc.runtime.log import Session, SqliteEventStore, SqliteLogReader
import anyio._backends._asyncio, encodings.idna

async def append(path):
    async with SqliteEventStore(path, busy_ms=50) as store:
        await Session(store, agent="a").append("x/y", {})

if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
path = Path(sys.argv[2])
try:
    if sys.argv[1] == "append":
        anyio.run(append, path)
    else:
        with SqliteLogReader(path) as reader:
            print(len(reader.sessions()))
except HarnessError as error:
    print(error.code, error.reason, error.message)
"""


def unprivileged(use: str, path: Path) -> str:
    """Uses a log in a process that permissions apply to, also when the tests run as root."""
    for parent in (path.parent, *path.parent.parents):
        if parent.owner() == path.parent.owner() and parent.stat().st_mode & 0o077 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)  # pytest's own folders let nobody in
    return unprivileged_in(use, path)


def unprivileged_in(use: str, path: Path) -> str:
    """The same, and the folders stay as they are."""
    command = [sys.executable, "-c", UNPRIVILEGED, use, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of another kind")
def test_missing_permissions_are_said(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "log.db"
    anyio.run(write, path)
    path.chmod(0o600 if os.geteuid() == 0 else 0o000)
    folder.chmod(0o555)
    for use in ("append", "read"):
        said = unprivileged(use, path)
        assert said.startswith("LOG_UNAVAILABLE no-permission")
        assert str(path) in said
    path.chmod(0o444)
    assert unprivileged("append", path).startswith("LOG_UNAVAILABLE no-permission")
    assert unprivileged("append", folder / "new.db").startswith("LOG_UNAVAILABLE no-permission")
    assert unprivileged("read", path) == "1"
    folder.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of another kind")
def test_a_folder_that_may_not_be_searched_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "log.db"
    anyio.run(write, path)
    unprivileged("read", path)  # opens pytest's own folders
    folder.chmod(0o600)
    try:
        for use in ("append", "read"):
            said = unprivileged_in(use, path)
            assert said.startswith("LOG_UNAVAILABLE no-permission")
            assert str(path) in said
    finally:
        folder.chmod(0o755)
