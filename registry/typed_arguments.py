"""From a call's JSON arguments to a value of a Python type, through pydantic.

Pydantic parses, so that text becomes dates and objects become models; the schema that callers were told is then
enforced as well, because pydantic alone would take `"3"` for an integer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pydantic

from .lossless import item_path, member_path, shown_path, thaw, to_json_text
from .typed_dicts import rebuild_typed_dicts
from .typed_schema import SCHEMA_ERRORS, typed_schema, why

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .schema import RawSchema
    from .values import JsonValue

__all__ = ["TypedArguments", "class_arguments"]

# Pydantic reads JSON text to some 200 levels; deeper arguments are handed over as objects.
_JSON_TEXT_LIMIT: Final = "recursion limit exceeded"


class TypedArguments:
    """Arguments as a value of one type.

    Args:
        annotation: the type: a model, a TypedDict, whatever pydantic reads from a JSON object.

    Attributes:
        schema: the compiled schema of the arguments object.

    Raises:
        Exception: one of `SCHEMA_ERRORS`: the type has no JSON form.
    """

    __slots__ = ("_adapter", "schema")

    def __init__(self, annotation: Any) -> None:
        self._adapter = pydantic.TypeAdapter[Any](annotation)
        self.schema: RawSchema = typed_schema(self._adapter, "validation", "parameters")

    def violations(self, arguments: JsonValue) -> list[str]:
        """Returns what is wrong with arguments; empty when they fit."""
        return self.parse(arguments)[0]

    def parse(self, arguments: JsonValue) -> tuple[list[str], Any]:
        """Returns the violations of arguments; and when there are none, the value, which shares nothing with them."""
        if not isinstance(arguments, dict):
            return ['"arguments" must be an object'], None
        try:
            parsed = self._validated(arguments)
        except pydantic.ValidationError as error:
            return list(_told(error, arguments)), None
        violations = self.schema(arguments, "")
        return violations, None if violations else parsed

    def _validated(self, arguments: JsonValue) -> Any:
        try:
            return self._adapter.validate_json(to_json_text(arguments))
        except pydantic.ValidationError as error:
            if _JSON_TEXT_LIMIT not in error.errors(include_url=False, include_input=False)[0]["msg"]:
                raise
        return self._adapter.validate_python(thaw(arguments))


def class_arguments(arguments: Any, owner: str) -> TypedArguments:
    """Returns the arguments that a class describes: a pydantic model, a TypedDict, a dataclass.

    Args:
        arguments: the class.
        owner: who is told when it will not do, for example `define_tool(search)`.

    Raises:
        TypeError: no schema can be made of it, or it is no object in JSON.
    """
    name = getattr(arguments, "__qualname__", repr(arguments))
    try:
        typed = TypedArguments(rebuild_typed_dicts(arguments, {}))
    except SCHEMA_ERRORS as error:
        raise TypeError(f"{owner}: parameters: no schema can be made of {name}: {why(error)}") from error
    schema = typed.schema.schema
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise TypeError(
            f"{owner}: parameters must be a map of names to nodes, or a TypedDict, a pydantic model or a dataclass; "
            f"{name} is no object in JSON"
        )
    return typed


def _told(error: pydantic.ValidationError, arguments: JsonValue) -> Iterator[str]:
    """Pydantic's findings as violations: by path, without input values and links.

    A union tells one finding for each branch; those at one path become one message.
    """
    problems: dict[str, list[str]] = {}
    for found in error.errors(include_url=False, include_input=False):
        kind = found["type"]
        path = _argument_path(found["loc"], arguments, missing=kind in ("missing", "missing_argument"))
        if kind in ("missing", "missing_argument"):
            message = f'missing required property "{path}"'
        elif kind == "extra_forbidden":
            message = f'"{path}" is not a declared property (additionalProperties: false)'
        else:
            told = problems.setdefault(f'"{shown_path(path)}"', [])
            problem = _problem(kind, found["msg"], found.get("ctx", {}))
            if problem not in told:
                told.append(problem)
            continue
        problems.setdefault(message, [])
    for subject, told in problems.items():
        yield f"{subject} {', or '.join(told)}" if told else subject


def _argument_path(location: tuple[int | str, ...], arguments: JsonValue, *, missing: bool) -> str:
    """Where in the arguments a finding is. Steps that lead nowhere name a branch of a union and are left out."""
    path, current = "", arguments
    for index, step in enumerate(location):
        if isinstance(step, int):
            if isinstance(current, list) and 0 <= step < len(current):
                path, current = item_path(path, step), current[step]
        elif isinstance(current, dict) and step in current:
            path, current = member_path(path, step), current[step]
        elif missing and index == len(location) - 1:
            path = member_path(path, step)
    return path


def _problem(kind: str, message: str, context: Mapping[str, Any]) -> str:
    if kind == "union_tag_invalid":
        return f"must have in {context['discriminator']} one of {context['expected_tags']}"
    if kind in ("value_error", "assertion_error"):
        return f"is not accepted: {message.partition(', ')[2]}"
    plain = message.removeprefix("Input ").removeprefix("Value ")
    return plain[:1].lower() + plain[1:]
