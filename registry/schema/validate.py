"""Values against the supported subset (contract B32 to B43), and arguments against an author's parameters (B55).

Violations come in walk order, each a sentence that begins with the quoted path. Losslessness is settled once for the
whole value; only when the whole is lossy is each node asked, so that the message names the right one (contract B39).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..lossless import is_frozen, is_lossless, item_path, member_path, shown_path
from ..steps import Step, descend
from ..values import MISSING
from .dsl import compile_parameters
from .scalars import SCALAR_TYPES, scalar_violation

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["validate_args", "validate_json_schema_value"]

# The commonest members by far: a value of exactly the type, with nothing else to check.
_EXACT: Final[Mapping[type, tuple[str, ...]]] = {str: ("string",), int: ("integer", "number"), bool: ("boolean",)}

_NOT_LOSSLESS: Final = "must be a lossless JSON value"


def validate_json_schema_value(schema: Mapping[str, Any], value: object, path: str = "value") -> list[str]:
    """Checks a value against a schema that `assert_supported_json_schema` has passed.

    Args:
        schema: the schema.
        value: anything; an exception while it is read becomes a violation (contract B42).
        path: what the value is called; the empty text stands for a call's arguments (contract B33).

    Returns:
        the violations in walk order; empty when the value is valid.

    Raises:
        TypeError: the schema names a type that does not exist, so it was never asserted (contract B42).
    """
    found = _visit(schema, value, path, is_frozen(value) or _lossless(value))
    return found if isinstance(found, list) else descend(found)


def validate_args(parameters: Mapping[str, Any], arguments: object) -> list[str]:
    """Checks arguments against an author's parameter map; paths begin at the arguments themselves (contract B55).

    Raises:
        JsonSchemaError: the map is not well-formed.
    """
    return validate_json_schema_value(compile_parameters(parameters), arguments, "")


class _ForgedSchemaError(TypeError):
    """The schema was never asserted; the caller is at fault, not the value."""


def _lossless(value: object) -> bool:
    try:
        return is_lossless(value)
    except Exception:  # noqa: BLE001  # a value's own iteration may raise anything (contract B42)
        return False


def _told(path: str, problem: str) -> str:
    return f'"{shown_path(path)}" {problem}'


def _visit(schema: Mapping[str, Any], value: Any, path: str, lossless: bool) -> list[str] | Step[list[str]]:
    """Settles a scalar at once; for a container, returns the step that will."""
    if "oneOf" in schema:
        return _one_of(schema["oneOf"], value, path, lossless)
    type_name = schema.get("type", MISSING)
    if type_name in _EXACT.get(type(value), ()) and "enum" not in schema and "const" not in schema:
        return []
    if type_name is MISSING:
        return [] if lossless or _lossless(value) else [_told(path, _NOT_LOSSLESS)]
    if type_name in SCALAR_TYPES:
        problem = scalar_violation(schema, type_name, value)
        return [] if problem is None else [_told(path, problem)]
    if type_name == "object":
        if not issubclass(type(value), dict):
            return [_told(path, "must be an object")]
        return _object(schema, value, path, lossless)
    if type_name == "array":
        if not issubclass(type(value), (list, tuple)):
            return [_told(path, "must be an array")]
        return _array(schema, value, path, lossless)
    raise _ForgedSchemaError(f"the schema of {shown_path(path)} has the unknown type {type_name!r}; assert it first")


def _object(schema: Mapping[str, Any], value: dict[Any, Any], path: str, lossless: bool) -> Step[list[str]]:
    try:
        properties: Mapping[str, Any] = schema.get("properties", {})
        found = [
            f'missing required property "{member_path(path, name)}"'
            for name in schema.get("required", ())
            if value.get(name, MISSING) is MISSING
        ]
        for name, child in properties.items():
            item = value.get(name, MISSING)
            if item is not MISSING:
                inner = _visit(child, item, member_path(path, name), lossless)
                found += inner if isinstance(inner, list) else (yield inner)
        if schema.get("additionalProperties") is False:
            found += [
                f'"{member_path(path, name)}" is not a declared property (additionalProperties: false)'
                for name in value
                if name not in properties
            ]
        if not found and not lossless and not is_lossless(value):
            found.append(_told(path, "must be a lossless JSON object"))
    except _ForgedSchemaError:
        raise
    except Exception:  # noqa: BLE001  # a value's own methods may raise anything (contract B42)
        return [_told(path, _NOT_LOSSLESS)]
    return found


def _array(schema: Mapping[str, Any], value: Any, path: str, lossless: bool) -> Step[list[str]]:
    try:
        found: list[str] = []
        if "items" in schema:
            items = schema["items"]
            for index, item in enumerate(value):
                inner = _visit(items, item, item_path(path, index), lossless)
                found += inner if isinstance(inner, list) else (yield inner)
        if not found and not lossless and not is_lossless(value):
            found.append(_told(path, "must be a dense lossless JSON array"))
    except _ForgedSchemaError:
        raise
    except Exception:  # noqa: BLE001  # a value's own iteration may raise anything (contract B42)
        return [_told(path, _NOT_LOSSLESS)]
    return found


def _one_of(branches: Any, value: object, path: str, lossless: bool) -> Step[list[str]]:
    matched = 0
    for branch in branches:
        inner = _visit(branch, value, path, lossless)
        violations = inner if isinstance(inner, list) else (yield inner)
        matched += not violations
    if matched == 1:
        return []
    return [_told(path, f"must match exactly one oneOf branch (matched {matched})")]
