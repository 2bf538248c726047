"""The rows of the table, and one run that fills them."""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from .measures import QUICK, Extent, kill, latency, memory_of, rate, work
from .programs import CALLS, CONCURRENT, CPU, SEQUENTIAL, TRIVIAL, Program
from .subjects import Subject
from .table import Table, number, spread

AT_ONCE = (1, 2, 8)


@dataclass
class Bench:
    """One run of the benchmark.

    Attributes:
        subjects: what is measured.
        quick: whether it is only seen to work.
        ready: the subjects, with an instance that stands ready where they have such a thing.
        unready: the same without.
    """

    subjects: Sequence[type[Subject]]
    quick: bool
    ready: dict[str, Subject] = field(default_factory=dict)
    unready: dict[str, Subject] = field(default_factory=dict)

    @property
    def extent(self) -> Extent:
        return QUICK if self.quick else Extent()

    async def run(self) -> Table:
        table = Table(self.subjects)
        async with AsyncExitStack() as stack:
            for one in self.subjects:
                self.ready[one.name] = await stack.enter_async_context(one())
                self.unready[one.name] = await stack.enter_async_context(one(ready=False))
            # Collections would go through all of this process again and again while a program runs inside it.
            gc.collect()
            gc.freeze()
            for row in ROWS:
                taken: dict[str, list[float]] = {one.name: [] for one in self.subjects if row.needs not in one.lacks}
                for round_of_all in range(self.extent.passes):
                    print(f"{row.label}: {round_of_all + 1} of {self.extent.passes}", file=sys.stderr)
                    for one in self.subjects:
                        if one.name in taken:
                            taken[one.name] += await row.measure(self, one)
                table.add(row.label, row.goal, {name: row.show(some, taken) for name, some in taken.items()})
                for one in self.subjects:
                    table.tell(one, row.label, one.lacks.get(row.needs, ""))
        return table


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        label: what it is called, with its unit.
        needs: what a subject must not lack for it.
        goal: which goal stands in it.
        measure: measures one subject.
        show: makes a cell of what was measured; it is also given what was measured of all.
    """

    label: str
    needs: str
    goal: str
    measure: Callable[[Bench, type[Subject]], Awaitable[list[float]]]
    show: Callable[[list[float], dict[str, list[float]]], str] = lambda taken, _all: spread(taken)


def _latency(label: str, needs: str, goal: str, program: Program) -> Row:
    async def measure(bench: Bench, subject: type[Subject]) -> list[float]:
        subjects = bench.unready if needs == "unready" else bench.ready
        return await latency(subjects[subject.name], program, bench.extent)

    return Row(label, needs, goal, measure)


def _work(label: str, program: Program) -> Row:
    async def measure(bench: Bench, subject: type[Subject]) -> list[float]:
        return await work(bench.ready[subject.name], program, bench.extent)

    def show(taken: list[float], everyone: dict[str, list[float]]) -> str:
        median, native = statistics.median(taken), everyone.get("native")
        ratio = "" if native in (None, taken) else f" ({number(median / statistics.median(native))}x)"
        return number(median) + ratio

    return Row(f"{label}, ms", "work", "work", measure, show)


def _rate(at_once: int) -> Row:
    async def measure(bench: Bench, subject: type[Subject]) -> list[float]:
        return await rate(bench.ready[subject.name], at_once, bench.extent)

    return Row(
        f"trivial runs in a second, {at_once} at once", "rate", "rate", measure,
        lambda taken, _all: f"{statistics.median(taken):,.0f}",
    )  # fmt: skip


async def _kill(bench: Bench, subject: type[Subject]) -> list[float]:
    return await kill(bench.ready[subject.name], bench.extent)


async def _memory(bench: Bench, subject: type[Subject]) -> list[float]:
    return memory_of(subject, quick=bench.quick)


ROWS = (
    _latency("trivial run, one stands ready, ms", "ready", "ready", TRIVIAL),
    _latency("trivial run, none stands ready, ms", "unready", "unready", TRIVIAL),
    _latency(f"{CALLS} calls one after another, ms", "calls", "sequential", SEQUENTIAL),
    _latency(f"{CALLS} calls of 10 ms at once, ms", "calls", "concurrent", CONCURRENT),
    *(_work(label, program) for label, program in CPU.items()),
    *(_rate(at_once) for at_once in AT_ONCE),
    Row(
        "memory of a live run, MiB", "memory", "memory", _memory,
        lambda taken, _all: number(statistics.median(taken)) if taken else "unreadable",
    ),
    Row("killing a hot loop, ms", "kill", "kill", _kill),
)  # fmt: skip
