"""The durable session log: what was called, by whom, with which arguments, under which decision, with which outcome.

Writing: `SqliteEventStore` keeps the events, a `Session` appends those of one agent. Reading: `SqliteLogReader` gives
the raw events, and the modules `events` and `reading` make sense of them (imported by name, since they need pydantic).
"""

from __future__ import annotations

from .errors import LogUnavailableError, UnknownEventError
from .session import EventObserver, Session, new_session_id
from .sqlite import SqliteEventStore
from .sqlite_reader import SqliteLogReader
from .store import EventStore, SessionInfo, StoredEvent

__all__ = [
    "EventObserver",
    "EventStore",
    "LogUnavailableError",
    "Session",
    "SessionInfo",
    "SqliteEventStore",
    "SqliteLogReader",
    "StoredEvent",
    "UnknownEventError",
    "new_session_id",
]
