"""Sorts the events of a session into runs as they come, without keeping those of runs that have ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .events import read_event
from .span_record import span_id, trace_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .span_jobs import JobSpans
    from .store import StoredEvent

__all__ = ["RunGroup", "run_groups"]

_JOB_TYPES = ("job/started", "job/settled")


@dataclass(slots=True)
class RunGroup:
    """The events of one run while they are gathered, and again when more of its calls start after its end.

    Attributes:
        number: which run of the session it is.
        turn: the turn of the model's call; `None` when that was not recorded.
        first_seq: the event with which the run begins.
        root: the id of the model's call.
        called: whether the model's call was recorded.
        start_us: when the run began, in microseconds since 1970 UTC.
        events: its events, those of jobs left out.
        open_calls: the program's calls that have not ended, each with the event that started it.
        ended: whether the model's call has a result.
    """

    number: int
    turn: int | None
    first_seq: int
    root: str
    called: bool
    start_us: int = 0
    events: list[StoredEvent] = field(default_factory=list["StoredEvent"])
    open_calls: dict[str, int] = field(default_factory=dict[str, int])
    ended: bool = False

    def trace_id(self, session: str) -> int:
        """Returns the id of the trace that the run is part of: that of its turn, if it has one."""
        return trace_id(session, f"call {self.first_seq} {self.root}" if self.turn is None else f"turn {self.turn}")

    def span_id(self, session: str, call_id: str | None) -> int | None:
        """Returns the id of the span of a call that runs, or of the model's own; `None` when it is neither."""
        seq = self.open_calls.get(call_id or "", self.first_seq if self.called and call_id == self.root else None)
        return None if seq is None else span_id(session, f"call {seq} {call_id}")


def run_groups(events: Iterable[StoredEvent], jobs: JobSpans) -> Iterator[RunGroup]:
    """Sorts events into runs; gives each run when it has ended, and at last those that have not. Jobs go to `jobs`."""
    sorter = _Sorter()
    for event in events:
        group = sorter.group_of(event)
        if event.type in _JOB_TYPES:
            jobs.take(event, group)
            continue
        if group is None:
            continue
        group.events.append(event)
        if group.ended and not group.open_calls:
            yield sorter.unfinished.pop(group.number, group)
            group.events = []
    yield from sorter.unfinished.values()


class _Sorter:
    """Tells which run an event belongs to, in the order of the events."""

    def __init__(self) -> None:
        self.unfinished: dict[int, RunGroup] = {}
        self._count = 0
        self._by_root: dict[str, RunGroup] = {}
        self._by_seq: dict[int, RunGroup] = {}
        self._by_call: dict[str, RunGroup] = {}
        self._by_question: dict[str, RunGroup] = {}

    def group_of(self, event: StoredEvent) -> RunGroup | None:
        """Returns the run that an event belongs to, a new one where it begins one; `None` when it belongs to none."""
        data = event.data
        match event.type:
            case "tool/call":
                turn = data.get("turn")
                group = self._new(event, "callId", turn if isinstance(turn, int) else None)
                self._by_seq[event.seq] = group
                return group
            case "tool/result":
                return self._ended(event)
            case "tool/ptc-dispatch-start" | "tool/code-dispatch-start":
                group = self._by_root.get(str(data.get("rootCallId"))) or self._new(event, "rootCallId", None)
                self.unfinished[group.number] = group
                call = str(data.get("subCallId"))
                self._by_call[call] = group
                group.open_calls[call] = event.seq
                return group
            case "tool/ptc-dispatch" | "tool/code-dispatch":
                call = str(data.get("subCallId"))
                group = self._by_call.pop(call, None)
                if group is not None:
                    group.open_calls.pop(call, None)
                return group
            case "approval/asked":
                call = str(data.get("callId"))
                group = self._by_call.get(call) or self._by_root.get(call)
                if group is not None:
                    self._by_question[str(data.get("id"))] = group
                return group
            case "approval/decided":
                return self._by_question.pop(str(data.get("id")), None)
            case "tool/ptc-preflight":
                return self._by_root.get(str(data.get("callId")))
            case "job/started":
                call = str(data.get("callId"))
                return self._by_call.get(call) or self._by_root.get(call)
            case _:
                read_event(event)  # refuses what this version does not know
                return None

    def _new(self, event: StoredEvent, key: str, turn: int | None) -> RunGroup:
        self._count += 1
        root = str(event.data.get(key))
        group = RunGroup(self._count, turn, event.seq, root, event.type == "tool/call", event.time_us)
        self.unfinished[self._count] = self._by_root[root] = group
        return group

    def _ended(self, event: StoredEvent) -> RunGroup | None:
        if event.cites is not None:
            group = self._by_seq.pop(event.cites, None)
        else:
            group = self._by_root.get(_result_call(event.data))
        if group is not None:
            group.ended = True
        return group


def _result_call(data: Mapping[str, Any]) -> str:
    message = data.get("message")
    return str(message.get("callId")) if isinstance(message, dict) else ""
