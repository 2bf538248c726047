"""One run as its host sees it: calls go out, replies go in, budgets and signals end it, and one outcome wins.

Both backends run under it. A backend brings a `Vehicle` that carries the program; the supervisor is the `Port` through
which the vehicle tells what the program does, from a thread of its own if it likes.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from .guest.jsontext import LossyValueError
from .ledger import OutputLedger, json_string_size
from .longjson import detached, is_long
from .peer import IN_ONE_STEP, Completion, PeerCall, encode_reply, read_calls, to_json
from .seam import (
    BindingCall,
    Deferred,
    FailureKind,
    JsonText,
    JsonValue,
    Member,
    RunFailure,
    RunStatistics,
    SandboxRequest,
    SandboxResult,
    SandboxUnavailableError,
)
from .vehicle import MILLISECONDS, ComputeClock, Exit, RunLimits, Vehicle
from .wakeup import loop_caller, spawning_context, thread_safe_caller

__all__ = ["Supervisor", "abort_text", "failed_before_start"]

_CALLS_EACH_TURN = 16
_CANCELLED: Final = "the host cancelled the run"


class Supervisor:
    """Carries one request to its result.

    Args:
        request: what to run; its bindings have been checked.
        limits: its budgets.
        vehicle: what carries the program.
    """

    def __init__(self, request: SandboxRequest, limits: RunLimits, vehicle: Vehicle) -> None:
        self._limits = limits
        self._vehicle = vehicle
        self._signal = request.signal
        self._members: dict[str, Mapping[str, Member]] = {one.name: one.members for one in request.namespaces}
        self._ledger = OutputLedger(limits.max_output_bytes)
        self._clock = ComputeClock()
        self._lock = threading.Lock()
        self._cause: RunFailure | None = None
        self._inbox: deque[tuple[PeerCall, int]] = deque()
        self._unread: deque[str] = deque()
        self._all_read: anyio.Event | None = None
        self._answering = False
        self._last_id = 0
        self._outstanding = 0
        self._queued_bytes = 0
        self._inbox_size = 0
        self._tasks: TaskGroup | None = None
        self._context = spawning_context()
        self._unstarted: dict[int, tuple[Awaitable[JsonValue | JsonText], Coroutine[Any, Any, None]]] = {}
        self._calls = 0
        self._ended: Completion | Exit | None = None
        self._fault: Exception | None = None
        self._finished = False
        self._settled = anyio.Event()
        self.ended = anyio.Event()
        self._soon = thread_safe_caller()
        self._next_turn = loop_caller()
        self._thread = threading.get_ident()

    # What the vehicle's thread calls

    def started(self) -> None:
        """The program has control."""
        self._clock.resume()

    def waiting(self) -> None:
        """The program has given control away."""
        self._clock.pause()

    def taken(self) -> None:
        """The program has taken replies, so that calls may go on that had to stand back."""
        if self._inbox:
            self._on_loop(self._answer_inbox)

    def submit(self, text: str) -> None:
        """Reads a `submit` message and queues its calls for the event loop."""
        if self._cause is not None:
            return
        # Before anything is parsed: text becomes many times its size in objects of the host.
        most = self._limits.max_queued_bytes
        with self._lock:
            self._inbox_size += len(text)
            too_much = self._inbox_size > most
        if too_much:
            self.end(FailureKind.PROTOCOL, f"the program sent more than {most} bytes of calls without waiting for any")
            return
        if threading.get_ident() == self._thread and (self._unread or len(text) > IN_ONE_STEP):
            # It takes a while: a thread does it, and what comes meanwhile waits for its turn.
            self._unread.append(text)
            if len(self._unread) == 1 and self._tasks is not None:
                self._all_read = anyio.Event()
                self._context.run(self._tasks.start_soon, self._read_long, self._all_read)
            return
        self._take_calls(read_calls(text), text)

    async def _read_long(self, all_read: anyio.Event) -> None:
        limiter = anyio.CapacityLimiter(1)
        try:
            while self._unread and self._cause is None:
                text = self._unread[0]
                calls = await anyio.to_thread.run_sync(read_calls, text, abandon_on_cancel=True, limiter=limiter)
                self._unread.popleft()
                self._take_calls(calls, text)
        finally:
            all_read.set()

    def _take_calls(self, calls: list[PeerCall] | None, text: str) -> None:
        if calls is None:
            self.end(FailureKind.PROTOCOL, "the program's side sent calls that cannot be read")
            return
        fresh: list[PeerCall] = []
        for call in calls:
            # Ids count upwards, so that a repeated one is known without keeping them all (contract F35).
            if call.call_id > self._last_id:
                self._last_id = call.call_id
                fresh.append(call)
        if not fresh:
            self._forget(len(text))
            return
        each, rest = divmod(len(text), len(fresh))
        self._inbox.append((fresh[0], each + rest))
        self._inbox.extend([(call, each) for call in fresh[1:]])
        self._on_loop(self._answer_inbox)

    def _forget(self, size: int) -> None:
        with self._lock:
            self._inbox_size -= size

    def emit(self, text: str) -> None:
        """Adds what the program wrote to the ledger, and ends the run when that is too much."""
        if self._cause is None:
            self._ledger.write(text)
            if self._ledger.overflowed:
                self.end(FailureKind.OUTPUT_LIMIT, "")

    def end(self, kind: FailureKind, message: str) -> None:
        """Ends the run for a cause; the first one wins (contract F22). From any thread."""
        with self._lock:
            if self._cause is not None or self._finished:
                return
            self._cause = RunFailure(kind, message)
        self._vehicle.kill()

    # What the event loop does

    def _on_loop(self, callback: Callable[[], object]) -> None:
        """Calls at once on the event loop's own thread, and soon from any other."""
        if threading.get_ident() == self._thread:
            callback()
        else:
            self._soon(callback)

    async def run(self) -> SandboxResult:
        """Runs the program, and returns when the substrate has exited and nothing of the run is left."""
        started = time.perf_counter()
        unsubscribe = self._follow_signal()
        drive = self._drive()
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(lambda: drive)
                try:
                    await self._watch(started + self._limits.max_wall_ms / MILLISECONDS)
                finally:
                    self._tasks = None
                    # Also when the host's own task is cancelled: the program must not outlive it.
                    self.end(FailureKind.ABORT, _CANCELLED)
                    tasks.cancel_scope.cancel()
        finally:
            unsubscribe()
            drive.close()  # asyncio may have cancelled its task before that began
            self._close_unstarted()
            self.ended.set()
        # What could not be made ready does not matter any more when the run had ended before (contract F22).
        if self._fault is not None and not (self._cause and isinstance(self._fault, SandboxUnavailableError)):
            raise self._fault
        self._clock.pause()
        statistics = RunStatistics(
            compute_ms=self._clock.ms, wall_ms=(time.perf_counter() - started) * MILLISECONDS, calls=self._calls
        )
        return self._settle(statistics)

    def _follow_signal(self) -> Callable[[], None]:
        signal = self._signal
        if signal is None:
            return lambda: None
        unsubscribe = signal.subscribe(lambda reason: self.end(FailureKind.ABORT, abort_text(reason)))
        if signal.aborted:
            self.end(FailureKind.ABORT, abort_text(signal.reason))
        return unsubscribe

    async def _drive(self) -> None:
        try:
            with anyio.CancelScope(shield=True):
                self._ended = await self._vehicle.drive(self)
                if self._all_read is not None:
                    await self._all_read.wait()  # what the program called before its end is called
        except Exception as fault:  # noqa: BLE001 - `run` raises it bare, where a task group would wrap it
            self._fault = fault
        except BaseException:
            # No shield holds when asyncio cancels this very task, as it does with all of them at its end.
            self.end(FailureKind.ABORT, _CANCELLED)
            raise
        finally:
            with self._lock:
                self._finished = True
            self._settled.set()

    async def _watch(self, wall_deadline: float) -> None:
        while not self._finished:
            with anyio.move_on_after(self._check_budgets(wall_deadline)):
                await self._settled.wait()

    def _answer_inbox(self) -> None:
        """Makes the calls that have come, on the event loop and in no task: most need none.

        They stand back while the program does not take its replies, because those are kept for it. Many are made in
        several turns of the loop, so that a program with thousands of them does not keep the host from its own work.
        """
        if self._answering:
            return  # another turn has been asked for already
        for _ in range(_CALLS_EACH_TURN):
            if not self._inbox or self._vehicle.backlog > self._limits.max_queued_bytes:
                break
            call, size = self._inbox.popleft()
            self._start_call(call, size)
            self._forget(size)
        else:
            if self._inbox:
                self._answering = True
                self._next_turn(self._answer_more)

    def _answer_more(self) -> None:
        self._answering = False
        self._answer_inbox()

    def _check_budgets(self, wall_deadline: float) -> float:
        """Ends the run when a budget is used up; returns the seconds until the next look."""
        limits = self._limits
        wall_left = wall_deadline - time.perf_counter()
        if wall_left <= 0:
            self.end(FailureKind.TIMEOUT, f"wall-clock ceiling reached ({limits.max_wall_ms:g}ms)")
        busy = self._clock.ms
        compute_left = (limits.compute_ms - busy) / MILLISECONDS
        if compute_left <= 0:
            self.end(FailureKind.TIMEOUT, f"compute budget exhausted ({limits.compute_ms:g}ms busy)")
        if self._cause is not None:
            return 3600.0
        return max(0.0, min(wall_left, compute_left))

    def _start_call(self, call: PeerCall, size: int) -> None:
        if self._cause is not None or self._finished:
            return
        member = self._members.get(call.namespace, {}).get(call.member)
        refusal = call.refusal
        if refusal is None and member is None:
            refusal = f'unknown binding "{call.namespace}.{call.member}"'
        if refusal is None and self._outstanding >= self._limits.max_outstanding_calls:
            refusal = f"more than {self._limits.max_outstanding_calls} calls are unanswered; await some of them first"
        if refusal is None and self._queued_bytes + size > self._limits.max_queued_bytes:
            refusal = f"unanswered calls hold more than {self._limits.max_queued_bytes} bytes; await some of them first"
        if refusal is not None or member is None:
            self._vehicle.reply(encode_reply(call.call_id, False, to_json(refusal, "refusal")))
            return
        self._outstanding += 1
        self._queued_bytes += size
        self._calls += 1
        made = BindingCall(call.namespace, call.member, call.arguments, call.line)
        try:
            # Called here and not in the task: tasks start in any order, calls are made in the program's.
            answer = member.function(made)
        except Exception as error:  # noqa: BLE001 - whatever it is, it fails the program's call
            raised = error  # bound anew, because the name goes away with the block
            self._finish(call, size, lambda: _raise(raised))
            return
        # Not `isinstance`: with a protocol that is a slow question, and this is on the path of every call.
        if hasattr(answer, "add_done_callback"):
            deferred = cast("Deferred", answer)
            deferred.add_done_callback(lambda done: self._finish(call, size, done.result))
            return
        awaitable = cast("Awaitable[JsonValue | JsonText]", answer)
        serve = self._serve(call, awaitable, size)
        self._unstarted[call.call_id] = awaitable, serve
        if self._tasks is not None:
            # What calls this may have any context; the task gets that of whoever runs the program.
            self._context.run(self._tasks.start_soon, lambda: serve)

    def _close_unstarted(self) -> None:
        """Closes what was called and never awaited, because the run had ended before its task began."""
        for answer, serve in self._unstarted.values():
            serve.close()
            if inspect.iscoroutine(answer):
                answer.close()
        self._unstarted.clear()

    async def _serve(self, call: PeerCall, answer: Awaitable[JsonValue | JsonText], size: int) -> None:
        self._unstarted.pop(call.call_id, None)
        try:
            value = await answer
            if not isinstance(value, JsonText) and is_long(value):
                # The walk gives other threads their turns, so that the loop goes on while a thread does it. The value
                # is the one of now, whatever its owner does with it meanwhile (contract F37).
                now, limiter = cast("JsonValue", detached(value)), anyio.CapacityLimiter(1)
                text = await anyio.to_thread.run_sync(_resolved, now, abandon_on_cancel=True, limiter=limiter)
                value = JsonText(text)
        except Exception as error:  # noqa: BLE001 - whatever it is, it fails the program's call
            raised = error
            self._finish(call, size, lambda: _raise(raised))
        else:
            self._finish(call, size, lambda: value)

    def _finish(self, call: PeerCall, size: int, result: Callable[[], JsonValue | JsonText]) -> None:
        """Gives the program the answer to one call."""
        try:
            value = result()
            ok, payload = True, value.text if isinstance(value, JsonText) else _resolved(value)
        except LossyValueError as lossy:
            ok, payload = False, to_json(f"binding resolution must be lossless JSON: {lossy}", "message")
        except Exception as error:  # noqa: BLE001 - the same
            ok, payload = False, to_json(_error_text(error), "message")
        self._outstanding -= 1
        self._queued_bytes -= size
        if not self._finished:
            self._vehicle.reply(encode_reply(call.call_id, ok, payload))

    # The outcome

    def _settle(self, statistics: RunStatistics) -> SandboxResult:
        if self._cause is not None:
            return _failed(self._ledger, self._cause, statistics)
        match self._ended:
            case Completion(kind=None, value_json=value_json):
                size = len(value_json.encode()) if value_json is not None else 0
                logs = self._ledger.settle(size)
                if logs is None:
                    return _overflowed(self._ledger, statistics)
                return SandboxResult(logs=logs, value_json=value_json, statistics=statistics)
            case Completion(kind=FailureKind() as kind, message=message):
                return _failed(self._ledger, RunFailure(kind, message), statistics)
            case Exit(message):
                return _failed(self._ledger, RunFailure(FailureKind.WORKER_EXIT, message), statistics)
            case _:
                failure = RunFailure(FailureKind.PROTOCOL, "the program's side ended with a malformed completion")
                return _failed(self._ledger, failure, statistics)


def _resolved(value: JsonValue) -> str:
    return to_json(value, "binding resolution")


def _raise(error: Exception) -> JsonValue:
    raise error


def _failed(ledger: OutputLedger, failure: RunFailure, statistics: RunStatistics) -> SandboxResult:
    logs = None
    if failure.kind is not FailureKind.OUTPUT_LIMIT:
        logs = ledger.settle(json_string_size(failure.message))
    if logs is None:
        return _overflowed(ledger, statistics)
    return SandboxResult(logs=logs, error=failure, statistics=statistics)


def _overflowed(ledger: OutputLedger, statistics: RunStatistics) -> SandboxResult:
    logs, message = ledger.overflow()
    return SandboxResult(logs=logs, error=RunFailure(FailureKind.OUTPUT_LIMIT, message), statistics=statistics)


def failed_before_start(failure: RunFailure, max_output_bytes: int) -> SandboxResult:
    """Returns the result of a run that failed before anything was started; the ledger applies all the same (F31)."""
    return _failed(OutputLedger(max_output_bytes), failure, RunStatistics())


def abort_text(reason: object) -> str:
    """Returns the message for a caller's reason (contract F21)."""
    if reason is None:
        return "the run was aborted"
    try:
        return _safe(str(reason)) or type(reason).__name__
    except Exception:  # noqa: BLE001 - a reason that cannot be told
        return "the run was aborted"


def _error_text(error: Exception) -> str:
    try:
        return _safe(str(error)) or type(error).__name__
    except Exception:  # noqa: BLE001 - an error that cannot be told fails its call all the same
        return type(error).__name__


def _safe(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
