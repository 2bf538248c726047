"""The file of servers that MCP clients share: `mcpServers`, or `servers` as VS Code writes it.

{"mcpServers": {"files": {"command": "npx", "args": ["-y", "..."], "env": {"TOKEN": "${TOKEN}"}},
                "web": {"url": "https://...", "headers": {"Authorization": "Bearer ${env:TOKEN}"}}}}
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from .errors import McpConfigError
from .servers import HttpServer, McpServer, StdioServer

__all__ = ["read_mcp_servers"]

_REFERENCE: Final = re.compile(r"\$\{(?P<kind>[A-Za-z]+:(?!-))?(?P<name>[^{}:]+)(?::-(?P<otherwise>[^{}]*))?\}")
_URLS: Final = ("url", "httpUrl", "serverUrl")
_HTTP_TYPES: Final = ("http", "streamable-http", "streamableHttp", "streamable_http")

Complain: TypeAlias = Callable[[str, str], None]
"""Takes a fault down: where it is within the file, and what is wrong."""


def read_mcp_servers(path: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None) -> dict[str, McpServer]:
    """Reads the servers of a file.

    `${NAME}` and `${env:NAME}` stand for a variable of the environment, `${NAME:-text}` for it or the text when it is
    not set, `${workspaceFolder}` for the folder that the file belongs to, and `${userHome}` for the user's. A relative
    `cwd` is relative to that folder. Servers that are marked as `disabled` are left out; what other clients keep in the
    file for themselves is passed over.

    Args:
        path: the file, JSON in UTF-8.
        environ: the environment; the process's own when `None`.

    Returns:
        the servers by name, in the order of the file.

    Raises:
        McpConfigError: the file cannot be read, or has faults; the message has one line for each, with its place.
    """
    file = Path(path)
    reader = _Reader(file, os.environ if environ is None else environ)
    servers = reader.servers(_document(file))
    if reader.faults:
        raise McpConfigError("\n".join(reader.faults))
    return servers


def _document(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise McpConfigError(f"{file}: it cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise McpConfigError(f"{file}: it is not UTF-8, at byte {error.start}") from error

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise McpConfigError(f"{file}: the key {key!r} is there twice in one object; which one counts?")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=members)
    except json.JSONDecodeError as error:
        hint = "; comments are not JSON" if text[error.pos : error.pos + 2] in ("//", "/*") else ""
        raise McpConfigError(f"{file}:{error.lineno}:{error.colno}: {error.msg}{hint}") from error
    except RecursionError as error:
        raise McpConfigError(f"{file}: it is nested too deep") from error


class _Reader:
    """Reads the parts of one file, and takes down every fault that it meets."""

    def __init__(self, file: Path, environ: Mapping[str, str]) -> None:
        self.faults: list[str] = []
        self._file = file
        self._environ = environ
        folder = file.absolute().parent
        self._folder = folder.parent if folder.name in (".vscode", ".cursor") else folder

    def _complain(self, where: str, what: str) -> None:
        self.faults.append(f"{self._file}: {where}: {what}" if where else f"{self._file}: {what}")

    def servers(self, document: Any) -> dict[str, McpServer]:
        where, entries = _entries(document)
        if not isinstance(entries, dict):
            self._complain(where, 'it must be an object of servers by name: {"mcpServers": {"NAME": {"command": ...}}}')
            return {}
        found: dict[str, McpServer] = {}
        for name, entry in entries.items():
            at = f"{where}.{name}"
            if not name.strip():
                self._complain(at, "a server must have a name")
            elif not isinstance(entry, dict):
                self._complain(at, "a server must be an object with a command or a url")
            elif entry.get("disabled") is not True and (server := self._server(at, entry)) is not None:
                found[name] = server
        return found

    def _server(self, at: str, entry: dict[str, Any]) -> McpServer | None:
        before = len(self.faults)
        kind = entry.get("type", entry.get("transport"))
        urls = [key for key in _URLS if key in entry]
        if kind not in (None, "stdio", "sse", *_HTTP_TYPES):
            self._complain(f"{at}.type", f'{kind!r} is no way to reach a server; use "stdio" or "http"')
        if kind == "sse":
            self._complain(f"{at}.type", "the old HTTP+SSE transport is not supported; use the streamable HTTP address")
        if "command" in entry and urls:
            self._complain(at, f"it has a command and a {urls[0]}; only one of them can be meant")
        if "envFile" in entry:
            self._complain(f"{at}.envFile", "it is not read; name the variables in env")
        if "command" not in entry and not urls:
            self._complain(at, "it has neither a command nor a url")
        if len(self.faults) > before:
            return None
        fields = self._http(at, entry, urls[0]) if urls else self._stdio(at, entry)
        if len(self.faults) > before:
            return None
        try:
            return HttpServer(**fields) if urls else StdioServer(**fields)
        except (TypeError, ValueError) as error:
            self._complain(at, str(error))
            return None

    def _stdio(self, at: str, entry: dict[str, Any]) -> dict[str, Any]:
        args = entry.get("args", [])
        if not isinstance(args, list):
            self._complain(f"{at}.args", "it must be a list of texts")
            args = []
        cwd = self._text(f"{at}.cwd", entry["cwd"]) if entry.get("cwd") is not None else None
        return {
            "command": self._text(f"{at}.command", entry["command"]),
            "args": [self._text(f"{at}.args[{place}]", each) for place, each in enumerate(args)],
            "env": self._texts(f"{at}.env", entry.get("env")),
            "cwd": None if cwd is None else self._folder / cwd,
        }

    def _http(self, at: str, entry: dict[str, Any], key: str) -> dict[str, Any]:
        return {
            "url": self._text(f"{at}.{key}", entry[key]),
            "headers": self._texts(f"{at}.headers", entry.get("headers")),
        }

    def _texts(self, at: str, value: Any) -> dict[str, str]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._complain(at, "it must be an object of texts by name")
            return {}
        return {key: self._text(f"{at}.{key}", text) for key, text in value.items()}

    def _text(self, at: str, value: Any) -> str:
        if not isinstance(value, str):
            self._complain(at, f"it must be text, in quotes, and not {json.dumps(value)[:40]}")
            return ""
        return _REFERENCE.sub(lambda match: self._resolved(at, match), value)

    def _resolved(self, at: str, match: re.Match[str]) -> str:
        kind, name, otherwise = match["kind"], match["name"], match["otherwise"]
        if kind not in (None, "env:"):
            self._complain(at, f"{match[0]} cannot be asked for here; use a variable of the environment: ${{{name}}}")
            return ""
        if kind is None and name == "workspaceFolder":
            return os.fspath(self._folder)
        if kind is None and name == "userHome":
            return os.fspath(Path.home())
        value = self._environ.get(name)
        if value is None and otherwise is None:
            self._complain(at, f"the variable {name} is not set in the environment")
        return (value or otherwise or "") if otherwise is not None else value or ""


def _entries(document: Any) -> tuple[str, Any]:
    """Finds the servers in the document: their place, and what is there."""
    if not isinstance(document, dict):
        return "", None
    if "mcpServers" in document:
        return "mcpServers", document["mcpServers"]
    if "servers" in document:
        return "servers", document["servers"]
    if isinstance(inner := document.get("mcp"), dict) and "servers" in inner:
        return "mcp.servers", inner["servers"]
    return "", None
