"""The record of one approval question, and of its answer (contract I12)."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Final

import anyio

from ...registry import approval_detail
from .record import run_whole

if TYPE_CHECKING:
    from ...registry import ApprovalOutcome, ApprovalRequest, JsonObject
    from ..agent import Agent

__all__ = ["OUTCOMES", "Question"]

OUTCOMES: Final[dict[object, ApprovalOutcome]] = {
    "allowed-once": "allowed-once",
    "rejected": "rejected",
    "cancelled": "cancelled",
    "unavailable": "unavailable",
}
"""The answers that there are, by their text."""

_LOGGER: Final = logging.getLogger("ptc.runtime")
_ID_BYTES: Final = 8


class Question:
    """One question on record: asked once, and then decided once, whoever fails or is cancelled (contract I12).

    Without a session it is nowhere on record.
    """

    __slots__ = ("_id", "_request", "_seq", "_session")

    def __init__(self, agent: Agent, request: ApprovalRequest) -> None:
        self._session = agent.session
        self._request = request
        self._id = f"approval_{secrets.token_hex(_ID_BYTES)}"
        self._seq: int | None = None

    async def ask(self) -> None:
        """Records the question."""
        session, request = self._session, self._request
        if session is None:
            return
        data: JsonObject = {"id": self._id, "toolName": request.tool_name}
        if request.call_id is not None:
            data["callId"] = request.call_id
        if request.reason is not None:
            data["reason"] = request.reason

        async def record() -> None:
            self._seq = await session.append("approval/asked", data)

        await run_whole(record)

    async def close(self, outcome: ApprovalOutcome) -> None:
        """Records the answer, if the question is on record."""
        session, asked = self._session, self._seq
        if session is None or asked is None:
            return
        data: JsonObject = {"id": self._id, "outcome": OUTCOMES[outcome]}
        detail = approval_detail(outcome)
        if detail is not None:
            data["detail"] = detail

        async def record() -> None:
            await session.append("approval/decided", data, cites=asked)

        await run_whole(record)

    async def abandon(self) -> None:
        """Closes a question whose asker does not wait any more; logs what fails, for something is on its way out."""
        try:
            with anyio.CancelScope(shield=True):
                await self.close("cancelled")
        except Exception:
            _LOGGER.exception('the record of the approval of tool "%s" has no end', self._request.tool_name)
