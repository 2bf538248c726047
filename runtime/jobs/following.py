"""Following jobs: what callers read of them, how they wait for them, and how they ask them to stop (J7 to J11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import anyio

from ...registry import AbortError
from .numbers import checked_ms

if TYPE_CHECKING:
    from ...registry import ScopeKey, Signal
    from .job import JobSnapshot
    from .table import JobTable

__all__ = ["JobFollowing", "JobKill", "JobReading"]


@dataclass(frozen=True, slots=True)
class JobReading:
    """Output of a job, and the job as it was then."""

    text: str
    job: JobSnapshot


@dataclass(frozen=True, slots=True)
class JobKill:
    """What came of asking a job to stop (contract J10)."""

    outcome: Literal["requested", "already-finished"]
    job: JobSnapshot


class JobFollowing:
    """The part of `Jobs` that callers of all kinds follow jobs with; owned jobs are there for their owner's session.

    Args:
        table: the jobs.
    """

    def __init__(self, table: JobTable) -> None:
        self._table = table

    def get(self, job_id: str, *, caller: ScopeKey | None = None) -> JobSnapshot:
        """Returns a job as it is now.

        Args:
            job_id: the job.
            caller: who asks: owned jobs are there for callers of the owner's session alone (contract J7).

        Raises:
            UnknownJobError: there is none.
            JobAccessError: it belongs to another session.
        """
        return self._table.reachable(job_id, caller).snapshot()

    def snapshots(self, *, caller: ScopeKey | None = None) -> list[JobSnapshot]:
        """Returns the caller's jobs and those without owner, in the order of their start (contract J8)."""
        return [job.snapshot() for job in self._table.all() if job.may_be_reached_by(caller)]

    def read(self, job_id: str, *, caller: ScopeKey | None = None) -> JobReading:
        """Returns output: of a stream what is new, else the final output once there is one (contract J9).

        The end of a job that has ended counts as told then.

        Args:
            job_id: the job.
            caller: see `get`.

        Raises:
            UnknownJobError: there is none.
            JobAccessError: it belongs to another session.
            Exception: whatever `read_output` raised.
        """
        job = self._table.reachable(job_id, caller)
        text = job.read()
        if not job.live:
            job.reported = True
        return JobReading(text, job.snapshot())

    def kill(self, job_id: str, reason: str | None = None, *, caller: ScopeKey | None = None) -> JobKill:
        """Asks a job to stop; asking again asks again (contract J10).

        Args:
            job_id: the job.
            reason: why, for the job.
            caller: see `get`.

        Raises:
            UnknownJobError: there is none.
            JobAccessError: it belongs to another session.
            Exception: whatever `cancel` raised; nothing has changed.
        """
        job = self._table.reachable(job_id, caller)
        if not job.live:
            job.reported = True
            return JobKill("already-finished", job.snapshot())
        job.cancel(reason)
        self._table.stopping(job)
        return JobKill("requested", job.snapshot())

    async def wait(
        self, job_id: str, timeout_ms: float, *, caller: ScopeKey | None = None, signal: Signal | None = None
    ) -> JobSnapshot:
        """Waits until a job has ended, and returns it as it is then; as it is now when that takes too long (J11).

        Args:
            job_id: the job.
            timeout_ms: how long, in milliseconds.
            caller: see `get`.
            signal: gives the wait up; the job goes on.

        Raises:
            ValueError: the timeout is not positive and finite.
            UnknownJobError: there is none.
            JobAccessError: it belongs to another session.
            AbortError: the signal fired, and the job has not ended.
        """
        seconds = checked_ms("timeout_ms", timeout_ms) / 1000
        job = self._table.reachable(job_id, caller)
        if not job.live:
            return job.snapshot()
        if signal is not None and signal.aborted:
            raise AbortError("wait aborted", reason=signal.reason)
        key, released = object(), anyio.Event()
        job.waiters[key] = released
        unsubscribe = None if signal is None else signal.subscribe(lambda _reason: released.set())
        try:
            with anyio.move_on_after(seconds):
                await released.wait()
        finally:
            job.waiters.pop(key, None)
            if unsubscribe is not None:
                unsubscribe()
        # Asked in this order: an end that came before this task could go on has released it as well.
        if job.live and signal is not None and signal.aborted:
            raise AbortError("wait aborted", reason=signal.reason)
        return job.snapshot()
