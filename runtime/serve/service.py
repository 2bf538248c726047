"""What clients ask of a server, answered: which tools there are, calls of them, and news of changes."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ListToolsResult

from ...registry import HarnessError, ToolBatchExecutionError, ToolCall, Wake
from ...sandbox.seam import SandboxUnavailableError
from .asking import ask, can_ask
from .clients import Clients, is_modern
from .content import failed, result_of
from .exchange import Exchange
from .telling import instructions_of
from .watching import Watching

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from mcp.server.context import ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult, PaginatedRequestParams, Tool

    from ..config import Config
    from ..host import Host
    from .clients import Client
    from .executors import Executors
    from .questions import Question

__all__ = ["Service"]

_LOGGER: Final = logging.getLogger("ptc.serve")
_MAX_CALLS: Final = 1_000
"""How many calls may be on their way at once, those whose client is to answer a question included."""

_GRACE_S: Final = 30.0
"""How long a call waits for its client beyond the time that the user has for an answer."""

_QUIET_S: Final = 0.1
"""How long after a change clients are told; a server brings many tools at once."""

_TELL_S: Final = 5.0
"""How long a client may take to hear of a change; one that does not read must not keep the others from it."""

_LAST_ANSWERS_S: Final = 2.0
"""How long the last answers may take that clients still get when the server ends."""

_LAST_ANSWER_WRITTEN_S: Final = 0.05
"""How long an answer may take from here into the pipe; what takes longer is lost when the server ends."""

_GONE: Final = "the client has given the call up"
_NOT_BACK: Final = "the client did not come back with an answer"
_ENDING: Final = "the server is ending"
_FAULT: Final = "the server failed while it executed the call, which was stopped; its log says why"


class _Server(Server[Any]):
    """The SDK's server, which says in each era and on each transport that the list of tools may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class Service:
    """The server as clients see it, apart from how they reach it.

    Args:
        host: has the tools and the log.
        config: what holds for which client.
        executors: makes the executors of clients.
        tasks: where calls run; when it is left they have ended.
        alone: whether there is one client only.

    Attributes:
        server: the SDK's server, for a transport to run.
        ready: to be set when the tools are there; requests that need them wait for it.
    """

    def __init__(self, host: Host, config: Config, executors: Executors, tasks: TaskGroup, *, alone: bool) -> None:
        from importlib.metadata import version

        self.ready = anyio.Event()
        self._config = config
        self._tasks = tasks
        self._clients = Clients(host, config, executors, alone=alone)
        self._exchanges: dict[str, Exchange] = {}
        self._running: set[Exchange] = set()
        self._attending = 0
        self._unattended = anyio.Event()
        self._ending = False
        self._bus = InMemorySubscriptionBus()
        self._listeners = ListenHandler(self._bus)
        self._wake = Wake()
        self._watching = Watching(host, self._exchanges, asks=config.approvals.channel == "elicitation")
        host.on("tools/change", self._wake.change)
        self.elicit = self._watching.elicit
        self.on_progress = self._watching.on_progress
        self.server: Server[Any] = _Server(
            config.serve.name,
            version=version("ptc-runtime"),
            instructions=instructions_of(config),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=self._listeners,
            # Else the SDK would list the tools before each call over HTTP, as if the client had asked for them.
            get_tool_input_schema=lambda _name: None,
        )

    async def _list_tools(
        self, context: ServerRequestContext, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del params
        client = await self._client(context)
        client.told = _tools(client)
        return ListToolsResult(tools=client.told)

    async def _client(self, context: ServerRequestContext) -> Client:
        await self.ready.wait()
        try:
            client = await self._clients.of(context)
        except (SandboxUnavailableError, ValueError) as error:
            _LOGGER.error("programs cannot be run: %s", error)  # noqa: TRY400 - the text says it all
            raise MCPError(INTERNAL_ERROR, "the sandbox cannot be started on this host; its log says why") from None
        if not is_modern(context):
            client.session = context.session
        return client

    async def _call_tool(
        self, context: ServerRequestContext, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        client = await self._client(context)
        exchange = (
            self._start(client, context, params) if params.request_state is None else self._resume(client, params)
        )

        async def report(number: float, message: str) -> None:
            await context.session.report_progress(number, None, message)

        async def put(question: Question) -> None:
            await ask(context, question)

        self._attending += 1
        try:
            answer = await exchange.attend(report, None if is_modern(context) else put)
        except BaseException:
            exchange.stop(_GONE)
            self._exchanges.pop(exchange.call_id, None)
            raise
        finally:
            self._attending -= 1
            self._unattended.set()
        if exchange.done:
            self._exchanges.pop(exchange.call_id, None)
        elif not self._ending:
            self._tasks.start_soon(self._await_client, exchange)
        return answer

    def _start(self, client: Client, context: ServerRequestContext, params: CallToolRequestParams) -> Exchange:
        if self._ending or len(self._exchanges) >= _MAX_CALLS:
            raise MCPError(INTERNAL_ERROR, _ENDING if self._ending else "too many calls are on their way; try later")
        exchange = Exchange(client, params.name, params.arguments or {}, can_ask=can_ask(context))
        self._exchanges[exchange.call_id] = exchange
        client.calls += 1
        self._running.add(exchange)
        self._tasks.start_soon(self._run, client, exchange)
        return exchange

    def _resume(self, client: Client, params: CallToolRequestParams) -> Exchange:
        """Finds the call that a request goes on with.

        Raises:
            MCPError: there is none, or it is another client's, or another call, or is being attended to.
        """
        state = (params.request_state or "").encode("utf-8", "surrogatepass")
        for exchange in self._exchanges.values():
            shown = secrets.compare_digest(exchange.token.encode(), state)
            if not shown or exchange.owner is not client:
                continue
            if exchange.name != params.name or exchange.arguments != (params.arguments or {}):
                raise MCPError(INVALID_PARAMS, "the requestState belongs to another call")
            if exchange.attended:
                raise MCPError(INVALID_PARAMS, "another request waits for this call already")
            exchange.take_answers(params.input_responses or {})
            return exchange
        raise MCPError(INVALID_PARAMS, "the requestState is not known, or no longer; make the call anew")

    async def _run(self, client: Client, exchange: Exchange) -> None:
        """Executes one call to its end."""
        call = ToolCall(name=exchange.name, arguments=exchange.arguments, call_id=exchange.call_id)
        try:
            result = result_of(await client.agent.execute([call], signal=exchange.signal))
        except (HarnessError, ValueError) as error:
            if isinstance(error, ToolBatchExecutionError):
                _LOGGER.exception("a call of client %s was stopped", client.name)
            result = failed(_FAULT if isinstance(error, ToolBatchExecutionError) else f"Error: {error}")
        except Exception:
            _LOGGER.exception("a call of client %s has failed", client.name)
            result = failed(_FAULT)
        finally:
            client.calls -= 1
            self._running.discard(exchange)
        exchange.finish(result)

    async def _await_client(self, exchange: Exchange) -> None:
        """Gives a call up whose client does not come back."""
        if not await exchange.client_is_back(self._config.approvals.timeout_ms / 1000 + _GRACE_S):
            exchange.stop(_NOT_BACK)
            self._exchanges.pop(exchange.call_id, None)

    async def follow_changes(self) -> None:
        """Tells clients when their tools are not any more what they were told; runs until it is cancelled."""
        while True:
            self._wake.look()
            listen = False
            for client in self._clients:
                if not _is_news(client):
                    continue
                client.told = None  # it is told once; when it has asked again, it is told again
                if client.session is None:
                    listen = True
                    continue
                with anyio.move_on_after(_TELL_S):
                    await client.session.send_tool_list_changed()
            if listen:
                await self._bus.publish(ToolsListChanged())
            await self._wake.wait()
            await anyio.sleep(_QUIET_S)

    async def drain(self) -> None:
        """Stops all calls and waits for their end, and closes the agents of clients."""
        self._ending = True
        self._listeners.close()
        running = list(self._running)
        for exchange in running:
            exchange.stop(_ENDING)
        for exchange in self._exchanges.values():
            exchange.forget_client()
        for exchange in running:
            await exchange.finished()
        await self._clients.aclose()

    async def answered(self) -> None:
        """Waits until the clients of all calls have been answered, but not for long: they may not read any more."""
        with anyio.move_on_after(_LAST_ANSWERS_S):
            while self._attending:
                self._unattended = anyio.Event()
                await self._unattended.wait()
            await anyio.sleep(_LAST_ANSWER_WRITTEN_S)


def _tools(client: Client) -> list[Tool]:
    """Returns what a client is offered.

    Raises:
        MCPError: that cannot be told.
    """
    try:
        return client.tools()
    except Exception:
        _LOGGER.exception("client %s cannot be told of its tools", client.name)
        raise MCPError(INTERNAL_ERROR, "the tools cannot be told on this host; its log says why") from None


def _is_news(client: Client) -> bool:
    """Tells whether a client's tools are not any more what it was told; not, when they cannot be told at all."""
    try:
        return client.told is not None and _tools(client) != client.told
    except MCPError:
        return False
