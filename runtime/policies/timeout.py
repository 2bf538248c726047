"""The deadline that a tool declares: a `tools/execute` wrapper that tells the body when its time is up (K1 to K5).

It is cooperative. When the time is up the body's signal fires, the body is awaited all the same, and then the call's
result says that it timed out, whatever came back. Nothing is injected into the body, and no body is left behind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

import anyio

from ...registry import SignalSource, ToolTimeoutError, fuse
from ...registry.events import EXECUTE
from ...registry.pipeline.outcome import error_of, failure_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ...registry import DispatchView, Disposer, ScopedTools, ToolDefinition, ToolExecutionResult, ToolRegistry

__all__ = ["MAX_TIMEOUT_MS", "TimeoutPolicy"]

MAX_TIMEOUT_MS: Final = 2_147_483_647
"""The longest deadline in milliseconds, about 24.8 days (contract K2)."""


class TimeoutPolicy:
    """Limits every call to the `timeout_ms` of its tool; a `ptc.Host` has it unless it is told otherwise.

    The time runs from the wrapper's turn to the moment when what is inside it returns. A call that is over time ends
    as `ToolTimeoutError`, code `TOOL_TIMEOUT`, and keeps the contexts that the body and inner wrappers added. If the
    caller gives up first the call ends as cancelled, however late it is (contract K3).

    A retry wrapper that stands outside (`prepend=True`) gives each attempt the whole time; one that stands inside
    shares it between all attempts (ruling 23).

    Args:
        registry: where the definitions of the calls are looked up.
    """

    __slots__ = ("_registry",)

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    @classmethod
    def install(cls: type[Self], tools: ScopedTools, *, prepend: bool = False) -> Disposer:
        """Limits the calls of a scope and those below it; of everybody for the tools of a host or a registry.

        Args:
            tools: the scope's context.
            prepend: whether it stands outside the wrappers that are there, instead of inside.

        Returns:
            what takes the policy away.
        """
        return tools.on(EXECUTE, cls(tools.registry), prepend=prepend)

    def passes_on(self, view: DispatchView) -> bool:
        """Whether the call has no deadline (contract K1); then nothing needs to stand around its body."""
        definition = self._registry.executable(view.name, view.agent, view.tool_set)
        return definition is None or definition.timeout_ms is None

    def __call__(
        self, view: DispatchView, next_: Callable[[], Awaitable[ToolExecutionResult]]
    ) -> Awaitable[ToolExecutionResult]:
        """Wraps one call; without a declared deadline there is nothing to wrap (contract K1).

        Raises:
            ValueError: the deadline is longer than any timer (contract K2).
        """
        definition = self._registry.executable(view.name, view.agent, view.tool_set)
        if definition is None or definition.timeout_ms is None:
            return next_()
        return _limited(view, next_, _checked(definition, definition.timeout_ms))


def _checked(definition: ToolDefinition, timeout_ms: float) -> float:
    if timeout_ms > MAX_TIMEOUT_MS:
        raise ValueError(
            f'tool "{definition.name}" declares a timeout_ms of {timeout_ms}, but the limit is {MAX_TIMEOUT_MS} '
            "(about 24.8 days); declare less, or none"
        )
    return timeout_ms


async def _limited(
    view: DispatchView, next_: Callable[[], Awaitable[ToolExecutionResult]], timeout_ms: float
) -> ToolExecutionResult:
    """Runs what is inside under a deadline.

    The reason of the deadline is an object of this one arming, so that of several deadlines around one body each knows
    whether it was the first cause.
    """
    reason = ToolTimeoutError(timeout_ms)
    deadline = SignalSource()
    due = anyio.current_time() + timeout_ms / 1000
    upstream = view.signal
    joined, part = fuse(upstream, deadline.signal)
    expired = False
    result: ToolExecutionResult | None = None
    raised: BaseException | None = None

    async def ring() -> None:
        await anyio.sleep_until(due)
        deadline.abort(reason)

    try:
        view.signal = joined
        async with anyio.create_task_group() as timers:
            timers.start_soon(ring)
            try:
                result = await next_()
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as error:  # noqa: BLE001 - carried out of the group, which would wrap it (contract K4)
                raised = error
            # Asked at once: a timer that is due while the group is left did not stop anybody.
            expired = joined.reason is reason
            timers.cancel_scope.cancel()
    finally:
        part()
        view.signal = upstream
    if raised is not None:
        raise raised
    assert result is not None
    return replace(failure_of(error_of(reason)), additional_contexts=result.additional_contexts) if expired else result
