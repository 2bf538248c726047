"""Slows a server down that sends without being asked: what it does not get rid of, it waits with."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import anyio
from mcp_types import JSONRPCNotification, JSONRPCRequest

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream
    from mcp.shared.message import SessionMessage

__all__ = ["PacedStream"]

_MOST: Final = 500
_WINDOW_S: Final = 0.5


class PacedStream:
    """A stream of messages that gives at most so many notifications and requests in a while; answers are not counted.

    Each of them takes the event loop some of its time, which belongs to the other servers and programs as well.
    """

    def __init__(self, inner: ReadStream[SessionMessage | Exception]) -> None:
        self._inner = inner
        self._count = 0
        self._since = anyio.current_time()

    async def receive(self) -> SessionMessage | Exception:
        """Gives the next message, in good time."""
        item = await self._inner.receive()
        if isinstance(item, Exception) or not isinstance(item.message, JSONRPCNotification | JSONRPCRequest):
            return item
        self._count += 1
        if self._count >= _MOST:
            left = self._since + _WINDOW_S - anyio.current_time()
            if left > 0:
                await anyio.sleep(left)
            self._count = 0
            self._since = anyio.current_time()
        return item

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()
