"""`ptc.toml`: servers, tools, policies and limits in one file, whose mistakes are told with their lines.

[servers.files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "."]

[servers.issues]
url = "https://issues.example.org/mcp"
headers = { Authorization = "Bearer ${ISSUES_TOKEN}" }

[[rules]]                           # of the rules that fit a call, the first one counts
tools = "*"
read_only = true
decision = "allow"

[[rules]]
tools = "files_*"
decision = "ask"
reason = "it changes files"

[[rules]]
tools = "*"
decision = "deny"

[clients."untrusted-*"]
deny = ["files_*"]
sandbox = { compute_ms = 5_000 }
"""

from __future__ import annotations

from .check import check_config
from .config import Config, LogConfig, ScopeConfig, ToolsModule
from .errors import ConfigError, ConfigSupportError, Finding
from .load import load_config
from .profile import Profile
from .schema import config_schema
from .settings import ApprovalSettings, SandboxSettings, ServeSettings

__all__ = [
    "ApprovalSettings",
    "Config",
    "ConfigError",
    "ConfigSupportError",
    "Finding",
    "LogConfig",
    "Profile",
    "SandboxSettings",
    "ScopeConfig",
    "ServeSettings",
    "ToolsModule",
    "check_config",
    "config_schema",
    "load_config",
]
