"""The reference servers that npm and PyPI ship, started for real: tools, images, errors, progress, cancellation."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime import mcp

pytestmark = pytest.mark.anyio


def stdio(command: list[str], **options: Any) -> mcp.StdioServer:
    return mcp.StdioServer(command=command[0], args=command[1:], **options)


async def test_everything(servers: Any, reference_servers: Any) -> None:
    asked: list[mcp.ElicitRequest] = []

    async def elicit(request: mcp.ElicitRequest) -> mcp.ElicitAnswer:
        asked.append(request)
        return mcp.ElicitAnswer(action="decline")

    server = stdio(reference_servers.command("everything"))
    async with servers.connected({"every": server}, elicit=elicit) as use:
        state = use.servers["every"]
        assert state.state == "connected"
        assert state.version == "2025-11-25"
        assert "every_echo" in state.tools
        assert (await use.call("every_echo", message="hello")).value == "Echo: hello"
        assert "5" in (await use.call("every_get-sum", a=2, b=3)).value
        image = await use.call("every_get-tiny-image")
        pictures = [block for block in image.content if block["type"] == "image"]
        assert base64.b64decode(pictures[0]["data"]).startswith(b"\x89PNG")
        weather = await use.call("every_get-structured-content", location="New York")
        assert set(weather.value) >= {"temperature", "conditions", "humidity"}
        bad = await use.call("every_get-structured-content", location="Atlantis")
        assert bad.error.info.code == "INVALID_ARGS"
        linked = await use.call("every_get-resource-links", count=2)
        assert [block["type"] for block in linked.value].count("resource_link") == 2
        assert "[link to the resource demo://" in linked.content[-1]["text"]

        told: list[float] = []
        use.servers.on_progress(lambda each: told.append(each.progress))
        long = await use.call("every_trigger-long-running-operation", duration=1, steps=3)
        assert "completed" in long.value
        assert told[-1] == 3

        source = ptc.SignalSource()
        results: list[Any] = []

        async def call() -> None:
            results.append(
                await use.call("every_trigger-long-running-operation", source.signal, duration=60, steps=600)
            )

        told.clear()
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await servers.until(lambda: told)
            source.abort()
        assert results[0].error.info.code == "ABORTED"

        declined = await use.call("every_trigger-elicitation-request")
        assert "declined" in declined.content[0]["text"].lower()
        assert [each.name for each in asked[0].calls] == ["every_trigger-elicitation-request"]


async def test_filesystem(servers: Any, reference_servers: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    server = stdio(reference_servers.command("filesystem", str(tmp_path)))
    async with servers.connected({"fs": server}) as use:
        read = await use.call("fs_read_text_file", path=str(tmp_path / "a.txt"))
        assert read.value == {"content": "alpha"}
        assert use.host.tools.get("fs_read_text_file").annotations.read_only is True
        assert use.host.tools.get("fs_write_file").annotations.destructive is True
        await use.call("fs_write_file", path=str(tmp_path / "b.txt"), content="beta")
        assert (tmp_path / "b.txt").read_text() == "beta"
        outside = await use.call("fs_read_text_file", path="/etc/hostname")
        assert outside.error.info.code == "MCP_TOOL_ERROR"
        assert "denied" in outside.error.message


async def test_memory(servers: Any, reference_servers: Any, tmp_path: Path) -> None:
    command = reference_servers.command("memory")
    server = stdio(command, env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")})
    async with servers.connected({"memory": server}) as use:
        entity = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
        made = await use.call("memory_create_entities", entities=[entity])
        assert made.value["entities"] == [entity]
        graph = await use.call("memory_read_graph")
        assert graph.value["entities"][0]["name"] == "Ada"


async def test_time(servers: Any, reference_servers: Any) -> None:
    server = stdio(reference_servers.command("time", "--local-timezone", "UTC"))
    async with servers.connected({"time": server}) as use:
        noon = await use.call("time_convert_time", source_timezone="UTC", target_timezone="Asia/Tokyo", time="12:00")
        assert "21:00" in noon.content[0]["text"]
        wrong = await use.call(
            "time_convert_time", source_timezone="Nowhere/Land", target_timezone="Asia/Tokyo", time="12:00"
        )
        assert wrong.error.info.code == "MCP_TOOL_ERROR"


async def test_git(servers: Any, reference_servers: Any, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)  # noqa: ASYNC221
    (tmp_path / "new.txt").write_text("new")
    server = stdio(reference_servers.command("git", "--repository", str(tmp_path)))
    async with servers.connected({"git": server}) as use:
        status = await use.call("git_git_status", repo_path=str(tmp_path))
        assert "new.txt" in status.value


async def test_one_program_uses_several_of_them(servers: Any, reference_servers: Any, tmp_path: Path) -> None:
    named = {
        "every": stdio(reference_servers.command("everything")),
        "fs": stdio(reference_servers.command("filesystem", str(tmp_path))),
    }
    program = f"""
total = await tools["every_get-sum"](a=40, b=2)
await tools.fs_write_file(path={str(tmp_path / "sum.txt")!r}, content=total)
listing = await tools.fs_list_directory(path={str(tmp_path)!r})
return listing["content"]
"""
    executor = ptc.PtcExecutor(sandbox=ptc.RestrictedSandbox())
    async with servers.connected(named, executor=executor) as use:
        prompt, _ = use.agent.describe()
        assert "fs_list_directory" in prompt
        done = await use.call("run_code", code=program, description="try")
        assert not done.is_error, done.error
        assert done.value["result"] == "[FILE] sum.txt"
        assert "42" in (tmp_path / "sum.txt").read_text()
