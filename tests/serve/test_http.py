"""`ptc serve --http`: who has the token comes in, from where a browser may not, and a port that is taken is told."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import ElicitResult, Implementation, TextContent

from .conftest import audit, run_code

pytestmark = pytest.mark.anyio

TOOLS = '''
import ptc


@ptc.tool(concurrency_safe=True)
async def double(x: int) -> int:
    """Double a number."""
    return 2 * x


@ptc.tool(concurrency_safe=True)
async def wait(run: ptc.ToolRunContext) -> str:
    """Wait until told otherwise."""
    print("waiting", flush=True)
    print("told:", await run.signal.wait(), flush=True)
    return "ended"
'''
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "1"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream"}


@dataclass
class Served:
    """A server that runs.

    Attributes:
        url: where it is.
        token: what opens it.
        process: the process.
    """

    url: str
    token: str
    process: subprocess.Popen[str]

    def post(self, message: Any = HELLO, **headers: str) -> httpx2.Response:
        given = {"authorization": f"Bearer {self.token}", **ACCEPT, **headers}
        raw = {name: value.encode("latin-1") for name, value in given.items() if value}
        return httpx2.post(self.url, json=message, headers=raw)

    @asynccontextmanager
    async def client(self, era: str, **options: Any) -> AsyncIterator[Client]:
        async with (
            create_mcp_http_client(headers={"Authorization": f"Bearer {self.token}"}) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=era, **options) as client,
        ):
            yield client

    def said(self, pattern: str) -> re.Match[str]:
        """Reads what the server says until a line fits."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.search(pattern, line)
            if found:
                return found
        raise AssertionError(f"the server never said {pattern}")


@contextmanager
def served(tmp_path: Path, config: str = "", *options: str, **environment: str) -> Iterator[Served]:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "ptc.toml").write_text('[tools]\nmodules = ["tools.py"]\n' + config)
    with subprocess.Popen(
        [sys.executable, "-m", "ptc.runtime.cli", "serve", *(options or ("--http", "0"))],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, cwd=tmp_path, env=os.environ | environment,
    ) as process:  # fmt: skip
        try:
            server = Served("", "", process)
            server.url = server.said(r"serving on (http://\S+)")[1]
            server.token = (
                environment.get("TOKEN")
                or environment.get("PTC_SERVE_TOKEN")
                or server.said(r"Authorization: Bearer (\S+)")[1]
            )
            yield server
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
            assert process.stdout is not None
            last = process.stdout.read()
            assert "Traceback" not in last
            assert "Cancel" not in last  # nothing had to be broken off
        finally:
            process.kill()


@pytest.fixture
def anyio_backend() -> str:
    """The server is a process of its own; one event loop for its clients will do."""
    return "asyncio"


async def test_the_official_client_comes_in_with_the_token(tmp_path: Path, era: str) -> None:
    told: list[str | None] = []

    async def progress(_number: float, _total: float | None, message: str | None) -> None:
        told.append(message)

    with served(tmp_path) as server:
        async with server.client(era) as client:
            tools = (await client.list_tools()).tools
            result = await run_code(client, "return await tools.double(x=3)", progress_callback=progress)
    assert [tool.name for tool in tools] == ["run_code"]
    assert result.content == [TextContent(text="6")]
    assert told == ["double: called", "double: done"]


async def test_the_user_is_asked_over_http_as_well(tmp_path: Path, era: str) -> None:
    async def user(_context: Any, params: Any) -> ElicitResult:
        assert "Allow the call of double?" in params.message
        return ElicitResult(action="accept", content={"approve": True})

    with served(tmp_path, '[[rules]]\ntools = "double"\ndecision = "ask"\n') as server:
        async with server.client(era, elicitation_callback=user) as client:
            result = await run_code(client, "return await tools.double(x=3)")
    assert result.content == [TextContent(text="6")]


async def test_a_client_that_gives_up_stops_its_program(tmp_path: Path, era: str) -> None:
    with served(tmp_path) as server:
        async with server.client(era) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_code, client, "await tools.wait()")
                await anyio.to_thread.run_sync(server.said, "waiting")
                tasks.cancel_scope.cancel()
            with anyio.fail_after(20):
                await anyio.to_thread.run_sync(server.said, "told: the client has given the call up")


async def test_clients_have_agents_of_their_own(tmp_path: Path, era: str) -> None:
    with served(tmp_path) as server:
        for name in ("one", "two"):
            async with server.client(era, client_info=Implementation(name=name, version="1")) as client:
                await run_code(client, "return 1")
        listed = audit("list", "--json", "--log", tmp_path / "ptc.db")
    assert '"one"' in listed
    assert '"two"' in listed


async def test_a_token_of_the_configuration_is_not_shown(tmp_path: Path) -> None:
    secret = "s3cret-" * 5
    with served(tmp_path, '[serve]\ntransport = "http"\nport = 0\ntoken = "${TOKEN}"\n', TOKEN=secret) as server:
        assert server.post().status_code == 200
        assert server.post(authorization="Bearer other").status_code == 401
        server.process.send_signal(signal.SIGTERM)
        assert server.process.stdout is not None
        assert secret not in server.process.stdout.read()


async def test_the_token_may_be_in_the_environment(tmp_path: Path) -> None:
    with served(tmp_path, PTC_SERVE_TOKEN="from-the-environment") as server:
        assert server.post().status_code == 200
        assert server.post(authorization="Bearer x").status_code == 401


@pytest.mark.parametrize("token", ["", " ", "two words", "ü"])
def test_a_token_that_is_none_is_refused(tmp_path: Path, token: str) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    done = subprocess.run(
        [sys.executable, "-m", "ptc.runtime.cli", "serve", "--tools", "tools.py", "--http", "0"],
        capture_output=True, text=True, cwd=tmp_path, timeout=60, env=os.environ | {"PTC_SERVE_TOKEN": token},
    )  # fmt: skip
    assert done.returncode == 2
    assert "the token must be of letters" in done.stderr


async def test_sessions_that_are_open_do_not_keep_the_server_from_its_end(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        async with server.client("legacy") as client:
            await run_code(client, "return 1")
            before = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert await anyio.to_thread.run_sync(server.process.wait, 20) == 0
            assert time.monotonic() - before < 15


async def test_who_has_no_token_is_told_so_and_learns_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        for wrong in ("", "Bearer", f"Basic {server.token}", f"Bearer {server.token}x", "Bearer \xe9"):
            answer = server.post(authorization=wrong)
            assert answer.status_code == 401, wrong
            assert "run_code" not in answer.text
        assert server.post(authorization=f"bearer {server.token}").status_code == 200


async def test_pages_from_elsewhere_do_not_come_in_even_with_the_token(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        port = server.url.split(":")[2].split("/")[0]
        assert server.post(origin="https://evil.example").status_code == 403
        assert server.post(host=f"evil.example:{port}").status_code == 421
        assert server.post(host=f"127.0.0.1.evil.example:{port}").status_code == 421
        assert server.post(host=f"localhost:{port}", origin=f"http://localhost:{port}").status_code == 200


async def test_garbage_over_http_is_refused_and_the_server_goes_on(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        headers = ACCEPT | {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
        for body in (b"", b"garbage", b"[]", b"\xff", b"[" * 100_000, b"{" + b" " * (5 << 20) + b"}"):
            assert 400 <= httpx2.post(server.url, content=body, headers=headers).status_code < 500
            modern = headers | {"mcp-protocol-version": "2026-07-28"}
            assert 400 <= httpx2.post(server.url, content=body, headers=modern).status_code < 500
        assert httpx2.get(server.url.replace("/mcp", "/other"), headers=headers).status_code == 404
        assert server.post().status_code == 200


def test_a_port_that_is_taken_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "ptc.runtime.cli", "serve", "--tools", "tools.py", "--http", str(port)],
            capture_output=True, text=True, cwd=tmp_path, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    told = "Address already in use; end what listens there, or choose another port (0 takes any that is free)"
    assert done.stderr == f"ptc: 127.0.0.1:{port} cannot be listened on: {told}\n"


async def test_an_address_of_the_network_is_warned_of(tmp_path: Path) -> None:
    with served(tmp_path, "", "--http", "0.0.0.0:0") as server:
        server.said("can be reached from other machines")
        server.url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert server.post(authorization="").status_code == 401
        assert server.post(host="some.name:80").status_code == 200
