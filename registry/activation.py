"""Conditional tools: asked once for each step, and admitted for that step only (contract A38 to A47)."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .events import close_stray, describe_answer
from .signals import Signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .definition import ToolDefinition
    from .scopes import ScopeKey
    from .views import LayerStack, Registration

__all__ = ["ActivationContext", "ModelSelection", "ResolvedToolSet", "resolve_tool_set"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSelection:
    """Which model the step goes to; conditions may read it."""

    provider: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActivationContext:
    """What a condition is asked with (contract A38).

    Attributes:
        agent: the scope whose step is prepared.
        model_selection: which model the step goes to.
        signal: fires when the step is given up.
    """

    agent: ScopeKey | None = None
    model_selection: ModelSelection = field(default_factory=ModelSelection)
    signal: Signal = field(default_factory=Signal)


class ResolvedToolSet:
    """The tools that one step may declare and dispatch (contract A43 to A46).

    It holds registrations, not names: a replacement under the same name, or a restriction made later, takes a tool out
    of it. It answers only for the scope that it was resolved for.
    """

    __slots__ = ("_admitted", "_agent", "_stack")

    def __init__(self, stack: LayerStack, agent: ScopeKey | None, admitted: Mapping[str, Registration]) -> None:
        self._stack = stack
        self._agent = agent
        self._admitted: dict[str, Registration] = dict(admitted)

    def dispose(self) -> None:
        """Ends the step: from now on nothing is admitted; started calls are not affected (contract A45, ruling 21)."""
        self._admitted.clear()

    def get(self, name: str, scope: ScopeKey | None) -> ToolDefinition | None:
        """Returns the admitted definition of that name, if it is still registered and unrestricted."""
        admitted = self._admitted.get(name)
        if admitted is None or scope is not self._agent or self._stack.lookup(name, scope) is not admitted:
            return None
        return admitted.definition

    def view(self, scope: ScopeKey | None) -> dict[str, ToolDefinition]:
        """Returns the admitted definitions by name, in view order; nothing for any other scope (contract A43)."""
        if scope is not self._agent:
            return {}
        return {
            name: registration.definition
            for name, registration in self._stack.visible(scope).items()
            if self._admitted.get(name) is registration
        }


async def resolve_tool_set(stack: LayerStack, context: ActivationContext) -> ResolvedToolSet:
    """Asks the condition of every tool that the agent can see, one after the other, and admits those that say yes.

    Nothing shared changes, and a failure or a cancellation publishes nothing (contract A40, A41). A condition that
    ignores the signal is awaited all the same (ruling 27).

    Raises:
        AbortError: the context's signal fired.
        TypeError: a condition answered something else than a bool.
        Exception: whatever a condition raised.
    """
    agent = context.agent
    admitted: dict[str, Registration] = {}
    for name, registration in stack.visible(agent).items():
        context.signal.raise_if_aborted()
        gone = stack.lookup(name, agent) is not registration
        if not gone and (registration.when is None or await _enabled(name, registration, context)):
            admitted[name] = registration
    context.signal.raise_if_aborted()
    return ResolvedToolSet(stack, agent, admitted)


async def _enabled(name: str, registration: Registration, context: ActivationContext) -> bool:
    assert registration.when is not None
    answer = registration.when(context)
    if inspect.isawaitable(answer):
        answer = await answer
    if not isinstance(answer, bool):
        close_stray(answer)
        raise TypeError(f'the condition of tool "{name}" must answer True or False, not {describe_answer(answer)}')
    return answer
