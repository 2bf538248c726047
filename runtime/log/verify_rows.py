"""Rows of a log as they are stored, whatever they hold, and what may be said of them.

Texts are read as bytearrays and blobs as bytes, so that a text that has become a blob shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...registry.lossless import from_json_text, to_json_text
from .chain import EVENT_TYPE, canonical_stored, genesis_hash, next_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Content", "EventRow", "Header", "Problem", "ProblemKind", "Wanted", "content_of", "fits", "stored_hash"]

ProblemKind: TypeAlias = Literal[
    "changed",  # an event is not what was written
    "missing",  # events, or whole sessions, are not there
    "reordered",  # an event stands at another place than it was written to
    "forged",  # an event was not written by a log, or was rewritten with a hash of its own
    "header",  # what is said of a session as a whole is not what was written
    "foreign",  # events that belong to no session
    "schema",  # the tables, triggers or settings of the file are not those of a log
    "damaged",  # SQLite cannot make sense of the file
]


@dataclass(slots=True)
class Problem:
    """One thing that is wrong with a log.

    Attributes:
        kind: what kind of thing.
        message: the whole of it as a sentence, with the session and the events that it is about.
        session: the session's id as it is stored now; `None` when it is about the file.
        seq: the first event that it is about; `None` when it is about no event.
        last: the last event that it is about; the same as `seq` when it is about one.
    """

    kind: ProblemKind
    message: str
    session: str | None = None
    seq: int | None = None
    last: int | None = None


EventRow: TypeAlias = tuple[int, Any, Any, Any, Any, Any, Any]
"""A row of `events`: id, type, time_us, mono_us, cites, hash, data. Texts are bytearrays, blobs bytes."""

_HASH_BYTES: Final = 32

_TYPE: Final = re.compile(EVENT_TYPE.pattern.encode())


@dataclass(frozen=True, slots=True)
class Content:
    """What is hashed of an event, but for its `seq`; texts are in UTF-8."""

    time_us: int
    mono_us: int
    cites: int | None
    type: bytearray
    data: bytearray

    def hash(self, previous: bytes, seq: int) -> bytes:
        """Returns the hash that the event has after `previous` at the place `seq`."""
        canonical = canonical_stored(seq, self.time_us, self.mono_us, self.cites, self.type, self.data)
        return next_hash(previous, canonical)


def content_of(row: EventRow) -> Content | None:
    """Returns what is hashed of a row, or `None` when a value is of a kind that no log writes."""
    _id, kind, time_us, mono_us, cites, _hash, data = row
    return Content(time_us, mono_us, cites, kind, data) if _is_content(kind, time_us, mono_us, cites, data) else None


def _is_content(kind: Any, time_us: Any, mono_us: Any, cites: Any, data: Any) -> bool:
    # The exact classes: text that has become a blob, or an integer a real, is not what was written.
    if not (type(kind) is type(data) is bytearray and type(time_us) is type(mono_us) is int):
        return False
    if cites is not None and type(cites) is not int:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    # A line feed in the type would move the border between type and data without a change of the hash.
    return _TYPE.fullmatch(kind) is not None


def fits(row: EventRow, previous: bytes | None, seq: int) -> bool:
    """Returns whether a row is what a log writes as the event `seq` after `previous`. All that most rows go through."""
    _id, kind, time_us, mono_us, cites, digest, data = row
    return (
        previous is not None
        and type(digest) is bytes
        and _is_content(kind, time_us, mono_us, cites, data)
        and next_hash(previous, canonical_stored(seq, time_us, mono_us, cites, kind, data)) == digest
    )


@dataclass(frozen=True, slots=True)
class Header:
    """A row of `sessions`.

    Attributes:
        key: the session's key in the file.
        name: its id, as messages have it.
        hash: the stored genesis hash; `None` when it is no hash.
        problem: what is wrong with the row, or `None`.
    """

    key: int
    name: str
    hash: bytes | None
    problem: str | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> Header:
        """Reads a row: key, id, agent, opened_us, labels, hash; texts are bytearrays."""
        key, session, agent, opened_us, labels, digest = row
        name = bytes(session).decode(errors="backslashreplace") if isinstance(session, bytes | bytearray) else "?"
        stored = stored_hash(digest)
        problem = None
        if stored is None:
            problem = "its hash is none"
        elif _genesis(session, agent, opened_us, labels) != stored:
            problem = "its hash is not that of its id, agent, time and labels"
        return cls(key, name, stored, problem)


def _genesis(session: Any, agent: Any, opened_us: Any, labels: Any) -> bytes | None:
    """Returns the hash of a session's header, or `None` when a value is of a kind that no log writes."""
    if not (type(session) is type(agent) is type(labels) is bytearray and type(opened_us) is int):
        return None
    try:
        text = labels.decode()
        told = from_json_text(text)
        if not isinstance(told, dict):
            return None
        texts = {key: value for key, value in sorted(told.items()) if isinstance(value, str)}
        if to_json_text({**texts}) != text:
            return None
        return genesis_hash(session.decode(), agent.decode(), opened_us, texts)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Wanted:
    """An event that is not in its place: what it takes to know it again wherever it stands.

    Attributes:
        problem: what was said of its place; `found` tells more.
        name: the session that it belongs to.
        key: that session's key.
        seq: its place there.
        previous: the hash of the event before it.
        stored: the hash that stands at its place now, which may be its own; `None` when nothing stands there.
    """

    problem: Problem
    name: str
    key: int
    seq: int
    previous: bytes
    stored: bytes | None

    def is_it(self, content: Content, digest: Any) -> bool:
        """Returns whether an event is the one, by its content and the hash stored beside it."""
        right = content.hash(self.previous, self.seq)
        return right == digest or right == self.stored

    def found(self, where: str) -> None:
        """Has the problem say where the event stands."""
        problem = self.problem
        if problem.kind == "missing" and problem.last != self.seq:  # others of them are missing all the same
            problem.message += f"; event {self.seq} stands as {where}"
            return
        problem.kind = "reordered"
        which = f"event {self.seq}"
        if problem.last == self.seq:
            problem.message = f"{which} of session {self.name} was moved: it stands as {where}"
        else:
            events = f"events {self.seq} to {problem.last}"
            problem.message = f"{events} of session {self.name} were moved: {which} stands as {where}"


def stored_hash(value: Any) -> bytes | None:
    """Returns a stored hash, or `None` when the value is none."""
    return value if type(value) is bytes and len(value) == _HASH_BYTES else None
