"""What may be asked of calls, and whether one is what was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from ...registry.lossless import from_json_text, to_json_text
from .calls import Outcome
from .content_kinds import has_content
from .pairs import quoted

if TYPE_CHECKING:
    from .background import BackgroundJob
    from .calls import Call
    from .questions import Approval

__all__ = ["FAILED_OUTCOMES", "ApprovalState", "CallFilter", "DecisionOutcome", "JobState"]

DecisionOutcome: TypeAlias = Literal["allow", "deny", "cancel", "error", "block"]

ApprovalState: TypeAlias = Literal[
    "asked",  # a question was put, whatever came of it
    "answered",  # and has an answer
    "unanswered",  # and has none: its process ended, or the question is still open
    "allowed-once",
    "rejected",
    "cancelled",
    "unavailable",
]

JobState: TypeAlias = Literal[
    "any",
    "completed",
    "killed",
    "failed",
    "unknown",  # it has no end: its process ended, or the job still runs
]

FAILED_OUTCOMES: Final = frozenset({"failed", "denied", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFilter:
    """What calls must be to be found; `None` asks for nothing.

    Attributes:
        since_us: they started at this time or later, in microseconds since 1970 UTC.
        until_us: they started before this time.
        agent: the pattern of the agent's name; `*`, `?` and `[...]` have the meaning that they have in file names.
        tool: the pattern of the tool's name, likewise.
        outcome: how they ended.
        code: the code of the error that they failed with.
        decision: what policy said of them.
        decided_by: a part of the name of whoever had the last word: a guard, a listener.
        approval: what came of the questions about them: one of `ApprovalState`.
        answered: a part of what the record has of who answered such a question, and how.
        content: what the record has of their content: the type of a block such as `image`, or one of the other kinds
            that `content_kinds.py` tells.
        job: how background work ended that they started: one of `JobState`.
        argument: a part of the JSON text of their arguments, which is compact and has its keys in the order in which
            they were given; or a part of a text inside. For a model's own call whose arguments are no JSON, a part of
            what the model wrote.
        session: the id of the session that they belong to.
        run: the number of the run in that session.
    """

    since_us: int | None = None
    until_us: int | None = None
    agent: str | None = None
    tool: str | None = None
    outcome: Outcome | None = None
    code: str | None = None
    decision: DecisionOutcome | None = None
    decided_by: str | None = None
    approval: ApprovalState | None = None
    answered: str | None = None
    content: str | None = None
    job: JobState | None = None
    argument: str | None = None
    session: str | None = None
    run: int | None = None

    def __post_init__(self) -> None:
        for what, given, allowed in (
            ("outcome", self.outcome, get_args(Outcome)),
            ("decision", self.decision, get_args(DecisionOutcome)),
            ("state of an approval", self.approval, get_args(ApprovalState)),
            ("state of a job", self.job, get_args(JobState)),
        ):
            if given is not None and given not in allowed:
                raise ValueError(f"there is no {what} {given!r}; give one of {', '.join(allowed)}")
        if self.run is not None and self.session is None:
            raise ValueError("a run is one of a session; give the session too")

    @property
    def asks_for_the_end(self) -> bool:
        """Whether it asks for what only an end tells, and few ends do."""
        told = (self.code, self.decision, self.decided_by)
        return any(one is not None for one in told) or self.outcome in FAILED_OUTCOMES

    @property
    def asks_beyond_the_start(self) -> bool:
        """Whether it asks for anything that is not known yet when a call starts."""
        told = (self.outcome, self.approval, self.answered, self.content, self.job)
        return self.asks_for_the_end or any(one is not None for one in told)

    @property
    def asks_of_calls(self) -> bool:
        """Whether it asks for anything that only calls have: not just for a time, an agent or a session."""
        told = (self.tool, self.argument, self.run)
        return self.asks_beyond_the_start or any(one is not None for one in told)

    def fits_agent(self, agent: str) -> bool:
        """Returns whether the name of an agent is what is asked for."""
        return self.agent is None or fnmatchcase(agent, self.agent)

    def fits(self, call: Call, agent: str) -> bool:
        """Returns whether a call is what is asked for; its session and run are not looked at."""
        return self.fits_alone(call, agent) and self.fits_beside(call)

    def fits_alone(self, call: Call, agent: str) -> bool:
        """Returns the same as far as it can be told without the call's questions and jobs."""
        return (
            self.fits_start(call, agent)
            and (self.outcome is None or call.outcome == self.outcome)
            and self._fits_decision(call)
            and (self.content is None or has_content(call, self.content))
        )

    def fits_beside(self, call: Call) -> bool:
        """Returns whether a call's questions and jobs are what is asked for."""
        return self._fits_approvals(call) and (self.job is None or any(_is_job(job, self.job) for job in call.jobs))

    def fits_start(self, call: Call, agent: str) -> bool:
        """Returns the same of what is known when a call starts."""
        return (
            (self.since_us is None or call.started_us >= self.since_us)
            and (self.until_us is None or call.started_us < self.until_us)
            and self.fits_agent(agent)
            and (self.tool is None or fnmatchcase(call.name, self.tool))
            and (self.argument is None or self._fits_argument(call, self.argument))
        )

    def _fits_decision(self, call: Call) -> bool:
        decision = call.decision
        return (
            (self.code is None or (call.error is not None and call.error.code == self.code))
            and (self.decision is None or (decision is not None and decision.outcome == self.decision))
            and (self.decided_by is None or (decision is not None and self.decided_by in (decision.by or "")))
        )

    def _fits_approvals(self, call: Call) -> bool:
        if self.approval is None and self.answered is None:
            return True
        return any(
            (self.approval is None or _is_approval(approval, self.approval))
            and (self.answered is None or (approval.detail is not None and self.answered in approval.detail))
            for approval in call.approvals
        )

    def _fits_argument(self, call: Call, wanted: str) -> bool:
        text = call.arguments
        if call.parent_call_id is None and isinstance(text, str):
            try:
                text = to_json_text(from_json_text(text))
            except ValueError:
                return wanted in text
        else:
            text = to_json_text(text)
        return wanted in text or quoted(wanted) in text


def _is_approval(approval: Approval, state: ApprovalState) -> bool:
    match state:
        case "asked":
            return True
        case "answered" | "unanswered":
            return (approval.outcome is None) == (state == "unanswered")
        case _:
            return approval.outcome == state


def _is_job(job: BackgroundJob, state: JobState) -> bool:
    match state:
        case "any":
            return True
        case "unknown":
            return job.status is None
        case _:
            return job.status == state
