"""The stub: checkers accept it in their strict modes for every catalogue, and find a program's mistakes with it."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import build_maps, render_stub
from ptc.sdk_gen.stub import stub_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HERE = Path(__file__).parent


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


catalogues = load("catalogues")
HOSTILE = load("hostile_tools").HOSTILE

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "friends": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
        "home-page": {"type": ["string", "null"]},
    },
    "required": ["name", "friends", "home-page"],
}
TOOLS = [
    ToolSchema(
        name="find",
        description='Finds "people".',
        parameters={
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "sort": {"enum": ["asc", "desc"]},
                "near": {"type": "object", "properties": {"in": {"type": "number"}}, "required": ["in"]},
                "list": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["query"],
        },
        output={"type": "array", "items": {"$ref": "#/$defs/Person"}, "$defs": {"Person": PERSON}},
    ),
    ToolSchema(
        name="odd-name",
        description="",
        parameters={"type": "object", "properties": {"max-items": {"type": "integer"}}, "required": ["max-items"]},
        output={"type": "object", "additionalProperties": {"type": "integer"}},
    ),
    ToolSchema(
        name="list",
        description="",
        parameters={"type": "object", "additionalProperties": False},
        output={"type": "null"},
    ),
    ToolSchema(
        name="keep",
        description="",
        parameters={"type": "object", "properties": {"record": {"type": "object"}}, "required": ["record"]},
        output={},
    ),
    ToolSchema(name="any", description="", parameters={}, output={}),
]
RIGHT = """
    await tools.find({"query": "x", "near": {"in": 1.0}})
    await tools.find(query="x", sort="asc", list=[1])
    await tools["find"](query="x")
    await tools["odd-name"]({"max-items": 3})
    await tools["odd-name"](**{"max-items": 3})
    await tools.list()
    await tools.list({})
    await tools.any()
    await tools.any(whatever=1)
    await tools.any({"whatever": 1})
    people = await tools.find(query="x")
    name: str = people[0]["friends"][0]["name"]
    page: str | None = people[0]["home-page"]
    await tools.any(dict(people[0]))
    await tools.keep(record=people[0])
    count: int = (await tools["odd-name"]({"max-items": 3}))["a"]
    args: ToolArgsMap = {"find": {"query": "x"}, "odd-name": {"max-items": 1}, "list": {}, "keep": {"record": {}}, "any": {}}
    out: ToolOutputMap = {"find": people, "odd-name": {"a": 1}, "list": None, "keep": 1, "any": 1}
    raise ToolCallError("x" + name + str(page) + str(count) + str(args["find"]) + str(out["find"]))
"""  # noqa: E501 - one line of the program for one mistake
WRONG = """
    await tools.find({"sort": "asc"})
    await tools.find({"query": "x", "sort": "up"})
    await tools.find(qury="x")
    await tools.find(query=1)
    await tools.find({"query": "x"}, sort="asc")
    await tools.find(query="x", near={"in": "y"})
    await tools.find("x")
    await tools.list(x=1)
    await tools["odd-name"]({"max-items": "3"})
    await tools["odd_name"]({"max-items": 3})
    await tools.fnd(query="x")
    (await tools.find(query="x"))[0]["nme"]
    (await tools.find(query="x"))["name"]
    (await tools.find(query="x"))[0]["friends"][0]["name"].foo
    (await tools["odd-name"]({"max-items": 3}))["a"].foo
    args: ToolArgsMap = {"find": {"query": 1}, "odd-name": {"max-items": 1}, "list": {}, "keep": {"record": {}}, "any": {}}
"""  # noqa: E501 - one line of the program for one mistake


HEAD = "from sdk import ToolArgsMap, ToolCallError, ToolOutputMap, tools\n"
TAIL = "_ = (ToolArgsMap, ToolOutputMap, ToolCallError)\n"


def basedpyright(folder: Path, mode: str) -> list[tuple[str, int, str]]:
    """The errors that basedpyright finds: file, line, message."""
    config = {"typeCheckingMode": mode, "pythonVersion": "3.11", "reportUnusedExpression": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson"], cwd=folder, capture_output=True, text=True, check=False
    )
    told = json.loads(ran.stdout)
    assert told["summary"]["filesAnalyzed"] == len([*folder.glob("*.py"), *folder.glob("*.pyi")])
    return [
        (Path(item["file"]).name, item["range"]["start"]["line"] + 1, item["message"])
        for item in told["generalDiagnostics"]
        if item["severity"] == "error"
    ]


def mypy(folder: Path) -> list[tuple[str, int, str]]:
    """The errors that `mypy --strict` finds: file, line, message."""
    (folder / "mypy.ini").write_text("[mypy]\n", encoding="utf-8")
    files = sorted(path.name for path in (*folder.glob("*.py"), *folder.glob("*.pyi")))
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-error-summary",
            "--config-file",
            "mypy.ini",
            "-O",
            "json",
            *files,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ran.stderr, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    return [(item["file"], item["line"], item["message"]) for item in found if item["severity"] == "error"]


def ty(folder: Path) -> list[tuple[str, int, str]]:
    """The errors that ty finds: file, line, message."""
    ran = subprocess.run(
        [sys.executable, "-m", "ty", "check", "--output-format", "gitlab", "--no-progress"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return [
        (item["location"]["path"], item["location"]["positions"]["begin"]["line"], item["description"])
        for item in json.loads(ran.stdout)
    ]


CHECKERS = {
    "basedpyright": lambda folder: basedpyright(folder, "strict"),
    "mypy": mypy,
    "ty": ty,
}
checkers = pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param(
            name,
            check,
            marks=pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is a development extra"),
            id=name,
        )
        for name, check in CHECKERS.items()
    ],
)


def write(folder: Path, stubs: Iterable[tuple[str, str]]) -> None:
    for name, text in stubs:
        (folder / f"{name}.pyi").write_text(text, encoding="utf-8")


@pytest.mark.contract("G2", "G3", "G16", "G21")
@checkers
def test_every_catalogue_passes_in_strict_mode(
    name: str, check: Callable[[Path], list[tuple[str, int, str]]], tmp_path: Path
) -> None:
    known = catalogues.names()
    assert len(known) >= 8
    write(tmp_path, ((f"real_{each}", render_stub(catalogues.catalogue(each))) for each in known))
    write(tmp_path, [("hostile", render_stub(HOSTILE)), ("none", render_stub([])), ("one", render_stub(TOOLS[:1]))])
    write(tmp_path, [(f"alone{number}", render_stub([tool])) for number, tool in enumerate(HOSTILE)])
    write(tmp_path, [("generated", render_stub(catalogues.generated(200)))])
    assert check(tmp_path) == []


@pytest.mark.contract("G21", "G23")
@checkers
def test_right_programs_pass_and_every_wrong_line_is_found(
    name: str, check: Callable[[Path], list[tuple[str, int, str]]], tmp_path: Path
) -> None:
    write(tmp_path, [("sdk", render_stub(TOOLS))])
    lines = [line.strip() for line in WRONG.strip().split("\n")]
    apart = "".join(f"async def line{number}() -> None:\n    {line}\n" for number, line in enumerate(lines))
    (tmp_path / "right.py").write_text(f"{HEAD}async def main() -> None:{RIGHT}{TAIL}", encoding="utf-8")
    (tmp_path / "wrong.py").write_text(HEAD + apart + TAIL, encoding="utf-8")
    found = check(tmp_path)
    assert {error for error in found if error[0] != "wrong.py"} == set()
    assert {line for _file, line, _message in found} == {3 + 2 * number for number in range(len(lines))}, found


@pytest.mark.contract("G21")
def test_the_module_can_be_imported() -> None:
    for tools in (TOOLS, HOSTILE, [], *(catalogues.catalogue(name) for name in catalogues.names())):
        found: dict[str, Any] = {}
        exec(compile(render_stub(tools), "sdk", "exec", dont_inherit=True), found)
        named = {tool.name for tool in tools if tool.name and tool.name.isprintable()}
        assert named <= found["ToolArgsMap"].__annotations__.keys()
        assert found["ToolArgsMap"].__annotations__.keys() == found["ToolOutputMap"].__annotations__.keys()
    # What must be there is known at run time too, whichever form the class has.
    exec(compile(render_stub(TOOLS), "sdk", "exec", dont_inherit=True), found)
    assert found["FindArgs"].__required_keys__ == {"query"}
    assert found["FindArgsNear"].__required_keys__ == {"in"}


@pytest.mark.contract("G1")
def test_the_text_is_the_same_in_every_order_and_process() -> None:
    shuffled = list(HOSTILE)
    random.Random(7).shuffle(shuffled)
    assert render_stub(shuffled) == render_stub(HOSTILE)
    script = (
        f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
        "import hashlib, hostile_tools; from ptc.sdk_gen import render_stub\n"
        "print(hashlib.sha256(render_stub(hostile_tools.HOSTILE).encode()).hexdigest())"
    )
    told = {
        subprocess.run(
            [sys.executable, "-B", "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


@pytest.mark.contract("G1")
def test_a_change_in_one_tool_changes_its_own_lines_only() -> None:
    changed = [*TOOLS[:-1], ToolSchema(name="any", description="New.", parameters={}, output={"type": "string"})]
    before, after = (set(render_stub(tools).split("\n")) for tools in (TOOLS, changed))
    assert before - after == {
        "    async def __call__(self, args: Mapping[str, Any], /) -> Any: ...",
        "    async def __call__(self, **more: Any) -> Any: ...",
        '        "any": Any,',
    }


S = {"type": "string"}
LISTS: dict[str, Any] = S
for _level in range(14):
    LISTS = {"type": "array", "items": LISTS}


@pytest.mark.contract("G21")
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, ["self, args: Mapping[str, Any], /", "self, **more: Any"]),
        ({"type": "object", "additionalProperties": False}, ["self, args: TArgs = ..., /"]),
        ({"type": "object", "additionalProperties": S}, ["args: Mapping[str, str], /", "self, **more: str"]),
        ({"$ref": "#/$defs/M", "$defs": {"M": {"type": "object", "additionalProperties": S}}}, ["self, **more: str"]),
        (
            {"type": "object", "properties": {"a": S, "b": S}, "required": ["a"]},
            ["self, args: TArgs, /", "self, *, a: str, b: str = ..."],
        ),
        ({"type": "object", "properties": {"self": S, "_self": S}}, ["__self, *, self: str = ..., _self: str = ..."]),
        ({"type": "object", "properties": {"a-b": S, "c": S}}, ["self, *, c: str = ..., **more: Any"]),
        ({"type": "object", "properties": {"a-b": S, "more": S}}, ["self, *, more: str = ..., **_more: Any"]),
        ({"type": "object", "properties": {"in": S}}, ["self, **more: Any"]),
        ({"type": "object", "properties": {"x": {"enum": [1, True, None, "a"]}}}, ['x: Literal[1, True, None, "a"] =']),
        ({"type": "object", "properties": {"x": {"enum": [1, 1.5, 2.5]}}}, ["x: Literal[1] | float ="]),
        ({"type": "object", "properties": {"x": {"enum": ["a", "\udc00"]}}}, ['x: Literal["a"] | str =']),
        ({"type": "object", "properties": {"x": {"enum": [2**63 - 1, 2**63]}}}, [f"x: Literal[{2**63 - 1}] | int ="]),
        ({"type": "object", "properties": {"x": LISTS}}, [f"x: {'list[' * 11}Any{']' * 11} ="]),
    ],
)
def test_each_form_of_a_call_says_what_the_schema_says(parameters: Any, words: list[str]) -> None:
    text = render_stub([ToolSchema(name="t", description="", parameters=parameters, output={})])
    for word in words:
        assert word in text


def test_a_class_never_takes_a_name_that_the_module_needs() -> None:
    parameters = {"type": "object", "properties": {"map": {"type": "object", "properties": {"a": S}}}}
    text = render_stub([ToolSchema(name="tool", description="", parameters=parameters, output={})])
    assert "map: NotRequired[ToolArgsMap2]" in text
    assert text.count("class ToolArgsMap2(TypedDict") == 1


@pytest.mark.contract("G1")
def test_the_transport_is_left_out_and_a_name_that_no_source_can_hold() -> None:
    odd = [ToolSchema(name=name, description="", parameters={}, output={}) for name in ("run_code", "", "\udc00", "ok")]
    text = render_stub(odd)
    assert "run_code" not in text
    assert text.count("(Protocol)") == 2
    assert text.encode()


@pytest.mark.contract("G15")
def test_undeclared_keys_are_allowed_in_the_way_of_pep_728_where_the_schema_speaks_of_them() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tools = [
        ToolSchema(name="silent", description="", parameters=schema, output={}),
        ToolSchema(name="open", description="", parameters={**schema, "additionalProperties": True}, output={}),
        ToolSchema(
            name="typed", description="", parameters={**schema, "additionalProperties": {"type": "integer"}}, output={}
        ),
        ToolSchema(name="closed", description="", parameters={**schema, "additionalProperties": False}, output={}),
    ]
    module = stub_module(*build_maps(tools), extra_items=True)
    heads = [line for line in module.text.split("\n") if "TypedDict" in line and line.startswith("class")]
    assert heads == [
        "class ClosedArgs(TypedDict):",
        "class OpenArgs(TypedDict, extra_items=Any):",
        "class SilentArgs(TypedDict):",
        "class TypedArgs(TypedDict, extra_items=int):",
    ]
    assert "self, *, a: str = ..., **more: int" in module.text
    assert "extra_items" not in render_stub(tools)
    assert {name: item.stated for name, item in module.objects.items()} == {
        "ClosedArgs": True,
        "OpenArgs": True,
        "SilentArgs": False,
        "TypedArgs": True,
    }
