"""OpenAI's Responses: what an agent's tools, calls and results are there."""

from __future__ import annotations

from typing import Any

import ptc
import pytest
from openai.types.responses import Response, ResponseInputItemParam
from openai.types.responses.function_tool_param import FunctionToolParam
from ptc.runtime.providers import HostedCall, HostedEnd, HostedProgram, ProviderResponseError, openai_responses

from .conftest import batch, failure, image, success
from .published_shapes import problems

BY_PROGRAM = {"type": "program", "caller_id": "p1"}
PROGRAM = {"type": "program", "id": "prog_1", "call_id": "p1", "code": "text(1)", "fingerprint": "fp"}


def response(*output: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.6-sol", "output": list(output),
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": status, **more,
    }  # fmt: skip


def call(call_id: str = "c1", name: str = "run_code", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    given = {"name": name, "arguments": arguments, "status": "completed", **more}
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, **given}


def test_the_agents_text_is_the_instructions(description: ptc.AgentDescription) -> None:
    assert openai_responses.system(description) == "The tools are these."


def test_tools_are_functions_that_are_not_strict(description: ptc.AgentDescription) -> None:
    (tool,) = openai_responses.tools(description)
    assert problems(tool, FunctionToolParam) == []
    assert (tool["name"], tool["description"], tool["strict"]) == ("run_code", "Runs a program.", False)
    assert tool["parameters"] == description.schemas[0].parameters


def test_a_name_that_the_api_does_not_take_is_told(description: ptc.AgentDescription) -> None:
    long = ptc.ToolSchema(name="a" * 65, description="", parameters={})
    with pytest.raises(ValueError, match="OpenAI takes no tool of the name"):
        openai_responses.tools(description._replace(schemas=[long]))


@pytest.mark.parametrize("text", ['{"n": 1}', "", "{bad", '"x"', "[1]"])
def test_arguments_are_the_models_own_text(text: str) -> None:
    said = response({"type": "reasoning", "id": "r", "summary": []}, call("a", "one", text), call("b", "two"))
    assert openai_responses.calls(said) == [
        ptc.ToolCall(name="one", arguments=text, call_id="a"),
        ptc.ToolCall(name="two", arguments="{}", call_id="b"),
    ]


def test_items_go_back_as_they_came() -> None:
    reasoning = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "AAAA"}
    said = response(reasoning, PROGRAM, call("a", caller=BY_PROGRAM))
    assert openai_responses.reply(said) == said["output"]
    parsed = Response.model_validate(said)
    assert openai_responses.reply(parsed) == said["output"]
    assert openai_responses.calls(parsed) == openai_responses.calls(said)
    assert openai_responses.hosted_step(parsed) == openai_responses.hosted_step(said)


def test_calls_of_other_kinds_are_not_the_agents() -> None:
    custom = {"type": "custom_tool_call", "id": "x", "call_id": "x", "name": "grammar", "input": "1"}
    assert openai_responses.calls(response(custom)) == []


@pytest.mark.parametrize("status", ["incomplete", "in_progress"])
def test_a_call_that_is_not_complete_is_not_executed(status: str) -> None:
    with pytest.raises(ProviderResponseError, match=r"response\.output\[1\], a call of tool 'run_code', is"):
        openai_responses.calls(response(call("a"), call("b", status=status), status="incomplete"))


def test_a_response_that_is_cut_off_elsewhere_has_its_calls() -> None:
    assert len(openai_responses.calls(response(call("a"), status="incomplete"))) == 1


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (response(status="in_progress"), "wait until it has completed"),
        (response(status="queued"), "wait until it has completed"),
        (response(status="failed", error={"code": "server_error", "message": "overloaded"}), "'failed': overloaded"),
        (response(status="cancelled", error=None), "'cancelled'; ask again"),
    ],
)
def test_a_response_that_is_none_yet_or_failed_is_told(said: Any, told: str) -> None:
    with pytest.raises(ProviderResponseError, match=told):
        openai_responses.calls(said)


def test_results_are_one_item_for_each_call() -> None:
    done = batch(
        success(ptc.text_block("one"), ptc.text_block("two"), call_id="a"),
        failure(ptc.text_block("Error: no"), call_id="b"),
        success(ptc.text_block("see"), image(), image("image/tiff"), call_id="c"),
        success(call_id="d"),
    )
    items = openai_responses.results(response(*map(call, "abcd")), done)
    assert [problems(item, ResponseInputItemParam) for item in items] == [[], [], [], []]
    assert [item["call_id"] for item in items] == ["a", "b", "c", "d"]
    assert [item["output"] for item in items] == [
        "one\ntwo",
        "Error: no",
        [
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
            {"type": "input_text", "text": "[an image of type image/tiff, some 3 bytes, which cannot be shown]"},
        ],
        "",
    ]


@pytest.mark.parametrize(("role", "sent"), [("user", "user"), ("developer", "developer"), ("assistant", "user")])
def test_further_messages_follow_the_results(role: str, sent: str) -> None:
    note = ptc.ContextMessage(content=[ptc.text_block("note")], source={"kind": "plugin"}, role=role)
    shown = ptc.ContextMessage(content=[image()], source={"kind": "plugin"}, role=role)
    items = openai_responses.results(response(call("a")), batch(success(call_id="a"), contexts=[note, shown]))
    assert [problems(item, ResponseInputItemParam) for item in items] == [[], [], []]
    assert items[1] == {"type": "message", "role": sent, "content": [{"type": "input_text", "text": "note"}]}
    assert items[2]["role"] == "user"  # nobody else may show images


def test_hosted_tools_say_who_may_call_them_and_what_comes_back(description: ptc.AgentDescription) -> None:
    schema = ptc.ToolSchema(name="get", description="Get.", parameters={"type": "object"}, output={"type": "integer"})
    other = ptc.ToolSchema(name="put", description="", parameters={"type": "object"})
    offered = openai_responses.hosted_tools(description._replace(schemas=[schema, other]), direct=["put"])
    assert offered[0] == {"type": "programmatic_tool_calling"}
    assert [problems(tool, FunctionToolParam) for tool in offered[1:]] == [[], []]
    assert (offered[1]["allowed_callers"], offered[1]["output_schema"]) == (["programmatic"], {"type": "integer"})
    assert offered[2]["allowed_callers"] == ["direct", "programmatic"]
    assert "output_schema" not in offered[2]
    with pytest.raises(ValueError, match="'gone'"):
        openai_responses.hosted_tools(description, direct=["gone"])


def test_a_step_tells_of_programs_who_calls_and_how_they_ended() -> None:
    over = {"type": "program_output", "id": "po", "call_id": "p0", "result": "7", "status": "completed"}
    broken = {**over, "call_id": "p9", "status": "incomplete"}
    said = response(over, broken, PROGRAM, call("a", "get", caller=BY_PROGRAM), call("b", caller={"type": "direct"}))
    step = openai_responses.hosted_step(said)
    assert step.begun == (HostedProgram("p1", "text(1)", "javascript"),)
    assert step.ended == (HostedEnd("p0", "7"), HostedEnd("p9", "7", "the program did not complete"))
    assert step.calls == (
        HostedCall(name="get", arguments="{}", call_id="a", program_id="p1"),
        ptc.ToolCall(name="run_code", arguments="{}", call_id="b"),
    )


def test_a_program_gets_json_text_and_the_call_back_to_it() -> None:
    said = response(*(call(one, caller=BY_PROGRAM) for one in "abc"))
    done = batch(
        success(ptc.text_block("3 units"), image(), value={"units": 3}, call_id="a"),
        success(ptc.text_block("text"), value="text", call_id="b"),
        failure(ptc.text_block("Error: no"), call_id="c"),
    )
    items = openai_responses.results(said, done)
    assert [problems(item, ResponseInputItemParam) for item in items] == [[], [], []]
    assert [item["output"] for item in items] == ['{"units":3}', '"text"', "Error: no"]
    assert [item["caller"] for item in items] == [BY_PROGRAM] * 3


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, r"response\.output is missing"),
        (response({"type": "function_call", "name": "x"}), r"response\.output\[0\]\.call_id is missing"),
        (response(call(name=None)), r"response\.output\[0\]\.name must be a string"),  # type: ignore[arg-type]
        (response(call(caller={"type": "program"})), r"\.caller\.caller_id is missing"),
        ([], "response must be the provider's JSON object"),
    ],
)
def test_what_is_no_response_is_told_with_its_place(said: Any, told: str) -> None:
    with pytest.raises(ProviderResponseError, match=told):
        openai_responses.calls(said)
