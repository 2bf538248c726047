"""What listeners and guards answer: may this call run, and may its result stand.

before  Allow | Deny | Ask | Cancel     from `tools/pre-execute` (contract C14 to C16)
        None | str | ToolGuardDenial    from a guard (contract A51)
after   Accept | Block                  from `tools/post-execute` (contract C48 to C51)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .values import MISSING, ContentBlock, JsonValue, Missing

__all__ = [
    "Accept",
    "Allow",
    "Ask",
    "Block",
    "Cancel",
    "ContextMessage",
    "Deny",
    "ErrorInfo",
    "PostToolDecision",
    "PreToolDecision",
    "ToolGuardDenial",
]


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """A failure's identity: `name` and `code`, and a `reason` that is recorded, not shown to models (C63, K19)."""

    name: str
    code: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A message that a tool or policy adds to the conversation after the batch (contract C66, I16).

    Attributes:
        content: the content blocks of the message.
        source: who speaks, as a JSON object, for example `{"kind": "plugin", "plugin": "tools-ptc"}`.
        role: whose message it is for the model.
    """

    content: Sequence[ContentBlock]
    source: Mapping[str, JsonValue]
    role: str = "user"


@dataclass(frozen=True, slots=True)
class Allow:
    """Lets the call go on to the guards."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Refuses the call; the model reads `Error: <reason>` (contract C14)."""

    reason: str
    info: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """Asks the approval service (contract C16).

    Attributes:
        reason: the audited text.
        display_reason: the same for the prompt, by locale; must contain `en`.
    """

    reason: str | None = None
    display_reason: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ends the call as cancelled before dispatch, which is not a policy denial (contract C15, ruling 2)."""


PreToolDecision: TypeAlias = Allow | Deny | Ask | Cancel


@dataclass(frozen=True, slots=True)
class ToolGuardDenial:
    """A guard's refusal with an identity of its own (contract A51)."""

    reason: str
    info: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class Accept:
    """Lets the result stand, or replaces its content or its value, never both (contract C48 to C50)."""

    content: Sequence[ContentBlock] | Missing = MISSING
    value: JsonValue | Missing = MISSING
    additional_contexts: Sequence[ContextMessage] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Turns the result into a failure whose content is `feedback` (contract C51)."""

    feedback: Sequence[ContentBlock]
    info: ErrorInfo | None = None
    additional_contexts: Sequence[ContextMessage] = ()


PostToolDecision: TypeAlias = Accept | Block
