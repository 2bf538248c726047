"""The scalar types of the schema subset: who is a member, and how a miss is told (contract B29, B34 to B36)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ..lossless import to_json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KIND_NAMES", "SCALAR_TYPES", "TYPES", "is_member", "plain_scalar", "same_scalar", "scalar_violation"]

SCALAR_TYPES: Final = ("string", "number", "integer", "boolean", "null")
TYPES: Final = ("object", "array", *SCALAR_TYPES)

KIND_NAMES: Final = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "a boolean",
    "null": "null",
    "object": "an object",
    "array": "an array",
}


def plain_scalar(value: Any) -> Any:
    """Returns the plain form of a scalar, so that no overridden method takes part; other values as they are."""
    kind = type(value)
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int) and kind is not bool:
        return int.__int__(value)
    return float.__float__(value) if issubclass(kind, float) else value


def is_member(type_name: str, value: Any) -> bool:
    """Returns whether a plain scalar belongs to a scalar type; `1.0` is an integer (contract B29, ruling 13)."""
    kind = type(value)
    match type_name:
        case "string":
            return kind is str
        case "boolean":
            return kind is bool
        case "null":
            return value is None
        case "integer":
            return kind is int or (kind is float and value.is_integer())
        case _:
            return kind is int or (kind is float and math.isfinite(value))


def same_scalar(one: object, other: object) -> bool:
    """Compares two plain scalars: a bool never equals a number, and `1` equals `1.0` (ruling 22)."""
    return (type(one) is bool) == (type(other) is bool) and one == other


def scalar_violation(schema: Mapping[str, Any], type_name: str, given: object) -> str | None:
    """Returns what is wrong with a value under a scalar schema, as the end of a sentence; `None` when all is well."""
    value = plain_scalar(given)
    if not is_member(type_name, value):
        if type_name == "number" and type(value) is float:
            return "must be a finite JSON number"
        return f"must be {KIND_NAMES[type_name]}"
    if "enum" in schema and not any(same_scalar(value, plain_scalar(entry)) for entry in schema["enum"]):
        return f"must be one of {to_json_text(list(schema['enum']))}"
    if "const" in schema and not same_scalar(value, plain_scalar(schema["const"])):
        return f"must be {to_json_text(schema['const'])}"
    return None
