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

What is imported from here is the public face; what lies in the packages below it is reachable and not promised.
"""

from __future__ import annotations

from .registry import (
    MISSING,
    AbortError,
    Accept,
    Allow,
    ApprovalRequest,
    ApprovalService,
    Ask,
    Block,
    Cancel,
    ContextMessage,
    Deny,
    ErrorInfo,
    HarnessError,
    JsonSchemaError,
    JsonValue,
    LosslessError,
    ScopedTools,
    Signal,
    SignalSource,
    ToolArgsError,
    ToolBatchExecutionError,
    ToolBatchResult,
    ToolCall,
    ToolCallOutcome,
    ToolContextUnavailableError,
    ToolDefinition,
    ToolExecution,
    ToolExecutionResult,
    ToolExecutorUnavailableError,
    ToolFailure,
    ToolGuardDenial,
    ToolNotFoundError,
    ToolOutput,
    ToolOutputError,
    ToolRegistrationError,
    ToolRunContext,
    ToolSchema,
    ToolSuccess,
    define_raw_tool,
    define_tool,
    text_block,
    tool,
)
from .runtime.agent import Agent, AgentDescription
from .runtime.dispatch import DispatchLogEntry
from .runtime.errors import CodeRunFailedError
from .runtime.executor import NativeExecutor, PtcExecutor
from .runtime.host import Host
from .runtime.log import EventStore, LogUnavailableError, SqliteEventStore
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

__all__ = [
    "MISSING",
    "AbortError",
    "Accept",
    "Agent",
    "AgentDescription",
    "Allow",
    "ApprovalRequest",
    "ApprovalService",
    "Ask",
    "BindingCall",
    "BindingError",
    "Block",
    "Cancel",
    "CodeRunFailedError",
    "ContextMessage",
    "Deny",
    "DispatchLogEntry",
    "ErrorInfo",
    "EventStore",
    "FailureKind",
    "Guarantees",
    "HarnessError",
    "Host",
    "JsonSchemaError",
    "JsonValue",
    "LogUnavailableError",
    "LosslessError",
    "NativeExecutor",
    "PtcExecutor",
    "Sandbox",
    "SandboxError",
    "SandboxMisuseError",
    "SandboxRequest",
    "SandboxResult",
    "SandboxUnavailableError",
    "ScopedTools",
    "Signal",
    "SignalSource",
    "SqliteEventStore",
    "ToolArgsError",
    "ToolBatchExecutionError",
    "ToolBatchResult",
    "ToolCall",
    "ToolCallOutcome",
    "ToolContextUnavailableError",
    "ToolDefinition",
    "ToolExecution",
    "ToolExecutionResult",
    "ToolExecutorUnavailableError",
    "ToolFailure",
    "ToolGuardDenial",
    "ToolNotFoundError",
    "ToolOutput",
    "ToolOutputError",
    "ToolRegistrationError",
    "ToolRunContext",
    "ToolSchema",
    "ToolSuccess",
    "WasmSandbox",
    "define_raw_tool",
    "define_tool",
    "text_block",
    "tool",
]
