"""How a program's source becomes code, and what it finds as its builtins.

Inside the component a program is plain Python: there the interpreter itself is walled in. Another backend brings a
dialect of its own, which admits less.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Collection
from typing import Final, Protocol

from .preload import MODULES
from .program import compile_program

__all__ = ["FULL_PYTHON", "Dialect"]


class Dialect(Protocol):
    """The language that a program is written in."""

    def compile(self, source: str) -> tuple[types.CodeType, dict[str, object]]:
        """Compiles a program, as `program.compile_program` does.

        Returns:
            the code, and the names that the program's namespace must hold for it.

        Raises:
            SyntaxError: where the source is not a program of this language.
            RecursionError, MemoryError, ValueError: where the source is beyond what the compiler takes.
        """
        ...

    def builtins(self) -> object:
        """Returns what the program's namespace holds as `__builtins__`; asked once a run, after output is captured."""
        ...

    def modules(self) -> Collection[str]:
        """Returns the names of the modules that a program may import."""
        ...


class _FullPython:
    """Python without restrictions."""

    def compile(self, source: str) -> tuple[types.CodeType, dict[str, object]]:
        return compile_program(source)

    def builtins(self) -> object:
        return builtins

    def modules(self) -> Collection[str]:
        return MODULES


FULL_PYTHON: Final[Dialect] = _FullPython()
