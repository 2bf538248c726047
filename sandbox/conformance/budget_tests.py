"""Nothing hangs and nothing grows: budgets, cancellation, the death of an interpreter, and the next run after each."""

from __future__ import annotations

import json

import anyio
import pytest

from ..seam import Namespace, Sandbox, SandboxMisuseError, SandboxRequest, SandboxResult
from .backend import Capability, SandboxFactory, holds, needs
from .fixtures import Calls, Run, Stop

HOT = "print('before')\nwhile True:\n    pass"
GREETS_AND_IS_HOT = "print('before')\nawait tools.hello()\nwhile True:\n    pass"


async def _works(sandbox: Sandbox) -> bool:
    """Tells whether the next program runs."""
    return (await sandbox.run(SandboxRequest(program="return 1"))).value_json == "1"


@holds("F17", "F22")
@pytest.mark.anyio
async def test_a_hot_loop_ends_with_its_compute_budget_and_keeps_its_output(make_sandbox: SandboxFactory) -> None:
    async with make_sandbox(compute_ms=200) as sandbox:
        result = await sandbox.run(SandboxRequest(program=HOT))
        assert result.error is not None
        assert (result.error.kind, result.error.message) == ("timeout", "compute budget exhausted (200ms busy)")
        assert result.logs == ("before",)
        assert result.statistics.compute_ms >= 200
        assert await _works(sandbox)


ENDS = {
    "exception": "print('before')\nraise ValueError('mine')",
    "timeout": HOT,
    "invalid-output": "print('before')\nreturn {1, 2}",
    "output-limit": "print('before')\nreturn 'x' * 5000",
    "worker-exit": "print('before')\nimport os\nos._exit(3)",
}


@holds("F1", "F2", "F3", "F5", "F22")
@needs(Capability.INTERPRETER)
@pytest.mark.anyio
async def test_a_crash_is_a_field_of_the_result_too(make_sandbox: SandboxFactory) -> None:
    await _ends_as("worker-exit", make_sandbox)


@holds("F1", "F2", "F3", "F5", "F22")
@pytest.mark.anyio
@pytest.mark.parametrize("kind", [kind for kind in ENDS if kind != "worker-exit"])
async def test_whatever_ends_a_program_is_a_field_of_the_result(make_sandbox: SandboxFactory, kind: str) -> None:
    await _ends_as(kind, make_sandbox)


async def _ends_as(kind: str, make_sandbox: SandboxFactory) -> None:
    async with make_sandbox(compute_ms=400, max_output_bytes=2000) as sandbox:
        result = await sandbox.run(SandboxRequest(program=ENDS[kind]))
        assert result.error is not None
        assert (result.error.kind, result.logs, result.value_json) == (kind, ("before",), None)
        assert result.error.message
        assert await _works(sandbox)


@holds("F17")
@pytest.mark.anyio
async def test_short_stretches_of_control_add_up(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(compute_ms=300, max_wall_ms=60_000) as sandbox:
        program = "while True:\n    for _ in range(100_000):\n        pass\n    await tools.echo(value=1)"
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert result.error is not None
        assert (result.error.kind, result.error.message) == ("timeout", "compute budget exhausted (300ms busy)")
        assert len(calls.made) > 1


@holds("F19", "F44")
@pytest.mark.anyio
@pytest.mark.parametrize("prepared", [False, True])
async def test_budgets_are_in_force_before_the_first_statement(make_sandbox: SandboxFactory, prepared: bool) -> None:
    """Whether the substrate stood ready or is made for this run."""
    async with make_sandbox(compute_ms=400, max_memory_bytes=64 << 20, max_concurrent_runs=8) as sandbox:
        if prepared:
            await sandbox.prepare()
        results: dict[str, SandboxResult] = {}

        async def go(program: str) -> None:
            results[program] = await sandbox.run(SandboxRequest(program=program))

        programs = [f"x = bytearray(1 << 28)\nreturn {number}" for number in range(3)] + ["while True:\n    pass"]
        async with anyio.create_task_group() as tasks:
            for program in programs:
                tasks.start_soon(go, program)
        errors = [results[program].error for program in programs]
        assert [error and ("MemoryError" in error.message, error.kind) for error in errors] == [
            *[(True, "exception")] * 3,
            (False, "timeout"),
        ]


@holds("F17")
@pytest.mark.anyio
async def test_waiting_for_a_tool_costs_no_compute(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(compute_ms=400) as sandbox:
        result = await sandbox.run(
            SandboxRequest(program="await tools.slow(ms=600)\nreturn 1", namespaces=[calls.namespace()])
        )
        assert (result.error, result.value_json) == (None, "1")


@holds("F17")
@pytest.mark.anyio
async def test_a_hot_loop_cannot_hide_behind_a_pending_call(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(compute_ms=200) as sandbox:
        program = "import asyncio\nasyncio.create_task(tools.stuck())\nawait asyncio.sleep(0)\nwhile True:\n    pass"
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert result.error is not None
        assert result.error.kind == "timeout"


@holds("F18")
@pytest.mark.anyio
async def test_the_wall_ends_every_kind_of_waiting(make_sandbox: SandboxFactory, calls: Calls) -> None:
    waits = (
        "await tools.stuck()",
        "import time\ntime.sleep(1000)",
        "import asyncio\nawait asyncio.sleep(1000)",
        "while True:\n    pass",
        "while True:\n    try:\n        await tools.stuck()\n    except BaseException:\n        pass",
    )
    results: dict[str, SandboxResult] = {}
    async with make_sandbox(max_wall_ms=400) as sandbox:
        await sandbox.prepare()

        async def go(program: str) -> None:
            results[program] = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))

        async with anyio.create_task_group() as tasks:
            for program in waits:
                tasks.start_soon(go, program)
    told = {program: result.error and (result.error.kind, result.error.message) for program, result in results.items()}
    assert told == dict.fromkeys(waits, ("timeout", "wall-clock ceiling reached (400ms)"))


@holds("F19")
@pytest.mark.anyio
async def test_too_much_memory_is_a_clean_failure(make_sandbox: SandboxFactory) -> None:
    async with make_sandbox(max_memory_bytes=64 << 20) as sandbox:
        result = await sandbox.run(SandboxRequest(program="print('before')\nx = bytearray(1_000_000_000)"))
        assert result.error is not None
        assert "MemoryError" in result.error.message
        assert "memory limit" in result.error.message
        assert result.logs == ("before",)
        assert await _works(sandbox)


@holds("F19")
@pytest.mark.anyio
async def test_memory_that_grows_bit_by_bit_ends_that_run_alone(make_sandbox: SandboxFactory) -> None:
    async with make_sandbox(max_memory_bytes=64 << 20) as sandbox:
        program = "print('before')\nkept = []\nwhile True:\n    kept.append([0] * 1000)"
        result = await sandbox.run(SandboxRequest(program=program))
        assert result.error is not None
        assert result.error.kind in ("exception", "worker-exit")
        assert result.logs == ("before",)
        assert await _works(sandbox)


@holds("F19")
@pytest.mark.anyio
async def test_what_breaks_an_interpreter_ends_that_run_alone(run: Run) -> None:
    """Structures nested beyond the native stack: an error where the interpreter counts, its death where it does not."""
    result = await run("print('before')\nx = []\nfor _ in range(100_000):\n    x = [x]\nrepr(x)")
    assert result.error is not None
    assert result.error.kind == "worker-exit" or "RecursionError" in result.error.message
    assert result.logs == ("before",)
    assert (await run("return 1")).value_json == "1"


@holds("F19")
@needs(Capability.INTERPRETER)
@pytest.mark.anyio
async def test_a_program_that_ends_its_interpreter_is_a_worker_exit(run: Run) -> None:
    result = await run("import os\nprint('before')\nos._exit(3)")
    assert result.error is not None
    assert result.error.kind == "worker-exit"
    assert result.error.message.startswith(("worker exited", "worker error: "))
    assert result.logs == ("before",)
    assert (await run("return 1")).value_json == "1"


@holds("F21")
@pytest.mark.anyio
@pytest.mark.parametrize("then", ["while True:\n    pass", "await tools.stuck()", "import time\ntime.sleep(99)"])
async def test_a_signal_kills_at_once(run: Run, calls: Calls, then: str) -> None:
    stop = Stop()
    results: list[SandboxResult] = []

    async def go() -> None:
        results.append(await run(f"print('before')\nawait tools.hello()\n{then}", signal=stop))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        await calls.greeted.wait()
        await anyio.sleep(0.05)
        stop.press("the user pressed stop")
    assert results[0].error is not None
    assert (results[0].error.kind, results[0].error.message) == ("abort", "the user pressed stop")
    assert results[0].logs == ("before",)


@holds("F21")
@pytest.mark.anyio
async def test_an_aborted_signal_starts_nothing_but_bindings_are_checked_first(run: Run) -> None:
    stop = Stop()
    stop.press("too late")
    result = await run("this is no python", signal=stop)
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("abort", "too late")
    assert result.statistics.wall_ms == 0
    with pytest.raises(SandboxMisuseError):
        await run("return 1", signal=stop, namespaces=[Namespace("class", {})])


@pytest.mark.anyio
async def test_the_hosts_own_cancellation_kills_the_run_and_goes_on(run: Run, calls: Calls) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, GREETS_AND_IS_HOT)
        await calls.greeted.wait()
        await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()
    assert tasks.cancel_scope.cancelled_caught
    assert (await run("return 1")).value_json == "1"


@holds("F29", "F30", "F31")
@pytest.mark.anyio
async def test_a_flood_of_output_ends_the_run_and_keeps_a_prefix(make_sandbox: SandboxFactory) -> None:
    async with make_sandbox(max_output_bytes=1000) as sandbox:
        result = await sandbox.run(SandboxRequest(program="for n in range(10**9):\n    print('line', n)"))
        assert result.error is not None
        assert (result.error.kind, result.error.message) == ("output-limit", "outer output exceeded 1000 bytes")
        assert result.logs[:3] == ("line 0", "line 1", "line 2")
        result = await sandbox.run(SandboxRequest(program="return 'x' * 2000"))
        assert result.error is not None
        assert result.error.kind == "output-limit"


@holds("F27", "F28", "F29")
@pytest.mark.anyio
async def test_output_of_exactly_the_cap_is_allowed_and_one_byte_more_is_not(make_sandbox: SandboxFactory) -> None:
    """Counted is the UTF-8 of the JSON text of the log entries and of the value."""
    logs, value = ['a "quoted\\ line', "", "\t\x01 é 日 😀", "last"], {"k": "é\n", "n": [1, 2.5, None]}
    program = f"for line in {logs!r}:\n    print(line)\nreturn {value!r}"
    texts = [json.dumps(part, ensure_ascii=False, separators=(",", ":")) for part in (logs, value)]
    size = sum(len(text.encode()) for text in texts)
    async with make_sandbox(max_output_bytes=size) as sandbox:
        result = await sandbox.run(SandboxRequest(program=program))
        assert (result.error, result.logs, result.value_json) == (None, tuple(logs), texts[1])
    async with make_sandbox(max_output_bytes=size - 1) as sandbox:
        result = await sandbox.run(SandboxRequest(program=program))
        assert result.value_json is None
        assert result.error is not None
        assert (result.error.kind, result.error.message) == ("output-limit", f"outer output exceeded {size - 1} bytes")


@holds("F24", "F2")
@pytest.mark.anyio
async def test_disposal_ends_live_runs_and_refuses_later_ones(make_sandbox: SandboxFactory, calls: Calls) -> None:
    sandbox = make_sandbox()
    results: list[SandboxResult] = []

    async def go() -> None:
        request = SandboxRequest(program=GREETS_AND_IS_HOT, namespaces=[calls.namespace()])
        results.append(await sandbox.run(request))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        await calls.greeted.wait()
        await sandbox.aclose()
        await sandbox.aclose()
    assert results[0].error is not None
    assert (results[0].error.kind, results[0].error.message) == ("abort", "runtime disposed")
    with pytest.raises(SandboxMisuseError, match=r"run\(\) after disposal"):
        await sandbox.run(SandboxRequest(program="return 1"))


@holds("F2")
@pytest.mark.anyio
async def test_bindings_that_are_not_valid_are_refused(run: Run) -> None:
    for namespaces in ([Namespace("class", {})], [Namespace("a", {}), Namespace("a", {})]):
        with pytest.raises(SandboxMisuseError):
            await run("return 1", namespaces=namespaces)


@pytest.mark.anyio
async def test_runs_are_concurrent_and_do_not_touch_each_other(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(compute_ms=500) as sandbox:
        results: dict[int, object] = {}

        async def go(number: int) -> None:
            hot = number % 4 == 3
            program = "while True:\n    pass" if hot else f"await tools.meet(parties=9)\nreturn {number}"
            result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
            results[number] = result.error.kind if result.error else result.value_json

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(go, number)
    assert results == {n: "timeout" if n % 4 == 3 else str(n) for n in range(12)}


@pytest.mark.anyio
async def test_the_event_loop_stays_free_while_a_program_is_hot(run: Run, calls: Calls) -> None:
    """Were it not free, the signal would be fired when the program has used up its compute budget, and be too late."""
    stop = Stop()
    results: list[SandboxResult] = []

    async def go() -> None:
        results.append(await run(GREETS_AND_IS_HOT, signal=stop))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        await calls.greeted.wait()
        for _ in range(20):
            await anyio.sleep(0.005)
        stop.press("enough")
    assert results[0].error is not None
    assert results[0].error.kind == "abort"


@pytest.mark.anyio
async def test_calls_beyond_what_may_be_outstanding_are_refused_one_by_one(
    make_sandbox: SandboxFactory, calls: Calls
) -> None:
    async with make_sandbox(max_outstanding_calls=10) as sandbox:
        program = (
            "import asyncio\n"
            "got = await asyncio.gather(*[tools.slow(ms=500) for _ in range(300)], return_exceptions=True)\n"
            "refused = [str(one) for one in got if isinstance(one, ToolCallError)]\n"
            "return [len(refused), refused[0]]"
        )
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        told = "more than 10 calls are unanswered; await some of them first"
        assert (result.error, result.value_json) == (None, f'[290,"{told}"]')


@holds("F20")
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
        {"max_outstanding_calls": 0},
        {"max_queued_bytes": 0},
    ],
)
def test_a_budget_that_is_none_is_refused_when_the_sandbox_is_built(
    make_sandbox: SandboxFactory, budget: dict[str, float]
) -> None:
    with pytest.raises(ValueError, match=next(iter(budget))):
        make_sandbox(**budget)


@pytest.mark.anyio
async def test_a_call_that_is_too_large_fails_and_the_program_goes_on(
    make_sandbox: SandboxFactory, calls: Calls
) -> None:
    async with make_sandbox(max_queued_bytes=100_000) as sandbox:
        program = (
            "told = []\n"
            "for text in ('x' * 200_000, '\\xe9' * 60_000, 'y' * 90_000, 'x' * 200_000):\n"
            "    try:\n"
            "        told.append(len(await tools.echo(value=text)))\n"
            "    except ToolCallError as error:\n"
            "        told.append([error.toolName, 'unanswered' in str(error)])\n"
            "return told"
        )
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        refused = '["echo",true]'
        assert (result.error, result.value_json) == (None, f"[{refused},{refused},90000,{refused}]")
        assert len(calls.made) == 1


@pytest.mark.anyio
async def test_calls_that_are_too_large_together_fail_one_by_one(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(max_queued_bytes=100_000) as sandbox:
        program = (
            "import asyncio\n"
            "got = await asyncio.gather(*[tools.echo(value='x' * 40_000) for _ in range(5)], return_exceptions=True)\n"
            "refused = ['unanswered' in str(one) for one in got if isinstance(one, ToolCallError)]\n"
            "return [len(got), refused, len(await tools.echo(value='y' * 90_000))]"
        )
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert (result.error, result.value_json) == (None, "[5,[true,true,true],90000]")
        assert len(calls.made) == 3


@holds("F33", "F47")
@pytest.mark.anyio
@pytest.mark.parametrize("value", ["'x' * (30 << 20)", "['x' * (2 << 20), {1, 2}]", "[list(range(1000))] * 600"])
async def test_being_too_large_goes_before_all_else_that_is_wrong_with_a_value(
    make_sandbox: SandboxFactory, value: str
) -> None:
    async with make_sandbox(max_output_bytes=1 << 20, max_memory_bytes=64 << 20) as sandbox:
        result = await sandbox.run(SandboxRequest(program=f"print('kept')\nreturn {value}"))
        assert result.error is not None
        told = (result.error.kind, result.error.message, result.logs)
        assert told == ("output-limit", "outer output exceeded 1048576 bytes", ("kept",))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import asyncio\nawait asyncio.Event().wait()", "waits for something that cannot happen"),
        ("await tools.echo(value=1 << 100_000)", "more than 4300 digits"),
        ("return 1 << 100_000", "more than 4300 digits"),
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


@needs(Capability.INTERPRETER)
@pytest.mark.anyio
@pytest.mark.parametrize("use", ["await tools.echo(value=10**5000)", "return 10**5000"])
async def test_the_interpreters_own_limit_of_digits_decides_nothing(run: Run, use: str) -> None:
    result = await run(f"import sys\nsys.set_int_max_str_digits(0)\n{use}")
    assert result.error is not None
    assert "more than 4300 digits" in result.error.message


@pytest.mark.anyio
async def test_a_timer_in_the_far_future_does_no_harm(run: Run) -> None:
    result = await run(
        "import asyncio\ntask = asyncio.create_task(asyncio.sleep(1e30))\nawait asyncio.sleep(0.01)\nreturn 1"
    )
    assert (result.error, result.value_json) == (None, "1")


@pytest.mark.anyio
async def test_a_run_that_waits_for_a_place_can_be_stopped(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(max_concurrent_runs=1) as sandbox:
        stop = Stop()
        results: dict[str, object] = {}
        second = anyio.Event()

        async def go(name: str, program: str, signal: Stop | None, ended: anyio.Event) -> None:
            request = SandboxRequest(program=program, namespaces=[calls.namespace()], signal=signal)
            result = await sandbox.run(request)
            results[name] = result.error.kind if result.error else result.value_json
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go, "first", "await tools.hello()\nreturn await tools.stuck()", None, anyio.Event())
            await calls.greeted.wait()
            tasks.start_soon(go, "second", "return 2", stop, second)
            await anyio.sleep(0.05)
            assert results == {}
            stop.press("not needed any more")
            await second.wait()
            assert results == {"second": "abort"}
            calls.release.set()
        assert results["first"] == '"released"'


def test_one_sandbox_serves_one_event_loop_after_another(make_sandbox: SandboxFactory) -> None:
    sandbox = make_sandbox()

    async def one() -> str | None:
        return (await sandbox.run(SandboxRequest(program="return 1"))).value_json

    assert [anyio.run(one, backend=backend) for backend in ("asyncio", "trio", "asyncio")] == ["1", "1", "1"]
    anyio.run(sandbox.aclose)


@pytest.mark.anyio
async def test_what_has_been_answered_counts_no_more(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(max_outstanding_calls=3, max_queued_bytes=100_000) as sandbox:
        program = "return sum([len(await tools.echo(value='x' * 60_000)) for _ in range(10)])"
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert (result.error, result.value_json) == (None, "600000")
