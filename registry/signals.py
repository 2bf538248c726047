"""Cancellation as notification: a signal that its caller owns, and that a body may turn into a cancel scope.

A `Signal` tells; it never interrupts anybody. The first reason wins, observers are told at once and in order, and
what is running is still awaited (contract C32). A body that would rather be interrupted enters `cancel_scope()`.
Cancellation of the host's own task is another thing and never becomes a signal by itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from .errors import AbortError

__all__ = ["Signal", "SignalSource", "fuse"]


class Signal:
    """The reading side of a cancellation; `SignalSource` is the writing side.

    Attributes:
        aborted: whether the signal has fired.
        reason: what the first `abort` gave; `None` while the signal is live.
    """

    __slots__ = ("__weakref__", "_aborted", "_observers", "_reason")

    def __init__(self) -> None:
        self._aborted = False
        self._reason: object = None
        self._observers: dict[object, Callable[[object], None]] = {}

    @property
    def aborted(self) -> bool:
        return self._aborted

    @property
    def reason(self) -> object:
        return self._reason

    def subscribe(self, observer: Callable[[object], None]) -> Callable[[], None]:
        """Calls `observer(reason)` when the signal fires, and returns the way to unsubscribe.

        The call is made inside `abort`, so an observer must be quick. A signal that has already fired calls nobody:
        look at `aborted` first.
        """
        key = object()
        if not self._aborted:
            self._observers[key] = observer
        return lambda: void(self._observers.pop(key, None))

    def raise_if_aborted(self) -> None:
        """Raises `AbortError` when the signal has fired."""
        if self._aborted:
            raise AbortError(reason=self._reason)

    def _fire(self, reason: object) -> list[Exception]:
        if self._aborted:
            return []
        self._aborted = True
        self._reason = reason
        observers = list(self._observers.values())
        self._observers.clear()
        raised: list[Exception] = []
        for observer in observers:
            try:
                observer(reason)
            except Exception as error:  # noqa: BLE001 - one faulty observer must not hide the signal from the others
                raised.append(error)
        return raised

    async def wait(self) -> object:
        """Waits until the signal fires, and returns its reason."""
        if not self._aborted:
            fired = anyio.Event()
            unsubscribe = self.subscribe(lambda _reason: fired.set())
            try:
                await fired.wait()
            finally:
                unsubscribe()
        return self._reason

    @asynccontextmanager
    async def cancel_scope(self) -> AsyncIterator[anyio.CancelScope]:
        """Interrupts what runs inside the block when the signal fires.

        Raises:
            AbortError: on leaving the block, when the signal fired inside it.
        """
        self.raise_if_aborted()
        with anyio.CancelScope() as scope:
            unsubscribe = self.subscribe(lambda _reason: scope.cancel())
            try:
                yield scope
            finally:
                unsubscribe()
        if self._aborted and scope.cancelled_caught:
            raise AbortError(reason=self._reason)


def void(_value: object) -> None:
    """Drops a value, so that a lambda can be a procedure."""


class SignalSource:
    """The side that its owner keeps: `abort` fires `signal` once.

    Observers that raise are contained: their exceptions are collected and returned by `abort`, so that one faulty
    observer never hides the cancellation from the others.
    """

    __slots__ = ("signal",)

    def __init__(self) -> None:
        self.signal = Signal()

    def abort(self, reason: object = None) -> list[Exception]:
        """Fires the signal; a second call changes nothing, because the first reason wins.

        Returns:
            what observers raised, in order; empty when all went well.
        """
        return self.signal._fire(reason)  # noqa: SLF001 - the writing side of the same thing


def fuse(first: Signal | None, second: Signal | None) -> tuple[Signal, Callable[[], None]]:
    """Joins two signals into one that fires with whichever fires first (contract C28).

    Returns:
        the joined signal, and the way to take the join apart. The same signal twice, or one alone, is returned as it
        is. When both have fired already, the reason of `first` is taken.
    """
    if first is second or second is None:
        only = first if first is not None else Signal()
        return only, lambda: None
    if first is None:
        return second, lambda: None
    relay = SignalSource()
    for source in (first, second):
        if source.aborted:
            relay.abort(source.reason)
            return relay.signal, lambda: None
    undo = [source.subscribe(lambda reason: void(relay.abort(reason))) for source in (first, second)]
    return relay.signal, lambda: void([take_back() for take_back in undo])
