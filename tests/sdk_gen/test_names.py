"""Class names and the names that Python can spell."""

from __future__ import annotations

import keyword
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptc.sdk_gen.names import MAX_NAME_CHARS, ClassNames, camel, is_field_name, is_method_name, joined

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=30)


@given(ANY_TEXT, ANY_TEXT)
def test_class_names_are_always_identifiers_in_normal_form(first, second):
    name = joined(camel(first), camel(second))
    assert name.isidentifier()
    assert not keyword.iskeyword(camel(first)) or camel(first) in ("None", "True", "False")
    assert unicodedata.normalize("NFKC", name) == name


@given(st.lists(st.sampled_from(["A", "A2", "A3", "A22", "B", "C" * 119, "C" * 120, "C" * 130]), max_size=30))
def test_no_name_is_handed_out_twice(bases):
    names = ClassNames()
    given_out = [names.allocate(base) for base in bases]
    assert len(set(given_out)) == len(given_out)
    assert all(name.startswith(base[:MAX_NAME_CHARS]) for name, base in zip(given_out, bases, strict=True))


def test_numbers_resume_and_step_over_taken_names():
    names = ClassNames()
    assert [names.allocate(base) for base in ("A", "A2", "A", "A", "A2")] == ["A", "A2", "A3", "A4", "A22"]


@given(ANY_TEXT)
def test_names_that_python_can_spell_mean_themselves(name):
    if is_field_name(name):
        scope: dict = {}
        exec(f"class C:\n    {name}: int", scope)
        assert list(scope["C"].__annotations__) == [name]
    if is_method_name(name):
        assert is_field_name(name)


@pytest.mark.parametrize(
    ("name", "method"), [("list", True), ("match", True), ("_a", False), ("a-b", False), ("in", False)]
)
def test_method_names(name, method):
    assert is_method_name(name) is method


@pytest.mark.contract("G16", "G21")
@pytest.mark.parametrize("hidden", ["\u034f", "\u115f", "\u17b4", "\u180b", "\ufe00", "\U000e0100", "\U000e01ef"])
def test_a_name_with_characters_that_nobody_sees_is_none_that_python_can_spell(hidden):
    name = f"a{hidden}"
    assert name.isidentifier()
    assert not is_method_name(name)
    assert not is_field_name(name)
    assert camel(name) == "A"
