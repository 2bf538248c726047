"""The repair of a session whose process ended in the middle of a step (contract I13).

A session that is taken up again may have calls of the model without a result, and a conversation cannot go on like
that. Each of them is given an error result, in the order of the calls:

- A `tool/call` without a `tool/result`: its process ended before it could say what came of it. It may have done all of
  its work, some or none: `TOOL_OUTCOME_UNKNOWN`, with the advice to look before anything is done again. The result
  cites the call.
- A call that the model asked for and that the log does not have: no effect comes before its record (ruling 40), so it
  did nothing: `TOOL_NOT_STARTED`. The log cannot know of such calls; the host has them in its transcript and names
  them to `Agent.recover`. As other calls that were skipped (ruling 19), each is recorded as a pair.

Such results carry `"repaired": true` and `message.id`, which follows from the call's place, so that a repair of a copy
gives the same. They have the time of the last real event, the last sign of life of the process that ended.

There are no events of steps and turns in this log: a step is closed when each of its calls has a result, and a turn
when the next one has begun, as it does for an agent that goes on with a session. So nothing is appended to close them;
that the step was interrupted is what its repaired results say. Calls of a program that have started and not ended are
left as they are (contract I14): their records tell auditors, and the model is told of them in the program's result.

A session that another store has open is not repaired, because its calls may still be running; see `writers.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from .database import SEQ_BITS
from .pairs import Pairs

if TYPE_CHECKING:
    import sqlite3

    from ...registry.values import JsonObject, JsonValue
    from .store import StoredEvent

__all__ = ["LateRecord", "RepairPlan", "Tail", "answers_of_open_calls", "not_started", "read_tail"]

_NAMES: Final = 20
"""How many names of calls the model is told."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What a session has that did not come to its end.

    Attributes:
        next_seq: the `seq` of the next event.
        calls: the `tool/call` events without a result, in order.
        sub_calls: the events with which calls of programs started that have not ended, in order.
    """

    next_seq: int
    calls: Sequence[StoredEvent]
    sub_calls: Sequence[StoredEvent]


class LateRecord(NamedTuple):
    """An event that is appended after the fact, with the time of the session's last one."""

    type: str
    data: JsonObject
    cites: int | None = None


RepairPlan: TypeAlias = Callable[[Tail], Sequence[LateRecord]]
"""Says what to append to a session that was interrupted; nothing to one that was not."""


def read_tail(connection: sqlite3.Connection, place: str, key: int) -> Tail:
    """Reads what did not come to its end in a session; its events are read once, without most of their data.

    Args:
        connection: a connection to the log.
        place: the log's path, for messages.
        key: the session's key.
    """
    first, last = key << SEQ_BITS, (key + 1) << SEQ_BITS
    pairs = Pairs(connection, place)
    events = [pairs.event(row) for row in sorted(row for row, _time_us in pairs.endless(first, last))]
    (newest,) = connection.execute("SELECT max(id) FROM events WHERE id >= ? AND id < ?", (first, last)).fetchone()
    return Tail(
        next_seq=0 if newest is None else newest - first + 1,
        calls=[event for event in events if event.type == "tool/call"],
        sub_calls=[event for event in events if event.type != "tool/call"],
    )


def answers_of_open_calls(tail: Tail) -> Sequence[LateRecord]:
    """Returns the results of calls whose outcome nobody knows; nothing for a session that is balanced."""
    return [_unknown(call, tail.sub_calls) for call in tail.calls]


def not_started(turn: int, step: int, calls: Sequence[tuple[str, str, str]], next_seq: int) -> Sequence[LateRecord]:
    """Returns the pairs of events of calls that never started.

    Args:
        turn: the turn that they were asked for in.
        step: the step, likewise.
        calls: the id, the tool's name and the arguments' text of each.
        next_seq: the `seq` that the first event will have.
    """
    records: list[LateRecord] = []
    for call_id, name, arguments in calls:
        seq = next_seq + len(records)
        called: JsonObject = {"turn": turn, "step": step, "callId": call_id, "name": name, "arguments": arguments}
        text = (
            f"{name} did not run: the host ended before it started this call. Nothing of it has happened, so it "
            "is safe to call it again."
        )
        records.append(LateRecord("tool/call", called))
        records.append(
            _result(turn, step, call_id, seq, text, {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"})
        )
    return records


def _unknown(call: StoredEvent, sub_calls: Sequence[StoredEvent]) -> LateRecord:
    data = call.data
    name, call_id = data.get("name"), data.get("callId")
    begun = [str(sub.data.get("name")) for sub in sub_calls if sub.data.get("rootCallId") == call_id]
    text = (
        f"The outcome of {name} is unknown: the host ended while the call ran. It may have done all of its work, a "
        "part of it, or none. Check what it has done before you do it again."
    )
    if begun:
        text += f" Calls that had begun and whose outcome is unknown too: {_listed(begun)}."
    error: JsonObject = {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}
    return _result(data.get("turn"), data.get("step"), call_id, call.seq, text, error)


def _listed(names: Sequence[str]) -> str:
    counted = Counter(names)
    told = [name if count == 1 else f"{name} ({count} times)" for name, count in list(counted.items())[:_NAMES]]
    if len(counted) > _NAMES:
        told.append(f"{len(counted) - _NAMES} other tools")
    return ", ".join(told)


def _result(turn: JsonValue, step: JsonValue, call_id: JsonValue, seq: int, text: str, error: JsonObject) -> LateRecord:
    message: JsonObject = {
        "role": "tool",
        "id": f"repaired-{seq}",
        "callId": call_id,
        "content": [{"type": "text", "text": text}],
        "isError": True,
    }
    data: JsonObject = {"turn": turn, "step": step, "message": message, "error": error, "repaired": True}
    return LateRecord("tool/result", data, seq)
