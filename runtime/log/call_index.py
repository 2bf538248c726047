"""Pairs the events of a session by their ids, and reports those that cannot be paired (contract I8, I9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...registry.lossless import same_json
from .background import BackgroundJobs
from .calls import Violation
from .questions import Questions

if TYPE_CHECKING:
    from .events import (
        ApprovalAsked,
        ApprovalDecided,
        DispatchSettled,
        DispatchStarted,
        JobSettled,
        JobStarted,
        ProgramPreflighted,
        ToolCalled,
        ToolResulted,
    )
    from .store import StoredEvent

__all__ = ["CallIndex", "RootEvents", "SubEvents"]


@dataclass(slots=True)
class SubEvents:
    """A sub-call while its events are gathered."""

    started: StoredEvent
    start: DispatchStarted
    settled: StoredEvent | None = None
    settle: DispatchSettled | None = None


@dataclass(slots=True)
class RootEvents:
    """A model's call while its events are gathered; without `called` when only its sub-calls were recorded."""

    call_id: str
    called: StoredEvent | None = None
    call: ToolCalled | None = None
    resulted: StoredEvent | None = None
    result: ToolResulted | None = None
    subs: list[SubEvents] = field(default_factory=list[SubEvents])
    preflight: ProgramPreflighted | None = None


class CallIndex:
    """Pairs the events of one session, and reports those that cannot be paired.

    Args:
        any_parent: whether the calls that made the sub-calls may be missing, because not all events are given.

    Attributes:
        roots: the model's calls with what belongs to them, in order.
        violations: the events that could not be paired.
        questions: the approval questions.
        jobs: the background jobs.
    """

    def __init__(self, *, any_parent: bool = False) -> None:
        self._any_parent = any_parent
        self.roots: list[RootEvents] = []
        self.violations: list[Violation] = []
        self.questions = Questions()
        self.jobs = BackgroundJobs()
        self._by_seq: dict[int, RootEvents] = {}
        self._by_call: dict[str, RootEvents] = {}
        self._subs: dict[str, SubEvents] = {}

    def _refuse(self, event: StoredEvent, call_id: str, problem: str) -> None:
        self.violations.append(Violation(event.seq, call_id, problem))

    def called(self, event: StoredEvent, call: ToolCalled) -> None:
        if not call.call_id:
            self._refuse(event, call.call_id, "the call's id is empty")
            return
        root = RootEvents(call.call_id, event, call)
        self.roots.append(root)
        self._by_seq[event.seq] = root
        # Providers may use an id again in a later step; sub-calls belong to the latest call of that id.
        self._by_call[call.call_id] = root

    def resulted(self, event: StoredEvent, result: ToolResulted) -> None:
        call_id = result.message.call_id or ""
        root = self._by_seq.get(event.cites) if event.cites is not None else self._by_call.get(call_id)
        if root is None or root.call is None:
            self._refuse(event, call_id, "the result answers no call that was recorded")
        elif root.result is not None:
            self._refuse(event, root.call_id, "the call has a result already")
        elif call_id and call_id != root.call_id:
            self._refuse(event, call_id, f"the result is of call {call_id!r} and cites that of {root.call_id!r}")
        else:
            root.resulted, root.result = event, result

    def started(self, event: StoredEvent, start: DispatchStarted) -> None:
        problem = self._start_problem(start)
        if problem is not None:
            self._refuse(event, start.sub_call_id, problem)
            return
        root = self._by_call.get(start.root_call_id)
        if root is None:
            root = self._by_call[start.root_call_id] = RootEvents(start.root_call_id)
            self.roots.append(root)
        sub = self._subs[start.sub_call_id] = SubEvents(event, start)
        root.subs.append(sub)

    def _start_problem(self, start: DispatchStarted) -> str | None:
        if not (start.root_call_id and start.parent_call_id and start.sub_call_id):
            return "one of its ids is empty"
        if start.sub_call_id in self._subs:
            return "the sub-call has started already"
        if start.sub_call_id in (start.root_call_id, start.parent_call_id):
            return "the sub-call is its own parent"
        if start.parent_call_id != start.root_call_id and not self._any_parent:
            parent = self._subs.get(start.parent_call_id)
            if parent is None:
                return f"its parent {start.parent_call_id!r} is neither the root nor a call that was recorded"
            if parent.start.root_call_id != start.root_call_id:
                return f"its parent {start.parent_call_id!r} belongs to another root"
        return None

    def settled(self, event: StoredEvent, settle: DispatchSettled) -> None:
        sub = self._subs.get(settle.sub_call_id)
        if sub is None:
            self._refuse(event, settle.sub_call_id, "the sub-call ended and never started")
        elif sub.settle is not None:
            self._refuse(event, settle.sub_call_id, "the sub-call has ended already")
        elif (settle.root_call_id, settle.parent_call_id) != (sub.start.root_call_id, sub.start.parent_call_id):
            self._refuse(event, settle.sub_call_id, "the sub-call ended under another root or parent than it started")
        elif settle.name != sub.start.name or not same_json(settle.arguments, sub.start.arguments):
            self._refuse(event, settle.sub_call_id, "the sub-call ended with another name or other arguments")
        else:
            sub.settled, sub.settle = event, settle

    def asked(self, event: StoredEvent, ask: ApprovalAsked) -> None:
        started = self._start_of(ask.call_id)
        if ask.call_id is not None and started is None:
            self._refuse(event, ask.call_id, "the question is about no call that was recorded")
            return
        problem = self.questions.asked(event, ask, started)
        if problem is not None:
            self._refuse(event, ask.call_id or "", problem)

    def preflighted(self, event: StoredEvent, check: ProgramPreflighted) -> None:
        root = self._by_call.get(check.call_id)
        if root is None or root.preflight is not None:
            problem = "the program has been checked already" if root else "the check is of no call that was recorded"
            self._refuse(event, check.call_id, problem)
        else:
            root.preflight = check

    def decided(self, event: StoredEvent, decision: ApprovalDecided) -> None:
        problem = self.questions.decided(event, decision)
        if problem is not None:
            self._refuse(event, decision.id, problem)

    def job_started(self, event: StoredEvent, start: JobStarted) -> None:
        # A job may belong to another session than the call that starts it, so a call that is not here is no fault.
        problem = self.jobs.started(event, start, self._start_of(start.call_id))
        if problem is not None:
            self._refuse(event, start.call_id or "", problem)

    def job_settled(self, event: StoredEvent, settle: JobSettled) -> None:
        problem = self.jobs.settled(event, settle)
        if problem is not None:
            self._refuse(event, settle.job_id, problem)

    def _start_of(self, call_id: str | None) -> int | None:
        """Returns the event that started a call; of calls that share an id, the latest."""
        if call_id is None:
            return None
        sub, root = self._subs.get(call_id), self._by_call.get(call_id)
        started = sub.started if sub else root.called if root else None
        return None if started is None else started.seq
