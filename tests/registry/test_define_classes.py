"""`define_tool` with classes in the place of schemas: what the body gets and gives, and what everybody else sees."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from typing import Any, NotRequired, TypedDict

import pydantic
import pytest
from ptc.registry.define import define_tool
from ptc.registry.definition import ToolDefinition, ToolSchema
from ptc.registry.errors import JsonSchemaError, ToolArgsError, ToolOutputError
from ptc.registry.lossless import is_frozen, materialise
from ptc.registry.presenters import RecordedResult
from ptc.registry.schema import validate_output
from ptc.registry.values import text_block
from ptc.sdk_gen import render_python

RUN: Any = object()
TEXT = {"type": "string"}
RECORDED: RecordedResult = {"content": [], "isError": False}


class Place(TypedDict):
    city: str
    since: NotRequired[datetime.date]


class Search(TypedDict):
    query: str
    near: NotRequired[list[Place]]


class Booking(pydantic.BaseModel):
    day: datetime.date
    guests: int = pydantic.Field(2, ge=1, alias="numberOfGuests")

    @pydantic.field_validator("day")
    @classmethod
    def open_on(cls, day: datetime.date) -> datetime.date:
        if day.weekday() == 0:
            raise ValueError("closed on Mondays")
        return day


class Closed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    name: str


class Tree(pydantic.BaseModel):
    name: str
    below: list[Tree] = []


class NoObject(pydantic.RootModel[list[int]]):
    pass


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


def noting(parameters: Any, **options: Any) -> tuple[ToolDefinition, list[Any]]:
    """A tool that gives nothing, and the arguments that its body has got."""
    seen: list[Any] = []

    async def body(arguments: Any, run: Any) -> str:
        assert run is RUN
        seen.append(arguments)
        return "done"

    members: dict[str, Any] = {"output": TEXT, "execute": body, **options}
    return define_tool(name="t", description="T.", parameters=parameters, **members), seen


async def refused(definition: ToolDefinition, arguments: Any) -> tuple[str, ...]:
    with pytest.raises(ToolArgsError) as caught:
        await definition.execute(materialise(arguments), RUN)
    return tuple(caught.value.violations)


@pytest.mark.contract("B57", "B58")
@pytest.mark.anyio
async def test_a_typed_dict_reaches_the_body_parsed_and_its_own() -> None:
    definition, seen = noting(Search)
    assert list(definition.parameters["properties"]) == ["query", "near"]
    assert definition.parameters["required"] == ["query"]
    assert is_frozen(definition.parameters)
    arguments: Any = materialise({"query": "x", "near": [{"city": "c", "since": "2024-01-02"}]})
    assert await definition.execute(arguments, RUN) == "done"
    assert seen == [{"query": "x", "near": [{"city": "c", "since": datetime.date(2024, 1, 2)}]}]
    seen[0]["near"].append(None)
    assert arguments["near"] == [{"city": "c", "since": "2024-01-02"}]
    assert await refused(definition, {"near": [{"since": "2024-01-02"}]}) == (
        'missing required property "query"',
        'missing required property "near[0].city"',
    )
    assert await refused(definition, []) == ('"arguments" must be an object',)
    assert len(seen) == 1


@pytest.mark.contract("B57", "B58")
@pytest.mark.anyio
async def test_a_model_is_constructed_of_valid_arguments_alone() -> None:
    definition, seen = noting(Booking)
    assert list(definition.parameters["properties"]) == ["day", "numberOfGuests"]
    await definition.execute(materialise({"day": "2024-01-02", "numberOfGuests": 3}), RUN)
    await definition.execute(materialise({"day": "2024-01-02"}), RUN)
    assert [type(each) for each in seen] == [Booking, Booking]
    assert [(each.day, each.guests) for each in seen] == [
        (datetime.date(2024, 1, 2), 3),
        (datetime.date(2024, 1, 2), 2),
    ]
    assert await refused(definition, {"day": "2024-01-01"}) == ('"day" is not accepted: closed on Mondays',)
    assert await refused(definition, {"day": "2024-01-02", "numberOfGuests": 0}) == (
        '"numberOfGuests" should be greater than or equal to 1',
    )
    # Pydantic alone would take the text for a number; the schema that was told is enforced as well.
    assert await refused(definition, {"day": "2024-01-02", "numberOfGuests": "3"}) == (
        '"numberOfGuests" must be an integer',
    )
    assert len(seen) == 2


@pytest.mark.contract("B58")
@pytest.mark.anyio
async def test_a_class_keeps_its_own_rule_for_members_that_it_does_not_have() -> None:
    closed, _ = noting(Closed)
    assert closed.parameters["additionalProperties"] is False
    assert await refused(closed, {"name": "n", "more": 1}) == (
        '"more" is not a declared property (additionalProperties: false)',
    )
    open_, seen = noting(Search)
    assert "additionalProperties" not in open_.parameters
    await open_.execute(materialise({"query": "x", "more": 1}), RUN)
    assert seen == [{"query": "x"}]


@pytest.mark.anyio
async def test_a_dataclass_will_do_and_so_will_a_class_that_contains_itself() -> None:
    definition, seen = noting(Point)
    await definition.execute(materialise({"x": 1}), RUN)
    assert seen == [Point(1, 0)]
    definition, seen = noting(Tree)
    assert (definition.parameters["type"], list(definition.parameters["properties"])) == ("object", ["name", "below"])
    assert "$ref" not in definition.parameters
    await definition.execute(materialise({"name": "a", "below": [{"name": "b"}]}), RUN)
    assert seen == [Tree(name="a", below=[Tree(name="b")])]
    assert await refused(definition, {"name": "a", "below": [{"below": []}]}) == (
        'missing required property "below[0].name"',
    )


@pytest.mark.contract("B57")
def test_what_is_no_object_or_has_no_json_form_is_refused_at_definition() -> None:
    for wrong in (int, NoObject, list[int], int | None):
        with pytest.raises(TypeError, match=r"^define_tool\(t\): parameters must be .* is no object in JSON$"):
            noting(wrong)

    class Holder(TypedDict):
        ring: Callable[[], int]

    class Unknown(TypedDict):
        thing: NoSuchName  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    with pytest.raises(TypeError, match=r"^define_tool\(t\): parameters: no schema can be made of .*Holder: "):
        noting(Holder)
    with pytest.raises(TypeError, match=r"^define_tool\(t\): parameters: .*Unknown: .*(not|not fully) defined"):
        noting(Unknown)
    with pytest.raises(TypeError, match=r"^define_tool\(t\): no schema can be made of output: .*Callable"):
        noting({}, output=Holder)
    for wrong in (None, 5, "text", [Search]):
        with pytest.raises(JsonSchemaError):
            noting(wrong)
        with pytest.raises(JsonSchemaError):
            noting({}, output=wrong)


@pytest.mark.contract("B58", "C43")
@pytest.mark.anyio
@pytest.mark.parametrize("parameters", [Search, {"query": {"type": "string", "required": True}}])
async def test_what_the_body_returns_becomes_json_by_the_outputs_class(parameters: Any) -> None:
    answers: list[Any] = [Booking(day=datetime.date(2024, 1, 2), numberOfGuests=4), {"day": 5}, {1, object()}]

    async def body(arguments: Any) -> Any:
        return answers.pop(0)

    definition = define_tool(name="t", description="T.", parameters=parameters, output=Booking, execute=body)
    value = await definition.execute(materialise({"query": "x"}), RUN)
    assert value == {"day": "2024-01-02", "numberOfGuests": 4}
    assert validate_output(definition, value) == []
    assert validate_output(definition, await definition.execute(materialise({"query": "x"}), RUN)) == [
        '"value.day" must be a string',
    ]
    with pytest.raises(ToolOutputError, match="cannot be turned into JSON"):
        await definition.execute(materialise({"query": "x"}), RUN)


@pytest.mark.contract("B58", "B59", "B60")
def test_everybody_but_the_body_sees_json_and_valid_arguments_where_promised() -> None:
    asked: list[Any] = []

    def classify(arguments: Any) -> bool:
        asked.append(arguments)
        return True

    definition, _ = noting(
        Booking,
        is_concurrency_safe=classify,
        present_call=lambda arguments: {"call": arguments},
        present_result=lambda arguments, result: {"result": arguments},
        render=lambda arguments, value: [text_block(f"{arguments} {value}")],
        presentation_meta=lambda arguments, value: [arguments, value],
    )
    good, bad = materialise({"day": "2024-01-02"}), materialise({"day": "2024-01-01"})
    assert definition.is_concurrency_safe is not None
    assert definition.present_call is not None
    assert definition.present_result is not None
    assert definition.is_concurrency_safe(good) is True
    assert definition.is_concurrency_safe(bad) is False
    assert asked == [good]
    assert definition.present_call(good) == {"call": good}
    assert definition.present_call(bad) is None
    assert definition.present_result(good, RECORDED) == {"result": good}
    assert definition.present_result(bad, RECORDED) is None
    assert definition.output.render(bad, "v") == [text_block(f"{bad} v")]


@pytest.mark.anyio
async def test_without_a_body_it_decorates_one() -> None:
    @define_tool(name="find", description="Find.", parameters=Search, output=list[Place], timeout_ms=5)
    async def find(arguments: Search) -> list[Place]:
        return [{"city": arguments["query"], "since": datetime.date(2024, 1, 2)}]

    assert isinstance(find, ToolDefinition)
    assert (find.name, find.timeout_ms) == ("find", 5)
    assert await find.execute(materialise({"query": "x"}), RUN) == [{"city": "x", "since": "2024-01-02"}]
    with pytest.raises(TypeError, match=r"define_tool\(t\): execute must be asynchronous"):
        define_tool(name="t", description="", parameters=Search, output=str)(lambda arguments: "x")  # pyright: ignore[reportArgumentType]


def test_programs_are_told_the_members_of_the_class() -> None:
    for parameters, member in ((Search, "query: str"), (Tree, "below: ")):
        definition, _ = noting(parameters, output=Booking)
        told = ToolSchema(
            name="t",
            description="T.",
            parameters=definition.parameters,  # pyright: ignore[reportArgumentType]
            output=definition.output.schema,  # pyright: ignore[reportArgumentType]
        )
        text = render_python([told]).block
        assert member in text
        assert "numberOfGuests: NotRequired[int]" in text
