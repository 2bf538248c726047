"""The official client drives `ptc serve` over the servers that npm and PyPI ship, all of them started for real.

`everything`, `filesystem` and `memory` come from npm, `time` and `git` from PyPI; one program calls them all.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult, ImageContent, TextContent

from .conftest import audit, run_code

pytestmark = pytest.mark.anyio

POLICY = """
[[rules]]
tools = "files_write_file"
decision = "ask"
reason = "it writes into your project"

[[rules]]
tools = "git_git_reset"
decision = "deny"
reason = "nothing is taken back here"

[serve]
name = "five servers"
"""

PROGRAM = """
import asyncio
import json

project = {project!r}
now, total, status, listed = await asyncio.gather(
    tools.time_convert_time(source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"),
    tools["every_get-sum"](a=40, b=2),
    tools.git_git_status(repo_path=project),
    tools.files_list_directory(path=project),
)
await tools.memory_create_entities(entities=[
    {{"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}},
])
graph = await tools.memory_read_graph()
await tools["every_trigger-long-running-operation"](duration=0.4, steps=4)
await tools["every_get-tiny-image"]()

problems = []
for call in (
    tools.files_read_text_file(path="/etc/hostname"),
    tools.git_git_reset(repo_path=project),
):
    try:
        await call
    except ToolCallError as error:
        problems.append(str(error))

await tools.files_write_file(path=project + "/sum.txt", content=total)
return {{
    "tokyo": "21:00" in json.dumps(now),
    "sum": total,
    "status": "untracked" in str(status).lower(),
    "listed": listed["content"],
    "graph": [entity["name"] for entity in graph["entities"]],
    "problems": problems,
}}
"""


@pytest.fixture
def anyio_backend() -> str:
    """The server is a process of its own; one event loop for its client will do."""
    return "asyncio"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git repository with a file that it does not know."""
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    (project / "readme.txt").write_text("hello")
    return project


@pytest.fixture
def parameters(tmp_path: Path, project: Path, reference_servers: Any) -> StdioServerParameters:
    """Starts `ptc serve` with a configuration of all five."""
    commands = {
        "every": reference_servers.command("everything"),
        "files": reference_servers.command("filesystem", str(project)),
        "memory": reference_servers.command("memory"),
        "time": reference_servers.command("time", "--local-timezone", "UTC"),
        "git": reference_servers.command("git", "--repository", str(project)),
    }
    sections = [
        f"[servers.{name}]\ncommand = {json.dumps(command)}\nargs = {json.dumps(rest)}\n"
        for name, (command, *rest) in commands.items()
    ]
    sections[2] += f"env = {{ MEMORY_FILE_PATH = {json.dumps(str(tmp_path / 'memory.json'))} }}\n"
    config = tmp_path / "ptc.toml"
    config.write_text("\n".join(sections) + POLICY)
    # What is set for tests, the cache of the sandbox for example, counts for the server as well.
    options = ["-m", "ptc.runtime.cli", "serve", "--config", str(config)]
    return StdioServerParameters(command=sys.executable, args=options, env=dict(os.environ))


async def test_one_program_calls_them_all(
    parameters: StdioServerParameters, project: Path, tmp_path: Path, era: str
) -> None:
    progress: list[tuple[float, str]] = []
    asked: list[str] = []

    async def tell(number: float, _total: float | None, message: str | None) -> None:
        progress.append((number, message or ""))

    async def user(_context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        assert not (project / "sum.txt").exists()
        return ElicitResult(action="accept", content={"approve": True})

    async with Client(parameters, mode=era, elicitation_callback=user) as client:
        tools = (await client.list_tools()).tools
        result = await run_code(
            client, PROGRAM.format(project=str(project)), "Look around and write a sum", progress_callback=tell
        )

    # One tool in place of fifty, which declares them.
    assert [tool.name for tool in tools] == ["run_code"]
    for declared in (
        "files_read_text_file",
        "every_get-sum",
        "git_git_status",
        "time_convert_time",
        "memory_read_graph",
    ):
        assert declared in (tools[0].description or "")

    # What the program gave, the errors of a server and of the policy among it.
    assert not result.is_error, result.content
    assert isinstance(result.content[0], TextContent)
    given = json.loads(result.content[0].text)
    assert given["tokyo"]
    assert given["status"]
    assert "42" in given["sum"]
    assert "[FILE] readme.txt" in given["listed"]
    assert given["graph"] == ["Ada"]
    assert "denied" in given["problems"][0].lower()
    assert given["problems"][1] == "nothing is taken back here"

    # The image.
    images = [block for block in result.content if isinstance(block, ImageContent)]
    assert [base64.b64decode(image.data)[:8] for image in images] == [b"\x89PNG\r\n\x1a\n"]
    assert images[0].mime_type == "image/png"

    # Progress of the sub-calls, and of what a server says of its own.
    numbers = [number for number, _message in progress]
    messages = [message for _number, message in progress]
    assert numbers == sorted(set(numbers))
    assert messages.index("time_convert_time: called") < messages.index("time_convert_time: done")
    assert "every_trigger-long-running-operation: 4 of 4" in messages
    assert any(message.startswith("files_read_text_file: failed: ") for message in messages)
    assert "git_git_reset: failed: nothing is taken back here" in messages

    # The approval.
    assert len(asked) == 1
    assert asked[0].startswith("Allow the call of files_write_file?\nWhy you are asked: it writes into your project\n")
    assert "sum.txt" in asked[0]
    assert "Look around and write a sum" in asked[0]
    assert "42" in (project / "sum.txt").read_text()

    # The record.
    shown = audit("show", "--json", "--log", tmp_path / "ptc.db")
    for name in ("time_convert_time", "git_git_reset", "files_write_file", "allowed-once"):
        assert name in shown


async def test_a_call_that_is_refused_by_the_user_is_not_made(
    parameters: StdioServerParameters, project: Path, era: str
) -> None:
    async def user(_context: Any, _params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    code = f"await tools.files_write_file(path={str(project / 'new.txt')!r}, content='x')"
    async with Client(parameters, mode=era, elicitation_callback=user) as client:
        result = await run_code(client, code)

    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    assert 'ToolCallError: the user rejected tool "files_write_file"' in result.content[0].text
    assert not (project / "new.txt").exists()


async def test_a_client_that_gives_up_stops_the_program_and_the_server_behind_it(
    parameters: StdioServerParameters, tmp_path: Path, era: str
) -> None:
    begun = anyio.Event()

    async def tell(_number: float, _total: float | None, message: str | None) -> None:
        if message is not None and message.startswith("every_trigger-long-running-operation: 1 of"):
            begun.set()

    slow = 'await tools["every_trigger-long-running-operation"](duration=100, steps=1000)'
    async with Client(parameters, mode=era) as client:
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                await run_code(client, slow, progress_callback=tell)

            tasks.start_soon(call)
            with anyio.fail_after(30):
                await begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(30):
            after = await run_code(client, 'return await tools.every_echo(message="still there")')

    assert after.content == [TextContent(text="Echo: still there")]
    shown = audit("query", "--json", "--log", tmp_path / "ptc.db")
    records = [json.loads(line) for line in shown.splitlines()]
    slow_call = next(record for record in records if "long-running" in json.dumps(record))
    assert "ABORTED" in json.dumps(slow_call)
