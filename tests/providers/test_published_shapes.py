"""The check against published types can fail: on what a slip in an adapter would make."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from .published_shapes import problems, unknown_keys

RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x"}]}


def request(result: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [result]}], **more}


def test_what_fits_has_no_problems() -> None:
    assert problems(request(RESULT), MessageCreateParamsNonStreaming) == []


@pytest.mark.parametrize(
    "wrong",
    [
        request({**RESULT, "isError": True}),
        request({**RESULT, "is_error": "yes"}),
        request({"type": "tool_result", "content": "x"}),
        request({**RESULT, "content": [{"type": "picture"}]}),
        request({**RESULT, "content": [{"type": "image", "source": {"type": "base64", "data": "A"}}]}),
        request(RESULT, tools=[{"name": "x"}]),
        request(RESULT, system=[{"type": "text"}]),
        request(RESULT, max_token=1),
    ],
)
def test_a_slip_is_a_problem(wrong: dict[str, Any]) -> None:
    assert problems(wrong, MessageCreateParamsNonStreaming) != []


def test_a_key_that_a_response_does_not_have_is_found() -> None:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": "m", "type": "message", "role": "assistant", "model": "claude-opus-4-7", "stop_reason": "end_turn",
        "stop_sequence": None, "usage": usage, "content": [{"type": "text", "text": "x", "citations": None, "txt": 1}],
    }  # fmt: skip
    assert unknown_keys(Message.model_validate(message)) == [".content[0].txt"]
