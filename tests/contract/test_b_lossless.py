"""Lossless JSON, the shared primitive: B1 to B7, B63 to B65, with rulings 13, 31, 33 and 34."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import types
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from ptc.registry.lossless import (
    MAX_DEPTH,
    MAX_INT_DIGITS,
    FrozenDict,
    FrozenList,
    LosslessError,
    freeze,
    from_json_text,
    is_lossless,
    materialise,
    same_json,
    snapshot,
    thaw,
    to_json_text,
)
from ptc.registry.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Plain(enum.Enum):
    ONE = 1


class Point(NamedTuple):
    x: int
    y: int


class Text(str):
    """A subclass that would answer something else if it were asked."""

    def __str__(self) -> str:
        return "not this"


@dataclasses.dataclass
class Record:
    x: int


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {}


def nested_list(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def nested_dict(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def depth_of(value: Any) -> int:
    levels = 0
    while isinstance(value, (dict, list)):
        levels += 1
        value = next(iter(value.values() if isinstance(value, dict) else value), None)
    return levels


def refusal(value: object, root: str = "value") -> LosslessError:
    with pytest.raises(LosslessError) as caught:
        snapshot(value, root=root)
    return caught.value


BOTH = pytest.mark.parametrize("take", [snapshot, materialise], ids=["snapshot", "materialise"])


@pytest.mark.contract("B1")
@BOTH
@pytest.mark.parametrize(
    "value",
    [
        None, True, False, "", "text", "Zürich 😀", 0, -1, 2**80, -(10**400), 1.5, 1e308, 5e-324,
        [], {}, [1, "a", None], {"a": [True, {"b": 0.25}]},
    ],
)  # fmt: skip
def test_plain_json_is_taken_as_it_is(take: Callable[[object], Any], value: Any) -> None:
    taken = take(value)
    assert same_json(taken, value)
    assert json.dumps(taken) == json.dumps(value)


@pytest.mark.contract("B1", "B2", "B29")
@BOTH
def test_minus_zero_is_kept(take: Callable[[object], Any]) -> None:
    for value in (-0.0, [-0.0], {"a": -0.0}):
        taken = take(value)
        zero = taken if isinstance(taken, float) else next(iter(taken.values() if isinstance(taken, dict) else taken))
        assert math.copysign(1, zero) == -1
    assert to_json_text(take([-0.0])) == "[-0.0]"


@pytest.mark.contract("B1", "B2", "B64")
@BOTH
@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.defaultdict(list, {"k": [1]}), {"k": [1]}),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        ((1, (2, 3)), [1, [2, 3]]),
        (Point(1, 2), [1, 2]),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        ({Colour.RED: Level.HIGH}, {"red": 3}),
        (Text("kept"), "kept"),
        ({"deep": [({"t": (Colour.RED,)},)]}, {"deep": [[{"t": ["red"]}]]}),
    ],
)
def test_subclasses_tuples_and_enum_members_become_plain(
    take: Callable[[object], Any], value: object, plain: Any
) -> None:
    taken = take(value)
    assert taken == plain
    assert json.dumps(taken) == json.dumps(plain)
    kinds = {FrozenDict, FrozenList} if take is materialise else {dict, list}
    waiting = [taken]
    while waiting:
        item = waiting.pop()
        assert type(item) in kinds | {str, int}
        if isinstance(item, dict):
            assert all(type(key) is str for key in item)
        waiting.extend(item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())


@pytest.mark.contract("B2", "B64")
@BOTH
@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ({1, 2}, "sorted(...)"),
        (frozenset("a"), "sorted(...)"),
        (b"x", ".decode()"),
        (bytearray(b"x"), ".decode()"),
        (decimal.Decimal("1.5"), "str(...)"),
        (datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), ".isoformat()"),
        (datetime.date(2024, 1, 1), ".isoformat()"),
        (datetime.time(1), ".isoformat()"),
        (datetime.timedelta(1), ".total_seconds()"),
        (uuid.UUID(int=0), "str(...)"),
        (pathlib.PurePosixPath("a"), "str(...)"),
        (1j, "str(...)"),
        (ValueError("x"), "str(...)"),
        (Plain.ONE, ".value"),
        (Record(1), "dataclasses.asdict(...)"),
        (Model(), '.model_dump(mode="json")'),
        (types.MappingProxyType({"a": 1}), "dict(...)"),
        (collections.deque([1]), "list(...)"),
        (range(3), "list(...)"),
        ({}.keys(), "sorted(...)"),
        (iter([1]), "list(...)"),
        (object(), "str(...)"),
        (print, "call it"),
        (int, "call it"),
        (MISSING, "None for JSON null"),
    ],
)
def test_what_json_does_not_have_is_refused_with_its_path_and_the_way_out(
    take: Callable[[object], Any], value: object, hint: str
) -> None:
    for wrapped, path in ((value, "value"), ({"rows": [1, {"when": value}]}, "value.rows[1].when")):
        with pytest.raises(LosslessError) as caught:
            take(wrapped)
        assert caught.value.path == path
        assert hint in caught.value.hint
        assert str(caught.value).startswith(f"{path} ")
        assert str(caught.value).endswith(caught.value.hint)
    assert not is_lossless(value)


@pytest.mark.contract("B2", "B64")
def test_a_pending_coroutine_is_refused_with_await() -> None:
    async def body() -> int:
        return 1

    pending = body()
    try:
        assert "await" in refusal({"x": pending}).hint
    finally:
        pending.close()


@pytest.mark.contract("B2", "B63")
@BOTH
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(take: Callable[[object], Any], number: float) -> None:
    for value, path in ((number, "value"), ([0, number], "value[1]"), ({"a": {"b": number}}, "value.a.b")):
        with pytest.raises(LosslessError) as caught:
            take(value)
        assert caught.value.path == path
        assert "finite" in caught.value.problem


@pytest.mark.contract("B2")
@BOTH
@pytest.mark.parametrize("key", [1, True, None, 1.5, (1,), b"k"])
def test_a_key_that_is_not_text_is_refused(take: Callable[[object], Any], key: object) -> None:
    with pytest.raises(LosslessError) as caught:
        take({"outer": {"ok": 1, key: 2}})
    assert caught.value.path == "value.outer"
    assert "str(key)" in caught.value.hint


@pytest.mark.contract("B2")
def test_two_keys_of_one_spelling_are_refused() -> None:
    class Odd(str):
        __slots__ = ()

        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            return self is other

    assert "two keys" in refusal({Odd("a"): 1, Odd("a"): 2}).problem


@pytest.mark.contract("B65", "B1")
@BOTH
@pytest.mark.parametrize("half", ["\ud800", "x\udfffy", "\ud83d\ude00"])
def test_lone_surrogates_are_refused_in_texts_and_keys(take: Callable[[object], Any], half: str) -> None:
    for value, path in (
        (half, "value"),
        (["a", half], "value[1]"),
        ({"a": "a", "k": half}, "value.k"),
        ({"k": {half: 1}}, "value.k"),
        ((half,), "value[0]"),
    ):
        with pytest.raises(LosslessError) as caught:
            take(value)
        assert caught.value.path == path
        assert "surrogate" in caught.value.problem
        str(caught.value).encode()  # the message itself can be written anywhere


@pytest.mark.contract("B2", "B3")
@BOTH
def test_cycles_are_refused_and_shared_objects_are_copied(take: Callable[[object], Any]) -> None:
    loop: dict[str, Any] = {"a": [1]}
    loop["a"].append(loop)
    with pytest.raises(LosslessError, match="contains itself") as caught:
        take(loop)
    assert caught.value.path == "value.a[1]"
    shared = {"n": [1]}
    taken = take([shared, {"again": shared}, shared])
    assert taken == [{"n": [1]}, {"again": {"n": [1]}}, {"n": [1]}]
    assert taken[0] is not taken[2]
    assert taken[0]["n"] is not taken[1]["again"]["n"]
    assert taken[0] is not shared


@pytest.mark.contract("B3")
@BOTH
def test_a_shared_object_that_explodes_is_refused(take: Callable[[object], Any], monkeypatch: Any) -> None:
    monkeypatch.setattr("ptc.registry.lossless.MAX_VALUES", 10_000)
    for levels in (30, 100):
        value: Any = [1]
        for _ in range(levels):
            value = [value, value]
        with pytest.raises(LosslessError, match="holds more than"):
            take({"x": value})


@pytest.mark.contract("B4")
@BOTH
def test_each_member_is_read_once_and_what_reading_raises_comes_out(take: Callable[[object], Any]) -> None:
    reads: list[str] = []

    class Watched(dict[str, Any]):
        def items(self) -> Any:
            reads.append("items")
            return super().items()

    class Failing(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            yield 1
            raise KeyError("from inside")

    assert take({"w": Watched(a=1)}) == {"w": {"a": 1}}
    assert reads == ["items"]
    with pytest.raises(KeyError, match="from inside"):
        take({"f": Failing([1, 2])})


@pytest.mark.contract("B4")
def test_conversion_methods_are_ignored() -> None:
    class Convertible(dict[str, Any]):
        def to_json(self) -> str:
            raise AssertionError

        __json__ = to_json

    assert snapshot(Convertible(a=1)) == {"a": 1}


@pytest.mark.contract("B5")
@BOTH
@pytest.mark.parametrize("levels", [1, 33, 65, 200, MAX_DEPTH])
@pytest.mark.parametrize("make", [nested_list, nested_dict])
def test_nesting_up_to_the_limit_works(take: Callable[[object], Any], make: Callable[[int], Any], levels: int) -> None:
    taken = take(make(levels))
    assert depth_of(taken) == levels
    assert depth_of(thaw(taken)) == levels
    assert depth_of(freeze(taken)) == levels
    assert same_json(taken, make(levels))


@pytest.mark.contract("B5")
@pytest.mark.parametrize("levels", [1, 200])
def test_deep_values_become_text_and_come_back(levels: int) -> None:
    value = nested_dict(levels)
    assert depth_of(from_json_text(to_json_text(value))) == levels


@pytest.mark.contract("B5")
@BOTH
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 1_000, 100_000])
@pytest.mark.parametrize("make", [nested_list, nested_dict])
def test_deeper_nesting_is_refused_clearly(
    take: Callable[[object], Any], make: Callable[[int], Any], levels: int
) -> None:
    with pytest.raises(LosslessError, match=f"nested deeper than {MAX_DEPTH} levels") as caught:
        take(make(levels))
    assert len(str(caught.value)) < 400


@pytest.mark.contract("B5", "B63")
def test_text_that_is_too_deep_is_refused_clearly() -> None:
    for levels in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(LosslessError, match="nested deeper"):
            from_json_text("[" * levels + "]" * levels)
    deep: Any = nested_list(100_000)
    with pytest.raises(LosslessError, match="nested deeper"):
        to_json_text(deep)


@pytest.mark.contract("B6", "B7")
@BOTH
def test_odd_names_are_ordinary_and_order_is_kept(take: Callable[[object], Any]) -> None:
    value = {"z": 1, "__proto__": {"constructor": 2}, "toString": 3, "__class__": 4, "": 5, "a": 6, "keys": 7}
    taken = take(value)
    assert list(taken) == list(value)
    assert taken == value
    assert taken.keys() == value.keys()


@pytest.mark.contract("B7")
def test_a_refusal_says_where_and_whether_the_root_is_the_arguments() -> None:
    assert refusal(b"x", root="").path == "arguments"
    assert refusal({"a": b"x"}, root="").path == "a"
    assert refusal([b"x"], root="").path == "[0]"
    assert refusal({"a": b"x"}, root="schema").path == "schema.a"
    assert is_lossless({"a": 1})


@pytest.mark.contract("B1")
def test_integers_are_exact_up_to_what_text_can_carry() -> None:
    largest = 10**MAX_INT_DIGITS - 1
    assert from_json_text(to_json_text([largest, -largest])) == [largest, -largest]
    for value in (largest + 1, [largest + 1], {"n": -largest - 1}):
        assert f"more than {MAX_INT_DIGITS} digits" in refusal(value).problem
    with pytest.raises(LosslessError, match="digits"):
        from_json_text("9" * (MAX_INT_DIGITS + 1))


@pytest.mark.contract("B63")
def test_text_follows_ordinary_json_parsing() -> None:
    parsed = from_json_text('{"a": 1, "b": 2, "a": 3}')
    assert parsed == {"a": 3, "b": 2}
    assert isinstance(parsed, dict)
    assert list(parsed) == ["a", "b"]
    zero = from_json_text("-0.0")
    assert isinstance(zero, float)
    assert math.copysign(1, zero) == -1
    assert from_json_text("-0") == 0


@pytest.mark.contract("B63", "B65")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("1e400", "value"),
        ('{"a": [0, -1e999]}', "value.a[1]"),
        ('{"a": NaN}', "value.a"),
        ("[Infinity]", "value[0]"),
        ("-Infinity", "value"),
        ('["\\ud800"]', "value[0]"),
        ('{"x": {"\\udc00": 1}}', "value.x"),
    ],
)
def test_text_that_is_no_lossless_value_is_refused(text: str, path: str) -> None:
    with pytest.raises(LosslessError) as caught:
        from_json_text(text)
    assert caught.value.path == path


@pytest.mark.contract("B63")
@pytest.mark.parametrize("text", ["", "{", "nul", "{'a': 1}", "[1,]", "1 2"])
def test_text_that_is_not_json_is_a_decode_error_and_a_value_error(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        from_json_text(text)


@pytest.mark.contract("B65")
def test_escaped_pairs_are_whole_characters() -> None:
    assert from_json_text('"\\ud83d\\ude00"') == "😀"


@pytest.mark.contract("B36")
def test_comparison_is_strict_about_bools_and_open_about_number_kinds() -> None:
    assert same_json({"a": [1, "x", None]}, {"a": [1.0, "x", None]})
    assert same_json({"a": 1, "b": 2}, {"b": 2, "a": 1})
    for one, other in ((True, 1), (False, 0), ([True], [1.0]), ("1", 1), (None, False), ([], {}), ([1], [1, 2]),
                       ({"a": 1}, {"b": 1}), (2**53 + 1, float(2**53)), ("", None), ([[]], [{}])):  # fmt: skip
        assert not same_json(one, other)
        assert not same_json(other, one)


@pytest.mark.contract("B1")
def test_writing_what_is_not_json_names_the_place() -> None:
    bad: Any = {"a": {"b": math.nan}}
    with pytest.raises(LosslessError) as caught:
        to_json_text(bad)
    assert caught.value.path == "value.a.b"
