"""Whatever a provider sends, an adapter reads it or says what is wrong with it; nothing else comes out."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptc.runtime.providers import ProviderResponseError, anthropic, gemini, openai_chat, openai_responses

from .test_recordings import recorded

READERS: dict[str, list[Any]] = {
    "anthropic_messages": [anthropic.calls, anthropic.reply],
    "anthropic_hosted": [anthropic.hosted_step, anthropic.reply],
    "openai_responses_items": [openai_responses.calls, openai_responses.reply],
    "openai_hosted": [openai_responses.hosted_step, openai_responses.reply],
    "openai_chat_messages": [openai_chat.calls, openai_chat.reply],
    "gemini_contents": [gemini.calls, gemini.reply],
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the path of every member of a JSON value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [one for key, inner in members for one in ((*path, key), *places(inner, (*path, key)))]


@pytest.mark.parametrize("name", sorted(READERS))
@given(data=st.data())
def test_a_response_with_something_else_somewhere(name: str, data: st.DataObject) -> None:
    response = copy.deepcopy(data.draw(st.sampled_from(recorded(name)))["response"])
    *way, last = data.draw(st.sampled_from(places(response)))
    at = response
    for key in way:
        at = at[key]
    if data.draw(st.booleans()):
        del at[last]
    else:
        at[last] = data.draw(JSON)
    for read in READERS[name]:
        where = "message"
        try:
            read(response)
        except ProviderResponseError as told:
            where = str(told).partition(" ")[0]
        assert where.startswith(("message", "response", "completion"))


@pytest.mark.parametrize("name", sorted(READERS))
@given(garbage=JSON)
def test_a_response_that_is_something_else(name: str, garbage: Any) -> None:
    for read in READERS[name]:
        with pytest.raises(ProviderResponseError):
            read(garbage)
