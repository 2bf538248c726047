"""How a scheduler sleeps: until something has changed since it began to look."""

from __future__ import annotations

import anyio

__all__ = ["Wake"]


class Wake:
    """One task looks and sleeps; whoever changes something it looks at says so.

    `look()` before looking, `wait()` when there is nothing to do: a change in between is not lost. An event is made
    only to sleep on, because most looks find something to do.
    """

    __slots__ = ("_changed", "_event")

    def __init__(self) -> None:
        self._changed = False
        self._event: anyio.Event | None = None

    def look(self) -> None:
        """Begins to look: changes from now on count."""
        self._changed = False

    def change(self) -> None:
        """Says that something has changed."""
        self._changed = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Sleeps until something has changed since the last `look()`."""
        if self._changed:
            return
        self._event = anyio.Event()
        try:
            await self._event.wait()
        finally:
            self._event = None
