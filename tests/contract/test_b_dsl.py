"""The author DSL: B44 to B55."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from ptc.registry.errors import JsonSchemaError
from ptc.registry.lossless import MAX_DEPTH
from ptc.registry.schema import (
    assert_object_json_schema,
    assert_supported_json_schema,
    compile_parameters,
    compile_value,
    validate_json_schema_value,
)
from ptc.registry.values import MISSING


def refused(node: Any) -> str:
    with pytest.raises(JsonSchemaError) as caught:
        compile_value(node)
    assert len(caught.value.violations) == 1
    return caught.value.violations[0]


def refused_parameters(parameters: Any) -> str:
    with pytest.raises(JsonSchemaError) as caught:
        compile_parameters(parameters)
    assert len(caught.value.violations) == 1
    return caught.value.violations[0]


@pytest.mark.contract("B44")
@pytest.mark.parametrize(
    ("node", "compiled"),
    [
        *(({"type": each}, {"type": each}) for each in ("string", "number", "integer", "boolean", "null", "array")),
        ({"type": "json"}, {}),
        ({"type": "json", "description": "any"}, {"description": "any"}),
        ({"type": "object", "additionalProperties": True}, {"type": "object", "additionalProperties": True}),
        ({"type": "array", "items": {"type": "json"}}, {"type": "array", "items": {}}),
        ({"type": "string", "enum": ["a"], "const": "a"}, {"type": "string", "enum": ["a"], "const": "a"}),
        ({"type": "string", "enum": ("a", "b")}, {"type": "string", "enum": ["a", "b"]}),
        (
            {"oneOf": [{"type": "null"}, {"type": "json", "title": "t"}], "default": None},
            {"oneOf": [{"type": "null"}, {"title": "t"}], "default": None},
        ),
    ],
)
def test_each_kind_of_node_compiles(node: dict[str, Any], compiled: dict[str, Any]) -> None:
    assert compile_value(node) == compiled


@pytest.mark.contract("B45")
@pytest.mark.parametrize(
    "extra", [{}, {"additionalProperties": None}, {"additionalProperties": {}}, {"additionalProperties": 0}]
)
def test_an_explicit_object_says_whether_it_is_open(extra: dict[str, Any]) -> None:
    node = {"type": "object", **extra}
    assert refused(node) == "schema.additionalProperties must be explicitly true or false"
    assert refused_parameters({"p": node}) == "parameters.p.additionalProperties must be explicitly true or false"


@pytest.mark.contract("B45", "B52")
def test_the_parameter_root_is_open() -> None:
    schema = compile_parameters({"a": {"type": "string"}})
    assert schema == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert validate_json_schema_value(schema, {"other": 1}, "") == []
    assert compile_parameters({}) == {"type": "object", "properties": {}}


@pytest.mark.contract("B46")
def test_required_stands_on_members_alone_and_is_true() -> None:
    for value in (False, None, 1, "true", MISSING):
        assert refused_parameters({"a": {"type": "string", "required": value}}) == (
            "parameters.a.required must be true when present"
        )
    unsupported = "is not supported by the value schema DSL"
    assert refused({"type": "string", "required": True}) == f"schema.required {unsupported}"
    assert refused({"type": "array", "items": {"type": "string", "required": True}}) == (
        f"schema.items.required {unsupported}"
    )
    assert refused({"oneOf": [{"type": "string", "required": True}, {"type": "null"}]}) == (
        f"schema.oneOf[0].required {unsupported}"
    )


@pytest.mark.contract("B47")
@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("string", ["items", "properties", "additionalProperties", "minLength"]),
        ("array", ["enum", "const", "properties", "minItems"]),
        ("object", ["enum", "items", "patternProperties"]),
        ("json", ["enum", "const", "items", "properties"]),
    ],
)
def test_a_key_of_another_kind_is_refused(kind: str, keys: list[str]) -> None:
    for key in keys:
        node = {"type": kind, "additionalProperties": True, key: 1} if kind == "object" else {"type": kind, key: 1}
        assert refused(node) == f"schema.{key} is not supported by the value schema DSL"
    assert refused({"oneOf": [], "enum": [1]}) == "schema.enum is not supported by the value schema DSL"


@pytest.mark.contract("B47")
def test_what_is_no_record_or_goes_in_circles_is_refused() -> None:
    for wrong in (None, "string", [], 1, {1: 2}):
        assert refused(wrong) == "schema must be a value schema object"
        assert refused_parameters({"a": wrong}) == "parameters.a must be a value schema object"
        assert refused_parameters(wrong) == "parameters must be an object of value schemas"
        assert refused({"type": "object", "additionalProperties": True, "properties": wrong}) == (
            "schema.properties must be an object of value schemas"
        )
        assert refused({"type": "array", "items": wrong}) == "schema.items must be a value schema object"
    node: dict[str, Any] = {"type": "array"}
    node["items"] = node
    assert refused(node) == "schema.items is circular"
    parameters: dict[str, Any] = {"a": {"type": "object", "additionalProperties": True}}
    parameters["a"]["properties"] = parameters
    assert refused_parameters(parameters) == "parameters.a.properties is circular"
    shared = {"type": "string"}
    compiled = compile_value({"oneOf": [shared, {"type": "array", "items": shared}]})
    assert compiled == {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


@pytest.mark.contract("B47", "B15")
def test_a_shared_node_that_explodes_comes_to_an_end() -> None:
    node: dict[str, Any] = {"type": "string"}
    for _ in range(60):
        node = {"oneOf": [node, node]}
    assert refused(node).endswith("must not have more than 100000 nodes before it")


@pytest.mark.contract("B48")
@pytest.mark.parametrize(
    "extra", [{}, {"type": "any"}, {"type": None}, {"type": ["string"]}, {"type": "oneOf"}, {"type": 1}]
)
def test_a_type_is_one_of_the_kinds(extra: dict[str, Any]) -> None:
    told = "must be string/number/integer/boolean/null/array/object/json, or use oneOf"
    assert refused(extra) == f"schema.type {told}"
    assert refused_parameters({"a": extra}) == f"parameters.a.type {told}"


@pytest.mark.contract("B49", "B50")
def test_unions_and_enums() -> None:
    for wrong in (None, {}, "ab"):
        assert refused({"oneOf": wrong}) == "schema.oneOf must be an array of at least two value schemas"
        assert refused({"type": "string", "enum": wrong}) == "schema.enum must be a non-empty array of scalar values"
    assert refused({"oneOf": [], "type": "string"}) == "schema cannot declare both type and oneOf"
    # How many there are, and of what type, is for the assertion that follows.
    assert refused({"oneOf": [{"type": "string"}]}) == "schema.oneOf must be an array of at least two schemas"
    assert refused({"type": "string", "enum": []}) == "schema.enum must be a non-empty array of string values"


@pytest.mark.contract("B50")
def test_the_first_problem_stops_and_the_assertion_tells_all() -> None:
    first = {"type": "object", "additionalProperties": True, "properties": {"a": {"type": "x"}, "b": {"type": "y"}}}
    assert refused(first).startswith("schema.properties.a.type ")
    with pytest.raises(JsonSchemaError) as caught:
        compile_parameters({"a": {"type": "string", "enum": []}, "b": {"type": "integer", "const": "x"}})
    assert caught.value.violations == (
        "schema.properties.a.enum must be a non-empty array of string values",
        "schema.properties.b.const must be a integer value",
    )
    assert refused({"type": "string", "default": math.nan}) == "schema.default annotation must be lossless JSON data"
    assert refused({"type": "string", "description": 5}) == "schema.description must be a string"


@pytest.mark.contract("B51", "B12")
def test_paths_lead_through_nested_members() -> None:
    node = {"type": "object", "additionalProperties": True, "properties": {"x": {"type": "array", "items": {}}}}
    assert refused(node).startswith("schema.properties.x.items.type ")
    assert refused_parameters({"p": node}).startswith("parameters.p.properties.x.items.type ")
    assert refused_parameters({"p": {"oneOf": [{"type": "json"}, 5]}}).startswith("parameters.p.oneOf[1] ")


@pytest.mark.contract("B6", "B52")
def test_required_lists_the_members_in_order_and_annotations_are_copied() -> None:
    inner = {
        "z": {"type": "string", "required": True, "title": "Z"},
        "__proto__": {"type": "json", "required": True},
        "a": {"type": "integer", "examples": [1, 2], "default": 0},
    }
    schema = compile_parameters(
        {
            "toString": {"type": "object", "properties": inner, "additionalProperties": False, "required": True},
            "plain": {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": True},
        }
    )
    compiled = {
        "type": "object",
        "properties": {
            "z": {"type": "string", "title": "Z"},
            "__proto__": {},
            "a": {"type": "integer", "examples": [1, 2], "default": 0},
        },
        "required": ["z", "__proto__"],
        "additionalProperties": False,
    }
    assert schema == {
        "type": "object",
        "properties": {
            "toString": compiled,
            "plain": {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": True},
        },
        "required": ["toString"],
    }
    assert_object_json_schema(schema)


@pytest.mark.contract("B53")
def test_the_authors_objects_are_neither_changed_nor_kept() -> None:
    default = {"list": [1]}
    parameters = {"a": {"type": "json", "default": default, "required": True}, "e": {"type": "string", "enum": ["x"]}}
    before = copy.deepcopy(parameters)
    schema: Any = compile_parameters(parameters)
    assert parameters == before
    default["list"].append(2)
    parameters["e"]["enum"].append("y")
    assert schema["properties"]["a"]["default"] == {"list": [1]}
    assert schema["properties"]["e"]["enum"] == ["x"]
    json.dumps(schema)


@pytest.mark.contract("B5", "B53", "B54")
def test_deep_schemas_compile_and_too_deep_ones_are_told() -> None:
    arrays: dict[str, Any] = {"type": "string"}
    objects: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        arrays = {"type": "array", "items": arrays}
        objects = {"type": "object", "properties": {"a": objects}, "additionalProperties": False}
    for node in (arrays, objects):
        assert_supported_json_schema(compile_value(node))
        assert_supported_json_schema(compile_parameters({"p": node}))
    for _ in range(2_000):
        arrays = {"type": "array", "items": arrays}
        objects = {"type": "object", "properties": {"a": objects}, "additionalProperties": False}
    for node in (arrays, objects):
        assert refused(node).endswith(f"is nested deeper than {MAX_DEPTH} levels")
        assert refused_parameters({"p": node}).endswith(f"is nested deeper than {MAX_DEPTH} levels")
