"""One instance of the guest: an interpreter of its own, for the one run that it carries."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

from wasmtime import WasmtimeError

from .processors import PROCESSORS, Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from wasmtime.component import Func

    from ..vehicle import Port
    from .engine import GuestEngine

__all__ = ["GuestInstance", "Run"]

_MICROSECONDS = 1_000_000
_FOREVER = 1 << 40
_MAX_CAUSE = 300


class Run:
    """One run: how the event loop reaches the thread in which it runs, and what its instance calls there.

    Args:
        request: what the guest is to run, as JSON text.
        interrupt: has the engine ask its instances whether their runs have been killed; from any thread.
    """

    def __init__(self, request: str, interrupt: Callable[[], None]) -> None:
        self.request = request
        self.turn = Turn(interrupt)
        self._interrupt = interrupt
        self.killed = False
        self.exited: str | None = None
        self.fault: BaseException | None = None
        self.port: Port | None = None
        self._replies: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._replied = 0
        self._taken = 0

    @property
    def backlog(self) -> int:
        """How many characters of replies have not been taken."""
        return self._replied - self._taken

    def reply(self, text: str) -> None:
        """Puts one reply where the program's next wait finds it."""
        self._replied += len(text)
        self._replies.put(text)

    def kill(self) -> None:
        """Ends the run, whether it waits or computes; from any thread."""
        # In this order: the run is marked before anything asks whether it is.
        self.killed = True
        self._replies.put(None)
        self.turn.cancel()
        self._interrupt()

    # What the instance calls, in the run's thread

    def submit(self, calls: str) -> None:
        """Takes calls that the program makes."""
        if self.port is not None:
            self.port.submit(calls)

    def emit(self, text: str) -> bool:
        """Takes what the program writes; returns whether it may go on."""
        if self.port is not None:
            self.port.emit(text)
        return not self.killed

    def wait(self, calls: str, timeout_us: int) -> str | None:
        """Takes calls, where there are any, and returns what has settled; `None` when the run has been killed."""
        port = self.port
        if port is None:
            return "[]"
        if calls:
            port.submit(calls)
        replies = self._take_now()
        if replies == [] and timeout_us:
            port.waiting()
            PROCESSORS.leave(self.turn)
            try:
                replies = self._await(timeout_us)
            finally:
                PROCESSORS.enter(self.turn)
                port.started()
        port.taken()
        return None if self.killed or replies is None else "[" + ",".join(replies) + "]"

    def _await(self, timeout_us: int) -> list[str] | None:
        try:
            timeout = None if timeout_us < 0 else min(timeout_us, _FOREVER) / _MICROSECONDS
            first = self._replies.get(timeout=timeout)
        except queue.Empty:
            return []
        if first is None:
            return None
        self._taken += len(first)
        more = self._take_now()
        return None if more is None else [first, *more]

    def _take_now(self) -> list[str] | None:
        """Returns the replies that are there; `None` when the run has been killed."""
        take = self._replies.get_nowait
        replies: list[str] = []
        try:
            while (reply := take()) is not None:
                self._taken += len(reply)
                replies.append(reply)
        except queue.Empty:
            return replies
        return None


class GuestInstance:
    """A fresh interpreter.

    Args:
        engine: the guest's native code.
        max_memory_bytes: the most linear memory that the program may have.

    Raises:
        SandboxUnavailableError: the machine has no room for it.
    """

    def __init__(self, engine: GuestEngine, max_memory_bytes: int) -> None:
        self._engine = engine
        self._store = engine.store(max_memory_bytes)
        try:
            self._instance = engine.instantiate(self._store)
            self._entry = self._function("run")
        except BaseException:
            self._store.close()
            raise

    def _function(self, name: str) -> Func:
        function = self._instance.get_func(self._store, name)
        if function is None:
            raise RuntimeError(f"the component has no `{name}`")
        return function

    def warm(self) -> None:
        """Runs the warm-up, so that the pages which a run touches are the instance's own already."""
        self._function("warm")(self._store)

    def run(self, run: Run, port: Port) -> str | None:
        """Runs a program to its end, in the calling thread.

        Returns:
            the completion as the program's side claims it; `None` when the instance ended without one, and then
            `run.exited` says how.
        """
        run.port = port
        self._engine.carry(run)
        try:
            PROCESSORS.enter(run.turn)
            # In this order: a kill marks the run and then moves the epoch, so one of the two is always seen.
            self._store.set_epoch_deadline(1)
            if run.killed:
                return None
            port.started()
            return self._entry(self._store, run.request)
        except WasmtimeError as error:
            run.exited = _how(error)
            # Its frames hold it in a cycle, and it holds the component; what it has is let go of now.
            error.close()
            return None
        finally:
            port.waiting()
            PROCESSORS.leave(run.turn)
            self._engine.carry(None)
            run.port = None
            if run.fault is not None:
                raise run.fault

    def close(self) -> None:
        """Lets go of the instance's memory."""
        self._store.close()


def _how(error: WasmtimeError) -> str:
    """Returns in one line how an instance ended: the cause alone, without the backtrace of its machine code."""
    text = str(error)
    cause = text.rpartition("Caused by:")[2].strip() or text.strip()
    if "wasi:cli/exit" in cause:
        return "worker exited before completing: the program ended its interpreter (os._exit or abort)"
    if "call stack exhausted" in cause:
        return "worker error: native stack exhausted (recursion in compiled code that is too deep)"
    if "unknown import" in cause:
        name = cause.partition("`")[2].partition("`")[0]
        return f"worker error: the program used {name or 'a system interface'}, which the sandbox does not have"
    first = cause.splitlines()[0] if cause else "unknown"
    return f"worker error: {first[:_MAX_CAUSE]}"
