"""Programs that compute in turns on one processor: each gets one, and however a program ends, the turn comes back."""

from __future__ import annotations

import random
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

import anyio
import pytest
from ptc.sandbox.conformance.fixtures import Stop
from ptc.sandbox.seam import (
    BindingCall,
    JsonValue,
    Member,
    Namespace,
    SandboxMisuseError,
    SandboxRequest,
    SandboxResult,
)
from ptc.sandbox.supervisor import Supervisor
from ptc.sandbox.wasm import WasmSandbox
from ptc.sandbox.wasm.processors import Processors, Turn

pytestmark = pytest.mark.anyio

HOT = "while True:\n    pass"
WANDERING = (
    HOT,
    "import time\nwhile True:\n    time.sleep(0.001)",
    "import asyncio\nwhile True:\n    await asyncio.gather(*[tools.touch() for _ in range(3)])",
    "while True:\n    print('x')",
    "return await tools.touch()",
)
OWN_ENDINGS = {
    "value": "return 1",
    "error": "1 / 0",
    "exit": "import os\nos._exit(1)",
    "stack": "class A:\n    def __getattr__(self, name):\n        return getattr(self, name)\n"
    "import sys\nsys.setrecursionlimit(10**8)\nA().x",
    "memory": "kept = []\nwhile True:\n    kept.append(bytearray(1 << 20))",
    "output": "while True:\n    print('x' * 1000)",
    "no interface": "import os\nos.remove('x')",
}


class HostFaultError(Exception):
    """Something that goes wrong in the host itself."""


@pytest.fixture(autouse=True)
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processors]:
    """The one processor that all programs of a test share; at the end it must be free."""
    gate = Processors(1)
    monkeypatch.setattr("ptc.sandbox.wasm.instance.PROCESSORS", gate)
    monkeypatch.setattr("ptc.sandbox.wasm.engine.PROCESSORS", gate)
    yield gate
    assert not gate._holding
    assert not gate._fresh
    assert not gate._used
    assert gate._free == 1


async def touch(_call: BindingCall) -> JsonValue:
    return 1


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110 - threads change it, which set no event
            await anyio.sleep(0.001)


async def run(sandbox: WasmSandbox, program: str, stop: Stop | None = None, **tools: object) -> SandboxResult:
    members = {name: Member(tool) for name, tool in {"touch": touch, **tools}.items()}  # type: ignore[arg-type]
    return await sandbox.run(SandboxRequest(program=program, namespaces=[Namespace("tools", members)], signal=stop))


async def test_programs_that_run_programs_need_no_second_processor() -> None:
    async with WasmSandbox() as outer, WasmSandbox() as inner:

        async def deeper(call: BindingCall) -> JsonValue:
            depth = call.arguments["depth"]  # type: ignore[index,call-overload]
            sandbox = (outer, inner)[depth % 2]  # type: ignore[operator]
            below = f"await tools.deeper(depth={depth - 1})" if depth else "1"  # type: ignore[operator]
            # It computes as long as the call is not answered, so that the one below must get its turn meanwhile.
            program = f"""
                import asyncio
                async def below():
                    return {below}
                tasks = [asyncio.create_task(below()) for _ in range(2)]
                while not all(task.done() for task in tasks):
                    await asyncio.sleep(0)
                return sum(task.result() for task in tasks)
            """
            result = await run(sandbox, textwrap.dedent(program), deeper=deeper)
            assert result.value_json is not None, result.error
            return int(result.value_json)

        with anyio.fail_after(30):
            result = await run(outer, "return await tools.deeper(depth=3)", deeper=deeper)
    assert result.value_json == "16"


async def test_a_program_that_sleeps_leaves_its_turn(gate: Processors) -> None:
    stop, asleep = Stop(), anyio.Event()

    async def lie_down(_call: BindingCall) -> JsonValue:
        asleep.set()
        return None

    async with WasmSandbox(compute_ms=5000) as sandbox, anyio.create_task_group() as tasks:

        async def sleep() -> None:
            result = await run(sandbox, "import time\nawait tools.lie_down()\ntime.sleep(500)", stop, lie_down=lie_down)
            assert result.error is not None
            assert result.error.kind == "abort"
            assert result.statistics.compute_ms < 5000

        tasks.start_soon(sleep)
        await asleep.wait()
        await until(lambda: not gate._holding)
        assert (await run(sandbox, "return 1")).value_json == "1"
        stop.press("enough")


@pytest.mark.contract("F17")
async def test_to_wait_for_a_processor_after_a_call_is_no_computing(gate: Processors) -> None:
    other = Turn(lambda: None)

    async def occupy(_call: BindingCall) -> JsonValue:
        await until(lambda: not gate._holding)
        gate.enter(other)
        return None

    async with WasmSandbox(compute_ms=2000) as sandbox, anyio.create_task_group() as tasks:

        async def call() -> None:
            result = await run(sandbox, "return await tools.occupy()", occupy=occupy)
            assert result.value_json == "null"
            assert result.statistics.wall_ms > 2200
            assert result.statistics.compute_ms < 2000

        await sandbox.prepare()
        tasks.start_soon(call)
        await until(lambda: bool(gate._fresh))
        await anyio.sleep(2.2)
        gate.leave(other)


@pytest.mark.contract("F18")
async def test_a_run_that_never_gets_its_turn_ends_by_the_wall(gate: Processors) -> None:
    other = Turn(lambda: None)
    async with WasmSandbox(max_wall_ms=100) as sandbox:
        await sandbox.prepare()
        gate.enter(other)
        results = [await run(sandbox, "return 1") for _ in range(2)]
        gate.leave(other)
    for result in results:
        assert result.error is not None
        assert result.error.message == "wall-clock ceiling reached (100ms)"
        assert not result.statistics.compute_ms


@pytest.mark.parametrize("ending", OWN_ENDINGS)
async def test_however_a_program_ends_its_turn_comes_back(gate: Processors, ending: str) -> None:
    async with WasmSandbox(max_memory_bytes=64 << 20, max_output_bytes=1 << 16) as sandbox:
        result = await run(sandbox, OWN_ENDINGS[ending])
        assert (result.error is None) == (ending == "value")
        assert gate._free == 1
        assert (await run(sandbox, "return 2")).value_json == "2"


def fail(*_arguments: object) -> NoReturn:
    raise HostFaultError


def fail_in_line(gate: Processors, turn: Turn) -> NoReturn:
    """Fails when the run stands in line already."""
    with gate._lock:
        gate._fresh.append(turn)
        turn.begin_to_wait()
    raise HostFaultError


class FailsTheSecondTime:
    def __init__(self) -> None:
        self.entered: list[Turn] = []

    def __call__(self, gate: Processors, turn: Turn) -> None:
        self.entered.append(turn)
        if len(self.entered) == 2:
            raise HostFaultError
        ENTER(gate, turn)


ENTER = Processors.enter


@pytest.mark.parametrize(
    ("where", "step", "fault", "program"),
    [
        pytest.param(Supervisor, "emit", fail, "print('x')", id="emit"),
        pytest.param(Supervisor, "submit", fail, "await tools.touch()", id="submit"),
        pytest.param(Supervisor, "started", fail, "return 1", id="started"),
        pytest.param(Supervisor, "taken", fail, "await tools.touch()", id="taken"),
        pytest.param(Processors, "enter", fail, "return 1", id="enter"),
        pytest.param(Processors, "enter", fail_in_line, "return 1", id="in line"),
        pytest.param(Processors, "enter", FailsTheSecondTime(), "import time\ntime.sleep(0.02)", id="comes back"),
        pytest.param(Processors, "over", fail, HOT, id="over"),
    ],
)
async def test_a_fault_of_the_host_gives_the_turn_back(
    gate: Processors,
    monkeypatch: pytest.MonkeyPatch,
    where: type,
    step: str,
    fault: Callable[..., None],
    program: str,
) -> None:
    if isinstance(fault, FailsTheSecondTime):
        fault.entered.clear()
    async with WasmSandbox() as sandbox:
        await sandbox.prepare()
        with monkeypatch.context() as patch, anyio.fail_after(20):
            patch.setattr(where, step, lambda *arguments: fault(*arguments))
            async with anyio.create_task_group() as tasks:
                if program is HOT:
                    tasks.start_soon(interrupt_while_it_computes, sandbox, gate)
                with pytest.raises(HostFaultError):
                    await run(sandbox, program)
        assert gate._free == 1
        assert (await run(sandbox, "return 2")).value_json == "2"


async def interrupt_while_it_computes(sandbox: WasmSandbox, gate: Processors) -> None:
    await until(lambda: bool(gate._holding))
    while gate._holding:
        sandbox._instances.interrupt()
        await anyio.sleep(0.005)


async def test_a_sandbox_that_closes_leaves_the_processor_to_others(gate: Processors) -> None:
    results: list[SandboxResult] = []
    async with WasmSandbox() as stays, anyio.create_task_group() as tasks:
        for _ in range(3):
            closes = WasmSandbox()

            async def hot(sandbox: WasmSandbox = closes) -> None:
                try:
                    results.append(await run(sandbox, HOT))
                except SandboxMisuseError:
                    pytest.fail("a run that had begun is told of the end in its result")

            for _ in range(6):
                tasks.start_soon(hot)
            await until(lambda: bool(gate._holding) and len(gate._fresh) + len(gate._used) >= 5)
            other = anyio.Event()

            async def beside(done: anyio.Event = other) -> None:
                results.append(await run(stays, "for _ in range(20):\n    await tools.touch()\nreturn 1"))
                done.set()

            tasks.start_soon(beside)
            await closes.aclose()
            await other.wait()
    ends = [result.error.message if result.error else result.value_json for result in results]
    assert sorted(map(str, ends)) == ["1"] * 3 + ["runtime disposed"] * 18


@pytest.mark.parametrize("seed", range(3))
async def test_runs_that_are_stopped_at_any_instant_leave_the_processor_free(seed: int) -> None:
    dice = random.Random(seed)
    ended: list[SandboxResult] = []
    cancelled = 0
    sandboxes = [WasmSandbox(), WasmSandbox(compute_ms=50), WasmSandbox(max_wall_ms=60)]

    async def one(sandbox: WasmSandbox, program: str, how: str, seconds: float) -> None:
        nonlocal cancelled
        stop = Stop()
        if how == "scope":
            with anyio.move_on_after(seconds) as scope:
                ended.append(await run(sandbox, program))
            cancelled += scope.cancelled_caught
            return
        timer = threading.Timer(seconds, stop.press, ("enough",))
        timer.start()
        ended.append(await run(sandbox, program, stop))
        timer.cancel()
        timer.join()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(40):
                how, seconds = dice.choice(("scope", "thread")), dice.random() * 0.25
                tasks.start_soon(one, dice.choice(sandboxes), dice.choice(WANDERING), how, seconds)
        assert len(ended) + cancelled == 40
        assert {result.error.kind for result in ended if result.error} <= {"abort", "timeout"}
        for sandbox in sandboxes:
            if sandbox is not sandboxes[2]:
                assert (await run(sandbox, "return 2")).value_json == "2"
            await sandbox.aclose()
