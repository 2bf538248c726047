"""Properties of lossless JSON on random values."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptc.registry.json_lines import to_indented_json
from ptc.registry.lossless import (
    LosslessError,
    from_json_text,
    is_lossless,
    materialise,
    same_json,
    snapshot,
    thaw,
    to_json_text,
)

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))
ANY_SCALAR = SCALARS | st.floats() | st.text(st.characters(), max_size=3) | st.binary(max_size=2)
ANYTHING = st.recursive(
    ANY_SCALAR,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXT | st.integers() | st.text(st.characters(), max_size=2), inner, max_size=3)
    ),
)


@given(JSON)
def test_a_snapshot_is_what_a_round_trip_through_json_gives(value: Any) -> None:
    taken = snapshot(value)
    assert json.dumps(taken) == json.dumps(json.loads(json.dumps(value, allow_nan=False)))
    assert json.dumps(materialise(value)) == json.dumps(taken)
    assert json.dumps(thaw(materialise(value))) == json.dumps(taken)


@given(JSON)
def test_text_comes_back_equal(value: Any) -> None:
    text = to_json_text(value)
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert same_json(from_json_text(text), value)
    text.encode()


@given(JSON)
def test_indented_text_is_what_json_writes(value: Any) -> None:
    assert to_indented_json(value) == json.dumps(value, indent=2, ensure_ascii=False)
    assert to_indented_json(materialise(value), indent=3) == json.dumps(value, indent=3, ensure_ascii=False)


@given(ANYTHING)
def test_what_is_taken_is_exactly_what_survives_a_round_trip(value: Any) -> None:
    def survives(item: Any) -> bool:
        match item:
            case dict():
                return all(isinstance(key, str) and survives(key) and survives(each) for key, each in item.items())
            case list() | tuple():
                return all(survives(each) for each in item)
            case str():
                return not any(0xD800 <= ord(character) <= 0xDFFF for character in item)
            case float():
                return math.isfinite(item)
            case bytes():
                return False
            case _:
                return True

    assert is_lossless(value) == survives(value)
    if survives(value):
        assert json.dumps(snapshot(value)) == json.dumps(value, allow_nan=False)
    else:
        with pytest.raises(LosslessError, match=r"^value"):
            materialise(value)


@given(JSON, JSON)
def test_comparison_agrees_with_the_text_of_numbers_apart(one: Any, other: Any) -> None:
    def marked(item: Any) -> Any:
        """Bools get a form of their own, so that ordinary equality tells them from numbers."""
        match item:
            case bool():
                return ("bool", item)
            case dict():
                return {key: marked(each) for key, each in item.items()}
            case list():
                return [marked(each) for each in item]
            case _:
                return item

    assert same_json(one, other) == (marked(one) == marked(other))
    assert same_json(one, snapshot(one))
