"""Group G of the contract, for Python: the SDK text is held item by item."""

from __future__ import annotations

import ast
import random
import re

import pytest
from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import json_schema_to_py, render_python

OPEN: dict = {"type": "object", "properties": {}}


def tool(name="t", parameters=None, output=None, description=""):
    return ToolSchema(
        name=name,
        description=description,
        parameters=OPEN if parameters is None else parameters,
        output={"type": "null"} if output is None else output,
    )


def closed(required=(), **properties):
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def block(*tools):
    text = render_python(tools).block
    ast.parse(text)
    return text


def classes(text):
    """Each TypedDict of a block: its name, and its fields with their annotations."""
    return {
        node.name: {
            ast.unparse(item.target): ast.unparse(item.annotation)
            for item in node.body
            if isinstance(item, ast.AnnAssign)
        }
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and node.name not in ("ToolCallError", "Tools")
    }


def methods(text):
    protocol = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == "Tools")
    return {node.name: node for node in protocol.body if isinstance(node, ast.AsyncFunctionDef)}


def field(schema, required=True):
    """The annotation of one field with this schema."""
    text = block(tool(parameters=closed(["x"] if required else [], x=schema)))
    return classes(text)["TArgs"]["x"]


GOLDEN = '''from typing import Literal, NotRequired, Protocol, TypedDict


class ToolCallError(Exception):
    toolName: str


class SearchArgsFilter(TypedDict):
    # Only newer ones
    since: NotRequired[str]


class SearchArgs(TypedDict):
    # What to look for
    query: str
    sort: NotRequired[Literal["asc", "desc"]]
    filter: NotRequired[SearchArgsFilter]
    # undeclared keys are accepted


class SearchOutput(TypedDict):
    id: int
    score: float


class Tools(Protocol):
    # tools["add-note"](args: SearchArgs2) -> None
    #   Adds a note.
    async def search(self, args: SearchArgs) -> list[SearchOutput]:
        """Finds documents."""


tools: Tools'''


def test_golden_block():
    search = tool(
        "search",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for"},
                "sort": {"type": "string", "enum": ["asc", "desc"]},
                "filter": closed(since={"type": "string", "description": "Only newer ones"}),
            },
            "required": ["query"],
        },
        {"type": "array", "items": closed(["id", "score"], id={"type": "integer"}, score={"type": "number"})},
        "Finds documents.",
    )
    note = tool("add-note", closed(["text"], text={"type": "string"}), description="Adds a note.")
    expected = GOLDEN.replace("SearchArgs2", "AddNoteArgs").replace(
        "class SearchArgsFilter", "class AddNoteArgs(TypedDict):\n    text: str\n\n\nclass SearchArgsFilter"
    )
    assert block(search, note) == expected


@pytest.mark.contract("G1")
class TestPureFunction:
    def test_text_is_instructions_blank_line_and_one_fenced_block(self):
        sdk = render_python([tool("a", description="fence ``` inside")])
        assert sdk.text == f"{sdk.instructions}\n\n```python\n{sdk.block}\n```"
        assert [line for line in sdk.text.splitlines() if line.startswith("```")] == ["```python", "```"]

    def test_the_transport_is_left_out(self):
        assert list(methods(block(tool("run_code"), tool("a")))) == ["a"]
        assert list(methods(render_python([tool("go"), tool("a")], transport="go").block)) == ["a"]

    def test_bytes_do_not_depend_on_registration_order(self):
        tools = [
            tool(name, closed(x=closed(y={"type": "null"}))) for name in ("b", "a", "A-", "a-", "é", "\U0001f600", "_")
        ]
        texts = set()
        for seed in range(10):
            random.Random(seed).shuffle(tools)
            texts.add(render_python(tools).text)
        assert len(texts) == 1

    def test_rendering_twice_gives_the_same_and_changes_no_schema(self):
        parameters = closed(["a"], a={"oneOf": [{"type": "string", "default": "x"}, closed()]})
        before = repr(parameters)
        assert render_python([tool(parameters=parameters)]) == render_python([tool(parameters=parameters)])
        assert repr(parameters) == before

    @pytest.mark.parametrize("name", ["", "\ud800", "\x00", "a\nb", '"""', "class", "\u202e", "x" * 5000, "1", "*/"])
    def test_any_name_renders(self, name):
        block(tool(name)).encode("utf-8")

    def test_no_tools(self):
        text = block()
        assert text.startswith("from typing import Protocol\n")
        assert text.endswith("class Tools(Protocol):\n    pass\n\n\ntools: Tools")


@pytest.mark.contract("G1", "G23")
def test_tools_are_sorted_by_code_point():
    names = ["b", "Z", "a", "é", "\U00010400", "ﬀ"]  # U+10400 sorts after U+FB00, which UTF-16 units would turn round
    text = block(*(tool(name) for name in names))
    order = re.findall(r'async def (\w+)|# tools\["(.+?)"\]', text)
    assert ["".join(pair) for pair in order] == sorted(names)


CIRCULAR: dict = {"type": "object", "properties": {}}
CIRCULAR["properties"]["self"] = CIRCULAR


@pytest.mark.contract("G2")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strnig"},
        {"type": "object", "properties": {"ok": {"type": "string"}, "bad": {"type": 5}}},
        {"type": "object", "properties": ["a"]},
        {"type": "object", "properties": {"a": 1}},
        {"type": "object", "required": "a"},
        {"type": "array", "items": [{"type": "string"}]},
        {"oneOf": []},
        {"oneOf": "x"},
        {"type": "string", "enum": []},
        {"type": "number", "enum": [float("nan")]},
        {"type": "string", "const": object()},
        {"type": "string", "default": {1}},
        {"type": "string", "description": 3},
        {"$ref": 1},
        CIRCULAR,
        "string",
        7,
    ],
    ids=lambda schema: repr(schema)[:40],
)
def test_malformed_schemas_degrade_the_whole_type(schema):
    good = closed(["a"], a={"type": "string"})
    text = block(tool("x", schema, good), tool("y", good, schema))
    assert "def x(self, args: Any) -> XOutput: ..." in text
    assert "def y(self, args: YArgs) -> Any: ..." in text


@pytest.mark.contract("G2")
def test_a_tool_without_an_output_schema_gives_anything():
    text = block(ToolSchema(name="t", description="", parameters={"type": "string"}))
    assert "def t(self, args: str) -> Any: ..." in text


@pytest.mark.contract("G2")
def test_a_schema_whose_reading_raises_degrades():
    class Hostile(dict):
        def get(self, *_):
            raise ValueError

        def __contains__(self, _):
            raise ValueError

    assert json_schema_to_py(Hostile(type="string")) == "Any"


@pytest.mark.contract("G3")
@pytest.mark.parametrize("depth", [200, 5_000, 100_000])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: {"type": "array", "items": inner},
        lambda inner: {"type": "object", "properties": {"a": inner}, "additionalProperties": False},
        lambda inner: {"oneOf": [inner, {"type": "integer"}]},
    ],
    ids=["array", "object", "oneOf"],
)
def test_deep_schemas_render(wrap, depth):
    schema: dict = {"type": "string"}
    for _ in range(depth):
        schema = wrap(schema)
    text = block(tool(parameters=schema))
    if depth == 200:
        assert len(classes(text)) in (0, 200)
        assert "str" in text or "list[list[" in text


@pytest.mark.contract("G3")
def test_structure_that_is_shared_does_not_explode():
    shared: dict = {"type": "string"}
    for _ in range(60):
        shared = {"oneOf": [shared, {"type": "array", "items": shared}]}
    block(tool(parameters=shared))


@pytest.mark.contract("G4")
@pytest.mark.parametrize(
    "told",
    [
        r"both of its arguments are required: `code`.*`description`",
        r"`await` and `return` work at its top level",
        r"await tools\.name\(\{\"key\": 1\}\)",
        r"await tools\.name\(key=1\)",
        r"no argument means `\{\}`",
        r"tools\[\"odd-name\"\]",
        r"lossless json",
        r"`toolcallerror`, with `toolname` and a readable message",
        r"catch it",
        r"asyncio\.gather",
        r"one at a time, in the order submitted",
        r"await a call before one that depends on it",
        r"never awaited does not run, and fails the program",
        r"only what the program prints or returns",
        r"`print` output is captured",
        r"without a `return`, the value of a last line that is an expression",
        r"images in results are attached after the run",
        r"stays out of the conversation",
        r"static stubs.*nameerror.*plain dicts",
        r"only `tools` and `toolcallerror` exist at run time",
    ],
)
def test_instructions_tell(told):
    assert re.search(told, render_python([]).instructions.lower(), re.DOTALL)


@pytest.mark.contract("G4")
def test_instructions_are_short_and_name_the_transport():
    text = render_python([], transport="go").instructions
    assert "`go`" in text
    assert "run_code" not in text
    assert len(text) < 2_000


@pytest.mark.contract("G5")
def test_only_what_is_given_is_declared():
    text = block(tool("a", closed(["x"], x={"type": "string"})))
    assert "TypedDict" in text.splitlines()[0]
    assert list(methods(text)) == ["a"]
    assert list(classes(text)) == ["AArgs"]


@pytest.mark.contract("G12")
@pytest.mark.parametrize(
    ("schema", "annotation"),
    [
        ({"type": "string"}, "str"),
        ({"type": "number"}, "float"),
        ({"type": "integer"}, "int"),
        ({"type": "boolean"}, "bool"),
        ({"type": "null"}, "None"),
        ({"type": "string", "enum": ["a", "b"]}, 'Literal["a", "b"]'),
        ({"type": "string", "enum": ["a", "b"], "const": "b"}, 'Literal["b"]'),
        ({"type": "boolean", "enum": [True, False]}, "Literal[True, False]"),
        ({"type": "null", "enum": [None]}, "Literal[None]"),
        ({"type": "integer", "const": 2**70}, f"Literal[{2**70}]"),
        ({"type": "integer", "enum": [-1, 0]}, "Literal[-1, 0]"),
        ({"type": "number", "enum": [1.5, 1e-7, 1e22, 1]}, "Literal[1.5, 1e-07, 1e+22, 1]"),
        ({"type": "string", "const": 'q"\\'}, r'Literal["q\"\\"]'),
        ({"type": "string", "const": "a\nb\x00\x7f\x85"}, r'Literal["a\nb\u0000\x7f\x85"]'),
        ({"type": "string", "const": "\ud800é"}, r'Literal["\ud800é"]'),
        ({"type": "string", "const": "\u202eabc\u2028"}, r'Literal["\u202eabc\u2028"]'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_scalars_and_literals(schema, annotation):
    assert json_schema_to_py(schema) == annotation
    assert ast.parse(annotation, mode="eval")


@pytest.mark.contract("G12")
def test_literals_read_back_as_they_were():
    values = ["plain", "\x00\x1f", "\ud83d", "\U000e0041", "'\"\\", "\r\n\u2029", True, None, -3, 2**80, 0.1, 1e300]
    tree = ast.parse(json_schema_to_py({"enum": values}), mode="eval").body
    assert isinstance(tree, ast.Subscript)
    read = ast.literal_eval(tree.slice)
    assert [(type(value), value) for value in read] == [(type(value), value) for value in values]


@pytest.mark.contract("G13")
@pytest.mark.parametrize(
    ("schema", "annotation"),
    [
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "array"}, "list[Any]"),
        ({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "null"}}, {}]}, "str | list[None] | Any"),
        ({"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "null"}]}}, "list[str | None]"),
        ({}, "Any"),
        ({"description": "anything"}, "Any"),
    ],
)
def test_arrays_unions_and_any(schema, annotation):
    assert json_schema_to_py(schema) == annotation


@pytest.mark.contract("G13")
def test_unions_are_not_capped():
    branches = [{"type": "string", "const": f"v{number}"} for number in range(500)]
    assert json_schema_to_py({"oneOf": branches}).count(" | ") == 499


@pytest.mark.contract("G14")
def test_list_nesting_is_capped():
    def nested(depth):
        schema: dict = {"type": "string"}
        for _ in range(depth):
            schema = {"type": "array", "items": schema}
        return schema

    def through_unions(depth):
        schema: dict = {"type": "string"}
        for _ in range(depth):
            schema = {"oneOf": [{"type": "array", "items": schema}, {"type": "null"}]}
        return schema

    assert json_schema_to_py(nested(180)) == "list[" * 180 + "str" + "]" * 180
    assert json_schema_to_py(nested(181)) == "list[" * 180 + "Any" + "]" * 180
    assert field(nested(179)) == "list[" * 179 + "str" + "]" * 179
    assert field(nested(180)) == "list[" * 179 + "Any" + "]" * 179
    assert field(nested(180), required=False) == "NotRequired[" + "list[" * 179 + "Any" + "]" * 180
    assert json_schema_to_py(through_unions(185)).count("list[") == 180


@pytest.mark.contract("G15")
def test_one_class_for_each_object_occurrence():
    same = closed(["a"], a={"type": "string"})
    text = block(tool(parameters=closed(["x", "y"], x=same, y=same), output=same))
    assert classes(text) == {
        "TArgsX": {"a": "str"},
        "TArgsY": {"a": "str"},
        "TArgs": {"x": "TArgsX", "y": "TArgsY"},
        "TOutput": {"a": "str"},
    }


@pytest.mark.contract("G15")
def test_objects_without_properties():
    assert field({"type": "object"}) == "dict[str, Any]"
    assert field({"type": "object", "properties": {}, "additionalProperties": True}) == "dict[str, Any]"
    assert "class TArgsX(TypedDict):\n    pass\n" in block(tool(parameters=closed(x=closed())))


@pytest.mark.contract("G16")
@pytest.mark.parametrize("name", ["match", "type", "case", "_", "_x", "__x__", "__", "é", "名前", "x1"])
def test_expressible_fields(name):
    assert classes(block(tool(parameters=closed([name], **{name: {"type": "string"}}))))["TArgs"] == {name: "str"}


@pytest.mark.contract("G16")
@pytest.mark.parametrize(
    "name", ["class", "None", "await", "__debug__", "__x", "a-b", "", "1a", "ﬁ", "a b", "\ud800", "$ref"]
)
def test_one_bad_field_degrades_its_object_and_nothing_else(name):
    bad = closed(["ok", name], **{"ok": {"type": "string"}, name: {"type": "string"}})
    text = block(tool(parameters=closed(["inner", "other"], inner=bad, other=closed(["z"], z={"type": "null"}))))
    assert classes(text) == {"TArgsOther": {"z": "None"}, "TArgs": {"inner": "dict[str, Any]", "other": "TArgsOther"}}


@pytest.mark.contract("G17")
def test_optional_fields_descriptions_and_open_objects():
    text = block(
        tool(
            parameters={
                "type": "object",
                "properties": {
                    "a": {"type": "string", "description": " The  first\n one "},
                    "b": {"type": "integer", "description": "\n\t"},
                },
                "required": ["a"],
                "additionalProperties": True,
            }
        )
    )
    assert (
        "class TArgs(TypedDict):\n"
        "    # The first one\n"
        "    a: str\n"
        "    b: NotRequired[int]\n"
        "    # undeclared keys are accepted\n"
    ) in text


@pytest.mark.contract("G17")
def test_closed_objects_have_no_closing_comment():
    assert "undeclared" not in block(tool(parameters=closed(a={"type": "string"})))


@pytest.mark.contract("G18")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("get_customer-by id", "GetCustomerByIdArgs"),
        ("getCustomer", "GetCustomerArgs"),
        ("2nd", "Tool2ndArgs"),
        ("", "ToolArgs"),
        ("--", "ToolArgs"),
        ("__x", "XArgs"),
        ("éa", "ÉaArgs"),
        ("ﬁnd", "FIndArgs"),
        ("名前", "名前Args"),
    ],
)
def test_class_names_of_tools(name, expected):
    assert list(classes(block(tool(name, closed(["a"], a={"type": "string"}))))) == [expected]


@pytest.mark.contract("G18")
def test_class_names_of_parts():
    obj = closed(["v"], v={"type": "string"})
    text = block(
        tool(
            parameters=closed(
                one_thing=obj,
                items={"type": "array", "items": {"type": "array", "items": obj}},
                either={"oneOf": [{"type": "string"}, obj, {"type": "array", "items": obj}]},
            ),
            output={"oneOf": [obj, closed()]},
        )
    )
    assert list(classes(text)) == [
        "TArgsOneThing",
        "TArgsItems",
        "TArgsEither2",
        "TArgsEither3",
        "TArgs",
        "TOutput1",
        "TOutput2",
    ]


@pytest.mark.contract("G19")
def test_names_are_capped_in_characters_and_collisions_numbered():
    text = block(
        *(tool("\U00010400" * 130 + end, closed()) for end in ("a", "b", "c")),
        tool("a-b", closed()),
        tool("a_b", closed()),
    )
    names = list(classes(text))
    assert sorted(names)[:2] == ["ABArgs", "ABArgs2"]
    long = "\U00010400" * 120
    assert [name for name in names if name.startswith(long)] == [long, f"{long}2", f"{long}3"]


@pytest.mark.contract("G20")
def test_nested_before_parent_and_args_before_output():
    deep = closed(b=closed(c=closed()))
    text = block(tool("y", deep, closed()), tool("x", deep, closed()))
    assert list(classes(text)) == [
        *("XArgsBC", "XArgsB", "XArgs", "XOutput"),
        *("YArgsBC", "YArgsB", "YArgs", "YOutput"),
    ]


@pytest.mark.contract("G20")
def test_the_parents_name_is_allocated_before_its_childrens():
    # Both names are cut to the same 120 characters, so whoever comes first has the bare one.
    text = block(tool("t" * 130, closed(["x"], x=closed())))
    base = "T" + "t" * 119
    assert classes(text) == {f"{base}2": {}, base: {"x": f"{base}2"}}


@pytest.mark.contract("G21")
def test_methods():
    text = block(tool("a", closed(), {"type": "string"}, "Does  a."), tool("b", OPEN, {}))
    assert '    async def a(self, args: AArgs) -> str:\n        """Does a."""\n' in text
    assert "    async def b(self, args: dict[str, Any]) -> Any: ...\n" in text
    assert ast.get_docstring(methods(text)["a"], clean=False) == "Does a."
    assert len(methods(text)["a"].body) == 1


@pytest.mark.contract("G21")
@pytest.mark.parametrize("name", ["a-b", "class", "_x", "__x__", "", "1", "ﬁ", 'q"uote', "a.b"])
def test_names_that_are_no_methods_become_comments(name):
    text = block(tool(name, {"type": "string"}, {"type": "integer"}, "Says\nit."))
    quoted = '"' + name.replace('"', '\\"') + '"'
    assert f"class Tools(Protocol):\n    pass\n    # tools[{quoted}](args: str) -> int\n    #   Says it.\n" in text
    assert methods(text) == {}


@pytest.mark.contract("G21")
def test_comments_stand_among_the_methods_in_sorted_order():
    text = block(tool("c"), tool("a"), tool("b-"))
    assert text.index("def a(") < text.index('tools["b-"]') < text.index("def c(")
    assert "pass" not in text.split("class Tools")[1]


HOSTILE = [
    'ends with quotes """',
    '"""; import os; """',
    "back\\slash at the end \\",
    "\\N{DASH} \\x41 \\u0041",
    "NUL \x00 bell \x07 del \x7f c1 \x85 \x9f",
    "lone \ud800 surrogate \udfff",
    "bidi \u202e\u2066 marks \u200f and tags \U000e0041",
    "*/ /* */",
    "line\nbreak\r\nand\x0cform\u2028feed\x1c\x1d",
    "x" * 10_000,
    "{{ jinja }} {% raw %} {# no #}",
    "```\n```python",
    "# -*- coding: latin-1 -*-",
    "\ufeff\u00a0 \t",
]


@pytest.mark.contract("G22")
@pytest.mark.parametrize("description", HOSTILE, ids=lambda text: ascii(text)[:24])
def test_descriptions_are_safe_everywhere(description):
    parameters = closed(["a"], a={"type": "string", "description": description})
    text = block(tool("m", parameters, description=description), tool("-", parameters, description=description))
    text.encode("utf-8")
    assert list(methods(text)) == ["m"]
    assert classes(text) == {"MArgs": {"a": "str"}, "ToolArgs": {"a": "str"}}
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]", text
    )


@pytest.mark.contract("G22")
def test_how_descriptions_are_escaped():
    description = '\ufeff a\u00a0\u3000b\x0b"\\ \x00\x85\ud800\u202e '
    visible = r'a b "\ \x00\x85\ud800\u202e'
    text = block(tool("m", description=description), tool("-", description=description))
    assert f"    #   {visible}\n" in text
    assert '"""' + visible.replace("\\", "\\\\").replace('"', '\\"') + '"""' in text
    assert ast.get_docstring(methods(text)["m"], clean=False) == visible


@pytest.mark.contract("G22")
def test_text_that_words_need_is_left_alone():
    description = "Grüße, 世界, \U0001f468\u200d\U0001f469, می\u200cخواهم"
    assert f'"""{description}"""' in block(tool("m", description=description))


@pytest.mark.contract("G23")
@pytest.mark.parametrize(
    ("parameters", "imports"),
    [
        ({"type": "string"}, "Protocol"),
        ({}, "Any, Protocol"),
        ({"type": "string", "const": "Any"}, "Literal, Protocol"),
        (closed(["a"], a={"type": "string"}), "Protocol, TypedDict"),
        (closed(a={"type": "string"}), "NotRequired, Protocol, TypedDict"),
        (closed(a={"type": "string", "enum": ["x"]}, b={}), "Any, Literal, NotRequired, Protocol, TypedDict"),
    ],
)
def test_imports_are_exactly_what_is_used(parameters, imports):
    assert block(tool(parameters=parameters)).splitlines()[0] == f"from typing import {imports}"


@pytest.mark.contract("G23")
def test_a_name_in_a_comment_is_not_used():
    assert block(tool("a-b", {}, {})).splitlines()[0] == "from typing import Protocol"


@pytest.mark.contract("G23")
def test_block_order():
    text = block(tool("a", closed(["x"], x={"type": "string"})))
    body = ast.parse(text).body
    assert [type(node).__name__ for node in body] == ["ImportFrom", "ClassDef", "ClassDef", "ClassDef", "AnnAssign"]
    assert [node.name for node in body if isinstance(node, ast.ClassDef)] == ["ToolCallError", "AArgs", "Tools"]
    assert ast.unparse(body[1]) == "class ToolCallError(Exception):\n    toolName: str"
    assert ast.unparse(body[-1]) == "tools: Tools"


@pytest.mark.contract("G24")
@pytest.mark.parametrize(
    ("schema", "annotation"),
    [
        (closed(["a"], a={"type": "string"}), "dict[str, Any]"),
        (closed(), "dict[str, Any]"),
        ({"type": "array", "items": closed(a={"type": "string"})}, "list[dict[str, Any]]"),
        ({"oneOf": [OPEN, {"type": "null"}]}, "dict[str, Any] | None"),
    ],
)
def test_context_free_types(schema, annotation):
    assert json_schema_to_py(schema) == annotation
