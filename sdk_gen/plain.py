"""The nodes that most schemas are made of: those with no named parts, read in one go and once for all that are alike.

What comes out is what reading them step by step would give; what takes more to say is left to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from .descriptions import full_description
from .keywords import as_array, constraints_of, literals, union_of
from .model import AnyType, ArrayType, ObjectType, Property, ScalarKind, ScalarType, TypeExpression
from .narrow import with_constraints
from .remembered import Remembered, fingerprint

__all__ = ["plain_property", "plain_type"]

_BARE: dict[object, ScalarType] = {kind: ScalarType(kind=kind) for kind in get_args(ScalarKind)}
_WORDS = frozenset({"title", "description", "examples", "default", "deprecated"})
_SCALAR = _WORDS | {
    *("type", "enum", "format", "pattern", "minLength", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_LIST = _WORDS | {"type", "items", "minItems", "maxItems", "uniqueItems"}
_UNION = _WORDS | {"anyOf"}
_MAPPING = _WORDS | {"type", "additionalProperties"}
_PLAIN = _SCALAR | _LIST | _UNION | _MAPPING

_PROPERTIES: Remembered[tuple[str, bool, bytes], Property] = Remembered()


def plain_property(name: str, schema: object, *, required: bool) -> Property | None:
    """Returns a property whose schema is a plain node; `None` when it is not.

    Raises:
        MalformedSchemaError: it is no JSON Schema.
    """
    if type(schema) is not dict or not _PLAIN.issuperset(schema):
        return None
    print_ = fingerprint(schema)
    key = None if print_ is None else (name, required, print_)
    known = None if key is None else _PROPERTIES.get(key)
    if known is not None:
        return known
    found = plain_type(schema)
    if found is None:
        return None
    type_, nodes = found
    text = full_description(schema, schema)
    made = Property(name=name, type=type_, required=required, description=text, nodes=nodes)
    if key is not None:
        _PROPERTIES.keep(key, made)
    return made


def plain_type(schema: object) -> tuple[TypeExpression, int] | None:
    """Returns the type of a plain node, and how many nodes it has; `None` when it takes more to say.

    Raises:
        MalformedSchemaError: it is no JSON Schema.
    """
    if type(schema) is not dict or not _has_words(schema):
        return None
    node: dict[str, Any] = schema
    kind = node.get("type")
    if type(kind) is str and kind in _BARE:
        scalar = _scalar(node)
        return None if scalar is None else (scalar, 1)
    if kind == "array":
        return _list(node) if _LIST.issuperset(node) else None
    if kind == "object":
        return _mapping(node) if _MAPPING.issuperset(node) else None
    return _union(node) if kind is None and _UNION.issuperset(node) else None


def _scalar(schema: object) -> TypeExpression | None:
    if type(schema) is not dict:
        return None
    node: dict[str, Any] = schema
    kind = node.get("type")
    if type(kind) is not str or kind not in _BARE or not _SCALAR.issuperset(node) or not _has_words(node):
        return None
    constraints = constraints_of(node)
    if "enum" in node:
        return with_constraints(literals("enum", as_array(node["enum"]), (kind,)), constraints)
    return ScalarType(kind=_BARE[kind].kind, constraints=constraints) if constraints else _BARE[kind]


def _list(node: dict[str, Any]) -> tuple[TypeExpression, int] | None:
    items = _scalar(node.get("items"))
    return None if items is None else (ArrayType(items=items, constraints=constraints_of(node)), 2)


def _mapping(node: dict[str, Any]) -> tuple[TypeExpression, int] | None:
    """An object without declared keys."""
    others = node.get("additionalProperties", True)
    additional: TypeExpression | None = None
    if others is True:
        additional = AnyType()
    elif others is not False:
        additional = _scalar(others)
        if additional is None:
            return None
    type_ = ObjectType(
        properties=(),
        additional=additional,
        constraints=constraints_of(node),
        stated="additionalProperties" in node,
    )
    return type_, 1 if isinstance(others, bool) else 2


def _union(node: dict[str, Any]) -> tuple[TypeExpression, int] | None:
    """One of several scalars: mostly one that may be null."""
    branches = node.get("anyOf")
    if type(branches) is not list or not branches:
        return None
    built: list[TypeExpression] = []
    for branch in branches:
        type_ = _scalar(branch)
        if type_ is None:
            return None
        built.append(type_)
    return with_constraints(union_of(built), constraints_of(node)), 1 + len(built)


def _has_words(node: Mapping[str, Any]) -> bool:
    return type(node.get("title", "")) is str and type(node.get("description", "")) is str
