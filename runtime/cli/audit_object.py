"""What `--json` prints: objects whose keys are always there and keep their meaning within one `format`.

`ptc audit list --json`, format `ptc.audit.list/1`:

    {"format", "log", "more", "runs": [{
        "run": "SESSION/NUMBER", "session", "agent", "started", "tool", "description", "calls": how many,
        "outcome", "durationMs"}],
     "unpaired": {SESSION: how many events make no sense},
     "unreadable": {SESSION: why}}

`ptc audit show --json`, format `ptc.audit.show/1`:

    {"format", "log",
     "session": {"id", "agent", "opened", "labels", "events"},
     "runs": [{
        "run", "callId", "tool", "description", "program", "preflight", "arguments": the model's raw text,
        "outcome", "error", "decision", "approvals", "started", "durationMs", "content", "meta", "seq", "settledSeq",
        "calls": [{"callId", "parentCallId", "tool", "arguments", "outcome", "error", "decision", "approvals", "line",
                   "started", "durationMs", "content", "meta", "seq", "settledSeq"}]}],
     "unpaired": [{"seq", "callId", "problem"}]}

An outcome is `ok`, `failed`, `denied`, `cancelled` or `outcome unknown`. Times are ISO 8601 in UTC with microseconds,
durations milliseconds with a fraction. `error` is `{"name", "code", "reason"}`, `decision` is `{"outcome", "by",
"approval"}`. `approvals` are the questions that were put about a call: `{"reason", "outcome", "waitedMs", "seq",
"decidedSeq"}`, `outcome` one of `allowed-once`, `rejected`, `cancelled`, `unavailable`.
`preflight` is the check of the program before it ran: `{"outcome", "reason", "findings", "elapsedMs"}`, `outcome` one
of `passed`, `refused`, `unchecked`.
What is not known is null.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..log.times import iso

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
        "runs": [_run(run) for run in found.runs],
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
        "approvals": _approvals(call) if call else [],
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
        "approvals": _approvals(call),
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


def _approvals(call: Call) -> list[dict[str, Any]]:
    return [
        {
            "reason": approval.reason,
            "outcome": approval.outcome,
            "waitedMs": approval.waited_ms,
            "seq": approval.seq,
            "decidedSeq": approval.decided_seq,
        }
        for approval in call.approvals
    ]
