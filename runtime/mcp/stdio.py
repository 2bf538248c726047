"""The pipes to a server that runs as a process: one JSON-RPC message a line, each way.

It differs from the SDK's own transport in what it endures. Lines have a longest length, standard error is kept for
whoever asks why a server does not start, an answer that is no JSON-RPC fails its call at once, and a server that asks
without end is cut off. On Windows the processes need what only the SDK's transport has, so that one is used there.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel

from .limits import MAX_JUNK_BYTES, MAX_MESSAGE_BYTES, MAX_UNANSWERED, STDERR_TAIL_BYTES
from .servers import StdioServer
from .transports import Loss

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

__all__ = ["open_stdio"]

_CHUNK_BYTES: Final = 64 * 1024
_FLUSH_S: Final = 0.5
"""How long what was written last may take to get into the pipe before it is closed."""
_EXIT_S: Final = 2.0
"""How long a server may take to end after its standard input was closed, and again after SIGTERM."""
_POLL_S: Final = 0.01
_SHOWN_JUNK: Final = 5

_ID: Final = rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(?P<id>[0-9]{1,15}|"[A-Za-z0-9-]{1,64}")\s*'
_HEAD: Final = re.compile(rb"\s*\{\s*" + _ID + rb',\s*"(result|error)"\s*:')
_TAIL: Final = re.compile(_ID + rb"\}\s*$")
_TAIL_BYTES: Final = 200
"""Where an answer that cannot be read has its id: servers write it first or last."""

_LOGGER = logging.getLogger("ptc.runtime")


def open_stdio(name: str, server: StdioServer, loss: Loss) -> AbstractAsyncContextManager[TransportStreams]:
    """Starts the server for the time of the block, and gives the streams of its messages.

    Args:
        name: the server's name, for the log.
        server: what to start.
        loss: told when the server is gone, and why.

    Raises:
        OSError: the process cannot be started.
    """
    if sys.platform == "win32":
        from mcp.client.stdio import StdioServerParameters, stdio_client

        return stdio_client(
            StdioServerParameters(
                command=server.command,
                args=list(server.args),
                env=dict(server.env or {}),
                cwd=None if server.cwd is None else str(server.cwd),
            )
        )
    return _pipes(name, server, loss)


@asynccontextmanager
async def _pipes(name: str, server: StdioServer, loss: Loss) -> AsyncIterator[TransportStreams]:
    from mcp.client.stdio import get_default_environment

    process = await anyio.open_process(
        [server.command, *server.args],
        env=get_default_environment() | dict(server.env or {}),
        cwd=server.cwd,
        start_new_session=True,  # so that it can be ended with all that it started
    )
    link = _Link(name, process, loss)
    async with anyio.create_task_group() as group:
        group.start_soon(link.read)
        group.start_soon(link.write)
        group.start_soon(link.listen_to_errors)
        try:
            yield link.incoming, link.outgoing
        finally:
            with anyio.CancelScope(shield=True):
                await link.close()
            group.cancel_scope.cancel()


class _Link:
    """The pipes of one process, and the two streams of messages that they become."""

    def __init__(self, name: str, process: Process, loss: Loss) -> None:
        from mcp.shared.message import SessionMessage

        self._name = name
        self._process = process
        self._loss = loss
        loss.suspect = self.suspect
        self._to_session: MemoryObjectSendStream[SessionMessage | Exception]
        self.incoming: MemoryObjectReceiveStream[SessionMessage | Exception]
        self._to_session, self.incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.outgoing: MemoryObjectSendStream[SessionMessage]
        self._from_session: MemoryObjectReceiveStream[SessionMessage]
        self.outgoing, self._from_session = anyio.create_memory_object_stream[SessionMessage](0)
        self._written = anyio.Event()
        self._closing = False
        self._errors = bytearray()
        self._unanswered = 0
        self._junk_bytes = 0
        self._junk_lines = 0

    def suspect(self) -> str | None:
        """Whether the process has ended though its pipes are open: a child may hold them, and may serve on, or not."""
        if self._process.returncode is None:
            return None
        return f"it ended with exit code {self._process.returncode}, and something that it started holds its pipes"

    async def read(self) -> None:
        """Takes lines apart until the server is gone; one at a time, so that a slow reader slows the server down."""
        assert self._process.stdout is not None
        line = bytearray()
        reason: str | None = None
        try:
            while reason is None:
                chunk = await self._process.stdout.receive(_CHUNK_BYTES)
                first, *others = chunk.split(b"\n")
                line += first
                for other in others:
                    reason = reason or await self._take(bytes(line))
                    line = bytearray(other)
                if len(line) > MAX_MESSAGE_BYTES:
                    reason = f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes"
        except anyio.EndOfStream:
            reason = await self._ending()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            reason = "the pipe from it broke"
        if not self._closing:  # else it is we who go, for another reason
            self._loss.tell(reason)
        await self._to_session.aclose()  # after the news, so that calls that end by this know why
        await _drain(self._process.stdout)

    async def _take(self, line: bytes) -> str | None:
        """Passes the message of one line on; returns why the server must be cut off, if it must."""
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCRequest, jsonrpc_message_adapter

        if not line.strip():
            return None
        try:
            message: Any = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            message = _failed_answer(line)
            if message is None:
                return self._junk(line)
        self._junk_bytes = 0
        if isinstance(message, JSONRPCRequest):
            self._unanswered += 1
            if self._unanswered > MAX_UNANSWERED:
                return f"it asked more than {MAX_UNANSWERED} things without reading the answers"
        await self._to_session.send(SessionMessage(message))
        return None

    def _junk(self, line: bytes) -> str | None:
        self._junk_bytes += len(line)
        self._junk_lines += 1
        if self._junk_lines <= _SHOWN_JUNK:
            _LOGGER.warning(
                "MCP server %r printed something else than a message to its standard output; it was ignored: %r",
                self._name, line[:200],
            )  # fmt: skip
        if self._junk_bytes > MAX_JUNK_BYTES:
            return f"it printed more than {MAX_JUNK_BYTES:,} bytes that are no messages to its standard output"
        return None

    async def write(self) -> None:
        """Writes one line for each message of the session."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        assert self._process.stdin is not None
        try:
            async with self._from_session:
                async for item in self._from_session:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._process.stdin.send(text.encode() + b"\n")
                    if isinstance(item.message, (JSONRPCResponse, JSONRPCError)):
                        self._unanswered -= 1
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            # It reads no more. It may still be alive, so the session must be told, or calls would wait for nothing.
            if not self._closing:
                self._loss.tell("it closed its standard input")
            await self._to_session.aclose()
        finally:
            self._written.set()

    async def listen_to_errors(self) -> None:
        """Keeps the end of what the server writes to its standard error."""
        assert self._process.stderr is not None
        try:
            async for chunk in self._process.stderr:
                _LOGGER.debug("MCP server %r writes: %r", self._name, chunk)
                self._errors += chunk
                del self._errors[:-STDERR_TAIL_BYTES]
                self._loss.last_words = self._errors.decode("utf-8", "backslashreplace").strip()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError) as error:
            _LOGGER.debug("the standard error of MCP server %r was closed: %r", self._name, error)

    async def _ending(self) -> str:
        """Says how the server ended; its standard output is closed already."""
        code = await _exit_code(self._process, _FLUSH_S)
        await anyio.sleep(_POLL_S)  # for what it wrote to standard error last
        if code is None:
            return "it closed its standard output"
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"

    async def close(self) -> None:
        """Ends the server: its input is closed, and after a while it is told and then made to end, with its children.

        Every wait has an end, so that this can be done when the task has been cancelled.
        """
        from mcp.os.posix.utilities import terminate_posix_process_tree

        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._closing = True
        self.incoming.close()  # the reader only drains from now on, so that a server stuck in writing can end
        self.outgoing.close()
        with anyio.move_on_after(_FLUSH_S):
            await self._written.wait()
        await _close_pipe(process.stdin)
        ended = await _exit_code(process, _EXIT_S) is not None
        if not (ended and await _group_ends(process.pid, _FLUSH_S)):
            await terminate_posix_process_tree(process, _EXIT_S)
            if await _exit_code(process, _EXIT_S) is None:
                _LOGGER.warning("MCP server %r (process %d) cannot be ended", self._name, process.pid)
        for pipe in (process.stdout, process.stderr):
            await _close_pipe(pipe)
        _close_process_transport(process)
        for stream in (self.incoming, self.outgoing, self._to_session, self._from_session):
            stream.close()
        await anyio.lowlevel.checkpoint()  # the tasks of the pipes notice, and end by themselves


def _failed_answer(line: bytes) -> Any:
    """For an answer that is no JSON-RPC, an error in its place, so that its call need not wait; else `None`."""
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError

    try:
        told: Any = json.loads(line)
    except (ValueError, RecursionError):
        found = _HEAD.match(line) or _TAIL.search(line, max(0, len(line) - _TAIL_BYTES))
        told = {} if found is None else {"id": json.loads(found["id"]), "result": None}
    if not isinstance(told, dict) or not ("result" in told or "error" in told):
        return None
    request_id = told.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, int | str):
        return None
    return JSONRPCError(
        jsonrpc="2.0", id=request_id, error=ErrorData(code=PARSE_ERROR, message="the answer is no JSON-RPC")
    )


async def _drain(stdout: ByteReceiveStream) -> None:
    """Drops what the server still prints, so that it is not stuck in printing, until the pipe is closed."""
    try:
        while True:
            await stdout.receive(_CHUNK_BYTES)
    except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        return


async def _exit_code(process: Process, within_s: float) -> int | None:
    """Waits for the process alone: `Process.wait` may also wait for pipes that its children hold open."""
    with anyio.move_on_after(within_s):
        while process.returncode is None:  # noqa: ASYNC110 - nothing else tells of it
            await anyio.sleep(_POLL_S)
    return process.returncode


async def _group_ends(leader: int, within_s: float) -> bool:
    """Whether what the process has started ends soon by itself, now that the process has ended."""
    with anyio.move_on_after(within_s):
        while True:
            try:
                os.killpg(leader, 0)
            except ProcessLookupError:
                return True
            except PermissionError:
                return False  # something is there that is not ours to ask
            await anyio.sleep(_POLL_S)
    return False


async def _close_pipe(pipe: Any) -> None:
    try:
        await pipe.aclose()
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError) as error:
        _LOGGER.debug("a pipe of an MCP server was closed already: %r", error)


def _close_process_transport(process: Process) -> None:
    """Closes what asyncio keeps of the process: while a grandchild holds a pipe it would stay open, and warn.

    Nothing public gives it, and trio has no such thing.
    """
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    close = getattr(transport, "close", None)
    if callable(close):
        close()
