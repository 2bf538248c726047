"""What `--json` prints: objects whose keys are always there and keep their meaning within one `format`.

`ptc audit list --json`, format `ptc.audit.list/1`:

    {"format", "log", "more", "runs": [{
        "run": "SESSION/NUMBER", "session", "agent", "started", "tool", "description", "calls": how many,
        "jobs": {STATUS: how many}, "outcome", "durationMs"}],
     "unpaired": {SESSION: how many events make no sense},
     "unreadable": {SESSION: why}}

`ptc audit show --json`, format `ptc.audit.show/1`:

    {"format", "log",
     "session": {"id", "agent", "opened", "labels", "events"},
     "settings": [{"what", "value", "source", "time", "seq"}],
     "runs": [{
        "run", "callId", "tool", "description", "program", "preflight", "arguments": the model's raw text,
        "outcome", "error", "decision", "approvals", "jobs", "started", "durationMs", "content", "meta", "seq",
        "settledSeq",
        "calls": [{"callId", "parentCallId", "tool", "arguments", "outcome", "error", "decision", "approvals", "jobs",
                   "line", "started", "durationMs", "content", "meta", "seq", "settledSeq"}]}],
     "questions": [{"tool", "asked", and the keys of an approval}],
     "jobs": [{the keys of a job, and "callId"}],
     "unpaired": [{"seq", "callId", "problem"}]}

An outcome is `ok`, `failed`, `denied`, `cancelled` or `outcome unknown`. Times are ISO 8601 in UTC with microseconds,
durations milliseconds with a fraction. `error` is `{"name", "code", "reason"}`, `decision` is `{"outcome", "by",
"approval"}`. `approvals` are the questions that were put about a call: `{"reason", "outcome", "detail", "waitedMs",
"seq", "decidedSeq"}`, `outcome` one of `allowed-once`, `rejected`, `cancelled`, `unavailable`.
`jobs` are the background jobs that a call started: `{"jobId", "kind", "label", "status", "detail", "started",
"durationMs", "seq", "settledSeq"}`, `status` one of `completed`, `killed`, `failed`, and null while a job has no end;
in a list such jobs count as `unknown`.
`settings` are the policies that were set in the session, `what` one of `preset`, `sandbox`, `approvals`. `questions`
and `jobs` of a session are those that belong to no call of it.
`preflight` is the check of the program before it ran: `{"outcome", "reason", "findings", "elapsedMs"}`, `outcome` one
of `passed`, `refused`, `unchecked`.
What is not known is null.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..log.times import iso
from .audit_words import approval_object, job_counts, job_object

if TYPE_CHECKING:
    from pathlib import Path

    from ..log.reading import Call, Run
    from .audit_find import Found, Listing

__all__ = ["iso", "json_text", "list_object", "show_object"]


def json_text(value: object) -> str:
    """Returns JSON text in printable ASCII alone, so that a terminal or a pager shows it as it is."""
    return json.dumps(value, indent=2, allow_nan=False).replace("\x7f", "\\u007f")


def list_object(log: Path, listing: Listing) -> dict[str, Any]:
    """Returns what `ptc audit list --json` prints."""
    return {
        "format": "ptc.audit.list/1",
        "log": str(log),
        "more": listing.more,
        "runs": [
            {
                "run": run.id,
                "session": session.id,
                "agent": session.agent,
                "started": iso(run.started_us),
                "tool": run.call.name if run.call else None,
                "description": run.description,
                "calls": len(run.calls),
                "jobs": job_counts(run),
                "outcome": run.outcome,
                "durationMs": run.call.duration_ms if run.call else None,
            }
            for session, run in listing.runs
        ],
        "unpaired": listing.unpaired,
        "unreadable": listing.unreadable,
    }


def show_object(log: Path, found: Found) -> dict[str, Any]:
    """Returns what `ptc audit show --json` prints."""
    session = found.reading.session
    return {
        "format": "ptc.audit.show/1",
        "log": str(log),
        "session": {
            "id": session.id,
            "agent": session.agent,
            "opened": iso(session.opened_us),
            "labels": dict(session.labels),
            "events": session.events,
        },
        "settings": [
            {
                "what": setting.what,
                "value": setting.value,
                "source": setting.source,
                "time": iso(setting.time_us),
                "seq": setting.seq,
            }
            for setting in found.reading.settings
        ],
        "runs": [_run(run) for run in found.runs],
        "questions": [
            {"tool": question.tool_name, "asked": iso(question.asked_us), **approval_object(question.approval)}
            for question in found.reading.questions
        ],
        "jobs": [{**job_object(job), "callId": job.call_id} for job in found.reading.jobs],
        "unpaired": [
            {"seq": violation.seq, "callId": violation.call_id, "problem": violation.problem}
            for violation in found.reading.violations
        ],
    }


def _run(run: Run) -> dict[str, Any]:
    call = run.call
    return {
        "run": run.id,
        "callId": run.root_call_id,
        "tool": call.name if call else None,
        "description": run.description,
        "program": run.program,
        "preflight": _preflight(run),
        "arguments": call.arguments if call else None,
        "outcome": run.outcome,
        "error": _identity(call) if call else None,
        "decision": _decision(call) if call else None,
        "approvals": [approval_object(approval) for approval in call.approvals] if call else [],
        "jobs": [job_object(job) for job in call.jobs] if call else [],
        "started": iso(run.started_us),
        "durationMs": call.duration_ms if call else None,
        "content": call.content if call else None,
        "meta": call.meta if call else None,
        "seq": call.seq if call else None,
        "settledSeq": call.settled_seq if call else None,
        "calls": [_call(sub) for sub in run.calls],
    }


def _preflight(run: Run) -> dict[str, Any] | None:
    check = run.preflight
    if check is None:
        return None
    return {
        "outcome": check.outcome,
        "reason": check.reason,
        "findings": check.findings,
        "elapsedMs": check.elapsed_ms,
    }


def _call(call: Call) -> dict[str, Any]:
    return {
        "callId": call.call_id,
        "parentCallId": call.parent_call_id,
        "tool": call.name,
        "arguments": call.arguments,
        "outcome": call.outcome,
        "error": _identity(call),
        "decision": _decision(call),
        "approvals": [approval_object(approval) for approval in call.approvals],
        "jobs": [job_object(job) for job in call.jobs],
        "line": call.line,
        "started": iso(call.started_us),
        "durationMs": call.duration_ms,
        "content": call.content,
        "meta": call.meta,
        "seq": call.seq,
        "settledSeq": call.settled_seq,
    }


def _identity(call: Call) -> dict[str, str | None] | None:
    error = call.error
    return None if error is None else {"name": error.name, "code": error.code, "reason": error.reason}


def _decision(call: Call) -> dict[str, str | None] | None:
    decision = call.decision
    if decision is None:
        return None
    return {"outcome": decision.outcome, "by": decision.by, "approval": decision.approval}
