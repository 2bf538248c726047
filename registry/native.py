"""The native executor: the model calls the scope's tools directly, one by one or several at once (contract D)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .batch import DEFAULT_PARALLEL, positive_cap, run_batch
from .executors import ExecutorDescription
from .views import ToolView, order_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .execution import ToolBatchInput, ToolBatchResult
    from .pipeline import Pipeline

__all__ = ["NativeExecutor"]


class NativeExecutor:
    """Offers every visible tool to the model natively.

    Args:
        pipeline: what each call passes.
        max_parallel_tool_calls: how many bodies of one batch may run at once.
        order: the order that the model sees the tools in, with `<unlisted-tools>` once; by name when omitted.

    Raises:
        ValueError: the cap is not a positive integer (contract D4).
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        max_parallel_tool_calls: int = DEFAULT_PARALLEL,
        order: Sequence[str] | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._cap = positive_cap("max_parallel_tool_calls", max_parallel_tool_calls)
        self._order = None if order is None else tuple(order)

    def describe(self, tools: ToolView) -> ExecutorDescription:
        """Describes the visible tools, in order (contract A27, A28).

        Raises:
            ValueError: the configured order is malformed or names an unknown tool.
            ToolRegistrationError: a tool's parameters are not lossless JSON (contract A12).
        """
        names = order_names(tools.definitions.keys(), self._order, tools.known_names)
        by_name = {schema.name: schema for schema in tools.schemas()}
        return ExecutorDescription(schemas=tuple(by_name[name] for name in names), known_names=tools.known_names)

    async def execute(self, batch: ToolBatchInput) -> ToolBatchResult:
        """Runs the batch; see `run_batch`.

        Raises:
            ValueError: the batch is malformed; nothing has started.
            ToolBatchExecutionError: an internal fault, after everything was drained.
        """
        return await run_batch(self._pipeline, batch, max_parallel=self._cap)
