"""Servers over streamable HTTP: both eras, forgotten sessions, servers that are not there, answers too long."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime import mcp

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent / "servers"


class Ports:
    """Starts servers on ports of their own."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[bytes]] = []

    def free(self) -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def start(self, script: str, port: int, *more: str) -> None:
        process = subprocess.Popen(
            [sys.executable, str(HERE / script), str(port), *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._running.append(process)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            assert process.poll() is None
            time.sleep(0.05)
        pytest.fail("the server did not start")

    def stop(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()
        self._running.clear()


@pytest.fixture
def ports() -> Iterator[Ports]:
    made = Ports()
    yield made
    made.stop()


def at(port: int, path: str = "/mcp", **options: Any) -> mcp.HttpServer:
    return mcp.HttpServer(url=f"http://127.0.0.1:{port}{path}", **options)


@pytest.mark.parametrize("form", ["stream", "json"])
async def test_a_server_of_the_new_era(servers: Any, ports: Ports, tmp_path: Path, form: str) -> None:
    async def elicit(_request: mcp.ElicitRequest) -> mcp.ElicitAnswer:
        return mcp.ElicitAnswer(action="accept", content={"colour": "red"})

    port = ports.free()
    ports.start("modern.py", port, form)
    async with servers.connected(at(port), elicit=elicit) as use:
        assert use.servers["s"].version == "2026-07-28"
        assert (await use.call("s_point", x=1)).value == {"x": 1, "y": 2}
        assert (await use.call("s_paint")).value == {"result": "painted red"}
        if form == "json":
            return
        assert (await use.call("s_grow")).value == {"result": "grown"}
        await servers.until(lambda: use.host.tools.get("s_grown") is not None)
        source = ptc.SignalSource()
        mark = tmp_path / "mark"
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: use.call("s_wait", source.signal, seconds=60, mark=str(mark)))
            await anyio.sleep(0.5)
            source.abort()
        await servers.until(lambda: mark.exists())


@pytest.mark.parametrize("mode", ["plain", "lazy"])
async def test_a_session_that_is_forgotten_is_made_anew_and_the_call_repeated(
    servers: Any, ports: Ports, mode: str
) -> None:
    port = ports.free()
    ports.start("handshake_http.py", port, mode)
    async with servers.connected(at(port)) as use:
        assert use.servers["s"].version == "2025-11-25"
        assert (await use.call("s_forget")).value == "done"
        assert (await use.call("s_call")).value == "done"
        assert use.servers["s"].state == "connected"


async def test_a_server_that_goes_away_and_comes_back(servers: Any, ports: Ports) -> None:
    port = ports.free()
    ports.start("handshake_http.py", port)
    async with servers.connected(at(port, timeout_ms=1_000)) as use:
        lost = await use.call("s_exit")
        assert lost.error.message.startswith('the connection to server "s" was lost before it answered: whether the')
        away = await use.call("s_call")
        assert away.error.message == (
            "tool call timed out after 1000ms: the call did not reach the server, so nothing has happened"
        )
        assert use.servers["s"].state == "reconnecting"
        assert use.servers["s"].problem.startswith("it cannot be reached: ")
        ports.stop()
        ports.start("handshake_http.py", port)
        with anyio.fail_after(30):
            await use.servers.wait_for("s")
        assert (await use.call("s_call")).value == "done"


async def test_a_server_that_is_not_there_keeps_nobody_from_working(servers: Any, ports: Ports) -> None:
    async with servers.connected({"away": at(ports.free()), "good": servers.plain()}) as use:
        assert use.servers["away"].state == "reconnecting"
        assert use.servers["away"].problem.startswith("it cannot be reached: ")
        assert (await use.call("good_echo", text="works")).value == "works"


async def test_headers_are_sent_and_a_refusal_is_told(servers: Any, ports: Ports) -> None:
    port = ports.free()
    ports.start("handshake_http.py", port, "requires")
    right, wrong = at(port, headers={"Authorization": "Bearer right"}), at(port)
    async with servers.connected({"right": right, "wrong": wrong}) as use:
        seen = json.loads((await use.call("right_seen")).value)
        assert seen["authorization"] == "Bearer right"
        assert use.servers["wrong"].state == "reconnecting"
        assert use.servers["wrong"].problem == "it answered with HTTP 401"


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("huge", 'server "s" answered with something that is no message'),
        ("squeezed", 'the connection to server "s" was lost before it answered: whether the call has taken effect is'),
        ("cut", 'server "s" answered with something that is no message'),
    ],
)
async def test_an_answer_that_cannot_be_taken_fails_its_call_alone(
    servers: Any, ports: Ports, mode: str, words: str
) -> None:
    port = ports.free()
    ports.start("handshake_http.py", port, mode)
    async with servers.connected(at(port)) as use:
        assert (await use.call("s_call")).error.message.startswith(words)
        assert (await use.call("s_seen")).is_error is False
