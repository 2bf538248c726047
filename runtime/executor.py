"""The executor that offers a model one tool, `run_code`, and the typed text of all the others (contract A61, A62)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Final, Protocol

from ..registry import (
    DEFAULT_PARALLEL,
    ExecutorDescription,
    Pipeline,
    ToolBatchExecutionError,
    ToolBatchInput,
    ToolBatchResult,
    ToolDefinition,
    ToolExecution,
    ToolExecutor,
    ToolView,
    positive_cap,
    run_batch,
)
from ..registry import NativeExecutor as BoundNativeExecutor
from ..registry.events import describe_answer
from ..registry.pipeline.outcome import message_of
from ..sandbox.seam import Sandbox
from .discovery import Discovery, SdkBudget
from .preflight import Preflight
from .run_code import RUN_CODE, make_run_code, require_known_language

__all__ = ["BindableExecutor", "NativeExecutor", "PtcExecutor"]

_LOGGER: Final = logging.getLogger("ptc.runtime")


class BindableExecutor(Protocol):
    """What a host can select for a scope: it becomes an executor when it is bound to the host's pipeline."""

    def bind(self, pipeline: Pipeline) -> ToolExecutor:
        """Returns the executor that works on this pipeline."""
        ...

    async def aclose(self) -> None:
        """Lets go of what the executor holds."""
        ...


class NativeExecutor:
    """Native tool calling: the model is told of every tool, and calls them one by one or several at once.

    Args:
        max_parallel_tool_calls: how many calls of a batch may run at once (contract D4).
        order: the order in which the model sees the tools, with `<unlisted-tools>` once; by name when `None`.

    Raises:
        ValueError: for a cap that is not a positive integer.
    """

    def __init__(self, *, max_parallel_tool_calls: int = DEFAULT_PARALLEL, order: Sequence[str] | None = None) -> None:
        self.max_parallel_tool_calls = positive_cap("max_parallel_tool_calls", max_parallel_tool_calls)
        self.order = None if order is None else tuple(order)

    @property
    def labels(self) -> dict[str, str]:
        """What a session's record says of its executor."""
        return {"executor": "native"}

    def bind(self, pipeline: Pipeline) -> ToolExecutor:
        """Returns the executor that works on this pipeline."""
        return BoundNativeExecutor(pipeline, max_parallel_tool_calls=self.max_parallel_tool_calls, order=self.order)

    async def aclose(self) -> None:
        """Does nothing: it holds nothing."""


class PtcExecutor:
    """Programmatic tool calling: the model writes programs, and each call in one is a guarded sub-call.

    Args:
        sandbox: where programs run. The executor closes it with `aclose`; the host does that for the executors that
            its agents have.
        max_parallel_tool_calls: how many root calls of a batch may run at once; `run_code` itself never overlaps.
        max_parallel_sub_calls: how many tools of one program may run at once (contract E18).
        sdk_budget: the most tokens that the SDK text may take, its instructions included. While all tools fit in full
            that is what the model is told; beyond it an index of them, and programs get the calls of `discovery`.
            The index has a line for each tool, or the names alone, or the groups of names with their sizes: the first
            of these that fits, and what is shortest when none does. `None` tells everything in full.
        count_tokens: counts the tokens of a text as your model does. When `None` it is one token for every four bytes
            of UTF-8, some 0 to 15 % more than common tokenizers count.
        discovery: how the two calls are named, `tools.search` and `tools.describe` when `None`.
        preflight: checks each program against the types of its tools before it runs; `None` runs programs as they are.

    Raises:
        ValueError: for a cap or a budget that is not a positive integer, and for what has no meaning without a budget.
        TypeError: `count_tokens`, `discovery` or `preflight` is none.
    """

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        max_parallel_tool_calls: int = DEFAULT_PARALLEL,
        max_parallel_sub_calls: int = DEFAULT_PARALLEL,
        sdk_budget: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        discovery: Discovery | None = None,
        preflight: Preflight | None = None,
    ) -> None:
        for name, given, fits, wanted in (
            ("count_tokens", count_tokens, callable(count_tokens), "a function that takes a text"),
            ("discovery", discovery, isinstance(discovery, Discovery), "a Discovery(...)"),
            ("preflight", preflight, isinstance(preflight, Preflight), "a Preflight(...)"),
        ):
            if given is not None and not fits:
                raise TypeError(f"{name} must be {wanted}, not {describe_answer(given)}")
        for name, given in (("count_tokens", count_tokens), ("discovery", discovery)):
            if given is not None and sdk_budget is None:
                raise ValueError(f"{name} says how a budget is kept, and there is none; give sdk_budget as well")
        self.sandbox = sandbox
        self.max_parallel_tool_calls = positive_cap("max_parallel_tool_calls", max_parallel_tool_calls)
        self.max_parallel_sub_calls = positive_cap("max_parallel_sub_calls", max_parallel_sub_calls)
        self.sdk_budget = None if sdk_budget is None else positive_cap("sdk_budget", sdk_budget)
        self.count_tokens = count_tokens
        self.discovery = discovery
        self.preflight = preflight

    @property
    def labels(self) -> dict[str, str]:
        """What a session's record says of its executor."""
        return {"executor": "ptc", "isolation": self.sandbox.isolation}

    def bind(self, pipeline: Pipeline) -> ToolExecutor:
        """Returns the executor that works on this pipeline."""
        return _BoundPtcExecutor(self, pipeline)

    async def aclose(self) -> None:
        """Closes the sandbox."""
        await self.sandbox.aclose()


class _BoundPtcExecutor:
    def __init__(self, executor: PtcExecutor, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._sandbox = executor.sandbox
        self._max_parallel = executor.max_parallel_tool_calls
        # Of the batch that a task works for, and its bodies in tasks of their own: batches may overlap.
        self._faults: ContextVar[list[Exception] | None] = ContextVar("faults", default=None)
        self._sdk: SdkBudget | None = None
        if executor.sdk_budget is not None:
            self._sdk = SdkBudget(pipeline.registry, executor.sdk_budget, executor.count_tokens, executor.discovery)
        self.transport = make_run_code(
            pipeline,
            executor.sandbox,
            executor.max_parallel_sub_calls,
            self._take_fault,
            self._provided,
            executor.preflight,
        )

    def _take_fault(self, call: ToolExecution, fault: Exception) -> None:
        faults = self._faults.get()
        if faults is None:  # somebody runs the call past every batch, and nobody else would know
            _LOGGER.error("the host failed while it ran the program of %s", call.call_id, exc_info=fault)
        else:
            faults.append(fault)

    def _provided(self, tools: ToolView) -> Sequence[ToolDefinition]:
        return () if self._sdk is None else self._sdk.plan(tools).provided

    def describe(self, tools: ToolView) -> ExecutorDescription:
        """Tells the model of `run_code` alone.

        Raises:
            UnknownLanguageError: the sandbox's programs are in a language for which there is no SDK text (E9).
        """
        del tools
        require_known_language(self._sandbox)
        transport = ToolView(None, {RUN_CODE: self.transport}, frozenset({RUN_CODE}))
        return ExecutorDescription(schemas=transport.schemas(), known_names=transport.known_names)

    def sections(self, tools: ToolView) -> Sequence[str]:
        """Returns the SDK text, the one section of the prompt that this executor owns.

        Raises:
            UnknownLanguageError: as `describe`.
        """
        require_known_language(self._sandbox)
        if self._sdk is not None:
            return [self._sdk.plan(tools).fitted.text.text]
        # Here, because only a prompt needs the templates: `ptc run` starts without them.
        from ..sdk_gen import render_python

        return [render_python(tools.schemas(with_output=True), transport=RUN_CODE).text]

    async def execute(self, batch: ToolBatchInput) -> ToolBatchResult:
        """Executes the calls of one step (contract A60).

        Raises:
            ToolBatchExecutionError: an internal fault, in the batch or inside a program, after everything was drained.
        """
        faults: list[Exception] = []
        before = self._faults.set(faults)
        try:
            result = await run_batch(self._pipeline, batch, transport=self.transport, max_parallel=self._max_parallel)
        finally:
            self._faults.reset(before)
        if faults:
            raise ToolBatchExecutionError(
                f"a program was stopped, because the host failed: {message_of(faults[0])}",
                results=result.results,
                additional_contexts=result.additional_contexts,
                concluded=result.concluded,
            ) from faults[0]
        return result
