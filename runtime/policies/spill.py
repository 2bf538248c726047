"""Results that are too long for a model go to a store, and the model gets both ends and the way to the rest.

    tools/post-execute        what a model is shown of its own calls                  contract K7 to K10
    tools/ptc-dispatch-log    the durable copy of what a program's calls gave         contract K11

A program's own values are never touched: it works with the whole of what its calls return (contract E43).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from ...registry import MISSING, Accept, Disposer, ScopedTools, text_block
from ...registry.events import POST_EXECUTE, describe_answer
from ...registry.lossless import is_lossless
from ...registry.pipeline.outcome import message_of
from ..dispatch import DISPATCH_LOG_EVENT
from ..run_code import RUN_CODE
from ..spill_store import SpillText, session_id_of
from .preview import shortened
from .read_spilled import READ_SPILLED, read_spilled_tool

if TYPE_CHECKING:
    from ...registry import (
        ContentBlock,
        Next,
        PostToolDecision,
        ScopeKey,
        ToolExecution,
        ToolExecutionResult,
        ToolRegistry,
    )
    from ..dispatch import DispatchLogEntry
    from ..listening import HostListening
    from ..spill_store import SpillStore

__all__ = ["SpillPolicy"]

_LOGGER: Final = logging.getLogger("ptc.runtime")
_READ: Final = "read"
"""A tool of this name pages through files by itself, so its results are never too long by accident (contract K7)."""
_CALLED: Final = {"result": "result", "dispatch": "recorded content"}


class SpillPolicy:
    """Bounds what a model is shown of a result; `install` puts it in force.

        store = ptc.LocalSpillStore("/var/lib/agent/spilled", max_age_seconds=7 * 24 * 3600)
        ptc.SpillPolicy.install(host, max_inline_bytes=50_000, store=store)

    A text of more than the cap is saved, and in its place stands

        <the first half of what fits>
        [...]
        <the second half>

        (<n> bytes omitted; the whole text is kept under the locator <locator>; <how to read on>)

    which is never longer than the cap. What cannot be saved is shown whole, with a warning in the host's log; nothing
    that happens here makes a call fail (contract K10).

    What is saved is the text as the model would have got it. A redaction of records does not change it, except in the
    copy for the record of a program's call. Keep the store as private as the model's conversation.
    """

    __slots__ = ("_cap", "_registry", "_store", "_too_small")

    def __init__(self, registry: ToolRegistry, max_inline_bytes: int, store: SpillStore | None) -> None:
        self._registry = registry
        self._cap = max_inline_bytes
        self._store = store
        self._too_small = False

    @classmethod
    def install(
        cls: type[Self],
        target: HostListening | ScopedTools,
        *,
        max_inline_bytes: int | None = None,
        store: SpillStore | None = None,
        read_tool: bool = True,
    ) -> Disposer:
        """Bounds the results of a scope and those below it; of everybody for a host.

        The policy stands before the listeners that are there, so it bounds what they have made of a result.

        Args:
            target: a host, an agent, or the tools of one.
            max_inline_bytes: how many UTF-8 bytes of text a result may have; with `None` nothing is installed
                (contract K6, ruling 12).
            store: where longer texts go. Without one they stay as they are, each with a warning.
            read_tool: whether the tool `read_spilled` is registered for the scope, so that models and programs can
                read on.

        Returns:
            what takes the policy and its tool away.

        Raises:
            ValueError: `max_inline_bytes` is no integer, or negative.
            ToolRegistrationError: the scope has a tool `read_spilled` already.
        """
        if max_inline_bytes is None:
            return Disposer(lambda: None)
        if isinstance(max_inline_bytes, bool) or not isinstance(max_inline_bytes, int) or max_inline_bytes < 0:
            raise ValueError(f"max_inline_bytes must be an integer of 0 or more, or None, not {max_inline_bytes!r}")
        tools = target if isinstance(target, ScopedTools) else target.tools
        tools.registry.events.declare(DISPATCH_LOG_EVENT)
        policy = cls(tools.registry, max_inline_bytes, store)
        with ExitStack() as undo:
            if read_tool and store is not None:
                undo.callback(tools.register(read_spilled_tool(store, max_inline_bytes)))
            undo.callback(tools.on(POST_EXECUTE, policy.bound_result, prepend=True))
            on: Any = tools.on  # it has no type for an event of the runtime
            undo.callback(on(DISPATCH_LOG_EVENT, policy.bound_copy, prepend=True))
            return Disposer(undo.pop_all().close)
        raise AssertionError("an exit stack lets nothing pass")

    async def bound_result(
        self, call: ToolExecution, result: ToolExecutionResult, next_: Next[PostToolDecision], /
    ) -> PostToolDecision:
        """Bounds what the listeners after it have made of a result (contract K7, K8).

        Left alone are what they block or give another value, the calls of programs, the results of `read` and
        `read_spilled`, and content that is not text alone.
        """
        decision = await next_()
        if not isinstance(decision, Accept) or decision.value is not MISSING:
            return decision
        if call.parent is not None or call.name in (_READ, READ_SPILLED):
            return decision
        content = result.content if decision.content is MISSING else decision.content
        spill = _Spill(call.agent, call.name, call.call_id, "result", self._way_on(call))
        bounded = await self._bound(content, spill)
        return decision if bounded is None else replace(decision, content=bounded)

    async def bound_copy(
        self, entry: DispatchLogEntry, next_: Next[Sequence[ContentBlock]], /
    ) -> Sequence[ContentBlock]:
        """Bounds the durable copy of a sub-call's content, that of `read` too (contract K11)."""
        content = await next_()
        if entry.name == READ_SPILLED:
            return content
        spill = _Spill(entry.exec.agent, entry.name, entry.sub_call_id, "dispatch", "")
        bounded = await self._bound(content, spill)
        return content if bounded is None else bounded

    def _way_on(self, call: ToolExecution) -> str:
        """Says how this caller reads on, if it can; the notice goes on with it."""
        if self._registry.executable(READ_SPILLED, call.agent, call.tool_set) is None:
            return ""
        if call.name == RUN_CODE:
            return f"; read on in a program: await tools.{READ_SPILLED}(locator=..., offset={{offset}})"
        return f"; read on with {READ_SPILLED}, offset {{offset}}"

    async def _bound(self, content: object, spill: _Spill) -> list[ContentBlock] | None:
        """Returns what stands in the place of content that is too long; `None` when it stays (contract K8 to K10)."""
        text = _text_of(content)
        if text is None or len(data := text.encode()) <= self._cap:
            return None
        try:
            shown = await self._spilled(text, data, spill)
        except Exception as error:  # noqa: BLE001 - the call has succeeded or failed by itself, and stays so (K10)
            shown, problem = None, message_of(error)
        else:
            problem = None
        if problem is not None:
            _LOGGER.warning(
                'the %s of tool "%s" (call %s) is %d bytes long and stays whole: %s',
                _CALLED[spill.label], spill.tool_name, spill.call_id, len(data), problem,
            )  # fmt: skip
        return None if shown is None else [text_block(shown)]

    async def _spilled(self, text: str, data: bytes, spill: _Spill) -> str | None:
        """Saves a text, and returns what is shown of it; `None` when there is no room for that (contract K9).

        Raises:
            Exception: why it cannot be saved.
        """
        session_id = session_id_of(spill.agent)
        if session_id is None:
            raise LookupError("its agent has no session, and a text is kept for a session")
        if self._store is None:
            raise LookupError("the spill policy has no store")
        if shortened(data, self._cap, spill.notice("")) is None:
            return self._no_room()  # whatever the locator will be; nothing need be saved
        locator = await self._store.save_text(
            SpillText(
                session_id=session_id,
                tool_name=spill.tool_name,
                call_id=spill.call_id,
                label=spill.label,
                suggested_name=f"{spill.tool_name}.txt",
                content=text,
            )
        )
        if not isinstance(locator, str) or not locator or not locator.isprintable():
            raise TypeError(f"the store must return a locator that can be printed, not {describe_answer(locator)}")
        shown = shortened(data, self._cap, spill.notice(locator))
        return self._no_room() if shown is None else shown

    def _no_room(self) -> None:
        if not self._too_small:
            self._too_small = True
            _LOGGER.warning(
                "max_inline_bytes=%d of the spill policy is too little even for a notice: longer results stay whole",
                self._cap,
            )


@dataclass(frozen=True, slots=True)
class _Spill:
    """What a text is of, and how its reader reads on."""

    agent: ScopeKey | None
    tool_name: str
    call_id: str
    label: Literal["result", "dispatch"]
    way_on: str

    def notice(self, locator: str) -> Callable[[int, int], str]:
        def notice(omitted: int, offset: int) -> str:
            way_on = self.way_on.format(offset=offset)
            return f"({omitted} bytes omitted; the whole text is kept under the locator {locator}{way_on})"

        return notice


def _text_of(content: object) -> str | None:
    """Returns the text of content that is nothing but text (contract K7); `None` for every other.

    A listener may give anything. What is no content is refused by whoever asked for it, and not here.
    """
    if not isinstance(content, Sequence) or isinstance(content, str):
        return None
    texts: list[str] = []
    for block in content:
        text = block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else None
        if not isinstance(text, str):
            return None
        texts.append(text)
    text = "".join(texts)
    return text if is_lossless(text) else None
