"""From a call's JSON arguments to the typed arguments of a function, through pydantic.

Pydantic parses, so that text becomes dates and objects become models; the schema that callers were told is then
enforced as well, because pydantic alone would take `"3"` for an integer.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import pydantic
import pydantic_core
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from .errors import JsonSchemaError
from .lossless import item_path, member_path, shown_path, thaw, to_json_text
from .schema import RawSchema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .annotations import Parameter, Signature
    from .values import JsonValue

__all__ = ["SCHEMA_ERRORS", "FunctionArguments", "ToolJsonSchema", "typed_schema", "why"]

# Pydantic reads JSON text to some 200 levels; deeper arguments are handed over as objects.
_JSON_TEXT_LIMIT: Final = "recursion limit exceeded"


SCHEMA_ERRORS: Final = (pydantic.PydanticUserError, pydantic_core.SchemaError, JsonSchemaError, NameError, TypeError)
"""What making a schema of a type may raise: no JSON form, a bad pattern, a name that is not defined."""


class ToolJsonSchema(GenerateJsonSchema):
    """Schemas for models to read: no titles made from names, and no warning for a default that is no JSON."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # pydantic's own attribute

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # pydantic's signature
        return False


def typed_schema(
    adapter: pydantic.TypeAdapter[Any], mode: Literal["validation", "serialization"], root: str
) -> RawSchema:
    """Returns the schema of a type, compiled. Formats are left to pydantic, which writes and reads them.

    Raises:
        pydantic.PydanticUserError: the type has no JSON form.
        JsonSchemaError: the schema cannot be compiled.
    """
    schema = adapter.json_schema(mode=mode, schema_generator=ToolJsonSchema, by_alias=True)
    return RawSchema(schema, assert_formats=False, root=root)


class FunctionArguments:
    """The arguments of one function.

    Args:
        signature: the function's signature.
        owner: who is told when a parameter cannot be described, for example `tool(search)`.

    Attributes:
        schema: the compiled schema of the arguments object.

    Raises:
        TypeError: a parameter's annotation has no JSON form.
    """

    __slots__ = ("_adapter", "_fields", "schema")

    def __init__(self, signature: Signature, owner: str) -> None:
        # Fields have names of our own, so that a parameter may be called `json` or `copy`, or begin with `_`.
        self._fields = {f"p{index}": parameter for index, parameter in enumerate(signature.parameters)}
        try:
            model = pydantic.create_model(
                "Arguments",
                __config__=pydantic.ConfigDict(extra="forbid"),
                **{key: _field(parameter) for key, parameter in self._fields.items()},  # pyright: ignore[reportArgumentType, reportCallIssue]
            )
            self._adapter = pydantic.TypeAdapter[Any](model)
            self.schema = typed_schema(self._adapter, "validation", "parameters")
        except SCHEMA_ERRORS as error:
            raise TypeError(f"{owner}: {_culprit(signature, error)}") from error
        described = self.schema.schema
        if isinstance(described, dict):
            described.pop("title", None)

    def violations(self, arguments: JsonValue) -> list[str]:
        """Returns what is wrong with arguments; empty when they fit."""
        return self.parse(arguments)[0]

    def parse(self, arguments: JsonValue) -> tuple[list[str], list[Any], dict[str, Any]]:
        """Parses arguments.

        Returns:
            the violations; and when there are none, what to pass by position and what by name. An argument that was
            not given is not passed, so that the function's own default stands.
        """
        if not isinstance(arguments, dict):
            return ['"arguments" must be an object'], [], {}
        try:
            parsed = self._validated(arguments)
        except pydantic.ValidationError as error:
            return list(_told(error, arguments)), [], {}
        violations = self.schema(arguments, "")
        if violations:
            return violations, [], {}
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for key, parameter in self._fields.items():
            if parameter.positional:
                positional.append(getattr(parsed, key))
            elif key in parsed.model_fields_set or isinstance(parameter.default, FieldInfo):
                named[parameter.name] = getattr(parsed, key)
        return [], positional, named

    def _validated(self, arguments: JsonValue) -> Any:
        try:
            return self._adapter.validate_json(to_json_text(arguments))
        except pydantic.ValidationError as error:
            if _JSON_TEXT_LIMIT not in error.errors(include_url=False, include_input=False)[0]["msg"]:
                raise
        return self._adapter.validate_python(thaw(arguments))


def _field(parameter: Parameter) -> tuple[Any, FieldInfo]:
    """The pydantic field of a parameter; its JSON name is the parameter's, unless `Annotated` gives an alias."""
    declared = [each for each in get_args(parameter.annotation)[1:] if isinstance(each, FieldInfo)]
    default = parameter.default
    if isinstance(default, FieldInfo):
        declared.append(default)
        default = default.get_default(call_default_factory=True, validated_data={})
    alias = next((each.alias for each in declared if each.alias is not None), parameter.name)
    extra = {"default": default} if default is not inspect.Parameter.empty and default is not _UNDEFINED else {}
    field: Any = pydantic.Field(alias=alias, validation_alias=alias, **extra)
    if isinstance(parameter.default, FieldInfo):
        field = FieldInfo.merge_field_infos(parameter.default, field)
    return parameter.annotation, field


_UNDEFINED: Final[Any] = FieldInfo(annotation=int).default


def _culprit(signature: Signature, error: Exception) -> str:
    """Which parameter it is that has no schema: each is tried alone."""
    for parameter in signature.parameters:
        try:
            typed_schema(pydantic.TypeAdapter(parameter.annotation), "validation", "parameters")
        except SCHEMA_ERRORS as own:
            return f"parameter {parameter.name}: no schema can be made of its annotation: {why(own)}"
    return f"no schema can be made of the parameters: {why(error)}"


def why(error: Exception) -> str:
    """Returns an error's text on one line, without the links that pydantic adds."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = " ".join(line for line in lines if line and not line.startswith("For further information"))
    return kept or type(error).__name__


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
