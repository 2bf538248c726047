"""`run_code` and its sub-calls: identity, order, records, and the end of a run (contract E)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import ptc
import pytest

from .conftest import Rig

pytestmark = pytest.mark.anyio

START, SETTLE = "tool/ptc-dispatch-start", "tool/ptc-dispatch"


def refuse_records(rig: Rig, monkeypatch: pytest.MonkeyPatch, refused: str, error: Exception) -> None:
    """Has the session refuse every record of one type."""
    session = rig.agent.session
    assert session is not None
    append = session.append

    async def failing(type: str, data: Any, *, cites: int | None = None) -> int:
        if type == refused:
            raise error
        return await append(type, data, cites=cites)

    monkeypatch.setattr(session, "append", failing)


@pytest.mark.contract("E1", "E3", "E38", "E39")
async def test_a_completed_program_gives_its_logs_and_its_result(rig: Rig) -> None:
    result = await rig.run("print('hello')\nreturn {'n': await tools.double(x=21)}")
    assert not result.is_error
    assert result.value == {"logs": ["hello"], "result": {"n": 42}}
    assert result.content == [{"type": "text", "text": 'hello\n{\n  "n": 42\n}'}]


@pytest.mark.contract("E38", "F5")
async def test_absent_and_null_results_are_two_things(rig: Rig) -> None:
    absent = await rig.run("x = 1")
    null = await rig.run("return None")
    assert (absent.is_error, null.is_error) == (False, False)
    assert absent.content[0]["text"] == "(run_code completed with no output)"  # type: ignore[typeddict-item]
    assert null.content[0]["text"] == "null"  # type: ignore[typeddict-item]
    assert absent.value == {"logs": []}  # type: ignore[union-attr]
    assert null.value == {"logs": [], "result": None}  # type: ignore[union-attr]


@pytest.mark.contract("E2")
@pytest.mark.parametrize("description", ["", " \t\n"])
async def test_a_blank_description_is_refused(rig: Rig, description: str) -> None:
    assert await rig.failure("return 1", description=description) == "invalid description: expected a non-empty string"


@pytest.mark.contract("E1", "E7")
async def test_arguments_of_run_code_are_checked(rig: Rig) -> None:
    batch = await rig.agent.execute([ptc.ToolCall(name="run_code", arguments={"code": "return 1"})])
    result = batch.results[0].result
    assert result.is_error
    assert result.error.info is not None
    assert result.error.info.code == "INVALID_ARGS"
    assert '"description"' in result.error.message


@pytest.mark.contract("E5", "E6")
async def test_the_model_is_told_what_run_code_takes(rig: Rig) -> None:
    prompt, schemas = rig.agent.describe()
    assert [schema.name for schema in schemas] == ["run_code"]
    told = schemas[0].description + json.dumps(schemas[0].parameters)
    for part in (
        "`code`",
        "`description`",
        "async function",
        "`await`",
        "`return`",
        "await tools.name(",
        "attached after",
    ):
        assert part in told
    assert "async def double(self, args: DoubleArgs) -> int:" in prompt
    assert "run_code(self" not in prompt


@pytest.mark.contract("A61", "C9")
async def test_a_model_cannot_call_a_native_tool_past_run_code(rig: Rig) -> None:
    batch = await rig.agent.execute([ptc.ToolCall(name="double", arguments={"x": 1})])
    result = batch.results[0].result
    assert result.is_error
    assert result.error.info is not None
    assert result.error.info.code == "UNKNOWN_TOOL"
    assert "run_code" in result.error.message
    assert rig.bodies == []


@pytest.mark.contract("E10", "E4")
async def test_the_program_is_bound_to_what_its_agent_sees(rig: Rig) -> None:
    rig.agent.tools.restrict(deny=["fail"])
    listed = await rig.value("return dir(tools)")
    assert listed == ["double", "nap", "picture", "stuck", "write"]
    assert "tools has no member 'run_code'" in await rig.failure("await tools.run_code(code='1', description='x')")


@pytest.mark.contract("E12")
async def test_a_tool_that_went_away_is_an_unknown_tool(rig: Rig) -> None:
    @ptc.tool
    async def fleeting() -> int:
        """Go away."""
        gone()
        return 1

    gone = rig.agent.tools.register(fleeting)
    said = await rig.value(
        "await tools.fleeting()\ntry:\n    await tools.fleeting()\nexcept ToolCallError as e:\n    return str(e)"
    )
    assert said == 'unknown tool "fleeting"'


@pytest.mark.contract("E15", "E16", "I5", "I6", "C4")
async def test_each_sub_call_has_an_id_of_its_own_and_two_records(rig: Rig) -> None:
    await rig.value("await tools.double(x=1)\n\nawait tools.double({'x': 2})")
    events = await rig.events()
    assert [type_ for type_, _ in events] == ["tool/call", START, SETTLE, START, SETTLE, "tool/result"]
    root = events[0][1]["callId"]
    for place, (number, line) in {1: (1, 1), 3: (2, 3)}.items():
        start, settle = events[place][1], events[place + 1][1]
        assert start == {
            "rootCallId": root, "parentCallId": root, "subCallId": f"{root}:ptc:{number}",
            "name": "double", "arguments": {"x": number}, "line": line,
        }  # fmt: skip
        assert settle["subCallId"] == start["subCallId"]
        assert settle["arguments"] == {"x": number}
        assert (settle["isError"], settle["content"]) == (False, [{"type": "text", "text": str(2 * number)}])


@pytest.mark.contract("E14", "E45")
async def test_a_refused_argument_takes_no_number_and_leaves_no_record(rig: Rig) -> None:
    """Ruling 14."""
    said = await rig.value(
        "try:\n    await tools.double(x={1})\nexcept ToolCallError as e:\n    said = str(e)\n"
        "await tools.double(x=3)\nreturn said"
    )
    assert said.startswith("tool arguments must be lossless JSON")
    starts = await rig.events(START)
    assert [data["subCallId"].rpartition(":")[2] for _, data in starts] == ["1"]


@pytest.mark.contract("E20", "I5")
async def test_the_start_is_durable_before_the_body_runs(rig: Rig) -> None:
    """Ruling 40."""
    seen: list[int] = []

    @ptc.tool
    async def look() -> int:
        """Look at the log."""
        seen.append(len(await rig.events(START)))
        return 1

    rig.host.tools.register(look)
    await rig.value("await tools.look()")
    assert seen == [1]


@pytest.mark.contract("E27")
async def test_a_failure_is_its_message_alone(rig: Rig) -> None:
    said = await rig.value(
        "try:\n    await tools.fail(why='no stock')\n"
        "except ToolCallError as e:\n    return [str(e), e.toolName, e.args]"
    )
    assert said == ["no stock", "fail", ["no stock"]]


@pytest.mark.contract("E47", "C14", "E46")
async def test_policies_see_sub_calls_and_a_denial_is_recorded_with_who_denied(rig: Rig) -> None:
    seen: list[tuple[str, bool]] = []

    @rig.host.on("tools/pre-execute")
    async def no_writing(call: ptc.ToolExecution, next: Any) -> Any:
        seen.append((call.name, call.parent is not None))
        return ptc.Deny("read-only scope") if call.name == "write" else await next()

    said = await rig.value("try:\n    await tools.write(name='a')\nexcept ToolCallError as e:\n    return str(e)")
    assert said == "read-only scope"
    assert rig.bodies == []
    assert seen == [("run_code", False), ("write", True)]
    (_, settle), *_ = await rig.events(SETTLE)
    assert settle["isError"] is True
    assert settle["decision"]["outcome"] == "deny"
    assert settle["decision"]["by"].endswith("no_writing")


@pytest.mark.contract("E17", "E22", "E18")
async def test_bodies_overlap_and_commits_keep_the_order_of_submission(rig: Rig) -> None:
    @ptc.tool(concurrency_safe=True)
    async def quick() -> str:
        """Come after the other and end before it."""
        await rig.started.wait()
        rig.bodies.append("quick")
        rig.release.set()
        return "quick"

    rig.host.tools.register(quick)
    with anyio.fail_after(30):
        got = await rig.value(
            "import asyncio\n"
            "order = []\n"
            "async def one(call):\n"
            "    order.append(await call)\n"
            "await asyncio.gather(one(tools.stuck(name='slow')), one(tools.quick()))\n"
            "return order"
        )
    assert rig.bodies == ["stuck slow", "quick"]
    assert got == ["slow", "quick"]
    assert [data["name"] for _, data in await rig.events(SETTLE)] == ["stuck", "quick"]


@pytest.mark.contract("E18", "E19", "E21")
async def test_an_exclusive_call_has_the_lane_to_itself(rig: Rig) -> None:
    await rig.value(
        "import asyncio\n"
        "await asyncio.gather(tools.nap(ms=40, name='a'), tools.write(name='w1'), "
        "tools.write(name='w2'), tools.nap(ms=1, name='b'))"
    )
    assert rig.bodies == [
        "begin a", "end a", "begin w1", "end w1", "begin w2", "end w2", "begin b", "end b",
    ]  # fmt: skip


@pytest.mark.contract("E18")
async def test_no_more_bodies_run_at_once_than_the_cap(rig: Rig, make_sandbox: Callable[..., ptc.Sandbox]) -> None:
    rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=make_sandbox(), max_parallel_sub_calls=2))
    await rig.value("import asyncio\nawait asyncio.gather(*[tools.nap(ms=20, name=str(n)) for n in range(6)])")
    running = most = 0
    for entry in rig.bodies:
        running += 1 if entry.startswith("begin") else -1
        most = max(most, running)
    assert most == 2
    for cap in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="must be a positive integer"):
            ptc.PtcExecutor(sandbox=ptc.WasmSandbox(), max_parallel_sub_calls=cap)  # type: ignore[arg-type]


@pytest.mark.contract("E29", "E31", "E32", "E30")
async def test_calls_left_behind_are_abandoned_aborted_and_recorded_once(rig: Rig) -> None:
    @ptc.tool(concurrency_safe=True)
    async def obedient(run: ptc.ToolRunContext) -> str:
        """Wait for the end of the run."""
        rig.bodies.append("waiting")
        return f"told: {await run.signal.wait()}"

    rig.host.tools.register(obedient)
    await rig.value(
        "import asyncio\n"
        "tasks = [asyncio.create_task(tools.obedient()), asyncio.create_task(tools.write(name='never'))]\n"
        "await asyncio.sleep(0.1)\n"
        "return 1"
    )
    assert rig.bodies == ["waiting"]
    events = await rig.events()
    assert [type_ for type_, _ in events] == ["tool/call", START, SETTLE, "tool/result"]
    settle = events[2][1]
    assert (settle["isError"], settle["error"]["code"]) == (True, "ABORTED")


@pytest.mark.contract("E34", "C65")
async def test_a_failed_program_tells_its_kind_its_message_and_what_it_wrote(rig: Rig) -> None:
    result = await rig.run("print('step 1')\nx = 1\nraise ValueError('bad x')")
    assert result.is_error
    assert result.error.info is not None
    assert (result.error.info.name, result.error.info.code) == ("CodeRunFailedError", "CODE_RUN_FAILED")
    lines = result.error.message.split("\n")
    assert lines[0] == "code run failed (exception): Traceback (most recent call last):"
    assert '  File "<program>", line 3, in <program>' in lines
    assert lines[-3:] == ["ValueError: bad x", "Captured output:", "step 1"]
    assert result.content[0]["text"] == f"Error: {result.error.message}"  # type: ignore[typeddict-item]


@pytest.mark.contract("E35", "E30")
async def test_a_cancelled_run_stops_and_its_running_call_is_told_why(rig: Rig) -> None:
    source = ptc.SignalSource()
    results: list[ptc.ToolExecutionResult] = []
    told: list[object] = []

    @ptc.tool
    async def waits(run: ptc.ToolRunContext) -> str:
        """Wait to be told."""
        rig.started.set()
        told.append(await run.signal.wait())
        raise RuntimeError("gave up")

    rig.host.tools.register(waits)

    async def go() -> None:
        results.append(await rig.run("await tools.waits()", signal=source.signal))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        await rig.started.wait()
        source.abort("the user left")
    assert told == ["the user left"]
    assert results[0].is_error
    assert results[0].error.message == "code run failed (abort): the user left"
    assert [data["isError"] for _, data in await rig.events(SETTLE)] == [True]


@pytest.mark.contract("E42", "E23", "E33")
async def test_images_and_contexts_of_sub_calls_reach_the_conversation(rig: Rig) -> None:
    call = ptc.ToolCall(name="run_code", arguments={"code": "await tools.picture()\n1/0", "description": "draw"})
    batch = await rig.agent.execute([call])
    assert batch.results[0].result.is_error
    (message,) = batch.additional_contexts
    assert message.source == {"kind": "plugin", "plugin": "tools-ptc"}
    assert [block["type"] for block in message.content] == ["text", "image"]


@pytest.mark.contract("E23", "C67")
async def test_a_sub_call_may_conclude_the_turn(rig: Rig) -> None:
    @ptc.tool
    async def finish(run: ptc.ToolRunContext) -> str:
        """Finish."""
        run.conclude_turn()
        return "done"

    rig.host.tools.register(finish)
    call = ptc.ToolCall(name="run_code", arguments={"code": "await tools.finish()", "description": "finish"})
    assert (await rig.agent.execute([call])).concluded is True


@pytest.mark.contract("E44")
async def test_a_dispatch_log_listener_shapes_the_durable_copy_alone(rig: Rig) -> None:
    @rig.host.on("tools/ptc-dispatch-log")
    async def hide(entry: ptc.DispatchLogEntry, next: Any) -> Any:
        assert entry.content == [{"type": "text", "text": "42"}]
        await next()
        return [ptc.text_block("hidden")]

    assert await rig.value("return await tools.double(x=21)") == 42
    (_, settle), *_ = await rig.events(SETTLE)
    assert settle["content"] == [{"type": "text", "text": "hidden"}]


@pytest.mark.contract("E44")
async def test_a_dispatch_log_listener_that_fails_is_contained(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    @rig.host.on("tools/ptc-dispatch-log")
    async def broken(entry: ptc.DispatchLogEntry, next: Any) -> Any:
        raise RuntimeError("shaping failed")

    assert await rig.value("return await tools.double(x=21)") == 42
    (_, settle), *_ = await rig.events(SETTLE)
    assert settle["content"] == [{"type": "text", "text": "42"}]
    assert "shaping failed" in caplog.text


@pytest.mark.contract("E44")
async def test_an_error_of_a_dispatch_log_listener_need_not_be_printable(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @rig.host.on("tools/ptc-dispatch-log")
    async def broken(entry: ptc.DispatchLogEntry, next: Any) -> Any:
        raise MuteError

    assert await rig.value("return await tools.double(x=21)") == 42
    assert "<unprintable thrown value>" in caplog.text


@pytest.mark.contract("E36")
async def test_without_a_log_programs_run_all_the_same(
    anyio_backend: str, make_sandbox: Callable[..., ptc.Sandbox]
) -> None:
    @ptc.tool
    async def one() -> int:
        """Give one."""
        return 1

    async with ptc.Host() as host:
        host.tools.register(one)
        agent = host.agent("unlogged", executor=ptc.PtcExecutor(sandbox=make_sandbox()))
        result = await agent.run_code("return await tools.one()")
    assert not result.is_error
    assert result.value == {"logs": [], "result": 1}


@pytest.mark.contract("E37")
async def test_concurrent_runs_are_independent(
    anyio_backend: str, rig: Rig, make_sandbox: Callable[..., ptc.Sandbox]
) -> None:
    other = rig.host.agent("other", executor=ptc.PtcExecutor(sandbox=make_sandbox()))
    results: dict[str, Any] = {}

    async def go(name: str, agent: ptc.Agent) -> None:
        result = await agent.run_code("return [await tools.double(x=n) for n in range(3)]")
        assert not result.is_error
        results[name] = result.value

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go, "tester", rig.agent)
        tasks.start_soon(go, "other", other)
    assert results["tester"] == results["other"] == {"logs": [], "result": [0, 2, 4]}
    assert len(await rig.events(START)) == 3


@pytest.mark.contract("E45", "I5")
async def test_a_call_whose_start_cannot_be_recorded_does_not_run(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_records(rig, monkeypatch, START, ptc.LogUnavailableError("the disk is full", reason="failed"))
    said = await rig.value("try:\n    await tools.double(x=1)\nexcept ToolCallError as e:\n    return str(e)")
    assert said == "double did not run, because its start could not be recorded"
    assert "the disk is full" in caplog.text
    assert rig.bodies == []


@pytest.mark.contract("A60", "D15")
async def test_a_record_that_fails_later_fails_the_batch_after_everything_was_drained(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_records(rig, monkeypatch, "tool/result", ptc.LogUnavailableError("the disk is full", reason="failed"))
    with pytest.raises(ptc.ToolBatchExecutionError) as caught:
        await rig.run("await tools.double(x=1)")
    assert isinstance(caught.value.__cause__, ptc.LogUnavailableError)
    assert rig.bodies == ["double 1"]


async def test_the_hosts_own_cancellation_ends_the_run_and_records_it(rig: Rig) -> None:
    settled = anyio.Event()
    assert rig.agent.session is not None
    rig.agent.session.observe(lambda event: settled.set() if event.type == SETTLE else None)
    with anyio.CancelScope() as scope:

        @ptc.tool
        async def give_up() -> str:
            """Have the host cancel the run soon."""
            tasks.start_soon(cancel_later)
            return "soon"

        async def cancel_later() -> None:
            await settled.wait()
            await anyio.sleep(0.05)  # the program is in its hot loop by now, or about to be
            scope.cancel()

        rig.host.tools.register(give_up)
        async with anyio.create_task_group() as tasks:
            await rig.run("await tools.give_up()\nwhile True:\n    pass")
    assert scope.cancelled_caught
    types = [type_ for type_, _ in await rig.events()]
    assert types == ["tool/call", START, SETTLE, "tool/result"]
    assert await rig.value("return 1") == 1


@pytest.mark.contract("A53", "A54")
async def test_agents_of_one_host_have_executors_of_their_own(rig: Rig) -> None:
    native = rig.host.agent("native", executor=ptc.NativeExecutor())
    names = [schema.name for schema in native.describe().schemas]
    assert names == ["double", "fail", "nap", "picture", "stuck", "write"]
    assert native.describe().prompt == ""
    batch = await native.execute([ptc.ToolCall(name="double", arguments='{"x": 4}')])
    assert not batch.results[0].result.is_error
    assert batch.results[0].result.value == 8
    unload = rig.host.set_executor(native, ptc.NativeExecutor())
    unload()
    with pytest.raises(ptc.ToolExecutorUnavailableError):
        await native.execute([ptc.ToolCall(name="double", arguments={"x": 1})])


async def test_a_host_that_is_not_open_makes_no_agents_with_a_log(tmp_path: Any) -> None:
    host = ptc.Host(log=tmp_path / "x.db")
    with pytest.raises(RuntimeError, match="async with"):
        host.agent("early")


@pytest.mark.contract("A60", "E31")
async def test_a_settle_that_cannot_be_recorded_stops_the_run_and_is_the_hosts_to_know(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_records(
        rig, monkeypatch, SETTLE, ptc.LogUnavailableError("cannot write /secret/place/ptc.db", reason="failed")
    )
    with pytest.raises(ptc.ToolBatchExecutionError) as caught:
        await rig.run("for n in range(1000):\n    await tools.write(name=str(n))")
    assert isinstance(caught.value.__cause__, ptc.LogUnavailableError)
    assert len(rig.bodies) <= 4
    (outcome,) = caught.value.results
    assert "/secret/place" not in str(outcome.result.content)
    result = (await rig.events("tool/result"))[0][1]
    assert "/secret/place" not in json.dumps(result)


@pytest.mark.contract("A60")
async def test_a_fault_of_the_pipeline_ends_the_run_and_not_the_wall_clock(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptc.registry import PipelineCall

    finish = PipelineCall.finish

    async def broken(self: Any) -> Any:
        if ":ptc:" in self.exec.call_id:
            raise RuntimeError("broken stage")
        return await finish(self)

    monkeypatch.setattr(PipelineCall, "finish", broken)
    with anyio.fail_after(20), pytest.raises(ptc.ToolBatchExecutionError, match="broken stage"):
        await rig.run("await tools.double(x=1)\nwhile True:\n    pass")
    assert [data["isError"] for _, data in await rig.events(SETTLE)] == [True]


@pytest.mark.contract("I8", "E15")
async def test_an_id_that_a_provider_uses_again_is_recorded_apart_and_answered_as_asked(rig: Rig) -> None:
    def call() -> ptc.ToolCall:
        arguments = {"code": "return await tools.double(x=1)", "description": "double"}
        return ptc.ToolCall(name="run_code", arguments=arguments, call_id="call_0")

    first = await rig.agent.execute([call()])
    second = await rig.agent.execute([call(), call()])
    answered = [outcome.call_id for outcome in (*first.results, *second.results)]
    assert answered == ["call_0", "call_0", "call_0"]
    assert [data["callId"] for _, data in await rig.events("tool/call")] == ["call_0", "call_0~2", "call_0~3"]
    ids = [data["subCallId"] for _, data in await rig.events(START)]
    assert ids == ["call_0:ptc:1", "call_0~2:ptc:1", "call_0~3:ptc:1"]
    assert rig.agent.session is not None
    again = rig.host.agent("tester", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()), session=rig.agent.session.id)
    await again.execute([call()])
    assert [data["callId"] for _, data in await rig.events("tool/call")][-1] == "call_0~4"


@pytest.mark.contract("I8", "I3")
async def test_batches_that_begin_at_once_in_a_session_that_goes_on_have_ids_and_steps_of_their_own(rig: Rig) -> None:
    assert rig.agent.session is not None
    call = ptc.ToolCall(name="double", arguments={"x": 1}, call_id="call_0")
    await rig.host.agent("tester", session=rig.agent.session.id).execute([call])
    again = rig.host.agent("tester", session=rig.agent.session.id)
    async with anyio.create_task_group() as batches:
        for _ in range(3):
            batches.start_soon(again.execute, [call])
    calls = [data for _, data in await rig.events("tool/call")][1:]
    assert sorted(data["callId"] for data in calls) == ["call_0~2", "call_0~3", "call_0~4"]
    assert sorted(data["step"] for data in calls) == [1, 2, 3]


@pytest.mark.contract("I3")
async def test_a_session_that_goes_on_goes_on_with_its_turns(rig: Rig) -> None:
    assert rig.agent.session is not None
    call = ptc.ToolCall(name="double", arguments={"x": 1})
    await rig.agent.execute([call])
    rig.agent.next_turn()
    await rig.agent.execute([call])
    again = rig.host.agent("tester", session=rig.agent.session.id)
    await again.execute([call])
    await again.execute([call])
    again.next_turn()
    await again.execute([call])
    calls = [(data["turn"], data["step"]) for _, data in await rig.events("tool/call")]
    assert calls == [(1, 1), (2, 1), (3, 1), (3, 2), (4, 1)]


@pytest.mark.contract("A60")
async def test_a_stopped_batch_answers_as_asked_as_well(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"code": "await tools.double(x=1)", "description": "double"}
    call = ptc.ToolCall(name="run_code", arguments=arguments, call_id="call_0")
    await rig.agent.execute([call])
    refuse_records(rig, monkeypatch, SETTLE, ptc.LogUnavailableError("the disk is full", reason="failed"))
    with pytest.raises(ptc.ToolBatchExecutionError) as caught:
        await rig.agent.execute([call])
    assert [outcome.call_id for outcome in caught.value.results] == ["call_0"]


@pytest.mark.contract("E14")
async def test_what_a_tool_does_with_its_arguments_does_not_change_the_record(rig: Rig) -> None:
    async def meddle(arguments: Any, _run: ptc.ToolRunContext) -> Any:
        # Past the freeze, which is a guard against accidents and no boundary.
        dict.__setitem__(arguments, "amount", 1_000_000)
        return None

    rig.host.tools.register(
        ptc.define_tool(
            name="meddle",
            description="Change its own arguments.",
            parameters={"amount": {"type": "integer", "required": True}},
            output={"type": "json"},
            execute=meddle,
        )
    )
    await rig.value("await tools.meddle(amount=5)")
    assert [data["arguments"] for _, data in await rig.events(START, SETTLE)] == [{"amount": 5}, {"amount": 5}]
