"""`ptc serve` as a process that a client starts: its streams, its end, its log, and how it says what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import Implementation, TextContent

from .conftest import audit, run_code

TOOLS = '''
import os
import subprocess
import sys
import time
from pathlib import Path

import anyio
import ptc


@ptc.tool(concurrency_safe=True)
async def double(x: int) -> int:
    """Double a number."""
    return 2 * x


@ptc.tool
async def noisy() -> str:
    """Print, and have a process print."""
    print("this is no message")
    os.write(1, b"nor is this\\n")
    subprocess.run([sys.executable, "-c", "print('nor this'); import sys; print(repr(sys.stdin.read()))"], check=True)
    return "quiet"


@ptc.tool
async def wait(file: str, run: ptc.ToolRunContext) -> str:
    """Wait until told otherwise, and write down that it was told."""
    Path(file).write_text("begun")
    await run.signal.wait()
    await anyio.sleep(0.2)
    Path(file).write_text("told")
    return "ended"
'''

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "by hand", "version": "1"},
}


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    file = tmp_path / "tools.py"
    file.write_text(TOOLS)
    return file


def arguments(*options: object) -> list[str]:
    return [sys.executable, "-m", "ptc.runtime.cli", "serve", *map(str, options)]


class Talk:
    """A client that writes lines by hand."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def send(self, method: str, params: Any = None, id: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method} | ({} if id is None else {"id": id})
        self.write(json.dumps(message | ({} if params is None else {"params": params})))

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def answer(self, id: Any) -> Any:
        while True:
            message = self.read()
            if message.get("id") == id and "method" not in message:
                return message

    def hello(self) -> None:
        self.send("initialize", HELLO, 0)
        assert self.answer(0)["result"]["serverInfo"]["name"] == "ptc"
        self.send("notifications/initialized")

    def call(self, id: Any, code: str) -> None:
        self.send("tools/call", {"name": "run_code", "arguments": {"code": code, "description": "Try it"}}, id)


@contextmanager
def talking(*options: object, cwd: Path, **environment: str) -> Iterator[Talk]:
    with subprocess.Popen(
        arguments(*options),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=cwd, env=os.environ | environment,
    ) as process:  # fmt: skip
        try:
            yield Talk(process)
        finally:
            process.kill()


def test_garbage_is_answered_or_passed_by_and_the_server_goes_on(tools: Path, tmp_path: Path) -> None:
    with talking("--tools", tools, "--log", tmp_path / "x.db", cwd=tmp_path) as client:
        for line in (
            "",
            "garbage",
            "\x00\xff",
            "[]",
            "null",
            '{"jsonrpc": "2.0"}',
            '{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
            '{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
            '{"jsonrpc": "2.0", "id": 77, "result": {}}',
            '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}}',
            "[" * 100_000,
            '{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}',
        ):
            client.write(line)
        client.send("tools/list", {}, "too early")
        assert "error" in client.answer("too early")
        client.hello()
        client.send("no/such/method", {}, 1)
        assert client.answer(1)["error"]["code"] == -32601
        client.send("tools/call", {"name": 7}, 2)
        assert client.answer(2)["error"]["code"] == -32602
        client.send("tools/call", {"name": "run_code", "arguments": [1]}, 3)
        assert client.answer(3)["error"]["code"] == -32602
        code = {"code": "return '\ud800'", "description": "x"}  # JSON can write what no text is
        client.send("tools/call", {"name": "run_code", "arguments": code}, 4)
        client.call(5, "return await tools.double(x=21)")
        assert client.answer(5)["result"]["content"] == [{"type": "text", "text": "42"}]


def test_a_message_that_is_too_long_is_dropped(tools: Path, tmp_path: Path) -> None:
    with talking("--tools", tools, "--log", tmp_path / "x.db", cwd=tmp_path) as client:
        client.hello()
        client.call(1, "#" * (33 << 20))
        client.call(2, "return len('" + "#" * (1 << 20) + "')")
        assert client.answer(2)["result"]["content"] == [{"type": "text", "text": str(1 << 20)}]


def test_what_tools_print_does_not_come_between_the_messages(tools: Path, tmp_path: Path) -> None:
    with talking("--tools", tools, "--log", tmp_path / "x.db", cwd=tmp_path) as client:
        client.hello()
        client.call(1, "return await tools.noisy()")
        assert client.read()["result"]["content"] == [{"type": "text", "text": "quiet"}]
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(20) == 0
        assert client.process.stderr is not None
        said = client.process.stderr.read()
    assert "this is no message" in said
    assert "nor is this" in said
    assert "nor this\n''" in said


def begun(file: Path) -> None:
    deadline = time.monotonic() + 30
    while not file.exists() or not file.read_text():
        assert time.monotonic() < deadline, "the program has not begun"
        time.sleep(0.02)


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_stops_programs_and_waits_for_what_they_have_begun(
    tools: Path, tmp_path: Path, how: signal.Signals, code: int
) -> None:
    file = tmp_path / "state"
    with talking("--tools", tools, "--log", tmp_path / "x.db", cwd=tmp_path) as client:
        client.hello()
        client.call(1, f"await tools.wait(file={str(file)!r})")
        begun(file)
        client.process.send_signal(how)
        assert client.answer(1)["result"]["isError"]
        assert client.process.wait(20) == code
        assert client.process.stderr is not None
        assert f"ended by {how.name}" in client.process.stderr.read()
    assert file.read_text() == "told"


def test_a_client_that_goes_stops_programs_as_well(tools: Path, tmp_path: Path) -> None:
    file = tmp_path / "state"
    with talking("--tools", tools, "--log", tmp_path / "x.db", cwd=tmp_path) as client:
        client.hello()
        client.call(1, f"await tools.wait(file={str(file)!r})")
        begun(file)
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(20) == 0
    assert file.read_text() == "told"


def test_a_client_that_reads_no_more_does_not_keep_the_server(tools: Path, tmp_path: Path) -> None:
    with talking("--tools", tools, "--log", tmp_path / "x.db", cwd=tmp_path) as client:
        client.hello()
        client.call(1, "return 'x' * 5_000_000")
        time.sleep(1)  # the answer fills the pipe
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(20) == 0


def test_input_may_be_a_file(tools: Path, tmp_path: Path) -> None:
    talk = tmp_path / "talk"
    talk.write_text(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}) + "\n")
    with talk.open() as source, (tmp_path / "said").open("w") as sink:
        done = subprocess.run(
            arguments("--tools", tools, "--log", tmp_path / "x.db"), stdin=source, stdout=sink, cwd=tmp_path, timeout=60
        )
    assert done.returncode == 0
    assert json.loads((tmp_path / "said").read_text())["id"] == 0


@pytest.mark.anyio
async def test_the_official_client_starts_it_with_a_configuration(tools: Path, tmp_path: Path, era: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "ptc.toml").write_text('[tools]\nmodules = ["../tools.py"]\n[serve]\nname = "shop"\n')
    command, *options = arguments("--config", folder / "ptc.toml")
    # What is set for tests, the cache of the sandbox for example, counts for the server as well.
    parameters = StdioServerParameters(command=command, args=options, cwd=tmp_path, env=dict(os.environ))
    info = Implementation(name="by test", version="1")
    async with Client(parameters, mode=era, client_info=info) as client:
        assert client.server_info is not None
        assert client.server_info.name == "shop"
        result = await run_code(client, "return await tools.double(x=3)")
    assert result.content == [TextContent(text="6")]

    assert '"by test"' in audit("list", "--json", "--log", folder / "ptc.db")


def run(*options: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments(*options), cwd=cwd, env=os.environ | environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_a_configuration_is_checked_without_being_served(tools: Path, tmp_path: Path) -> None:
    good = tmp_path / "ptc.toml"
    good.write_text('[tools]\nmodules = ["tools.py"]\n')
    done = run("--check", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "no errors; 0 MCP servers; 1 module of tools\n"), done.stderr
    assert not (tmp_path / "ptc.db").exists()


@pytest.mark.parametrize("check", [True, False])
def test_what_is_wrong_in_a_configuration_is_told_with_its_line(tmp_path: Path, check: bool) -> None:
    (tmp_path / "ptc.toml").write_text('[serve]\nname = "x"\n\n[servers.files]\ncomand = "npx"\n')
    done = run("--config", "ptc.toml", *(["--check"] if check else []), cwd=tmp_path)
    assert done.returncode == 2
    assert "ptc: ptc.toml:5: servers.files.comand:" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "there is nothing to serve: give --config, --mcp-json or --tools"),
        (["--tools", "nowhere.py"], "there is no tools file nowhere.py"),
        (["--config", "nowhere.toml"], "nowhere.toml"),
        (["--mcp-json", "nowhere.json"], "nowhere.json"),
        (["--tools", "tools.py", "--http", "somewhere"], "--http takes [HOST:]PORT"),
        (["--tools", "tools.py", "--http", "localhost:99999"], "--http takes [HOST:]PORT"),
    ],
)
def test_wrong_usage_is_told_in_one_message(tools: Path, tmp_path: Path, options: list[str], told: str) -> None:
    done = run(*options, "--log", "x.db", cwd=tmp_path)
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


def test_two_tools_of_one_name_are_told(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(TOOLS)
    done = run("--tools", "tools.py", "--tools", "other.py", "--log", "x.db", cwd=tmp_path)
    assert done.returncode == 2
    assert "double" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_configuration_the_log_is_in_the_users_data(tools: Path, tmp_path: Path) -> None:
    done = run("--tools", "tools.py", cwd=tmp_path, XDG_DATA_HOME=str(tmp_path / "data"), PTC_LOG="")
    assert done.returncode == 0, done.stderr
    assert "ptc: calls are recorded in " in done.stderr
    if sys.platform == "linux":
        assert (tmp_path / "data" / "ptc" / "ptc.db").exists()


def test_a_log_that_cannot_be_written_is_told(tools: Path, tmp_path: Path) -> None:
    done = run("--tools", "tools.py", "--log", "nowhere/x.db", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_limit_that_no_sandbox_has_is_told(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "ptc.toml").write_text('[tools]\nmodules = ["tools.py"]\n[sandbox]\nmemory_mib = 1\n')
    done = run(cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert "memory" in done.stderr
    assert "Traceback" not in done.stderr
