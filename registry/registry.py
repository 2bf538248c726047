"""The registry: which tools exist, who sees them, and what stands in the way of calling them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .activation import ActivationContext, ResolvedToolSet, resolve_tool_set
from .context import ScopedTools
from .events import EventBus
from .executors import ExecutorSelection
from .scopes import ScopeBinding, ScopeKey, ScopeTree
from .views import LayerStack, ToolView, schema_of

if TYPE_CHECKING:
    from .decisions import ToolGuardDenial
    from .definition import ToolDefinition, ToolSchema
    from .execution import ToolExecution
    from .guards import NamedDenial

__all__ = ["ToolRegistry"]


class ToolRegistry:
    """The state that every scope shares.

    Attributes:
        tree: which scope is bound under which.
        events: the listeners.
        layers: what each scope has contributed.
        selection: the selected executors.
    """

    __slots__ = ("events", "layers", "selection", "tree")

    def __init__(self) -> None:
        self.tree = ScopeTree()
        self.events = EventBus(self.tree)
        self.layers = LayerStack(self.tree)
        self.selection = ExecutorSelection(self.tree)

    def context(self, scope: ScopeKey | None = None) -> ScopedTools:
        """Returns the context that contributes for this scope; the global one for `None` (contract A7)."""
        return ScopedTools(self, scope)

    def bind(self, child: ScopeKey, parent: ScopeKey) -> ScopeBinding:
        """Puts one scope under another (contract A4).

        Raises:
            ToolRegistrationError: the child is bound already, or the bind would form a cycle.
        """
        return self.tree.bind(child, parent)

    def has_layer(self, scope: ScopeKey | None) -> bool:
        """Tells whether this very scope has contributed anything that is still there (contract A1, A3)."""
        return self.layers.find(scope) is not None

    def get(
        self, name: str, scope: ScopeKey | None = None, tool_set: ResolvedToolSet | None = None
    ) -> ToolDefinition | None:
        """Returns the definition of that name in the scope's view, conditional ones included (contract A24).

        Args:
            name: the tool's name.
            scope: whose view.
            tool_set: limits the answer to what the step admitted.
        """
        if tool_set is not None:
            return tool_set.get(name, scope)
        found = self.layers.lookup(name, scope)
        return None if found is None else found.definition

    def executable(
        self, name: str, scope: ScopeKey | None = None, tool_set: ResolvedToolSet | None = None
    ) -> ToolDefinition | None:
        """Returns the definition that a call of that name would execute (contract A25).

        With a tool set only the set decides; without one a conditional tool counts as absent (contract A47).
        """
        if tool_set is not None:
            return tool_set.get(name, scope)
        found = self.layers.lookup(name, scope)
        return None if found is None or found.when is not None else found.definition

    def definitions(
        self, scope: ScopeKey | None = None, tool_set: ResolvedToolSet | None = None
    ) -> list[ToolDefinition]:
        """Returns what the scope sees, after shadowing, restriction and admission, in view order (contract A26)."""
        if tool_set is not None:
            return list(tool_set.view(scope).values())
        return [registration.definition for registration in self.layers.visible(scope).values()]

    def schemas(self, scope: ScopeKey | None = None, tool_set: ResolvedToolSet | None = None) -> list[ToolSchema]:
        """Returns name, description and a fresh copy of the parameters of each visible tool (contract A27).

        Raises:
            ToolRegistrationError: a tool's parameters are not lossless JSON (contract A12).
        """
        return [schema_of(definition) for definition in self.definitions(scope, tool_set)]

    def view(self, scope: ScopeKey | None = None, tool_set: ResolvedToolSet | None = None) -> ToolView:
        """Returns what an executor may describe for this scope.

        Without a tool set it holds what may be executed without one, the unconditional tools (contract A46, A47).
        """
        if tool_set is not None:
            definitions = tool_set.view(scope)
        else:
            definitions = {
                name: registration.definition
                for name, registration in self.layers.visible(scope).items()
                if registration.when is None
            }
        return ToolView(scope, definitions, self.layers.known_names(scope))

    async def resolve(self, context: ActivationContext) -> ResolvedToolSet:
        """Asks the conditions once for a step, and returns the tools that it admits (contract A40).

        Raises:
            AbortError: the context's signal fired.
            TypeError: a condition answered something else than a bool.
            Exception: whatever a condition raised.
        """
        return await resolve_tool_set(self.layers, context)

    def check_guards(self, exec: ToolExecution) -> ToolGuardDenial | None:  # noqa: A002 - the field's name of a call
        """Asks the guards of the caller's chain, the global ones first; the first refusal wins (contract A49, A51).

        Raises:
            TypeError: a guard answered something else than `None`, a string or a `ToolGuardDenial`.
            Exception: whatever a guard raised.
        """
        denial = self.find_denial(exec)
        return None if denial is None else denial[0]

    def find_denial(self, exec: ToolExecution) -> NamedDenial | None:  # noqa: A002 - the field's name of a call
        """Does what `check_guards` does, and names the guard that refused."""
        denial = self.layers.shared.guards.first_denial(exec)
        if denial is None and exec.agent is not None:
            for scope in reversed(self.tree.chain(exec.agent)):
                layer = self.layers.find(scope)  # found late: a guard may have opened it just now
                denial = None if layer is None else layer.guards.first_denial(exec)
                if denial is not None:
                    break
        return denial
