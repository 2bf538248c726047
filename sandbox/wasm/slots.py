"""The slots of one sandbox: those that stand ready, those that are free, and how a damaged cache is mended."""

from __future__ import annotations

import logging
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from wasmtime import WasmtimeError

from ..seam import SandboxUnavailableError
from .artifacts import Progress, compiled_guest, discard_compiled
from .slot import Slot

__all__ = ["Slots"]

_LOGGER = logging.getLogger("ptc.sandbox")


class Slots:
    """The slots of one sandbox: those that stand ready, those that are free, and the thread that makes them ready."""

    def __init__(self, directory: Path, progress: Progress, max_memory_bytes: int, ready: int) -> None:
        self._directory = directory
        self._progress = progress
        self._max_memory = max_memory_bytes
        self._wanted = ready
        self._lock = threading.Lock()
        self._building = threading.Lock()
        self._compiled: Path | None = None
        self._ready: deque[Slot] = deque()
        self._free: deque[Slot] = deque()
        self._preparer: ThreadPoolExecutor | None = None
        self._preparing: set[Future[None]] = set()
        self._closed = False

    def prepare(self) -> None:
        """Makes one slot stand ready now."""
        self._stand_ready(self.take() or self.make())

    def _stand_ready(self, slot: Slot) -> None:
        slot.prepare()
        with self._lock:
            if not self._closed:
                self._ready.append(slot)
                return
        slot.close()

    def take(self) -> Slot | None:
        """Returns a slot that stands ready, else a free one; `None` when one has to be made."""
        with self._lock:
            if self._ready:
                return self._ready.popleft()
            return self._free.pop() if self._free else None

    def give_back(self, slot: Slot) -> None:
        """Takes a slot back after its run, and has one made ready where one is wanted."""
        if not self._keep(slot):
            slot.close()

    def _keep(self, slot: Slot) -> bool:
        with self._lock:
            if self._closed:
                return False
            self._free.append(slot)
            if len(self._ready) + len(self._preparing) >= self._wanted:
                return True
            if self._preparer is None:
                self._preparer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ptc-prepare")
            task = self._preparer.submit(self._make_ready)
            self._preparing.add(task)
        task.add_done_callback(self._prepared)
        return True

    def _prepared(self, task: Future[None]) -> None:
        with self._lock:
            self._preparing.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # The next run makes its instance itself, and tells what is wrong.
            _LOGGER.warning("no instance could be made ready: %s", error)

    def _make_ready(self) -> None:
        with self._lock:
            if self._closed or not self._free:
                return
            slot = self._free.pop()
        self._stand_ready(slot)

    def make(self) -> Slot:
        """Returns a new slot. It takes milliseconds, and seconds where the guest has to be built first."""
        with self._building:
            if self._compiled is None:
                self._compiled = compiled_guest(self._directory, self._progress)
            compiled = self._compiled
            try:
                return Slot(compiled, self._max_memory)
            except WasmtimeError:
                self._progress(
                    "the compiled sandbox in the cache is damaged or made for another machine; making it anew"
                )
                discard_compiled(compiled)
                self._compiled = compiled_guest(self._directory, self._progress)
                try:
                    return Slot(self._compiled, self._max_memory)
                except WasmtimeError as error:
                    raise SandboxUnavailableError(f"the compiled sandbox does not load: {error}") from None

    def close(self) -> None:
        with self._lock:
            self._closed = True
            preparer, self._preparer = self._preparer, None
        if preparer is not None:
            preparer.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            slots = [*self._ready, *self._free]
            self._ready.clear()
            self._free.clear()
        for slot in slots:
            slot.close()
