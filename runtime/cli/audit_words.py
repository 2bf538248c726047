"""The words, signs and objects that the commands of `ptc audit` have in common."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from ..log.times import iso
from .terminal import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..log.background import BackgroundJob
    from ..log.reading import Approval, Call, Run

__all__ = [
    "JOB_OUTCOMES",
    "OUTCOME_STYLES",
    "approval_object",
    "job_counts",
    "job_object",
    "job_outcome",
    "job_text",
    "reasons",
    "short_duration",
]

OUTCOME_STYLES: Final = {
    "ok": "green",
    "failed": "red",
    "denied": "magenta",
    "cancelled": "yellow",
    "outcome unknown": "bold yellow",
}

JOB_OUTCOMES: Final = {"completed": "ok", "failed": "failed", "killed": "cancelled", None: "outcome unknown"}
"""The outcome of a call that looks like that of a job, by the job's status."""

_VERDICTS: Final = {
    "allow": "allowed",
    "deny": "denied",
    "cancel": "cancelled",
    "error": "refused for a failure",
    "block": "result withheld",
}
"""What policy did, by the word that the record has for it."""


def reasons(call: Call) -> Iterator[tuple[str, str]]:
    """Yields who was asked, who decided, and why, each with its label."""
    for approval in call.approvals:
        yield "asked", _approval_text(approval)
    if call.decision is not None:
        approval = f" (approval: {call.decision.approval})" if call.decision.approval else ""
        yield (
            _VERDICTS.get(call.decision.outcome, call.decision.outcome),
            f"by {call.decision.by or 'policy'}{approval}",
        )
    if call.error is not None:
        reason = f": {call.error.reason}" if call.error.reason else ""
        yield "error", f"{call.error.code} ({call.error.name}){reason}"


def _approval_text(approval: Approval) -> str:
    answer = approval.outcome or "not answered"
    detail = "" if approval.detail is None else f" ({approval.detail})"
    waited = "" if approval.waited_ms is None else f" after {short_duration(approval.waited_ms)}"
    return f"{answer}{detail}{waited}{'' if approval.reason is None else f': {approval.reason}'}"


def job_outcome(job: BackgroundJob) -> Text:
    """Returns how a job ended, in the colour of calls that ended so."""
    outcome = JOB_OUTCOMES[job.status]
    return Text(job.status or outcome, OUTCOME_STYLES[outcome])


def job_text(job: BackgroundJob, *, started: bool = False) -> Text:
    """Returns a job on one line: which, how it ended, how long it took, what it was, and what was said of its end.

    Args:
        job: the job.
        started: whether it has only just started, so that there is no end to tell of.
    """
    text = Text.assemble(visible(job.job_id, "bold"), " [", visible(job.kind), "]  ")
    if started:
        text.append("started")
    else:
        text.append_text(job_outcome(job))
    if job.duration_ms is not None:
        text.append(f" after {short_duration(job.duration_ms)}")
    text.append_text(Text.assemble(": ", visible(job.label)))
    if job.detail is not None:
        text.append_text(Text.assemble(" (", visible(job.detail), ")"))
    return text


def job_object(job: BackgroundJob) -> dict[str, Any]:
    """Returns a job as `--json` has it."""
    return {
        "jobId": job.job_id,
        "kind": job.kind,
        "label": job.label,
        "status": job.status,
        "detail": job.detail,
        "started": iso(job.started_us),
        "durationMs": job.duration_ms,
        "seq": job.seq,
        "settledSeq": job.settled_seq,
    }


def job_counts(run: Run) -> dict[str, int]:
    """Returns how many jobs of a run have come to which end, by status; `unknown` where there is none."""
    calls = [*run.calls] if run.call is None else [run.call, *run.calls]
    return dict(Counter(job.status or "unknown" for call in calls for job in call.jobs))


def approval_object(approval: Approval) -> dict[str, Any]:
    """Returns a question and its answer as `--json` has them."""
    return {
        "reason": approval.reason,
        "outcome": approval.outcome,
        "detail": approval.detail,
        "waitedMs": approval.waited_ms,
        "seq": approval.seq,
        "decidedSeq": approval.decided_seq,
    }


def short_duration(milliseconds: float) -> str:
    """Returns a duration with about three digits and its unit."""
    if milliseconds < 100:
        digits = 2 if milliseconds < 10 else 1
        return f"{milliseconds:.{digits}f} ms"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1_000
    if seconds < 100:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, seconds = divmod(int(seconds), 60)
    if minutes < 100:
        return f"{minutes}m {seconds:02}s"
    return f"{minutes // 60:,}h {minutes % 60:02}m"
