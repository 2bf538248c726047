"""The file behind the SQLite store: its tables, how it is opened for writing and for reading, what its errors mean.

Two tables and one view. `events.id` packs the session's key and the event's `seq` into one integer, so that an append
touches one tree only. People who look at the file with other tools read the view `records`.

Triggers refuse UPDATE and DELETE, and an INSERT that would replace a row: the log only grows. They stop accidents and
careless tools; whoever may write the file can drop them, and the hash chain is there to show what was done.
"""

from __future__ import annotations

import functools
import os
import sqlite3
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from .errors import LogUnavailableError, UnavailableReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = [
    "APPLICATION_ID",
    "SCHEMA_VERSION",
    "SEQ_BITS",
    "Durability",
    "connect_reader",
    "connect_writer",
    "explained",
    "is_busy",
    "schema_objects",
]

Durability: TypeAlias = Literal["process", "power"]

APPLICATION_ID: Final = 0x7074636C
"""`ptcl` in ASCII; tells the log from the databases of other programs."""

SCHEMA_VERSION: Final = 1

SEQ_BITS: Final = 32
"""How many low bits of `events.id` hold `seq`; the rest is the session's key."""

_SCHEMA: Final = """
CREATE TABLE sessions (
    key       INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE,
    agent     TEXT NOT NULL,
    opened_us INTEGER NOT NULL,
    labels    TEXT NOT NULL,
    hash      BLOB NOT NULL
);
CREATE TABLE events (
    id      INTEGER PRIMARY KEY,
    type    TEXT NOT NULL,
    time_us INTEGER NOT NULL,
    mono_us INTEGER NOT NULL,
    cites   INTEGER,
    hash    BLOB NOT NULL,
    data    TEXT NOT NULL
);
CREATE VIEW records AS
    SELECT s.id AS session, s.agent, e.id & 4294967295 AS seq, e.time_us / 1000 AS time, e.type, e.cites, e.data
    FROM events e JOIN sessions s ON s.key = e.id >> 32;
CREATE TRIGGER sessions_no_update BEFORE UPDATE ON sessions BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
CREATE TRIGGER sessions_no_delete BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
CREATE TRIGGER sessions_no_replace BEFORE INSERT ON sessions
    WHEN EXISTS (SELECT 1 FROM sessions WHERE key = NEW.key OR id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
CREATE TRIGGER events_no_replace BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
"""

_SYNCHRONOUS: Final[dict[Durability, str]] = {"process": "NORMAL", "power": "FULL"}

_NOT_A_LOG: Final = "it is not a ptc log; give the path of one, or of a file that is not there yet"

_NO_ACCESS: Final = (
    "it cannot be opened; give this user permission on the file, on the -wal and -shm files beside it, and on their "
    "directory, or read a copy of them elsewhere"
)

_EXPLANATIONS: Final[dict[int, tuple[UnavailableReason, str]]] = {
    sqlite3.SQLITE_BUSY: ("locked", "another process keeps it locked; try again, or find the process that holds it"),
    sqlite3.SQLITE_LOCKED: ("locked", "it is locked; try again, or find the process that holds it"),
    sqlite3.SQLITE_READONLY: ("no-permission", "it cannot be written; give this user write permission on it"),
    sqlite3.SQLITE_PERM: ("no-permission", "access was refused; give this user permission on it"),
    sqlite3.SQLITE_CANTOPEN: ("no-permission", _NO_ACCESS),
    sqlite3.SQLITE_FULL: ("failed", "the disk is full; make room, or give another path"),
    sqlite3.SQLITE_IOERR: ("failed", "the system reported an input/output error; check the disk"),
    sqlite3.SQLITE_CORRUPT: ("damaged", "its content is damaged; keep the file, and restore a copy of it"),
    sqlite3.SQLITE_NOTADB: ("not-a-log", _NOT_A_LOG),
}


def is_busy(error: sqlite3.Error) -> bool:
    """Returns whether an error says that another connection is writing just now."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextmanager
def explained(path: Path, verb: str) -> Iterator[None]:
    """Turns what SQLite and the system raise inside the block into `LogUnavailableError`.

    Args:
        path: the log's path, for the message.
        verb: what could not be done: `open`, `write`, `read`.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None and (isinstance(error, UnicodeDecodeError) or "decode" in str(error)):
            code = sqlite3.SQLITE_CORRUPT  # text that is no text, in a record or in SQLite's own message about a name
        reason, advice = _EXPLANATIONS.get((code or 0) & 0xFF, ("failed", f"SQLite says: {error}"))
        raise LogUnavailableError(f"cannot {verb} the log {path}: {advice}", reason=reason) from error
    except OSError as error:
        problem = error.strerror or str(error)
        reason = "no-permission" if isinstance(error, PermissionError) else "failed"
        raise LogUnavailableError(
            f"cannot {verb} the log {path}: {problem}; check the path and its permissions", reason=reason
        ) from error


def connect_writer(path: Path, durability: Durability, *, wait_ms: int) -> sqlite3.Connection:
    """Opens the file for appending, and makes it when it is not there. Blocks; call it in a worker thread.

    The connection commits each statement by itself, waits for nobody and never checkpoints. A new file can be read
    and written by its owner only, because records hold whatever tools were given.

    Args:
        path: the absolute path of the file.
        durability: what a commit survives.
        wait_ms: how long to wait for another process that is opening or writing the file, in milliseconds.

    Raises:
        LogUnavailableError: the file cannot be used.
    """
    with explained(path, "open"):
        _check_place(path)
        _create_private(path)
        connection = sqlite3.connect(path, timeout=wait_ms / 1000, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path, wait_ms)
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute("PRAGMA busy_timeout = 0")
        except BaseException:
            connection.close()
            raise
    return connection


def connect_reader(path: Path, *, frozen: bool, wait_ms: int = 5_000) -> sqlite3.Connection:
    """Opens an existing log for reading, without writing to it.

    Args:
        path: the absolute path of the file.
        frozen: whether nobody has the file open for writing, which the lack of a `-wal` file beside it tells. It is
            then read as it lies; otherwise SQLite would leave `-wal` and `-shm` files of the reading user behind,
            which the writing user may be unable to open.
        wait_ms: how long to wait for a process that holds the file exclusively, in milliseconds.

    Raises:
        LogUnavailableError: the file is not there, or is no log that this version reads.
    """
    with explained(path, "read"):
        if not path.exists():
            raise LogUnavailableError(
                f"there is no log at {path}; give the path of the file that the host writes", reason="missing"
            )
        _check_place(path)
        uri = f"{path.as_uri()}?mode=ro{'&immutable=1' if frozen else ''}"
        connection = sqlite3.connect(uri, uri=True, timeout=wait_ms / 1000, isolation_level=None)
        try:
            _require_ours(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@functools.cache
def schema_objects() -> Mapping[tuple[str, str], str | None]:
    """Returns what a log of this version is made of, by type and name, with the SQL text that SQLite keeps of each."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statement in _statements(_SCHEMA):
            connection.execute(statement)
        return {
            (kind, name): sql for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master")
        }
    finally:
        connection.close()


def _check_place(path: Path) -> None:
    """Refuses the paths for which SQLite has no clear words."""
    if path.is_dir():
        raise LogUnavailableError(
            f"cannot open the log {path}: it is a directory; give the path of a file", reason="not-a-log"
        )
    if not path.parent.is_dir():
        raise LogUnavailableError(
            f"cannot open the log {path}: there is no directory {path.parent}; create it, or give another path",
            reason="missing",
        )


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuses to append to a file that ends in the middle of a page.

    SQLite takes what is missing for zeros, and would go on behind it. Files that lack whole pages it refuses itself.
    """
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    if path.stat().st_size % page:
        raise LogUnavailableError(
            f"cannot open the log {path}: it was cut off in the middle of a page; keep it, and restore a copy of it",
            reason="damaged",
        )


def _create_private(path: Path) -> None:
    """Makes an empty file that its owner alone can read and write, unless there is a file."""
    # An existing file must not be opened and closed here: closing any descriptor of it would drop the locks that
    # another connection of this process holds.
    if path.exists():
        return
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return


def _prepare(connection: sqlite3.Connection, path: Path, wait_ms: int) -> None:
    """Brings a new file to the current schema and into WAL mode, and checks an old one."""
    if _is_ours(connection, path):
        _check_whole(connection, path)
    else:
        _in_wal_mode(connection, path, wait_ms)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not _is_ours(connection, path):  # else another process was quicker
                for statement in _statements(_SCHEMA):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise
    _in_wal_mode(connection, path, wait_ms)


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Returns whether the file is a log of this version, or false when it is empty; refuses everything else."""
    # In this order: another process may be making the log just now, in one commit between two of these.
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == APPLICATION_ID:
        if version > SCHEMA_VERSION:
            raise LogUnavailableError(
                f"cannot open the log {path}: it has format {version}, and this version of ptc knows formats up to "
                f"{SCHEMA_VERSION}; upgrade ptc",
                reason="newer",
            )
        return True
    if application or version or objects:
        raise _not_a_log(path)
    return False


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    if not _is_ours(connection, path):
        raise _not_a_log(path)


def _not_a_log(path: Path) -> LogUnavailableError:
    return LogUnavailableError(f"cannot open the log {path}: {_NOT_A_LOG}", reason="not-a-log")


def _in_wal_mode(connection: sqlite3.Connection, path: Path, wait_ms: int) -> None:
    """Switches to write-ahead logging, which lets others read while we write and makes a commit one short write."""
    deadline = time.monotonic() + wait_ms / 1000
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself here when two processes make the switch at the same time.
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
            continue
        if mode != "wal":
            raise LogUnavailableError(
                f"cannot open the log {path}: its file system has no write-ahead logging (a network drive?); "
                "give a path on a local disk",
                reason="failed",
            )
        return


def _statements(script: str) -> Iterator[str]:
    """Splits a script into statements; triggers have semicolons inside."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
