"""The types of values that cross the pipeline: JSON, content blocks, and the mark for what is absent.

Absent and JSON null are two states (contract C5, F5): `MISSING` says that a thing is not there, `None` is null.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypedDict

from typing_extensions import TypeAliasType

__all__ = ["MISSING", "ContentBlock", "ImageContent", "JsonObject", "JsonValue", "Missing", "TextContent", "text_block"]

if TYPE_CHECKING:  # pyright cannot always follow a `TypeAliasType` that refers to itself
    JsonValue: TypeAlias = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
else:
    JsonValue = TypeAliasType("JsonValue", None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"])
JsonObject: TypeAlias = dict[str, JsonValue]


class Missing(enum.Enum):
    """The type of `MISSING`; an enum so that type checkers narrow `value is MISSING`."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> Literal[False]:
        return False


MISSING: Final = Missing.MISSING
"""Marks a value that is not there, where `None` would mean JSON null."""


class TextContent(TypedDict):
    """One block of text for the model."""

    type: Literal["text"]
    text: str


class ImageContent(TypedDict):
    """One image for the model: base64 `data` and its media type."""

    type: Literal["image"]
    data: str
    mimeType: str


ContentBlock: TypeAlias = TextContent | ImageContent


def text_block(text: str) -> TextContent:
    """Returns a content block that holds `text`."""
    return {"type": "text", "text": text}
