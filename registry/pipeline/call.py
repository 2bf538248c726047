"""The call loop: one invocation in three phases, in the order that contract C1 sets.

    prepare    capture, collapse, caller-cancel, pre-execute, approval, guards, caller-cancel
    dispatch   execute wrappers around the body, normalise, merge contexts, caller-cancel
    finish     project, post-execute, caller-cancel, materialise, finalize, freeze, observe

Schedulers interleave the phases of several calls: only `dispatch` may overlap with another call's (contract D5, D6).
One that would not wait for a person has `prepare` leave the question: then `ask` overlaps as well, and `go_on` has the
guards and what comes after them.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from ..decisions import Allow
from .after import publish, review
from .around import run_around
from .capture import admit
from .classify import ExecutionMode, classify
from .outcome import aborted
from .policy import decide, go_by_answer, put_question

if TYPE_CHECKING:
    from ..approval import ApprovalOutcome
    from ..execution import ToolExecution, ToolExecutionResult
    from ..signals import Signal
    from ..values import JsonObject
    from .state import CallDecision, CallState

__all__ = ["PipelineCall"]


class _Phase(enum.Enum):
    CAPTURED = "captured"
    PREPARING = "preparing"
    QUESTIONED = "questioned"
    ASKING = "asking"
    ANSWERED = "answered"
    PREPARED = "prepared"
    DISPATCHING = "dispatching"
    DISPATCHED = "dispatched"
    FINISHING = "finishing"
    FINISHED = "finished"


class PipelineCall:
    """One call on its way through the pipeline; `Pipeline.call` makes it, with its input captured."""

    __slots__ = ("_phase", "_state")

    def __init__(self, state: CallState) -> None:
        self._state = state
        self._phase = _Phase.CAPTURED

    @property
    def exec(self) -> ToolExecution:
        """The call as policies see it."""
        return self._state.exec

    @property
    def needs_dispatch(self) -> bool:
        """Whether the call still has to be dispatched: it was prepared, and no outcome exists yet (contract D8)."""
        return self._phase is _Phase.PREPARED and self._state.outcome is None

    @property
    def body_invoked(self) -> bool:
        """Whether any attempt has invoked a body."""
        return self._state.body_invoked

    @property
    def decision(self) -> CallDecision | None:
        """For the record: `allow`, `deny`, `cancel`, or `error` when a policy raised; `None` when none was asked."""
        return self._state.decision

    @property
    def decided_by(self) -> str | None:
        """For the record: the qualified name of the listener or guard that decided, if one did.

        When a listener asked for approval it is that listener, and `approval` has the answer.
        """
        return self._state.decided_by

    @property
    def approval(self) -> ApprovalOutcome | None:
        """For the record: what the approval service answered, if it was asked."""
        return self._state.approval_outcome

    @property
    def blocked_by(self) -> str | None:
        """For the record: the qualified name of the post-execute listener that blocked the result."""
        return self._state.blocked_by

    def decision_record(self) -> JsonObject | None:
        """For the record: `{"outcome", "by"?, "approval"?}` where a policy decided, `None` where all just let it be.

        `outcome` is `block` when a post-execute listener blocked the result, else what `decision` says.
        """
        state = self._state
        if state.blocked_by is not None:
            return {"outcome": "block", "by": state.blocked_by}
        if state.decision is None or (state.decision == "allow" and state.decided_by is None):
            return None
        record: JsonObject = {"outcome": state.decision}
        if state.decided_by is not None:
            record["by"] = state.decided_by
        if state.approval_outcome is not None:
            record["approval"] = state.approval_outcome
        return record

    def execution_mode(self) -> ExecutionMode:
        """Returns whether the call may overlap with others, as things stand now (contract D2, E19)."""
        state = self._state
        return "exclusive" if state.collapsed else classify(state.resolve(), state.exec.arguments)

    @property
    def has_question(self) -> bool:
        """Whether `prepare` has left a question, which `ask` puts."""
        return self._phase is _Phase.QUESTIONED

    @property
    def granted(self) -> bool:
        """Whether the question was answered with yes, so that the call runs unless the guards refuse it."""
        return self._phase is _Phase.ANSWERED and isinstance(self._state.answer, Allow)

    async def prepare(self, *, ask: bool = True) -> None:
        """Runs the stages before dispatch; `needs_dispatch` tells whether the call goes on to `dispatch`.

        Args:
            ask: whether a question that a policy has is put at once; else the call stops there, and `has_question`
                tells so.

        Raises:
            RuntimeError: the call was prepared before (contract C68).
        """
        self._enter(_Phase.PREPARING, _Phase.CAPTURED)
        if admit(self._state):
            await decide(self._state, ask=ask)
        self._phase = _Phase.PREPARED if self._state.question is None else _Phase.QUESTIONED

    async def ask(self) -> None:
        """Puts the question that `prepare` has left, and waits for the answer; `go_on` goes by it.

        Raises:
            RuntimeError: there is none, or it was put before (contract C68).
        """
        self._enter(_Phase.ASKING, _Phase.QUESTIONED)
        await put_question(self._state)
        self._phase = _Phase.ANSWERED

    def go_on(self) -> None:
        """Runs what comes after the answer; `needs_dispatch` then tells whether the call goes on to `dispatch`.

        Raises:
            RuntimeError: there is no answer (contract C68).
        """
        self._enter(_Phase.PREPARED, _Phase.ANSWERED)
        go_by_answer(self._state)

    async def dispatch(self, *, shelter: Signal | None = None) -> None:
        """Runs the wrappers and the body.

        A started body is awaited to its end even when the task that runs this is cancelled: the body's signal fires,
        the body is awaited, and the cancellation goes on (contract C32).

        Args:
            shelter: when omitted the call sees to that by itself. A scheduler that runs `dispatch` in a child task of
                its own, inside a shielded cancel scope, passes the signal that it fires when it is cancelled, and
                spares the cost; the caller's own signal will do if the scheduler fires that one.

        Raises:
            RuntimeError: the call does not need to be dispatched, or was before (contract C68).
        """
        if not self.needs_dispatch:
            raise RuntimeError(f"this call cannot be dispatched: it is {self._phase.value}")
        self._phase = _Phase.DISPATCHING
        await run_around(self._state, shelter)
        self._phase = _Phase.DISPATCHED

    async def finish(self) -> ToolExecutionResult:
        """Runs the stages after dispatch, tells the observers, and returns the result (contract C60).

        Raises:
            RuntimeError: the call has no outcome yet, or was finished before (contract C68).
        """
        if self._state.outcome is None:
            raise RuntimeError(f"this call has no outcome yet: it is {self._phase.value}")
        self._enter(_Phase.FINISHING, _Phase.PREPARED, _Phase.DISPATCHED)
        if not self._state.final:
            await review(self._state)
        result = publish(self._state)
        self._phase = _Phase.FINISHED
        return result

    def interrupt(self) -> ToolExecutionResult:
        """Ends a call whose own task was cancelled: as aborted, past all policies, but finalized and observed.

        So that every call that began has one result for its observers and for the record. Nothing is awaited; a call
        that has been published keeps its result.
        """
        state = self._state
        if not state.published:
            state.end(aborted(body_invoked=state.body_invoked))
            publish(state)
        self._phase = _Phase.FINISHED
        assert state.outcome is not None
        return state.outcome

    def _enter(self, phase: _Phase, *allowed: _Phase) -> None:
        if self._phase not in allowed:
            raise RuntimeError(f"this call cannot be {phase.value} now: it is {self._phase.value}")
        self._phase = phase
