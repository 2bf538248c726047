"""The batch scheduler: the calls of one step, started and committed in order, with only their bodies overlapping (D).

One coordinator starts, prepares and commits. A child task does nothing but run one call's dispatch and say that it is
through, so a commit never overlaps a commit or a prepare, and the record has one writer (contract D5, D6).
"""

from __future__ import annotations

import enum
import secrets
from typing import TYPE_CHECKING, Final

import anyio

from .argument_text import parse_arguments
from .batch_record import BatchRecord
from .errors import ToolBatchExecutionError
from .events import describe_answer
from .execution import (
    ToolBatchInput,
    ToolBatchResult,
    ToolCall,
    ToolCallOutcome,
    ToolExecutionInput,
    ToolExecutionResult,
    ToolSuccess,
)
from .pipeline import HOST_CANCELLED
from .pipeline.outcome import aborted, unwrap
from .pipeline.shelter import LeftOpenError
from .signals import Signal, SignalSource
from .wake import Wake

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from .decisions import ContextMessage
    from .definition import ToolDefinition
    from .pipeline import Pipeline, PipelineCall

__all__ = ["DEFAULT_PARALLEL", "check_batch", "positive_cap", "run_batch"]

DEFAULT_PARALLEL: Final = 10
"""How many bodies of one batch run at once when nobody says otherwise (contract D4)."""


def positive_cap(name: str, cap: object) -> int:
    """Returns a cap on parallelism, checked.

    Raises:
        ValueError: it is not a positive integer (contract D4, E18).
    """
    if isinstance(cap, int) and not isinstance(cap, bool) and cap > 0:
        return cap
    raise ValueError(f"{name} must be a positive integer, not {cap!r}")


def check_batch(batch: ToolBatchInput) -> None:
    """Checks a batch before anything of it starts (rulings 25, 26; contract C68).

    Raises:
        ValueError: there is a log without an agent, a cap that is not a positive integer, something else than a signal
            or a call, or a call without a name.
    """
    if batch.log is not None and batch.agent is None:
        raise ValueError("a batch with a log needs an agent, whose session the events go to")
    if batch.max_parallel_tool_calls is not None:
        positive_cap("max_parallel_tool_calls", batch.max_parallel_tool_calls)
    if not isinstance(batch.signal, Signal | None):
        raise ValueError(f"signal must be the signal of a SignalSource, not {describe_answer(batch.signal)}")  # noqa: TRY004 - one class for all of it
    for place, call in enumerate(batch.calls):
        if not isinstance(call, ToolCall):
            raise ValueError(f"calls[{place}] must be a ToolCall, not {describe_answer(call)}")  # noqa: TRY004 - likewise
        if not isinstance(call.name, str) or not call.name:
            raise ValueError(f"calls[{place}].name must be a string that is not empty, not {call.name!r}")
        if not isinstance(call.call_id, str):
            raise ValueError(f"calls[{place}].call_id must be a string, not {call.call_id!r}")  # noqa: TRY004 - one class for all of it


async def run_batch(
    pipeline: Pipeline,
    batch: ToolBatchInput,
    *,
    transport: ToolDefinition | None = None,
    max_parallel: int = DEFAULT_PARALLEL,
) -> ToolBatchResult:
    """Runs the calls of one step, and returns when nothing of it runs any more (contract D1 to D20, A60).

    When the task that runs this is cancelled, the signal of every running body fires, the bodies are awaited, each
    call gets its aborted result for observers and record, and the cancellation goes on.

    Args:
        pipeline: runs each call.
        batch: the calls.
        transport: the `run_code` definition of the executor, see `Pipeline.call`.
        max_parallel: how many bodies may run at once, unless the batch says otherwise.

    Raises:
        ValueError: the batch or the cap is malformed; nothing has started.
        ToolBatchExecutionError: an internal fault, for example a record that could not be written; everything was
            drained, and what had been committed is in the error (contract D15, ruling 5).
    """
    check_batch(batch)
    positive_cap("max_parallel", max_parallel)
    cap = max_parallel if batch.max_parallel_tool_calls is None else batch.max_parallel_tool_calls
    return await _Coordinator(pipeline, batch, transport, cap).run()


class _Stage(enum.Enum):
    WAITING = "waiting"
    STARTED = "started"
    SETTLED = "settled"
    COMMITTED = "committed"


class _Slot:
    """One call of the batch, by its position."""

    __slots__ = ("arguments", "call", "call_id", "pipeline_call", "seq", "stage")

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.call_id = call.call_id or f"call_{secrets.token_hex(8)}"
        self.arguments = parse_arguments(call.arguments)
        self.pipeline_call: PipelineCall | None = None
        self.seq: int | None = None
        self.stage = _Stage.WAITING


class _Coordinator:
    """The one task that starts, prepares and commits the calls of a batch."""

    def __init__(self, pipeline: Pipeline, batch: ToolBatchInput, transport: ToolDefinition | None, cap: int) -> None:
        self._pipeline = pipeline
        self._batch = batch
        self._transport = transport
        self._cap = cap
        self._record = BatchRecord(batch)
        self._slots = [_Slot(call) for call in batch.calls]
        self._shelter = SignalSource()
        self._signal: Signal = batch.signal if batch.signal is not None else self._shelter.signal
        self._next = 0  # the first call that has not been started
        self._committed = 0  # how many calls have been committed, always a prefix
        self._running = 0
        self._exclusive = False
        self._group_over = False
        self._stopped = False
        self._wake = Wake()
        self._fault: Exception | None = None
        self._unrecorded = ""
        self._results: list[ToolCallOutcome] = []
        self._contexts: list[ContextMessage] = []
        self._concluded = False

    async def run(self) -> ToolBatchResult:
        """Drives the batch to its end; see `run_batch`.

        That is done in a task of its own, which only cancel scopes can cancel: what asyncio alone cancels would break
        off an event that is being recorded, whatever shields it.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._coordinate, tasks)
        except ExceptionGroup as error:  # a body left a scope open, which shows only when its task ends
            self._fault = self._fault or unwrap(error)
        if self._fault is not None:
            raise ToolBatchExecutionError(
                f"a batch of tool calls stopped: {self._unrecorded}{self._fault}",
                results=self._results,
                additional_contexts=self._contexts,
                concluded=self._concluded,
            ) from self._fault
        return ToolBatchResult(
            results=tuple(self._results), additional_contexts=tuple(self._contexts), concluded=self._concluded
        )

    async def _coordinate(self, bodies: TaskGroup) -> None:
        try:
            await self._drive(bodies)
        except Exception as error:  # noqa: BLE001 - the first fault wins; told by `run`, once all is drained
            self._fault = self._fault or error
            await self._drain_or_give_up()
        except anyio.get_cancelled_exc_class():
            await self._give_up()
            raise

    async def _drive(self, bodies: TaskGroup) -> None:
        while True:
            self._wake.look()
            await self._commit_prefix()
            if self._fault is not None:
                raise self._fault  # a body's: nothing starts and nothing is committed after a fault (contract D15)
            if self._signal.aborted:
                self._stopped = True
            if not self._stopped and self._may_start():
                await self._start(bodies)
            elif self._committed < self._next:
                await self._wake.wait()
            elif self._next < len(self._slots) and not self._stopped:
                self._exclusive = self._group_over = False  # the next group; its head is classified afresh
            else:
                await self._skip_rest()
                return

    def _may_start(self) -> bool:
        """Tells whether the next call may start now; classifies it only when nothing else stands in its way (D3)."""
        if self._next == len(self._slots) or self._exclusive or self._group_over or self._running >= self._cap:
            return False
        slot, batch = self._slots[self._next], self._batch
        mode = self._pipeline.classify(slot.call.name, slot.arguments, batch.agent, batch.tool_set, self._transport)
        if mode == "parallel":
            return True
        if self._committed < self._next:  # whatever runs has not been committed
            self._group_over = True
            return False
        self._exclusive = True
        return True

    async def _start(self, bodies: TaskGroup) -> None:
        """Starts one call: record, prepare, launch (contract D5)."""
        slot, batch = self._slots[self._next], self._batch
        try:
            slot.seq = await self._record.called(slot.call_id, slot.call)
        except Exception:
            self._unrecorded = (
                ""
                if self._fault is not None
                else (f"{slot.call.name} ({slot.call_id}) did not run, because its start could not be recorded: ")
            )
            raise
        slot.stage = _Stage.STARTED
        self._next += 1
        slot.pipeline_call = self._pipeline.call(
            ToolExecutionInput(
                call_id=slot.call_id,
                name=slot.call.name,
                arguments=slot.arguments,
                agent=batch.agent,
                signal=self._signal,
                tool_set=batch.tool_set,
            ),
            transport=self._transport,
        )
        await slot.pipeline_call.prepare()
        if slot.pipeline_call.needs_dispatch:
            self._running += 1
            bodies.start_soon(self._run_body, slot, slot.pipeline_call)
        else:
            slot.stage = _Stage.SETTLED

    async def _run_body(self, slot: _Slot, call: PipelineCall) -> None:
        """Runs one call's dispatch in a task of its own, out of reach of the host's cancellation."""
        dispatched = False
        try:
            with anyio.CancelScope(shield=True):
                await call.dispatch(shelter=self._shelter.signal)
                dispatched = True
        except Exception as error:  # noqa: BLE001 - a fault of the pipeline itself; the coordinator tells it
            if self._fault is None:
                self._fault = LeftOpenError(slot.call.name, error) if dispatched else error
        finally:
            slot.stage = _Stage.SETTLED
            self._running -= 1
            self._wake.change()

    async def _commit_prefix(self) -> None:
        """Commits, in the model's order, every call that is settled and has none unsettled before it (contract D6)."""
        while self._fault is None and self._committed < self._next:
            slot = self._slots[self._committed]
            if slot.stage is not _Stage.SETTLED:
                return
            assert slot.pipeline_call is not None
            await self._commit(slot, await slot.pipeline_call.finish())

    async def _commit(self, slot: _Slot, result: ToolExecutionResult) -> None:
        decision = None if slot.pipeline_call is None else slot.pipeline_call.decision_record()
        await self._record.settled(slot.call_id, slot.seq, result, decision)
        slot.stage = _Stage.COMMITTED
        self._committed += 1
        self._results.append(ToolCallOutcome(slot.call_id, result))
        self._contexts.extend(result.additional_contexts)
        self._concluded = self._concluded or (isinstance(result, ToolSuccess) and result.concludes_turn)

    async def _skip_rest(self) -> None:
        """Records every call that was never started as a pair, and answers for it (contract D11, D12)."""
        for slot in self._slots[self._next :]:
            slot.seq = await self._record.called(slot.call_id, slot.call)
            self._next += 1
            await self._commit(slot, aborted(body_invoked=False))

    async def _drain_or_give_up(self) -> None:
        try:
            await self._drain()
        except anyio.get_cancelled_exc_class():
            await self._give_up()
            raise

    async def _drain(self) -> None:
        """Waits until no body runs any more."""
        while self._running:
            self._wake.look()
            await self._wake.wait()

    async def _give_up(self) -> None:
        """Ends a batch whose own task was cancelled: bodies are told and awaited, and every call gets its result."""
        self._shelter.abort(HOST_CANCELLED)
        with anyio.CancelScope(shield=True):
            await self._drain()
            if self._fault is not None:
                return
            try:
                for slot in self._slots[self._committed : self._next]:
                    if slot.pipeline_call is not None:
                        await self._commit(slot, slot.pipeline_call.interrupt())
                await self._skip_rest()
            except Exception:
                self._pipeline.logger.exception("the record of a cancelled batch is incomplete")
