"""One program of `run_code`: the tools that it is bound to, the lane of its calls, and its end (E10 to E37)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from ..registry import (
    JsonObject,
    JsonValue,
    LosslessError,
    Pipeline,
    SignalSource,
    ToolDefinition,
    ToolExecution,
    ToolRunContext,
    ToolSchema,
    ToolView,
    freeze,
    from_json_text,
    materialise,
)
from ..registry.pipeline import HOST_CANCELLED
from ..registry.pipeline.outcome import unwrap
from ..registry.pipeline.shelter import LeftOpenError
from ..registry.views import RUN_CODE, schema_of
from ..sandbox.seam import (
    BindingCall,
    BindingError,
    ErrorClass,
    FailureKind,
    Member,
    Namespace,
    Sandbox,
    SandboxRequest,
    SandboxResult,
    SandboxUnavailableError,
)
from ..sandbox.supervisor import abort_text
from .dispatch import SubCall, run_over, sub_call_input
from .errors import CodeRunFailedError, ProgramRefusedError
from .lane import Lane
from .rendering import log_entries

if TYPE_CHECKING:
    from ..registry import SessionLog
    from .preflight import Preflight

__all__ = ["NAMESPACE", "FaultReport", "Program", "Provide", "no_tools"]

NAMESPACE = "tools"
"""The global on which a program finds its tools (contract E10)."""

_ERROR_CLASS = ErrorClass("ToolCallError", "toolName")
_SETTLED = "run_code settled"
_UNAVAILABLE = (
    "the sandbox cannot be started on this host, and nothing of the program has run; the program is not the cause, and "
    "the host's log says what is"
)
_FAULT = "the host failed while it ran the program, which was stopped"

_LOGGER = logging.getLogger("ptc.runtime")

FaultReport: TypeAlias = Callable[[ToolExecution, Exception], None]
"""Takes a fault of the host in a `run_code` call, so that whoever runs the batch can raise it."""

Provide: TypeAlias = Callable[[ToolView], Sequence[ToolDefinition]]
"""Gives the tools of the executor's own that programs have beside those of a view; their names are free in it."""


def no_tools(_view: ToolView) -> Sequence[ToolDefinition]:
    """Gives a program no tools beside those of its view."""
    return ()


class Program:
    """One program: its bindings, its lane, and its end.

    Args:
        pipeline: what its calls pass.
        sandbox: where it runs.
        max_parallel: how many of its tools may run at once.
        report: told of faults of the host.
        provide: the tools of the executor's own that it has.
        run: the context of the `run_code` call whose body it is.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        sandbox: Sandbox,
        max_parallel: int,
        report: FaultReport,
        provide: Provide,
        run: ToolRunContext,
    ) -> None:
        self._report = report
        self._fault: Exception | None = None
        self._pipeline = pipeline
        self._sandbox = sandbox
        self._max_parallel = max_parallel
        self._provide = provide
        self._run = run
        self._outer = run.exec
        self._submitted = 0
        # The run's own signal: it follows the caller's, and fires when the program has ended (contract E30).
        self._controller = SignalSource()
        self._lane: Lane | None = None

    async def pass_preflight(self, code: str, preflight: Preflight) -> None:
        """Has the program checked before anything of it runs; no number of a sub-call is used.

        Raises:
            ProgramRefusedError: it must not run.
        """
        view: ToolView = self._pipeline.registry.view(self._outer.agent, self._outer.tool_set)
        tools = [*view.definitions.values(), *self._provided(view)]
        try:
            await preflight.admit(code, tools, call_id=self._outer.call_id, log=self._log(), signal=self._run.signal)
        except ProgramRefusedError:
            raise
        except Exception as fault:  # noqa: BLE001 - the record cannot be written: a fault of the host, as in the lane
            self._fail(fault)
            raise RuntimeError(_FAULT) from None

    async def complete(self, code: str) -> JsonValue:
        """Runs the program, drains what it started, and returns the value of `run_code` (contract E31, E34)."""
        request = SandboxRequest(program=code, namespaces=[self._namespace()], signal=self._controller.signal)
        unfollow = self._follow_caller()
        broken: Exception | None = None
        result: SandboxResult | None = None
        try:
            async with anyio.create_task_group() as tasks:
                lane = self._lane = Lane(
                    tasks,
                    self._pipeline,
                    self._pipeline.registry.events,
                    self._outer,
                    self._run,
                    self._controller.signal,
                    self._log(),
                    self._max_parallel,
                    self._fail,
                )
                tasks.start_soon(lane.drive)
                try:
                    result = await self._sandbox.run(request)
                except SandboxUnavailableError as error:
                    # It names paths and packages of the host, which are for the log and not for the model.
                    _LOGGER.error("run_code %s: the sandbox cannot be used: %s", self._outer.call_id, error)  # noqa: TRY400 - the text says it all
                    broken = CodeRunFailedError(FailureKind.SANDBOX_UNAVAILABLE.value, _UNAVAILABLE)
                except Exception as error:  # noqa: BLE001 - carried past the group, which would wrap it and cancel the bodies
                    broken = error
                finally:
                    self._controller.abort(_SETTLED)
                    reason = self._controller.signal.reason
                    lane.close(abort_text(reason), given_up=reason is HOST_CANCELLED)
        except Exception as error:  # noqa: BLE001 - for example a policy that left a scope open, which shows only here
            self._fail(unwrap(error))
        finally:
            unfollow()
        if broken is not None:
            raise broken
        if self._fault is not None or result is None:
            raise RuntimeError(_FAULT)
        return _value(result)

    def _fail(self, fault: Exception) -> None:
        """Ends the run for a fault of the host; its detail goes to the host and not to the model."""
        if self._fault is None:
            self._fault = fault
            if isinstance(fault, LeftOpenError):  # it ends the program that has called the tool, and nothing else
                _LOGGER.error("run_code %s: %s", self._outer.call_id, fault, exc_info=fault)
            else:
                self._report(self._outer, fault)
        self._controller.abort(_FAULT)
        if self._lane is not None:
            self._lane.close(_FAULT)

    def _follow_caller(self) -> Any:
        caller = self._run.signal
        unsubscribe = caller.subscribe(self._abort)
        if caller.aborted:
            self._controller.abort(caller.reason)
        return unsubscribe

    def _abort(self, reason: object) -> None:
        self._controller.abort(reason)

    def _log(self) -> SessionLog | None:
        return self._outer.agent.session if self._outer.agent is not None else None

    def _namespace(self) -> Namespace:
        """Binds the tools that the calling agent may see in this step (contract E10, E11)."""
        view: ToolView = self._pipeline.registry.view(self._outer.agent, self._outer.tool_set)
        members = {schema.name: self._member(schema) for schema in view.schemas() if schema.name != RUN_CODE}
        for provided in self._provided(view):
            members[provided.name] = self._member(schema_of(provided), provided)
        return Namespace(NAMESPACE, members, _ERROR_CLASS)

    def _provided(self, view: ToolView) -> Sequence[ToolDefinition]:
        """Returns the executor's own tools for this view; what goes wrong there is the host's, and not the model's."""
        try:
            return self._provide(view)
        except Exception as fault:  # noqa: BLE001 - a function of the host's, for example one that counts tokens
            self._fail(fault)
            raise RuntimeError(_FAULT) from None

    def _member(self, schema: ToolSchema, provided: ToolDefinition | None = None) -> Member:
        schema = replace(schema, parameters=freeze(schema.parameters))  # policies are shown it (contract E11)

        def call(made: BindingCall) -> SubCall:
            return self._submit(schema, made, provided)

        return Member(call, tuple(schema.parameters.get("properties", {})))  # type: ignore[arg-type]

    def _submit(self, schema: ToolSchema, made: BindingCall, provided: ToolDefinition | None) -> SubCall:
        """Puts one call of the program into the lane (contract E13 to E16).

        Raises:
            BindingError: the run is over, or the arguments are not JSON; the call takes no number (ruling 14).
        """
        lane, name = self._lane, schema.name
        if lane is None or lane.over is not None:
            raise BindingError(run_over(lane.over if lane and lane.over else _SETTLED, f"{name} not dispatched"))
        try:
            # Two copies: what a tool does with its own cannot change the record (contract E14).
            dispatched = materialise(made.arguments, root="arguments")
            logged = materialise(made.arguments, root="arguments")
        except LosslessError as lossy:
            raise BindingError(f"tool arguments must be lossless JSON: {lossy}; pass an object such as {{}}") from None
        self._submitted += 1
        call_id = f"{self._outer.call_id}:ptc:{self._submitted}"
        given = sub_call_input(self._outer, call_id, name, dispatched, self._controller.signal, schema)
        call = SubCall(given, logged, made.line, lambda: lane.over, provided)
        lane.submit(call)
        return call


def _value(result: SandboxResult) -> JsonValue:
    if result.error is not None:
        raise CodeRunFailedError(result.error.kind.value, result.error.message, result.logs)
    value: JsonObject = {"logs": log_entries(result.logs)}
    if result.value_json is not None:
        value["result"] = from_json_text(result.value_json)
    return value
