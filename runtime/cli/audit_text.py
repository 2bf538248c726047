"""What an auditor reads in the terminal.

All foreign text goes through `terminal.py`, and every line of it has a margin, so that none can pass for one of ours.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from .audit_object import iso
from .audit_values import content_text, print_field
from .audit_waterfall import print_waterfall
from .audit_words import OUTCOME_STYLES, job_counts, job_text
from .terminal import cut, escaped_lines, print_line, visible

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from ..log.background import BackgroundJob
    from ..log.reading import Approval, Call, Run, Setting
    from .audit_find import Found, Listing

__all__ = ["print_listing", "print_runs"]

_VALUE_BYTES: Final = 500
_RESULT_BYTES: Final = 4 * 1024
_NAME_BYTES: Final = 200


def print_listing(console: Console, log: Path, listing: Listing) -> None:
    """Prints the latest runs of a log as a table."""
    if not listing.runs:
        what = "no run that can be read" if listing.unreadable else "no runs yet"
        print_line(console, Text.assemble(visible(str(log)), f" has {what}"))
        return
    jobs = {run.id: job_counts(run) for _session, run in listing.runs}
    with_jobs = any(jobs.values())
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("RUN", no_wrap=True)
    table.add_column("STARTED (UTC)", no_wrap=True)
    table.add_column("AGENT", no_wrap=True, overflow="ellipsis", max_width=24)
    table.add_column("WHAT", no_wrap=True, overflow="ellipsis")
    table.add_column("CALLS", justify="right", no_wrap=True)
    if with_jobs:
        table.add_column("JOBS", no_wrap=True)
    table.add_column("OUTCOME", no_wrap=True)
    table.add_column("TIME", justify="right", no_wrap=True)
    for session, run in listing.runs:
        what = run.description or (run.call.name if run.call else "(the model's call was not recorded)")
        table.add_row(
            visible(run.id),
            Text(iso(run.started_us)[:19].replace("T", " ")),
            visible(cut(session.agent, _NAME_BYTES)[0]),
            visible(cut(what, _NAME_BYTES)[0]),
            str(len(run.calls)),
            *([_jobs(jobs[run.id])] if with_jobs else []),
            _outcome(run.outcome),
            _duration(run.call.duration_ms if run.call else None),
        )
    console.print(table)
    if listing.more:
        print_line(console, Text("older runs are not shown; --limit shows more", style="dim"))


def _jobs(counts: dict[str, int]) -> str:
    """Returns how many jobs a run has started, and how many of them did not come to a good end."""
    others = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()) if status != "completed")
    return f"{sum(counts.values())}{f' ({others})' if others else ''}" if counts else ""


def print_runs(console: Console, found: Found, *, full: bool) -> None:
    """Prints runs with their programs, their calls and their results; `full` cuts nothing."""
    session = found.reading.session
    labels = "  ".join(f"{key}={value}" for key, value in session.labels.items())
    print_line(console, Text.assemble("session  ", visible(session.id, "bold"), "  agent ", visible(session.agent)))
    print_line(console, Text(f"opened   {iso(session.opened_us)}  {session.events} events"))
    if labels:
        print_line(console, Text.assemble("labels   ", visible(labels)))
    for setting in _settings(found):
        by = "" if setting.source is None else f", by {setting.source}"
        told = cut(f"{setting.what} {setting.value}{by}", _limit(full))[0]
        print_line(console, Text.assemble(f"policy   {iso(setting.time_us)}  event {setting.seq}  ", visible(told)))
    if not found.runs:
        print_line(console, Text("\nno runs"))
    for run in found.runs:
        print_line(console, Text())
        _print_run(console, run, full=full)
    if found.reading.questions:
        print_line(console, Text("\nquestions of this session about no call", "bold"))
        for question in found.reading.questions:
            told = f"{question.tool_name}: {_approval(question.approval)}"
            _field(console, 2, f"event {question.approval.seq}", told, _limit(full))
    if found.reading.jobs:
        print_line(console, Text("\nbackground jobs of this session that no call of it started", "bold"))
        for job in found.reading.jobs:
            _print_job(console, f"event {job.seq}", job, full=full)
    if found.reading.violations:
        print_line(console, Text("\nevents of this session that do not pair, and are in no run", "bold red"))
        for violation in found.reading.violations:
            _field(console, 2, f"event {violation.seq}", f"{violation.call_id}: {violation.problem}", _limit(full))


def _settings(found: Found) -> list[Setting]:
    """Returns the policies that stood when the runs began that are shown, and those that were set until their end."""
    settings = found.reading.settings
    if not found.runs or len(found.runs) == len(found.reading.runs):
        return [*settings]
    starts = [run.calls[0].seq if run.call is None else run.call.seq for run in found.runs]
    last = max(_last_seq(run) for run in found.runs)
    standing = {setting.what: setting.seq for setting in settings if setting.seq < min(starts)}
    return [one for one in settings if one.seq in standing.values() or min(starts) < one.seq < last]


def _last_seq(run: Run) -> float:
    """Returns the last event of a run; there is none while it goes on."""
    calls = [*run.calls] if run.call is None else [run.call, *run.calls]
    return max(math.inf if call.settled_seq is None else call.settled_seq for call in calls)


def _print_run(console: Console, run: Run, *, full: bool) -> None:
    call = run.call
    head = Text.assemble("run ", visible(run.id, "bold"), "  ", _outcome(run.outcome))
    head.append(f"  {_duration(call.duration_ms if call else None)}  started {iso(run.started_us)}")
    print_line(console, head)
    if run.description is not None:
        _field(console, 2, "purpose", run.description, _limit(full))
    _field(console, 2, "call", run.root_call_id, _limit(full))
    if call is None:
        print_line(console, Text("  the model's call was not recorded, only what its program called", "yellow"))
    elif run.program is None:
        _field(console, 2, "tool", call.name, _limit(full))
        _field(console, 2, "arguments", str(call.arguments), _limit(full))
    if run.preflight is not None:
        check = run.preflight
        said = {"passed": "nothing found", "refused": f"refused, {check.findings} found"}
        told = said.get(check.outcome) or f"ran unchecked: {check.reason}"
        _field(console, 2, "preflight", f"{told}, after {check.elapsed_ms} ms", _limit(full))
    _print_approvals(console, 2, call, full=full)
    for job in call.jobs if call else ():
        _print_job(console, "job", job, full=full)
    if run.calls or run.program is not None:
        print_waterfall(console, run, full=full)
    print_line(console, Text("\n  result", "bold"))
    if call is None or call.content is None:
        print_line(console, Text("    outcome unknown: the run goes on, or its process ended before it was recorded"))
        return
    _print_failure(console, 4, call, full=full)
    _block(console, "    │ ", content_text(call.content), None if full else _RESULT_BYTES)


def _print_approvals(console: Console, indent: int, call: Call | None, *, full: bool) -> None:
    """Prints what was asked about a call, and what was answered."""
    for approval in call.approvals if call else ():
        _field(console, indent, "approval", _approval(approval), _limit(full))


def _approval(approval: Approval) -> str:
    answer = approval.outcome or "not answered"
    detail = "" if approval.detail is None else f" ({approval.detail})"
    waited = "" if approval.waited_ms is None else f" after {_duration(approval.waited_ms)}"
    reason = "" if approval.reason is None else f": {approval.reason}"
    return f"{answer}{detail}{waited}{reason}"


def _print_job(console: Console, label: str, job: BackgroundJob, *, full: bool) -> None:
    label_cut = replace(job, label=cut(job.label, _limit(full))[0], job_id=cut(job.job_id, _NAME_BYTES)[0])
    shown = replace(label_cut, detail=None if job.detail is None else cut(job.detail, _limit(full))[0])
    print_line(console, Text.assemble("  ", (f"{label:<9}  ", "dim"), job_text(shown)))


def _print_failure(console: Console, indent: int, call: Call, *, full: bool) -> None:
    if call.error is not None:
        reason = f": {call.error.reason}" if call.error.reason else ""
        _field(console, indent, "error", f"{call.error.code} ({call.error.name}){reason}", _limit(full))
    if call.decision is not None:
        by = f" by {call.decision.by}" if call.decision.by else ""
        approval = f", approval {call.decision.approval}" if call.decision.approval else ""
        _field(console, indent, "decision", f"{call.decision.outcome}{by}{approval}", _limit(full))


def _limit(full: bool) -> int | None:
    return None if full else _VALUE_BYTES


def _outcome(outcome: str) -> Text:
    return Text(outcome, OUTCOME_STYLES[outcome])


def _duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "-"
    return f"{milliseconds:,.3f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.3f} s"


def _field(console: Console, indent: int, label: str, value: str, limit: int | None) -> None:
    print_field(console, " " * indent, label, value, limit)


def _block(console: Console, margin: str, value: str, limit: int | None) -> None:
    kept, note = cut(value, limit)
    for line in escaped_lines(kept):
        print_line(console, Text.assemble((margin, "dim"), line))
    _note(console, margin, note)


def _note(console: Console, margin: str, note: str | None) -> None:
    if note is not None:
        print_line(console, Text(margin + note, "dim"))
