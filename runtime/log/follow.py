"""Follows a log while hosts write to it: gives the calls and jobs that start and end, in the order in which they come.

Looking whether there is anything new costs one small question to SQLite, or one to the file system while nobody has
the file open for writing.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from .background import BackgroundJob, BackgroundJobs
from .beside import CallReader
from .database import SEQ_BITS, connect_reader, explained
from .errors import LogUnavailableError, UnknownEventError
from .events import EVENT_TYPES, JobSettled, JobStarted, read_event
from .pairs import END_TYPES, START_TYPES, Pairs, session_start, type_list
from .query import FoundCall

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, TypeAlias

    _Row: TypeAlias = tuple[int, int, str]

__all__ = ["CallFollower", "CallNews", "JobNews"]

_HEADS: Final = """
SELECT s.key, (SELECT max(id) FROM events WHERE id >= s.key << 32 AND id < (s.key + 1) << 32) FROM sessions s
"""
_JOB_TYPES: Final = ("job/started", "job/settled")
_NEW: Final = f"""
SELECT time_us, id, type FROM events WHERE id > ? AND id <= ? AND time_us >= ?
AND (type IN {type_list(START_TYPES + END_TYPES + _JOB_TYPES)} OR type NOT IN {type_list(EVENT_TYPES)}) ORDER BY id
"""  # noqa: S608 - of our own words

_PATIENCE: Final = 20
"""How often a file that is no log is looked at again: another process may be making the log just now."""


@dataclass(frozen=True, slots=True)
class CallNews:
    """A call that has started or ended.

    Attributes:
        happened: which of both.
        time_us: when, in microseconds since 1970 UTC.
        found: the call as far as it is recorded by then, with its content.
    """

    happened: Literal["start", "end"]
    time_us: int
    found: FoundCall


@dataclass(frozen=True, slots=True)
class JobNews:
    """A background job that has started or ended.

    Attributes:
        happened: which of both.
        time_us: when, in microseconds since 1970 UTC.
        session: the id of its session.
        agent: the name of the agent.
        run: the number of the run that its call belongs to; `None` when the record does not tell.
        job: the job as far as it is recorded by then.
    """

    happened: Literal["start", "end"]
    time_us: int
    session: str
    agent: str
    run: int | None
    job: BackgroundJob


class CallFollower:
    """Follows one log from the end that it has now. Its methods block; it belongs to the thread that made it.

    The file need not be there yet, and may be replaced by another one; all that the other one has counts as new.

    Args:
        log: the path of the log.
        since_us: gives what has happened since this time as well, in microseconds since 1970 UTC.

    Attributes:
        path: the absolute path of the log.
        unreadable: why events could not be read, and which session has one that this version does not know; the
            caller may empty it.

    Raises:
        LogUnavailableError: the file is there, and is no log or cannot be read.
    """

    def __init__(self, log: str | os.PathLike[str], *, since_us: int | None = None) -> None:
        self.path: Final = Path(log).absolute()
        self.unreadable: list[str] = []
        self._since_us = since_us or 0
        self._connection: sqlite3.Connection | None = None
        self._pairs: Pairs | None = None  # of that connection, as are the next
        self._calls: CallReader | None = None
        self._odd: set[int] = set()
        self._file: tuple[int, int] | None = None
        self._resting: tuple[int, int] | None = None
        self._mark: object = None
        self._no_log = 0
        self._heads: dict[int, int] = {}
        if since_us is None:
            self._read(news=False)

    def close(self) -> None:
        """Closes the file; closing it twice changes nothing."""
        self._pairs = self._calls = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def waiting(self) -> bool:
        """Whether there is no log yet."""
        return self._connection is None

    def poll(self) -> list[CallNews | JobNews]:
        """Returns what has happened since the last time, in order; nothing while the log is not there.

        Raises:
            LogUnavailableError: the file is no log, or cannot be read.
        """
        return self._read(news=True)

    # Reading ---------------------------------------------------------------------------------------------------------

    def _read(self, *, news: bool) -> list[CallNews | JobNews]:
        """Takes note of the rows that are new, and returns what they tell if that is wanted."""
        with explained(self.path, "read"):
            try:
                connection = self._look()
                if connection is None:
                    return []
                heads = self._new_heads(connection)
                found = self._news(connection, heads) if news else []
            except (sqlite3.DatabaseError, UnicodeDecodeError):
                if self._resting is None or self._resting == self._state():
                    raise
                self.close()  # a writer has come while the file was read as it lay; next time
                return []
            if self._resting is not None and self._resting != self._state():
                self.close()
                return []
            self._heads |= heads
            return found

    def _new_heads(self, connection: sqlite3.Connection) -> dict[int, int]:
        """Returns the last row of each session that has new ones, by the session's key."""
        rows = connection.execute(_HEADS).fetchall()
        return {key: head for key, head in rows if head is not None and head > self._heads.get(key, -1)}

    def _news(self, connection: sqlite3.Connection, heads: dict[int, int]) -> list[CallNews | JobNews]:
        if self._pairs is None or self._calls is None:
            self._pairs = Pairs(connection, str(self.path))
            self._calls = CallReader(connection, self._pairs)
        rows: list[_Row] = []
        for key, head in heads.items():
            seen = self._heads.get(key, (key << SEQ_BITS) - 1)
            rows += connection.execute(_NEW, (seen, head, self._since_us))
        news: list[CallNews | JobNews] = []
        for time_us, row, kind in sorted(rows):
            try:
                if kind in _JOB_TYPES:
                    found = self._job(self._pairs, self._calls, row, time_us)
                elif kind in EVENT_TYPES:
                    found = self._call(self._pairs, self._calls, row, kind, time_us)
                else:
                    found = self._other(self._pairs, row)
            except (LogUnavailableError, UnknownEventError) as error:
                self.unreadable.append(error.message)
                continue
            if found is not None:
                news.append(found)
        return news

    def _call(self, pairs: Pairs, calls: CallReader, row: int, kind: str, time_us: int) -> CallNews | None:
        start = row if kind in START_TYPES else pairs.start_of(row)
        if start is None:
            return None
        call = calls.alone(start, None if start == row else row)
        if call is None or (start != row and call.settled_seq is None):
            return None
        if start != row:
            call = calls.whole(call, start, row)
        found = FoundCall(*pairs.session(start), calls.run(start), call)
        return CallNews("start" if start == row else "end", time_us, found)

    def _job(self, pairs: Pairs, calls: CallReader, row: int, time_us: int) -> JobNews | None:
        event = pairs.event(row)
        started = row if event.type == "job/started" or event.cites is None else session_start(row) | event.cites
        jobs = BackgroundJobs()
        call: int | None = None
        for one in {started: pairs.event(started), row: event}.values():
            payload = read_event(one)
            if isinstance(payload, JobStarted):
                call_id = payload.call_id
                call = None if call_id is None else pairs.start_before(started, START_TYPES, call_id)
                jobs.started(one, payload, None)
            elif isinstance(payload, JobSettled) and jobs.settled(one, payload) is not None:
                return None
        for job in jobs.by_call().get(None, ()):
            run = None if call is None else calls.run(call)
            return JobNews("start" if started == row else "end", time_us, *pairs.session(row), run, job)
        return None

    def _other(self, pairs: Pairs, row: int) -> None:
        """Looks at an event of a type that this version does not know, once for each session.

        Raises:
            UnknownEventError: it may not be passed over (contract I15).
        """
        if row >> SEQ_BITS not in self._odd:
            event = pairs.event(row)
            if event.data.get("ignorable") is not True:
                self._odd.add(row >> SEQ_BITS)
            read_event(event)

    # The file --------------------------------------------------------------------------------------------------------

    def _look(self) -> sqlite3.Connection | None:
        """Returns the connection when there may be something new, and opens one when that is needed."""
        state = self._state()
        if state is None:
            self.close()
            self._file = None
            return None
        found = os.stat(self.path)
        if self._file != (found.st_dev, found.st_ino):
            self.close()
            self._heads = {}
            self._file = found.st_dev, found.st_ino
        resting = None if self._has_writer() else state
        if self._connection is None or (self._resting is not None and resting != self._resting):
            self.close()
            if not self._open(resting):
                return None
        assert self._connection is not None
        mark = resting if self._resting is not None else self._connection.execute("PRAGMA data_version").fetchone()
        if mark == self._mark:
            return None
        self._mark = mark
        return self._connection

    def _open(self, resting: tuple[int, int] | None) -> bool:
        self._mark = None
        try:
            self._connection = connect_reader(self.path, frozen=resting is not None)
        except LogUnavailableError as error:
            self._no_log += 1
            if error.reason not in ("missing", "not-a-log") or self._no_log > _PATIENCE:
                raise
            return False
        self._no_log = 0
        self._resting = resting
        return True

    def _has_writer(self) -> bool:
        """Returns whether somebody has the file open for writing, or died with it."""
        return self.path.with_name(self.path.name + "-wal").exists()

    def _state(self) -> tuple[int, int] | None:
        """Returns what changes when somebody writes to the file itself; `None` while there is nothing in it."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return None
        return (found.st_mtime_ns, found.st_size) if found.st_size else None
