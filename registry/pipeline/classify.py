"""Whether a call may overlap with others (contract D2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from ..events import close_stray
from ..values import JsonValue, Missing

if TYPE_CHECKING:
    from ..definition import ToolDefinition

__all__ = ["ExecutionMode", "classify"]

ExecutionMode: TypeAlias = Literal["parallel", "exclusive"]


def classify(definition: ToolDefinition | None, arguments: JsonValue | Missing) -> ExecutionMode:
    """Returns `parallel` only if the tool says exactly `True` for these arguments.

    Args:
        definition: what the call would execute; `None` for a name that is unknown, hidden or collapsed.
        arguments: the call's arguments, detached.
    """
    classifier = None if definition is None else definition.is_concurrency_safe
    if classifier is None or isinstance(arguments, Missing):
        return "exclusive"
    try:
        answer: object = classifier(arguments)
    except Exception:  # noqa: BLE001 - a tool that cannot say is not safe
        return "exclusive"
    close_stray(answer)
    return "parallel" if answer is True else "exclusive"
