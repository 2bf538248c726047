"""One slot: an engine of its own, the component compiled for it, and the run that it carries now.

The engine's epoch is the kill switch. It moves only when somebody must stop the run, so a program that never looks
at the clock pays nothing for it; and since every slot has its own engine, killing one run touches no other.
"""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Any

from wasmtime import Config, Engine, Store, WasmtimeError
from wasmtime.component import Component, Func, Linker

from ..seam import SandboxUnavailableError
from ..vehicle import Port
from .hostcalls import define_imports

__all__ = ["Carried", "Slot", "engine_config"]

# Far below what a thread of the host has, so that native recursion traps in wasm and never overruns the host's stack.
_MAX_WASM_STACK = 2 << 20
_MICROSECONDS = 1_000_000
_FOREVER = 1 << 40
_MAX_CAUSE = 300


def engine_config() -> Config:
    """Returns how every engine is made; compiled code fits only an engine of the same configuration."""
    config = Config()
    config.epoch_interruption = True
    config.max_wasm_stack = _MAX_WASM_STACK
    return config


class Carried:
    """One run in a slot: how the event loop reaches the thread in which it runs."""

    def __init__(self) -> None:
        self._replies: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._replied = 0
        self._taken = 0
        self.killed = False
        self.exited: str | None = None

    @property
    def backlog(self) -> int:
        """How many characters of replies have not been taken."""
        return self._replied - self._taken

    def reply(self, text: str) -> None:
        """Puts one reply where the program's next wait finds it."""
        self._replied += len(text)
        self._replies.put(text)

    def wake(self) -> None:
        """Ends the program's wait; it has been killed."""
        self._replies.put(None)

    def take(self, timeout_us: int) -> list[str] | None:
        """Returns what has settled, waiting for the first; `None` when the run has been killed."""
        take = self._replies.get_nowait
        replies: list[str] = []
        try:
            if timeout_us < 0:
                first = self._replies.get()
            elif timeout_us == 0:
                first = take()
            else:
                first = self._replies.get(timeout=min(timeout_us, _FOREVER) / _MICROSECONDS)
            while first is not None:
                self._taken += len(first)
                replies.append(first)
                first = take()
        except queue.Empty:
            return replies
        return None


class Slot:
    """A place where one program at a time runs.

    Args:
        compiled: the compiled component.
        max_memory_bytes: the most linear memory that a program may have.

    Raises:
        WasmtimeError: when the compiled file is not one that this engine takes.
    """

    def __init__(self, compiled: Path, max_memory_bytes: int) -> None:
        self._engine = Engine(engine_config())
        self._component = Component.deserialize_file(self._engine, str(compiled))
        self._linker = Linker(self._engine)
        self._max_memory = max_memory_bytes
        self._kept = define_imports(self._linker, self._component, self)
        self._lock = threading.Lock()
        self._run: Carried | None = None
        self._port: Port | None = None
        self._armed = False
        self._fault: BaseException | None = None
        self._ready: tuple[Store, Func] | None = None

    def prepare(self) -> None:
        """Makes an instance that stands ready; it has run the warm-up, so its pages are its own already."""
        if self._ready is None:
            store, instance = self._instantiate()
            warm = instance.get_func(store, "warm")
            if warm is None:
                raise RuntimeError("the component has no `warm`")
            warm(store)
            self._ready = (store, self._entry(store, instance))

    def _instantiate(self) -> tuple[Store, Any]:
        store = Store(self._engine)
        store.set_limits(memory_size=self._max_memory)
        store.set_epoch_deadline(1)
        try:
            return store, self._linker.instantiate(store, self._component)
        except WasmtimeError as error:
            store.close()
            told = str(error)
            error.close()
            raise SandboxUnavailableError(f"no instance of the sandbox can be made: {told}") from None

    def _entry(self, store: Store, instance: Any) -> Func:
        entry = instance.get_func(store, "run")
        if entry is None:
            raise RuntimeError("the component has no `run`")
        return entry

    def run(self, carried: Carried, request: str, port: Port) -> str | None:
        """Runs a program to its end, in the calling thread.

        Returns:
            the completion as the program's side claims it; `None` when the instance ended without one, and then
            `carried.exited` says how.
        """
        ready, self._ready = self._ready, None
        if ready is None:
            store, instance = self._instantiate()
            ready = (store, self._entry(store, instance))
        store, entry = ready
        try:
            with self._lock:
                if carried.killed:
                    return None
                store.set_epoch_deadline(1)
                self._run, self._port, self._fault, self._armed = carried, port, None, True
            port.started()
            return entry(store, request)
        except WasmtimeError as error:
            carried.exited = _how(error)
            # Its frames hold it in a cycle, and it holds the component; what it has is let go of now.
            error.close()
            return None
        finally:
            with self._lock:
                self._armed = False
                self._run = self._port = None
            port.waiting()
            store.close()
            fault, self._fault = self._fault, None
            if fault is not None:
                raise fault

    def kill(self, carried: Carried) -> None:
        """Ends a run at once, from any thread: in its hot loop, or in the host call that it waits in."""
        with self._lock:
            carried.killed = True
            if self._run is carried and self._armed:
                self._engine.increment_epoch()
        carried.wake()

    def close(self) -> None:
        """Lets go of the instance, the component's file and the engine, at once and not when they are collected."""
        ready, self._ready = self._ready, None
        if ready is not None:
            ready[0].close()
        self._linker.close()
        self._component.close()
        self._engine.close()
        self._kept.clear()

    # What the component calls, in the run's thread

    def submit(self, calls: str) -> None:
        if self._port is not None:
            self._port.submit(calls)

    def emit(self, text: str) -> bool:
        if self._port is not None:
            self._port.emit(text)
        return self._run is None or not self._run.killed

    def wait(self, timeout_us: int) -> str | None:
        run, port = self._run, self._port
        if run is None or port is None:
            return "[]"
        port.waiting()
        try:
            replies = run.take(timeout_us)
        finally:
            port.started()
        port.taken()
        return None if run.killed or replies is None else "[" + ",".join(replies) + "]"

    def fault(self, error: BaseException) -> None:
        self._fault = error


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
