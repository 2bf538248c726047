"""One live session with a server: which revision is spoken, what it offers, and calls. It needs the SDK to be imported.

Both eras of the protocol are spoken: the handshake of `initialize`, and since 2026 `server/discover`, where a server
asks for more within the answer to a call, and tells of changes to whoever listens.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Final, NoReturn

import anyio
import mcp_types as types
from mcp import ClientSession, MCPError
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from .errors import McpConnectionError, McpProtocolError, McpToolError
from .http import NOT_SENT, WENT_OUT
from .limits import MAX_PAGES, MAX_ROUNDS, MAX_TOOLS
from .pacing import PacedStream
from .sifting import SiftingDispatcher, note
from .transports import Loss

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from ...registry import JsonObject
    from .questions import Questions, RunningCall

__all__ = ["Connection", "Listing", "NotSentError", "open_connection"]

_Answer: Final = TypeAdapter[types.CallToolResult | types.InputRequiredResult](
    types.CallToolResult | types.InputRequiredResult
)
_WITHOUT_OUTPUT_SCHEMAS: Final = ("2024-11-05", "2025-03-26")
_PAUSE_S: Final = 0.1
"""How long to wait before a round in which the server asked nothing."""

_RELISTEN_S: Final = 0.5
_LONGEST_RELISTEN_S: Final = 30.0

_LOGGER = logging.getLogger("ptc.runtime")

Progress = Callable[[float, float | None, str | None], None]


class NotSentError(Exception):
    """The call did not reach the server, which can be asked again once it is there."""


@dataclass(slots=True)
class Listing:
    """The tools of a server, as it lists them.

    Attributes:
        tools: those that the protocol allows.
        problems: the names of others, and what is wrong with them.
        problem: what is wrong with the list itself.
    """

    tools: list[types.Tool] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    problem: str | None = None


@asynccontextmanager
async def open_connection(
    name: str, streams: TransportStreams, loss: Loss, questions: Questions, *, handshake: bool
) -> AsyncIterator[Connection]:
    """Starts a session for the time of the block.

    Args:
        name: the server's name.
        streams: what a transport gives.
        loss: knows whether the connection is lost.
        questions: answers what the server asks.
        handshake: whether to begin with the handshake, and not to ask first which revisions the server knows.

    Raises:
        MCPError: the server refuses.
        ValidationError: its answer is of no known shape.
        RuntimeError: it speaks no revision that we do.
    """
    read, write = streams
    dispatcher = SiftingDispatcher(PacedStream(read), write)
    connection = Connection(name, dispatcher, loss, questions)
    async with connection.session:
        await _negotiate(connection.session, handshake=handshake)
        async with anyio.create_task_group() as group:
            if connection.must_listen:
                group.start_soon(connection.listen)
            yield connection
            group.cancel_scope.cancel()


async def _negotiate(session: ClientSession, *, handshake: bool) -> None:
    if not handshake:
        try:
            await session.discover()
        except MCPError as error:
            supported = error.data.get("supported") if isinstance(error.data, dict) else None
            if error.code == types.UNSUPPORTED_PROTOCOL_VERSION and not _speaks_handshakes(supported):
                raise  # it speaks later revisions only, and none that we do
            _LOGGER.debug("an MCP server does not know server/discover: %s", error)
        except (ValidationError, RuntimeError) as error:
            _LOGGER.debug("an MCP server answered server/discover with something else: %r", error)
        else:
            return
    await session.initialize()


def _speaks_handshakes(supported: object) -> bool:
    """Whether a list of revisions has one with a handshake; so it is assumed where there is no list."""
    return not isinstance(supported, list) or any(each in HANDSHAKE_PROTOCOL_VERSIONS for each in supported)


class Connection:
    """A session in use.

    Attributes:
        name: the server's name.
        loss: knows whether the connection is lost.
        session: the SDK's session.
        changed: set when the server says that its tools have changed.
    """

    def __init__(self, name: str, dispatcher: SiftingDispatcher, loss: Loss, questions: Questions) -> None:
        self.name = name
        self.loss = loss
        self.changed = anyio.Event()
        self._dispatcher = dispatcher
        self._questions = questions
        self.session = ClientSession(
            dispatcher=dispatcher,
            elicitation_callback=self._asked if questions.answerable else None,
            message_handler=self._told,
            client_info=types.Implementation(name="ptc", version=version_of("ptc-runtime")),
        )
        dispatcher.session = self.session

    @property
    def modern(self) -> bool:
        """Whether the era without handshake is spoken."""
        return self.session.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def must_listen(self) -> bool:
        """Whether the server tells of changes only to whoever listens."""
        tools = self._capability
        return self.modern and tools is not None and bool(tools.list_changed)

    @property
    def _capability(self) -> types.ToolsCapability | None:
        capabilities = self.session.server_capabilities
        return None if capabilities is None else capabilities.tools

    async def list_tools(self) -> Listing:
        """Lists the tools, page by page; what the protocol does not allow is named in the listing's problems.

        Raises:
            MCPError: the server refuses, or is gone.
            ValidationError: its answer is of no known shape.
        """
        listing = Listing()
        if self._capability is None:
            listing.problem = "it offers no tools"
            return listing
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            self._dispatcher.rejected = listing.problems
            params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
            page = await self.session.list_tools(params=params)
            kept = {tool.name for tool in page.tools}
            for name in self._dispatcher.listed:
                if name not in kept:
                    note(listing.problems, name, "its x-mcp-header marks are not valid")
            listing.tools += page.tools
            if len(listing.tools) > MAX_TOOLS:
                del listing.tools[MAX_TOOLS:]
                listing.problem = f"it lists more than {MAX_TOOLS:,} tools; the others were left out"
                return listing
            if page.next_cursor is None:
                break
            if page.next_cursor == cursor:
                listing.problem = "its list of tools leads back to the same page; the list may not be whole"
                break
            cursor = page.next_cursor
        else:
            listing.problem = f"its list of tools has more than {MAX_PAGES:,} pages; the others were left out"
        if self.session.protocol_version in _WITHOUT_OUTPUT_SCHEMAS:
            listing.tools = [tool.model_copy(update={"output_schema": None}) for tool in listing.tools]
        return listing

    async def call(
        self, tool: str, arguments: JsonObject, running: RunningCall, tell_progress: Progress | None
    ) -> types.CallToolResult:
        """Calls a tool, and answers what the server asks meanwhile.

        Args:
            tool: the server's own name of it.
            arguments: plain JSON.
            running: the call.
            tell_progress: told how far the server is.

        Raises:
            NotSentError: the call did not reach the server.
            McpConnectionError: the connection was lost meanwhile.
            McpToolError: the server answered with an error of the protocol.
            McpProtocolError: its answer is of no known shape.
        """

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            assert tell_progress is not None
            tell_progress(progress, total, message)

        params = types.CallToolRequestParams(name=tool, arguments=arguments)
        relisted = False
        for _ in range(MAX_ROUNDS + 1):
            try:
                result = await self.session.send_request(
                    types.CallToolRequest(params=params), _Answer,
                    progress_callback=None if tell_progress is None else on_progress,
                )  # fmt: skip
            except MCPError as error:
                if error.code == types.HEADER_MISMATCH and self.modern and not relisted:
                    # The schema that we know is not the server's any more, so it was not run.
                    relisted = True
                    self.changed.set()
                    await self.list_tools()
                    continue
                self._raise(error, running)
            except ValidationError as error:
                raise McpProtocolError(_shape(self.name, error)) from error
            if isinstance(result, types.CallToolResult):
                return result
            params = params.model_copy(
                update={
                    "input_responses": await self._answers(result.input_requests or {}, running),
                    "request_state": result.request_state,
                }
            )
        raise McpProtocolError(f'server "{self.name}" asked for something else more than {MAX_ROUNDS} times')

    def _raise(self, error: MCPError, running: RunningCall) -> NoReturn:
        if error.code == NOT_SENT:
            raise NotSentError from error
        if error.code == types.CONNECTION_CLOSED and error.message == "Connection closed":
            self.loss.tell("the connection was closed")
        cut = error.code == types.CONNECTION_CLOSED and error.message.startswith("SSE stream")
        if self.loss.told or error.code == WENT_OUT or cut:
            raise McpConnectionError(
                f'the connection to server "{self.name}" was lost before it answered: {running.consequence}',
                effect_unknown=not running.read_only,
            ) from error
        if error.code == types.PARSE_ERROR:
            raise McpProtocolError(f'server "{self.name}" answered with something that is no message') from error
        raise McpToolError(error.message or f'server "{self.name}" refused the call, error {error.code}') from error

    async def _answers(
        self, requests: Mapping[str, types.InputRequest], running: RunningCall
    ) -> dict[str, types.InputResponse] | None:
        """Answers what the server asks for within the answer to a call."""
        if not requests:
            await anyio.sleep(_PAUSE_S)
            return None
        answers: dict[str, types.InputResponse] = {}
        for key, request in requests.items():
            if not isinstance(request, types.ElicitRequest) or not self._questions.answerable:
                raise McpToolError(f'server "{self.name}" asked for {request.method}, which nobody here can answer')
            answers[key] = await self._questions.ask(request.params, running)
        return answers

    async def _asked(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context  # the SDK passes it by name
        return await self._questions.ask(params)

    async def _told(self, message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.changed.set()

    async def listen(self) -> None:
        """Follows changes as long as the connection is there, with waits that double while the server will not tell."""
        wait = _RELISTEN_S
        while not self.loss.told:
            began = anyio.current_time()
            try:
                async with listen(self.session, tools_list_changed=True) as subscription:
                    if not subscription.honored.tools_list_changed:
                        return
                    async for _ in subscription:
                        self.changed.set()
            except (MCPError, SubscriptionLost) as error:
                if isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND:
                    return
                _LOGGER.info("MCP server %r does not tell of changes at the moment: %s", self.name, error)
            wait = _RELISTEN_S if anyio.current_time() - began > _LONGEST_RELISTEN_S else wait * 2
            await anyio.sleep(min(wait, _LONGEST_RELISTEN_S))
            self.changed.set()  # what changed meanwhile was told to nobody


def _shape(name: str, error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return f'server "{name}" answered with something that is no result of a tool: {where}: {first["msg"]}'
