"""The pipeline: makes calls for one registry, and runs one from end to end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from ..lossless import materialise
from .call import PipelineCall
from .capture import capture
from .classify import ExecutionMode, classify
from .state import resolve_call

if TYPE_CHECKING:
    from ..activation import ResolvedToolSet
    from ..approval import ApprovalService
    from ..definition import ToolDefinition
    from ..execution import ExecutionToken, ToolExecutionInput, ToolExecutionResult
    from ..registry import ToolRegistry
    from ..scopes import ScopeKey

__all__ = ["Pipeline"]

_LOGGER: Final = logging.getLogger("ptc.registry")


class Pipeline:
    """Every call of a registry's tools passes it.

    Args:
        registry: definitions, listeners and guards.
        approval: who answers `Ask`; without one, whatever needs approval is denied (contract C17).
        logger: where contained failures of policies and observers go.

    Attributes:
        registry: the same.
        approval: the same; it may be set later.
        logger: the same.
    """

    __slots__ = ("approval", "logger", "registry")

    def __init__(
        self, registry: ToolRegistry, *, approval: ApprovalService | None = None, logger: logging.Logger | None = None
    ) -> None:
        self.registry = registry
        self.approval = approval
        self.logger = logger if logger is not None else _LOGGER

    def call(
        self,
        input: ToolExecutionInput,  # noqa: A002 - the field's term
        *,
        transport: ToolDefinition | None = None,
        provided: ToolDefinition | None = None,
    ) -> PipelineCall:
        """Captures an input, and returns the call that schedulers take through its phases.

        Args:
            input: the call; every field is read once (contract C3).
            transport: the `run_code` definition of the executor; with it, a call without a parent can name nothing
                else (contract C9).
            provided: a definition of the executor's own that no registry has; a call of its name executes it, and
                passes everything that other calls pass.

        Raises:
            ValueError: the call id or the name is empty (contract C68).
        """
        return PipelineCall(capture(self.registry, self.approval, self.logger, input, transport, provided))

    async def execute(
        self,
        input: ToolExecutionInput,  # noqa: A002 - the field's term
        *,
        transport: ToolDefinition | None = None,
    ) -> ToolExecutionResult:
        """Runs one call from end to end; whatever tools, policies and schemas do is in the result (contract C2).

        Raises:
            ValueError: the call id or the name is empty (contract C68).
        """
        call = self.call(input, transport=transport)
        try:
            await call.prepare()
            if call.needs_dispatch:
                await call.dispatch()
            return await call.finish()
        except Exception:
            raise
        except anyio.get_cancelled_exc_class():
            call.interrupt()
            raise

    def classify(
        self,
        name: str,
        arguments: object,
        scope: ScopeKey | None = None,
        tool_set: ResolvedToolSet | None = None,
        transport: ToolDefinition | None = None,
        *,
        parent: ExecutionToken | None = None,
        provided: ToolDefinition | None = None,
    ) -> ExecutionMode:
        """Returns whether a call may overlap with others, as things stand now (contract D2, E19).

        Args:
            name: the tool's name.
            arguments: the call's arguments; the tool is shown a frozen copy.
            scope: the calling scope.
            tool_set: the admitted set of the step.
            transport: as for `call`.
            parent: as in the input of the call; a call with a parent is never collapsed.
            provided: as for `call`.
        """
        if transport is not None and parent is None and name != transport.name:
            return "exclusive"
        transport = None if parent is not None else transport
        definition = resolve_call(self.registry, name, scope, tool_set, transport, provided)
        if definition is None or definition.is_concurrency_safe is None:
            return "exclusive"
        try:
            detached = materialise(arguments)
        except Exception:  # noqa: BLE001 - arguments that cannot be taken fail alone, whatever the tool would say
            return "exclusive"
        return classify(definition, detached)
