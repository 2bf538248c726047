"""What a scope can see: layers of registrations, and the restrictions that hide what is inherited.

A scope sees the global registrations, overlaid by those of its ancestors from the farthest to the nearest, filtered by
every restriction on its chain, and then overlaid by its own, which nothing can hide (contract A18 to A22).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from .definition import ToolDefinition, ToolSchema
from .errors import ToolRegistrationError
from .guards import GuardTable
from .lossless import LosslessError, snapshot
from .scopes import IdentityMap, ScopeKey, ScopeTree
from .values import MISSING, JsonObject

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from .activation import ActivationContext

__all__ = [
    "RUN_CODE",
    "UNLISTED_TOOLS",
    "Condition",
    "Layer",
    "LayerStack",
    "NameRestriction",
    "Registration",
    "Restriction",
    "ToolView",
    "order_names",
    "schema_of",
]

RUN_CODE: Final = "run_code"
"""The name of the transport; the registry refuses it to everybody (contract A10)."""

UNLISTED_TOOLS: Final = "<unlisted-tools>"
"""Stands in a configured order for every tool that the order does not name (contract A28)."""


_KEPT_ANSWERS: Final = 16_384


class Condition(Protocol):
    """Says whether a conditional tool is there for a step: a pure query, plain or asynchronous (contract A38, A39)."""

    def __call__(self, context: ActivationContext, /) -> bool | Awaitable[bool]: ...


class Registration:
    """One contribution of one tool; registering the same definition again makes another one (contract A44).

    Attributes:
        definition: the borrowed definition.
        when: the condition of its activation, or `None`.
    """

    __slots__ = ("definition", "when")

    def __init__(self, definition: ToolDefinition, when: Condition | None) -> None:
        self.definition = definition
        self.when = when


class Restriction:
    """One restriction: which inherited names it lets through (contract A33, A34)."""

    __slots__ = ("_allow", "_deny")

    def __init__(self, allow: Iterable[str] | None, deny: Iterable[str] | None) -> None:
        self._allow = None if allow is None else frozenset(allow)
        self._deny = frozenset(deny or ())

    def admits(self, name: str) -> bool:
        """Tells whether the name stays visible under this restriction."""
        return (self._allow is None or name in self._allow) and name not in self._deny


class NameRestriction:
    """One restriction by a rule for names, which holds for those that come later as well."""

    __slots__ = ("_sees",)

    def __init__(self, sees: Callable[[str], bool]) -> None:
        # Programs ask for any names, so only so many answers are kept.
        self._sees = functools.lru_cache(_KEPT_ANSWERS)(sees)

    def admits(self, name: str) -> bool:
        """Tells whether the name stays visible under this restriction."""
        return self._sees(name) is True


class Layer:
    """What one scope contributes; `None` as a scope is the global layer."""

    __slots__ = ("guards", "restrictions", "tools")

    def __init__(self) -> None:
        self.tools: dict[str, Registration] = {}
        self.restrictions: list[Restriction | NameRestriction] = []
        self.guards = GuardTable()

    @property
    def empty(self) -> bool:
        """Whether nothing is left in it, so that it can be reclaimed (contract A3)."""
        return not self.tools and not self.restrictions and not len(self.guards)

    def admits(self, name: str) -> bool:
        """Tells whether every restriction of this layer lets the name through."""
        return all(restriction.admits(name) for restriction in self.restrictions)


class LayerStack:
    """The global layer and the layers of the scopes; reading it never makes a layer (contract A1)."""

    __slots__ = ("_layers", "shared", "tree")

    def __init__(self, tree: ScopeTree) -> None:
        self.tree = tree
        self.shared = Layer()
        self._layers: IdentityMap[Layer] = IdentityMap()

    def find(self, scope: ScopeKey | None) -> Layer | None:
        """Returns the layer of exactly this scope, if it has contributed anything."""
        return self.shared if scope is None else self._layers.get(scope)

    def open(self, scope: ScopeKey | None) -> Layer:
        """Returns the layer for a contribution of this scope, and makes it if need be."""
        layer = self.find(scope)
        if layer is None:
            assert scope is not None
            layer = Layer()
            self._layers.set(scope, layer)
        return layer

    def reclaim(self, scope: ScopeKey | None, layer: Layer) -> None:
        """Drops the layer of a scope when nothing is left in it (contract A3)."""
        if scope is not None and layer.empty and self._layers.get(scope) is layer:
            self._layers.discard(scope)

    def inherited(self, scope: ScopeKey | None) -> dict[str, Registration]:
        """Returns what a scope inherits before restriction; nearer entries keep the place of those they shadow."""
        surface = {} if scope is None else dict(self.shared.tools)
        for ancestor in reversed(() if scope is None else self.tree.ancestors(scope)):
            layer = self.find(ancestor)
            if layer is not None:
                surface.update(layer.tools)
        return surface

    def visible(self, scope: ScopeKey | None) -> dict[str, Registration]:
        """Returns what a scope can see, in view order (contract A18 to A21)."""
        layers = self._chain_layers(scope)
        surface = {
            name: registration
            for name, registration in self.inherited(scope).items()
            if all(layer.admits(name) for layer in layers)
        }
        own = self.find(scope)
        if own is not None:
            surface.update(own.tools)
        return surface

    def lookup(self, name: str, scope: ScopeKey | None) -> Registration | None:
        """Returns what `visible` has under one name, without building the rest of it."""
        if scope is None:
            return self.shared.tools.get(name)
        own = self._layers.get(scope)
        if own is not None:
            found = own.tools.get(name)
            if found is not None:
                return found
            if own.restrictions and not own.admits(name):
                return None
        found = None
        for ancestor in self.tree.ancestors(scope):
            layer = self._layers.get(ancestor)
            if layer is not None:
                if layer.restrictions and not layer.admits(name):
                    return None
                if found is None:
                    found = layer.tools.get(name)
        return found if found is not None else self.shared.tools.get(name)

    def known_names(self, scope: ScopeKey | None) -> frozenset[str]:
        """Returns every name the scope inherits or has, restricted or not (contract A22)."""
        own = self.find(scope)
        return frozenset(self.inherited(scope)).union(own.tools if own is not None else ())

    def _chain_layers(self, scope: ScopeKey | None) -> list[Layer]:
        layers = (self.find(key) for key in self.tree.chain(scope))
        return [layer for layer in layers if layer is not None]


@dataclass(frozen=True, slots=True, eq=False)
class ToolView:
    """What an executor may describe and bind for one scope in one step.

    Attributes:
        scope: whose view it is.
        definitions: the visible and admitted definitions by name, in view order.
        known_names: every name that the scope inherits or has, restricted or not (contract A22).
    """

    scope: ScopeKey | None
    definitions: Mapping[str, ToolDefinition]
    known_names: frozenset[str]

    def schemas(self, *, with_output: bool = False) -> list[ToolSchema]:
        """Projects what a model may know, in view order (contract A27).

        Args:
            with_output: adds each tool's output schema, for the SDK text.

        Raises:
            ToolRegistrationError: a tool's parameters or output schema are not lossless JSON (contract A12).
        """
        return [schema_of(definition, with_output=with_output) for definition in self.definitions.values()]


def schema_of(definition: ToolDefinition, *, with_output: bool = False) -> ToolSchema:
    """Projects one definition to name, description and a detached copy of its parameters (contract A27).

    Raises:
        ToolRegistrationError: the parameters or the output schema are not lossless JSON (contract A12).
    """
    return ToolSchema(
        name=definition.name,
        description=definition.description,
        parameters=_detached(definition, "parameters", definition.parameters),
        output=_detached(definition, "output.schema", definition.output.schema) if with_output else MISSING,
    )


def _detached(definition: ToolDefinition, part: str, schema: Mapping[str, object]) -> JsonObject:
    try:
        copy = snapshot(schema if isinstance(schema, dict) else dict(schema), root=part)
    except (LosslessError, TypeError, ValueError) as error:
        raise ToolRegistrationError(
            f'tool "{definition.name}" {part} must be lossless JSON before schema projection: {error}'
        ) from error
    assert isinstance(copy, dict)
    return copy


def order_names(names: Collection[str], order: Sequence[str] | None, known_names: Collection[str]) -> list[str]:
    """Puts tool names into the order that models see (contract A28, ruling 29).

    Args:
        names: the visible names.
        order: the configured order, which has `<unlisted-tools>` once; by code point when `None`.
        known_names: every name that the order may mention.

    Raises:
        ValueError: the order lacks the marker or has it twice, repeats a name, or names an unknown tool.
    """
    if order is None:
        return sorted(names)
    if list(order).count(UNLISTED_TOOLS) != 1:
        raise ValueError(f"the tool order must contain {UNLISTED_TOOLS!r} exactly once")
    listed = [name for name in order if name != UNLISTED_TOOLS]
    repeated = sorted({name for name in listed if listed.count(name) > 1})
    if repeated:
        raise ValueError(f"the tool order repeats {quoted(repeated)}")
    unknown = [name for name in listed if name not in known_names]
    if unknown:
        raise ValueError(
            f"the tool order names {'an unknown tool' if len(unknown) == 1 else 'unknown tools'}: {quoted(unknown)}"
        )
    place = list(order).index(UNLISTED_TOOLS)
    unlisted = sorted(name for name in names if name not in listed)
    return [name for name in (*listed[:place], *unlisted, *listed[place:]) if name in names]


def quoted(names: Iterable[str]) -> str:
    """Returns the names, each in double quotes, separated by commas."""
    return ", ".join(f'"{name}"' for name in names)
