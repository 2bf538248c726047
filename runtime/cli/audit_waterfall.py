"""The picture of a run: its program, each call below the line that made it, and all of them on one scale of time.

      6 │ rows = await asyncio.gather(tools.read(n=1), tools.read(n=2))
        ├ 1 read  ok                       ████████           1.21 ms  40.2 ms
        │   {"n":1} → "one"
        ├ 2 read  denied                   ⊘                  1.30 ms  0.21 ms
        │   {"n":2}
        │   deny by policies.read_only: nobody reads 2

A bar begins where the call began and ends where it ended, so calls that ran side by side overlap. The line is the one
that the program's side claims; nothing vouches for it.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from ...registry.lossless import to_json_text
from .audit_values import content_text, cut_to, flat, print_field
from .audit_words import JOB_OUTCOMES, OUTCOME_STYLES, reasons, short_duration
from .terminal import can_encode, cut, escaped_lines, folded, print_line, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ..log.background import BackgroundJob
    from ..log.reading import Call, Run

__all__ = ["print_waterfall", "screen_width"]

_PIPE_WIDTH: Final = 100
_NARROWEST: Final = 64
"""Below this width, in columns, there are no bars."""

_MARGIN: Final = 9
_TIMES: Final = 20
"""The columns of when a call began and how long it took."""

_MOST_CALLS: Final = 60
_FIRST: Final = 24
_LAST: Final = 8
_PROGRAM_BYTES: Final = 32 * 1024

_UNKNOWN: Final = "outcome unknown"
_FILL: Final = {"ok": "█", "failed": "█", "denied": "█", "cancelled": "█", _UNKNOWN: "░"}
_MARK: Final = {"failed": "✗", "denied": "⊘", "cancelled": "┤", _UNKNOWN: "?"}
_PLAIN: Final = str.maketrans("█░✗⊘┤│├┆→…", "#.x!|||:>~")
"""What stands for our own signs where the terminal's encoding lacks them."""


def screen_width(console: Console) -> int:
    """Returns how many columns a picture has: those of the terminal, of COLUMNS, or 100 for a pipe without it."""
    if sys.stdout.isatty():
        return console.width
    told = os.environ.get("COLUMNS", "")
    return int(told) if told.isascii() and told.isdigit() and 20 <= int(told) <= 1_000 else _PIPE_WIDTH


def print_waterfall(console: Console, run: Run, *, full: bool) -> None:
    """Prints a run's program with its calls; `full` leaves out no call and cuts nothing."""
    _Picture(console, run, full=full).print()


@dataclass(frozen=True, slots=True)
class _Scale:
    """A scale of time.

    Attributes:
        start_us: where it begins.
        span_us: how long it is.
        columns: how wide it is; 0 when there is no room for it.
    """

    start_us: int
    span_us: int
    columns: int

    def bar(self, start_us: int, end_us: int, outcome: str) -> Text:
        """Returns a bar, which takes one column at least."""
        at, upto = self._at(start_us), self._at(end_us)
        width = max(1, upto - at)
        at = min(at, self.columns - width)
        beyond = end_us > self.start_us + self.span_us  # a job goes on after its run: it does not end here
        mark = "" if beyond else _MARK.get(outcome, "")
        filled = _FILL[outcome] * (width - len(mark)) + mark
        style = OUTCOME_STYLES[outcome]
        return Text.assemble(" " * at, (filled, style), " " * (self.columns - at - width))

    def _at(self, time_us: int) -> int:
        offset = min(max(0, time_us - self.start_us), self.span_us)
        return round(offset * self.columns / self.span_us) if self.span_us else 0


class _Picture:
    """One run on its way to the screen."""

    def __init__(self, console: Console, run: Run, *, full: bool) -> None:
        self._console = console
        self._run = run
        self._full = full
        self._plain = not can_encode("█░✗⊘┤│├┆→…")
        self._width = screen_width(console)
        self._start_us = run.started_us
        self._end_us = _end_us(run)
        columns = max(0, (self._width - _MARGIN - _TIMES) * 9 // 20) if self._width >= _NARROWEST else 0
        self._scale = _Scale(self._start_us, self._end_us - self._start_us, columns)
        self._left = self._width - _TIMES - columns
        self._shown = _chosen(run.calls, full=full)
        self._children: dict[str, list[Call]] = {}
        by_id = {call.call_id for call in run.calls}
        self._by_line: dict[int, list[Call]] = {}
        for call in run.calls:
            if call.parent_call_id in by_id:
                self._children.setdefault(str(call.parent_call_id), []).append(call)
            else:
                self._by_line.setdefault(call.line or 0, []).append(call)

    def print(self) -> None:
        program = self._run.program
        self._print_head("program" if program is not None else f"calls ({len(self._run.calls)})")
        left = dict(self._by_line)
        if program is not None:
            kept, note = cut(program, None if self._full else _PROGRAM_BYTES)
            lines = escaped_lines(kept)
            for number, line in enumerate(lines[:-1] if len(lines) > 1 and not lines[-1] else lines, 1):
                self._print_source(f"{number:>4}", line)
                self._print_calls(left.pop(number, ()))
            if note is not None:
                self._line(Text(f"{self._own('       │ ')}{note}", "dim"))
        unknown = left.pop(0, ())
        for number, calls in sorted(left.items()):
            self._print_source(f"{number:>4}", Text("(a line that is not shown)", "dim"))
            self._print_calls(calls)
        if unknown:
            if program is not None:
                self._print_source("   ?", Text("(the line is not known)", "dim"))
            self._print_calls(unknown)
        hidden = len(self._run.calls) - len(self._shown)
        if hidden:
            self._line(
                Text(f"\n  {hidden:,} of {len(self._run.calls):,} calls are not shown; --full shows them", "dim")
            )

    # Rows ------------------------------------------------------------------------------------------------------------

    def _print_head(self, title: str) -> None:
        head = Text(f"\n  {title}", "bold")
        if self._run.calls and self._scale.columns:
            end = short_duration((self._end_us - self._start_us) / 1000)
            head.append(" " * (self._left - len(title) - 2))
            head.append(f"0{end:>{self._scale.columns - 1}}", "dim not bold")
            head.append(f"{'began':>10}{'took':>10}", "dim not bold")
        self._line(head)

    def _print_source(self, number: str, line: Text) -> None:
        for at, piece in enumerate(self._folded(line, self._width - _MARGIN)):
            margin = f"  {number} │ " if at == 0 else "       ┆ "
            self._line(Text.assemble((self._own(margin), "dim"), piece))

    def _print_calls(self, calls: Sequence[Call], depth: int = 0) -> None:
        hidden: list[Call] = []
        for call in calls:
            if call.call_id in self._shown:
                self._print_hidden(hidden, depth)
                hidden = []
                self._print_call(call, depth)
            else:
                hidden.append(call)
            self._print_calls(self._children.get(call.call_id, ()), depth + 1)
        self._print_hidden(hidden, depth)

    def _print_call(self, call: Call, depth: int) -> None:
        number = _number(call, self._run.root_call_id)
        label = Text.assemble(visible(cut(number, 60)[0]), " ", visible(cut(call.name, 200)[0], "bold"))
        ended = call.started_us + round(call.duration_ms * 1000) if call.duration_ms is not None else self._end_us
        took = "-" if call.duration_ms is None else short_duration(call.duration_ms)
        self._print_row(label, call.outcome, (call.started_us, ended), took, depth)
        self._print_details(call, depth)
        for job in call.jobs:
            self._print_job(job, depth + 1)

    def _print_job(self, job: BackgroundJob, depth: int) -> None:
        """Prints the row of a job below the call that started it; one that goes on after the run has an open bar."""
        name = visible(cut(job.job_id, 60)[0], "bold")
        label = Text.assemble("job ", name, " [", visible(cut(job.kind, 60)[0]), "]")
        outcome = JOB_OUTCOMES[job.status]
        ended = self._end_us if job.duration_ms is None else job.started_us + round(job.duration_ms * 1000)
        took = "-" if job.duration_ms is None else short_duration(job.duration_ms)
        self._print_row(label, job.status or outcome, (job.started_us, ended), took, depth, like=outcome)
        detail = "" if job.detail is None else f" ({job.detail})"
        self._print_value(self._own("       │   ") + "  " * depth, "", f"{job.label}{detail}")

    def _print_row(
        self,
        label: Text,
        outcome: str,
        between: tuple[int, int],
        took: str,
        depth: int,
        *,
        like: str | None = None,
    ) -> None:
        """Prints a row with its bar; it looks like that of a call with the outcome `like`, or with its own."""
        like = like or outcome
        margin = Text.assemble((self._own("       ├ "), "dim"), "  " * depth)
        room = self._left - margin.cell_len - len(outcome) - 4
        row = Text.assemble(margin, _fitted(label, room), "  ", (outcome, OUTCOME_STYLES.get(like, "dim")))
        began = short_duration(max(0, between[0] - self._start_us) / 1000)
        row.append(" " * max(2, self._left - row.cell_len))
        if self._scale.columns:
            bar = self._scale.bar(*between, like if like in OUTCOME_STYLES else "ok")
            bar.plain = self._own(bar.plain)
            row.append_text(bar)
        row.append(f"{began:>10}{took:>10}", "dim")
        self._line(row)

    def _print_hidden(self, calls: Sequence[Call], depth: int) -> None:
        """Prints one row for calls that are not shown."""
        if not calls:
            return
        counts = Counter(call.outcome for call in calls)
        told = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
        label = Text(f"{len(calls):,} more {'call' if len(calls) == 1 else 'calls'}")
        ends = [call.started_us + round((call.duration_ms or 0) * 1000) for call in calls]
        between = calls[0].started_us, max(ends)
        self._print_row(label, told, between, short_duration(max(0, between[1] - between[0]) / 1000), depth)

    # What is told of a call ------------------------------------------------------------------------------------------

    def _print_details(self, call: Call, depth: int) -> None:
        margin = self._own("       │   ") + "  " * depth
        if self._full:
            limit = None
            print_field(self._console, margin, "call", call.call_id, limit)
            print_field(self._console, margin, "arguments", to_json_text(call.arguments), limit)
            if call.content is not None:
                print_field(self._console, margin, "result", content_text(call.content), limit)
        else:
            self._print_values(call, margin)
        for label, text in reasons(call):
            self._print_value(margin, f"{label} ", text, style="")

    def _print_values(self, call: Call, margin: str) -> None:
        """Prints the arguments and the result, on one line if they fit."""
        arguments = to_json_text(call.arguments)
        result = None if call.content is None else flat(content_text(call.content))
        room = self._width - len(margin)
        if result is None:
            self._print_value(margin, "", arguments)
        elif cell_len(visible(arguments).plain) + cell_len(visible(result).plain) + 3 <= room:
            self._line(Text.assemble((margin, "dim"), visible(arguments), (self._own(" → "), "dim"), visible(result)))
        else:
            self._print_value(margin, "", arguments)
            self._print_value(margin, self._own("→ "), result)

    def _print_value(self, margin: str, label: str, value: str, *, style: str = "dim") -> None:
        """Prints a value on one line, cut to the screen with the number of bytes that are missing."""
        line = Text.assemble((margin, "dim"), (label, style))
        if self._full:
            self._line(Text.assemble(line, visible(value)))
            return
        self._line(Text.assemble(line, cut_to(value, self._width - line.cell_len)))

    def _folded(self, line: Text, width: int) -> list[Text]:
        """Folds a line that a terminal would fold without our margin; in a file it stays whole."""
        if not sys.stdout.isatty() or line.cell_len <= width:
            return [line]
        return folded(line, width, width)

    def _own(self, signs: str) -> str:
        """Returns our own signs as the terminal has them; foreign text keeps its own."""
        return signs.translate(_PLAIN) if self._plain else signs

    def _line(self, text: Text) -> None:
        print_line(self._console, text, "       ┆ ")


# Words ---------------------------------------------------------------------------------------------------------------


def _number(call: Call, root: str) -> str:
    """Returns a call's number in its run: `3`, or `3.1` for the first call that call 3 made."""
    inside = call.call_id.removeprefix(f"{root}:ptc:")
    return inside.replace(":ptc:", ".") if inside != call.call_id else call.call_id


def _chosen(calls: Sequence[Call], *, full: bool) -> set[str]:
    """Returns the ids of the calls that are shown: all; or the first, the last, and those that stand out.

    Those are the ones that did not go well, and the ones that started jobs.
    """
    if full or len(calls) <= _MOST_CALLS:
        return {call.call_id for call in calls}
    chosen = {call.call_id for call in (*calls[:_FIRST], *calls[-_LAST:])}
    for call in calls:
        if len(chosen) >= _MOST_CALLS:
            break
        if call.outcome != "ok" or call.jobs:
            chosen.add(call.call_id)
    return chosen


def _end_us(run: Run) -> int:
    """Returns the last instant that is known of a run."""
    if run.call is not None and run.call.duration_ms is not None:
        ends = [run.call.started_us + round(run.call.duration_ms * 1000)]
    else:
        ends = [run.started_us]
    ends += [call.started_us + round((call.duration_ms or 0) * 1000) for call in run.calls]
    return max(ends)


def _fitted(text: Text, room: int) -> Text:
    """Cuts one of our labels to so many columns."""
    fitted = text.copy()
    fitted.truncate(max(4, room), overflow="ellipsis")
    return fitted
