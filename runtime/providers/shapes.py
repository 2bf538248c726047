"""What the adapters share: reading a provider's JSON with errors that say where, and pairing calls with answers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from ...registry import (
    MISSING,
    ContentBlock,
    ContextMessage,
    JsonObject,
    JsonValue,
    Missing,
    ToolBatchResult,
    ToolCall,
    ToolCallOutcome,
    ToolSuccess,
    text_block,
    to_json_text,
)
from ...registry.events import describe_answer

if TYPE_CHECKING:
    from ..agent import AgentDescription
    from ..log.replay import RecordedCall

__all__ = [
    "Answer",
    "Answers",
    "Data",
    "HostedCall",
    "ProviderResponseError",
    "arguments_of",
    "as_data",
    "check_direct",
    "check_names",
    "contexts_of",
    "data_url",
    "fitted",
    "object_at",
    "objects_at",
    "optional_text_at",
    "paired",
    "role_of",
    "text_at",
    "text_of",
    "value_text",
    "with_type",
]

Data: TypeAlias = Mapping[str, Any]
"""A JSON object of a provider, as `json.loads` gives it."""

Answers: TypeAlias = "ToolBatchResult | Sequence[ToolCallOutcome | RecordedCall]"
"""What answers the calls of a response: a batch, its outcomes, or what `Agent.recover` gives, in the calls' order."""


class ProviderResponseError(ValueError):
    """A provider's response is not what its published shape says, or its calls must not be executed.

    The message says where, what is wrong and what to do. Nothing has been executed.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedCall(ToolCall):
    """A call that a program makes which the provider runs, as `HostedPrograms.execute` takes it.

    Attributes:
        program_id: the provider's id of the program.
    """

    program_id: str = ""


# Reading ----------------------------------------------------------------------------------------------------


def as_data(response: object) -> Data:
    """Returns a response as JSON: what it is already, or what a model of the provider's SDK dumps.

    Raises:
        ProviderResponseError: it is neither.
    """
    if isinstance(response, Mapping):
        return cast("Data", response)
    dump = getattr(response, "model_dump", None)
    if callable(dump) and not isinstance(response, type):
        # What the provider did not send stays out: it must not come back to it as null.
        dumped = dump(mode="json", by_alias=True, exclude_unset=True)
        if isinstance(dumped, Mapping):
            return cast("Data", dumped)
    raise ProviderResponseError(
        f"response must be the provider's JSON object or a model of its SDK, not {describe_answer(response)}"
    )


def _problem(where: str, key: str, wanted: str, found: object) -> ProviderResponseError:
    what = "is missing" if found is MISSING else f"must be {wanted}, not {describe_answer(found)}"
    return ProviderResponseError(f"{where}.{key} {what}; give the response as the provider has sent it")


def text_at(data: Data, key: str, where: str) -> str:
    """Returns a member that must be a string.

    Raises:
        ProviderResponseError: it is not.
    """
    found = data.get(key, MISSING)
    if not isinstance(found, str):
        raise _problem(where, key, "a string", found)
    return found


def optional_text_at(data: Data, key: str, where: str) -> str | None:
    """Returns a member that may be absent or null.

    Raises:
        ProviderResponseError: it is there and no string.
    """
    return None if data.get(key) is None else text_at(data, key, where)


def object_at(data: Data, key: str, where: str) -> Data:
    """Returns a member that must be an object.

    Raises:
        ProviderResponseError: it is not.
    """
    found = data.get(key, MISSING)
    if not isinstance(found, Mapping):
        raise _problem(where, key, "an object", found)
    return cast("Data", found)


def objects_at(data: Data, key: str, where: str) -> list[tuple[str, Data]]:
    """Returns the members of an array of objects, each with where it is.

    Raises:
        ProviderResponseError: it is no array, or a member is no object.
    """
    found = data.get(key, MISSING)
    if not isinstance(found, Sequence) or isinstance(found, str | bytes):
        raise _problem(where, key, "an array", found)
    for place, one in enumerate(cast("Sequence[object]", found)):
        if not isinstance(one, Mapping):
            raise _problem(where, f"{key}[{place}]", "an object", one)
    return [(f"{where}.{key}[{place}]", one) for place, one in enumerate(cast("Sequence[Data]", found))]


def arguments_of(given: object) -> str | Mapping[str, object]:
    """Returns the arguments of a call where the provider has them as JSON; absent ones are none.

    What is no object is given on as its text, and the call fails for it as for any arguments that do not fit: it is
    the model's mistake, and the model reads what is wrong.
    """
    if given is None:
        return {}
    if isinstance(given, str | Mapping):
        return cast("str | Mapping[str, object]", given)
    return json.dumps(given, default=repr)


# Tools ------------------------------------------------------------------------------------------------------


def check_names(description: AgentDescription, pattern: re.Pattern[str], provider: str, rule: str) -> None:
    """Checks that a provider takes the names of the tools.

    Raises:
        ValueError: it does not take one of them.
    """
    for schema in description.schemas:
        if pattern.fullmatch(schema.name) is None:
            raise ValueError(
                f"{provider} takes no tool of the name {schema.name!r}: a name has {rule}; register it under another "
                "name, or let programs call it (PtcExecutor), where any name will do"
            )


def check_direct(description: AgentDescription, direct: Collection[str]) -> None:
    """Checks that the tools are there which the model may call by itself, beside the programs that the provider runs.

    Raises:
        ValueError: one of them is not there.
    """
    unknown = sorted(set(direct) - {one.name for one in description.schemas})
    if unknown:
        raise ValueError(f"direct names {unknown[0]!r}, which the agent does not have")


# Answers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one call.

    Attributes:
        content: the content blocks for the model.
        is_error: whether the call failed.
        value: the canonical value, where it is known.
    """

    content: Sequence[ContentBlock]
    is_error: bool
    value: JsonValue | Missing = MISSING


def paired(calls: Sequence[ToolCall], answers: Answers) -> list[Answer]:
    """Returns the answers to the calls of a response, in their order.

    Raises:
        ValueError: there is not one answer for each call, in the calls' order, or one has no content yet.
    """
    outcomes = answers.results if isinstance(answers, ToolBatchResult) else answers
    if len(outcomes) != len(calls):
        raise ValueError(
            f"the response has {len(calls)} calls, and there are {len(outcomes)} results; give one for each"
        )
    return [_answer(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]


def _answer(call: ToolCall, outcome: ToolCallOutcome | RecordedCall) -> Answer:
    if call.call_id and outcome.call_id != call.call_id:
        raise ValueError(f"the result of call {outcome.call_id!r} came where that of {call.call_id!r} is due")
    if isinstance(outcome, ToolCallOutcome):
        result = outcome.result
        return Answer(result.content, result.is_error, result.value if isinstance(result, ToolSuccess) else MISSING)
    if outcome.content is None:
        raise ValueError(f"call {call.call_id!r} has no result yet; wait for the process that executes it")
    return Answer(cast("Sequence[ContentBlock]", outcome.content), bool(outcome.is_error))


def contexts_of(answers: Answers) -> Sequence[ContextMessage]:
    """Returns the messages that follow the results in the conversation (contract I16)."""
    return answers.additional_contexts if isinstance(answers, ToolBatchResult) else ()


def fitted(content: Sequence[ContentBlock], images: frozenset[str]) -> list[ContentBlock]:
    """Returns content as a provider takes it: without empty text, and with a line in place of images it does not take.

    Args:
        content: the content blocks.
        images: the media types of the images that it takes.
    """
    kept: list[ContentBlock] = []
    for block in content:
        if block["type"] == "text":
            if block["text"]:
                kept.append(block)
        elif block["mimeType"] in images:
            kept.append(block)
        else:
            size = len(block["data"]) * 3 // 4
            kept.append(text_block(f"[an image of type {block['mimeType']}, some {size} bytes, which cannot be shown]"))
    return kept


def text_of(content: Sequence[ContentBlock]) -> str:
    """Returns the text of content, its blocks joined by line breaks; images are left out."""
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def data_url(block: ContentBlock) -> str:
    """Returns an image block as a `data:` URL."""
    assert block["type"] == "image"
    return f"data:{block['mimeType']};base64,{block['data']}"


def value_text(answer: Answer) -> str:
    """Returns the JSON text of what a program gets of a call; of a failure, its message."""
    return text_of(answer.content) if isinstance(answer.value, Missing) else to_json_text(answer.value)


_PLAIN: Final = {"user": "user", "system": "system", "developer": "developer"}


def role_of(message: ContextMessage) -> str:
    """Returns the role of a message as providers know it; whoever else speaks, speaks as the user."""
    return _PLAIN.get(message.role, "user")


def with_type(parameters: JsonObject) -> JsonObject:
    """Returns a schema of arguments that says that they are an object, as providers require."""
    return {**parameters, "type": "object"}
