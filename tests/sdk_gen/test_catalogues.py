"""Real tool catalogues: they pass the raw-schema door, and their Python block says what their schemas say."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import typing
from pathlib import Path
from types import ModuleType

import pytest
from ptc.registry import ToolRegistry, define_raw_tool
from ptc.sdk_gen import build_document, build_maps, json_schema_to_py, render_python
from ptc.sdk_gen.names import is_method_name
from ptc.sdk_gen.text import comment_text


def load(path: Path) -> ModuleType:
    """Loads a module by its file, once."""
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])
    return sys.modules[path.stem]


catalogues = load(Path(__file__).with_name("catalogues.py"))
NAMES = catalogues.names()
LICENCES = {"MIT", "Apache-2.0", "BSD-3-Clause"}

# The tools whose arguments cannot be a TypedDict although the schema names properties, each with the key that no Python
# class can spell. Their keys are listed in a comment instead (contract G16).
DEGRADED = {
    ("brave_search", "brave_llm_context"): "x-loc-lat",
    ("brave_search", "brave_place_search"): "api-version",
}


def execute_block(name: str, tools) -> dict[str, typing.Any]:
    found: dict[str, typing.Any] = {}
    exec(compile(render_python(tools).block, name, "exec", dont_inherit=True), found)
    return found


def declared(schema) -> dict:
    return schema.get("properties", {}) if isinstance(schema, dict) else {}


def test_there_is_variety():
    assert len(NAMES) >= 8
    text = "\n".join((catalogues.FOLDER / f"{name}.json").read_text(encoding="utf-8") for name in NAMES)
    for keyword in ("$ref", "$defs", "anyOf", "oneOf", "const", "enum", "pattern", "format", "prefixItems", "default",
                    "additionalProperties", "propertyNames", "outputSchema", "exclusiveMinimum"):  # fmt: skip
        assert f'"{keyword}"' in text, keyword


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_where_it_is_from(name):
    document = catalogues.document(name)
    assert document["origin"]
    assert document["version"]
    assert document["licence"] in LICENCES
    assert document["collected"]
    readme = (catalogues.FOLDER / "README.md").read_text(encoding="utf-8")
    package, version = document["origin"].split(" ")[0], document["version"]
    row = next(line for line in readme.splitlines() if line.startswith(f"| `{name}` |"))
    assert package in row
    assert version in row
    assert document["licence"] in row


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_passes_the_raw_schema_door(name):
    registry = ToolRegistry()

    async def nothing(arguments, run):
        return None

    for tool in catalogues.listed(name):
        registry.context().register(
            define_raw_tool(
                name=tool["name"],
                description=tool.get("description", ""),
                parameters=tool["inputSchema"],
                output=tool.get("outputSchema"),
                execute=nothing,
            )
        )
    schemas = registry.view().schemas(with_output=True)
    assert render_python(schemas).text == render_python(catalogues.catalogue(name)).text


@pytest.mark.contract("G2", "G15", "G16", "G23")
@pytest.mark.parametrize("name", NAMES)
def test_every_type_is_real_and_says_what_its_schema_says(name):
    tools = catalogues.catalogue(name)
    found = execute_block(name, tools)
    degraded = {}
    for tool in tools:
        for schema in (tool.parameters, tool.output):
            assert not build_document(schema).malformed
        if not declared(tool.parameters):
            continue
        method = getattr(found["Tools"], tool.name, None) if is_method_name(tool.name) else None
        annotation = method.__annotations__["args"] if method else annotation_in_comment(name, tool, found)
        if not typing.is_typeddict(annotation):
            assert annotation == dict[str, typing.Any]
            degraded[name, tool.name] = next(key for key in declared(tool.parameters) if not key.isidentifier())
            continue
        hints = typing.get_type_hints(annotation)
        assert hints.keys() == declared(tool.parameters).keys()
        assert annotation.__required_keys__ == frozenset(tool.parameters.get("required", ()))
        annotation(**dict.fromkeys(hints))  # it can be made
    assert degraded == {key: value for key, value in DEGRADED.items() if key[0] == name}


def annotation_in_comment(name, tool, found):
    line = next(
        line
        for line in render_python(catalogues.catalogue(name)).block.splitlines()
        if line.startswith(f"    # tools[{json.dumps(tool.name)}](args: ")
    )
    return eval(line.split("(args: ")[1].rsplit(") -> ", 1)[0], found)


@pytest.mark.contract("G16")
@pytest.mark.parametrize(("name", "tool"), DEGRADED)
def test_the_keys_of_a_degraded_type_are_told(name, tool):
    schema = next(each for each in catalogues.catalogue(name) if each.name == tool)
    block = render_python([schema]).block
    required = schema.parameters.get("required", [])
    for key, part in declared(schema.parameters).items():
        line = next(line for line in block.splitlines() if f'#   "{key}"' in line)
        assert f'"{key}"{"" if key in required else "?"}: ' in line
        assert comment_text(part.get("description", "")) in line
        if "enum" in part:
            assert f"Literal[{json.dumps(part['enum'])[1:-1]}]" in line


def test_only_tools_without_an_output_schema_give_anything():
    for name in NAMES:
        for tool in catalogues.catalogue(name):
            assert (json_schema_to_py(tool.output) == "Any") is (tool.output == {}), (name, tool.name)


def descriptions(schema, path=(), *, properties=False):
    """Yields every description inside a schema, with its path; not that of the schema itself, which nobody reads."""
    if isinstance(schema, dict):
        if path and not properties and isinstance(schema.get("description"), str):
            yield path, schema["description"]
        for key, part in schema.items():
            if properties or key not in ("default", "examples", "enum", "const"):
                yield from descriptions(
                    part, (*path, key), properties=key in ("properties", "$defs") and not properties
                )
    elif isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from descriptions(part, (*path, index))


@pytest.mark.contract("G17")
@pytest.mark.parametrize("name", NAMES)
def test_no_description_of_a_field_is_lost(name):
    for tool in catalogues.catalogue(name):
        block = render_python([tool]).block
        for schema in (tool.parameters, tool.output):
            for path, words in descriptions(schema):
                if path[-2] == "$defs" or path[-1] == "propertyNames":
                    continue  # a definition has a name, and its field has words of its own
                assert comment_text(words) in block, (tool.name, path)


@pytest.mark.contract("G1")
@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_registration_does_not_show(name):
    tools = list(catalogues.catalogue(name))
    expected = render_python(tools).text
    for seed in range(3):
        random.Random(seed).shuffle(tools)
        assert render_python(tools).text == expected


ELSEWHERE = """\
import hashlib, importlib.util, sys
spec = importlib.util.spec_from_file_location("catalogues", sys.argv[1])
catalogues = importlib.util.module_from_spec(spec)
spec.loader.exec_module(catalogues)
from ptc.sdk_gen import render_python
for name in catalogues.names():
    print(name, hashlib.sha256(render_python(catalogues.catalogue(name)).text.encode()).hexdigest())
print("generated", hashlib.sha256(render_python(catalogues.generated(200)).text.encode()).hexdigest())
"""


@pytest.mark.contract("G1")
def test_two_processes_with_different_hash_seeds_write_the_same_bytes():
    def digest(tools) -> str:
        return hashlib.sha256(render_python(tools).text.encode()).hexdigest()

    here = [f"{name} {digest(catalogues.catalogue(name))}" for name in NAMES]
    here.append(f"generated {digest(catalogues.generated(200))}")
    for seed in ("1", "4242"):
        ran = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, str(Path(__file__).with_name("catalogues.py"))],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.splitlines() == here


@pytest.mark.contract("G1", "G23")
def test_two_thousand_tools_compile_and_each_changes_only_its_own_lines():
    tools = catalogues.generated(2_000)
    found = execute_block("generated", tools)
    assert sum(hasattr(found["Tools"], tool.name) for tool in tools) == 2_000
    lines = render_python(tools).block.splitlines()
    fewer = render_python(tools[:700] + tools[701:]).block.splitlines()
    start = next(index for index, (one, other) in enumerate(zip(lines, fewer, strict=False)) if one != other)
    gone = set(lines) - set(fewer)
    assert gone
    assert gone <= set(render_python([tools[700]]).block.splitlines())
    assert lines[:start] == fewer[:start]


def test_the_maps_hold_every_tool():
    args, outputs = build_maps(catalogues.generated(50))
    assert len(args) == len(outputs) == 50
