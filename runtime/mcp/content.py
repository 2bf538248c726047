"""What a call of a server's tool gives: one value for programs, and content blocks for models.

The value is the structured content where there is any; else, when all blocks are text, their text; else the blocks as
JSON objects, so that a program can take an image or a resource apart. Models see text and images as they are; of what
they cannot take, they read what it is.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from ...registry import ContentBlock, JsonObject, JsonValue, text_block
from ...registry.json_lines import to_indented_json

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["CallAnswer", "answer_of", "error_text", "render"]

_BLOCKS: Final = ("text", "image", "audio", "resource", "resource_link")
_MEDIA_TYPE: Final = re.compile(r"image/[A-Za-z0-9.+-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """The answer to one call.

    Attributes:
        value: what a program gets.
        content: what a model gets, where that does not follow from the value; else `None`.
        structured: whether the value is structured content.
    """

    value: JsonValue
    content: Sequence[ContentBlock] | None = None
    structured: bool = False


def answer_of(result: CallToolResult) -> CallAnswer:
    """Takes a result apart that is no error."""
    blocks = _plain_blocks(result)
    if "structured_content" in result.model_fields_set and result.structured_content is not None:
        content = [_rendered(block) for block in blocks] or None
        return CallAnswer(value=result.structured_content, content=content, structured=True)
    if all(block["type"] == "text" for block in blocks):
        return CallAnswer(value="\n".join(str(block["text"]) for block in blocks))
    return CallAnswer(value=cast("list[JsonValue]", blocks))


def error_text(result: CallToolResult) -> str:
    """Returns what the server says of a call that failed."""
    told = [block["text"] for block in map(_rendered, _plain_blocks(result)) if block["type"] == "text"]
    text = "\n".join(told).strip()
    if not text and result.structured_content is not None:
        text = to_indented_json(result.structured_content)
    return text or "the server says that the call failed, and not why"


def render(_arguments: JsonValue, value: JsonValue) -> Sequence[ContentBlock]:
    """Renders a value for a model: text as it is, blocks one by one, and anything else as indented JSON."""
    if isinstance(value, str):
        return [text_block(value)]
    if isinstance(value, list) and value and all(isinstance(each, dict) and _is_block(each) for each in value):
        return [_rendered(cast("JsonObject", each)) for each in value]
    return [text_block(to_indented_json(value))]


def _plain_blocks(result: CallToolResult) -> list[JsonObject]:
    return [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]


def _is_block(value: Mapping[str, Any]) -> bool:
    match value:
        case {"type": "text", "text": str()} | {"type": "resource", "resource": {"uri": str()}}:
            return True
        case {"type": "image" | "audio", "data": str(), "mimeType": str()} | {"type": "resource_link", "uri": str()}:
            return True
        case _:
            return False


def _rendered(block: JsonObject) -> ContentBlock:
    match block:
        case {"type": "text", "text": str(text)}:
            return text_block(text)
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            if _MEDIA_TYPE.fullmatch(kind) is None or not _is_base64(data):
                return text_block("[an image that is not well-formed]")
            return {"type": "image", "data": data, "mimeType": kind}
        case {"type": "audio", "data": str(data), "mimeType": str(kind)}:
            return text_block(f"[audio, {kind}, {_size(data)}; a program gets the data]")
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            return text_block(f"[resource {uri}]\n{text}")
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(blob), **more}}:
            kind = more.get("mimeType") or "of no known type"
            return text_block(f"[resource {uri}, {kind}, {_size(blob)}; a program gets the data]")
        case {"type": "resource_link", "uri": str(uri), **more}:
            told = [str(more[key]) for key in ("title", "name", "description", "mimeType") if more.get(key)]
            return text_block(f"[link to the resource {uri}{': ' if told else ''}{', '.join(dict.fromkeys(told))}]")
        case _:
            return text_block(to_indented_json(block))


def _size(data: str) -> str:
    return f"{len(data) * 3 // 4:,} bytes"


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        return False
    return True
