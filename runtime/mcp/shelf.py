"""The tools of one server as they are registered: what it lists becomes definitions, and only changes are touched."""

from __future__ import annotations

import json
import logging
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio.lowlevel

from ...registry import (
    ContentBlock,
    Disposer,
    HarnessError,
    JsonObject,
    JsonValue,
    ScopedTools,
    ToolAnnotations,
    ToolDefinition,
    ToolExecution,
    ToolExecutionResult,
    ToolFailure,
    ToolOutputError,
    ToolRunContext,
    define_raw_tool,
)
from .content import CallAnswer, render
from .dialect import to_2020_12
from .limits import MAX_LIST_BYTES, MAX_NAME_CHARS, MAX_PROBLEMS

if TYPE_CHECKING:
    from mcp_types import Tool

    from ...registry.execution import ExecutionToken
    from .connection import Listing

__all__ = ["CallTool", "Shelf"]

CallTool: TypeAlias = "Callable[[Tool, JsonObject, ToolRunContext], Awaitable[CallAnswer]]"
"""Calls a tool of the server."""

_AT_ONCE: Final = 20
"""How many tools are looked at before others get their turn."""

_SAME: Final = "it is listed more than once, always the same; it counts once"
_DIFFERENT: Final = "it is listed more than once, each time different; it was left out"

_LOGGER = logging.getLogger("ptc.runtime")


class Shelf:
    """Registers the tools of one server in a scope.

    Args:
        name: the server's name.
        prefix: what the names of its tools begin with.
        tools: the scope.
        call: calls one of them.

    Attributes:
        problems: what is wrong with single tools, by the server's own names of them.
        problem: what is wrong with the list as a whole.
    """

    def __init__(self, name: str, prefix: str, tools: ScopedTools, call: CallTool) -> None:
        self.problems: dict[str, str] = {}
        self.problem: str | None = None
        self._name = name
        self._prefix = prefix
        self._tools = tools
        self._call = call
        self._registered: dict[str, tuple[str, Disposer]] = {}
        self._listed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the registered tools, with the prefix, in the server's order."""
        return tuple(self._prefix + name for name in self._listed if name in self._registered)

    async def update(self, listing: Listing) -> None:
        """Makes what is registered equal to the listing: what has not changed is not touched.

        Others get their turn in between, for a long list takes its time.
        """
        known, known_problem = self.problems, self.problem
        self.problems = dict(listing.problems)
        self.problem = listing.problem
        wanted = await self._wanted(listing.tools)
        self._listed = tuple(wanted)
        for name in [name for name in self._registered if name not in wanted]:
            self._remove(name)
        for place, (name, (text, tool)) in enumerate(wanted.items()):
            await _give_way(place)
            if name in self._registered and self._registered[name][0] == text:
                continue
            self._remove(name)
            self._register(name, text, tool)
        for name, problem in self.problems.items():
            if known.get(name) != problem:
                _LOGGER.warning("tool %r of MCP server %r: %s", name, self._name, problem)
        if self.problem is not None and self.problem != known_problem:
            _LOGGER.warning("MCP server %r: %s", self._name, self.problem)

    def clear(self) -> None:
        """Takes all tools back."""
        for name in list(self._registered):
            self._remove(name)

    async def _wanted(self, listed: Sequence[Tool]) -> dict[str, tuple[str, Tool]]:
        """What to register, by name, each with a text that tells whether it has changed."""
        wanted: dict[str, tuple[str, Tool]] = {}
        different: set[str] = set()
        total = 0
        for place, tool in enumerate(listed):
            await _give_way(place)
            text = json.dumps(tool.model_dump(by_alias=True, mode="json", exclude={"icons", "meta"}), sort_keys=True)
            total += len(text)
            if total > MAX_LIST_BYTES:
                self.problem = f"its tools take more than {MAX_LIST_BYTES:,} bytes; the others were left out"
                break
            problem = self._objection(tool)
            if problem is not None:
                self._note(tool.name, problem)
            elif tool.name not in wanted:
                wanted[tool.name] = (text, tool)
            elif wanted[tool.name][0] != text:
                different.add(tool.name)
            else:
                self._note(tool.name, _SAME)
        for name in different:
            self.problems.pop(name, None)
            self._note(name, _DIFFERENT)
            del wanted[name]
        return wanted

    def _objection(self, tool: Tool) -> str | None:
        name = self._prefix + tool.name
        if not tool.name or not name.isprintable() or name != name.strip():
            return "its name is empty, or has characters that do not show"
        if len(name) > MAX_NAME_CHARS:
            return f"its name {name[:20]!r}... has more than {MAX_NAME_CHARS} characters"
        if tool.execution is not None and tool.execution.task_support == "required":
            return "it can only be called as a task of the protocol, which is not supported"
        return None

    def _note(self, name: str, problem: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.setdefault(name, problem)

    def _register(self, name: str, text: str, tool: Tool) -> None:
        try:
            definition = self._definition(tool)
        except (HarnessError, ValueError, TypeError) as error:
            self._note(name, str(error))
            return
        try:
            self._registered[name] = (text, self._tools.register(definition))
        except HarnessError as error:
            self._note(name, error.message)
        except Exception as error:
            # A listener of `tools/change` would not have it, and the registry took it back (contract A15).
            _LOGGER.exception("tool %r of MCP server %r was refused", name, self._name)
            self._note(name, f"a listener of tools/change refused it: {type(error).__name__}")

    def _remove(self, name: str) -> None:
        entry = self._registered.pop(name, None)
        if entry is None:
            return
        try:
            entry[1]()
        except Exception:
            _LOGGER.exception("a listener raised while tool %r of MCP server %r was taken back", name, self._name)

    def _definition(self, tool: Tool) -> ToolDefinition:
        called = self._prefix + tool.name
        projection = _Projection()

        async def execute(arguments: Any, run: ToolRunContext) -> JsonValue:
            answer = await self._call(tool, arguments, run)
            if tool.output_schema is not None and not answer.structured:
                raise ToolOutputError(called, ["the server declares an output schema, and gave no structured content"])
            projection.keep(run.exec, answer)
            return answer.value

        annotations = _annotations(tool)
        return define_raw_tool(
            name=called,
            description=tool.description or tool.title or "",
            parameters=to_2020_12(tool.input_schema),
            output=None if tool.output_schema is None else to_2020_12(tool.output_schema),
            execute=execute,
            # A format is a hint in the standard, and what a server takes is for the server to say.
            assert_formats=False,
            render=render,
            project_content=projection,
            concurrency_safe=annotations is not None and annotations.assumed.read_only is True,
            annotations=annotations,
        )


async def _give_way(place: int) -> None:
    if place % _AT_ONCE == _AT_ONCE - 1:
        await anyio.lowlevel.checkpoint()


def _annotations(tool: Tool) -> ToolAnnotations | None:
    told = tool.annotations
    if told is None:
        return None if tool.title is None else ToolAnnotations(title=tool.title)
    return ToolAnnotations(
        title=told.title or tool.title,
        read_only=told.read_only_hint,
        destructive=told.destructive_hint,
        idempotent=told.idempotent_hint,
        open_world=told.open_world_hint,
    )


class _Projection:
    """What models see of an answer whose blocks say more than its value, as long as the value is still the answer's.

    A wrapper may put another value in the place of the answer's, to hide something; then the blocks must go as well.
    """

    def __init__(self) -> None:
        self._kept: weakref.WeakKeyDictionary[ExecutionToken, CallAnswer] = weakref.WeakKeyDictionary()

    def keep(self, execution: ToolExecution, answer: CallAnswer) -> None:
        """Keeps the blocks of an answer, where they do not follow from the value."""
        if answer.content is not None:
            self._kept[execution.token] = answer

    def __call__(self, execution: ToolExecution, result: ToolExecutionResult) -> Sequence[ContentBlock] | None:
        answer = self._kept.pop(execution.token, None)
        if answer is None or isinstance(result, ToolFailure) or result.value != answer.value:
            return None
        return answer.content
