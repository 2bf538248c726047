"""What of a configuration can be found wrong without starting anything: `ptc serve --check`."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ...registry import RUN_CODE
from ..tools_file import ToolsFileError, load_tools
from .check_policy import check_policy
from .errors import Finding, Severity, in_order
from .plain_secrets import names_a_secret
from .source import Source, key_text

if TYPE_CHECKING:
    from ..mcp import HttpServer, StdioServer
    from .config import Config
    from .settings import SandboxSettings
    from .source import KeyPath

__all__ = ["check_config"]

_SHORTEST_TOKEN: Final = 16


def check_config(config: Config) -> list[Finding]:
    """Looks at what a configuration needs of this machine, and at what does not go together in it.

    Programs of servers are looked up and not started. Modules of tools are imported, which runs their code.

    Args:
        config: the configuration.

    Returns:
        what was found, in the order of the lines, the configuration's own `warnings` included. With an `error` among
        them `ptc serve` would not do what the file says.
    """
    found = list(config.warnings)
    found += _servers(config)
    names, whole = _modules(config, found)
    found += check_policy(config, names if whole else None)
    found += _sandboxes(config)
    found += _log(config)
    found += _serve(config)
    return in_order(found)


def _servers(config: Config) -> Iterator[Finding]:
    if not config.servers and not config.modules:
        yield config.source.finding((), "no tools: add a section [servers.NAME], or tools.modules", "warning")
    if config.servers and importlib.util.find_spec("mcp") is None:
        yield config.source.finding(
            ("servers",), "MCP servers need the official SDK, which is not installed: pip install 'ptc-runtime[mcp]'"
        )
    from ..mcp import StdioServer

    prefixes: defaultdict[str, list[str]] = defaultdict(list)
    for name, server in config.servers.items():
        prefixes[f"{name}_" if server.prefix is None else server.prefix].append(name)
        found = _command(config, name, server) if isinstance(server, StdioServer) else _address(config, name, server)
        yield from found
    for prefix, names in prefixes.items():
        if len(names) > 1:
            others = " and ".join(f'"{name}"' for name in names[:-1])
            yield _of_server(
                config,
                names[-1],
                "prefix",
                f'"{prefix}" is the prefix of server {others} as well, so tools of the same name are there once',
                "warning",
            )


def _command(config: Config, name: str, server: StdioServer) -> Iterator[Finding]:
    """Looks the program of a server up where it would be looked up at the start."""
    command = server.command
    if server.cwd is not None and not Path(server.cwd).is_dir():
        yield _of_server(config, name, "cwd", f"there is no folder {os.fspath(server.cwd)}")
    path = (server.env or {}).get("PATH", os.environ.get("PATH"))
    if shutil.which(command, path=path) is not None:
        return
    if os.path.dirname(command):  # a name alone is looked up
        there = Path(command).is_file()
        problem = f"{command} is not executable" if there else f"there is no program {command}"
    else:
        problem = f'there is no program "{command}" on PATH; install it, or write its path'
    yield _of_server(config, name, "command", problem)


def _address(config: Config, name: str, server: HttpServer) -> Iterator[Finding]:
    address = urlsplit(server.url)
    is_open = address.scheme == "http" and not _is_loopback(address.hostname or "")
    if is_open and any(map(names_a_secret, server.headers)):
        problem = "its headers have a secret, and go over the network unencrypted; use https"
        yield _of_server(config, name, "url", problem, "warning")


def _of_server(config: Config, name: str, key: str, problem: str, severity: Severity = "error") -> Finding:
    """Returns a finding about a server, in the file that the server is from."""
    if ("servers", name) in config.source.lines:
        return config.source.finding(("servers", name, key), problem, severity)
    for file, names in config.mcp_json.items():
        if name in names:
            shown = os.path.relpath(file, config.path.absolute().parent) if config.path is not None else str(file)
            return Finding(severity, shown, _line_of(file, name), key_text((name, key)), problem)
    return Source().finding(("servers", name, key), problem, severity)


def _line_of(file: Path, name: str) -> int | None:
    """Returns the line of a JSON file on which a name stands first."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return None  # it was read a moment ago; the finding is the same without a line
    return next((number for number, line in enumerate(lines, 1) if f'"{name}"' in line), None)


def _modules(config: Config, found: list[Finding]) -> tuple[list[str], bool]:
    """Imports the modules of tools; returns the names of the tools, and whether all modules could be imported."""
    owners: dict[str, str] = {}
    whole = True
    for place, module in enumerate(config.modules):
        path: KeyPath = ("tools", "modules", place)
        source = config.source if path in config.source.lines else Source()
        try:
            names = [definition.name for definition in load_tools(module.source, module.settings)]
        except ToolsFileError as error:
            whole = False
            found += [source.finding(path, line) for line in error.message.splitlines()]
            continue
        for name in names:
            if name == RUN_CODE:
                found.append(source.finding(path, f'"{name}" is the name of the program tool; rename the tool'))
            elif name in owners:
                found.append(source.finding(path, f'tool "{name}" is in {owners[name]} already; rename one'))
            owners.setdefault(name, module.source)
    return list(owners), whole


def _sandboxes(config: Config) -> Iterator[Finding]:
    yield from _sandbox(config, config.sandbox, ())
    for path, section in config.sections():
        if section.sandbox:
            yield from _sandbox(config, config.sandbox.model_copy(update=dict(section.sandbox)), path)


def _sandbox(config: Config, settings: SandboxSettings, path: KeyPath) -> Iterator[Finding]:
    backend: KeyPath = (*path, "sandbox", "backend")
    if settings.backend == "restricted":
        if not sys.platform.startswith("linux"):
            yield config.source.finding(backend, 'the restricted sandbox needs Linux; use "wasm"')
        elif importlib.util.find_spec("RestrictedPython") is None:
            yield config.source.finding(
                backend, "the restricted sandbox is not installed: pip install 'ptc-runtime[restricted]'"
            )
    if settings.backend == "native":
        for key in ("sdk_budget", "preflight"):
            if getattr(settings, key):
                yield config.source.finding(
                    (*path, "sandbox", key), "means nothing for the backend native, which has no programs", "warning"
                )
    elif settings.preflight:
        from ..preflight_checker import find_checker

        if find_checker() is None:
            yield config.source.finding(
                (*path, "sandbox", "preflight"),
                "the preflight needs the type checker ty, which is not installed: pip install 'ptc-runtime[preflight]'",
            )


def _log(config: Config) -> Iterator[Finding]:
    for key, path in (("path", config.log.path), ("spill", config.log.spill)):
        if path is None:
            continue
        if key == "path" and path.is_dir():
            yield config.source.finding(("log", key), f"{path} is a folder; name a file")
        elif not path.parent.is_dir():
            yield config.source.finding(("log", key), f"there is no folder {path.parent}; make it")
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            yield config.source.finding(("log", key), f"{path} cannot be written; change its permissions")


def _serve(config: Config) -> Iterator[Finding]:
    serve = config.serve
    token = serve.token.get_secret_value() if serve.token is not None else None
    if token is not None and len(token) < _SHORTEST_TOKEN:
        problem = f"is easily guessed; take at least {_SHORTEST_TOKEN} random characters"
        yield config.source.finding(("serve", "token"), problem, "warning")
    if serve.transport == "http":
        if importlib.util.find_spec("uvicorn") is None:
            yield config.source.finding(
                ("serve", "transport"), "HTTP needs uvicorn, which is not installed: pip install 'ptc-runtime[serve]'"
            )
        if not _is_loopback(serve.host):
            problem = "other machines can reach this address, and only the token keeps them out"
            yield config.source.finding(("serve", "host"), problem, "warning")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
