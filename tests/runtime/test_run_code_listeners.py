"""Listeners that hang, or that break the task they run in, while a program's calls pass them (contract E31, E44)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import ptc
import pytest
from ptc.registry import ToolExecutionInput
from ptc.runtime import lane, overtime

from .conftest import Rig

pytestmark = pytest.mark.anyio

START, SETTLE = "tool/ptc-dispatch-start", "tool/ptc-dispatch"
POLICIES = ("tools/pre-execute", "tools/execute", "tools/post-execute")
Next = Callable[[], Awaitable[Any]]


async def awaits_what_is_cancelled(next: Next) -> Any:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def cancels_its_task(next: Next) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await anyio.lowlevel.checkpoint()
    return await next()


async def leaves_a_scope_open(next: Next) -> Any:
    anyio.CancelScope().__enter__()
    return await next()


async def raises_a_group(next: Next) -> Any:
    raise BaseExceptionGroup("both", [anyio.get_cancelled_exc_class()("x"), ValueError("the reason")])


def listen(rig: Rig, event: str, listener: Callable[[Next], Awaitable[Any]]) -> None:
    """Has the calls of `double` pass a listener."""

    @rig.host.on(event)
    async def listens(entry: Any, *rest: Any) -> Any:
        return await listener(rest[-1]) if entry.name == "double" else await rest[-1]()


async def paired(rig: Rig) -> list[dict[str, Any]]:
    """Returns the settle records, one for each start."""
    starts, settles = await rig.events(START), await rig.events(SETTLE)
    assert sorted(data["subCallId"] for _, data in starts) == sorted(data["subCallId"] for _, data in settles)
    assert [kind for kind, _ in await rig.events()][-1] == "tool/result"
    return [data for _, data in settles]


@pytest.mark.contract("E44", "I6", "E31")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("listener", [awaits_what_is_cancelled, cancels_its_task, leaves_a_scope_open, raises_a_group])
async def test_a_listener_of_the_copy_that_breaks_its_task_changes_no_call_and_no_record(
    rig: Rig, caplog: pytest.LogCaptureFixture, listener: Any
) -> None:
    listen(rig, "tools/ptc-dispatch-log", listener)
    with anyio.fail_after(30):
        program = "import asyncio\nreturn await asyncio.gather(*(tools.double(x=n) for n in range(3)))"
        assert await rig.value(program) == [0, 2, 4]
    assert sorted(settle["content"][0]["text"] for settle in await paired(rig)) == ["0", "2", "4"]
    # One that leaves a scope open has answered all the same.
    answered = listener is leaves_a_scope_open
    assert caplog.text.count("the original content is recorded") == (0 if answered else 3)


@pytest.mark.contract("I6", "E27")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("event", POLICIES)
async def test_a_policy_that_awaits_what_was_cancelled_fails_its_call_alone(rig: Rig, event: str) -> None:
    listen(rig, event, awaits_what_is_cancelled)
    program = (
        "said = []\nfor n in range(2):\n    try:\n        await tools.double(x=n)\n"
        "    except ToolCallError as e:\n        said.append(str(e))\nreturn said"
    )
    with anyio.fail_after(30):
        assert await rig.value(program) == ["tool call aborted: it awaited something that had been cancelled"] * 2
    assert [settle["isError"] for settle in await paired(rig)] == [True, True]


@pytest.mark.contract("A60", "E31", "I6")
@pytest.mark.parametrize(
    ("anyio_backend", "listener"),
    [("asyncio", cancels_its_task), ("asyncio", leaves_a_scope_open), ("trio", leaves_a_scope_open)],
)
@pytest.mark.parametrize("event", POLICIES)
async def test_a_policy_that_breaks_the_task_of_the_lane_is_the_hosts_to_know_and_every_call_is_recorded(
    rig: Rig, event: str, listener: Any
) -> None:
    listen(rig, event, listener)
    program = (
        "import asyncio\nrunning = asyncio.create_task(tools.stuck(name='s'))\nawait asyncio.sleep(0)\n"
        "await asyncio.gather(tools.double(x=1), tools.double(x=2))\nwhile True:\n    pass"
    )
    rig.release.set()
    with anyio.fail_after(30), pytest.raises(ptc.ToolBatchExecutionError, match="host failed") as caught:
        await rig.run(program)
    assert caught.value.__cause__ is not None
    (outcome,) = caught.value.results
    assert outcome.result.content == [
        ptc.text_block("Error: the host failed while it ran the program, which was stopped")
    ]
    settles = await paired(rig)
    assert {settle["name"] for settle in settles} == {"stuck", "double"}


@pytest.mark.contract("E30", "E31", "I6")
@pytest.mark.parametrize("event", ["tools/pre-execute", "tools/post-execute"])
async def test_the_host_cancels_a_program_whose_policy_hangs_as_it_cancels_a_native_call(rig: Rig, event: str) -> None:
    hangs = anyio.Event()

    async def listener(_next: Next) -> Any:
        hangs.set()
        await anyio.sleep_forever()

    listen(rig, event, listener)
    with anyio.fail_after(20), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rig.run, "await tools.double(x=1)")
            await hangs.wait()
            scope.cancel()
    assert scope.cancelled_caught
    (settle,) = await paired(rig)
    code = "ABORTED_BEFORE_DISPATCH" if event == "tools/pre-execute" else "ABORTED"
    assert settle["error"]["code"] == code
    assert len(rig.bodies) == (event != "tools/pre-execute")


@pytest.mark.contract("E31", "E30", "I6")
@pytest.mark.parametrize("ends", ["its wall budget", "the caller"])
@pytest.mark.parametrize("event", ["tools/pre-execute", "tools/post-execute"])
async def test_a_policy_that_hangs_cannot_hold_a_run_that_is_over(
    rig: Rig,
    make_sandbox: Callable[..., ptc.Sandbox],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    event: str,
    ends: str,
) -> None:
    monkeypatch.setattr(overtime, "POLICY_GRACE_S", 0.2)
    wall = 600 if ends == "its wall budget" else 60_000
    rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=make_sandbox(max_wall_ms=wall)))
    source = ptc.SignalSource()

    async def listener(_next: Next) -> Any:
        if ends == "the caller":
            source.abort("the user left")
        await anyio.sleep_forever()

    listen(rig, event, listener)
    with anyio.fail_after(20):
        program = "import asyncio\nawait asyncio.gather(tools.double(x=1), tools.double(x=2))"
        result = await rig.run(program, signal=source.signal)
    assert result.is_error
    for settle in await paired(rig):
        assert settle["error"]["code"] in ("ABORTED", "ABORTED_BEFORE_DISPATCH")
    warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert [one for one in warned if "not through in time after the end of the run" in one]


@pytest.mark.contract("C23", "E31")
async def test_what_a_policy_decides_soon_after_the_end_of_the_run_is_its_decision(rig: Rig) -> None:
    source = ptc.SignalSource()

    async def listener(_next: Next) -> Any:
        source.abort("the user left")
        await anyio.sleep(0.3)
        return ptc.Deny("not this one")

    listen(rig, "tools/pre-execute", listener)
    assert (await rig.run("await tools.double(x=1)", signal=source.signal)).is_error
    (settle,) = await paired(rig)
    assert settle["content"] == [ptc.text_block("Error: not this one")]
    assert settle["decision"]["outcome"] == "deny"
    assert rig.bodies == []


@pytest.mark.contract("E29", "E30", "E32")
async def test_a_reason_that_cannot_be_told_ends_a_run_like_any_other(rig: Rig) -> None:
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError("no words")

    source = ptc.SignalSource()

    @ptc.tool(concurrency_safe=True)
    async def stubborn() -> str:
        """Work on, whatever is said."""
        source.abort(Mute())
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.1)
        rig.bodies.append("stubborn")
        return "done all the same"

    rig.host.tools.register(stubborn)
    program = "import asyncio\nawait asyncio.gather(tools.stubborn(), tools.write(name='w'))"
    with anyio.fail_after(30):
        message = await rig.failure(program, signal=source.signal)
    assert message == "code run failed (abort): the run was aborted"
    assert rig.bodies == ["stubborn"]
    (settle,) = await paired(rig)
    assert settle["error"]["code"] == "ABORTED"


@pytest.mark.contract("A60", "E31", "C32")
async def test_a_fault_of_the_lane_itself_awaits_the_bodies_that_run(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(outcome: ptc.ToolExecutionResult) -> None:
        raise LookupError("broken lane")

    @ptc.tool(concurrency_safe=True)
    async def stubborn() -> str:
        """Work on, whatever is said."""
        with anyio.CancelScope(shield=True):
            await rig.started.wait()
        await anyio.sleep(0.1)
        rig.bodies.append("stubborn")
        return "done all the same"

    rig.host.tools.register(stubborn)
    rig.release.set()
    monkeypatch.setattr(lane, "image_message", broken)
    program = "import asyncio\nawait asyncio.gather(tools.stuck(name='s'), tools.stubborn())"
    with anyio.fail_after(20), pytest.raises(ptc.ToolBatchExecutionError, match="broken lane"):
        await rig.run(program)
    assert rig.bodies == ["stuck s", "stubborn"]


@pytest.mark.contract("A60", "E37")
async def test_a_fault_in_a_batch_that_was_cancelled_is_not_told_by_the_next_one(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(outcome: ptc.ToolExecutionResult) -> None:
        raise LookupError("broken lane")

    @ptc.tool(concurrency_safe=True)
    async def stubborn() -> str:
        """Work on, whatever is said."""
        rig.started.set()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.1)
        return "done all the same"

    rig.host.tools.register(stubborn)
    call = ptc.ToolCall(
        name="run_code", arguments={"code": "await tools.stubborn()", "description": "wait"}, call_id="again"
    )
    with monkeypatch.context() as patched, anyio.CancelScope() as scope:
        patched.setattr(lane, "image_message", broken)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rig.host.execute, ptc.ToolBatchInput(calls=[call], agent=rig.agent))
            await rig.started.wait()
            scope.cancel()
    assert scope.cancelled_caught
    batch = await rig.host.execute(ptc.ToolBatchInput(calls=[call], agent=rig.agent))
    assert not batch.results[0].result.is_error


@pytest.mark.contract("A60")
async def test_batches_of_one_agent_that_overlap_have_their_own_faults(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_message = lane.image_message

    def broken(outcome: ptc.ToolExecutionResult) -> Any:
        if outcome.content == [ptc.text_block("2")]:
            raise LookupError("broken lane")
        return image_message(outcome)

    monkeypatch.setattr(lane, "image_message", broken)
    came: dict[str, object] = {}

    async def run(which: str, code: str) -> None:
        call = ptc.ToolCall(name="run_code", arguments={"code": code, "description": "double"}, call_id="same")
        try:
            batch = await rig.host.execute(ptc.ToolBatchInput(calls=[call], agent=rig.agent))
            came[which] = batch.results[0].result.is_error
        except ptc.ToolBatchExecutionError as error:
            came[which] = error.message
        rig.release.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, "well", "await tools.stuck(name='s')\nreturn await tools.double(x=2)")
            tasks.start_soon(run, "broken", "return await tools.double(x=1)")
    assert came == {"well": False, "broken": "a program was stopped, because the host failed: broken lane"}


@pytest.mark.contract("A60")
async def test_a_fault_past_every_batch_is_in_the_hosts_log(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(outcome: ptc.ToolExecutionResult) -> None:
        raise LookupError("broken lane")

    monkeypatch.setattr(lane, "image_message", broken)
    arguments: Any = {"code": "await tools.double(x=1)", "description": "double"}
    made = ToolExecutionInput(call_id="c", name="run_code", arguments=arguments, agent=rig.agent)
    result = await rig.host.pipeline.execute(made, transport=rig.host.transport(rig.agent))
    assert result.is_error
    assert "broken lane" not in result.error.message
    assert "broken lane" in caplog.text
