"""Anthropic's Messages: what an agent's tools, calls and results are there."""

from __future__ import annotations

from typing import Any

import ptc
import pytest
from anthropic.types import Message
from ptc.runtime.providers import HostedCall, HostedEnd, HostedProgram, ProviderResponseError, anthropic

from .conftest import batch, failure, image, success

USAGE = {"input_tokens": 1, "output_tokens": 1}


def message(*content: Any, stop: str = "tool_use") -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-7",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": USAGE,
    }


def use(call_id: str = "c1", name: str = "run_code", given: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if given is None else given, **more}


PROGRAM = {"type": "code_execution_20260120", "tool_id": "srv1"}


def test_the_agents_text_is_the_system_and_may_be_cached(description: ptc.AgentDescription) -> None:
    assert anthropic.system(description) == [{"type": "text", "text": "The tools are these."}]
    cached = anthropic.system(description, cache_control={"type": "ephemeral"})
    assert cached == [{"type": "text", "text": "The tools are these.", "cache_control": {"type": "ephemeral"}}]
    assert anthropic.system(description._replace(prompt="")) == []


def test_tools_are_named_described_and_typed(description: ptc.AgentDescription) -> None:
    (tool,) = anthropic.tools(description)
    assert tool == {
        "name": "run_code",
        "description": "Runs a program.",
        "input_schema": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    }


def test_a_schema_without_a_type_gets_the_one_that_the_api_needs(description: ptc.AgentDescription) -> None:
    bare = ptc.ToolSchema(name="ping", description="", parameters={})
    assert anthropic.tools(description._replace(schemas=[bare]))[0]["input_schema"] == {"type": "object"}


def test_a_name_that_the_api_does_not_take_is_told(description: ptc.AgentDescription) -> None:
    odd = ptc.ToolSchema(name="files.read", description="", parameters={})
    with pytest.raises(ValueError, match=r"Anthropic takes no tool of the name 'files\.read'.*PtcExecutor"):
        anthropic.tools(description._replace(schemas=[odd]))


def test_calls_are_read_in_order_with_their_ids() -> None:
    said = message({"type": "text", "text": "x"}, use("a", given={"n": 1}), use("b", "other"))
    assert anthropic.calls(said) == [
        ptc.ToolCall(name="run_code", arguments={"n": 1}, call_id="a"),
        ptc.ToolCall(name="other", arguments={}, call_id="b"),
    ]


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ("{bad", "{bad"),
        ([1, 2], "[1, 2]"),
        (float("nan"), "NaN"),
        (7, "7"),
        (False, "false"),
        ({"a": None}, {"a": None}),
    ],
)
def test_arguments_that_are_no_object_are_left_to_the_call_to_refuse(given: Any, arguments: Any) -> None:
    assert anthropic.calls(message(use(given=given)))[0].arguments == arguments


def test_the_models_message_goes_back_as_it_came() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    hidden = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
    said = message(thinking, hidden, use("a", caller={"type": "direct"}))
    assert anthropic.reply(said) == [{"role": "assistant", "content": said["content"]}]
    assert anthropic.reply(message(stop="end_turn")) == []


def test_a_model_of_the_sdk_is_as_good_as_json() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    said = message(thinking, use("a", given={"n": 1}))
    parsed = Message.model_validate(said)
    assert anthropic.reply(parsed) == anthropic.reply(said)
    assert anthropic.calls(parsed) == anthropic.calls(said)


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded"])
def test_a_call_that_may_be_cut_off_is_not_executed(stop: str) -> None:
    with pytest.raises(ProviderResponseError, match=r"may have been cut off.*ask again"):
        anthropic.calls(message(use("a"), use("b"), stop=stop))
    # What is cut off is the text behind the calls.
    assert len(anthropic.calls(message(use("a"), {"type": "text", "text": "An"}, stop=stop))) == 1


def test_the_calls_of_a_refusal_are_not_executed() -> None:
    with pytest.raises(ProviderResponseError, match="refusal"):
        anthropic.calls(message(use("a"), {"type": "text", "text": "x"}, stop="refusal"))
    assert anthropic.calls(message({"type": "text", "text": "x"}, stop="refusal")) == []


def test_results_are_one_message_in_the_order_of_the_calls() -> None:
    said = message(use("a"), use("b"))
    done = batch(success(ptc.text_block("one"), call_id="a"), failure(ptc.text_block("Error: two"), call_id="b"))
    assert anthropic.results(said, done) == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "one"}]},
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "content": [{"type": "text", "text": "Error: two"}],
                    "is_error": True,
                },
            ],
        }
    ]


def test_images_stand_in_the_result_and_of_failures_behind_it() -> None:
    said = message(use("a"), use("b"))
    done = batch(success(image(), call_id="a"), failure(ptc.text_block("no"), image(), call_id="b"))
    (answer,) = anthropic.results(said, done)
    shown = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    content: Any = answer["content"]
    assert [one["type"] for one in content] == ["tool_result", "tool_result", "image"]
    assert content[0]["content"] == [shown]
    assert content[1]["content"] == [{"type": "text", "text": "no"}]
    assert content[2] == shown


def test_an_image_of_a_kind_that_the_api_does_not_take_is_told_of() -> None:
    (answer,) = anthropic.results(message(use("a")), batch(success(image("image/svg+xml", "A" * 40), call_id="a")))
    content: Any = answer["content"]
    assert content[0]["content"] == [
        {"type": "text", "text": "[an image of type image/svg+xml, some 30 bytes, which cannot be shown]"}
    ]


def test_a_result_without_content_has_none_and_empty_text_is_left_out() -> None:
    done = batch(success(ptc.text_block(""), call_id="a"))
    assert anthropic.results(message(use("a")), done) == [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}
    ]


def test_further_messages_follow_the_results() -> None:
    note = ptc.ContextMessage(content=[ptc.text_block("by the way"), image()], source={"kind": "plugin"})
    (answer,) = anthropic.results(message(use("a")), batch(success(call_id="a"), contexts=[note]))
    content: Any = answer["content"]
    assert [one["type"] for one in content] == ["tool_result", "text", "image"]
    (alone,) = anthropic.results(message({"type": "text", "text": "x"}, stop="end_turn"), batch(contexts=[note]))
    assert [one["type"] for one in alone["content"]] == ["text", "image"]  # type: ignore[union-attr, call-overload, index]


def test_without_calls_there_is_no_message() -> None:
    assert anthropic.results(message({"type": "text", "text": "x"}, stop="end_turn"), batch()) == []


def test_results_are_one_for_each_call() -> None:
    said = message(use("a"), use("b"))
    with pytest.raises(ValueError, match="2 calls, and there are 1 results"):
        anthropic.results(said, batch(success(call_id="a")))
    with pytest.raises(ValueError, match="result of call 'b' came where that of 'a' is due"):
        anthropic.results(said, batch(success(call_id="b"), success(call_id="a")))


def test_the_result_of_a_toolset_says_which() -> None:
    (answer,) = anthropic.results(message(use("a", toolset_name="browser")), batch(success(call_id="a")))
    assert answer["content"][0]["toolset_name"] == "browser"  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("response", "told"),
    [
        ({"content": None}, r"message\.content must be an array"),
        ({}, r"message\.content is missing"),
        ({"content": "text"}, r"message\.content must be an array"),
        ({"content": ["x"]}, r"message\.content\[0\] must be an object"),
        (message({"type": "tool_use", "id": "a", "input": {}}), r"message\.content\[0\]\.name is missing"),
        (message({"type": "tool_use", "name": "a", "id": 3}), r"message\.content\[0\]\.id must be a string"),
        (message(use(caller="me")), r"message\.content\[0\]\.caller must be an object"),
        (message(use(caller={"type": "code_execution_20260120"})), r"\.caller\.tool_id is missing"),
        ("text", "response must be the provider's JSON object"),
        (None, "response must be the provider's JSON object"),
    ],
)
def test_what_is_no_message_is_told_with_its_place(response: Any, told: str) -> None:
    with pytest.raises(ProviderResponseError, match=told):
        anthropic.calls(response)


# Programs that Anthropic runs -----------------------------------------------------------------------------------------


def test_hosted_tools_say_who_may_call_them_and_what_comes_back(description: ptc.AgentDescription) -> None:
    schema = ptc.ToolSchema(name="get", description="Get.", parameters={"type": "object"}, output={"type": "integer"})
    other = ptc.ToolSchema(name="put", description="", parameters={"type": "object"})
    offered = anthropic.hosted_tools(description._replace(schemas=[schema, other]), direct=["put"])
    assert offered[0] == {"type": "code_execution_20260120", "name": "code_execution"}
    assert offered[1]["allowed_callers"] == ["code_execution_20260120"]
    assert offered[1]["description"].endswith('The value\'s JSON Schema: {"type":"integer"}')  # type: ignore[union-attr]
    assert offered[2] == {
        "name": "put",
        "description": "",
        "input_schema": {"type": "object"},
        "allowed_callers": ["direct", "code_execution_20260120"],
    }
    with pytest.raises(ValueError, match="'gone'"):
        anthropic.hosted_tools(description, direct=["gone"])


def test_a_step_tells_of_programs_and_of_who_calls() -> None:
    said = message(
        {"type": "server_tool_use", "id": "srv1", "name": "code_execution", "input": {"code": "x = 1"}},
        {"type": "server_tool_use", "id": "srv0", "name": "web_search", "input": {"query": "x"}},
        use("a", "get", caller=PROGRAM),
        use("b", "put", caller={"type": "direct"}),
        use("c", "put", caller=None),
    )
    step = anthropic.hosted_step(said)
    assert step.begun == (HostedProgram("srv1", "x = 1", "python"),)
    assert step.ended == ()
    assert step.calls == (
        HostedCall(name="get", call_id="a", program_id="srv1"),
        ptc.ToolCall(name="put", call_id="b"),
        ptc.ToolCall(name="put", call_id="c"),
    )


@pytest.mark.parametrize(
    ("content", "end"),
    [
        (
            {"type": "code_execution_result", "stdout": "hi\n", "stderr": "", "return_code": 0, "content": []},
            HostedEnd("srv1", "hi\n"),
        ),
        (
            {
                "type": "code_execution_result",
                "stdout": "hi",
                "stderr": "NameError: x",
                "return_code": 1,
                "content": [],
            },
            HostedEnd("srv1", "hi", "NameError: x"),
        ),
        (
            {"type": "code_execution_result", "stdout": "", "stderr": "", "return_code": 137, "content": []},
            HostedEnd("srv1", "", "the program ended with code 137"),
        ),
        (
            {"type": "encrypted_code_execution_result", "encrypted_stdout": "e30=", "stderr": "", "return_code": 0},
            HostedEnd("srv1", "(the provider has encrypted the output)"),
        ),
        (
            {"type": "code_execution_tool_result_error", "error_code": "execution_time_exceeded"},
            HostedEnd("srv1", "", "the provider's code execution failed: execution_time_exceeded", timed_out=True),
        ),
        (
            {"type": "code_execution_tool_result_error", "error_code": "unavailable"},
            HostedEnd("srv1", "", "the provider's code execution failed: unavailable"),
        ),
    ],
)
def test_a_step_tells_how_a_program_ended(content: Any, end: HostedEnd) -> None:
    said = message({"type": "code_execution_tool_result", "tool_use_id": "srv1", "content": content}, stop="end_turn")
    assert anthropic.hosted_step(said).ended == (end,)


def test_a_program_gets_values_and_not_what_a_model_sees() -> None:
    said = message(*(use(one, caller=PROGRAM) for one in "abcd"))
    done = batch(
        success(ptc.text_block("3 units"), image(), value={"units": 3}, call_id="a"),
        success(ptc.text_block("x"), value="as it is", call_id="b"),
        success(ptc.text_block("x"), value=None, call_id="c"),
        failure(ptc.text_block("Error: no"), call_id="d"),
    )
    (answer,) = anthropic.results(said, done)
    content: Any = answer["content"]
    assert [one["content"] for one in content] == ['{"units":3}', "as it is", "null", "Error: no"]
    assert [one.get("is_error", False) for one in content] == [False, False, False, True]
