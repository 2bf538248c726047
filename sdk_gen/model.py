"""The typed picture of a tool set that every SDK language prints from.

Two maps, `ToolArgsMap` and `ToolOutputMap`, give each tool's name a `TypeDocument`. A document is a tree of type
expressions, plus the named definitions that the tree refers to; only through them can a type contain itself.

    AnyType         any JSON value                              {}
    ScalarType      string, number, integer, boolean or null
    LiteralType     one of the listed scalars                   const, enum
    ArrayType       an array of one item type
    TupleType       an array whose first items are told apart   prefixItems
    ObjectType      named properties, and what else is allowed
    UnionType       one of several types                        oneOf, anyOf, type arrays
    ReferenceType   a definition of the same document           $ref

Texts are kept as the schema has them; escaping them is each language's own business. What a type cannot say
(`minimum`, `pattern`, `default` ...) stays with the expression as a `Constraint`, for a renderer to put into words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from ..registry.values import JsonValue

__all__ = [
    "AnyType",
    "ArrayType",
    "Constraint",
    "JsonScalar",
    "LiteralType",
    "ObjectType",
    "Property",
    "ReferenceType",
    "ScalarKind",
    "ScalarType",
    "ToolArgsMap",
    "ToolOutputMap",
    "ToolType",
    "TupleType",
    "TypeDocument",
    "TypeExpression",
    "UnionType",
]

ScalarKind: TypeAlias = Literal["string", "number", "integer", "boolean", "null"]
JsonScalar: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Constraint:
    """One keyword of the schema that no type says, with its value: `Constraint("minimum", 1)`."""

    keyword: str
    value: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyType:
    """Any JSON value: the schema says nothing more, or nothing that a type could say."""

    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarType:
    """Every value of one scalar kind."""

    kind: ScalarKind
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralType:
    """One of `values`, in the schema's order, never empty."""

    values: tuple[JsonScalar, ...]
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayType:
    """An array whose items all have the type `items`."""

    items: TypeExpression
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleType:
    """An array whose first items have the types `items`, in order.

    Attributes:
        items: the types of the first items, never empty.
        rest: the type of all further items; `None` when there may be none.
    """

    items: tuple[TypeExpression, ...]
    rest: TypeExpression | None
    constraints: tuple[Constraint, ...] = ()

    @property
    def least(self) -> int:
        """How many items there must be, as far as a constraint says so."""
        told = [item.value for item in self.constraints if item.keyword == "minItems"]
        whole = [value for value in told if isinstance(value, int) or (isinstance(value, float) and value.is_integer())]
        return max(map(int, whole), default=0)

    @property
    def is_fixed(self) -> bool:
        """Whether all of `items` must be there, and nothing else."""
        return self.rest is None and self.least >= len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One declared key of an object.

    Attributes:
        name: the key.
        type: the type of its value.
        required: whether the key must be there.
        description: what the schema says of it, unescaped; empty when it says nothing.
        nodes: how many schema nodes it stands for, when its type has no named parts, so that it may be shared by all
            properties that are alike; 0 for all others.
    """

    name: str
    type: TypeExpression
    required: bool
    description: str = ""
    nodes: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectType:
    """An object.

    Attributes:
        properties: the declared keys, in the schema's order.
        additional: the type of the values under undeclared keys; `None` when undeclared keys are refused (closed).
        stated: whether the schema itself speaks of undeclared keys; where it is silent they are accepted, but an
            undeclared key is more likely a slip.
    """

    properties: tuple[Property, ...]
    additional: TypeExpression | None
    constraints: tuple[Constraint, ...] = ()
    stated: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionType:
    """A value of one of `branches`, in the schema's order, at least two."""

    branches: tuple[TypeExpression, ...]
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceType:
    """The definition `target` of the same document, for example `#/$defs/Node`."""

    target: str
    constraints: tuple[Constraint, ...] = ()


TypeExpression: TypeAlias = (
    AnyType | ScalarType | LiteralType | ArrayType | TupleType | ObjectType | UnionType | ReferenceType
)


@dataclass(frozen=True, slots=True)
class TypeDocument:
    """One schema as a type.

    Attributes:
        root: the type of the schema itself.
        definitions: what it refers to, by the JSON pointer that does so.
        malformed: whether the schema was no JSON Schema, so that nothing is known of its values (contract G2).
    """

    root: TypeExpression
    definitions: Mapping[str, TypeExpression] = field(default_factory=dict)
    malformed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolType:
    """One tool's entry in a map: its name and description, unescaped, and the type of its arguments or its value."""

    name: str
    description: str
    document: TypeDocument


class _ToolTypeMap(Mapping[str, ToolType]):
    """Tools by name, in code point order (contract G1, ruling 29)."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Sequence[ToolType]) -> None:
        self._entries = {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name)}

    def __getitem__(self, name: str) -> ToolType:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class ToolArgsMap(_ToolTypeMap):
    """What each tool takes."""

    __slots__ = ()


class ToolOutputMap(_ToolTypeMap):
    """What each tool gives."""

    __slots__ = ()
