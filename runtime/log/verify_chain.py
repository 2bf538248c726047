"""Walks the hash chain of one session, event by event, and says what is wrong with it as far as the bytes tell.

The chain is not keyed, so bytes alone cannot tell a changed event from an unchanged one after a rewritten one: when
the stored hash of an event is not that of its content and of the hash before it, either side may be at fault. The
likelier one is named, and the message says what else it may be. An anchor settles it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .database import SEQ_BITS
from .verify_rows import Content, EventRow, Header, Problem, ProblemKind, Wanted, content_of, fits, stored_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .anchor import Anchor

__all__ = ["ChainWalk", "events_are"]

_REACH: Final = 16
"""How many events may have been put in or taken out at one place for their number to be found."""


@dataclass(frozen=True, slots=True)
class _Place:
    """An event as it stands in the session: its number there, and its stored hash, `None` when that is no hash."""

    seq: int
    content: Content | None
    hash: bytes | None

    def follows(self, previous: bytes, shift: int) -> bool:
        """Returns whether it is chained to `previous`, having been written as the event `seq - shift`."""
        return self.content is not None and self.content.hash(previous, self.seq - shift) == self.hash


def _place(row: EventRow, first: int) -> _Place:
    return _Place(row[0] - first, content_of(row), stored_hash(row[5]))


class ChainWalk:
    """Walks one session.

    Args:
        header: the session's header.
        anchors: its anchors, by `seq`; one for the header has the `seq` -1.
        report: is told of each problem, with what it takes to look for the event elsewhere, if that makes sense.

    Attributes:
        events: how many events there are.
        place: where the next event should stand.
        anchored: the last event that an anchor has been found to vouch for; -1 for the header, `None` for none.
    """

    def __init__(
        self, header: Header, anchors: Sequence[Anchor], report: Callable[[Problem, Wanted | None], None]
    ) -> None:
        self._header = header
        self._anchors = sorted(anchors, key=lambda anchor: anchor.seq)
        self._next_anchor = 0
        self._report = report
        self._previous: bytes | None = header.hash
        self._before: deque[bytes] = deque(maxlen=_REACH)
        self.place = 0
        self._shift = 0  # by how much the events are numbered higher than they were written
        self._bad_since_anchor = False
        self._last_problem: Problem | None = None
        self._rewritten = False
        self.events = 0
        self.anchored: int | None = None

    def walk(self, rows: Iterator[EventRow]) -> None:
        """Walks all rows of the session, in the order of their ids."""
        if self._header.problem:
            name = self._header.name
            self._problem("header", f"the header of session {name} was changed: {self._header.problem}")
        self._look_at_anchors(-1, self._previous)
        first = self._header.key << SEQ_BITS
        row = next(rows, None)
        while row is not None:
            self.events += 1
            seq, digest = row[0] - first, row[5]
            if seq != self.place and not self._gap(seq, row):
                row = next(rows, None)
                continue
            previous = self._previous
            following = next(rows, None)
            if not fits(row, previous, seq - self._shift):
                digest = self._misfit(_place(row, first), None if following is None else _place(following, first))
            self.place = seq + 1
            if previous is not None:
                self._before.append(previous)
            self._previous = digest
            if self._next_anchor < len(self._anchors):
                self._look_at_anchors(seq, digest)
            row = following
        self._end()

    # What does not fit --------------------------------------------------------------------------------------------

    def _problem(self, kind: ProblemKind, message: str, seq: int | None = None, last: int | None = None) -> Problem:
        problem = Problem(kind, message, self._header.name, seq, seq if last is None else last)
        self._bad_since_anchor, self._last_problem = True, problem
        self._report(problem, None)
        return problem

    def _lost(self, kind: ProblemKind, message: str, seq: int, last: int, stored: bytes | None) -> None:
        """Reports that the event that belongs to `seq` is not there, so that it is looked for elsewhere."""
        problem = Problem(kind, message, self._header.name, seq, last)
        self._bad_since_anchor, self._last_problem = True, problem
        wanted = None
        if self._previous is not None:
            wanted = Wanted(problem, self._header.name, self._header.key, seq, self._previous, stored)
        self._report(problem, wanted)

    def _gap(self, seq: int, row: EventRow) -> bool:
        """Events are missing before this one, or it and all that follow were numbered higher.

        Returns:
            whether to go on with the event.
        """
        name, place = self._header.name, self.place
        if seq < place:  # a query in order gives it nevertheless
            self._problem("damaged", f"event {seq} of session {name} stands after event {place - 1}", seq)
            return False
        content, previous = content_of(row), self._previous
        if content and previous and content.hash(previous, place - self._shift) == row[5]:
            self._problem("reordered", f"event {place} of session {name} was moved: it is numbered {seq}", place)
            self._shift += seq - place
            return True
        self._lost("missing", f"{events_are(place, seq - 1, name)} missing", place, seq - 1, None)
        self._previous = None
        return True

    def _misfit(self, here: _Place, after: _Place | None) -> bytes | None:
        """Says what is wrong with an event, and returns the hash that the next one is to follow, if that is known."""
        what, seq, content, stored = (
            f"event {here.seq} of session {self._header.name}",
            here.seq,
            here.content,
            here.hash,
        )
        if content is None:
            why = "it holds a value of a kind that no log writes"
            self._lost("changed", f"{what} was changed: {why}", seq, seq, stored)
            return stored
        previous = self._previous
        if previous is None:
            return self._unknown_before(here, after)
        if self._put_in(here, content):
            return stored
        own = content.hash(previous, seq - self._shift)
        why = f"its hash is not that of its content{_or_before(seq)}"
        if after is None or after.seq != seq + 1:
            end = "It is the last one, so nothing tells more" if after is None else "The next one is missing"
            self._lost("changed", f"{what} was changed or forged: {why}. {end}", seq, seq, stored)
            return stored
        if after.follows(own, self._shift):
            self._problem(
                "changed", f"{what} was changed: its hash is not the one that was written; its content is", seq
            )
            return own
        if stored is not None and after.follows(stored, self._shift):
            self._lost("changed", f"{what} was changed: {why}", seq, seq, stored)
            return stored
        if stored is not None and self._taken_out(seq, after, stored):
            return stored
        if after.content is not None and after.content.hash(previous, seq - self._shift) == after.hash:
            return self._before_its_next(what, here, content, after)
        self._say_forged(here)
        return None

    def _unknown_before(self, here: _Place, after: _Place | None) -> bytes | None:
        """Finds out whether the chain goes on from an event before which it is broken."""
        stored = here.hash
        if stored is not None and after is None:
            return stored
        if stored is not None and after is not None:
            for count in range(_REACH + 1):
                for shift in (count, -count):
                    if after.follows(stored, self._shift + shift):
                        self._shift += shift
                        return stored
        self._say_forged(here)
        return None

    def _say_forged(self, here: _Place) -> None:
        """Reports an event that is chained neither to the one before it nor to the one after it; or one more."""
        problem, name, seq = self._last_problem, self._header.name, here.seq
        if problem is not None and problem.last is not None and problem.last >= seq:
            return  # it has been said
        why = "hash is not that of its content, and the next event does not follow from it"
        if problem is not None and problem.kind == "forged" and problem.seq is not None and problem.last == seq - 1:
            problem.last = seq
            which = f"events {problem.seq} to {seq} of session {name} were"
            problem.message = f"{which} forged or rewritten: no hash fits its content and the hash before it"
            return
        self._lost("forged", f"event {seq} of session {name} was forged or rewritten: its {why}", seq, seq, here.hash)

    def _before_its_next(self, what: str, here: _Place, content: Content, after: _Place) -> bytes | None:
        """An event stands before the one that belongs to its place: it was put in there, or the two were swapped."""
        if after.hash is not None and content.hash(after.hash, after.seq - self._shift) == here.hash:
            name = self._header.name
            text = f"events {here.seq} and {after.seq} of session {name} were swapped"
            self._problem("reordered", text, here.seq, after.seq)
            return None
        self._problem("forged", f"{what} was forged: it was put in before what is now event {after.seq}", here.seq)
        self._shift += 1
        return self._previous

    def _put_in(self, here: _Place, content: Content) -> bool:
        """Finds out whether events were put in before this one, and the rest numbered anew."""
        seq, before = here.seq, self._before
        for count in range(1, len(before) + 1):
            if content.hash(before[-count], seq - self._shift - count) == here.hash:
                which = events_are(seq - count, seq - 1, self._header.name)
                one = "it was" if count == 1 else "they were"
                text = f"{which} forged: {one} put in before what is now event {seq}"
                self._problem("forged", text, seq - count, seq - 1)
                self._shift += count
                return True
        return False

    def _taken_out(self, seq: int, after: _Place, stored: bytes) -> bool:
        """Finds out whether events were taken out before this one, and the rest numbered anew."""
        for count in range(1, _REACH + 1):
            if after.follows(stored, self._shift - count):
                last = seq + count - 1
                text = f"{events_are(seq, last, self._header.name)} missing: those after were numbered anew"
                self._problem("missing", text, seq, last)
                self._shift -= count
                return True
        return False

    # Anchors ------------------------------------------------------------------------------------------------------

    def _look_at_anchors(self, seq: int, digest: bytes | None) -> None:
        while self._next_anchor < len(self._anchors) and self._anchors[self._next_anchor].seq <= seq:
            anchor = self._anchors[self._next_anchor]
            self._next_anchor += 1
            if anchor.seq < seq:  # it is missing, which has been said
                continue
            if digest is not None and digest.hex() == anchor.hash:
                self.anchored = seq
            elif not (self._bad_since_anchor or self._rewritten):
                self._rewritten = True
                self._say_rewritten(seq)
            self._bad_since_anchor = False

    def _say_rewritten(self, seq: int) -> None:
        name = self._header.name
        if seq < 0:
            self._problem("header", f"the header of session {name} was rewritten: its hash is not the anchored one")
            return
        first = 0 if self.anchored is None else self.anchored + 1
        which = f"event {seq}" if first == seq else f"one of the events {first} to {seq}"
        header = ", or its header," if self.anchored is None else ""
        text = f"{which} of session {name}{header} was forged or rewritten, and the chain computed anew from it on"
        self._problem("forged", f"{text}: the hash of event {seq} is not the anchored one", first, seq)

    def _end(self) -> None:
        """Says what an anchor tells of events that are gone from the end."""
        beyond = [anchor.seq for anchor in self._anchors[self._next_anchor :] if anchor.seq >= self.place]
        if beyond:
            last = max(beyond)
            text = f"{events_are(self.place, last, self._header.name)} missing: an anchor tells of them"
            unproven = 0 if self.anchored is None else self.anchored + 1
            if unproven < self.place:
                before = f"event {unproven}" if unproven == self.place - 1 else f"events {unproven} to {self.place - 1}"
                text += f"; no anchor vouches for {before}, which may have been rewritten"
            self._lost("missing", text, self.place, last, None)


def events_are(first: int, last: int, session: str) -> str:
    """Returns the beginning of a sentence about some events."""
    return (
        f"event {first} of session {session} is"
        if first == last
        else f"events {first} to {last} of session {session} are"
    )


def _or_before(seq: int) -> str:
    before = f"event {seq - 1}" if seq else "the session's header"
    return f" (or {before} was rewritten with a new hash)"
