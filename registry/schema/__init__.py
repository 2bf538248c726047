"""Schemas: the author DSL, the supported subset, and the raw-schema door for full JSON Schema (contract B)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dsl import compile_parameters, compile_value
from .raw import RawSchema, assert_raw_json_schema, raw_violations
from .subset import assert_object_json_schema, assert_supported_json_schema
from .validate import validate_args, validate_json_schema_value

if TYPE_CHECKING:
    from ..definition import ToolDefinition
    from ..values import JsonValue

__all__ = [
    "RawSchema",
    "assert_object_json_schema",
    "assert_output_schema",
    "assert_raw_json_schema",
    "assert_supported_json_schema",
    "compile_parameters",
    "compile_value",
    "raw_violations",
    "validate_args",
    "validate_json_schema_value",
    "validate_output",
]


def assert_output_schema(definition: ToolDefinition) -> None:
    """Checks the schema of a tool's output at registration: by the subset, or by the raw-schema door (A9, ruling 39).

    Raises:
        JsonSchemaError: the schema is not supported.
    """
    if definition.output.raw:
        assert_raw_json_schema(definition.output.schema)
    else:
        assert_supported_json_schema(definition.output.schema)


def validate_output(definition: ToolDefinition, value: JsonValue) -> list[str]:
    """Checks a tool's value, JSON already, against its declared output (contract C43).

    Returns:
        the violations, whose paths begin with `value`; empty when the value is valid.
    """
    output = definition.output
    if output.check is not None:
        return output.check(value)
    if output.raw:
        return raw_violations(output.schema, value)
    return validate_json_schema_value(output.schema, value)
