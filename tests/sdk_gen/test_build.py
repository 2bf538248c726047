"""From schemas to type expressions: the strict subset exactly, everything else as the closest honest type."""

from __future__ import annotations

import time

import pytest
from ptc.registry.definition import ToolSchema
from ptc.registry.schema import RawSchema
from ptc.sdk_gen.build import MAX_NODES, build_document, build_maps
from ptc.sdk_gen.model import (
    AnyType,
    ArrayType,
    Constraint,
    LiteralType,
    ObjectType,
    Property,
    ReferenceType,
    ScalarType,
    TupleType,
    TypeDocument,
    UnionType,
)

STRING = ScalarType(kind="string")
INTEGER = ScalarType(kind="integer")
NULL = ScalarType(kind="null")


def root(schema):
    return build_document(schema).root


ANY = AnyType()


def obj(*properties, additional=ANY):
    return ObjectType(properties=properties, additional=additional)


def prop(name, type_, *, required=False, description=""):
    return Property(name=name, type=type_, required=required, description=description)


@pytest.mark.parametrize("kind", ["string", "number", "integer", "boolean", "null"])
def test_scalars(kind):
    assert root({"type": kind, "title": "T", "examples": [1], "description": "d"}) == ScalarType(kind=kind)


def test_objects_keep_order_requiredness_and_descriptions():
    schema = {
        "type": "object",
        "properties": {
            "b": {"type": "string", "description": " as  it\nis "},
            "a": {"type": "array", "items": {}},
            "__proto__": {"type": "null"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert root(schema) == obj(
        prop("b", STRING, description=" as  it\nis "),
        prop("a", ArrayType(items=AnyType()), required=True),
        prop("__proto__", NULL),
        additional=None,
    )


def test_const_wins_over_enum_and_literals_keep_their_values():
    assert root({"type": "string", "enum": ["a", "b"], "const": "b"}) == LiteralType(values=("b",))
    assert root({"type": "number", "enum": [1.0, 2**70]}) == LiteralType(values=(1.0, 2**70))
    assert root({"enum": ["a", None]}) == LiteralType(values=("a", None))


def test_literals_that_the_type_excludes_are_dropped():
    assert root({"type": ["string", "null"], "enum": ["a", None, 3]}) == LiteralType(values=("a", None))
    assert root({"type": "integer", "enum": [True, 1]}) == LiteralType(values=(1,))
    assert root({"type": "string", "const": 5}) == AnyType()


def test_literals_that_no_language_spells_become_their_type():
    noted = Constraint("enum", [{"a": 1}, [2], "x"])
    assert root({"enum": noted.value}) == UnionType(
        branches=(LiteralType(values=("x",)), obj(), ArrayType(items=AnyType())), constraints=(noted,)
    )
    assert root({"const": 10**1000}) == ScalarType(kind="integer", constraints=(Constraint("const", 10**1000),))


def test_unions_from_oneof_anyof_and_type_arrays():
    union = UnionType(branches=(STRING, NULL))
    assert root({"oneOf": [{"type": "string"}, {"type": "null"}]}) == union
    assert root({"anyOf": [{"type": "string"}, False, {"type": "null"}]}) == union
    assert root({"type": ["string", "null"]}) == union
    assert root({"anyOf": [{"type": "string"}]}) == STRING


def test_what_types_cannot_say_is_kept():
    schema = {"type": "integer", "maximum": 9, "minimum": 1, "default": 0, "examples": [3], "x-vendor": True}
    assert root(schema) == ScalarType(
        kind="integer", constraints=(Constraint("minimum", 1), Constraint("maximum", 9), Constraint("default", 0))
    )
    assert root({"type": "boolean", "default": False}).constraints == (Constraint("default", False),)
    assert root({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}).constraints == ()
    assert root({"type": "array", "uniqueItems": False}).constraints == ()


def test_typed_additional_properties():
    assert root({"type": "object", "additionalProperties": {"type": "integer"}}) == obj(additional=INTEGER)
    by_pattern = {"^x": {"type": "integer"}}
    closed = root({"type": "object", "patternProperties": by_pattern, "additionalProperties": False})
    assert closed == ObjectType(
        properties=(), additional=INTEGER, constraints=(Constraint("patternProperties", by_pattern),)
    )


def test_keys_that_must_or_must_not_be_there():
    schema = {"type": "object", "properties": {"never": False, "a": True}, "required": ["b"]}
    assert root(schema) == obj(prop("a", AnyType()), prop("b", AnyType(), required=True))


def test_types_are_implied_by_their_keywords():
    assert root({"properties": {"a": {"type": "string"}}}) == obj(prop("a", STRING))
    assert root({"items": {"type": "string"}}) == ArrayType(items=STRING)
    assert root({"minimum": 3}) == AnyType(constraints=(Constraint("minimum", 3),))


def test_tuples():
    pair = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}
    assert root(pair) == TupleType(items=(STRING, INTEGER), rest=AnyType())
    assert root({**pair, "items": False}) == TupleType(items=(STRING, INTEGER), rest=None)
    assert root({**pair, "items": {"type": "null"}}) == TupleType(items=(STRING, INTEGER), rest=NULL)


def test_allof_joins_objects():
    schema = {
        "allOf": [
            {"$ref": "#/$defs/Base"},
            {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"minLength": 1}}, "required": ["b"]},
        ],
        "unevaluatedProperties": False,
        "$defs": {"Base": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
    }
    a = ScalarType(kind="string", constraints=(Constraint("minLength", 1),))
    assert root(schema) == obj(prop("a", a, required=True), prop("b", INTEGER, required=True), additional=None)


def test_a_property_is_required_when_any_part_requires_it():
    schema = {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"required": ["a"]}]}
    assert root(schema) == obj(prop("a", STRING, required=True))


def test_allof_around_one_reference_stays_a_reference():
    schema = {"allOf": [{"$ref": "#/$defs/A"}], "type": "object", "default": {}, "$defs": {"A": {"type": "object"}}}
    assert root(schema) == ReferenceType(target="#/$defs/A", constraints=(Constraint("default", {}),))


def test_parts_that_no_type_joins_leave_the_first_standing_and_the_other_noted():
    either = [{"required": ["a"]}, {"properties": {"a": {"const": "x"}}}]
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": either}
    assert root(schema) == ObjectType(
        properties=(prop("a", STRING),), additional=AnyType(), constraints=(Constraint("anyOf", either),)
    )
    assert root({"type": "string", "oneOf": [{"minLength": 2}, {"maxLength": 1}]}).kind == "string"


STRING_SCHEMA = {"type": "string"}
A_STRING = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("other", "keys"),
    [
        pytest.param([{"required": ["a"]}, {"required": ["b"]}], [("b", AnyType(), False)], id="required alone"),
        pytest.param(
            [{"properties": {"b": {"type": "string"}}}, {"type": "object"}],
            [("b", AnyType(), False)],
            id="one branch is silent of it",
        ),
        pytest.param(
            [
                {"properties": {"b": {"type": "string"}}, "additionalProperties": False},
                {"properties": {"c": {"type": "null"}}, "additionalProperties": False},
            ],
            [("b", STRING, False), ("c", NULL, False)],
            id="the others refuse it",
        ),
        pytest.param(
            [
                {"properties": {"b": {"type": "string", "description": "B"}}, "required": ["b"]},
                {"properties": {"b": {"type": "null"}}, "required": ["b"]},
            ],
            [("b", UnionType(branches=(STRING, NULL)), True)],
            id="each has it",
        ),
        pytest.param([{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/B"}], [("b", STRING, True)], id="references"),
        pytest.param(
            [{"type": "null"}, {"properties": {"b": {"type": "string"}}}], [("b", AnyType(), False)], id="null"
        ),
    ],
)
def test_keys_that_only_some_alternatives_declare_are_declared(other, keys):
    definitions = {"B": {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}}
    for schema in ({**A_STRING, "anyOf": other}, {"allOf": [A_STRING, {"oneOf": other}]}):
        joined = root({**schema, "$defs": definitions})
        assert [(item.name, item.type, item.required) for item in joined.properties] == [("a", STRING, False), *keys]
        assert joined.additional == AnyType()
        assert {item.keyword for item in joined.constraints} <= {"anyOf", "allOf"}


def test_keys_are_declared_in_every_object_of_a_union_and_in_none_that_is_closed():
    closed = {"type": "object", "properties": {"c": {}}, "additionalProperties": False}
    either = {"anyOf": [{"$ref": "#/$defs/A"}, closed, {"type": "null"}]}
    schema = {"allOf": [either, {"properties": {"b": {"type": "string"}}}], "$defs": {"A": A_STRING}}
    first, second, third = root(schema).branches
    assert first == obj(prop("a", STRING), prop("b", STRING))
    assert (second, third) == (ObjectType(properties=(prop("c", AnyType()),), additional=None), NULL)


def test_alternatives_are_found_behind_references_to_unions():
    b, c = ({"type": "object", "properties": {key: STRING_SCHEMA}, "required": [key]} for key in "bc")
    definitions = {"Either": {"anyOf": [{"$ref": "#/$defs/B"}, c, {"$ref": "#/$defs/Either"}]}, "B": b, "A": A_STRING}
    given = {**A_STRING, "$ref": "#/$defs/Either", "$defs": definitions}
    assert [item.name for item in root(given).properties] == ["a", "b", "c"]
    turned = root({"allOf": [{"$ref": "#/$defs/Either"}, A_STRING], "$defs": definitions})
    assert [[item.name for item in branch.properties] for branch in turned.branches] == [["b", "a"], ["c", "a"]]


def test_many_alternatives_beside_many_neither_explode_nor_take_long():
    def either(prefix, closed):
        return [
            {
                "type": "object",
                "properties": {f"{prefix}{number}": {}, "kind": {"const": f"{prefix} {number}"}},
                "additionalProperties": not closed,
            }
            for number in range(1200)
        ]

    before = time.process_time()
    wide = root({"anyOf": either("a", closed=False), "oneOf": either("b", closed=True)})
    assert time.process_time() - before < 2
    assert sum(len(branch.properties) for branch in wide.branches if isinstance(branch, ObjectType)) < 2 * MAX_NODES
    assert wide.branches[-1] == AnyType()  # what is beyond the limit is not told


@pytest.mark.parametrize(
    ("schema", "is_closed"),
    [
        ({"properties": {"a": {}}}, True),
        ({"allOf": [{"properties": {"a": {}}}, {"$ref": "#/$defs/A"}]}, True),
        ({"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}, {"$ref": "#/$defs/A"}]}, True),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, False),
        ({"properties": {"a": {}}, "additionalProperties": True}, False),
        ({"properties": {"a": {}}, "patternProperties": {"^x": {}}}, False),
        ({"properties": {"a": {}}, "if": {"properties": {"b": {}}}}, False),
        ({"properties": {"a": {}}, "allOf": [{"dependentSchemas": {"a": {"properties": {"b": {}}}}}]}, False),
        ({"properties": {"a": {}}, "anyOf": [{"$ref": "#/$defs/Open"}, {"required": ["a"]}]}, False),
        ({"properties": {"a": {}}, "$ref": "#nowhere"}, False),
        ({"properties": {"a": {}}, "$ref": "#"}, False),
    ],
)
def test_unevaluated_properties_close_an_object_whose_every_key_is_declared(schema, is_closed):
    definitions = {"A": A_STRING, "Open": {"type": "object", "additionalProperties": True}}
    type_ = root({"type": "object", **schema, "unevaluatedProperties": False, "$defs": definitions})
    assert isinstance(type_, ObjectType)
    assert (type_.additional is None) == is_closed


def test_references_beside_a_part_with_a_name_of_its_own_are_any_json():
    inner = {"$id": "https://example.com/inner", "$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}
    schema = {"properties": {"x": inner, "y": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}
    assert RawSchema(schema)({"x": "a string", "y": 1}) == []  # so `#/$defs/A` is two definitions here
    assert root(schema) == obj(prop("x", AnyType()), prop("y", AnyType()))
    assert root({**schema, "$id": "https://example.com/whole", "properties": {"y": {"$ref": "#/$defs/A"}}}) == obj(
        prop("y", ReferenceType(target="#/$defs/A"))
    )


def test_a_bare_type_beside_a_union_adds_nothing():
    schema = {"type": "object", "oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"required": ["b"]}]}
    assert root(schema) == UnionType(
        branches=(obj(prop("a", AnyType(), required=True)), obj(prop("b", AnyType(), required=True)))
    )


def test_references_are_built_once_and_may_be_recursive():
    schema = {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {
                    "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                    "all": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                },
            }
        },
    }
    node = ReferenceType(target="#/$defs/Node")
    assert build_document(schema) == TypeDocument(
        node,
        {"#/$defs/Node": obj(prop("next", UnionType(branches=(node, NULL))), prop("all", ArrayType(items=node)))},
    )


@pytest.mark.parametrize(
    "reference",
    [
        "https://example.com/schema.json",
        "other.json#/a",
        "#anchor",
        "#/$defs/Missing",
        "#/properties/0",
        "#/required/99999999999999999999",
        "",
    ],
)
def test_references_that_lead_nowhere_or_outside_are_any_for_that_part(reference):
    schema = {"type": "object", "properties": {"a": {"$ref": reference}, "b": {"type": "string"}}, "required": ["b"]}
    assert root(schema) == obj(prop("a", AnyType()), prop("b", STRING, required=True))


def test_pointers_are_decoded():
    schema = {"properties": {"x": {"$ref": "#/$defs/a~1b~0%20c"}}, "$defs": {"a/b~ c": {"type": "string"}}}
    assert build_document(schema).definitions == {"#/$defs/a~1b~0%20c": STRING}
    assert build_document({"$ref": "#/$defs/~01", "$defs": {"~1": {"type": "string"}}}).definitions == {
        "#/$defs/~01": STRING
    }
    branch = {"oneOf": [{"type": "null"}, {"$ref": "#/oneOf/0"}]}
    assert build_document(branch).definitions == {"#/oneOf/0": NULL}


@pytest.mark.parametrize(
    "definitions",
    [
        {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
        {"A": {"allOf": [{"$ref": "#/$defs/A"}, {"type": "object", "properties": {"x": {}}}]}},
        {
            "A": {"allOf": [{"$ref": "#/$defs/B"}, {"required": ["x"]}]},
            "B": {"allOf": [{"$ref": "#/$defs/A"}, {"required": ["y"]}]},
        },
    ],
)
def test_references_in_a_circle_end(definitions):
    document = build_document({"allOf": [{"$ref": "#/$defs/A"}, {"required": ["z"]}], "$defs": definitions})
    assert isinstance(document.root, ObjectType)
    assert "z" in [item.name for item in document.root.properties]


def test_a_definition_joined_with_itself_is_any_for_that_part():
    definition = {"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"x": {"type": "string"}}}]}
    document = build_document({"$ref": "#/$defs/A", "$defs": {"A": definition}})
    assert document.definitions == {"#/$defs/A": obj(prop("x", STRING))}


def test_a_circle_of_references_leaves_the_rest_of_the_type_alone():
    definitions = {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}
    circle = {"allOf": [{"$ref": "#/$defs/A"}, {"required": ["z"]}]}
    document = build_document({"properties": {"a": circle, "b": {"type": "string"}}, "$defs": definitions})
    assert document.root == obj(prop("a", obj(prop("z", AnyType(), required=True))), prop("b", STRING))


def test_a_description_comes_from_what_the_property_is_made_of():
    schema = {
        "type": "object",
        "properties": {
            "own": {"$ref": "#/$defs/A", "description": "own"},
            "referred": {"$ref": "#/$defs/A"},
            "nullable": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
            "either": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "string"}]},
        },
        "$defs": {"A": {"type": "integer", "description": "of A"}},
    }
    assert [item.description for item in root(schema).properties] == ["own", "of A", "of A", ""]


def test_a_node_may_be_used_twice_but_not_inside_itself():
    shared: dict = {"type": "string"}
    assert root({"oneOf": [shared, {"type": "array", "items": shared}]}) == UnionType(
        branches=(STRING, ArrayType(items=STRING))
    )
    shared["oneOf"] = [shared]
    assert root(shared) == AnyType()


def test_a_type_has_a_largest_size():
    wide = {"oneOf": [{"type": "string"} for _ in range(MAX_NODES + 5)]}
    branches = root(wide).branches
    assert branches[0] == STRING
    assert branches[-1] == AnyType()
    assert branches.count(STRING) == MAX_NODES - 1


def test_maps_are_sorted_and_hold_every_tool():
    tools = [
        ToolSchema(name=name, description=f"d {name}", parameters={"type": "string"}, output={"type": "null"})
        for name in ("b", "run_code", "a")
    ]
    args, outputs = build_maps(tools)
    assert list(args) == list(outputs) == ["a", "b"]
    assert len(args) == 2
    assert (args["b"].name, args["b"].description, args["b"].document.root) == ("b", "d b", STRING)
    assert outputs["b"].document.root == NULL
    assert "run_code" not in args


@pytest.mark.contract("G2")
@pytest.mark.parametrize("keyword", ["title", "description"])
@pytest.mark.parametrize("part", [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"enum": ["a"]}])
def test_words_that_are_no_text_degrade_the_whole_type(keyword, part):
    for broken in ({**part, keyword: 3}, {"type": "array", "items": {**part, keyword: None}}):
        document = build_document({"type": "object", "properties": {"fine": part, "broken": broken}})
        assert document.malformed
        assert document.root == AnyType()
