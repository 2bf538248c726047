"""What a host records of a program's calls, and in which order, on both backends (contract I5 to I9)."""

from __future__ import annotations

from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime.log.reading import read_session
from ptc.runtime.log.store import SessionInfo

from .conftest import Rig

pytestmark = pytest.mark.anyio

START, SETTLE = "tool/ptc-dispatch-start", "tool/ptc-dispatch"


async def stored(rig: Rig) -> list[Any]:
    assert rig.agent.session is not None
    return list(await rig.agent.session.events())


async def only_run(rig: Rig) -> Any:
    assert rig.agent.session is not None
    info = SessionInfo(rig.agent.session.id, "tester", 0, {}, 0, 0)
    reading = read_session(info, await stored(rig))
    assert reading.violations == []
    (run,) = reading.runs
    return run


@pytest.mark.contract("I5", "I12")
async def test_a_start_is_on_record_before_any_policy_sees_the_call(rig: Rig) -> None:
    at_policy: list[list[str]] = []

    @rig.host.on("tools/pre-execute")
    async def asks(call: Any, go_on: Any) -> Any:
        if call.name != "double":
            return await go_on()
        at_policy.append([kind for kind, data in await rig.events() if data.get("subCallId") == call.call_id])
        return ptc.Ask("doubling is dear")

    @rig.host.on("approval/request")
    async def answers(_request: Any, _go_on: Any) -> Any:
        return "rejected"

    message = await rig.failure("await tools.double(x=2)")
    assert "the user rejected tool" in message
    assert at_policy == [[START]]
    kinds = [event.type for event in await stored(rig)]
    assert kinds == ["tool/call", START, "approval/asked", "approval/decided", SETTLE, "tool/result"]
    run = await only_run(rig)
    assert [(call.outcome, call.approvals[0].outcome) for call in run.calls] == [("denied", "rejected")]
    assert rig.bodies == []


@pytest.mark.contract("I6", "I7")
async def test_a_call_that_is_aborted_has_one_start_and_one_end_inside_the_run(rig: Rig) -> None:
    source = ptc.SignalSource()
    program = """
import asyncio
await asyncio.gather(*[tools.stuck(name=str(n)) for n in range(14)])
"""

    async def abort() -> None:
        await rig.started.wait()
        source.abort("the user went away")
        await anyio.sleep(0.02)
        rig.release.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(abort)
        result = await rig.run(program, signal=source.signal)
    assert result.is_error
    events = await stored(rig)
    starts = [event.data["subCallId"] for event in events if event.type == START]
    settles = [event.data["subCallId"] for event in events if event.type == SETTLE]
    assert starts
    assert len(starts) == len(set(starts))
    assert sorted(settles) == sorted(starts)
    assert (events[0].type, events[-1].type) == ("tool/call", "tool/result")
    assert {event.type for event in events[1:-1]} == {START, SETTLE}
    run = await only_run(rig)
    assert {call.outcome for call in run.calls} == {"cancelled"}
    assert all(call.error.code in ("ABORTED", "ABORTED_BEFORE_DISPATCH") for call in run.calls)


@pytest.mark.contract("I9", "I8")
async def test_ends_come_as_their_copies_are_shaped_and_are_paired_by_id(rig: Rig) -> None:
    shaped: list[str] = []
    last = anyio.Event()

    @rig.host.on("tools/ptc-dispatch-log")
    async def late(entry: Any, go_on: Any) -> Any:
        content = await go_on()
        if entry.sub_call_id.endswith(":1"):
            await last.wait()
        shaped.append(entry.sub_call_id)
        if len(shaped) == 3:
            last.set()
        return content

    program = """
import asyncio
return await asyncio.gather(*[tools.double(x=n) for n in range(4)])
"""
    assert await rig.value(program) == [0, 2, 4, 6]
    events = await stored(rig)
    numbers = [event.data["subCallId"].rpartition(":")[2] for event in events if event.type == SETTLE]
    assert (sorted(numbers), numbers[-1]) == (["1", "2", "3", "4"], "1")
    run = await only_run(rig)
    assert [call.arguments["x"] for call in run.calls] == [0, 1, 2, 3]
    assert [call.content[0]["text"] for call in run.calls] == ["0", "2", "4", "6"]
