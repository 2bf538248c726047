"""The lane in which a program's calls run: ordered where order matters, side by side where tools allow it.

One driver performs every ordered stage (contract E17): it commits the oldest started call once its body has ended,
or else starts the next one in the queue, or else sleeps. Only bodies overlap. Calls start and commit in the order in
which the program made them; an exclusive one has the lane to itself until its commit.

A call about which a person is asked leaves the lane until the answer is there, so that nothing but the call waits for
a person. Then it is the next to start, and the order of commits has it where that was.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

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
    ToolExecutionResult,
    ToolRunContext,
    ToolSuccess,
    Wake,
)
from ..registry.events import EXECUTE, POST_EXECUTE, PRE_EXECUTE
from ..registry.pipeline.shelter import LeftOpenError
from ..sandbox.longjson import is_long, long_json_text
from . import overtime
from .asking import Asking
from .dispatch import (
    DISPATCH_LOG_EVENT,
    SubCall,
    image_message,
    record_settle,
    record_start,
    run_over,
)
from .overtime import Overtime

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
        self._shaping = Overtime()
        self._policies = Overtime()
        self._over: str | None = None
        self._wake = Wake()
        self._asking = Asking(tasks, self._policies, max_parallel, self._wake, on_fault)

    @property
    def over(self) -> str | None:
        """Why the run is over; `None` while it is not."""
        return self._over

    def submit(self, call: SubCall) -> None:
        """Puts a call at the end of the queue."""
        self._queue.append(call)
        self._wake.change()

    def close(self, reason: str, *, given_up: bool = False) -> None:
        """Ends the run: what has not started is abandoned, what has is awaited (contract E31).

        Args:
            reason: why, for the program's calls.
            given_up: whether the host has cancelled the task that made the outer call. Policies are cancelled with it,
                as those of a native call are; otherwise they have some time left.
        """
        if self._over is None:
            self._over = reason
            self._shaping.end(overtime.SHAPING_GRACE_S)
            self._policies.end(0 if given_up else overtime.POLICY_GRACE_S)
        while self._queue:
            call = self._queue.popleft()
            call.refuse(run_over(self._over, f"{call.name} tool call abandoned"))
        self._wake.change()

    async def drive(self) -> None:
        """Performs the ordered stages until the run is over and everything that started has been committed.

        A fault of the host, for example a record that cannot be written, is told to `on_fault`, which ends the run;
        what has started is drained and recorded as far as that is possible.
        """
        try:
            await self._take_turns()
        except Exception as error:  # noqa: BLE001 - a fault of the lane itself; bodies are awaited all the same
            self._on_fault(error)
            await self._give_up()
        except anyio.get_cancelled_exc_class():
            self._on_fault(_cancelled_by_policy())
            with anyio.CancelScope(shield=True):
                await self._give_up()
            raise

    async def _take_turns(self) -> None:
        while True:
            self._wake.look()
            if self._started and self._started[0].settled:
                await self._commit(self._started[0])
            elif self._asking.answered and self._may_go_on(self._asking.answered[0]):
                self._go_on(self._asking.answered.popleft())
            elif self._queue and not self._asking.answered and self._may_start(self._queue[0]):
                await self._start(self._queue.popleft())
            elif self._over is not None and not self._started and not self._log_work and self._asking.idle:
                break
            else:
                await self._wake.wait()

    async def _give_up(self) -> None:
        """Ends what has started past all policies; each call is awaited and recorded all the same."""
        while self._started or self._log_work or not self._asking.idle:
            self._wake.look()
            while self._asking.answered:
                call = self._asking.answered.popleft()
                call.settled = True
                self._started.append(call)
            if self._started and self._started[0].settled:
                call = self._started.popleft()
                assert call.pipeline_call is not None
                await self._accept(call, call.pipeline_call.interrupt())
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
        call.pipeline_call = started = self._pipeline.call(call.input, provided=call.provided)
        self._started.append(call)
        try:
            with self._policy_time(PRE_EXECUTE, call) as scope:
                await started.prepare(ask=False)
            call.broken_off = scope is not None and scope.cancelled_caught
        except Exception as error:  # noqa: BLE001 - a fault of the pipeline itself
            self._on_fault(error)
        finally:
            call.settled = not started.needs_dispatch
        if started.has_question:
            self._started.pop()
            self._exclusive = False
            self._asking.put(call)
        elif not call.settled:
            self._launch(call, started)

    def _may_go_on(self, call: SubCall) -> bool:
        """Tells whether a call may go on that has its answer; one that does not run need not wait for those that do."""
        return call.broken_off or not (call.pipeline_call and call.pipeline_call.granted) or self._may_start(call)

    def _go_on(self, call: SubCall) -> None:
        """Has the guards decide about a call that was asked about, and launches it."""
        made = call.pipeline_call
        assert made is not None  # it has started
        if not call.broken_off:
            made.go_on()
        self._started.append(call)
        call.settled = not made.needs_dispatch
        if not call.settled:
            self._exclusive = call.mode == "exclusive"
            self._launch(call, made)

    def _launch(self, call: SubCall, started: PipelineCall) -> None:
        self._in_flight += 1
        self._tasks.start_soon(self._body, call, started)

    async def _body(self, call: SubCall, started: PipelineCall) -> None:
        dispatched = False
        try:
            with anyio.CancelScope():  # what is left open inside shows at its end, and not in the lane's own tasks
                # The run's signal fires when anything ends the run, so no call needs a shelter of its own.
                await started.dispatch(shelter=self._signal)
                dispatched = True
        except Exception as error:  # noqa: BLE001 - a fault of the pipeline itself; it must not cancel other bodies
            wrapped = self._events.listeners(EXECUTE, call.input.agent)  # then it may be a policy's
            self._on_fault(LeftOpenError(call.name, error) if dispatched and not wrapped else error)
        except anyio.get_cancelled_exc_class():
            self._on_fault(_cancelled_by_policy())
            raise
        finally:
            self._in_flight -= 1
            call.settled = True
            self._wake.change()

    async def _commit(self, call: SubCall) -> None:
        outcome = await self._finish(call)
        self._started.popleft()
        await self._accept(call, outcome)

    async def _finish(self, call: SubCall) -> ToolExecutionResult:
        """Runs what comes after the body; a call that cannot be finished ends as an aborted one."""
        made = call.pipeline_call
        assert made is not None  # it has started
        if not call.broken_off:
            try:
                with self._policy_time(POST_EXECUTE, call):
                    return await made.finish()
            except Exception as error:  # noqa: BLE001 - a fault of the pipeline itself; the call is recorded as aborted
                self._on_fault(error)
                return made.interrupt()
        _LOGGER.warning(
            "a policy of %s (%s) was not through in time after the end of the run; the call is recorded as aborted",
            call.call_id,
            call.name,
        )
        return made.interrupt()

    def _policy_time(self, event: str, call: SubCall) -> AbstractContextManager[anyio.CancelScope | None]:
        """Limits how long the listeners of an event may go on when the run is over; where there are none, nothing."""
        return self._policies.scope() if self._events.listeners(event, call.input.agent) else nullcontext()

    async def _accept(self, call: SubCall, outcome: ToolExecutionResult) -> None:
        """Gives a call's outcome to the program, to the outer call and to the record (contract E23)."""
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


def _cancelled_by_policy() -> RuntimeError:
    """Says why a task of the lane was cancelled: nobody has its handle but the policies that run in it."""
    return RuntimeError("a policy of a program's call has cancelled the task that it ran in")


async def _text_of(value: JsonValue) -> str:
    """Writes a long value in a thread; with a limiter of its own, since tools may keep all others."""
    with anyio.CancelScope(shield=True):
        return await anyio.to_thread.run_sync(long_json_text, value, limiter=anyio.CapacityLimiter(1))
    raise AssertionError("nobody cancels this scope")  # it could be left without a value only then
