"""`connect`: servers in, tools out, for as long as the block lasts."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from ...registry import Disposer, ScopedTools
from .errors import McpNotInstalledError
from .servers import HttpServer, McpServer, StdioServer
from .states import ElicitHandler, McpProgress, ProgressListener, ServerState, ServerStatus

if TYPE_CHECKING:
    from .supervisor import Supervisor

__all__ = ["McpServers", "connect"]

_LOGGER = logging.getLogger("ptc.runtime")


class McpServers(Mapping[str, ServerState]):
    """The servers of one `connect`, each as it stands now, by name. `connect` makes it."""

    def __init__(self) -> None:
        self._supervisors: dict[str, Supervisor] = {}
        self._listeners: dict[object, ProgressListener] = {}

    def __getitem__(self, name: str) -> ServerState:
        return self._supervisors[name].state

    def __iter__(self) -> Iterator[str]:
        return iter(self._supervisors)

    def __len__(self) -> int:
        return len(self._supervisors)

    def __repr__(self) -> str:
        return f"McpServers({', '.join(f'{name}: {state.state}' for name, state in self.items())})"

    def on_progress(self, listener: ProgressListener) -> Disposer:
        """Tells `listener` how far servers are with the calls that begin from now on.

        Args:
            listener: a plain function that does not block. What it raises is logged.

        Returns:
            what ends it.
        """
        key = object()
        self._listeners[key] = listener

        def remove() -> None:
            del self._listeners[key]

        return Disposer(remove)

    async def wait_for(self, name: str, state: ServerStatus = "connected") -> ServerState:
        """Waits until a server is in a state, and returns it. Put a time limit around it: it may never be.

        Raises:
            KeyError: there is no server of that name.
        """
        return await self._supervisors[name].wait_for(state)

    def _teller(self) -> ProgressListener | None:
        """What calls that begin now tell of their progress; `None` while nobody wants to know."""
        return self._tell if self._listeners else None

    def _tell(self, progress: McpProgress) -> None:
        for listener in list(self._listeners.values()):
            try:
                listener(progress)
            except Exception:
                _LOGGER.exception("a listener of the progress of MCP servers raised")


@asynccontextmanager
async def connect(
    tools: ScopedTools, servers: Mapping[str, McpServer], *, elicit: ElicitHandler | None = None
) -> AsyncIterator[McpServers]:
    """Connects servers, and registers their tools for as long as the block lasts.

    It waits until the first attempt at each server is over, which `connect_ms` limits. A server that is not there is
    told by its state, and does not keep the others from working; it is tried again in the background, and its tools
    appear when it is there. What a server lists that cannot be used is left out, and named in its state's `problems`.

    Args:
        tools: where the tools are registered: `host.tools` for everybody, `agent.tools` for one agent.
        servers: the servers by name. The name is told to models when something is wrong with the server.
        elicit: puts the questions of servers to the user; without it they are told that nobody can be asked. It may be
            called for several questions at once.

    Raises:
        McpNotInstalledError: the extra `mcp` is not installed.
        TypeError: a server is neither a `StdioServer` nor an `HttpServer`, or a name is no text.
        ValueError: a name is empty.
    """
    _check(servers)
    try:
        from .supervisor import Supervisor
    except ImportError as error:
        raise McpNotInstalledError from error
    connected = McpServers()
    for name, server in servers.items():
        connected._supervisors[name] = Supervisor(name, server, tools, elicit, connected._teller)  # noqa: SLF001 - made here
    supervisors = list(connected._supervisors.values())  # noqa: SLF001
    raised: BaseException | None = None
    async with anyio.create_task_group() as group:
        try:
            for supervisor in supervisors:
                group.start_soon(supervisor.run)
            for supervisor in supervisors:
                await supervisor.tried.wait()
            yield connected
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 - carried out of the group, which would wrap it
            raised = error
        finally:
            for supervisor in supervisors:
                supervisor.close()
            group.cancel_scope.cancel()
    if raised is not None:
        raise raised


def _check(servers: Mapping[str, McpServer]) -> None:
    for name, server in servers.items():
        if not isinstance(server, StdioServer | HttpServer):
            raise TypeError(f"server {name!r} must be a StdioServer or an HttpServer, not {type(server).__name__}")
        if not isinstance(name, str):
            raise TypeError(f"the name of a server must be text, not {name!r}")
        if not name.strip():
            raise ValueError("the name of a server must not be empty")
