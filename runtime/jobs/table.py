"""The jobs that there are, and how each comes to its end (contract J6, J7, J12, J13)."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

import anyio

from ...registry.pipeline.outcome import message_of
from ...registry.pipeline.shelter import await_foreign
from .errors import JobAccessError, UnknownJobError
from .job import Job, JobChange, JobOutcome, as_outcome
from .numbers import checked_count, checked_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio.abc import TaskGroup

    from ...registry import ScopeKey
    from ..agent import Agent
    from .audience import Audience
    from .notices import Notices

__all__ = ["JobTable", "now_ms"]

_LOGGER: Final = logging.getLogger("ptc.runtime")


class JobTable:
    """Keeps jobs from their start until they are dropped.

    Args:
        audience: who is told.
        notices: tells models.
        keep_finished: how many jobs that have ended are kept for one owner.
        stop_timeout_ms: how long jobs may take to end when they are told to.
    """

    def __init__(self, audience: Audience, notices: Notices, keep_finished: int, stop_timeout_ms: float) -> None:
        self._audience = audience
        self._notices = notices
        self._keep_finished = checked_count("keep_finished", keep_finished)
        self._stop_timeout = checked_ms("stop_timeout_ms", stop_timeout_ms) / 1000
        self._jobs: dict[str, Job] = {}
        self.tasks: TaskGroup | None = None
        self.closing = False

    @property
    def open(self) -> bool:
        """Whether jobs can be added."""
        return self.tasks is not None and not self.closing

    def all(self) -> list[Job]:
        """Returns all jobs, in the order of their start."""
        return list(self._jobs.values())

    def of(self, owner: Agent | None) -> Sequence[Job]:
        """Returns the jobs of exactly this owner, or those without one."""
        return [job for job in self._jobs.values() if job.owner is owner]

    def reachable(self, job_id: str, caller: ScopeKey | None) -> Job:
        """Returns a job that a caller may reach (contract J7).

        Raises:
            UnknownJobError: there is none.
            JobAccessError: it belongs to another session.
        """
        job = self._jobs.get(job_id)
        if job is None:
            raise UnknownJobError(f"unknown job {job_id}")
        if not job.may_be_reached_by(caller):
            raise JobAccessError(f"job {job_id} belongs to another session")
        return job

    def add(self, job: Job) -> None:
        """Keeps a job that has started, and waits for its end."""
        assert self.tasks is not None
        self._jobs[job.id] = job
        self.tasks.start_soon(self._watch, job)
        self._audience.changed(JobChange("started", job.snapshot()))

    def stopping(self, job: Job) -> None:
        """Notes that a job was told to stop, and that whoever did so knows how it will end."""
        job.reported = True
        if job.status == "running":
            job.status = "stopping"
            self._audience.changed(JobChange("stopping", job.snapshot()))

    async def end(self, jobs: Sequence[Job], reason: str) -> None:
        """Cancels jobs, waits until they have ended, and drops them (contract J13)."""
        for job in jobs:
            if not job.live:
                continue
            job.reported = True
            try:
                job.cancel(reason)
            except Exception as error:
                _LOGGER.warning("job %s could not be cancelled", job.id, exc_info=error)
                await self._orphan(job, f"orphaned: it could not be cancelled ({message_of(error)})")
            else:
                self.stopping(job)
        with anyio.move_on_after(self._stop_timeout):
            for job in jobs:
                await job.ended.wait()
        for job in jobs:
            if job.live:
                _LOGGER.warning("job %s did not end within %g s", job.id, self._stop_timeout)
                await self._orphan(job, f"orphaned: it did not end within {self._stop_timeout:g} s")
            if self._jobs.get(job.id) is job:
                self._drop(job)

    async def _watch(self, job: Job) -> None:
        """Waits for the end of a job, which nothing but `job.watching` breaks off."""
        outcome: JobOutcome | None = None
        with job.watching:
            outcome = await _outcome(job)
        if outcome is not None:
            await self._settle(job, outcome)

    async def _settle(self, job: Job, outcome: JobOutcome) -> None:
        """Ends a job that has no end yet: record, waiters, observers, listeners, and then the model (contract J12)."""
        if job.claimed:
            return
        job.claimed = True
        await job.record.settle(outcome)
        job.status, job.detail = outcome.status, outcome.detail
        job.output = outcome.output or ""
        job.finished_at = now_ms()
        job.reported = job.reported or bool(job.waiters)
        for released in job.waiters.values():
            released.set()
        job.ended.set()
        self._audience.changed(JobChange("settled", job.snapshot()))
        if not self.closing:
            self._audience.done(job.snapshot, job.owner)
            if job.owner is not None and not job.reported:
                self._notices.tell(job.owner, job.snapshot())
        self._forget(job.owner)

    async def _orphan(self, job: Job, detail: str) -> None:
        """Ends a job that will not end by itself, and waits for it no more."""
        if job.claimed:
            await job.ended.wait()  # its end is being recorded
            return
        await self._settle(job, JobOutcome(status="failed", detail=detail))
        job.watching.cancel()

    def _forget(self, owner: Agent | None) -> None:
        """Drops the oldest jobs of an owner that has too many ended ones, first those whose end has been told."""
        ended = [job for job in self.of(owner) if not job.live]
        excess = len(ended) - self._keep_finished
        if excess > 0:
            for job in sorted(ended, key=lambda job: not job.reported)[:excess]:
                self._drop(job)

    def _drop(self, job: Job) -> None:
        del self._jobs[job.id]
        self._audience.changed(JobChange("removed", job.snapshot()))


async def _outcome(job: Job) -> JobOutcome:
    """Awaits a job; what raises, or settles with no outcome, is a breach of its promise (contract J6)."""
    try:
        return as_outcome(await await_foreign(job.running.done))
    except Exception as error:
        if isinstance(error.__cause__, anyio.get_cancelled_exc_class()) and job.status == "stopping":
            return JobOutcome(status="killed")  # `done` is a task that `cancel` has cancelled
        _LOGGER.warning("done of job %s must settle with an outcome, and did not", job.id, exc_info=error)
        return JobOutcome(status="failed", detail=message_of(error))


def now_ms() -> int:
    """Returns the time in milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000
