"""The supported subset of JSON Schema, and the check that a schema keeps to it (contract B8 to B31).

The check collects every violation in walk order: a node's own keywords, then its children in declared order, then
what only makes sense after them (contract B13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..errors import JsonSchemaError
from ..lossless import MAX_DEPTH, is_lossless
from ..steps import Step, descend
from .nodes import MAX_SCHEMA_NODES, is_array, is_record
from .scalars import SCALAR_TYPES, TYPES, is_member, plain_scalar, same_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ANNOTATIONS", "CONSTRAINTS", "assert_object_json_schema", "assert_supported_json_schema"]

SIBLINGS: Final = ("properties", "required", "additionalProperties", "items", "enum", "const")
CONSTRAINTS: Final = frozenset(("type", "oneOf", *SIBLINGS))
ANNOTATIONS: Final = frozenset(("description", "title", "default", "examples"))

_SUBSET_NOTE: Final = "(subset: type/oneOf/properties/required/additionalProperties/items/enum/const + annotations)"
_HOMES: Final = {
    "properties": ("object",),
    "required": ("object",),
    "additionalProperties": ("object",),
    "items": ("array",),
    "enum": SCALAR_TYPES,
    "const": SCALAR_TYPES,
}


def assert_supported_json_schema(schema: object) -> None:
    """Checks that a schema keeps to the subset.

    Args:
        schema: a plain JSON Schema; it is only read.

    Raises:
        JsonSchemaError: it does not; `violations` holds every one, in walk order (contract B11).
    """
    violations = _violations(schema)
    if violations:
        raise JsonSchemaError(violations)


def assert_object_json_schema(schema: object) -> None:
    """Checks that a schema keeps to the subset and describes an object.

    Raises:
        JsonSchemaError: it does not; that the root is no object is told only when nothing else is (contract B31).
    """
    violations = _violations(schema)
    if not violations and isinstance(schema, dict) and schema.get("type") != "object":
        violations = ['schema.type must be "object" (structured output is object-rooted)']
    if violations:
        raise JsonSchemaError(violations)


def _violations(schema: object) -> list[str]:
    walk = _Walk()
    try:
        descend(walk.node(schema, "schema", 0))
    except _TooLargeError:
        walk.found.append(f"schema must not have more than {MAX_SCHEMA_NODES} nodes")
    return walk.found


class _TooLargeError(Exception):
    """The walk has met more than `MAX_SCHEMA_NODES` nodes."""


class _Walk:
    """One check of one schema."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.ancestors: set[int] = set()
        self.nodes = 0

    def node(self, node: Any, path: str, depth: int) -> Step[None]:
        """Checks one node; `depth` is how many JSON containers are around it."""
        if not is_record(node):
            self.found.append(f"{path} must be a schema object")
            return
        if id(node) in self.ancestors:
            self.found.append(f"{path} is circular")
            return
        if depth >= MAX_DEPTH:
            self.found.append(f"{path} is nested deeper than {MAX_DEPTH} levels")
            return
        self.nodes += 1
        if self.nodes > MAX_SCHEMA_NODES:
            raise _TooLargeError
        self.ancestors.add(id(node))
        self.found.extend(_keyword_violations(node, path))
        if "type" in node and "oneOf" in node:
            self.found.append(f"{path} cannot declare both type and oneOf")
        elif "oneOf" in node:
            yield from self._one_of(node, path, depth)
        elif "type" not in node:
            self.found.extend(f"{path}.{key} requires type or oneOf" for key in SIBLINGS if key in node)
        elif (problem := _type_violation(node["type"])) is not None:
            self.found.append(f"{path}.{problem}")
        else:
            yield from self._typed(node, node["type"], path, depth)
        self.ancestors.discard(id(node))

    def _one_of(self, node: dict[str, Any], path: str, depth: int) -> Step[None]:
        branches = node["oneOf"]
        if not is_array(branches) or len(branches) < 2:
            self.found.append(f"{path}.oneOf must be an array of at least two schemas")
        else:
            for index, branch in enumerate(branches):
                yield self.node(branch, f"{path}.oneOf[{index}]", depth + 2)
        self.found.extend(f"{path}.{key} is not supported beside oneOf" for key in SIBLINGS if key in node)

    def _typed(self, node: dict[str, Any], type_name: str, path: str, depth: int) -> Step[None]:
        for key in SIBLINGS:
            if key in node and type_name not in _HOMES[key]:
                self.found.append(f'{path}.{key} is not supported on type "{type_name}"')
        if type_name == "object":
            yield from self._object(node, path, depth)
        elif type_name == "array":
            if "items" in node:
                yield self.node(node["items"], f"{path}.items", depth + 1)
        else:
            self.found.extend(_scalar_violations(node, type_name, path))

    def _object(self, node: dict[str, Any], path: str, depth: int) -> Step[None]:
        properties: Any = node.get("properties", {})
        if not is_record(properties):
            self.found.append(f"{path}.properties must be an object of schemas")
            properties = {}
        for name, child in properties.items():
            yield self.node(child, f"{path}.properties.{name}", depth + 2)
        if "required" in node:
            required = node["required"]
            if not is_array(required) or not all(isinstance(name, str) for name in required):
                self.found.append(f"{path}.required must be an array of strings")
            else:
                self.found.extend(
                    f'{path}.required names "{name}" which is not in properties'
                    for name in required
                    if name not in properties
                )
        if "additionalProperties" in node and type(node["additionalProperties"]) is not bool:
            self.found.append(f"{path}.additionalProperties must be a boolean")


def _keyword_violations(node: dict[str, Any], path: str) -> Iterator[str]:
    """Unknown keywords first, then annotations that are no JSON, then texts that are no text (B16, B17, B18)."""
    for key in node:
        if key not in CONSTRAINTS and key not in ANNOTATIONS:
            yield f"{path}.{key} is not a supported keyword {_SUBSET_NOTE}"
    for key, value in node.items():
        if key in ANNOTATIONS and not _contained(is_lossless, value):
            yield f"{path}.{key} annotation must be lossless JSON data"
    for key in ("description", "title"):
        if key in node and not isinstance(node[key], str):
            yield f"{path}.{key} must be a string"


def _contained(test: Callable[[object], bool], value: object) -> bool:
    """Runs a test on a foreign value; one that raises while it is read has failed (contract B17)."""
    try:
        return test(value)
    except Exception:  # noqa: BLE001  # a value's own iteration may raise anything
        return False


def _type_violation(type_name: object) -> str | None:
    if is_array(type_name):
        return "type must be a single type string (type arrays are not supported)"
    if isinstance(type_name, str) and type_name in TYPES:
        return None
    return f"type must be one of {'/'.join(TYPES)}"


def _scalar_violations(node: dict[str, Any], type_name: str, path: str) -> Iterator[str]:
    """`enum` and `const` on a scalar type (contract B27, B28)."""
    options: list[Any] | None = None
    if "enum" in node:
        entries = node["enum"]
        if is_array(entries) and entries and all(is_member(type_name, plain_scalar(entry)) for entry in entries):
            options = [plain_scalar(entry) for entry in entries]
        else:
            yield f"{path}.enum must be a non-empty array of {type_name} values"
    if "const" in node:
        const = plain_scalar(node["const"])
        if not is_member(type_name, const):
            yield f"{path}.const must be a {type_name} value"
        elif options is not None and not any(same_scalar(const, option) for option in options):
            yield f"{path}.const must be one of {path}.enum when both are declared"
