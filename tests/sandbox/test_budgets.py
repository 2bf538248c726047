"""Nothing hangs and nothing grows: budgets, cancellation, the death of an interpreter, and the next run after each."""

from __future__ import annotations

import time

import anyio
import pytest
from ptc.registry.signals import SignalSource
from ptc.sandbox.seam import Namespace, SandboxMisuseError, SandboxRequest
from ptc.sandbox.wasm import WasmSandbox

from .conftest import Calls, Run, SandboxFactory

pytestmark = pytest.mark.anyio

HOT = "print('before')\nwhile True:\n    pass"


@pytest.mark.contract("F17", "F22")
async def test_a_hot_loop_ends_with_its_compute_budget_and_keeps_its_output(make_sandbox: SandboxFactory) -> None:
    async with make_sandbox(compute_ms=300) as sandbox:
        result = await sandbox.run(SandboxRequest(program=HOT))
        assert result.error is not None
        assert (result.error.kind, result.error.message) == ("timeout", "compute budget exhausted (300ms busy)")
        assert result.logs == ("before",)
        assert result.statistics.compute_ms >= 300
        assert (await sandbox.run(SandboxRequest(program="return 1"))).value_json == "1"


@pytest.mark.contract("F17")
async def test_waiting_for_a_tool_costs_no_compute(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(compute_ms=400) as sandbox:
        result = await sandbox.run(
            SandboxRequest(program="await tools.slow(ms=700)\nreturn 1", namespaces=[calls.namespace()])
        )
        assert (result.error, result.value_json) == (None, "1")


@pytest.mark.contract("F17")
async def test_a_hot_loop_cannot_hide_behind_a_pending_call(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(compute_ms=300) as sandbox:
        program = "import asyncio\nasyncio.create_task(tools.stuck())\nawait asyncio.sleep(0)\nwhile True:\n    pass"
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert result.error is not None
        assert result.error.kind == "timeout"


@pytest.mark.contract("F18")
@pytest.mark.parametrize(
    "program",
    [
        "await tools.stuck()",
        "import time\ntime.sleep(1000)",
        "import asyncio\nawait asyncio.sleep(1000)",
        "while True:\n    pass",
        "while True:\n    try:\n        await tools.stuck()\n    except BaseException:\n        pass",
    ],
)
async def test_the_wall_ends_every_kind_of_waiting(make_sandbox: SandboxFactory, calls: Calls, program: str) -> None:
    async with make_sandbox(max_wall_ms=300) as sandbox:
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert result.error is not None
        assert (result.error.kind, result.error.message) == ("timeout", "wall-clock ceiling reached (300ms)")


@pytest.mark.contract("F19")
async def test_too_much_memory_is_a_clean_failure(make_sandbox: SandboxFactory) -> None:
    async with make_sandbox(max_memory_bytes=64 << 20) as sandbox:
        result = await sandbox.run(SandboxRequest(program="print('before')\nx = bytearray(1_000_000_000)"))
        assert result.error is not None
        assert "MemoryError" in result.error.message
        assert "memory limit" in result.error.message
        assert result.logs == ("before",)
        assert (await sandbox.run(SandboxRequest(program="return 1"))).value_json == "1"


@pytest.mark.contract("F19")
@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import os\nprint('before')\nos._exit(3)", "ended its interpreter"),
        ("print('before')\nx = []\nfor _ in range(100_000):\n    x = [x]\nrepr(x)", "native stack exhausted"),
    ],
)
async def test_the_death_of_an_interpreter_is_a_worker_exit(run: Run, program: str, told: str) -> None:
    result = await run(program)
    assert result.error is not None
    assert result.error.kind == "worker-exit"
    assert told in result.error.message
    assert result.logs == ("before",)
    assert (await run("return 1")).value_json == "1"


@pytest.mark.contract("F21")
@pytest.mark.parametrize(
    "program", [HOT, "print('before')\nawait tools.stuck()", "print('before')\nimport time\ntime.sleep(99)"]
)
async def test_a_signal_kills_at_once(run: Run, program: str) -> None:
    source = SignalSource()
    results = []

    async def go() -> None:
        results.append(await run(program, signal=source.signal))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        await anyio.sleep(0.3)
        source.abort("the user pressed stop")
    assert results[0].error is not None
    assert (results[0].error.kind, results[0].error.message) == ("abort", "the user pressed stop")
    assert results[0].logs == ("before",)


@pytest.mark.contract("F21")
async def test_an_aborted_signal_starts_nothing_but_bindings_are_checked_first(run: Run, calls: Calls) -> None:
    source = SignalSource()
    source.abort("too late")
    result = await run("this is no python", signal=source.signal)
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("abort", "too late")
    assert result.statistics.wall_ms == 0
    with pytest.raises(SandboxMisuseError):
        await run("return 1", signal=source.signal, namespaces=[Namespace("class", {})])


async def test_the_hosts_own_cancellation_kills_the_run_and_goes_on(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox() as sandbox:
        with anyio.move_on_after(0.3) as scope:
            await sandbox.run(SandboxRequest(program=HOT, namespaces=[calls.namespace()]))
        assert scope.cancelled_caught
        assert (await sandbox.run(SandboxRequest(program="return 1"))).value_json == "1"


@pytest.mark.contract("F29", "F30", "F31")
async def test_a_flood_of_output_ends_the_run_and_keeps_a_prefix(make_sandbox: SandboxFactory) -> None:
    async with make_sandbox(max_output_bytes=1000) as sandbox:
        result = await sandbox.run(SandboxRequest(program="for n in range(10**9):\n    print('line', n)"))
        assert result.error is not None
        assert (result.error.kind, result.error.message) == ("output-limit", "outer output exceeded 1000 bytes")
        assert result.logs[:3] == ("line 0", "line 1", "line 2")
        result = await sandbox.run(SandboxRequest(program="return 'x' * 2000"))
        assert result.error is not None
        assert result.error.kind == "output-limit"


@pytest.mark.contract("F24", "F2")
async def test_disposal_ends_live_runs_and_refuses_later_ones(make_sandbox: SandboxFactory) -> None:
    sandbox = make_sandbox()
    results = []

    async def go() -> None:
        results.append(await sandbox.run(SandboxRequest(program=HOT)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        await anyio.sleep(0.3)
        await sandbox.aclose()
        await sandbox.aclose()
    assert (results[0].error.kind, results[0].error.message) == ("abort", "runtime disposed")
    with pytest.raises(SandboxMisuseError, match=r"run\(\) after disposal"):
        await sandbox.run(SandboxRequest(program="return 1"))


async def test_runs_are_concurrent_and_do_not_touch_each_other(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(compute_ms=600) as sandbox:
        results: dict[int, object] = {}

        async def go(number: int) -> None:
            hot = number % 4 == 3
            program = "while True:\n    pass" if hot else f"await tools.slow(ms=200)\nreturn {number}"
            result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
            results[number] = result.error.kind if result.error else result.value_json

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(go, number)
    assert results == {n: "timeout" if n % 4 == 3 else str(n) for n in range(12)}


async def test_the_event_loop_stays_free_while_a_program_is_hot(make_sandbox: SandboxFactory) -> None:
    async with make_sandbox(compute_ms=1000) as sandbox:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await anyio.sleep(0.01)
                ticks += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick)
            started = time.perf_counter()
            await sandbox.run(SandboxRequest(program=HOT))
            assert time.perf_counter() - started >= 1.0
            tasks.cancel_scope.cancel()
    assert ticks > 20


async def test_more_calls_than_may_be_outstanding_are_refused_one_by_one(
    make_sandbox: SandboxFactory, calls: Calls
) -> None:
    async with make_sandbox(max_outstanding_calls=5) as sandbox:
        program = (
            "import asyncio\n"
            "got = await asyncio.gather(*[tools.slow(ms=50) for _ in range(8)], return_exceptions=True)\n"
            "return [str(g) for g in got if isinstance(g, ToolCallError)]"
        )
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert result.value_json is not None
        assert result.value_json.count("more than 5 calls are unanswered") == 3


@pytest.mark.contract("F20")
@pytest.mark.parametrize(
    "budget",
    [
        {"compute_ms": 0},
        {"compute_ms": float("nan")},
        {"compute_ms": True},
        {"max_wall_ms": -1},
        {"max_wall_ms": 2_147_483_648},
        {"max_output_bytes": 3},
        {"max_output_bytes": 10.5},
        {"max_memory_bytes": float("inf")},
        {"max_memory_bytes": 1 << 20},
        {"max_concurrent_runs": 0},
        {"ready": -1},
    ],
)
def test_a_budget_that_is_none_is_refused_when_the_sandbox_is_built(budget: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(budget))):
        WasmSandbox(**budget)  # type: ignore[arg-type]


async def test_a_flood_of_calls_is_not_even_parsed(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(max_queued_bytes=100_000) as sandbox:
        program = "await tools.echo(value='x' * 200_000)"
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert result.error is not None
        assert result.error.kind == "protocol"
        assert "more than 100000 bytes of calls" in result.error.message
        assert calls.made == []


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import asyncio\nawait asyncio.Event().wait()", "waits for something that cannot happen"),
        ("import sys\nsys.set_int_max_str_digits(0)\nawait tools.echo(value=10**5000)", "more than 4300 digits"),
        ("import sys\nsys.set_int_max_str_digits(0)\nreturn 10**5000", "more than 4300 digits"),
        (
            "import asyncio\ntask = asyncio.create_task(tools.echo(value=1))\nawait asyncio.sleep(0)\nreturn 1",
            "tools.echo(...) on line 2",
        ),
    ],
)
async def test_what_would_hang_or_be_lost_is_told_at_once(run: Run, program: str, told: str) -> None:
    result = await run(program)
    assert result.error is not None
    assert told in result.error.message


async def test_a_timer_in_the_far_future_does_no_harm(run: Run) -> None:
    result = await run(
        "import asyncio\ntask = asyncio.create_task(asyncio.sleep(1e30))\nawait asyncio.sleep(0.01)\nreturn 1"
    )
    assert (result.error, result.value_json) == (None, "1")


async def test_very_many_calls_at_once_are_refused_one_by_one(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(max_outstanding_calls=10) as sandbox:
        program = (
            "import asyncio\n"
            "got = await asyncio.gather(*[tools.slow(ms=1) for _ in range(3000)], return_exceptions=True)\n"
            "return sum(isinstance(g, ToolCallError) for g in got)"
        )
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert (result.error, result.value_json) == (None, "2990")


async def test_a_kill_between_taking_a_slot_and_starting_is_seen(make_sandbox: SandboxFactory) -> None:
    async with make_sandbox() as sandbox:
        await sandbox.prepare()
        slots = sandbox._slots  # type: ignore[attr-defined]
        source, take = SignalSource(), slots.take

        def slow_take() -> object:
            slot = take()
            time.sleep(0.3)
            return slot

        slots.take = slow_take

        async def stop() -> None:
            await anyio.sleep(0.1)
            source.abort("stop")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            result = await sandbox.run(SandboxRequest(program=HOT, signal=source.signal))
        assert result.error is not None
        assert result.error.kind == "abort"
        assert result.logs == ()


async def test_a_run_that_waits_for_a_place_can_be_stopped(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(max_concurrent_runs=1) as sandbox:
        source = SignalSource()
        results: dict[str, object] = {}

        async def go(name: str, program: str, signal: object = None) -> None:
            request = SandboxRequest(program=program, namespaces=[calls.namespace()], signal=signal)  # type: ignore[arg-type]
            result = await sandbox.run(request)
            results[name] = result.error.kind if result.error else result.value_json

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go, "first", "return await tools.stuck()")
            await anyio.sleep(0.2)
            tasks.start_soon(go, "second", "return 2", source.signal)
            await anyio.sleep(0.1)
            source.abort("not needed any more")
            await anyio.sleep(0.1)
            assert results == {"second": "abort"}
            calls.release.set()
        assert results["first"] == '"released"'


def test_one_sandbox_serves_one_event_loop_after_another(make_sandbox: SandboxFactory) -> None:
    sandbox = make_sandbox()

    async def one() -> str | None:
        return (await sandbox.run(SandboxRequest(program="return 1"))).value_json

    assert [anyio.run(one, backend=backend) for backend in ("asyncio", "trio", "asyncio")] == ["1", "1", "1"]
    anyio.run(sandbox.aclose)


async def test_what_has_been_answered_counts_no_more(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(max_outstanding_calls=3, max_queued_bytes=100_000) as sandbox:
        program = "return sum([len(await tools.echo(value='x' * 60_000)) for _ in range(10)])"
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert (result.error, result.value_json) == (None, "600000")
