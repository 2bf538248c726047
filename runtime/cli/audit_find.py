"""Finds runs in a log: the latest ones, or the one that an auditor names."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...registry.errors import HarnessError
from ..log.errors import LogUnavailableError, UnknownEventError
from ..log.reading import Run, SessionReading, read_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..log.sqlite_reader import SqliteLogReader
    from ..log.store import SessionInfo

__all__ = ["Found", "Listing", "NoSuchRunError", "find", "latest", "list_runs"]

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
    """What an auditor asked for: the session as it was read, and those of its runs that were meant."""

    reading: SessionReading
    runs: Sequence[Run]


def list_runs(reader: SqliteLogReader, limit: int) -> Listing:
    """Returns the `limit` latest runs of a log, by the time at which they started.

    Sessions are read one by one, those with the latest events first, until no unread one can hold a later run.
    """
    latest: list[tuple[int, int, SessionInfo, Run]] = []
    listing = Listing([], False, {}, {})
    more = False
    for order, session in enumerate(reader.sessions()):
        if len(latest) == limit and latest[0][0] >= session.last_us:
            more = True
            break
        try:
            reading = read_session(session, reader.events(session.id))
        except (UnknownEventError, LogUnavailableError) as error:
            listing.unreadable[session.id] = error.message
            continue
        if reading.violations:
            listing.unpaired[session.id] = len(reading.violations)
        for run in reading.runs:
            # The second field keeps runs of one instant in order, and keeps heapq from comparing sessions.
            entry = (run.started_us, -order * 1_000_000_000 + run.number, session, run)
            if len(latest) < limit:
                heapq.heappush(latest, entry)
            else:
                heapq.heappushpop(latest, entry)
                more = True
    runs = [(session, run) for _started, _order, session, run in sorted(latest, key=lambda one: one[:2], reverse=True)]
    return Listing(runs, more, listing.unpaired, listing.unreadable)


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
    reading = read_session(session, reader.events(session.id))
    if not slash:
        return Found(reading, reading.runs)
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= len(reading.runs)):
        count = len(reading.runs)
        has = f"runs 1 to {count}" if count > 1 else "one run, number 1" if count else "no runs"
        raise NoSuchRunError(f"session {session.id} has {has}, and no run {number!r}; see `ptc audit list`")
    return Found(reading, [reading.runs[int(number) - 1]])


def _session(reader: SqliteLogReader, prefix: str) -> SessionInfo:
    sessions = reader.sessions()
    fitting = [session for session in sessions if session.id.startswith(prefix)]
    exact = [session for session in fitting if session.id == prefix]
    if len(exact or fitting) == 1:
        return (exact or fitting)[0]
    if not fitting:
        raise NoSuchRunError(f"the log {reader.path} has no session {prefix!r}; `ptc audit list` shows what it has")
    names = ", ".join(session.id for session in fitting[:_SHOWN_CANDIDATES])
    rest = f" and {len(fitting) - _SHOWN_CANDIDATES} more" if len(fitting) > _SHOWN_CANDIDATES else ""
    raise NoSuchRunError(f"{len(fitting)} sessions begin with {prefix!r}: {names}{rest}; give more of the id")
