"""The threads of one sandbox: what blocks is done there, and whether it has ended does not hang on any event loop."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from ..seam import SandboxUnavailableError

__all__ = ["Threads"]

T = TypeVar("T")
_IDLE_S: Final = 10.0
"""How long a thread stays when it has nothing to do: its stack is memory that a deep program has made its own."""
_Task = tuple[Future[Any], Callable[[], Any]]


class Threads:
    """Threads that are used again, as many as there is work at once.

    They are daemons, so that none of them keeps the process from ending; `join` waits for them.

    Args:
        name: the name of each.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[_Task | None]] = []
        self._all: set[threading.Thread] = set()
        self._closed = False

    def start(self, work: Callable[[], T]) -> Future[T]:
        """Has work done in a thread, at once.

        Raises:
            SandboxUnavailableError: the machine has no room for another thread.
        """
        future: Future[T] = Future()
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
            if inbox is None:
                inbox = queue.SimpleQueue()
                thread = threading.Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    raise SandboxUnavailableError(f"the sandbox gets no thread for a run: {error}") from None
                self._all.add(thread)
            inbox.put((future, work))
        return future

    def _serve(self, inbox: queue.SimpleQueue[_Task | None]) -> None:
        while True:
            try:
                task = inbox.get(timeout=_IDLE_S)
            except queue.Empty:
                with self._lock:
                    if inbox not in self._idle:
                        continue  # something has just been given to it
                    self._idle.remove(inbox)
                task = None
            if task is None:
                break
            self._do(inbox, *task)
            del task
        with self._lock:
            self._all.discard(threading.current_thread())

    def _do(self, inbox: queue.SimpleQueue[_Task | None], future: Future[Any], work: Callable[[], Any]) -> None:
        result, problem = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            problem = error
        # Whoever is told may have more work at once, and this thread has the time.
        self._rest(inbox)
        if problem is not None:
            future.set_exception(problem)
        else:
            future.set_result(result)

    def _rest(self, inbox: queue.SimpleQueue[_Task | None]) -> None:
        with self._lock:
            if self._closed:
                inbox.put(None)
            else:
                self._idle.append(inbox)

    def join(self) -> None:
        """Ends all threads and waits for them, and for the work that they do. Blocks."""
        with self._lock:
            self._closed = True
            for inbox in self._idle:
                inbox.put(None)
            self._idle.clear()
            threads = tuple(self._all)
        for thread in threads:
            thread.join()
