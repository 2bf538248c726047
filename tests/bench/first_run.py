"""What a run and a sub-call cost in one warm process, the whole `run_code` pipeline with the log on.

    python -m tests.bench.first_run [--rounds N] [--backend asyncio|trio]

Prints one table. Every figure is from this one process, in the order of the rows; "alone" rows leave a pause between
runs, so that an instance stands ready, and "back to back" rows do not.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import ptc

CALLS = 50
PAUSE_S = 0.05
TRIVIAL = "return 1 + 1"
SEQUENTIAL = f"for n in range({CALLS}):\n    await tools.double(x=n)"
CONCURRENT = f"import asyncio\nawait asyncio.gather(*[tools.double(x=n) for n in range({CALLS})])"


@ptc.tool(concurrency_safe=True)
async def double(x: int) -> int:
    """Double a number."""
    return 2 * x


async def measured(rounds: int, pause: float, run: Callable[[], Awaitable[Any]]) -> list[float]:
    """Returns the milliseconds of each round, sorted."""
    taken = []
    for _ in range(rounds):
        await anyio.sleep(pause)
        started = time.perf_counter()
        await run()
        taken.append((time.perf_counter() - started) * 1000)
    return sorted(taken)


def row(name: str, taken: list[float], calls: int = 0, base: float = 0.0) -> float:
    """Prints one row: median, best, 90th percentile, and the cost of one call over the trivial run."""
    median = statistics.median(taken)
    each = f"{(median - base) / calls * 1000:8.0f} µs" if calls else " " * 11
    print(f"{name:<42} {median:8.2f} {taken[0]:8.2f} {taken[int(len(taken) * 0.9)]:8.2f}  {each}")
    return median


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with ptc.Host(log=Path(folder) / "bench.db") as host:
            host.tools.register(double)
            sandbox = ptc.WasmSandbox()
            agent = host.agent("bench", executor=ptc.PtcExecutor(sandbox=sandbox))

            async def run(program: str) -> None:
                result = await agent.run_code(program)
                if isinstance(result, ptc.ToolFailure):
                    raise RuntimeError(result.error.message)

            await sandbox.prepare()
            for program in (TRIVIAL, SEQUENTIAL, CONCURRENT):
                await run(program)
            print(f"{'milliseconds':<42} {'median':>8} {'best':>8} {'p90':>8}  {'each call':>11}")
            trivial = row("trivial program, alone", await measured(rounds, PAUSE_S, lambda: run(TRIVIAL)))
            row("trivial program, back to back", await measured(rounds, 0, lambda: run(TRIVIAL)))
            sequential = await measured(rounds, PAUSE_S, lambda: run(SEQUENTIAL))
            row(f"{CALLS} sub-calls one after another, alone", sequential, CALLS, trivial)
            concurrent = await measured(rounds, PAUSE_S, lambda: run(CONCURRENT))
            row(f"{CALLS} sub-calls at once, alone", concurrent, CALLS, trivial)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio")
    options = parser.parse_args()
    anyio.run(main, options.rounds, backend=options.backend)
