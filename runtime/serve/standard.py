"""Serves the one client that has started the process, over standard input and output."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

from mcp.server.stdio import stdio_server

from ...registry.pipeline.outcome import unwrap
from .wire import MAX_LINE_BYTES, LineReader, LineWriter, own_standard_streams

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

__all__ = ["serve_standard_streams"]

_LOGGER: Final = logging.getLogger("ptc.serve")


async def serve_standard_streams(server: Server[Any]) -> None:
    """Serves until the client closes its end; one that does not read its answers any more has gone as well.

    Raises:
        OSError: the answers cannot be written for another reason.
    """
    with own_standard_streams() as (source, sink):
        reader, writer = LineReader(source, _dropped), LineWriter(sink)
        try:
            # The SDK asks for files of anyio, and uses of them what these two have.
            async with stdio_server(cast("Any", reader), cast("Any", writer)) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
        except ExceptionGroup as group:
            error = unwrap(group)
            if not isinstance(error, BrokenPipeError | ConnectionError):
                raise error from None
            _LOGGER.info("the client has gone")


def _dropped() -> None:
    _LOGGER.warning("a message of the client was dropped, because it has more than %d bytes", MAX_LINE_BYTES)
