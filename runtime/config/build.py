"""What a file says, made into what a host is built from: servers, rules, and paths that are relative to the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...registry import Allow, Ask, Deny, ErrorInfo, ToolAnnotations
from ..policies.gate import PermissionRule, RuleDecision
from .config import Config, LogConfig, ScopeConfig, ToolsModule
from .validate import did_you_mean

if TYPE_CHECKING:
    from ..mcp import HttpServer, StdioServer
    from .errors import Finding, Severity
    from .settings import FileSettings, RuleSettings, ScopeSettings, ServerSettings
    from .source import KeyPath, Source

__all__ = ["Builder"]

_LOG: Final = "ptc.db"
_COMMON: Final = ("prefix", "timeout_ms", "connect_ms")
_CLAIMS: Final = ("read_only", "destructive", "idempotent", "open_world")


@dataclass(slots=True)
class Builder:
    """Makes a `Config` of the settings of one file, and gathers what is wrong with them.

    Attributes:
        source: the file's name and lines.
        folder: where it lies; relative paths begin there.
        environment: the variables that references in other files are replaced with.
        findings: what is wrong so far.
        imported: the files of servers that have been read, each with the names of its servers.
    """

    source: Source
    folder: Path
    environment: Mapping[str, str]
    findings: list[Finding] = field(default_factory=list)
    imported: dict[Path, tuple[str, ...]] = field(default_factory=dict)

    def build(self, path: Path, settings: FileSettings) -> Config:
        """Returns the configuration, as far as it can be made; `findings` tells of the rest."""
        log = settings.log
        return Config(
            path=path,
            log=LogConfig(
                path=self._path(log.path or _LOG, ("log", "path")),
                durability=log.durability,
                spill=None if log.spill is None else self._path(log.spill, ("log", "spill")),
                spill_bytes=log.spill_bytes,
            ),
            servers=self._servers(settings),
            mcp_json=self.imported,
            modules=self._modules(settings),
            rules=self._rules(settings.rules, ()),
            sandbox=settings.sandbox,
            clients={
                name: self._scope(section, ("clients", name), section.agent, settings.agents)
                for name, section in settings.clients.items()
            },
            agents={name: self._scope(section, ("agents", name)) for name, section in settings.agents.items()},
            approvals=settings.approvals,
            serve=settings.serve,
            source=self.source,
        )

    def _find(self, path: KeyPath, problem: str, severity: Severity = "error") -> None:
        self.findings.append(self.source.finding(path, problem, severity))

    def _path(self, text: str, path: KeyPath) -> Path:
        """Returns a path of the file as an absolute one."""
        if "\0" in text:
            self._find(path, "a path must not have NUL characters")
            return self.folder
        try:
            return Path(self.folder, Path(text).expanduser()).absolute()
        except RuntimeError:
            self._find(path, 'the home directory of "~" is not known; write the path in full')
            return self.folder

    # Servers

    def _servers(self, settings: FileSettings) -> dict[str, StdioServer | HttpServer]:
        servers: dict[str, StdioServer | HttpServer] = {}
        for name, section in settings.servers.items():
            server = self._server(section, ("servers", name))
            if not name:
                self._find(("servers", name), "the name of a server must not be empty")
            elif server is not None:
                servers[name] = server
        for place, file in enumerate(settings.mcp_json):
            self._imported(file, ("mcp_json", place), servers)
        return servers

    def _server(self, section: ServerSettings, path: KeyPath) -> StdioServer | HttpServer | None:
        from ..mcp import HttpServer, StdioServer

        given = section.model_fields_set
        if (section.command is None) == (section.url is None):
            both = "has both command and url; keep the one that it is reached by"
            self._find(path, both if section.command else "needs a command that starts it, or the url where it runs")
            return None
        stray = ("headers",) if section.url is None else ("args", "env", "cwd")
        for key in stray:
            if key in given:
                belongs = "a server that has a url" if section.url is None else "a server that is started by a command"
                self._find((*path, key), f"belongs to {belongs}")
        common: dict[str, Any] = {key: getattr(section, key) for key in _COMMON}
        try:
            if section.url is not None:
                return HttpServer(url=section.url, headers=section.headers, **common)
            assert section.command is not None
            command = section.command
            if "/" in command or "\\" in command or command.startswith("~"):
                command = str(self._path(command, (*path, "command")))
            cwd = self._path(section.cwd or ".", (*path, "cwd"))
            return StdioServer(command=command, args=section.args, env=section.env or None, cwd=cwd, **common)
        except (TypeError, ValueError) as error:
            # The message of the dataclass begins with the field, where it is about one.
            key, _colon, _rest = str(error).partition(" ")
            key = key.rstrip(":")
            self._find((*path, key) if key in given else path, str(error).removeprefix(key).lstrip(": "))
            return None

    def _imported(self, file: str, path: KeyPath, servers: dict[str, StdioServer | HttpServer]) -> None:
        """Adds the servers of a file in the format that MCP clients share."""
        from ..mcp import McpConfigError, read_mcp_servers

        before = len(self.findings)
        whole = self._path(file, path)
        if len(self.findings) > before:
            return
        try:
            found = read_mcp_servers(whole, environ=self.environment)
        except McpConfigError as error:
            for line in str(error).splitlines():
                self._find(path, line)
            return
        self.imported[whole] = tuple(found)
        for name, server in found.items():
            if name in servers:
                self._find(path, f'server "{name}" of {file} is there already; remove one of the two, or rename it')
            else:
                servers[name] = server

    # Tools

    def _modules(self, settings: FileSettings) -> tuple[ToolsModule, ...]:
        named = settings.tools.modules
        for name in settings.tools.settings:
            if name not in named:
                listed = did_you_mean(name, named) or "; name it there, or remove its settings"
                self._find(("tools", "settings", name), f"tools.modules has no such module{listed}")
        modules: dict[str, ToolsModule] = {}
        for place, module in enumerate(named):
            path: KeyPath = ("tools", "modules", place)
            is_file = module.endswith(".py") or "/" in module or "\\" in module
            source = str(self._path(module, path)) if is_file else module
            if source in modules:
                self._find(path, "this module is in the list already")
            modules[source] = ToolsModule(source=source, settings=settings.tools.settings.get(module, {}))
        return tuple(modules.values())

    # Policy

    def _scope(
        self,
        section: ScopeSettings,
        path: KeyPath,
        agent: str | None = None,
        agents: Mapping[str, object] | None = None,
    ) -> ScopeConfig:
        if not path[-1]:
            self._find(path, "the name of a section must not be empty")
        if agent is not None and agents is not None and agent not in agents:
            near = did_you_mean(agent, list(agents)) or f'; add a section [agents."{agent}"], or remove the key'
            self._find((*path, "agent"), f"there is no section of that agent{near}")
        return ScopeConfig(
            sandbox=section.sandbox.model_dump(exclude_unset=True, exclude_none=True),
            rules=self._rules(section.rules, path),
            allow=section.allow,
            deny=section.deny,
            agent=agent,
        )

    def _rules(self, rules: tuple[RuleSettings, ...], path: KeyPath) -> tuple[PermissionRule, ...]:
        return tuple(self._rule(rule, (*path, "rules", place)) for place, rule in enumerate(rules))

    def _rule(self, rule: RuleSettings, path: KeyPath) -> PermissionRule:
        claims = {claim: getattr(rule, claim) for claim in _CLAIMS if getattr(rule, claim) is not None}
        return PermissionRule(
            rule.tools,
            self._decision(rule, path),
            annotations=ToolAnnotations(**claims) if claims else None,
        )

    def _decision(self, rule: RuleSettings, path: KeyPath) -> RuleDecision:
        """Returns what a rule says; a denial has the rule's place for the record, which no model sees."""
        if rule.decision == "allow":
            return Allow()
        if rule.decision == "ask":
            return Ask(rule.reason)
        where = replace(self.source, file=Path(self.source.file).name)
        place = str(where.finding(path, f'the rule for tools "{rule.tools}"'))
        reason = rule.reason or "the configuration does not permit this call"
        return Deny(reason, ErrorInfo("PermissionError", "PERMISSION_DENIED", reason=place))
