"""The registry: which tools exist, who may see them, and what every call must pass."""

from __future__ import annotations

from .activation import ActivationContext, ModelSelection, ResolvedToolSet
from .approval import ApprovalOutcome, ApprovalRequest, ApprovalService
from .batch import DEFAULT_PARALLEL, check_batch, parse_arguments, positive_cap, run_batch
from .context import ScopedTools
from .decisions import (
    Accept,
    Allow,
    Ask,
    Block,
    Cancel,
    ContextMessage,
    Deny,
    ErrorInfo,
    PostToolDecision,
    PreToolDecision,
    ToolGuardDenial,
)
from .decorator import tool
from .define import define_raw_tool, define_tool
from .definition import ToolDefinition, ToolOutput, ToolRunContext, ToolSchema
from .errors import (
    AbortError,
    HarnessError,
    JsonSchemaError,
    ToolArgsError,
    ToolBatchExecutionError,
    ToolContextUnavailableError,
    ToolExecutorUnavailableError,
    ToolNotFoundError,
    ToolOutputError,
    ToolRegistrationError,
)
from .events import EventBus
from .execution import (
    BatchLog,
    ExecutionToken,
    ToolBatchInput,
    ToolBatchResult,
    ToolCall,
    ToolCallOutcome,
    ToolError,
    ToolExecution,
    ToolExecutionInput,
    ToolExecutionResult,
    ToolFailure,
    ToolSuccess,
)
from .executors import ExecutorDescription, ToolExecutor
from .guards import ToolGuard
from .lossless import LosslessError, freeze, from_json_text, materialise, same_json, snapshot, thaw, to_json_text
from .native import NativeExecutor
from .pipeline import HOST_CANCELLED, CallDecision, DispatchView, ExecutionMode, Pipeline, PipelineCall
from .registry import ToolRegistry
from .schema import assert_object_json_schema, assert_supported_json_schema, validate_args, validate_json_schema_value
from .scopes import Disposer, ScopeBinding, ScopeKey, SessionLog
from .service import ToolService
from .signals import Signal, SignalSource, fuse
from .values import MISSING, ContentBlock, ImageContent, JsonObject, JsonValue, Missing, TextContent, text_block
from .views import RUN_CODE, UNLISTED_TOOLS, Condition, ToolView, order_names

__all__ = [
    "DEFAULT_PARALLEL",
    "HOST_CANCELLED",
    "MISSING",
    "RUN_CODE",
    "UNLISTED_TOOLS",
    "AbortError",
    "Accept",
    "ActivationContext",
    "Allow",
    "ApprovalOutcome",
    "ApprovalRequest",
    "ApprovalService",
    "Ask",
    "BatchLog",
    "Block",
    "CallDecision",
    "Cancel",
    "Condition",
    "ContentBlock",
    "ContextMessage",
    "Deny",
    "DispatchView",
    "Disposer",
    "ErrorInfo",
    "EventBus",
    "ExecutionMode",
    "ExecutionToken",
    "ExecutorDescription",
    "HarnessError",
    "ImageContent",
    "JsonObject",
    "JsonSchemaError",
    "JsonValue",
    "LosslessError",
    "Missing",
    "ModelSelection",
    "NativeExecutor",
    "Pipeline",
    "PipelineCall",
    "PostToolDecision",
    "PreToolDecision",
    "ResolvedToolSet",
    "ScopeBinding",
    "ScopeKey",
    "ScopedTools",
    "SessionLog",
    "Signal",
    "SignalSource",
    "TextContent",
    "ToolArgsError",
    "ToolBatchExecutionError",
    "ToolBatchInput",
    "ToolBatchResult",
    "ToolCall",
    "ToolCallOutcome",
    "ToolContextUnavailableError",
    "ToolDefinition",
    "ToolError",
    "ToolExecution",
    "ToolExecutionInput",
    "ToolExecutionResult",
    "ToolExecutor",
    "ToolExecutorUnavailableError",
    "ToolFailure",
    "ToolGuard",
    "ToolGuardDenial",
    "ToolNotFoundError",
    "ToolOutput",
    "ToolOutputError",
    "ToolRegistrationError",
    "ToolRegistry",
    "ToolRunContext",
    "ToolSchema",
    "ToolService",
    "ToolSuccess",
    "ToolView",
    "assert_object_json_schema",
    "assert_supported_json_schema",
    "check_batch",
    "define_raw_tool",
    "define_tool",
    "freeze",
    "from_json_text",
    "fuse",
    "materialise",
    "order_names",
    "parse_arguments",
    "positive_cap",
    "run_batch",
    "same_json",
    "snapshot",
    "text_block",
    "thaw",
    "to_json_text",
    "tool",
    "validate_args",
    "validate_json_schema_value",
]
