"""`ptc serve`: an MCP server that offers one tool, `run_code`, over the tools of other servers and of Python files."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from .options import say, usage_error

if TYPE_CHECKING:
    import signal

    from ..config import Config
    from ..mcp import McpServer
    from ..serve.http import Listening

__all__ = ["serve"]

_DEFAULT: Final = Path("ptc.toml")
_INTERRUPTED: Final = 130
_VARIABLE: Final = "PTC_SERVE_TOKEN"
"""The variable with the token of HTTP clients, where the configuration has none."""


def serve(
    config: Annotated[
        Path | None,
        typer.Option("--config", help="The configuration; ptc.toml here, if it is there.", metavar="FILE"),
    ] = None,
    mcp_json: Annotated[
        list[Path] | None,
        typer.Option("--mcp-json", help="A file of MCP servers as clients have it; may be repeated.", metavar="FILE"),
    ] = None,
    tools: Annotated[
        list[str] | None,
        typer.Option("--tools", help="A Python file or module that defines tools; may be repeated.", metavar="FILE"),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option("--http", help="Serve over HTTP there, and not over standard input.", metavar="[HOST:]PORT"),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", envvar="PTC_LOG", help="The log file that calls are recorded in.", metavar="FILE"),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Say what is wrong, and start nothing.")] = False,
) -> None:
    """Offer run_code to an MCP client, over the tools of MCP servers and Python files.

    The client starts it and speaks to it over standard input and output, or reaches it over HTTP with --http. Every
    call is recorded: in ptc.db beside the configuration, or in the user's data folder. HTTP clients need a bearer
    token: that of the configuration or of PTC_SERVE_TOKEN, or else one that is made and shown at the start.

    Exit codes: 0 the client has gone or the server was ended, 1 it failed, 2 wrong usage or a wrong configuration, 130
    interrupted.
    """
    _log_to_stderr()
    read = _configured(config, mcp_json or [], tools or [], log)
    if check:
        _check(read)
        return
    _require_extra(over_http=http is not None or read.serve.transport == "http")
    for warning in read.warnings:
        say(str(warning))
    ended_by = _serve(read, _listening(read, http))
    if ended_by is not None:
        say(f"ended by {ended_by.name}; all programs have ended")
        if ended_by.name == "SIGINT":
            raise typer.Exit(_INTERRUPTED)


def _configured(path: Path | None, mcp_json: list[Path], tools: list[str], log: Path | None) -> Config:
    """Returns what the configuration and the options say together."""
    from ..config import Config, ConfigError, ToolsModule, load_config

    if path is None and not mcp_json and not tools:
        if not _DEFAULT.is_file():
            raise usage_error("there is nothing to serve: give --config, --mcp-json or --tools")
        path = _DEFAULT
    try:
        read = Config() if path is None else load_config(path)
    except ConfigError as error:
        raise usage_error(error.message) from None
    servers = dict(read.servers)
    for file in mcp_json:
        servers |= _servers_of(file, servers)
    return replace(
        read,
        servers=servers,
        modules=(*read.modules, *(ToolsModule(source=source) for source in tools)),
        log=read.log if log is None else replace(read.log, path=log),
    )


def _servers_of(file: Path, known: Mapping[str, object]) -> dict[str, McpServer]:
    from ..mcp import McpConfigError, read_mcp_servers

    try:
        servers = read_mcp_servers(file)
    except McpConfigError as error:
        raise usage_error(error.message) from None
    for name in servers:
        if name in known:
            raise usage_error(f"{file}: there is another server {name!r} already; give one of them another name")
    return servers


def _check(config: Config) -> None:
    from ..config import check_config

    findings = check_config(config)
    for finding in findings:
        say(f"{finding.severity}: {finding}" if finding.severity == "warning" else str(finding))
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(2)
    told = [
        "no errors" if not findings else f"no errors, {_number(len(findings), 'warning')}",
        _number(len(config.servers), "MCP server"),
        f"{_number(len(config.modules), 'module')} of tools",
    ]
    sys.stdout.write("; ".join(told) + "\n")


def _number(count: int, of_what: str) -> str:
    return f"{count} {of_what}{'' if count == 1 else 's'}"


def _listening(config: Config, http: str | None) -> Listening | None:
    """Returns the address that HTTP clients come in at; `None` for standard input and output."""
    if http is None and config.serve.transport != "http":
        return None
    from ..serve.http import Listening, PortError

    host, port = config.serve.host, config.serve.port
    if http is not None:
        given, _colon, number = http.rpartition(":")
        if not number.isdecimal() or int(number) > 65_535:
            raise usage_error(f"--http takes [HOST:]PORT, for example 127.0.0.1:8765, not {http!r}")
        host, port = given.removeprefix("[").removesuffix("]") or host, int(number)
    token = os.environ.get(_VARIABLE) if config.serve.token is None else config.serve.token.get_secret_value()
    if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token):
        raise usage_error("the token must be of letters, digits and signs that HTTP can carry, and not be empty")
    try:
        return Listening(host, port, token)
    except PortError as error:
        say(str(error))
        raise typer.Exit(1) from None


def _serve(config: Config, listening: Listening | None) -> signal.Signals | None:
    import anyio

    from ...registry import HarnessError, ToolRegistrationError
    from ...sandbox.seam import SandboxError
    from ..log import LogUnavailableError
    from ..serve.serve import serve as run
    from ..tools_file import ToolsFileError

    try:
        return anyio.run(run, config, say, listening)
    except (LogUnavailableError, ToolRegistrationError, ToolsFileError) as error:
        raise usage_error(error.message) from None  # as for `ptc run`
    except HarnessError as error:
        say(error.message)
        raise typer.Exit(1) from None
    except (SandboxError, ValueError) as error:
        say(f"programs cannot be run: {error}")
        raise typer.Exit(1) from None
    except OSError as error:
        say(f"the server has ended: {error.strerror or error}")
        raise typer.Exit(1) from None
    finally:
        if listening is not None:
            listening.close()


def _require_extra(*, over_http: bool) -> None:
    from importlib.util import find_spec

    missing = [name for name in ("mcp", *(("uvicorn",) if over_http else ())) if find_spec(name) is None]
    if missing:
        raise usage_error(f"ptc serve needs {' and '.join(missing)}: pip install 'ptc-runtime[serve]'")


class _Plain(logging.Formatter):
    """Log lines as `say` writes them; what foreign text there is in them steers no terminal."""

    def format(self, record: logging.LogRecord) -> str:
        from .terminal import visible

        return "\n".join(f"ptc: {visible(line).plain}" for line in super().format(record).split("\n"))


def _log_to_stderr() -> None:
    """Has what libraries and servers log come to standard error, since standard output is the client's."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain("%(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
