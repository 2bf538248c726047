"""Every error that the registry and the pipeline raise or carry, as one tree.

    HarnessError                       code
    ├── ToolRegistrationError          TOOL_REGISTRATION      a contribution that the registry refuses
    ├── JsonSchemaError                UNSUPPORTED_SCHEMA     a schema outside the supported subset
    ├── ToolArgsError                  INVALID_ARGS           arguments that do not fit the declared parameters
    ├── ToolOutputError                INVALID_TOOL_OUTPUT    a value that does not fit the declared output
    ├── ToolNotFoundError              UNKNOWN_TOOL           no such tool in the caller's view
    ├── ToolContextUnavailableError    TOOL_CONTEXT_UNAVAILABLE  a body lacks the agent or service it needs
    ├── AbortError                     ABORTED                the call was cancelled
    ├── ToolTimeoutError               TOOL_TIMEOUT           the call passed the deadline that its tool declares
    ├── ToolExecutorUnavailableError   TOOL_EXECUTOR_UNAVAILABLE  the selected executor has been unloaded
    └── ToolBatchExecutionError        TOOL_BATCH_FAILED      an internal fault while a batch ran

Only these carry an identity (name and code) into results and records (contract C63); whatever else is raised keeps
its message and nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

__all__ = [
    "AbortError",
    "HarnessError",
    "JsonSchemaError",
    "ToolArgsError",
    "ToolBatchExecutionError",
    "ToolContextUnavailableError",
    "ToolExecutorUnavailableError",
    "ToolNotFoundError",
    "ToolOutputError",
    "ToolRegistrationError",
    "ToolTimeoutError",
]

ABORTED = "ABORTED"
ABORTED_BEFORE_DISPATCH = "ABORTED_BEFORE_DISPATCH"


class HarnessError(Exception):
    """Base of every error with an identity of its own (contract C63).

    Args:
        message: what the model, the host developer or the auditor reads.
        code: a stable identifier for machines; the class's own code when omitted.
    """

    default_code: ClassVar[str] = "HARNESS_ERROR"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code if code is not None else self.default_code

    @property
    def name(self) -> str:
        """The identity label that goes beside the code in results and records."""
        return type(self).__name__

    @property
    def message(self) -> str:
        """The text alone."""
        return str(self.args[0]) if self.args else ""


class ToolRegistrationError(HarnessError):
    """The registry refuses a registration, restriction or selection (contract A9 to A11, A29 to A32)."""

    default_code = "TOOL_REGISTRATION"


class JsonSchemaError(HarnessError):
    """A schema uses what the supported subset does not have (contract B11).

    Args:
        violations: one message for each violation, in walk order.
    """

    default_code = "UNSUPPORTED_SCHEMA"

    def __init__(self, violations: Sequence[str]) -> None:
        super().__init__("unsupported JSON schema: " + "; ".join(violations))
        self.violations = tuple(violations)


class ToolArgsError(HarnessError):
    """A tool's arguments do not fit its declared parameters (contract B56).

    Args:
        violations: one message for each violation, each naming the argument's path.
    """

    default_code = "INVALID_ARGS"

    def __init__(self, violations: Sequence[str]) -> None:
        super().__init__("invalid arguments: " + "; ".join(violations))
        self.violations = tuple(violations)


class ToolOutputError(HarnessError):
    """A tool's value does not fit its declared output, or cannot be rendered (contract B56, C43).

    Args:
        tool: the tool's name.
        violations: one message for each violation.
    """

    default_code = "INVALID_TOOL_OUTPUT"

    def __init__(self, tool: str, violations: Sequence[str]) -> None:
        super().__init__(f'tool "{tool}" returned invalid output: ' + "; ".join(violations))
        self.tool = tool
        self.violations = tuple(violations)


class ToolNotFoundError(HarnessError):
    """No tool of that name is visible to the caller (contract C10, A37)."""

    default_code = "UNKNOWN_TOOL"


class ToolContextUnavailableError(HarnessError):
    """A body needs an agent, a service or an open turn that this call does not have (contract C65)."""

    default_code = "TOOL_CONTEXT_UNAVAILABLE"


class AbortError(HarnessError):
    """The call was cancelled by the signal its caller owns (contract C34, C65).

    Args:
        message: the text; `tool call aborted` when omitted.
        reason: what the caller gave as the reason of the cancellation.
        code: `ABORTED`, or `ABORTED_BEFORE_DISPATCH` when the body never started.
    """

    default_code = ABORTED

    def __init__(self, message: str | None = None, *, reason: object = None, code: str = ABORTED) -> None:
        if message is None:
            message = "tool call aborted before dispatch" if code == ABORTED_BEFORE_DISPATCH else "tool call aborted"
        super().__init__(message, code=code)
        self.reason = reason


class ToolTimeoutError(HarnessError):
    """The call passed the deadline that its tool declares (contract K3, C65).

    It is also the reason of the signal that the tool's body was given.

    Args:
        timeout_ms: the deadline, in milliseconds.
    """

    default_code = "TOOL_TIMEOUT"

    def __init__(self, timeout_ms: float) -> None:
        shown = int(timeout_ms) if timeout_ms == int(timeout_ms) else timeout_ms
        super().__init__(f"tool call timed out after {shown}ms")
        self.timeout_ms = timeout_ms


class ToolExecutorUnavailableError(HarnessError):
    """The executor selected for this scope has been unloaded and nothing replaced it (contract A54, ruling 17)."""

    default_code = "TOOL_EXECUTOR_UNAVAILABLE"


class ToolBatchExecutionError(HarnessError):
    """An internal fault stopped a batch after it was drained (contract A60, D15, ruling 5).

    `__cause__` is the first failure.

    Args:
        message: what failed.
        results: the outcomes committed before the fault, in input order.
        additional_contexts: the contexts accepted before the fault.
        concluded: whether a committed result had concluded the turn.
    """

    default_code = "TOOL_BATCH_FAILED"

    def __init__(
        self,
        message: str,
        *,
        results: Sequence[Any] = (),
        additional_contexts: Sequence[Any] = (),
        concluded: bool = False,
    ) -> None:
        super().__init__(message)
        self.results = tuple(results)
        self.additional_contexts = tuple(additional_contexts)
        self.concluded = concluded
