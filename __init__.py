"""Programmatic tool calling: a model's program calls your tools from a sandbox, every call guarded and on record.

    import ptc

    @ptc.tool(concurrency_safe=True)
    async def get_price(item: str) -> float:
        '''Look up the price of one item.'''
        return 9.5

    async def main():
        async with ptc.Host(log="ptc.db") as host:
            host.tools.register(get_price)
            agent = host.agent("support", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
            prompt, schemas = agent.describe()      # for the model: the typed text, and run_code's schema
            batch = await agent.execute([ptc.ToolCall(name="run_code", arguments=arguments_of_the_model)])

What is imported from here is the public face, with `ptc.mcp` (tools of MCP servers) and `ptc.providers` (what providers
of models send and take); what lies in the packages below it is reachable and not promised.
"""

from __future__ import annotations

import importlib as _importlib
import typing as _typing

from .registry import (
    MISSING,
    AbortError,
    Accept,
    ActivationContext,
    Allow,
    ApprovalListener,
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalService,
    Ask,
    BatchLog,
    Block,
    CallCard,
    Cancel,
    ChangeListener,
    Condition,
    ContentBlock,
    ContextMessage,
    Deny,
    DiffCallCard,
    DiffResultCard,
    DispatchView,
    Disposer,
    ErrorInfo,
    ExecuteListener,
    FileDiff,
    GenericCallCard,
    GenericResultCard,
    HarnessError,
    ImageContent,
    JsonObject,
    JsonSchemaError,
    JsonValue,
    Location,
    LosslessError,
    ModelSelection,
    Next,
    NumberedLine,
    PostExecuteListener,
    PostToolDecision,
    PreExecuteListener,
    PreToolDecision,
    ReadCard,
    RecordedResult,
    ResolvedToolSet,
    ResultCard,
    ResultListener,
    ScopedTools,
    ScopeKey,
    SearchFile,
    SearchMatch,
    SearchMatchesCard,
    SearchPathsCard,
    Signal,
    SignalSource,
    TerminalCallCard,
    TerminalResultCard,
    TextContent,
    ToolAnnotations,
    ToolArgsError,
    ToolBatchExecutionError,
    ToolBatchInput,
    ToolBatchResult,
    ToolCall,
    ToolCallOutcome,
    ToolContextUnavailableError,
    ToolDefinition,
    ToolExecution,
    ToolExecutionResult,
    ToolExecutorUnavailableError,
    ToolFailure,
    ToolGuard,
    ToolGuardDenial,
    ToolNotFoundError,
    ToolOutput,
    ToolOutputError,
    ToolRegistrationError,
    ToolRunContext,
    ToolSchema,
    ToolSuccess,
    ToolTimeoutError,
    WebFetchCard,
    WebSearchCard,
    WebSource,
    define_raw_tool,
    define_tool,
    text_block,
    tool,
)
from .runtime.agent import Agent, AgentDescription
from .runtime.approving import TerminalApprover
from .runtime.discovery import Discovery
from .runtime.dispatch import DispatchLogEntry
from .runtime.errors import CodeRunFailedError, ProgramRefusedError, UnknownLanguageError
from .runtime.executor import BindableExecutor, NativeExecutor, PtcExecutor
from .runtime.host import Host
from .runtime.jobs import (
    JobAccessError,
    JobChange,
    JobContext,
    JobError,
    JobFunction,
    JobHandle,
    JobKill,
    JobLimitError,
    JobOutcome,
    JobReading,
    JobRun,
    Jobs,
    JobSnapshot,
    JobStatus,
    RunningJob,
    UnknownJobError,
)
from .runtime.listening import DispatchLogListener
from .runtime.log import (
    Anchor,
    AnchorError,
    EventStore,
    LogUnavailableError,
    SqliteEventStore,
    Verification,
    anchor_log,
    read_anchors,
    verify_log,
)
from .runtime.policies.approval import ApprovalPolicy, Approvals
from .runtime.policies.gate import PermissionGate, PermissionRule
from .runtime.policies.presets import PermissionPresets, Preset
from .runtime.policies.redaction import RedactionPolicy
from .runtime.policies.spill import SpillPolicy
from .runtime.policies.timeout import TimeoutPolicy
from .runtime.preflight import Preflight, PreflightReport, PreflightUnavailableError
from .runtime.spill_store import LocalSpillStore, SpilledPart, SpillStore, SpillText, UnknownLocatorError
from .sandbox.restricted import RestrictedSandbox
from .sandbox.seam import (
    BindingCall,
    BindingError,
    FailureKind,
    Guarantees,
    Sandbox,
    SandboxError,
    SandboxMisuseError,
    SandboxRequest,
    SandboxResult,
    SandboxUnavailableError,
)
from .sandbox.wasm import WasmSandbox

if _typing.TYPE_CHECKING:
    from types import ModuleType

    from .runtime import mcp as mcp
    from .runtime import providers as providers

__all__ = [
    "MISSING",
    "AbortError",
    "Accept",
    "ActivationContext",
    "Agent",
    "AgentDescription",
    "Allow",
    "Anchor",
    "AnchorError",
    "ApprovalListener",
    "ApprovalOutcome",
    "ApprovalPolicy",
    "ApprovalRequest",
    "ApprovalService",
    "Approvals",
    "Ask",
    "BatchLog",
    "BindableExecutor",
    "BindingCall",
    "BindingError",
    "Block",
    "CallCard",
    "Cancel",
    "ChangeListener",
    "CodeRunFailedError",
    "Condition",
    "ContentBlock",
    "ContextMessage",
    "Deny",
    "DiffCallCard",
    "DiffResultCard",
    "Discovery",
    "DispatchLogEntry",
    "DispatchLogListener",
    "DispatchView",
    "Disposer",
    "ErrorInfo",
    "EventStore",
    "ExecuteListener",
    "FailureKind",
    "FileDiff",
    "GenericCallCard",
    "GenericResultCard",
    "Guarantees",
    "HarnessError",
    "Host",
    "ImageContent",
    "JobAccessError",
    "JobChange",
    "JobContext",
    "JobError",
    "JobFunction",
    "JobHandle",
    "JobKill",
    "JobLimitError",
    "JobOutcome",
    "JobReading",
    "JobRun",
    "JobSnapshot",
    "JobStatus",
    "Jobs",
    "JsonObject",
    "JsonSchemaError",
    "JsonValue",
    "LocalSpillStore",
    "Location",
    "LogUnavailableError",
    "LosslessError",
    "ModelSelection",
    "NativeExecutor",
    "Next",
    "NumberedLine",
    "PermissionGate",
    "PermissionPresets",
    "PermissionRule",
    "PostExecuteListener",
    "PostToolDecision",
    "PreExecuteListener",
    "PreToolDecision",
    "Preflight",
    "PreflightReport",
    "PreflightUnavailableError",
    "Preset",
    "ProgramRefusedError",
    "PtcExecutor",
    "ReadCard",
    "RecordedResult",
    "RedactionPolicy",
    "ResolvedToolSet",
    "RestrictedSandbox",
    "ResultCard",
    "ResultListener",
    "RunningJob",
    "Sandbox",
    "SandboxError",
    "SandboxMisuseError",
    "SandboxRequest",
    "SandboxResult",
    "SandboxUnavailableError",
    "ScopeKey",
    "ScopedTools",
    "SearchFile",
    "SearchMatch",
    "SearchMatchesCard",
    "SearchPathsCard",
    "Signal",
    "SignalSource",
    "SpillPolicy",
    "SpillStore",
    "SpillText",
    "SpilledPart",
    "SqliteEventStore",
    "TerminalApprover",
    "TerminalCallCard",
    "TerminalResultCard",
    "TextContent",
    "TimeoutPolicy",
    "ToolAnnotations",
    "ToolArgsError",
    "ToolBatchExecutionError",
    "ToolBatchInput",
    "ToolBatchResult",
    "ToolCall",
    "ToolCallOutcome",
    "ToolContextUnavailableError",
    "ToolDefinition",
    "ToolExecution",
    "ToolExecutionResult",
    "ToolExecutorUnavailableError",
    "ToolFailure",
    "ToolGuard",
    "ToolGuardDenial",
    "ToolNotFoundError",
    "ToolOutput",
    "ToolOutputError",
    "ToolRegistrationError",
    "ToolRunContext",
    "ToolSchema",
    "ToolSuccess",
    "ToolTimeoutError",
    "UnknownJobError",
    "UnknownLanguageError",
    "UnknownLocatorError",
    "Verification",
    "WasmSandbox",
    "WebFetchCard",
    "WebSearchCard",
    "WebSource",
    "anchor_log",
    "define_raw_tool",
    "define_tool",
    "read_anchors",
    "text_block",
    "tool",
    "verify_log",
]

_ON_DEMAND = ("mcp", "providers")
"""Modules that not every host needs: loaded when they are first asked for."""


def __getattr__(name: str) -> ModuleType:
    if name in _ON_DEMAND:
        return _importlib.import_module(f".runtime.{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
