"""Keys that several parts of a schema declare: what is inside of them is joined as well (ruling 39)."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import build_document, render_python, render_stub, render_typescript
from ptc.sdk_gen.build import MAX_NODES
from ptc.sdk_gen.model import AnyType, ArrayType, LiteralType, ObjectType, ReferenceType, ScalarType, TypeExpression

STRING = ScalarType(kind="string")
TEXT = {"type": "string"}


def of(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def key(schema: Any, name: str = "o") -> TypeExpression:
    """The type of one key of an object's schema."""
    document = build_document(schema)
    assert isinstance(document.root, ObjectType)
    return next(item.type for item in document.root.properties if item.name == name)


def keys(type_: TypeExpression) -> dict[str, tuple[TypeExpression, bool]]:
    assert isinstance(type_, ObjectType)
    return {item.name: (item.type, item.required) for item in type_.properties}


BOTH = {"a": (STRING, True), "b": (STRING, False)}
A, B = of("a", a=TEXT), of(b=TEXT)


def test_two_objects_under_one_key_are_joined() -> None:
    assert keys(key({"allOf": [of(o=A), of(o=B)]})) == BOTH
    assert keys(key({**of(o=A), "allOf": [of(o=B)]})) == BOTH
    inner = key({"allOf": [of(o=of(p=A)), of(o=of(p=B))]})
    assert keys(keys(inner)["p"][0]) == BOTH


def test_so_are_those_behind_references_and_a_reference_on_its_own_stays_one() -> None:
    definitions = {"A": A, "B": B}
    refer = {name: {"$ref": f"#/$defs/{name}"} for name in definitions}
    assert keys(key({"allOf": [of(o=refer["A"]), of(o=refer["B"])], "$defs": definitions})) == BOTH
    assert key({"allOf": [of(o=refer["A"]), of(o=refer["A"])], "$defs": definitions}) == ReferenceType(
        target="#/$defs/A"
    )
    assert key({"allOf": [of(o=refer["A"]), of(o=TEXT)], "$defs": definitions}) == ReferenceType(target="#/$defs/A")


def test_so_are_items_and_the_values_of_undeclared_keys() -> None:
    items = key({"allOf": [of(o={"type": "array", "items": A}), of(o={"type": "array", "items": B})]})
    assert isinstance(items, ArrayType)
    assert keys(items.items) == BOTH
    values = key({"allOf": [of(o={"type": "object", "additionalProperties": part}) for part in (A, B)]})
    assert isinstance(values, ObjectType)
    assert values.additional is not None
    assert keys(values.additional) == BOTH


def test_an_object_beside_one_that_may_be_null_has_the_keys_of_both() -> None:
    told = keys(key({"allOf": [of(o=A), of(o={"anyOf": [B, {"type": "null"}]})]}))
    assert told == {"a": (STRING, True), "b": (AnyType(), False)}


def test_alternatives_add_to_a_key_that_the_object_declares_itself() -> None:
    told = keys(key({**of(o=A), "anyOf": [of("o", o=B), of(o=of(c=TEXT))]}))
    assert {name: required for name, (_type, required) in told.items()} == {"a": True, "b": False, "c": False}


def test_listed_values_are_those_that_all_list() -> None:
    assert key({"allOf": [of(o={"enum": ["a", "b", 1]}), of(o={"enum": ["b", True, 1]})]}) == LiteralType(
        values=("b", 1)
    )
    assert key({"allOf": [of(o={"enum": ["a"]}), of(o={"enum": ["b"]})]}) == LiteralType(values=("a",))


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_definitions_that_contain_themselves_are_joined_as_far_as_no_name_is_needed(shift: int) -> None:
    definitions = {
        name: of(o={"$ref": f"#/$defs/{name}"}, **{name.lower(): TEXT, "list": {"type": "array", "items": part}})
        for name, part in (("A", {"$ref": "#/$defs/B"}), ("B", {"$ref": "#/$defs/A"}))
    }
    other: dict[str, Any] = {"$ref": "#/$defs/B"}
    for _ in range(shift):
        other = of(o=other)
    schema = {"allOf": [of(o={"$ref": "#/$defs/A"}), of(o=other)], "$defs": definitions}
    joined = key(schema)
    for _ in range(shift):
        joined = keys(joined)["o"][0]
    assert {"a", "b", "list"} <= keys(joined).keys()
    tool = ToolSchema(name="t", description="", parameters=schema, output={})
    for text in (render_python([tool]).block, render_stub([tool]), render_typescript([tool]).block):
        assert len(text) < 6_000


@pytest.mark.contract("G3")
def test_what_is_shared_is_not_joined_over_and_over() -> None:
    definitions: dict[str, Any] = {"A0": A, "B0": B}
    for level in range(1, 40):
        both = {"allOf": [{"$ref": f"#/$defs/A{level - 1}"}, {"$ref": f"#/$defs/B{level - 1}"}]}
        definitions[f"A{level}"] = of(p=both, q=both)
        definitions[f"B{level}"] = of(p=both, q=both)
    schema = {"allOf": [of(o={"$ref": "#/$defs/A39"}), of(o={"$ref": "#/$defs/B39"})], "$defs": definitions}
    before = time.process_time()
    document = build_document(schema)
    assert isinstance(document.root, ObjectType)
    size, pending = 0, [document.root, *document.definitions.values()]
    while pending:
        part = pending.pop()
        size += 1
        pending += [item.type for item in part.properties] if isinstance(part, ObjectType) else []
        assert size < 8 * MAX_NODES
    assert time.process_time() - before < 5


@pytest.mark.contract("G3", "G14")
def test_objects_as_deep_as_may_be_are_joined() -> None:
    first, second = A, B
    for _ in range(190):
        first, second = of(o=first), of(o=second)
    joined = key({"allOf": [first, second]})
    for _ in range(189):
        joined = keys(joined)["o"][0]
    assert keys(joined) == BOTH
