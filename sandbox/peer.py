"""What comes from the program's side is hostile: every message is checked and rebuilt before anything acts on it.

A malformed message is dropped whole or in part; it never raises in the host (contract F34 to F39).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NamedTuple

from .guest.jsontext import MAX_VALUES, encode, too_many_values
from .seam import FailureKind, JsonValue

__all__ = ["Completion", "PeerCall", "encode_reply", "read_calls", "read_completion", "to_json"]

_CLAIMABLE = {
    kind.value: kind for kind in (FailureKind.EXCEPTION, FailureKind.INVALID_OUTPUT, FailureKind.OUTPUT_LIMIT)
}
_FIELDS = 5
_MAX_ID = (1 << 53) - 1
_MAX_LINE = 1_000_000
_ENVELOPE = 64


class PeerCall(NamedTuple):
    """A call as the peer sent it, rebuilt; `refusal` says why it cannot be made."""

    call_id: int
    namespace: str
    member: str
    arguments: JsonValue
    line: int
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion as the peer claims it."""

    value_json: str | None = None
    kind: FailureKind | None = None
    message: str = ""


# Only a text that matches can have been read as something that is not lossless JSON: an escaped surrogate, or a number
# that a float cannot hold, by its exponent, or by its digits with a short one. All others need no second look.
# One by one they are faster; the last begins at the first digit of a number alone, or many numbers would take seconds.
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONG_EXPONENT = re.compile(r"[eE]\+?[0-9]{3}")
_LONG_NUMBER = re.compile(r"(?<![0-9])[0-9]{200}")


def _is_suspect(text: str) -> bool:
    found = _ESCAPED_SURROGATE.search(text) or _LONG_EXPONENT.search(text) or _LONG_NUMBER.search(text)
    return found is not None


def _refuse_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


# Made once: `json.loads` makes a decoder for each text that it is given an option for.
_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _loads(text: str) -> object:
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return None


def to_json(value: object, root: str) -> str:
    """Returns the JSON text of a host's value.

    Raises:
        LossyValueError: when it is not lossless JSON.
    """
    return encode(value, root)


def read_calls(text: str) -> list[PeerCall] | None:
    """Returns the well-formed calls of a `submit` message, in order; `None` when it is no such message at all."""
    frames = None if too_many_values(text) else _loads(text)
    if not isinstance(frames, list):
        return None
    suspect = _is_suspect(text)
    return [call for frame in frames if (call := _read_call(frame, suspect)) is not None]


def _read_call(frame: object, suspect: bool) -> PeerCall | None:
    if type(frame) is not list or len(frame) != _FIELDS:
        return None
    call_id, namespace, member, arguments, line = frame
    if type(call_id) is not int or not 0 < call_id <= _MAX_ID or type(line) is not int:
        return None
    if type(namespace) is not str or type(member) is not str:
        return None
    if not 0 <= line <= _MAX_LINE:
        line = 0
    if suspect and _text([namespace, member, arguments]) is None:
        return PeerCall(call_id, "", "", None, line, "binding arguments must be lossless JSON")
    return PeerCall(call_id, namespace, member, arguments, line)


def read_completion(text: str, max_bytes: int) -> Completion | None:
    """Returns the completion, or `None` when the message is not one (contract F39).

    Size comes first: what is more than the output cap is not even parsed (contract F47).
    """
    if len(text) > max_bytes + _ENVELOPE:
        return Completion(kind=FailureKind.OUTPUT_LIMIT)
    if too_many_values(text):
        message = f"the returned value has more than {MAX_VALUES:,} values; return less, or a text of them"
        return Completion(kind=FailureKind.INVALID_OUTPUT, message=message)
    match _loads(text):
        case ["nothing"]:
            return Completion()
        case ["value", value]:
            return _read_value(value)
        case ["error", str(kind), str(message)] if kind in _CLAIMABLE:
            return Completion(
                kind=_CLAIMABLE[kind], message=message.encode("utf-8", "backslashreplace").decode("utf-8")
            )
        case _:
            return None


def _read_value(value: object) -> Completion:
    text = _text(value)
    if text is None:
        message = "program completion must be lossless JSON: it holds a number or a text that JSON cannot carry"
        return Completion(kind=FailureKind.INVALID_OUTPUT, message=message)
    return Completion(value_json=text)


def _text(value: object) -> str | None:
    """Returns the JSON text of a parsed value; `None` where that would not carry it. Native code does it."""
    try:
        text = _encode(value)
        return text if text.isascii() or text.encode() else None
    except (ValueError, RecursionError):  # an infinite number, a lone surrogate, a depth that the stack does not take
        return None


def encode_reply(call_id: int, ok: bool, payload_json: str) -> str:
    """Returns one reply as the program's side reads it."""
    return f"[{call_id},{'true' if ok else 'false'},{payload_json}]"
