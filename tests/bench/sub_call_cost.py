"""What one call of a program costs, and what of it is the sandbox, the pipeline and the log.

    python -m tests.bench.sub_call_cost [--rounds N] [--loop asyncio|trio] [--durability process|power] [--profile]

Programs of 50 calls with a trivial body, one after another and all at once, on both backends. Each figure is the time
of such a run less that of a run without calls, for one call: on the bare sandbox, whose binding answers at once; on a
host without a log; on a host that records each call (`durability="process"` unless told otherwise). All take turns in
one process, so that what else the machine does hits each of them alike; the best rounds tell most about the code.

`--profile` prints where the host's own thread spends its time instead.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

import anyio
import ptc
from ptc.sandbox.seam import JsonText, Member, Namespace, SandboxRequest

CALLS = 50
LAYERS = ("sandbox", "host without log", "host with log")
PROGRAMS = {
    "no call": "return 1",
    "sequential": f"for _ in range({CALLS}):\n    await tools.get_price(item='tea')",
    "concurrent": f"import asyncio\nawait asyncio.gather(*[tools.get_price(item='tea') for _ in range({CALLS})])",
}
GOALS_US = {"sequential": 150, "concurrent": 100}

Run = Callable[[str], Awaitable[None]]


@ptc.tool(concurrency_safe=True)
async def get_price(item: str) -> float:
    """Look up a price."""
    return 9.5


class _Answered:
    """An answer that is there at once."""

    def add_done_callback(self, callback: Any, /) -> None:
        callback(self)

    def result(self) -> JsonText:
        return JsonText("9.5")


def bare(sandbox: ptc.Sandbox) -> Run:
    tools = Namespace("tools", {"get_price": Member(lambda _call: _Answered(), ("item",))})

    async def run(program: str) -> None:
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[tools]))
        assert result.error is None, result.error

    return run


async def hosted(stack: AsyncExitStack, sandbox: ptc.Sandbox, log: Path | None, durability: Any) -> Run:
    host = await stack.enter_async_context(ptc.Host(log=log, durability=durability))
    host.tools.register(get_price)
    agent = host.agent("bench", executor=ptc.PtcExecutor(sandbox=sandbox))

    async def run(program: str) -> None:
        result = await agent.run_code(program)
        assert not result.is_error, result.error.message

    return run


Taken = dict[tuple[str, str], list[float]]
"""Microseconds of each program on each layer, in the order of the rounds."""


async def measure(runs: dict[str, Run], rounds: int) -> tuple[Taken, Taken]:
    """Returns what passed by the clock, and what the event loop's thread took of the processor."""
    taken: Taken = {(layer, name): [] for layer in runs for name in PROGRAMS}
    busy: Taken = {key: [] for key in taken}
    for turn in range(rounds + 3):
        for layer, run in runs.items():
            for name, program in PROGRAMS.items():
                started, worked = time.perf_counter(), time.thread_time()
                await run(program)
                if turn >= 3:  # the first ones warm up
                    taken[layer, name].append((time.perf_counter() - started) * 1e6)
                    busy[layer, name].append((time.thread_time() - worked) * 1e6)
                await anyio.sleep(0.002)  # the next instance is made ready meanwhile
    return taken, busy


def each(taken: Taken, layer: str, name: str, pick: Callable[[list[float]], float]) -> float:
    return (pick(taken[layer, name]) - pick(taken[layer, "no call"])) / CALLS


def best(values: list[float]) -> float:
    return sorted(values)[len(values) // 10]


async def main(rounds: int, durability: Literal["process", "power"], profile: bool) -> None:
    backends: dict[str, Callable[[], ptc.Sandbox]] = {"wasm": ptc.WasmSandbox}
    if sys.platform.startswith("linux"):
        backends["restricted"] = ptc.RestrictedSandbox
    print(f"µs for one call of {CALLS}: best decile of the clock, and of the processor time of the host's own thread")
    heads = f"{'whole':>8} {'sandbox':>8} {'pipeline':>8} {'log':>8}"
    print(f"{'':<21} {heads}  goal   median |{heads}")
    for backend, make in backends.items():
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            sandbox: Any = await stack.enter_async_context(make())
            runs = {
                "sandbox": bare(sandbox),
                "host without log": await hosted(stack, sandbox, None, durability),
                "host with log": await hosted(stack, sandbox, folder / "ptc.db", durability),
            }
            if profile:
                await show_profile(backend, runs["host with log"], rounds)
                continue
            taken, busy = await measure(runs, rounds)
            for name, goal in GOALS_US.items():
                median = each(taken, LAYERS[-1], name, statistics.median)
                print(f"{backend:<10} {name:<10} {parts(taken, name)} < {goal:3d} {median:8.1f} |{parts(busy, name)}")


def parts(taken: Taken, name: str) -> str:
    sandbox, host, whole = (each(taken, layer, name, best) for layer in LAYERS)
    return f"{whole:8.1f} {sandbox:8.1f} {host - sandbox:8.1f} {whole - host:8.1f}"


async def show_profile(backend: str, run: Run, rounds: int) -> None:
    for name in GOALS_US:
        await run(PROGRAMS[name])
        profiler = cProfile.Profile()
        profiler.enable()
        for _ in range(rounds):
            await run(PROGRAMS[name])
        profiler.disable()
        print(f"\n{backend}, {name}, {rounds * CALLS} calls")
        pstats.Stats(profiler).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--loop", default="asyncio", choices=["asyncio", "trio"])
    parser.add_argument("--durability", default="process", choices=["process", "power"])
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    anyio.run(main, options.rounds, options.durability, options.profile, backend=options.loop)
