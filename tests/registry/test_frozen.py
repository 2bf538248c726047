"""Frozen containers: what they refuse, and what they still are to every reader."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from ptc.registry.lossless import MAX_DEPTH, FrozenDict, FrozenList, LosslessError, freeze, is_frozen, materialise, thaw

if TYPE_CHECKING:
    from collections.abc import Callable

DICT_CHANGES: list[Callable[[Any], Any]] = [
    lambda d: d.__setitem__("a", 1),
    lambda d: d.__delitem__("a"),
    lambda d: d.__ior__({"b": 1}),
    lambda d: d.update(b=1),
    lambda d: d.setdefault("b", 1),
    lambda d: d.pop("a"),
    lambda d: d.popitem(),
    lambda d: d.clear(),
    lambda d: d.__init__(b=1),
]
LIST_CHANGES: list[Callable[[Any], Any]] = [
    lambda x: x.__setitem__(0, 1),
    lambda x: x.__setitem__(slice(0, 1), []),
    lambda x: x.__delitem__(0),
    lambda x: x.__iadd__([1]),
    lambda x: x.__imul__(2),
    lambda x: x.append(1),
    lambda x: x.extend([1]),
    lambda x: x.insert(0, 1),
    lambda x: x.remove(1),
    lambda x: x.pop(),
    lambda x: x.clear(),
    lambda x: x.sort(),
    lambda x: x.reverse(),
    lambda x: x.__init__([3]),
]


@pytest.mark.contract("C6")
@pytest.mark.parametrize("change", DICT_CHANGES)
def test_a_frozen_object_refuses_every_change(change: Callable[[Any], Any]) -> None:
    frozen = materialise({"a": 1})
    with pytest.raises(TypeError, match=r"frozen.*dict\(value\)"):
        change(frozen)
    assert frozen == {"a": 1}


@pytest.mark.contract("C6")
@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_frozen_array_refuses_every_change(change: Callable[[Any], Any]) -> None:
    frozen = materialise([1, 2])
    with pytest.raises(TypeError, match=r"frozen.*list\(value\)"):
        change(frozen)
    assert frozen == [1, 2]


def test_no_method_that_changes_a_container_is_forgotten() -> None:
    readers = set(dir(object)) | {
        "__class_getitem__",
        "__contains__",
        "__getitem__",
        "__iter__",
        "__len__",
        "__reversed__",
        "__or__",
        "__ror__",
        "__add__",
        "__mul__",
        "__rmul__",
        "copy",
        "fromkeys",
        "get",
        "items",
        "keys",
        "values",
        "count",
        "index",
    }
    for plain, frozen in ((dict, FrozenDict), (list, FrozenList)):
        forgotten = [
            name for name in dir(plain) if name not in readers and getattr(frozen, name) is getattr(plain, name)
        ]
        assert forgotten == []


@pytest.mark.parametrize(
    "make", [lambda: FrozenDict({"a": []}), lambda: FrozenList([[]]), lambda: FrozenDict.fromkeys("a")]
)
def test_nobody_else_makes_one(make: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="frozen"):
        make()


@pytest.mark.contract("C6")
def test_everything_inside_is_frozen_and_detached() -> None:
    inner = {"c": [1]}
    source = {"a": [inner], "b": (1, 2)}
    frozen: Any = materialise(source)
    inner["c"].append(2)
    assert frozen == {"a": [{"c": [1]}], "b": [1, 2]}
    assert is_frozen(frozen["a"])
    assert is_frozen(frozen["a"][0])
    assert is_frozen(frozen["b"])
    assert source["a"] == [{"c": [1, 2]}]


def test_a_frozen_value_is_returned_as_it_is() -> None:
    frozen: Any = materialise({"a": [1]})
    assert materialise(frozen) is frozen
    assert freeze(frozen) is frozen
    assert freeze(frozen["a"]) is frozen["a"]


def test_wrapping_frozen_values_cannot_hide_depth() -> None:
    value: Any = materialise([])
    for _ in range(MAX_DEPTH - 1):
        value = materialise([value])
    with pytest.raises(LosslessError, match="nested deeper"):
        materialise([value])


def test_readers_take_it_for_what_it_is() -> None:
    frozen: Any = materialise({"a": [1, {"b": None}]})
    assert json.dumps(frozen) == '{"a": [1, {"b": null}]}'
    assert json.dumps(frozen, indent=1) == json.dumps({"a": [1, {"b": None}]}, indent=1)
    assert repr(frozen) == "{'a': [1, {'b': None}]}"
    match frozen:
        case {"a": [1, {"b": None}]}:
            matched = True
        case _:
            matched = False
    assert matched
    assert isinstance(frozen, dict)


@pytest.mark.parametrize(
    "make",
    [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v)), lambda v: v.copy(), thaw],
    ids=["copy", "deepcopy", "pickle", "method", "thaw"],
)
def test_copies_are_plain(make: Callable[[Any], Any]) -> None:
    for value in ({"a": [1]}, [[1]]):
        copied = make(materialise(value))
        assert type(copied) is type(value)
        assert copied == value


@pytest.mark.parametrize("make", [copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v)), thaw])
def test_deep_copies_are_plain_all_the_way(make: Callable[[Any], Any]) -> None:
    copied = make(materialise({"a": [{"b": [1]}]}))
    assert type(copied["a"]) is list
    assert type(copied["a"][0]) is dict
    copied["a"][0]["b"].append(2)


def test_a_deep_copy_of_a_deep_value_works() -> None:
    value: Any = []
    for _ in range(499):
        value = [value]
    assert type(copy.deepcopy(materialise(value))) is list


def test_slices_and_sums_are_plain() -> None:
    frozen: Any = materialise([1, 2, 3])
    assert type(frozen[:2]) is list
    assert type([*frozen, 4]) is list
    merged: Any = materialise({"a": 1})
    assert type(merged | {"b": 2}) is dict
