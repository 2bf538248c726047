"""The session log in one SQLite file: durable when `append` returns, and quick enough to do that on every call.

An append usually commits on the event loop's thread and waits for nobody: about as long as a short write. It goes to a
worker thread instead when the file is busy, when the record is large, or when a commit must wait for the disk
(`durability="power"`). Appends that wait for the worker are committed together by the next one, in the order in which
they came, and no later append overtakes them.
"""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import anyio
import anyio.to_thread

from ...registry.lossless import to_json_text
from .chain import EVENT_TYPE, genesis_hash
from .checkpoint import Checkpointer, checkpoint
from .database import Durability, connect_writer, explained, is_busy
from .errors import LogUnavailableError
from .repair import read_tail
from .rows import Append, Head, Job, OpenSession, Rows
from .sqlite_reader import SqliteLogReader
from .store import SessionInfo, StoredEvent
from .writers import WriterClaims

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from ...registry.values import JsonObject, JsonValue
    from .repair import RepairPlan

__all__ = ["SqliteEventStore", "wall_us"]

_INLINE_CHARS: Final = 64 * 1024
"""The longest record that is committed on the event loop's thread, in characters of JSON text."""

_MAX_CHARS: Final = 200_000_000
"""The longest record, in characters of JSON text; SQLite takes no more than 1,000,000,000 bytes."""

_PAGES: Final = 2 * 4096
"""About what a commit writes beside the record itself, in bytes."""

_LOOK_EVERY_US: Final = 50_000
"""How often the store looks whether the file is still in its place, in microseconds."""

_CLOSE_WAIT_MS: Final = 250
"""How long the last checkpoint waits for readers, in milliseconds; what it leaves is safe in the `-wal` file."""

_CLAIM_RETRY_MS: Final = 5
"""How often a session is asked for again while another store repairs it, in milliseconds."""


def wall_us() -> int:
    """Returns the wall clock's time in microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def _mono_us() -> int:
    return time.monotonic_ns() // 1000


@dataclass(slots=True)
class _File:
    """What the store holds while it is open."""

    connection: sqlite3.Connection
    rows: Rows
    identity: tuple[int, int]
    checkpointer: Checkpointer
    claims: WriterClaims
    looked_us: int = 0
    heads: dict[str, Head] = field(default_factory=dict[str, Head])
    queue: list[Job] = field(default_factory=list[Job])
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    # A limiter of our own: tools that run in threads must not be able to keep the log from getting one.
    worker: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))


class SqliteEventStore:
    """An `EventStore` in one SQLite file in WAL mode. Use it from one event loop at a time.

    Several stores, in several processes, may append to the same file.

    Args:
        path: the file; it is made, readable by its owner alone, when it is not there.
        durability: what a record survives once `append` has returned. `process`: the end of the process, however
            sudden, since the record has reached the operating system. `power`: the end of the machine too, since
            the record has reached the disk.
        busy_ms: how long an append waits for another process that writes, in milliseconds, before it fails.
        clock: the wall clock, in microseconds since 1970 UTC.
        monotonic: a clock that only goes forward, in microseconds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "process",
        busy_ms: int = 5_000,
        clock: Callable[[], int] = wall_us,
        monotonic: Callable[[], int] = _mono_us,
    ) -> None:
        if durability not in ("process", "power"):
            raise ValueError(f'durability is {durability!r}; give "process" or "power"')
        self.path: Final = Path(path).absolute()
        self._place = str(self.path)
        self.durability: Final[Durability] = durability
        self._busy_ms = busy_ms
        self._clock = clock
        self._monotonic = monotonic
        self._file: _File | None = None

    # Opening and closing ---------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Opens the file, and makes it when it is not there. Opening an open store changes nothing.

        Raises:
            LogUnavailableError: the file cannot be used; the message says why and what to do.
        """
        if self._file is not None:
            return
        with anyio.CancelScope(shield=True):
            file = await anyio.to_thread.run_sync(self._open)
            if self._file is None:
                self._file = file
            else:  # another task opened it meanwhile
                file.connection.close()

    async def close(self) -> None:
        """Waits for appends that have begun, moves the records into the database file, and closes it."""
        file = self._file
        if file is None:
            return
        with anyio.CancelScope(shield=True):
            async with file.turn:
                if self._file is file:
                    self._file = None
                    await anyio.to_thread.run_sync(self._close, file)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _open(self) -> _File:
        connection = connect_writer(self.path, self.durability, wait_ms=self._busy_ms)
        return _File(
            connection, Rows(connection, self.path), self._identity(), Checkpointer(self.path), WriterClaims(self.path)
        )

    def _close(self, file: _File) -> None:
        file.checkpointer.join()
        try:
            file.connection.execute(f"PRAGMA busy_timeout = {_CLOSE_WAIT_MS}")
            with explained(self.path, "write"):
                checkpoint(file.connection, empty=True)
        finally:
            try:
                file.connection.close()
            finally:
                with explained(self.path, "close"):
                    file.claims.close()

    def _opened(self) -> _File:
        if self._file is None:
            raise LogUnavailableError(
                f"the log {self.path} is not open; open the store before the first append, close it after the last",
                reason="closed",
            )
        return self._file

    # Writing ---------------------------------------------------------------------------------------------------------

    async def open_session(
        self, session: str, *, agent: str, labels: Mapping[str, str] | None = None, resume: bool = False
    ) -> None:
        """Makes a session durable, or takes up an old one; see `EventStore.open_session`."""
        if not EVENT_TYPE.fullmatch(session) or "/" in session:
            raise ValueError(f"session id {session!r}: give 1 to 100 printable ASCII characters without spaces or /")
        now = self._clock()
        told = {key: labels[key] for key in sorted(labels)} if labels else {}
        genesis = genesis_hash(session, agent, now, told)
        await self._write(OpenSession(session, agent, to_json_text({**told}), genesis, now, resume))
        await self._claim(session)

    async def _claim(self, session: str) -> None:
        """Has others know that this store writes the session; waits while one of them is repairing it."""
        file = self._opened()
        key = file.heads[session].key
        waited_ms = 0
        while True:
            with explained(self.path, "write"):
                if file.claims.share(key):
                    return
            if waited_ms >= self._busy_ms:
                raise LogUnavailableError(
                    f"cannot write the log {self.path}: another process keeps session {session} for itself; try again",
                    reason="locked",
                )
            await anyio.sleep(_CLAIM_RETRY_MS / 1000)
            waited_ms += _CLAIM_RETRY_MS

    async def append(self, session: str, type: str, data: JsonObject, *, cites: int | None = None) -> StoredEvent:  # noqa: A002  # the field's name
        """Adds one event to a session, and returns it when it is durable; see `EventStore.append`."""
        if not EVENT_TYPE.fullmatch(type):
            raise ValueError(f"event type {type!r}: give 1 to 100 printable ASCII characters without spaces")
        text = to_json_text(data)
        if len(text) > _MAX_CHARS:
            raise LogUnavailableError(
                f"cannot write the log {self.path}: the {type} record has {len(text):,} characters, and "
                f"{_MAX_CHARS:,} is the most; shorten what is recorded",
                reason="failed",
            )
        job = Append(session, type, data, text, cites, self._clock(), self._monotonic())
        await self._write(job)
        assert job.event is not None
        return job.event

    async def repair(self, session: str, *, agent: str, plan: RepairPlan, alone: bool = True) -> Sequence[StoredEvent]:
        """Appends what was interrupted needs; see `RepairingStore.repair`."""
        file = self._opened()
        with anyio.CancelScope(shield=True):
            async with file.turn:
                return await anyio.to_thread.run_sync(
                    self._repair, file, session, agent, plan, alone, limiter=file.worker
                )
        raise AssertionError("nobody cancels this scope")  # it could be left without a value only then

    async def _write(self, job: Job) -> None:
        """Commits one job, at once if that needs no waiting; raises what the job met."""
        file = self._opened()
        if self._write_now(file, job):
            return
        file.queue.append(job)
        with anyio.CancelScope(shield=True):
            async with file.turn:
                if not job.done:  # else the one before us took it along
                    batch, file.queue = file.queue, []
                    await anyio.to_thread.run_sync(self._commit, file, batch, limiter=file.worker)
        if job.error is not None:
            raise job.error

    def _write_now(self, file: _File, job: Job) -> bool:
        """Commits one job on this thread; returns false, having changed nothing, when that would mean to wait."""
        if (
            self.durability == "power"
            or job.size > _INLINE_CHARS
            or file.queue
            or file.turn.locked()
            or file.checkpointer.overgrown
        ):
            return False
        try:
            self._check_in_place(file)
            head = file.rows.apply(job, file.heads.get(job.session))
        except (sqlite3.Error, OSError) as error:
            # A conflict that outlives one look at the file means that another process writes this very session.
            if isinstance(error, sqlite3.IntegrityError) or (isinstance(error, sqlite3.Error) and is_busy(error)):
                return False
            with explained(self.path, "write"):
                raise
        file.heads[job.session] = head
        file.checkpointer.appended(job.size + _PAGES)
        return True

    def _commit(self, file: _File, batch: Sequence[Job]) -> None:
        """Commits several jobs as one, in a worker thread; leaves in each what it met. Never raises."""
        staged: dict[str, Head] = {}
        try:
            with explained(self.path, "write"):
                self._check_in_place(file)
                self._commit_patiently(file, batch, staged)
        except Exception as error:  # noqa: BLE001  # each job's caller raises it
            for job in batch:
                job.error = _copy(error)
        else:
            file.heads.update(staged)
            file.checkpointer.appended(sum(job.size for job in batch) + _PAGES)
        for job in batch:
            job.done = True

    def _commit_patiently(self, file: _File, batch: Sequence[Job], staged: dict[str, Head]) -> None:
        connection = file.connection
        connection.execute(f"PRAGMA busy_timeout = {self._busy_ms}")
        try:
            if file.checkpointer.overgrown:
                checkpoint(connection, empty=True)
                file.checkpointer.emptied()
            connection.execute("BEGIN IMMEDIATE")
            try:
                for job in batch:
                    try:
                        head = staged.get(job.session) or file.heads.get(job.session)
                        staged[job.session] = file.rows.apply(job, head)
                    except ValueError as error:  # this job is wrong, the others are not
                        job.error = error
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.rollback()
        finally:
            connection.execute("PRAGMA busy_timeout = 0")

    def _repair(self, file: _File, session: str, agent: str, plan: RepairPlan, alone: bool) -> Sequence[StoredEvent]:
        with explained(self.path, "write"):
            self._check_in_place(file)
            found = file.connection.execute("SELECT key FROM sessions WHERE id = ?", (session,)).fetchone()
            if found is None:
                return ()
            key: int = found[0]
            file.rows.check_owner(session, agent)
            if alone and not file.claims.alone(key):
                return ()
            try:
                events = self._append_late(file, session, key, plan)
                file.claims.share(key)
            finally:
                file.claims.release(key)
            return events

    def _append_late(self, file: _File, session: str, key: int, plan: RepairPlan) -> Sequence[StoredEvent]:
        connection = file.connection
        connection.execute(f"PRAGMA busy_timeout = {self._busy_ms}")
        try:
            while True:
                tail = read_tail(connection, str(self.path), key)
                jobs = [self._late(session, *record) for record in plan(tail)]
                if not jobs:
                    return ()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    head = file.rows.head(session)
                    if head.seq != tail.next_seq:
                        continue  # somebody has appended meanwhile: what was read is out of date
                    last = file.rows.times(head)
                    for job in jobs:
                        job.time_us, job.mono_us = last or (job.time_us, job.mono_us)
                        head = file.rows.insert(job, head)
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.rollback()
                file.heads[session] = head
                file.checkpointer.appended(sum(job.size for job in jobs) + _PAGES)
                return [job.event for job in jobs if job.event is not None]
        finally:
            connection.execute("PRAGMA busy_timeout = 0")

    def _late(self, session: str, type_: str, data: JsonObject, cites: int | None) -> Append:
        return Append(session, type_, data, to_json_text(data), cites, self._clock(), self._monotonic())

    def _identity(self) -> tuple[int, int]:
        found = os.stat(self._place)
        return found.st_dev, found.st_ino

    def _check_in_place(self, file: _File) -> None:
        """Refuses to append to a file that nobody will ever find again."""
        now = self._monotonic()
        if 0 <= now - file.looked_us < _LOOK_EVERY_US:
            return
        file.looked_us = now
        try:
            in_place = self._identity() == file.identity
        except FileNotFoundError:
            in_place = False
        if not in_place:
            file.looked_us = 0
            raise LogUnavailableError(
                f"the log {self.path} was moved or deleted while it was in use, so nothing more can be recorded; "
                "put it back, or close the store and open it again",
                reason="replaced",
            )

    # Reading ---------------------------------------------------------------------------------------------------------

    async def sessions(self) -> Sequence[SessionInfo]:
        """Returns all sessions, the one with the latest event first; see `EventStore.sessions`."""

        def read() -> Sequence[SessionInfo]:
            with SqliteLogReader(self.path) as reader:
                return reader.sessions()

        self._opened()
        return await anyio.to_thread.run_sync(read)

    async def events(self, session: str) -> Sequence[StoredEvent]:
        """Returns a session's events in order; see `EventStore.events`."""

        def read() -> Sequence[StoredEvent]:
            with SqliteLogReader(self.path) as reader:
                return reader.events(session)

        self._opened()
        return await anyio.to_thread.run_sync(read)

    async def members(
        self, session: str, types: Sequence[str], names: Sequence[str]
    ) -> Sequence[tuple[JsonValue, ...]]:
        """Returns some members of the data of a session's events; see `EventStore.members`."""

        def read() -> Sequence[tuple[JsonValue, ...]]:
            with SqliteLogReader(self.path) as reader:
                return reader.members(session, types, names)

        self._opened()
        return await anyio.to_thread.run_sync(read)

    async def first_of_other_types(self, session: str, types: Sequence[str]) -> StoredEvent | None:
        """Returns the first event that is of none of some types; see `SearchingStore.first_of_other_types`."""

        def read() -> StoredEvent | None:
            with SqliteLogReader(self.path) as reader:
                return reader.first_of_other_types(session, types)

        self._opened()
        return await anyio.to_thread.run_sync(read)


def _copy(error: Exception) -> Exception:
    """Gives each caller an error of its own, since raising one object in several tasks would mix up the tracebacks."""
    if not isinstance(error, LogUnavailableError):
        return error
    copy = LogUnavailableError(error.message, reason=error.reason)
    copy.__cause__ = error.__cause__
    return copy
