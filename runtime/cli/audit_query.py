"""`ptc audit query`: what it prints, and what a call looks like on one line and as one JSON object.

`ptc audit query --json` prints JSON Lines, one object for each call, the latest first:

    {"session", "agent", "run": "SESSION/NUMBER", "callId", "parentCallId", "tool", "arguments", "outcome", "error",
     "decision", "approvals", "jobs", "line", "started", "durationMs", "seq", "settledSeq"}

The keys are those of `ptc audit show --json`, which has the content and the program as well. `run` is null when the
record does not tell.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from ...registry.lossless import to_json_text
from ..log.times import iso
from .audit_words import OUTCOME_STYLES, approval_object, job_object, job_outcome, short_duration
from .terminal import cut, print_line, visible

if TYPE_CHECKING:
    from rich.console import Console

    from ..log.query import Findings, FoundCall
    from ..log.reading import Call

__all__ = ["call_line", "call_object", "json_line", "print_findings", "why_text"]

_NAME_BYTES: Final = 80
_ARGUMENT_BYTES: Final = 160
_WHY_BYTES: Final = 160


def call_object(found: FoundCall) -> dict[str, Any]:
    """Returns a found call as `--json` has it."""
    call = found.call
    error, decision = call.error, call.decision
    return {
        "session": found.session,
        "agent": found.agent,
        "run": None if found.run is None else f"{found.session}/{found.run}",
        "callId": call.call_id,
        "parentCallId": call.parent_call_id,
        "tool": call.name,
        "arguments": call.arguments,
        "outcome": call.outcome,
        "error": None if error is None else {"name": error.name, "code": error.code, "reason": error.reason},
        "decision": None
        if decision is None
        else {"outcome": decision.outcome, "by": decision.by, "approval": decision.approval},
        "approvals": [approval_object(approval) for approval in call.approvals],
        "jobs": [job_object(job) for job in call.jobs],
        "line": call.line,
        "started": iso(call.started_us),
        "durationMs": call.duration_ms,
        "seq": call.seq,
        "settledSeq": call.settled_seq,
    }


def json_line(value: object) -> str:
    """Returns a value as one line of JSON in printable ASCII alone."""
    return json.dumps(value, allow_nan=False, separators=(", ", ": ")).replace("\x7f", "\\u007f")


def print_findings(console: Console, found: Findings) -> None:
    """Prints calls, one on each line, and whether there are more."""
    for call in found.calls:
        print_line(console, call_line(call))
    if not found.calls:
        console.print(Text("no call fits"))
    if found.more:
        console.print(Text("older calls that fit are not shown; --limit shows more", "dim"))


def call_line(found: FoundCall) -> Text:
    """Returns a call on one line: when, who, where, what, how it ended, how long it took, why, and its arguments."""
    call = found.call
    line = Text(f"{iso(call.started_us)[:23].replace('T', ' ')}  ", "dim")
    line = Text.assemble(line, visible(cut(found.agent, _NAME_BYTES)[0]), "  ")
    line.append_text(visible(f"{found.session}/{'?' if found.run is None else found.run}"))
    line.append_text(Text.assemble("  ", visible(cut(call.name, _NAME_BYTES)[0], "bold"), "  "))
    line.append(call.outcome, OUTCOME_STYLES[call.outcome])
    if call.duration_ms is not None:
        line.append(f"  {short_duration(call.duration_ms)}")
    why = why_text(call)
    if why:
        line.append_text(Text.assemble("  ", _cut(why, _WHY_BYTES)))
    for job in call.jobs:
        line.append_text(Text.assemble("  job ", visible(cut(job.job_id, _NAME_BYTES)[0]), " ", job_outcome(job)))
    arguments = call.arguments if isinstance(call.arguments, str) else to_json_text(call.arguments)
    line.append_text(Text.assemble("  ", _cut(arguments, _ARGUMENT_BYTES)))
    return line


def why_text(call: Call) -> str:
    """Returns who decided about a call, and which error it ended with; nothing when neither is recorded."""
    parts: list[str] = []
    decision, error = call.decision, call.error
    if decision is not None:
        approval = f" (asked: {decision.approval})" if decision.approval else ""
        parts.append(f"{decision.outcome} by {decision.by or 'policy'}{approval}")
    if error is not None:
        parts.append(f"{error.code}{f': {error.reason}' if error.reason else ''}")
    return ", ".join(parts)


def _cut(text: str, limit: int) -> Text:
    kept, note = cut(text, limit)
    return Text.assemble(visible(kept), "…" if note else "")
