"""What the type checker says, and which of its rules count."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CALL_RULES", "RESULT_RULES", "RULES", "Diagnostic"]

CALL_RULES = (
    "invalid-argument-type",
    "missing-argument",
    "missing-typed-dict-key",
    "no-matching-overload",
    "parameter-already-assigned",
    "positional-only-parameter-as-kwarg",
    "too-many-positional-arguments",
    "unknown-argument",
    "unknown-typed-dict-constructor-key",
)
"""What the checker calls a wrong call."""

RESULT_RULES = (
    "invalid-argument-type",
    "invalid-await",
    "invalid-context-manager",
    "invalid-typed-dict-key",
    "missing-attribute",
    "no-matching-overload",
    "not-callable",
    "not-iterable",
    "not-subscriptable",
    "unsupported-operator",
    "unused-awaitable",
)
"""What it calls a wrong use of a value, the unknown member of `tools` among them."""

RULES = tuple(sorted({*CALL_RULES, *RESULT_RULES}))

_FOUND = re.compile(r"(?:found|[Ff]ound|value of type) `(.*)`$", re.DOTALL)
_TYPES = re.compile("`([^`]*)`")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that the checker found; the place is the program's own, from 1, in characters."""

    rule: str
    text: str
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def place(self) -> tuple[int, int, int, int]:
        """The place as nodes have it."""
        return self.line, self.column, self.end_line, self.end_column

    @property
    def found(self) -> str:
        """The type that a wrong argument has; empty when the text does not end with one."""
        match = _FOUND.search(self.text)
        return match.group(1) if match else ""

    @property
    def types(self) -> list[str]:
        """All types and names that the text quotes, in order."""
        return _TYPES.findall(self.text)

    @property
    def is_of_subscript(self) -> bool:
        """Whether it is about a value that stands before brackets."""
        return self.rule == "not-subscriptable" or "`__getitem__`" in self.text
