"""The threads of one sandbox: what blocks is done there, and whether it has ended does not hang on any event loop."""

from __future__ import annotations

import queue
import threading
from collections import deque
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

    They are daemons, so that none of them keeps the process from ending; `join` waits for them. A new one is started
    by a thread that does nothing else: where many programs compute, it takes milliseconds until a thread has begun,
    which whoever has work to be done, an event loop for example, must not wait for.

    Args:
        name: the name of each.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[_Task | None]] = []
        self._waiting: deque[_Task] = deque()
        self._all: set[threading.Thread] = set()
        self._starter: threading.Thread | None = None
        self._new_work = threading.Condition(self._lock)
        self._closed = False

    def start(self, work: Callable[[], T]) -> Future[T]:
        """Has work done in a thread, as soon as there is one.

        Returns:
            what it returns or raises; a `SandboxUnavailableError` when the machine has no room for another thread, and
            then it has not begun.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._idle:
                self._idle.pop().put((future, work))
                return future
            self._waiting.append((future, work))
            if self._starter is not None:
                self._new_work.notify()
                return future
            self._starter = threading.Thread(target=self._start_threads, name=f"{self._name}-starter", daemon=True)
            try:
                self._starter.start()
            except RuntimeError as error:
                self._starter = None
                self._waiting.pop()
                future.set_exception(_no_room(error))
        return future

    def _start_threads(self) -> None:
        while True:
            with self._lock:
                while not self._waiting:
                    if self._closed or not self._new_work.wait(_IDLE_S):
                        if self._waiting:
                            continue  # it has come in the last moment
                        self._starter = None
                        return
                task = self._waiting.popleft()
            inbox: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
            inbox.put(task)
            thread = threading.Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True)
            with self._lock:
                self._all.add(thread)
            try:
                thread.start()
            except RuntimeError as error:
                with self._lock:
                    self._all.discard(thread)
                task[0].set_exception(_no_room(error))

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
            if self._waiting:
                inbox.put(self._waiting.popleft())
            elif self._closed:
                inbox.put(None)
            else:
                self._idle.append(inbox)

    def join(self) -> None:
        """Ends all threads and waits for them, and for the work that they do or that waits for them. Blocks."""
        with self._lock:
            self._closed = True
            for inbox in self._idle:
                inbox.put(None)
            self._idle.clear()
            self._new_work.notify_all()
            starter = self._starter
        if starter is not None:
            starter.join()
        with self._lock:
            threads = tuple(self._all)
        for thread in threads:
            thread.join()


def _no_room(error: RuntimeError) -> SandboxUnavailableError:
    return SandboxUnavailableError(f"the sandbox gets no thread for a run: {error}")
