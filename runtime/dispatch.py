"""One sub-call: its identity, its two records, and what the program and the outer call get of it.

id        `<parent call id>:ptc:<n>`, n counting submissions from 1 (contract E15)
records   `tool/ptc-dispatch-start` before anything of the call runs, `tool/ptc-dispatch` after its commit (I5, I6)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import anyio

from ..registry import (
    ContentBlock,
    ContextMessage,
    JsonObject,
    JsonValue,
    Missing,
    PipelineCall,
    Signal,
    ToolDefinition,
    ToolExecution,
    ToolExecutionInput,
    ToolExecutionResult,
    ToolFailure,
    ToolSchema,
    materialise,
    to_json_text,
)
from ..registry.pipeline.outcome import freeze_blocks, message_of
from ..registry.pipeline.shelter import await_foreign
from ..sandbox.seam import BindingError, JsonText

if TYPE_CHECKING:
    from ..registry import EventBus, SessionLog
    from .overtime import Overtime

__all__ = [
    "DISPATCH_LOG_EVENT",
    "DispatchLogEntry",
    "SubCall",
    "image_message",
    "record_settle",
    "record_start",
    "run_over",
    "sub_call_input",
]

DISPATCH_LOG_EVENT = "tools/ptc-dispatch-log"
"""The waterfall that shapes the durable copy of a sub-call's content (contract E44)."""

PLUGIN_SOURCE: JsonObject = {"kind": "plugin", "plugin": "tools-ptc"}
"""Who speaks in messages that the transport adds (ruling 1)."""

_LOGGER = logging.getLogger("ptc.runtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchLogEntry:
    """What a `tools/ptc-dispatch-log` listener is asked about (contract E44).

    Attributes:
        exec: the outer call.
        sub_call_id: the sub-call's id.
        name: the tool's name.
        is_error: whether the sub-call failed.
        content: what would be recorded; `next()` returns it.
    """

    exec: ToolExecution
    sub_call_id: str
    name: str
    is_error: bool
    content: Sequence[ContentBlock]

    @property
    def agent(self) -> object:
        """The calling agent."""
        return self.exec.agent


class SubCall:
    """One call of a program on its way through the lane. It is the sandbox's `Deferred` answer as well.

    Attributes:
        call_id: `<parent call id>:ptc:<n>`.
        name: the tool's name.
        logged: the arguments as they are recorded.
        line: the program's line, or 0.
        input: what the pipeline is given when the call starts.
        pipeline_call: the call in the pipeline; `None` until it starts, which is when its definition counts (C7, E20).
        mode: whether its body may overlap with others, as asked when it started.
        provided: the executor's own definition that it calls; `None` for what the registry has.
        settled: whether its body has ended, or it needs none.
        broken_off: whether its policies were cancelled before its body, long after the end of the run.
        outcome: its result, once it has been committed.
        text: the JSON text of its value, where that was long and has been written already.
    """

    __slots__ = (
        "_answered", "_callback", "_over", "broken_off", "call_id", "input", "line", "logged", "mode", "name",
        "outcome", "pipeline_call", "provided", "refusal", "settled", "text",
    )  # fmt: skip

    def __init__(
        self,
        input: ToolExecutionInput,  # noqa: A002 - the field's term
        logged: JsonValue,
        line: int,
        over: Callable[[], str | None],
        provided: ToolDefinition | None = None,
    ) -> None:
        self.call_id = input.call_id
        self.name = input.name
        self.input = input
        self.logged = logged
        self.line = line
        self.provided = provided
        self.pipeline_call: PipelineCall | None = None
        self.mode: Literal["parallel", "exclusive"] = "exclusive"
        self.settled = False
        self.broken_off = False
        self.outcome: ToolExecutionResult | None = None
        self.refusal: str | None = None
        self.text: str | None = None
        self._over = over
        self._answered = False
        self._callback: Callable[[SubCall], object] | None = None

    def answer(self, outcome: ToolExecutionResult) -> None:
        """Gives the program its outcome."""
        self.outcome = outcome
        self._tell()

    def refuse(self, message: str) -> None:
        """Gives the program a failure that is no outcome of the call itself: it never ran."""
        self.refusal = message
        self._tell()

    def _tell(self) -> None:
        self._answered = True
        if self._callback is not None:
            self._callback(self)

    def add_done_callback(self, callback: Callable[[SubCall], object], /) -> None:
        """Has `callback(self)` called once the answer is there."""
        self._callback = callback
        if self._answered:
            callback(self)

    def result(self) -> JsonText:
        """Returns what the program gets: the canonical value (contract E27).

        Raises:
            BindingError: the message that the program gets instead; nothing of the failure but that (E27, E28).
        """
        if self.refusal is not None or self.outcome is None:
            raise BindingError(self.refusal or f"{self.name} gave no result")
        over = self._over()
        if over is not None:
            raise BindingError(run_over(over, f"{self.name} result discarded"))
        if isinstance(self.outcome, ToolFailure):
            raise BindingError(self.outcome.error.message)
        return JsonText(to_json_text(self.outcome.value) if self.text is None else self.text)


def run_over(reason: str, what: str) -> str:
    """Returns what a call is told that came too late (contract E29)."""
    return f"run_code run is over ({reason}); {what}"


def sub_call_input(
    outer: ToolExecution, call_id: str, name: str, arguments: JsonValue, signal: Signal, schema: ToolSchema
) -> ToolExecutionInput:
    """Returns what the pipeline is given for a sub-call (contract E16)."""
    return ToolExecutionInput(
        call_id=call_id,
        root_call_id=outer.root_call_id,
        name=name,
        arguments=arguments,
        agent=outer.agent,
        parent=outer.token,
        signal=signal,
        schema=schema,
        tool_set=outer.tool_set,
    )


def _identity(outer: ToolExecution, call: SubCall) -> JsonObject:
    return {
        "rootCallId": outer.root_call_id,
        "parentCallId": outer.call_id,
        "subCallId": call.call_id,
        "name": call.name,
        "arguments": call.logged,
    }


async def record_start(log: SessionLog, outer: ToolExecution, call: SubCall) -> None:
    """Makes it durable that a sub-call starts, before anything of it runs (contract E20, I5, ruling 40)."""
    data = _identity(outer, call)
    if call.line:
        data["line"] = call.line
    await log.append("tool/ptc-dispatch-start", data)


async def record_settle(log: SessionLog, events: EventBus, outer: ToolExecution, call: SubCall, time: Overtime) -> None:
    """Shapes and records how a sub-call ended (contract E44, E46, I6).

    A listener that fails, or that is not through in time, is contained: the original content is recorded, and a
    warning logged.
    """
    outcome = call.outcome
    if outcome is None:
        raise RuntimeError(f"sub-call {call.call_id} has no outcome to record")
    data = _identity(outer, call)
    data["isError"] = outcome.is_error
    data["content"] = await _shaped(events, outer, call, outcome, time)
    if isinstance(outcome, ToolFailure) and outcome.error.info is not None:
        info = outcome.error.info
        reason: JsonObject = {} if info.reason is None else {"reason": info.reason}
        data["error"] = {"name": info.name, "code": info.code, **reason}
    if not isinstance(outcome.meta, Missing):
        data["meta"] = outcome.meta
    # Who decided, where somebody did: the record of a denied call is as complete as any other.
    decision = None if call.pipeline_call is None else call.pipeline_call.decision_record()
    if decision is not None:
        data["decision"] = decision
    await log.append("tool/ptc-dispatch", data)


async def _shaped(
    events: EventBus, outer: ToolExecution, call: SubCall, outcome: ToolExecutionResult, time: Overtime
) -> JsonValue:
    if not events.listeners(DISPATCH_LOG_EVENT, outer.agent):
        return materialise(outcome.content, root="content")
    entry = DispatchLogEntry(
        exec=outer, sub_call_id=call.call_id, name=call.name, is_error=outcome.is_error, content=outcome.content
    )

    async def original() -> Sequence[ContentBlock]:
        return entry.content

    shaped: list[JsonValue] = []
    problem = "it cancelled the task that it ran in"

    async def shape() -> None:
        nonlocal problem
        with time.scope() as scope:
            content = await await_foreign(events.waterfall(DISPATCH_LOG_EVENT, outer.agent, (entry,), original))
            shaped.append(materialise(freeze_blocks(content)))
        if scope.cancelled_caught:
            problem = "it was not through in time after the end of the run"

    try:
        # In a task of its own: whatever a listener does to the task that it runs in, the record is made.
        async with anyio.create_task_group() as listeners:
            listeners.start_soon(shape)
    except Exception as error:  # noqa: BLE001 - a listener of the copy cannot harm the call
        problem = message_of(error)
    if shaped:
        return shaped[0]
    _LOGGER.warning(
        "a %s listener failed for %s (%s): the original content is recorded: %s",
        DISPATCH_LOG_EVENT,
        call.call_id,
        call.name,
        problem,
    )
    return materialise(outcome.content, root="content")


def image_message(outcome: ToolExecutionResult) -> ContextMessage | None:
    """Returns the message that carries a sub-call's content to the model when it holds an image (E23, E42)."""
    if outcome.is_error or not any(block.get("type") == "image" for block in outcome.content):
        return None
    return ContextMessage(content=outcome.content, source=PLUGIN_SOURCE)
