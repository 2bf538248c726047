"""The restricted backend: guarded Python in a worker process that the kernel contains, forked anew for each run."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from typing import Final, Literal

import anyio
import anyio.to_thread

from ..backend import ProgramSandbox, check_integer
from ..seam import Guarantees, SandboxRequest, SandboxResult, SandboxUnavailableError
from ..vehicle import MILLISECONDS
from ..wakeup import loop_caller
from .inside import landlock, seccomp
from .template import Workers
from .vehicle import ProcessVehicle

__all__ = ["RestrictedSandbox"]

_CPU_SLACK_SECONDS: Final = 1


class RestrictedSandbox(ProgramSandbox):
    """Runs programs in a guarded Python, each in a worker process of its own (ruling 41).

    The language takes away what leads out of a program, and the kernel holds the process to that: it has no files, no
    network, no other processes. It is containment and not a wall: use `WasmSandbox` where programs are hostile and
    this one where they need the host's own packages or its speed. It needs Linux.

    Args:
        modules: top-level modules that programs may import beside the standard ones, for example `["numpy"]`. They
            are loaded once, with the host's import path, and programs get their public names. Random numbers of
            `random`, `secrets`, `uuid` and `numpy.random` are fresh in every run; a random state that another module
            keeps is the same at the start of each.
        compute_ms: milliseconds that a program may have control (contract F17).
        max_wall_ms: milliseconds from request to result (contract F18).
        max_memory_bytes: the most memory of a program beside its interpreter's, at least 32 MiB (contract F19).
        max_output_bytes: bytes of logs and result together (contract F20).
        max_concurrent_runs: programs that run at once; more wait.
        max_outstanding_calls: calls of one program that may be unanswered at once.
        max_queued_bytes: bytes of arguments of one program that may be unanswered at once.
        ready: workers that stand ready for the next runs.
        require: what must be enforced, by the names of `Guarantees`.

    Raises:
        ValueError: for a budget that is not one (contract F20), or a module name that is none.
        SandboxUnavailableError: this machine cannot run it, or does not enforce what `require` names.
    """

    isolation: Literal["process"] = "process"

    def __init__(
        self,
        *,
        modules: Sequence[str] = (),
        compute_ms: float = 60_000,
        max_wall_ms: float = 600_000,
        max_memory_bytes: int = 512 << 20,
        max_output_bytes: int = 64 << 20,
        max_concurrent_runs: int = 256,
        max_outstanding_calls: int = 10_000,
        max_queued_bytes: int = 16 << 20,
        ready: int = 1,
        require: Sequence[str] = (),
    ) -> None:
        if not sys.platform.startswith("linux") or not hasattr(os, "pidfd_open"):
            raise SandboxUnavailableError("the restricted sandbox needs Linux; use WasmSandbox on other systems")
        check_integer("ready", ready, 0)
        if isinstance(modules, str) or not all(isinstance(name, str) and name.isidentifier() for name in modules):
            raise ValueError(f'modules must be names of top-level modules, for example ["numpy"], not {modules!r}')
        self._filtered = seccomp.supported()
        self._landlock = landlock.abi()
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
        cpu_seconds = math.ceil(compute_ms / MILLISECONDS) + _CPU_SLACK_SECONDS
        self._workers = Workers(tuple(modules), max_memory_bytes, cpu_seconds, ready)

    @property
    def guarantees(self) -> Guarantees:
        by_kernel = "seccomp" if self._filtered else ""
        files = [by_kernel, "landlock" if self._landlock else ""]
        network = [by_kernel, "landlock (TCP)" if self._landlock >= landlock.NETWORK_SINCE else ""]
        return Guarantees(
            memory=f"address space of at most {self._max_memory} bytes beside the interpreter's, by RLIMIT_AS",
            compute=f"{self._limits.compute_ms:g} ms of control, by SIGKILL, also in hot loops; RLIMIT_CPU behind it",
            wall=f"{self._limits.max_wall_ms:g} ms from request to result, waits included",
            files=_by("none: refused by the language", files),
            network=_by("none: refused by the language", network),
            environment="none: no variables, no arguments, no descriptor but the bridge's",
            processes=_by("none: RLIMIT_NPROC of 0", [by_kernel]),
            syscalls="an allow-list of what computing needs, by seccomp" if self._filtered else "",
        )

    async def run(self, request: SandboxRequest) -> SandboxResult:
        """Runs one program in a fresh process; otherwise as `ProgramSandbox.run`."""
        try:
            return await super().run(request)
        finally:
            # Later, because a template that is woken may take the processor from this process: the result goes first.
            loop_caller()(self._workers.fill)

    def _vehicle(self, request: str) -> ProcessVehicle:
        return ProcessVehicle(self._workers, request, self._limits)

    async def _make_ready(self) -> None:
        await self._workers.prepare()

    async def _let_go(self) -> None:
        await anyio.to_thread.run_sync(self._workers.close)


def _by(what: str, means: Sequence[str]) -> str:
    """Returns a guarantee with the kernel's means; nothing where the kernel has none."""
    there = [mean for mean in means if mean]
    return f"{what}, and by {' and '.join(there)}" if there else ""
