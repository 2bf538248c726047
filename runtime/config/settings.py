"""What may stand in `ptc.toml`, as models: names, types, ranges and defaults, and nothing about where it stands."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, WithJsonSchema

from .references import from_environment

__all__ = [
    "AgentSettings",
    "ApprovalSettings",
    "Backend",
    "ClientSettings",
    "FileSettings",
    "LogSettings",
    "RuleSettings",
    "SandboxOverrides",
    "SandboxSettings",
    "ScopeSettings",
    "ServeSettings",
    "ServerSettings",
    "ToolsSettings",
]

_REFERENCE = {"type": "string", "pattern": r"^\$\{.+\}$"}


def _or_reference(kind: str, **bounds: Any) -> WithJsonSchema:
    """Says in the schema that a number or a bool may be a reference to the environment as well."""
    return WithJsonSchema({"anyOf": [{"type": kind, **bounds}, _REFERENCE]})


Text: TypeAlias = Annotated[str, Field(strict=True)]
Name: TypeAlias = Annotated[str, Field(strict=True, min_length=1)]
Flag: TypeAlias = Annotated[bool, Field(strict=True), BeforeValidator(from_environment), _or_reference("boolean")]
LONGEST_MS: Final = 2_147_483_647
"""The longest time that may be given, in milliseconds, about 24.8 days (contract K2)."""
Milliseconds: TypeAlias = Annotated[
    float,
    Field(strict=True, gt=0, le=LONGEST_MS, allow_inf_nan=False),
    BeforeValidator(from_environment),
    _or_reference("number", exclusiveMinimum=0, maximum=LONGEST_MS),
]
Count: TypeAlias = Annotated[
    int, Field(strict=True, gt=0), BeforeValidator(from_environment), _or_reference("integer", exclusiveMinimum=0)
]
Port: TypeAlias = Annotated[
    int,
    Field(strict=True, ge=0, le=65535),
    BeforeValidator(from_environment),
    _or_reference("integer", minimum=0, maximum=65535),
]
Memory: TypeAlias = Annotated[
    int, Field(strict=True, ge=32), BeforeValidator(from_environment), _or_reference("integer", minimum=32)
]
Output: TypeAlias = Annotated[
    int, Field(strict=True, ge=4), BeforeValidator(from_environment), _or_reference("integer", minimum=4)
]
Backend: TypeAlias = Literal["wasm", "restricted", "native"]


class _Table(BaseModel):
    """A table of the file: unknown keys are errors, and nothing changes afterwards."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True, allow_inf_nan=False
    )


class LogSettings(_Table):
    """The audit log."""

    path: Name | None = None
    """The log file; `ptc.db` beside the configuration when omitted."""
    durability: Literal["process", "power"] = "process"
    """What a record survives: the end of the process, or a power failure as well."""
    spill: Name | None = None
    """A folder for texts that are too long for the model; without it they are shown in full."""
    spill_bytes: Count = 50_000
    """How many bytes of UTF-8 a result may have before it goes to that folder."""


class ServerSettings(_Table):
    """One MCP server: a command that is started, or the URL of one that runs."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["command"]}, {"required": ["url"]}]})

    command: Name | None = None
    """The program to start: a name is looked up on PATH, and a path is relative to this file."""
    args: tuple[Text, ...] = ()
    """Its arguments."""
    env: dict[str, Text] = Field(default_factory=dict)
    """Variables of its environment, beside the few that every program needs."""
    cwd: Name | None = None
    """Its working directory, relative to this file; the folder of this file when omitted."""
    url: Name | None = None
    """The address of a server of streamable HTTP."""
    headers: dict[str, Text] = Field(default_factory=dict)
    """HTTP headers of each request."""
    prefix: Text | None = None
    """What its tools' names begin with; the server's name and `_` when omitted."""
    timeout_ms: Milliseconds = 60_000
    """How many milliseconds a call may take."""
    connect_ms: Milliseconds = 30_000
    """How many milliseconds the start may take."""


class ToolsSettings(_Table):
    """Tools that are Python functions."""

    modules: tuple[Name, ...] = ()
    """Python files, relative to this file, or names of modules, that define tools."""
    settings: dict[str, dict[str, Text]] = Field(default_factory=dict)
    """What is set of a module's `tools` function: a table for each module, under the module as `modules` names it."""


class RuleSettings(_Table):
    """A rule: of those that fit a call, the first one counts."""

    tools: Name
    """A pattern for names of tools, with `*`, `?` and `[...]`."""
    decision: Literal["allow", "deny", "ask"]
    """Whether the call runs, does not run, or runs if the user agrees."""
    reason: Name | None = None
    """Why; the model reads it when the call is denied, and the user when asked."""
    read_only: Flag | None = None
    """Fits only tools that say of themselves that they change nothing (true), or that do not (false)."""
    destructive: Flag | None = None
    """Fits only tools that may delete or overwrite; a tool that says nothing counts as one."""
    idempotent: Flag | None = None
    """Fits only tools of which a second call changes nothing more."""
    open_world: Flag | None = None
    """Fits only tools that reach outside; a tool that says nothing counts as one."""


class SandboxOverrides(_Table):
    """What some clients or agents have of the sandbox that others do not."""

    backend: Backend | None = None
    """Where programs run; `native` offers the tools themselves in place of programs."""
    compute_ms: Milliseconds | None = None
    """How many milliseconds a program may compute."""
    wall_ms: Milliseconds | None = None
    """How many milliseconds a program may take in all, its calls included."""
    memory_mib: Memory | None = None
    """How much memory a program may have, in MiB."""
    output_bytes: Output | None = None
    """How many bytes a program may print and return."""
    max_parallel_sub_calls: Count | None = None
    """How many tools of one program may run at once."""
    sdk_budget: Count | None = None
    """The most tokens that the text of the tools may take; beyond it the model gets an index and looks tools up."""
    preflight: Flag | None = None
    """Whether programs are checked against the types of the tools before they run."""


class SandboxSettings(_Table):
    """Where programs run, and within which limits."""

    backend: Backend = "wasm"
    """Where programs run; `native` offers the tools themselves in place of programs."""
    compute_ms: Milliseconds = 60_000
    """How many milliseconds a program may compute."""
    wall_ms: Milliseconds = 600_000
    """How many milliseconds a program may take in all, its calls included."""
    memory_mib: Memory = 512
    """How much memory a program may have, in MiB."""
    output_bytes: Output = 64 << 20
    """How many bytes a program may print and return."""
    max_parallel_sub_calls: Count = 10
    """How many tools of one program may run at once."""
    sdk_budget: Count | None = None
    """The most tokens that the text of the tools may take; beyond it the model gets an index and looks tools up."""
    preflight: Flag = False
    """Whether programs are checked against the types of the tools before they run."""


class ScopeSettings(_Table):
    """What holds for some clients or agents alone."""

    sandbox: SandboxOverrides = SandboxOverrides()
    """What of the sandbox is different."""
    rules: tuple[RuleSettings, ...] = ()
    """Rules that stand before those of the whole file."""
    allow: tuple[Name, ...] | None = None
    """Patterns: only tools that fit one are there."""
    deny: tuple[Name, ...] = ()
    """Patterns: tools that fit one are not there."""


class AgentSettings(ScopeSettings):
    """What holds for one agent alone."""


class ClientSettings(ScopeSettings):
    """What holds for the MCP clients whose name fits. The name is what a client says of itself; it proves nothing."""

    agent: Name | None = None
    """The agent whose section holds for them as well; the one of the client's name when omitted."""


class ApprovalSettings(_Table):
    """How the user is asked."""

    timeout_ms: Milliseconds = 300_000
    """How many milliseconds the user has for an answer; then the call is denied."""
    channel: Literal["elicitation", "none"] = "elicitation"
    """`elicitation` asks through the client; `none` asks nobody, so that what needs approval is denied."""


class ServeSettings(_Table):
    """How `ptc serve` is reached, and how it presents itself."""

    transport: Literal["stdio", "http"] = "stdio"
    """`stdio` for a client that starts it, `http` for streamable HTTP."""
    host: Name = "127.0.0.1"
    """The address that HTTP listens on."""
    port: Port = 8765
    """The port that HTTP listens on; 0 takes any that is free."""
    token: Annotated[SecretStr, Field(min_length=1)] | None = None
    """The bearer token that clients must have; one is made and shown at the start when omitted."""
    name: Name = "ptc"
    """What the server is called."""
    instructions: Text | None = None
    """What the model is told before the text of the tools."""


class FileSettings(_Table):
    """The whole file."""

    log: LogSettings = LogSettings()
    """The audit log."""
    servers: dict[str, ServerSettings] = Field(default_factory=dict)
    """MCP servers whose tools are offered, by name."""
    mcp_json: tuple[Name, ...] = ()
    """Files in the usual `mcpServers` format, relative to this file, whose servers are offered too."""
    tools: ToolsSettings = ToolsSettings()
    """Tools that are Python functions."""
    rules: tuple[RuleSettings, ...] = ()
    """Which calls run, which do not, and about which the user is asked."""
    sandbox: SandboxSettings = SandboxSettings()
    """Where programs run, and within which limits."""
    clients: dict[str, ClientSettings] = Field(default_factory=dict)
    """What holds for the clients whose name fits a pattern; the first section that fits counts."""
    agents: dict[str, AgentSettings] = Field(default_factory=dict)
    """What holds for the agent of that name."""
    approvals: ApprovalSettings = ApprovalSettings()
    """How the user is asked."""
    serve: ServeSettings = ServeSettings()
    """How `ptc serve` is reached, and how it presents itself."""
