"""What auditors read out of a session: calls and how they ended, runs, and what stood around them. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...registry.values import JsonValue
    from .background import BackgroundJob
    from .events import Decision, ErrorIdentity, ProgramPreflighted
    from .questions import Approval, Question
    from .store import SessionInfo

__all__ = ["Call", "Outcome", "Run", "SessionReading", "Setting", "Violation"]

Outcome: TypeAlias = Literal["ok", "failed", "denied", "cancelled", "outcome unknown"]


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
        jobs: the background work that it started, in order.
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
    jobs: Sequence[BackgroundJob] = ()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A policy that was set for a session, and stood from there on until the next one of its kind (contract I12).

    Attributes:
        what: `preset`, `sandbox` or `approvals`.
        value: what it was set to.
        source: who set it, if that was said.
        time_us: when, in microseconds since 1970 UTC.
        seq: the event.
    """

    what: Literal["preset", "sandbox", "approvals"]
    value: str
    source: str | None
    time_us: int
    seq: int


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
    """What a session's events say.

    Attributes:
        session: the session.
        runs: its runs, in the order of their start.
        violations: the events that make no sense.
        settings: the policies that were set, in order.
        questions: the questions that were about no call, in order.
        jobs: the background jobs that no call of the session started, in order.
    """

    session: SessionInfo
    runs: Sequence[Run]
    violations: Sequence[Violation]
    settings: Sequence[Setting] = ()
    questions: Sequence[Question] = ()
    jobs: Sequence[BackgroundJob] = ()
