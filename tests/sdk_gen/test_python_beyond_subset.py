"""Python text for full JSON Schemas (ruling 39): references, notes, keys, aliases."""

from __future__ import annotations

import ast
import sys

import pydantic
import pytest
from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import json_schema_to_py, render_python


def block(parameters, output=None, name="t"):
    tool = ToolSchema(
        name=name, description="", parameters=parameters, output={"type": "null"} if output is None else output
    )
    text = render_python([tool]).block
    ast.parse(text)
    return text


def body(parameters, output=None):
    """The classes alone."""
    return block(parameters, output).split("    toolName: str\n\n\n")[1].split("class Tools")[0].strip()


def described(schema):
    """The comment and the annotation of one required field, whose object is closed."""
    text = body({"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False})
    return [line.strip() for line in text.split("class TArgs(TypedDict):\n")[1].splitlines()]


class Node(pydantic.BaseModel):
    """One node."""

    value: int = pydantic.Field(ge=0, description="How much")
    children: list[Node] = []
    parent: Node | None = None


def test_a_pydantic_model_that_contains_itself():
    assert body(Node.model_json_schema()) == (
        "class TArgs(TypedDict):\n"
        "    # How much (minimum 0)\n"
        "    value: int\n"
        "    # default []\n"
        "    children: NotRequired[list[TArgs]]\n"
        "    # One node.\n"
        "    parent: NotRequired[TArgs | None]\n"
        "    # undeclared keys are accepted"
    )


def test_a_shared_definition_is_one_class_named_after_it():
    place = {"type": "object", "properties": {"lat": {"type": "number"}}, "additionalProperties": False}
    schema = {
        "type": "object",
        "properties": {"from_": {"$ref": "#/$defs/geo-place"}, "to": {"$ref": "#/$defs/geo-place"}},
        "additionalProperties": False,
        "$defs": {"geo-place": place},
    }
    assert body(schema, {"type": "array", "items": {"$ref": "#/$defs/geo-place"}, "$defs": {"geo-place": place}}) == (
        "class TArgsGeoPlace(TypedDict):\n"
        "    lat: NotRequired[float]\n"
        "\n\n"
        "class TArgs(TypedDict):\n"
        "    from_: NotRequired[TArgsGeoPlace]\n"
        "    to: NotRequired[TArgsGeoPlace]\n"
        "\n\n"
        "class TOutputGeoPlace(TypedDict):\n"
        "    lat: NotRequired[float]"
    )


def test_definitions_are_named_after_the_name_that_the_root_got():
    place = {"type": "object", "properties": {}, "additionalProperties": False}
    schema = {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Place"}},
        "additionalProperties": False,
        "$defs": {"Place": place},
    }
    tools = [ToolSchema(name=name, description="", parameters=schema) for name in ("a-b", "a_b")]
    names = [node.name for node in ast.parse(render_python(tools).block).body if isinstance(node, ast.ClassDef)]
    assert names[1:-1] == ["ABArgsPlace", "ABArgs", "ABArgs2Place", "ABArgs2"]


def test_brackets_of_a_definition_count_where_it_is_used():
    def nested(depth, inner):
        return {"type": "array", "items": nested(depth - 1, inner)} if depth else inner

    schema = nested(175, {"$ref": "#/$defs/Cube"})
    assert json_schema_to_py({**schema, "$defs": {"Cube": nested(5, {"type": "null"})}}).count("list[") == 180
    assert json_schema_to_py({**schema, "$defs": {"Cube": nested(6, {"type": "null"})}}).count("list[") == 175


def test_recursion_through_a_definition_that_is_no_object_still_names_the_class():
    schema = {
        "$ref": "#/$defs/Nodes",
        "$defs": {
            "Nodes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"sub": {"$ref": "#/$defs/Nodes"}},
                    "additionalProperties": False,
                },
            }
        },
    }
    assert body(schema) == "class TArgs(TypedDict):\n    sub: NotRequired[list[TArgs]]"
    assert "def t(self, args: list[TArgs]) -> None" in block(schema)


def test_recursion_without_any_object_ends_in_any():
    schema = {
        "$ref": "#/$defs/J",
        "$defs": {"J": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/J"}}]}},
    }
    assert "def t(self, args: str | list[Any]) -> None" in block(schema)
    assert json_schema_to_py(schema) == "str | list[Any]"
    assert "def t(self, args: Any) -> None" in block({"$ref": "#"})


def test_a_long_definition_that_is_no_object_gets_a_name():
    codes = [f"country-{number:02}" for number in range(10)]
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Country"}, "b": {"type": "array", "items": {"$ref": "#/$defs/Country"}}},
        "additionalProperties": False,
        "$defs": {"Country": {"enum": codes}},
    }
    listed = ", ".join(f'"{code}"' for code in codes)
    assert body(schema) == (
        f"TArgsCountry = Literal[{listed}]\n"
        "\n\n"
        "class TArgs(TypedDict):\n"
        "    a: NotRequired[TArgsCountry]\n"
        "    b: NotRequired[list[TArgsCountry]]"
    )


def test_definitions_that_double_at_each_step_stay_small():
    definitions: dict = {
        f"D{number}": {
            "anyOf": [
                {"$ref": f"#/$defs/D{number + 1}"},
                {"type": "array", "items": {"$ref": f"#/$defs/D{number + 1}"}},
            ]
        }
        for number in range(100)
    }
    definitions["D100"] = {"type": "string"}
    schema = {"$ref": "#/$defs/D0", "$defs": definitions}
    assert len(block(schema)) < 30_000
    assert len(json_schema_to_py(schema)) < 1_000


@pytest.mark.parametrize(
    ("schema", "lines"),
    [
        (
            {"type": "integer", "minimum": 1, "default": 10, "description": "Page size"},
            ["# Page size (minimum 1, default 10)", "x: int"],
        ),
        ({"type": "string", "pattern": '^"\\d+\n$'}, [r'# pattern "^\"\\d+\n$"', "x: str"]),
        ({"type": "string", "format": "date-time"}, ['# format "date-time"', "x: str"]),
        ({"type": "boolean", "default": True, "deprecated": True}, ["# deprecated, default True", "x: bool"]),
        (
            {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 3},
            ["# maxItems 3; each item: minLength 1", "x: list[str]"],
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
            ["# each value: minimum 0", "x: dict[str, int]"],
        ),
        ({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}, ["# minimum 0", "x: int | None"]),
        (
            {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "maxLength": 2}]},
            ["# int: minimum 0; str: maxLength 2", "x: int | str"],
        ),
        (
            {"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "time"}]},
            ['# str: format "date"; str: format "time"', "x: str"],
        ),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "null"}},
            ["# items in order: str, int, then any number of None", "x: list[str | int | None]"],
        ),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
            ["# items in order: str, int", "x: list[str | int]"],
        ),
        (
            {
                "type": "array",
                "prefixItems": [{"type": "string", "format": "time"}, {"type": "string", "format": "date"}],
                "minItems": 2,
                "maxItems": 2,
            },
            ['# exactly 2 items: str, str; item 1: format "time"; item 2: format "date"', "x: list[str]"],
        ),
        (
            {"type": "array", "prefixItems": [{"type": "string"}], "items": False, "minItems": float("inf")},
            ["# minItems Infinity; items in order: str", "x: list[str]"],
        ),
        (
            {
                "type": "array",
                "prefixItems": [{"type": "string"}],
                "items": {"type": "integer", "minimum": 0},
                "minItems": 2,
            },
            [
                "# minItems 2; items in order: str, then any number of int; further items: minimum 0",
                "x: list[str | int]",
            ],
        ),
        ({"not": {"type": "string"}}, ['# not {"type": "string"}', "x: Any"]),
        ({"type": "array", "default": [[[[1]]]]}, ["# default [[[[...]]]]", "x: list[Any]"]),
        ({"type": "string", "default": "v" * 500}, ['# default "' + "v" * 156 + "...", "x: str"]),
        ({"type": "string", "default": "\u202e\n\ud800"}, [r'# default "\u202e\n\ud800"', "x: str"]),
        ({"type": ["string", "null"], "enum": ["a", None]}, ["x: " + 'Literal["a", None]']),
    ],
)
def test_what_types_cannot_say_stands_in_the_comment(schema, lines):
    assert described(schema) == lines


def test_notes_of_a_root_stand_above_the_method():
    text = block({"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0})
    assert "    # args: minLength 1\n    # returns: minimum 0\n    async def t(self, args: str) -> int: ...\n" in text


def test_keys_that_no_typeddict_has_are_listed():
    schema = {
        "type": "object",
        "properties": {
            "from": {"type": "string", "minLength": 1, "description": "Sender\naddress"},
            "to": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
            '"\n': {},
        },
        "required": ["from"],
    }
    assert (
        "    # args: keys (? = may be left out)\n"
        '    #   "from": str - Sender address (minLength 1)\n'
        '    #   "to"?: list[TArgsTo]\n'
        '    #   "\\"\\n"?: Any\n'
        "    async def t(self, args: dict[str, Any]) -> None: ...\n"
    ) in block(schema)
    nested = block(
        {"type": "object", "properties": {"mail": {"anyOf": [schema, {"type": "null"}], "description": "The mail"}}}
    )
    assert "    # The mail\n    # keys (? = may be left out)\n" in nested
    assert "    mail: NotRequired[dict[str, Any] | None]\n" in nested
    odd = block(schema, name="a-b")
    assert '    # tools["a-b"](args: dict[str, Any]) -> None\n    #   args: keys' in odd
    assert '    #     "from": str' in odd


def test_keys_of_alternatives_are_told_apart():
    text = body(
        {
            "type": "object",
            "properties": {
                "x": {
                    "anyOf": [
                        {"type": "object", "properties": {"a-b": {"type": "string"}}, "required": ["a-b"]},
                        {"type": "object", "properties": {"c-d": {"type": "object", "properties": {"e-f": {}}}}},
                        {"type": "object"},
                    ]
                }
            },
            "additionalProperties": False,
        }
    )
    assert text == (
        "class TArgs(TypedDict):\n"
        "    # keys (? = may be left out)\n"
        '    #   "a-b": str\n'
        "    #   or\n"
        '    #   "c-d"?: dict[str, Any]\n'
        '    #     "e-f"?: Any\n'
        "    #   or any other keys\n"
        "    x: NotRequired[dict[str, Any]]"
    )


def test_nested_key_lists_stay_short():
    schema: dict = {}
    for _ in range(4):
        schema = {"type": "object", "properties": {f"k-{number}": schema for number in range(9)}}
    assert block(schema).count('"k-') <= 100


@pytest.mark.parametrize(
    ("schema", "comment"),
    [
        (
            {"type": "array", "items": {"description": "one name"}, "description": "Names."},
            "Names. Each item: one name",
        ),
        ({"type": "array", "items": {"description": "one name"}}, "Each item: one name"),
        ({"anyOf": [{"description": "a name"}, {"type": "null"}, {"description": "a number"}]}, "a name | a number"),
        ({"additionalProperties": {"anyOf": [{"description": "a"}, {"description": "b"}]}}, "Each value: a | b"),
        ({"items": {"$ref": "#/$defs/D"}, "$defs": {"D": {"description": "d"}}}, None),
        ({"allOf": [{"description": "a"}, {"description": "b"}]}, None),
    ],
)
def test_descriptions_of_parts_are_told_with_the_field(schema, comment):
    found = described(schema)
    assert found[:-1] == ([f"# {comment}"] if comment else [])


@pytest.mark.parametrize(
    "silent",
    [
        {"type": "integer", "minimum": -(2**53) + 1, "maximum": 2**53 - 1},
        {"type": "object", "propertyNames": {"type": "string"}},
        {"type": "array", "uniqueItems": False},
    ],
)
def test_what_goes_without_saying_is_not_said(silent):
    assert not [line for line in described(silent) if line.startswith("#")]


def test_the_list_of_keys_ends():
    text = block({"type": "object", "properties": {f"k-{number}": {} for number in range(80)}})
    assert '"k-49"?: Any' in text
    assert "k-50" not in text
    assert "and 30 more" in text


def test_typed_undeclared_keys_are_told():
    schema = {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "integer"}}
    assert "# undeclared keys are accepted, with values int" in block(schema)


def test_a_union_too_tall_for_the_parser_is_any():
    schema = {"oneOf": [{"const": f"v{number}"} for number in range(3_000)]}
    assert json_schema_to_py(schema) == "Any"
    assert json_schema_to_py({"enum": list(range(3_000))}).count(",") == 2_999


def test_equal_branches_are_written_once():
    assert json_schema_to_py({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}) == "str | None"


def test_renders_near_the_recursion_limit():
    schema: dict = {"type": "string"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": {"type": "array", "items": schema}}}

    def descend(levels):
        return descend(levels - 1) if levels else block(schema)

    block(schema)  # the templates are compiled now
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    assert descend(sys.getrecursionlimit() - depth - 120).count("(TypedDict)") == 300


@pytest.mark.contract("G13")
@pytest.mark.parametrize(
    ("schema", "annotation"),
    [
        ({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "string"}, {"$ref": "#/$defs/A"}]}, "Any | str"),
        ({"anyOf": [{"$ref": "#/$defs/B"}, {"type": "string"}]}, "Any | int | str"),
        ({"type": "array", "items": {"anyOf": [{"type": "null"}, {"type": ["string", "null"]}]}}, "list[None | str]"),
        ({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}, "int | list[int]"),
    ],
)
def test_a_union_has_each_type_once(schema, annotation):
    definitions = {
        "A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "string"}]},
        "B": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "integer"}, {"$ref": "#/$defs/A"}]},
    }
    field = {"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": definitions}
    assert f"    x: {annotation}\n" in block(field)
    assert json_schema_to_py({**schema, "$defs": definitions}) == annotation
