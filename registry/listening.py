# ruff: noqa: A002 - `exec` and `next` are the contract's names, and nobody can pass them by name
"""What may listen to which event, as types: one protocol for each event, and `on` with an overload for each.

A wrong listener for a known event is an error to a type checker, and so is an event that is not known. Listeners may
name their parameters as they like, and leave annotations out. Whatever can be awaited may answer a waterfall: an
`async def` function or method, an object with such a `__call__`, a `functools.partial` of one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

if TYPE_CHECKING:
    from .approval import ApprovalListener
    from .decisions import PostToolDecision, PreToolDecision
    from .execution import ToolExecution, ToolExecutionResult
    from .pipeline import DispatchView
    from .scopes import Disposer

__all__ = [
    "ChangeListener",
    "ExecuteListener",
    "Listening",
    "Next",
    "PostExecuteListener",
    "PreExecuteListener",
    "ResultListener",
]

AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class Next(Protocol[AnswerT_co]):
    """The rest of a waterfall: `await next()` gives the answer of the listeners further in (contract C13)."""

    def __call__(self) -> Awaitable[AnswerT_co]: ...


class PreExecuteListener(Protocol):
    """Listens to `tools/pre-execute`: says whether a call may run (contract C14 to C16)."""

    def __call__(self, exec: ToolExecution, next: Next[PreToolDecision], /) -> Awaitable[PreToolDecision]: ...


class ExecuteListener(Protocol):
    """Listens to `tools/execute`: stands around the body, and may replace its signal (contract C28 to C40)."""

    def __call__(self, view: DispatchView, next: Next[ToolExecutionResult], /) -> Awaitable[ToolExecutionResult]: ...


class PostExecuteListener(Protocol):
    """Listens to `tools/post-execute`: says whether a result may stand (contract C48 to C51)."""

    def __call__(
        self, exec: ToolExecution, result: ToolExecutionResult, next: Next[PostToolDecision], /
    ) -> Awaitable[PostToolDecision]: ...


class ResultListener(Protocol):
    """Listens to `tools/result`: is told what came of a call, at once, and answers nothing (contract C59)."""

    def __call__(self, exec: ToolExecution, result: ToolExecutionResult, /) -> None: ...


class ChangeListener(Protocol):
    """Listens to `tools/change`: is told, at once, that the tools are not what they were (contract A14)."""

    def __call__(self) -> None: ...


PreT = TypeVar("PreT", bound=PreExecuteListener)
ExecuteT = TypeVar("ExecuteT", bound=ExecuteListener)
PostT = TypeVar("PostT", bound=PostExecuteListener)
ResultT = TypeVar("ResultT", bound=ResultListener)
ChangeT = TypeVar("ChangeT", bound=ChangeListener)
ApprovalT = TypeVar("ApprovalT", bound="ApprovalListener")


class Listening:
    """Has `on`, typed by event. Each event has two overloads: the decorator, and the call that takes the listener."""

    __slots__ = ()

    @overload
    def on(self, event: Literal["tools/pre-execute"], *, prepend: bool = False) -> Callable[[PreT], PreT]: ...
    @overload
    def on(
        self, event: Literal["tools/pre-execute"], listener: PreExecuteListener, *, prepend: bool = False
    ) -> Disposer: ...
    @overload
    def on(self, event: Literal["tools/execute"], *, prepend: bool = False) -> Callable[[ExecuteT], ExecuteT]: ...
    @overload
    def on(self, event: Literal["tools/execute"], listener: ExecuteListener, *, prepend: bool = False) -> Disposer: ...
    @overload
    def on(self, event: Literal["tools/post-execute"], *, prepend: bool = False) -> Callable[[PostT], PostT]: ...
    @overload
    def on(
        self, event: Literal["tools/post-execute"], listener: PostExecuteListener, *, prepend: bool = False
    ) -> Disposer: ...
    @overload
    def on(self, event: Literal["tools/result"], *, prepend: bool = False) -> Callable[[ResultT], ResultT]: ...
    @overload
    def on(self, event: Literal["tools/result"], listener: ResultListener, *, prepend: bool = False) -> Disposer: ...
    @overload
    def on(self, event: Literal["tools/change"], *, prepend: bool = False) -> Callable[[ChangeT], ChangeT]: ...
    @overload
    def on(self, event: Literal["tools/change"], listener: ChangeListener, *, prepend: bool = False) -> Disposer: ...
    @overload
    def on(self, event: Literal["approval/request"], *, prepend: bool = False) -> Callable[[ApprovalT], ApprovalT]: ...
    @overload
    def on(
        self, event: Literal["approval/request"], listener: ApprovalListener, *, prepend: bool = False
    ) -> Disposer: ...
    def on(self, event: Any, listener: Any = None, *, prepend: bool = False) -> Any:
        """Installs a listener that hears what happens in this scope and below it (contract A5, C13).

            tools/pre-execute         async (exec, next) -> Allow | Deny | Ask | Cancel
            tools/execute             async (view, next) -> ToolSuccess | ToolFailure
            tools/post-execute        async (exec, result, next) -> Accept | Block
            tools/result              (exec, result) -> None
            tools/change              () -> None
            approval/request          async (request, next) -> outcome, for example "allowed-once"

        Events that a host declares itself are listened to through `registry.events.on`.

        Args:
            event: one of these.
            listener: what is called; when omitted, `on` is a decorator and returns the function unchanged.
                `await next()` gives the answer of the listeners after it.
            prepend: whether it goes before the listeners that are there.

        Returns:
            the disposer, or the decorator.

        Raises:
            ToolRegistrationError: there is no such event, or the listener does not suit it.
        """
        if listener is not None:
            return self._listen(event, listener, prepend=prepend)

        def install(function: Any) -> Any:
            self._listen(event, function, prepend=prepend)
            return function

        return install

    def _listen(self, event: str, listener: Callable[..., Any], *, prepend: bool) -> Disposer:
        raise NotImplementedError
