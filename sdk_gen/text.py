r"""Texts that a block of Python source can hold: comments, docstrings, string literals (contract G12, G22).

Whatever could end a line, turn the reading direction or hide from the reader is written as an escape (`\x00`,
`\u202e`), so a description can neither break the block nor smuggle in what nobody sees.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

__all__ = [
    "INVISIBLE",
    "MAX_INT_BITS",
    "comment_text",
    "docstring_text",
    "is_json",
    "quoted",
    "scalar_text",
    "value_text",
]

# ECMAScript's white space and line terminators: Python's own `\s` has some more and lacks U+FEFF.
_WHITESPACE = re.compile("[\\t\\n\\v\\f\\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")

_SPACES = re.compile(" +")

INVISIBLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls, lone surrogates, and what has no glyph: format characters, fillers, selectors of variants of a glyph.

The joiners U+200C and U+200D stay, for words need them, and so do U+FE0E and U+FE0F, for emoji do.
"""

MAX_INT_BITS = 2048
"""Integers above this are not spelled out: a Python may refuse to read more than 640 digits."""

_CUT = "..."

ScalarText: TypeAlias = Callable[[str | float | bool | None], str]
"""Writes a JSON scalar as source of one language."""


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def comment_text(text: str) -> str:
    """Returns `text` as one visible line: white space collapsed, hidden characters escaped (contract G22)."""
    if text.isascii() and text.isprintable():  # most are: the spaces are all that there is to do
        return _SPACES.sub(" ", text).strip(" ") if "  " in text else text.strip(" ")
    return INVISIBLE.sub(_escape, _WHITESPACE.sub(" ", text)).strip(" ")


def docstring_text(text: str) -> str:
    r"""Returns `comment_text(text)` for use between triple quotes: backslashes doubled, quotes as `\"`."""
    return comment_text(text).replace("\\", "\\\\").replace('"', '\\"')


def quoted(text: str) -> str:
    """Returns `text` as a string literal in double quotes that Python reads back as it is."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return INVISIBLE.sub(_escape, json.dumps(text, ensure_ascii=False))


def scalar_text(value: str | float | bool | None) -> str:
    """Returns a JSON scalar as a Python literal; numbers have Python's JSON text (contract G12, ruling 28)."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return int.__repr__(value) if value.bit_length() <= MAX_INT_BITS else _CUT
    return json.dumps(value)


def value_text(value: object, scalar: ScalarText = scalar_text, *, max_chars: int = 160) -> str:
    """Returns a JSON value as source on one line, for a comment: cut at three levels and at `max_chars`.

    Args:
        value: the value; `...` stands for what is no JSON in it.
        scalar: how the language writes a scalar.
        max_chars: the longest text.
    """
    text = _nested_text(value, scalar, 3)
    return text if len(text) <= max_chars else text[: max_chars - len(_CUT)] + _CUT


def _nested_text(value: object, scalar: ScalarText, levels: int) -> str:
    if value is None or isinstance(value, (str, bool, int, float)):
        return scalar(value)
    if isinstance(value, Mapping):
        if value and not levels:
            return "{" + _CUT + "}"
        pairs = [
            f"{_nested_text(key, scalar, 0)}: {_nested_text(item, scalar, levels - 1)}" for key, item in value.items()
        ]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        if value and not levels:
            return "[" + _CUT + "]"
        return "[" + ", ".join(_nested_text(item, scalar, levels - 1) for item in value) + "]"
    return _CUT


def is_json(value: object) -> bool:
    """Whether `value` is made of JSON's types alone, with finite numbers and string keys, at any depth."""
    pending = [value]
    seen: set[int] = set()
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            continue
        if isinstance(item, (dict, list, tuple, Mapping)):
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, (dict, Mapping)):
                if not all(isinstance(key, str) for key in item):
                    return False
                pending.extend(item.values())
            else:
                pending.extend(item)
        elif isinstance(item, float):
            if not math.isfinite(item):
                return False
        elif item is not None and not isinstance(item, int):
            return False
    return True
