"""Making things in a few threads, for tasks that may stop waiting for them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from ..waits import result_of
from .threads import Threads

__all__ = ["Makers"]

T = TypeVar("T")


class Makers(Generic[T]):
    """Makes one thing for each who asks, first come, first served.

    Args:
        threads: where they are made.
        make: makes one.
        unwanted: takes one that nobody waits for any more when it comes; from any thread.
        most: how many are made at the same time.
    """

    def __init__(self, threads: Threads, make: Callable[[], T], unwanted: Callable[[T], None], most: int) -> None:
        self._threads = threads
        self._make = make
        self._unwanted = unwanted
        self._most = most
        self._lock = threading.Lock()
        self._asked: deque[Future[T]] = deque()
        self._busy = 0

    async def made(self) -> T:
        """Returns a new one, or raises what making it raised. It may be cancelled at any time.

        Raises:
            SandboxUnavailableError: the machine has no room for another thread.
        """
        future: Future[T] = Future()
        with self._lock:
            self._asked.append(future)
            serving = self._threads.start(self._serve) if self._busy < self._most else None
            if serving is not None:
                self._busy += 1
        if serving is not None:
            serving.add_done_callback(self._served)
        try:
            return await result_of(future)
        except BaseException:
            if not future.cancel():
                future.add_done_callback(self._take_back)
            raise

    def _serve(self) -> None:
        while True:
            with self._lock:
                if not self._asked:
                    self._busy -= 1
                    return
                future = self._asked.popleft()
            if not future.set_running_or_notify_cancel():
                continue  # nobody waits for it any more
            try:
                thing = self._make()
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                future.set_exception(error)
            else:
                future.set_result(thing)

    def _served(self, serving: Future[None]) -> None:
        error = serving.exception()
        if error is None:
            return
        with self._lock:
            self._busy -= 1
            # As long as another thread makes things, those who wait get theirs from that one.
            left = [] if self._busy else [*self._asked]
            if left:
                self._asked.clear()
        for future in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(error)

    def _take_back(self, future: Future[T]) -> None:
        if future.exception() is None:
            self._unwanted(future.result())
