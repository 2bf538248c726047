"""Waits for what takes its time: those that can be given up at once, and those that nothing cuts short.

What comes before a program's start may take as long as it likes, so a run must be able to leave it behind. What carries
a program must have ended before its run returns, so nothing may leave that behind: not even asyncio, which at its end
cancels each task by itself, also where a scope shields it.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar

import anyio

from .wakeup import thread_safe_caller

__all__ = ["Patience", "SharedWork", "ended", "outlast", "result_of"]

T = TypeVar("T")


class Patience:
    """How long a run waits: until somebody ends it, from any thread and for good. Make it on the event loop."""

    def __init__(self) -> None:
        self._soon = thread_safe_caller()
        self._scope: anyio.CancelScope | None = None
        self._over = False

    async def wait_for(self, wait: Callable[[], Awaitable[T]]) -> T | None:
        """Returns what `wait` does; `None` when the patience was over before.

        Args:
            wait: is cancelled then, and must let go of what it has got so far.
        """
        with anyio.CancelScope() as scope:
            # In this order: `end` sets the flag and then looks at the scope, so one of the two is always seen.
            self._scope = scope
            try:
                if not self._over:
                    return await wait()
            finally:
                self._scope = None
        return None

    def end(self) -> None:
        """Ends the wait, and any later one before it begins; from any thread."""
        self._over = True
        scope = self._scope
        if scope is not None:
            with suppress(RuntimeError):  # the loop has ended, and the wait with it
                self._soon(scope.cancel)


async def ended(future: Future[Any]) -> None:
    """Waits until work in a thread has ended, however; when this is cancelled, the work goes on."""
    over = anyio.Event()
    soon = thread_safe_caller()

    def tell(_future: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop has ended, so nobody waits any more
            soon(over.set)

    future.add_done_callback(tell)
    await over.wait()


async def result_of(future: Future[T]) -> T:
    """Waits for work in a thread and returns its result, or raises what it raised; when cancelled, the work goes on."""
    if not future.done():
        await ended(future)
    return future.result()


async def outlast(wait: Callable[[], Awaitable[None]], hurry: Callable[[], object] | None = None) -> None:
    """Waits to the end, whatever cancels the calling task meanwhile; that is raised afterwards.

    Args:
        wait: waits; called once more after each cancellation, and must bear that.
        hurry: called at each cancellation, so that the end comes soon.
    """
    cancelled: BaseException | None = None
    while True:
        try:
            with anyio.CancelScope(shield=True):
                await wait()
            break
        except anyio.get_cancelled_exc_class() as error:
            cancelled = error
            if hurry is not None:
                hurry()
    if cancelled is not None:
        raise cancelled


class SharedWork(Generic[T]):
    """Blocking work that is done once for all who need it, and that goes on when some of them wait no longer.

    Its thread is a daemon: work that never ends does not keep the process from ending.

    Args:
        name: the name of the thread.
        work: what is done there.
    """

    def __init__(self, name: str, work: Callable[[], T]) -> None:
        self._name = name
        self._work = work
        self._lock = threading.Lock()
        self._future: Future[T] | None = None
        self._thread: threading.Thread | None = None

    def begun(self) -> Future[T]:
        """Returns the work that is going on; begins it where none is."""
        with self._lock:
            if self._future is None or self._future.done():
                future: Future[T] = Future()
                context = copy_context()
                thread = threading.Thread(target=context.run, args=(self._do, future), name=self._name, daemon=True)
                thread.start()
                self._future, self._thread = future, thread
            return self._future

    def _do(self, future: Future[T]) -> None:
        try:
            result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(error)
        else:
            future.set_result(result)

    def join(self) -> None:
        """Waits until nothing is going on. Blocks."""
        thread = self._thread
        if thread is not None:
            thread.join()
