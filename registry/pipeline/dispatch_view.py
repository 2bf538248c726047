"""The call as `tools/execute` wrappers see it: its signal can be replaced, and nothing else (contract C28)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..events import describe_answer
from ..signals import Signal

if TYPE_CHECKING:
    from ..activation import ResolvedToolSet
    from ..definition import ToolSchema
    from ..execution import ExecutionToken, ToolExecution
    from ..scopes import ScopeKey
    from ..tool_annotations import ToolAnnotations
    from ..values import JsonValue, Missing

__all__ = ["DispatchView"]


class DispatchView:
    """The call as `tools/execute` wrappers see it: everything fixed but `signal` (contract C6, C28).

    A wrapper that replaces `signal` must put the former one back when its `next()` has returned (contract C31).
    """

    __slots__ = ("_exec", "_open", "_signal")

    def __init__(self, exec: ToolExecution) -> None:  # noqa: A002 - the field's name everywhere
        self._exec = exec
        self._signal = exec.signal
        self._open = True

    @property
    def signal(self) -> Signal:
        """The signal that the next body is given, joined with the caller's."""
        return self._signal

    @signal.setter
    def signal(self, signal: Signal) -> None:
        if not isinstance(signal, Signal):
            raise TypeError(f"exec.signal can be replaced by another Signal only, not by {describe_answer(signal)}")
        if not self._open:
            raise RuntimeError("exec.signal can be replaced only while tools/execute runs")
        self._signal = signal

    @property
    def call_id(self) -> str:
        """The call's own id."""
        return self._exec.call_id

    @property
    def root_call_id(self) -> str:
        """The id of the outermost call."""
        return self._exec.root_call_id

    @property
    def name(self) -> str:
        """The tool's name."""
        return self._exec.name

    @property
    def token(self) -> ExecutionToken:
        """The identity of this execution."""
        return self._exec.token

    @property
    def arguments(self) -> JsonValue | Missing:
        """The arguments, frozen."""
        return self._exec.arguments

    @property
    def agent(self) -> ScopeKey | None:
        """The calling scope."""
        return self._exec.agent

    @property
    def parent(self) -> ExecutionToken | None:
        """The token of the execution that makes this call."""
        return self._exec.parent

    @property
    def schema(self) -> ToolSchema | None:
        """What the caller was told of the tool."""
        return self._exec.schema

    @property
    def tool_set(self) -> ResolvedToolSet | None:
        """The admitted set of this step."""
        return self._exec.tool_set

    @property
    def annotations(self) -> ToolAnnotations | None:
        """What the tool says of its effects."""
        return self._exec.annotations

    def close(self) -> None:
        """Ends the time in which the signal may be replaced."""
        self._open = False
