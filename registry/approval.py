"""The seam to an approval service: what the pipeline asks, and what may be answered (contract C16 to C21).

A host's own service puts the question to the listeners of the waterfall `approval/request` (contract K15).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from .listening import Next
    from .scopes import ScopeKey
    from .signals import Signal

__all__ = ["APPROVAL_REQUEST", "ApprovalListener", "ApprovalOutcome", "ApprovalRequest", "ApprovalService"]

APPROVAL_REQUEST: Final = "approval/request"
"""The waterfall that puts a question to whoever can answer it."""

ApprovalOutcome: TypeAlias = Literal["allowed-once", "rejected", "cancelled", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ApprovalRequest:
    """One question to the user (contract C19).

    Attributes:
        agent: whose call it is.
        tool_name: the tool.
        call_id: the call; `None` when the question is about none.
        reason: the audited text, if the policy gave one.
        display_reason: the text for the prompt by locale, if the policy gave one; contains `en`.
        signal: fires when the call is given up.
    """

    agent: ScopeKey
    tool_name: str
    call_id: str | None = None
    reason: str | None = None
    display_reason: Mapping[str, str] | None = None
    signal: Signal


class ApprovalListener(Protocol):
    """Listens to `approval/request`: puts the question to whoever can answer it (contract K15).

    `await next()` gives the answer of the listeners after it, and `unavailable` when there are none. It is cancelled
    when the request's signal fires; a listener that waits in a thread should let go of it then
    (`abandon_on_cancel=True`).
    """

    def __call__(
        self,
        request: ApprovalRequest,
        next: Next[ApprovalOutcome],  # noqa: A002 - the contract's name
        /,
    ) -> Awaitable[ApprovalOutcome]: ...


class ApprovalService(Protocol):
    """Whoever can put a question to the user."""

    async def request(self, request: ApprovalRequest) -> ApprovalOutcome:
        """Asks, and returns the answer; `unavailable` when nobody can be asked."""
        ...
