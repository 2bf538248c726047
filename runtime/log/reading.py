"""Makes sense of a session's events for an auditor: its runs, the calls inside each run, and how every one ended.

A run is one call that a model made: `tool/call` and the `tool/result` that cites it. When the tool is `run_code`, the
run has a program, and the program's calls are its sub-calls: `tool/ptc-dispatch-start` and `tool/ptc-dispatch` with the
same `subCallId`, wherever they stand (contract I8, I9). A start without a settle is `outcome unknown`: the call is
still running, or its process ended before it could say (contract I14). It stays so when the session was taken up again
and the model was told that nobody knows (contract I13).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from .call_index import CallIndex
from .calls import Call, Outcome, Run, SessionReading, Setting, Violation
from .events import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalPolicySet,
    DispatchSettled,
    DispatchStarted,
    JobSettled,
    JobStarted,
    PermissionPresetSet,
    ProgramPreflighted,
    SandboxModeSet,
    ToolCalled,
    ToolResulted,
    read_event,
)
from .questions import Approval, Questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .background import BackgroundJob
    from .call_index import RootEvents, SubEvents
    from .store import SessionInfo, StoredEvent

__all__ = [
    "SETTING_TYPES",
    "Approval",
    "Call",
    "Outcome",
    "Run",
    "SessionReading",
    "Setting",
    "Violation",
    "read_call",
    "read_session",
    "read_settings",
]

SETTING_TYPES: Final = ("approval/policy", "permission/preset", "permission/sandbox")
"""The types of the events that set a policy."""

_PROGRAM_TOOL: Final = "run_code"
_CANCEL_CODES: Final = frozenset({"ABORTED", "ABORTED_BEFORE_DISPATCH"})
_NOT_STARTED_CODE: Final = "TOOL_NOT_STARTED"


def read_session(session: SessionInfo, events: Iterable[StoredEvent]) -> SessionReading:
    """Puts a session's events together (contract I8).

    Args:
        session: the session.
        events: all its events, in order.

    Raises:
        UnknownEventError: an event has a type that this version does not know (contract I15).
        LogUnavailableError: an event is not what its type says.
    """
    index = CallIndex()
    settings: list[Setting] = []
    _gather(index, events, settings)
    beside = _Beside(index.questions, index.jobs.by_call())
    return SessionReading(
        session,
        runs=[_run(session.id, number, root, beside) for number, root in enumerate(index.roots, 1)],
        violations=index.violations,
        settings=settings,
        questions=index.questions.of_none(),
        jobs=beside.jobs.get(None, []),
    )


def read_call(events: Iterable[StoredEvent]) -> Call | None:
    """Puts the events of one call together, whoever made the call; `None` when they make none.

    Args:
        events: the event that started it, and those that name or cite it, in order.

    Raises:
        UnknownEventError: an event has a type that this version does not know (contract I15).
        LogUnavailableError: an event is not what its type says.
    """
    index = CallIndex(any_parent=True)
    _gather(index, events, [])
    beside = _Beside(index.questions, index.jobs.by_call())
    for root in index.roots:
        for sub in root.subs:
            return _sub_call(sub, beside)
        return _root_call(root, beside)
    return None


def read_settings(events: Iterable[StoredEvent]) -> list[Setting]:
    """Returns the policies that events of `SETTING_TYPES` set.

    Raises:
        LogUnavailableError: an event is not what its type says.
    """
    settings: list[Setting] = []
    _gather(CallIndex(), events, settings)
    return settings


def _gather(index: CallIndex, events: Iterable[StoredEvent], settings: list[Setting]) -> None:
    takers: dict[type[Any], Callable[[StoredEvent, Any], None]] = {
        ToolCalled: index.called,
        ToolResulted: index.resulted,
        DispatchStarted: index.started,
        DispatchSettled: index.settled,
        ApprovalAsked: index.asked,
        ApprovalDecided: index.decided,
        ProgramPreflighted: index.preflighted,
        JobStarted: index.job_started,
        JobSettled: index.job_settled,
        ApprovalPolicySet: lambda event, to: settings.append(_setting(event, "approvals", to.policy, to.source)),
        SandboxModeSet: lambda event, to: settings.append(_setting(event, "sandbox", to.mode, to.source)),
        PermissionPresetSet: lambda event, to: settings.append(_setting(event, "preset", to.preset, None)),
    }
    for event in events:
        payload = read_event(event)
        if payload is not None:
            takers[type(payload)](event, payload)


def _setting(
    event: StoredEvent, what: Literal["preset", "sandbox", "approvals"], value: str, source: str | None
) -> Setting:
    return Setting(what=what, value=value, source=source, time_us=event.time_us, seq=event.seq)


class _Beside(NamedTuple):
    """What stands beside the calls of a session."""

    questions: Questions
    jobs: dict[int | None, list[BackgroundJob]]


def _run(session: str, number: int, root: RootEvents, beside: _Beside) -> Run:
    program, description = _program(root.call)
    return Run(
        session=session,
        number=number,
        call=_root_call(root, beside),
        root_call_id=root.call_id,
        program=program,
        description=description,
        calls=[_sub_call(sub, beside) for sub in root.subs],
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


def _root_call(root: RootEvents, beside: _Beside) -> Call | None:
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
        approvals=beside.questions.of_call(called.seq),
        jobs=beside.jobs.get(called.seq, []),
        content=result.message.content if result else None,
        meta=result.meta if result else None,
        line=None,
        started_us=called.time_us,
        duration_ms=None if result and result.repaired else _duration_ms(called, root.resulted),
        seq=called.seq,
        settled_seq=root.resulted.seq if root.resulted else None,
    )


def _sub_call(sub: SubEvents, beside: _Beside) -> Call:
    start, settle = sub.start, sub.settle
    return Call(
        call_id=start.sub_call_id,
        parent_call_id=start.parent_call_id,
        name=start.name,
        arguments=start.arguments,
        outcome=_outcome(settle.is_error if settle else None, settle),
        error=settle.error if settle else None,
        decision=settle.decision if settle else None,
        approvals=beside.questions.of_call(sub.started.seq),
        jobs=beside.jobs.get(sub.started.seq, []),
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
    # Likewise: whether policy denied a call is for the decision to say, and tools choose the codes of their errors.
    if ended.decision and ended.decision.outcome == "deny":
        return "denied"
    return "failed"


def _duration_ms(started: StoredEvent, ended: StoredEvent | None) -> float | None:
    return None if ended is None else ended.ms_since(started)
