"""Running a body so that it is always awaited, whoever is cancelled meanwhile (contract C32).

Two kinds of cancellation are told apart here. A `Signal` only tells, and is no business of this module. Cancellation
of the host's own task is an exception in the middle of an await; a body never gets it: it runs shielded, is told
through a signal, and is awaited before the cancellation goes on its way.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from ..errors import AbortError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ..signals import SignalSource

__all__ = ["HOST_CANCELLED", "LeftOpenError", "await_foreign", "await_policy", "await_sheltered", "await_shielded"]

T = TypeVar("T")

HOST_CANCELLED: Final = "the host cancelled the task that made this call"
"""The reason of the signal that a body gets when the host's own task is cancelled."""


class LeftOpenError(RuntimeError):
    """A tool's body has left its task in disorder, so that the task cannot end as it should.

    Args:
        tool: the tool's name.
        cause: how that showed.
    """

    def __init__(self, tool: str, cause: Exception) -> None:
        super().__init__(
            f'tool "{tool}" left a cancel scope or task group open that its body had entered; enter them in a `with` '
            "block"
        )
        self.__cause__ = cause


async def await_foreign(foreign: Awaitable[T]) -> T:
    """Awaits a body or a policy, and turns a cancellation of its own making into an error.

    Raises:
        AbortError: it let out a cancellation that nobody around it asked for, for example of a task that it had
            cancelled itself.
        Exception: whatever it raised.
    """
    try:
        return await foreign
    except Exception:
        raise
    except BaseException as thrown:
        error = _own_failure(thrown)
        if error is None:
            raise
        raise error from thrown


async def await_policy(waterfall: Awaitable[T]) -> T:
    """Awaits the listeners of a waterfall; does what `await_foreign` does, and loses no cancellation of the host.

    A listener that catches the cancellation of the host's task, and answers or fails as if nothing had happened, would
    have the call go on; here the cancellation goes on instead.
    """
    before = _native_cancellations()
    try:
        answer = await await_foreign(waterfall)
    except Exception:
        await _insist(before)
        raise
    await _insist(before)
    return answer


async def _insist(before: int | None) -> None:
    """Raises the cancellation of the current task anew, if there was one since and it was swallowed."""
    if before is None:
        await checkpoint_if_cancelled()
    elif (_native_cancellations() or 0) > before:
        await checkpoint_if_cancelled()  # a cancel scope knows only its own cancellations again
        raise anyio.get_cancelled_exc_class()(HOST_CANCELLED)


async def await_shielded(body: Awaitable[T]) -> T:
    """Awaits a body that is sheltered already, but not from cancel scopes that wrappers open around it.

    What asyncio alone cancels (`asyncio.timeout` around `next()`) still gets to the body, because it runs in the
    wrapper's task; a wrapper that wants a deadline replaces the signal (contract K4).

    Raises:
        AbortError: the body let a cancellation of its own making out.
        Exception: whatever the body raised.
    """
    with anyio.CancelScope(shield=True):
        return await await_foreign(body)
    raise AssertionError("nobody cancels this scope")  # it could be left without a value only then


async def await_sheltered(body: Awaitable[T], host: SignalSource) -> T:
    """Awaits a body in a task of its own, out of reach of whatever cancels the caller's task.

    When that is cancelled, by a cancel scope or by asyncio alone (`task.cancel()`, `asyncio.timeout`), `host` is fired,
    the body is awaited to its end, and then the cancellation goes on.

    Args:
        body: the body.
        host: fired when the caller's task is cancelled.

    Raises:
        AbortError: the body let a cancellation of its own making out.
        Exception: whatever the body raised.
    """
    value: Any = None
    raised: BaseException | None = AbortError("tool call aborted: its task was cancelled before it began")

    async def run() -> None:
        nonlocal value, raised
        try:
            with anyio.CancelScope(shield=True):
                value = await await_foreign(body)
            raised = None
        except BaseException as error:  # noqa: BLE001 - carried to the caller, past the group, which would wrap it
            raised = error
        settled.set()

    settled = anyio.Event()
    async with anyio.create_task_group() as bodies:
        bodies.start_soon(run)
        try:
            await settled.wait()
        except anyio.get_cancelled_exc_class():
            host.abort(HOST_CANCELLED)
            raise
    if raised is not None:
        raise raised
    return value


def _own_failure(thrown: BaseException) -> Exception | None:
    """Returns the failure that a body or policy means by raising something beside an ordinary error.

    It is `None` for what is no business of the call: a cancellation of the host's task, or a request to end the
    process. A group that has cancellations beside ordinary errors stands for the errors, as it would in a task group.
    """
    cancelled_class = anyio.get_cancelled_exc_class()
    if isinstance(thrown, cancelled_class):
        rest = None
    elif isinstance(thrown, BaseExceptionGroup):
        rest = thrown.split(cancelled_class)[1]
        if not isinstance(rest, ExceptionGroup | None):
            return None
    else:
        return None
    if _host_cancelled():
        return None
    return rest or AbortError("tool call aborted: it awaited something that had been cancelled")


def _host_cancelled() -> bool:
    """Tells whether anybody around the running code has cancelled it.

    Cancel scopes say so themselves. On asyncio anything awaited may be cancelled on its own, and a task may be
    cancelled without any scope; a task counts who has cancelled it.
    """
    return anyio.current_effective_deadline() == -math.inf or bool(_native_cancellations())


def _native_cancellations() -> int | None:
    """Returns how often the current task of asyncio was asked to cancel; `None` on another event loop.

    asyncio is looked up, not imported: where it is not loaded nothing can run on it.
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return None
    return None if task is None else task.cancelling()
