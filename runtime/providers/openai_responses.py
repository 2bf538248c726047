"""OpenAI's Responses API: what goes into a request, and what comes out of a response, as plain JSON.

    request = {
        "instructions": openai_responses.system(description),
        "tools": openai_responses.tools(description),
        "input": items,
    }
    response = ...                                      # POST /v1/responses
    batch = await agent.execute(openai_responses.calls(response))
    items += [*openai_responses.reply(response), *openai_responses.results(response, batch)]

Where the API keeps the conversation (`previous_response_id`), only the results go into the next request's `input`.
Programs that OpenAI runs itself (programmatic tool calling) take `hosted_tools` and `hosted_step` instead; see
`HostedExecutor`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, cast

from ...registry import ContentBlock, JsonObject, JsonValue, Missing, ToolCall
from .hosted_step import HostedEnd, HostedProgram, HostedStep
from .openai_limits import IMAGES, check_tool_names
from .shapes import (
    Answers,
    Data,
    HostedCall,
    ProviderResponseError,
    arguments_of,
    as_data,
    check_direct,
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
    value_text,
    with_type,
)

if TYPE_CHECKING:
    from ..agent import AgentDescription

__all__ = ["calls", "hosted_step", "hosted_tools", "reply", "results", "system", "tools"]


# Out: the request -------------------------------------------------------------------------------------------


def system(description: AgentDescription) -> str:
    """Returns the `instructions` of a request: the agent's text."""
    return description.prompt


def tools(description: AgentDescription) -> list[JsonObject]:
    """Returns the `tools` of a request.

    They are not `strict`: a tool may have optional parameters and schemas that strict mode does not take, and
    arguments are checked anyway.

    Raises:
        ValueError: a tool has a name that the API does not take.
    """
    check_tool_names(description)
    return [
        {
            "type": "function",
            "name": one.name,
            "description": one.description,
            "parameters": with_type(one.parameters),
            "strict": False,
        }
        for one in description.schemas
    ]


def hosted_tools(description: AgentDescription, *, direct: Collection[str] = ()) -> list[JsonObject]:
    """Returns the `tools` of a request whose programs OpenAI runs: programmatic tool calling, and the agent's tools.

    Args:
        description: what the agent of a `HostedExecutor` says; its schemas have the tools' outputs.
        direct: names of tools that the model may also call by itself.

    Raises:
        ValueError: a tool has a name that the API does not take, or `direct` names none of them.
    """
    check_direct(description, direct)
    offered: list[JsonObject] = [{"type": "programmatic_tool_calling"}]
    for tool, schema in zip(tools(description), description.schemas, strict=True):
        tool["allowed_callers"] = ["direct", "programmatic"] if schema.name in direct else ["programmatic"]
        if not isinstance(schema.output, Missing):
            tool["output_schema"] = schema.output
        offered.append(tool)
    return offered


# In: the response -------------------------------------------------------------------------------------------


def reply(response: object) -> list[JsonObject]:
    """Returns what goes into `input` for the model's response: all of its items, reasoning and programs untouched.

    Args:
        response: the response, as JSON or as the SDK's model.

    Raises:
        ProviderResponseError: it is no response.
    """
    return [cast("JsonObject", item) for _where, item in objects_at(as_data(response), "output", "response")]


def calls(response: object) -> list[ToolCall]:
    """Returns the function calls of a response, in the model's order; those of a hosted program are `HostedCall`s.

    Arguments are the model's own text. Calls of other kinds (custom tools, shell, computer) are the host's.

    Args:
        response: the response, as JSON or as the SDK's model.

    Raises:
        ProviderResponseError: it is no response, it failed or goes on yet, or it ends in the middle of a call, which
            must not be executed.
    """
    return [call for _item, call in _calls(as_data(response))]


def _calls(data: Data) -> list[tuple[Data, ToolCall]]:
    status = optional_text_at(data, "status", "response")
    if status in ("queued", "in_progress"):
        raise ProviderResponseError(f"response.status is {status!r}; wait until it has completed")
    if status in ("failed", "cancelled"):
        error = data.get("error")
        why = error.get("message") if isinstance(error, Mapping) else None
        raise ProviderResponseError(f"response.status is {status!r}{f': {why}' if why else ''}; ask again")
    found: list[tuple[Data, ToolCall]] = []
    for where, item in objects_at(data, "output", "response"):
        if item.get("type") == "function_call":
            call = _call(item, where)
            if item.get("status") not in (None, "completed"):
                raise ProviderResponseError(
                    f"{where}, a call of tool {call.name!r}, is {item['status']!r} and must not be executed; leave "
                    "this response out and ask again with a higher max_output_tokens"
                )
            found.append((item, call))
    return found


def _call(item: Data, where: str) -> ToolCall:
    name, call_id = text_at(item, "name", where), text_at(item, "call_id", where)
    arguments = arguments_of(item.get("arguments"))
    program = _program_of(item, where)
    if program is None:
        return ToolCall(name=name, arguments=arguments, call_id=call_id)
    return HostedCall(name=name, arguments=arguments, call_id=call_id, program_id=program)


def _program_of(item: Data, where: str) -> str | None:
    if item.get("caller") is None or object_at(item, "caller", where).get("type") != "program":
        return None
    return text_at(object_at(item, "caller", where), "caller_id", f"{where}.caller")


def results(response: object, answers: Answers) -> list[JsonObject]:
    """Returns what goes into `input` after the model's items: one output for each call, then further messages.

    The API has no mark for failures; the text says it. To a hosted program goes the JSON text of the value.

    Args:
        response: the response that the calls are from.
        answers: the batch that `calls(response)` gave, or its outcomes.

    Raises:
        ProviderResponseError: as `calls`.
        ValueError: there is not one result for each call, in the calls' order.
    """
    asked = _calls(as_data(response))
    items: list[JsonObject] = []
    for (item, call), answer in zip(asked, paired([call for _item, call in asked], answers), strict=True):
        output: JsonObject = {"type": "function_call_output", "call_id": call.call_id}
        if isinstance(call, HostedCall):
            output["output"] = value_text(answer)
            output["caller"] = item["caller"]  # by it the provider knows which program goes on
        else:
            output["output"] = _output(fitted(answer.content, IMAGES))
        items.append(output)
    for context in contexts_of(answers):
        blocks = fitted(context.content, IMAGES)
        if blocks:
            # Only the user may show images.
            role = "user" if any(one["type"] == "image" for one in blocks) else role_of(context)
            items.append({"type": "message", "role": role, "content": [_part(one) for one in blocks]})
    return items


def _output(blocks: list[ContentBlock]) -> JsonValue:
    if any(one["type"] == "image" for one in blocks):
        return [_part(one) for one in blocks]
    return text_of(blocks)


def _part(block: ContentBlock) -> JsonObject:
    if block["type"] == "text":
        return {"type": "input_text", "text": block["text"]}
    return {"type": "input_image", "image_url": data_url(block), "detail": "auto"}


# In: programs that OpenAI runs ------------------------------------------------------------------------------


def hosted_step(response: object) -> HostedStep:
    """Returns what a response tells of programs that OpenAI runs, with all of its calls, for `HostedPrograms.execute`.

    Args:
        response: the response, as JSON or as the SDK's model.

    Raises:
        ProviderResponseError: as `calls`.
    """
    data = as_data(response)
    begun: list[HostedProgram] = []
    ended: list[HostedEnd] = []
    for where, item in objects_at(data, "output", "response"):
        if item.get("type") == "program":
            begun.append(HostedProgram(text_at(item, "call_id", where), text_at(item, "code", where), "javascript"))
        elif item.get("type") == "program_output":
            error = None if item.get("status") == "completed" else "the program did not complete"
            ended.append(HostedEnd(text_at(item, "call_id", where), text_at(item, "result", where), error))
    return HostedStep(calls=tuple(call for _item, call in _calls(data)), begun=tuple(begun), ended=tuple(ended))
