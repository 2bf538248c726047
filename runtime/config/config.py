"""A configuration that has been read: what a host is built from; defaults are filled in, and paths are absolute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from .profile import Profile
from .settings import ApprovalSettings, SandboxSettings, ServeSettings
from .source import Source

if TYPE_CHECKING:
    from ..mcp import HttpServer, StdioServer
    from ..policies.gate import PermissionRule
    from .errors import Finding
    from .source import KeyPath

__all__ = ["Config", "LogConfig", "ScopeConfig", "ToolsModule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Where the audit log goes.

    Attributes:
        path: the log file; `None` when no configuration file says where, not even by lying somewhere itself.
        durability: what a record survives, as for `Host`.
        spill: the folder of texts that are too long for a model; `None` shows them in full.
        spill_bytes: how many bytes of UTF-8 a result may have before it goes there.
    """

    path: Path | None = None
    durability: Literal["process", "power"] = "process"
    spill: Path | None = None
    spill_bytes: int = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsModule:
    """A module of tools, for `load_tools(source, settings)`.

    Attributes:
        source: the absolute path of a Python file, or the dotted name of a module.
        settings: what is set of its `tools` function.
    """

    source: str
    settings: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeConfig:
    """What holds for some clients or one agent alone.

    Attributes:
        sandbox: the settings of the sandbox that are different, by name.
        rules: the rules that stand before those of the whole file.
        allow: patterns; when given, only tools that fit one are there.
        deny: patterns; tools that fit one are not there.
        agent: for clients, the agent whose section holds for them as well.
    """

    sandbox: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rules: tuple[PermissionRule, ...] = ()
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What `load_config` gives. `Config()` is what an empty file means.

    Attributes:
        path: the file, as it was named; `None` without one.
        log: where the audit log goes.
        servers: the MCP servers by name, those of `mcp_json` files included.
        mcp_json: those files, each with the names of its servers.
        modules: the modules of Python tools.
        rules: the rules of the whole file; `profile` puts those of clients and agents before them.
        sandbox: the sandbox of whoever has none of their own.
        clients: what holds for clients, by the pattern of their name, in the order of the file.
        agents: what holds for agents, by name.
        approvals: how the user is asked.
        serve: how `ptc serve` is reached and presents itself.
        warnings: what is doubtful in the file, such as secrets in plain text.
        source: tells where in the file something stands, for findings.
    """

    path: Path | None = None
    log: LogConfig = field(default_factory=LogConfig)
    servers: Mapping[str, StdioServer | HttpServer] = field(default_factory=lambda: MappingProxyType({}))
    mcp_json: Mapping[Path, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    modules: tuple[ToolsModule, ...] = ()
    rules: tuple[PermissionRule, ...] = ()
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    clients: Mapping[str, ScopeConfig] = field(default_factory=lambda: MappingProxyType({}))
    agents: Mapping[str, ScopeConfig] = field(default_factory=lambda: MappingProxyType({}))
    approvals: ApprovalSettings = field(default_factory=ApprovalSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    warnings: tuple[Finding, ...] = ()
    source: Source = field(default_factory=Source, repr=False, compare=False)

    def sections(self) -> Iterator[tuple[KeyPath, ScopeConfig]]:
        """Yields the sections of clients and of agents, each with its key."""
        for kind, sections in (("clients", self.clients), ("agents", self.agents)):
            for name, section in sections.items():
                yield (kind, name), section

    def profile(self, *, client: str | None = None, agent: str | None = None) -> Profile:
        """Returns what holds for a client or an agent: its own sections over what the whole file says.

        Args:
            client: the name that an MCP client has given of itself. The first section of `clients` whose pattern fits
                counts; upper and lower case differ.
            agent: the name of the agent. When `None` it is the one that the client's section names, else the client's.

        The sandbox is the file's, with what the agent's section changes, and then the client's. Rules of the client
        stand first, then the agent's, then the file's. A tool must be allowed by, and not be denied by, both sections.
        """
        fitting = (
            section for pattern, section in self.clients.items() if client is not None and fnmatchcase(client, pattern)
        )
        of_client = next(fitting, None)
        if agent is None:
            agent = client if of_client is None or of_client.agent is None else of_client.agent
        of_agent = None if agent is None else self.agents.get(agent)
        sections = [section for section in (of_client, of_agent) if section is not None]
        changed: dict[str, Any] = {}
        for section in reversed(sections):
            changed |= section.sandbox
        return Profile(
            agent=agent,
            sandbox=self.sandbox.model_copy(update=changed),
            rules=(*(rule for section in sections for rule in section.rules), *self.rules),
            allow=tuple(section.allow for section in sections if section.allow is not None),
            deny=tuple(pattern for section in sections for pattern in section.deny),
        )
