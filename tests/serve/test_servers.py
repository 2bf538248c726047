"""`ptc serve` over MCP servers: from the file that clients share, and when servers hang, lie or go."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitResult, TextContent

from .conftest import run_code

pytestmark = pytest.mark.anyio

SHOP = '''
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("shop")


class Size(BaseModel):
    size: int


@server.tool()
async def price(item: str, context: Context) -> float:
    """Look up a price."""
    await context.report_progress(1, 2, f"asking for {item}\\x07")
    return 9.5


def ask(item: str):
    return Elicit(f"Which size of {item}?", Size)


@server.tool()
async def order(item: str, answer: Annotated[Size, Resolve(ask)]) -> str:
    """Order something."""
    return f"{item} of size {answer.size}"


@server.tool()
async def leave() -> str:
    """End the server."""
    import os
    os._exit(3)


server.run()
'''


@pytest.fixture
def anyio_backend() -> str:
    """The server is a process of its own; one event loop for its client will do."""
    return "asyncio"


@pytest.fixture
def shop(tmp_path: Path) -> list[str]:
    (tmp_path / "shop.py").write_text(SHOP)
    return [sys.executable, str(tmp_path / "shop.py")]


def parameters(*options: object) -> StdioServerParameters:
    command = [sys.executable, "-m", "ptc.runtime.cli", "serve", *map(str, options)]
    return StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))


def mcp_json(tmp_path: Path, **servers: list[str]) -> Path:
    file = tmp_path / "mcp.json"
    known = {name: {"command": command, "args": rest} for name, (command, *rest) in servers.items()}
    file.write_text(json.dumps({"mcpServers": known}))
    return file


async def test_the_file_that_clients_share_is_enough(tmp_path: Path, shop: list[str], era: str) -> None:
    told: list[str | None] = []

    async def progress(_number: float, _total: float | None, message: str | None) -> None:
        told.append(message)

    options = ("--mcp-json", mcp_json(tmp_path, shop=shop), "--log", tmp_path / "x.db")
    async with Client(parameters(*options), mode=era) as client:
        description = (await client.list_tools()).tools[0].description
        result = await run_code(client, "return await tools.shop_price(item='tea')", progress_callback=progress)

    assert "shop_price" in (description or "")
    assert isinstance(result.content[0], TextContent)
    assert "9.5" in result.content[0].text
    assert told == ["shop_price: called", "shop_price: 1 of 2: asking for tea\\x07", "shop_price: done"]


async def test_a_server_asks_the_user_through_both(tmp_path: Path, shop: list[str], era: str) -> None:
    async def user(_context: Any, params: Any) -> ElicitResult:
        assert params.message == "The MCP server shop asks: Which size of hat?"
        assert params.requested_schema["properties"]["size"]["type"] == "integer"
        return ElicitResult(action="accept", content={"size": 58})

    options = ("--mcp-json", mcp_json(tmp_path, shop=shop), "--log", tmp_path / "x.db")
    async with Client(parameters(*options), mode=era, elicitation_callback=user) as client:
        result = await run_code(client, "print(await tools.shop_order(item='hat'))")

    assert isinstance(result.content[0], TextContent)
    assert "hat of size 58" in result.content[0].text


async def test_servers_that_do_not_work_do_not_keep_the_others_from_it(tmp_path: Path, shop: list[str]) -> None:
    config = tmp_path / "ptc.toml"
    python = json.dumps(sys.executable)
    config.write_text(
        f'[servers.shop]\ncommand = {python}\nargs = [{json.dumps(shop[1])}]\nprefix = ""\n'
        f'[servers.hangs]\ncommand = {python}\nargs = ["-c", "import time; time.sleep(60)"]\nconnect_ms = 3000\n'
        f'[servers.ends]\ncommand = {python}\nargs = ["-c", "raise SystemExit(\'no licence\')"]\nconnect_ms = 3000\n'
        '[servers.absent]\ncommand = "there-is-no-such-program"\nconnect_ms = 3000\n'
        '[servers.away]\nurl = "http://127.0.0.1:9/mcp"\nconnect_ms = 3000\n'
    )
    with (tmp_path / "said").open("w") as said:
        async with Client(stdio_client(parameters("--config", config), errlog=said), mode="legacy") as client:
            result = await run_code(client, "return str(await tools.price(item='tea'))")

    assert isinstance(result.content[0], TextContent)
    assert "9.5" in result.content[0].text
    told = (tmp_path / "said").read_text()
    for name in ("hangs", "ends", "absent", "away"):
        assert f"ptc: MCP server '{name}' is not connected: " in told
    assert "Traceback" not in told


async def test_a_server_that_goes_in_the_middle_of_a_call_is_an_error_of_that_call(
    tmp_path: Path, shop: list[str]
) -> None:
    options = ("--mcp-json", mcp_json(tmp_path, shop=shop), "--log", tmp_path / "x.db")
    code = (
        "try:\n    await tools.shop_leave()\nexcept ToolCallError as error:\n    print(error)\n"
        "return str(await tools.shop_price(item='tea'))"
    )
    async with Client(parameters(*options), mode="legacy") as client:
        result = await run_code(client, code)

    assert isinstance(result.content[0], TextContent)
    assert not result.is_error, result.content[0].text
    assert "shop" in result.content[0].text.splitlines()[0]
    assert "9.5" in result.content[0].text


def test_a_server_may_be_ended_while_it_still_connects(tmp_path: Path) -> None:
    file = mcp_json(tmp_path, hangs=[sys.executable, "-c", "import time; time.sleep(60)"])
    with subprocess.Popen(
        [sys.executable, "-m", "ptc.runtime.cli", "serve", "--mcp-json", str(file), "--log", str(tmp_path / "x.db")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 0  # the client does not wait for the servers
            before = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(25) == 0
            assert time.monotonic() - before < 25
        finally:
            process.kill()
