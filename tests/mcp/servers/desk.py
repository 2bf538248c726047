"""A server of two tools, made with the official SDK."""

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("desk")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def clear() -> str:
    """Clear the desk."""
    return "cleared"


if __name__ == "__main__":
    server.run()
