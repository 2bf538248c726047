"""What a host may meet while programs run: listeners that hang or answer nonsense, floods of calls, huge values."""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime import overtime
from ptc.runtime.log.reading import read_session
from ptc.sandbox.longjson import LONG, is_long, long_json_text

from .conftest import Rig

pytestmark = pytest.mark.anyio

START, SETTLE = "tool/ptc-dispatch-start", "tool/ptc-dispatch"
Make = Callable[..., ptc.Sandbox]


@pytest.mark.contract("E44", "E31", "E25", "I6")
@pytest.mark.parametrize("ends", ["itself", "its wall budget", "the caller"])
async def test_a_listener_of_the_durable_copy_that_hangs_cannot_hold_a_run(
    rig: Rig, make_sandbox: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, ends: str
) -> None:
    monkeypatch.setattr(overtime, "SHAPING_GRACE_S", 0.2)
    wall = 600 if ends == "its wall budget" else 60_000
    executor = ptc.PtcExecutor(sandbox=make_sandbox(max_wall_ms=wall), max_parallel_sub_calls=2)
    rig.host.set_executor(rig.agent, executor)
    source = ptc.SignalSource()

    @rig.host.on("tools/ptc-dispatch-log")
    async def hangs(entry: ptc.DispatchLogEntry, next: Any) -> Any:
        if ends == "the caller" and entry.sub_call_id.endswith(":3"):
            source.abort("the user left")
        await anyio.sleep_forever()

    # More calls than may wait for their record: the lane stands back, and the program waits.
    calls = 1 if ends == "itself" else 9
    with anyio.fail_after(20):
        result = await rig.run(f"for n in range({calls}):\n    await tools.double(x=n)", signal=source.signal)
    assert result.is_error == (ends != "itself")
    starts, settles = await rig.events(START), await rig.events(SETTLE)
    assert len(starts) == len(settles) == len(rig.bodies) >= 1
    # What would have been shaped is recorded as it was.
    recorded = sorted(data["content"][0]["text"] for _, data in settles)
    assert recorded == [str(2 * n) for n in range(len(settles))]
    warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len([one for one in warned if "was not through in time after the end of the run" in one]) == len(settles)


@pytest.mark.contract("E44")
@pytest.mark.parametrize(
    "nonsense", ["text", 5, None, {"a": 1}, [1], ["x"], [{"type": 3}], [{"type": "text"}], [{1: 2}]]
)
async def test_nonsense_of_a_listener_is_not_recorded(
    rig: Rig, nonsense: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @rig.host.on("tools/ptc-dispatch-log")
    async def talks(_entry: ptc.DispatchLogEntry, next: Any) -> Any:
        return nonsense

    assert await rig.value("return await tools.double(x=2)") == 4
    ((_, settled),) = await rig.events(SETTLE)
    assert settled["content"] == [{"type": "text", "text": "4"}]
    assert "the original content is recorded" in caplog.text
    store: Any = rig.host._store
    (info,) = await store.sessions()
    assert read_session(info, await store.events(info.id)).violations == []


@pytest.mark.contract("E18", "E31", "I6")
async def test_a_hundred_thousand_calls_at_once_are_made_or_refused(rig: Rig, make_sandbox: Make) -> None:
    rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=make_sandbox(max_outstanding_calls=1000)))

    async def held(_arguments: Any, run: ptc.ToolRunContext) -> Any:
        rig.bodies.append(run.exec.call_id)
        over = anyio.Event()
        run.exec.signal.subscribe(lambda _reason: over.set())
        await over.wait()

    rig.host.tools.register(
        ptc.define_tool(
            name="held",
            description="Wait for the end of the run.",
            parameters={},
            output={"type": "json"},
            execute=held,
            is_concurrency_safe=lambda _arguments: True,
        )
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    program = (
        "import asyncio\n"
        "refused = {}\n"
        "async def one(n):\n"
        "    try:\n        await tools.held()\n"
        "    except ToolCallError as e:\n        refused[str(e)] = refused.get(str(e), 0) + 1\n"
        "tasks = [asyncio.create_task(one(n)) for n in range(100_000)]\n"
        "while sum(refused.values()) < 99_000:\n    await asyncio.sleep(0.01)\n"
        "return refused"
    )
    with anyio.fail_after(120):
        assert await rig.value(program) == {"more than 1000 calls are unanswered; await some of them first": 99_000}
    # Ten had begun, and are recorded as aborted; the others that were taken are abandoned without a record.
    assert {call_id.rpartition(":")[2] for call_id in rig.bodies} == {str(n) for n in range(1, 11)}
    assert len(await rig.events(START)) == 10
    assert [data["error"]["code"] for _, data in await rig.events(SETTLE)] == ["ABORTED"] * 10
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 400, f"{grown:.0f} MB"
    assert await rig.value("return await tools.double(x=21)") == 42


async def test_a_thousand_calls_in_a_flood_are_all_made_where_there_is_room(rig: Rig) -> None:
    program = "import asyncio\nreturn sum(await asyncio.gather(*(tools.double(x=n) for n in range(1_000))))"
    with anyio.fail_after(60):
        assert await rig.value(program) == 999_000
    assert len(await rig.events(START)) == len(await rig.events(SETTLE)) == 1_000


@pytest.mark.contract("E28", "E32", "I6")
async def test_a_call_that_ends_after_its_run_is_an_aborted_one(rig: Rig) -> None:
    @ptc.tool(concurrency_safe=True)
    async def stubborn() -> str:
        """Work on, whatever is said."""
        rig.started.set()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.3)
        rig.bodies.append("stubborn")
        return "done all the same"

    rig.host.tools.register(stubborn)
    program = "import asyncio\ntask = asyncio.create_task(tools.stubborn())\nawait asyncio.sleep(0.1)\nreturn 1"
    assert await rig.value(program) == 1
    assert rig.bodies == ["stubborn"]
    ((_, settled),) = await rig.events(SETTLE)
    assert settled["isError"]
    assert settled["error"]["code"] == "ABORTED"
    assert [kind for kind, _ in await rig.events()][-1] == "tool/result"


def huge_tools(rig: Rig) -> None:
    async def text(_arguments: Any, _run: ptc.ToolRunContext) -> Any:
        return "x" * 50_000_000

    async def rows(arguments: Any, _run: ptc.ToolRunContext) -> Any:
        return [f"row {n}" for n in range(arguments["count"])]

    options: Any = {"output": {"type": "json"}, "render": lambda _arguments, _value: [ptc.text_block("much")]}
    parameters: Any = {"count": {"type": "integer", "required": True}}
    for definition in (
        ptc.define_tool(name="text", description="Give 50 MB.", parameters={}, execute=text, **options),
        ptc.define_tool(
            name="rows",
            description="Give rows.",
            parameters=parameters,
            execute=rows,
            is_concurrency_safe=lambda _arguments: True,
            **options,
        ),
    ):
        rig.host.tools.register(definition)


@pytest.mark.contract("E43", "E27")
async def test_a_tool_may_return_fifty_megabytes(rig: Rig) -> None:
    huge_tools(rig)
    with anyio.fail_after(60):
        assert await rig.value("text = await tools.text()\nreturn [len(text), text[:3]]") == [50_000_000, "xxx"]


@pytest.mark.contract("E34", "E43")
async def test_a_program_that_returns_more_than_the_cap_is_told_of_the_cap(rig: Rig, make_sandbox: Make) -> None:
    rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=make_sandbox(max_output_bytes=10_000_000)))
    huge_tools(rig)
    with anyio.fail_after(60):
        for program in ("return 'x' * 50_000_000", "return await tools.text()", "print('x' * 50_000_000)"):
            message = await rig.failure(program)
            assert message.startswith("code run failed (output-limit): ")
            assert "10000000" in message.replace(",", "").replace("_", "")
            assert len(message) < 11_000_000


@pytest.mark.contract("E22", "E27")
async def test_long_results_come_in_order_and_leave_the_loop_to_others(rig: Rig) -> None:
    huge_tools(rig)
    stalls: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await anyio.sleep(0.001)
            stalls.append(time.perf_counter() - before)

    program = (
        "import asyncio\norder = []\n"
        "async def one(name, call):\n    value = await call\n    order.append(name)\n    return value\n"
        "long, short = await asyncio.gather(one('long', tools.rows(count=200_000)), one('short', tools.double(x=1)))\n"
        "return [order, len(long), long[-1], short]"
    )
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            assert await rig.value(program) == [["long", "short"], 200_000, "row 199999", 2]
            tasks.cancel_scope.cancel()
    assert [data["name"] for _, data in await rig.events(SETTLE)] == ["rows", "double"]
    assert len(stalls) > 10


def test_long_texts_are_those_of_the_native_writer() -> None:
    values: list[Any] = [
        'é\u2028"\\\n' * 100_000,
        [f"row {n}" for n in range(100_000)],
        {f"key {n}": [n, None, True, 1.5, -0.0, {"é": "x" * (n % 50)}] for n in range(20_000)},
        [["x" * 70_000], [], {}, {"a": "y" * 200_000, "b": 1, "k" * 70_000: [1]}, 2, ["z"] * 30_000, 3],
        [1] * 200_000,
        {"only": {"one": ["x" * 300_000]}},
    ]
    for value in values:
        assert is_long(value)
        assert long_json_text(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for value in ("x", [], {}, 1, None, [[]], {"a": [1, "x"]}, ["x" * 1000] * 200):
        assert not is_long(value)
        assert long_json_text(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert is_long("x" * LONG)
    endless: list[Any] = []
    endless.append(endless)
    assert is_long(endless)
    assert sys.getrecursionlimit() >= 1000
    deep: Any = "x" * LONG
    for _ in range(400):
        deep = [deep]
    assert long_json_text(deep) == json.dumps(deep, separators=(",", ":"))
