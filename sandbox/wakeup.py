"""Waking the event loop from another thread, on whichever loop runs.

anyio's own ways start a task or wait for an answer; here a bare callback is enough, and it is on the path of every
call that a program makes.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from typing import Any

import anyio
from anyio.lowlevel import checkpoint, current_token

try:
    import sniffio
except ImportError:  # anyio does without it where only asyncio is there
    sniffio = None

__all__ = ["loop_caller", "spawning_context", "thread_safe_caller", "when_readable"]


def thread_safe_caller() -> Callable[[Callable[[], object]], object]:
    """Returns a function with which other threads have a callback run soon on the current event loop.

    Call it on the loop. What it returns raises `RuntimeError` once the loop has ended.
    """
    loop = current_token().native_token
    # Trio's token and asyncio's loop have the same thing under two names.
    caller = getattr(loop, "run_sync_soon", None) or getattr(loop, "call_soon_threadsafe", None)
    if caller is None:
        raise RuntimeError(f"no way is known to wake a {type(loop).__name__} from another thread")
    return caller


def loop_caller() -> Callable[[Callable[[], object]], object]:
    """Returns a function with which the loop's own thread has a callback run in a later turn. Call it on the loop."""
    loop = current_token().native_token
    # Where there is no cheaper way than the one that other threads use, that one serves.
    caller = getattr(loop, "call_soon", None)
    return caller if caller is not None else thread_safe_caller()


def spawning_context() -> Context:
    """Returns the calling task's context, so that a callback of the loop can start tasks in it. Call it in a task.

    A callback is in no task, and where the loop was not started by anyio it cannot tell which library runs it. So the
    context says it.
    """
    context = copy_context()
    if sniffio is not None:
        context.run(sniffio.current_async_library_cvar.set, sniffio.current_async_library())
    return context


@asynccontextmanager
async def when_readable(channel: socket.socket, look: Callable[[], bool]) -> AsyncIterator[None]:
    """Has `look` called on the event loop whenever the socket can be read, as long as the context lasts.

    Nothing else may read the socket meanwhile. `look` must not raise, and must not block.

    Args:
        channel: a non-blocking socket.
        look: returns whether to call it again in the loop's next turn, whether the socket can be read or not.
    """
    loop = current_token().native_token
    if hasattr(loop, "add_reader"):
        # No task: one that waits anew for each message takes three turns of the loop, and this takes one.
        watch = _LoopWatch(loop, channel, look)
        try:
            yield
        finally:
            watch.close()
        return
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_look_in_a_task, channel, look)
        yield
        tasks.cancel_scope.cancel()


async def _look_in_a_task(channel: socket.socket, look: Callable[[], bool]) -> None:
    while True:
        await anyio.wait_readable(channel)
        while look():
            await checkpoint()


class _LoopWatch:
    """A socket that an event loop with readers of its own watches."""

    def __init__(self, loop: Any, channel: socket.socket, look: Callable[[], bool]) -> None:
        self._loop = loop
        # By its number: where it is not watched yet, the loop first makes a text of an object and throws it away.
        self._channel = channel.fileno()
        self._look = look
        self._asked = False
        self._closed = False
        loop.add_reader(self._channel, self._turn)

    def _turn(self) -> None:
        # The reader is called as well while another turn has been asked for: one of the two is enough.
        if not self._asked and not self._closed and self._look():
            self._asked = True
            self._loop.call_soon(self._again)

    def _again(self) -> None:
        self._asked = False
        self._turn()

    def close(self) -> None:
        self._closed = True
        self._loop.remove_reader(self._channel)
