"""The raw-schema door: every accepted keyword enforced, nothing fetched, the house's words (ruling 39)."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from ptc.registry.define import define_raw_tool
from ptc.registry.errors import JsonSchemaError, ToolArgsError
from ptc.registry.lossless import materialise
from ptc.registry.schema import RawSchema, assert_raw_json_schema, raw_violations

pytestmark = pytest.mark.contract("B8")


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": "string"}, 1, ['"a" must be a string']),
        ({"type": ["integer", "null"]}, "x", ['"a" must be null or an integer']),
        ({"type": "integer"}, True, ['"a" must be an integer']),
        ({"enum": ["x", 1, None]}, "y", ['"a" must be one of ["x",1,null]']),
        ({"const": {"k": [1]}}, 1, ['"a" must be {"k":[1]}']),
        ({"minimum": 5}, 4, ['"a" must be at least 5']),
        ({"maximum": 5.5}, 6, ['"a" must be at most 5.5']),
        ({"exclusiveMinimum": 5}, 5, ['"a" must be greater than 5']),
        ({"exclusiveMaximum": 5}, 5, ['"a" must be less than 5']),
        ({"multipleOf": 0.5}, 0.3, ['"a" must be a multiple of 0.5']),
        ({"minLength": 3}, "éé", ['"a" must have at least 3 characters']),
        ({"maxLength": 1}, "😀😀", ['"a" must have at most 1 characters']),
        ({"pattern": "^x+$"}, "y", ['"a" must match the pattern "^x+$"']),
        ({"format": "date-time"}, "soon", ['"a" must be a valid date-time']),
        ({"format": "email"}, "x", ['"a" must be a valid email']),
        ({"format": "uuid"}, "x", ['"a" must be a valid uuid']),
        ({"minItems": 2}, [1], ['"a" must have at least 2 items']),
        ({"maxItems": 1}, [1, 2], ['"a" must have at most 1 items']),
        ({"uniqueItems": True}, [1, 1.0], ['"a" must not have equal items']),
        ({"contains": {"const": 1}}, [2], ['"a" must have enough items, and not too many, that fit `contains`']),
        ({"items": {"type": "string"}}, ["x", 1], ['"a[1]" must be a string']),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["x", 1], None),
        ({"minProperties": 1}, {}, ['"a" must have at least 1 properties']),
        ({"maxProperties": 0}, {"k": 1}, ['"a" must have at most 0 properties']),
        ({"required": ["k"]}, {}, ['missing required property "a.k"']),
        ({"properties": {"k": False}}, {"k": 1}, ['"a.k" is not allowed here (its schema is false)']),
        (
            {"properties": {"k": {}}, "additionalProperties": False},
            {"k": 1, "y": 1, "z": 1},
            [
                '"a.y" is not a declared property (additionalProperties: false)',
                '"a.z" is not a declared property (additionalProperties: false)',
            ],
        ),
        (
            {"anyOf": [{"additionalProperties": False}]},
            {"y": 1, "z": 1},
            [
                (
                    '"a" must match at least one anyOf branch: "a.y" is not a declared property '
                    '(additionalProperties: false) and "a.z" is not a declared property (additionalProperties: false)'
                )
            ],
        ),
        ({"additionalProperties": {"type": "string"}}, {"k": 1}, ['"a.k" must be a string']),
        ({"patternProperties": {"^k": {"type": "string"}}}, {"k": 1}, ['"a.k" must be a string']),
        (
            {"unevaluatedProperties": False, "allOf": [{"properties": {"k": {}}}]},
            {"k": 1, "z": 1},
            ['"a.z" is not a declared property (unevaluatedProperties: false)'],
        ),
        (
            {"unevaluatedItems": False, "prefixItems": [{}]},
            [1, 2],
            ['"a" must not have items beyond the declared ones (unevaluatedItems: false), and has 1'],
        ),
        (
            {"propertyNames": {"pattern": "^k"}},
            {"z": 1},
            ['"a" has a property whose name must match the pattern "^k"'],
        ),
        ({"dependentRequired": {"k": ["l"]}}, {"k": 1}, ['missing required property "a.l"']),
        ({"dependentSchemas": {"k": {"required": ["l"]}}}, {"k": 1}, ['missing required property "a.l"']),
        ({"not": {"type": "string"}}, "x", ['"a" must not fit the schema under `not`']),
        ({"allOf": [{"minimum": 1}, {"maximum": -1}]}, 0, ['"a" must be at least 1', '"a" must be at most -1']),
        ({"if": {"type": "string"}, "then": {"minLength": 2}}, "x", ['"a" must have at least 2 characters']),
        (
            {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["k"]}]},
            {},
            ['"a" must match at least one anyOf branch: must be an integer, or missing required property "a.k"'],
        ),
        (
            {"oneOf": [{"type": "integer"}, {"properties": {"k": {"type": "string"}}, "type": "object"}]},
            {"k": 1},
            ['"a" must match exactly one oneOf branch (matched 0): must be an integer, or "a.k" must be a string'],
        ),
        (
            {"oneOf": [{"type": "integer"}, {"type": "number"}, {}, {"type": "string"}]},
            1,
            ['"a" must match exactly one oneOf branch (matched 3)'],
        ),
    ],
)
def test_keywords_are_enforced_and_told_by_path(schema: Any, value: Any, told: list[str] | None) -> None:
    whole = {"type": "object", "properties": {"a": schema}}
    found = RawSchema(whole)(materialise({"a": value}), "")
    assert found != []
    if told is not None:
        assert found == told
    assert raw_violations(whole, materialise({"a": value}), "") == found
    assert RawSchema(schema)(materialise(value)) == [each.replace('"a', '"value', each.count('"a')) for each in found]


def test_messages_never_repeat_the_value() -> None:
    secret = "hunter2-hunter2"
    schemas = [
        {"type": "integer"}, {"enum": ["a"]}, {"const": "a"}, {"pattern": "^a"}, {"maxLength": 1}, {"format": "email"},
        {"not": {"type": "string"}}, {"anyOf": [{"type": "null"}, {"pattern": "^a"}]}, False, {"contentMediaType": "x"},
        {"propertyNames": False}, {"unevaluatedItems": False},
    ]  # fmt: skip
    for schema in schemas:
        for value in (secret, [secret], {"k": [secret]}):
            assert not any(secret in message for message in RawSchema(schema)(materialise(value)))


def test_local_references_are_followed() -> None:
    tree = {
        "$defs": {
            "tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
        },
        "$ref": "#/$defs/tree",
    }
    schema = RawSchema(tree)
    assert schema(materialise({"kids": [{"kids": []}]})) == []
    assert schema(materialise({"kids": [{"kids": [5]}]})) == ['"value.kids[0].kids[0]" must be an object']
    by_id = {"$id": "https://example.com/a", "$defs": {"b": {"$id": "b", "type": "string"}}, "$ref": "b"}
    assert RawSchema(by_id)(1) == ['"value" must be a string']
    by_anchor = {"$defs": {"b": {"$anchor": "here", "type": "string"}}, "$ref": "#here"}
    assert RawSchema(by_anchor)(1) == ['"value" must be a string']


@pytest.mark.parametrize(
    "uri", ["https://example.com/x.json", "http://127.0.0.1:1/x", "file:///etc/hostname", "other.json"]
)
def test_references_to_other_documents_are_refused_and_never_fetched(uri: str) -> None:
    for schema in (
        {"$ref": uri},
        {"properties": {"a": {"items": {"$ref": f"{uri}#/x"}}}},
        {"$defs": {"a": {"$ref": uri}}},
    ):
        with pytest.raises(JsonSchemaError, match="another document") as caught:
            assert_raw_json_schema(schema)
        assert uri in str(caught.value)


def test_a_document_that_could_be_had_is_not_fetched_either(tmp_path: Path) -> None:
    asked: list[str] = []

    class Schemas(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_args: Any) -> None: ...

    (tmp_path / "any.json").write_text("{}")
    with HTTPServer(("127.0.0.1", 0), Schemas) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            for uri in (f"http://127.0.0.1:{server.server_port}/any", (tmp_path / "any.json").as_uri()):
                with pytest.raises(JsonSchemaError, match="another document"):
                    assert_raw_json_schema({"properties": {"a": {"$ref": uri}}})
        finally:
            server.shutdown()
            thread.join()
    assert asked == []


def test_a_reference_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(JsonSchemaError, match="leads nowhere"):
        assert_raw_json_schema({"$ref": "#/$defs/none"})


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "strin"}, "schema.type must match at least one anyOf branch"),
        ({"properties": {"a": {"type": 5}}}, "schema.properties.a.type "),
        ({"properties": {"a": 5}}, "schema.properties.a must be "),
        ({"required": "a"}, "schema.required must be an array"),
        ({"pattern": "("}, "schema.pattern must be a valid regex"),
        ({"items": [{}]}, "schema.items must be "),
        ({"minLength": -1}, "schema.minLength must be at least 0"),
        (5, "schema must be a schema object"),
        ({"minimum": float("nan")}, "schema.minimum is nan"),
        ({"dependencies": {}}, "schema.dependencies is of an older draft"),
        (
            {"anyOf": [{"properties": {"x": {"additionalItems": False}}}]},
            "schema.anyOf[0].properties.x.additionalItems is of",
        ),
    ],
)
def test_a_schema_that_could_not_be_enforced_is_refused(schema: Any, told: str) -> None:
    with pytest.raises(JsonSchemaError) as caught:
        assert_raw_json_schema(schema)
    assert caught.value.violations[0].startswith(told)


def test_a_property_may_be_called_like_an_old_keyword() -> None:
    assert_raw_json_schema({"properties": {"dependencies": {"type": "object"}, "extends": {}}})
    assert_raw_json_schema({"const": {"dependencies": 1}, "default": {"additionalItems": 1}})


def test_schemas_of_an_older_draft_whose_keywords_still_hold_pass() -> None:
    schema = RawSchema(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"x": {"type": "string"}},
            "properties": {"a": {"$ref": "#/definitions/x", "minLength": 2}},
        }
    )
    assert schema(materialise({"a": "x"})) == ['"value.a" must have at least 2 characters']


def test_formats_may_be_mere_annotations() -> None:
    assert RawSchema({"format": "date-time"}, assert_formats=False)("soon") == []
    assert RawSchema({"format": "made-up"})("x") == []


def test_numbers_are_exact() -> None:
    assert RawSchema({"maximum": 10**30})(10**30 + 1) == [f'"value" must be at most {10**30}']
    assert RawSchema({"const": 2**63})(2**63) == []
    assert RawSchema({"const": 2**63})(2**63 + 1) != []
    assert RawSchema({"type": "integer"})(10**4299) == []
    assert RawSchema({"type": "integer"})(1.0) == []
    assert RawSchema({"type": "integer"})(-0.0) == []


def test_deep_values_and_deep_schemas_work_and_too_deep_ones_are_told() -> None:
    tree = {
        "$defs": {"t": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/t"}}]}},
        "$ref": "#/$defs/t",
    }
    value: Any = 1
    for _ in range(500):
        value = [value]
    assert RawSchema(tree)(materialise(value)) == []
    assert RawSchema({"type": "array"})(materialise(value)) == []
    arrays: dict[str, Any] = {"type": "integer"}
    for _ in range(200):
        arrays = {"type": "array", "items": arrays}
    nested: Any = "x"
    for _ in range(200):
        nested = [nested]
    assert RawSchema(arrays)(materialise(nested)) == [f'"value{"[0]" * 200}" must be an integer']
    for levels in (400, 5_000):
        for _ in range(levels):
            arrays = {"type": "array", "items": arrays}
        with pytest.raises(JsonSchemaError):
            RawSchema(arrays)


def test_a_pattern_that_backtracks_ends() -> None:
    schema = RawSchema({"pattern": r"^(?=(a+)+$)(a|aa)+\1$"})
    assert schema("a" * 40 + "b") != []


@pytest.mark.anyio
async def test_a_tool_enforces_its_arguments_and_names_their_paths() -> None:
    async def body(arguments: Any) -> str:
        return arguments["filter"]["since"]

    definition = define_raw_tool(
        name="find",
        description="Find.",
        parameters={
            "$defs": {"filter": {"type": "object", "properties": {"since": {"type": "string", "format": "date"}}}},
            "type": "object",
            "properties": {"filter": {"$ref": "#/$defs/filter"}, "n": {"type": ["integer", "null"], "minimum": 1}},
            "required": ["filter"],
        },
        execute=body,
    )
    run: Any = None
    assert await definition.execute(materialise({"filter": {"since": "2024-01-01"}, "n": None}), run) == "2024-01-01"
    with pytest.raises(ToolArgsError) as caught:
        await definition.execute(materialise({"filter": {"since": "soon"}, "n": 0}), run)
    assert set(caught.value.violations) == {'"filter.since" must be a valid date', '"n" must be at least 1'}
    with pytest.raises(JsonSchemaError, match="parameters refers to another document"):
        define_raw_tool(name="x", description="", parameters={"$ref": "https://example.com/x"}, execute=body)
    with pytest.raises(JsonSchemaError, match=r"output\.type"):
        define_raw_tool(name="x", description="", parameters={}, output={"type": "x"}, execute=body)
