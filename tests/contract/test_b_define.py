"""The factories `define_tool` and `define_raw_tool`: B57 to B62, and ruling 39 at the registration's side."""

from __future__ import annotations

import functools
import math
from typing import Any, TypedDict

import pytest
from ptc.registry.define import define_raw_tool, define_tool
from ptc.registry.definition import ToolDefinition, ToolOutput
from ptc.registry.errors import JsonSchemaError, ToolArgsError
from ptc.registry.lossless import is_frozen, materialise
from ptc.registry.schema import assert_output_schema, validate_output
from ptc.registry.values import text_block

RUN: Any = object()
NAMED: dict[str, Any] = {"name": "search", "description": "Search."}
PARAMETERS = {"query": {"type": "string", "required": True}, "limit": {"type": "integer"}}
RAW_PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
}
GOOD = materialise({"query": "x"})
BAD = materialise({"limit": "many"})
BAD_TOLD = {'missing required property "query"', '"limit" must be an integer'}


async def echo(arguments: Any, run: Any) -> Any:
    return arguments["query"]


def typed(**options: Any) -> ToolDefinition:
    members: dict[str, Any] = {"parameters": PARAMETERS, "output": {"type": "string"}, "execute": echo, **options}
    return define_tool(**{**NAMED, **members})


def raw(**options: Any) -> ToolDefinition:
    members: dict[str, Any] = {"parameters": RAW_PARAMETERS, "execute": echo, **options}
    return define_raw_tool(**{**NAMED, **members})


BOTH = pytest.mark.parametrize("define", [typed, raw])


@pytest.mark.contract("B57")
@BOTH
@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf, -math.inf, "5", True, [5]])
def test_a_bad_deadline_is_refused_at_definition(define: Any, timeout: object) -> None:
    with pytest.raises(TypeError) as caught:
        define(timeout_ms=timeout)
    assert str(caught.value).endswith("(search): timeout_ms must be a positive finite number")
    assert str(caught.value).startswith("define_")


@pytest.mark.contract("B57")
@BOTH
def test_a_good_deadline_is_kept(define: Any) -> None:
    assert define(timeout_ms=0.5).timeout_ms == 0.5
    assert define(timeout_ms=30_000).timeout_ms == 30_000


@pytest.mark.contract("B57")
def test_schemas_are_compiled_at_definition_once_and_detached() -> None:
    parameters = {"query": {"type": "string", "required": True}}
    definition = typed(parameters=parameters, concurrency_safe=True)
    parameters["query"]["type"] = "integer"
    assert definition.is_concurrency_safe(GOOD) is True
    assert definition.is_concurrency_safe(materialise({"query": 5})) is False
    assert definition.parameters == {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }
    assert definition.output.schema == {"type": "string"}
    assert is_frozen(definition.parameters)
    assert is_frozen(definition.output.schema)
    with pytest.raises(JsonSchemaError):
        typed(parameters={"query": {"type": "strin"}})
    with pytest.raises(JsonSchemaError):
        typed(output={"type": "strin"})


@pytest.mark.contract("B58")
@pytest.mark.anyio
@BOTH
async def test_the_body_sees_valid_arguments_alone(define: Any) -> None:
    seen: list[Any] = []

    async def body(arguments: Any, run: Any) -> str:
        seen.append((arguments, run))
        return "done"

    definition = define(execute=body)
    assert await definition.execute(GOOD, RUN) == "done"
    assert seen[0][0] is GOOD
    assert seen[0][1] is RUN
    with pytest.raises(ToolArgsError) as caught:
        await definition.execute(BAD, RUN)
    assert set(caught.value.violations) == BAD_TOLD
    assert caught.value.code == "INVALID_ARGS"
    with pytest.raises(ToolArgsError, match='"arguments" must be an object'):
        await definition.execute("not json", RUN)
    assert len(seen) == 1


@pytest.mark.contract("B58")
@BOTH
def test_render_and_meta_see_what_the_pipeline_gives_unchecked(define: Any) -> None:
    definition = define(render=lambda a, v: [text_block(f"{a} {v}")], presentation_meta=lambda a, v: [a, v])
    assert definition.output.render(BAD, 5) == [{"type": "text", "text": f"{BAD} 5"}]
    assert definition.output.presentation_meta(BAD, 5) == [BAD, 5]


@pytest.mark.contract("B58")
@BOTH
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain Zürich\n", "plain Zürich\n"),
        ("", ""),
        ({"a": [1, "é"], "e": {}}, '{\n  "a": [\n    1,\n    "é"\n  ],\n  "e": {}\n}'),
        ([], "[]"),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
    ],
)
def test_the_default_render_is_one_text_block(define: Any, value: Any, text: str) -> None:
    assert define().output.render(GOOD, materialise(value)) == [{"type": "text", "text": text}]


@pytest.mark.contract("B5", "B58")
def test_the_default_render_takes_deep_values() -> None:
    value: Any = "x"
    for _ in range(500):
        value = [value]
    [block] = typed().output.render(GOOD, materialise(value))
    assert block["type"] == "text"
    assert block["text"].count("[") == 500


@pytest.mark.contract("B59")
@BOTH
def test_presenters_say_nothing_of_arguments_that_do_not_fit(define: Any) -> None:
    definition = define(present_call=lambda a: {"call": a}, present_result=lambda a, r: {"result": r})
    assert definition.present_call(GOOD) == {"call": GOOD}
    assert definition.present_result(GOOD, {"r": 1}) == {"result": {"r": 1}}
    for wrong in (BAD, "text", None):
        assert definition.present_call(wrong) is None
        assert definition.present_result(wrong, {"r": 1}) is None


@pytest.mark.contract("B60")
@BOTH
def test_calls_may_overlap_only_with_valid_arguments(define: Any) -> None:
    asked: list[Any] = []

    def classify(arguments: Any) -> bool:
        asked.append(arguments)
        return True

    definition = define(is_concurrency_safe=classify)
    assert definition.is_concurrency_safe(GOOD) is True
    assert definition.is_concurrency_safe(BAD) is False
    assert asked == [GOOD]
    short = define(concurrency_safe=True)
    assert short.is_concurrency_safe(GOOD) is True
    assert short.is_concurrency_safe(BAD) is False
    assert define(concurrency_safe=False).is_concurrency_safe is None


@pytest.mark.contract("B60")
@BOTH
def test_what_a_classifier_answers_is_handed_on_as_it_is(define: Any) -> None:
    assert define(is_concurrency_safe=lambda _: "yes").is_concurrency_safe(GOOD) == "yes"
    with pytest.raises(TypeError, match="not both"):
        define(is_concurrency_safe=lambda _: True, concurrency_safe=True)
    with pytest.raises(TypeError, match="goes to is_concurrency_safe"):
        define(concurrency_safe=lambda _: True)


@pytest.mark.contract("B61")
@BOTH
def test_content_hooks_are_passed_through(define: Any) -> None:
    def project(execution: Any, result: Any) -> None:
        return None

    def finalize(execution: Any, result: Any) -> None:
        return None

    definition = define(project_content=project, finalize_content=finalize)
    assert definition.project_content is project
    assert definition.finalize_content is finalize


@pytest.mark.contract("B62")
@BOTH
def test_what_is_not_given_stays_absent(define: Any) -> None:
    definition = define()
    assert definition.output.presentation_meta is None
    for member in (
        "timeout_ms",
        "is_concurrency_safe",
        "project_content",
        "finalize_content",
        "present_call",
        "present_result",
    ):
        assert getattr(definition, member) is None
    assert (definition.name, definition.description) == ("search", "Search.")


@BOTH
def test_a_name_is_text_and_not_empty(define: Any) -> None:
    for name in ("", None, 5):
        with pytest.raises(TypeError, match="name must be text"):
            define(name=name)
    with pytest.raises(TypeError, match="description must be text"):
        define(description=None)


class Callable2:
    async def __call__(self, arguments: Any, run: Any) -> str:
        return "object"

    async def method(self, arguments: Any) -> str:
        return "method"


async def three(first: str, arguments: Any, run: Any) -> str:
    return first


async def one(arguments: Any) -> str:
    return "one"


async def with_default(arguments: Any, limit: int = 5) -> str:
    return f"limit {limit}"


async def with_optional_run(arguments: Any, run: Any = None) -> str:
    return "run" if run is RUN else "none"


async def variadic(*arguments: Any) -> str:
    return str(len(arguments))


@pytest.mark.anyio
@BOTH
@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (echo, "x"),
        (one, "one"),
        (Callable2(), "object"),
        (Callable2().method, "method"),
        (functools.partial(three, "partial"), "partial"),
        (functools.partial(Callable2()), "object"),
        (with_default, "limit 5"),
        (with_optional_run, "run"),
        (variadic, "2"),
    ],
)
async def test_bodies_of_every_asynchronous_form(define: Any, body: Any, answer: str) -> None:
    assert await define(execute=body).execute(GOOD, RUN) == answer


def sync_body(arguments: Any, run: Any) -> str:
    return "never"


async def generator(arguments: Any, run: Any) -> Any:
    yield 1


async def keyword_only(arguments: Any, *, extra: int) -> str:
    return "never"


async def too_many(a: Any, b: Any, c: Any) -> str:
    return "never"


async def nothing() -> str:
    return "never"


@BOTH
@pytest.mark.parametrize("body", [sync_body, lambda a, r: "x", print, 5, None, functools.partial(sync_body)])
def test_a_body_that_is_not_asynchronous_is_refused_with_the_advice(define: Any, body: Any) -> None:
    with pytest.raises(TypeError, match=r"\(search\): execute must be asynchronous; write `async def`"):
        define(execute=body)


@BOTH
def test_bodies_of_other_shapes_are_refused(define: Any) -> None:
    with pytest.raises(TypeError, match="yields values"):
        define(execute=generator)
    for body in (keyword_only, too_many, nothing):
        with pytest.raises(TypeError, match="must take"):
            define(execute=body)


@pytest.mark.contract("C43")
def test_outputs_are_checked_by_the_validator_of_their_door() -> None:
    assert validate_output(typed(), "x") == []
    assert validate_output(typed(), 1) == ['"value" must be a string']
    either = raw(output={"anyOf": [{"type": "integer", "minimum": 5}, {"type": "null"}]})
    assert either.output.raw
    assert validate_output(either, 5) == []
    assert validate_output(either, None) == []
    assert validate_output(either, 4) == [
        '"value" must match at least one anyOf branch: must be at least 5, or must be null'
    ]
    assert_output_schema(either)
    assert_output_schema(typed())
    unknown = raw()
    assert not unknown.output.raw
    assert unknown.output.schema == {}
    assert_output_schema(unknown)
    assert validate_output(unknown, materialise({"any": [1, None]})) == []


@pytest.mark.contract("A17", "C43")
def test_a_bare_definition_is_checked_by_its_schema() -> None:
    def bare(schema: Any, *, is_raw: bool) -> ToolDefinition:
        output = ToolOutput(schema=schema, render=lambda a, v: [], raw=is_raw)
        return ToolDefinition(name="t", description="", parameters={}, output=output, execute=echo)

    patterned = {"type": "string", "pattern": "^a"}
    assert validate_output(bare(patterned, is_raw=True), "b") == ['"value" must match the pattern "^a"']
    assert validate_output(bare(patterned, is_raw=True), "ab") == []
    assert_output_schema(bare(patterned, is_raw=True))
    with pytest.raises(JsonSchemaError, match="pattern is not a supported keyword"):
        assert_output_schema(bare(patterned, is_raw=False))
    with pytest.raises(JsonSchemaError, match="another document"):
        assert_output_schema(bare({"$ref": "https://example.com/x"}, is_raw=True))
    assert validate_output(bare({"type": "string"}, is_raw=False), 5) == ['"value" must be a string']


class SearchArguments(TypedDict):
    query: str


@pytest.mark.anyio
async def test_a_body_may_be_written_against_a_typed_dict() -> None:
    async def body(arguments: SearchArguments, run: Any) -> list[str]:
        return [arguments["query"]]

    def render(arguments: SearchArguments, value: list[str]) -> list[Any]:
        return [text_block(arguments["query"] + value[0])]

    definition = define_tool(
        name="search",
        description="",
        parameters=PARAMETERS,
        output={"type": "array", "items": {"type": "string"}},
        execute=body,
        render=render,
        is_concurrency_safe=lambda arguments: arguments["query"] != "",
    )
    assert await definition.execute(GOOD, RUN) == ["x"]
    assert definition.is_concurrency_safe is not None
    assert definition.is_concurrency_safe(GOOD)
