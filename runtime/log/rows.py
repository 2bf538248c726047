"""The rows of the log: how a session and an event become one, and where a session stands."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from .chain import canonical_event, next_hash
from .database import SEQ_BITS
from .store import StoredEvent

if TYPE_CHECKING:
    from pathlib import Path

    from ...registry.values import JsonObject

__all__ = ["Append", "Head", "Job", "OpenSession", "Rows"]

_INSERT_EVENT: Final = "INSERT INTO events (id, type, time_us, mono_us, cites, hash, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
_INSERT_SESSION: Final = "INSERT INTO sessions (id, agent, opened_us, labels, hash) VALUES (?, ?, ?, ?, ?)"
_LAST_EVENT: Final = "SELECT id, hash FROM events WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1"
_TIMES: Final = "SELECT time_us, mono_us FROM events WHERE id = ?"


@dataclass(slots=True)
class Head:
    """Where a session stands: its key in the file, its next `seq`, the hash so far."""

    key: int
    seq: int
    hash: bytes


@dataclass(slots=True)
class Append:
    """One append on its way into the file."""

    session: str
    type: str
    data: JsonObject
    text: str
    cites: int | None
    time_us: int
    mono_us: int
    event: StoredEvent | None = None
    error: Exception | None = None
    done: bool = False

    @property
    def size(self) -> int:
        return len(self.text)


@dataclass(slots=True)
class OpenSession:
    """One session on its way into the file."""

    session: str
    agent: str
    labels: str
    genesis: bytes
    opened_us: int
    resume: bool
    error: Exception | None = None
    done: bool = False
    size: int = 0


Job: TypeAlias = Append | OpenSession


class Rows:
    """Writes rows over one connection, in whatever transaction that is.

    Args:
        connection: a connection that may write.
        path: the file, for what is said of it.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def times(self, head: Head) -> tuple[int, int] | None:
        """Returns the two times of a session's last event; `None` when it has none."""
        return self._connection.execute(_TIMES, (head.key << SEQ_BITS | head.seq - 1,)).fetchone()

    def apply(self, job: Job, head: Head | None) -> Head:
        """Writes one job's row, and returns the new head of its session. Raises ValueError when the job is wrong."""
        if isinstance(job, OpenSession):
            return self._insert_session(job)
        try:
            return self.insert(job, head or self.head(job.session))
        except sqlite3.IntegrityError:
            # Another process has appended to this session since we looked.
            return self.insert(job, self.head(job.session))

    def insert(self, job: Append, head: Head) -> Head:
        """Writes an event behind the session's last one, and returns the new head.

        Raises:
            ValueError: it cites an event that the session does not have.
        """
        seq, cites = head.seq, job.cites
        if cites is not None and not 0 <= cites < seq:
            raise ValueError(f"{job.type} cites event {cites} of session {job.session}, which has {seq} events so far")
        canonical = canonical_event(seq, job.time_us, job.mono_us, cites, job.type, job.text)
        digest = next_hash(head.hash, canonical)
        row = (head.key << SEQ_BITS | seq, job.type, job.time_us, job.mono_us, cites, digest, job.text)
        self._connection.execute(_INSERT_EVENT, row)
        job.event = StoredEvent(job.session, seq, job.type, job.time_us, job.mono_us, job.data, cites, digest)
        return Head(head.key, seq + 1, digest)

    def _insert_session(self, job: OpenSession) -> Head:
        row = (job.session, job.agent, job.opened_us, job.labels, job.genesis)
        try:
            cursor = self._connection.execute(_INSERT_SESSION, row)
        except sqlite3.IntegrityError as error:
            if not job.resume:
                raise ValueError(f"session {job.session} is already in the log {self._path}; resume it") from error
            self.check_owner(job.session, job.agent)
            return self.head(job.session)
        assert cursor.lastrowid is not None
        return Head(cursor.lastrowid, 0, job.genesis)

    def check_owner(self, session: str, agent: str) -> None:
        """Raises ValueError when a session belongs to another agent."""
        (owner,) = self._connection.execute("SELECT agent FROM sessions WHERE id = ?", (session,)).fetchone()
        if owner != agent:
            raise ValueError(f'session {session} belongs to agent "{owner}", not to "{agent}"')

    def head(self, session: str) -> Head:
        """Returns where a session stands in the file.

        Raises:
            ValueError: there is no such session.
        """
        found = self._connection.execute("SELECT key, hash FROM sessions WHERE id = ?", (session,)).fetchone()
        if found is None:
            raise ValueError(f"there is no session {session} in the log {self._path}; open it first")
        key, genesis = found
        first = key << SEQ_BITS
        last = self._connection.execute(_LAST_EVENT, (first, first + (1 << SEQ_BITS))).fetchone()
        return Head(key, 0, genesis) if last is None else Head(key, last[0] - first + 1, last[1])
