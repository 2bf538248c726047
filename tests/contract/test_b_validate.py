"""Values against the subset: B32 to B43, and B55, B56, B64."""

from __future__ import annotations

import collections
import datetime
import enum
import math
from typing import TYPE_CHECKING, Any

import pytest
from ptc.registry.errors import HarnessError, JsonSchemaError, ToolArgsError, ToolOutputError
from ptc.registry.lossless import materialise
from ptc.registry.schema import assert_supported_json_schema, validate_args, validate_json_schema_value
from ptc.registry.schema.scalars import same_scalar
from ptc.registry.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY: dict[str, Any] = {}


def check(schema: dict[str, Any], value: object, path: str = "value") -> list[str]:
    assert_supported_json_schema(schema)
    return validate_json_schema_value(schema, value, path)


class FailingDict(dict[Any, Any]):
    def get(self, *_args: Any) -> Any:
        raise RuntimeError("cannot be read")

    def items(self) -> Any:
        raise RuntimeError("cannot be read")


class FailingList(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield 1
        raise RuntimeError("cannot be read")


@pytest.mark.contract("B32", "B42")
@pytest.mark.parametrize("value", [object(), FailingDict(a=1), FailingList([1]), {1: 2}, math.nan, b"x", type, MISSING])
@pytest.mark.parametrize(
    "schema",
    [
        ANY,
        {"type": "object", "properties": {"a": ANY}, "required": ["a"], "additionalProperties": False},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "string"},
        {"type": "number"},
        {"type": "integer"},
        {"type": "boolean"},
        {"type": "null"},
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ],
)
def test_no_value_makes_validation_raise(schema: dict[str, Any], value: object) -> None:
    for given in (value, [value], {"a": value}):
        found = check(schema, given)
        assert isinstance(found, list)
    assert check(schema, value) != []


@pytest.mark.contract("B33")
def test_paths_from_a_named_and_from_an_empty_root() -> None:
    schema = {"type": "object", "properties": {"k": {"type": "array", "items": {"type": "string"}}}, "required": ["r"]}
    schema["properties"]["r"] = {}
    assert check(schema, {"k": [1]}) == ['missing required property "value.r"', '"value.k[0]" must be a string']
    assert check(schema, {"k": [1]}, "") == ['missing required property "r"', '"k[0]" must be a string']
    assert check(schema, 5, "") == ['"arguments" must be an object']
    assert check({"type": "array", "items": {"type": "string"}}, ["a", 1], "") == ['"[1]" must be a string']
    assert check({"type": "string"}, 5, "out") == ['"out" must be a string']


@pytest.mark.contract("B34")
@pytest.mark.parametrize(
    ("type_name", "told", "right", "wrong"),
    [
        ("string", "a string", ["", "x"], [1, None, True, [], {}]),
        ("number", "a number", [0, 1.5, -0.0, 2**80], ["1", None, True, []]),
        ("integer", "an integer", [0, 1.0, -0.0, 2**80], [1.5, "1", True, None]),
        ("boolean", "a boolean", [True, False], [0, 1, "true", None]),
        ("null", "null", [None], [0, False, "", [], MISSING]),
        ("object", "an object", [{}, {"a": 1}], [[], "x", None, 1]),
        ("array", "an array", [[], [1, {}]], [{}, "x", None, 1]),
    ],
)
def test_a_wrong_kind_is_told(type_name: str, told: str, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        assert check({"type": type_name}, value) == []
        assert check({"type": type_name}, materialise(value)) == []
    for value in wrong:
        assert check({"type": type_name}, value) == [f'"value" must be {told}']


@pytest.mark.contract("B35")
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_must_be_finite(number: float) -> None:
    assert check({"type": "number"}, number) == ['"value" must be a finite JSON number']
    assert check({"type": "integer"}, number) == ['"value" must be an integer']


@pytest.mark.contract("B36")
def test_enum_is_checked_before_const_and_only_one_is_told() -> None:
    schema = {"type": "string", "enum": ["a", "é"], "const": "a"}
    assert check(schema, "a") == []
    assert check(schema, "é") == ['"value" must be "a"']
    assert check(schema, "z") == ['"value" must be one of ["a","é"]']
    assert check({"type": "number", "enum": [1, 2.5]}, 3) == ['"value" must be one of [1,2.5]']
    assert check({"type": "null", "const": None}, None) == []


@pytest.mark.contract("B36")
def test_bools_never_equal_numbers_and_one_equals_one_point_zero() -> None:
    assert check({"type": "number", "enum": [1, 0]}, 1.0) == []
    assert check({"type": "integer", "const": 1}, 1.0) == []
    assert check({"type": "number", "const": 1}, True) == ['"value" must be a number']
    assert check({"type": "boolean", "enum": [True]}, 1) == ['"value" must be a boolean']
    assert check({"type": "boolean", "enum": [True]}, False) == ['"value" must be one of [true]']


@pytest.mark.contract("B37", "B38")
def test_the_order_within_an_object() -> None:
    schema = {
        "type": "object",
        "properties": {"b": {"type": "string"}, "a": {"type": "string"}, "m": ANY, "n": ANY},
        "required": ["n", "m"],
        "additionalProperties": False,
    }
    assert check(schema, {"z": 1, "a": 1, "y": 2, "b": 2}) == [
        'missing required property "value.n"',
        'missing required property "value.m"',
        '"value.b" must be a string',
        '"value.a" must be a string',
        '"value.z" is not a declared property (additionalProperties: false)',
        '"value.y" is not a declared property (additionalProperties: false)',
    ]


@pytest.mark.contract("B38")
def test_absent_is_missing_when_required_and_lossy_when_optional() -> None:
    schema = {"type": "object", "properties": {"r": ANY, "o": {"type": "string"}}, "required": ["r"]}
    assert check(schema, {"r": MISSING, "o": "x"}) == ['missing required property "value.r"']
    assert check(schema, {"r": 1, "o": MISSING}) == ['"value" must be a lossless JSON object']
    assert check(schema, {"r": None}) == []


@pytest.mark.contract("B37", "B39", "B64")
def test_losslessness_is_asked_for_only_when_nothing_else_is_wrong() -> None:
    lossy = datetime.date(2024, 1, 1)
    closed = {"type": "object", "properties": {"s": {"type": "string"}}}
    assert check(closed, {"x": lossy}) == ['"value" must be a lossless JSON object']
    assert check(closed, {"s": 1, "x": lossy}) == ['"value.s" must be a string']
    assert check(closed, {1: 2}) == ['"value" must be a lossless JSON object']
    assert check({"type": "array"}, [lossy]) == ['"value" must be a dense lossless JSON array']
    assert check({"type": "array", "items": {"type": "string"}}, [lossy]) == ['"value[0]" must be a string']
    assert check(ANY, lossy) == ['"value" must be a lossless JSON value']
    assert check({"type": "array", "items": ANY}, [1, lossy]) == ['"value[1]" must be a lossless JSON value']
    nested = {"type": "object", "properties": {"in": {"type": "object"}}}
    assert check(nested, {"in": {"x": lossy}}) == ['"value.in" must be a lossless JSON object']
    assert check(nested, {"in": {}, "other": "\ud800"}) == ['"value" must be a lossless JSON object']


@pytest.mark.contract("B37", "B64")
def test_only_dicts_are_objects_and_nothing_is_coerced() -> None:
    class Convertible:
        def to_json(self) -> dict[str, Any]:
            return {}

        def keys(self) -> list[str]:
            return []

    for value in (Convertible(), datetime.date(2024, 1, 1), {1, 2}, collections.deque([1])):
        assert check({"type": "object"}, value) == ['"value" must be an object']
        assert check({"type": "array"}, value) == ['"value" must be an array']


@pytest.mark.contract("B1", "B37")
def test_what_json_would_write_plainly_is_accepted() -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    assert check({"type": "object", "properties": {"a": {"type": "integer"}}}, collections.Counter("a")) == []
    assert check({"type": "array", "items": {"type": "integer"}}, (1, 2)) == []
    assert check({"type": "string", "enum": ["red"]}, Colour.RED) == []


@pytest.mark.contract("B40")
def test_objects_are_open_by_default_and_annotations_change_nothing() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "d", "examples": [1], "title": "t"}}}
    value = {"other": 1}
    assert check(schema, value) == []
    assert value == {"other": 1}
    assert check({**schema, "additionalProperties": True}, value) == []


@pytest.mark.contract("B41")
def test_exactly_one_branch_must_match() -> None:
    schema = {"oneOf": [{"type": "integer"}, {"type": "number"}, {"type": "string"}]}
    assert check(schema, 1.5) == []
    assert check(schema, "x") == []
    assert check(schema, 1) == ['"value" must match exactly one oneOf branch (matched 2)']
    assert check(schema, 1.0) == ['"value" must match exactly one oneOf branch (matched 2)']
    assert check(schema, None) == ['"value" must match exactly one oneOf branch (matched 0)']
    nested = {"oneOf": [{"type": "array", "items": schema}, {"type": "null"}]}
    assert check(nested, ["x", 1.5]) == []
    assert check(nested, [1]) == ['"value" must match exactly one oneOf branch (matched 0)']
    assert check({"oneOf": [ANY, ANY, ANY]}, 1) == ['"value" must match exactly one oneOf branch (matched 3)']


@pytest.mark.contract("B42")
def test_an_exception_is_contained_at_the_nearest_node() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": ANY}}, "c": {"type": "string"}},
    }
    assert check(schema, {"a": FailingDict(b=1), "c": 1}) == [
        '"value.a" must be a lossless JSON value',
        '"value.c" must be a string',
    ]
    assert check({"type": "array", "items": {"type": "string"}}, FailingList([1])) == [
        '"value" must be a lossless JSON value'
    ]
    assert check({"type": "array"}, FailingList([1])) == ['"value" must be a lossless JSON value']


@pytest.mark.contract("B42")
def test_a_forged_type_is_a_programming_error() -> None:
    for schema in ({"type": "strin"}, {"type": ["string"]}, {"type": None}):
        with pytest.raises(TypeError, match="assert it first"):
            validate_json_schema_value(schema, "x")
        with pytest.raises(TypeError, match="assert it first"):
            validate_json_schema_value({"type": "object", "properties": {"a": schema}}, {"a": 1})
        with pytest.raises(TypeError, match="assert it first"):
            validate_json_schema_value({"type": "array", "items": {"oneOf": [ANY, schema]}}, [1])


@pytest.mark.contract("B43")
def test_an_absent_item_is_not_lossless() -> None:
    assert check({"type": "array"}, [1, MISSING]) == ['"value" must be a dense lossless JSON array']


@pytest.mark.contract("B55")
def test_arguments_are_checked_from_the_empty_root() -> None:
    parameters = {"query": {"type": "string", "required": True}, "limit": {"type": "integer"}}
    assert validate_args(parameters, {"query": "x", "more": 1}) == []
    assert validate_args(parameters, {"limit": "x"}) == [
        'missing required property "query"',
        '"limit" must be an integer',
    ]
    assert validate_args(parameters, "text") == ['"arguments" must be an object']
    with pytest.raises(JsonSchemaError):
        validate_args({"query": {"type": "strin"}}, {})


@pytest.mark.contract("B56")
def test_the_errors_carry_their_identity_and_all_violations() -> None:
    args = ToolArgsError(["one", "two"])
    assert (str(args), args.code, args.violations) == ("invalid arguments: one; two", "INVALID_ARGS", ("one", "two"))
    output = ToolOutputError("search", ["one", "two"])
    assert str(output) == 'tool "search" returned invalid output: one; two'
    assert (output.code, output.violations) == ("INVALID_TOOL_OUTPUT", ("one", "two"))
    assert isinstance(args, HarnessError)
    assert isinstance(output, HarnessError)


@pytest.mark.contract("B5", "B54")
def test_validation_never_degrades_with_depth() -> None:
    for levels in (17, 200, 250):
        objects: dict[str, Any] = {"type": "string"}
        arrays: dict[str, Any] = {"type": "string"}
        right: tuple[Any, Any] = ("x", "x")
        wrong: tuple[Any, Any] = (1, 1)
        for _ in range(levels):
            objects = {"type": "object", "properties": {"a": objects}, "required": ["a"], "additionalProperties": False}
            arrays = {"type": "array", "items": arrays}
            right = ({"a": right[0]}, [right[1]])
            wrong = ({"a": wrong[0]}, [wrong[1]])
        assert check(objects, right[0]) == []
        assert check(arrays, right[1]) == []
        assert check(objects, wrong[0]) == [f'"value{".a" * levels}" must be a string']
        assert check(arrays, wrong[1]) == [f'"value{"[0]" * levels}" must be a string']


@pytest.mark.contract("B5", "B41")
def test_deep_unions_are_evaluated() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"oneOf": [schema, {"type": "null"}]}
    assert check(schema, "x") == []
    # At every second level both branches match null, and so none does above it.
    assert check(schema, None) == ['"value" must match exactly one oneOf branch (matched 2)']


@pytest.mark.contract("B29", "B36")
def test_scalars_are_compared_by_kind_and_value() -> None:
    assert same_scalar(1, 1.0)
    assert same_scalar(False, False)
    for one, other in ((True, 1), (0, False), ("1", 1), (None, False), ("", None)):
        assert not same_scalar(one, other)
        assert not same_scalar(other, one)
