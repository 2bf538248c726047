"""What is remembered between two texts never shows in them."""

from __future__ import annotations

import copy
import types

import pytest
from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import annotations, build, build_document, render_python
from ptc.sdk_gen.annotations import annotate_root
from ptc.sdk_gen.build import is_remembered
from ptc.sdk_gen.model import ObjectType
from ptc.sdk_gen.names import ClassNames
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


def _written_alone(name, schema, required):
    """What a process that has met nothing else writes of one property: the steps, without the short way."""
    whole = {"type": "object", "properties": {name: schema}, "required": [name] if required else []}
    return render_python([tool("t", {**whole, "additionalProperties": False})]).block


@pytest.mark.contract("G1")
@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ({"type": "integer", "default": 1}, {"type": "integer", "default": True}, ("default 1", "default True")),
        ({"type": "number", "minimum": 0}, {"type": "number", "minimum": 0.5}, ("minimum 0", "minimum 0.5")),
        ({"type": "string"}, {"type": "string", "description": "words"}, ("a: str", "# words")),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "null"}]}, ("str | None", "a: None")),
        ({"type": "object"}, {"type": "object", "additionalProperties": {"type": "null"}}, ("dict[str, Any]", "None]")),
        (
            {"type": "array", "items": {"type": "null"}},
            {"type": "array", "items": {"const": 3}},
            ("None]", "Literal[3]"),
        ),
    ],
)
def test_properties_that_are_nearly_alike_are_not_mixed_up(one, other, told):
    for schema, words in [(one, told[0]), (other, told[1]), (one, told[0])]:
        assert words in _written_alone("a", schema, required=True)
    for _again in range(2):
        left_out = _written_alone("b", one, required=False)
        assert "b: NotRequired[" in left_out
        assert "NotRequired" in left_out.splitlines()[0]
    assert "b: NotRequired[" not in _written_alone("b", one, required=True)


PLAIN = [
    {"type": "string", "enum": ["a", "b"]},
    {"type": "string", "enum": [3]},
    {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 3},
    {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None, "title": "T"},
    {"anyOf": [{"type": "integer", "description": "a number"}, {"type": "string", "description": "or words"}]},
    {"anyOf": [{"type": "boolean"}], "default": False, "deprecated": True},
    {"type": "object", "description": "any keys"},
    {"type": "object", "additionalProperties": False},
    {"type": "object", "additionalProperties": {"type": "string", "description": "one value"}},
]


@pytest.mark.parametrize("schema", PLAIN)
def test_the_short_way_gives_what_the_steps_give(schema, monkeypatch):
    whole = {"type": "object", "properties": {"only": schema}, "required": ["only"], "x": "the short way"}
    short = build_document(whole)
    assert isinstance(short.root, ObjectType)
    assert short.root.properties[0].nodes > 0
    monkeypatch.setattr(build, "plain_property", lambda *_args, **_kw: None)
    monkeypatch.setattr(build, "plain_type", lambda *_args: None)
    long = build_document({**whole, "x": "the steps"})
    assert short == long
    stated = [document.root.properties[0].type for document in (short, long)]
    assert getattr(stated[0], "stated", None) == getattr(stated[1], "stated", None)
    assert long.root.properties[0].nodes == 0


@pytest.mark.parametrize("schema", PLAIN)
def test_the_short_way_counts_the_nodes_that_the_steps_count(schema, monkeypatch):
    """Where the largest type ends is the same in both ways; see `MAX_NODES`."""
    names = [f"p{number}" for number in range(8)]
    for limit in range(2, 14):
        monkeypatch.setattr(build, "MAX_NODES", limit)
        whole = {"type": "object", "properties": dict.fromkeys(names, schema), "limit": limit}
        short = build_document(whole)
        with monkeypatch.context() as inner:
            inner.setattr(build, "plain_property", lambda *_args, **_kw: None)
            inner.setattr(build, "plain_type", lambda *_args: None)
            assert short == build_document({**whole, "way": "steps"})


@pytest.mark.parametrize("schema", PLAIN)
def test_a_large_type_ends_where_it_did_before_its_fields_were_known(schema, monkeypatch):
    """A field from memory takes as many of the types that may be written as one that is written anew."""

    def fields(limit):
        monkeypatch.setattr(annotations, "MAX_TYPES", limit)
        properties = {f"p{number}": schema for number in range(6)}
        document = build_document({"type": "object", "properties": properties, "additionalProperties": False})
        _annotation, views = annotate_root(document, "T", ClassNames())
        return [(field.name, field.annotation, field.comments) for view in views for field in view.fields]

    limits = [*range(3, 24), *range(24, 2, -1)]
    anew = []
    for limit in limits:
        monkeypatch.setattr(annotations, "_FIELDS", Remembered())
        anew.append(fields(limit))
    assert anew[0] != anew[20] or "enum" in schema
    monkeypatch.setattr(annotations, "_FIELDS", Remembered())
    assert [fields(limit) for limit in limits] == anew


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
