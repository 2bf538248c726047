"""JSON in text: where its documents are, what they say, and how a changed one is written again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from ...registry.lossless import is_lossless

if TYPE_CHECKING:
    from ...registry import JsonValue

__all__ = ["Document", "find_documents", "read_json", "written"]

_DECODER: Final = json.JSONDecoder()
_DOCUMENT: Final = re.compile(r"^[ \t]*+(?=\{\s*+[\"}]|\[\s*+[\[\]{\"\-\dtfn])", re.MULTILINE)
_EFFORT: Final = 16
_MIN_EFFORT: Final = 100_000
"""How much of a text may be read for documents that turn out to be none: so many times its length, and a little."""

_LOOK_AHEAD: Final = 200
_LOOK: Final = 80
"""How much is looked at before a document is read, and what that counts for."""

_CUT: Final = 8
"""How near to the end of a part that was cut off its error is: the longest word of JSON has five letters."""


class Document(NamedTuple):
    """A JSON object or array in a text.

    Attributes:
        start: its first character.
        end: the one after its last.
        value: what it says.
        exact: whether it says nothing that the value does not have; a key twice, for example.
    """

    start: int
    end: int
    value: JsonValue
    exact: bool


class _Reader:
    """Reads one document, and notes when a key is there twice: the value has only the last, and the text has both."""

    __slots__ = ("exact",)

    def __init__(self) -> None:
        self.exact = True

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            self.exact = False
        return members

    def decoder(self) -> json.JSONDecoder:
        return json.JSONDecoder(object_pairs_hook=self.pairs, parse_constant=_refuse, parse_float=_finite)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse(number)


def read_json(text: str) -> tuple[JsonValue, bool]:
    """Reads JSON text, and returns what it says and whether that is all (`Document.exact`).

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deep.
    """
    reader = _Reader()
    value = reader.decoder().decode(text)
    return value, reader.exact


def find_documents(text: str) -> Iterator[Document]:
    """Yields the JSON objects and arrays that begin at the beginning of a line."""
    place = 0
    left = _MIN_EFFORT + _EFFORT * len(text)
    while left > 0 and (found := _DOCUMENT.search(text, place)) is not None:
        start = found.end()
        place = start + 1
        left -= _LOOK
        if not _may_be_json(text[start : start + _LOOK_AHEAD]):
            continue
        reader = _Reader()
        try:
            value, end = reader.decoder().raw_decode(text, start)
        except json.JSONDecodeError as error:
            left -= error.pos  # that far it has been read, or its lines counted
        except (ValueError, RecursionError):
            left -= len(text)
        else:
            yield Document(start, end, value, reader.exact)
            place = end


def _may_be_json(beginning: str) -> bool:
    """Returns whether a document can begin like this; most of what looks like one, `[3 of 5]` for example, cannot."""
    try:
        _DECODER.raw_decode(beginning)
    except json.JSONDecodeError as error:
        # What was cut off fails at its end, or in a text that is not ended.
        return error.pos >= len(beginning) - _CUT or error.msg.startswith("Unterminated")
    except (ValueError, RecursionError):
        return True
    return True


def written(value: JsonValue, *, like: str = "") -> str:
    """Writes JSON anew, over several lines if it was so before.

    Raises:
        ValueError: it holds a number that JSON has not.
    """
    indent, separators = (2, (",", ": ")) if "\n" in like else (None, (",", ":"))
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    if is_lossless(text):
        return text
    # Half of a surrogate pair can only be written as an escape.
    return json.dumps(value, allow_nan=False, indent=indent, separators=separators)
