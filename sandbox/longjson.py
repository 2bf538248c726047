"""Writing JSON texts of many megabytes in pieces, in a thread, so that an event loop goes on meanwhile.

The native writer holds the interpreter until it is through, which takes most of a second for a million small values.
Here a native step writes what comes to some thousand values, or a piece of one string.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .seam import JsonValue

__all__ = ["LONG", "detached", "is_long", "long_json_text"]

LONG: Final = 1 << 18
"""From about so many characters on a text is long. Shorter ones are written in a millisecond or two."""

_STEP: Final = 1 << 16
"""About how many characters a native step writes at most."""

_EACH: Final = 8
"""What every value counts beside the characters of its texts; it bounds how many are looked at."""

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


def is_long(value: object, most: int = LONG) -> bool:
    """Tells whether the JSON text of a value is longer than about `most` characters; looks no further than it must."""
    return _size(value, most) > most


def _size(value: object, most: int) -> int:
    """Returns about how long the text of a value is, or any number beyond `most` if it is longer than that."""
    if isinstance(value, str):
        return len(value) + _EACH
    if not isinstance(value, (dict, list, tuple)):
        return _EACH
    size = 0
    unvisited: list[object] = [value]
    while unvisited:
        one = unvisited.pop()
        size += _EACH
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, dict):
            if size + len(one) * _EACH > most:
                return most + 1
            size += sum(len(key) for key in one if isinstance(key, str))
            unvisited.extend(one.values())
        elif isinstance(one, (list, tuple)):
            if size + len(one) * _EACH > most:
                return most + 1
            unvisited.extend(one)
        if size > most:
            return size
    return size


def detached(value: object) -> object:
    """Copies the plain lists and dicts of a value, which costs a tenth of writing it, so that it stays what it is now.

    Whatever is not plain stays the same object, and what is used twice, or in itself, is so in the copy.
    """
    if type(value) is not list and type(value) is not dict:
        return value
    root: list[object] | dict[object, object] = value.copy()  # pyright: ignore[reportUnknownVariableType]
    copies: dict[int, object] = {id(value): root}
    unvisited = [root]
    while unvisited:
        container = unvisited.pop()
        members: Iterable[tuple[object, object]] = (
            enumerate(container) if isinstance(container, list) else list(container.items())
        )
        for place, member in members:
            if type(member) is list or type(member) is dict:
                copy = copies.get(id(member))  # pyright: ignore[reportUnknownArgumentType]
                if copy is None:
                    copy = member.copy()  # pyright: ignore[reportUnknownVariableType]
                    copies[id(member)] = copy  # pyright: ignore[reportUnknownArgumentType]
                    unvisited.append(copy)  # pyright: ignore[reportUnknownArgumentType]
                container[place] = copy  # pyright: ignore[reportArgumentType, reportCallIssue]
    return root  # pyright: ignore[reportUnknownVariableType]


def long_json_text(value: JsonValue) -> str:
    """Returns the compact JSON text of a lossless value, as a native writer would write it, in many small steps."""
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: JsonValue, parts: list[str]) -> None:
    if isinstance(value, str):
        _write_string(value, parts)
    elif isinstance(value, dict):
        _write_object(value, parts)
    elif isinstance(value, (list, tuple)):
        _write_array(value, parts)
    else:
        parts.append(_encode(value))


def _write_string(value: str, parts: list[str]) -> None:
    parts.append('"')
    parts.extend(_encode(value[start : start + _STEP])[1:-1] for start in range(0, len(value), _STEP))
    parts.append('"')


def _write_array(items: Sequence[JsonValue], parts: list[str]) -> None:
    parts.append("[")
    run: list[JsonValue] = []
    size, comma = 0, ""

    def flush() -> None:
        nonlocal size, comma
        if run:
            parts.append(comma + _encode(run)[1:-1])
            run.clear()
            size, comma = 0, ","

    for item in items:
        of_item = _size(item, _STEP)
        if of_item > _STEP:
            flush()
            parts.append(comma)
            _write(item, parts)
            comma = ","
            continue
        run.append(item)
        size += of_item
        if size > _STEP:
            flush()
    flush()
    parts.append("]")


def _write_object(members: Mapping[str, JsonValue], parts: list[str]) -> None:
    parts.append("{")
    run: dict[str, JsonValue] = {}
    size, comma = 0, ""

    def flush() -> None:
        nonlocal size, comma
        if run:
            parts.append(comma + _encode(run)[1:-1])
            run.clear()
            size, comma = 0, ","

    for key, item in members.items():
        of_item = len(key) + _size(item, _STEP)
        if of_item > _STEP:
            flush()
            parts.append(comma)
            _write_string(key, parts)
            parts.append(":")
            _write(item, parts)
            comma = ","
            continue
        run[key] = item
        size += of_item
        if size > _STEP:
            flush()
    flush()
    parts.append("}")
