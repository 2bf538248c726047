"""The record of a batch: a call and a result event for each of its calls, in its agent's session (contract D16, I3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from .argument_text import argument_text
from .execution import ToolFailure
from .values import MISSING, JsonObject, JsonValue

if TYPE_CHECKING:
    from .execution import BatchLog, ToolBatchInput, ToolCall, ToolExecutionResult
    from .scopes import SessionLog

__all__ = ["BatchRecord"]


class BatchRecord:
    """Writes the root events of a batch, or nothing when it has no log (contract D16, D17, I3, I4)."""

    __slots__ = ("_log", "_session")

    def __init__(self, batch: ToolBatchInput) -> None:
        self._log: BatchLog | None = batch.log
        agent = batch.agent
        self._session: SessionLog | None = None if agent is None or batch.log is None else agent.session

    async def called(self, call_id: str, call: ToolCall) -> int | None:
        """Records that a call starts; returns the sequence number of the event."""
        if self._session is None:
            return None
        data: JsonObject = {
            **self._place(),
            "callId": call_id,
            "name": call.name,
            "arguments": argument_text(call.arguments),
        }
        return await self._append("tool/call", data)

    async def settled(
        self, call_id: str, seq: int | None, result: ToolExecutionResult, decision: JsonObject | None
    ) -> None:
        """Records what came of a call; the value itself is never recorded.

        Args:
            call_id: the call's id.
            seq: the sequence number of its `tool/call` event.
            result: what came of it.
            decision: who decided, see `PipelineCall.decision_record`.
        """
        if self._session is None:
            return
        message: JsonObject = {
            "role": "tool",
            "callId": call_id,
            "content": list[JsonValue](result.content),  # pyright: ignore[reportArgumentType] - blocks are JSON
            "isError": result.is_error,
        }
        data: JsonObject = {**self._place(), "message": message}
        if isinstance(result, ToolFailure) and result.error.info is not None:
            info = result.error.info
            error: JsonObject = {"name": info.name, "code": info.code}
            if info.reason is not None:
                error["reason"] = info.reason
            data["error"] = error
        if result.meta is not MISSING:
            data["meta"] = result.meta
        if decision is not None:
            data["decision"] = decision
        await self._append("tool/result", data, cites=seq)

    async def _append(self, type_: str, data: JsonObject, *, cites: int | None = None) -> int:
        """Appends in a shielded scope: an event is recorded or not, and never half known to be."""
        assert self._session is not None
        with anyio.CancelScope(shield=True):
            return await self._session.append(type_, data, cites=cites)
        raise AssertionError("nobody cancels this scope")  # it could be left without a value only then

    def _place(self) -> JsonObject:
        assert self._log is not None
        return {"turn": self._log.turn, "step": self._log.step}
