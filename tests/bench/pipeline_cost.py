"""What the pipeline itself costs: a native call with a trivial body, and how that grows with policies.

    python -m tests.bench.pipeline_cost [--rounds N] [--backend asyncio|trio]

Prints two tables from this one process. The first is the call that most hosts have: three pre-execute listeners, two
guards, two execute wrappers and two observers. Its rows are the stages alone, as schedulers drive them; the same with
the shelter that a single `Pipeline.execute` gives its body; and a call of a native batch, with a task for each body.
The second table adds pre-execute listeners to a call without other policies; each row says what one more listener cost
since the row before.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import anyio
from ptc.registry import (
    NativeExecutor,
    Pipeline,
    SignalSource,
    ToolBatchInput,
    ToolCall,
    ToolExecutionInput,
    ToolRegistry,
    define_tool,
)

INNER = 50
GROWTH = (0, 1, 2, 4, 8, 16, 32)
ARGUMENTS = {"item": "tea"}


async def body(arguments: Any) -> Any:
    return 9.5


def price_tool() -> Any:
    return define_tool(
        name="get_price",
        description="Look up a price.",
        parameters={"item": {"type": "string", "required": True}},
        output={"type": "number"},
        execute=body,
    )


def with_policies() -> ToolRegistry:
    registry = ToolRegistry()
    tools = registry.context()
    tools.register(price_tool())

    async def pass_on(call: Any, next: Any) -> Any:
        return await next()

    async def wrap(view: Any, next: Any) -> Any:
        return await next()

    def observe(call: Any, result: Any) -> None:
        return None

    def guard(call: Any) -> None:
        return None

    for _ in range(3):
        tools.on("tools/pre-execute", pass_on)
    for _ in range(2):
        tools.guard(guard)
        tools.on("tools/execute", wrap)
        tools.on("tools/result", observe)
    return registry


def with_listeners(count: int) -> ToolRegistry:
    registry = ToolRegistry()
    tools = registry.context()
    tools.register(price_tool())

    async def pass_on(call: Any, next: Any) -> Any:
        return await next()

    for _ in range(count):
        tools.on("tools/pre-execute", pass_on)
    return registry


async def by_stages(registry: ToolRegistry, rounds: int) -> list[float]:
    """Returns the microseconds of one call through `prepare`, `dispatch` and `finish` in each round, sorted."""
    pipeline, signal = Pipeline(registry), SignalSource().signal
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        for n in range(INNER):
            call = pipeline.call(
                ToolExecutionInput(call_id=f"c{n}", name="get_price", arguments=ARGUMENTS, signal=signal)
            )
            await call.prepare()
            await call.dispatch(shelter=signal)
            await call.finish()
        taken.append((time.perf_counter() - started) / INNER * 1e6)
    return sorted(taken)


async def by_execute(registry: ToolRegistry, rounds: int) -> list[float]:
    """Returns the microseconds of one `Pipeline.execute` in each round, sorted."""
    pipeline = Pipeline(registry)
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        for n in range(INNER):
            await pipeline.execute(ToolExecutionInput(call_id=f"c{n}", name="get_price", arguments=ARGUMENTS))
        taken.append((time.perf_counter() - started) / INNER * 1e6)
    return sorted(taken)


async def by_batch(registry: ToolRegistry, rounds: int) -> list[float]:
    """Returns the microseconds of one call in a batch of `INNER` calls, in each round, sorted."""
    executor = NativeExecutor(Pipeline(registry))
    calls = [ToolCall(name="get_price", arguments=ARGUMENTS, call_id=f"c{n}") for n in range(INNER)]
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        await executor.execute(ToolBatchInput(calls=calls))
        taken.append((time.perf_counter() - started) / INNER * 1e6)
    return sorted(taken)


def row(name: str, taken: list[float], more: str = "") -> float:
    median = statistics.median(taken)
    print(f"{name:<44} {median:8.1f} {taken[0]:8.1f} {taken[int(len(taken) * 0.9)]:8.1f}  {more}")
    return median


async def main(rounds: int) -> None:
    registry = with_policies()
    bare = with_listeners(0)
    await by_execute(registry, 20)
    print(f"{'microseconds for one call':<44} {'median':>8} {'best':>8} {'p90':>8}")
    row("the stages, policies as above", await by_stages(registry, rounds))
    row("the stages, no policies", await by_stages(bare, rounds))
    row("Pipeline.execute, policies as above", await by_execute(registry, rounds))
    row("Pipeline.execute, no policies", await by_execute(bare, rounds))
    row("in a native batch, policies as above", await by_batch(registry, rounds))
    print(f"\n{'pre-execute listeners':<44} {'median':>8} {'best':>8} {'p90':>8}  {'one more costs':>14}")
    before, known = 0.0, 0
    for count in GROWTH:
        taken = await by_stages(with_listeners(count), rounds)
        median = statistics.median(taken)
        more = f"{(median - before) / (count - known):11.2f} µs" if count else ""
        row(str(count), taken, more)
        before, known = median, count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--backend", default="asyncio", choices=["asyncio", "trio"])
    options = parser.parse_args()
    anyio.run(main, options.rounds, backend=options.backend)
