"""The service: hands a batch to the executor that its scope has selected (contract A52 to A62)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .batch import check_batch
from .errors import ToolExecutorUnavailableError
from .executors import ExecutorDescription, ToolExecutor, sections_of, transport_of
from .native import NativeExecutor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .activation import ResolvedToolSet
    from .definition import ToolDefinition
    from .execution import ToolBatchInput, ToolBatchResult
    from .pipeline import Pipeline
    from .scopes import ScopeKey

__all__ = ["ToolService"]


class ToolService:
    """What a host calls to describe and execute tools.

    Args:
        pipeline: the pipeline of the registry whose selections count.
        default: the executor as long as nothing is selected; a `NativeExecutor` when omitted.
    """

    def __init__(self, pipeline: Pipeline, *, default: ToolExecutor | None = None) -> None:
        self._registry = pipeline.registry
        self._default: ToolExecutor = NativeExecutor(pipeline) if default is None else default

    def executor(self, scope: ScopeKey | None = None) -> ToolExecutor:
        """Returns the executor that counts for a scope now: the nearest selection on its chain (contract A53).

        Raises:
            ToolExecutorUnavailableError: that selection's executor has been unloaded (contract A54).
        """
        return self._registry.selection.nearest(scope) or self._default

    def describe(self, scope: ScopeKey | None = None, tool_set: ResolvedToolSet | None = None) -> ExecutorDescription:
        """Says what the model of this scope is told natively.

        Raises:
            ToolExecutorUnavailableError: the selected executor has been unloaded.
            ValueError: the executor's configured order does not hold.
            ToolRegistrationError: a tool's parameters are not lossless JSON.
        """
        return self.executor(scope).describe(self._registry.view(scope, tool_set))

    def sections(self, scope: ScopeKey | None = None, tool_set: ResolvedToolSet | None = None) -> Sequence[str]:
        """Returns the prompt sections that the scope's executor owns (contract A62).

        Raises:
            ToolExecutorUnavailableError: the selected executor has been unloaded (contract A54).
        """
        return sections_of(self.executor(scope), self._registry.view(scope, tool_set))

    def transport(self, scope: ScopeKey | None = None) -> ToolDefinition | None:
        """Returns the `run_code` of the scope's executor, for cards (contract E8, H11).

        It is `None` when the executor has none, and when it has been unloaded: a display goes on without it.
        """
        try:
            return transport_of(self.executor(scope))
        except ToolExecutorUnavailableError:
            return None

    async def execute(self, batch: ToolBatchInput) -> ToolBatchResult:
        """Executes a batch with the executor that counts for its agent now, and with that one to its end (A53, A55).

        Raises:
            ValueError: the batch is malformed; nothing has started (rulings 25, 26).
            ToolExecutorUnavailableError: the selected executor has been unloaded (contract A54, ruling 17).
            ToolBatchExecutionError: an internal fault, after everything was drained (contract A60).
        """
        check_batch(batch)
        return await self.executor(batch.agent).execute(batch)
