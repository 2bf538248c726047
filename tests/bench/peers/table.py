"""The table: rows are measures, columns are subjects, and our goals stand beside our columns."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from .subjects import Subject

NOT_POSSIBLE = "n/a"

GOALS: dict[str, dict[str, str]] = {
    "wasm": {
        "ready": "1",
        "unready": "2",
        "sequential": "5",
        "concurrent": "16",
        "work": "2.5x",
        "kill": "5",
    },
    "restricted": {
        "ready": "3",
        "unready": "3",
        "sequential": "5",
        "work": "1.5x",
    },
}  # fmt: skip
"""The most that it should be, by subjects and kinds of row."""


def number(value: float) -> str:
    """Returns a figure with about three digits that count."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 100 else f"{value:,.0f}"


def spread(taken: Sequence[float]) -> str:
    """Returns the median, and p10 to p90 behind it."""
    ordered = sorted(taken)
    low, high = ordered[int(len(ordered) * 0.1)], ordered[int((len(ordered) - 1) * 0.9 + 0.5)]
    return f"{number(statistics.median(ordered))} ({number(low)}-{number(high)})"


@dataclass
class Table:
    """What has been measured.

    Attributes:
        subjects: the columns.
        rows: the label of each row, its kind, and its cells by subjects.
        notes: why cells are empty.
    """

    subjects: Sequence[type[Subject]]
    rows: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, label: str, kind: str, cells: dict[str, str]) -> None:
        self.rows.append((label, kind, cells))

    def tell(self, subject: type[Subject], label: str, why: str) -> None:
        """Says why a subject is not in a row."""
        if why:
            self.notes.append(f"{subject.title}, {label.rpartition(',')[0]}: {why}.")

    def _lines(self) -> list[list[str]]:
        header = [""]
        for one in self.subjects:
            header += [one.title, *(["goal"] if one.name in GOALS else [])]
        lines = [header]
        for label, kind, cells in self.rows:
            line = [label]
            for one in self.subjects:
                line.append(cells.get(one.name, NOT_POSSIBLE))
                if one.name in GOALS:
                    line.append(GOALS[one.name].get(kind, ""))
            lines.append(line)
        return lines

    def plain(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(row))
            for row in ([*zip(line, widths, strict=True)] for line in lines)
        )

    def markdown(self) -> str:
        header, *lines = self._lines()
        ruler = ["---", *["--:" for _ in header[1:]]]
        return "\n".join(f"| {' | '.join(line)} |" for line in [header, ruler, *lines])
