"""Reading JSON texts of many megabytes in pieces, so that no step of it keeps other threads waiting.

The native parser holds the interpreter until it is through, which takes a second where a hostile text has millions of
small values. Here a native step takes 16 KiB, or one string: a pattern finds how far a run of members with little in
them goes, and what is deeper is entered. Values are made only where they are asked for.
"""

from __future__ import annotations

import enum
import re
from typing import Any, Final

from .guest.jsontext import MAX_VALUES
from .plainjson import ESCAPED_SURROGATE, decode_plain, encode_plain, is_suspect, scan_plain

__all__ = ["MAX_DEPTH", "PIECE", "MalformedError", "TextReader", "TooManyValuesError"]

MAX_DEPTH: Final = 512
"""Levels of nesting that are read; what a program may send has fewer."""
PIECE: Final = 1 << 14
"""The most characters of one native step. The pattern needs some hundred bytes for each while it looks."""
_GLANCE: Final = 1 << 13
"""The most characters of a container that is read in one step, where the pattern does not know it."""


class MalformedError(ValueError):
    """The text is not JSON, or it has more levels than `MAX_DEPTH` or a number longer than a piece."""


class TooManyValuesError(ValueError):
    """The text has more than `MAX_VALUES` values."""


# What may follow is clear from the next character, so that a pattern which fails has not tried many ways.
_PLAIN = r'[^"\\\x00-\x1f]*'
_BODY = rf'{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN})*'
_NUMBER = r"-?(?:0|[1-9][0-9]{0,4299})(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_SCALAR = rf'"{_BODY}"|{_NUMBER}|true|false|null'


_PAIR = f'"{_BODY}": ?(?:{_SCALAR})'
_ARRAY = rf"\[(?:(?:{_SCALAR})(?:, ?(?:{_SCALAR}))*)?\]"
_OBJECT = rf"\{{(?:{_PAIR}(?:, ?{_PAIR})*)?\}}"
_MEMBER = f"{_SCALAR}|{_ARRAY}|{_OBJECT}"

_many_items = re.compile(f"(?: ?(?:{_MEMBER}),)+").match
_many_pairs = re.compile(f'(?: ?"{_BODY}": ?(?:{_MEMBER}),)+').match
_one_body = re.compile(_BODY).match
_one_number = re.compile(_NUMBER).match
_space = re.compile(r"[ \t\n\r]*").match
_WORDS = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}


class _Mark(enum.Enum):
    OPENED = "opened"


_OPENED: Final = _Mark.OPENED


class _Level:
    """One container that the reader is inside of."""

    __slots__ = ("built", "closer", "fresh", "key")

    def __init__(self, built: Any, closer: str) -> None:
        self.built = built
        self.closer = closer
        self.fresh = True
        self.key = ""


class TextReader:
    """Reads one value of a text.

    Args:
        text: the text.
        at: where the value begins.
        build: whether the value is made, and not only checked.

    Attributes:
        at: how far it has come.
        lossy: which members of an outermost array are not lossless JSON; 0 stands for any value that is no array.
    """

    def __init__(self, text: str, at: int, *, build: bool) -> None:
        self.at = at
        self.lossy: set[int] = set()
        self._text = text
        self._build = build
        self._levels: list[_Level] = []
        self._glanced = 0
        # Commas and brackets in strings count at first; there is a second look only where that is too much.
        self._counting = _marks(text) > MAX_VALUES
        self._marks = _marks(text[:at])

    def read(self) -> Any:
        """Returns the value, or `None` where none is made.

        Raises:
            MalformedError: there is none.
            TooManyValuesError: it has too many in it.
        """
        value = self._value()
        while self._levels:
            value = self._member(self._levels[-1])
        return value

    def finish(self, closer: str = "") -> None:
        """Checks that nothing follows but `closer` and space."""
        self._skip()
        self._expect(closer)
        self._skip()
        if self.at != len(self._text):
            raise MalformedError

    def _member(self, level: _Level) -> Any:
        """Takes members of a container up to one that has to be entered, or to its end."""
        self._run(level)
        self._skip()
        if level.fresh and self._text.startswith(level.closer, self.at):
            return self._go_on()
        level.fresh = False
        if level.closer == "}":
            level.key = self._string()
            self._skip()
            self._expect(":")
        value = self._value()
        if value is _OPENED:
            return _OPENED
        self._store(level, value)
        return self._go_on()

    def _run(self, level: _Level) -> None:
        """Takes as many members as a pattern knows, each with the comma that follows it."""
        in_array = level.closer == "]"
        found = (_many_items if in_array else _many_pairs)(self._text, self.at, self.at + PIECE)
        if found is None:
            return
        level.fresh = False
        self.at = found.end()
        piece = found.group()
        self._count(piece)
        suspect = is_suspect(piece)
        if not self._build and not suspect:
            return
        values: Any = decode_plain(f"[{piece[:-1]}]" if in_array else f"{{{piece[:-1]}}}")
        if suspect:
            self._judge(values, members=in_array and len(self._levels) == 1)
        if self._build:
            (level.built.extend if in_array else level.built.update)(values)

    def _judge(self, value: Any, *, members: bool = False) -> None:
        """Notes a value that is not lossless, or those of its members that are not."""
        if encode_plain(value) is not None:
            return
        place = len(self._levels[0].built) if self._build and self._levels and self._levels[0].closer == "]" else 0
        if members:
            self.lossy.update(place + index for index, one in enumerate(value) if encode_plain(one) is None)
        else:
            self.lossy.add(place)

    def _value(self) -> Any:
        """Takes one value; opens a level and returns `_OPENED` for a container that has much in it."""
        self._skip()
        first = self._text[self.at : self.at + 1]
        if first == "[" or first == "{":
            return self._container(first)
        if first == '"':
            return self._string()
        if first in _WORDS:
            word, value = _WORDS[first]
            self._expect(word)
            return value
        return self._number()

    def _container(self, bracket: str) -> Any:
        # What is seen at a glance for nothing must not be more than the text, or each level would cost one.
        if self._glanced <= self.at:
            glance = self._text[self.at : self.at + _GLANCE]
            try:
                value, end = scan_plain(glance, 0)
            except (StopIteration, ValueError, RecursionError):
                self._glanced += len(glance)
            else:
                self.at += end
                piece = glance[:end]
                self._count(piece)
                if is_suspect(piece):
                    self._judge(value, members=not self._levels and isinstance(value, list))
                return value if self._build else None
        if len(self._levels) >= MAX_DEPTH:
            raise MalformedError
        self.at += 1
        self._count(bracket)
        built = ([] if bracket == "[" else {}) if self._build else None
        self._levels.append(_Level(built, "]" if bracket == "[" else "}"))
        return _OPENED

    def _string(self) -> Any:
        start = self.at
        self._expect('"')
        suspect = False
        while found := _one_body(self._text, self.at, self.at + PIECE):
            if found.end() == self.at:
                break
            self.at = found.end()
            suspect = suspect or ESCAPED_SURROGATE.search(found.group()) is not None
        self._expect('"')
        return self._made(self._text[start : self.at], suspect) if self._build or suspect else None

    def _number(self) -> Any:
        most = self.at + PIECE
        found = _one_number(self._text, self.at, most)
        if found is None or found.end() == most:
            raise MalformedError
        self.at = found.end()
        return self._made(found.group(), True)

    def _made(self, piece: str, suspect: bool) -> Any:
        if not self._build and not suspect:
            return None
        value = decode_plain(piece)
        if suspect:
            self._judge(value)
        return value

    def _store(self, level: _Level, value: Any) -> None:
        if not self._build:
            return
        if level.closer == "]":
            level.built.append(value)
        else:
            level.built[level.key] = value

    def _go_on(self) -> Any:
        """Takes the comma after a member, or the ends of as many containers as end there."""
        while True:
            self._skip()
            level = self._levels[-1]
            if not level.fresh and self._text.startswith(",", self.at):
                self.at += 1
                self._count(",")
                return _OPENED
            self._expect(level.closer)
            self._levels.pop()
            if not self._levels:
                return level.built
            self._store(self._levels[-1], level.built)

    def _count(self, piece: str) -> None:
        if self._counting:
            self._marks += _bare_marks(piece)
            if self._marks > MAX_VALUES:
                raise TooManyValuesError

    def _expect(self, token: str) -> None:
        if not self._text.startswith(token, self.at):
            raise MalformedError
        self.at += len(token)

    def _skip(self) -> None:
        while (found := _space(self._text, self.at, self.at + PIECE)) and found.end() > self.at:
            self.at = found.end()


def _marks(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


_STRING = re.compile(rf'"{_BODY}"')


def _bare_marks(piece: str) -> int:
    return _marks(_STRING.sub("", piece) if '"' in piece else piece)
