"""Cancellation of the host's own task is no signal of the caller: bodies are told, awaited, and never cut off."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from ptc.registry import (
    HOST_CANCELLED,
    BatchLog,
    Pipeline,
    ScopeKey,
    SignalSource,
    ToolBatchInput,
    ToolCall,
    ToolDefinition,
    ToolExecutionInput,
    ToolOutput,
    ToolRegistry,
    run_batch,
    text_block,
)

pytestmark = pytest.mark.anyio


class MemoryLog:
    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    async def append(self, type: str, data: Any, *, cites: int | None = None) -> int:
        await anyio.lowlevel.checkpoint()
        self.events.append((type, data))
        return len(self.events) - 1


class Rig:
    def __init__(self) -> None:
        self.registry = ToolRegistry()
        self.tools = self.registry.context()
        self.pipeline = Pipeline(self.registry)
        self.seen: list[Any] = []
        self.results: list[Any] = []
        self.tools.on("tools/result", lambda call, result: self.results.append((call.call_id, result)))

    def add(self, name: str, body: Any, **options: Any) -> None:
        output = ToolOutput(schema={}, render=lambda _arguments, value: [text_block(str(value))])
        self.tools.register(
            ToolDefinition(name=name, description="", parameters={}, output=output, execute=body, **options)
        )

    async def run(self, name: str = "slow", **fields: Any) -> Any:
        return await self.pipeline.execute(ToolExecutionInput(call_id="c", name=name, arguments={}, **fields))

    def codes(self) -> dict[str, str | None]:
        return {
            call_id: result.error.info and result.error.info.code if result.is_error else "success"
            for call_id, result in self.results
        }

    def add_slow(self, **options: Any) -> anyio.Event:
        """Registers a body that notes what it is told and ends when the event is set."""
        release = anyio.Event()

        async def body(_arguments: Any, run: Any) -> str:
            run.signal.subscribe(lambda reason: self.seen.append(reason))
            self.seen.append("started")
            await release.wait()
            self.seen.append("ended")
            return "done"

        self.add("slow", body, **options)
        return release


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.contract("C32", "C61")
@pytest.mark.parametrize("caller", [False, True], ids=["no signal", "with a caller's signal"])
async def test_a_cancelled_host_waits_for_the_body_and_then_goes(rig, caller):
    release = rig.add_slow()
    source = SignalSource()
    async with anyio.create_task_group() as group:

        async def run():
            try:
                await rig.run(signal=source.signal if caller else None)
            finally:
                rig.seen.append("left")

        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
            assert rig.seen == ["started", HOST_CANCELLED]
            release.set()
    assert rig.seen == ["started", HOST_CANCELLED, "ended", "left"]
    assert rig.codes() == {"c": "ABORTED"}
    assert not source.signal.aborted


@pytest.mark.contract("C32")
async def test_the_cancellation_goes_on_though_the_body_succeeded(rig):
    release = rig.add_slow()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancels():
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
                release.set()

            group.start_soon(cancels)
            await rig.run()
            pytest.fail("the call must not return")
    assert scope.cancelled_caught


@pytest.mark.contract("C32")
async def test_a_body_that_heeds_its_signal_ends_early(rig):
    async def body(_arguments, run):
        try:
            async with run.signal.cancel_scope():
                await anyio.sleep_forever()
        finally:
            rig.seen.append(run.signal.reason)

    rig.add("heeds", body)
    with anyio.move_on_after(0.01) as scope:
        await rig.run("heeds")
    assert scope.cancelled_caught
    assert rig.seen == [HOST_CANCELLED]
    assert rig.codes() == {"c": "ABORTED"}


@pytest.mark.contract("C32")
async def test_scopes_inside_a_body_work_and_stay_its_own(rig):
    async def body(_arguments, run):
        with anyio.move_on_after(0.001) as scope:
            await anyio.sleep_forever()
        return [scope.cancelled_caught, run.signal.aborted]

    rig.add("own", body)
    assert (await rig.run("own")).value == [True, False]


@pytest.mark.contract("C32")
@pytest.mark.parametrize("where", ["tools/pre-execute", "tools/post-execute"])
async def test_a_host_cancelled_in_a_policy_leaves_one_observed_result(rig, where):
    async def waits(*_args):
        await anyio.sleep_forever()

    async def body(_arguments, _run):
        return 1

    rig.add("echo", body)
    rig.tools.on(where, waits)
    with anyio.move_on_after(0.01) as scope:
        await rig.run("echo")
    assert scope.cancelled_caught
    assert rig.codes() == {"c": "ABORTED_BEFORE_DISPATCH" if where == "tools/pre-execute" else "ABORTED"}


@pytest.mark.contract("C32")
async def test_a_wrapper_that_injects_a_timeout_does_not_cut_the_body_off(rig):
    async def impatient(_view, next_):
        with anyio.fail_after(0.001):
            return await next_()

    async def body(_arguments, _run):
        await anyio.sleep(0.02)
        rig.seen.append("ended")
        return 1

    rig.add("slow", body, is_concurrency_safe=lambda _arguments: True)
    rig.tools.on("tools/execute", impatient)
    assert (await rig.run()).is_error
    await run_batch(rig.pipeline, ToolBatchInput(calls=[ToolCall(name="slow")]))
    assert rig.seen == ["ended", "ended"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.contract("C34", "C65")
@pytest.mark.parametrize("mode", ["alone", "batch"])
@pytest.mark.parametrize("waits_first", [False, True])
async def test_a_cancellation_of_a_bodys_own_making_is_an_abort_error(rig, mode, waits_first, anyio_backend):
    async def body(_arguments, _run):
        task = asyncio.ensure_future(asyncio.sleep(60))
        if waits_first:
            await asyncio.sleep(0)
        task.cancel()
        await task

    rig.add("leaks", body)
    if mode == "alone":
        result = await rig.run("leaks")
    else:
        outcome = await run_batch(rig.pipeline, ToolBatchInput(calls=[ToolCall(name="leaks"), ToolCall(name="leaks")]))
        assert len(outcome.results) == 2
        result = outcome.results[1].result
    assert (result.error.info.name, result.error.info.code) == ("AbortError", "ABORTED")
    assert "awaited something that had been cancelled" in result.error.message


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.contract("C34", "C62")
async def test_a_group_with_cancellations_stands_for_the_errors_beside_them(rig, anyio_backend):
    async def body(_arguments, _run):
        raise BaseExceptionGroup("both", [asyncio.CancelledError(), LookupError("disk")])

    rig.add("leaks", body)
    result = await rig.run("leaks")
    assert (result.error.message, result.error.info) == ("disk", None)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.contract("C24", "C36", "C53")
@pytest.mark.parametrize("event", ["tools/pre-execute", "tools/execute", "tools/post-execute"])
async def test_a_cancellation_of_a_policys_own_making_is_an_error_of_the_policy(rig, event, anyio_backend):
    async def leaks(*_args):
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task

    async def body(_arguments, _run):
        return 1

    rig.add("echo", body)
    rig.tools.on(event, leaks)
    result = await rig.run("echo")
    assert result.error.info.code == "ABORTED"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.contract("C32")
async def test_a_natively_cancelled_batch_waits_for_its_bodies(rig, anyio_backend):
    release = rig.add_slow()
    batch = ToolBatchInput(calls=[ToolCall(name="slow", call_id="b")])
    task = asyncio.ensure_future(run_batch(rig.pipeline, batch))
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    await anyio.wait_all_tasks_blocked()
    assert rig.seen == ["started", HOST_CANCELLED]
    assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert rig.seen[-1] == "ended"
    assert rig.codes() == {"b": "ABORTED"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.contract("C32", "C61")
@pytest.mark.parametrize("times", [1, 2])
async def test_a_natively_cancelled_call_waits_for_its_body(rig, times, anyio_backend):
    release = rig.add_slow()
    task = asyncio.ensure_future(rig.run())
    await anyio.wait_all_tasks_blocked()
    for _ in range(times):
        task.cancel()
        await anyio.wait_all_tasks_blocked()
    assert rig.seen == ["started", HOST_CANCELLED]
    assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert rig.seen[-1] == "ended"
    assert rig.codes() == {"c": "ABORTED"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.contract("C32")
async def test_timeouts_of_asyncio_tell_the_body_from_outside_and_interrupt_it_from_inside(rig, anyio_backend):
    async def heeds(_arguments, run):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.sleep(60)
        rig.seen.append(run.signal.aborted)
        async with run.signal.cancel_scope():
            await asyncio.sleep(60)

    rig.add("heeds", heeds)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await rig.run("heeds")
    assert rig.seen == [False]
    assert rig.codes() == {"c": "ABORTED"}


@pytest.mark.contract("C2", "C32")
async def test_what_asks_the_process_to_end_is_no_result(rig):
    async def quits(_arguments, _run):
        raise SystemExit(3)

    rig.add("quits", quits)
    with pytest.raises(SystemExit):
        await rig.run("quits")
    assert rig.results == []


@pytest.mark.contract("C32", "D6", "D11", "C61")
async def test_a_cancelled_batch_drains_and_its_record_is_whole(rig):
    release = rig.add_slow(is_concurrency_safe=lambda _arguments: True)
    log = MemoryLog()
    agent = ScopeKey("agent", session=log)
    calls = [ToolCall(name="slow", call_id=call_id) for call_id in "123"]
    batch = ToolBatchInput(calls=calls, agent=agent, log=BatchLog(1, 1), max_parallel_tool_calls=2)
    async with anyio.create_task_group() as group:
        group.start_soon(run_batch, rig.pipeline, batch)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
            assert rig.seen.count(HOST_CANCELLED) == 2
            assert [kind for kind, _data in log.events] == ["tool/call"] * 2
            release.set()
    assert rig.seen.count("ended") == 2
    assert rig.codes() == {"1": "ABORTED", "2": "ABORTED"}
    pairs = [
        (kind, data["callId"]) if kind == "tool/call" else (data["error"]["code"], data["message"]["callId"])
        for kind, data in log.events
    ]
    assert pairs == [
        ("tool/call", "1"),
        ("tool/call", "2"),
        ("ABORTED", "1"),
        ("ABORTED", "2"),
        ("tool/call", "3"),
        ("ABORTED_BEFORE_DISPATCH", "3"),
    ]


class SlowLog(MemoryLog):
    """Takes an event only when the test says so, and notes what was broken off."""

    def __init__(self, waits_for: str) -> None:
        super().__init__()
        self.waits_for = waits_for
        self.taking = anyio.Event()
        self.release = anyio.Event()
        self.broken: list[str] = []

    async def append(self, type: str, data: Any, *, cites: int | None = None) -> int:
        if type == self.waits_for:
            self.taking.set()
            try:
                await self.release.wait()
            except BaseException:
                self.broken.append(type)
                raise
        self.events.append((type, data))
        return len(self.events) - 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.contract("C32", "C61", "D6", "D11")
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("event", ["tool/call", "tool/result"])
async def test_a_native_cancellation_breaks_no_record_off(rig, event, times, anyio_backend):
    async def body(_arguments, _run):
        return 1

    rig.add("echo", body)
    log = SlowLog(event)
    agent = ScopeKey("agent", session=log)
    calls = [ToolCall(name="echo", call_id=call_id) for call_id in "12"]
    task = asyncio.ensure_future(run_batch(rig.pipeline, ToolBatchInput(calls=calls, agent=agent, log=BatchLog(1, 1))))
    await log.taking.wait()
    for _ in range(times):
        task.cancel()
        await anyio.wait_all_tasks_blocked()
    assert not task.done()
    log.release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log.broken == []
    ids = [data["callId"] if kind == "tool/call" else data["message"]["callId"] for kind, data in log.events]
    assert [kind for kind, _data in log.events] == ["tool/call", "tool/result"] * 2
    assert ids == ["1", "1", "2", "2"]


@pytest.mark.contract("C32", "C61")
async def test_a_batch_cancelled_while_a_policy_waits_records_the_call_as_not_dispatched(rig):
    async def waits(*_args):
        await anyio.sleep_forever()

    async def body(_arguments, _run):
        rig.seen.append("body")

    log = MemoryLog()
    rig.add("echo", body)
    rig.tools.on("tools/pre-execute", waits)
    agent = ScopeKey("agent", session=log)
    batch = ToolBatchInput(calls=[ToolCall(name="echo", call_id="1")], agent=agent, log=BatchLog(1, 1))
    with anyio.move_on_after(0.01) as scope:
        await run_batch(rig.pipeline, batch)
    assert scope.cancelled_caught
    assert rig.seen == []
    assert [data.get("error", {}).get("code") for _kind, data in log.events] == [None, "ABORTED_BEFORE_DISPATCH"]


@pytest.mark.contract("C32")
async def test_no_observer_is_left_on_the_callers_signal(rig):
    async def body(_arguments, _run):
        await anyio.lowlevel.checkpoint()

    source = SignalSource()
    rig.add("echo", body)
    for _ in range(3):
        await rig.run("echo", signal=source.signal)
        await run_batch(rig.pipeline, ToolBatchInput(calls=[ToolCall(name="echo")] * 3, signal=source.signal))
    assert len(source.signal._observers) == 0
