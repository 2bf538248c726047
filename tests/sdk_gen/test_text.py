"""Escaping: whatever goes in, one visible line comes out, and literals read back as they were."""

from __future__ import annotations

import ast
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptc.sdk_gen.text import comment_text, docstring_text, is_json, quoted, scalar_text, value_text

ANY_TEXT = st.text(st.characters(codec=None, categories=None)) | st.text(
    st.sampled_from('"\\\n\r\t\0\x7f\x85\u2028\ufeff\ud800\u202e N{}x4u')
)


@given(ANY_TEXT)
def test_comments_stay_on_their_line(text):
    line = comment_text(text)
    line.encode("utf-8")
    assert line == line.strip(" ")
    assert not any(ord(char) < 32 or 0x7F <= ord(char) <= 0x9F or char in "\u2028\u2029\u202e" for char in line)
    assert ast.parse(f"# {line}\nx = 1").body[0].lineno == 2


@given(ANY_TEXT)
def test_docstrings_read_back_as_the_visible_line(text):
    assert ast.literal_eval(f'"""{docstring_text(text)}"""') == comment_text(text)


@given(ANY_TEXT)
def test_string_literals_read_back_exactly(text):
    source = quoted(text)
    source.encode("utf-8")
    assert "\n" not in source
    assert ast.literal_eval(source) == text


@given(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_scalars_read_back_exactly(value):
    read = ast.literal_eval(scalar_text(value))
    assert (type(read), read) == (type(value), value)


def test_negative_zero_keeps_its_sign():
    assert math.copysign(1, ast.literal_eval(scalar_text(-0.0))) == -1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    )
)
def test_values_fit_into_a_comment(value):
    text = value_text(value, max_chars=60)
    assert len(text) <= 60
    assert "\n" not in text


@pytest.mark.parametrize("value", [math.nan, [math.inf], {1: 2}, {"a": {1}}, b"", (object(),)])
def test_values_that_are_not_json(value):
    assert not is_json(value)


def test_json_may_be_deep_shared_or_circular_without_harm():
    deep: list = []
    for _ in range(100_000):
        deep = [deep, deep]
    assert is_json(deep)
    circular: list = []
    circular.append(circular)
    assert is_json(circular)
    assert value_text(circular) == "[[[[...]]]]"


@pytest.mark.contract("G22")
@pytest.mark.parametrize(
    "hidden",
    "\u00ad\u034f\u115f\u17b5\u180e\u200b\u2062\u2800\u3164\ufe0d\uffa0"
    "\U0001bca0\U0001d173\U000e0001\U000e0041\U000e0100\U000e01ef\U000e0fff",
)
def test_what_nobody_sees_is_escaped(hidden):
    assert hidden not in comment_text(f"pay{hidden}load")
    assert hidden not in quoted(f"pay{hidden}load")
    assert ast.literal_eval(quoted(hidden)) == hidden


def test_what_words_and_emoji_need_stays():
    for text in ("❤️", "☎︎", "👩‍💻", "می‌خواهم", "क्‍ष"):
        assert comment_text(text) == text
