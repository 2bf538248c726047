"""The calls of a log as spans, by OpenTelemetry's semantic conventions for generative AI; needs no OpenTelemetry.

    invoke_agent {agent}            one for each turn of a session; the trace is the turn
    └ execute_tool run_code         one for each call of the model
      └ execute_tool {tool}         one for each call of the program, below the call that made it
        └ background_job {kind}     one for each job, below the call that started it; it may end long after that

Ids are made of the session and of what the record says of the turn or the call, so the same call has the same ids in
every export. A span begins where the call began and lasts as long as the record says. One whose outcome is unknown
ends with the last instant that is known of its run, and says so: `ptc.outcome` is `outcome unknown`.

What an agent or a program was given, and what came of it, is left out unless it is asked for; the conventions want
that, because it may be private and large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...registry.lossless import to_json_text
from .reading import Run, read_session
from .span_groups import run_groups
from .span_jobs import JobSpans
from .span_record import ERROR_TYPES, AttributeValue, SpanEvent, SpanRecord, attributes, span_id, span_text, trace_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .reading import Call
    from .span_groups import RunGroup
    from .store import SessionInfo, StoredEvent

__all__ = ["AttributeValue", "SpanEvent", "SpanRecord", "session_spans"]


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

    def is_wanted(start_us: int) -> bool:
        return (since_us is None or start_us >= since_us) and (until_us is None or start_us < until_us)

    jobs = JobSpans(session, is_wanted, content=content)
    for group in run_groups(events, jobs):
        yield from jobs.ended()
        reading = read_session(session, group.events)
        for run in reading.runs:
            end_us = max(event.time_us for event in group.events)
            maker = _RunSpans(session, run, group, end_us, content=content)
            turn = None if group.turn is None else turns.setdefault(group.turn, _Turn(run.started_us))
            wanted = is_wanted(run.started_us)
            if turn is not None:
                turn.extend(run.started_us, maker.end_us, wanted=wanted)
            if wanted:
                yield from maker.spans()
    yield from jobs.all()
    for number, turn in turns.items():
        if turn.wanted:
            yield _agent_span(session, number, turn)


# The runs of a session, one by one -----------------------------------------------------------------------------------


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


# Spans --------------------------------------------------------------------------------------------------------------


class _RunSpans:
    """Makes the spans of one run."""

    def __init__(self, session: SessionInfo, run: Run, group: RunGroup, end_us: int, *, content: bool) -> None:
        self._session = session
        self._run = run
        self._group = group
        self._content = content
        self._times = {event.seq: event.time_us for event in group.events}
        calls = (run.call, *run.calls) if run.call is not None else run.calls
        ends = [call.started_us + round(call.duration_ms * 1000) for call in calls if call.duration_ms is not None]
        self.end_us = max(ends, default=end_us) if run.call is None or run.call.duration_ms is None else ends[0]
        self.end_us = max([self.end_us, *(call.started_us for call in calls)])
        self._ids = {call.call_id: span_id(session.id, f"call {call.seq} {call.call_id}") for call in calls}
        if group.called:
            self._ids[group.root] = span_id(session.id, f"call {group.first_seq} {group.root}")
        self._trace = group.trace_id(session.id)

    def spans(self) -> Iterator[SpanRecord]:
        """Yields the run's spans, those of a program's calls first."""
        for call in self._run.calls:
            yield self._span(call, self._ids.get(call.parent_call_id or ""))
        if self._run.call is not None:
            turn = self._group.turn
            parent = None if turn is None else span_id(self._session.id, f"turn {turn}")
            yield self._span(self._run.call, parent)

    def _span(self, call: Call, parent: int | None) -> SpanRecord:
        end_us = self.end_us if call.duration_ms is None else call.started_us + round(call.duration_ms * 1000)
        failed = call.outcome in ERROR_TYPES
        by = (
            f"denied by {call.decision.by}" if call.outcome == "denied" and call.decision and call.decision.by else None
        )
        return SpanRecord(
            trace_id=self._trace,
            span_id=self._ids[call.call_id],
            parent_id=parent,
            name=f"execute_tool {span_text(call.name)}",
            start_ns=call.started_us * 1000,
            end_ns=max(call.started_us, end_us) * 1000,
            attributes=self._attributes(call),
            events=tuple(self._events(call)),
            failed=failed,
            why=span_text(by or (call.error.name if call.error else call.outcome)) if failed else None,
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
        if call.outcome in ERROR_TYPES:
            told["error.type"] = call.error.code if call.error else ERROR_TYPES[call.outcome]
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
        return attributes(told)

    def _events(self, call: Call) -> Iterator[SpanEvent]:
        for approval in call.approvals:
            reason = approval.reason if self._content else None
            yield SpanEvent(
                "ptc.approval.asked", self._times[approval.seq] * 1000, attributes({"ptc.approval.reason": reason})
            )
            if approval.decided_seq is not None:
                detail = approval.detail if self._content else None
                answer = attributes({"ptc.approval.outcome": approval.outcome, "ptc.approval.detail": detail})
                yield SpanEvent("ptc.approval.decided", self._times[approval.decided_seq] * 1000, answer)


def _agent_span(session: SessionInfo, number: int, turn: _Turn) -> SpanRecord:
    return SpanRecord(
        trace_id=trace_id(session.id, f"turn {number}"),
        span_id=span_id(session.id, f"turn {number}"),
        parent_id=None,
        name=f"invoke_agent {span_text(session.agent)}",
        start_ns=turn.start_us * 1000,
        end_ns=max(turn.start_us, turn.end_us) * 1000,
        attributes=attributes(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": session.agent,
                "gen_ai.conversation.id": session.id,
                "ptc.turn": number,
                **{f"ptc.label.{key}": value for key, value in session.labels.items()},
            }
        ),
    )
