"""Calls that a server works on, their time, and what it asks the user meanwhile."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import anyio
import mcp_types as types

from ...registry import JsonObject, ToolExecution
from .states import ElicitAnswer, ElicitHandler, ElicitRequest

__all__ = ["Questions", "RunningCall"]

_MAX_QUESTIONS: Final = 8
"""How many questions of one server may wait for the user."""

_LOGGER = logging.getLogger("ptc.runtime")


class RunningCall:
    """One call on its way, with its time.

    Args:
        execution: whose call it is.
        scope: what ends it when its time is up.
        read_only: whether the tool is said to change nothing.

    Attributes:
        execution: whose call it is.
        read_only: whether the tool is said to change nothing.
        sent: whether the server may have got it.
        over: set when it is over, whatever came of it.
    """

    __slots__ = ("_left", "_questions", "_scope", "execution", "over", "read_only", "sent")

    def __init__(self, execution: ToolExecution, scope: anyio.CancelScope, *, read_only: bool) -> None:
        self.execution = execution
        self.read_only = read_only
        self.sent = False
        self.over = anyio.Event()
        self._scope = scope
        self._left = math.inf
        self._questions = 0

    @property
    def consequence(self) -> str:
        """What it means for the call when there is no answer."""
        if not self.sent:
            return "the call did not reach the server, so nothing has happened"
        if self.read_only:
            return "the tool is said to change nothing, so it may be called again"
        return "whether the call has taken effect is unknown; find out before you call again"

    @contextmanager
    def waiting_for_the_user(self) -> Iterator[None]:
        """Stops the call's clock."""
        if self._questions == 0:
            self._left = self._scope.deadline - anyio.current_time()
            self._scope.deadline = math.inf
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if self._questions == 0:
                self._scope.deadline = anyio.current_time() + self._left


class Questions:
    """Puts the questions of one server to the user.

    Args:
        server: the server's name.
        handler: who asks the user; `None` when nobody can.

    Attributes:
        running: the calls that the server works on.
    """

    def __init__(self, server: str, handler: ElicitHandler | None) -> None:
        self.running: dict[RunningCall, None] = {}
        self._server = server
        self._handler = handler
        self._open = 0

    @property
    def answerable(self) -> bool:
        """Whether anybody can answer."""
        return self._handler is not None

    async def ask(self, params: types.ElicitRequestParams, call: RunningCall | None = None) -> types.ElicitResult:
        """Asks the user, while the clocks of the calls that it may be about stand still.

        Args:
            params: what the server asks.
            call: what it is about, where that is known.
        """
        about = list(self.running) if call is None else [call]
        if self._handler is None or not about or self._open >= _MAX_QUESTIONS:
            why = "it works on no call" if not about else f"{self._open} of its questions are open"
            _LOGGER.warning("a question of MCP server %r was declined: %s", self._server, why)
            return types.ElicitResult(action="decline")
        form = isinstance(params, types.ElicitRequestFormParams)
        request = ElicitRequest(
            server=self._server,
            message=params.message,
            schema=params.requested_schema if isinstance(params, types.ElicitRequestFormParams) else None,
            url=params.url if isinstance(params, types.ElicitRequestURLParams) else None,
            calls=tuple(each.execution for each in about),
        )
        self._open += 1
        try:
            answer = await _ask_while(about, self._handler, request)
        except Exception:
            _LOGGER.exception("a question of MCP server %r could not be put to the user", self._server)
            answer = None
        finally:
            self._open -= 1
        return types.ElicitResult(action="cancel") if answer is None else _result(self._server, answer, form=form)


async def _ask_while(calls: list[RunningCall], handler: ElicitHandler, request: ElicitRequest) -> ElicitAnswer | None:
    """Asks, until there is an answer or none of the calls goes on any more; then nobody wants to know, and `None`."""
    answer: ElicitAnswer | None = None

    async def give_up() -> None:
        for call in calls:
            await call.over.wait()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(give_up)
        with ExitStack() as clocks:
            for call in calls:
                clocks.enter_context(call.waiting_for_the_user())
            answer = await handler(request)
        group.cancel_scope.cancel()
    return answer


def _result(server: str, answer: ElicitAnswer, *, form: bool) -> types.ElicitResult:
    told: JsonObject = {"action": answer.action}
    if answer.action == "accept" and form:
        told["content"] = dict(answer.content or {})
    try:
        return types.ElicitResult.model_validate(told)
    except ValueError:
        _LOGGER.exception("the answer to a question of MCP server %r has what a form cannot have", server)
        return types.ElicitResult(action="cancel")
