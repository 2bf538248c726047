"""A job in its owner's session: `job/started` before any of it runs, and `job/settled` when it has ended.

Both are log-only. They are paired by what the second cites, for ids count anew in each process.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from ...registry.pipeline.outcome import printable
from ..policies.record import log_needed, run_whole

if TYPE_CHECKING:
    from ...registry import JsonObject, ToolExecution
    from ..log import Session
    from .job import JobOutcome

__all__ = ["JobRecord"]

_LOGGER: Final = logging.getLogger("ptc.runtime")


class JobRecord:
    """The record of one job; without a session there is none.

    Args:
        session: the owner's session.
        job_id: the job's id.
    """

    __slots__ = ("_job_id", "_seq", "_session")

    def __init__(self, session: Session | None, job_id: str) -> None:
        self._session = session
        self._job_id = job_id
        self._seq: int | None = None

    async def start(self, kind: str, label: str, limit: int | None, call: ToolExecution | None) -> None:
        """Records that the job is about to start.

        Args:
            kind: what sort of work it is.
            label: what it is.
            limit: its `output_limit_bytes`.
            call: the call that starts it.

        Raises:
            LogUnavailableError: that cannot be recorded, so the job must not run.
        """
        session = self._session
        if session is None:
            return
        event: JsonObject = {"jobId": self._job_id, "kind": kind, "label": printable(label)}
        if limit is not None:
            event["outputLimitBytes"] = limit
        if call is not None:
            event["callId"] = call.call_id
            event["rootCallId"] = call.root_call_id

        async def record() -> None:
            self._seq = await session.append("job/started", event)

        with log_needed("the background job could not be recorded, so it was not started"):
            await run_whole(record)

    async def settle(self, outcome: JobOutcome) -> None:
        """Records how the job ended, whoever is cancelled. What fails is logged: the job has ended all the same."""
        session, started = self._session, self._seq
        if session is None or started is None:
            return
        event: JsonObject = {"jobId": self._job_id, "status": outcome.status}
        if outcome.detail is not None:
            event["detail"] = outcome.detail
        try:
            with anyio.CancelScope(shield=True):
                await session.append("job/settled", event, cites=started)
        except Exception:
            _LOGGER.exception("the record of job %s has no end", self._job_id)
