"""The raw-schema door: full JSON Schema 2020-12 for tools that bring one (ruling 39).

Every keyword that is accepted is enforced. Keywords that older drafts enforced and 2020-12 ignores are refused rather
than ignored, and so are references to other documents: nothing is ever fetched.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import jsonschema_rs

from ..errors import JsonSchemaError
from ..lossless import LosslessError, from_json_text, snapshot, thaw, to_json_text
from .raw_violations import describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..values import JsonObject, JsonValue

__all__ = ["RawSchema", "assert_raw_json_schema", "raw_violations"]

_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE: Final = (
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties",
)  # fmt: skip
_OLD: Final = {
    "dependencies": "dependentRequired or dependentSchemas",
    "additionalItems": "items beside prefixItems",
    "divisibleBy": "multipleOf",
    "$recursiveRef": "$dynamicRef",
    "extends": "allOf",
    "disallow": "not",
}
_ELSEWHERE: Final = re.compile(r"Resource '(?P<uri>.*)' is not present in a registry")


class RawSchema:
    """A compiled JSON Schema. Calling it checks a value.

    Args:
        schema: the schema: an object, or `True` or `False`.
        assert_formats: whether `format` is enforced where the format is a standard one. An unknown format is a mere
            annotation, as the standard has it.
        root: what the schema is called in messages.

    Attributes:
        schema: the schema in plain containers.

    Raises:
        JsonSchemaError: it is no valid JSON Schema 2020-12, or refers to another document, or uses a keyword that only
            older drafts enforce, or is nested too deep.
    """

    __slots__ = ("_validator", "schema")

    def __init__(self, schema: Mapping[str, Any] | bool, *, assert_formats: bool = True, root: str = "schema") -> None:
        try:
            plain: Any = snapshot(schema, root=root)
        except LosslessError as error:
            raise JsonSchemaError([str(error)]) from None
        if not isinstance(plain, (dict, bool)):
            raise JsonSchemaError([f"{root} must be a schema object"])
        violations = list(_outdated(plain, root))
        if violations:
            raise JsonSchemaError(violations)
        self.schema: JsonObject | bool = plain
        self._validator = _compiled(plain, assert_formats, root)

    def __call__(self, value: JsonValue, path: str = "value") -> list[str]:
        """Checks a JSON value.

        Args:
            value: JSON, as `snapshot` or `materialise` give it.
            path: what the value is called in messages; the empty text stands for a call's arguments.

        Returns:
            one message for each violation, each beginning with a quoted path; empty when the value is valid.
        """
        if self._validator.is_valid(value):
            return []
        return [message for error in self._validator.iter_errors(value) for message in describe(error, path)]


def assert_raw_json_schema(schema: Mapping[str, Any] | bool) -> None:
    """Checks that a schema may pass the raw-schema door.

    Raises:
        JsonSchemaError: it may not; see `RawSchema`.
    """
    RawSchema(schema)


def raw_violations(schema: Mapping[str, Any] | bool, value: JsonValue, path: str = "value") -> list[str]:
    """Checks a value against a full JSON Schema that nobody has kept compiled; the last ones used are remembered.

    Raises:
        JsonSchemaError: the schema may not pass the door.
    """
    return _remembered(to_json_text(snapshot(schema, root="schema")))(value, path)


@lru_cache(maxsize=256)
def _remembered(text: str) -> RawSchema:
    schema = from_json_text(text)
    assert isinstance(schema, (dict, bool))
    return RawSchema(schema)


def _compiled(schema: Any, assert_formats: bool, root: str) -> jsonschema_rs.Draft202012Validator:
    compiled: Any = thaw(schema)
    for node, _path in _nodes(compiled, root):
        # The validator names the members that a closed object refuses only when it has `properties`, if empty ones.
        if node.get("additionalProperties") is False:
            node.setdefault("properties", {})
    try:
        return jsonschema_rs.Draft202012Validator(
            compiled, validate_formats=assert_formats, offline=True, mask="the value"
        )
    except jsonschema_rs.ValidationError as error:
        raise JsonSchemaError(_schema_violations(error, root)) from None
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise JsonSchemaError([f"{root} cannot be compiled: {error}"]) from None


def _schema_violations(error: jsonschema_rs.ValidationError, root: str) -> list[str]:
    """Why a schema does not compile, with the path inside the schema."""
    if type(error.kind).__name__ != "Referencing":
        return [message.replace('"', "", 2) for message in describe(error, root)]
    elsewhere = _ELSEWHERE.match(error.message)
    if elsewhere is None:
        return [f"{root} has a reference that leads nowhere: {error.message}"]
    return [f"{root} refers to another document, {elsewhere['uri']}, and none is ever fetched; put it under $defs"]


def _outdated(schema: Any, root: str) -> Iterator[str]:
    """Yields a message for each keyword that 2020-12 would ignore though an older draft enforced it."""
    for node, path in _nodes(schema, root):
        for key, modern in _OLD.items():
            if key in node:
                yield f"{path}.{key} is of an older draft and would not be enforced; use {modern}"


def _nodes(schema: Any, root: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the objects that stand where a schema may stand, each with its path, outer ones first."""
    waiting = [(schema, root)]
    while waiting:
        node, path = waiting.pop()
        if not isinstance(node, dict):
            continue
        yield node, path
        inner: list[tuple[Any, str]] = []
        for key in _MAPS:
            if isinstance(members := node.get(key), dict):
                inner.extend((member, f"{path}.{key}.{name}") for name, member in members.items())
        for key in _LISTS:
            if isinstance(items := node.get(key), list):
                inner.extend((item, f"{path}.{key}[{index}]") for index, item in enumerate(items))
        inner.extend((node[key], f"{path}.{key}") for key in _SINGLE if key in node)
        waiting.extend(reversed(inner))
