"""The JSON Schema of a Python type, through pydantic and the raw-schema door (ruling 39)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, get_origin

import pydantic
import pydantic_core
from pydantic.json_schema import GenerateJsonSchema

from .errors import JsonSchemaError
from .schema import RawSchema

if TYPE_CHECKING:
    from .values import JsonValue

__all__ = ["SCHEMA_ERRORS", "ToolJsonSchema", "is_type", "typed_schema", "why"]

SCHEMA_ERRORS: Final = (pydantic.PydanticUserError, pydantic_core.SchemaError, JsonSchemaError, NameError, TypeError)
"""What making a schema of a type may raise: no JSON form, a bad pattern, a name that is not defined."""

_DEFINITIONS: Final = "#/$defs/"


class ToolJsonSchema(GenerateJsonSchema):
    """Schemas for models to read: no titles made from names, and no warning for a default that is no JSON."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # pydantic's own attribute

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # pydantic's signature
        return False


def is_type(value: object) -> bool:
    """Returns whether a value is a type, and no schema that is written out: a class, or a form such as `list[int]`."""
    return isinstance(value, type) or get_origin(value) is not None


def typed_schema(
    adapter: pydantic.TypeAdapter[Any], mode: Literal["validation", "serialization"], root: str
) -> RawSchema:
    """Returns the schema of a type, compiled. Formats are left to pydantic, which writes and reads them.

    Args:
        adapter: pydantic's view of the type.
        mode: `validation` for what is read, `serialization` for what is written.
        root: what the schema is called in messages.

    Raises:
        pydantic.PydanticUserError: the type has no JSON form.
        JsonSchemaError: the schema cannot be compiled.
    """
    schema = adapter.json_schema(mode=mode, schema_generator=ToolJsonSchema, by_alias=True)
    if mode == "validation":
        schema = _with_open_root(schema)
    return RawSchema(schema, assert_formats=False, root=root)


def _with_open_root(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Puts the members of a type that contains itself at the root, where models and providers look for them."""
    definitions, reference = schema.get("$defs"), schema.get("$ref")
    if not isinstance(definitions, dict) or not isinstance(reference, str) or not reference.startswith(_DEFINITIONS):
        return schema
    members = definitions.get(reference.removeprefix(_DEFINITIONS))
    if not isinstance(members, dict):
        return schema
    return {**members, **{key: value for key, value in schema.items() if key != "$ref"}}


def why(error: Exception) -> str:
    """Returns an error's text on one line, without the links that pydantic adds."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = " ".join(line for line in lines if line and not line.startswith("For further information"))
    return kept or type(error).__name__
