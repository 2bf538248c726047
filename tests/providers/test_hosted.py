"""Programs that a provider runs: their calls are sub-calls, with policies, order and records like any others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime.providers import HostedCall, HostedEnd, HostedExecutor, HostedProgram, HostedStep

from .conftest import Rig

pytestmark = pytest.mark.anyio

CALL, RESULT = "tool/call", "tool/result"
START, SETTLE = "tool/ptc-dispatch-start", "tool/ptc-dispatch"
PROGRAM = HostedProgram("srv1", "print(await double(x=21))", "python")


def made(name: str, arguments: Any, call_id: str = "t1", program: str = "srv1") -> HostedCall:
    return HostedCall(name=name, arguments=arguments, call_id=call_id, program_id=program)


def step(*calls: ptc.ToolCall, begun: Sequence[HostedProgram] = (), ended: Sequence[HostedEnd] = ()) -> HostedStep:
    return HostedStep(calls=calls, begun=tuple(begun), ended=tuple(ended))


def values(batch: ptc.ToolBatchResult) -> list[Any]:
    """Returns what each call gave: its value, or the message of its failure."""
    return [one.result.error.message if one.result.is_error else one.result.value for one in batch.results]


@pytest.mark.contract("E15", "E16", "I5", "I6", "I7")
async def test_calls_of_a_program_are_sub_calls_with_the_program_as_their_parent(rig: Rig) -> None:
    async with rig.executor.programs(rig.agent) as programs:
        first = await programs.execute(step(made("double", {"x": 21}), begun=[PROGRAM]))
        assert programs.running == ("srv1",)
        second = await programs.execute(step(made("double", {"x": 1}, "t2"), made("fail", {"why": "so"}, "t3")))
        last = await programs.execute(step(ended=[HostedEnd("srv1", "42\n2\n")]))
        assert programs.running == ()
    assert (values(first), values(second), last.results) == ([42], [2, "so"], ())
    assert [one.call_id for one in second.results] == ["t2", "t3"]
    recorded = await rig.events()
    assert [kind for kind, _data in recorded] == [CALL, START, SETTLE, START, SETTLE, START, SETTLE, RESULT]
    root = recorded[0][1]
    assert (root["callId"], root["name"]) == ("srv1", "run_code")
    assert "print(await double(x=21))" in root["arguments"]
    subs = [data for kind, data in recorded if kind in (START, SETTLE)]
    assert {(data["rootCallId"], data["parentCallId"]) for data in subs} == {("srv1", "srv1")}
    assert [data["subCallId"] for data in subs[::2]] == ["srv1:ptc:1", "srv1:ptc:2", "srv1:ptc:3"]
    assert [data["isError"] for data in subs[1::2]] == [False, False, True]
    assert recorded[-1][1]["message"]["content"] == [{"type": "text", "text": "42\n2"}]
    assert recorded[-1][1]["message"]["isError"] is False


async def test_the_models_own_calls_are_root_calls_beside_them(rig: Rig) -> None:
    own = ptc.ToolCall(name="write", arguments={"name": "own"}, call_id="d1")
    async with rig.executor.programs(rig.agent) as programs:
        batch = await programs.execute(
            step(made("double", {"x": 1}, "t1"), own, made("double", {"x": 2}, "t2"), begun=[PROGRAM])
        )
        await programs.execute(step(ended=[HostedEnd("srv1")]))
    assert [one.call_id for one in batch.results] == ["t1", "d1", "t2"]
    assert values(batch) == [2, "wrote own", 4]
    roots = [data["callId"] for _kind, data in await rig.events(CALL)]
    assert sorted(roots) == ["d1", "srv1"]


@pytest.mark.contract("E47", "C14")
async def test_policies_decide_on_each_call_and_know_its_parent(rig: Rig) -> None:
    seen: list[tuple[str, str, bool]] = []

    @rig.host.on("tools/pre-execute")
    async def gate(call: ptc.ToolExecution, go_on: Any) -> Any:
        seen.append((call.name, call.root_call_id, call.parent is not None))
        return ptc.Deny("nobody writes") if call.name == "write" else await go_on()

    async with rig.executor.programs(rig.agent) as programs:
        batch = await programs.execute(
            step(made("write", {"name": "x"}), made("double", {"x": 2}, "t2"), begun=[PROGRAM])
        )
        await programs.execute(step(ended=[HostedEnd("srv1")]))
    assert values(batch) == ["nobody writes", 4]
    assert seen == [("run_code", "srv1", False), ("write", "srv1", True), ("double", "srv1", True)]
    assert rig.bodies == ["double 2"]
    denied = (await rig.events(SETTLE))[0][1]
    assert (denied["isError"], denied["decision"]["outcome"]) == (True, "deny")


@pytest.mark.contract("A48")
async def test_a_guard_refuses_a_call(rig: Rig) -> None:
    rig.agent.tools.guard(lambda call: "no" if call.name == "double" else None)
    async with rig.executor.programs(rig.agent) as programs:
        batch = await programs.execute(step(made("double", {"x": 2}), begun=[PROGRAM]))
        await programs.execute(step(ended=[HostedEnd("srv1")]))
    assert values(batch) == ["no"]
    assert rig.bodies == []


async def test_who_denies_the_program_denies_its_calls(rig: Rig) -> None:
    rig.agent.tools.guard(lambda call: "no programs here" if call.name == "run_code" else None)
    async with rig.executor.programs(rig.agent) as programs:
        first = await programs.execute(step(made("double", {"x": 2}), begun=[PROGRAM]))
        second = await programs.execute(step(made("double", {"x": 3})))
        await programs.execute(step(ended=[HostedEnd("srv1", "done")]))
    assert values(first) == values(second) == ["double was not called: no programs here"]
    assert rig.bodies == []
    assert [kind for kind, _data in await rig.events()] == [CALL, RESULT]


async def test_an_approval_is_asked_for_one_call_while_another_goes_on(rig: Rig) -> None:
    asked, answer = anyio.Event(), anyio.Event()

    @rig.host.on("tools/pre-execute")
    async def ask(call: ptc.ToolExecution, go_on: Any) -> Any:
        return ptc.Ask("writes") if call.name == "write" else await go_on()

    @rig.host.on("approval/request")
    async def person(_request: ptc.ApprovalRequest, _go_on: Any) -> ptc.ApprovalOutcome:
        asked.set()
        await answer.wait()
        return "allowed-once"

    async with rig.executor.programs(rig.agent) as programs, anyio.create_task_group() as tasks:
        batches: list[ptc.ToolBatchResult] = []

        async def execute() -> None:
            calls = [made("stuck", {"name": "x"}), made("write", {"name": "y"}, "t2")]
            batches.append(await programs.execute(step(*calls, begun=[PROGRAM])))
            await programs.execute(step(ended=[HostedEnd("srv1")]))

        tasks.start_soon(execute)
        await rig.started.wait()
        rig.release.set()
        await asked.wait()
        answer.set()
    assert values(batches[0]) == ["x", "wrote y"]
    assert [kind for kind, _data in await rig.events() if kind.startswith("approval")] == [
        "approval/asked",
        "approval/decided",
    ]


@pytest.mark.contract("E17", "E19", "E21")
async def test_exclusive_tools_have_the_lane_to_themselves(rig: Rig) -> None:
    calls = [made("write", {"name": name}, name) for name in "abc"]
    async with rig.executor.programs(rig.agent) as programs:
        await programs.execute(step(*calls, begun=[PROGRAM]))
        await programs.execute(step(ended=[HostedEnd("srv1")]))
    assert rig.bodies == ["begin a", "end a", "begin b", "end b", "begin c", "end c"]


async def test_programs_run_side_by_side_each_with_its_own_calls(rig: Rig) -> None:
    other = HostedProgram("srv2", "x", "javascript")
    async with rig.executor.programs(rig.agent) as programs:
        batch = await programs.execute(
            step(made("double", {"x": 1}, "t1", "srv1"), made("double", {"x": 2}, "t2", "srv2"), begun=[PROGRAM, other])
        )
        await programs.execute(step(ended=[HostedEnd("srv2")]))
        assert programs.running == ("srv1",)
        await programs.execute(step(ended=[HostedEnd("srv1")]))
    assert values(batch) == [2, 4]
    parents = [(data["parentCallId"], data["arguments"]["x"]) for _kind, data in await rig.events(START)]
    assert sorted(parents) == [("srv1", 1), ("srv2", 2)]


@pytest.mark.contract("E23", "E42")
async def test_images_wait_until_no_program_runs(rig: Rig) -> None:
    """A provider whose program waits takes results and nothing else."""
    async with rig.executor.programs(rig.agent) as programs:
        first = await programs.execute(step(made("picture", {}), begun=[PROGRAM]))
        assert first.additional_contexts == ()
        last = await programs.execute(step(ended=[HostedEnd("srv1")]))
    assert values(first) == [{"width": 2}]
    assert [block["type"] for one in last.additional_contexts for block in one.content] == ["text", "image"]


async def test_a_program_that_fails_is_recorded_as_failed(rig: Rig) -> None:
    async with rig.executor.programs(rig.agent) as programs:
        await programs.execute(step(begun=[PROGRAM], ended=[HostedEnd("srv1", "so far", "NameError: y")]))
    ((_kind, data),) = await rig.events(RESULT)
    assert data["error"]["code"] == "CODE_RUN_FAILED"
    assert data["message"]["content"][0]["text"] == (
        "Error: code run failed (exception): NameError: y\nCaptured output:\nso far"
    )


async def test_a_program_of_which_no_end_is_told_is_recorded_as_failed(rig: Rig) -> None:
    async with rig.executor.programs(rig.agent) as programs:
        await programs.execute(step(made("double", {"x": 2}), begun=[PROGRAM]))
    ((_kind, data),) = await rig.events(RESULT)
    assert "code run failed (abort): the conversation ended before the provider told" in str(data["message"]["content"])


@pytest.mark.contract("E31")
async def test_a_host_that_gives_up_waits_for_what_has_started(rig: Rig) -> None:
    async def give_up() -> None:
        async with rig.executor.programs(rig.agent) as programs:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(programs.execute, step(made("stuck", {"name": "x"}), begun=[PROGRAM]))
                await rig.started.wait()
                tasks.cancel_scope.cancel()
            assert programs.running == ("srv1",)
            rig.release.set()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):  # itself, and no group with it
        await give_up()
    recorded = await rig.events()
    assert [kind for kind, _data in recorded] == [CALL, START, SETTLE, RESULT]
    assert recorded[-1][1]["message"]["isError"] is True


@pytest.mark.contract("E29", "E30")
async def test_a_signal_ends_the_calls_and_the_program(rig: Rig) -> None:
    source = ptc.SignalSource()
    batches: list[ptc.ToolBatchResult] = []
    async with (
        rig.executor.programs(rig.agent, signal=source.signal) as programs,
        anyio.create_task_group() as tasks,
    ):

        async def execute() -> None:
            batches.append(await programs.execute(step(made("stuck", {"name": "x"}), begun=[PROGRAM])))

        tasks.start_soon(execute)
        await rig.started.wait()
        source.abort("the user left")
        rig.release.set()
    assert "the user left" in values(batches[0])[0]
    assert [kind for kind, _data in await rig.events()] == [CALL, START, SETTLE, RESULT]


async def test_a_program_that_began_before_this_process_did_has_its_calls(rig: Rig) -> None:
    async with rig.executor.programs(rig.agent) as programs:
        assert values(await programs.execute(step(made("double", {"x": 4})))) == [8]
        assert programs.running == ("srv1",)
        await programs.execute(step(ended=[HostedEnd("srv1"), HostedEnd("never heard of")]))
    ((_kind, data),) = await rig.events(START)
    assert data["parentCallId"] == "srv1"


async def test_a_call_of_a_program_that_is_over_is_refused(rig: Rig) -> None:
    async with rig.executor.programs(rig.agent) as programs:
        await programs.execute(step(begun=[PROGRAM], ended=[HostedEnd("srv1")]))
        late = await programs.execute(step(made("double", {"x": 4}), begun=[PROGRAM]))
    assert values(late) == ["the program of this call is over; double was not called"]
    assert rig.bodies == []


async def test_an_unknown_tool_is_an_error_for_the_program(rig: Rig) -> None:
    rig.agent.tools.restrict(deny=["write"])
    async with rig.executor.programs(rig.agent) as programs:
        calls = [made("nothing", {}), made("write", {"name": "x"}, "t2"), made("run_code", {"code": "1"}, "t3")]
        batch = await programs.execute(step(*calls, begun=[PROGRAM]))
        await programs.execute(step(ended=[HostedEnd("srv1")]))
    assert values(batch) == ['unknown tool "nothing"', 'unknown tool "write"', 'unknown tool "run_code"']
    assert rig.bodies == []


@pytest.mark.parametrize("arguments", ["{bad", "[1]", {"x": "no number"}, {}, {"x": 1, "y": 2}])
async def test_arguments_that_do_not_fit_are_refused_and_recorded(rig: Rig, arguments: Any) -> None:
    async with rig.executor.programs(rig.agent) as programs:
        batch = await programs.execute(step(made("double", arguments), begun=[PROGRAM]))
        await programs.execute(step(ended=[HostedEnd("srv1")]))
    assert values(batch)[0].startswith("invalid arguments")
    ((_kind, data),) = await rig.events(SETTLE)
    assert data["error"]["code"] == "INVALID_ARGS"
    assert rig.bodies == []


async def test_arguments_that_are_no_json_are_refused(rig: Rig) -> None:
    async with rig.executor.programs(rig.agent) as programs:
        batch = await programs.execute(step(made("double", {"x": float("nan")}), begun=[PROGRAM]))
        await programs.execute(step(ended=[HostedEnd("srv1")]))
    assert values(batch)[0].startswith("tool arguments must be lossless JSON")


async def test_no_model_can_start_a_program_by_a_call(rig: Rig) -> None:
    own = ptc.ToolCall(name="run_code", arguments={"code": "1", "description": "x"}, call_id="d1")
    async with rig.executor.programs(rig.agent) as programs:
        batch = await programs.execute(step(own))
        assert programs.running == ()
    assert values(batch) == ['unknown tool "run_code"']


async def test_calls_of_programs_are_not_for_execute(rig: Rig) -> None:
    with pytest.raises(ValueError, match=r"'t1' is one of a hosted program; give the whole step to HostedPrograms"):
        await rig.agent.execute([made("double", {"x": 1})])
    assert rig.bodies == []


async def test_a_record_that_cannot_be_written_stops_the_program_and_is_told(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = rig.agent.session
    assert session is not None
    append = session.append

    async def failing(type: str, data: Any, *, cites: int | None = None) -> int:
        if type == SETTLE:
            raise OSError("the disk is full")
        return await append(type, data, cites=cites)

    monkeypatch.setattr(session, "append", failing)
    async with rig.executor.programs(rig.agent) as programs:
        with pytest.raises(ptc.ToolBatchExecutionError, match="the disk is full"):  # noqa: PT012 - either step may tell
            await programs.execute(step(made("double", {"x": 1}), begun=[PROGRAM]))
            await programs.execute(step(made("double", {"x": 2}, "t2")))
    assert "double 2" not in rig.bodies


async def test_a_fault_that_no_step_has_told_is_told_in_the_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    session = rig.agent.session
    assert session is not None

    async def failing(*_arguments: Any, **_options: Any) -> int:
        raise OSError("the disk is full")

    monkeypatch.setattr(session, "append", failing)
    with pytest.raises(ptc.ToolBatchExecutionError, match="the disk is full"):
        async with rig.executor.programs(rig.agent) as programs:
            await programs.execute(step(begun=[PROGRAM]))


async def test_conditional_tools_are_those_of_the_turn(rig: Rig) -> None:
    @ptc.tool
    async def sometimes() -> str:
        """There now and then."""
        return "now"

    rig.host.tools.register(sometimes, when=lambda _context: True)
    async with rig.agent.resolve() as tools, rig.executor.programs(rig.agent, tool_set=tools) as programs:
        assert "sometimes" in [schema.name for schema in rig.agent.describe(tool_set=tools).schemas]
        assert values(await programs.execute(step(made("sometimes", {}), begun=[PROGRAM]))) == ["now"]
        await programs.execute(step(ended=[HostedEnd("srv1")]))


async def test_an_agent_may_conclude_its_turn_in_a_program(rig: Rig) -> None:
    async def finish(_arguments: Any, run: ptc.ToolRunContext) -> Any:
        run.conclude_turn()
        return "bye"

    rig.host.tools.register(
        ptc.define_tool(name="finish", description="", parameters={}, output={"type": "string"}, execute=finish)
    )
    async with rig.executor.programs(rig.agent) as programs:
        first = await programs.execute(step(made("finish", {}), begun=[PROGRAM]))
        last = await programs.execute(step(ended=[HostedEnd("srv1")]))
    assert (first.concluded, last.concluded) == (False, True)


async def test_the_model_is_told_of_every_tool_and_what_it_returns(rig: Rig) -> None:
    prompt, schemas = rig.agent.describe()
    assert prompt == ""
    assert [schema.name for schema in schemas] == ["double", "fail", "picture", "stuck", "write"]
    assert schemas[0].output == {"type": "integer"}
    ordered = rig.host.agent("other", executor=HostedExecutor(order=["write", "<unlisted-tools>"]))
    assert ordered.describe().schemas[0].name == "write"


@pytest.mark.contract("E8", "H11")
async def test_a_program_has_the_card_of_a_program(rig: Rig) -> None:
    card = rig.agent.present_call("run_code", {"code": "x = 1", "description": "A program"})
    assert (card.title, card.raw_input) == ("A program", "x = 1")  # type: ignore[union-attr]


@pytest.mark.parametrize("cap", [{"max_parallel_tool_calls": 0}, {"max_parallel_sub_calls": True}])
def test_caps_are_positive_integers(cap: Any) -> None:
    with pytest.raises(ValueError, match="must be a positive integer"):
        HostedExecutor(**cap)


async def test_a_log_of_hosted_programs_is_whole_and_says_where_they_ran(rig: Rig, tmp_path: Path) -> None:
    async with rig.executor.programs(rig.agent) as programs:
        await programs.execute(step(made("double", {"x": 1}), begun=[PROGRAM]))
        await programs.execute(step(ended=[HostedEnd("srv1")]))
    await rig.host.aclose()
    verified = ptc.verify_log(tmp_path / "ptc.db")
    assert verified.whole
    assert rig.executor.labels == {"executor": "hosted", "isolation": "provider"}


async def test_without_a_log_programs_work_all_the_same(anyio_backend: str) -> None:
    @ptc.tool
    async def double(x: int) -> int:
        """Double a number."""
        return 2 * x

    async with ptc.Host() as host:
        host.tools.register(double)
        executor = HostedExecutor()
        agent = host.agent("tester", executor=executor)
        async with executor.programs(agent) as programs:
            assert values(await programs.execute(step(made("double", {"x": 3}), begun=[PROGRAM]))) == [6]
