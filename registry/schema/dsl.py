"""The author's way to write schemas, compiled to the supported subset of JSON Schema (contract B44 to B53).

    parameters = {
        "query": {"type": "string", "description": "What to look for.", "required": True},
        "limit": {"type": "integer", "default": 10},
    }
    output = {"type": "array", "items": {"type": "object", "additionalProperties": True}}

It is JSON Schema with three changes: a member says itself that it is required, an object must say whether it is open,
and `json` stands for any value. The compiler stops at the first problem (contract B50).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from ..errors import JsonSchemaError
from ..lossless import MAX_DEPTH, snapshot
from ..steps import Step, descend
from .nodes import MAX_SCHEMA_NODES, is_array, is_record
from .scalars import SCALAR_TYPES
from .subset import assert_supported_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..values import JsonObject

__all__ = ["compile_parameters", "compile_value"]

_ANNOTATIONS: Final = ("description", "title", "default", "examples")
_SCALAR_KEYS: Final = frozenset(("type", "enum", "const", *_ANNOTATIONS))
_KEYS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(SCALAR_TYPES, _SCALAR_KEYS),
    "array": frozenset(("type", "items", *_ANNOTATIONS)),
    "object": frozenset(("type", "properties", "additionalProperties", *_ANNOTATIONS)),
    "json": frozenset(("type", *_ANNOTATIONS)),
    "oneOf": frozenset(("oneOf", *_ANNOTATIONS)),
}


def compile_parameters(parameters: Mapping[str, Any]) -> JsonObject:
    """Compiles a map of parameter names to nodes into the schema of the arguments object.

    The root is open: it has no `additionalProperties` (contract B45, B52).

    Raises:
        JsonSchemaError: the map is not well-formed; paths begin with `parameters` (contract B51).
    """

    def compiled(compiler: _Compiler) -> Step[Any]:
        return compiler.members({"type": "object"}, parameters, "parameters", "parameters", 0)

    return _compile(compiled)


def compile_value(node: Mapping[str, Any]) -> JsonObject:
    """Compiles one value node, for example a tool's output.

    Raises:
        JsonSchemaError: the node is not well-formed; paths begin with `schema` (contract B51).
    """
    return _compile(lambda compiler: compiler.node(node, "schema", 0, member=False))


def _compile(first: Callable[[_Compiler], Step[Any]]) -> JsonObject:
    schema = descend(first(_Compiler()))
    assert_supported_json_schema(schema)
    # A fresh copy in plain containers: nothing of the author's own objects is left in it (contract B53).
    copy = snapshot(schema, root="schema")
    assert isinstance(copy, dict)
    return copy


def _refuse(violation: str) -> NoReturn:
    raise JsonSchemaError([violation])


class _Compiler:
    """One compilation."""

    def __init__(self) -> None:
        self.ancestors: set[int] = set()
        self.nodes = 0

    def node(self, node: Any, path: str, depth: int, *, member: bool) -> Step[Any]:
        """Compiles one node; `member` says whether `required` may stand on it (contract B46)."""
        if not is_record(node):
            _refuse(f"{path} must be a value schema object")
        self._enter(node, path, depth)
        kind = _kind(node, path)
        for key, value in node.items():
            if key == "required" and member:
                if value is not True:
                    _refuse(f"{path}.required must be true when present")
            elif key not in _KEYS[kind]:
                _refuse(f"{path}.{key} is not supported by the value schema DSL")
        compiled: dict[str, Any] = {} if kind in ("json", "oneOf") else {"type": kind}
        compiled.update((key, node[key]) for key in _ANNOTATIONS if key in node)
        if kind == "object":
            yield from self._object(compiled, node, path, depth)
        elif kind == "array":
            if "items" in node:
                compiled["items"] = yield self.node(node["items"], f"{path}.items", depth + 1, member=False)
        elif kind == "oneOf":
            yield from self._one_of(compiled, node["oneOf"], path, depth)
        else:
            _copy_scalar_constraints(compiled, node, path)
        self.ancestors.discard(id(node))
        return compiled

    def members(self, compiled: dict[str, Any], members: Any, shown: str, path: str, depth: int) -> Step[Any]:
        """Adds a property map to an object schema: `properties`, and `required` when a member is (contract B52)."""
        if not is_record(members):
            _refuse(f"{shown} must be an object of value schemas")
        self._enter(members, shown, depth)
        properties: dict[str, Any] = {}
        compiled["properties"] = properties
        for name, member in members.items():
            properties[name] = yield self.node(member, f"{path}.{name}", depth + 2, member=True)
        required = [name for name, member in members.items() if "required" in member]
        if required:
            compiled["required"] = required
        self.ancestors.discard(id(members))
        return compiled

    def _object(self, compiled: dict[str, Any], node: Any, path: str, depth: int) -> Step[Any]:
        if type(node.get("additionalProperties")) is not bool:
            _refuse(f"{path}.additionalProperties must be explicitly true or false")
        if "properties" in node:
            inner = f"{path}.properties"
            yield self.members(compiled, node["properties"], inner, inner, depth)
        compiled["additionalProperties"] = node["additionalProperties"]
        return compiled

    def _one_of(self, compiled: dict[str, Any], branches: Any, path: str, depth: int) -> Step[Any]:
        if not is_array(branches):
            _refuse(f"{path}.oneOf must be an array of at least two value schemas")
        compiled["oneOf"] = []
        for index, branch in enumerate(branches):
            compiled["oneOf"].append((yield self.node(branch, f"{path}.oneOf[{index}]", depth + 2, member=False)))
        return compiled

    def _enter(self, container: object, path: str, depth: int) -> None:
        if id(container) in self.ancestors:
            _refuse(f"{path} is circular")
        if depth >= MAX_DEPTH:
            _refuse(f"{path} is nested deeper than {MAX_DEPTH} levels")
        self.nodes += 1
        if self.nodes > MAX_SCHEMA_NODES:
            _refuse(f"{path} must not have more than {MAX_SCHEMA_NODES} nodes before it")
        self.ancestors.add(id(container))


def _kind(node: Mapping[str, Any], path: str) -> str:
    if "oneOf" in node:
        if "type" in node:
            _refuse(f"{path} cannot declare both type and oneOf")
        return "oneOf"
    kind = node.get("type")
    if not isinstance(kind, str) or kind not in _KEYS or kind == "oneOf":
        _refuse(f"{path}.type must be string/number/integer/boolean/null/array/object/json, or use oneOf")
    return str.__str__(kind)


def _copy_scalar_constraints(compiled: dict[str, Any], node: Mapping[str, Any], path: str) -> None:
    if "enum" in node:
        if not is_array(node["enum"]):
            _refuse(f"{path}.enum must be a non-empty array of scalar values")
        compiled["enum"] = list(node["enum"])
    if "const" in node:
        compiled["const"] = node["const"]
