"""The way to a server over streamable HTTP: the SDK's transport, on a client that keeps trouble to one request.

In the SDK's transport an exception of one request ends all others. Here a request that cannot be made is answered with
a JSON-RPC error instead, which says whether it had gone out; so are answers that are too long, or compressed, which
nobody asked for and which would hide how long they are.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx2

from .limits import MAX_MESSAGE_BYTES
from .servers import HttpServer
from .transports import Loss

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

__all__ = ["NOT_SENT", "WENT_OUT", "open_http"]

NOT_SENT: Final = -31_901
"""The code of the error in the place of an answer: the request did not reach the server."""

WENT_OUT: Final = -31_902
"""The code of the error in the place of an answer: the request went out, and the connection broke."""

_MAX_WORDS_BYTES: Final = 1_000

_LOGGER = logging.getLogger("ptc.runtime")


@asynccontextmanager
async def open_http(name: str, server: HttpServer, loss: Loss) -> AsyncIterator[TransportStreams]:
    """Opens the way to the server for the time of the block, and gives the streams of its messages.

    Args:
        name: the server's name, for the log.
        server: where it is.
        loss: told why requests fail.
    """
    from mcp.client.streamable_http import streamable_http_client

    connect_s = server.connect_ms / 1000
    client = _Contained(
        name,
        loss,
        headers={**server.headers, "accept-encoding": "identity"},
        # How long an answer may take is the caller's to say; a stream of a server may be silent for long.
        timeout=httpx2.Timeout(connect_s, read=None),
    )
    async with (
        client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


class _Contained(httpx2.AsyncClient):
    """Sends requests, and turns exceptions into answers."""

    def __init__(self, name: str, loss: Loss, **options: Any) -> None:
        super().__init__(**options)
        self._name = name
        self._loss = loss

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol) as error:
            return self._answer(request, NOT_SENT, f"it cannot be reached: {error or type(error).__name__}")
        except httpx2.TransportError as error:
            return self._answer(request, WENT_OUT, f"the connection broke: {error or type(error).__name__}")
        if await _has_forgotten(request, response):
            await response.aclose()
            self._loss.tell("it has forgotten the session")
            return self._answer(request, NOT_SENT, "it has forgotten the session")
        if response.status_code >= 400:
            self._loss.reason = f"it answered with HTTP {response.status_code}"
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            return self._answer(request, WENT_OUT, "it compressed its answer, though it was asked not to")
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Limited(response.stream)
        return response

    def _answer(self, request: httpx2.Request, code: int, reason: str) -> httpx2.Response:
        _LOGGER.debug("MCP server %r: %s", self._name, reason)
        self._loss.reason = reason
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": reason}}
        return httpx2.Response(
            502, headers={"content-type": "application/json"}, content=json.dumps(error).encode(), request=request
        )


async def _has_forgotten(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Whether the server says that there is no such session: by status 404, or in words, as some do instead."""
    if request.method != "POST" or "mcp-session-id" not in request.headers:
        return False
    if response.status_code == 404:
        return True
    if response.status_code != 400 or int(response.headers.get("content-length", _MAX_WORDS_BYTES)) >= _MAX_WORDS_BYTES:
        return False
    try:
        return b"session" in (await response.aread()).lower()
    except httpx2.TransportError:
        return False


class _Limited(httpx2.AsyncByteStream):
    """The bytes of an answer, up to the longest message; what breaks on the way ends that answer alone."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        try:
            async for chunk in self._inner:
                total += len(chunk)
                if total <= MAX_MESSAGE_BYTES:
                    yield chunk
                else:
                    # The iteration must come to its own end, or trio finds unfinished generators; so the source ends.
                    await self._inner.aclose()
        except (httpx2.TransportError, httpx2.StreamError) as error:
            if total <= MAX_MESSAGE_BYTES:
                raise httpx2.StreamError(f"the connection broke: {error or type(error).__name__}") from error
        if total > MAX_MESSAGE_BYTES:
            raise httpx2.StreamError(f"an answer of more than {MAX_MESSAGE_BYTES:,} bytes")

    async def aclose(self) -> None:
        await self._inner.aclose()
