"""Executors: what turns the calls of a step into pipeline calls, and which one a scope has selected (A52 to A59)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from .definition import ToolDefinition
from .errors import ToolExecutorUnavailableError, ToolRegistrationError
from .scopes import IdentityMap, ScopeKey, ScopeTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .definition import ToolSchema
    from .execution import ToolBatchInput, ToolBatchResult
    from .views import ToolView

__all__ = ["ExecutorDescription", "ExecutorSelection", "ToolExecutor", "sections_of", "transport_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorDescription:
    """What a model is told natively when an executor is selected.

    Attributes:
        schemas: the tools that the model may call directly, in the order it sees them.
        known_names: every name that a configured order may mention.
    """

    schemas: Sequence[ToolSchema]
    known_names: frozenset[str] = field(default_factory=frozenset[str])


class ToolExecutor(Protocol):
    """Executes the calls of a step (contract A59).

    An executor may also have `sections(tools) -> Sequence[str]`: the parts of the system prompt that it owns; and
    `transport`, the `ToolDefinition` of a tool of its own that no registry has, so that its calls have cards (H11).
    """

    def describe(self, tools: ToolView) -> ExecutorDescription:
        """Says what the model is told of these tools."""
        ...

    async def execute(self, batch: ToolBatchInput) -> ToolBatchResult:
        """Executes the calls of one step, and returns when nothing of it runs any more (contract A60).

        Raises:
            ToolBatchExecutionError: an internal fault, after everything was drained.
        """
        ...


class _Selection:
    """One selection; without an executor once that has been unloaded (contract A54)."""

    __slots__ = ("executor",)

    def __init__(self, executor: ToolExecutor | None) -> None:
        self.executor = executor


class ExecutorSelection:
    """Which executor each scope, or the whole deployment, has selected."""

    __slots__ = ("_default", "_scoped", "_tree")

    def __init__(self, tree: ScopeTree) -> None:
        self._tree = tree
        self._default: _Selection | None = None
        self._scoped: IdentityMap[_Selection] = IdentityMap()

    def select(self, executor: ToolExecutor, scope: ScopeKey | None) -> tuple[_Selection, _Selection | None]:
        """Selects an executor for exactly this scope; `None` is the whole deployment.

        Returns:
            the new selection, and the one that it replaced.

        Raises:
            ToolRegistrationError: the object lacks `describe` or `execute`.
        """
        for member in ("describe", "execute"):
            if not callable(getattr(executor, member, None)):
                hint = "; bind it to a pipeline first, as Host.set_executor() does" if hasattr(executor, "bind") else ""
                raise ToolRegistrationError(f"an executor must have a method {member}(); {executor!r} has none{hint}")
        replaced = self._exact(scope)
        selection = _Selection(executor)
        self.restore(selection, scope)
        return selection, replaced

    def restore(self, selection: _Selection | None, scope: ScopeKey | None) -> None:
        """Puts a selection in the place of whatever the scope has selected."""
        if scope is None:
            self._default = selection
        elif selection is None:
            self._scoped.discard(scope)
        else:
            self._scoped.set(scope, selection)

    def is_current(self, selection: _Selection, scope: ScopeKey | None) -> bool:
        """Tells whether the selection is still the scope's, not yet replaced by another."""
        return self._exact(scope) is selection

    def nearest(self, scope: ScopeKey | None) -> ToolExecutor | None:
        """Returns the executor of the nearest selection on the chain, else the deployment's, else `None` (A53).

        Raises:
            ToolExecutorUnavailableError: the executor of that selection has been unloaded (contract A54, ruling 17).
        """
        for key in self._tree.chain(scope):
            selection = self._scoped.get(key)
            if selection is not None:
                return _available(selection, f"scope {key.name!r}")
        return None if self._default is None else _available(self._default, "this deployment")

    def _exact(self, scope: ScopeKey | None) -> _Selection | None:
        return self._default if scope is None else self._scoped.get(scope)


def _available(selection: _Selection, where: str) -> ToolExecutor:
    if selection.executor is None:
        raise ToolExecutorUnavailableError(
            f"the executor selected for {where} has been unloaded; select another with set_executor()"
        )
    return selection.executor


def sections_of(executor: ToolExecutor, tools: ToolView) -> Sequence[str]:
    """Returns the prompt sections that the executor owns; nothing when it has none (contract A59, A62)."""
    sections = getattr(executor, "sections", None)
    return () if sections is None else tuple(sections(tools))


def transport_of(executor: ToolExecutor) -> ToolDefinition | None:
    """Returns the definition of the executor's own tool; `None` when it has none."""
    transport = getattr(executor, "transport", None)
    return transport if isinstance(transport, ToolDefinition) else None
