"""Gemini's function calling (`generateContent`): what goes into a request and comes out of a response, as plain JSON.

    request = {
        "systemInstruction": gemini.system(description),
        "tools": gemini.tools(description),
        "contents": contents,
    }
    response = ...                                      # POST /v1beta/models/...:generateContent
    batch = await agent.execute(gemini.calls(response))
    contents += [*gemini.reply(response), *gemini.results(response, batch)]

The names are those of the REST API. `google-genai` takes the same data: `types.Content.model_validate(content)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from ...registry import ContentBlock, JsonObject, JsonValue, ToolCall
from .shapes import (
    Answers,
    Data,
    ProviderResponseError,
    arguments_of,
    as_data,
    check_names,
    contexts_of,
    fitted,
    object_at,
    objects_at,
    optional_text_at,
    paired,
    text_at,
    text_of,
    with_type,
)

if TYPE_CHECKING:
    from ..agent import AgentDescription

__all__ = ["calls", "reply", "results", "system", "tools"]

_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_RULE: Final = "1 to 128 of a-z, A-Z, 0-9, _, ., : and -, and begins with a letter or _"
_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/webp"})
_UNREADABLE: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"})
_CUT_OFF: Final = frozenset({"MAX_TOKENS", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})


def system(description: AgentDescription) -> JsonObject | None:
    """Returns the `systemInstruction` of a request: the agent's text; `None` where there is none, to be left out."""
    return {"parts": [{"text": description.prompt}]} if description.prompt else None


def tools(description: AgentDescription) -> list[JsonObject]:
    """Returns the `tools` of a request. Parameters are full JSON Schema (`parametersJsonSchema`).

    Raises:
        ValueError: a tool has a name that the API does not take.
    """
    check_names(description, _NAME, "Gemini", _RULE)
    declared: list[JsonValue] = [
        {"name": one.name, "description": one.description, "parametersJsonSchema": with_type(one.parameters)}
        for one in description.schemas
    ]
    return [{"functionDeclarations": declared}] if declared else []


def reply(response: object) -> list[JsonObject]:
    """Returns what goes into `contents` for the model's response: the first candidate's content, as it came.

    Thought signatures are in it, and the API wants them back where they were.

    Args:
        response: the response, as JSON or as the SDK's model.

    Raises:
        ProviderResponseError: it has no candidate, or the model's call could not be read.
    """
    content = _content(as_data(response))
    return [] if content is None else [cast("JsonObject", content)]


def calls(response: object) -> list[ToolCall]:
    """Returns the function calls of the first candidate, in the model's order.

    Not every model gives its calls ids. Those without one are given one by the agent, and are answered in order.

    Args:
        response: the response, as JSON or as the SDK's model.

    Raises:
        ProviderResponseError: it has no candidate, the model's call could not be read, or it ends in the middle of a
            call, which must not be executed.
    """
    data = as_data(response)
    content = _content(data)
    if content is None or content.get("parts") is None:
        return []
    found: list[ToolCall] = []
    for where, part in objects_at(content, "parts", "response.candidates[0].content"):
        if part.get("functionCall") is not None:
            found.append(_call(object_at(part, "functionCall", where), f"{where}.functionCall"))
    reason = optional_text_at(_candidate(data), "finishReason", "response.candidates[0]")
    if found and reason in _CUT_OFF:
        raise ProviderResponseError(
            f"response.candidates[0].finishReason is {reason!r}: the last call, of tool {found[-1].name!r}, may have "
            "been cut off; leave this response out and ask again"
        )
    return found


def _call(call: Data, where: str) -> ToolCall:
    name = text_at(call, "name", where)
    if call.get("willContinue") or call.get("partialArgs"):
        raise ProviderResponseError(f"{where} is a piece of a call of tool {name!r}; join the stream's pieces first")
    call_id = optional_text_at(call, "id", where) or ""
    return ToolCall(name=name, arguments=arguments_of(call.get("args")), call_id=call_id)


def _candidate(data: Data) -> Data:
    candidates = objects_at(data, "candidates", "response") if data.get("candidates") is not None else []
    if not candidates:
        feedback = data.get("promptFeedback")
        why = feedback.get("blockReason") if isinstance(feedback, Mapping) else None
        raise ProviderResponseError(
            f"response.candidates is empty{f': the prompt was blocked, {why}' if why else ''}; change the prompt"
        )
    return candidates[0][1]


def _content(data: Data) -> Data | None:
    candidate = _candidate(data)
    reason = optional_text_at(candidate, "finishReason", "response.candidates[0]")
    if reason in _UNREADABLE:
        told = candidate.get("finishMessage")
        raise ProviderResponseError(
            f"response.candidates[0].finishReason is {reason!r}{f' ({told})' if told else ''}: the model's call could "
            "not be read; ask again"
        )
    if candidate.get("content") is None:
        return None
    return object_at(candidate, "content", "response.candidates[0]")


def results(response: object, answers: Answers, *, nested_images: bool = True) -> list[JsonObject]:
    """Returns what goes into `contents` after the model's: one content with all results, then further messages.

    Args:
        response: the response that the calls are from.
        answers: the batch that `calls(response)` gave, or its outcomes.
        nested_images: whether images go inside the results, as models from Gemini 3 on take them; older ones do not,
            and with `False` images follow in a content of their own.

    Raises:
        ProviderResponseError: as `calls`.
        ValueError: there is not one result for each call, in the calls' order.
    """
    asked = calls(response)
    parts: list[JsonValue] = []
    after: list[JsonValue] = []
    for call, answer in zip(asked, paired(asked, answers), strict=True):
        blocks = fitted(answer.content, _IMAGES)
        told: JsonObject = {"error" if answer.is_error else "output": text_of(blocks)}
        result: JsonObject = {"name": call.name, "response": told}
        if call.call_id:
            result = {"id": call.call_id, **result}
        images: list[JsonValue] = [_part(one) for one in blocks if one["type"] == "image"]
        if images and nested_images:
            result["parts"] = images
        elif images:
            after += [{"text": f"Images that {call.name} has returned:"}, *images]
        parts.append({"functionResponse": result})
    contents: list[JsonObject] = [{"role": "user", "parts": parts}] if parts else []
    for context in contexts_of(answers):
        after.extend(_part(one) for one in fitted(context.content, _IMAGES))
    if after:
        contents.append({"role": "user", "parts": after})
    return contents


def _part(block: ContentBlock) -> JsonObject:
    if block["type"] == "text":
        return {"text": block["text"]}
    return {"inlineData": {"mimeType": block["mimeType"], "data": block["data"]}}
