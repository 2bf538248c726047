"""What is remembered between two texts never shows in them."""

from __future__ import annotations

import copy
import types

import pytest
from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import build_document, render_python
from ptc.sdk_gen.build import is_remembered
from ptc.sdk_gen.remembered import MAX_FINGERPRINT, MAX_REMEMBERED, Remembered, fingerprint


def tool(name, parameters, description=""):
    return ToolSchema(name=name, description=description, parameters=parameters, output={"type": "null"})


@pytest.mark.contract("G1")
def test_a_schema_that_was_changed_in_place_is_written_anew():
    schema: dict = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    assert "a: NotRequired[str]" in render_python([tool("t", schema)]).block
    schema["properties"]["a"]["type"] = "integer"
    assert "a: NotRequired[int]" in render_python([tool("t", schema)]).block
    schema["properties"]["b"] = schema["properties"].pop("a")
    assert "b: NotRequired[int]" in render_python([tool("t", schema)]).block


@pytest.mark.contract("G19")
def test_names_are_handed_out_as_if_nothing_were_remembered():
    inner = {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"], "additionalProperties": False}
    schema = {"type": "object", "properties": {"b": inner}, "required": ["b"], "additionalProperties": False}
    taken = {**inner, "description": "takes the name that the other's inner class would have"}

    def classes(*tools):
        block = render_python(tools).block
        return [line[6:].partition("(")[0] for line in block.splitlines() if line.startswith("class ")][1:-1]

    assert classes(tool("a", schema)) == ["AArgsB", "AArgs"]
    assert classes(tool("a-", schema), tool("a", schema)) == ["AArgsB", "AArgs", "AArgs2B", "AArgs2"]
    assert classes(tool("a", schema)) == ["AArgsB", "AArgs"]
    assert classes(tool("a", schema), tool("a_args_b", {"type": "null"})) == ["AArgsB", "AArgs"]
    assert classes(tool("a", schema), tool("a-", taken), tool("a_", taken)) == ["AArgsB", "AArgs", "AArgs2", "AArgs3"]


def test_the_same_schema_gives_the_same_document():
    schema = {
        "type": "object",
        "properties": {"only here": {"type": "string", "description": "some words of " + "x" * 9}},
    }
    first = build_document(schema)
    assert is_remembered(first)
    assert build_document(schema) is first
    assert build_document(copy.deepcopy(schema)) == first


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"const": 1}, {"const": True}),
        ({"const": 1}, {"const": 1.0}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1], (1,)),
    ],
)
def test_a_fingerprint_tells_apart_what_python_calls_equal(one, other):
    assert fingerprint(one) != fingerprint(other)


def test_what_is_not_plain_or_too_large_is_not_remembered():
    for value in (types.MappingProxyType({}), {"a": object()}, {"a": "x" * MAX_FINGERPRINT}):
        assert fingerprint(value) is None
        assert not is_remembered(build_document(value))


def test_shared_structure_has_a_small_fingerprint():
    schema: dict = {"type": "null"}
    for _ in range(60):
        schema = {"oneOf": [schema, schema]}
    found = fingerprint(schema)
    assert found is not None
    assert len(found) < 5_000


def test_memory_is_bounded():
    results: Remembered[int, str] = Remembered()
    for number in range(MAX_REMEMBERED):
        results.keep(number, str(number))
    first = results.get(0)
    assert first == "0"
    assert results.holds(first)
    results.keep(-1, "new")
    assert results.get(0) is None
    assert not results.holds(first)
    assert results.get(-1) == "new"
