"""`connect`: which tools there are while the block lasts, and what is left when it is over."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime import mcp

pytestmark = pytest.mark.anyio


async def test_the_tools_are_there_for_as_long_as_the_block(servers: Any) -> None:
    async with ptc.Host() as host:
        async with mcp.connect(host.tools, {"files": servers.plain()}) as connected:
            state = connected["files"]
            assert state.state == "connected"
            assert state.tools[:2] == ("files_echo", "files_sleep")
            assert state.problem is None
            assert state.problems == {}
            assert state.version == "2025-11-25"
            assert state.instructions == "Be kind."
            assert [each.name for each in host.tools.definitions()] == list(state.tools)
            assert (len(connected), list(connected), "other" in connected) == (1, ["files"], False)
        assert host.tools.definitions() == []


@pytest.mark.parametrize(
    ("name", "prefix", "expected"),
    [("my server", None, "my_server_echo"), ("a.b-c", None, "a_b_c_echo"), ("s", "", "echo"), ("s", "x/", "x/echo")],
)
async def test_the_prefix_comes_from_the_name_or_is_given(
    servers: Any, name: str, prefix: str | None, expected: str
) -> None:
    async with servers.connected({name: servers.plain(prefix=prefix)}) as use:
        assert use.servers[name].tools[0] == expected
        assert (await use.call(expected, text="here")).value == "here"


async def test_the_tools_may_be_one_agents_alone(servers: Any) -> None:
    async with ptc.Host() as host:
        one, other = host.agent("one"), host.agent("other")
        async with mcp.connect(one.tools, {"s": servers.plain()}):
            assert one.tools.get("s_echo") is not None
            assert other.tools.get("s_echo") is None


async def test_a_name_that_is_taken_is_left_out_and_named(servers: Any) -> None:
    async with servers.connected({"a": servers.plain(prefix=""), "b": servers.plain(prefix="")}) as use:
        first, second = use.servers["a"], use.servers["b"]
        assert "echo" in {*first.tools, *second.tools}
        assert len(first.tools) + len(second.tools) == len(use.host.tools.definitions())
        assert "is registered globally already" in {**first.problems, **second.problems}["echo"]


async def test_hints_become_annotations_and_readers_may_overlap(servers: Any) -> None:
    async with servers.connected(servers.plain()) as use:
        reads, dies, plain = (use.host.tools.get(f"s_{name}") for name in ("reads", "die", "sleep"))
        assert reads.annotations == ptc.registry.ToolAnnotations(title="Reader", read_only=True, open_world=False)
        assert reads.is_concurrency_safe({}) is True
        assert dies.annotations == ptc.registry.ToolAnnotations(read_only=False, destructive=True)
        assert dies.is_concurrency_safe is None
        assert plain.annotations is None
        assert use.host.tools.get("s_echo").annotations == ptc.registry.ToolAnnotations(title="Echo")


async def test_what_is_raised_in_the_block_comes_out_as_it_is(servers: Any) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with servers.connected(servers.plain()):
            raise KeyError("mine")


async def test_a_cancelled_block_ends_the_server(servers: Any) -> None:
    with anyio.move_on_after(30) as scope:
        async with servers.connected(servers.plain()) as use:
            pid = int((await use.call("s_pid")).value)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    with pytest.raises(ProcessLookupError):
        _signal(pid)


async def test_the_process_is_gone_after_the_block(servers: Any) -> None:
    async with servers.connected(servers.plain()) as use:
        pid = int((await use.call("s_pid")).value)
        _signal(pid)
    with pytest.raises(ProcessLookupError):
        _signal(pid)


async def test_no_secret_of_the_environment_reaches_a_server(
    servers: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_SECRET", "hidden")
    program = tmp_path / "server.sh"
    program.write_text(f'env > {tmp_path}/env; pwd > {tmp_path}/cwd; exec "{sys.executable}" "$@"')
    plain = servers.plain()
    server = mcp.StdioServer(command="sh", args=[str(program), *plain.args], env={"GIVEN": "yes"}, cwd=tmp_path)
    async with servers.connected(server) as use:
        assert use.servers["s"].state == "connected"
    seen = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    assert seen["GIVEN"] == "yes"
    assert "PATH" in seen
    assert "HOST_SECRET" not in seen
    assert (tmp_path / "cwd").read_text().strip() == str(tmp_path)


@pytest.mark.parametrize(
    ("named", "error", "words"),
    [
        ({"s": "npx"}, TypeError, "must be a StdioServer or an HttpServer, not str"),
        ({" ": None}, ValueError, "must not be empty"),
        ({1: None}, TypeError, "must be text, not 1"),
    ],
)
async def test_what_is_no_server_is_refused(servers: Any, named: Any, error: type[Exception], words: str) -> None:
    named = {name: servers.plain() if server is None else server for name, server in named.items()}
    async with ptc.Host() as host:
        with pytest.raises(error, match=words):
            async with mcp.connect(host.tools, named):
                pytest.fail("it was connected")


def test_without_the_sdk_the_error_says_what_to_install() -> None:
    program = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("mcp", "mcp_types", "httpx2"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
import anyio, ptc
from ptc.runtime import mcp
async def main():
    async with ptc.Host() as host:
        try:
            async with mcp.connect(host.tools, {"s": mcp.StdioServer(command="x")}):
                pass
        except ptc.HarnessError as error:
            print(error.code, error)
anyio.run(main)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "MCP_NOT_INSTALLED MCP servers need the official SDK, which is not installed: pip install 'ptc-runtime[mcp]'"
    )


def test_the_sdk_is_not_loaded_before_it_is_needed() -> None:
    program = "import sys, ptc; from ptc.runtime import mcp; print('mcp' in sys.modules, 'httpx2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"


def _signal(pid: int) -> None:
    import os

    os.kill(pid, 0)
