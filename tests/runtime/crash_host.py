"""A host to be killed: forked from a process that has everything loaded, it makes calls with effects until it dies.

    python crash_host.py FOLDER BACKEND KILLS SEED

forks one host after the other and kills each with SIGKILL at a random instant after the first call of a program. The
hosts write to one log in the folder, two in a row to the same sessions, so that every other one takes up what the one
before has left. Each effect of a tool is one line in the file `effects`: `begin SESSION CALL` and, after a short wait,
`end SESSION CALL`. What was done is printed as JSON.

The process is a subreaper: whatever a killed host leaves behind becomes its child, and is waited for at the end.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import ptc

_PR_SET_CHILD_SUBREAPER = 36
_LONGEST_LIFE = 0.12
"""How long a host lives at most after the first call of a program, in seconds."""
_GONE_WITHIN = 5.0

PROGRAMS = (
    "for n in range(20):\n    await tools.mark(ms=n % 3)",
    "from asyncio import gather\nfor _ in range(4):\n    await gather(*(tools.mark(ms=n % 4) for n in range(6)))",
    "from asyncio import gather\nfor _ in range(5):\n    await gather(tools.mark(), tools.change(), tools.mark(ms=0))",
    "for n in range(8):\n    await tools.change(ms=n % 2)\nreturn await tools.mark(ms=1)",
    "from asyncio import *\nasync with TaskGroup() as g:\n    for _ in range(12):\n        g.create_task(tools.mark())",
)


def tools(effects: int, began: Callable[[], None]) -> list[ptc.ToolDefinition]:
    """Returns one tool that may run beside others, and one that may not; says when a program has called the first."""
    waiting = [began]

    async def leave(arguments: Any, run: ptc.ToolRunContext) -> Any:
        agent: Any = run.exec.agent
        who = f"{agent.session.id} {run.exec.call_id}\n"
        if waiting and run.exec.parent is not None:
            waiting.pop()()
        os.write(effects, f"begin {who}".encode())
        await anyio.sleep(arguments.get("ms", 1) / 1000)
        os.write(effects, f"end {who}".encode())
        return run.exec.call_id

    parameters: Any = {"ms": {"type": "integer"}}
    options: Any = {"parameters": parameters, "output": {"type": "string"}, "execute": leave}
    return [
        ptc.define_tool(
            name="mark", description="Leave a mark.", is_concurrency_safe=lambda _arguments: True, **options
        ),
        ptc.define_tool(name="change", description="Change something.", **options),
    ]


async def live(folder: Path, backend: str, number: int, seed: int, began: Callable[[], None]) -> None:
    """Makes programs and native batches until it is killed."""
    dice = random.Random(seed)
    effects = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    sandbox: Any = {"wasm": ptc.WasmSandbox, "restricted": ptc.RestrictedSandbox}[backend]()
    async with ptc.Host(log=folder / "ptc.db") as host:
        for definition in tools(effects, began):
            host.tools.register(definition)
        executor = ptc.PtcExecutor(sandbox=sandbox, max_parallel_sub_calls=4)
        programs = host.agent("programs", executor=executor, session=f"programs-{number // 2}")
        native = host.agent("native", executor=ptc.NativeExecutor(), session=f"native-{number // 2}")

        async def run_programs() -> None:
            while True:
                result = await programs.run_code(dice.choice(PROGRAMS))
                assert not result.is_error, result.error.message

        async def run_batches() -> None:
            while True:
                names = [dice.choice(("mark", "mark", "change")) for _ in range(dice.randrange(1, 6))]
                calls = [
                    ptc.ToolCall(name=name, arguments={"ms": dice.randrange(4)}, call_id=f"call_{place}")
                    for place, name in enumerate(names)
                ]
                await native.execute(calls)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_programs)
            tasks.start_soon(run_batches)


def kill_one(folder: Path, backend: str, number: int, seed: int) -> None:
    """Forks a host, and kills it a while after the first call of a program."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            backends = ("asyncio", "trio")
            began = lambda: void(os.write(writing, b"!"))  # noqa: E731 - a name for the one line
            anyio.run(live, folder, backend, number, seed, began, backend=backends[seed % 2])
        finally:
            os._exit(1)
    os.close(writing)
    dice = random.Random(seed)
    if not os.read(reading, 1):
        raise SystemExit(f"host {number} died before it began")
    os.close(reading)
    time.sleep(dice.uniform(0.0, _LONGEST_LIFE))
    os.kill(child, signal.SIGKILL)
    _pid, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise SystemExit(f"host {number} ended by itself: {status}")


def void(_value: object) -> None:
    return None


def leftovers() -> float:
    """Waits for all that the killed hosts have left behind; returns how long that took in seconds."""
    begun = time.monotonic()
    while time.monotonic() - begun < _GONE_WITHIN:
        try:
            pid, _status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return time.monotonic() - begun
        if not pid:
            time.sleep(0.005)
    left = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    raise SystemExit(f"{len(left)} processes are left, {_GONE_WITHIN:g} s after the last host was killed")


def main(folder: Path, backend: str, kills: int, seed: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise SystemExit("this process cannot take in what killed hosts leave behind")
    began = time.monotonic()
    for number in range(kills):
        kill_one(folder, backend, number, seed + number)
    seconds = time.monotonic() - began
    print(json.dumps({"kills": kills, "seconds": seconds, "leftovers_seconds": leftovers()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
