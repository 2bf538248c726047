"""What both transports have in common: the news that the server is gone."""

from __future__ import annotations

from collections.abc import Callable

import anyio

__all__ = ["Loss"]


class Loss:
    """Whether one connection is lost, and why; the transport and the calls tell, the supervisor waits.

    Attributes:
        reason: why, for the host's people; `None` while nobody has told anything.
        last_words: the end of what the server wrote to its standard error.
        suspect: asked when a call got no answer; returns why the server must be gone, or `None`.
    """

    __slots__ = ("_event", "last_words", "reason", "suspect")

    def __init__(self) -> None:
        self.reason: str | None = None
        self.last_words = ""
        self.suspect: Callable[[], str | None] = lambda: None
        self._event = anyio.Event()

    @property
    def told(self) -> bool:
        """Whether the connection is known to be lost."""
        return self._event.is_set()

    def tell(self, reason: str) -> None:
        """Says that the connection is lost; the first reason counts."""
        if self.reason is None:
            self.reason = reason
        self._event.set()

    async def wait(self) -> None:
        """Waits until the connection is lost."""
        await self._event.wait()

    def describe(self, otherwise: str) -> str:
        """Says why the connection is lost, with the server's last words; `otherwise` when nobody knows."""
        text = self.reason or otherwise
        return f"{text}; it wrote: {self.last_words}" if self.last_words else text
