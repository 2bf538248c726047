"""One invocation: every stage between a call and its result, in the order of contract C1."""

from __future__ import annotations

from .call import PipelineCall
from .classify import ExecutionMode
from .dispatch_view import DispatchView
from .pipeline import Pipeline
from .shelter import HOST_CANCELLED
from .state import CallDecision

__all__ = ["HOST_CANCELLED", "CallDecision", "DispatchView", "ExecutionMode", "Pipeline", "PipelineCall"]
