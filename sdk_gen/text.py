r"""Texts that a block of Python source can hold: comments, docstrings, string literals (contract G12, G22).

Whatever could end a line, turn the reading direction or hide from the reader is written as an escape (`\x00`,
`\u202e`), so a description can neither break the block nor smuggle in what nobody sees.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping

__all__ = ["comment_text", "docstring_text", "is_json", "quoted", "scalar_text", "value_text"]

# ECMAScript's white space and line terminators: Python's own `\s` has some more and lacks U+FEFF.
_WHITESPACE = re.compile("[\\t\\n\\v\\f\\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")

# Controls, lone surrogates, and format characters without a glyph. The joiners U+200C and U+200D stay: words need them.
_INVISIBLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f"
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)

MAX_INT_BITS = 2048
"""Integers above this are not spelled out: a Python may refuse to read more than 640 digits."""

_CUT = "..."


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def comment_text(text: str) -> str:
    """Returns `text` as one visible line: white space collapsed, hidden characters escaped (contract G22)."""
    return _INVISIBLE.sub(_escape, _WHITESPACE.sub(" ", text)).strip(" ")


def docstring_text(text: str) -> str:
    r"""Returns `comment_text(text)` for use between triple quotes: backslashes doubled, quotes as `\"`."""
    return comment_text(text).replace("\\", "\\\\").replace('"', '\\"')


def quoted(text: str) -> str:
    """Returns `text` as a string literal in double quotes that Python reads back as it is."""
    return _INVISIBLE.sub(_escape, json.dumps(text, ensure_ascii=False))


def scalar_text(value: str | float | bool | None) -> str:
    """Returns a JSON scalar as a Python literal; numbers have Python's JSON text (contract G12, ruling 28)."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
        return _CUT
    return json.dumps(value)


def value_text(value: object, *, max_chars: int = 160) -> str:
    """Returns a JSON value as Python source on one line, for a comment: cut at three levels and at `max_chars`."""
    text = _nested_text(value, 3)
    return text if len(text) <= max_chars else text[: max_chars - len(_CUT)] + _CUT


def _nested_text(value: object, levels: int) -> str:
    if isinstance(value, Mapping):
        if value and not levels:
            return "{" + _CUT + "}"
        pairs = [f"{_nested_text(key, 0)}: {_nested_text(item, levels - 1)}" for key, item in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        if value and not levels:
            return "[" + _CUT + "]"
        return "[" + ", ".join(_nested_text(item, levels - 1) for item in value) + "]"
    return scalar_text(value) if value is None or isinstance(value, (str, bool, int, float)) else _CUT


def is_json(value: object) -> bool:
    """Whether `value` is made of JSON's types alone, with finite numbers and string keys, at any depth."""
    pending = [value]
    seen: set[int] = set()
    while pending:
        item = pending.pop()
        if isinstance(item, (Mapping, list, tuple)):
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, Mapping):
                if not all(isinstance(key, str) for key in item):
                    return False
                pending.extend(item.values())
            else:
                pending.extend(item)
        elif isinstance(item, float):
            if not math.isfinite(item):
                return False
        elif item is not None and not isinstance(item, (str, int)):
            return False
    return True
