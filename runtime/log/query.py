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
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from ...registry.errors import HarnessError
from ...registry.lossless import from_json_text, to_json_text
from .database import SEQ_BITS
from .errors import LogUnavailableError
from .pairs import END_TYPES, SEQ_MASK, START_TYPES, Ids, Pairs, quoted, session_end, type_list
from .reading import Call, Outcome, read_session
from .sqlite_reader import read_snapshot
from .store import SessionInfo

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from .store import StoredEvent

__all__ = ["CallFilter", "DecisionOutcome", "Findings", "FoundCall", "UnknownRunError", "call_between", "find_calls"]

DecisionOutcome: TypeAlias = Literal["allow", "deny", "cancel", "error", "block"]

_CHUNK: Final = 64
"""How many calls are paired at once."""

_FAILED: Final = frozenset({"failed", "denied", "cancelled"})


class UnknownRunError(HarnessError):
    """The session has no run of this number."""

    default_code = "NO_SUCH_RUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFilter:
    """What calls must be to be found; `None` asks for nothing.

    Attributes:
        since_us: they started at this time or later, in microseconds since 1970 UTC.
        until_us: they started before this time.
        agent: the pattern of the agent's name; `*`, `?` and `[...]` have the meaning that they have in file names.
        tool: the pattern of the tool's name, likewise.
        outcome: how they ended.
        code: the code of the error that they failed with.
        decision: what policy said of them.
        decided_by: a part of the name of whoever had the last word: a guard, a listener.
        argument: a part of the JSON text of their arguments, which is compact and has its keys in the order in which
            they were given; or a part of a text inside. For a model's own call whose arguments are no JSON, a part of
            what the model wrote.
        session: the id of the session that they belong to.
        run: the number of the run in that session.
    """

    since_us: int | None = None
    until_us: int | None = None
    agent: str | None = None
    tool: str | None = None
    outcome: Outcome | None = None
    code: str | None = None
    decision: DecisionOutcome | None = None
    decided_by: str | None = None
    argument: str | None = None
    session: str | None = None
    run: int | None = None

    def __post_init__(self) -> None:
        if self.outcome is not None and self.outcome not in get_args(Outcome):
            raise ValueError(f"there is no outcome {self.outcome!r}; give one of {', '.join(get_args(Outcome))}")
        if self.decision is not None and self.decision not in get_args(DecisionOutcome):
            raise ValueError(f"there is no decision {self.decision!r}; give one of {get_args(DecisionOutcome)}")
        if self.run is not None and self.session is None:
            raise ValueError("a run is one of a session; give the session too")

    @property
    def asks_for_the_end(self) -> bool:
        """Whether it asks for what only an end tells, and few ends do."""
        told = (self.code, self.decision, self.decided_by)
        return any(one is not None for one in told) or self.outcome in _FAILED

    def fits(self, call: Call, agent: str) -> bool:
        """Returns whether a call is what is asked for; its session and run are not looked at."""
        return (
            self.fits_start(call, agent)
            and (self.outcome is None or call.outcome == self.outcome)
            and self._fits_decision(call)
        )

    def fits_start(self, call: Call, agent: str) -> bool:
        """Returns the same of what is known when a call starts."""
        return (
            (self.since_us is None or call.started_us >= self.since_us)
            and (self.until_us is None or call.started_us < self.until_us)
            and (self.agent is None or fnmatchcase(agent, self.agent))
            and (self.tool is None or fnmatchcase(call.name, self.tool))
            and (self.argument is None or self._fits_argument(call, self.argument))
        )

    def _fits_decision(self, call: Call) -> bool:
        decision = call.decision
        return (
            (self.code is None or (call.error is not None and call.error.code == self.code))
            and (self.decision is None or (decision is not None and decision.outcome == self.decision))
            and (self.decided_by is None or (decision is not None and self.decided_by in (decision.by or "")))
        )

    def _fits_argument(self, call: Call, wanted: str) -> bool:
        text = call.arguments
        if call.parent_call_id is None and isinstance(text, str):
            try:
                text = to_json_text(from_json_text(text))
            except ValueError:
                return wanted in text
        else:
            text = to_json_text(text)
        return wanted in text or quoted(wanted) in text


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call that was found.

    Attributes:
        session: the id of its session.
        agent: the name of the agent.
        run: the number of the run in the session that it belongs to; `None` when the record does not tell.
        call: the call. It carries neither content nor meta nor approvals, which are read with its run.
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
        unreadable: why an event that might have fitted could not be read, by `SESSION event SEQ`.
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


def call_between(start: StoredEvent, end: StoredEvent | None) -> Call | None:
    """Returns the call that two events make; `None` when the first one starts none.

    Raises:
        LogUnavailableError: an event is not what its type says.
    """
    info = SessionInfo(start.session, "", start.time_us, {}, 2, start.time_us)
    reading = read_session(info, [start] if end is None else [start, end])
    for run in reading.runs:
        for call in (run.call, *run.calls):
            if call is not None:
                return replace(call, content=None if call.content is None else (), meta=None)
    return None


class _Search:
    """One search over one connection."""

    def __init__(self, connection: sqlite3.Connection, path: Path, wanted: CallFilter) -> None:
        self._connection = connection
        self._wanted = wanted
        self._pairs = Pairs(connection, str(path))
        self._unreadable: dict[str, str] = {}
        self._first, self._last = 0, (1 << 63) - 1
        self._nothing = False
        self._root: str | None = None

    def latest(self, limit: int) -> Findings:
        self._narrow()
        if self._nothing:
            return Findings([], False, {})
        if self._wanted.asks_for_the_end:
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

    # Candidates ------------------------------------------------------------------------------------------------------

    def _by_start(self) -> Iterator[FoundCall]:
        """Goes through the starts, the latest first, and looks for their ends."""
        where, parameters = self._where(START_TYPES)
        rows = self._connection.execute(
            f"SELECT id FROM events WHERE {where} ORDER BY time_us DESC, id DESC",  # noqa: S608 - of our own words
            parameters,
        )
        candidates = (row for (row,) in rows if self._may_fit(row))
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
            call = call_between(self._pairs.event(start), None)
        except LogUnavailableError:
            return True  # it is told when the call is judged
        return call is not None and self._wanted.fits_start(call, agent)

    def _judged(self, start: int, end: int | None) -> FoundCall | None:
        """Reads a call, and returns it if it fits."""
        session, agent = self._pairs.session(start)
        try:
            begun = self._pairs.event(start)
            call = call_between(begun, None if end is None else self._pairs.event(end))
        except LogUnavailableError as error:
            self._unreadable[f"{session} event {start & SEQ_MASK}"] = error.message
            return None
        if call is None or not self._wanted.fits(call, agent):
            return None
        root = begun.data.get("rootCallId", call.call_id)
        run = self._pairs.run_of(start, Ids(str(root), call.call_id))
        if self._wanted.run is not None and run != self._wanted.run:
            return None
        return FoundCall(session, agent, run, call)

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
        if wanted.outcome in _FAILED:
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
