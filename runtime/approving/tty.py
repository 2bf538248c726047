"""A terminal that is held for one question: what is written and read waits beside the event loop, and can be given up.

The terminal is opened anew and without blocking: the state of a descriptor that is opened is its own, so nothing
changes for whoever else has the terminal.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from typing import TYPE_CHECKING, Final, Self

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["TerminalUnavailableError", "Tty"]

_LINE_BYTES: Final = 4096
"""The longest line that the kernel's line discipline hands out."""

_WIDTH: Final = 80
"""How wide a terminal is that does not say so, in columns."""


class TerminalUnavailableError(Exception):
    """Nobody can be asked on this terminal; the message is a part of a sentence that says why."""


class Tty:
    """A terminal, open for one question; use it as a context manager, and in one task.

    Args:
        path: the terminal's device; `/dev/tty` is the one that the process was started from.

    Raises:
        TerminalUnavailableError: there is no such terminal, or the process is in the background of it, where asking
            would stop the process.
    """

    def __init__(self, path: str) -> None:
        if sys.platform == "win32":
            raise TerminalUnavailableError("asking on a terminal does not work on Windows")
        try:
            self._fd: Final = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            raise TerminalUnavailableError("there is no terminal to ask on") from None
        try:
            _require_foreground(self._fd)
            self._encoding: Final = os.device_encoding(self._fd) or "utf-8"
            self._woken, self._waker = os.pipe()
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for fd in (self._fd, self._woken, self._waker):
            os.close(fd)

    @property
    def width(self) -> int:
        """How many columns there are."""
        try:
            return os.get_terminal_size(self._fd).columns or _WIDTH
        except OSError:
            return _WIDTH

    def can_show(self, signs: str) -> bool:
        """Tells whether the terminal's encoding has these characters."""
        try:
            signs.encode(self._encoding)
        except UnicodeEncodeError:
            return False
        return True

    def forget_input(self) -> None:
        """Drops what was typed so far: an answer that was typed before its question is none."""
        if sys.platform != "win32":
            import termios

            with contextlib.suppress(termios.error):  # the terminal has hung up, which reading will tell
                termios.tcflush(self._fd, termios.TCIFLUSH)

    async def write(self, text: str) -> None:
        """Writes text, and waits while the terminal takes none.

        Raises:
            OSError: the terminal has hung up.
        """
        rest = self._encoded(text)
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                await self._wait(writing=True)

    def add(self, text: str) -> None:
        """Writes text as far as the terminal takes it at once; for what is good to know and not worth waiting."""
        with contextlib.suppress(OSError):
            os.write(self._fd, self._encoded(text))

    async def read_line(self) -> str | None:
        """Waits for a line, and returns it without its line feed; `None` when the input has ended.

        Raises:
            OSError: the terminal has hung up.
        """
        line = b""
        while not line.endswith(b"\n") and len(line) < _LINE_BYTES:
            await self._wait(writing=False)
            try:
                piece = os.read(self._fd, _LINE_BYTES)
            except BlockingIOError:
                continue
            if not piece:
                return None
            line += piece
        return line.decode(self._encoding, "replace").removesuffix("\n")

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding, "backslashreplace")

    async def _wait(self, *, writing: bool) -> None:
        """Waits in a thread until the terminal is ready: not every event loop can watch a terminal on every system.

        The thread reads nothing itself, so that one which outlives its question could not take the answer to the next;
        and it does not outlive it: whoever cancels this wakes it up.
        """
        read = [self._woken] if writing else [self._woken, self._fd]
        write = [self._fd] if writing else []
        ready = anyio.Event()

        async def watch() -> None:
            with anyio.CancelScope(shield=True):  # limited by itself: tools may keep all threads of the others
                limiter = anyio.CapacityLimiter(1)
                await anyio.to_thread.run_sync(select.select, read, write, [], limiter=limiter)
            ready.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            try:
                await ready.wait()
            except BaseException:
                os.write(self._waker, b".")
                raise


def _require_foreground(fd: int) -> None:
    """Raises `TerminalUnavailableError` for what is no terminal, or one that would stop a process that asks."""
    if not os.isatty(fd):
        raise TerminalUnavailableError("there is no terminal to ask on")
    try:
        foreground = os.tcgetpgrp(fd)
    except OSError:
        return  # it is not the process's own, and so stops nobody
    if foreground != os.getpgrp():
        raise TerminalUnavailableError("the process is in the background of its terminal")
