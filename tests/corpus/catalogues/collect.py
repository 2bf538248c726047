"""Collects the tool catalogues of this folder: starts each MCP server once and asks it for its tools.

    pip install mcp
    python tests/corpus/catalogues/collect.py [--newest] [--work DIR] [NAME ...]

It needs Node for the servers that npm has. Each Python server gets a virtual environment of its own under DIR. The
servers run with no credentials: an address or a token that one insists on is a made-up one, and no tool is called.
The official client of the protocol does the talking, and the answers are written as they come.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio

HERE = Path(__file__).parent
KEPT = ("name", "description", "inputSchema", "outputSchema", "annotations")
SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server: the package, its version, and how it is started.

    `what`, and how its schemas are made, go into the file; `{work}` in `args` and `env` is an empty folder; `beside`
    are packages that it must have with it.
    """

    package: str
    version: str
    licence: str
    what: str
    schemas: str
    registry: Literal["npm", "PyPI"] = "npm"
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


SERVERS = {
    "filesystem": Server(
        package="@modelcontextprotocol/server-filesystem",
        version="2026.8.31",
        licence="MIT",
        what="reads, writes and searches files",
        schemas="zod, with output schemas",
        args=("{work}",),
    ),
    "everything": Server(
        package="@modelcontextprotocol/server-everything",
        version="2026.8.31",
        licence="MIT",
        what="exercises every feature of the protocol",
        schemas="zod",
    ),
    "memory": Server(
        package="@modelcontextprotocol/server-memory",
        version="2026.8.31",
        licence="MIT",
        what="a knowledge graph in a file",
        schemas="zod, with output schemas",
        env={"MEMORY_FILE_PATH": "{work}/memory.json"},
    ),
    "sequential_thinking": Server(
        package="@modelcontextprotocol/server-sequential-thinking",
        version="2026.8.31",
        licence="MIT",
        what="thinking in steps that can be revised",
        schemas="zod, with an output schema",
    ),
    "playwright": Server(
        package="@playwright/mcp",
        version="0.0.83",
        licence="Apache-2.0",
        what="drives a browser",
        schemas="zod",
        args=("--caps=vision,pdf,testing,tracing,network,storage",),
    ),
    "chrome_devtools": Server(
        package="chrome-devtools-mcp",
        version="1.11.0",
        licence="Apache-2.0",
        what="debugs and profiles pages in a browser",
        schemas="zod",
        args=("--no-usage-statistics",),
    ),
    "github": Server(
        package="@modelcontextprotocol/server-github",
        version="2025.4.8",
        licence="MIT",
        what="repositories, issues and pull requests",
        schemas="zod, by an older converter",
        env={"GITHUB_PERSONAL_ACCESS_TOKEN": "none"},
    ),
    "notion": Server(
        package="@notionhq/notion-mcp-server",
        version="2.5.2",
        licence="MIT",
        what="pages, data sources and comments of a workspace",
        schemas="from an OpenAPI description, with $ref and $defs",
        env={"NOTION_TOKEN": "ntn_none"},
    ),
    "kubernetes": Server(
        package="mcp-server-kubernetes",
        version="4.1.7",
        licence="MIT",
        what="looks after a cluster",
        schemas="written by hand",
    ),
    "mongodb": Server(
        package="mongodb-mcp-server",
        version="3.0.4",
        licence="Apache-2.0",
        what="databases and their hosting",
        schemas="zod, with unions of objects",
        env={
            "MDB_MCP_API_CLIENT_ID": "none",
            "MDB_MCP_API_CLIENT_SECRET": "none",
            "MDB_MCP_TELEMETRY": "disabled",
            "DO_NOT_TRACK": "1",
        },
    ),
    "brave_search": Server(
        package="@brave/brave-search-mcp-server",
        version="2.1.4",
        licence="MIT",
        what="searches the web",
        schemas="zod, with large output schemas",
        env={"BRAVE_API_KEY": "none", "BRAVE_MCP_TRANSPORT": "stdio"},
    ),
    "git": Server(
        package="mcp-server-git",
        version="2026.10.19",
        licence="MIT",
        what="reads and changes a git repository",
        schemas="pydantic models",
        registry="PyPI",
    ),
    "time": Server(
        package="mcp-server-time",
        version="2026.10.19",
        licence="MIT",
        what="time zones",
        schemas="written by hand",
        registry="PyPI",
        args=("--local-timezone", "Etc/UTC"),
    ),
    "fetch": Server(
        package="mcp-server-fetch",
        version="2026.10.24",
        licence="MIT",
        what="fetches a page as text",
        schemas="a pydantic model",
        registry="PyPI",
    ),
    "sqlite": Server(
        package="mcp-server-sqlite",
        version="2025.4.25",
        licence="MIT",
        what="queries a database and notes what was found",
        schemas="written by hand",
        registry="PyPI",
        args=("--db-path", "{work}/test.db"),
        beside=("mcp<2",),
    ),
    "cloudwatch": Server(
        package="awslabs.cloudwatch-mcp-server",
        version="0.3.1",
        licence="Apache-2.0",
        what="metrics, alarms and logs",
        schemas="FastMCP and pydantic, with $ref, anyOf and null in arguments and outputs",
        registry="PyPI",
        env={"AWS_REGION": "us-east-1", "FASTMCP_LOG_LEVEL": "ERROR"},
    ),
    "atlassian": Server(
        package="mcp-atlassian",
        version="0.23.1",
        licence="MIT",
        what="issues and wiki pages",
        schemas="FastMCP and pydantic, with anyOf and null",
        registry="PyPI",
        env={
            "JIRA_URL": "https://jira.example.com",
            "JIRA_PERSONAL_TOKEN": "none",
            "CONFLUENCE_URL": "https://wiki.example.com",
            "CONFLUENCE_PERSONAL_TOKEN": "none",
        },
    ),
}


def command(server: Server, version: str, work: Path) -> list[str]:
    """Returns the command that starts a server, once its package is there; a Python one is called as its package."""
    if server.registry == "npm":
        return ["npx", "-y", f"{server.package}{version and '@' + version}"]
    home = work / server.package
    scripts = home / ("Scripts" if sys.platform == "win32" else "bin")
    if not home.exists():
        venv.create(home, with_pip=True)
        wanted = [f"{server.package}{version and '==' + version}", *server.beside]
        subprocess.run([scripts / "python", "-m", "pip", "install", "--quiet", *wanted], check=True)
    return [str(scripts / server.package)]


async def tools_of(server: Server, start: list[str]) -> tuple[str, list[dict[str, Any]]]:
    """Starts a server and returns the version that it tells and its tools."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    with tempfile.TemporaryDirectory() as empty:

        def filled(text: str) -> str:
            return text.replace("{work}", empty)

        parameters = StdioServerParameters(
            command=start[0],
            args=[*start[1:], *map(filled, server.args)],
            env={key: filled(value) for key, value in server.env.items()},
            cwd=empty,
        )
        with anyio.fail_after(SECONDS):
            async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
                greeting = await session.initialize()
                listed = (await session.list_tools()).model_dump(mode="json", by_alias=True, exclude_unset=True)
    if listed.get("nextCursor"):
        raise SystemExit("the list of tools has more pages; read them too")
    tools = [{key: tool[key] for key in KEPT if tool.get(key) is not None} for tool in listed["tools"]]
    told = greeting.model_dump(by_alias=True)["serverInfo"]["version"]
    return told, tools


def collect(name: str, server: Server, *, newest: bool, work: Path) -> None:
    """Writes one catalogue."""
    start = command(server, "" if newest else server.version, work)
    told, tools = anyio.run(tools_of, server, start)
    catalogue = {
        "origin": f"{server.package} ({server.registry}): {server.what}",
        "version": f"newest, tells {told}" if newest else server.version,
        "licence": server.licence,
        "schemas": server.schemas,
        "collected": f"collect.py {name}: tools/list over stdio, no tool called",
        "tools": tools,
    }
    path = HERE / f"{name}.json"
    path.write_text(json.dumps(catalogue, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{name}: {len(tools)} tools, {path.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones; all without any: {', '.join(SERVERS)}")
    parser.add_argument("--newest", action="store_true", help="the newest version instead of the recorded one")
    parser.add_argument("--work", type=Path, help="where virtual environments are kept; a new folder without it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as new:
        for name in options.names or SERVERS:
            collect(name, SERVERS[name], newest=options.newest, work=(options.work or Path(new)).resolve())


if __name__ == "__main__":
    main()
