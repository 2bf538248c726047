"""How each row is measured."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from ..crowd import family
from .programs import HOT, TRIVIAL, WAITING, Program, Tools
from .subjects import Subject

ROOT = Path(__file__).resolve().parents[3]
_HOT_S = 0.05
"""How long a hot loop has run when it is killed."""


@dataclass(frozen=True)
class Extent:
    """How much is measured.

    Attributes:
        passes: how often each row goes round its subjects; each time all of what follows is done.
        rounds: runs of a latency row, and of a CPU row.
        warm_up: runs before them, which are not counted.
        pause_s: seconds before each run that is measured alone.
        enough_s: seconds after which no more rounds are begun.
        window_s: the seconds for which throughput is measured.
        kills: how many hot loops are killed.
        alive: how many runs wait while memory is read.
    """

    passes: int = 4
    rounds: int = 10
    warm_up: int = 2
    pause_s: float = 0.05
    enough_s: float = 2.0
    window_s: float = 1.0
    kills: int = 5
    alive: int = 20

    async def repeat(self, once: Callable[[], Awaitable[float]]) -> list[float]:
        """Returns what a measurement gave each time; at least one."""
        taken: list[float] = []
        until = time.perf_counter() + self.enough_s
        while not taken or (len(taken) < self.rounds and time.perf_counter() < until):
            taken.append(await once())
        return taken


QUICK = Extent(passes=1, rounds=2, warm_up=1, pause_s=0.0, enough_s=0.2, window_s=0.05, kills=1, alive=3)


async def latency(subject: Subject, program: Program, extent: Extent) -> list[float]:
    """Returns the milliseconds of whole runs."""

    async def once() -> float:
        await asyncio.sleep(extent.pause_s)
        await subject.prepare()
        tools = Tools()
        started = time.perf_counter()
        await subject.run(program, tools)
        return (time.perf_counter() - started) * 1000

    for _ in range(extent.warm_up):
        await once()
    return await extent.repeat(once)


async def work(subject: Subject, program: Program, extent: Extent) -> list[float]:
    """Returns the milliseconds of a program's work alone."""

    async def once() -> float:
        tools = Tools()
        await subject.run(program, tools)
        first, second, third = tools.marks
        return ((third - second) - (second - first)) * 1000

    return await extent.repeat(once)


async def rate(subject: Subject, at_once: int, extent: Extent) -> list[float]:
    """Returns trivial runs in a second."""

    async def lane(until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            await subject.run(TRIVIAL, Tools())
            done += 1
        return done

    async def window() -> float:
        started = time.perf_counter()
        done = await asyncio.gather(*[lane(started + extent.window_s) for _ in range(at_once)])
        return sum(done) / (time.perf_counter() - started)

    await window()  # it may have to make as many instances, once
    return [await window()]


async def kill(subject: Subject, extent: Extent) -> list[float]:
    """Returns the milliseconds from the decision until nothing of a hot loop runs any more."""
    taken = []
    for _ in range(extent.kills):
        tools = Tools()
        run = asyncio.create_task(subject.run(HOT, tools))
        await _unless_over(tools.begun, [run])
        await asyncio.sleep(_HOT_S)
        started = time.perf_counter()
        run.cancel()
        await asyncio.wait([run])
        taken.append((time.perf_counter() - started) * 1000)
        if not run.cancelled():
            raise RuntimeError(f"{subject.title}: a hot loop was not killed: {run.exception()}")
    return taken


async def _unless_over(event: asyncio.Event, runs: list[asyncio.Task[None]]) -> None:
    """Waits for an event that running programs bring about.

    Raises:
        Exception: what one of them failed of before.
    """
    coming = asyncio.create_task(event.wait())
    await asyncio.wait([coming, *runs], return_when=asyncio.FIRST_COMPLETED)
    if not coming.done():
        coming.cancel()
        for run in runs:
            if run.done():
                run.result()
        raise RuntimeError("a program ended before it should")


async def memory(subject: Subject, extent: Extent) -> float:
    """Returns the bytes that one run more takes while it waits.

    Raises:
        PermissionError: there is a process whose memory may not be read.
    """
    tools = Tools(wanted=1)
    runs = [asyncio.create_task(subject.run(WAITING, tools))]
    await _unless_over(tools.full, runs)
    gc.collect()
    before = _held()
    tools.wanted, tools.full = 1 + extent.alive, asyncio.Event()
    runs += [asyncio.create_task(subject.run(WAITING, tools)) for _ in range(extent.alive)]
    await _unless_over(tools.full, runs)
    gc.collect()
    after = _held()
    tools.opened.set()
    await asyncio.gather(*runs)
    return (after - before) / extent.alive


def _held() -> int:
    """Returns the bytes that this process and its children have; a page that several share counts once in all."""
    total = 0
    for process in family():
        try:
            rollup = (process / "smaps_rollup").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        total += sum(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:"))
    return total


def memory_of(subject: type[Subject], *, quick: bool) -> list[float]:
    """Returns what `memory` does, in MiB and measured in a process of its own; nothing where it may not be read."""
    command = [sys.executable, "-m", "tests.bench.peers", "--memory", subject.name, *(["--quick"] if quick else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the memory of {subject.title} could not be measured:\n{done.stderr}")
    return [] if done.stdout.strip() == "unreadable" else [float(done.stdout)]
