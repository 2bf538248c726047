"""The clients of a server: each has an agent of its own, with the tools, rules and sandbox that its name stands for."""

from __future__ import annotations

import logging
import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Final

import anyio
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .telling import tools_of

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp_types import Tool

    from ...registry import Disposer
    from ..agent import Agent
    from ..config import Config
    from ..host import Host
    from .executors import Executors

__all__ = ["Client", "Clients", "is_modern"]

_LOGGER: Final = logging.getLogger("ptc.serve")
_UNNAMED: Final = "unnamed client"
_MAX_NAME: Final = 64
_MAX_CLIENTS: Final = 1_000
"""How many clients may be known at once; then those that have been idle longest are forgotten."""

_IDLE_S: Final = 30 * 60
"""How long a client of HTTP may be idle before it is forgotten, as long as the SDK keeps its session."""


def is_modern(context: ServerRequestContext) -> bool:
    """Tells whether a request is of the era in which each stands for itself."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


class Client:
    """One client.

    Attributes:
        name: what it calls itself, cleaned.
        agent: whose calls its calls are.
        calls: how many of its calls are on their way.
        seen: when it asked something last, by the event loop's clock.
        session: how it is told of changes; `None` where it listens for them, or has not asked for the tools yet.
        told: the tools as it was told of them last.
    """

    def __init__(self, name: str, agent: Agent, installed: Disposer) -> None:
        self.name = name
        self.agent = agent
        self.calls = 0
        self.seen = anyio.current_time()
        self.session: ServerSession | None = None
        self.told: list[Tool] | None = None
        self._installed = installed

    def tools(self) -> list[Tool]:
        """Returns what the client is offered.

        Raises:
            ToolExecutorUnavailableError: the executor has been unloaded.
        """
        return tools_of(self.agent)

    async def aclose(self) -> None:
        """Ends what goes on for it, and takes its rules away."""
        await self.agent.aclose()
        self._installed()
        self.agent.tools.close()


class Clients:
    """Finds the client that has sent a request.

    Args:
        host: where the agents are made.
        config: what holds for which client.
        executors: makes their executors.
        alone: whether there is one client only, as over standard input and output.
    """

    def __init__(self, host: Host, config: Config, executors: Executors, *, alone: bool) -> None:
        self._host = host
        self._config = config
        self._executors = executors
        self._alone = alone
        self._known: dict[Hashable, Client] = {}

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._known.values()))

    async def of(self, context: ServerRequestContext) -> Client:
        """Returns the client of a request.

        Raises:
            SandboxUnavailableError: this machine does not have the sandbox that the client's programs run in.
        """
        name = _clean(context)
        key = self._key(context, name)
        client = self._known.pop(key, None)
        if client is None:
            await self._forget_idle()
            # Another request of the same client may have come meanwhile.
            client = self._known.pop(key, None) or self._make(name)
        self._known[key] = client  # the one that asked last is the last one
        client.seen = anyio.current_time()
        return client

    def _key(self, context: ServerRequestContext, name: str) -> Hashable:
        """Returns what tells clients apart: the session, where there is one, and else the name."""
        if self._alone:
            return None
        session = (
            None if is_modern(context) or context.request is None else context.request.headers.get("mcp-session-id")
        )
        return ("name", name) if session is None else ("session", session)

    def _make(self, name: str) -> Client:
        profile = self._config.profile(client=name)
        agent = self._host.agent(profile.agent or name, executor=self._executors.of(profile.sandbox))
        _LOGGER.info("client %s has come", name)
        return Client(name, agent, profile.install(agent.tools))

    async def _forget_idle(self) -> None:
        now = anyio.current_time()
        for key, client in list(self._known.items()):
            idle = not client.calls and (now - client.seen > _IDLE_S or len(self._known) >= _MAX_CLIENTS)
            if idle and self._known.pop(key, None) is not None:
                await client.aclose()

    async def aclose(self) -> None:
        """Closes them all."""
        while self._known:
            _key, client = self._known.popitem()
            await client.aclose()


def _clean(context: ServerRequestContext) -> str:
    """Returns the client's name with what could confuse a reader or a pattern replaced."""
    told = context.session.client_params
    if told is None:
        return _UNNAMED
    name = re.sub(r"[^\w .()/@+-]+", "_", told.client_info.name, flags=re.ASCII).strip()[:_MAX_NAME].strip()
    return name or _UNNAMED
