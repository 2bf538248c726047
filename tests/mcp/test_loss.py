"""Servers that die, hang, print junk or flood: what happens to calls, and how the server comes back."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime import mcp
from ptc.runtime.mcp import supervisor

pytestmark = pytest.mark.anyio

UNKNOWN = "whether the call has taken effect is unknown; find out before you call again"


async def test_a_server_that_dies_in_a_call_fails_it_and_comes_back(servers: Any) -> None:
    async with servers.connected(servers.plain()) as use:
        first = int((await use.call("s_pid")).value)
        died = await use.call("s_die")
        assert died.error.message == f'the connection to server "s" was lost before it answered: {UNKNOWN}'
        assert (died.error.info.name, died.error.info.code) == ("McpConnectionError", "MCP_CONNECTION")
        again = await use.call("s_pid")  # it waits until the server is there again
        assert int(again.value) != first
        assert use.servers["s"].state == "connected"


async def test_a_call_that_only_reads_may_be_made_again(servers: Any) -> None:
    async with servers.connected(servers.plain()) as use:
        died = await use.call("s_die_reading")
        assert died.error.message.endswith("the tool is said to change nothing, so it may be called again")


async def test_all_calls_in_flight_are_failed(servers: Any) -> None:
    async with servers.connected(servers.plain()) as use:
        failed: list[str] = []

        async def sleep(agent: ptc.Agent) -> None:
            batch = await agent.execute([ptc.ToolCall(name="s_sleep", arguments={"seconds": 60})])
            failed.append(batch.results[0].result.error.message)

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(sleep, use.host.agent(str(number)))
            await anyio.sleep(0.2)
            await use.call("s_die")
        assert len(failed) == 3
        assert all(UNKNOWN in each for each in failed)


async def test_the_state_says_why_and_the_calls_say_no_detail_of_the_machine(servers: Any, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    async with servers.connected(servers.plain("once", str(flag), timeout_ms=500)) as use:
        flag.write_text("down")
        died = await use.call("s_die")
        with anyio.fail_after(10):
            state = await use.servers.wait_for("s", "reconnecting")
        assert "it ended with exit code" in state.problem
        meanwhile = await use.call("s_echo", text="x")
        assert meanwhile.error.message == (
            "tool call timed out after 500ms: the call did not reach the server, so nothing has happened"
        )
        assert state.tools  # they are still there, for when it comes back
        for told in (died.error.message, meanwhile.error.message):
            assert sys.executable not in told
            assert "exit code" not in told
        flag.write_text("up")
        with anyio.fail_after(20):
            await use.servers.wait_for("s", "connected")
        assert (await use.call("s_echo", text="back")).value == "back"


async def test_the_last_words_are_told_to_the_hosts_people(servers: Any) -> None:
    async with servers.connected(servers.plain("exit")) as use:
        problem = use.servers["s"].problem
        assert problem == "it ended with exit code 3; it wrote: Traceback: no such module"


async def test_attempts_end_and_a_call_makes_another(
    servers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(supervisor, "MAX_ATTEMPTS", 3)
    flag = tmp_path / "flag"
    async with servers.connected(servers.plain("once", str(flag))) as use:
        flag.write_text("down")
        await use.call("s_die")
        with anyio.fail_after(20):
            await use.servers.wait_for("s", "failed")
        lost = await use.call("s_echo", text="x")
        assert lost.error.message == (
            'server "s" is not connected: the call did not reach the server, so nothing has happened'
        )
        assert use.servers["s"].state == "failed"
        flag.write_text("up")
        assert (await use.call("s_echo", text="back")).value == "back"


async def test_a_command_that_is_not_there_keeps_nobody_from_working(servers: Any) -> None:
    missing = mcp.StdioServer(command="no-such-command-anywhere")
    async with servers.connected({"missing": missing, "good": servers.plain()}) as use:
        state = use.servers["missing"]
        assert state.state == "failed"
        assert state.problem.startswith("it cannot be started: ")
        assert "no-such-command-anywhere" in state.problem
        assert state.tools == ()
        assert (await use.call("good_echo", text="works")).value == "works"


async def test_a_server_that_hangs_at_its_start_is_ended(servers: Any) -> None:
    async with servers.connected({"hangs": servers.plain("hang", connect_ms=300), "good": servers.plain()}) as use:
        state = use.servers["hangs"]
        assert state.state == "reconnecting"
        assert state.problem == "it was not ready within 300 ms"
        assert (await use.call("good_echo", text="works")).value == "works"


async def test_junk_on_standard_output_is_passed_over(servers: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with servers.connected(servers.plain("junk")) as use:
        assert (await use.call("s_echo", text="works")).value == "works"
    assert "Server is starting..." in caplog.text


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("junk-flood", "it printed more than 1,048,576 bytes that are no messages to its standard output"),
        ("long-line", "it sent a message of more than 33,554,432 bytes"),
        ("ask-flood", "it asked more than 256 things without reading the answers"),
    ],
)
async def test_a_flood_is_cut_off(servers: Any, mode: str, words: str) -> None:
    with anyio.fail_after(60):
        async with servers.connected({"flood": servers.plain(mode), "good": servers.plain()}) as use:
            assert use.servers["flood"].problem == words
            assert (await use.call("good_echo", text="works")).value == "works"


@pytest.mark.parametrize("mode", ["strict", "deaf"])
async def test_a_server_that_cannot_bear_to_be_asked_for_its_revisions(servers: Any, mode: str) -> None:
    server = servers.plain(mode, connect_ms=2_000 if mode == "deaf" else 30_000)
    async with servers.connected(server) as use:
        with anyio.fail_after(30):
            state = await use.servers.wait_for("s")
        assert state.version == "2025-11-25"
        assert (await use.call("s_echo", text="works")).value == "works"


async def test_children_of_a_server_are_ended_with_it(servers: Any) -> None:
    async with servers.connected(servers.plain("orphan")) as use:
        pid = int((await use.call("s_pid")).value)
    assert _group_ends(pid)


async def test_a_killed_server_whose_child_holds_the_pipe_is_let_go_in_the_end(servers: Any) -> None:
    async with servers.connected(servers.plain("orphan", timeout_ms=500)) as use:
        pid = int((await use.call("s_pid")).value)
        os.kill(pid, signal.SIGKILL)
        assert (await use.call("s_echo", text="x")).error.info.code == "TOOL_TIMEOUT"
        with anyio.fail_after(20):
            while (back := await use.call("s_pid")).is_error:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        assert int(back.value) != pid
    assert _group_ends(pid)


async def test_calls_that_wait_are_failed_when_the_block_ends(servers: Any, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    results: list[Any] = []
    async with ptc.Host() as host:
        agent = host.agent("tests")
        async with (
            anyio.create_task_group() as group,
            mcp.connect(host.tools, {"s": servers.plain("once", str(flag))}) as states,
        ):
            flag.write_text("down")
            await agent.execute([ptc.ToolCall(name="s_die", arguments={})])
            await states.wait_for("s", "reconnecting")

            async def call() -> None:
                results.append(await agent.execute([ptc.ToolCall(name="s_echo", arguments={"text": "x"})]))

            group.start_soon(call)
            await anyio.sleep(0.1)
        assert "is not connected" in results[0].results[0].result.error.message


def _group_ends(pid: int) -> bool:
    for _ in range(200):
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False
