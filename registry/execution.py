"""One invocation as data: what goes in, what the policies see, what comes out, and the same for a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from .decisions import ContextMessage, ErrorInfo
from .values import MISSING, ContentBlock, JsonValue, Missing

if TYPE_CHECKING:
    from .activation import ResolvedToolSet
    from .definition import ToolSchema
    from .scopes import ScopeKey
    from .signals import Signal
    from .tool_annotations import ToolAnnotations

__all__ = [
    "BatchLog",
    "ExecutionToken",
    "ToolBatchInput",
    "ToolBatchResult",
    "ToolCall",
    "ToolCallOutcome",
    "ToolError",
    "ToolExecution",
    "ToolExecutionInput",
    "ToolExecutionResult",
    "ToolFailure",
    "ToolSuccess",
]


class ExecutionToken:
    """The opaque identity of one execution; it says nothing but which one it is (contract C5)."""

    __slots__ = ("__weakref__",)

    def __repr__(self) -> str:
        return "<ExecutionToken>"

    def __reduce__(self) -> str:
        raise TypeError("an execution token cannot be copied or pickled")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolExecutionInput:
    """What a dispatcher hands to the pipeline for one call (contract C3).

    Attributes:
        call_id: the call's own id, not empty.
        name: the tool's name, not empty.
        arguments: the arguments as the model or program gave them.
        root_call_id: the id of the outermost call; `call_id` when `None` (contract C4).
        agent: the calling scope, or `None`.
        parent: the token of the execution that makes this call, for nested calls (contract C5).
        signal: the caller's signal.
        schema: what the caller was told of the tool, frozen (contract E11); never recorded.
        tool_set: the admitted set of this step (contract A40).
    """

    call_id: str
    name: str
    arguments: object
    root_call_id: str | None = None
    agent: ScopeKey | None = None
    parent: ExecutionToken | None = None
    signal: Signal | None = None
    schema: ToolSchema | None = None
    tool_set: ResolvedToolSet | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class ToolExecution:
    """One call as policies, bodies and observers see it; nobody can change it (contract C6).

    `arguments` is `MISSING` when they could not be taken as JSON (contract C8). Inside `tools/execute` wrappers the
    pipeline hands out a `DispatchView` of it, whose `signal` may be replaced. `annotations` are those of the tool that
    the name meant when the call began; `None` where it has none, or where there was no such tool.
    """

    call_id: str
    root_call_id: str
    name: str
    token: ExecutionToken
    arguments: JsonValue | Missing
    agent: ScopeKey | None = None
    parent: ExecutionToken | None = None
    signal: Signal
    schema: ToolSchema | None = None
    tool_set: ResolvedToolSet | None = None
    annotations: ToolAnnotations | None = None


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why a call failed: the bare message, and the identity if it has one (contract C63, C64)."""

    message: str
    info: ErrorInfo | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class ToolSuccess:
    """A call that gave a value. `value` is canonical: frozen, and valid against the declared output.

    Attributes:
        value: what the tool returned, as JSON.
        content: what the model sees of it.
        meta: what presenters are given on replay, if the tool declares it.
        additional_contexts: messages for the conversation, in order.
        concludes_turn: whether the body asked to end the turn.
    """

    value: JsonValue
    content: Sequence[ContentBlock]
    meta: JsonValue | Missing = MISSING
    additional_contexts: Sequence[ContextMessage] = ()
    concludes_turn: bool = False
    is_error: Literal[False] = field(default=False, init=False)

    @property
    def text(self) -> str:
        """The text of `content`, its blocks joined by line breaks; images are left out."""
        return _text_of(self.content)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class ToolFailure:
    """A call that gave no value: denied, refused, failed, cancelled or blocked."""

    error: ToolError
    content: Sequence[ContentBlock]
    meta: JsonValue | Missing = MISSING
    additional_contexts: Sequence[ContextMessage] = ()
    is_error: Literal[True] = field(default=True, init=False)

    @property
    def text(self) -> str:
        """The text of `content`, its blocks joined by line breaks; images are left out."""
        return _text_of(self.content)


ToolExecutionResult: TypeAlias = ToolSuccess | ToolFailure


def _text_of(content: Sequence[ContentBlock]) -> str:
    return "\n".join(block["text"] for block in content if block["type"] == "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call that a model asks for.

    Attributes:
        name: the tool's name.
        arguments: the model's raw argument text, or the arguments as a mapping (contract D1).
        call_id: the provider's id of the call; one is made when it is omitted.
    """

    name: str
    arguments: str | Mapping[str, object] = field(default_factory=dict[str, object])
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class BatchLog:
    """Where in its session a batch belongs (contract A56)."""

    turn: int
    step: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolBatchInput:
    """The calls of one step (contract A56).

    Attributes:
        calls: the calls, in the model's order.
        signal: the caller's signal, shared by all calls.
        max_parallel_tool_calls: overrides the executor's cap for this batch; a positive integer.
        agent: the calling scope.
        tool_set: the admitted set of this step.
        log: where the root events go; needs `agent` (ruling 25).
    """

    calls: Sequence[ToolCall]
    signal: Signal | None = None
    max_parallel_tool_calls: int | None = None
    agent: ScopeKey | None = None
    tool_set: ResolvedToolSet | None = None
    log: BatchLog | None = None


@dataclass(frozen=True, slots=True)
class ToolCallOutcome:
    """The result of one call of a batch, by the call's id."""

    call_id: str
    result: ToolExecutionResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBatchResult:
    """What came of a batch: one outcome for each call in input order, skipped calls included (contract A57)."""

    results: Sequence[ToolCallOutcome]
    additional_contexts: Sequence[ContextMessage] = ()
    concluded: bool = False
