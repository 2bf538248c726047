"""Proves a log whole, or names the first record of each session that was changed, dropped, reordered or forged.

What the log alone proves: nobody changed, dropped, moved or put in an event without computing the chain anew. What
only an anchor proves (see `anchor.py`): that nobody did compute it anew, and that nothing is gone from the end of a
session or from the end of the log, since a chain that was cut is still a chain.

A log is read event by event, in one transaction: memory does not grow with it, and a host may go on writing.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .database import SEQ_BITS, explained
from .errors import LogUnavailableError
from .snapshot import read_snapshot
from .verify_chain import ChainWalk, events_are
from .verify_file import DAMAGED, look_at_pages, look_at_schema, look_at_size
from .verify_rows import Header, Problem, ProblemKind, Wanted, content_of
from .verify_wal import look_at_wal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .anchor import Anchor

__all__ = ["Problem", "ProblemKind", "Verification", "verify_connection", "verify_log"]

MOST_PROBLEMS: Final = 100
"""How many problems are told in full; of each session no more than a tenth of them."""

_SOUGHT: Final = 4
"""How many events are looked for elsewhere; each costs one hash for every event of the log."""

_SQLITE_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; its message about a damaged name may be no text."""

_SESSIONS: Final = "SELECT key, id, agent, opened_us, labels, hash FROM sessions NOT INDEXED ORDER BY key"
_EVENTS: Final = "SELECT id, type, time_us, mono_us, cites, hash, data FROM events"
_RANGE: Final = " WHERE id >= ? AND id < ? ORDER BY id"
_ONE: Final = "SELECT key, id, agent, opened_us, labels, hash FROM sessions WHERE key = ?"
_STRAY: Final = """
SELECT events.id >> ?1, count(*) FROM events
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.key = events.id >> ?1)
GROUP BY 1 ORDER BY 1 LIMIT ?2
"""


@dataclass(slots=True)
class Verification:
    """What came of verifying a log.

    Attributes:
        sessions: how many sessions were read.
        events: how many events they have.
        anchors: how many anchors were given for them.
        anchored: how many of the events an anchor vouches for; the others follow the last anchor of their session, or
            stand in a session that has none.
        problems: what is wrong; those of a session are in the order of its events.
        more: how many further problems there are that are not told.
        notes: what an auditor should know beside, for example of foreign tables in the file.
    """

    sessions: int = 0
    events: int = 0
    anchors: int = 0
    anchored: int = 0
    problems: list[Problem] = field(default_factory=list[Problem])
    more: int = 0
    notes: list[str] = field(default_factory=list[str])

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong, as far as the log and the anchors tell."""
        return not self.problems


def verify_log(
    path: str | os.PathLike[str],
    *,
    session: str | None = None,
    anchors: Iterable[Anchor] = (),
    final: bool = False,
) -> Verification:
    """Verifies a log, or one session of it. It blocks; nothing is written, and a host may be writing to the log.

    Args:
        path: the log file.
        session: the id of the only session to verify, with the anchors that are its own; all of them when `None`.
            Only then the pages of the file are looked through as a whole.
        anchors: what `anchor_log` returned at earlier times, or `read_anchors` read, in any order.
        final: whether nothing was to be written after the last anchor of each session; then whatever follows it, and a
            session without an anchor, is forged. Otherwise that is what a host has gone on to write, or what somebody
            has written who knows how: nothing tells the two apart.

    Raises:
        LogUnavailableError: the file is not there, or is no log that this version reads. A damaged file does not
            raise; it is a problem like others.
    """
    given = [anchor for anchor in anchors if session is None or anchor.session == session]
    place = Path(path).absolute()

    def read(connection: sqlite3.Connection) -> Verification:
        found = verify_connection(connection, session=session, anchors=given, final=final)
        if session is None and not place.with_name(place.name + "-wal").exists():
            try:
                found.problems += look_at_size(connection, place.stat().st_size)
            except _SQLITE_ERRORS:  # pages that cannot be counted have been told of
                found.problems += [] if found.problems else [Problem("damaged", DAMAGED)]
        found.problems += lost
        found.notes += torn
        return found

    # Before a transaction holds off whoever writes the log.
    with explained(place, "read"):
        lost, torn = look_at_wal(place)
    try:
        return read_snapshot(place, read)
    except LogUnavailableError as error:
        if error.reason == "not-a-log" and lost:  # all that makes it a log stood there
            return Verification(problems=lost)
        if error.reason != "damaged":
            raise
        return Verification(problems=[Problem("damaged", f"{DAMAGED}. It cannot be opened")])


def verify_connection(
    connection: sqlite3.Connection,
    *,
    session: str | None = None,
    anchors: Sequence[Anchor] = (),
    final: bool = False,
) -> Verification:
    """Verifies the log that a connection reads, as `verify_log` does. The caller begins and ends the transaction.

    Args:
        connection: an open connection that has nothing else to do; its `text_factory` is changed.
        session: the id of the only session to verify.
        anchors: the anchors, those of other sessions left out.
        final: whether nothing was to be written after them.
    """
    # Bytes as they are stored, with texts and blobs told apart.
    connection.text_factory = bytearray
    return _Verifier(connection, session, anchors, final).run()


class _Verifier:
    """Verifies one log once."""

    def __init__(
        self, connection: sqlite3.Connection, session: str | None, anchors: Sequence[Anchor], final: bool
    ) -> None:
        self._connection = connection
        self._session = session
        self._final = final
        self._anchors: dict[str, list[Anchor]] = {}
        for anchor in anchors:
            self._anchors.setdefault(anchor.session, []).append(anchor)
        self._found = Verification(anchors=len(anchors))
        self._of_session = 0
        self._wanted: list[Wanted] = []

    def run(self) -> Verification:
        found = self._found
        try:
            problems, notes, readable = look_at_schema(self._connection)
            found.problems += problems
            found.notes += notes
            if readable:
                self._walk()
                self._look_elsewhere()
        except _SQLITE_ERRORS as error:
            self._add(Problem("damaged", f"{DAMAGED}. It cannot be read through: {error}"))
        if self._session is None:
            try:
                found.problems += look_at_pages(self._connection)
            except _SQLITE_ERRORS as error:
                self._add(Problem("damaged", f"{DAMAGED}. SQLite cannot check its pages: {error}"))
        return found

    # Sessions -------------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        found, expected = self._found, 1
        for header in self._headers():
            # Keys are given out one after the other and nothing is removed, so that a missing one tells of a session.
            if self._session is None:
                if header.key != expected:
                    self._no_session(expected, header.key - 1)
                expected = max(expected, header.key + 1)
            self._walk_session(header)
        if self._session is None:
            self._look_for_strays()
        for session, anchors in self._anchors.items():
            self._add(Problem("missing", f"session {session} is missing: {_tells(anchors)}", session))
        if self._session is not None and not found.sessions and self._session not in self._anchors:
            text = f"session {self._session} is missing: the log has no session of that id"
            self._add(Problem("missing", text, self._session))

    def _headers(self) -> Iterator[Header]:
        for row in self._connection.execute(_SESSIONS):
            header = Header.of(row)
            if self._session is None or header.name == self._session:
                yield header

    def _walk_session(self, header: Header) -> None:
        found = self._found
        found.sessions += 1
        self._of_session = 0
        anchors = self._anchors.pop(header.name, [])
        walk = ChainWalk(header, anchors, self._take)
        first = header.key << SEQ_BITS
        try:
            walk.walk(self._connection.execute(_EVENTS + _RANGE, (first, first + (1 << SEQ_BITS))))
        except _SQLITE_ERRORS as error:
            text = f"session {header.name} cannot be read beyond its first {walk.events} events: {error}"
            self._add(Problem("damaged", text, header.name, walk.events, walk.events))
        if self._final:
            self._look_at_the_end(header, anchors, walk)
        found.events += walk.events
        if walk.anchored is not None:
            found.anchored += walk.anchored + 1

    def _look_at_the_end(self, header: Header, anchors: Sequence[Anchor], walk: ChainWalk) -> None:
        """Finds what was added after the last anchors, given that nothing was to be added."""
        last = max((anchor.seq for anchor in anchors), default=None)
        if last is None:
            text = f"session {header.name} is forged: there is no anchor of it, and all that was written has one"
            self._add(Problem("forged", text, header.name))
        elif walk.place > last + 1:
            which = events_are(last + 1, walk.place - 1, header.name)
            text = f"{which} forged: after the last anchor, and nothing was to be written after it"
            self._add(Problem("forged", text, header.name, last + 1, walk.place - 1))

    def _take(self, problem: Problem, wanted: Wanted | None) -> None:
        self._of_session += 1
        if self._of_session > MOST_PROBLEMS // 10:
            self._found.more += 1
        elif self._add(problem) and wanted is not None and len(self._wanted) < _SOUGHT:
            self._wanted.append(wanted)

    def _add(self, problem: Problem) -> bool:
        """Takes a problem down, and returns whether it will be told."""
        if len(self._found.problems) >= MOST_PROBLEMS:
            self._found.more += 1
            return False
        self._found.problems.append(problem)
        return True

    def _no_session(self, first: int, last: int) -> None:
        if last < first:  # a key below 1, which a log does not give out
            text = f"a session has the number {last + 1}, and sessions are numbered from 1"
        elif first == last:
            text = f"session number {first} of the log is missing"
        else:
            text = f"sessions number {first} to {last} of the log are missing"
        self._add(Problem("missing", text))

    def _look_for_strays(self) -> None:
        found = self._found
        (count,) = self._connection.execute("SELECT count(*) FROM events").fetchone()
        if count == found.events:
            return
        strays = self._connection.execute(_STRAY, (SEQ_BITS, MOST_PROBLEMS)).fetchall()
        for key, events in strays:
            which = "1 event belongs" if events == 1 else f"{events} events belong"
            text = f"{which} to no session, standing under session number {key}, which is not there"
            self._add(Problem("foreign", text))
        if count != found.events + sum(events for _key, events in strays) and len(strays) < MOST_PROBLEMS:
            text = f"{DAMAGED}. It has {count} events, and {found.events} were found in its sessions"
            self._add(Problem("damaged", text))

    # Events that are not in their place -----------------------------------------------------------------------------

    def _look_elsewhere(self) -> None:
        """Looks through the whole log for the first events that are not in their places."""
        sought = self._wanted
        if not sought:
            return
        for row in self._connection.execute(_EVENTS):
            content = content_of(row)
            if content is None:
                continue
            for wanted in tuple(sought):
                if row[0] != wanted.key << SEQ_BITS | wanted.seq and wanted.is_it(content, row[5]):
                    wanted.found(self._where(row[0], wanted))
                    sought.remove(wanted)
            if not sought:
                return

    def _where(self, packed: int, wanted: Wanted) -> str:
        key, seq = packed >> SEQ_BITS, packed & ((1 << SEQ_BITS) - 1)
        if key == wanted.key:
            return f"event {seq}"
        row: Sequence[Any] | None = self._connection.execute(_ONE, (key,)).fetchone()
        return f"event {seq} of " + ("no session" if row is None else f"session {Header.of(row).name}")


def _tells(anchors: Sequence[Anchor]) -> str:
    last = max(anchors, key=lambda anchor: anchor.seq)
    return "an anchor tells of it" if last.seq < 0 else f"an anchor tells of its events 0 to {last.seq}"
