"""The file of servers that clients share: what is read, what it refers to, and what is told of faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ptc
import pytest
from ptc.runtime import mcp


def written(folder: Path, content: Any, name: str = "mcp.json") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def test_the_usual_file(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server", "${HOME_DIR}/docs"], "env": {"A": "x${env:KEY}y"}},
                "web": {"type": "http", "url": "https://${HOST:-example.org}/mcp", "headers": {"X-Key": "${KEY}"}},
                "off": {"command": "nothing", "disabled": True, "autoApprove": ["*"]},
            },
            "other": {"settings": 1},
        },
    )
    read = mcp.read_mcp_servers(file, environ={"HOME_DIR": "/home/ada", "KEY": "secret"})
    assert read == {
        "files": mcp.StdioServer(command="npx", args=["-y", "server", "/home/ada/docs"], env={"A": "xsecrety"}),
        "web": mcp.HttpServer(url="https://example.org/mcp", headers={"X-Key": "secret"}),
    }
    assert "secret" not in repr(read)


def test_the_file_of_an_editor(tmp_path: Path) -> None:
    entry = {"type": "stdio", "command": "${workspaceFolder}/run", "cwd": "sub"}
    file = written(tmp_path, {"servers": {"s": entry}, "inputs": []}, ".vscode/mcp.json")
    (server,) = mcp.read_mcp_servers(file).values()
    assert server == mcp.StdioServer(command=f"{tmp_path}/run", env={}, cwd=tmp_path / "sub")
    settings = written(tmp_path, {"mcp": {"servers": {"s": {"command": "x"}}}}, "settings.json")
    assert list(mcp.read_mcp_servers(settings)) == ["s"]


@pytest.mark.parametrize("key", ["url", "httpUrl", "serverUrl"])
def test_the_names_that_clients_have_for_an_address(tmp_path: Path, key: str) -> None:
    file = written(tmp_path, {"mcpServers": {"s": {key: "http://localhost:1/mcp"}}})
    assert mcp.read_mcp_servers(file) == {"s": mcp.HttpServer(url="http://localhost:1/mcp")}


def test_variables_may_be_empty_or_have_another_text(tmp_path: Path) -> None:
    args = ["${EMPTY}", "${EMPTY:-else}", "${UNSET:-}", "$HOME", "${UNSET:-a:b}"]
    file = written(tmp_path, {"mcpServers": {"s": {"command": "x", "args": args}}})
    (server,) = mcp.read_mcp_servers(file, environ={"EMPTY": ""}).values()
    assert isinstance(server, mcp.StdioServer)
    assert server.args == ("", "else", "", "$HOME", "a:b")


def test_every_fault_has_one_line_with_its_place(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {
            "mcpServers": {
                "a": {"command": 1, "args": "x", "env": {"K": 2}},
                "b": {},
                "c": {"command": "x", "url": "http://y"},
                "d": {"url": "ftp://y"},
                "e": {"url": "http://y", "type": "sse"},
                "f": {"command": "x", "type": "pigeon"},
                "g": {"command": "${NOT_SET}", "args": ["${input:key}"]},
                "h": {"command": "x", "envFile": ".env"},
                "i": "x",
                "": {"command": "x"},
            }
        },
    )
    with pytest.raises(mcp.McpConfigError) as caught:
        mcp.read_mcp_servers(file, environ={})
    lines = str(caught.value).splitlines()
    assert [line.removeprefix(f"{file}: mcpServers.") for line in lines] == [
        "a.args: it must be a list of texts",
        "a.command: it must be text, in quotes, and not 1",
        "a.env.K: it must be text, in quotes, and not 2",
        "b: it has neither a command nor a url",
        "c: it has a command and a url; only one of them can be meant",
        "d: url must be an address that begins with http:// or https://",
        "e.type: the old HTTP+SSE transport is not supported; use the streamable HTTP address",
        """f.type: 'pigeon' is no way to reach a server; use "stdio" or "http\"""",
        "g.command: the variable NOT_SET is not set in the environment",
        "g.args[0]: ${input:key} cannot be asked for here; use a variable of the environment: ${key}",
        "h.envFile: it is not read; name the variables in env",
        "i: a server must be an object with a command or a url",
        ": a server must have a name",
    ]
    assert isinstance(caught.value, ptc.HarnessError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"mcpServers": {\n  "a": }}', ":2:8: Expecting value"),
        (
            '{\n  // mine\n  "mcpServers": {}}',
            ":2:3: Expecting property name enclosed in double quotes; comments are not",
        ),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', ": the key 'a' is there twice"),
        ("[]", ": it must be an object of servers by name"),
        ('{"mcpServers": []}', ": mcpServers: it must be an object of servers by name"),
        ("[" * 100_000, ": it is nested too deep"),
        ("{}", ": it must be an object of servers by name"),
    ],
)
def test_what_is_no_such_file(tmp_path: Path, content: str, words: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(mcp.McpConfigError) as caught:
        mcp.read_mcp_servers(file)
    assert str(caught.value).startswith(f"{file}{words}")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(mcp.McpConfigError, match=r"none\.json: it cannot be read: No such file or directory"):
        mcp.read_mcp_servers(tmp_path / "none.json")
    file = tmp_path / "latin.json"
    file.write_bytes(b'{"mcpServers": "\xe9"}')
    with pytest.raises(mcp.McpConfigError, match="it is not UTF-8, at byte 16"):
        mcp.read_mcp_servers(file)


@pytest.mark.parametrize(
    ("kind", "fields", "error", "words"),
    [
        (mcp.StdioServer, {"command": ""}, ValueError, "command must not be empty"),
        (mcp.StdioServer, {"command": 1}, TypeError, "command must be text"),
        (mcp.StdioServer, {"command": "x", "args": "y"}, TypeError, "args must be a list of texts"),
        (mcp.StdioServer, {"command": "x", "args": ["a\0b"]}, ValueError, "must not have NUL characters"),
        (mcp.StdioServer, {"command": "x", "env": {"A": 1}}, TypeError, "env must map texts to texts"),
        (mcp.StdioServer, {"command": "x", "prefix": 1}, TypeError, "prefix must be text"),
        (mcp.StdioServer, {"command": "x", "timeout_ms": 0}, ValueError, "timeout_ms must be more than 0"),
        (mcp.StdioServer, {"command": "x", "timeout_ms": float("nan")}, ValueError, "timeout_ms must be more than 0"),
        (mcp.StdioServer, {"command": "x", "connect_ms": True}, TypeError, "connect_ms must be a number"),
        (mcp.HttpServer, {"url": "localhost:80"}, ValueError, "begins with http:// or https://"),
        (mcp.HttpServer, {"url": "http://x", "headers": {"A": "b\r\nc: d"}}, ValueError, "that HTTP does not allow"),
        (mcp.HttpServer, {"url": "http://x", "headers": {"A": "é"}}, ValueError, "that HTTP does not allow"),
        (mcp.HttpServer, {"url": "http://x", "headers": [("A", "b")]}, TypeError, "headers must map texts to texts"),
    ],
)
def test_fields_out_of_range(kind: Any, fields: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        kind(**fields)


def test_servers_are_frozen_and_keep_their_secrets() -> None:
    env = {"TOKEN": "secret"}
    stdio = mcp.StdioServer(command="x", args=["a"], env=env)
    env["TOKEN"] = "changed"
    assert stdio.env == {"TOKEN": "secret"}
    http = mcp.HttpServer(url="http://x", headers={"Authorization": "secret"})
    assert "secret" not in repr((stdio, http))
    with pytest.raises(AttributeError):
        stdio.command = "y"  # type: ignore[misc]
