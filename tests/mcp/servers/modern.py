"""A server that speaks every era of the protocol, made with the official SDK; over stdio, or HTTP on a given port."""

import os
import sys
from pathlib import Path
from typing import Annotated

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Image, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("modern", instructions="Modern.")


class Colour(BaseModel):
    colour: str


class Point(BaseModel):
    x: int
    y: int


def ask_colour():
    return Elicit("Which colour?", Colour)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def point(x: int) -> Point:
    """A point."""
    return Point(x=x, y=x + 1)


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=b"not really a picture", format="png")


@server.tool()
def paint(answer: Annotated[ElicitationResult[Colour], Resolve(ask_colour)]) -> str:
    """Paints."""
    return f"painted {answer.data.colour}" if isinstance(answer, AcceptedElicitation) else "not painted"


@server.tool()
async def wait(seconds: float, mark: str, ctx: Context) -> str:
    """Waits, and notes in a file when it was interrupted."""
    try:
        await ctx.report_progress(1, 2, "waiting")
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        Path(mark).write_text("cancelled")
        raise
    return "waited"


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool."""
    server.add_tool(lambda: "new", name="grown", description="New.")
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.tool()
def pid() -> str:
    """The process."""
    return str(os.getpid())


@server.tool()
def fail() -> str:
    """Fails."""
    from mcp.server.mcpserver.exceptions import ToolError

    raise ToolError("not today")


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]), json_response="json" in sys.argv)
else:
    server.run()
