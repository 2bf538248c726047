"""The host: one registry, one pipeline, one log, and the agents that work on them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import anyio

from ..registry import (
    ApprovalService,
    Disposer,
    Pipeline,
    ResolvedToolSet,
    ScopedTools,
    ScopeKey,
    ToolBatchInput,
    ToolBatchResult,
    ToolDefinition,
    ToolRegistry,
    ToolService,
)
from ..registry.events import describe_answer
from .agent import Agent, AgentDescription
from .closing import Closing
from .dispatch import DISPATCH_LOG_EVENT
from .executor import BindableExecutor
from .listening import HostListening
from .log import EventStore, Session, SqliteEventStore
from .log.filters import RecordFilters
from .policies.approval import Approvals
from .policies.timeout import TimeoutPolicy

__all__ = ["Host"]


class Host(HostListening):
    """Holds tools, policies and agents, and keeps their log. Use it as an async context manager.

    Args:
        log: where sessions are recorded: the path of a SQLite file, an `EventStore`, or `None` for no record at all.
        durability: for a path: `process` outlives the death of the process, `power` that of the machine (ruling 40).
        approval: who answers the questions of policies that no listener of `approval/request` has answered; nobody
            does when `None`. Questions pass `approvals` all the same, so that policies hold and the record is kept.
        approval_timeout_ms: milliseconds that a question may stay without an answer; what it is about is denied then,
            and record and model are told that nobody answered in time. No limit when `None`.
        timeouts: whether calls are limited to the `timeout_ms` of their tools (`ptc.TimeoutPolicy`, contract K1). The
            limit stands outside every wrapper that is added later, unless that one is prepended.

    Raises:
        ValueError: the time limit of approvals is no finite number greater than 0.

    Attributes:
        registry: the tools, policies and scopes.
        tools: registers tools for every agent.
        pipeline: what every call passes.
        approvals: puts the questions of policies to the listeners of `approval/request`, and keeps each agent's
            approval policy. While nobody listens, what needs approval is denied (contract C20).
        record_filters: what every event of every agent's session passes before it is recorded.
    """

    def __init__(
        self,
        *,
        log: str | os.PathLike[str] | EventStore | None = None,
        durability: Literal["process", "power"] = "process",
        approval: ApprovalService | None = None,
        approval_timeout_ms: float | None = None,
        timeouts: bool = True,
    ) -> None:
        self.registry = ToolRegistry()
        self.registry.events.declare(DISPATCH_LOG_EVENT)
        self.tools: ScopedTools = self.registry.context()
        if timeouts:
            TimeoutPolicy.install(self.tools)
        self.approvals = Approvals(self.registry.events, approval, timeout_ms=approval_timeout_ms)
        self.pipeline = Pipeline(self.registry, approval=self.approvals)
        self._service = ToolService(self.pipeline)
        self._store: EventStore | None
        if isinstance(log, (str, os.PathLike)):
            self._store = SqliteEventStore(Path(log), durability=durability)
        else:
            self._store = log
        self.record_filters = RecordFilters()
        self._executors: list[BindableExecutor] = []
        self._closing = Closing()
        self._open = False

    async def __aenter__(self) -> Self:
        """Opens the log.

        Raises:
            LogUnavailableError: the log cannot be written; says what, where and what to do.
        """
        if self._store is not None:
            await self._store.open()
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends background jobs, closes the executors of all agents and then the log; calling it again does nothing."""
        self._open = False
        executors, self._executors = self._executors, []
        with anyio.CancelScope(shield=True):
            async with AsyncExitStack() as stack:
                if self._store is not None:
                    stack.push_async_callback(self._store.close)
                for executor in executors:
                    stack.push_async_callback(executor.aclose)
                await self._closing.run()

    def on_close(self, end: Callable[[], Awaitable[None]]) -> Disposer:
        """Has `end` called and awaited when the host closes, the last one first, while executors and log still work.

        What it raises is logged.
        """
        return self._closing.add(end)

    def agent(
        self,
        name: str,
        *,
        executor: BindableExecutor | None = None,
        parent: ScopeKey | None = None,
        session: str | None = None,
    ) -> Agent:
        """Makes an agent.

        Args:
            name: its name, as records have it.
            executor: how it executes the model's calls; native calls when `None`.
            parent: the scope whose tools and policies it inherits beside the host's.
            session: the id of the session to go on with; a new session when `None`. Its first batch, or
                `Agent.recover`, answers the calls that a process left open that ended in the middle of a step (I13).

        Raises:
            RuntimeError: the host keeps a log and is not open.
            TypeError: `executor` is no executor.
        """
        log: Session | None = None
        if self._store is not None:
            if not self._open:
                raise RuntimeError("the host is not open; use `async with ptc.Host(...) as host:`")
            labels = getattr(executor, "labels", None)
            log = Session(self._store, agent=name, id=session, labels=labels, filters=self.record_filters)
        agent = Agent(self, name, log)
        if parent is not None:
            self.registry.bind(agent, parent)
        if executor is not None:
            self.set_executor(agent, executor)
        return agent

    def set_executor(self, agent: Agent | None, executor: BindableExecutor) -> Callable[[], None]:
        """Selects how an agent, or everybody without a selection of their own, executes calls (contract A52, A53).

        Returns:
            the disposer; it leaves the selection unavailable until it is replaced (contract A54).

        Raises:
            TypeError: it is no executor.
        """
        if isinstance(executor, type) or not callable(getattr(executor, "bind", None)):
            raise TypeError(
                f"executor must be a PtcExecutor(sandbox=...) or a NativeExecutor(), not {describe_answer(executor)}"
            )
        context = self.tools if agent is None else agent.tools
        disposer = context.set_executor(executor.bind(self.pipeline))
        if executor not in self._executors:
            self._executors.append(executor)
        return disposer

    def describe(self, agent: Agent, *, tool_set: ResolvedToolSet | None = None) -> AgentDescription:
        """Returns what a model is told of an agent's tools; see `Agent.describe`."""
        description = self._service.describe(agent, tool_set)
        sections = self._service.sections(agent, tool_set)
        return AgentDescription("\n\n".join(section for section in sections if section), list(description.schemas))

    def transport(self, agent: Agent) -> ToolDefinition | None:
        """Returns the `run_code` of an agent's executor, which no registry has; `None` for native calls."""
        return self._service.transport(agent)

    async def execute(self, batch: ToolBatchInput) -> ToolBatchResult:
        """Executes a batch with the executor of its agent (contract A53); see `Agent.execute`.

        Raises:
            ValueError: the batch is malformed, or its agent is another host's; nothing has started.
            ToolBatchExecutionError: an internal fault (contract A60).
            ToolExecutorUnavailableError: the selected executor has been unloaded (contract A54).
        """
        if not isinstance(batch.agent, Agent):
            return await self._service.execute(batch)
        if batch.agent.tools.registry is not self.registry:
            # Its guards and restrictions are its own host's: here the call would get around them.
            raise ValueError(f"{batch.agent!r} is an agent of another host, which has its tools and policies; use that")
        with batch.agent.open_turn():
            return await self._service.execute(batch)
