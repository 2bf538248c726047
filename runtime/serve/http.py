"""Serves clients over streamable HTTP: who has the token may come in, and browsers from elsewhere may not."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

__all__ = ["Listening", "PortError"]

PATH: Final = "/mcp"
_CLOSING_S: Final = 2
"""How many seconds connections have to end by themselves, when nothing runs any more."""

_BACKLOG: Final = 128


class PortError(Exception):
    """The address cannot be listened on; the message says why, and what to do."""


class Listening:
    """An address that is listened on, and the token that opens it.

    Args:
        host: the name or address of the interface.
        port: the port; 0 takes any that is free.
        token: what clients must have; a new one when `None`.

    Attributes:
        url: where clients find the server.
        token: what they must have.

    Raises:
        PortError: the address cannot be listened on.
    """

    def __init__(self, host: str, port: int, token: str | None = None) -> None:
        self._made_token = token is None
        self.token = secrets.token_urlsafe(32) if token is None else token
        self._socket = _listen(host, port)
        self._host = host
        self._port: int = self._socket.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._port}{PATH}"

    async def serve(self, server: Server[Any], say: Callable[[str], None]) -> None:
        """Serves until it is cancelled.

        Args:
            server: the SDK's server.
            say: told where the server is, and its token when it was made here.
        """
        sessions = StreamableHTTPSessionManager(app=server, security_settings=self._security())
        guarded = RequireAuthMiddleware(StreamableHTTPASGIApp(sessions), [])
        app = Starlette(
            routes=[Route(PATH, endpoint=guarded)],
            middleware=[Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(_Verifier(self.token)))],
        )
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, ws="none", lifespan="off",
            timeout_graceful_shutdown=_CLOSING_S,
        )  # fmt: skip
        web = _Web(config)
        say(f"serving on {self.url}")
        if self._made_token:
            say(f"clients need this header: Authorization: Bearer {self.token}")
        if not _is_loopback(self._host):
            say("this address can be reached from other machines, and HTTP does not hide the token from the network")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_when_cancelled, web)
            with anyio.CancelScope(shield=True):
                await _run(web, self._socket, sessions)
            tasks.cancel_scope.cancel()

    def close(self) -> None:
        """Gives the address back."""
        self._socket.close()

    def _security(self) -> TransportSecuritySettings:
        """Lets no page of a browser in that pretends to be from here.

        On an address of the network the names that clients know it by are not known, so there the token alone counts.
        """
        if not _is_loopback(self._host):
            return TransportSecuritySettings(enable_dns_rebinding_protection=False)
        names = {"127.0.0.1", "localhost", "[::1]", f"[{self._host}]" if ":" in self._host else self._host}
        hosts = sorted(f"{name}:{self._port}" for name in names)
        return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])


class _Web(uvicorn.Server):
    """The web server without its own handling of signals: whoever serves has that."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ending = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Verifier:
    """Knows the one token; how long a comparison takes says nothing about it."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        if not secrets.compare_digest(token.encode("utf-8", "surrogateescape"), self._token):
            return None
        return AccessToken(token=token, client_id="ptc", scopes=[])


async def _run(web: _Web, listening: socket.socket, sessions: StreamableHTTPSessionManager) -> None:
    """Serves until the end; first the sessions end, whose streams would else keep their connections."""
    async with anyio.create_task_group() as tasks:

        async def serve() -> None:
            await web.serve(sockets=[listening])
            web.ending.set()

        async with sessions.run():
            tasks.start_soon(serve)
            await web.ending.wait()
        web.should_exit = True


async def _end_when_cancelled(web: _Web) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        web.ending.set()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise PortError(f"there is no address {host!r} to listen on: {error}") from None
    made = socket.socket(family, kind, protocol)
    try:
        if socket.has_dualstack_ipv6() and family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise PortError(
            f"{host}:{port} cannot be listened on: {error.strerror}; end what listens there, or choose another port "
            "(0 takes any that is free)"
        ) from None
    return made


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
