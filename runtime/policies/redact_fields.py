"""Fields in text that is no JSON: where the value of `name: value` or `name=value` begins and ends.

Such text is a log, a header, a query string, a `repr`, a program, or JSON with something around it. Where the end of a
value cannot be told, more is taken rather than less.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from .secret_shapes import Found

if TYPE_CHECKING:
    from .redact_rules import FieldRules

__all__ = ["find_fields"]

_BETWEEN: Final = r"\\*+[\"']?\]?\s*+(?P<sign>:=|=>|==|[:=])\s*+"
_WORD: Final = re.compile(rf"(?:(?<![\w-])|(?<=[0-9;\[]m)(?![\w-]{{129}}))(?P<name>[^\W\d][\w-]*+){_BETWEEN}")
"""A name is a word, or stands right behind a sequence that colours it; then it is short, which keeps this quick."""

_QUOTED: Final = re.compile(rf"[\"'](?P<name>[^\"'\\\n]{{1,128}}+){_BETWEEN}")
_ESCAPED: Final = "abfnrtv"
"""What stands behind a backslash in the escapes of a `repr`, and so right before a name."""

_ANNOTATION: Final = re.compile(r"[\w.\[\], |\"']{1,80}?=\s*+(?!=)")
"""Between a name and its value in `name: type = value`."""

_OPENING: Final = re.compile(r"[rRbBuUfF]{0,2}(?P<quote>\\*+(?:\"\"\"|'''|\"|'))")
_BODIES: Final = {'"': re.compile(r'(?:[^"\\\n]|\\.)*+', re.DOTALL), "'": re.compile(r"(?:[^'\\\n]|\\.)*+", re.DOTALL)}
_MORE: Final = re.compile(r"\s*+\+?\s*+(?=[rRbBuUfF]{0,2}[\"'])")
_NUMBER: Final = re.compile(r"[-+]?\d[\w.+-]*+|(?:[Tt]rue|[Ff]alse)\b")
_NOTHING: Final = re.compile(r"(?:null|None|nil)\b")
_LINE: Final = re.compile(r"[^\r\n]*+")
_TOKEN: Final = re.compile(r"[^\s&]*+")
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_BRACKETS: Final = re.compile(r"[()\[\]{}\"']")
_DECODER: Final = json.JSONDecoder()
_MAX_DECODED: Final = 65_536


def find_fields(text: str, rules: FieldRules, *, program: bool) -> Iterator[Found]:
    """Yields the values of the fields that rules name.

    Args:
        text: the text.
        rules: the rules; paths mean nothing here.
        program: whether the text is a program: there only literals are values, and names stand for something else.
    """
    if ":" not in text and "=" not in text:
        return
    known: dict[str, bool] = {}

    def is_named(name: str) -> bool:
        if name not in known:
            known[name] = rules.has_name(name)
        return known[name]

    for pattern in (_WORD, _QUOTED) if rules.spaced else (_WORD,):
        place = 0
        while (key := pattern.search(text, place)) is not None:
            name, place = key["name"], key.end()
            if is_named(name) or (_ends_escape(text, key.start("name")) and is_named(name[1:])):
                for found in _value(text, place, key["sign"], program):
                    yield found
                    place = max(place, found.end)  # whatever is in a value goes with it


def _ends_escape(text: str, place: int) -> bool:
    """Returns whether the letter at a place is the end of an escape, as that of a line feed in a `repr` is."""
    return place > 0 and text[place - 1] == "\\" and text[place] in _ESCAPED


def _value(text: str, place: int, sign: str, program: bool) -> Iterator[Found]:
    literals = list(_literals(text, place))
    if not literals and program and sign == ":":
        annotation = _ANNOTATION.match(text, place)
        if annotation is not None:
            literals = list(_literals(text, annotation.end()))
    if literals or program or _NOTHING.match(text, place):
        yield from literals
        return
    found = (_LINE if sign == ":" else _TOKEN).match(text, place)
    if found is not None and found[0].strip():
        yield Found(place, found.end(), found[0])


def _literals(text: str, place: int) -> Iterator[Found]:
    """Yields the literal at a place, and those that are joined to it."""
    opening = _OPENING.match(text, place)
    if opening is None:
        if place < len(text) and text[place] in _CLOSING:
            yield _container(text, place)
        elif (number := _NUMBER.match(text, place)) is not None:
            yield Found(place, number.end(), number[0])
    while opening is not None:
        found = _string(text, opening)
        yield found
        end = found.end + len(opening["quote"])
        more = _MORE.match(text, end)
        opening = None if more is None else _OPENING.match(text, more.end())


def _string(text: str, opening: re.Match[str]) -> Found:
    quote, start = opening["quote"], opening.end()
    if len(quote) > 1:  # three quotes, or one that is escaped, because all of it stands in a string
        end = text.find(quote, start)
        while end > start and text[end - 1] == "\\":
            end = text.find(quote, end + 1)
        return Found(start, len(text) if end < 0 else end)
    body = _BODIES[quote].match(text, start)
    end = start if body is None else body.end()
    inner = text[start:end]
    if "\\" not in inner:
        return Found(start, end, inner)
    try:
        return Found(start, end, json.loads(f'"{inner}"'))
    except ValueError:
        return Found(start, end, inner)


def _container(text: str, place: int) -> Found:
    if text[place] != "(":
        try:
            # In a slice, because the error of a decoder counts the lines before it.
            value, length = _DECODER.raw_decode(text[place : place + _MAX_DECODED])
        except (ValueError, RecursionError):
            pass  # it is no JSON, or longer: then its end is what counts
        else:
            return Found(place, place + length, value)
    return Found(place, _balanced(text, place))


def _balanced(text: str, place: int) -> int:
    """Returns where the brackets that open at a place are closed; the end of the text when they are not."""
    waiting: list[str] = []
    while True:
        found = _BRACKETS.search(text, place)
        if found is None:
            return len(text)
        sign, place = found[0], found.end()
        if sign in _CLOSING:
            waiting.append(_CLOSING[sign])
        elif sign in _BODIES:
            body = _BODIES[sign].match(text, place)
            place = place + 1 if body is None else body.end() + 1
        elif waiting and waiting[-1] == sign:
            waiting.pop()
            if not waiting:
                return place
