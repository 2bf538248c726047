"""Where an MCP server is, and how long it may take: plain data, checked when it is made."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias
from urllib.parse import urlsplit

__all__ = ["HttpServer", "McpServer", "StdioServer"]

MAX_TIME_MS: Final = 2_147_483_647
"""The longest time that may be given, in milliseconds, about 24.8 days (contract K2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer:
    """A server that is started as a process, and spoken to over its standard input and output.

    The process gets only those variables of the environment that programs need to run (`PATH`, `HOME` and the like),
    and what `env` adds; no secret of the host is passed on by accident.

    Attributes:
        command: the program, looked up on `PATH`.
        args: its arguments.
        env: further variables of its environment. They are left out of `repr`, since they often hold secrets.
        cwd: the folder that it works in; the host's own when `None`.
        prefix: what its tools' names begin with; `None` stands for the server's name and `_`, and "" for nothing.
        timeout_ms: how long one call may take, in milliseconds. It does not run while the user is asked something.
        connect_ms: how long its start may take until its tools are listed, in milliseconds.

    Raises:
        ValueError: a field is out of range.
        TypeError: a field is of another type.
    """

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | os.PathLike[str] | None = None
    prefix: str | None = None
    timeout_ms: float = 60_000
    connect_ms: float = 30_000

    def __post_init__(self) -> None:
        _check_text("command", self.command)
        if isinstance(self.args, str) or not all(isinstance(each, str) for each in self.args):
            raise TypeError("args must be a list of texts, one for each argument")
        object.__setattr__(self, "args", tuple(self.args))
        if self.env is not None:
            object.__setattr__(self, "env", _texts("env", self.env))
        if any("\0" in text for text in (self.command, *self.args, *(self.env or {}), *(self.env or {}).values())):
            raise ValueError("command, args and env must not have NUL characters")
        _check_common(self.prefix, self.timeout_ms, self.connect_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """A server that is reached over streamable HTTP.

    Attributes:
        url: its address, `http://...` or `https://...`.
        headers: what every request says beside what the protocol does, for example `Authorization`. They are left out
            of `repr`, and never follow a redirect to another host.
        prefix: what its tools' names begin with; `None` stands for the server's name and `_`, and "" for nothing.
        timeout_ms: how long one call may take, in milliseconds. It does not run while the user is asked something.
        connect_ms: how long it may take until its tools are listed, in milliseconds.

    Raises:
        ValueError: a field is out of range.
        TypeError: a field is of another type.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    prefix: str | None = None
    timeout_ms: float = 60_000
    connect_ms: float = 30_000

    def __post_init__(self) -> None:
        _check_text("url", self.url)
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url must be an address that begins with http:// or https://")
        headers = _texts("headers", self.headers)
        for name, value in headers.items():
            if not name or not (name + value).isascii() or any(sign in name + value for sign in "\r\n\0"):
                raise ValueError(f"headers: the value or name of {name!r} has characters that HTTP does not allow")
        object.__setattr__(self, "headers", headers)
        _check_common(self.prefix, self.timeout_ms, self.connect_ms)


McpServer: TypeAlias = StdioServer | HttpServer


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{name} must be text")
    if not text.strip():
        raise ValueError(f"{name} must not be empty")


def _texts(name: str, texts: Mapping[str, str]) -> Mapping[str, str]:
    if not isinstance(texts, Mapping) or not all(
        isinstance(key, str) and isinstance(value, str) for key, value in texts.items()
    ):
        raise TypeError(f"{name} must map texts to texts")
    return MappingProxyType(dict(texts))


def _check_common(prefix: object, timeout_ms: object, connect_ms: object) -> None:
    if prefix is not None and not isinstance(prefix, str):
        raise TypeError('prefix must be text; "" for none')
    for name, time_ms in (("timeout_ms", timeout_ms), ("connect_ms", connect_ms)):
        if isinstance(time_ms, bool) or not isinstance(time_ms, int | float):
            raise TypeError(f"{name} must be a number of milliseconds")
        if not 0 < time_ms <= MAX_TIME_MS or math.isnan(time_ms):
            raise ValueError(f"{name} must be more than 0 and at most {MAX_TIME_MS}")
