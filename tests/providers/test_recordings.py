"""The examples: their recordings are replayed, and are what the providers' SDKs say that JSON looks like."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import anthropic
import httpx2
import openai
import ptc
import pytest
from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google.genai import Client
from google.genai.types import Content, GenerateContentResponse, HttpOptions, Tool
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from ptc.runtime.providers import HostedExecutor

from .conftest import EXAMPLES, HOSTED, PLAIN
from .published_shapes import problems, unknown_keys

pytestmark = pytest.mark.anyio

REQUESTS: dict[str, Any] = {
    "anthropic_messages": MessageCreateParamsNonStreaming,
    "anthropic_hosted": MessageCreateParamsNonStreaming,
    "openai_responses_items": ResponseCreateParamsNonStreaming,
    "openai_hosted": ResponseCreateParamsNonStreaming,
    "openai_chat_messages": CompletionCreateParamsNonStreaming,
}
RESPONSES: dict[str, Any] = {
    "anthropic_messages": Message,
    "anthropic_hosted": Message,
    "openai_responses_items": Response,
    "openai_hosted": Response,
    "openai_chat_messages": ChatCompletion,
    "gemini_contents": GenerateContentResponse,
}


def recorded(name: str) -> list[dict[str, Any]]:
    return json.loads((EXAMPLES / "recordings" / f"{name}.json").read_text(encoding="utf-8"))["exchanges"]


def said_last(name: str) -> str:
    """Returns the model's last words as the recording has them, wherever the provider puts them."""
    response = recorded(name)[-1]["response"]
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, Mapping):
            if isinstance(value.get("text"), str):
                found.append(value["text"])
            elif value.get("role") == "assistant" and isinstance(value.get("content"), str):
                found.append(value["content"])
            for one in value.values():
                look(one)
        elif isinstance(value, list):
            for one in value:
                look(one)

    look(response)
    return "".join(found)


async def converse(example: Any, name: str, send: Any) -> str:
    """Has an example talk to `send`, with the executor that it has itself."""
    module = example(name)
    async with example("provider_shop").open_shop() as host:
        if name in HOSTED:
            executor = HostedExecutor()
            return await module.converse(host.agent("shop", executor=executor), executor, send)
        return await module.converse(host.agent("shop", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox())), send)


@pytest.mark.parametrize("name", PLAIN + HOSTED)
async def test_an_example_says_what_its_recording_has_and_answers_in_published_shapes(example: Any, name: str) -> None:
    recording = example("provider_recording").Recording(name)
    assert await converse(example, name, recording.send) == said_last(name)
    assert len(recording.sent) == len(recorded(name))
    for request in recording.sent:
        if name in REQUESTS:
            assert problems(request, REQUESTS[name]) == []
        else:
            # The SDK's models of these refuse what they do not know.
            assert request.keys() == {"systemInstruction", "tools", "contents"}
            for content in (request["systemInstruction"], *request["contents"]):
                Content.model_validate(content)
            for tool in request["tools"]:
                Tool.model_validate(tool)


@pytest.mark.parametrize("name", PLAIN + HOSTED)
def test_the_responses_of_a_recording_are_of_the_published_shape(name: str) -> None:
    for exchange in recorded(name):
        assert unknown_keys(RESPONSES[name].model_validate(exchange["response"])) == []


@pytest.mark.parametrize("name", PLAIN + HOSTED)
def test_a_recording_is_of_more_than_one_kind_of_call(name: str) -> None:
    """The recordings are there to show something: parallel calls, and a call that fails, or programs elsewhere."""
    text = json.dumps(recorded(name))
    if name in HOSTED:
        assert '"code_execution_20260120"' in text or '"caller_id"' in text
        assert text.count('"get_stock"') >= 3
    else:
        assert "Error: " in text
        assert "image/png" in text


@pytest.mark.parametrize("name", PLAIN + HOSTED)
def test_an_example_runs_by_itself(name: str) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout.strip()) == (0, said_last(name)), done.stderr


async def test_a_request_that_the_recording_does_not_have_is_an_error(example: Any) -> None:
    recording = example("provider_recording").Recording("anthropic_messages")
    with pytest.raises(LookupError, match="request 1 is not the one"):
        await recording.send({"model": "another"})


# With the SDKs themselves, over a transport that gives the recorded responses -----------------------------------------


class Wire:
    """What stands where the provider's server would: it wants the recorded requests, and gives the responses."""

    def __init__(self, name: str, recording: Any) -> None:
        self.responses = [exchange["response"] for exchange in recorded(name)]
        self.requests = [exchange["request"] for exchange in recorded(name)]
        self.varying = recording.Recording.varying
        self.seen: list[dict[str, Any]] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(self.varying(json.loads(request.content)))
        return httpx2.Response(200, json=self.responses[len(self.seen) - 1])

    @property
    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self.answer))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("name", PLAIN + HOSTED)
async def test_an_example_works_with_the_sdk(example: Any, name: str) -> None:
    wire = Wire(name, example("provider_recording"))
    async with wire.client as http:
        if name.startswith("anthropic"):
            create: Any = anthropic.AsyncAnthropic(api_key="none", http_client=http).messages.create
        elif name == "openai_chat_messages":
            create = openai.AsyncOpenAI(api_key="none", http_client=http).chat.completions.create
        elif name.startswith("openai"):
            create = openai.AsyncOpenAI(api_key="none", http_client=http).responses.create
        else:
            gemini = example(name).over(Client(api_key="none", http_options=HttpOptions(httpx_async_client=http)))

            def create(**request: Any) -> Any:
                return gemini(request)

        async def send(request: Mapping[str, Any]) -> Any:
            return await create(**request)

        assert await converse(example, name, send) == said_last(name)
    for seen, request in zip(wire.seen, wire.requests, strict=True):
        added = {"stream": False, "generationConfig": {}}  # what the SDKs say beside, and means nothing
        assert rest_names({**added, **seen}) == {**added, **request}


def rest_names(sent: Any) -> Any:
    """Returns what Gemini's SDK sends by the names of the REST API, which takes both spellings."""
    if isinstance(sent, dict):
        return {"mimeType" if key == "mime_type" else key: rest_names(value) for key, value in sent.items()}
    return [rest_names(one) for one in sent] if isinstance(sent, list) else sent
