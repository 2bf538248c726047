"""Definitions that lead back to each other in every way: the TypeScript compiler goes round in none of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from ptc.registry.definition import ToolSchema
from ptc.registry.schema import RawSchema
from ptc.sdk_gen import json_schema_to_ts, render_typescript

ALIAS = "type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


strategies = load("schema_strategies")


def tool(name, schema):
    return ToolSchema(name=name, description="", parameters=schema, output=schema)


def ref(name):
    return {"$ref": f"#/$defs/{name}"}


def of(root, **definitions):
    return {**root, "$defs": definitions}


STRING = {"type": "string"}
CIRCULAR = {
    "itself": of(ref("A"), A=ref("A")),
    "itself in another spelling": of(ref("A"), A={"$ref": "#/%24defs/A"}),
    "each other": of(ref("A"), A=ref("B"), B=ref("A")),
    "each other in a ring": of(ref("C"), A=ref("B"), B=ref("C"), C=ref("A")),
    "itself or another": of(ref("A"), A={"anyOf": [ref("A"), ref("B")]}, B=STRING),
    "another or itself": of(ref("A"), A={"anyOf": [STRING, {"anyOf": [ref("B"), ref("A")]}]}, B={"type": "null"}),
    "through a union of another": of(ref("A"), A={"anyOf": [ref("B"), STRING]}, B={"oneOf": [ref("A")]}),
    "all of itself": of(ref("A"), A={"allOf": [ref("A")]}),
    "all of itself through another": of(ref("A"), A={"allOf": [ref("B"), ref("A")]}, B={"allOf": [ref("A")]}),
    "the whole": {"$ref": "#"},
    "the whole or a string": {"anyOf": [{"$ref": "#"}, STRING]},
    "a part of itself": of(ref("A"), A={"anyOf": [{"$ref": "#/$defs/A/anyOf/1"}, ref("A")]}),
}
"""Schemas that say of a value only that it is what they say: every value is valid, and so it is in the types."""


@pytest.mark.contract("G8")
@pytest.mark.parametrize("schema", CIRCULAR.values(), ids=CIRCULAR)
def test_a_schema_that_is_only_circular_is_any_json(schema):
    check = RawSchema(schema)
    assert [check(value) for value in ("x", 1, None, [], {"a": [True]})] == [[]] * 5
    block = render_typescript([tool("t", schema)]).block
    assert "\n  t: JsonValue;\n" in block
    assert "JsonValue" in json_schema_to_ts(schema)


@pytest.mark.contract("G8")
@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        (of(ref("A"), A={"allOf": [ref("A"), STRING]}), "string"),
        (of(ref("A"), A={"allOf": [ref("B"), STRING]}, B={"allOf": [ref("A")]}), "string"),
        (of(ref("A"), A={**ref("A"), **STRING}), "string"),
        (of(ref("A"), A={"type": "array", "items": ref("B")}, B={"anyOf": [ref("B"), STRING]}), "JsonValue[]"),
        (of(ref("A"), A={"type": "array", "items": ref("A"), "allOf": [ref("A")]}), "TArgsA"),
    ],
)
def test_what_is_said_beside_a_circle_stands(schema, type_):
    assert f"\n  t: {type_};\n" in render_typescript([tool("t", schema)]).block


def test_the_compiler_accepts_circles(tsc):
    tools = [tool(name, schema) for name, schema in CIRCULAR.items()]
    plain = [f"type X{number} = {json_schema_to_ts(schema)};" for number, schema in enumerate(CIRCULAR.values())]
    files = {"together": render_typescript(tools).block, "plain": "\n".join([ALIAS, *plain])}
    assert tsc(files) == []


@pytest.mark.contract("G3", "G7", "G8")
def test_random_definitions_pass_the_compiler(tsc):
    schemas = strategies.collected(strategies.recursive_schemas(), 1200)
    files = {}
    for start in range(0, len(schemas), 300):
        some = schemas[start : start + 300]
        block = render_typescript([tool(f"t{number}", schema) for number, schema in enumerate(some)]).block
        assert block.count("\ntype T") > 150  # many of them contain themselves
        files[f"block{start}"] = block
        plain = [f"type X{number} = {json_schema_to_ts(schema)};" for number, schema in enumerate(some)]
        files[f"plain{start}"] = "\n".join([ALIAS, *plain])
    assert tsc(files) == []


@pytest.mark.contract("G8")
def test_the_compiler_goes_round_where_the_generator_does_not_look_for_circles(tsc, monkeypatch):
    """So the tests above can fail."""
    monkeypatch.setattr("ptc.sdk_gen.ts_types.endless", lambda _: set())
    found = tsc({"block": render_typescript([tool("t", CIRCULAR["itself or another"])]).block})
    assert any("TS2456" in error for error in found), found
