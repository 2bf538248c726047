"""Gemini's function calling: what an agent's tools, calls and results are there."""

from __future__ import annotations

from typing import Any

import ptc
import pytest
from google.genai.types import Content, GenerateContentResponse, Tool
from ptc.runtime.providers import ProviderResponseError, gemini

from .conftest import batch, failure, image, success


def response(*parts: Any, finish: str = "STOP", **candidate: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": finish, "index": 0, **candidate}]}


def call(name: str = "run_code", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **more}}


def fits(contents: list[Any]) -> bool:
    """The SDK's models refuse what they do not know, and give back what they were given."""
    return [
        Content.model_validate(one).model_dump(mode="json", by_alias=True, exclude_none=True) for one in contents
    ] == contents


def test_the_agents_text_is_the_system_instruction(description: ptc.AgentDescription) -> None:
    told = gemini.system(description)
    assert told == {"parts": [{"text": "The tools are these."}]}
    assert fits([told])
    assert gemini.system(description._replace(prompt="")) is None


def test_tools_are_declared_with_json_schema(description: ptc.AgentDescription) -> None:
    (tool,) = gemini.tools(description)
    Tool.model_validate(tool)
    assert tool == {
        "functionDeclarations": [
            {
                "name": "run_code",
                "description": "Runs a program.",
                "parametersJsonSchema": description.schemas[0].parameters,
            }
        ]
    }
    assert gemini.tools(description._replace(schemas=[])) == []
    odd = ptc.ToolSchema(name="1st", description="", parameters={})
    with pytest.raises(ValueError, match="Gemini takes no tool of the name '1st'"):
        gemini.tools(description._replace(schemas=[odd]))
    dotted = ptc.ToolSchema(name="files.read", description="", parameters={})
    assert gemini.tools(description._replace(schemas=[dotted]))


def test_calls_are_read_in_order_with_and_without_ids() -> None:
    said = response(
        {"text": "hm", "thought": True},
        {**call("one", args={"n": 1}), "thoughtSignature": "c2ln"},
        call("two", id="x"),
        call("three", args=None),
    )
    expected = [
        ptc.ToolCall(name="one", arguments={"n": 1}),
        ptc.ToolCall(name="two", call_id="x"),
        ptc.ToolCall(name="three"),
    ]
    assert gemini.calls(said) == expected
    assert gemini.calls(GenerateContentResponse.model_validate(said)) == expected


def test_content_goes_back_as_it_came() -> None:
    said = response({"text": "hm", "thought": True}, {**call("one", args={}), "thoughtSignature": "c2ln"})
    assert gemini.reply(said) == [said["candidates"][0]["content"]]
    assert gemini.reply(GenerateContentResponse.model_validate(said)) == gemini.reply(said)
    assert gemini.reply({"candidates": [{"finishReason": "STOP"}]}) == []
    assert gemini.calls({"candidates": [{"finishReason": "STOP"}]}) == []
    assert gemini.calls({"candidates": [{"content": {"role": "model"}}]}) == []


def test_results_are_one_content_in_the_order_of_the_calls() -> None:
    done = batch(
        success(ptc.text_block("one"), call_id="call_made_1"),
        failure(ptc.text_block("Error: no"), call_id="x"),
        success(ptc.text_block("see"), image(), image("image/gif"), call_id="call_made_2"),
    )
    contents = gemini.results(response(call("a"), call("b", id="x"), call("c")), done)
    assert fits(contents)
    assert contents == [
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "a", "response": {"output": "one"}}},
                {"functionResponse": {"id": "x", "name": "b", "response": {"error": "Error: no"}}},
                {
                    "functionResponse": {
                        "name": "c",
                        "response": {
                            "output": "see\n[an image of type image/gif, some 3 bytes, which cannot be shown]"
                        },
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
                    }
                },
            ],
        }
    ]


def test_for_older_models_images_follow_the_results() -> None:
    done = batch(success(ptc.text_block("see"), image()))
    first, second = gemini.results(response(call("a", id="c1")), done, nested_images=False)
    assert fits([first, second])
    assert first["parts"] == [{"functionResponse": {"id": "c1", "name": "a", "response": {"output": "see"}}}]
    assert second["parts"] == [
        {"text": "Images that a has returned:"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
    ]


def test_further_messages_follow_the_results() -> None:
    note = ptc.ContextMessage(content=[ptc.text_block("note"), image()], source={"kind": "plugin"})
    contents = gemini.results(response(call("a")), batch(success(), contexts=[note]))
    assert fits(contents)
    assert [len(one["parts"]) for one in contents] == [1, 2]  # type: ignore[arg-type]
    assert gemini.results(response({"text": "x"}), batch()) == []


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])
def test_a_call_that_the_api_could_not_read_is_told(reason: str) -> None:
    said = {"candidates": [{"finishReason": reason, "finishMessage": "Malformed function call: print(", "index": 0}]}
    for read in (gemini.calls, gemini.reply):
        with pytest.raises(ProviderResponseError, match=rf"{reason}' \(Malformed function call: print\(\).*ask again"):
            read(said)


def test_a_call_that_may_be_cut_off_is_not_executed() -> None:
    with pytest.raises(ProviderResponseError, match="'MAX_TOKENS': the last call, of tool 'run_code'"):
        gemini.calls(response(call(), finish="MAX_TOKENS"))
    with pytest.raises(ProviderResponseError, match="join the stream's pieces"):
        gemini.calls(response(call(willContinue=True)))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "the prompt was blocked, SAFETY"),
        ({"candidates": []}, r"response\.candidates is empty; change the prompt"),
        ({"candidates": {}}, r"response\.candidates must be an array"),
        ({"candidates": [{"content": []}]}, r"response\.candidates\[0\]\.content must be an object"),
        (response("x"), r"response\.candidates\[0\]\.content\.parts\[0\] must be an object"),
        (response({"functionCall": {}}), r"parts\[0\]\.functionCall\.name is missing"),
        (response(call(id=4)), r"parts\[0\]\.functionCall\.id must be a string"),
        (b"", "response must be the provider's JSON object"),
    ],
)
def test_what_is_no_response_is_told_with_its_place(said: Any, told: str) -> None:
    with pytest.raises(ProviderResponseError, match=told):
        gemini.calls(said)
