"""The guest as native code, loaded once for all its instances, with everything that they may import.

The engine's epoch is the kill switch. It moves only when somebody must stop a run or end its turn, so a program that
never looks at the clock pays nothing for it. All instances that compute see it move; each then asks whether its own run
was meant, and goes on when it was not.
"""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wasmtime import Config, Engine, Store, WasmtimeError, _ffi
from wasmtime.component import Component, Linker

from ..seam import SandboxUnavailableError
from .hostcalls import define_imports, new_error
from .processors import PROCESSORS
from .threadstack import thread_stack_bytes

if TYPE_CHECKING:
    from wasmtime.component import Instance

    from .instance import Run

__all__ = ["GuestEngine", "engine_config"]

_MAX_WASM_STACK = 2 << 20
_LEAST_WASM_STACK = 1 << 19
_GO_ON = 0
"""The kind of answer that lets an instance go on until the epoch has moved again."""
# context, data, out: how much more, out: kind of answer -> error or null
_DUE = ctypes.CFUNCTYPE(
    ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint8)
)
_FINALIZER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_call_when_due = ctypes.CFUNCTYPE(None, ctypes.c_void_p, _DUE, ctypes.c_void_p, _FINALIZER)(
    ("wasmtime_store_epoch_deadline_callback", cast("ctypes.CDLL", _ffi.dll))
)
_no_finalizer = _FINALIZER()


def engine_config() -> Config:
    """Returns how every engine is made; compiled code fits only an engine of the same configuration."""
    config = Config()
    config.epoch_interruption = True
    return config


def _wasm_stack() -> int:
    """Returns the bytes of the thread's stack that an instance may use.

    At most half of what threads of this process have, so that native recursion traps in wasm and never overruns the
    host's stack, which would end the host.

    Raises:
        SandboxUnavailableError: that is too little for the interpreter.
    """
    most = min(_MAX_WASM_STACK, thread_stack_bytes() // 2)
    if most < _LEAST_WASM_STACK:
        raise SandboxUnavailableError(
            f"the threads of this process have stacks of less than {2 * _LEAST_WASM_STACK} bytes, too little for the "
            "sandbox; raise the limit (`ulimit -s`) or `threading.stack_size()`"
        )
    return most


class GuestEngine:
    """The native code of the guest; it makes instances, and answers what they call in the thread that runs them.

    Args:
        compiled: the compiled component.

    Raises:
        WasmtimeError: when the compiled file is not one that this engine takes.
        SandboxUnavailableError: the stacks of threads are too small.
    """

    def __init__(self, compiled: Path) -> None:
        config = engine_config()
        config.max_wasm_stack = _wasm_stack()
        self._engine = Engine(config)
        self._component = Component.deserialize_file(self._engine, str(compiled))
        self._linker = Linker(self._engine)
        self._kept = define_imports(self._linker, self._component, self)
        self._due = _DUE(self._when_due)
        self._runs: dict[int, Run] = {}

    def store(self, max_memory_bytes: int) -> Store:
        """Returns a new store.

        Args:
            max_memory_bytes: the most linear memory of its instance.
        """
        store = Store(self._engine)
        store.set_limits(memory_size=max_memory_bytes)
        store.set_epoch_deadline(1)
        _call_when_due(ctypes.cast(store.ptr(), ctypes.c_void_p), self._due, None, _no_finalizer)
        return store

    def instantiate(self, store: Store) -> Instance:
        """Returns a new instance of the guest.

        Raises:
            SandboxUnavailableError: the machine has no room for it.
        """
        try:
            return self._linker.instantiate(store, self._component)
        except WasmtimeError as error:
            told = str(error)
            error.close()
            raise SandboxUnavailableError(f"no instance of the sandbox can be made: {told}") from None

    def carry(self, run: Run | None) -> None:
        """Says which run the instance in the calling thread carries from now on."""
        thread = threading.get_ident()
        if run is not None:
            self._runs[thread] = run
        else:
            self._runs.pop(thread, None)

    def interrupt(self) -> None:
        """Has every instance ask whether its run has been killed; from any thread."""
        self._engine.increment_epoch()

    def close(self) -> None:
        """Lets go of the native code, at once and not when it is collected."""
        self._linker.close()
        self._component.close()
        self._engine.close()
        self._kept.clear()

    def _when_due(self, _context: Any, _data: Any, more: Any, answer: Any) -> int:
        run = self._runs.get(threading.get_ident())
        if run is not None:
            try:
                if not run.killed:
                    PROCESSORS.over(run.turn)
            except BaseException as error:  # noqa: BLE001 - nothing may be raised into native code; the run raises it
                run.fault = error
                return new_error(b"host fault")
            if run.killed:
                return new_error(b"killed")
        more[0] = 1
        answer[0] = _GO_ON
        return 0

    # What the component calls, in the run's thread

    def submit(self, calls: str) -> None:
        run = self._runs.get(threading.get_ident())
        if run is not None:
            run.submit(calls)

    def emit(self, text: str) -> bool:
        run = self._runs.get(threading.get_ident())
        return run is None or run.emit(text)

    def wait(self, calls: str, timeout_us: int) -> str | None:
        run = self._runs.get(threading.get_ident())
        return "[]" if run is None else run.wait(calls, timeout_us)

    def fault(self, error: BaseException) -> None:
        run = self._runs.get(threading.get_ident())
        if run is not None:
            run.fault = error
