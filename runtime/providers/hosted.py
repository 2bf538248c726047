"""Programs that a provider runs itself, whose calls pass the same pipeline and the same log as those of `run_code`.

    executor = HostedExecutor()
    agent = host.agent("buyer", executor=executor)
    tools = anthropic.hosted_tools(agent.describe())
    async with executor.programs(agent) as programs:
        while True:
            message = ...                                           # POST /v1/messages
            batch = await programs.execute(anthropic.hosted_step(message))
            answers = anthropic.results(message, batch)
            if not answers:
                break
            messages += [*anthropic.reply(message), *answers]

In the log each program is a `run_code` call with its source, and each of its calls a sub-call with that call's id as
its parent (contract E15, I5, I6).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import anyio

from ...registry import (
    DEFAULT_PARALLEL,
    ExecutorDescription,
    Pipeline,
    ResolvedToolSet,
    Signal,
    ToolBatchInput,
    ToolBatchResult,
    ToolExecutor,
    ToolView,
    order_names,
    positive_cap,
)
from ...registry import NativeExecutor as BoundNativeExecutor
from ...registry.executors import transport_of
from ..executor import PtcExecutor
from .hosted_programs import HostedPrograms
from .hosted_run import HostedRun, ProgramCall
from .shapes import HostedCall

if TYPE_CHECKING:
    from ...sandbox.seam import Sandbox
    from ..agent import Agent

__all__ = ["HostedExecutor"]


class HostedExecutor:
    """For programs that the provider runs: the model is told of every tool, and calls them by itself or in a program.

    What a program calls takes `programs`; `Agent.execute` takes the model's own calls alone. A program cannot be kept
    from running by anything here, since it runs elsewhere: a policy that denies its `run_code` call denies its calls.

    Args:
        max_parallel_tool_calls: how many of the model's own calls may run at once (contract D4).
        max_parallel_sub_calls: how many tools of one program may run at once (contract E18).
        order: the order in which the model sees the tools, with `<unlisted-tools>` once; by name when `None`.

    Raises:
        ValueError: for a cap that is not a positive integer.
    """

    def __init__(
        self,
        *,
        max_parallel_tool_calls: int = DEFAULT_PARALLEL,
        max_parallel_sub_calls: int = DEFAULT_PARALLEL,
        order: Sequence[str] | None = None,
    ) -> None:
        self.max_parallel_tool_calls = positive_cap("max_parallel_tool_calls", max_parallel_tool_calls)
        self.max_parallel_sub_calls = positive_cap("max_parallel_sub_calls", max_parallel_sub_calls)
        self.order = None if order is None else tuple(order)

    @property
    def labels(self) -> dict[str, str]:
        """What a session's record says of its executor."""
        return {"executor": "hosted", "isolation": HostedRun.isolation}

    def bind(self, pipeline: Pipeline) -> ToolExecutor:
        """Returns the executor that works on this pipeline."""
        return _BoundHostedExecutor(self, pipeline)

    async def aclose(self) -> None:
        """Does nothing: it holds nothing."""

    @asynccontextmanager
    async def programs(
        self, agent: Agent, *, signal: Signal | None = None, tool_set: ResolvedToolSet | None = None
    ) -> AsyncIterator[HostedPrograms]:
        """Gives what executes the steps of one turn of the agent, from the user's message to the model's last answer.

        Programs of which the provider has told no end when the block is left are recorded as failed, and what they
        started is awaited.

        Args:
            agent: an agent that has this executor.
            signal: cancels the calls of all steps.
            tool_set: what the turn has; without one, the tools that have no condition (contract A46, A47).
        """
        tasks = anyio.create_task_group()
        programs = HostedPrograms(agent, tasks, signal, tool_set)
        raised: Exception | None = None
        async with tasks:
            try:
                yield programs
            except Exception as error:  # noqa: BLE001 - carried past the group, which would wrap it
                raised = error
            finally:
                programs.close()
        if raised is not None:
            raise raised
        programs.raise_fault()


class _BoundHostedExecutor:
    def __init__(self, executor: HostedExecutor, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._order = executor.order
        self._max_parallel_sub_calls = executor.max_parallel_sub_calls
        self._native = BoundNativeExecutor(pipeline, max_parallel_tool_calls=executor.max_parallel_tool_calls)
        self.transport = transport_of(self._executor_of(HostedRun()))  # for the cards of programs (contract E8, H11)

    def describe(self, tools: ToolView) -> ExecutorDescription:
        """Describes the visible tools with their outputs, which programs rely on.

        Raises:
            ValueError: the configured order is malformed or names an unknown tool.
            ToolRegistrationError: a tool's schemas are not lossless JSON (contract A12).
        """
        names = order_names(tools.definitions.keys(), self._order, tools.known_names)
        by_name = {schema.name: schema for schema in tools.schemas(with_output=True)}
        return ExecutorDescription(schemas=tuple(by_name[name] for name in names), known_names=tools.known_names)

    async def execute(self, batch: ToolBatchInput) -> ToolBatchResult:
        """Executes the model's own calls, or the one call that stands for a program.

        Raises:
            ValueError: there are calls of programs, which `HostedPrograms.execute` takes.
            ToolBatchExecutionError: an internal fault, after everything was drained.
        """
        first = batch.calls[0] if batch.calls else None
        if isinstance(first, ProgramCall):
            return await self._executor_of(first.run).execute(batch)
        for call in batch.calls:
            if isinstance(call, HostedCall):
                raise ValueError(  # noqa: TRY004 - one class for all malformed batches
                    f"call {call.call_id!r} is one of a hosted program; give the whole step to HostedPrograms.execute"
                )
        return await self._native.execute(batch)

    def _executor_of(self, run: HostedRun) -> ToolExecutor:
        """Returns the executor of one program's `run_code`."""
        # Of a sandbox, `run_code` uses `language` and `run` alone, and that is what a hosted run has.
        sandbox = cast("Sandbox", run)
        return PtcExecutor(sandbox=sandbox, max_parallel_sub_calls=self._max_parallel_sub_calls).bind(self._pipeline)
