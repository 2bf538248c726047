"""What an auditor reads in the terminal.

All foreign text goes through `terminal.py`, and every line of it has a margin, so that none can pass for one of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from .audit_object import iso
from .audit_query import OUTCOME_STYLES
from .audit_waterfall import content_text, print_field, print_waterfall
from .terminal import cut, escaped_lines, print_line, visible

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from ..log.reading import Call, Run
    from .audit_find import Found, Listing

__all__ = ["print_listing", "print_runs"]

_VALUE_BYTES: Final = 500
_RESULT_BYTES: Final = 4 * 1024
_NAME_BYTES: Final = 200


def print_listing(console: Console, log: Path, listing: Listing) -> None:
    """Prints the latest runs of a log as a table."""
    if not listing.runs:
        print_line(console, Text(f"{log} has no runs yet"))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("RUN", no_wrap=True)
    table.add_column("STARTED (UTC)", no_wrap=True)
    table.add_column("AGENT", no_wrap=True, overflow="ellipsis", max_width=24)
    table.add_column("WHAT", no_wrap=True, overflow="ellipsis")
    table.add_column("CALLS", justify="right", no_wrap=True)
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
            _outcome(run.outcome),
            _duration(run.call.duration_ms if run.call else None),
        )
    console.print(table)
    if listing.more:
        print_line(console, Text("older runs are not shown; --limit shows more", style="dim"))


def print_runs(console: Console, found: Found, *, full: bool) -> None:
    """Prints runs with their programs, their calls and their results; `full` cuts nothing."""
    session = found.reading.session
    labels = "  ".join(f"{key}={value}" for key, value in session.labels.items())
    print_line(console, Text.assemble("session  ", visible(session.id, "bold"), "  agent ", visible(session.agent)))
    print_line(console, Text(f"opened   {iso(session.opened_us)}  {session.events} events"))
    if labels:
        print_line(console, Text.assemble("labels   ", visible(labels)))
    if not found.runs:
        print_line(console, Text("\nno runs"))
    for run in found.runs:
        print_line(console, Text())
        _print_run(console, run, full=full)
    if found.reading.violations:
        print_line(console, Text("\nevents of this session that do not pair, and are in no run", "bold red"))
        for violation in found.reading.violations:
            _field(console, 2, f"event {violation.seq}", f"{violation.call_id}: {violation.problem}", _limit(full))


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
        answer = approval.outcome or "not answered"
        waited = "" if approval.waited_ms is None else f" after {_duration(approval.waited_ms)}"
        reason = "" if approval.reason is None else f": {approval.reason}"
        _field(console, indent, "approval", f"{answer}{waited}{reason}", _limit(full))


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
