"""A job that is an async function: its task, its output and its end (contract J4, J6)."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, TypeAlias

import anyio

from ...registry.events import describe_answer
from ...registry.pipeline.outcome import error_of, printable
from ...registry.pipeline.shelter import await_foreign
from .job import JobOutcome, as_outcome
from .output import DEFAULT_BUFFER_BYTES, OutputBuffer

__all__ = ["FunctionJob", "JobContext", "JobFunction"]

_LOGGER: Final = logging.getLogger("ptc.runtime")


class JobContext:
    """What the function of a job is given."""

    __slots__ = ("_buffer", "_job")

    def __init__(self, job: FunctionJob, buffer: OutputBuffer) -> None:
        self._job = job
        self._buffer = buffer

    @property
    def cancelled(self) -> bool:
        """Whether the job was asked to stop. Whatever the function awaits is cancelled then."""
        return self._job.cancelled

    @property
    def reason(self) -> str | None:
        """Why it was asked to stop, if anybody has said so."""
        return self._job.reason

    def write(self, text: str) -> None:
        """Adds to the job's output; may be called from any thread.

        Until somebody reads it, the latest output is kept: as many UTF-8 bytes as the job's `output_limit_bytes` says,
        or 1 MiB. Older output is dropped, and the next reader is told how much.

        Raises:
            TypeError: it is no text.
        """
        self._buffer.write(text)


JobFunction: TypeAlias = Callable[[JobContext], Awaitable["str | JobOutcome | None"]]
"""An async function that is a job. Text that it returns is the end of its output."""


class _End:
    """The end of a function, for those who await it."""

    __slots__ = ("_job",)

    def __init__(self, job: FunctionJob) -> None:
        self._job = job

    def __await__(self) -> Generator[Any, Any, JobOutcome]:
        return self._job.wait().__await__()


class FunctionJob:
    """The `RunningJob` of an async function.

    Args:
        function: the function.
        limit: how much unread output is kept, in UTF-8 bytes; 1 MiB when `None`.
    """

    def __init__(self, function: JobFunction, limit: int | None) -> None:
        self._buffer = OutputBuffer(DEFAULT_BUFFER_BYTES if limit is None else limit)
        self._scope = anyio.CancelScope(shield=True)
        self._ended = anyio.Event()
        self._outcome = JobOutcome(status="failed")
        self.done: Final = _End(self)
        self.cancelled = False
        self.reason: str | None = None
        body = function(JobContext(self, self._buffer))
        if not inspect.isawaitable(body):
            raise TypeError(f"the function of a job must be async; it returned {describe_answer(body)} at once")
        self._body: Awaitable[object] = body

    def cancel(self, reason: str | None = None) -> None:
        """Cancels whatever the function awaits."""
        if not self.cancelled:
            self.cancelled = True
            self.reason = None if reason is None else printable(reason)
        self._scope.cancel()

    def read_output(self) -> str:
        return self._buffer.take()

    async def run(self) -> None:
        """Runs the function to its end; only the job's own `cancel` interrupts it."""
        try:
            with self._scope:
                self._outcome = self._end(await await_foreign(self._body))
            if self._scope.cancelled_caught:
                self._outcome = JobOutcome(status="killed", detail=self.reason)
        except Exception as error:
            _LOGGER.warning("the function of a background job raised", exc_info=error)
            self._outcome = JobOutcome(status="failed", detail=error_of(error).message)
        finally:
            self._ended.set()

    async def wait(self) -> JobOutcome:
        """Returns the outcome, once the function has ended."""
        await self._ended.wait()
        return self._outcome

    def _end(self, returned: object) -> JobOutcome:
        if isinstance(returned, str):
            self._buffer.write(returned)
            returned = None
        if returned is None:
            return JobOutcome(status="completed")
        if not isinstance(returned, JobOutcome):
            raise TypeError(
                f"the function of a job returns text, a JobOutcome or None, not {describe_answer(returned)}"
            )
        outcome = as_outcome(returned)
        if outcome.output is not None:
            self._buffer.write(outcome.output)
        return outcome
