"""`@tool`: schemas from annotations, arguments as the annotated types, results as JSON (ruling 39)."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json as json_module
import typing
import uuid
import weakref
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict, cast

import pydantic
import pytest
import typing_extensions
from ptc.registry.decorator import FunctionTool, tool
from ptc.registry.definition import ToolDefinition, ToolRunContext
from ptc.registry.errors import ToolArgsError, ToolOutputError
from ptc.registry.lossless import is_frozen, materialise, snapshot
from ptc.registry.schema import assert_output_schema, validate_output
from ptc.registry.values import JsonObject, JsonValue, text_block

if TYPE_CHECKING:
    from nowhere import Elsewhere  # pyright: ignore[reportMissingImports]

RUN: Any = object()
NAIVE = datetime.datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001  # what a naive time becomes is tested


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Filter(pydantic.BaseModel):
    when: datetime.datetime
    tags: list[str] = []


class Address(TypedDict):
    city: str
    zip: NotRequired[int]


class Person(TypedDict):
    name: str
    home: Address
    others: NotRequired[list[Address]]


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Tree(pydantic.BaseModel):
    kids: list[Tree] = []


async def call(definition: ToolDefinition, **arguments: Any) -> Any:
    return snapshot(await definition.execute(materialise(arguments), RUN))


async def refused(definition: ToolDefinition, arguments: Any) -> tuple[str, ...]:
    with pytest.raises(ToolArgsError) as caught:
        await definition.execute(materialise(arguments), RUN)
    return caught.value.violations


@tool
async def search(query: Annotated[str, pydantic.Field(description="What to look for.")], limit: int = 10) -> list[str]:
    """Search the catalogue.

    Matches whole words.
    """
    return [query] * limit


def test_the_plain_decorator_makes_a_definition() -> None:
    assert isinstance(search, ToolDefinition)
    assert isinstance(search, FunctionTool)
    assert search.name == "search"
    assert search.description == "Search the catalogue.\n\nMatches whole words."
    assert search.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "default": 10},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert search.output.schema == {"type": "array", "items": {"type": "string"}}
    assert search.output.raw
    assert_output_schema(search)
    assert is_frozen(search.parameters)
    assert search.timeout_ms is None
    assert search.is_concurrency_safe is None
    assert weakref.ref(search)() is search


def test_the_options_are_those_of_define_tool() -> None:
    @tool(
        name="other",
        description="Other.",
        concurrency_safe=True,
        timeout_ms=50,
        render=lambda arguments, value: [text_block(f"{arguments} {value}")],
        present_call=lambda arguments: {"title": arguments["n"]},
    )
    async def original(n: int) -> int:
        """Not this."""
        return n

    assert (original.name, original.description, original.timeout_ms) == ("other", "Other.", 50)
    assert original.output.render({"n": 1}, 2) == [{"type": "text", "text": "{'n': 1} 2"}]
    assert original.is_concurrency_safe is not None
    assert original.is_concurrency_safe({"n": 1}) is True
    assert original.is_concurrency_safe({"n": "x"}) is False
    assert original.is_concurrency_safe({"n": "1"}) is False
    assert original.present_call is not None
    assert original.present_call({"n": 1}) == {"title": 1}
    assert original.present_call({"n": "x"}) is None
    with pytest.raises(TypeError, match=r"tool\(f\): timeout_ms"):

        @tool(timeout_ms=0)
        async def f() -> None: ...


@pytest.mark.anyio
async def test_the_function_itself_stays_reachable() -> None:
    assert await search.function("x", limit=2) == ["x", "x"]


@pytest.mark.anyio
async def test_arguments_arrive_as_the_annotated_types() -> None:
    seen: dict[str, Any] = {}

    @tool
    async def typed(
        model: Filter,
        typed_dict: Person,
        data: Point,
        colour: Colour,
        mode: Literal["a", "b"],
        maybe: int | None,
        when: datetime.datetime,
        day: datetime.date,
        price: decimal.Decimal,
        key: uuid.UUID,
        pair: tuple[int, str],
        unique: set[int],
        span: datetime.timedelta,
        anything: JsonValue,
        record: JsonObject,
        either: int | str,
    ) -> None:
        seen.update(locals())

    assert await call(
        typed,
        model={"when": "2024-01-02T03:04:05Z"},
        typed_dict={"name": "n", "home": {"city": "c"}, "others": [{"city": "d", "zip": 1}]},
        data={"x": 1},
        colour="blue",
        mode="b",
        maybe=None,
        when="2024-01-02T03:04:05",
        day="2024-01-02",
        price="1.10",
        key="12345678-1234-5678-1234-567812345678",
        pair=[1, "x"],
        unique=[1, 2],
        span="P1DT2H",
        anything=[1, None],
        record={"k": 1},
        either="x",
    ) is None  # fmt: skip
    del seen["seen"]
    assert seen == {
        "model": Filter(when=datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)),
        "typed_dict": {"name": "n", "home": {"city": "c"}, "others": [{"city": "d", "zip": 1}]},
        "data": Point(1),
        "colour": Colour.BLUE,
        "mode": "b",
        "maybe": None,
        "when": NAIVE,
        "day": datetime.date(2024, 1, 2),
        "price": decimal.Decimal("1.10"),
        "key": uuid.UUID("12345678-1234-5678-1234-567812345678"),
        "pair": (1, "x"),
        "unique": {1, 2},
        "span": datetime.timedelta(days=1, hours=2),
        "anything": [1, None],
        "record": {"k": 1},
        "either": "x",
    }


@pytest.mark.anyio
async def test_defaults_are_the_functions_own_and_nothing_given_is_shared() -> None:
    default: list[int] = []

    @tool
    async def f(given: list[int], items: list[int] = default, n: int = pydantic.Field(4, ge=2)) -> bool:
        given.append(n)
        return items is default

    arguments = materialise({"given": [1]})
    assert await f.execute(arguments, RUN) is True
    assert arguments == {"given": [1]}
    assert await refused(f, {"given": [], "n": 1}) == ('"n" should be greater than or equal to 2',)


@pytest.mark.anyio
async def test_what_is_wrong_is_told_by_path_in_plain_words() -> None:
    @tool
    async def find(filter: Filter, mode: Literal["a", "b"] = "a", people: list[Person] = []) -> None:  # noqa: B006
        """Find."""

    assert await refused(find, {"filter": {"when": "hunter2"}, "zz": 1}) == (
        '"filter.when" should be a valid datetime or date, input is too short',
        '"zz" is not a declared property (additionalProperties: false)',
    )
    assert await refused(find, {}) == ('missing required property "filter"',)
    assert await refused(find, {"filter": {}}) == ('missing required property "filter.when"',)
    good = {"when": "2024-01-01"}
    assert await refused(find, {"filter": good, "mode": "hunter2"}) == ("\"mode\" should be 'a' or 'b'",)
    assert await refused(find, {"filter": {**good, "tags": ["x", 1]}}) == ('"filter.tags[1]" should be a valid string',)
    assert await refused(find, {"filter": good, "people": [{"name": "n", "home": {"zip": "hunter2"}}]}) == (
        'missing required property "people[0].home.city"',
        '"people[0].home.zip" should be a valid integer, unable to parse string as an integer',
    )
    for wrong in ([], "text", None, 5):
        assert await refused(find, wrong) == ('"arguments" must be an object',)


@pytest.mark.anyio
async def test_messages_hold_neither_links_nor_the_given_value() -> None:
    @tool
    async def f(n: int, d: datetime.date, u: uuid.UUID, c: Colour, p: decimal.Decimal, e: int | Filter) -> None:
        """F."""

    secret = "hunter2-hunter2"
    violations = await refused(f, dict.fromkeys("nducpe", secret))
    assert len(violations) == 6
    for violation in violations:
        assert secret not in violation
        assert "http" not in violation
        assert "pydantic" not in violation


@pytest.mark.anyio
async def test_the_branches_of_a_union_make_one_message_at_the_arguments_path() -> None:
    @tool
    async def f(value: int | list[int] | Filter, tagged: dict[str, int] | None = None) -> None:
        """F."""

    [violation] = await refused(f, {"value": "x"})
    assert violation.startswith('"value" should be a valid integer, ')
    assert violation.count(", or ") == 2
    assert await refused(f, {"value": 1, "tagged": {"int": "x"}}) == (
        '"tagged.int" should be a valid integer, unable to parse string as an integer',
    )


@pytest.mark.anyio
async def test_a_tagged_union_names_its_tags() -> None:
    class Cat(pydantic.BaseModel):
        kind: Literal["cat"]
        lives: int

    class Dog(pydantic.BaseModel):
        kind: Literal["dog"]

    @tool
    async def f(pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]) -> str:
        return pet.kind

    assert await call(f, pet={"kind": "dog"}) == "dog"
    assert await refused(f, {"pet": {"kind": "cow"}}) == ("\"pet\" must have in 'kind' one of 'cat', 'dog'",)
    assert await refused(f, {"pet": {"kind": "cat"}}) == ('missing required property "pet.lives"',)


@pytest.mark.anyio
async def test_validators_of_the_authors_own_are_heard() -> None:
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    @tool
    async def f(n: Annotated[int, pydantic.AfterValidator(even)]) -> int:
        return n

    assert await call(f, n=2) == 2
    assert await refused(f, {"n": 3}) == ('"n" is not accepted: must be even',)


@pytest.mark.anyio
async def test_the_schema_that_was_told_is_enforced() -> None:
    @tool
    async def f(n: int, flag: bool = False, text: str = "", when: datetime.datetime | None = None) -> int:
        return n

    assert await call(f, n=1.0) == 1
    assert await refused(f, {"n": "1"}) == ('"n" must be an integer',)
    assert await refused(f, {"n": True}) == ('"n" must be an integer',)
    assert await refused(f, {"n": 1, "flag": "yes"}) == ('"flag" must be a boolean',)
    assert await refused(f, {"n": 1, "flag": 1}) == ('"flag" must be a boolean',)
    [violation] = await refused(f, {"n": 1, "when": 1700000000})
    assert violation.startswith('"when" must match at least one anyOf branch: ')


@pytest.mark.anyio
async def test_integers_are_exact() -> None:
    @tool
    async def f(n: int) -> int:
        return n

    for n in (2**53 + 1, 2**63, -(2**64), 10**4000):
        assert await call(f, n=n) == n
        assert validate_output(f, n) == []


@pytest.mark.anyio
async def test_the_run_goes_to_the_parameter_of_its_type_under_any_name() -> None:
    @tool
    async def f(a: int, context: ToolRunContext, b: int = 2) -> bool:
        return context is RUN and (a, b) == (1, 2)

    assert list(f.parameters["properties"]) == ["a", "b"]
    assert await call(f, a=1) is True
    assert await refused(f, {"a": 1, "context": 1}) == (
        '"context" is not a declared property (additionalProperties: false)',
    )


@pytest.mark.anyio
async def test_names_that_pydantic_uses_itself_are_ordinary() -> None:
    @tool
    async def f(json: int, copy: int, schema: int, model_config: int, _x: int, self: int, p0: int) -> list[int]:
        return [json, copy, schema, model_config, _x, self, p0]

    names = ["json", "copy", "schema", "model_config", "_x", "self", "p0"]
    assert list(f.parameters["properties"]) == names
    assert await call(f, **dict(zip(names, range(7), strict=True))) == list(range(7))
    assert await refused(f, {"json": "x"}) == (
        '"json" should be a valid integer, unable to parse string as an integer',
        *(f'missing required property "{name}"' for name in names[1:]),
    )


@pytest.mark.anyio
async def test_an_alias_is_the_name_that_callers_use() -> None:
    @tool
    async def f(class_: Annotated[str, pydantic.Field(alias="class")]) -> str:
        return class_

    assert list(f.parameters["properties"]) == ["class"]
    assert await call(f, **{"class": "x"}) == "x"
    assert await refused(f, {"class_": "x"}) == (
        'missing required property "class"',
        '"class_" is not a declared property (additionalProperties: false)',
    )


@pytest.mark.anyio
async def test_positional_only_parameters_are_passed_by_position() -> None:
    @tool
    async def f(a: int, b: int = 5, /, c: int = 7) -> list[int]:
        return [a, b, c]

    assert await call(f, a=1) == [1, 5, 7]
    assert await call(f, a=1, c=3) == [1, 5, 3]


@pytest.mark.anyio
async def test_results_become_json_by_the_return_annotation() -> None:
    class Customer(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(alias_generator=lambda name: name.title(), populate_by_name=True)
        name: str
        since: datetime.date
        balance: decimal.Decimal
        seen: set[int] = {1}

    @tool
    async def get() -> dict[str, Customer]:
        return {"c": Customer(name="n", since=datetime.date(2024, 1, 1), balance=decimal.Decimal("1.10"))}

    value = await call(get)
    assert value == {"c": {"Name": "n", "Since": "2024-01-01", "Balance": "1.10", "Seen": [1]}}
    assert validate_output(get, value) == []
    json_module.dumps(value)
    properties = get.output.schema["$defs"]["Customer"]["properties"]
    assert list(properties) == ["Name", "Since", "Balance", "Seen"]
    assert properties["Balance"]["type"] == "string"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("annotation", "value", "as_json"),
    [
        (datetime.datetime, NAIVE, "2024-01-02T03:04:05"),
        (datetime.date, datetime.date(2024, 1, 2), "2024-01-02"),
        (datetime.time, datetime.time(1, 2), "01:02:00"),
        (datetime.timedelta, datetime.timedelta(days=1), "P1D"),
        (decimal.Decimal, decimal.Decimal("12345678901234567890.12"), "12345678901234567890.12"),
        (uuid.UUID, uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour, Colour.RED, "red"),
        (Point, Point(1, 2), {"x": 1, "y": 2}),
        (Person, {"name": "n", "home": {"city": "c"}}, {"name": "n", "home": {"city": "c"}}),
        (int | None, None, None),
        (tuple[int, str], (1, "x"), [1, "x"]),
        (None, None, None),
        (bytes, b"abc", "abc"),
        (Literal["a"], "a", "a"),
    ],
)
async def test_each_type_comes_out_as_its_schema_says(annotation: Any, value: Any, as_json: Any) -> None:
    async def f() -> Any:
        return value

    f.__annotations__["return"] = annotation
    definition = tool(f)
    result = await call(definition)
    assert result == as_json
    assert validate_output(definition, result) == []


@pytest.mark.anyio
async def test_a_result_that_does_not_fit_is_found_by_the_output_schema() -> None:
    @tool
    async def f() -> list[int]:
        return ["x"]  # pyright: ignore[reportReturnType]

    assert validate_output(f, await call(f)) == ['"value[0]" must be an integer']

    @tool
    async def g() -> None:
        return 3  # pyright: ignore[reportReturnType]

    assert validate_output(g, await call(g)) == ['"value" must be null']


@pytest.mark.anyio
async def test_a_result_without_a_json_form_is_an_output_error() -> None:
    @tool
    async def f() -> list[object]:
        return [object()]

    with pytest.raises(ToolOutputError) as caught:
        await f.execute({}, RUN)
    assert str(caught.value).startswith('tool "f" returned invalid output: "value" cannot be turned into JSON: ')


@pytest.mark.anyio
async def test_without_a_return_annotation_any_json_is_returned_as_it_is() -> None:
    marker = datetime.date(2024, 1, 1)

    @tool
    async def f():
        return marker

    @tool
    async def g() -> Any:
        return marker

    for definition in (f, g):
        assert definition.output.schema == {}
        assert not definition.output.raw
        assert await definition.execute({}, RUN) is marker


@pytest.mark.anyio
async def test_what_the_function_raises_comes_out_as_it_is() -> None:
    error = KeyError("mine")

    @tool
    async def f() -> int:
        raise error

    with pytest.raises(KeyError) as caught:
        await f.execute({}, RUN)
    assert caught.value is error


@pytest.mark.anyio
async def test_classes_of_the_enclosing_function_are_found() -> None:
    class Local(pydantic.BaseModel):
        n: int

    @tool
    async def plain(value: Local) -> Local:
        return value

    @tool(name="other")
    async def called(value: list[Local]) -> int:
        return len(value)

    assert await call(plain, value={"n": 1}) == {"n": 1}
    assert await call(called, value=[{"n": 1}]) == 1


@pytest.mark.anyio
async def test_both_kinds_of_typed_dict_work_on_every_python() -> None:
    class Base(TypedDict):
        a: int

    class Derived(Base, total=False):
        b: typing.Required[str]
        c: float

    class Newer(typing_extensions.TypedDict):
        d: typing_extensions.NotRequired[int]

    @tool
    async def f(
        one: Derived, many: list[Derived | None], newer: dict[str, Newer], maybe: Base | None = None
    ) -> Derived:
        return one

    one = {"a": 1, "b": "x"}
    assert await call(f, one=one, many=[one, None], newer={"k": {}}) == one
    assert f.parameters["$defs"]["Derived"]["required"] == ["a", "b"]
    assert await refused(f, {"one": {"a": 1}, "many": [{"b": "x", "c": "y"}], "newer": {"k": {"d": "x"}}}) == (
        'missing required property "one.b"',
        'missing required property "many[0].a"',
        '"many[0].c" should be a valid number, unable to parse string as a number',
        '"newer.k.d" should be a valid integer, unable to parse string as an integer',
    )


@pytest.mark.anyio
async def test_a_bound_method_may_be_a_tool() -> None:
    class Service:
        async def look(self, n: int) -> int:
            """Look."""
            return n + 1

    definition = tool(Service().look)
    assert definition.name == "look"
    assert list(definition.parameters["properties"]) == ["n"]
    assert await call(definition, n=1) == 2
    with pytest.raises(TypeError, match=r"tool\(look\): parameter self has no annotation"):
        tool(Service.look)


def test_functions_that_are_not_asynchronous_are_refused_with_the_advice() -> None:
    def sync(n: int) -> int:
        return n

    async def generator(n: int) -> typing.AsyncIterator[int]:
        yield n

    untyped: Any = tool
    with pytest.raises(TypeError, match=r"tool\(sync\): .*write `async def sync`"):
        untyped(sync)
    with pytest.raises(TypeError, match=r"tool\(sync\): .*write `async def sync`"):
        untyped(name="x")(sync)
    with pytest.raises(TypeError, match=r"tool\(generator\): the function yields"):
        untyped(generator)
    for wrong in (5, "text", Point):
        with pytest.raises(TypeError, match="decorate an `async def` function"):
            untyped(wrong)


def test_annotations_that_say_nothing_are_told_with_function_and_parameter() -> None:
    class NoSchema:
        pass

    async def unannotated(a: int, b): ...

    async def starred(*items: int): ...

    async def keywords(**items: int): ...

    async def forward(a: Elsewhere): ...

    async def returning() -> Elsewhere: ...  # pyright: ignore[reportReturnType]

    async def foreign(ok: int, bad: list[NoSchema]): ...

    async def foreign_return() -> NoSchema: ...  # pyright: ignore[reportReturnType]

    async def pattern(ok: int, bad: Annotated[str, pydantic.Field(pattern="(")]): ...

    async def two_runs(a: ToolRunContext, b: ToolRunContext): ...

    for function, told in (
        (unannotated, "parameter b has no annotation"),
        (starred, r"parameter \*items takes any arguments"),
        (keywords, r"parameter \*\*items takes any arguments"),
        (forward, "parameter a: its annotation 'Elsewhere' cannot be resolved: name 'Elsewhere' is not defined"),
        (returning, "the return annotation 'Elsewhere' cannot be resolved"),
        (foreign, "parameter bad: no schema can be made of its annotation"),
        (foreign_return, "no schema can be made of the return annotation"),
        (pattern, "parameter bad: no schema can be made of its annotation: .*regex"),
        (two_runs, "one parameter, not positional-only, may receive the run; b cannot"),
    ):
        with pytest.raises(TypeError, match=rf"^tool\({function.__name__}\): {told}") as caught:
            tool(cast("Any", function))
        assert "errors.pydantic.dev" not in str(caught.value)


@pytest.mark.anyio
async def test_a_default_that_is_no_json_is_left_out_of_the_schema() -> None:
    marker = object()

    @tool
    async def f(a: Any = marker) -> bool:
        return a is marker

    assert f.parameters["properties"] == {"a": {}}
    assert await call(f) is True


@pytest.mark.contract("B5")
@pytest.mark.anyio
async def test_deep_arguments_and_results_work() -> None:
    @tool
    async def anything(value: JsonValue) -> JsonValue:
        return value

    @tool
    async def tree(value: Tree) -> Tree:
        return value

    @tool
    async def items(value: list[Any]) -> list[Any]:
        return value

    for levels in (10, 200):
        nested: Any = []
        kids: Any = {"kids": []}
        for _ in range(levels):
            nested = [nested]
            kids = {"kids": [kids]}
        for definition, value in (
            (anything, nested),
            (items, nested),
            (tree, kids),
        ):
            result = await call(definition, value=value)
            assert json_module.dumps(result) == json_module.dumps(value)
            assert validate_output(definition, result) == []


@pytest.mark.contract("B5")
@pytest.mark.anyio
async def test_a_result_that_is_too_deep_is_an_output_error() -> None:
    nested: Any = []
    for _ in range(600):
        nested = [nested]

    @tool
    async def f() -> list[Any]:
        return nested

    with pytest.raises(ToolOutputError, match="cannot be turned into JSON"):
        await f.execute({}, RUN)
