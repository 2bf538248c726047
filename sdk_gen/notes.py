"""What a type cannot say, in words: the notes that go into the comment of a field (contract G17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .text import comment_text, scalar_text, value_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .model import Constraint, JsonScalar

__all__ = ["MAX_NOTE_CHARS", "comment_lines", "constraint_notes", "cut", "notes_under", "with_notes"]

MAX_NOTE_CHARS = 400
"""What the notes of one field may take in a comment."""


def cut(text: str) -> str:
    """Returns `text`, shortened to `MAX_NOTE_CHARS`."""
    return text if len(text) <= MAX_NOTE_CHARS else text[: MAX_NOTE_CHARS - 3] + "..."


def constraint_notes(
    constraints: Sequence[Constraint], scalar: Callable[[JsonScalar], str] = scalar_text
) -> tuple[str, ...]:
    """Returns constraints as one note, for example `minimum 1, maximum 100, default 10`; `scalar` writes the values."""
    words = [_words(item, scalar) for item in constraints]
    return (", ".join(words),) if words else ()


def _words(item: Constraint, scalar: Callable[[JsonScalar], str]) -> str:
    if item.value is True and item.keyword != "default":
        return item.keyword
    try:
        return f"{item.keyword} {value_text(item.value, scalar)}"
    except Exception:  # noqa: BLE001 - the value is foreign data, and its own accessors may raise; G1 says "never raises"
        return item.keyword


def notes_under(label: str, notes: Sequence[str]) -> tuple[str, ...]:
    """Returns the notes of a part as one note of the whole, for example `each item: minLength 1`."""
    return (cut(f"{cut(label)}: {', '.join(notes)}"),) if notes else ()


def with_notes(description: str, notes: Sequence[str]) -> str:
    """Returns a description on one visible line, with the notes after it in parentheses."""
    if not notes:
        return comment_text(description)
    text, words = comment_text(description), comment_text(cut("; ".join(notes)))
    return f"{text} ({words})" if text and words else text or words


def comment_lines(description: str, notes: Sequence[str], keys: Sequence[str], label: str = "") -> tuple[str, ...]:
    """Returns what a comment says of a type, a line at a time and without `#`; nothing when the type says it all.

    Args:
        description: the schema's own words, unescaped.
        notes: what the type cannot say.
        keys: a line for each key of an object that no TypedDict can have.
        label: what the comment speaks of, when that is not plain from its place.
    """
    first = with_notes(description, notes)
    prefix = f"{label}: " if label else ""
    lines = (prefix + first,) if first else ()
    if not keys:
        return lines
    return (*lines, f"{prefix}keys (? = may be left out)", *(f"  {line}" for line in keys))
