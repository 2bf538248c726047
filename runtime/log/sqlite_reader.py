"""Reads a log file without writing to it, while others append to it or after they have died."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

from ...registry.lossless import from_json_text
from .database import SEQ_BITS, connect_reader, explained
from .errors import LogUnavailableError
from .store import SessionInfo, StoredEvent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from ...registry.values import JsonObject

__all__ = ["SqliteLogReader"]

_SESSIONS: Final = """
SELECT s.id, s.agent, s.opened_us, s.labels, s.hash, last.id, last.time_us
FROM sessions s LEFT JOIN events last
    ON last.id = (SELECT max(id) FROM events WHERE id >= s.key << 32 AND id < (s.key + 1) << 32)
ORDER BY coalesce(last.time_us, s.opened_us) DESC, s.key DESC
"""

_EVENTS: Final = """
SELECT e.id, e.type, e.time_us, e.mono_us, e.cites, e.hash, e.data
FROM sessions s JOIN events e ON e.id >= s.key << 32 AND e.id < (s.key + 1) << 32
WHERE s.id = ? ORDER BY e.id
"""


class SqliteLogReader:
    """A log file, open for reading. Its methods block; it belongs to the thread that made it.

    Args:
        path: the file.

    Raises:
        LogUnavailableError: the file is not there, or is no log that this version reads.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = Path(path).absolute()
        self._seen: tuple[int, int] | None = None
        self._connection = self._connect()

    def close(self) -> None:
        """Closes the file; closing it twice changes nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def sessions(self) -> Sequence[SessionInfo]:
        """Returns all sessions, the one with the latest event first.

        Raises:
            LogUnavailableError: the file cannot be read.
        """
        return [
            SessionInfo(
                id=session,
                agent=agent,
                opened_us=opened_us,
                labels=cast("Mapping[str, str]", self._object(labels, f"the labels of session {session}")),
                events=0 if last is None else (last & ((1 << SEQ_BITS) - 1)) + 1,
                last_us=opened_us if last is None else last_us,
                hash=digest,
            )
            for session, agent, opened_us, labels, digest, last, last_us in self._rows(_SESSIONS)
        ]

    def events(self, session: str) -> Sequence[StoredEvent]:
        """Returns a session's events in order; none when there is no such session.

        Raises:
            LogUnavailableError: the file cannot be read, or a record in it is not what was written.
        """
        found: list[StoredEvent] = []
        for packed, kind, time_us, mono_us, cites, digest, text in self._rows(_EVENTS, session):
            seq = packed & ((1 << SEQ_BITS) - 1)
            data = self._object(text, f"event {seq} of session {session}")
            found.append(StoredEvent(session, seq, kind, time_us, mono_us, data, cites, digest))
        return found

    def _object(self, text: object, where: str) -> JsonObject:
        try:
            value = from_json_text(text) if isinstance(text, str) else None
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise LogUnavailableError(
                f"cannot read the log {self.path}: {where} is not the JSON that was written; "
                "somebody or something changed the file, so keep it and compare it with a copy",
                reason="damaged",
            )
        return value

    def _rows(self, query: str, *parameters: object) -> Sequence[tuple[Any, ...]]:
        """Runs one query, and once more when a writer appeared while a file without writers was read."""
        with explained(self.path, "read"):
            try:
                rows = self._connection.execute(query, parameters).fetchall()
            except sqlite3.DatabaseError:
                if self._seen is None or self._seen == self._state():
                    raise
                rows = None
            if rows is None or (self._seen is not None and self._seen != self._state()):
                self._connection.close()
                self._connection = self._connect()
                rows = self._connection.execute(query, parameters).fetchall()
            return rows

    def _connect(self) -> sqlite3.Connection:
        wal = self.path.with_name(self.path.name + "-wal")
        with explained(self.path, "read"):  # a directory that may not be searched is no answer to "is it there?"
            self._seen = None if wal.exists() or not self.path.exists() else self._state()
        return connect_reader(self.path, frozen=self._seen is not None)

    def _state(self) -> tuple[int, int]:
        """What changes when somebody writes to the database file itself: its size and time of change."""
        found = os.stat(self.path)
        return found.st_mtime_ns, found.st_size
