"""What can go wrong with the tools of MCP servers, as additions to the tree in `registry/errors.py`.

    HarnessError
    ├── McpNotInstalledError      MCP_NOT_INSTALLED    the official SDK is not there
    ├── McpConfigError            MCP_CONFIG           a file of servers that cannot be used
    ├── McpToolError              MCP_TOOL_ERROR       the server answered that the call failed
    ├── McpProtocolError          MCP_PROTOCOL         the server answered what no MCP server may answer
    ├── McpConnectionError        MCP_CONNECTION       the server is gone, or was not there
    └── ToolTimeoutError
        └── McpTimeoutError       TOOL_TIMEOUT         the server did not answer in time

The last four are for models and programs: they name the server, and tell nothing of the machine that it runs on.
"""

from __future__ import annotations

from typing import ClassVar

from ...registry import HarnessError, ToolTimeoutError

__all__ = [
    "McpConfigError",
    "McpConnectionError",
    "McpNotInstalledError",
    "McpProtocolError",
    "McpTimeoutError",
    "McpToolError",
]


class McpNotInstalledError(HarnessError):
    """The extra `mcp` is not installed."""

    default_code: ClassVar[str] = "MCP_NOT_INSTALLED"

    def __init__(self) -> None:
        super().__init__("MCP servers need the official SDK, which is not installed: pip install 'ptc-runtime[mcp]'")


class McpConfigError(HarnessError, ValueError):
    """A file of servers cannot be read, or says what makes no sense; the message says where, and what to write."""

    default_code: ClassVar[str] = "MCP_CONFIG"


class McpToolError(HarnessError):
    """The server answered that the call failed; the message is the server's own text."""

    default_code: ClassVar[str] = "MCP_TOOL_ERROR"


class McpProtocolError(HarnessError):
    """The server's answer is not of a shape that the protocol knows."""

    default_code: ClassVar[str] = "MCP_PROTOCOL"


class McpConnectionError(HarnessError):
    """The connection to the server was lost, or there is none.

    Args:
        message: what happened, and what it means for the call.
        effect_unknown: whether the call may have taken effect. `False` says that it never reached the server.
    """

    default_code: ClassVar[str] = "MCP_CONNECTION"

    def __init__(self, message: str, *, effect_unknown: bool) -> None:
        super().__init__(message)
        self.effect_unknown = effect_unknown


class McpTimeoutError(ToolTimeoutError):
    """The server did not answer within the time that it has for one call.

    Args:
        timeout_ms: the time, in milliseconds.
        consequence: what that means for the call.
        effect_unknown: whether the call may have taken effect. `False` says that it never reached the server.
    """

    def __init__(self, timeout_ms: float, consequence: str, *, effect_unknown: bool) -> None:
        super().__init__(timeout_ms)
        self.args = (f"{self.args[0]}: {consequence}",)
        self.effect_unknown = effect_unknown
