"""JSON text for reading: indented, and without recursion however deep the value is (contract B5, ruling 34)."""

from __future__ import annotations

import json.encoder
import math
from typing import TYPE_CHECKING, Any, cast

from .lossless import to_json_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .values import JsonValue

__all__ = ["to_indented_json"]

_quote = json.encoder.encode_basestring


def to_indented_json(value: JsonValue, *, indent: int = 2) -> str:
    """Writes a JSON value as `json.dumps(value, indent=..., ensure_ascii=False)` would.

    Args:
        value: a JSON value, lossless already.
        indent: spaces for each level.
    """
    if not isinstance(value, (dict, list)) or not value:
        return _scalar(value)
    parts: list[str] = []
    levels: list[tuple[Iterator[Any], bool]] = []
    margin = "\n"

    def enter(container: dict[str, JsonValue] | list[JsonValue]) -> None:
        nonlocal margin
        margin += " " * indent
        keyed = isinstance(container, dict)
        levels.append((iter(container.items() if isinstance(container, dict) else container), keyed))
        parts.append(("{" if keyed else "[") + margin)

    enter(value)
    fresh = True
    while levels:
        members, keyed = levels[-1]
        for item in members:
            if not fresh:
                parts.append("," + margin)
            fresh = False
            if keyed:
                parts.append(_quote(item[0]) + ": ")
                item = item[1]
            if type(item) is str:
                parts.append(_quote(item))
            elif isinstance(item, (dict, list)) and item:
                enter(item)
                fresh = True
                break
            else:
                parts.append(_scalar(item))
        else:
            levels.pop()
            margin = margin[:-indent]
            parts.append(margin + ("}" if keyed else "]"))
            fresh = False
    return "".join(parts)


def _scalar(value: JsonValue) -> str:
    """Everything that takes one line: scalars and empty containers."""
    kind = type(value)
    if kind is int:
        return int.__repr__(cast("int", value))
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is float and math.isfinite(cast("float", value)):
        return float.__repr__(cast("float", value))
    return to_json_text(value)
