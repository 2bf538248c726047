"""Texts that a block of TypeScript source can hold: literals, keys and comments (contract G6, G9, G10, ruling 28)."""

from __future__ import annotations

import math
import re
from json.encoder import encode_basestring
from typing import TYPE_CHECKING

from .notes import with_notes
from .text import INVISIBLE, MAX_INT_BITS

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ts_comment", "ts_key", "ts_number", "ts_quoted", "ts_scalar", "ts_type_name"]

_BARE_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*", re.ASCII)
_WORD = re.compile("[A-Za-z0-9]+", re.ASCII)
_MAX_WHOLE = 21
"""ECMAScript writes numbers with an exponent from this many digits before the point on."""
_MAX_ZEROS = 6
"""ECMAScript writes numbers with an exponent when this many zeros would follow the point."""


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def ts_quoted(text: str) -> str:
    """Returns `text` as a JSON string; lone surrogates and whatever a reader would not see are escaped."""
    return INVISIBLE.sub(_escape, encode_basestring(text))


def ts_number(value: float) -> str:
    """Returns the text that ECMAScript gives a number: `1`, `1.5`, `1e-7`, `1e+21` (ruling 28).

    An integer that a double cannot hold keeps its own digits, because rounding it would name another number.
    """
    if isinstance(value, int) and not _is_double(value):
        return f"{value:d}" if value.bit_length() <= MAX_INT_BITS else "..."
    value = float(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    spelled = (whole + fraction).lstrip("0")
    point = len(spelled) - len(fraction) + int(exponent or 0)  # how many digits stand before the point
    digits = spelled.rstrip("0")
    sign = "-" if value < 0 else ""
    if not -_MAX_ZEROS < point <= _MAX_WHOLE:
        after = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{after}e{point - 1:+d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return sign + digits.ljust(point, "0")
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _is_double(value: int) -> bool:
    try:
        return float(value) == value
    except OverflowError:
        return False


def ts_scalar(value: str | float | bool | None) -> str:
    """Returns a JSON scalar as a literal, which is its literal type as well (contract G6)."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ts_quoted(value) if isinstance(value, str) else ts_number(value)


def ts_key(name: str) -> str:
    """Returns the key of a property or of a tool: bare when it can be, else as a JSON string (contract G9)."""
    return name if _BARE_KEY.fullmatch(name) else ts_quoted(name)


def ts_type_name(text: str, *, head: bool = True) -> str:
    """Returns a name in CamelCase for a type: the ASCII letters and digits of `text`.

    Which other characters an identifier may have differs from one compiler to the next.

    Args:
        text: the name of a tool, or of a definition.
        head: whether the result begins a name, and so needs a letter in front.
    """
    name = "".join(word[0].upper() + word[1:] for word in _WORD.findall(text))
    return f"Tool{name}" if head and not name[:1].isalpha() else name


def ts_comment(description: str, notes: Sequence[str] = ()) -> str:
    """Returns a documentation comment on one line (contract G10).

    Args:
        description: the schema's own words, unescaped.
        notes: what the type cannot say.

    Returns:
        the comment; nothing when there is nothing to say, and an empty comment for white space alone.
    """
    if not description and not notes:
        return ""
    text = with_notes(description, notes).replace("*/", "*\\/")
    if text.startswith("@ts-"):  # the compiler would obey
        text = f"\\{text}"
    return f"/** {text} */" if text else "/** */"
