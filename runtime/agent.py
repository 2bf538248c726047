"""An agent: a scope with a session, which a host gives to one model's conversation."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..registry import (
    BatchLog,
    ScopedTools,
    ScopeKey,
    Signal,
    ToolBatchExecutionError,
    ToolBatchInput,
    ToolBatchResult,
    ToolCall,
    ToolCallOutcome,
    ToolExecutionResult,
    ToolSchema,
)
from .log import Session
from .run_code import RUN_CODE

if TYPE_CHECKING:
    from .host import Host

__all__ = ["Agent", "AgentDescription"]

_ID_BYTES = 6


class AgentDescription(NamedTuple):
    """What a model is told: text for its system prompt, and the tools that it may call natively."""

    prompt: str
    schemas: list[ToolSchema]


class Agent(ScopeKey):
    """One scope of a host, with tools, policies, an executor and a session of its own. `Host.agent` makes it.

    Attributes:
        name: the agent's name, as records have it.
        tools: registers and restricts tools for this agent alone.
        session: its log, or `None` when the host keeps none.
        turn: the turn that the next batch belongs to; the host advances it.
        step: the step of that turn.
    """

    def __init__(self, host: Host, name: str, session: Session | None) -> None:
        super().__init__(name, session=session)
        self._host = host
        self.session: Session | None = session
        self.tools: ScopedTools = host.registry.context(self)
        self._used: set[str] | None = None
        self.turn = 1
        self.step = 0

    def on(self, event: str, listener: Callable[..., Any] | None = None, *, prepend: bool = False) -> Any:
        """Listens to an event of this agent and the scopes below it; a decorator when `listener` is omitted.

        Args:
            event: for example `tools/pre-execute`.
            listener: what is called; see `Host.on`.
            prepend: whether it goes before the listeners that are there.

        Returns:
            the disposer, or the decorator, which returns the function itself.
        """
        return self.tools.on(event, listener, prepend=prepend)  # type: ignore[arg-type]

    def describe(self) -> AgentDescription:
        """Returns what a model is told of this agent's tools, as they are now.

        Raises:
            ToolExecutorUnavailableError: the selected executor has been unloaded (contract A54).
        """
        return self._host.describe(self)

    async def execute(self, calls: Sequence[ToolCall], *, signal: Signal | None = None) -> ToolBatchResult:
        """Executes the calls of one step of the model, and returns when nothing of them runs any more.

        Args:
            calls: the calls, in the model's order. A call without an id is given one; an id that the session has
                already is recorded with a number behind it (`call_0~2`), and answered as it was asked.
            signal: cancels them.

        Returns:
            one outcome for each call in input order, whatever tools and policies did (contract A57).

        Raises:
            ToolBatchExecutionError: an internal fault, for example a log that cannot be written (contract A60).
            ToolExecutorUnavailableError: the selected executor has been unloaded (contract A54).
        """
        self.step += 1
        given = [call.call_id for call in calls]
        identified = [replace(call, call_id=await self._unused(call.call_id)) for call in calls]
        log = BatchLog(self.turn, self.step) if self.session is not None else None
        batch = ToolBatchInput(calls=identified, signal=signal, agent=self, log=log)
        try:
            result = await self._host.execute(batch)
        except ToolBatchExecutionError as error:
            error.results = _as_asked(given, error.results)
            raise
        return replace(result, results=_as_asked(given, result.results))

    async def _unused(self, asked: str) -> str:
        """Returns an id that the session does not have yet, because some providers count from 0 in each turn (I8)."""
        if self._used is None:
            self._used = set() if self.session is None else await self.session.call_ids()
        call_id = asked or f"call_{secrets.token_hex(_ID_BYTES)}"
        number = 1
        while call_id in self._used:
            number += 1
            call_id = f"{asked}~{number}"
        self._used.add(call_id)
        return call_id

    async def run_code(
        self, code: str, *, description: str = "Run a program", signal: Signal | None = None
    ) -> ToolExecutionResult:
        """Runs one program as a model's `run_code` call would be, and returns its outcome.

        Args:
            code: the program.
            description: what it does, for whoever watches.
            signal: cancels it.

        Raises:
            ToolBatchExecutionError: an internal fault, for example a log that cannot be written (contract A60).
        """
        call = ToolCall(name=RUN_CODE, arguments={"code": code, "description": description})
        batch = await self.execute([call], signal=signal)
        return batch.results[0].result


def _as_asked(given: Sequence[str], outcomes: Sequence[ToolCallOutcome]) -> tuple[ToolCallOutcome, ...]:
    """Returns the outcomes under the ids that the model gave; a batch that was stopped has only the first of them."""
    return tuple(
        replace(outcome, call_id=asked or outcome.call_id) for asked, outcome in zip(given, outcomes, strict=False)
    )
