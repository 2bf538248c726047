"""Many runs at once: 200 that wait for a slow tool, and 32 that never give control back.

    python -m tests.bench.crowd [--backend wasm|restricted] [--loop asyncio|trio] [--waiting N] [--hot N] [--calling N]

Printed are whether all of them ended as they must, the memory that each took while all were there (of this process and
of its children, shared pages counted in part), when the last hot loop was ended past its budget, and the longest time
for which the event loop did not get to anything else. Budgets count control and not processor time, so hot loops that
share few processors are ended all the same.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from ptc.sandbox.restricted import RestrictedSandbox
from ptc.sandbox.seam import BindingCall, JsonValue, Member, Namespace, Sandbox, SandboxRequest, SandboxResult
from ptc.sandbox.wasm import WasmSandbox

BACKENDS: dict[str, Callable[..., Sandbox]] = {"wasm": WasmSandbox, "restricted": RestrictedSandbox}
BUDGET_MS = 500
TICK_S = 0.001
WAITING = "return await tools.gate()"
HOT = "while True:\n    pass"
CALLING = "import asyncio\nreturn len(await asyncio.gather(*[tools.touch() for _ in range(1000)]))"
PRINTING = "while True:\n    print('x' * 10)"


@dataclass
class Stall:
    """The longest time between two turns of the event loop beyond what was asked for, in seconds."""

    longest: float = 0.0


@asynccontextmanager
async def watched_loop() -> Any:
    stall = Stall()

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await anyio.sleep(TICK_S)
            now = time.perf_counter()
            stall.longest = max(stall.longest, now - last - TICK_S)
            last = now

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        await anyio.sleep(0.05)
        yield stall
        await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()


def family() -> Iterator[Path]:
    """Gives this process and all that come from it, as directories of /proc."""
    parents: dict[str, str] = {}
    for one in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[one.parent.name] = one.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
    own = Path("/proc/self").resolve().name
    for pid in parents:
        ancestor = pid
        while ancestor in parents and ancestor != own:
            ancestor = parents[ancestor]
        if ancestor == own:
            yield Path("/proc") / pid


def memory() -> int:
    """Returns the bytes that this process and its children have; a page that several share counts once in all."""
    total = 0
    for process in family():
        try:
            rollup = (process / "smaps_rollup").read_text()
        except OSError:
            continue  # a worker of another user, or one that has ended
        total += sum(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:"))
    return total


async def many(sandbox: Sandbox, count: int, program: str, namespace: Namespace) -> tuple[list[SandboxResult], float]:
    """Returns the results, and the seconds until the last."""
    results: list[SandboxResult] = []
    started = time.perf_counter()

    async def one() -> None:
        results.append(await sandbox.run(SandboxRequest(program=program, namespaces=[namespace])))

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(one)
    return results, time.perf_counter() - started


class Tools:
    def __init__(self) -> None:
        self.inside = 0
        self.wanted = 0
        self.full = anyio.Event()
        self.open = anyio.Event()

    async def gate(self, _call: BindingCall) -> JsonValue:
        self.inside += 1
        if self.inside == self.wanted:
            self.full.set()
        await self.open.wait()
        return 1

    async def touch(self, _call: BindingCall) -> JsonValue:
        return 1

    def namespace(self) -> Namespace:
        return Namespace("tools", {"gate": Member(self.gate), "touch": Member(self.touch)})


async def waiting(sandbox: Sandbox, count: int) -> None:
    tools = Tools()
    tools.wanted = count
    ended: list[SandboxResult] = []
    finished = anyio.Event()
    before = memory()

    async def run_all() -> None:
        results, _seconds = await many(sandbox, count, WAITING, tools.namespace())
        ended.extend(results)
        finished.set()

    async with anyio.create_task_group() as tasks:
        async with watched_loop() as stall:
            started = time.perf_counter()
            tasks.start_soon(run_all)
            await tools.full.wait()
            there = time.perf_counter() - started
        # Read while nothing is measured, because that takes long itself.
        each = (memory() - before) / count
        async with watched_loop() as stall_at_the_end:
            tools.open.set()
            await finished.wait()
    good = sum(result.value_json == "1" for result in ended)
    longest = max(stall.longest, stall_at_the_end.longest)
    print(f"  {count} runs that wait for a tool: {good} finished, all inside after {there:.2f} s")
    print(f"    memory for each {each / 2**20:.2f} MiB, longest stall {longest * 1000:.0f} ms")


async def hot(sandbox: Sandbox, count: int) -> None:
    async with watched_loop() as stall:
        results, _seconds = await many(sandbox, count, HOT, Tools().namespace())
    over = max(result.statistics.compute_ms for result in results) - BUDGET_MS
    wall = max(result.statistics.wall_ms for result in results)
    ended = sum(result.error is not None and result.error.kind == "timeout" for result in results)
    print(f"  {count} hot loops of {BUDGET_MS} ms: {ended} ended by their budget, the last {over:.0f} ms past it,")
    print(f"    {wall:.0f} ms after its request; longest stall {stall.longest * 1000:.0f} ms")


async def busy(sandbox: Sandbox, count: int, name: str, program: str, wanted: str) -> None:
    async with watched_loop() as stall:
        results, seconds = await many(sandbox, count, program, Tools().namespace())
    ended = sum((result.error.kind if result.error else result.value_json) == wanted for result in results)
    print(
        f"  {count} {name}: {ended} ended as {wanted} in {seconds:.2f} s; longest stall {stall.longest * 1000:.0f} ms"
    )


async def main(backend: str, waiting_count: int, hot_count: int, calling_count: int) -> None:
    print(f"{backend}:")
    make = BACKENDS[backend]
    steps: list[tuple[dict[str, Any], Callable[[Sandbox], Awaitable[None]]]] = [
        ({}, lambda sandbox: waiting(sandbox, waiting_count)),
        ({"compute_ms": BUDGET_MS}, lambda sandbox: hot(sandbox, hot_count)),
        ({}, lambda sandbox: busy(sandbox, calling_count, "that make 1000 calls at once", CALLING, "1000")),
        (
            {"compute_ms": 20_000, "max_output_bytes": 1 << 18},
            lambda sandbox: busy(sandbox, calling_count, "that print without end", PRINTING, "output-limit"),
        ),
    ]
    for budgets, step in steps:
        async with make(**budgets) as sandbox:
            await sandbox.prepare()
            await step(sandbox)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=tuple(BACKENDS), default="wasm")
    parser.add_argument("--loop", choices=("asyncio", "trio"), default="asyncio")
    parser.add_argument("--waiting", type=int, default=200)
    parser.add_argument("--hot", type=int, default=32)
    parser.add_argument("--calling", type=int, default=16)
    options = parser.parse_args()
    anyio.run(main, options.backend, options.waiting, options.hot, options.calling, backend=options.loop)
