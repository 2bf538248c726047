"""The source of one type expression in Python, with what a reader needs beside it, and how several become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .notes import notes_under

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ANY", "DICT", "MAX_KEY_LINES", "SCALARS", "Annotation", "alternatives", "container"]

MAX_KEY_LINES = 50
"""How many keys of an object without a class are listed."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation.

    Attributes:
        text: the source.
        names: what it uses from `typing`.
        brackets: how deep its brackets nest.
        height: how tall its syntax tree is.
        notes: what the type cannot say, in words for a comment.
        keys: a line for each key of an object that no TypedDict can have.
        branches: the source of each alternative, when there are several.
    """

    text: str
    names: frozenset[str] = frozenset()
    brackets: int = 0
    height: int = 1
    notes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()


ANY = Annotation("Any", frozenset({"Any"}))
DICT = Annotation("dict[str, Any]", frozenset({"Any"}), 1, 3)
SCALARS = {
    kind: Annotation(name)
    for kind, name in (
        ("string", "str"),
        ("number", "float"),
        ("integer", "int"),
        ("boolean", "bool"),
        ("null", "None"),
    )
}
"""The types of scalars, by the names that JSON Schema gives them."""


def container(opening: str, inner: Annotation, notes: tuple[str, ...]) -> Annotation:
    """Returns a list or a mapping of one item type; `opening` is all that stands before the item."""
    return Annotation(f"{opening}{inner.text}]", inner.names, inner.brackets + 1, inner.height + 2, notes, inner.keys)


def alternatives(branches: Sequence[Annotation]) -> Annotation:
    """Joins annotations with ` | `, each text once, those of unions in it as well (contract G13)."""
    texts = tuple(dict.fromkeys(text for branch in branches for text in branch.branches or (branch.text,)))
    is_one = len({branch.text for branch in branches} - {"None"}) == 1
    one = is_one and len([branch for branch in branches if branch.notes]) == 1
    notes: tuple[str, ...] = ()
    for branch in branches:
        notes += branch.notes if one else notes_under(branch.text, branch.notes)
    return Annotation(
        " | ".join(texts),
        frozenset[str]().union(*(branch.names for branch in branches)),
        max(branch.brackets for branch in branches),
        max(branch.height for branch in branches) + len(texts) - 1,
        notes,
        _either_keys(branches),
        texts if len(texts) > 1 else (),
    )


def _either_keys(branches: Sequence[Annotation]) -> tuple[str, ...]:
    """Joins the listed keys of several alternatives: those of one object, `or`, those of another."""
    lines: list[str] = []
    for keys in dict.fromkeys(branch.keys for branch in branches if branch.keys):
        lines += ["or", *keys] if lines else keys
    if lines and any(branch.text == DICT.text and not branch.keys for branch in branches):
        lines.append("or any other keys")
    return tuple(lines[: 2 * MAX_KEY_LINES])
