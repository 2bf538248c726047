"""From JSON Schema to the type expressions of `model` (contract G1, G2; ruling 39).

The strict subset comes out exactly. A schema beyond it comes out as the closest type that every valid value has: what
a type cannot say is left out or kept as a `Constraint`, and a part that says nothing sayable is `AnyType`. A schema
that JSON Schema itself would refuse (an unknown type name, properties that are no mapping, a node inside itself)
makes the whole type `AnyType`, because then nothing it says can be relied on. References are looked up in the schema
itself and nowhere else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..registry.steps import Step, descend
from .applicators import has_inner_resources, leaves_undeclared
from .descriptions import full_description
from .intersection import Intersection
from .keywords import (
    MalformedSchemaError,
    as_array,
    as_mapping,
    as_names,
    as_scalar_kind,
    constraint,
    constraints_of,
    kinds_of,
    literals,
    lookup,
    subschemas,
    union_of,
)
from .model import (
    AnyType,
    ArrayType,
    ObjectType,
    Property,
    ReferenceType,
    ScalarType,
    ToolArgsMap,
    ToolOutputMap,
    ToolType,
    TupleType,
    TypeDocument,
    TypeExpression,
)
from .narrow import is_bare, with_constraints
from .plain import plain_property, plain_type
from .remembered import Remembered, remembered

if TYPE_CHECKING:
    from ..registry.definition import ToolSchema

__all__ = ["MAX_NODES", "MAX_TYPES", "TRANSPORT", "build_document", "build_maps", "is_remembered"]

TRANSPORT = "run_code"
"""The tool that carries programs; it is never part of the SDK (contract G1)."""

MAX_NODES = 10_000
"""The largest type, in schema nodes; what comes after is `AnyType`, so that shared structure cannot explode."""

_DOCUMENTS: Remembered[bytes, TypeDocument] = Remembered()
_ANY = AnyType()
_BESIDE = frozenset({"const", "enum", "$ref", "allOf", "anyOf", "oneOf"})
"""What says something of a value beside `type`."""

MAX_TYPES = 4 * MAX_NODES
"""How many types of one document are written: a definition that was joined with others is shared, and written often."""


def build_maps(tools: Sequence[ToolSchema], *, transport: str = TRANSPORT) -> tuple[ToolArgsMap, ToolOutputMap]:
    """Builds the types of a tool set, from nothing but its schemas; never raises (contract G1, G5).

    Args:
        tools: the tools that the step admits, in any order; of two with one name the later counts.
        transport: the name of the tool that is left out.

    Returns:
        what each tool takes, and what each tool gives.
    """
    admitted = [tool for tool in tools if tool.name != transport]
    return (
        ToolArgsMap([_entry(tool, tool.parameters) for tool in admitted]),
        ToolOutputMap([_entry(tool, tool.output) for tool in admitted]),
    )


def _entry(tool: ToolSchema, schema: object) -> ToolType:
    return ToolType(name=tool.name, description=tool.description, document=build_document(schema))


def build_document(schema: object) -> TypeDocument:
    """Builds the type of one schema; anything that is no JSON Schema gives `AnyType` (contract G2). Never raises."""
    return remembered(_DOCUMENTS, schema, _built)


def is_remembered(document: TypeDocument) -> bool:
    """Whether the next document of an equal schema will be this very one."""
    return _DOCUMENTS.holds(document)


def _built(schema: object) -> TypeDocument:
    try:
        return _Builder(schema).build()
    except MalformedSchemaError:
        return TypeDocument(AnyType(), malformed=True)
    except Exception:  # noqa: BLE001 - a schema is foreign data, and its own accessors may raise; G1 says "never raises"
        return TypeDocument(AnyType(), malformed=True)


class _Builder:
    """Builds one document; holds what has been seen of its schema so far."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._nodes_left = MAX_NODES
        self._path: set[int] = set()
        self._referenced: dict[str, object] = {}
        self._pending: list[str] = []
        self._expanded: dict[str, TypeExpression] = {}
        self._inner_resources: bool | None = None
        self._joined = Intersection(self._expansion, self._spend)

    def build(self) -> TypeDocument:
        root = descend(self._node(self._root))
        definitions: dict[str, TypeExpression] = {}
        while self._pending:
            target = self._pending.pop()
            definitions[target] = descend(self._node(self._referenced[target]))
        return TypeDocument(root, definitions)

    def _node(self, schema: object) -> Step[TypeExpression]:
        """Builds any schema node: the intersection of everything that it says."""
        if isinstance(schema, bool):
            return AnyType()
        node = as_mapping(schema)
        self._nodes_left -= 1
        if self._nodes_left < 0 or not node:
            return AnyType()
        if id(node) in self._path:
            raise MalformedSchemaError
        self._path.add(id(node))
        for keyword in ("title", "description"):
            if not isinstance(node.get(keyword, ""), str):
                raise MalformedSchemaError
        if node.get("type") == "object" and _BESIDE.isdisjoint(node):
            result: TypeExpression = yield from self._object(node)
        else:
            parts: list[tuple[str, TypeExpression]] = yield from self._parts(node)
            result = yield from self._intersection(node, parts)
        closes = node.get("unevaluatedProperties") is False and isinstance(result, ObjectType)
        if closes and not leaves_undeclared(self._root, node):
            result = dataclasses.replace(result, additional=None)
        self._path.discard(id(node))
        return with_constraints(result, constraints_of(node))

    def _spend(self, count: int) -> bool:
        """Takes types off what is left of the document's size; says whether there was enough."""
        self._nodes_left -= count
        return self._nodes_left >= 0

    def _nodes(self, schemas: Iterable[object]) -> Step[list[TypeExpression]]:
        built: list[TypeExpression] = []
        for schema in schemas:
            type_ = self._plain(schema)
            built.append((yield self._node(schema)) if type_ is None else type_)
        return built

    def _plain(self, schema: object) -> TypeExpression | None:
        """Builds a plain node without a step; `None` for all others."""
        found = plain_type(schema)
        if found is None or found[1] >= self._nodes_left:
            return None
        self._nodes_left -= found[1]
        return found[0]

    def _parts(self, node: Mapping[str, Any]) -> Step[list[tuple[str, TypeExpression]]]:
        """Builds what each group of keywords says on its own, with the keyword that says it."""
        parts: list[tuple[str, TypeExpression]] = []
        own: TypeExpression | None = yield from self._own(node)
        if own is not None:
            parts.append(("type", own))
        if "$ref" in node:
            parts.append(("$ref", self._reference(node["$ref"])))
        members: list[TypeExpression] = yield from self._nodes(subschemas(node, "allOf"))
        parts += [("allOf", member) for member in members]
        for keyword in ("anyOf", "oneOf"):
            possible = [branch for branch in subschemas(node, keyword) if branch is not False]
            branches: list[TypeExpression] = yield from self._nodes(possible)
            if branches:
                parts.append((keyword, union_of(branches)))
        return parts

    def _intersection(self, node: Mapping[str, Any], parts: list[tuple[str, TypeExpression]]) -> Step[TypeExpression]:
        """Joins the parts. Of types that cannot be joined the first one stands, with the keys that others declare."""
        if sum(not is_bare(part) for _, part in parts) > 1:
            expanded: list[tuple[str, TypeExpression]] = []
            for keyword, part in parts:
                expanded.append((keyword, (yield self._expansion(part))))
            parts = expanded
        result: TypeExpression = AnyType()
        unsaid: list[str] = []
        for keyword, part in parts:
            both: TypeExpression | None = yield self._joined.narrow(result, part)
            if both is not None:
                result = both
                continue
            result = yield self._joined.with_keys_of(result, part)
            if keyword not in unsaid and keyword != "$ref":
                unsaid.append(keyword)
        return with_constraints(result, tuple(constraint(node, keyword) for keyword in unsaid))

    def _own(self, node: Mapping[str, Any]) -> Step[TypeExpression | None]:
        """Builds what `const`, `enum`, `type` and the keywords of a type say; `None` when they say nothing."""
        kinds = kinds_of(node)
        if "const" in node:
            return literals("const", [node["const"]], kinds)
        if "enum" in node:
            return literals("enum", as_array(node["enum"]), kinds)
        if not kinds:
            return None
        branches: list[TypeExpression] = []
        for kind in kinds:
            if kind == "object":
                branches.append((yield from self._object(node)))
            elif kind == "array":
                branches.append((yield from self._array(node)))
            else:
                branches.append(ScalarType(kind=as_scalar_kind(kind)))
        return union_of(branches)

    def _object(self, node: Mapping[str, Any]) -> Step[TypeExpression]:
        required = as_names(node.get("required", []))
        must = set(required)
        declared = as_mapping(node.get("properties", {}))
        properties: list[Property] = []
        for name in as_names(list(declared)):
            schema = declared[name]
            if schema is False:  # a key that no object may have
                continue
            plain = plain_property(name, schema, required=name in must)
            if plain is not None and plain.nodes < self._nodes_left:
                self._nodes_left -= plain.nodes
                properties.append(plain)
                continue
            type_: TypeExpression = yield self._node(schema)
            text = full_description(schema, self._root)
            properties.append(Property(name=name, type=type_, required=name in must, description=text))
        properties += [
            Property(name=name, type=AnyType(), required=True)
            for name in dict.fromkeys(required)
            if name not in declared
        ]
        additional: TypeExpression | None = None
        others = node.get("additionalProperties", True)
        if "patternProperties" in node or not isinstance(others, bool):
            additional = yield from self._additional(node)
        elif others:
            additional = _ANY
        stated = "additionalProperties" in node or "patternProperties" in node
        return ObjectType(properties=tuple(properties), additional=additional, stated=stated)

    def _additional(self, node: Mapping[str, Any]) -> Step[TypeExpression | None]:
        """Builds the type of values under undeclared keys; `None` for a closed object."""
        schema = node.get("additionalProperties", True)
        by_pattern = as_mapping(node.get("patternProperties", {}))
        if schema is not False:
            other: TypeExpression = yield self._node(schema)
            return AnyType() if by_pattern else other
        branches: list[TypeExpression] = yield from self._nodes(by_pattern.values())
        return union_of(branches) if branches else None

    def _array(self, node: Mapping[str, Any]) -> Step[TypeExpression]:
        prefix: list[TypeExpression] = yield from self._nodes(subschemas(node, "prefixItems"))
        others = node.get("items", True)
        rest: TypeExpression = yield self._node(others)
        if not prefix:
            return ArrayType(items=rest)
        closed = others is False or node.get("maxItems") == len(prefix)
        return TupleType(items=tuple(prefix), rest=None if closed else rest)

    def _reference(self, reference: object) -> TypeExpression:
        """Notes that a definition is needed and refers to it; what is not inside this schema is `AnyType`."""
        if not isinstance(reference, str):
            raise MalformedSchemaError
        target = lookup(self._root, reference)
        if isinstance(target, Mapping) and self._inner_resources is None:
            self._inner_resources = has_inner_resources(self._root)
        if not isinstance(target, Mapping) or self._inner_resources:
            return AnyType()
        if reference not in self._referenced:
            self._referenced[reference] = target
            self._pending.append(reference)
        return ReferenceType(target=reference)

    def _expansion(self, part: TypeExpression) -> Step[TypeExpression]:
        """Replaces a reference by what it refers to, so that it can be joined with other parts."""
        if not isinstance(part, ReferenceType):
            return part
        target = part.target
        if target not in self._expanded:
            schema = self._referenced[target]
            if id(schema) in self._path:  # it would contain itself
                return AnyType()
            self._expanded[target] = AnyType()  # what a definition that only refers to itself comes to
            built: TypeExpression = yield self._node(schema)
            self._expanded[target] = yield self._expansion(built)
        return self._expanded[target]
