"""Which fields of a JSON value are redacted: by name wherever they are, and by path from the root of the value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

__all__ = ["FieldRules", "Places", "compiled_pattern", "plain_name"]

Places: TypeAlias = tuple[tuple[tuple[str | int | None, ...], int], ...]
"""The paths that a walk is on, each with how many of its steps have been made."""

_STEP: Final = re.compile(
    r"""(?P<dot>\.)?(?:(?P<name>[^.\[\]*"'\s]+)|(?P<any>\*))|\[(?:(?P<index>\d+)|(?P<every>\*)|"(?P<quoted>[^"]+)")\]"""
)
_NOT_LETTERS: Final = re.compile(r"[\W_]+")


def plain_name(name: str) -> str:
    """Returns a name as rules compare it: `api_key`, `apiKey` and `API-KEY` are one field."""
    return _NOT_LETTERS.sub("", name).casefold()


class FieldRules:
    """The rules.

    Args:
        fields: names of fields, in which `*` stands for anything.
        paths: paths such as `customer.card.number`, `rows[*].ssn`, `rows[0]`, `*.token`, `["odd.name"]`; a leading `$`
            is no matter.

    Attributes:
        named: whether there are names.
        start: the paths at the root of a value.
        spaced: whether a name has other characters than a word.

    Raises:
        TypeError: a name or path is no text, or a single text was given where several are due.
        ValueError: a name is empty, or a path is not well-formed.
    """

    __slots__ = ("_names", "_patterns", "named", "spaced", "start")

    def __init__(self, fields: Iterable[str], paths: Iterable[str]) -> None:
        names = _texts("fields", fields)
        for name in names:
            if not plain_name(name):
                raise ValueError(f"the name of a field must have letters or digits: {name!r}")
        self._names = frozenset(plain_name(name) for name in names if "*" not in name)
        self._patterns = [_parts(name) for name in names if "*" in name]
        self.named = bool(names)
        self.spaced = any(re.search(r"[^\w*-]", name) for name in names)
        self.start: Places = tuple((_steps(path), 0) for path in _texts("paths", paths))

    def __bool__(self) -> bool:
        return self.named or bool(self.start)

    def has_name(self, key: str) -> bool:
        """Returns whether a field of this name is redacted wherever it is."""
        if not self.named:
            return False
        name = plain_name(key)
        return name in self._names or any(_has_parts(name, parts) for parts in self._patterns)

    def step(self, places: Places, key: str | int) -> tuple[bool, Places]:
        """Goes one step on from `places`: returns whether a path ends there, and the places to go on from."""
        if not places:
            return False, ()
        made = [
            (steps, done + 1)
            for steps, done in places
            if steps[done] is None or (steps[done] == key and type(steps[done]) is type(key))
        ]
        ended = any(done == len(steps) for steps, done in made)
        return ended, () if ended else tuple(made)


def compiled_pattern(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    """Returns a regular expression for text.

    Raises:
        TypeError: it is no text and no pattern, or a pattern for bytes.
        ValueError: it is not well-formed.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    except TypeError:
        compiled = None
    if compiled is None or not isinstance(compiled.pattern, str):
        raise TypeError(f"a pattern is a regular expression for text, not {pattern!r}")
    return compiled


def _texts(what: str, given: Iterable[str]) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{what} is a list of texts, not one: [{given!r}]")
    texts = list(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{what} is a list of texts, and {text!r} is none")
    return texts


def _parts(name: str) -> tuple[str, ...]:
    """Returns what stands between the stars of a name; the first and the last part may be empty."""
    return tuple(plain_name(part) for part in re.split(r"\*+", name))


def _has_parts(name: str, parts: tuple[str, ...]) -> bool:
    """Returns whether a name is what the parts say; each is looked for once, so that no name takes long."""
    first, *middle, last = parts
    end = len(name) - len(last)
    place = len(first)
    if place > end or not (name.startswith(first) and name.endswith(last)):
        return False
    for part in middle:
        place = name.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


def _steps(path: str) -> tuple[str | int | None, ...]:
    rest = path.removeprefix("$")
    steps: list[str | int | None] = []
    place = 0
    while place < len(rest):
        found = _STEP.match(rest, place)
        # Names are parted by a dot: the first has none, unless it follows the `$`.
        parted = found is not None and (found["name"] or found["any"]) and not found["dot"]
        if found is None or (parted and steps):
            break
        if found["index"] is not None:
            steps.append(int(found["index"]))
        else:
            steps.append(found["name"] or found["quoted"])
        place = found.end()
    if place < len(rest) or not steps or path.startswith("."):
        raise ValueError(f'{path!r} is no path such as "customer.card.number" or "rows[*].ssn"')
    return tuple(steps)
