"""The calls of a log as spans, by OpenTelemetry's semantic conventions for generative AI; needs no OpenTelemetry.

    invoke_agent {agent}            one for each turn of a session; the trace is the turn
    └ execute_tool run_code         one for each call of the model
      └ execute_tool {tool}         one for each call of the program, below the call that made it

Ids are made of the session and of what the record says of the turn or the call, so the same call has the same ids in
every export. A span begins where the call began and lasts as long as the record says. One whose outcome is unknown
ends with the last instant that is known of its run, and says so: `ptc.outcome` is `outcome unknown`.

What an agent or a program was given, and what came of it, is left out unless it is asked for; the conventions want
that, because it may be private and large.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...registry.lossless import to_json_text
from .events import read_event
from .reading import Run, read_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .reading import Call
    from .store import SessionInfo, StoredEvent

__all__ = ["AttributeValue", "SpanEvent", "SpanRecord", "session_spans"]

AttributeValue: TypeAlias = str | int | float | bool

_MOST_CHARS: Final = 64 * 1024
"""The longest text of an attribute, in characters."""

_ERRORS: Final = {"denied": "denied", "cancelled": "cancelled", "failed": "_OTHER"}
"""The class of an error whose code is not recorded, by the call's outcome; `_OTHER` is the conventions' own."""


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened at one instant of a span: its name, when in ns since 1970 UTC, and its attributes."""

    name: str
    time_ns: int
    attributes: Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    """One span.

    Attributes:
        trace_id: 128 bits.
        span_id: 64 bits.
        parent_id: the span that it is part of; `None` for the outermost.
        name: as the conventions have it, for example `execute_tool search`.
        start_ns: when it began, in ns since 1970 UTC.
        end_ns: when it ended.
        attributes: what is told of it.
        events: what happened meanwhile.
        failed: whether its status is an error.
        why: the description of that status.
    """

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, AttributeValue]
    events: tuple[SpanEvent, ...] = ()
    failed: bool = False
    why: str | None = None


def session_spans(
    session: SessionInfo,
    events: Iterable[StoredEvent],
    *,
    since_us: int | None = None,
    until_us: int | None = None,
    content: bool = False,
) -> Iterator[SpanRecord]:
    """Yields the spans of a session. It keeps the events of runs in mind that have not ended, and no others.

    Args:
        session: the session.
        events: all its events, in order.
        since_us: leaves out runs that started before this time, in microseconds since 1970 UTC.
        until_us: leaves out runs that started at this time or later.
        content: adds arguments, results and reasons, each cut to 65,536 characters.

    Raises:
        UnknownEventError: an event has a type that this version does not know (contract I15).
        LogUnavailableError: an event is not what its type says.
    """
    turns: dict[int, _Turn] = {}
    for group in _groups(events):
        reading = read_session(session, group.events)
        for run in reading.runs:
            end_us = max(event.time_us for event in group.events)
            maker = _RunSpans(session, run, group, end_us, content=content)
            turn = None if group.turn is None else turns.setdefault(group.turn, _Turn(run.started_us))
            wanted = (since_us is None or run.started_us >= since_us) and (
                until_us is None or run.started_us < until_us
            )
            if turn is not None:
                turn.extend(run.started_us, maker.end_us, wanted=wanted)
            if wanted:
                yield from maker.spans()
    for number, turn in turns.items():
        if turn.wanted:
            yield _agent_span(session, number, turn)


# The runs of a session, one by one -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Group:
    """The events of one run while they are gathered, and again when more of its calls start after its end.

    Attributes:
        number: which run of the session it is.
        turn: the turn of the model's call; `None` when that was not recorded.
        first_seq: the event with which the run begins.
        root: the id of the model's call.
    """

    number: int
    turn: int | None
    first_seq: int
    root: str
    called: bool
    events: list[StoredEvent] = field(default_factory=list["StoredEvent"])
    open_calls: set[str] = field(default_factory=set[str])
    ended: bool = False


@dataclass(slots=True)
class _Turn:
    """What is known of one turn."""

    start_us: int
    end_us: int = 0
    wanted: bool = False

    def extend(self, start_us: int, end_us: int, *, wanted: bool) -> None:
        self.start_us = min(self.start_us, start_us)
        self.end_us = max(self.end_us, end_us)
        self.wanted = self.wanted or wanted


def _groups(events: Iterable[StoredEvent]) -> Iterator[_Group]:
    """Sorts events into runs; gives each run when it has ended, and at last those that have not."""
    sorter = _Sorter()
    for event in events:
        group = sorter.group_of(event)
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
        self.unfinished: dict[int, _Group] = {}
        self._count = 0
        self._by_root: dict[str, _Group] = {}
        self._by_seq: dict[int, _Group] = {}
        self._by_call: dict[str, _Group] = {}
        self._by_question: dict[str, _Group] = {}

    def group_of(self, event: StoredEvent) -> _Group | None:
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
                group.open_calls.add(call)
                return group
            case "tool/ptc-dispatch" | "tool/code-dispatch":
                call = str(data.get("subCallId"))
                group = self._by_call.pop(call, None)
                if group is not None:
                    group.open_calls.discard(call)
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
            case _:
                read_event(event)  # refuses what this version does not know
                return None

    def _new(self, event: StoredEvent, key: str, turn: int | None) -> _Group:
        self._count += 1
        root = str(event.data.get(key))
        group = _Group(self._count, turn, event.seq, root, event.type == "tool/call")
        self.unfinished[self._count] = self._by_root[root] = group
        return group

    def _ended(self, event: StoredEvent) -> _Group | None:
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


# Spans --------------------------------------------------------------------------------------------------------------


class _RunSpans:
    """Makes the spans of one run."""

    def __init__(self, session: SessionInfo, run: Run, group: _Group, end_us: int, *, content: bool) -> None:
        self._session = session
        self._run = run
        self._group = group
        self._content = content
        self._times = {event.seq: event.time_us for event in group.events}
        calls = (run.call, *run.calls) if run.call is not None else run.calls
        ends = [call.started_us + round(call.duration_ms * 1000) for call in calls if call.duration_ms is not None]
        self.end_us = max(ends, default=end_us) if run.call is None or run.call.duration_ms is None else ends[0]
        self.end_us = max([self.end_us, *(call.started_us for call in calls)])
        self._ids = {call.call_id: _span_id(session.id, f"call {call.seq} {call.call_id}") for call in calls}
        if group.called:
            self._ids[group.root] = _span_id(session.id, f"call {group.first_seq} {group.root}")
        if group.turn is not None:
            self._trace = _trace_id(session.id, f"turn {group.turn}")
        else:
            self._trace = _trace_id(session.id, f"call {group.first_seq} {group.root}")

    def spans(self) -> Iterator[SpanRecord]:
        """Yields the run's spans, those of a program's calls first."""
        for call in self._run.calls:
            yield self._span(call, self._ids.get(call.parent_call_id or ""))
        if self._run.call is not None:
            turn = self._group.turn
            parent = None if turn is None else _span_id(self._session.id, f"turn {turn}")
            yield self._span(self._run.call, parent)

    def _span(self, call: Call, parent: int | None) -> SpanRecord:
        end_us = self.end_us if call.duration_ms is None else call.started_us + round(call.duration_ms * 1000)
        failed = call.outcome in _ERRORS
        by = (
            f"denied by {call.decision.by}" if call.outcome == "denied" and call.decision and call.decision.by else None
        )
        return SpanRecord(
            trace_id=self._trace,
            span_id=self._ids[call.call_id],
            parent_id=parent,
            name=f"execute_tool {_text(call.name)}",
            start_ns=call.started_us * 1000,
            end_ns=max(call.started_us, end_us) * 1000,
            attributes=self._attributes(call),
            events=tuple(self._events(call)),
            failed=failed,
            why=_text(by or (call.error.name if call.error else call.outcome)) if failed else None,
        )

    def _attributes(self, call: Call) -> dict[str, AttributeValue]:
        told: dict[str, AttributeValue | None] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": self._session.agent,
            "gen_ai.conversation.id": self._session.id,
            "ptc.run": f"{self._session.id}/{self._group.number}",
            "ptc.outcome": call.outcome,
            "ptc.line": call.line,
            "ptc.seq": call.seq,
            "ptc.settled_seq": call.settled_seq,
        }
        if call.outcome in _ERRORS:
            told["error.type"] = call.error.code if call.error else _ERRORS[call.outcome]
        if call.decision is not None:
            told["ptc.decision.outcome"] = call.decision.outcome
            told["ptc.decision.by"] = call.decision.by
            told["ptc.decision.approval"] = call.decision.approval
        if self._content:
            arguments = call.arguments
            raw = call.parent_call_id is None and isinstance(arguments, str)
            told["gen_ai.tool.call.arguments"] = str(arguments) if raw else to_json_text(arguments)
            told["gen_ai.tool.call.result"] = (
                None if call.content is None else to_json_text(list(map(dict, call.content)))
            )
            told["ptc.error.reason"] = call.error.reason if call.error else None
        return _attributes(told)

    def _events(self, call: Call) -> Iterator[SpanEvent]:
        for approval in call.approvals:
            reason = approval.reason if self._content else None
            yield SpanEvent(
                "ptc.approval.asked", self._times[approval.seq] * 1000, _attributes({"ptc.approval.reason": reason})
            )
            if approval.decided_seq is not None:
                answer = _attributes({"ptc.approval.outcome": approval.outcome})
                yield SpanEvent("ptc.approval.decided", self._times[approval.decided_seq] * 1000, answer)


def _agent_span(session: SessionInfo, number: int, turn: _Turn) -> SpanRecord:
    return SpanRecord(
        trace_id=_trace_id(session.id, f"turn {number}"),
        span_id=_span_id(session.id, f"turn {number}"),
        parent_id=None,
        name=f"invoke_agent {_text(session.agent)}",
        start_ns=turn.start_us * 1000,
        end_ns=max(turn.start_us, turn.end_us) * 1000,
        attributes=_attributes(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": session.agent,
                "gen_ai.conversation.id": session.id,
                "ptc.turn": number,
                **{f"ptc.label.{key}": value for key, value in session.labels.items()},
            }
        ),
    )


def _attributes(told: Mapping[str, AttributeValue | None]) -> dict[str, AttributeValue]:
    kept = {_text(key): value for key, value in told.items() if value is not None}
    return {key: _text(value) if isinstance(value, str) else value for key, value in kept.items()}


def _text(text: str) -> str:
    """Cuts a text, and makes one of it that UTF-8 can carry."""
    kept = text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}… ({len(text):,} characters)"
    return kept.encode("utf-8", "backslashreplace").decode()


def _trace_id(session: str, what: str) -> int:
    return int.from_bytes(sha256(f"ptc-trace 1\n{session}\n{what}".encode()).digest()[:16]) or 1


def _span_id(session: str, what: str) -> int:
    return int.from_bytes(sha256(f"ptc-span 1\n{session}\n{what}".encode()).digest()[:8]) or 1
