"""Pairs the starts and ends of background jobs, and both with the calls that started them.

A job goes on after its call, so its end stands anywhere behind; it is found by what it cites, because each process
counts the ids of jobs anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .events import JobSettled, JobStarted

if TYPE_CHECKING:
    from .store import StoredEvent

__all__ = ["BackgroundJob", "BackgroundJobs", "JobEnd"]

JobEnd = Literal["completed", "killed", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundJob:
    """Work that a call has started and that went on after it.

    Attributes:
        job_id: its id, which programs and models know it by.
        kind: what sort of work it is.
        label: what it is.
        call_id: the call that started it, as the record says; `None` when it does not.
        status: how it ended; `None` while it runs, or when its process ended before it could say.
        detail: what was said of its end.
        started_us: when it started, in microseconds since 1970 UTC.
        duration_ms: how long it took, in milliseconds with a fraction; `None` without an end.
        seq: the event that started it.
        settled_seq: the event that ended it.
    """

    job_id: str
    kind: str
    label: str
    call_id: str | None
    status: JobEnd | None
    detail: str | None
    started_us: int
    duration_ms: float | None
    seq: int
    settled_seq: int | None


@dataclass(slots=True)
class _Job:
    """A job while its events are gathered."""

    started: StoredEvent
    start: JobStarted
    call_seq: int | None
    settled: StoredEvent | None = None
    settle: JobSettled | None = None


class BackgroundJobs:
    """The jobs of one session, gathered in order."""

    def __init__(self) -> None:
        self._by_seq: dict[int, _Job] = {}

    def started(self, event: StoredEvent, start: JobStarted, call_seq: int | None) -> str | None:
        """Takes a start in; `call_seq` is the event that started its call, `None` when the session has none such.

        Returns:
            what is wrong with it, or `None`.
        """
        if not start.job_id:
            return "the job's id is empty"
        self._by_seq[event.seq] = _Job(event, start, call_seq)
        return None

    def settled(self, event: StoredEvent, settle: JobSettled) -> str | None:
        """Takes an end in, and returns what is wrong with it, or `None`."""
        job = None if event.cites is None else self._by_seq.get(event.cites)
        if job is None:
            return "the end is of no job that was recorded"
        if job.settled is not None:
            return "the job has ended already"
        if settle.job_id != job.start.job_id:
            return f"the end is of job {settle.job_id!r} and cites the start of {job.start.job_id!r}"
        job.settled, job.settle = event, settle
        return None

    def by_call(self) -> dict[int | None, list[BackgroundJob]]:
        """Returns all jobs by the event that started their call; those of no call in the session under `None`."""
        found: dict[int | None, list[BackgroundJob]] = {}
        for job in self._by_seq.values():
            found.setdefault(job.call_seq, []).append(_job(job))
        return found


def _job(job: _Job) -> BackgroundJob:
    started, start, settled, settle = job.started, job.start, job.settled, job.settle
    return BackgroundJob(
        job_id=start.job_id,
        kind=start.kind,
        label=start.label,
        call_id=start.call_id,
        status=settle.status if settle else None,
        detail=settle.detail if settle else None,
        started_us=started.time_us,
        duration_ms=settled.ms_since(started) if settled else None,
        seq=started.seq,
        settled_seq=settled.seq if settled else None,
    )
