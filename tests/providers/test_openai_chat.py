"""OpenAI's Chat Completions: what an agent's tools, calls and results are there."""

from __future__ import annotations

from typing import Any

import ptc
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from ptc.runtime.providers import ProviderResponseError, openai_chat

from .conftest import batch, failure, image, success
from .published_shapes import problems


def completion(finish: str = "tool_calls", **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": None, "refusal": None, **message}
    choice = {"index": 0, "finish_reason": finish, "logprobs": None, "message": said}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-5.6-terra", "choices": [choice]}


def call(call_id: str = "c1", name: str = "run_code", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def fits(messages: list[Any]) -> bool:
    return [problems(message, ChatCompletionMessageParam) for message in messages] == [[]] * len(messages)


def test_the_agents_text_is_the_first_message(description: ptc.AgentDescription) -> None:
    assert openai_chat.system(description) == [{"role": "system", "content": "The tools are these."}]
    assert openai_chat.system(description, role="developer")[0]["role"] == "developer"
    assert fits(openai_chat.system(description))
    assert openai_chat.system(description._replace(prompt="")) == []


def test_tools_are_functions_that_are_not_strict(description: ptc.AgentDescription) -> None:
    (tool,) = openai_chat.tools(description)
    assert problems(tool, ChatCompletionFunctionToolParam) == []
    function: Any = tool["function"]
    assert (function["name"], function["strict"]) == ("run_code", False)
    assert function["parameters"] == description.schemas[0].parameters
    odd = ptc.ToolSchema(name="ä", description="", parameters={})
    with pytest.raises(ValueError, match="OpenAI takes no tool of the name 'ä'"):
        openai_chat.tools(description._replace(schemas=[odd]))


@pytest.mark.parametrize("text", ['{"n": 1}', "", "{bad", "[1]"])
def test_arguments_are_the_models_own_text(text: str) -> None:
    said = completion(tool_calls=[call("a", "one", text), call("b", "two")])
    expected = [
        ptc.ToolCall(name="one", arguments=text, call_id="a"),
        ptc.ToolCall(name="two", arguments="{}", call_id="b"),
    ]
    assert openai_chat.calls(said) == expected
    assert openai_chat.calls(ChatCompletion.model_validate(said)) == expected


def test_a_message_without_calls_has_none() -> None:
    assert openai_chat.calls(completion("stop", content="x")) == []
    assert openai_chat.calls(completion("stop", content="x", tool_calls=None)) == []


def test_custom_tools_are_not_the_agents() -> None:
    custom = {"id": "x", "type": "custom", "custom": {"name": "grammar", "input": "1"}}
    assert openai_chat.calls(completion(tool_calls=[custom])) == []


def test_the_models_message_goes_back_without_what_the_api_does_not_take() -> None:
    spoken = {"id": "audio_1", "data": "AAAA", "expires_at": 1, "transcript": "x"}
    said = completion(tool_calls=[call("a")], annotations=[], audio=spoken)
    (message,) = openai_chat.reply(said)
    assert fits([message])
    assert message["tool_calls"] == [call("a")]
    assert message["audio"] == {"id": "audio_1"}
    # What other servers say beside, for example of the model's thoughts, stays.
    assert openai_chat.reply(completion(reasoning_content="hm"))[0]["reasoning_content"] == "hm"


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_call_that_may_be_cut_off_is_not_executed(finish: str) -> None:
    with pytest.raises(ProviderResponseError, match=f"{finish!r}: the last call, of tool 'run_code'"):
        openai_chat.calls(completion(finish, tool_calls=[call("a")]))
    assert openai_chat.calls(completion(finish, content="An")) == []


def test_results_are_tool_messages_and_images_follow() -> None:
    said = completion(tool_calls=[call("a"), call("b"), call("c")])
    done = batch(
        success(ptc.text_block("one"), image(), call_id="a"),
        failure(ptc.text_block("Error: no"), call_id="b"),
        success(image("image/bmp"), image("image/gif"), call_id="c"),
    )
    messages = openai_chat.results(said, done)
    assert fits(messages)
    assert [(one["role"], one.get("tool_call_id"), one["content"]) for one in messages[:3]] == [
        ("tool", "a", "one"),
        ("tool", "b", "Error: no"),
        ("tool", "c", "[an image of type image/bmp, some 3 bytes, which cannot be shown]"),
    ]
    assert messages[3:] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Images that call a of run_code has returned:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "text", "text": "Images that call c of run_code has returned:"},
                {"type": "image_url", "image_url": {"url": "data:image/gif;base64,AAAA"}},
            ],
        }
    ]


def test_further_messages_follow_the_results() -> None:
    note = ptc.ContextMessage(content=[ptc.text_block("note")], source={"kind": "plugin"}, role="system")
    shown = ptc.ContextMessage(content=[ptc.text_block("see"), image()], source={"kind": "plugin"}, role="system")
    said = completion(tool_calls=[call("a")])
    messages = openai_chat.results(said, batch(success(call_id="a"), contexts=[note, shown]))
    assert fits(messages)
    assert [one["role"] for one in messages] == ["tool", "system", "user"]
    assert messages[1]["content"] == "note"


def test_calls_of_one_id_are_answered_in_order() -> None:
    said = completion(tool_calls=[call("call_0"), call("call_0")])
    done = batch(success(ptc.text_block("one"), call_id="call_0"), success(ptc.text_block("two"), call_id="call_0"))
    assert [one["content"] for one in openai_chat.results(said, done)] == ["one", "two"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, r"completion\.choices is missing"),
        ({"choices": []}, r"completion\.choices is empty"),
        ({"choices": [{}]}, r"completion\.choices\[0\]\.message is missing"),
        (completion(tool_calls={}), r"completion\.choices\[0\]\.message\.tool_calls must be an array"),
        (completion(tool_calls=[{"id": "x"}]), r"tool_calls\[0\]\.function is missing"),
        (completion(tool_calls=[{"function": {"name": "x"}}]), r"tool_calls\[0\]\.id is missing"),
        (completion(function_call={"name": "x", "arguments": ""}), "offer `tools` instead"),
        (7, "response must be the provider's JSON object"),
    ],
)
def test_what_is_no_completion_is_told_with_its_place(said: Any, told: str) -> None:
    with pytest.raises(ProviderResponseError, match=told):
        openai_chat.calls(said)
