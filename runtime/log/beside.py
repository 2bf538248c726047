"""Reads single calls, and what stands beside them: its two events, the questions about it, the jobs that it started."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from .pairs import SEQ_MASK, Ids, quoted, session_end, type_list
from .reading import Call, read_call

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from .pairs import Pairs

__all__ = ["BESIDE_TYPES", "CallReader"]

BESIDE_TYPES: Final = ("approval/asked", "job/started")
"""The types of the events that name a call and stand beside it."""

_ANSWER_TYPES: Final = ("approval/decided", "job/settled")


class CallReader:
    """Reads calls one by one over a connection, each from its own events and no others.

    Args:
        connection: an open log.
        pairs: looks up what belongs together over the same connection.
    """

    def __init__(self, connection: sqlite3.Connection, pairs: Pairs) -> None:
        self._connection = connection
        self._pairs = pairs

    def alone(self, start: int, end: int | None = None) -> Call | None:
        """Returns the call that two rows make, without its questions and jobs; `None` when the first starts none.

        Args:
            start: the row that started it.
            end: the row that ended it; `None` when none has, or when only the start matters.

        Raises:
            LogUnavailableError: an event is not what its type says.
        """
        return read_call([self._pairs.event(start)] + ([] if end is None else [self._pairs.event(end)]))

    def whole(self, call: Call, start: int, end: int | None) -> Call:
        """Returns a call with its questions and jobs; of one that has ended, those that stand before its end.

        Args:
            call: the call as `alone` gives it.
            start: the row that started it.
            end: the row that ended it, `None` when none has.

        Raises:
            LogUnavailableError: an event is not what its type says.
        """
        named = self._named(call.call_id, start, session_end(start) if end is None else end)
        if not named:
            return call
        rows = {start, *named, *self._answers(named)} | ({end} if end is not None else set())
        return read_call(self._pairs.event(row) for row in sorted(rows)) or call

    def run(self, start: int) -> int | None:
        """Returns the number of the run that the call which a row starts belongs to, as `Pairs.run_of` does."""
        begun = self._pairs.event(start).data
        call_id = str(begun.get("subCallId", begun.get("callId")))
        return self._pairs.run_of(start, Ids(str(begun.get("rootCallId", call_id)), call_id))

    def _named(self, call_id: str, after: int, before: int) -> list[int]:
        """Returns the rows between two others that name a call, up to where another call of the same id starts."""
        text = f'"callId":"{quoted(call_id)}"'
        again = self._connection.execute(
            "SELECT min(id) FROM events WHERE id > ? AND id < ? AND type = 'tool/call' AND instr(data, ?)",
            (after, before, text),
        ).fetchone()[0]
        rows = self._connection.execute(
            f"SELECT id FROM events WHERE id > ? AND id < ? AND type IN {type_list(BESIDE_TYPES)} "  # noqa: S608 - of our own words
            "AND instr(data, ?) ORDER BY id",
            (after, before if again is None else again, text),
        )
        return [row for (row,) in rows]

    def _answers(self, asked: Sequence[int]) -> list[int]:
        """Returns for each of these rows the first one that cites it, if there is any."""
        waiting = {row & SEQ_MASK for row in asked}
        answers: list[int] = []
        found = self._connection.execute(
            f"SELECT id, cites FROM events WHERE id > ? AND id < ? AND type IN {type_list(_ANSWER_TYPES)} "  # noqa: S608 - likewise
            "AND cites IN (SELECT value FROM json_each(?)) ORDER BY id",
            (asked[0], session_end(asked[0]), json.dumps(sorted(waiting))),
        )
        for row, cites in found:
            if cites in waiting:
                waiting.discard(cites)
                answers.append(row)
            if not waiting:
                break
        return answers
