"""The lane in which a program's calls run: ordered where order matters, side by side where tools allow it.

One driver performs every ordered stage (contract E17): it commits the oldest started call once its body has ended,
or else starts the next one in the queue, or else sleeps. Only bodies overlap. Calls start and commit in the order in
which the program made them; an exclusive one has the lane to itself until its commit.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from ..registry import (
    EventBus,
    JsonValue,
    Pipeline,
    PipelineCall,
    SessionLog,
    Signal,
    ToolExecution,
    ToolRunContext,
    ToolSuccess,
    Wake,
)
from ..sandbox.longjson import is_long, long_json_text
from .dispatch import (
    DISPATCH_LOG_EVENT,
    ShapingTime,
    SubCall,
    image_message,
    record_settle,
    record_start,
    run_over,
)

__all__ = ["Lane"]

_LOGGER = logging.getLogger("ptc.runtime")


class Lane:
    """The calls of one program.

    Args:
        tasks: where bodies and log work run; it is left only when they have ended.
        pipeline: what every call passes.
        events: where listeners of the durable copy are.
        outer: the `run_code` call.
        run: the outer call's context, which takes messages and the wish to conclude.
        signal: the run's own signal, which its calls are given.
        log: the session's log, or `None` when there is no agent or no session (contract E36).
        max_parallel: how many bodies may run at once.
        on_fault: told of faults of the host; it ends the run.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        pipeline: Pipeline,
        events: EventBus,
        outer: ToolExecution,
        run: ToolRunContext,
        signal: Signal,
        log: SessionLog | None,
        max_parallel: int,
        on_fault: Callable[[Exception], None],
    ) -> None:
        self._tasks = tasks
        self._pipeline = pipeline
        self._events = events
        self._outer = outer
        self._run = run
        self._signal = signal
        self._log = log
        self._max_parallel = max_parallel
        self._on_fault = on_fault
        self._queue: deque[SubCall] = deque()
        self._started: deque[SubCall] = deque()
        self._in_flight = 0
        self._exclusive = False
        self._log_work = 0
        self._shaping = ShapingTime()
        self._over: str | None = None
        self._wake = Wake()

    @property
    def over(self) -> str | None:
        """Why the run is over; `None` while it is not."""
        return self._over

    def submit(self, call: SubCall) -> None:
        """Puts a call at the end of the queue."""
        self._queue.append(call)
        self._wake.change()

    def close(self, reason: str) -> None:
        """Ends the run: what has not started is abandoned, what has is awaited (contract E31)."""
        if self._over is None:
            self._over = reason
            self._shaping.end()
        while self._queue:
            call = self._queue.popleft()
            call.refuse(run_over(self._over, f"{call.name} tool call abandoned"))
        self._wake.change()

    async def drive(self) -> None:
        """Performs the ordered stages until the run is over and everything that started has been committed.

        A fault of the host, for example a record that cannot be written, is told to `on_fault`, which ends the run;
        what has started is drained and recorded as far as that is possible.
        """
        while True:
            self._wake.look()
            if self._started and self._started[0].settled:
                await self._commit(self._started.popleft())
            elif self._queue and self._may_start(self._queue[0]):
                await self._start(self._queue.popleft())
            elif self._over is not None and not self._started and not self._log_work:
                break
            else:
                await self._wake.wait()

    def _may_start(self, call: SubCall) -> bool:
        if self._exclusive:
            return False
        # Asked anew at each attempt: what calls before it changed in the registry counts (contract E19).
        made = call.input
        call.mode = self._pipeline.classify(
            made.name, made.arguments, made.agent, made.tool_set, parent=made.parent, provided=call.provided
        )
        return self._in_flight == 0 if call.mode == "exclusive" else self._in_flight < self._max_parallel

    async def _start(self, call: SubCall) -> None:
        if self._log is not None:
            try:
                await record_start(self._log, self._outer, call)
            except Exception:
                # What failed is the host's own business; the program learns only that nothing happened.
                _LOGGER.exception("the start of %s (%s) could not be recorded", call.call_id, call.name)
                call.refuse(f"{call.name} did not run, because its start could not be recorded")
                return
        self._exclusive = call.mode == "exclusive"
        self._started.append(call)
        call.pipeline_call = started = self._pipeline.call(call.input, provided=call.provided)
        try:
            await started.prepare()
        except Exception as error:  # noqa: BLE001 - a fault of the pipeline itself
            self._on_fault(error)
        if started.needs_dispatch:
            self._in_flight += 1
            self._tasks.start_soon(self._body, call, started)
        else:
            call.settled = True

    async def _body(self, call: SubCall, started: PipelineCall) -> None:
        try:
            # The run's signal fires when anything ends the run, so no call needs a shelter of its own.
            await started.dispatch(shelter=self._signal)
        except Exception as error:  # noqa: BLE001 - a fault of the pipeline itself; it must not cancel other bodies
            self._on_fault(error)
        finally:
            self._in_flight -= 1
            call.settled = True
            self._wake.change()

    async def _commit(self, call: SubCall) -> None:
        assert call.pipeline_call is not None  # it has started
        try:
            outcome = await call.pipeline_call.finish()
        except Exception as error:  # noqa: BLE001 - a fault of the pipeline itself; the call is recorded as aborted
            self._on_fault(error)
            outcome = call.pipeline_call.interrupt()
        image = image_message(outcome)
        if image is not None:
            self._run.defer_context(image)
        for message in outcome.additional_contexts:
            self._run.defer_context(message)
        if isinstance(outcome, ToolSuccess) and outcome.concludes_turn:
            self._run.conclude_turn()
        if isinstance(outcome, ToolSuccess) and self._over is None and is_long(outcome.value):
            # Beside the loop, and before the next commit: answers come in the order of the calls (contract E22).
            call.text = await _text_of(outcome.value)
        # The program has its answer before the durable copy is shaped (contract E24).
        call.answer(outcome)
        self._exclusive = False
        if self._log is None:
            return
        self._log_work += 1
        if not self._events.listeners(DISPATCH_LOG_EVENT, self._outer.agent):
            # Nobody shapes the copy, so there is nothing that could take its time: no task for it.
            await self._settle(self._log, call)
        else:
            self._tasks.start_soon(self._settle, self._log, call)
            while self._log_work > self._max_parallel:
                self._wake.look()
                await self._wake.wait()

    async def _settle(self, log: SessionLog, call: SubCall) -> None:
        try:
            await record_settle(log, self._events, self._outer, call, self._shaping)
        except Exception as error:  # noqa: BLE001 - it ends the run: nothing more happens that has no record
            self._on_fault(error)
        finally:
            self._log_work -= 1
            self._wake.change()


async def _text_of(value: JsonValue) -> str:
    """Writes a long value in a thread; with a limiter of its own, since tools may keep all others."""
    with anyio.CancelScope(shield=True):
        return await anyio.to_thread.run_sync(long_json_text, value, limiter=anyio.CapacityLimiter(1))
    raise AssertionError("nobody cancels this scope")  # it could be left without a value only then
