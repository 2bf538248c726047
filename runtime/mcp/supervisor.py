"""Keeps one server connected: starts it, follows its list of tools, and connects again when it is gone.

Attempts follow one another with waits that double. After some of them in a row the server counts as failed, and is
left alone until one of its tools is called. It needs the SDK to be imported.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

import anyio
from mcp import MCPError
from pydantic import ValidationError

from ...registry import JsonObject, ScopedTools, ToolRunContext, thaw
from .connection import Connection, NotSentError, open_connection
from .content import CallAnswer, answer_of, error_text
from .errors import McpConnectionError, McpTimeoutError, McpToolError
from .http import open_http
from .questions import Questions, RunningCall
from .servers import McpServer, StdioServer
from .shelf import Shelf
from .states import ElicitHandler, McpProgress, ServerState, ServerStatus
from .stdio import open_stdio
from .transports import Loss

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp_types import CallToolResult, Tool

__all__ = ["Supervisor"]

FIRST_WAIT_S: Final = 0.25
LONGEST_WAIT_S: Final = 30.0
MAX_ATTEMPTS: Final = 8
"""How many attempts in a row may fail; the waits between them take about a minute in all."""

STEADY_S: Final = 10.0
"""A connection that lasted so long was a good one, and what comes after it is a first attempt again."""

RELIST_PAUSE_S: Final = 0.2
"""How long a server that tells of changes without end waits until its tools are listed again."""

_MAX_SENDS: Final = 3
_MAX_INSTRUCTIONS_CHARS: Final = 20_000
_MAX_PROGRESS_CHARS: Final = 1_000

_LOGGER = logging.getLogger("ptc.runtime")

TellProgress = Callable[[McpProgress], None]


class Supervisor:
    """Keeps one server connected, and calls its tools.

    Args:
        name: the server's name.
        server: where it is.
        tools: where its tools are registered.
        elicit: puts its questions to the user.
        tell_progress: told of progress; `None` while nobody listens.

    Attributes:
        tried: set once the first attempt is over.
        shelf: its tools as they are registered.
    """

    def __init__(
        self,
        name: str,
        server: McpServer,
        tools: ScopedTools,
        elicit: ElicitHandler | None,
        tell_progress: Callable[[], TellProgress | None],
    ) -> None:
        self.tried = anyio.Event()
        prefix = re.sub(r"\W", "_", name, flags=re.ASCII) + "_" if server.prefix is None else server.prefix
        self.shelf = Shelf(name, prefix, tools, self._call)
        self._name = name
        self._server = server
        self._questions = Questions(name, elicit)
        self._tell_progress = tell_progress
        self._connection: Connection | None = None
        self._status: ServerStatus = "reconnecting"
        self._problem: str | None = None
        self._version: str | None = None
        self._instructions: str | None = None
        self._news = anyio.Event()
        self._wanted = anyio.Event()
        self._handshake = False
        self._closed = False

    @property
    def state(self) -> ServerState:
        """The server as it stands now."""
        return ServerState(
            name=self._name,
            state=self._status,
            tools=self.shelf.names,
            problem=self._problem if self._problem is not None else self.shelf.problem,
            problems=dict(self.shelf.problems),
            instructions=self._instructions,
            version=self._version,
        )

    async def wait_for(self, status: ServerStatus) -> ServerState:
        """Waits until the server is in a state."""
        while self._status != status:
            await self._news.wait()
        return self.state

    def close(self) -> None:
        """Takes the tools back, and ends the calls that wait for the server."""
        self._closed = True
        self.shelf.clear()
        self._become("failed", "it was disconnected")

    def _become(self, status: ServerStatus, problem: str | None) -> None:
        self._status = status
        self._problem = problem
        self._news.set()
        self._news = anyio.Event()

    # ------------------------------------------------------------------ staying connected

    async def run(self) -> None:
        """Keeps the server connected until it is cancelled."""
        failures = 0
        while True:
            began = anyio.current_time()
            reason, may_help = await self._connect_once()
            steady = self._connection is not None and anyio.current_time() - began > STEADY_S
            self._connection = None
            failures = 1 if steady else failures + 1
            failed = not may_help or failures >= MAX_ATTEMPTS
            _LOGGER.warning("MCP server %r is not connected: %s", self._name, reason)
            self._become("failed" if failed else "reconnecting", reason)
            self.tried.set()
            if failed:
                await self._wanted.wait()
                failures = MAX_ATTEMPTS - 1  # one attempt for whoever asked; not another row of them
                self._become("reconnecting", reason)
            else:
                await anyio.sleep(min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (failures - 1)) * random.uniform(0.8, 1.2))  # noqa: S311
            self._wanted = anyio.Event()

    async def _connect_once(self) -> tuple[str, bool]:
        """Connects, and returns when the connection is over: why, and whether another attempt may help."""
        loss = Loss()
        with anyio.CancelScope(deadline=anyio.current_time() + self._server.connect_ms / 1000) as scope:
            try:
                async with (
                    self._transport(loss) as streams,
                    open_connection(
                        self._name, streams, loss, self._questions, handshake=self._handshake
                    ) as connection,
                ):
                    await self.shelf.update(await connection.list_tools())
                    scope.deadline = float("inf")
                    await self._stay(connection, loss)
            except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
                return f"it cannot be started: {error}", False
            except Exception as error:  # noqa: BLE001 - whatever a server brings about must not end the others
                if self._connection is None:
                    self._handshake = not self._handshake  # perhaps the other way to begin is the one that it knows
                return loss.describe(_reason(error)), True
        if scope.cancelled_caught:
            self._handshake = not self._handshake
            return loss.describe(f"it was not ready within {self._server.connect_ms:g} ms"), True
        return loss.describe("the connection was lost"), True

    def _transport(self, loss: Loss) -> AbstractAsyncContextManager[TransportStreams]:
        if isinstance(self._server, StdioServer):
            return open_stdio(self._name, self._server, loss)
        return open_http(self._name, self._server, loss)

    async def _stay(self, connection: Connection, loss: Loss) -> None:
        session = connection.session
        self._version = session.protocol_version
        self._instructions = (session.instructions or "")[:_MAX_INSTRUCTIONS_CHARS] or None
        self._connection = connection
        self._handshake = not connection.modern  # what worked is tried first when it must be done again
        self._become("connected", None)
        self.tried.set()
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow, connection)
            await loss.wait()
            self._become("reconnecting", loss.describe("the connection was lost"))  # while the transport is closed
            group.cancel_scope.cancel()

    async def _follow(self, connection: Connection) -> None:
        """Lists the tools again whenever the server says that they have changed."""
        while True:
            await connection.changed.wait()
            connection.changed = anyio.Event()
            try:
                with anyio.fail_after(self._server.connect_ms / 1000):
                    listing = await connection.list_tools()
            except (MCPError, ValidationError, TimeoutError) as error:
                if connection.loss.told:
                    return
                self._become("connected", f"its tools could not be listed again: {_reason(error)}")
                _LOGGER.warning("MCP server %r: %s", self._name, self._problem)
            else:
                await self.shelf.update(listing)
                self._become("connected", None)
            await anyio.sleep(RELIST_PAUSE_S)

    # ------------------------------------------------------------------ calls

    async def _call(self, tool: Tool, arguments: JsonObject, run: ToolRunContext) -> CallAnswer:
        """Calls a tool; what ends the call ends the server's work on it as well.

        Raises:
            McpToolError: the server says that it failed.
            McpProtocolError: its answer is of no known shape.
            McpConnectionError: it is not there, or was lost.
            McpTimeoutError: it took too long.
            AbortError: the call was cancelled.
        """
        hints = tool.annotations
        read_only = hints is not None and hints.read_only_hint is True and hints.destructive_hint is not True
        timeout_ms = self._server.timeout_ms
        async with run.signal.cancel_scope():
            scope = anyio.CancelScope(deadline=anyio.current_time() + timeout_ms / 1000)
            running = RunningCall(run.exec, scope, read_only=read_only)
            with scope:
                self._questions.running[running] = None
                try:
                    result = await self._send(tool.name, arguments, running)
                finally:
                    del self._questions.running[running]
                    running.over.set()
                if result.is_error:
                    raise McpToolError(error_text(result))
                return answer_of(result)
            self._look_after()
            raise McpTimeoutError(
                timeout_ms, running.consequence, effect_unknown=running.sent and not running.read_only
            )

    def _look_after(self) -> None:
        """Asks, when a call got no answer, whether anybody is there at all."""
        connection = self._connection
        if connection is not None and (reason := connection.loss.suspect()) is not None:
            connection.loss.tell(reason)

    async def _send(self, tool: str, arguments: JsonObject, running: RunningCall) -> CallToolResult:
        plain = thaw(arguments)
        assert isinstance(plain, dict)
        for _ in range(_MAX_SENDS):
            connection = await self._live(running)
            running.sent = True
            try:
                return await connection.call(tool, plain, running, self._progress(running))
            except NotSentError:
                running.sent = False
                connection.loss.tell("it cannot be reached")
        raise self._unreachable(running)

    async def _live(self, running: RunningCall) -> Connection:
        """Waits until the server is connected; a server that has failed gets one attempt."""
        asked = False
        while True:
            connection = self._connection
            if connection is not None and not connection.loss.told:
                return connection
            if self._closed or (self._status == "failed" and asked):
                raise self._unreachable(running)
            if self._status == "failed":
                asked = True
                self._wanted.set()
            await self._news.wait()

    def _unreachable(self, running: RunningCall) -> McpConnectionError:
        return McpConnectionError(
            f'server "{self._name}" is not connected: {running.consequence}', effect_unknown=running.sent
        )

    def _progress(self, running: RunningCall) -> Callable[[float, float | None, str | None], None] | None:
        tell = self._tell_progress()
        if tell is None:
            return None
        reached = float("-inf")

        def on_progress(progress: float, total: float | None, message: str | None) -> None:
            nonlocal reached
            # It must grow and end with the call, and what the server tells at once may come here in any order.
            if progress <= reached or running.over.is_set():
                return
            reached = progress
            shown = None if message is None else message[:_MAX_PROGRESS_CHARS]
            tell(McpProgress(server=self._name, exec=running.execution, progress=progress, total=total, message=shown))

        return on_progress


def _reason(error: BaseException) -> str:
    """Says what happened in the words of the first error within groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False)[0]
        return f"it answered with something of no known shape: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error) or type(error).__name__
