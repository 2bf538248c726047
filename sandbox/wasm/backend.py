"""The wasm backend: each run gets a CPython of its own inside WebAssembly, and nothing of the host but three verbs."""

from __future__ import annotations

import itertools
import json
import logging
import math
import secrets
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from ..bindings import check_bindings
from ..peer import Completion, read_completion
from ..seam import (
    FailureKind,
    Guarantees,
    RunFailure,
    SandboxMisuseError,
    SandboxRequest,
    SandboxResult,
)
from ..supervisor import Supervisor, abort_text, failed_before_start
from ..vehicle import Exit, Port, RunLimits
from .artifacts import Progress, default_cache_directory
from .slot import Carried, Slot
from .slots import Slots

__all__ = ["WasmSandbox"]

_LOGGER = logging.getLogger("ptc.sandbox")
_MAX_WALL_MS = 2_147_483_647
_MAX_SAFE_INTEGER = 2**53 - 1
_LEAST_OUTPUT = 4
_LEAST_MEMORY = 32 << 20  # the interpreter alone has about 25 MiB
_SANDBOXES = itertools.count()
_SEED_BITS = 128


class WasmSandbox:
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
        cache_directory: where the built guest is kept; `PTC_CACHE_DIR` or the user's cache when `None`.
        progress: told in one line what is done when it takes seconds; logged to `ptc.sandbox` when `None`.

    Raises:
        ValueError: for a budget that is not one (contract F20).
    """

    language: Literal["python"] = "python"
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
        cache_directory: str | Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        _check_positive("compute_ms", compute_ms)
        _check_positive("max_wall_ms", max_wall_ms)
        if max_wall_ms > _MAX_WALL_MS:
            raise ValueError(f"max_wall_ms must be at most {_MAX_WALL_MS}, not {max_wall_ms}")
        _check_integer("max_memory_bytes", max_memory_bytes, _LEAST_MEMORY)
        _check_integer("max_output_bytes", max_output_bytes, _LEAST_OUTPUT)
        _check_integer("max_concurrent_runs", max_concurrent_runs, 1)
        _check_integer("max_outstanding_calls", max_outstanding_calls, 1)
        _check_integer("max_queued_bytes", max_queued_bytes, 1)
        _check_integer("ready", ready, 0)
        self._limits = RunLimits(
            compute_ms=compute_ms,
            max_wall_ms=max_wall_ms,
            max_output_bytes=max_output_bytes,
            max_outstanding_calls=max_outstanding_calls,
            max_queued_bytes=max_queued_bytes,
        )
        self._slots = Slots(
            Path(cache_directory) if cache_directory is not None else default_cache_directory(),
            progress if progress is not None else lambda line: _LOGGER.info("%s", line),
            max_memory_bytes,
            ready,
        )
        self._max_memory = max_memory_bytes
        self._max_runs = max_concurrent_runs
        self._running: set[Supervisor] = set()
        # A limiter belongs to an event loop, and one sandbox may serve several one after another.
        self._places: RunVar[anyio.CapacityLimiter] = RunVar(f"ptc-wasm-{next(_SANDBOXES)}")
        self._closed = False

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
        )

    async def prepare(self) -> None:
        """Builds the guest where it is not built yet, and makes an instance ready.

        Raises:
            SandboxUnavailableError: when that is not possible on this machine.
        """
        self._refuse_when_closed("prepare")
        await anyio.to_thread.run_sync(self._slots.prepare)

    async def run(self, request: SandboxRequest) -> SandboxResult:
        """Runs one program in a fresh interpreter, and returns when it has ended (contract F1, F23).

        Raises:
            SandboxMisuseError: after disposal, or for bindings that are not valid (contract F2).
            SandboxUnavailableError: when the sandbox cannot be made ready on this machine.
        """
        self._refuse_when_closed("run")
        check_bindings(request.namespaces)
        if request.signal is not None and request.signal.aborted:
            failure = RunFailure(FailureKind.ABORT, abort_text(request.signal.reason))
            return failed_before_start(failure, self._limits.max_output_bytes)
        try:
            places = self._places.get()
        except LookupError:
            places = anyio.CapacityLimiter(self._max_runs)
            self._places.set(places)
        vehicle = _WasmVehicle(self._slots, _encode_request(request), places, self._limits.max_output_bytes)
        supervisor = Supervisor(request, self._limits, vehicle)
        self._running.add(supervisor)
        try:
            return await supervisor.run()
        finally:
            self._running.discard(supervisor)

    async def aclose(self) -> None:
        """Ends all runs as `abort`, waits for them, and refuses later ones (contract F24)."""
        self._closed = True
        for supervisor in tuple(self._running):
            supervisor.end(FailureKind.ABORT, "runtime disposed")
        with anyio.CancelScope(shield=True):
            while self._running:
                await next(iter(self._running)).ended.wait()
            await anyio.to_thread.run_sync(self._slots.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def _refuse_when_closed(self, what: str) -> None:
        if self._closed:
            raise SandboxMisuseError(f"{what}() after disposal")


class _WasmVehicle:
    """Carries one program in a slot, in a thread of its own."""

    def __init__(self, slots: Slots, request: str, places: anyio.CapacityLimiter, max_output_bytes: int) -> None:
        self._max_output_bytes = max_output_bytes
        self._slots = slots
        self._request = request
        self._places = places
        self._queue: anyio.CancelScope | None = None
        self._carried = Carried()
        self._slot: Slot | None = None

    async def drive(self, port: Port) -> Completion | Exit | None:
        # The wait for a place can be given up at any time; the thread cannot, it is killed and awaited.
        with anyio.CancelScope() as queue:
            self._queue = queue
            if self._carried.killed:
                return None
            await self._places.acquire_on_behalf_of(self)
        self._queue = None
        if queue.cancelled_caught:
            return None
        try:
            return await anyio.to_thread.run_sync(self._drive, port, limiter=anyio.CapacityLimiter(1))
        finally:
            self._places.release_on_behalf_of(self)

    def _drive(self, port: Port) -> Completion | Exit | None:
        if self._carried.killed:
            return None
        slot = self._slot = self._slots.take()
        try:
            completion = slot.run(self._carried, self._request, port)
        finally:
            self._slots.give_back(slot)
        if completion is None:
            return Exit(self._carried.exited or "worker exited before completing")
        return read_completion(completion, self._max_output_bytes)

    def reply(self, text: str) -> None:
        self._carried.reply(text)

    def kill(self) -> None:
        # In this order: the run's thread sets the slot and then looks at `killed`, so one of the two is always seen.
        self._carried.killed = True
        slot, queue = self._slot, self._queue
        if slot is not None:
            slot.kill(self._carried)
        elif queue is not None:
            queue.cancel()


def _encode_request(request: SandboxRequest) -> str:
    namespaces = [
        {
            "global": one.name,
            "members": {name: list(member.parameters) for name, member in one.members.items()},
            "errorClass": None
            if one.error_class is None
            else {"name": one.error_class.name, "property": one.error_class.member_property},
        }
        for one in request.namespaces
    ]
    return json.dumps({"program": request.program, "seed": secrets.randbits(_SEED_BITS), "namespaces": namespaces})


def _check_positive(name: str, value: float) -> None:
    if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be a finite number greater than 0, not {value!r}")


def _check_integer(name: str, value: int, least: int) -> None:
    if type(value) is not int or not least <= value <= _MAX_SAFE_INTEGER:
        raise ValueError(f"{name} must be an integer from {least} to {_MAX_SAFE_INTEGER}, not {value!r}")
