"""From what a body returns to JSON, by a Python type and through pydantic."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pydantic

from .errors import ToolOutputError
from .typed_schema import SCHEMA_ERRORS, typed_schema, why

if TYPE_CHECKING:
    from .schema import RawSchema
    from .values import JsonObject

__all__ = ["TypedOutput"]


class TypedOutput:
    """The output of one tool.

    Args:
        annotation: the type of the value; `Any`, or `inspect.Signature.empty` for none, takes any JSON as it is.
        name: the tool's name.
        owner: who is told when the type will not do, for example `tool(search)`.
        what: what the annotation is called then.

    Attributes:
        schema: the compiled schema of the value.
        check: what checks a value against it; `None` when any JSON will do.

    Raises:
        TypeError: the type has no JSON form.
    """

    __slots__ = ("_adapter", "_name", "check", "schema")

    def __init__(self, annotation: Any, name: str, *, owner: str, what: str) -> None:
        self._name = name
        self._adapter: pydantic.TypeAdapter[Any] | None = None
        self.check: RawSchema | None = None
        self.schema: JsonObject | bool = {}
        if annotation is inspect.Signature.empty or annotation is Any:
            return
        try:
            self._adapter = pydantic.TypeAdapter[Any](annotation)
            self.check = typed_schema(self._adapter, "serialization", "output")
        except SCHEMA_ERRORS as error:
            raise TypeError(f"{owner}: no schema can be made of {what}: {why(error)}") from error
        self.schema = self.check.schema

    def to_json(self, value: Any) -> Any:
        """Turns what the body returned into JSON.

        Raises:
            ToolOutputError: a part of it has no JSON form.
        """
        if self._adapter is None:
            return value
        try:
            return self._adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
        except ValueError as error:  # pydantic's own refusals, and its limit of nesting
            raise ToolOutputError(self._name, [f'"value" cannot be turned into JSON: {why(error)}']) from error
