"""Pairs the approval questions of a session with their answers, and both with the calls that they are about (I12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .events import ApprovalAsked, ApprovalDecided

if TYPE_CHECKING:
    from .store import StoredEvent

__all__ = ["Approval", "Question", "Questions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question that a policy put, and what came of it.

    Attributes:
        reason: the audited text, if the policy gave one.
        outcome: the answer; `None` while there is none, or when its process ended before it could say.
        waited_ms: how long it took, in milliseconds with a fraction; `None` without an answer.
        seq: the event that put the question.
        decided_seq: the event that answered it.
        detail: why, or by whom and how it was answered, if the channel said so.
    """

    reason: str | None
    outcome: str | None
    waited_ms: float | None
    seq: int
    decided_seq: int | None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that was about no call, for example one that a host put itself.

    Attributes:
        tool_name: the tool that it was about.
        asked_us: when it was put, in microseconds since 1970 UTC.
        approval: the question and what came of it.
    """

    tool_name: str
    asked_us: int
    approval: Approval


@dataclass(slots=True)
class _Question:
    """A question while its events are gathered."""

    asked: StoredEvent
    ask: ApprovalAsked
    decided: StoredEvent | None = None
    decision: ApprovalDecided | None = None


class Questions:
    """The questions of one session, gathered in order."""

    def __init__(self) -> None:
        self._by_id: dict[str, _Question] = {}
        self._by_call: dict[int | None, list[_Question]] = {}

    def asked(self, event: StoredEvent, ask: ApprovalAsked, call_seq: int | None) -> str | None:
        """Takes a question in; `call_seq` is the event that started the call, `None` when it is about no call.

        Returns:
            what is wrong with it, or `None`.
        """
        if ask.id in self._by_id:
            return "the question has been put already"
        question = self._by_id[ask.id] = _Question(event, ask)
        self._by_call.setdefault(call_seq, []).append(question)
        return None

    def decided(self, event: StoredEvent, decision: ApprovalDecided) -> str | None:
        """Takes an answer in, and returns what is wrong with it, or `None`."""
        question = self._by_id.get(decision.id)
        if question is None:
            return "the answer is to no question that was recorded"
        if question.decided is not None:
            return "the question has an answer already"
        question.decided, question.decision = event, decision
        return None

    def of_call(self, call_seq: int) -> list[Approval]:
        """Returns what was asked about the call that this event started, in order."""
        return [_approval(question) for question in self._by_call.get(call_seq, ())]

    def of_none(self) -> list[Question]:
        """Returns the questions that were about no call, in order."""
        return [
            Question(tool_name=one.ask.tool_name, asked_us=one.asked.time_us, approval=_approval(one))
            for one in self._by_call.get(None, ())
        ]


def _approval(question: _Question) -> Approval:
    asked, decided = question.asked, question.decided
    return Approval(
        reason=question.ask.reason,
        outcome=question.decision.outcome if question.decision else None,
        waited_ms=decided.ms_since(asked) if decided else None,
        seq=asked.seq,
        decided_seq=decided.seq if decided else None,
        detail=question.decision.detail if question.decision else None,
    )
