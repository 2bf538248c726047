"""Finds what belongs together in a log without reading whole sessions: the two events of a call, and a call's run.

The ids of an event are read off the beginning of its text, where the writers of this package put them; a record whose
ids stand elsewhere is parsed.
"""

from __future__ import annotations

import json
import re
import sqlite3
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...registry.lossless import from_json_text, to_json_text
from .database import SEQ_BITS
from .errors import LogUnavailableError
from .store import StoredEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["END_TYPES", "SEQ_MASK", "START_TYPES", "Pairs", "quoted", "session_end", "session_start", "type_list"]

START_TYPES: Final = ("tool/call", "tool/ptc-dispatch-start", "tool/code-dispatch-start")
"""The types of the events that start a call."""

END_TYPES: Final = ("tool/result", "tool/ptc-dispatch", "tool/code-dispatch")
"""The types of the events that end one."""

SEQ_MASK: Final = (1 << SEQ_BITS) - 1

_HEAD: Final = 600
"""How much of a record's text is read for its ids, in characters."""

_TEXT: Final = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_CALL: Final = re.compile(rf'\{{"turn":\d+,"step":\d+,"callId":{_TEXT}')
_DISPATCH: Final = re.compile(rf'\{{"rootCallId":{_TEXT},"parentCallId":{_TEXT},"subCallId":{_TEXT}')

_EVENT: Final = "SELECT id, type, time_us, mono_us, cites, hash, data FROM events WHERE id = ?"


def type_list(types: Iterable[str]) -> str:
    """Returns types as SQL has them after `IN`."""
    return f"({', '.join(repr(one) for one in types)})"


def session_start(row: int) -> int:
    """Returns the first possible row id of the session that a row belongs to."""
    return row >> SEQ_BITS << SEQ_BITS


def session_end(row: int) -> int:
    """Returns the row id after the last possible one of the session that a row belongs to."""
    return ((row >> SEQ_BITS) + 1) << SEQ_BITS


def quoted(text: str) -> str:
    """Returns what `text` is inside the JSON texts of a log, without its quotation marks."""
    return to_json_text(text)[1:-1]


class Ids(NamedTuple):
    """Whose event it is: the root call, and the call itself, which is the root for a model's own call."""

    root: str
    call: str


@dataclass(slots=True)
class _Runs:
    """The runs of one session, as far as it was read: where each begins, and which numbers a root's id has."""

    upto: int
    starts: list[int] = field(default_factory=list[int])
    roots: list[str] = field(default_factory=list[str])
    by_root: dict[str, list[int]] = field(default_factory=dict[str, list[int]])


class Pairs:
    """Looks up the other half of calls over one connection. What it keeps in mind is the runs of sessions.

    Args:
        connection: an open log.
        where: the log, for messages.
    """

    def __init__(self, connection: sqlite3.Connection, where: str) -> None:
        self._connection = connection
        self._where = where
        self._sessions: dict[int, tuple[str, str]] = {}
        self._runs: dict[int, _Runs] = {}

    def session(self, row: int) -> tuple[str, str]:
        """Returns the id and the agent of the session that a row belongs to."""
        key = row >> SEQ_BITS
        if key not in self._sessions:
            found = self._connection.execute("SELECT id, agent FROM sessions WHERE key = ?", (key,)).fetchone()
            self._sessions[key] = (str(found[0]), str(found[1])) if found else (f"(session {key} of no name)", "")
        return self._sessions[key]

    def event(self, row: int) -> StoredEvent:
        """Returns one event.

        Raises:
            LogUnavailableError: its text is not what was written, or it is not there.
        """
        found = self._connection.execute(_EVENT, (row,)).fetchone()
        if found is None:
            raise LogUnavailableError(
                f"event {row & SEQ_MASK} of session {self.session(row)[0]} in the log {self._where} is missing, and "
                "another one cites it; see `ptc audit verify`",
                reason="damaged",
            )
        row, kind, time_us, mono_us, cites, digest, text = found
        return StoredEvent(
            self.session(row)[0], row & SEQ_MASK, kind, time_us, mono_us, self._parsed(row, text), cites, digest
        )

    def _parsed(self, row: int, text: object) -> dict[str, Any]:
        try:
            value = from_json_text(text) if isinstance(text, str) else None
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise LogUnavailableError(
                f"event {row & SEQ_MASK} of session {self.session(row)[0]} in the log {self._where} is not the JSON "
                "that was written; see `ptc audit verify`",
                reason="damaged",
            )
        return value

    def ids(self, row: int, kind: str, head: object) -> Ids | None:
        """Returns whose event it is, from the first characters of its text; `None` when it does not say."""
        pattern = _CALL if kind == "tool/call" else _DISPATCH if "dispatch" in kind else None
        found = pattern.match(head) if pattern is not None and isinstance(head, str) else None
        if found is not None:
            root, call = _unquoted(found[1]), _unquoted(found[found.lastindex or 1])
            return Ids(root, call)
        try:
            data = self.event(row).data
        except LogUnavailableError:
            return None
        if kind == "tool/result":
            message = data.get("message")
            root = call = message.get("callId") if isinstance(message, dict) else None
        elif kind == "tool/call":
            root = call = data.get("callId")
        else:
            root, call = data.get("rootCallId"), data.get("subCallId")
        return Ids(root, call) if isinstance(root, str) and isinstance(call, str) else None

    # The two events of a call --------------------------------------------------------------------------------------

    def start_of(self, end: int) -> int | None:
        """Returns the row that started the call that a row ends, or `None` when no row of its session does."""
        kind, cites, head = self._connection.execute(
            f"SELECT type, cites, substr(data, 1, {_HEAD}) FROM events WHERE id = ?",  # noqa: S608 - a number of ours
            (end,),
        ).fetchone()
        if kind == "tool/result" and cites is not None:
            start = session_start(end) | cites
            known = self._connection.execute("SELECT 1 FROM events WHERE id = ? AND type = 'tool/call'", (start,))
            return start if known.fetchone() else None
        ids = self.ids(end, kind, head)
        if ids is None:
            return None
        return self.start_before(end, ("tool/call",) if kind == "tool/result" else START_TYPES[1:], ids.call)

    def start_before(self, row: int, types: Iterable[str], call_id: str) -> int | None:
        """Returns the last row before another one, of its session, that starts a call of this id."""
        # One row at a time: the cursor would look for the next one already when it gives the first.
        search = (
            f"SELECT id, type, substr(data, 1, {_HEAD}) FROM events WHERE id < ? AND id >= ? "  # noqa: S608 - likewise
            f"AND type IN {type_list(types)} AND instr(data, ?) ORDER BY id DESC LIMIT 1"
        )
        first = session_start(row)
        while True:
            found = self._connection.execute(search, (row, first, f'"{quoted(call_id)}"')).fetchone()
            if found is None:
                return None
            row, kind, head = found
            if self._call_id(row, kind, head) == call_id:
                return row

    def ends_of(self, starts: Iterable[int]) -> dict[int, int]:
        """Returns the rows that ended calls, by the rows that started them; calls without an end are not there.

        The calls of a session are looked for together, from the first of them onwards, until all are found.
        """
        ends: dict[int, int] = {}
        sessions: dict[int, list[int]] = {}
        for start in starts:
            sessions.setdefault(session_start(start), []).append(start)
        for rows in sessions.values():
            self._ends_of_one(rows, ends)
        return ends

    def _ends_of_one(self, starts: list[int], ends: dict[int, int]) -> None:
        open_calls: dict[tuple[bool, str], list[int]] = {}
        left = set(starts)
        for start in starts:
            kind, head = self._connection.execute(
                f"SELECT type, substr(data, 1, {_HEAD}) FROM events WHERE id = ?",  # noqa: S608 - a number of ours
                (start,),
            ).fetchone()
            call = self._call_id(start, kind, head)
            if call is not None:
                open_calls.setdefault((kind == "tool/call", call), []).append(start)
        first = min(starts)
        found = self._connection.execute(
            f"SELECT id, type, cites, substr(data, 1, {_HEAD}) FROM events WHERE id > ? AND id < ? "  # noqa: S608 - likewise
            f"AND type IN {type_list(END_TYPES)} ORDER BY id",
            (first, session_end(first)),
        )
        for row, kind, cites, head in found:
            if kind == "tool/result" and cites is not None:
                fitting = [session_start(row) | cites]
            else:
                call = self._call_id(row, kind, head)
                fitting = open_calls.get((kind == "tool/result", call), []) if call is not None else []
            for start in fitting:
                if start < row and start in left:
                    left.discard(start)
                    ends[start] = row
            if not left:
                return

    def _call_id(self, row: int, kind: str, head: object) -> str | None:
        ids = self.ids(row, kind, head)
        return None if ids is None else ids.call

    def endless(self, first: int, last: int) -> Iterable[tuple[int, int]]:
        """Yields the row and the time of each start between two rows that no later row of its session ends.

        It reads the rows once, in order, and keeps the calls in mind that are open.
        """
        key = -1
        roots: dict[int, int] = {}
        calls: dict[str, tuple[int, int]] = {}
        rows = self._connection.execute(
            f"SELECT id, type, time_us, cites, substr(data, 1, {_HEAD}) FROM events WHERE id >= ? AND id < ? "  # noqa: S608 - likewise
            f"AND type IN {type_list(START_TYPES + END_TYPES)} ORDER BY id",
            (first, last),
        )
        for row, kind, time_us, cites, head in rows:
            if row >> SEQ_BITS != key:
                yield from roots.items()
                yield from calls.values()
                key = row >> SEQ_BITS
                roots.clear()
                calls.clear()
            if kind == "tool/call":
                roots[row] = time_us
                continue
            if kind == "tool/result":
                start = session_start(row) | cites if cites is not None else self.start_of(row)
                roots.pop(-1 if start is None else start, None)
                continue
            match = _DISPATCH.match(head)
            call = self._call_id(row, kind, head) if match is None or "\\" in match[3] else match[3]
            if call is not None and kind in START_TYPES:
                calls.setdefault(call, (row, time_us))
            elif call is not None:
                calls.pop(call, None)
        yield from roots.items()
        yield from calls.values()

    # Runs ----------------------------------------------------------------------------------------------------------

    def run_of(self, start: int, ids: Ids) -> int | None:
        """Returns the number of the run that a call belongs to, as `ptc audit list` counts."""
        runs = self._runs_of(start, start)
        numbers = runs.by_root.get(ids.root, [])
        at = bisect_right(numbers, start, key=lambda number: runs.starts[number - 1])
        return numbers[at - 1] if at else None

    def run(self, key: int, number: int) -> tuple[int, str] | None:
        """Returns the row with which a run of a session begins and its root's id; `None` when there is no such run."""
        runs = self._runs_of(key << SEQ_BITS, session_end(key << SEQ_BITS) - 1)
        return (runs.starts[number - 1], runs.roots[number - 1]) if 1 <= number <= len(runs.starts) else None

    def _runs_of(self, row: int, upto: int) -> _Runs:
        """Returns the runs of a row's session, read up to another row at least; what was read is not read again."""
        runs = self._runs.setdefault(row >> SEQ_BITS, _Runs(session_start(row) - 1))
        if upto > runs.upto:
            rows = self._connection.execute(
                f"SELECT id, type, substr(data, 1, {_HEAD}) FROM events WHERE id > ? AND id <= ? "  # noqa: S608 - likewise
                f"AND type IN {type_list(START_TYPES)} ORDER BY id",
                (runs.upto, upto),
            )
            known = ""
            for start, kind, head in rows:
                runs.upto = start
                if known and kind != "tool/call" and head.startswith(known):
                    continue  # most are calls of the program that called last
                ids = self.ids(start, kind, head)
                known = "" if ids is None or not ids.root else f'{{"rootCallId":"{quoted(ids.root)}",'
                # A program's calls make a run only where the model's call was not recorded.
                if ids is None or not ids.root or (kind != "tool/call" and ids.root in runs.by_root):
                    continue
                runs.starts.append(start)
                runs.roots.append(ids.root)
                runs.by_root.setdefault(ids.root, []).append(len(runs.starts))
        return runs


def _unquoted(text: str) -> str:
    return str(json.loads(f'"{text}"')) if "\\" in text else text
