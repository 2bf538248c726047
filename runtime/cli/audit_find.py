"""Finds runs in a log: the latest ones, or the one that an auditor names."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...registry.errors import HarnessError
from ..log.errors import LogUnavailableError, UnknownEventError
from ..log.large import LARGE, LargeSession
from ..log.reading import Run, SessionReading, read_session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..log.sqlite_reader import SqliteLogReader
    from ..log.store import SessionInfo

__all__ = ["Found", "Listing", "NoSuchRunError", "find", "latest", "list_runs", "one_session"]

_SHOWN_CANDIDATES = 5


class NoSuchRunError(HarnessError):
    """The log has no such run, or several sessions begin like it."""

    default_code = "NO_SUCH_RUN"


@dataclass(frozen=True, slots=True)
class Listing:
    """The latest runs of a log.

    Attributes:
        runs: each with its session, the latest first.
        more: whether the log has older ones.
        unpaired: how many events of a session make no sense, by the session's id.
        unreadable: why a session could not be read, by the session's id.
    """

    runs: Sequence[tuple[SessionInfo, Run]]
    more: bool
    unpaired: dict[str, int]
    unreadable: dict[str, str]


@dataclass(frozen=True, slots=True)
class Found:
    """What an auditor asked for: the session as it was read, and those of its runs that were meant.

    Of a large session only the runs that were meant are read, and `reading` tells of policies but neither of other runs
    nor of what belongs to none.
    """

    reading: SessionReading
    runs: Sequence[Run]


def list_runs(reader: SqliteLogReader, limit: int) -> Listing:
    """Returns the `limit` latest runs of a log, by the time at which they started.

    Sessions are read one by one, those with the latest events first, until no unread one can hold a later run; one
    whose latest calls are too old is passed over. Of a large session only the latest runs are read, and then events
    that do not pair are not counted.
    """
    latest: list[tuple[int, int, SessionInfo, Run]] = []
    listing = Listing([], False, {}, {})
    more = False
    sessions = reader.sessions()
    too_old = _too_old(reader, sessions, limit)
    for order, session in enumerate(sessions):
        if len(latest) == limit and latest[0][0] >= session.last_us:
            more = True
            break
        if session.id in too_old:
            more = True
            continue
        try:
            if session.events > LARGE:
                large = LargeSession(reader, session)
                runs, more = large.latest(limit), more or large.count > limit
            else:
                reading = read_session(session, reader.events(session.id))
                runs = reading.runs
                if reading.violations:
                    listing.unpaired[session.id] = len(reading.violations)
        except (UnknownEventError, LogUnavailableError) as error:
            listing.unreadable[session.id] = error.message
            continue
        for run in runs:
            # The second field keeps runs of one instant in order, and keeps heapq from comparing sessions.
            entry = (run.started_us, -order * 1_000_000_000 + run.number, session, run)
            if len(latest) < limit:
                heapq.heappush(latest, entry)
            else:
                heapq.heappushpop(latest, entry)
                more = True
    in_order = sorted(latest, key=lambda one: one[:2], reverse=True)
    return Listing(
        [(session, run) for _started, _order, session, run in in_order], more, listing.unpaired, listing.unreadable
    )


def _too_old(reader: SqliteLogReader, sessions: Sequence[SessionInfo], limit: int) -> set[str]:
    """Returns the sessions that have calls of a model, none of which is among the `limit` latest of the log."""
    last: dict[str, int] = {}
    kept: list[int] = []
    for session in sessions:
        if len(kept) == limit and kept[0] >= session.last_us:
            break
        times = reader.latest_calls(session.id, limit)
        if times:
            last[session.id] = max(times)
        for time_us in times:
            if len(kept) < limit:
                heapq.heappush(kept, time_us)
            else:
                heapq.heappushpop(kept, time_us)
    return {session for session, time_us in last.items() if len(kept) == limit and time_us < kept[0]}


def latest(reader: SqliteLogReader) -> Found:
    """Returns the latest run of a log.

    Raises:
        NoSuchRunError: there is none.
    """
    listing = list_runs(reader, 1)
    if not listing.runs:
        problems = "".join(f"\n  session {session}: {problem}" for session, problem in listing.unreadable.items())
        raise NoSuchRunError(f"the log {reader.path} has no run that can be shown{problems}")
    session, run = listing.runs[0]
    if session.events > LARGE:
        large = LargeSession(reader, session)
        return Found(SessionReading(session, [], [], large.settings), [large.run(run.number) or run])
    return Found(read_session(session, reader.events(session.id)), [run])


def find(reader: SqliteLogReader, wanted: str) -> Found:
    """Returns what an auditor names: `SESSION` for all runs of a session, `SESSION/2` for its second run.

    Args:
        reader: the log.
        wanted: the name; of the session's id, any beginning that only one session has will do.

    Raises:
        NoSuchRunError: the name fits nothing, or more than one session.
        UnknownEventError: the session has events that this version does not know.
        LogUnavailableError: the log cannot be read.
    """
    prefix, slash, number = wanted.partition("/")
    session = _session(reader, prefix)
    if slash and session.events > LARGE:
        large = LargeSession(reader, session)
        found = large.run(_number(session, number, large.count))
        return Found(SessionReading(session, [], [], large.settings), [] if found is None else [found])
    reading = read_session(session, reader.events(session.id))
    if not slash:
        return Found(reading, reading.runs)
    return Found(reading, [reading.runs[_number(session, number, len(reading.runs)) - 1]])


def _number(session: SessionInfo, number: str, count: int) -> int:
    """Returns the number of a run, of which there are `count`."""
    if not (number.isascii() and number.isdigit() and len(number) < 20 and 1 <= int(number) <= count):
        has = f"runs 1 to {count}" if count > 1 else "one run, number 1" if count else "no runs"
        raise NoSuchRunError(f"session {session.id} has {has}, and no run {number!r}; see `ptc audit list`")
    return int(number)


def _session(reader: SqliteLogReader, prefix: str) -> SessionInfo:
    sessions = {session.id: session for session in reader.sessions()}
    return sessions[one_session(reader.path, list(sessions), prefix)]


def one_session(log: Path, sessions: Sequence[str], prefix: str) -> str:
    """Returns the one of several ids that is `prefix`, or the only one that begins with it.

    Raises:
        NoSuchRunError: none does, or several do.
    """
    fitting = [session for session in sessions if session.startswith(prefix)]
    if prefix in fitting:
        return prefix
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise NoSuchRunError(f"the log {log} has no session {prefix!r}; `ptc audit list` shows what it has")
    names = ", ".join(fitting[:_SHOWN_CANDIDATES])
    rest = f" and {len(fitting) - _SHOWN_CANDIDATES} more" if len(fitting) > _SHOWN_CANDIDATES else ""
    raise NoSuchRunError(f"{len(fitting)} sessions begin with {prefix!r}: {names}{rest}; give more of the id")
