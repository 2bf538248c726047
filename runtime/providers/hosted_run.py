"""The run of one program that a provider runs itself, seen from `run_code`: a sandbox whose program is elsewhere.

`run_code` asks its sandbox to run a program and hands it the tools as functions. Here the program runs at the
provider, which sends its calls one response at a time; the run hands them to those functions, and ends when the
provider tells how the program ended. So the calls are sub-calls like any others: policies, order, limits and records
are the ones of `run_code`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import anyio

from ...registry import (
    JsonValue,
    ToolCall,
    ToolError,
    ToolExecutionResult,
    ToolFailure,
    ToolSuccess,
    from_json_text,
    parse_arguments,
    text_block,
    to_json_text,
)
from ...sandbox.seam import (
    BindingCall,
    BindingError,
    Deferred,
    FailureKind,
    JsonText,
    Namespace,
    RunFailure,
    SandboxRequest,
    SandboxResult,
)

if TYPE_CHECKING:
    from .hosted_step import HostedEnd
    from .shapes import HostedCall

__all__ = ["HostedRun", "PendingCall", "ProgramCall", "failed"]


def failed(message: str) -> ToolFailure:
    """Returns a failure that no tool and no policy made."""
    return ToolFailure(error=ToolError(message), content=[text_block(f"Error: {message}")])


class PendingCall:
    """A call that the program waits for.

    Args:
        answer: what comes later, or the failure that is known at once.
    """

    def __init__(self, answer: Deferred | ToolFailure) -> None:
        self._answer = answer
        self._there = anyio.Event()
        if isinstance(answer, ToolFailure):
            self._there.set()
        else:
            answer.add_done_callback(lambda _answer: self._there.set())

    async def result(self) -> ToolExecutionResult:
        """Waits, and returns what the program gets: the value, or a failure with the message alone (E27)."""
        await self._there.wait()
        if isinstance(self._answer, ToolFailure):
            return self._answer
        try:
            answer = self._answer.result()
        except BindingError as refused:
            return failed(str(refused))
        text = answer.text if isinstance(answer, JsonText) else to_json_text(cast("JsonValue", answer))
        return ToolSuccess(value=from_json_text(text), content=[text_block(text)])


class HostedRun:
    """What `run_code` is given as the sandbox of one hosted program. Of a `Sandbox` it has what `run_code` uses.

    Attributes:
        language: what `run_code` knows. The source may be in another language; nothing here reads it.
        isolation: nothing of the program runs on this machine.
        ready: set once calls can be made, or once it is known that none can.
        over: set once the run has its end.
    """

    language: Literal["python"] = "python"
    isolation: Literal["provider"] = "provider"

    def __init__(self) -> None:
        self.ready = anyio.Event()
        self.over = anyio.Event()
        self._namespace: Namespace | None = None
        self._result: SandboxResult | None = None

    @property
    def started(self) -> bool:
        """Whether `run_code` has run it; it has not when a policy refused."""
        return self._namespace is not None

    async def run(self, request: SandboxRequest) -> SandboxResult:
        """Waits for the program's end, which `end` or `fail` tells, or for the request's signal."""
        signal = request.signal
        unfollow = signal.subscribe(self._abort) if signal is not None else None
        try:
            if signal is not None and signal.aborted:
                self._abort(signal.reason)
            self._namespace = request.namespaces[0]
            self.ready.set()
            await self.over.wait()
        finally:
            if unfollow is not None:
                unfollow()
        assert self._result is not None  # `over` is set behind it
        return self._result

    def submit(self, call: HostedCall) -> PendingCall:
        """Makes one call of the program; it must be `ready`."""
        if self._namespace is None or self._result is not None:
            return PendingCall(failed(f"the program of this call is over; {call.name} was not called"))
        member = self._namespace.members.get(call.name)
        if member is None:
            return PendingCall(failed(f'unknown tool "{call.name}"'))
        arguments = cast("JsonValue", parse_arguments(call.arguments))
        made = BindingCall(self._namespace.name, call.name, arguments, 0)
        try:
            answer = member.function(made)
        except BindingError as refused:
            return PendingCall(failed(str(refused)))
        assert isinstance(answer, Deferred)  # the calls of `run_code` are
        return PendingCall(answer)

    def end(self, told: HostedEnd) -> None:
        """Ends the run as the provider tells."""
        error = None
        if told.error is not None:
            error = RunFailure(FailureKind.TIMEOUT if told.timed_out else FailureKind.EXCEPTION, told.error)
        self._finish(SandboxResult(logs=tuple(told.output.splitlines()), error=error))

    def fail(self, why: str) -> None:
        """Ends the run without word from the provider; calls that have not started are abandoned."""
        self._finish(SandboxResult(error=RunFailure(FailureKind.ABORT, why)))

    def _abort(self, reason: object) -> None:
        self.fail("the run was cancelled" if reason is None else str(reason))

    def _finish(self, result: SandboxResult) -> None:
        """The first end counts."""
        if self._result is None:
            self._result = result
            self.over.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCall(ToolCall):
    """The call of `run_code` that stands for a hosted program; no model can make one."""

    run: HostedRun
