"""References to the environment in texts: `${NAME}`, `${env:NAME}`, and `${NAME:-what stands there otherwise}`.

`$${` is a `${` that is meant literally. A dollar sign before anything else is a dollar sign.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["Expanded", "ReferenceProblem", "expand", "from_environment", "without_references"]

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)(?P<end>\})?")
_INSIDE: Final = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<otherwise>.*))?", re.DOTALL)
_FLAGS: Final = {"true": True, "false": False}


class Expanded(str):
    """A text in which references have been replaced. Messages do not show it: it may be a secret."""

    __slots__ = ()


class ReferenceProblem(ValueError):  # noqa: N818 - it never leaves this package as an error
    """A reference cannot be replaced; the text says why and what to do."""


def without_references(text: str) -> str:
    """Returns what of a text is written in the file itself, with its lines; all of it when it has no reference."""
    return _REFERENCE.sub(lambda match: match[0] if match["inside"] is None else "\n" * match[0].count("\n"), text)


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Returns the text with its references replaced; an `Expanded` when it had any.

    A variable that is empty counts as not set where the reference says what stands there otherwise.

    Raises:
        ReferenceProblem: a variable is not set, or a reference is not well-formed.
    """

    def replaced(match: re.Match[str]) -> str:
        inside = match["inside"]
        if inside is None:
            return "${"
        if match["end"] is None:
            raise ReferenceProblem('a "${" is not closed; close it with "}", or write "$${" when it is no reference')
        found = _INSIDE.fullmatch(inside)
        if found is None:
            raise ReferenceProblem(
                f'"${{{inside}}}" is no reference to the environment; write "${{NAME}}", "${{NAME:-default}}", '
                'or "$${" when it is none'
            )
        value = environment.get(found["name"])
        if found["otherwise"] is not None and not value:
            return found["otherwise"]
        if value is None:
            raise ReferenceProblem(
                f'the environment variable {found["name"]} is not set; set it, or write "${{{found["name"]}:-default}}"'
            )
        return value

    expanded = _REFERENCE.sub(replaced, text)
    return expanded if without_references(text) == text else Expanded(expanded)


def from_environment(value: object) -> object:
    """Returns the number or bool that a reference has given as text; anything else as it is."""
    if not isinstance(value, Expanded):
        return value
    text = value.strip()
    if text in _FLAGS:
        return _FLAGS[text]
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return value
