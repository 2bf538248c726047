"""JSON text at the boundary: what crosses is exactly what the program meant, or it is refused with its path.

Accepted is what `json.dumps(allow_nan=False)` would write, minus its coercions (ruling 33): subclasses of dict and
list, tuples, and members of `StrEnum` and `IntEnum` become plain; keys must be `str`.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring

__all__ = ["MAX_DEPTH", "LossyValueError", "decode", "encode"]

MAX_DEPTH = 256
"""Levels of nesting that cross; at least 200 work everywhere (ruling 34)."""

_MAX_INT_BITS = 14_284  # 4300 decimal digits, which is what Python reads back
_SURROGATE = re.compile("[\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_loads = json.JSONDecoder().decode
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


def decode(text: str) -> object:
    """Returns the value of a JSON text that the host wrote."""
    return _loads(text)


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
    elif isinstance(value, (dict, list, tuple)):
        _enter(value, ancestors)
        if isinstance(value, dict):
            _write_object(value, parts, ancestors)
        else:
            _write_array(value, parts, ancestors)
        ancestors.pop()
    elif isinstance(value, str):
        parts.append(_string(str.__str__(value)))
    elif isinstance(value, int):
        parts.append(_integer(int(value)))
    elif isinstance(value, float):
        parts.append(_number(float(value)))
    else:
        raise _LossyError(_refusal(value))


def _enter(value: object, ancestors: list[int]) -> None:
    if id(value) in ancestors:
        raise _LossyError("contains itself")
    if len(ancestors) >= MAX_DEPTH:
        raise _LossyError(f"is nested deeper than {MAX_DEPTH} levels")
    ancestors.append(id(value))


def _write_object(value: dict[object, object], parts: list[str], ancestors: list[int]) -> None:
    if not value:
        parts.append("{}")
        return
    lead = "{"
    for key, member in dict.items(value):
        if not isinstance(key, str):
            raise _LossyError(f"has a key that is not a string: {_shown(key)} ({type(key).__name__}); use str(key)")
        name = key if type(key) is str else str.__str__(key)
        try:
            parts.append(f"{lead}{_string(name)}:")
            _write(member, parts, ancestors)
        except _LossyError as lossy:
            lossy.segments.append(f".{name}" if _NAME.match(name) else f"[{name!r}]")
            raise
        lead = ","
    parts.append("}")


def _write_array(value: list[object] | tuple[object, ...], parts: list[str], ancestors: list[int]) -> None:
    if not value:
        parts.append("[]")
        return
    items = list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)
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
    parts.append("]")


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
