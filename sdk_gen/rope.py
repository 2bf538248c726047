"""Source text as a tree of its parts, so that joining parts costs nothing however long they are (contract G3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["MAX_WORDS", "Braces", "Rope", "between", "flat", "joined"]

MAX_WORDS = 80
"""Up to this many characters, parts are joined to one string, which equals another one of the same text."""


@dataclass(frozen=True, slots=True, eq=False)
class Braces:
    """Lines between braces, indented by two spaces more than the line that the opening brace is in."""

    lines: tuple[Rope, ...]


Rope: TypeAlias = str | Braces | tuple["Rope", ...]


def joined(*parts: Rope) -> Rope:
    """Returns the parts one after the other."""
    size = 0
    for part in parts:
        size += len(part) if isinstance(part, str) else MAX_WORDS + 1
        if size > MAX_WORDS:
            return parts
    return "".join(part for part in parts if isinstance(part, str))


def between(separator: str, parts: Sequence[Rope]) -> Iterator[Rope]:
    """Yields the parts with `separator` between them."""
    for number, part in enumerate(parts):
        if number:
            yield separator
        yield part


def flat(rope: Rope, level: int) -> str:
    """Returns a rope as text; `level` is the indentation, in steps of two spaces, of the line that it begins in."""
    if isinstance(rope, str):
        return rope
    pieces: list[str] = []
    pending: list[tuple[Rope, int]] = [(rope, level)]
    while pending:
        part, level = pending.pop()
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, Braces):
            pieces.append("{")
            pending.append((f"\n{'  ' * level}}}", level))
            start = f"\n{'  ' * (level + 1)}"
            for line in reversed(part.lines):
                pending += [(start + line, level)] if isinstance(line, str) else [(line, level + 1), (start, level)]
        else:
            pending.extend((inner, level) for inner in reversed(part))
    return "".join(pieces)
