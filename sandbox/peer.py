"""What comes from the program's side is hostile: every message is checked and rebuilt before anything acts on it.

A malformed message is dropped whole or in part; it never raises in the host (contract F34 to F39). Long messages take
a while, in which other threads go on: whoever is on an event loop's thread hands them to another one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from .guest.jsontext import MAX_VALUES, encode
from .plainjson import decode_plain, encode_plain, is_suspect
from .seam import FailureKind, JsonValue

__all__ = ["IN_ONE_STEP", "Completion", "PeerCall", "encode_reply", "read_calls", "read_completion", "to_json"]

_CLAIMABLE = {
    kind.value: kind for kind in (FailureKind.EXCEPTION, FailureKind.INVALID_OUTPUT, FailureKind.OUTPUT_LIMIT)
}
_FIELDS = 5
_MAX_ID = (1 << 53) - 1
_MAX_LINE = 1_000_000
_ENVELOPE = 64
IN_ONE_STEP = 1 << 16
"""Up to so many characters of a message are read at once, by native code; that takes a few milliseconds."""
_VALUE_BEGINS = re.compile(r'[ \t\n\r]*\[[ \t\n\r]*"value"[ \t\n\r]*,[ \t\n\r]*')


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


def _loads(text: str) -> object:
    try:
        return decode_plain(text)
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
    if len(text) > IN_ONE_STEP:
        return _read_long_calls(text)
    frames = _loads(text)
    if not isinstance(frames, list):
        return None
    suspect = is_suspect(text)
    read = [_read_call(frame, suspect and _is_lossy(frame)) for frame in frames]
    return [call for call in read if call is not None]


def _read_long_calls(text: str) -> list[PeerCall] | None:
    from .jsonpieces import TextReader  # its patterns are for few runs, and take a while to make

    reader = TextReader(text, 0, build=True)
    try:
        frames = reader.read()
        reader.finish()
    except ValueError:  # it is malformed, or holds too much
        return None
    if not isinstance(frames, list):
        return None
    read = [_read_call(frame, index in reader.lossy) for index, frame in enumerate(frames)]
    return [call for call in read if call is not None]


def _is_lossy(frame: object) -> bool:
    return encode_plain(frame) is None


def _read_call(frame: object, lossy: bool) -> PeerCall | None:
    if type(frame) is not list or len(frame) != _FIELDS:
        return None
    call_id, namespace, member, arguments, line = frame
    if type(call_id) is not int or not 0 < call_id <= _MAX_ID or type(line) is not int:
        return None
    if type(namespace) is not str or type(member) is not str:
        return None
    if not 0 <= line <= _MAX_LINE:
        line = 0
    if lossy:
        return PeerCall(call_id, "", "", None, line, "binding arguments must be lossless JSON")
    return PeerCall(call_id, namespace, member, arguments, line)


def read_completion(text: str, max_bytes: int) -> Completion | None:
    """Returns the completion, or `None` when the message is not one (contract F39).

    Size comes first: what is more than the output cap is not even parsed (contract F47).
    """
    if len(text) > max_bytes + _ENVELOPE:
        return Completion(kind=FailureKind.OUTPUT_LIMIT)
    return _read_long_completion(text) if len(text) > IN_ONE_STEP else _claimed(_loads(text))


def _read_long_completion(text: str) -> Completion | None:
    from .jsonpieces import TextReader, TooManyValuesError  # as above

    begun = _VALUE_BEGINS.match(text)
    # What the program returns stays text: it is checked, and nothing is made of it.
    reader = TextReader(text, begun.end() if begun is not None else 0, build=begun is None)
    start = reader.at
    try:
        value = reader.read()
        end = reader.at
        reader.finish("]" if begun is not None else "")
    except TooManyValuesError:
        message = f"the returned value has more than {MAX_VALUES:,} values; return less, or a text of them"
        return Completion(kind=FailureKind.INVALID_OUTPUT, message=message)
    except ValueError:
        return None
    if begun is not None:
        return _value_completion(None if reader.lossy or not _is_unicode(text) else text[start:end])
    # Nobody spells "value" in another way, and to write the value anew would take all its time in one step.
    return None if isinstance(value, list) and value[:1] == ["value"] else _claimed(value)


def _is_unicode(text: str) -> bool:
    try:
        for start in range(0, len(text), IN_ONE_STEP):
            text[start : start + IN_ONE_STEP].encode()
    except UnicodeEncodeError:
        return False
    return True


def _claimed(completion: object) -> Completion | None:
    match completion:
        case ["nothing"]:
            return Completion()
        case ["value", value]:
            return _value_completion(encode_plain(value))
        case ["error", str(kind), str(message)] if kind in _CLAIMABLE:
            return Completion(
                kind=_CLAIMABLE[kind], message=message.encode("utf-8", "backslashreplace").decode("utf-8")
            )
        case _:
            return None


def _value_completion(value_json: str | None) -> Completion:
    if value_json is None:
        message = "program completion must be lossless JSON: it holds a number or a text that JSON cannot carry"
        return Completion(kind=FailureKind.INVALID_OUTPUT, message=message)
    return Completion(value_json=value_json)


def encode_reply(call_id: int, ok: bool, payload_json: str) -> str:
    """Returns one reply as the program's side reads it."""
    return f"[{call_id},{'true' if ok else 'false'},{payload_json}]"
