"""Waiting for a turn among many, which can be given up at any time and from any thread."""

from __future__ import annotations

import anyio

from .wakeup import thread_safe_caller

__all__ = ["Turn"]


class Turn:
    """One wait for a place. Make it on the event loop.

    Args:
        places: what there is to wait for.
    """

    def __init__(self, places: anyio.CapacityLimiter) -> None:
        self._places = places
        self._soon = thread_safe_caller()
        self._queue: anyio.CancelScope | None = None
        self._given_up = False
        self._has_it = False

    async def come(self) -> bool:
        """Waits for the place; returns whether it was got. What has been got must be released."""
        with anyio.CancelScope() as queue:
            self._queue = queue
            if not self._given_up:
                await self._places.acquire_on_behalf_of(self)
                self._has_it = True
        self._queue = None
        if self._given_up:
            self.release()
        return self._has_it

    def release(self) -> None:
        """Gives the place back, if there is one."""
        if self._has_it:
            self._has_it = False
            self._places.release_on_behalf_of(self)

    def give_up(self) -> None:
        """Ends the wait; from any thread."""
        # In this order: `come` sets the queue and then looks at the flag, so one of the two is always seen.
        self._given_up = True
        queue = self._queue
        if queue is not None:
            self._soon(queue.cancel)
