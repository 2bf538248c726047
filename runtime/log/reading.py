"""Makes sense of a session's events for an auditor: its runs, the calls inside each run, and how every one ended.

A run is one call that a model made: `tool/call` and the `tool/result` that cites it. When the tool is `run_code`, the
run has a program, and the program's calls are its sub-calls: `tool/ptc-dispatch-start` and `tool/ptc-dispatch` with the
same `subCallId`, wherever they stand (contract I8, I9). A start without a settle is `outcome unknown`: the call is
still running, or its process ended before it could say (contract I14). It stays so when the session was taken up again
and the model was told that nobody knows (contract I13).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...registry.lossless import same_json
from .events import (
    ApprovalAsked,
    ApprovalDecided,
    Decision,
    DispatchSettled,
    DispatchStarted,
    ErrorIdentity,
    ProgramPreflighted,
    ToolCalled,
    ToolResulted,
    read_event,
)
from .questions import Approval, Questions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...registry.values import JsonValue
    from .store import SessionInfo, StoredEvent

__all__ = ["Approval", "Call", "Outcome", "Run", "SessionReading", "Violation", "read_session"]

Outcome: TypeAlias = Literal["ok", "failed", "denied", "cancelled", "outcome unknown"]

_PROGRAM_TOOL: Final = "run_code"
_DENIAL_CODES: Final = frozenset({"APPROVAL_REJECTED", "APPROVAL_CANCELLED", "APPROVAL_UNAVAILABLE"})
_CANCEL_CODES: Final = frozenset({"ABORTED", "ABORTED_BEFORE_DISPATCH"})
_NOT_STARTED_CODE: Final = "TOOL_NOT_STARTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call, from a model or from a program.

    Attributes:
        call_id: its id.
        parent_call_id: the id of the call that made it; `None` for a model's own call.
        name: the tool's name.
        arguments: the arguments; for a model's own call the raw text that the model wrote.
        outcome: how it ended.
        error: the identity of its error, if it failed with one.
        decision: what policy said of it, if that was recorded.
        approvals: what was asked about it, in order.
        content: the content blocks that were recorded of its result; `None` while the outcome is unknown.
        meta: what presenters are given of the result, if anything.
        line: the program's line that made the call, as the program's side claims it.
        started_us: when it started, in microseconds since 1970 UTC.
        duration_ms: how long it took, in milliseconds with a fraction; `None` while the outcome is unknown, and for
            calls that were interrupted or never started.
        seq: the event that started it.
        settled_seq: the event that ended it.
    """

    call_id: str
    parent_call_id: str | None
    name: str
    arguments: JsonValue
    outcome: Outcome
    error: ErrorIdentity | None
    decision: Decision | None
    approvals: Sequence[Approval]
    content: Sequence[Mapping[str, Any]] | None
    meta: JsonValue
    line: int | None
    started_us: int
    duration_ms: float | None
    seq: int
    settled_seq: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One call of a model with all that came of it.

    Attributes:
        session: the id of the session.
        number: which run of the session it is, from 1.
        call: the call itself; `None` when the host recorded the program's calls but not the call of the model.
        root_call_id: the id that its sub-calls name as their root.
        program: the source text of the program, if the tool was `run_code` and its arguments say.
        description: what the model said the program is for.
        calls: the calls that the program made, in the order in which they started.
        preflight: what came of the check of the program before it ran; `None` when there was none.
    """

    session: str
    number: int
    call: Call | None
    root_call_id: str
    program: str | None
    description: str | None
    calls: Sequence[Call]
    preflight: ProgramPreflighted | None = None

    @property
    def id(self) -> str:
        """What auditors call the run: the session's id and the run's number."""
        return f"{self.session}/{self.number}"

    @property
    def outcome(self) -> Outcome:
        return "outcome unknown" if self.call is None else self.call.outcome

    @property
    def started_us(self) -> int:
        """When it started, in microseconds since 1970 UTC."""
        return self.calls[0].started_us if self.call is None else self.call.started_us


@dataclass(frozen=True, slots=True)
class Violation:
    """An event that breaks the rules of pairing, and is in no run for it (contract I8).

    Attributes:
        seq: the event.
        call_id: the id that the event gives for its call.
        problem: what is wrong with it.
    """

    seq: int
    call_id: str
    problem: str


@dataclass(frozen=True, slots=True)
class SessionReading:
    """What a session's events say: its runs in the order of their start, and the events that make no sense."""

    session: SessionInfo
    runs: Sequence[Run]
    violations: Sequence[Violation]


def read_session(session: SessionInfo, events: Iterable[StoredEvent]) -> SessionReading:
    """Puts a session's events together (contract I8).

    Args:
        session: the session.
        events: all its events, in order.

    Raises:
        UnknownEventError: an event has a type that this version does not know (contract I15).
        LogUnavailableError: an event is not what its type says.
    """
    index = _Index()
    for event in events:
        payload = read_event(event)
        if isinstance(payload, ToolCalled):
            index.called(event, payload)
        elif isinstance(payload, ToolResulted):
            index.resulted(event, payload)
        elif isinstance(payload, DispatchStarted):
            index.started(event, payload)
        elif isinstance(payload, DispatchSettled):
            index.settled(event, payload)
        elif isinstance(payload, ApprovalAsked):
            index.asked(event, payload)
        elif isinstance(payload, ApprovalDecided):
            index.decided(event, payload)
        elif isinstance(payload, ProgramPreflighted):
            index.preflighted(event, payload)
    runs = [_run(session.id, number, root, index.questions) for number, root in enumerate(index.roots, 1)]
    return SessionReading(session, runs, index.violations)


@dataclass(slots=True)
class _Sub:
    """A sub-call while its events are gathered."""

    started: StoredEvent
    start: DispatchStarted
    settled: StoredEvent | None = None
    settle: DispatchSettled | None = None


@dataclass(slots=True)
class _Root:
    """A model's call while its events are gathered; without `called` when only its sub-calls were recorded."""

    call_id: str
    called: StoredEvent | None = None
    call: ToolCalled | None = None
    resulted: StoredEvent | None = None
    result: ToolResulted | None = None
    subs: list[_Sub] = field(default_factory=list[_Sub])
    preflight: ProgramPreflighted | None = None


class _Index:
    """Pairs the events of one session, and reports those that cannot be paired."""

    def __init__(self) -> None:
        self.roots: list[_Root] = []
        self.violations: list[Violation] = []
        self.questions = Questions()
        self._by_seq: dict[int, _Root] = {}
        self._by_call: dict[str, _Root] = {}
        self._subs: dict[str, _Sub] = {}

    def _refuse(self, event: StoredEvent, call_id: str, problem: str) -> None:
        self.violations.append(Violation(event.seq, call_id, problem))

    def called(self, event: StoredEvent, call: ToolCalled) -> None:
        if not call.call_id:
            self._refuse(event, call.call_id, "the call's id is empty")
            return
        root = _Root(call.call_id, event, call)
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
            root = self._by_call[start.root_call_id] = _Root(start.root_call_id)
            self.roots.append(root)
        sub = self._subs[start.sub_call_id] = _Sub(event, start)
        root.subs.append(sub)

    def _start_problem(self, start: DispatchStarted) -> str | None:
        if not (start.root_call_id and start.parent_call_id and start.sub_call_id):
            return "one of its ids is empty"
        if start.sub_call_id in self._subs:
            return "the sub-call has started already"
        if start.sub_call_id in (start.root_call_id, start.parent_call_id):
            return "the sub-call is its own parent"
        if start.parent_call_id != start.root_call_id:
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
        started: StoredEvent | None = None
        if ask.call_id is not None:
            sub, root = self._subs.get(ask.call_id), self._by_call.get(ask.call_id)
            started = sub.started if sub else root.called if root else None
            if started is None:
                self._refuse(event, ask.call_id, "the question is about no call that was recorded")
                return
        problem = self.questions.asked(event, ask, started.seq if started else None)
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


def _run(session: str, number: int, root: _Root, questions: Questions) -> Run:
    program, description = _program(root.call)
    return Run(
        session=session,
        number=number,
        call=_root_call(root, questions),
        root_call_id=root.call_id,
        program=program,
        description=description,
        calls=[_sub_call(sub, questions) for sub in root.subs],
        preflight=root.preflight,
    )


def _program(call: ToolCalled | None) -> tuple[str | None, str | None]:
    """The program and its description, out of the raw arguments of `run_code`."""
    if call is None or call.name != _PROGRAM_TOOL:
        return None, None
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(arguments, dict):
        return None, None
    code, description = arguments.get("code"), arguments.get("description")
    return code if isinstance(code, str) else None, description if isinstance(description, str) else None


def _root_call(root: _Root, questions: Questions) -> Call | None:
    call, called, result = root.call, root.called, root.result
    if call is None or called is None:
        return None
    return Call(
        call_id=call.call_id,
        parent_call_id=None,
        name=call.name,
        arguments=call.arguments,
        outcome=_outcome(result.message.is_error if result else None, result),
        error=result.error if result else None,
        decision=result.decision if result else None,
        approvals=questions.of_call(called.seq),
        content=result.message.content if result else None,
        meta=result.meta if result else None,
        line=None,
        started_us=called.time_us,
        duration_ms=None if result and result.repaired else _duration_ms(called, root.resulted),
        seq=called.seq,
        settled_seq=root.resulted.seq if root.resulted else None,
    )


def _sub_call(sub: _Sub, questions: Questions) -> Call:
    start, settle = sub.start, sub.settle
    return Call(
        call_id=start.sub_call_id,
        parent_call_id=start.parent_call_id,
        name=start.name,
        arguments=start.arguments,
        outcome=_outcome(settle.is_error if settle else None, settle),
        error=settle.error if settle else None,
        decision=settle.decision if settle else None,
        approvals=questions.of_call(sub.started.seq),
        content=settle.content if settle else None,
        meta=settle.meta if settle else None,
        line=start.line,
        started_us=sub.started.time_us,
        duration_ms=_duration_ms(sub.started, sub.settled),
        seq=sub.started.seq,
        settled_seq=sub.settled.seq if sub.settled else None,
    )


def _outcome(is_error: bool | None, ended: ToolResulted | DispatchSettled | None) -> Outcome:
    if ended is None or is_error is None:
        return "outcome unknown"
    if not is_error:
        return "ok"
    code = ended.error.code if ended.error else None
    if isinstance(ended, ToolResulted) and ended.repaired:
        # Nobody but the repair writes this mark, so that no tool can pass for interrupted by the code of its error.
        return "cancelled" if code == _NOT_STARTED_CODE else "outcome unknown"
    if code in _CANCEL_CODES:
        return "cancelled"
    if code in _DENIAL_CODES or (ended.decision and ended.decision.outcome == "deny"):
        return "denied"
    return "failed"


def _duration_ms(started: StoredEvent, ended: StoredEvent | None) -> float | None:
    return None if ended is None else ended.ms_since(started)
