"""Random schemas of the author subset: the block parses, and every class says exactly what its schema says."""

from __future__ import annotations

import ast

from hypothesis import given, settings
from hypothesis import strategies as st
from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import render_python
from ptc.sdk_gen.names import is_field_name

SCALARS = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}
TEXT = st.text(st.characters(codec=None, categories=None), max_size=6)
NAMES = st.sampled_from(["a", "b_c", "type", "_x", "名", "class", "a-b", "", "X", "x", "ﬁ"]) | TEXT
VALUES = {
    "string": TEXT,
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "integer": st.integers(),
    "boolean": st.booleans(),
    "null": st.none(),
}


@st.composite
def scalar(draw):
    kind = draw(st.sampled_from(sorted(SCALARS)))
    schema: dict = {"type": kind}
    values = draw(st.lists(VALUES[kind], max_size=3))
    if values:
        schema["enum"] = values
        if draw(st.booleans()):
            schema["const"] = values[0]
    return schema


@st.composite
def with_description(draw, schemas):
    schema = dict(draw(schemas))
    if draw(st.booleans()):
        schema["description"] = draw(TEXT)
    return schema


@st.composite
def object_of(draw, inner):
    properties = draw(st.dictionaries(NAMES, inner, max_size=4))
    schema: dict = {"type": "object", "properties": properties}
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.booleans())
    if properties:
        schema["required"] = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    return schema


def compound(inner):
    return (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda branches: {"oneOf": branches}, st.lists(inner, min_size=2, max_size=3))
        | object_of(inner)
    )


SCHEMAS = st.recursive(
    with_description(scalar() | st.just({})), lambda inner: with_description(compound(inner)), max_leaves=12
)


def branches_of(node):
    """The alternatives of an annotation."""
    if isinstance(node, ast.BinOp):
        return [*branches_of(node.left), *branches_of(node.right)]
    return [node]


def alternatives_of(schema):
    """The alternatives of a schema."""
    if "oneOf" in schema:
        return [leaf for branch in schema["oneOf"] for leaf in alternatives_of(branch)]
    return [schema]


def says(node, schema, classes):
    """Whether an annotation says what a schema says, down to the fields of its classes."""
    alternatives = alternatives_of(schema)
    branches = branches_of(node)
    if len(alternatives) > 1:
        return len(branches) <= len(alternatives) and all(
            any(says(branch, alternative, classes) for branch in branches) for alternative in alternatives
        )
    schema = alternatives[0]
    text = ast.unparse(node)
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if listed is not None:
        if not isinstance(node, ast.Subscript):
            return False
        read = (
            ast.literal_eval(ast.Tuple([node.slice]) if not isinstance(node.slice, ast.Tuple) else node.slice)
            if text.startswith("Literal[")
            else ()
        )
        return [(type(value), value) for value in read] == [(type(value), value) for value in listed]
    kind = schema.get("type")
    if kind is None:
        return text == "Any"
    if kind == "array":
        return (
            isinstance(node, ast.Subscript) and text.startswith("list[") and says(node.slice, schema["items"], classes)
        )
    if kind == "object":
        return says_object(node, schema, classes)
    return text == SCALARS[kind]


def says_object(node, schema, classes):
    properties = schema["properties"]
    if not all(is_field_name(name) for name in properties) or (
        not properties and schema.get("additionalProperties", True)
    ):
        return ast.unparse(node) == "dict[str, Any]"
    if not isinstance(node, ast.Name) or node.id not in classes:
        return False
    fields = {
        ast.unparse(item.target): item.annotation for item in classes[node.id].body if isinstance(item, ast.AnnAssign)
    }
    if list(fields) != list(properties):
        return False
    for name, annotation in fields.items():
        optional = isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "NotRequired"
        if optional == (name in schema.get("required", ())):
            return False
        inner = annotation.slice if isinstance(annotation, ast.Subscript) and optional else annotation
        if not says(inner, properties[name], classes):
            return False
    return True


@settings(max_examples=150, deadline=None)
@given(SCHEMAS, SCHEMAS, TEXT, st.randoms(use_true_random=False))
def test_every_class_says_what_its_schema_says(parameters, output, description, shuffle):
    tools = [
        ToolSchema(name="first", description=description, parameters=parameters, output=output),
        ToolSchema(name="second", description="", parameters=output, output=parameters),
        ToolSchema(name="odd-name", description=description, parameters=parameters, output=output),
    ]
    block = render_python(tools).block
    block.encode("utf-8")
    tree = ast.parse(block)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert len(classes) == sum(isinstance(node, ast.ClassDef) for node in tree.body)
    methods = {node.name: node for node in classes["Tools"].body if isinstance(node, ast.AsyncFunctionDef)}
    assert list(methods) == ["first", "second"]
    for name, taken, given_back in (("first", parameters, output), ("second", output, parameters)):
        assert says(methods[name].args.args[1].annotation, taken, classes)
        assert says(methods[name].returns, given_back, classes)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert [alias.name for alias in tree.body[0].names] == [
        name for name in ("Any", "Literal", "NotRequired", "Protocol", "TypedDict") if name in used
    ]
    shuffle.shuffle(tools)
    assert render_python(tools).block == block
