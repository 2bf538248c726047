"""The wasm backend: each run gets a CPython of its own inside WebAssembly, and nothing of the host but three verbs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Final, Literal

import anyio.to_thread

from ..backend import ProgramSandbox, check_integer
from ..peer import Completion, read_completion
from ..seam import Guarantees
from ..vehicle import Exit, Port
from ..waits import Patience, ended, outlast
from .artifacts import Progress, default_cache_directory
from .instance import GuestInstance, Run
from .instances import Instances

__all__ = ["WasmSandbox"]

_LOGGER: Final = logging.getLogger("ptc.sandbox")


class WasmSandbox(ProgramSandbox):
    """Runs programs on CPython inside WebAssembly, a fresh interpreter for each (ruling 7, ruling 41).

    Build it anywhere; the first run, or `prepare`, builds the guest into the user's cache. One instance serves any
    number of scopes, and one event loop after another. Close it with `aclose`, or enter it as an async context manager.

    Args:
        compute_ms: milliseconds that a program may have control (contract F17).
        max_wall_ms: milliseconds from request to result (contract F18).
        max_memory_bytes: the most memory of a program, at least 32 MiB (contract F19).
        max_output_bytes: bytes of logs and result together (contract F20).
        max_concurrent_runs: programs that run at once; more wait.
        max_outstanding_calls: calls of one program that may be unanswered at once.
        max_queued_bytes: bytes of arguments of one program that may be unanswered at once.
        ready: instances that stand ready for the next runs.
        require: what must be enforced, by the names of `Guarantees`; this backend enforces all of them.
        cache_directory: where the built guest is kept; `PTC_CACHE_DIR` or the user's cache when `None`.
        progress: told in one line what is done when it takes seconds; logged to `ptc.sandbox` when `None`.

    Raises:
        ValueError: for a budget that is not one (contract F20).
    """

    isolation: Literal["wasm"] = "wasm"

    def __init__(
        self,
        *,
        compute_ms: float = 60_000,
        max_wall_ms: float = 600_000,
        max_memory_bytes: int = 512 << 20,
        max_output_bytes: int = 64 << 20,
        max_concurrent_runs: int = 256,
        max_outstanding_calls: int = 10_000,
        max_queued_bytes: int = 16 << 20,
        ready: int = 1,
        require: Sequence[str] = (),
        cache_directory: str | Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        check_integer("ready", ready, 0)
        super().__init__(
            compute_ms=compute_ms,
            max_wall_ms=max_wall_ms,
            max_memory_bytes=max_memory_bytes,
            max_output_bytes=max_output_bytes,
            max_concurrent_runs=max_concurrent_runs,
            max_outstanding_calls=max_outstanding_calls,
            max_queued_bytes=max_queued_bytes,
            require=require,
        )
        self._instances = Instances(
            Path(cache_directory) if cache_directory is not None else default_cache_directory(),
            progress if progress is not None else lambda line: _LOGGER.info("%s", line),
            max_memory_bytes,
            ready,
        )

    @property
    def guarantees(self) -> Guarantees:
        return Guarantees(
            memory=f"linear memory of at most {self._max_memory} bytes, by the WebAssembly runtime",
            compute=f"{self._limits.compute_ms:g} ms of control, by the engine's epoch, also in hot loops",
            wall=f"{self._limits.max_wall_ms:g} ms from request to result, waits included",
            files="none: no file system is linked",
            network="none: no sockets are linked",
            environment="none: no variables, no arguments",
            processes="none: no threads, no processes",
            syscalls="none: the instance has clocks, random numbers and the bridge, and nothing else is linked",
        )

    def _vehicle(self, request: str) -> _WasmVehicle:
        return _WasmVehicle(self._instances, request, self._limits.max_output_bytes)

    async def _make_ready(self) -> None:
        await self._instances.stand_ready()

    async def _let_go(self) -> None:
        await anyio.to_thread.run_sync(self._instances.close)


class _WasmVehicle:
    """Carries one program in an instance of its own, in a thread of its own."""

    def __init__(self, instances: Instances, request: str, max_output_bytes: int) -> None:
        self._max_output_bytes = max_output_bytes
        self._instances = instances
        self._patience = Patience()
        self._carried = False
        self._run = Run(request, instances.interrupt)
        self.reply = self._run.reply

    @property
    def backlog(self) -> int:
        return self._run.backlog

    async def drive(self, port: Port) -> Completion | Exit | None:
        instance = self._instances.take() or await self._patience.wait_for(self._instances.made)
        if instance is None:
            return None  # killed meanwhile
        context = copy_context()  # what calls tools from that thread has it of whoever runs the program
        done = self._instances.start(lambda: context.run(self._drive, instance, port))
        try:
            await outlast(partial(ended, done), self.kill)
        finally:
            if not self._carried:  # there was no thread for it
                self._instances.let_go(instance)
        return done.result()

    def _drive(self, instance: GuestInstance, port: Port) -> Completion | Exit | None:
        self._carried = True
        completion = self._instances.carry(instance, self._run, port)
        if completion is None:
            return Exit(self._run.exited or "worker exited before completing")
        return read_completion(completion, self._max_output_bytes)

    def kill(self) -> None:
        self._run.kill()
        self._patience.end()
