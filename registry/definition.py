"""What a tool is to the registry: a definition that it borrows and never changes (contract A13)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .tool_annotations import ToolAnnotations
from .values import MISSING, ContentBlock, JsonObject, JsonValue, Missing

if TYPE_CHECKING:
    from .decisions import ContextMessage
    from .execution import ToolExecution, ToolExecutionResult
    from .presenters import PresentedCall, PresentedResult, RecordedResult
    from .scopes import ScopeKey
    from .signals import Signal

__all__ = ["ToolDefinition", "ToolOutput", "ToolRunContext", "ToolSchema"]


class ToolRunContext(Protocol):
    """What a body is given beside its arguments.

    Attributes:
        exec: the call's identity: ids, name, agent, parent token.
        signal: fires when the call should stop; a body that ignores it is awaited all the same (contract C32).
        agent: the calling agent, or `None`.
    """

    @property
    def exec(self) -> ToolExecution: ...

    @property
    def signal(self) -> Signal: ...

    @property
    def agent(self) -> ScopeKey | None: ...

    def defer_context(self, message: ContextMessage) -> None:
        """Adds a message to the conversation after the batch, whether this call succeeds or fails (contract C66).

        It is lost when a wrapper or a post-execute listener raises, or a policy blocks the result (ruling 15, C53).
        """
        ...

    def conclude_turn(self) -> None:
        """Asks that the turn end after this batch, if this call succeeds (contract C67)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolOutput:
    """What a tool returns, and how the model sees it.

    Attributes:
        schema: the JSON Schema of the value (the supported subset, contract B8; any keyword when `raw`).
        render: `(arguments, value) -> content blocks`, synchronous and pure (contract C43).
        presentation_meta: `(arguments, value) -> JSON` kept with the record for presenters (contract C44).
        raw: whether `schema` is a full JSON Schema of the raw-schema door (ruling 39).
        check: what checks a value instead of `schema` read anew each time: `value -> violations`. The raw-schema door
            and `@tool` keep the compiled schema here.
    """

    schema: Mapping[str, Any]
    render: Callable[[JsonValue, JsonValue], Sequence[ContentBlock]]
    presentation_meta: Callable[[JsonValue, JsonValue], JsonValue] | None = None
    raw: bool = False
    check: Callable[[JsonValue], list[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class ToolDefinition:
    """One tool. Build it with `define_tool` or `@tool`; the bare class is the raw door (contract A17).

    Attributes:
        name: what models and programs call it.
        description: what the model reads of it.
        parameters: the JSON Schema of its arguments object.
        output: its output contract.
        execute: the body, `async (arguments, run) -> value`.
        timeout_ms: the deadline that the timeout policy enforces, in milliseconds (contract K1).
        is_concurrency_safe: `(arguments) -> bool`; only exactly `True` lets calls overlap (contract D2).
        project_content: `(exec, result) -> content | None`, once before post-execute (contract C55).
        finalize_content: `(exec, result) -> content | None`, once for every outcome (contract C56).
        present_call: `(arguments) -> card | None` for a pending call; synchronous and pure (contract H1, H5).
        present_result: `(arguments, result) -> card | None` for a completed one, likewise (contract H2). It is given
            what the record has of the result.
        annotations: what the tool says of its effects, for policies; `None` when it says nothing.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    output: ToolOutput
    execute: Callable[[Any, ToolRunContext], Awaitable[Any]]
    timeout_ms: float | None = None
    is_concurrency_safe: Callable[[JsonValue], bool] | None = None
    project_content: Callable[[ToolExecution, ToolExecutionResult], Sequence[ContentBlock] | None] | None = None
    finalize_content: Callable[[ToolExecution, ToolExecutionResult], Sequence[ContentBlock] | None] | None = None
    present_call: Callable[[JsonValue], PresentedCall] | None = None
    present_result: Callable[[JsonValue, RecordedResult], PresentedResult] | None = None
    annotations: ToolAnnotations | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """What a model may know of a tool natively: exactly these three (contract A27).

    `output` is there for the SDK text only and is `MISSING` in what the registry projects for native calls.
    """

    name: str
    description: str
    parameters: JsonObject
    output: JsonValue | Missing = field(default=MISSING)
