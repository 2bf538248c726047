"""Schemas of older drafts in the words of 2020-12: the same values are valid, and the raw-schema door takes them."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptc.registry.schema import RawSchema
from ptc.runtime.mcp.dialect import to_2020_12

DRAFT_7 = "http://json-schema.org/draft-07/schema#"

PLAIN = st.sampled_from(
    [{"type": "string"}, {"type": "integer"}, {"minimum": 2}, {"enum": ["a", 1]}, True, False, {"required": ["a"]}]
)
SCHEMAS = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {}, optional={"items": inner | st.lists(inner, min_size=1, max_size=3), "additionalItems": inner}
        ),
        st.builds(lambda each: {"properties": {"a": each}}, inner),
        st.builds(lambda each: {"dependencies": {"a": each}}, inner | st.lists(st.sampled_from("abc"), max_size=2,
                                                                               unique=True)),
        st.builds(lambda each: {"anyOf": each}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda each: {"not": each}, inner),
    ),
    max_leaves=6,
)  # fmt: skip
VALUES = st.recursive(
    st.sampled_from(["a", "b", 1, 3, None, True]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(SCHEMAS, SCHEMAS, VALUES)
def test_the_same_values_are_valid(schema: Any, other: Any, value: Any) -> None:
    own = schema if isinstance(schema, dict) else {"not": not schema}
    old = {"$schema": DRAFT_7, "definitions": {"x": other}, "allOf": [{"$ref": "#/definitions/x"}], **own}
    expected = jsonschema_rs.Draft7Validator(old).is_valid(value)
    assert (RawSchema(to_2020_12(old))(value) == []) is expected


def test_draft_4_marks_become_limits() -> None:
    old = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}, "b": {"maximum": 5, "exclusiveMaximum": False}},
    }
    assert to_2020_12(old) == {"properties": {"a": {"exclusiveMinimum": 1}, "b": {"maximum": 5}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "dependencies": {"a": ["b"]}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "items": []},
        {"$schema": 7, "items": []},
    ],
)
def test_nothing_else_is_touched(schema: dict[str, Any]) -> None:
    assert to_2020_12(schema) is schema


def test_a_schema_that_is_nested_too_deep() -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"not": deep}
    with pytest.raises(ValueError, match="more than 200 levels deep"):
        to_2020_12({"$schema": DRAFT_7, **deep})
