"""The seam to an approval service: what the pipeline asks, and what may be answered (contract C16 to C21).

A host's own service puts the question to the listeners of the waterfall `approval/request` (contract K15).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, TypeAlias, cast

from .values import MISSING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from .listening import Next
    from .scopes import ScopeKey
    from .signals import Signal
    from .values import JsonValue, Missing

__all__ = [
    "APPROVAL_REQUEST",
    "ApprovalListener",
    "ApprovalOutcome",
    "ApprovalRequest",
    "ApprovalService",
    "approval_answer",
    "approval_detail",
]

APPROVAL_REQUEST: Final = "approval/request"
"""The waterfall that puts a question to whoever can answer it."""

ApprovalOutcome: TypeAlias = Literal["allowed-once", "rejected", "cancelled", "unavailable"]

_MOST_DETAIL: Final = 1_000


class _Answer(str):
    """An outcome that says more. It equals the plain outcome, so whoever compares answers need not know of it."""

    __slots__ = ("detail",)

    detail: str | None

    def __new__(cls, outcome: str, detail: str | None = None) -> Self:
        answer = super().__new__(cls, outcome)
        answer.detail = detail
        return answer


def approval_answer(outcome: ApprovalOutcome, detail: str) -> ApprovalOutcome:
    """Returns an answer to `approval/request` that says why, or by whom and how it was given.

        return ptc.approval_answer("unavailable", "the chat is closed until Monday")
        return ptc.approval_answer("rejected", "ask for the invoice first")

    The record of the answer has the detail (`approval/decided`). Where the call is not allowed, the model has it too,
    behind what it is told anyway (contract C20): `the user rejected tool "pay": ask for the invoice first`, and for
    `unavailable` `tool "pay" requires approval, but the chat is closed until Monday`.

    Args:
        outcome: the answer.
        detail: one sentence without a full stop, in words that a model may read; what exceeds 1,000 characters is cut.

    Raises:
        ValueError: the detail is blank, or no Unicode text (it has lone surrogates).
        TypeError: outcome or detail is no text.
    """
    for name, given in (("outcome", outcome), ("detail", detail)):
        if not isinstance(given, str):
            raise TypeError(f"{name} must be a string, not {type(given).__name__}")
    detail = detail.strip()
    if not detail:
        raise ValueError(f"the detail of an approval answer is blank; answer {outcome!r} alone then")
    try:
        detail.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"the detail of an approval answer has a lone surrogate at {error.start}") from None
    if len(detail) > _MOST_DETAIL:
        detail = detail[: _MOST_DETAIL - 1] + "…"
    return cast("ApprovalOutcome", _Answer(outcome, detail))


def approval_detail(answer: object) -> str | None:
    """Returns the detail of an answer that `approval_answer` made, and `None` for any other."""
    return answer.detail if isinstance(answer, _Answer) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ApprovalRequest:
    """One question to the user (contract C19).

    Attributes:
        agent: whose call it is.
        tool_name: the tool.
        call_id: the call; `None` when the question is about none.
        reason: the audited text, if the policy gave one.
        display_reason: the text for the prompt by locale, if the policy gave one; contains `en`.
        arguments: the call's arguments, frozen, so that whoever answers knows what to; `MISSING` when the question is
            about no call, or when they could not be taken as JSON.
        signal: fires when the call is given up.
    """

    agent: ScopeKey
    tool_name: str
    call_id: str | None = None
    reason: str | None = None
    display_reason: Mapping[str, str] | None = None
    arguments: JsonValue | Missing = MISSING
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
