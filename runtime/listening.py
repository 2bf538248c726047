"""`on` for hosts and agents: the events of the registry, and the one that the runtime adds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

from ..registry import (
    ApprovalListener,
    ChangeListener,
    ExecuteListener,
    Listening,
    PostExecuteListener,
    PreExecuteListener,
    ResultListener,
)

if TYPE_CHECKING:
    from ..registry import ContentBlock, Disposer, Next, ScopedTools
    from .dispatch import DispatchLogEntry

__all__ = ["DispatchLogListener", "HostListening"]


class DispatchLogListener(Protocol):
    """Listens to `tools/ptc-dispatch-log`: shapes the durable copy of a sub-call's content (contract E44)."""

    def __call__(
        self,
        entry: DispatchLogEntry,
        next: Next[Sequence[ContentBlock]],  # noqa: A002 - the contract's name
        /,
    ) -> Awaitable[Sequence[ContentBlock]]: ...


PreT = TypeVar("PreT", bound=PreExecuteListener)
ExecuteT = TypeVar("ExecuteT", bound=ExecuteListener)
PostT = TypeVar("PostT", bound=PostExecuteListener)
ResultT = TypeVar("ResultT", bound=ResultListener)
ChangeT = TypeVar("ChangeT", bound=ChangeListener)
ApprovalT = TypeVar("ApprovalT", bound=ApprovalListener)
DispatchLogT = TypeVar("DispatchLogT", bound=DispatchLogListener)


class HostListening(Listening):
    """Has `on` for every event of a host.

    Type checkers cannot add an overload to those of a base class, so the registry's are here again.

    Attributes:
        tools: what listeners are installed with, and whose scope they hear.
    """

    __slots__ = ()

    tools: ScopedTools

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
    @overload
    def on(
        self, event: Literal["tools/ptc-dispatch-log"], *, prepend: bool = False
    ) -> Callable[[DispatchLogT], DispatchLogT]: ...
    @overload
    def on(
        self, event: Literal["tools/ptc-dispatch-log"], listener: DispatchLogListener, *, prepend: bool = False
    ) -> Disposer: ...
    def on(self, event: Any, listener: Any = None, *, prepend: bool = False) -> Any:
        """Listens to an event: on a host, of every agent; on an agent, of it and the scopes below it.

            tools/pre-execute         async (exec, next) -> Allow | Deny | Ask | Cancel
            tools/execute             async (view, next) -> ToolSuccess | ToolFailure
            tools/post-execute        async (exec, result, next) -> Accept | Block
            tools/result              (exec, result) -> None
            tools/change              () -> None
            approval/request          async (request, next) -> outcome, for example "allowed-once"
            tools/ptc-dispatch-log    async (entry, next) -> content blocks

        Events that a host declares itself are listened to through `host.registry.events.on`.

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
        return super().on(event, listener, prepend=prepend)

    def _listen(self, event: Any, listener: Any, *, prepend: bool) -> Disposer:
        return self.tools.on(event, listener, prepend=prepend)
