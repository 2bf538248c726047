"""The subset validator agrees with a full JSON Schema validator on random schemas and values."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
from hypothesis import given
from hypothesis import strategies as st
from ptc.registry.lossless import materialise
from ptc.registry.schema import (
    RawSchema,
    assert_supported_json_schema,
    compile_value,
    raw_violations,
    validate_json_schema_value,
)

NAMES = st.sampled_from(["a", "b", "toString", "é"])
OF_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "a", "1", "é"]),
    "number": st.sampled_from([0, 1, 1.0, -0.0, 2.5, 2**80]),
    "integer": st.sampled_from([0, 1, 1.0, 2**80]),
    "boolean": st.booleans(),
    "null": st.none(),
}
SCALAR_VALUES = st.one_of(*OF_TYPE.values())
VALUES = st.recursive(
    SCALAR_VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)


@st.composite
def scalar_schemas(draw: st.DrawFn) -> dict[str, Any]:
    type_name = draw(st.sampled_from(sorted(OF_TYPE)))
    schema: dict[str, Any] = {"type": type_name}
    if draw(st.booleans()):
        schema["enum"] = draw(st.lists(OF_TYPE[type_name], min_size=1, max_size=3))
        if draw(st.booleans()):
            schema["const"] = draw(st.sampled_from(schema["enum"]))
    return schema


@st.composite
def object_schemas(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    if draw(st.booleans()):
        schema["properties"] = draw(st.dictionaries(NAMES, inner, max_size=3))
        if schema["properties"] and draw(st.booleans()):
            names = st.sampled_from(sorted(schema["properties"]))
            schema["required"] = draw(st.lists(names, min_size=1, max_size=2, unique=True))
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.booleans())
    return schema


SCHEMAS = st.recursive(
    scalar_schemas() | st.just({}) | st.just({"description": "any"}),
    lambda inner: (
        object_schemas(inner)
        | st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda branches: {"oneOf": branches}, st.lists(inner, min_size=2, max_size=3))
    ),
    max_leaves=8,
)


@given(SCHEMAS, VALUES)
def test_the_subset_means_what_json_schema_means(schema: dict[str, Any], value: Any) -> None:
    assert_supported_json_schema(schema)
    ours = validate_json_schema_value(schema, value)
    assert (ours == []) == jsonschema_rs.Draft202012Validator(schema).is_valid(value)
    assert validate_json_schema_value(materialise(schema), materialise(value)) == ours  # pyright: ignore[reportArgumentType]


@given(SCHEMAS, VALUES)
def test_both_doors_agree(schema: dict[str, Any], value: Any) -> None:
    ours = validate_json_schema_value(schema, value)
    theirs = RawSchema(schema)(value)
    assert (ours == []) == (theirs == [])
    assert raw_violations(schema, value) == theirs


FLAT = st.recursive(
    scalar_schemas(),
    lambda inner: object_schemas(inner) | st.builds(lambda items: {"type": "array", "items": items}, inner),
    max_leaves=6,
)


@given(FLAT, VALUES)
def test_without_unions_both_doors_tell_the_same_violations(schema: dict[str, Any], value: Any) -> None:
    ours = validate_json_schema_value(schema, value)
    theirs = RawSchema(schema)(value)
    # The full validator tells of `enum` and `const` beside `type`; the subset tells of one of them (contract B36).
    assert set(ours) <= set(theirs)
    subjects = {message.partition(" must be ")[0] for message in theirs}
    assert {message.partition(" must be ")[0] for message in ours} == subjects


def as_author_wrote(schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    """The DSL node that compiles to a schema."""
    node: dict[str, Any] = {
        key: value for key, value in schema.items() if key in ("type", "enum", "const", "description")
    }
    if "oneOf" in schema:
        node["oneOf"] = [as_author_wrote(branch) for branch in schema["oneOf"]]
    elif "type" not in schema:
        node["type"] = "json"
    elif schema["type"] == "array":
        node["items"] = as_author_wrote(schema["items"])
    elif schema["type"] == "object":
        node["additionalProperties"] = schema.get("additionalProperties", True)
        if "properties" in schema:
            node["properties"] = {
                name: as_author_wrote(child, required=name in schema.get("required", ()))
                for name, child in schema["properties"].items()
            }
    return {**node, "required": True} if required else node


@given(SCHEMAS, VALUES)
def test_the_author_dsl_means_what_it_is_compiled_from(schema: dict[str, Any], value: Any) -> None:
    compiled = compile_value(as_author_wrote(schema))
    assert (validate_json_schema_value(compiled, value) == []) == (validate_json_schema_value(schema, value) == [])
