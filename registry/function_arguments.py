"""From a call's JSON arguments to the arguments of a function: each parameter has a type of its own."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, get_args

import pydantic
from pydantic.fields import FieldInfo

from .typed_arguments import TypedArguments
from .typed_schema import SCHEMA_ERRORS, typed_schema, why

if TYPE_CHECKING:
    from .annotations import Parameter, Signature
    from .values import JsonValue

__all__ = ["FunctionArguments"]


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

    __slots__ = ("_fields", "_typed", "schema")

    def __init__(self, signature: Signature, owner: str) -> None:
        # Fields have names of our own, so that a parameter may be called `json` or `copy`, or begin with `_`.
        self._fields = {f"p{index}": parameter for index, parameter in enumerate(signature.parameters)}
        try:
            model = pydantic.create_model(
                "Arguments",
                __config__=pydantic.ConfigDict(extra="forbid"),
                **{key: _field(parameter) for key, parameter in self._fields.items()},  # pyright: ignore[reportArgumentType, reportCallIssue]
            )
            self._typed = TypedArguments(model)
        except SCHEMA_ERRORS as error:
            raise TypeError(f"{owner}: {_culprit(signature, error)}") from error
        self.schema = self._typed.schema
        described = self.schema.schema
        if isinstance(described, dict):
            described.pop("title", None)

    def violations(self, arguments: JsonValue) -> list[str]:
        """Returns what is wrong with arguments; empty when they fit."""
        return self._typed.violations(arguments)

    def parse(self, arguments: JsonValue) -> tuple[list[str], list[Any], dict[str, Any]]:
        """Parses arguments.

        Returns:
            the violations; and when there are none, what to pass by position and what by name. An argument that was
            not given is not passed, so that the function's own default stands.
        """
        violations, parsed = self._typed.parse(arguments)
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
