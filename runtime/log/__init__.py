"""The durable session log: what was called, by whom, with which arguments, under which decision, with which outcome.

Writing: `SqliteEventStore` keeps the events, a `Session` appends those of one agent. Reading: `SqliteLogReader` gives
the raw events, and the modules `events` and `reading` make sense of them (imported by name, since they need pydantic).
Proving: `verify_log` shows that nobody changed a log, `anchor_log` gives what to keep elsewhere for that.
"""

from __future__ import annotations

from .anchor import Anchor, AnchorError, anchor_log, read_anchors
from .errors import LogUnavailableError, UnknownEventError
from .filters import RecordFilter, RecordFilters
from .session import EventObserver, Session, new_session_id
from .sqlite import SqliteEventStore
from .sqlite_reader import SqliteLogReader
from .store import EventStore, SessionInfo, StoredEvent
from .verify import Problem, ProblemKind, Verification, verify_log

__all__ = [
    "Anchor",
    "AnchorError",
    "EventObserver",
    "EventStore",
    "LogUnavailableError",
    "Problem",
    "ProblemKind",
    "RecordFilter",
    "RecordFilters",
    "Session",
    "SessionInfo",
    "SqliteEventStore",
    "SqliteLogReader",
    "StoredEvent",
    "UnknownEventError",
    "Verification",
    "anchor_log",
    "new_session_id",
    "read_anchors",
    "verify_log",
]
