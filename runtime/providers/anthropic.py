"""Anthropic's Messages API: what goes into a request, and what comes out of a message, as plain JSON.

    request = {"system": anthropic.system(description), "tools": anthropic.tools(description), "messages": messages}
    message = ...                                       # POST /v1/messages
    batch = await agent.execute(anthropic.calls(message))
    messages += [*anthropic.reply(message), *anthropic.results(message, batch)]

Programs that Anthropic runs itself (programmatic tool calling) take `hosted_tools` and `hosted_step` instead; see
`HostedExecutor`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from ...registry import ContentBlock, JsonObject, JsonValue, Missing, ToolCall, to_json_text
from ...registry.argument_text import argument_text
from .hosted_step import HostedEnd, HostedProgram, HostedStep
from .shapes import (
    Answer,
    Answers,
    Data,
    HostedCall,
    ProviderResponseError,
    arguments_of,
    as_data,
    check_direct,
    check_names,
    contexts_of,
    fitted,
    object_at,
    objects_at,
    optional_text_at,
    paired,
    text_at,
    value_text,
    with_type,
)

if TYPE_CHECKING:
    from ..agent import AgentDescription

__all__ = ["CODE_EXECUTION", "calls", "hosted_step", "hosted_tools", "reply", "results", "system", "tools"]

CODE_EXECUTION: Final = "code_execution_20260120"
"""The version of Anthropic's code execution tool whose programs may call tools."""

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_RULE: Final = "1 to 128 of a-z, A-Z, 0-9, _ and -"
_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_CUT_OFF: Final = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
"""Why a message may end in the middle of a call."""


# Out: the request -------------------------------------------------------------------------------------------


def system(description: AgentDescription, *, cache_control: Mapping[str, Any] | None = None) -> list[JsonObject]:
    """Returns the `system` of a request: one block with the agent's text, or none where there is no text.

    Args:
        description: what `Agent.describe` gives.
        cache_control: put on the block, for example `{"type": "ephemeral"}`: the SDK text is long, and the same in
            each request.
    """
    if not description.prompt:
        return []
    block: JsonObject = {"type": "text", "text": description.prompt}
    if cache_control is not None:
        block["cache_control"] = dict(cache_control)
    return [block]


def tools(description: AgentDescription) -> list[JsonObject]:
    """Returns the `tools` of a request.

    Raises:
        ValueError: a tool has a name that the API does not take.
    """
    check_names(description, _NAME, "Anthropic", _RULE)
    return [
        {"name": one.name, "description": one.description, "input_schema": with_type(one.parameters)}
        for one in description.schemas
    ]


def hosted_tools(
    description: AgentDescription, *, direct: Collection[str] = (), version: str = CODE_EXECUTION
) -> list[JsonObject]:
    """Returns the `tools` of a request whose programs Anthropic runs: its code execution tool, and the agent's tools.

    Args:
        description: what the agent of a `HostedExecutor` says; its schemas have the tools' outputs, which go into
            their descriptions, so that the model knows what a program gets.
        direct: names of tools that the model may also call by itself.
        version: the code execution tool's version.

    Raises:
        ValueError: a tool has a name that the API does not take, or `direct` names none of them.
    """
    check_direct(description, direct)
    offered: list[JsonObject] = [{"type": version, "name": "code_execution"}]
    for tool, schema in zip(tools(description), description.schemas, strict=True):
        tool["allowed_callers"] = ["direct", version] if schema.name in direct else [version]
        if not isinstance(schema.output, Missing):
            tool["description"] = (
                f"{schema.description}\n\nReturns a string as it is, and any other value as JSON text. The value's "
                f"JSON Schema: {to_json_text(schema.output)}"
            ).lstrip()
        offered.append(tool)
    return offered


# In: the message --------------------------------------------------------------------------------------------


def reply(message: object) -> list[JsonObject]:
    """Returns what goes into `messages` for the model's message: all of its blocks, thinking and signatures untouched.

    A message that says nothing gives none, since the API takes no empty one.

    Args:
        message: the response, as JSON or as the SDK's model.

    Raises:
        ProviderResponseError: it is no message.
    """
    content = [cast("JsonValue", block) for _where, block in objects_at(as_data(message), "content", "message")]
    return [{"role": "assistant", "content": content}] if content else []


def calls(message: object) -> list[ToolCall]:
    """Returns the calls of a message, in the model's order; those of a program that Anthropic runs are `HostedCall`s.

    Args:
        message: the response, as JSON or as the SDK's model.

    Raises:
        ProviderResponseError: it is no message, or it ends in the middle of a call, which must not be executed.
    """
    return [call for _block, call in _calls(as_data(message))]


def _calls(data: Data) -> list[tuple[Data, ToolCall]]:
    blocks = objects_at(data, "content", "message")
    found = [(block, _call(block, where)) for where, block in blocks if block.get("type") == "tool_use"]
    stopped = optional_text_at(data, "stop_reason", "message")
    if stopped == "refusal" and found:
        raise ProviderResponseError(
            "message.stop_reason is 'refusal': the model was stopped, and its calls must not be executed; leave this "
            "message out of the conversation"
        )
    if stopped in _CUT_OFF and blocks and blocks[-1][1].get("type") == "tool_use":
        raise ProviderResponseError(
            f"message.stop_reason is {stopped!r}, and the last call, of tool {found[-1][1].name!r}, may have been cut "
            "off; leave this message out and ask again with a higher max_tokens or a shorter conversation"
        )
    return found


def _call(block: Data, where: str) -> ToolCall:
    name, call_id = text_at(block, "name", where), text_at(block, "id", where)
    arguments = arguments_of(block.get("input"))
    caller = block.get("caller")
    if caller is None or object_at(block, "caller", where).get("type") == "direct":
        return ToolCall(name=name, arguments=arguments, call_id=call_id)
    program = text_at(object_at(block, "caller", where), "tool_id", f"{where}.caller")
    return HostedCall(name=name, arguments=arguments, call_id=call_id, program_id=program)


def results(message: object, answers: Answers) -> list[JsonObject]:
    """Returns what goes into `messages` after the model's message: one user message with all results, or none.

    A failed call is marked `is_error` and has text alone, as the API requires; its images follow the results, and so
    do the batch's further messages. To a program that Anthropic runs go values and not what a model would see.

    Args:
        message: the response that the calls are from.
        answers: the batch that `calls(message)` gave, or its outcomes.

    Raises:
        ProviderResponseError: as `calls`.
        ValueError: there is not one result for each call, in the calls' order.
    """
    asked = _calls(as_data(message))
    content: list[JsonValue] = []
    after: list[JsonValue] = []
    for (block, call), answer in zip(asked, paired([call for _block, call in asked], answers), strict=True):
        result: JsonObject = {"type": "tool_result", "tool_use_id": call.call_id}
        if block.get("toolset_name") is not None:
            result["toolset_name"] = block["toolset_name"]
        if isinstance(call, HostedCall):
            result["content"] = _value(answer)
        else:
            blocks = fitted(answer.content, _IMAGES)
            within = [one for one in blocks if one["type"] == "text" or not answer.is_error]
            if within:
                result["content"] = [_block(one) for one in within]
            after.extend(_block(one) for one in blocks if one["type"] == "image" and answer.is_error)
        if answer.is_error:
            result["is_error"] = True
        content.append(result)
    for context in contexts_of(answers):
        after.extend(_block(one) for one in fitted(context.content, _IMAGES))
    return [{"role": "user", "content": [*content, *after]}] if content or after else []


def _block(block: ContentBlock) -> JsonObject:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    source: JsonObject = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
    return {"type": "image", "source": source}


def _value(answer: Answer) -> str:
    """Returns what a program gets: a string as it is, anything else as JSON text, of a failure its message."""
    return answer.value if isinstance(answer.value, str) else value_text(answer)


# In: programs that Anthropic runs ---------------------------------------------------------------------------


def hosted_step(message: object) -> HostedStep:
    """Returns what a message tells of programs that Anthropic runs, with all its calls, for `HostedPrograms.execute`.

    Args:
        message: the response, as JSON or as the SDK's model.

    Raises:
        ProviderResponseError: as `calls`.
    """
    data = as_data(message)
    begun: list[HostedProgram] = []
    ended: list[HostedEnd] = []
    for where, block in objects_at(data, "content", "message"):
        kind = block.get("type")
        if kind == "server_tool_use" and block.get("name") == "code_execution":
            given = object_at(block, "input", where)
            code = given.get("code")
            text = code if isinstance(code, str) else argument_text(given)
            begun.append(HostedProgram(text_at(block, "id", where), text, "python"))
        elif kind == "code_execution_tool_result":
            ended.append(_end(text_at(block, "tool_use_id", where), object_at(block, "content", where), where))
    return HostedStep(calls=tuple(call for _block, call in _calls(data)), begun=tuple(begun), ended=tuple(ended))


def _end(program: str, content: Data, where: str) -> HostedEnd:
    where = f"{where}.content"
    if content.get("type") == "code_execution_tool_result_error":
        code = text_at(content, "error_code", where)
        timed_out = code == "execution_time_exceeded"
        return HostedEnd(program, error=f"the provider's code execution failed: {code}", timed_out=timed_out)
    output = optional_text_at(content, "stdout", where)
    if output is None:
        output = "(the provider has encrypted the output)" if content.get("encrypted_stdout") else ""
    returned = content.get("return_code", 0)
    if returned == 0:
        return HostedEnd(program, output=output)
    told = optional_text_at(content, "stderr", where) or f"the program ended with code {returned}"
    return HostedEnd(program, output=output, error=told)
