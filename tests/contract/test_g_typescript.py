"""Group G of the contract, for TypeScript: the SDK text is held item by item, and the compiler accepts it."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

import pytest
from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import json_schema_to_ts, render_python, render_typescript
from ptc.sdk_gen.ts_text import ts_number
from ptc.sdk_gen.ts_types import MAX_NESTING

OPEN: dict = {"type": "object", "properties": {}}
STRING: dict = {"type": "string"}


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
    return render_typescript(tools).block


def declarations(text):
    """The declarations of a block, which empty lines set apart."""
    return text.split("\n\n")


def interface(text, name):
    """The lines inside an interface, without its own indentation."""
    found = next(part for part in declarations(text) if part.startswith(f"interface {name} {{"))
    lines = found.split("\n")
    assert lines[-1] == "}"
    return [line.removeprefix("  ") for line in lines[1:-1]]


def keys(text, name="ToolArgsMap"):
    """The keys of an interface, unquoted."""
    found = [re.match(r'([A-Za-z_$][\w$]*|"(?:[^"\\]|\\.)*"): ', line) for line in interface(text, name)]
    bare = [match[1] for match in found if match]
    return [json.loads(key) if key.startswith('"') else key for key in bare]


def nested(wrap, depth, leaf=None):
    schema = STRING if leaf is None else leaf
    for _ in range(depth):
        schema = wrap(schema)
    return schema


GOLDEN = """\
type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

interface ToolArgsMap {
  /** Adds a note. */
  "add-note": {
    text: string;
  };
  /** Finds documents. */
  search: {
    /** What to look for */
    query: string;
    sort?: "asc" | "desc";
    filter?: {
      /** Only newer ones */
      since?: string;
    };
  } & Record<string, JsonValue>;
}

interface ToolOutputMap {
  "add-note": null;
  search: {
    id: number;
    score: number;
  }[];
}

type ToolName = keyof ToolArgsMap;

declare class ToolCallError extends Error {
  readonly name: "ToolCallError";
  readonly toolName: ToolName;
}

declare const tools: {
  readonly [Name in ToolName]: (args: ToolArgsMap[Name]) => Promise<ToolOutputMap[Name]>;
};"""

SEARCH = tool(
    "search",
    {
        "type": "object",
        "description": "Never shown",
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
NOTE = tool("add-note", closed(["text"], text=STRING), description="Adds a note.")


@pytest.mark.contract("G8", "G9", "G10", "G11")
def test_golden_block():
    assert block(SEARCH, NOTE) == GOLDEN


@pytest.mark.contract("G1")
class TestPureFunction:
    def test_text_is_instructions_blank_line_and_one_fenced_block(self):
        sdk = render_typescript([tool("a", description="fence ``` inside")])
        assert sdk.text == f"{sdk.instructions}\n\n```ts\n{sdk.block}\n```"
        assert [line for line in sdk.text.splitlines() if line.startswith("```")] == ["```ts", "```"]

    def test_the_transport_is_left_out(self):
        assert keys(block(tool("run_code"), tool("a"))) == ["a"]
        assert keys(render_typescript([tool("go"), tool("a")], transport="go").block) == ["a"]

    def test_tools_are_sorted_by_code_point(self):
        names = ["b", "Z", "a", "é", "\U00010400", "ﬀ"]  # U+10400 after U+FB00, which UTF-16 units would turn round
        text = block(*map(tool, names))
        assert keys(text) == keys(text, "ToolOutputMap") == sorted(names)

    def test_bytes_do_not_depend_on_registration_order(self):
        node = {"$ref": "#/$defs/Node", "$defs": {"Node": closed(x={"$ref": "#/$defs/Node"})}}
        tools = [tool(name, node, node) for name in ("b", "a", "A-", "a-", "é", "\U0001f600", "_", "a_")]
        texts = set()
        for seed in range(10):
            random.Random(seed).shuffle(tools)
            texts.add(render_typescript(tools).text)
        assert len(texts) == 1

    def test_rendering_twice_gives_the_same_and_changes_no_schema(self):
        parameters = closed(["a"], a={"oneOf": [{"type": "string", "default": "x"}, closed()]})
        before = repr(parameters)
        assert render_typescript([tool(parameters=parameters)]) == render_typescript([tool(parameters=parameters)])
        assert repr(parameters) == before

    def test_a_change_in_one_tool_changes_its_own_lines_only(self):
        before = block(SEARCH, NOTE, tool("z", closed(x={"$ref": "#"})))
        after = block(SEARCH, NOTE, tool("z", closed(y={"$ref": "#"})))
        changed = {one for one, other in zip(before.split("\n"), after.split("\n"), strict=True) if one != other}
        assert changed == {"  x?: ZArgs;"}

    def test_the_same_bytes_under_another_hash_seed(self):
        program = (
            "import sys\n"
            "from ptc.registry.definition import ToolSchema\n"
            "from ptc.sdk_gen import render_typescript\n"
            "schema = {'anyOf': [{'type': t} for t in ('string', 'null', 'integer')], 'minimum': 1, 'pattern': 'x'}\n"
            "schema = {'type': 'object', 'properties': {k: schema for k in 'abc'}, 'additionalProperties': schema}\n"
            "tools = [ToolSchema(name=n, description=n, parameters=schema) for n in 'xyz']\n"
            "sys.stdout.write(render_typescript(tools).text)"
        )
        texts = {
            subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(texts) == 1


HOSTILE_NAMES = [
    "",
    "\ud800",
    "\x00",
    "a\nb",
    '"',
    "class",
    "\u202e",
    "x" * 5000,
    "1",
    "*/",
    "__proto__",
    "constructor",
]


class Hostile(dict):
    def get(self, *_):
        raise ValueError

    def items(self):
        raise ValueError

    def __contains__(self, _):
        raise ValueError


CIRCULAR: dict = {"type": "object", "properties": {}}
CIRCULAR["properties"]["self"] = CIRCULAR
MALFORMED = [
    {"type": "strnig"},
    {"type": "object", "properties": {"ok": STRING, "bad": {"type": 5}}},
    {"type": "object", "properties": ["a"]},
    {"type": "object", "properties": {"a": 1}},
    {"type": "object", "required": "a"},
    {"type": "array", "items": [STRING]},
    {"oneOf": []},
    {"type": "string", "enum": []},
    {"type": "number", "enum": [float("nan")]},
    {"type": "string", "const": object()},
    {"type": "string", "description": 3},
    {"$ref": 1},
    Hostile(type="string"),
    CIRCULAR,
    "string",
    7,
]


@pytest.mark.contract("G2")
@pytest.mark.parametrize("schema", MALFORMED, ids=lambda schema: repr(schema)[:40])
def test_malformed_schemas_degrade_the_whole_type(schema):
    good = closed(["a"], a=STRING)
    text = block(tool("x", schema, good), tool("y", good, schema))
    assert interface(text, "ToolArgsMap") == ["x: unknown;", "y: {", "  a: string;", "};"]
    assert interface(text, "ToolOutputMap") == ["x: {", "  a: string;", "};", "y: unknown;"]
    assert json_schema_to_ts(schema) == "unknown"


@pytest.mark.contract("G1", "G2")
def test_a_tool_without_an_output_schema_gives_something_unknown():
    assert interface(block(ToolSchema(name="t", description="", parameters=STRING)), "ToolOutputMap") == ["t: unknown;"]


@pytest.mark.contract("G1")
def test_a_constraint_that_cannot_be_read_is_named_alone():
    assert interface(block(tool(parameters=closed(a={"not": Hostile(a=1), "minimum": 1}))), "ToolArgsMap") == [
        "t: {",
        "  /** minimum 1, not */",
        "  a?: JsonValue;",
        "};",
    ]


DEEP = {
    "array": lambda inner: {"type": "array", "items": inner},
    "nullable array": lambda inner: {"type": "array", "items": {"oneOf": [inner, {"type": "null"}]}},
    "closed object": lambda inner: closed(a=inner),
    "open object": lambda inner: {"type": "object", "properties": {"a": inner}},
    "record": lambda inner: {"type": "object", "additionalProperties": inner},
    "object with typed keys": lambda inner: {
        "type": "object",
        "properties": {"a": OPEN},
        "additionalProperties": inner,
    },
    "tuple": lambda inner: {"type": "array", "prefixItems": [{"oneOf": [inner, {"type": "null"}]}]},
    "array of objects": lambda inner: {"type": "array", "items": {"type": "object", "properties": {"a": inner}}},
}


@pytest.mark.contract("G3")
@pytest.mark.parametrize("wrap", DEEP.values(), ids=DEEP)
def test_two_hundred_levels_are_written_and_deeper_ones_end_in_any_json(wrap):
    levels = 1 if wrap is not DEEP["array of objects"] else 2
    parameters = nested(wrap, 200 // levels, {"type": "string", "const": "at the bottom"})
    # What stands beside the declared keys of an object must take in their types, so it is not told level by level.
    assert ('"at the bottom"' in block(tool(parameters=parameters))) == (wrap is not DEEP["object with typed keys"])
    deeper = block(tool(parameters=nested(wrap, 100_000, {"type": "string", "const": "at the bottom"})))
    assert "at the bottom" not in deeper
    assert max(len(line) - len(line.lstrip()) for line in deeper.split("\n")) <= 2 * MAX_NESTING + 4


@pytest.mark.contract("G3")
def test_unions_in_unions_are_one_union_however_deep():
    schema = nested(lambda inner: {"oneOf": [inner, {"type": "integer"}]}, 4_000)
    assert json_schema_to_ts(schema) == "string | number"


@pytest.mark.contract("G3")
def test_shared_structure_does_not_explode():
    shared: dict = STRING
    for _ in range(60):
        shared = {"oneOf": [shared, {"type": "array", "items": shared}]}
    assert len(block(tool(parameters=shared))) < 1_000_000

    def joined(of):
        """Definitions that each name the next one twice, beside keywords that it is joined with."""
        definitions: dict = {f"D{number}": of({"$ref": f"#/$defs/D{number + 1}"}) for number in range(40)}
        return {"$ref": "#/$defs/D0", "$defs": {**definitions, "D40": {"type": ["string", "null"]}}}

    unions = joined(lambda ref: {"anyOf": [{"allOf": [ref, {"type": kinds}]} for kinds in (["string"], ["null"])]})
    objects = joined(lambda ref: {"properties": {key: {"allOf": [ref, {"properties": {key: STRING}}]} for key in "ab"}})
    for schema in (unions, objects):
        assert len(block(tool(parameters=schema))) < 5_000_000
        assert render_python([tool(parameters=schema)]).block


def calls_of(work):
    """How many calls of Python functions the work takes, which no other load on the machine changes."""
    made = 0

    def count(_frame, event, _argument):
        nonlocal made
        made += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return made


@pytest.mark.contract("G3")
def test_cost_grows_with_the_number_of_tools_and_no_faster():
    def cost(count):
        tools = [tool(f"tool_{number}", SEARCH.parameters, SEARCH.output, "Finds.") for number in range(count)]
        return calls_of(lambda: render_typescript(tools))

    render_typescript([])  # the templates are compiled now
    assert cost(800) < 8.1 * cost(100)


@pytest.mark.contract("G3")
@pytest.mark.parametrize("wrap", DEEP.values(), ids=DEEP)
def test_cost_grows_with_the_depth_and_no_faster(wrap):
    def cost(depth):
        schema = nested(wrap, depth)
        return calls_of(lambda: json_schema_to_ts(schema))

    levels = MAX_NESTING if wrap is not DEEP["array of objects"] else MAX_NESTING // 2
    assert cost(levels) < 10.5 * cost(levels // 10)
    assert len(json_schema_to_ts(nested(wrap, 50_000))) < 500_000


@pytest.mark.contract("G4")
@pytest.mark.parametrize(
    "told",
    [
        r"both of its arguments are required: `code`.*`description`",
        r"body of an async function",
        r"`await` and `return` work at its top level",
        r"only syntax that can be erased",
        r"annotations are advisory",
        r"await tools\.name\(\{ key: 1 \}\)",
        r"`\{\}` when it needs nothing",
        r"await tools\[\"odd-name\"\]\(",
        r"the tool's value itself, as plain json data of the declared type",
        r"arguments must be lossless json",
        r"`toolcallerror`, with `toolname` and a readable `message`",
        r"catch it",
        r"promise\.all",
        r"one at a time, in the order submitted",
        r"await a call before one that depends on it",
        r"only what the program prints \(`console.log`\) or returns",
        r"the value of `return` must be lossless json",
        r"images in results are attached after the run",
        r"stays out of the conversation",
        r"only `tools` and `toolcallerror` exist at run time",
    ],
)
def test_instructions_tell(told):
    assert re.search(told, render_typescript([]).instructions.lower(), re.DOTALL)


@pytest.mark.contract("G4")
def test_instructions_are_short_and_name_the_transport_and_no_python():
    text = render_typescript([], transport="go").instructions
    assert "`go`" in text
    assert "run_code" not in text
    assert not re.search("python|asyncio|keyword|TypedDict|NameError", text)
    assert len(text) < 2_000


@pytest.mark.contract("G5")
def test_only_what_is_given_is_declared():
    text = block(tool("a", closed(["x"], x=STRING)))
    assert keys(text) == keys(text, "ToolOutputMap") == ["a"]
    assert len(declarations(text)) == 6


@pytest.mark.contract("G6")
@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        (STRING, "string"),
        ({"type": "number"}, "number"),
        ({"type": "integer"}, "number"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "null"}, "null"),
        ({"type": "string", "enum": ["a", "b"]}, '"a" | "b"'),
        ({"type": "string", "enum": ["a", "b"], "const": "b"}, '"b"'),
        ({"type": "boolean", "const": True}, "true"),
        ({"type": "boolean", "enum": [False, True]}, "false | true"),
        ({"type": "null", "const": None}, "null"),
        ({"type": "integer", "enum": [1, -2, 3]}, "1 | -2 | 3"),
        ({"enum": ["a", None, 1, True]}, '"a" | null | 1 | true'),
        ({"enum": [1, 1.0, "1"]}, '1 | "1"'),
        ({"enum": ['q"q', "back\\slash", "line\nend", "\u2028"]}, r'"q\"q" | "back\\slash" | "line\nend" | "\u2028"'),
        ({"enum": ["\ud800", "\u202e", "\x7f", "é"]}, r'"\ud800" | "\u202e" | "\u007f" | "é"'),
        ({"const": "\U000e0041"}, r'"\udb40\udc41"'),
        ({"type": ["string", "null"], "enum": ["a", None]}, '"a" | null'),
    ],
)  # fmt: skip
def test_scalars_and_literals(schema, type_):
    assert json_schema_to_ts(schema) == type_


NUMBERS = [
    (1, "1"),
    (1.0, "1"),
    (-1.5, "-1.5"),
    (0.1, "0.1"),
    (-0.0, "0"),
    (100.0, "100"),
    (1e-6, "0.000001"),
    (1.25e-6, "0.00000125"),
    (1e-7, "1e-7"),
    (1.5e-7, "1.5e-7"),
    (123456.789, "123456.789"),
    (1e16, "10000000000000000"),
    (1.5e20, "150000000000000000000"),
    (1e21, "1e+21"),
    (-1.25e300, "-1.25e+300"),
    (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (2**53 - 1, "9007199254740991"),
    (2**53 + 1, "9007199254740993"),
    (2**70, "1.1805916207174113e+21"),
    (10**400, "1" + "0" * 400),
]


@pytest.mark.contract("G6")
@pytest.mark.parametrize(("value", "text"), NUMBERS, ids=lambda value: str(value)[:20])
def test_numbers_have_ecmascript_text(value, text):
    assert json_schema_to_ts({"const": value}) == text


@pytest.mark.contract("G6")
def test_numbers_have_the_text_that_node_gives_them():
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    chosen = random.Random(1)
    values = [struct.unpack("<d", chosen.randbytes(8))[0] for _ in range(2_000)]
    values = [value for value in values if abs(value) < float("inf")]
    values += [chosen.randint(1, 10**17) * 10.0 ** chosen.randint(-30, 25) for _ in range(2_000)]
    program = "process.stdout.write(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8')).map(String)))"
    done = subprocess.run([node, "-e", program], input=json.dumps(values), capture_output=True, text=True, check=True)
    assert [ts_number(value) for value in values] == json.loads(done.stdout)


@pytest.mark.contract("G6")
def test_numbers_in_python_text_are_pythons():
    parameters = {"type": "number", "enum": [1.0, 1e16, 1e-7, -0.0]}
    assert "Literal[1.0, 1e+16, 1e-07, -0.0]" in render_python([tool(parameters=parameters)]).block


@pytest.mark.contract("G7")
@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "array", "items": STRING}, "string[]"),
        ({"type": "array", "items": {"type": "array", "items": STRING}}, "string[][]"),
        ({"type": "array"}, "JsonValue[]"),
        ({}, "JsonValue"),
        ({"description": "anything"}, "JsonValue"),
        ({"oneOf": [STRING, {"type": "array", "items": {"type": "null"}}, {}]}, "string | null[] | JsonValue"),
        ({"oneOf": [STRING, {"type": "null"}, STRING]}, "string | null"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "number"),
        ({"oneOf": [{"oneOf": [STRING, {"type": "null"}]}, {"type": "null"}]}, "string | null"),
        ({"type": "array", "items": {"oneOf": [STRING, {"type": "null"}]}}, "(string | null)[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": "array", "items": {"const": "a|b"}}, '("a|b")[]'),
        ({"type": "array", "items": {"const": "a&b"}}, '("a&b")[]'),
        ({"type": "array", "items": {"const": "a b"}}, '"a b"[]'),
        ({"type": "array", "items": OPEN}, "Record<string, JsonValue>[]"),
        ({"type": "array", "items": closed(a=STRING)}, "{\n  a?: string;\n}[]"),
        ({"type": "array", "items": closed(a={"type": ["string", "null"]})}, "({\n  a?: string | null;\n})[]"),
        ({"type": "array", "items": closed(a={"description": "this & that"})},
         "({\n  /** this & that */\n  a?: JsonValue;\n})[]"),
        ({"type": "array", "items": closed(**{"a|b": STRING})}, '({\n  "a|b"?: string;\n})[]'),
        ({"type": "array", "items": {"type": "object", "properties": {"a": STRING}}},
         "({\n  a?: string;\n} & Record<string, JsonValue>)[]"),
    ],
)  # fmt: skip
def test_arrays_unions_and_any_json(schema, type_):
    assert json_schema_to_ts(schema) == type_


@pytest.mark.contract("G7")
def test_unions_are_not_capped():
    branches = [{"type": "string", "const": f"v{number}"} for number in range(3_000)]
    assert json_schema_to_ts({"oneOf": branches}).count(" | ") == 2_999


@pytest.mark.contract("G8")
@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "object"}, "Record<string, JsonValue>"),
        (OPEN, "Record<string, JsonValue>"),
        ({**OPEN, "additionalProperties": True}, "Record<string, JsonValue>"),
        (closed(), "Record<string, never>"),
        (closed(["a"], a=STRING, b={"type": "null"}), "{\n  a: string;\n  b?: null;\n}"),
        ({"type": "object", "properties": {"a": STRING}, "required": ["a"]},
         "{\n  a: string;\n} & Record<string, JsonValue>"),
        (closed(["a"], a=closed(["b"], b=closed(c=STRING))),
         "{\n  a: {\n    b: {\n      c?: string;\n    };\n  };\n}"),
    ],
)  # fmt: skip
def test_objects(schema, type_):
    assert json_schema_to_ts(schema) == type_


BARE = ["a", "_", "$", "a1", "$ref", "class", "new", "constructor", "__proto__", "get", "readonly", "A_9$"]
QUOTED = [
    "",
    "1",
    "1a",
    "a-b",
    "a.b",
    "a b",
    "é",
    "名",
    "\ud800",
    "\u202e",
    'q"',
    "back\\",
    "line\n",
    "#x",
    "*/",
    "a\n",
]


@pytest.mark.contract("G9")
@pytest.mark.parametrize("name", [*BARE, *QUOTED], ids=ascii)
def test_keys_are_bare_where_they_can_be(name):
    key = name if name in BARE else json.dumps(name, ensure_ascii=not name.isprintable())
    text = block(tool(name, closed([name], **{name: STRING})))
    assert interface(text, "ToolArgsMap") == [f"{key}: {{", f"  {key}: string;", "};"]
    assert interface(text, "ToolOutputMap") == [f"{key}: null;"]
    assert json.loads(key) == name if name in QUOTED else key == name


@pytest.mark.contract("G9")
def test_names_that_look_alike_stay_apart():
    names = ["a-b", "a_b", "a.b", "A-b", "ﬁ", "fi", "é", "e\u0301"]
    assert sorted(keys(block(*map(tool, names)))) == sorted(names)


def comments(description, schema=None):
    """The comment lines of a tool and of its one property, which both have this description."""
    parameters = closed(a={**(STRING if schema is None else schema), "description": description})
    lines = interface(block(tool(parameters=parameters, output=parameters, description=description)), "ToolArgsMap")
    return [line.strip() for line in lines if line.strip().startswith("/*")]


@pytest.mark.contract("G10")
@pytest.mark.parametrize(
    ("description", "comment"),
    [
        ("Finds.", "/** Finds. */"),
        ("  Finds\n\tall \r\n of\u2028them\u00a0 ", "/** Finds all of them */"),
        ("ends */ here", "/** ends *\\/ here */"),
        ("*/*/**/", "/** *\\/*\\/**\\/ */"),
        ("star *", "/** star * */"),
        ("/", "/** / */"),
        (" \n ", "/** */"),
        ("nul \x00, bidi \u202e, lone \ud800", r"/** nul \x00, bidi \u202e, lone \ud800 */"),
        ("@ts-expect-error", "/** \\@ts-expect-error */"),
        ("@deprecated", "/** @deprecated */"),
        ("{{ x }} {% y %} `z` ${a}", "/** {{ x }} {% y %} `z` ${a} */"),
        ("x" * 10_000, f"/** {'x' * 10_000} */"),
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_comments(description, comment):
    assert comments(description) == [comment, comment]


@pytest.mark.contract("G10")
def test_an_empty_description_has_no_comment():
    assert comments("") == []


@pytest.mark.contract("G10")
def test_descriptions_of_roots_are_not_shown_and_those_of_tools_once():
    described = {"type": "object", "properties": {"a": STRING}, "description": "Of the root"}
    text = block(tool(parameters=described, output=described, description="Of the tool"))
    assert "Of the root" not in text
    assert interface(text, "ToolArgsMap")[0] == "/** Of the tool */"
    assert text.count("Of the tool") == 1
    assert "Of a branch" not in json_schema_to_ts({"oneOf": [{**described, "description": "Of a branch"}, STRING]})


@pytest.mark.contract("G10")
@pytest.mark.parametrize(
    ("schema", "lines"),
    [
        ({"type": "integer", "minimum": 1, "default": 10, "description": "Page size"},
         ["/** Page size (minimum 1, default 10) */", "x: number;"]),
        ({"type": "integer", "minimum": 1, "description": " "}, ["/** minimum 1 */", "x: number;"]),
        ({"type": "boolean", "default": True, "deprecated": True}, ["/** deprecated, default true */", "x: boolean;"]),
        ({"default": {"a": [None, 1e-7, False]}}, ['/** default {"a": [null, 1e-7, false]} */', "x: JsonValue;"]),
        ({"type": "string", "pattern": "^.*/$"}, ['/** pattern "^.*\\/$" */', "x: string;"]),
        ({"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 3},
         ["/** maxItems 3; each item: minLength 1 */", "x: string[];"]),
        ({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
         ["/** each value: minimum 0 */", "x: Record<string, number>;"]),
        ({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}, ["/** minimum 0 */", "x: number | null;"]),
        ({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "maxLength": 2}]},
         ["/** number: minimum 0; string: maxLength 2 */", "x: number | string;"]),
        ({"anyOf": [{"type": ["integer", "string"], "minimum": 1}, {"type": "null"}]},
         ["/** minimum 1 */", "x: number | string | null;"]),
        ({"anyOf": [{"type": "array", "maxItems": 9, "items": {"enum": ["v" * 99]}}, STRING]},
         ["/** array: maxItems 9 */", f'x: "{"v" * 99}"[] | string;']),
    ],
)  # fmt: skip
def test_what_types_cannot_say_stands_in_the_comment(schema, lines):
    text = block(tool(parameters=closed(["x"], x=schema)))
    assert [line.strip() for line in interface(text, "ToolArgsMap")[1:-1]] == lines


@pytest.mark.contract("G10")
def test_what_the_roots_cannot_say_stands_above_the_tool():
    text = block(
        tool(parameters={**STRING, "minLength": 1}, output={"type": "integer", "minimum": 0}, description="Does.")
    )
    assert interface(text, "ToolArgsMap") == ["/** Does. (args: minLength 1; returns: minimum 0) */", "t: string;"]
    assert interface(text, "ToolOutputMap") == ["t: number;"]


@pytest.mark.contract("G11")
def test_order_of_the_declarations():
    node = closed(next={"$ref": "#/$defs/Node"})
    text = block(tool("a", {"$ref": "#/$defs/Node", "$defs": {"Node": node}}))
    assert [part.partition(" =")[0].split(" {")[0].split(":")[0] for part in declarations(text)] == [
        "type JsonValue",
        "type AArgsNode",
        "interface ToolArgsMap",
        "interface ToolOutputMap",
        "type ToolName",
        "declare class ToolCallError extends Error",
        "declare const tools",
    ]
    assert render_typescript([]).language == "ts"


@pytest.mark.contract("G11")
def test_no_tools():
    assert declarations(block())[1:3] == ["interface ToolArgsMap {}", "interface ToolOutputMap {}"]


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Full name"},
        "friends": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
        "by_name": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Person"}},
        "mood": {"$ref": "#/$defs/Mood"},
    },
    "required": ["name"],
    "additionalProperties": False,
}
DEFINITIONS = {"Person": PERSON, "Mood": {"enum": ["good", "bad", None]}}


def named(schema, **definitions):
    """The named types of a tool `t` that takes this, and the type of its arguments."""
    text = block(tool(parameters={**schema, "$defs": definitions}))
    names = [part for part in declarations(text)[1:] if re.match(r"(/\*\*.*\*/\n)?type TArgs", part)]
    return names, "\n".join(interface(text, "ToolArgsMap"))


@pytest.mark.contract("G8")
class TestNamedTypes:
    def test_a_definition_that_contains_itself_has_a_name_and_a_short_one_stands_where_it_is_used(self):
        assert named({"type": "array", "items": {"$ref": "#/$defs/Person"}}, **DEFINITIONS) == (
            [
                """type TArgsPerson = {
  /** Full name */
  name: string;
  friends?: TArgsPerson[];
  by_name?: Record<string, TArgsPerson>;
  mood?: "good" | "bad" | null;
};"""
            ],
            "t: TArgsPerson[];",
        )

    def test_a_root_that_contains_itself(self):
        schema = {"type": "object", "properties": {"sub": {"$ref": "#"}}, "additionalProperties": False}
        assert named({**schema, "minProperties": 1}) == (
            ["/** minProperties 1 */\ntype TArgs = {\n  sub?: TArgs;\n};"],
            "t: TArgs;",
        )

    def test_json_defined_by_itself(self):
        ref = {"$ref": "#/$defs/J"}
        json_ = {"anyOf": [STRING, {"type": "array", "items": ref}, {"type": "object", "additionalProperties": ref}]}
        # `Record<string, TArgsJ>` would be an error of the compiler.
        assert named(ref, J=json_) == (["type TArgsJ = string | TArgsJ[] | { [key: string]: TArgsJ };"], "t: TArgsJ;")

    def test_items_of_tuples_that_the_compiler_would_go_round_in(self):
        ref = {"$ref": "#/$defs/S"}
        call = {"type": "array", "prefixItems": [{"enum": ["add", "mul"]}], "items": ref, "minItems": 1}
        assert named(ref, S=call)[0] == ['type TArgsS = ["add" | "mul", ...TArgsS[]];']
        call = {"type": "array", "prefixItems": [STRING], "items": {"type": "array", "items": ref}, "minItems": 5}
        assert named(ref, S=call)[0] == [
            "/** minItems 5; further items: TArgsS[] */\ntype TArgsS = [string, ...JsonValue[]];"
        ]

    def test_a_definition_that_is_only_itself_is_any_json(self):
        assert named({"$ref": "#/$defs/A"}, A={"$ref": "#/$defs/B"}, B={"$ref": "#/$defs/A"}) == ([], "t: JsonValue;")
        assert named({"$ref": "#/$defs/A"}, A={"anyOf": [STRING, {"$ref": "#/$defs/A"}]}) == ([], "t: JsonValue;")

    def test_without_a_place_for_names_only_what_contains_itself_is_any_json(self):
        schema = {"type": "array", "items": {"$ref": "#/$defs/Person"}, "$defs": DEFINITIONS}
        assert json_schema_to_ts(schema) == (
            "({\n  /** Full name */\n  name: string;\n  friends?: JsonValue[];\n"
            '  by_name?: Record<string, JsonValue>;\n  mood?: "good" | "bad" | null;\n})[]'
        )

    def test_names_are_ascii_unique_and_never_those_of_the_block(self):
        def recursive(name):
            return {"$ref": f"#/$defs/{name}", "$defs": {name: closed(a={"$ref": f"#/$defs/{name}"})}}

        tools = [
            *(tool(name, recursive("Node")) for name in ("a-b", "a_b", "名", "2nd", "x" * 200)),
            tool("tool", recursive("Map"), recursive("Map")),
            tool("é1", recursive("2d-node_x")),
        ]
        names = re.findall(r"^type (\S+) = \{", block(*tools), re.MULTILINE)
        assert sorted(names) == sorted(
            [
                *("ABArgsNode", "ABArgsNode2", "ToolArgsNode", "Tool2ndArgsNode", "X" + "x" * 119),
                *("ToolArgsMap2", "ToolOutputMap2", "Tool1Args2dNodeX"),
            ]
        )


@pytest.mark.contract("G8")
@pytest.mark.parametrize(
    ("schema", "type_", "comment"),
    [
        ({"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "number"}},
         "a?: number;\n} & Record<string, number>", ""),
        ({"properties": {"a": STRING}, "additionalProperties": {"type": "integer", "minimum": 2}},
         "a?: string;\n} & Record<string, number | string>", "undeclared keys: number, minimum 2"),
        ({"properties": {"a": closed(b=STRING)}, "additionalProperties": {"type": "integer"}},
         "a?: {\n    b?: string;\n  };\n} & Record<string, JsonValue>", "undeclared keys: number"),
        ({"properties": {"a": {"const": "v" * 90}}, "additionalProperties": {"type": "integer"}},
         f'a?: "{"v" * 90}";\n}} & Record<string, JsonValue>', "undeclared keys: number"),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
         "a?: JsonValue;\n} & Record<string, JsonValue>", "undeclared keys: number"),
        ({"patternProperties": {"^x-": STRING}, "additionalProperties": False},
         "Record<string, string>", 'patternProperties {"^x-": {"type": "string"}}'),
        ({"patternProperties": {"^x-": STRING}}, "Record<string, JsonValue>",
         'patternProperties {"^x-": {"type": "string"}}'),
        ({"patternProperties": {"^x-": STRING, "^n-": {"type": "integer"}}, "additionalProperties": False},
         "Record<string, string | number>",
         'patternProperties {"^x-": {"type": "string"}, "^n-": {"type": "integer"}}'),
    ],
)  # fmt: skip
def test_undeclared_keys(schema, type_, comment):
    schema = {"type": "object", **schema}
    assert json_schema_to_ts(schema).removeprefix("{\n  ") == type_
    lines = interface(block(tool(parameters=closed(x=schema))), "ToolArgsMap")
    assert (lines[1] == f"  /** {comment} */") == bool(comment)


@pytest.mark.contract("G7")
@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"prefixItems": [STRING, {"type": "integer"}], "minItems": 2, "maxItems": 2}, "[string, number]"),
        ({"prefixItems": [STRING, {"type": "integer"}], "items": False}, "[string?, number?]"),
        ({"prefixItems": [STRING, {"type": "integer"}], "items": False, "minItems": 1}, "[string, number?]"),
        ({"prefixItems": [STRING], "minItems": 1}, "[string, ...JsonValue[]]"),
        ({"prefixItems": [STRING], "minItems": 3, "items": {"type": ["integer", "null"]}},
         "[string, ...(number | null)[]]"),
        ({"prefixItems": [{"type": ["string", "null"]}], "items": False}, "[(string | null)?]"),
        ({"prefixItems": [closed(["a"], a=STRING)], "items": False}, "[{\n  a: string;\n}?]"),
    ],
)  # fmt: skip
def test_tuples(schema, type_):
    assert json_schema_to_ts({"type": "array", **schema}) == type_


@pytest.mark.contract("G10")
@pytest.mark.parametrize(
    ("schema", "comment"),
    [
        ({"prefixItems": [STRING, STRING], "minItems": 2, "maxItems": 2}, None),
        ({"prefixItems": [STRING, STRING], "minItems": 3}, "/** minItems 3 */"),
        ({"prefixItems": [STRING, STRING], "maxItems": 5}, "/** maxItems 5 */"),
        ({"prefixItems": [STRING, {**STRING, "minLength": 1}], "items": {"maximum": 2}},
         "/** item 2: minLength 1; further items: maximum 2 */"),
    ],
)  # fmt: skip
def test_comments_of_tuples_tell_what_their_types_do_not(schema, comment):
    lines = interface(block(tool(parameters=closed(x={"type": "array", **schema}))), "ToolArgsMap")
    assert [line.strip() for line in lines[1:-2]] == ([comment] if comment else [])


PROGRAM = """
try {
  const found = await tools.search({ query: "x", filter: { since: "now" }, more: [1, { a: null }] });
  const score: number = found[0].score;
  const nothing: null = await tools["add-note"]({ text: "y" });
  score + (nothing ?? 1);
} catch (error) {
  if (error instanceof ToolCallError && error.toolName === "search") {
    const said: string = error.message;
    said.trim();
  }
}
// Each of these is a mistake:
await tools.search({ filter: {} });
await tools.search({ query: "x", sort: "up" });
await tools["add-note"]({ text: "y", colour: "red" });
(await tools.search({ query: "x" }))[0].nme;
await tools.find({});
await tools.search();
"""
"""A program that follows the golden block; its first 13 lines are right, and each of the last six is wrong."""

VALUES = """
type Args = ToolArgsMap;
const dict: Args["dict"] = { b: "x", n: 1 };
const tuples: Args["tuple"][] = [["a"], ["a", 1], ["a", null, true, "more"]];
const json: Args["json"] = ["a", { b: { c: [] } }];
const person: Args["person"] = { name: "a", friends: [{ name: "b", mood: null }], by_name: { c: { name: "c" } } };
const record: Args["record"] = {};
const pattern: Args["pattern"] = { "x-a": "b" };
// Each of these is a mistake:
const dict2: Args["dict"] = { n: null };
const tuple2: Args["tuple"] = [];
const tuple3: Args["tuple"] = ["a", "b"];
const json2: Args["json"] = 1;
const person2: Args["person"] = { name: "a", friends: [{}] };
const record2: Args["record"] = { a: 1 };
const pattern2: Args["pattern"] = { "x-a": 1 };
"""
REF_J = {"$ref": "#/$defs/J"}
TAKING = [
    tool("dict", {"type": "object", "properties": {"b": STRING}, "additionalProperties": {"type": "integer"}}),
    tool("tuple", {"type": "array", "prefixItems": [STRING, {"type": ["integer", "null"]}], "minItems": 1}),
    tool(
        "json",
        {
            **REF_J,
            "$defs": {
                "J": {
                    "anyOf": [
                        STRING,
                        {"type": "array", "items": REF_J},
                        {"type": "object", "additionalProperties": REF_J},
                    ]
                }
            },
        },
    ),
    tool("person", {"$ref": "#/$defs/Person", "$defs": DEFINITIONS}),
    tool("record", closed()),
    tool("pattern", {"type": "object", "patternProperties": {"^x-": STRING}, "additionalProperties": False}),
]
EAGER = [
    # Definitions that lead back to each other in every way: through unions, records and braces, in both orders.
    {"B": {"anyOf": [{"properties": {"x": {"$ref": "#/$defs/A"}}}, {"$ref": "#/$defs/A"}]},
     "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}},
    {"B": {"anyOf": [{"properties": {"x": {"$ref": "#/$defs/A"}}}, {"additionalProperties": {"$ref": "#/$defs/A"}}]},
     "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}},
    {"B": {"additionalProperties": {"$ref": "#/$defs/A"}}, "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}},
    {"B": {"anyOf": [STRING, {"additionalProperties": {"type": "array", "items": {"$ref": "#/$defs/B"}}}]}},
    {"B": {"properties": {"a": {"$ref": "#/$defs/B"}}, "additionalProperties": {"$ref": "#/$defs/B"}}},
    {"B": {"additionalProperties": {"additionalProperties": {"$ref": "#/$defs/B"}}}},
    {"B": {"type": "array", "prefixItems": [{"$ref": "#/$defs/B"}], "items": {"$ref": "#/$defs/B"}}},
    {"B": {"type": "array", "prefixItems": [STRING], "items": {"$ref": "#/$defs/B"}}},
    {"B": {"type": "array", "prefixItems": [{"prefixItems": [{"$ref": "#/$defs/B"}]}], "items": False}},
    {"B": {"type": "array", "prefixItems": [{"additionalProperties": {"$ref": "#/$defs/B"}}], "items": False}},
    {"B": {"prefixItems": [STRING, {"items": {"prefixItems": [{"$ref": "#/$defs/B"}]}}], "items": False}},
    {"B": {"prefixItems": [STRING], "items": {"prefixItems": [{"$ref": "#/$defs/B"}]}, "minItems": 2}},
    {"B": {"properties": {"a": {"additionalProperties": {"$ref": "#/$defs/B"}}},
           "additionalProperties": {"additionalProperties": {"$ref": "#/$defs/B"}}}},
    {"B": {"additionalProperties": {"$ref": "#/$defs/A"}},
     "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"enum": ["v" * 90]}]}},
    {"B": {"type": "array", "items": {"$ref": "#/$defs/A"}}, "A": {"additionalProperties": {"$ref": "#/$defs/B"}}},
    {"B": {"anyOf": [{"$ref": "#/$defs/B"}, {"additionalProperties": {"$ref": "#/$defs/B"}}]}},
]  # fmt: skip


def compiled_cases():
    """Blocks by name, each of which has to pass the compiler as it stands."""
    described = [
        "*/ alert(1) /*", "@ts-expect-error", "@ts-ignore", "@ts-nocheck", "*\\/", "\ud800\x00\u202e\u2028",
        "{@link " * 50, "@see {@link x", "/// <reference path='x' />", "@type {", "x" * 10_000, "`${1}`", "\\", "* /",
    ]  # fmt: skip
    everything = itertools.chain(HOSTILE_NAMES, BARE, QUOTED)
    odd = {name: {"type": "string", "description": "@ts-expect-error"} for name in everything}
    properties = {f"p{number}": {**STRING, "description": text} for number, text in enumerate(described)}
    yield "empty", block()
    yield "names", block(*(tool(name, {"properties": odd}, closed(**odd)) for name in odd))
    yield (
        "descriptions",
        block(
            *(tool(f"t{number}", {"properties": properties}, description=text) for number, text in enumerate(described))
        ),
    )
    yield "malformed", block(*(tool(f"t{number}", schema, schema) for number, schema in enumerate(MALFORMED)))
    yield "literals", block(tool("t", {"enum": [value for value, _ in NUMBERS]}, {"enum": [*odd, *described]}))
    for number, definitions in enumerate(EAGER):
        schemas = [{"$ref": f"#/$defs/{name}", "$defs": definitions} for name in ("A", "B")]
        yield f"eager{number}", block(tool("t", *schemas), tool("u", *reversed(schemas)))
    for name, wrap in DEEP.items():
        yield f"deep_{name.replace(' ', '_')}", block(tool("t", nested(wrap, 1_000)))


@pytest.mark.contract("G1", "G3", "G9", "G10", "G11")
def test_the_compiler_accepts_every_block(tsc):
    assert tsc(dict(compiled_cases())) == []


@pytest.mark.contract("G4", "G6", "G7", "G8", "G11")
def test_the_compiler_finds_a_programs_mistakes_and_no_others(tsc):
    program = block(SEARCH, NOTE) + PROGRAM
    values = block(*TAKING) + VALUES
    found = [error.split(" ")[0] for error in tsc({"program": program, "values": values})]
    first_of = {name: len(text.split("\n")) for name, text in (("program", GOLDEN), ("values", block(*TAKING)))}
    expected = [f"program:{first_of['program'] + line}" for line in range(13, 19)]
    expected += [f"values:{first_of['values'] + line}" for line in range(9, 16)]
    assert found == expected, found
