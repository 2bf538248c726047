"""What the program writes: stdout and stderr in one order, handed over at once so that nothing is lost when it dies."""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Callable

from .intrinsics import INTRINSICS

__all__ = ["Stream", "capture_output"]

__builtins__ = INTRINSICS


class Stream(io.TextIOBase):
    """A text stream that hands every write to the host, lone surrogates escaped (ruling 31)."""

    def __init__(self, emit: Callable[[str], None], name: str) -> None:
        self._emit = emit
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            safe = text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
            self._emit(safe)
        return len(text)


def capture_output(emit: Callable[[str], None]) -> None:
    """Sends `print`, `sys.stdout` and `sys.stderr` to `emit`; `sys.stdin` is empty."""
    out = Stream(emit, "<stdout>")
    sys.stdout = sys.__stdout__ = out
    sys.stderr = sys.__stderr__ = Stream(emit, "<stderr>")
    sys.stdin = sys.__stdin__ = io.StringIO("")

    def print(  # noqa: A001 - it takes the place of the builtin
        *values: object, sep: str | None = " ", end: str | None = "\n", file: object = None, flush: bool = False
    ) -> None:
        # One write for each call: a write crosses to the host, and the builtin makes one for each value.
        target = sys.stdout if file is None else file
        text = (" " if sep is None else sep).join([str(value) for value in values])
        target.write(text + ("\n" if end is None else end))  # type: ignore[attr-defined]
        if flush:
            target.flush()  # type: ignore[attr-defined]

    builtins.print = print
