"""The supported subset of JSON Schema: B8 to B31."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import pytest
from ptc.registry.errors import HarnessError, JsonSchemaError
from ptc.registry.lossless import MAX_DEPTH, materialise
from ptc.registry.schema import assert_object_json_schema, assert_supported_json_schema
from ptc.registry.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator

SUBSET = "(subset: type/oneOf/properties/required/additionalProperties/items/enum/const + annotations)"
SCALARS = ("string", "number", "integer", "boolean", "null")
A = {"string": "x", "number": 1.5, "integer": 1, "boolean": True, "null": None}


def violations(schema: object) -> list[str]:
    try:
        assert_supported_json_schema(schema)
    except JsonSchemaError as error:
        return list(error.violations)
    return []


@pytest.mark.contract("B8", "B9", "B10")
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"description": "d", "title": "t", "default": [1], "examples": {"a": None}},
        *({"type": each} for each in ("object", "array", *SCALARS)),
        {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False},
        {"type": "array", "items": {"type": "string", "enum": ["a", "a"], "const": "a"}},
        {"oneOf": [{"type": "string"}, {}], "description": "either"},
        {"type": "null", "enum": [None]},
        {"type": "integer", "enum": [1.0, 2**80], "const": 1},
        {"type": "number", "enum": [1, -0.0, 2.5]},
    ],
)
def test_schemas_of_the_subset_pass(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    assert violations(schema) == []
    assert violations(materialise(schema)) == []
    assert schema == before


@pytest.mark.contract("B11")
def test_all_violations_are_told_in_walk_order_as_one_error() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "strin"}, "b": {"minimum": 1}}, "required": ["c"]}
    with pytest.raises(JsonSchemaError) as caught:
        assert_supported_json_schema(schema)
    error = caught.value
    assert error.code == "UNSUPPORTED_SCHEMA"
    assert error.violations == (
        "schema.properties.a.type must be one of object/array/string/number/integer/boolean/null",
        f"schema.properties.b.minimum is not a supported keyword {SUBSET}",
        'schema.required names "c" which is not in properties',
    )
    assert str(error) == "unsupported JSON schema: " + "; ".join(error.violations)
    assert isinstance(error, HarnessError)


@pytest.mark.contract("B12", "B13")
def test_paths_name_the_way_and_own_checks_come_before_children_before_the_tail() -> None:
    schema = {
        "type": "object",
        "x": 1,
        "items": {},
        "properties": {
            "p": {"type": "array", "items": {"oneOf": [{"type": "x"}, {"y": 1}], "enum": [1]}},
            "q": 5,
        },
        "required": ["nope"],
        "additionalProperties": {},
    }
    assert violations(schema) == [
        f"schema.x is not a supported keyword {SUBSET}",
        'schema.items is not supported on type "object"',
        "schema.properties.p.items.oneOf[0].type must be one of object/array/string/number/integer/boolean/null",
        f"schema.properties.p.items.oneOf[1].y is not a supported keyword {SUBSET}",
        "schema.properties.p.items.enum is not supported beside oneOf",
        "schema.properties.q must be a schema object",
        'schema.required names "nope" which is not in properties',
        "schema.additionalProperties must be a boolean",
    ]


@pytest.mark.contract("B14")
@pytest.mark.parametrize("node", [None, True, 1, "string", [], (), object(), {1: "type"}, {"type": "string", 2: 3}])
def test_a_node_must_be_a_plain_record(node: object) -> None:
    assert violations(node) == ["schema must be a schema object"]
    assert violations({"type": "array", "items": node}) == ["schema.items must be a schema object"]


@pytest.mark.contract("B15")
def test_a_circular_schema_is_told_and_a_shared_node_is_fine() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {}}
    node["properties"]["again"] = {"type": "array", "items": node}
    assert violations(node) == ["schema.properties.again.items is circular"]
    shared = {"type": "string"}
    assert violations({"type": "object", "properties": {"a": shared, "b": shared}}) == []
    assert violations({"oneOf": [shared, shared]}) == []


@pytest.mark.contract("B15")
def test_a_shared_node_that_explodes_comes_to_an_end() -> None:
    node: dict[str, Any] = {"type": "string"}
    for _ in range(60):
        node = {"oneOf": [node, node]}
    assert violations(node) == ["schema must not have more than 100000 nodes"]


@pytest.mark.contract("B8", "B16")
@pytest.mark.parametrize(
    "key", ["$ref", "anyOf", "allOf", "format", "pattern", "minimum", "nullable", "", "Type", "$schema"]
)
def test_any_other_keyword_is_told(key: str) -> None:
    assert violations({"type": "string", key: 1}) == [f"schema.{key} is not a supported keyword {SUBSET}"]
    assert violations({key: 1}) == [f"schema.{key} is not a supported keyword {SUBSET}"]


@pytest.mark.contract("B16", "B17", "B18")
def test_unknown_keywords_then_lossy_annotations_then_texts_that_are_none() -> None:
    schema = {"description": MISSING, "x": 1, "title": 5, "default": math.nan, "examples": {1}, "y": 1}
    assert violations(schema) == [
        f"schema.x is not a supported keyword {SUBSET}",
        f"schema.y is not a supported keyword {SUBSET}",
        "schema.description annotation must be lossless JSON data",
        "schema.default annotation must be lossless JSON data",
        "schema.examples annotation must be lossless JSON data",
        "schema.description must be a string",
        "schema.title must be a string",
    ]


@pytest.mark.contract("B18", "B17")
@pytest.mark.parametrize("key", ["description", "title"])
def test_a_text_is_a_string_and_nothing_else(key: str) -> None:
    for wrong in (None, 0, True, [], {"text": "x"}):
        assert violations({"type": "string", key: wrong}) == [f"schema.{key} must be a string"]
    for lossy in (MISSING, math.nan, b"x"):
        assert violations({key: lossy}) == [
            f"schema.{key} annotation must be lossless JSON data",
            f"schema.{key} must be a string",
        ]
    assert violations({key: ""}) == []


@pytest.mark.contract("B17")
def test_an_annotation_that_raises_when_read_is_lossy() -> None:
    class Failing(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError

    assert violations({"default": Failing(a=1)}) == ["schema.default annotation must be lossless JSON data"]


@pytest.mark.contract("B19")
def test_type_and_one_of_stop_the_node() -> None:
    schema = {"type": "nonsense", "oneOf": 5, "enum": 5}
    assert violations(schema) == ["schema cannot declare both type and oneOf"]


@pytest.mark.contract("B20", "B30")
def test_constraints_need_a_type_in_the_order_of_the_contract() -> None:
    order = ["properties", "required", "additionalProperties", "items", "enum", "const"]
    assert violations(dict.fromkeys(reversed(order), MISSING)) == [
        f"schema.{key} requires type or oneOf" for key in order
    ]


@pytest.mark.contract("B21")
def test_one_of_needs_two_branches_and_no_sibling_constraints() -> None:
    for branches in (None, {}, [], [{}], "ab", MISSING):
        assert violations({"oneOf": branches}) == ["schema.oneOf must be an array of at least two schemas"]
    order = ["properties", "required", "additionalProperties", "items", "enum", "const"]
    schema = {**dict.fromkeys(reversed(order), 0), "oneOf": [{}, 5]}
    assert violations(schema) == [
        "schema.oneOf[1] must be a schema object",
        *(f"schema.{key} is not supported beside oneOf" for key in order),
    ]


@pytest.mark.contract("B9", "B22", "B30")
def test_a_type_is_one_of_the_seven() -> None:
    single = "schema.type must be a single type string (type arrays are not supported)"
    for several in (["string"], ["string", "null"], [], ("string",)):
        assert violations({"type": several, "enum": 5}) == [single]
    for wrong in ("any", "String", "", None, MISSING, 1, {}, "str"):
        expected = "schema.type must be one of object/array/string/number/integer/boolean/null"
        assert violations({"type": wrong, "items": 5}) == [expected]


@pytest.mark.contract("B23")
def test_keywords_belong_to_their_types() -> None:
    order = ["properties", "required", "additionalProperties", "items", "enum", "const"]
    homes = {"object": order[:3], "array": ["items"], **{each: ["enum", "const"] for each in SCALARS}}
    for type_name, own in homes.items():
        schema = {"type": type_name, **{key: MISSING for key in reversed(order) if key not in own}}
        expected = [f'schema.{key} is not supported on type "{type_name}"' for key in order if key not in own]
        assert violations(schema) == expected


@pytest.mark.contract("B24", "B25")
@pytest.mark.parametrize("properties", [None, [], "x", MISSING, {1: {}}])
def test_properties_must_be_a_record(properties: object) -> None:
    assert violations({"type": "object", "properties": properties, "required": ["a"]}) == [
        "schema.properties must be an object of schemas",
        'schema.required names "a" which is not in properties',
    ]


@pytest.mark.contract("B6", "B25")
def test_required_names_are_own_properties() -> None:
    for wrong in (None, "a", {"a": 1}, ["a", 1], [None], MISSING):
        schema = {"type": "object", "properties": {"a": {}}, "required": wrong}
        assert violations(schema) == ["schema.required must be an array of strings"]
    inherited = ["toString", "__class__", "keys", "constructor"]
    assert violations({"type": "object", "required": inherited}) == [
        f'schema.required names "{name}" which is not in properties' for name in inherited
    ]
    declared = {name: {} for name in inherited}
    assert violations({"type": "object", "properties": declared, "required": inherited}) == []


@pytest.mark.contract("B25", "B13")
def test_required_is_told_after_the_properties() -> None:
    schema = {"required": ["b"], "type": "object", "properties": {"a": 1}}
    assert violations(schema) == [
        "schema.properties.a must be a schema object",
        'schema.required names "b" which is not in properties',
    ]


@pytest.mark.contract("B26")
@pytest.mark.parametrize("value", [None, 0, 1, "false", {}, {"type": "string"}, MISSING])
def test_additional_properties_is_a_boolean(value: object) -> None:
    assert violations({"type": "object", "additionalProperties": value}) == [
        "schema.additionalProperties must be a boolean"
    ]


@pytest.mark.contract("B27", "B28", "B29")
@pytest.mark.parametrize("type_name", SCALARS)
def test_enum_and_const_hold_values_of_the_type(type_name: str) -> None:
    wrong = [value for kind, value in A.items() if kind != type_name and (type_name, kind) != ("number", "integer")]
    wrong += [math.nan, math.inf, [], {}, MISSING]
    for value in wrong:
        assert violations({"type": type_name, "enum": [A[type_name], value]}) == [
            f"schema.enum must be a non-empty array of {type_name} values"
        ]
        assert violations({"type": type_name, "const": value}) == [f"schema.const must be a {type_name} value"]
    for entries in ([], None, "x", {}, MISSING):
        assert violations({"type": type_name, "enum": entries}) == [
            f"schema.enum must be a non-empty array of {type_name} values"
        ]


@pytest.mark.contract("B28")
def test_const_must_be_in_a_valid_enum() -> None:
    assert violations({"type": "string", "enum": ["a"], "const": "b"}) == [
        "schema.const must be one of schema.enum when both are declared"
    ]
    assert violations({"type": "string", "enum": [1], "const": "b"}) == [
        "schema.enum must be a non-empty array of string values"
    ]
    assert violations({"type": "string", "enum": [1], "const": 2}) == [
        "schema.enum must be a non-empty array of string values",
        "schema.const must be a string value",
    ]
    assert violations({"type": "number", "enum": [1], "const": 1.0}) == []
    assert violations({"type": "integer", "enum": [1, 2], "const": 2.0}) == []


@pytest.mark.contract("B29")
def test_bools_are_no_numbers_and_integral_floats_are_integers() -> None:
    assert violations({"type": "integer", "enum": [1.0, -0.0]}) == []
    for type_name in ("integer", "number"):
        assert violations({"type": type_name, "const": True}) == [f"schema.const must be a {type_name} value"]
    assert violations({"type": "integer", "const": 1.5}) == ["schema.const must be a integer value"]


@pytest.mark.contract("B31")
def test_an_object_root_is_asked_for_only_when_all_else_is_well() -> None:
    assert_object_json_schema({"type": "object"})
    message = 'schema.type must be "object" (structured output is object-rooted)'
    for schema in ({}, {"type": "string"}, {"oneOf": [{"type": "object"}, {"type": "object"}]}):
        with pytest.raises(JsonSchemaError) as caught:
            assert_object_json_schema(schema)
        assert caught.value.violations == (message,)
    with pytest.raises(JsonSchemaError) as caught:
        assert_object_json_schema({"type": "string", "x": 1})
    assert caught.value.violations == (f"schema.x is not a supported keyword {SUBSET}",)
    with pytest.raises(JsonSchemaError) as caught:
        assert_object_json_schema(5)
    assert caught.value.violations == ("schema must be a schema object",)


def deep_schemas(levels: int) -> Iterator[dict[str, Any]]:
    arrays: dict[str, Any] = {}
    objects: dict[str, Any] = {}
    unions: dict[str, Any] = {}
    for _ in range(levels):
        arrays = {"type": "array", "items": arrays}
        objects = {"type": "object", "properties": {"a": objects}}
        unions = {"oneOf": [unions, {"type": "string"}]}
    yield from (arrays, objects, unions)


@pytest.mark.contract("B5")
def test_two_hundred_levels_pass_and_too_many_are_told() -> None:
    for schema in deep_schemas(200):
        assert violations(schema) == []
        assert violations({"type": "object", "properties": {"root": schema}}) == []
    for schema in deep_schemas(5_000):
        found = violations(schema)
        assert 1 <= len(found) <= 2
        assert all(each.endswith(f"is nested deeper than {MAX_DEPTH} levels") for each in found)
