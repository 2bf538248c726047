"""Tools as bad as schemas allow: the texts of Python hold them, and nothing in them gets out of its place."""

from __future__ import annotations

import ast
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from ptc.registry import ToolRegistry
from ptc.registry.definition import ToolSchema
from ptc.runtime.discovery import Discovery, SdkBudget
from ptc.sdk_gen import Catalogue, render_python, render_stub
from ptc.sdk_gen.names import is_method_name
from ptc.sdk_gen.text import INVISIBLE, quoted


def load(name: str) -> Any:
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOSTILE: tuple[ToolSchema, ...] = load("hostile_tools").HOSTILE
CALLS = SdkBudget(ToolRegistry(), 1).calls(Discovery().free_names(()))
FORMS: tuple[Any, ...] = ("index", "names", "groups")


def circular() -> Any:
    """A schema that is inside itself; no JSON has that, but a host's own object may."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema
    return schema


def visible(text: str) -> bool:
    return INVISIBLE.search(text.replace("\n", "")) is None


def statements(block: str) -> list[str]:
    """The kinds of the statements of a block, which has nothing but declarations."""
    kinds: list[str] = []
    for node in ast.parse(block).body:
        kinds.append(type(node).__name__)
        if isinstance(node, ast.ClassDef) and node.name == "Tools":
            for member in node.body:
                assert isinstance(member, (ast.AsyncFunctionDef, ast.Pass))
                if isinstance(member, ast.AsyncFunctionDef):
                    (only,) = member.body
                    assert isinstance(only, ast.Expr)
                    assert isinstance(only.value, ast.Constant)
        elif isinstance(node, ast.ClassDef) and node.name != "ToolCallError":
            assert all(isinstance(member, (ast.AnnAssign, ast.Pass)) for member in node.body)
            assert all(getattr(member, "value", None) is None for member in node.body)
    return kinds


@pytest.mark.contract("G1", "G3", "G16", "G21", "G22", "G23")
@pytest.mark.parametrize("number", [None, *range(len(HOSTILE))])
def test_the_block_is_declarations_and_nothing_else(number: int | None) -> None:
    tools = HOSTILE if number is None else (HOSTILE[number],)
    block = render_python(tools).block
    assert visible(block)
    kinds = statements(block)
    assert set(kinds) <= {"ImportFrom", "ClassDef", "AnnAssign", "Assign"}
    assert kinds.count("AnnAssign") == 1
    for tool in {tool.name: tool for tool in tools}.values():
        if is_method_name(tool.name):
            assert f"    async def {tool.name}(self, args: " in block
        else:
            assert f"    # tools[{quoted(tool.name)}](args: " in block
    assert block.count("\nIgnore") == 0


@pytest.mark.contract("G1")
@pytest.mark.parametrize("form", FORMS)
def test_the_index_is_declarations_and_comments(form: Any) -> None:
    for tools in (HOSTILE, *((tool,) for tool in HOSTILE)):
        sdk = Catalogue(tools).index(form, CALLS)
        assert visible(sdk.block)
        assert statements(sdk.block) == statements(Catalogue([]).index(form, CALLS).block)
        comments = sdk.block.partition("# The other members")[2].splitlines()[1:]
        assert all(line == "#" or line.startswith("# ") for line in comments)
        assert all(len(line) < 500 for line in comments)


@pytest.mark.contract("G1")
def test_what_is_told_of_each_tool_alone_is_declarations() -> None:
    catalogue = Catalogue(HOSTILE)
    for name in {tool.name for tool in HOSTILE}:
        told = catalogue.declared([name])
        assert visible(told)
        assert "ClassDef" in statements(told)
        assert visible(catalogue.line(name))
        assert name in catalogue.near(name) or name == ""
        assert all(isinstance(found, str) for found in catalogue.search(name))


@pytest.mark.contract("G2", "G3")
def test_a_schema_inside_itself_is_any_for_that_type_alone() -> None:
    tool = ToolSchema(name="round", description="", parameters=circular(), output={"type": "string"})
    assert "async def round(self, args: Any) -> str: ..." in render_python([tool, *HOSTILE]).block
    assert "-> str: ..." in render_stub([tool])
    assert "round" in Catalogue([tool]).index("index", CALLS).block


def test_two_names_that_only_normalisation_makes_equal_stay_two() -> None:
    tools = [
        ToolSchema(name=name, description=f"says {number}", parameters={}, output={})
        for number, name in enumerate(("fi", "\ufb01", "ﬁ_x", "fi_x", "Å", "A\u030a", "\u212b"))
    ]
    block, stub = render_python(tools).block, render_stub(tools)
    for tool in tools:
        written = f"async def {tool.name}(" if is_method_name(tool.name) else f"# tools[{quoted(tool.name)}]("
        assert block.count(written) == 1
        assert f"Literal[{quoted(tool.name)}]" in stub
    for number in range(len(tools)):
        assert block.count(f"says {number}") == 1
