"""JSON text at the boundary: what crosses is exactly what the program meant, or it is refused with its path.

Accepted is what `json.dumps(allow_nan=False)` would write, minus its coercions (ruling 33): subclasses of dict and
list, tuples, and members of `StrEnum` and `IntEnum` become plain; keys must be `str`.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring

from .intrinsics import INTRINSICS

__all__ = ["MAX_DEPTH", "MAX_VALUES", "LossyValueError", "byte_size", "decode", "encode", "exceeds", "too_many_values"]

__builtins__ = INTRINSICS

MAX_DEPTH = 256
"""Levels of nesting that cross; at least 200 work everywhere (ruling 34)."""
MAX_VALUES = 2_000_000
"""Values that cross in one message: small ones cost many times their text once they are objects of the host."""

_MAX_INT_BITS = 14_284  # 4300 decimal digits, which is what Python reads back
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING = re.compile('"[^"]*"?')
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_quoted = encode_basestring
_INFINITIES = (float("inf"), float("-inf"))
_float_text = float.__repr__
_int_text = int.__repr__

_WAYS_OUT = {
    "set": "use sorted(...) or list(...)",
    "frozenset": "use sorted(...) or list(...)",
    "bytes": "use .decode() or base64",
    "bytearray": "use .decode() or base64",
    "Decimal": "use str(...) or float(...)",
    "Fraction": "use str(...) or float(...)",
    "datetime": "use .isoformat()",
    "date": "use .isoformat()",
    "time": "use .isoformat()",
    "timedelta": "use .total_seconds()",
    "UUID": "use str(...)",
    "PosixPath": "use str(...)",
    "PurePosixPath": "use str(...)",
    "complex": "use [z.real, z.imag]",
    "dict_keys": "use list(...)",
    "dict_values": "use list(...)",
    "dict_items": "use list(...)",
    "generator": "use list(...)",
    "range": "use list(...)",
    "map": "use list(...)",
    "filter": "use list(...)",
    "zip": "use list(...)",
    "deque": "use list(...)",
    "coroutine": "write `await` before the call",
    "PendingCall": "write `await` before the call",
    "async_generator": "collect it with `[x async for x in ...]`",
    "Task": "write `await` before the task",
    "Future": "write `await` before the future",
}


class LossyValueError(ValueError):
    """A value that JSON cannot carry unchanged; the message names the path and the way out."""


class _LossyError(Exception):
    """What is wrong, and where; the path is collected on the way out, so that it costs nothing otherwise."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.segments: list[str] = []


def encode(value: object, root: str) -> str:
    """Returns the JSON text of `value`.

    Raises:
        LossyValueError: when a part of it is not lossless JSON; the path starts with `root`.
    """
    parts: list[str] = []
    try:
        _write(value, parts, [])
    except _LossyError as lossy:
        raise LossyValueError(f"{root}{''.join(reversed(lossy.segments))} {lossy.problem}") from None
    except RecursionError:
        raise LossyValueError(f"{root} is nested too deep for the stack that is left here") from None
    return "".join(parts)


def byte_size(text: str) -> int:
    """Returns the bytes of a text as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def too_many_values(text: str) -> bool:
    """Tells whether a JSON text holds more than `MAX_VALUES` values.

    Each follows a comma or opens an array or an object, or comes first in one; what stands in strings does not count.
    """
    if _marks(text) <= MAX_VALUES:
        return False
    bare = text.replace("\\\\", "").replace('\\"', "")
    return _marks(_STRING.sub("", bare)) > MAX_VALUES


def _marks(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def exceeds(value: object, most: int) -> bool:
    """Tells whether the JSON text of `value` is surely longer than `most` bytes; looks no further than it must.

    It is for a value whose text cannot be made: being too large goes before all else (contract F47).
    """
    try:
        return _left(value, most, []) < 0
    except (_LossyError, RecursionError):  # `encode` says what is wrong
        return False


def _left(value: object, room: int, ancestors: list[int]) -> int:
    """Returns the characters that are left of `room` after what `value` takes at least; negative: it is too large."""
    # By the type and the methods of the plain types: what a program's own class says of itself decides nothing.
    kind = type(value)
    if issubclass(kind, str):
        return room - str.__len__(value) - 2  # type: ignore[arg-type]
    if issubclass(kind, dict):
        _enter(value, ancestors)
        room -= dict.__len__(value) + 1  # type: ignore[arg-type]
        for key, member in dict.items(value):  # type: ignore[arg-type]
            room = _left(member, room - (str.__len__(key) + 3 if issubclass(type(key), str) else 1), ancestors)
            if room < 0:
                break
    elif issubclass(kind, (list, tuple)):
        _enter(value, ancestors)
        plain = list if issubclass(kind, list) else tuple
        room -= plain.__len__(value) + 1  # type: ignore[arg-type]
        for member in plain.__iter__(value):  # type: ignore[arg-type]
            room = _left(member, room, ancestors)
            if room < 0:
                break
    else:
        return room - 1
    ancestors.pop()
    return room


def decode(text: str) -> object:
    """Returns the value of a JSON text that the host wrote."""
    # Native code alone: the decoder's own method looks up builtins that a program may have changed.
    return _scan(text, 0)[0]


def _write(value: object, parts: list[str], ancestors: list[int]) -> None:
    kind = type(value)
    if kind is str:
        parts.append(_string(value))  # type: ignore[arg-type]
    elif value is None:
        parts.append("null")
    elif kind is bool:
        parts.append("true" if value else "false")
    elif kind is int:
        parts.append(_integer(value))  # type: ignore[arg-type]
    elif kind is float:
        parts.append(_number(value))  # type: ignore[arg-type]
    # By its type: what a class gives as `__class__` is no more than that.
    elif issubclass(kind, (dict, list, tuple)):
        _enter(value, ancestors)
        if issubclass(kind, dict):
            _write_object(value, parts, ancestors)  # type: ignore[arg-type]
        else:
            _write_array(value, parts, ancestors)  # type: ignore[arg-type]
        ancestors.pop()
    elif issubclass(kind, str):
        parts.append(_string(str.__str__(value)))  # type: ignore[arg-type]
    elif issubclass(kind, int):
        parts.append(_integer(int.__index__(value)))  # type: ignore[arg-type]
    elif issubclass(kind, float):
        parts.append(_number(float.__float__(value)))  # type: ignore[arg-type]
    else:
        raise _LossyError(_refusal(value))


def _enter(value: object, ancestors: list[int]) -> None:
    if id(value) in ancestors:
        raise _LossyError("contains itself")
    if len(ancestors) >= MAX_DEPTH:
        raise _LossyError(f"is nested deeper than {MAX_DEPTH} levels")
    ancestors.append(id(value))


def _write_object(value: dict[object, object], parts: list[str], ancestors: list[int]) -> None:
    lead = "{"
    for key, member in dict.items(value):
        if not issubclass(type(key), str):
            raise _LossyError(f"has a key that is not a string: {_shown(key)} ({type(key).__name__}); use str(key)")
        name: str = key if type(key) is str else str.__str__(key)  # type: ignore[assignment, arg-type]
        try:
            parts.append(f"{lead}{_string(name)}:")
            _write(member, parts, ancestors)
        except _LossyError as lossy:
            lossy.segments.append(f".{name}" if _NAME.match(name) else f"[{name!r}]")
            raise
        lead = ","
    # What was written tells whether it is empty; the class of the value may say something else.
    parts.append("}" if lead == "," else "{}")


def _write_array(value: list[object] | tuple[object, ...], parts: list[str], ancestors: list[int]) -> None:
    items = list.__iter__(value) if issubclass(type(value), list) else tuple.__iter__(value)  # type: ignore[arg-type]
    lead = "["
    index = 0
    try:
        for member in items:
            parts.append(lead)
            _write(member, parts, ancestors)
            lead = ","
            index += 1
    except _LossyError as lossy:
        lossy.segments.append(f"[{index}]")
        raise
    parts.append("]" if index else "[]")


def _string(value: str) -> str:
    if not value.isascii() and _SURROGATE.search(value):
        raise _LossyError("holds a lone surrogate, which is not text that UTF-8 can carry")
    return _quoted(value)


def _integer(value: int) -> str:
    # By its size, whatever the program has set as the interpreter's own limit.
    if value.bit_length() > _MAX_INT_BITS:
        raise _LossyError("is an integer of more than 4300 digits; send it as hex(...)")
    return _int_text(value)


def _number(value: float) -> str:
    if value != value or value in _INFINITIES:
        raise _LossyError(f"is {value!r}, which JSON does not have; use None or a string")
    return _float_text(value)


def _refusal(value: object) -> str:
    kind = type(value)
    way_out = _WAYS_OUT.get(kind.__name__)
    if way_out is None and hasattr(kind, "__dataclass_fields__"):
        way_out = "use dataclasses.asdict(...)"
    if way_out is None:
        way_out = "use str(...) or pick the fields that you need"
    return f"is of type {kind.__name__}, which JSON does not have; {way_out}"


def _shown(key: object) -> str:
    try:
        text = repr(key)
    except Exception:
        return "?"
    return text if len(text) <= 60 else text[:57] + "..."
