"""What the pipeline knows of one call and nobody else may touch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Sequence

    from ..activation import ResolvedToolSet
    from ..approval import ApprovalOutcome, ApprovalService
    from ..decisions import Allow, Ask, Cancel, ContextMessage, Deny
    from ..definition import ToolDefinition
    from ..execution import ToolExecution, ToolExecutionResult, ToolFailure
    from ..registry import ToolRegistry
    from ..scopes import ScopeKey
    from ..signals import SignalSource
    from ..values import ContentBlock

__all__ = ["CallDecision", "CallState", "ContentHook", "resolve_call"]

ContentHook: TypeAlias = "Callable[[ToolExecution, ToolExecutionResult], Sequence[ContentBlock] | None]"
CallDecision: TypeAlias = Literal["allow", "deny", "cancel", "error"]


def resolve_call(
    registry: ToolRegistry,
    name: str,
    agent: ScopeKey | None,
    tool_set: ResolvedToolSet | None,
    transport: ToolDefinition | None,
    provided: ToolDefinition | None = None,
) -> ToolDefinition | None:
    """Looks up what a name means in the caller's view; an executor's own tools are nobody's registration (A23)."""
    if transport is not None and name == transport.name:
        return transport
    if provided is not None and name == provided.name:
        return provided
    return registry.executable(name, agent, tool_set)


class CallState:
    """The private state of one call; stages read and write it, and `exec` never leads to it.

    Attributes:
        registry: where definitions, listeners and guards are looked up.
        approval: who can be asked, or `None`.
        logger: where contained failures go.
        exec: the call as policies see it.
        transport: the `run_code` definition that a call without a parent is limited to, or `None`.
        provided: the executor's own definition that this call executes, which no registry has, or `None`.
        own_source: the source of `exec.signal` when the caller gave none.
        projector: `project_content` of the definition visible at call start.
        finalizer: `finalize_content` of the same, or `None` once dropped.
        visible: whether the name was visible at call start.
        argument_fault: why the arguments could not be taken.
        deferred: contexts that bodies deferred, in order.
        around_open: whether the around stage still takes contexts.
        concludes: whether a body asked to conclude the turn.
        body_invoked: whether any attempt has invoked a body (ruling 24).
        canonical: the results that the pipeline itself made for this call (contract C39).
        outcome: the result so far.
        final: whether the outcome bypasses project and post-execute.
        published: whether observers have been told.
        decision: what became of the question whether the call may run.
        decided_by: the qualified name of the listener or guard that made that decision, if one did.
        approval_outcome: what the approval service answered.
        question: what a policy has asked and nobody has been asked yet.
        answer: what came of the question, for the guards.
        blocked_by: the qualified name of the post-execute listener that blocked the result.
    """

    __slots__ = (
        "answer",
        "approval",
        "approval_outcome",
        "argument_fault",
        "around_open",
        "blocked_by",
        "body_invoked",
        "canonical",
        "concludes",
        "decided_by",
        "decision",
        "deferred",
        "exec",
        "final",
        "finalizer",
        "logger",
        "outcome",
        "own_source",
        "projector",
        "provided",
        "published",
        "question",
        "registry",
        "transport",
        "visible",
    )

    def __init__(
        self,
        registry: ToolRegistry,
        approval: ApprovalService | None,
        logger: logging.Logger,
        exec: ToolExecution,  # noqa: A002 - the field's name everywhere
        *,
        transport: ToolDefinition | None,
        provided: ToolDefinition | None = None,
        own_source: SignalSource | None,
        hooks: tuple[ContentHook | None, ContentHook | None] | None,
        argument_fault: Exception | None,
    ) -> None:
        self.registry = registry
        self.approval = approval
        self.logger = logger
        self.exec = exec
        self.transport = transport
        self.provided = provided
        self.own_source = own_source
        self.argument_fault = argument_fault
        self.visible = hooks is not None
        self.projector, self.finalizer = (None, None) if hooks is None else hooks
        self.deferred: list[ContextMessage] = []
        self.around_open = False
        self.concludes = False
        self.body_invoked = False
        self.canonical: list[ToolExecutionResult] = []
        self.outcome: ToolExecutionResult | None = None
        self.final = False
        self.published = False
        self.decision: CallDecision | None = None
        self.decided_by: str | None = None
        self.approval_outcome: ApprovalOutcome | None = None
        self.question: Ask | None = None
        self.answer: Allow | Deny | Cancel | None = None
        self.blocked_by: str | None = None

    def resolve(self) -> ToolDefinition | None:
        """Looks the definition up once more, in the caller's view (contract C11).

        Beside the transport nothing else can be called directly, also what has only now become visible (contract A61).
        """
        call = self.exec
        if self.transport is not None and call.name != self.transport.name:
            return None
        return resolve_call(self.registry, call.name, call.agent, call.tool_set, self.transport, self.provided)

    @property
    def collapsed(self) -> bool:
        """Whether the call names a visible tool that only a program may call (contract C9)."""
        return self.visible and self.transport is not None and self.exec.name != self.transport.name

    def settle(self, outcome: ToolExecutionResult) -> None:
        """Sets an outcome that project and post-execute still pass."""
        self.outcome = outcome

    def end(self, outcome: ToolFailure) -> None:
        """Sets an outcome that goes straight to the finalizer and the observers."""
        self.outcome = outcome
        self.final = True
