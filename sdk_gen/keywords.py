"""Reading the keywords of one schema node; whatever is malformed raises `MalformedSchemaError` (contract G2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args
from urllib.parse import unquote

from .model import (
    AnyType,
    ArrayType,
    Constraint,
    JsonScalar,
    LiteralType,
    ObjectType,
    ScalarKind,
    ScalarType,
    TypeExpression,
    UnionType,
)
from .narrow import fits, with_constraints
from .text import MAX_INT_BITS, is_json

__all__ = [
    "MalformedSchemaError",
    "as_array",
    "as_mapping",
    "as_names",
    "as_scalar_kind",
    "constraint",
    "constraints_of",
    "description_of",
    "kinds_of",
    "literals",
    "lookup",
    "subschemas",
    "union_of",
]

_SCALARS: tuple[ScalarKind, ...] = get_args(ScalarKind)
_OBJECT_KEYWORDS = ("properties", "required", "additionalProperties", "patternProperties")
_ARRAY_KEYWORDS = ("items", "prefixItems")
_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
MAX_SAFE_INT = 2**53 - 1
_INDEX = re.compile("0|[1-9][0-9]{0,8}", re.ASCII)
_NOTED = (
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"),
    *("minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"),
    *("minProperties", "maxProperties", "propertyNames", "patternProperties", "dependentRequired", "dependentSchemas"),
    *("not", "if", "then", "else", "deprecated", "default"),
)
_ORDER = {keyword: number for number, keyword in enumerate(_NOTED)}


class MalformedSchemaError(Exception):
    """The schema is no JSON Schema."""


def as_mapping(value: object) -> Mapping[str, Any]:
    """Returns `value` when it is a mapping."""
    if not isinstance(value, (dict, Mapping)):  # the ABC alone takes many times as long
        raise MalformedSchemaError
    return value


def as_array(value: object) -> Sequence[Any]:
    """Returns `value` when it is an array with at least one item."""
    if not isinstance(value, (list, tuple)) or not value:
        raise MalformedSchemaError
    return value


def as_names(value: object) -> list[str]:
    """Returns `value` when it is an array of strings, which may be empty."""
    if not isinstance(value, (list, tuple)):
        raise MalformedSchemaError
    for name in value:
        if not isinstance(name, str):
            raise MalformedSchemaError
    return list(value)


def subschemas(node: Mapping[str, Any], keyword: str) -> Sequence[object]:
    """Returns the schemas listed under `keyword`; none when it is not there."""
    return as_array(node[keyword]) if keyword in node else ()


def constraint(node: Mapping[str, Any], keyword: str) -> Constraint:
    """Returns one keyword with its value, as it stands."""
    value = node.get(keyword)
    if keyword == "default" and not is_json(value):
        raise MalformedSchemaError
    return Constraint(keyword, value)


def constraints_of(node: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """What the types cannot say, less what goes without saying."""
    found = _ORDER.keys() & node.keys()
    if not found:
        return ()
    noted = [constraint(node, keyword) for keyword in sorted(found, key=_ORDER.__getitem__)]
    return tuple(item for item in noted if not _is_plain(item))


def _is_plain(item: Constraint) -> bool:
    """Whether a constraint tells a reader nothing.

    Absence says already what `default: null` and `uniqueItems: false` would; generators write the largest safe integer
    where nobody set a bound; and the keys of an object are strings.
    """
    keyword, value = item.keyword, item.value
    if keyword in _BOUNDS and isinstance(value, (int, float)):
        return abs(value) >= MAX_SAFE_INT
    if keyword == "propertyNames" and isinstance(value, Mapping):
        return value.get("type") == "string" and value.keys() <= {"type", "title", "description"}
    return value is None or (value is False and keyword != "default")


def description_of(schema: object) -> str:
    """Returns the description that stands in a schema node; empty when there is none."""
    text = schema.get("description") if isinstance(schema, (dict, Mapping)) else None
    return text if isinstance(text, str) else ""


def kinds_of(node: Mapping[str, Any]) -> Sequence[str]:
    """The types that a node declares, or that its keywords imply; empty when neither."""
    if "type" in node:
        declared = node["type"]
        kinds = [declared] if isinstance(declared, str) else as_names(as_array(declared))
        if not all(kind in ("object", "array", *_SCALARS) for kind in kinds):
            raise MalformedSchemaError
        return list(dict.fromkeys(kinds))
    if any(keyword in node for keyword in _OBJECT_KEYWORDS):
        return ["object"]
    return ["array"] if any(keyword in node for keyword in _ARRAY_KEYWORDS) else []


def as_scalar_kind(kind: str) -> ScalarKind:
    """Returns `kind` as the literal type that it is."""
    return next(scalar for scalar in _SCALARS if scalar == kind)


def union_of(branches: Sequence[TypeExpression]) -> TypeExpression:
    """Returns one of several types as one type."""
    return branches[0] if len(branches) == 1 else UnionType(branches=tuple(branches))


def literals(keyword: str, values: Sequence[object], kinds: Sequence[str]) -> TypeExpression:
    """Builds the type of listed values: the scalars as they are, arrays and objects as such with the list noted."""
    if not is_json(values):
        raise MalformedSchemaError
    scalars: list[JsonScalar] = []
    others: dict[str, TypeExpression] = {}
    for value in values:
        if kinds and not any(fits(value, kind) for kind in kinds):
            continue  # no value of the declared type equals it
        if isinstance(value, str):
            scalars.append(value)
        elif isinstance(value, Mapping):
            others["object"] = ObjectType(properties=(), additional=AnyType())
        elif isinstance(value, (list, tuple)):
            others["array"] = ArrayType(items=AnyType())
        elif isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
            others["integer"] = ScalarType(kind="integer")
        elif value is None or isinstance(value, (bool, int, float)):
            scalars.append(value)
    branches: list[TypeExpression] = [LiteralType(values=tuple(scalars))] if scalars else []
    branches += others.values()
    if not branches:
        return AnyType()
    noted = () if not others else (constraint({keyword: values if keyword == "enum" else values[0]}, keyword),)
    return with_constraints(union_of(branches), noted)


def lookup(root: object, reference: object) -> object:
    """Follows a JSON pointer such as `#/$defs/Node` inside the schema; `None` when it leads nowhere or outside."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    found = root
    for raw in unquote(reference[1:]).split("/")[1:]:
        token = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(token)
        elif isinstance(found, (list, tuple)) and _INDEX.fullmatch(token) and int(token) < len(found):
            found = found[int(token)]
        else:
            return None
    return found
