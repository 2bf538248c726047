"""What the tests of MCP servers share: real servers over real pipes, and a way to call their tools."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime import mcp

SERVERS = Path(__file__).with_name("servers")


@dataclass
class Connected:
    """Servers in use."""

    host: ptc.Host
    agent: ptc.Agent
    servers: mcp.McpServers

    async def call(self, name: str, signal: ptc.Signal | None = None, /, **arguments: Any) -> ptc.ToolExecutionResult:
        batch = await self.agent.execute([ptc.ToolCall(name=name, arguments=arguments)], signal=signal)
        return batch.results[0].result


async def until(condition: Callable[[], object], within_s: float = 20) -> None:
    """Waits until something is so that nothing tells of."""
    with anyio.fail_after(within_s):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)


class Servers:
    """Makes servers, and connects them."""

    until = staticmethod(until)

    def plain(self, mode: str = "plain", *more: str, **options: Any) -> mcp.StdioServer:
        return mcp.StdioServer(command=sys.executable, args=[str(SERVERS / "plain.py"), mode, *more], **options)

    def script(self, name: str, *more: str, **options: Any) -> mcp.StdioServer:
        return mcp.StdioServer(command=sys.executable, args=[str(SERVERS / name), *more], **options)

    @asynccontextmanager
    async def connected(
        self,
        servers: mcp.McpServer | Mapping[str, mcp.McpServer],
        *,
        elicit: mcp.ElicitHandler | None = None,
        executor: Any = None,
    ) -> AsyncIterator[Connected]:
        named = servers if isinstance(servers, Mapping) else {"s": servers}
        async with ptc.Host() as host, mcp.connect(host.tools, named, elicit=elicit) as states:
            yield Connected(host, host.agent("tests", executor=executor or ptc.NativeExecutor()), states)


@pytest.fixture
def servers() -> Servers:
    return Servers()
