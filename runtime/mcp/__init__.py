"""Tools of MCP servers: `connect` starts or reaches the servers, and registers what they offer.

async with ptc.Host() as host, ptc.mcp.connect(host.tools, ptc.mcp.read_mcp_servers("mcp.json")) as servers:
    ...
"""

from __future__ import annotations

from .connect import McpServers, connect
from .errors import (
    McpConfigError,
    McpConnectionError,
    McpNotInstalledError,
    McpProtocolError,
    McpTimeoutError,
    McpToolError,
)
from .mcp_json import read_mcp_servers
from .servers import HttpServer, McpServer, StdioServer
from .states import (
    ElicitAnswer,
    ElicitHandler,
    ElicitRequest,
    McpProgress,
    ProgressListener,
    ServerState,
    ServerStatus,
)

__all__ = [
    "ElicitAnswer",
    "ElicitHandler",
    "ElicitRequest",
    "HttpServer",
    "McpConfigError",
    "McpConnectionError",
    "McpNotInstalledError",
    "McpProgress",
    "McpProtocolError",
    "McpServer",
    "McpServers",
    "McpTimeoutError",
    "McpToolError",
    "ProgressListener",
    "ServerState",
    "ServerStatus",
    "StdioServer",
    "connect",
    "read_mcp_servers",
]
