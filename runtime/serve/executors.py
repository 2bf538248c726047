"""How the programs of clients are run: an executor for each set of sandbox settings, shared by whoever has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..executor import NativeExecutor, PtcExecutor
from ..preflight import Preflight

if TYPE_CHECKING:
    from ...sandbox.seam import Sandbox
    from ..config import SandboxSettings
    from ..executor import BindableExecutor

__all__ = ["Executors", "make_sandbox"]


class Executors:
    """Makes executors, one for each set of settings; the host that they are given to closes them.

    Args:
        progress: told in one line what is done when it takes seconds.
    """

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._made: dict[SandboxSettings, BindableExecutor] = {}

    def of(self, settings: SandboxSettings) -> BindableExecutor:
        """Returns the executor for these settings.

        Raises:
            SandboxUnavailableError: this machine has no such sandbox.
            ValueError: a budget is out of the sandbox's range.
        """
        executor = self._made.get(settings)
        if executor is None:
            executor = self._made[settings] = self._make(settings)
        return executor

    async def prepare(self, settings: SandboxSettings) -> None:
        """Makes ready what the first program needs.

        Raises:
            SandboxUnavailableError: this machine has no such sandbox.
        """
        executor = self.of(settings)
        if isinstance(executor, PtcExecutor):
            await executor.sandbox.prepare()

    def _make(self, settings: SandboxSettings) -> BindableExecutor:
        if settings.backend == "native":
            return NativeExecutor(max_parallel_tool_calls=settings.max_parallel_sub_calls)
        return PtcExecutor(
            sandbox=make_sandbox(settings, self._progress),
            max_parallel_sub_calls=settings.max_parallel_sub_calls,
            sdk_budget=settings.sdk_budget,
            preflight=Preflight() if settings.preflight else None,
        )


def make_sandbox(settings: SandboxSettings, progress: Callable[[str], None]) -> Sandbox:
    """Returns the sandbox of these settings.

    Args:
        settings: a backend that is not `native`, and its limits.
        progress: told in one line what is done when it takes seconds.

    Raises:
        SandboxUnavailableError: this machine has no such sandbox.
        ValueError: a budget is out of the sandbox's range.
    """
    from ...sandbox.restricted import RestrictedSandbox
    from ...sandbox.wasm import WasmSandbox

    if settings.backend == "restricted":
        return RestrictedSandbox(
            compute_ms=settings.compute_ms,
            max_wall_ms=settings.wall_ms,
            max_memory_bytes=settings.memory_mib << 20,
            max_output_bytes=settings.output_bytes,
        )
    return WasmSandbox(
        compute_ms=settings.compute_ms,
        max_wall_ms=settings.wall_ms,
        max_memory_bytes=settings.memory_mib << 20,
        max_output_bytes=settings.output_bytes,
        progress=progress,
    )
