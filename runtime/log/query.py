"""Finds calls in a log by what is known of them, the latest first, without reading the log into memory.

SQL narrows the events down by type, time and text before anything is parsed; what is left is paired, and judged by
the same reading that `read_session` gives. So the memory it takes is that of the calls that it returns.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...registry.errors import HarnessError
from ...registry.lossless import to_json_text
from .beside import CallReader
from .call_filter import FAILED_OUTCOMES, CallFilter, DecisionOutcome
from .content_kinds import marks_of
from .database import SEQ_BITS
from .errors import LogUnavailableError, UnknownEventError
from .events import EVENT_TYPES, read_event
from .pairs import END_TYPES, SEQ_MASK, START_TYPES, Pairs, quoted, session_end, type_list
from .snapshot import read_snapshot

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from .calls import Call

__all__ = ["CallFilter", "DecisionOutcome", "Findings", "FoundCall", "UnknownRunError", "find_calls"]

_CHUNK: Final = 64
"""How many calls are paired at once."""


class UnknownRunError(HarnessError):
    """The session has no run of this number."""

    default_code = "NO_SUCH_RUN"


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call that was found.

    Attributes:
        session: the id of its session.
        agent: the name of the agent.
        run: the number of the run in the session that it belongs to; `None` when the record does not tell.
        call: the call. It carries neither content nor meta, which are read with its run.
    """

    session: str
    agent: str
    run: int | None
    call: Call


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search came to.

    Attributes:
        calls: what was found, the call that started last first.
        more: whether older calls fit as well.
        unreadable: why an event that might have fitted could not be read, by `SESSION event SEQ`. The first event of
            a session that this version does not know is there too: what is told of that session may not be all.
    """

    calls: Sequence[FoundCall]
    more: bool
    unreadable: dict[str, str]


def find_calls(log: str | os.PathLike[str], wanted: CallFilter, *, limit: int = 50) -> Findings:
    """Finds the latest calls of a log that fit, both those of models and those of programs. Blocks.

    A call is found by the event that starts it and the first later one that ends it. Events that pair with nothing are
    passed over; `read_session` lists them.

    Args:
        log: the path of the log.
        wanted: what the calls must be.
        limit: how many calls to return at most.

    Raises:
        LogUnavailableError: the log is not there or cannot be read.
        UnknownRunError: `wanted` names a run that its session does not have.
    """
    path = Path(log).absolute()

    def read(connection: sqlite3.Connection) -> Findings:
        return _Search(connection, path, wanted).latest(limit)

    return read_snapshot(path, read)


class _Search:
    """One search over one connection."""

    def __init__(self, connection: sqlite3.Connection, path: Path, wanted: CallFilter) -> None:
        self._connection = connection
        self._wanted = wanted
        self._pairs = Pairs(connection, str(path))
        self._calls = CallReader(connection, self._pairs)
        self._unreadable: dict[str, str] = {}
        self._first, self._last = 0, (1 << 63) - 1
        self._nothing = False
        self._root: str | None = None

    def latest(self, limit: int) -> Findings:
        self._narrow()
        if self._nothing:
            return Findings([], False, {})
        self._tell_of_unknown_events()
        candidates = self._candidates()
        if candidates is not None:
            found = self._of_starts(sorted(candidates, key=lambda row: (self._time(row), row), reverse=True))
        elif self._wanted.asks_for_the_end:
            found = self._by_end()
        elif self._wanted.outcome == "outcome unknown":
            found = self._without_end()
        else:
            found = self._by_start()
        calls = list(islice(found, limit + 1))
        return Findings(calls[:limit], len(calls) > limit, self._unreadable)

    def _narrow(self) -> None:
        """Works out between which rows the calls are."""
        if self._wanted.session is None:
            return
        row = self._connection.execute("SELECT key FROM sessions WHERE id = ?", (self._wanted.session,)).fetchone()
        if row is None:
            self._nothing = True
            return
        self._first = row[0] << SEQ_BITS
        self._last = session_end(self._first)
        if self._wanted.run is not None:
            run = self._pairs.run(row[0], self._wanted.run)
            if run is None:
                raise UnknownRunError(f"session {self._wanted.session} has no run {self._wanted.run}")
            self._first, self._root = run

    def _tell_of_unknown_events(self) -> None:
        """Says of which sessions this version does not know all events (contract I15)."""
        of_agent = "" if self._wanted.agent is None else "AND id >> ?3 IN (SELECT value FROM json_each(?4)) "
        parameters = [self._first, self._last, SEQ_BITS]
        if self._wanted.agent is not None:
            parameters.append(self._sessions_of(self._wanted.agent))
        rows = self._connection.execute(
            f"SELECT min(id) FROM events WHERE id >= ?1 AND id < ?2 {of_agent}AND type NOT IN {type_list(EVENT_TYPES)} "  # noqa: S608 - of our own words
            "AND CASE WHEN json_valid(data) THEN json_type(data, '$.ignorable') IS NOT 'true' ELSE 1 END "
            "GROUP BY id >> ?3",
            parameters,
        ).fetchall()
        for (row,) in rows:
            try:
                read_event(self._pairs.event(row))
            except (UnknownEventError, LogUnavailableError) as error:
                self._unreadable[f"{self._pairs.session(row)[0]} event {row & SEQ_MASK}"] = error.message

    def _time(self, row: int) -> int:
        return self._connection.execute("SELECT time_us FROM events WHERE id = ?", (row,)).fetchone()[0]

    # Candidates ------------------------------------------------------------------------------------------------------

    def _candidates(self) -> set[int] | None:
        """Returns the starts of all calls that may fit, where what is asked for is rare; `None` where it is not."""
        wanted = self._wanted
        found: list[set[int]] = []
        if wanted.approval is not None or wanted.answered is not None:
            found.append(self._named_by("approval/asked"))
        if wanted.job is not None:
            found.append(self._named_by("job/started"))
        if wanted.content is not None:
            found.append(self._with_content(wanted.content))
        return set.intersection(*found) if found else None

    def _named_by(self, kind: str) -> set[int]:
        """Returns the starts of the calls that the events of a type are about."""
        rows = self._connection.execute(
            "SELECT id FROM events WHERE id >= ? AND id < ? AND type = ?", (self._first, self._last, kind)
        )
        starts: set[int] = set()
        for (row,) in rows:
            try:
                call_id = self._pairs.event(row).data.get("callId")
            except LogUnavailableError as error:
                self._unreadable[f"{self._pairs.session(row)[0]} event {row & SEQ_MASK}"] = error.message
                continue
            start = self._pairs.start_before(row, START_TYPES, call_id) if isinstance(call_id, str) else None
            if start is not None:
                starts.add(start)
        return starts

    def _with_content(self, kind: str) -> set[int]:
        """Returns the starts of the calls whose events may have a kind of content."""
        marks = marks_of(kind)
        types = END_TYPES + START_TYPES if marks.starts else END_TYPES
        rows = self._connection.execute(
            f"SELECT id, type FROM events WHERE id >= ? AND id < ? AND type IN {type_list(types)} AND instr(data, ?)",  # noqa: S608 - likewise
            (self._first, self._last, marks.text),
        )
        starts = (row if of in START_TYPES else self._pairs.start_of(row) for row, of in rows)
        return {start for start in starts if start is not None}

    def _by_start(self) -> Iterator[FoundCall]:
        """Goes through the starts, the latest first, and looks for their ends."""
        where, parameters = self._where(START_TYPES)
        rows = self._connection.execute(
            f"SELECT id FROM events WHERE {where} ORDER BY time_us DESC, id DESC",  # noqa: S608 - of our own words
            parameters,
        )
        yield from self._of_starts(row for (row,) in rows if self._may_fit(row))

    def _of_starts(self, starts: Iterable[int]) -> Iterator[FoundCall]:
        """Looks for the ends of calls, and yields those that fit."""
        candidates = iter(starts)
        while chunk := list(islice(candidates, _CHUNK)):
            ends = self._pairs.ends_of(chunk)
            for start in chunk:
                found = self._judged(start, ends.get(start))
                if found is not None:
                    yield found

    def _without_end(self) -> Iterator[FoundCall]:
        """Goes through all events once for the starts that have no end, or only one that repair gave them."""
        open_calls = [(time_us, row, None) for row, time_us in self._pairs.endless(self._first, self._last)]
        for _time_us, start, end in sorted([*open_calls, *self._repaired()], key=lambda one: one[:2], reverse=True):
            found = self._judged(start, end)
            if found is not None:
                yield found

    def _repaired(self) -> Iterator[tuple[int, int, int]]:
        """Yields the time, the start and the end of each call that was answered after its process had ended."""
        rows = self._connection.execute(
            "SELECT called.time_us, called.id, ended.id FROM events ended "
            "JOIN events called ON called.id = (ended.id >> ?1 << ?1 | ended.cites) "
            "WHERE ended.id >= ?2 AND ended.id < ?3 AND ended.type = 'tool/result' AND called.type = 'tool/call' "
            "AND instr(ended.data, '\"repaired\":true')",
            (SEQ_BITS, self._first, self._last),
        )
        yield from rows

    def _by_end(self) -> Iterator[FoundCall]:
        """Goes through the ends, the latest first, and looks for their starts.

        A call is given away once no other one can have started later: all that are still to come have ended before.
        """
        where, parameters = self._where(END_TYPES)
        rows = self._connection.execute(
            f"SELECT id, time_us FROM events WHERE {where} ORDER BY time_us DESC, id DESC",  # noqa: S608 - likewise
            parameters,
        )
        held: list[tuple[int, int, FoundCall]] = []
        for end, time_us in rows:
            while held and -held[0][0] >= time_us:
                yield heapq.heappop(held)[2]
            start = self._pairs.start_of(end)
            if start is None or self._pairs.ends_of([start]).get(start) != end:
                continue
            found = self._judged(start, end)
            if found is not None:
                heapq.heappush(held, (-found.call.started_us, -start, found))
        while held:
            yield heapq.heappop(held)[2]

    def _may_fit(self, start: int) -> bool:
        """Returns whether what a start says fits, where SQL could not say: the arguments of a model's own call."""
        if self._wanted.argument is None:
            return True
        _session, agent = self._pairs.session(start)
        try:
            call = self._calls.alone(start)
        except LogUnavailableError:
            return True  # it is told when the call is judged
        return call is not None and self._wanted.fits_start(call, agent)

    def _judged(self, start: int, end: int | None) -> FoundCall | None:
        """Reads a call, and returns it if it fits."""
        session, agent = self._pairs.session(start)
        try:
            call = self._calls.alone(start, end)
            if call is None or not self._wanted.fits_alone(call, agent):
                return None
            call = self._calls.whole(call, start, end)
        except LogUnavailableError as error:
            self._unreadable[f"{session} event {start & SEQ_MASK}"] = error.message
            return None
        if not self._wanted.fits_beside(call):
            return None
        run = self._calls.run(start)
        if self._wanted.run is not None and run != self._wanted.run:
            return None
        # What may be large in it is left out.
        kept = replace(call, content=None if call.content is None else (), meta=None)
        return FoundCall(session, agent, run, kept)

    # SQL -------------------------------------------------------------------------------------------------------------

    def _where(self, types: Sequence[str]) -> tuple[str, list[Any]]:
        """Returns a condition that every event of a fitting call meets, and its parameters."""
        wanted = self._wanted
        terms = [f"type IN {type_list(types)}"]
        parameters: list[Any] = []

        def add(term: str, *values: Any) -> None:
            terms.append(term)
            parameters.extend(values)

        if self._first or self._last < (1 << 63) - 1:
            add("id >= ? AND id < ?", self._first, self._last)
        starts = types is START_TYPES
        if wanted.since_us is not None:
            add("time_us >= ?", wanted.since_us)  # whoever started since has ended since
        if wanted.until_us is not None and starts:
            add("time_us < ?", wanted.until_us)
        if wanted.agent is not None:
            add("id >> ? IN (SELECT value FROM json_each(?))", SEQ_BITS, self._sessions_of(wanted.agent))
        own = "tool/call" if starts else "tool/result"
        if self._root is not None:
            add(f"(instr(data, ?) OR type = '{own}')", f'"{quoted(self._root)}"')
        for literal in _literals(wanted.tool):
            add("instr(data, ?)" if starts else f"(instr(data, ?) OR type = '{own}')", quoted(literal))
        if wanted.argument:
            text = (wanted.argument, quoted(wanted.argument))
            add(f"(instr(data, ?) OR instr(data, ?) OR type = '{own}')", *text)
        if not starts:
            self._add_end(add)
        return " AND ".join(terms), parameters

    def _add_end(self, add: Any) -> None:
        wanted = self._wanted
        if wanted.outcome in FAILED_OUTCOMES:
            add("instr(data, '\"isError\":true')")
        if wanted.code is not None:
            add("instr(data, ?)", f'"code":"{quoted(wanted.code)}"')
        if wanted.decision is not None:
            add("instr(data, ?)", f'"outcome":"{wanted.decision}"')
        if wanted.decided_by:
            add("instr(data, ?)", quoted(wanted.decided_by))
        elif wanted.decided_by is not None:
            add("instr(data, '\"decision\":')")

    def _sessions_of(self, agent: str) -> str:
        rows = self._connection.execute("SELECT key, agent FROM sessions")
        return to_json_text([key for key, name in rows if fnmatchcase(name, agent)])


def _literals(pattern: str | None) -> Iterable[str]:
    """Returns the texts that every name that a pattern fits has in it."""
    if pattern is None:
        return ()
    # A class such as [abc] is left out whole; a bracket that opens none stands for itself, and what follows may not.
    plain = re.sub(r"\[!?\]?[^]]*\]", "*", pattern)
    return () if "[" in plain else (piece for piece in re.split(r"[*?]+", plain) if piece)
