"""Lines over the process's own standard input and output, read and written so that a server can be stopped.

The SDK reads lines in threads that nobody can interrupt: a server would then end only when its client does. Here the
event loop waits until there is something to read, or room to write; only what the loop cannot wait for, a file for
example, is read in a thread.
"""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, Self, TypeVar

import anyio

__all__ = ["MAX_LINE_BYTES", "LineReader", "LineWriter", "own_standard_streams"]

MAX_LINE_BYTES: Final = 32 << 20
"""The longest message that a client may send; longer ones are dropped as they come, so that they take no memory."""

T = TypeVar("T")

_READ_BYTES: Final = 1 << 16
_WRITE_BYTES: Final = getattr(select, "PIPE_BUF", 512)
"""As many bytes as a pipe that is ready takes without blocking, by POSIX."""


class LineReader:
    """Gives the lines of a descriptor as text, one after another; what is not UTF-8 is replaced.

    Args:
        descriptor: what is read; it stays the caller's to close.
        on_dropped: told of each line that was too long.
    """

    def __init__(self, descriptor: int, on_dropped: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_dropped = on_dropped
        self._wait = _Readiness(descriptor, anyio.wait_readable)
        self._lines: deque[bytes] = deque()
        self._held = bytearray()
        self._dropping = False
        self._at_end = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        """Returns the next line without its end; one that the other side never ended counts as well.

        Raises:
            StopAsyncIteration: there is nothing more.
        """
        while not self._lines:
            if self._at_end:
                raise StopAsyncIteration
            self._take(await self._wait.then(lambda: os.read(self._descriptor, _READ_BYTES)))
        return self._lines.popleft().decode("utf-8", "replace")

    def _take(self, data: bytes) -> None:
        if not data:
            self._at_end = True
            if self._held:
                self._lines.append(bytes(self._held))
            return
        *ended, rest = data.split(b"\n")
        for part in ended:
            if self._dropping or len(self._held) + len(part) > MAX_LINE_BYTES:
                self._on_dropped()
            else:
                self._lines.append(bytes(self._held) + part)
            self._held.clear()
            self._dropping = False
        if not self._dropping:
            self._held += rest
        if len(self._held) > MAX_LINE_BYTES:
            self._held.clear()
            self._dropping = True


class LineWriter:
    """Writes text to a descriptor, whole and in order.

    Args:
        descriptor: where to; it stays the caller's to close.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._wait = _Readiness(descriptor, anyio.wait_writable)

    async def write(self, text: str) -> None:
        """Writes a text.

        Raises:
            OSError: nobody reads any more, or the disk is full.
        """
        rest = memoryview(text.encode("utf-8"))
        while rest:
            piece = rest[:_WRITE_BYTES]
            rest = rest[await self._wait.then(lambda piece=piece: os.write(self._descriptor, piece)) :]

    async def flush(self) -> None:
        """Does nothing: nothing is held back."""


class _Readiness:
    """Does something with a descriptor once it would not block."""

    def __init__(self, descriptor: int, wait: Callable[[int], Awaitable[None]]) -> None:
        self._descriptor = descriptor
        self._wait = wait
        self._by_loop = os.name == "posix"

    async def then(self, act: Callable[[], T]) -> T:
        if self._by_loop:
            try:
                await self._wait(self._descriptor)
            except (OSError, NotImplementedError):  # the loop cannot wait for a file, which never blocks for long
                self._by_loop = False
            else:
                return act()
        return await anyio.to_thread.run_sync(act, abandon_on_cancel=True)


@contextmanager
def own_standard_streams() -> Iterator[tuple[int, int]]:
    """Takes standard input and output for messages alone, and gives their descriptors.

    Meanwhile whatever else reads standard input finds it at its end, and whatever else is written to standard output
    goes to standard error: a tool that prints, or a process that it starts, cannot come between the messages.
    """
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        try:
            yield source, sink
        finally:
            sys.stdout.flush()
            os.dup2(source, 0)
            os.dup2(sink, 1)
    finally:
        os.close(source)
        os.close(sink)
