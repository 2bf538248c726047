"""Follows the calls of a host, and leads each to the exchange that it belongs to: progress, and questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ...registry import ToolFailure
from ..mcp import ElicitAnswer
from .questions import approval_outcome, approval_question, cannot_ask, plain, server_question

if TYPE_CHECKING:
    from ...registry import ApprovalOutcome, ApprovalRequest, Next, PreToolDecision, ToolExecution, ToolExecutionResult
    from ..host import Host
    from ..mcp import ElicitRequest, McpProgress
    from .exchange import Exchange

__all__ = ["Watching"]

_SUB_CALL: Final = ":ptc:"
_MAX_NAME: Final = 200
_MAX_TOLD: Final = 500


class Watching:
    """Listens to a host.

    Args:
        host: the host.
        exchanges: the exchanges that there are, by the ids of their calls.
        asks: whether users are asked for approval.
    """

    def __init__(self, host: Host, exchanges: Mapping[str, Exchange], *, asks: bool) -> None:
        self._exchanges = exchanges
        self._asks = asks
        host.on("tools/pre-execute", self._begins, prepend=True)
        host.on("tools/result", self._ended)
        host.on("approval/request", self._approve)

    async def _begins(self, call: ToolExecution, next_: Next[PreToolDecision], /) -> PreToolDecision:
        exchange = self._exchanges.get(call.root_call_id)
        if exchange is not None and call.parent is not None:
            exchange.tell(f"{plain(call.name, _MAX_NAME)}: called")
        return await next_()

    def _ended(self, call: ToolExecution, result: ToolExecutionResult, /) -> None:
        exchange = self._exchanges.get(call.root_call_id)
        if exchange is not None and call.parent is not None:
            failed = isinstance(result, ToolFailure)
            how = f"failed: {plain(result.error.message, _MAX_TOLD)}" if failed else "done"
            exchange.tell(f"{plain(call.name, _MAX_NAME)}: {how}")

    async def _approve(self, request: ApprovalRequest, next_: Next[ApprovalOutcome], /) -> ApprovalOutcome:
        exchange = self._exchanges.get((request.call_id or "").partition(_SUB_CALL)[0])
        if exchange is None or not self._asks:
            return await next_()
        if not exchange.can_ask:
            return cannot_ask()
        question = approval_question(exchange.next_key(), request, exchange.purpose)
        return approval_outcome(await exchange.ask(question))

    def on_progress(self, progress: McpProgress) -> None:
        """Passes on how far an MCP server is with a call."""
        exchange = self._exchanges.get(progress.exec.root_call_id)
        if exchange is not None:
            total = "" if progress.total is None else f" of {progress.total:g}"
            said = "" if not progress.message else f": {plain(progress.message, _MAX_TOLD)}"
            exchange.tell(f"{plain(progress.exec.name, _MAX_NAME)}: {progress.progress:g}{total}{said}")

    async def elicit(self, request: ElicitRequest) -> ElicitAnswer:
        """Passes on the question of an MCP server, to the client whose call it is about.

        Where that is not clear, or the client cannot ask, or nobody may be asked, the server is told that no choice was
        made.
        """
        found = {call.root_call_id: self._exchanges.get(call.root_call_id) for call in request.calls}
        exchange = next(iter(found.values())) if len(found) == 1 else None
        if exchange is None or not exchange.can_ask or not self._asks or request.schema is None:
            return ElicitAnswer(action="cancel")
        question = server_question(exchange.next_key(), request.server, request.message, request.schema)
        answer = (await exchange.ask(question)).answer
        return ElicitAnswer(action="cancel") if answer is None else answer
