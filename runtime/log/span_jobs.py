"""The spans of background jobs, which may end long after the run that started them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .events import JobSettled, JobStarted, read_event
from .span_record import ERROR_TYPES, AttributeValue, SpanRecord, attributes, span_id, span_text, trace_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .span_groups import RunGroup
    from .store import SessionInfo, StoredEvent

__all__ = ["JobSpans"]


class JobSpans:
    """Makes the spans of the jobs of one session. It keeps in mind those that have not ended.

    Args:
        session: the session.
        is_wanted: tells by the time at which a run began whether its jobs are wanted; those of no run go by their own.
        content: whether labels and details are told.
    """

    def __init__(self, session: SessionInfo, is_wanted: Callable[[int], bool], *, content: bool) -> None:
        self._session = session
        self._is_wanted = is_wanted
        self._content = content
        self._open: dict[int, tuple[StoredEvent, JobStarted, RunGroup | None, int | None]] = {}
        self._ended: list[SpanRecord] = []
        self._last_us = 0

    def take(self, event: StoredEvent, group: RunGroup | None) -> None:
        """Takes in that a job has started, in a run if in any, or that one has ended."""
        payload = read_event(event)
        self._last_us = max(self._last_us, event.time_us)
        if isinstance(payload, JobStarted):
            if self._is_wanted(event.time_us if group is None else group.start_us):
                parent = None if group is None else group.span_id(self._session.id, payload.call_id)
                self._open[event.seq] = event, payload, group, parent
        elif isinstance(payload, JobSettled) and event.cites in self._open:
            started, start, group, parent = self._open.pop(event.cites)
            end_us = started.time_us + round(event.ms_since(started) * 1000)
            self._ended.append(self._span(started, start, group, parent, end_us, payload))

    def ended(self) -> Iterator[SpanRecord]:
        """Yields the spans of jobs that have ended since the last time."""
        ended, self._ended = self._ended, []
        yield from ended

    def all(self) -> Iterator[SpanRecord]:
        """Yields the spans that are left, those of jobs without an end too."""
        yield from self.ended()
        for started, start, group, parent in self._open.values():
            yield self._span(started, start, group, parent, max(self._last_us, started.time_us), None)

    def _span(
        self,
        started: StoredEvent,
        start: JobStarted,
        group: RunGroup | None,
        parent: int | None,
        end_us: int,
        settle: JobSettled | None,
    ) -> SpanRecord:
        session, failed = self._session, settle is not None and settle.status == "failed"
        what = f"job {started.seq} {start.job_id}"
        told: dict[str, AttributeValue | None] = {
            "gen_ai.agent.name": session.agent,
            "gen_ai.conversation.id": session.id,
            "gen_ai.tool.call.id": start.call_id,
            "ptc.run": None if group is None else f"{session.id}/{group.number}",
            "ptc.job.id": start.job_id,
            "ptc.job.kind": start.kind,
            "ptc.job.status": "outcome unknown" if settle is None else settle.status,
            "ptc.seq": started.seq,
        }
        if failed:
            told["error.type"] = ERROR_TYPES["failed"]
        if self._content:
            told["ptc.job.label"] = start.label
            told["ptc.job.detail"] = None if settle is None else settle.detail
        return SpanRecord(
            trace_id=trace_id(session.id, what) if group is None else group.trace_id(session.id),
            span_id=span_id(session.id, what),
            parent_id=parent,
            name=f"background_job {span_text(start.kind)}",
            start_ns=started.time_us * 1000,
            end_ns=max(started.time_us, end_us) * 1000,
            attributes=attributes(told),
            failed=failed,
            why="failed" if failed else None,
        )
