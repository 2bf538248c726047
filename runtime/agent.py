"""An agent: a scope with a session, which a host gives to one model's conversation."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..registry import (
    ActivationContext,
    BatchLog,
    CallCard,
    ContextMessage,
    Disposer,
    ModelSelection,
    PresentableArguments,
    PresentableResult,
    ResolvedToolSet,
    ResultCard,
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
    present_call,
    present_result,
)
from ..registry.argument_text import argument_text
from ..registry.batch import check_batch
from ..registry.pipeline.outcome import freeze_context
from ..registry.signals import void
from .closing import Closing
from .listening import HostListening
from .log import Session
from .run_code import RUN_CODE

if TYPE_CHECKING:
    from .host import Host
    from .log.replay import RecordedCall

__all__ = ["Agent", "AgentDescription"]

_ID_BYTES = 6


class AgentDescription(NamedTuple):
    """What a model is told: text for its system prompt, and the tools that it may call natively."""

    prompt: str
    schemas: list[ToolSchema]


class Agent(HostListening, ScopeKey):
    """One scope of a host, with tools, policies, an executor and a session of its own. `Host.agent` makes it.

    Attributes:
        name: the agent's name, as records have it.
        tools: registers and restricts tools for this agent alone.
        session: its log, or `None` when the host keeps none.
        turn: the turn that the next batch belongs to, from 1; the host advances it with `next_turn`. In a session that
            goes on, the first batch adds the turns that the session has already.
        step: how many batches of that turn have begun.
        closed: whether `aclose` was called.
    """

    def __init__(self, host: Host, name: str, session: Session | None) -> None:
        super().__init__(name, session=session)
        self._host = host
        self.session: Session | None = session
        self.tools: ScopedTools = host.registry.context(self)
        self._used: set[str] | None = None
        self._notices: list[ContextMessage] = []
        self._executing = 0
        self._turn_observers: dict[object, Callable[[], None]] = {}
        self._closing = Closing()
        self.closed = False
        self.turn = 1
        self.step = 0

    @property
    def in_turn(self) -> bool:
        """Whether a turn is open: a batch of this agent is being executed now (contract K14)."""
        return self._executing > 0

    @contextmanager
    def open_turn(self) -> Iterator[None]:
        """Has the turn open for the time of the block; `Host.execute` does that around each batch.

        A host whose idle agents are woken (`ptc.Jobs`) does it around each whole turn, the model's thinking included.
        """
        self._executing += 1
        try:
            yield
        finally:
            self._executing -= 1
            if not self._executing:
                for observer in tuple(self._turn_observers.values()):
                    observer()

    def on_turn_closed(self, observer: Callable[[], None]) -> Disposer:
        """Has `observer` called, at once, whenever no turn is open any more; it must be quick and not raise."""
        key = object()
        self._turn_observers[key] = observer
        return Disposer(lambda: void(self._turn_observers.pop(key, None)))

    def on_close(self, end: Callable[[], Awaitable[None]]) -> Disposer:
        """Has `end` called and awaited by `aclose`, the last one first; what it raises is logged."""
        return self._closing.add(end)

    async def aclose(self) -> None:
        """Ends what goes on for the agent, its background jobs (contract J13); calling it again does nothing.

        Call it when the conversation is over and the host lives on. Its tools, session and running batch stay.
        """
        self.closed = True
        await self._closing.run()

    def next_turn(self) -> int:
        """Goes on to the next turn, whose steps count from 1 again, and returns its number.

        Call it when the conversation has come back to the user: a turn is what the model does between two of the
        user's messages, and each batch is one step of it.

        Raises:
            RuntimeError: a batch of the present turn is still being executed.
        """
        if self.in_turn:
            raise RuntimeError(f"agent {self.name!r} is still in turn {self.turn}: wait for its batch to return")
        self.turn += 1
        self.step = 0
        return self.turn

    def inform(self, message: ContextMessage) -> None:
        """Queues a message for the model, which gets it after the messages of the next batch (contract K16, I16).

        Args:
            message: the message; a frozen copy of it is kept.

        Raises:
            TypeError: it is no message, or its content is no list of content blocks.
            LosslessError: a part of it is not lossless JSON.
        """
        self._notices.append(freeze_context(message))

    @property
    def has_notices(self) -> bool:
        """Whether messages are queued."""
        return bool(self._notices)

    def take_notices(self) -> tuple[ContextMessage, ...]:
        """Returns the queued messages and empties the queue; for a host that opens a turn without a batch."""
        notices = tuple(self._notices)
        self._notices.clear()
        return notices

    @asynccontextmanager
    async def resolve(
        self, *, model_selection: ModelSelection | None = None, signal: Signal | None = None
    ) -> AsyncIterator[ResolvedToolSet]:
        """Asks the conditions of tools once for a step, and gives the tools that the step has (contract A38 to A45).

            async with agent.resolve() as tool_set:
                prompt, schemas = agent.describe(tool_set=tool_set)
                ...  # the model answers with calls
                batch = await agent.execute(calls, tool_set=tool_set)

        The set is disposed when the block is left; outside of a step, tools with a condition cannot be called.

        Args:
            model_selection: which model the step goes to, for the conditions.
            signal: gives the step up; conditions are given it.

        Raises:
            AbortError: the signal fired while conditions were asked.
            Exception: whatever a condition raised.
        """
        context = ActivationContext(
            agent=self, model_selection=model_selection or ModelSelection(), signal=signal or Signal()
        )
        tool_set = await self._host.registry.resolve(context)
        try:
            yield tool_set
        finally:
            tool_set.dispose()

    def describe(self, *, tool_set: ResolvedToolSet | None = None) -> AgentDescription:
        """Returns what a model is told of this agent's tools, as they are now.

        Args:
            tool_set: what the step has; without one, the tools that have no condition (contract A46, A47).

        Raises:
            ToolExecutorUnavailableError: the selected executor has been unloaded (contract A54).
        """
        return self._host.describe(self, tool_set=tool_set)

    def present_call(
        self, name: str, arguments: PresentableArguments, *, tool_set: ResolvedToolSet | None = None
    ) -> CallCard:
        """Returns the card of a call while it is pending, live or out of a record (contract H1, H11).

        It never fails for what a presenter or the arguments are: the generic card takes the place (contract H6, H7).

        Args:
            name: the tool's name; `run_code` is the one of this agent's executor (contract E8).
            arguments: the arguments; text is read as a model's, as `tool/call` records it (contract I3).
            tool_set: limits the look-up to what a step admitted.
        """
        transport = self._host.transport(self)
        return present_call(self._host.registry, name, arguments, scope=self, tool_set=tool_set, transport=transport)

    def present_result(
        self,
        name: str,
        arguments: PresentableArguments,
        result: PresentableResult,
        *,
        tool_set: ResolvedToolSet | None = None,
    ) -> ResultCard:
        """Returns the card of a completed call, which replaces the pending one (contract H2, H8).

        Args:
            name: the tool's name.
            arguments: the arguments; see `present_call`.
            result: the live result, or the data of its `tool/result` or `tool/ptc-dispatch` event (contract H10).
            tool_set: limits the look-up to what a step admitted.

        Raises:
            TypeError: `result` is neither, or its content is no list of content blocks.
            LosslessError: its content or meta is not lossless JSON.
        """
        transport = self._host.transport(self)
        return present_result(
            self._host.registry, name, arguments, result, scope=self, tool_set=tool_set, transport=transport
        )

    async def execute(
        self, calls: Sequence[ToolCall], *, signal: Signal | None = None, tool_set: ResolvedToolSet | None = None
    ) -> ToolBatchResult:
        """Executes the calls of one step of the model, and returns when nothing of them runs any more.

        Args:
            calls: the calls, in the model's order. A call without an id is given one; an id that the session has
                already is recorded with a number behind it (`call_0~2`), and answered as it was asked.
            signal: cancels them.
            tool_set: what the step has; without one, the tools that have no condition (contract A46, A47).

        Returns:
            one outcome for each call in input order, whatever tools and policies did (contract A57), and the messages
            for the conversation: first those of the calls, then those that `inform` has queued.

        Raises:
            ValueError: the batch is malformed; nothing has started.
            ToolBatchExecutionError: an internal fault, for example a log that cannot be written (contract A60). What
                `inform` has queued stays queued.
            ToolExecutorUnavailableError: the selected executor has been unloaded (contract A54).
            UnknownEventError: the session goes on, and has an event that this version does not know (contract I15);
                nothing has started.
            LogUnavailableError: the session goes on, and the log cannot be read or written; likewise.
        """
        result = await self._execute(calls, signal, tool_set)
        notices = self.take_notices()
        return replace(result, additional_contexts=(*result.additional_contexts, *notices)) if notices else result

    async def _execute(
        self, calls: Sequence[ToolCall], signal: Signal | None, tool_set: ResolvedToolSet | None
    ) -> ToolBatchResult:
        """Executes a batch and leaves the queued messages where they are."""
        check_batch(ToolBatchInput(calls=calls, signal=signal))  # a malformed batch is no step
        used = await self._go_on()
        self.step += 1
        log = BatchLog(self.turn, self.step) if self.session is not None else None
        given = [call.call_id for call in calls]
        identified = [replace(call, call_id=_unused(call.call_id, used)) for call in calls]
        batch = ToolBatchInput(calls=identified, signal=signal, agent=self, log=log, tool_set=tool_set)
        try:
            result = await self._host.execute(batch)
        except ToolBatchExecutionError as error:
            error.results = _as_asked(given, error.results)
            raise
        return replace(result, results=_as_asked(given, result.results))

    async def recover(self, calls: Sequence[ToolCall]) -> Sequence[RecordedCall]:
        """Says what became of the calls of a step whose answers the host never had, because it ended (contract I13).

        For a host that takes up a session and finds calls without answers at the end of its transcript. Nothing is
        executed. Calls that the log has are answered out of it: with their results, or with `TOOL_OUTCOME_UNKNOWN`
        where it has none. Those that the log does not have did not start; they are recorded and answered with
        `TOOL_NOT_STARTED`.

        Args:
            calls: all calls of the step, in the model's order. They are taken for the last step of the log if it has
                calls of these ids and tools, and for one that never started otherwise. So they need ids of their own:
                whose ids count from 0 in each step may get the answers of an earlier step that called the same tools.

        Returns:
            one answer for each call, in order, under the id that the model gave. Its content is `None` when another
            process has the session open, and may still answer it.

        Raises:
            RuntimeError: the host keeps no log, so that nobody knows; or a batch of this agent has begun already.
            ValueError: the calls are malformed, or the session belongs to another agent.
            UnknownEventError: the session has an event that this version does not know (contract I15).
            LogUnavailableError: the log cannot be read or written.
        """
        if self.session is None:
            raise RuntimeError(f"the host of agent {self.name!r} keeps no log, which alone could tell what was done")
        if self.step or self.in_turn:
            raise RuntimeError(f"agent {self.name!r} has begun its first batch; recover what was interrupted before it")
        check_batch(ToolBatchInput(calls=calls))
        from .log.replay import last_step  # it needs pydantic, which takes its time to load

        used = await self._go_on()
        recorded = last_step(await self.session.replay())
        turn, step = (recorded[-1].turn, recorded[-1].step) if recorded else (1, 0)
        if not _is_step_of(recorded, calls):
            recorded, step = [], step + 1
        missing = [
            (_unused(one.call_id, used), one.name, argument_text(one.arguments)) for one in calls[len(recorded) :]
        ]
        if missing:
            await self.session.record_not_started(turn, step, missing)
            recorded = last_step(await self.session.replay())
            self.turn = max(self.turn, turn + 1)
        return [replace(one, call_id=call.call_id or one.call_id) for call, one in zip(calls, recorded, strict=True)]

    async def _go_on(self) -> set[str]:
        """Returns the ids that are taken; the first batch in a session that goes on reads where it has left off.

        What the process that had the session before has left without an answer is answered first (contract I13).
        """
        if self._used is None:
            if self.session is not None:
                await self.session.repair()
            recorded, last_turn = (set[str](), 0) if self.session is None else await self.session.left_off()
            if self._used is None:  # else another batch has read them meanwhile, and has taken some
                self._used = recorded
                self.turn += last_turn
        return self._used

    async def run_code(
        self,
        code: str,
        *,
        description: str = "Run a program",
        signal: Signal | None = None,
        tool_set: ResolvedToolSet | None = None,
    ) -> ToolExecutionResult:
        """Runs one program as a model's `run_code` call would be, and returns its outcome.

        What `inform` has queued stays queued for the next batch.

        Args:
            code: the program.
            description: what it does, for whoever watches.
            signal: cancels it.
            tool_set: what the step has; see `execute`.

        Raises:
            ToolBatchExecutionError: an internal fault, for example a log that cannot be written (contract A60).
        """
        call = ToolCall(name=RUN_CODE, arguments={"code": code, "description": description})
        batch = await self._execute([call], signal, tool_set)
        return batch.results[0].result


def _unused(asked: str, used: set[str]) -> str:
    """Returns an id that the session does not have yet, because some providers count from 0 in each turn (I8)."""
    call_id = asked or f"call_{secrets.token_hex(_ID_BYTES)}"
    number = 1
    while call_id in used:
        number += 1
        call_id = f"{asked}~{number}"
    used.add(call_id)
    return call_id


def _is_step_of(recorded: Sequence[RecordedCall], calls: Sequence[ToolCall]) -> bool:
    """Returns whether calls that were recorded are the first ones of a step; they start in the model's order (D5)."""
    return 0 < len(recorded) <= len(calls) and all(
        one.name == call.name and (not call.call_id or one.call_id.partition("~")[0] == call.call_id.partition("~")[0])
        for one, call in zip(recorded, calls, strict=False)
    )


def _as_asked(given: Sequence[str], outcomes: Sequence[ToolCallOutcome]) -> tuple[ToolCallOutcome, ...]:
    """Returns the outcomes under the ids that the model gave; a batch that was stopped has only the first of them."""
    return tuple(
        replace(outcome, call_id=asked or outcome.call_id) for asked, outcome in zip(given, outcomes, strict=False)
    )
