"""OpenAI's Chat Completions, which many other servers speak as well: requests and responses as plain JSON.

request = {"messages": [*openai_chat.system(description), *messages], "tools": openai_chat.tools(description)}
completion = ...                                    # POST /v1/chat/completions
batch = await agent.execute(openai_chat.calls(completion))
messages += [*openai_chat.reply(completion), *openai_chat.results(completion, batch)]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, cast

from ...registry import ContentBlock, JsonObject, JsonValue, ToolCall, text_block
from .openai_limits import IMAGES, check_tool_names
from .shapes import (
    Answers,
    Data,
    ProviderResponseError,
    arguments_of,
    as_data,
    contexts_of,
    data_url,
    fitted,
    object_at,
    objects_at,
    optional_text_at,
    paired,
    role_of,
    text_at,
    text_of,
    with_type,
)

if TYPE_CHECKING:
    from ..agent import AgentDescription

__all__ = ["calls", "reply", "results", "system", "tools"]

_CUT_OFF: Final = {
    "length": "may have been cut off; leave this completion out and ask again with a higher limit of tokens",
    "content_filter": "was stopped by a filter and must not be executed; leave this completion out",
}


def system(description: AgentDescription, *, role: Literal["system", "developer"] = "system") -> list[JsonObject]:
    """Returns the messages that a conversation begins with: the agent's text, or nothing where there is none.

    Args:
        description: what `Agent.describe` gives.
        role: who speaks; OpenAI's newer models know `developer`, other servers often only `system`.
    """
    return [{"role": role, "content": description.prompt}] if description.prompt else []


def tools(description: AgentDescription) -> list[JsonObject]:
    """Returns the `tools` of a request. They are not `strict`: arguments are checked anyway.

    Raises:
        ValueError: a tool has a name that the API does not take.
    """
    check_tool_names(description)
    return [
        {
            "type": "function",
            "function": {
                "name": one.name,
                "description": one.description,
                "parameters": with_type(one.parameters),
                "strict": False,
            },
        }
        for one in description.schemas
    ]


def reply(completion: object) -> list[JsonObject]:
    """Returns what goes into `messages` for the model's message: the first choice's, as it came.

    Without what the API says and does not take: the annotations, and of spoken words everything but their id.

    Args:
        completion: the response, as JSON or as the SDK's model.

    Raises:
        ProviderResponseError: it is no completion.
    """
    _choice, message = _first(as_data(completion))
    said = {key: value for key, value in message.items() if key != "annotations"}
    if said.get("audio") is not None:
        where = "completion.choices[0].message"
        said["audio"] = {"id": text_at(object_at(message, "audio", where), "id", f"{where}.audio")}
    return [cast("JsonObject", said)]


def calls(completion: object) -> list[ToolCall]:
    """Returns the function calls of the first choice, in the model's order; arguments are the model's own text.

    Args:
        completion: the response, as JSON or as the SDK's model.

    Raises:
        ProviderResponseError: it is no completion, or it ends in the middle of a call, which must not be executed.
    """
    choice, message = _first(as_data(completion))
    where = "completion.choices[0].message"
    if message.get("function_call") is not None:
        raise ProviderResponseError(f"{where}.function_call is of an API that is no longer; offer `tools` instead")
    if message.get("tool_calls") is None:
        return []
    found: list[ToolCall] = []
    for place, one in objects_at(message, "tool_calls", where):
        if one.get("type", "function") == "function":
            function = object_at(one, "function", place)
            name = text_at(function, "name", f"{place}.function")
            arguments = arguments_of(function.get("arguments"))
            found.append(ToolCall(name=name, arguments=arguments, call_id=text_at(one, "id", place)))
    why = _CUT_OFF.get(optional_text_at(choice, "finish_reason", "completion.choices[0]") or "")
    if found and why is not None:
        raise ProviderResponseError(
            f"completion.choices[0].finish_reason is {choice['finish_reason']!r}: the last call, of tool "
            f"{found[-1].name!r}, {why}"
        )
    return found


def _first(data: Data) -> tuple[Data, Data]:
    choices = objects_at(data, "choices", "completion")
    if not choices:
        raise ProviderResponseError("completion.choices is empty; ask again")
    where, choice = choices[0]
    return choice, object_at(choice, "message", where)


def results(completion: object, answers: Answers) -> list[JsonObject]:
    """Returns what goes into `messages` after the model's message: one tool message for each call, then others.

    Tool messages have text alone, so images follow in a message of the user's, which says what they belong to. The API
    has no mark for failures; the text says it.

    Args:
        completion: the response that the calls are from.
        answers: the batch that `calls(completion)` gave, or its outcomes.

    Raises:
        ProviderResponseError: as `calls`.
        ValueError: there is not one result for each call, in the calls' order.
    """
    asked = calls(completion)
    messages: list[JsonObject] = []
    images: list[ContentBlock] = []
    for call, answer in zip(asked, paired(asked, answers), strict=True):
        blocks = fitted(answer.content, IMAGES)
        messages.append({"role": "tool", "tool_call_id": call.call_id, "content": text_of(blocks)})
        shown = [one for one in blocks if one["type"] == "image"]
        if shown:
            images += [text_block(f"Images that call {call.call_id} of {call.name} has returned:"), *shown]
    if images:
        messages.append({"role": "user", "content": _parts(images)})
    for context in contexts_of(answers):
        blocks = fitted(context.content, IMAGES)
        if any(one["type"] == "image" for one in blocks):
            messages.append({"role": "user", "content": _parts(blocks)})  # only the user may show images
        elif blocks:
            messages.append({"role": role_of(context), "content": text_of(blocks)})
    return messages


def _parts(blocks: list[ContentBlock]) -> JsonValue:
    return [
        {"type": "text", "text": one["text"]}
        if one["type"] == "text"
        else {"type": "image_url", "image_url": {"url": data_url(one)}}
        for one in blocks
    ]
