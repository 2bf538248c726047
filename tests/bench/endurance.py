"""Whether a sandbox stays what it was: thousands of runs in one process, ordinary ones and killed ones mixed.

    python -m tests.bench.endurance [--runs N] [--backend wasm|restricted] [--loop asyncio|trio]

Every eighth run is killed in a hot loop, dies, floods its output or fails; the others make calls and return. Each
plants a mark in every place that it can reach, and tells whether it found one of an earlier run. Printed are resident
memory, descriptors and threads after the first tenth and at the end. `endure` is what the tests call, with fewer runs.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from ptc.sandbox.restricted import RestrictedSandbox
from ptc.sandbox.seam import BindingCall, JsonValue, Member, Namespace, Sandbox, SandboxRequest, SandboxResult
from ptc.sandbox.wasm import WasmSandbox

BACKENDS: dict[str, Callable[..., Sandbox]] = {"wasm": WasmSandbox, "restricted": RestrictedSandbox}
AT_ONCE = 4
ORDINARY = """
import asyncio, json, random
found = []
for name, place in (("json", json), ("random", random), ("asyncio", asyncio), ("tools", tools)):
    try:
        if getattr(place, "mark", None) is not None:
            found.append(name)
    except Exception:
        pass
    try:
        place.mark = RUN
    except Exception:
        pass
try:
    mark
    found.append("a global")
except NameError:
    pass
mark = "of an earlier run"
print("run", RUN)
got = await asyncio.gather(*[tools.echo(value=[RUN, n]) for n in range(3)])
return [RUN, found, got, random.random()]
"""
ENDED = (
    ("while True:\n    pass", "timeout"),
    ("while True:\n    print('x' * 1000)", "output-limit"),
    (
        "import asyncio\nasyncio.create_task(tools.slow())\nawait asyncio.sleep(0)\nraise ValueError('on purpose')",
        "exception",
    ),
    ("await tools.slow()", "timeout"),
    ("return {1}", "invalid-output"),
    ("x = []\nwhile True:\n    x.append(bytearray(1 << 20))", "exception"),
)


@dataclass(frozen=True)
class Held:
    """What this process has."""

    memory: int
    descriptors: int
    threads: int

    def __str__(self) -> str:
        return f"{self.memory / 2**20:8.1f} MiB resident, {self.descriptors:4} descriptors, {self.threads:3} threads"


@dataclass
class Endured:
    """What a number of runs came to.

    Attributes:
        early: what the process had after the first tenth.
        late: what it has at the end.
        crossed: where state of one run was seen in another.
        wrong: runs that did not end as they should.
        slow: ordinary runs that the machine was too busy for, within their budgets.
        seconds: what all of it took.
    """

    early: Held
    late: Held
    crossed: list[str]
    wrong: list[str]
    slow: int
    seconds: float


def held() -> Held:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return Held(pages * resource.getpagesize(), descriptors, len(list(Path("/proc/self/task").iterdir())))


class _Endurance:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._numbers = itertools.count()
        self._randoms: set[Any] = set()
        self.crossed: list[str] = []
        self.wrong: list[str] = []
        self.slow = 0

    async def some(self, count: int) -> None:
        left = iter(range(count))

        async def lane() -> None:
            for _ in left:
                await self._one(next(self._numbers))

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(lane)

    async def _one(self, number: int) -> None:
        seen: list[JsonValue] = []

        async def echo(call: BindingCall) -> JsonValue:
            arguments: Any = call.arguments
            seen.append(arguments["value"])
            return arguments["value"]

        async def slow(_call: BindingCall) -> JsonValue:
            await anyio.sleep(60)
            return None

        tools = Namespace("tools", {"echo": Member(echo, ("value",)), "slow": Member(slow)})

        async def run(program: str) -> SandboxResult:
            return await self._sandbox.run(SandboxRequest(program=program, namespaces=[tools]))

        if number % 8 == 7:
            program, kind = ENDED[number // 8 % len(ENDED)]
            result = await run(program)
            # Memory that runs out may end the interpreter, and time may run out first.
            allowed = {kind, "timeout", "worker-exit"} if kind == "exception" else {kind}
            if result.error is None or result.error.kind not in allowed:
                self.wrong.append(f"run {number} should have ended as {kind}: {result}")
            return
        result = await run(f"RUN = {number}\n{ORDINARY}")
        if result.error is not None and result.error.kind == "timeout":
            self.slow += 1
            return
        if result.error is not None or result.logs != (f"run {number}",):
            self.wrong.append(f"run {number}: {result}")
            return
        told, found, got, chance = json.loads(result.value_json or "null")
        wanted = [[number, n] for n in range(3)]
        if found:
            self.crossed.append(f"run {number} found marks in {', '.join(found)}")
        if (told, got, sorted(seen, key=str)) != (number, wanted, wanted):
            self.crossed.append(f"run {number} was given {told}, {got}, and called {seen}")
        if chance in self._randoms:
            self.crossed.append(f"run {number} had the random numbers of an earlier one")
        self._randoms.add(chance)


async def endure(backend: str, runs: int) -> Endured:
    """Makes that many runs on one sandbox.

    Args:
        backend: `wasm` or `restricted`.
        runs: how many.
    """
    started = time.perf_counter()
    budgets = {"compute_ms": 300, "max_wall_ms": 900, "max_memory_bytes": 64 << 20, "max_output_bytes": 50_000}
    async with BACKENDS[backend](**budgets, max_concurrent_runs=AT_ONCE) as sandbox:
        await sandbox.prepare()
        endurance = _Endurance(sandbox)
        await endurance.some(runs // 10)
        early = held()
        await endurance.some(runs - runs // 10)
        late = held()
    seconds = time.perf_counter() - started
    return Endured(early, late, endurance.crossed, endurance.wrong, endurance.slow, seconds)


async def main(backend: str, runs: int) -> None:
    endured = await endure(backend, runs)
    print(f"{backend}: {runs} runs in {endured.seconds:.0f} s, {endured.seconds / runs * 1000:.1f} ms each")
    print(f"  after the first {runs // 10:5}: {endured.early}")
    print(f"  at the end:             {endured.late}")
    print(f"  after closing:          {held()}")
    print(
        f"  state that crossed runs: {len(endured.crossed) or 'none'}; runs that ended wrongly: {len(endured.wrong)}, "
        f"too slow: {endured.slow}"
    )
    for line in (endured.crossed + endured.wrong)[:10]:
        print(f"    {line[:300]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--backend", choices=tuple(BACKENDS), default="wasm")
    parser.add_argument("--loop", choices=("asyncio", "trio"), default="asyncio")
    options = parser.parse_args()
    anyio.run(main, options.backend, options.runs, backend=options.loop)
