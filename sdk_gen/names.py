"""Names in the Python block: which names Python can spell, and how classes are called (contract G16 to G19)."""

from __future__ import annotations

import keyword
import re
import unicodedata
from functools import lru_cache

from .text import INVISIBLE

__all__ = ["MAX_NAME_CHARS", "ClassNames", "camel", "is_field_name", "is_method_name", "joined"]

MAX_NAME_CHARS = 120
"""The longest class name, before the number that a collision adds (contract G19, ruling 29)."""


_KNOWN_NAMES = 2_048
"""How many names are remembered: the fields of many objects have the same few."""

_ASCII_BREAKS = re.compile("[^A-Za-z0-9]+")


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _is_bare(name: str) -> bool:
    # Python normalises identifiers, so a name that NFKC changes would name something else at run time. And a name with
    # characters that nobody sees would look like another one; in quotes they are escaped.
    if not name.isidentifier() or keyword.iskeyword(name):
        return False
    return name.isascii() or (_nfkc(name) == name and INVISIBLE.search(name) is None)


@lru_cache(_KNOWN_NAMES)
def is_field_name(name: str) -> bool:
    """Whether a TypedDict can have a field of this name (contract G16)."""
    mangled = name.startswith("__") and not name.endswith("__")
    return _is_bare(name) and name != "__debug__" and not mangled


def is_method_name(name: str) -> bool:
    """Whether a tool of this name is called as `tools.name` rather than `tools["name"]` (contract G21)."""
    return _is_bare(name) and not name.startswith("_")


@lru_cache(_KNOWN_NAMES)
def camel(text: str) -> str:
    """Returns a tool's or a field's name in CamelCase, always a valid identifier (contract G18)."""
    if text.isascii():
        words = _ASCII_BREAKS.split(text)
    else:
        words = "".join(
            char if char != "_" and f"a{char}".isidentifier() and not INVISIBLE.match(char) else " " for char in text
        ).split(" ")
    name = _nfkc("".join(word[0].upper() + word[1:] for word in words if word))
    return name if name[:1].isidentifier() else _nfkc(f"Tool{name}")


def joined(parent: str, child: str) -> str:
    """Returns `parent` and `child` as one name."""
    return _nfkc(parent + child)


class ClassNames:
    """Hands out class names, each once: a taken base gets 2, 3, ... appended (contract G19)."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def take_over(self, others: ClassNames) -> bool:
        """Takes what `others` handed out as handed out here, when it would have been the same here; says whether."""
        if not (self._taken.isdisjoint(others._taken) and self._next.keys().isdisjoint(others._next)):
            return False
        self._taken |= others._taken
        self._next.update(others._next)
        return True

    def allocate(self, base: str) -> str:
        """Returns `base`, cut to `MAX_NAME_CHARS`, or that with the next free number when it is taken."""
        base = base[:MAX_NAME_CHARS]
        name, number = base, self._next.get(base, 2)
        while name in self._taken:
            name, number = f"{base}{number}", number + 1
        self._next[base] = number
        self._taken.add(name)
        return name
