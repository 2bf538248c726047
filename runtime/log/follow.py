"""Follows a log while hosts write to it: gives the calls that start and end, in the order in which they come in.

Looking whether there is anything new costs one small question to SQLite, or one to the file system while nobody has
the file open for writing.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from .database import SEQ_BITS, connect_reader, explained
from .errors import LogUnavailableError
from .pairs import END_TYPES, START_TYPES, Ids, Pairs, type_list
from .query import FoundCall, call_between

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, TypeAlias

    _Row: TypeAlias = tuple[int, int, str]

__all__ = ["CallFollower", "CallNews"]

_HEADS: Final = """
SELECT s.key, (SELECT max(id) FROM events WHERE id >= s.key << 32 AND id < (s.key + 1) << 32) FROM sessions s
"""
_NEW: Final = f"""
SELECT time_us, id, type FROM events WHERE id > ? AND id <= ? AND time_us >= ?
AND type IN {type_list(START_TYPES + END_TYPES)} ORDER BY id
"""  # noqa: S608 - of our own words

_PATIENCE: Final = 20
"""How often a file that is no log is looked at again: another process may be making the log just now."""


@dataclass(frozen=True, slots=True)
class CallNews:
    """A call that has started or ended.

    Attributes:
        happened: which of both.
        time_us: when, in microseconds since 1970 UTC.
        found: the call as far as it is recorded by then, as `find_calls` gives it.
    """

    happened: Literal["start", "end"]
    time_us: int
    found: FoundCall


class CallFollower:
    """Follows one log from the end that it has now. Its methods block; it belongs to the thread that made it.

    The file need not be there yet, and may be replaced by another one; all that the other one has counts as new.

    Args:
        log: the path of the log.
        since_us: gives what has happened since this time as well, in microseconds since 1970 UTC.

    Attributes:
        path: the absolute path of the log.
        unreadable: why events could not be read; the caller may empty it.

    Raises:
        LogUnavailableError: the file is there, and is no log or cannot be read.
    """

    def __init__(self, log: str | os.PathLike[str], *, since_us: int | None = None) -> None:
        self.path: Final = Path(log).absolute()
        self.unreadable: list[str] = []
        self._since_us = since_us or 0
        self._connection: sqlite3.Connection | None = None
        self._pairs: Pairs | None = None  # of that connection
        self._file: tuple[int, int] | None = None
        self._resting: tuple[int, int] | None = None
        self._mark: object = None
        self._no_log = 0
        self._heads: dict[int, int] = {}
        if since_us is None:
            self._read(news=False)

    def close(self) -> None:
        """Closes the file; closing it twice changes nothing."""
        self._pairs = None
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

    def poll(self) -> list[CallNews]:
        """Returns what has happened since the last time, in order; nothing while the log is not there.

        Raises:
            LogUnavailableError: the file is no log, or cannot be read.
        """
        return self._read(news=True)

    # Reading ---------------------------------------------------------------------------------------------------------

    def _read(self, *, news: bool) -> list[CallNews]:
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

    def _news(self, connection: sqlite3.Connection, heads: dict[int, int]) -> list[CallNews]:
        if self._pairs is None:
            self._pairs = Pairs(connection, str(self.path))
        rows: list[_Row] = []
        for key, head in heads.items():
            seen = self._heads.get(key, (key << SEQ_BITS) - 1)
            rows += connection.execute(_NEW, (seen, head, self._since_us))
        news: list[CallNews] = []
        for time_us, row, kind in sorted(rows):
            try:
                found = self._call(self._pairs, row, kind)
            except LogUnavailableError as error:
                self.unreadable.append(error.message)
                continue
            if found is not None:
                news.append(CallNews("start" if kind in START_TYPES else "end", time_us, found))
        return news

    def _call(self, pairs: Pairs, row: int, kind: str) -> FoundCall | None:
        start = row if kind in START_TYPES else pairs.start_of(row)
        if start is None:
            return None
        begun = pairs.event(start)
        call = call_between(begun, None if start == row else pairs.event(row))
        if call is None or (start != row and call.settled_seq is None):
            return None
        root = begun.data.get("rootCallId", call.call_id)
        return FoundCall(*pairs.session(start), pairs.run_of(start, Ids(str(root), call.call_id)), call)

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
