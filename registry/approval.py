"""The seam to an approval service: what the pipeline asks, and what may be answered (contract C16 to C21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .scopes import ScopeKey
    from .signals import Signal

__all__ = ["ApprovalOutcome", "ApprovalRequest", "ApprovalService"]

ApprovalOutcome: TypeAlias = Literal["allowed-once", "rejected", "cancelled", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ApprovalRequest:
    """One question to the user (contract C19).

    Attributes:
        agent: whose call it is.
        tool_name: the tool.
        call_id: the call.
        reason: the audited text, if the policy gave one.
        display_reason: the text for the prompt by locale, if the policy gave one; contains `en`.
        signal: fires when the call is given up.
    """

    agent: ScopeKey
    tool_name: str
    call_id: str
    reason: str | None = None
    display_reason: Mapping[str, str] | None = None
    signal: Signal


class ApprovalService(Protocol):
    """Whoever can put a question to the user."""

    async def request(self, request: ApprovalRequest) -> ApprovalOutcome:
        """Asks, and returns the answer; `unavailable` when nobody can be asked."""
        ...
