"""Reads single runs out of a session that is too large to be read as a whole.

A session of a million events takes a minute and gigabytes to put together. What an auditor wants of it is mostly one
run, or the latest ones. Where the runs start is found by SQL; then no more than the events of those runs are read.

One thing is left out against `read_session`: what belongs to no run is not told of, neither events that do not pair nor
questions and jobs of no call, since to know them takes all events.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .events import EVENT_TYPES, read_event
from .reading import SETTING_TYPES, Run, read_session, read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sqlite_reader import SqliteLogReader
    from .store import SessionInfo, StoredEvent

__all__ = ["LARGE", "LargeSession"]

LARGE: Final = 2_000
"""How many events a session has that is better read like this. Lists may read a score of sessions as a whole."""

_STARTS: Final = ("tool/ptc-dispatch-start", "tool/code-dispatch-start")

_ENDS: Final = ("tool/ptc-dispatch", "tool/code-dispatch")

_ASKING: Final = ("approval/asked", "job/started")
"""The types of events about single calls."""

_ANSWERED_BY: Final = {
    "tool/call": "tool/result",
    "approval/asked": "approval/decided",
    "job/started": "job/settled",
}
"""The types of events that others cite, maybe long after the run has ended."""


class LargeSession:
    """A session whose runs are read one by one.

    Args:
        reader: the log.
        session: the session.

    Attributes:
        count: how many runs it has.
        settings: the policies that were set, in order.

    Raises:
        UnknownEventError: the session has an event that this version does not know (contract I15).
        LogUnavailableError: the log cannot be read.
    """

    def __init__(self, reader: SqliteLogReader, session: SessionInfo) -> None:
        self._reader = reader
        self._session = session
        unknown = reader.first_of_other_types(session.id, EVENT_TYPES)
        if unknown is not None:
            read_event(unknown)
        self.settings = read_settings(reader.events_of(session.id, SETTING_TYPES))
        self._starts = self._run_starts()
        self.count = len(self._starts)

    def latest(self, count: int) -> Sequence[Run]:
        """Returns the last runs to start, in the order of their starts.

        Args:
            count: how many; fewer when there are fewer.
        """
        if not self._starts:
            return []
        first = max(0, self.count - count)
        events = self._reader.events(self._session.id, first=self._starts[first][0])
        return self._chosen(events, range(first, self.count))

    def run(self, number: int) -> Run | None:
        """Returns one run, or `None` when its events do not pair.

        Args:
            number: which, from 1 to `count`.
        """
        first, call_id = self._starts[number - 1]
        # An id that is used again later stands for the later call from there on.
        again = next((seq for seq, other in self._starts[number:] if other == call_id), self._session.events)
        last = self._reader.last_mention(self._session.id, call_id, first=first, last=again - 1)
        events = self._reader.events(self._session.id, first=first, last=first if last is None else last)
        return next(iter(self._chosen(self._with_later(call_id, again, events), range(number - 1, number))), None)

    def _with_later(self, call_id: str, again: int, events: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
        """Adds to the events of a run those behind them that belong to it, whether they name it or not.

        Args:
            call_id: the id of the run's call.
            again: the event from which on another call has that id.
            events: the events from the first of the run to the last that names it.
        """
        reader, session, after = self._reader, self._session.id, events[-1].seq
        ended = {str(event.data.get("subCallId")) for event in events if event.type in _ENDS}
        calls = {str(event.data.get("subCallId")) for event in events if event.type in _STARTS} - ended
        named = reader.naming(session, _ASKING, "callId", {call_id, *calls}, after=after)
        # Of what has the id from there on on which another call has it, only answers to what came before are meant.
        events = [*events, *(one for one in named if one.seq < again or one.data.get("callId") != call_id)]
        if calls:
            events += reader.naming(session, _ENDS, "subCallId", calls, after=after)
        asked = {event.seq for event in events if event.type in _ANSWERED_BY} - {event.cites for event in events}
        if asked:
            events += reader.answers(session, tuple(_ANSWERED_BY.values()), asked, after=after)
        return sorted(events, key=lambda event: event.seq)

    def _run_starts(self) -> list[tuple[int, str]]:
        """Returns where each run starts, with the id of its call: at the model's call, or at its first sub-call."""
        calls = self._reader.members(self._session.id, ["tool/call"], ["callId"])
        starts = [(seq, call_id) for seq, call_id in calls if isinstance(seq, int) and isinstance(call_id, str)]
        called: dict[str, int] = {}
        for seq, call_id in starts:
            called.setdefault(call_id, seq)
        found = [(seq, call_id) for seq, call_id in starts if call_id]
        for root, seq in self._reader.first_of_each(self._session.id, _STARTS, "rootCallId"):
            if root and called.get(root, seq) >= seq:
                found.append((seq, root))
        return sorted(found)

    def _chosen(self, events: Sequence[StoredEvent], wanted: range) -> list[Run]:
        """Puts events together, and returns the runs that start where those of these places do."""
        runs = {_start(run): run for run in read_session(self._session, events).runs}
        if not all(self._starts[place][0] in runs for place in wanted):
            # Sub-calls that do not pair have led us astray; so few logs have any that time does not matter.
            runs = {_start(run): run for run in read_session(self._session, self._reader.events(self._session.id)).runs}
        return [replace(runs[seq], number=place + 1) for place in wanted if (seq := self._starts[place][0]) in runs]


def _start(run: Run) -> int:
    return run.calls[0].seq if run.call is None else run.call.seq
