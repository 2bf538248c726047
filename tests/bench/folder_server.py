"""A small MCP server for files, with two tools as the reference server has them; for machines without Node.js.

python tests/bench/folder_server.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import anyio
from mcp.server import MCPServer
from pydantic import BaseModel, Field

ROOT = Path(sys.argv[1]).resolve()
server = MCPServer("folder")


class Text(BaseModel):
    content: str


def within(path: str) -> anyio.Path:
    found = Path(path).resolve()
    if not found.is_relative_to(ROOT):
        raise ValueError(f"{path!r} is outside of {ROOT.name!r}")
    return anyio.Path(found)


@server.tool()
async def list_directory(path: Annotated[str, Field(description="the folder")]) -> Text:
    """List the files and folders in a folder, one in a line, each behind [FILE] or [DIR]."""
    entries = [entry async for entry in within(path).iterdir()]
    lines = [f"[{'DIR' if await entry.is_dir() else 'FILE'}] {entry.name}" for entry in entries]
    return Text(content="\n".join(sorted(lines)))


@server.tool()
async def read_text_file(path: Annotated[str, Field(description="the file")]) -> Text:
    """Read a whole file as text."""
    return Text(content=await within(path).read_text(encoding="utf-8"))


if __name__ == "__main__":
    server.run("stdio")
