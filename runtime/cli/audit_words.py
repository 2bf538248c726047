"""The words, signs and objects that the commands of `ptc audit` have in common."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from ..log.times import iso
from .terminal import visible

if TYPE_CHECKING:
    from ..log.background import BackgroundJob
    from ..log.reading import Approval, Run

__all__ = [
    "JOB_OUTCOMES",
    "OUTCOME_STYLES",
    "approval_object",
    "job_counts",
    "job_object",
    "job_outcome",
    "job_text",
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
