"""JSON by native code alone, and which texts of it may hold what is not lossless."""

from __future__ import annotations

import json
import re

__all__ = ["ESCAPED_SURROGATE", "decode_plain", "encode_plain", "is_suspect", "scan_plain"]

# Only a text that matches can have been read as something that is not lossless JSON: an escaped surrogate, or a number
# that a float cannot hold, by its exponent, or by its digits with a short one. All others need no second look.
# One by one they are faster; the last begins at the first digit of a number alone, or many numbers would take seconds.
ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONG_EXPONENT = re.compile(r"[eE]\+?[0-9]{3}")
_LONG_NUMBER = re.compile(r"(?<![0-9])[0-9]{200}")


def is_suspect(text: str) -> bool:
    """Tells whether a JSON text may hold what is not lossless."""
    found = ESCAPED_SURROGATE.search(text) or _LONG_EXPONENT.search(text) or _LONG_NUMBER.search(text)
    return found is not None


def _refuse_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


# Made once: `json.loads` makes a decoder for each text that it is given an option for.
_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
decode_plain = _decoder.decode
scan_plain = _decoder.scan_once  # type: ignore[attr-defined]
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def encode_plain(value: object) -> str | None:
    """Returns the JSON text of a parsed value; `None` where that would not carry it."""
    try:
        text = _encode(value)
        return text if text.isascii() or text.encode() else None
    except (ValueError, RecursionError):  # an infinite number, a lone surrogate, a depth that the stack does not take
        return None
