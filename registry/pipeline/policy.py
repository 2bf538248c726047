"""Before the body: pre-execute listeners, the approval they may ask for, and the guards (contract C13 to C27)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, assert_never

from ..approval import ApprovalRequest, approval_detail
from ..decisions import Allow, Ask, Cancel, Deny, ErrorInfo, PreToolDecision
from ..events import PRE_EXECUTE, close_stray, describe_answer, run_waterfall
from .outcome import aborted, error_of, failure, failure_of
from .shelter import await_policy

if TYPE_CHECKING:
    from .state import CallState

__all__ = ["decide", "decision_problem", "go_by_answer", "put_question"]

_ALLOW: Final = Allow()
_EXPECTED: Final = ((Allow, Deny, Ask, Cancel), "Allow, Deny, Ask or Cancel")
_APPROVAL_ERROR: Final = "ApprovalError"


async def decide(state: CallState, *, ask: bool = True) -> None:
    """Asks every policy whether the call may run; it may when no outcome has been set.

    A denial, a cancellation, and a caller that has given up settle the call; a policy that raises ends it, past
    post-execute, with its own error (contract C24).

    Args:
        state: the call.
        ask: whether a question that a policy has is put at once; else it is left in `state.question`.
    """
    try:
        decision = await _pre_execute(state)
        if isinstance(decision, Ask):
            if not ask:
                state.question = decision
                return
            decision = await _ask(state, decision)
        _act(state, decision)
    except Exception as error:  # noqa: BLE001 - the call is refused, whatever it is
        _refuse(state, error)


async def put_question(state: CallState) -> None:
    """Puts the question that `decide` has left, and keeps the answer in `state.answer`.

    Nobody is asked about a call that was given up before its question was put.
    """
    question, state.question = state.question, None
    if question is None:
        raise RuntimeError("there is no question to put")
    try:
        state.answer = Cancel() if state.exec.signal.aborted else await _ask(state, question)
    except Exception as error:  # noqa: BLE001 - as in `decide`
        _refuse(state, error)


def go_by_answer(state: CallState) -> None:
    """Settles the call by the answer to its question, or has the guards decide; it may run when none is set."""
    answer, state.answer = state.answer, None
    if answer is None:
        return  # asking failed, and the call is refused already
    try:
        _act(state, answer)
    except Exception as error:  # noqa: BLE001 - as in `decide`
        _refuse(state, error)


def _refuse(state: CallState, error: Exception) -> None:
    state.decision = "error"
    state.logger.warning(
        'a policy raised before tool "%s" (call %s); the call is refused', state.exec.name, state.exec.call_id,
        exc_info=error,
    )  # fmt: skip
    state.end(failure_of(error_of(error)))


async def _allow() -> PreToolDecision:
    return _ALLOW


async def _pre_execute(state: CallState) -> PreToolDecision:
    call = state.exec
    listeners = state.registry.events.listeners(PRE_EXECUTE, call.agent)
    if not listeners:
        return _ALLOW
    decision, author = await await_policy(run_waterfall(PRE_EXECUTE, listeners, (call,), _allow, _EXPECTED))
    if author is not None:
        state.decided_by = author.name
        problem = decision_problem(decision)
        if problem is not None:
            raise TypeError(f'the "{PRE_EXECUTE}" listener {author.name} gave a bad answer: {problem}')
    return decision


def decision_problem(decision: PreToolDecision) -> str | None:
    """Says what is wrong with the parts of a decision, whose class is right already; `None` when nothing is."""
    if isinstance(decision, Deny):
        if not isinstance(decision.reason, str):
            return f"Deny.reason must be a string, not {describe_answer(decision.reason)}"
        if not isinstance(decision.info, ErrorInfo | None):
            return f"Deny.info must be an ErrorInfo, not {describe_answer(decision.info)}"
    elif isinstance(decision, Ask):
        shown = decision.display_reason
        if not isinstance(decision.reason, str | None):
            return f"Ask.reason must be a string, not {describe_answer(decision.reason)}"
        if shown is not None and not (isinstance(shown, Mapping) and isinstance(shown.get("en"), str)):
            return 'Ask.display_reason must be a mapping from locales to texts that has "en"'
    return None


async def _ask(state: CallState, ask: Ask) -> Allow | Deny | Cancel:
    """Puts the question to the approval service (contract C17 to C22)."""
    call, service = state.exec, state.approval
    if service is None:
        reason = ask.reason or f'tool "{call.name}" requires approval (not yet supported)'
        return _unapproved(reason, "APPROVAL_UNAVAILABLE")
    if call.agent is None:
        return _unapproved(
            f'tool "{call.name}" requires approval, but the call has no agent to route the question to',
            "APPROVAL_UNAVAILABLE",
        )
    request = ApprovalRequest(
        agent=call.agent,
        tool_name=call.name,
        call_id=call.call_id,
        reason=ask.reason,
        display_reason=ask.display_reason,
        arguments=call.arguments,
        signal=call.signal,
    )
    outcome: object = await await_policy(service.request(request))
    detail = approval_detail(outcome)
    why = "" if detail is None else f": {detail}"
    match outcome:
        case "allowed-once":
            state.approval_outcome = "allowed-once"
            return _ALLOW
        case "rejected":
            state.approval_outcome = "rejected"
            return _unapproved(f'the user rejected tool "{call.name}"{why}', "APPROVAL_REJECTED")
        case "cancelled":
            state.approval_outcome = "cancelled"
            if call.signal.aborted:
                return Cancel()
            return _unapproved(f'approval for tool "{call.name}" was cancelled{why}', "APPROVAL_CANCELLED")
        case "unavailable":
            state.approval_outcome = "unavailable"
            return _unapproved(
                f'tool "{call.name}" requires approval, but {detail or "no approval channel is available"}',
                "APPROVAL_UNAVAILABLE",
            )
        case _:
            close_stray(outcome)
            raise TypeError(
                "the approval service must answer allowed-once, rejected, cancelled or unavailable, "
                f"not {describe_answer(outcome)}"
            )


def _unapproved(reason: str, code: str) -> Deny:
    return Deny(reason, ErrorInfo(_APPROVAL_ERROR, code))


def _act(state: CallState, decision: Allow | Deny | Cancel) -> None:
    match decision:
        case Allow():
            _guard(state)
        case Deny():
            state.decision = "deny"
            state.settle(failure(decision.reason, decision.info))
        case Cancel():
            state.decision = "cancel"
            state.settle(aborted(body_invoked=False))
        case _:
            assert_never(decision)


def _guard(state: CallState) -> None:
    """Asks the guards, whose refusal wins over a caller that has given up meanwhile (contract C26, C27)."""
    denied = state.registry.find_denial(state.exec)
    if denied is not None:
        denial, state.decided_by = denied
        state.decision = "deny"
        state.settle(failure(denial.reason, denial.info))
    elif state.exec.signal.aborted:
        state.decision, state.decided_by = "cancel", None
        state.settle(aborted(body_invoked=False))
    else:
        state.decision = "allow"
