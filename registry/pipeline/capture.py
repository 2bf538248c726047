"""The beginning of a call: its input is read once, its identity minted, its arguments detached (contract C3 to C12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..decisions import ErrorInfo
from ..events import close_stray
from ..execution import ExecutionToken, ToolExecution, ToolExecutionInput, ToolFailure
from ..lossless import LosslessError, materialise
from ..signals import SignalSource
from ..values import MISSING, JsonValue, Missing
from .outcome import aborted, error_of, failure, failure_of, not_found
from .state import CallState, resolve_call

if TYPE_CHECKING:
    import logging

    from ..approval import ApprovalService
    from ..definition import ToolDefinition
    from ..registry import ToolRegistry

__all__ = ["admit", "capture"]


def capture(
    registry: ToolRegistry,
    approval: ApprovalService | None,
    logger: logging.Logger,
    call: ToolExecutionInput,
    transport: ToolDefinition | None,
    provided: ToolDefinition | None = None,
) -> CallState:
    """Reads every field of the input once and takes the content hooks of the definition visible now.

    The hooks are taken before the arguments are read, because reading them may run foreign code (contract C7).

    Raises:
        ValueError: the call id or the name is empty (contract C68).
    """
    call_id, name, agent, parent = call.call_id, call.name, call.agent, call.parent
    root, signal, schema, tool_set = call.root_call_id, call.signal, call.schema, call.tool_set
    for field, text in (("call_id", call_id), ("name", name)):
        if not isinstance(text, str) or not text:
            raise ValueError(f"a call's {field} must be a string that is not empty, not {text!r}")
    if parent is not None:
        transport = None  # programs call tools, and never the transport itself (contract E4)
    definition = resolve_call(registry, name, agent, tool_set, transport, provided)
    hooks = None if definition is None else (definition.project_content, definition.finalize_content)
    arguments, fault = _detach(call)
    own_source = None
    if signal is None:
        own_source = SignalSource()
        signal = own_source.signal
    captured = ToolExecution(
        call_id=call_id,
        root_call_id=call_id if root is None else root,
        name=name,
        token=ExecutionToken(),
        arguments=arguments,
        agent=agent,
        parent=parent,
        signal=signal,
        schema=schema,
        tool_set=tool_set,
        annotations=None if definition is None else definition.annotations,
    )
    return CallState(
        registry,
        approval,
        logger,
        captured,
        transport=transport,
        provided=provided,
        own_source=own_source,
        hooks=hooks,
        argument_fault=fault,
    )


def _detach(call: ToolExecutionInput) -> tuple[JsonValue | Missing, Exception | None]:
    """Returns the arguments, detached and frozen, or why they cannot be had (contract C6, C8)."""
    given: object = None
    try:
        given = call.arguments
        return materialise(given, root="arguments"), None
    except LosslessError as error:
        close_stray(given)
        return MISSING, TypeError(f"tool execution arguments must be losslessly JSON-serializable: {error}")
    except Exception as error:  # noqa: BLE001 - the arguments' own code failed; the call ends with its message
        return MISSING, error


def admit(state: CallState) -> bool:
    """Ends the calls that no policy gets to see, and tells whether the call goes on (contract C8, C9, C12)."""
    call, transport = state.exec, state.transport
    cancelled = call.signal.aborted
    if state.collapsed and not cancelled:
        state.finalizer = None
    if state.argument_fault is not None:
        state.end(failure_of(error_of(state.argument_fault)))
    elif cancelled:
        state.end(aborted(body_invoked=False))
    elif state.collapsed and transport is not None:
        state.end(_collapsed(call.name, transport.name))
    return state.outcome is None


def _collapsed(name: str, transport: str) -> ToolFailure:
    error = not_found(name)
    return failure(
        f'{error.message}: only "{transport}" can be called directly; call {name} from inside a program, '
        f"with `await tools.{name}(...)` in the code of {transport}",
        ErrorInfo(error.name, error.code),
    )
