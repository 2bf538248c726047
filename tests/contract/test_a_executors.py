"""Executors and their selection (contract A52 to A62)."""

from __future__ import annotations

from types import SimpleNamespace

import anyio
import pytest
from ptc.registry import (
    BatchLog,
    ExecutorDescription,
    NativeExecutor,
    ScopeKey,
    SignalSource,
    ToolBatchExecutionError,
    ToolBatchInput,
    ToolBatchResult,
    ToolCall,
    ToolExecutorUnavailableError,
    ToolRegistrationError,
    ToolService,
    run_batch,
)

pytestmark = pytest.mark.anyio


class Named:
    """An executor that answers with its name."""

    def __init__(self, name, sections=None):
        self.name = name
        self.batches = []
        if sections is not None:
            self.sections = lambda _tools: sections

    def describe(self, tools):
        return ExecutorDescription(schemas=(), known_names=frozenset({self.name}))

    async def execute(self, batch):
        self.batches.append(batch)
        return ToolBatchResult(results=())


@pytest.fixture
def service(rig):
    return ToolService(rig.pipeline)


def batch(*names, **fields):
    return ToolBatchInput(calls=[ToolCall(name=name, call_id=f"c{n}") for n, name in enumerate(names, 1)], **fields)


@pytest.mark.contract("A52", "A53")
async def test_the_nearest_selection_wins_else_the_deployments_else_native(rig, service):
    top, low, stranger = ScopeKey("top"), ScopeKey("low"), ScopeKey("stranger")
    rig.registry.bind(low, top)
    rig.add("echo")
    native = await service.execute(batch("echo", agent=low))
    assert native.results[0].result.value == {"ok": True}
    rig.tools.set_executor(Named("default"))
    rig.registry.context(top).set_executor(Named("top"))
    chosen = {scope: service.executor(scope).name for scope in (top, low, stranger, None)}
    assert chosen == {top: "top", low: "top", stranger: "default", None: "default"}
    rig.registry.context(low).set_executor(Named("low"))
    assert service.executor(low).name == "low"
    assert service.executor(top).name == "top"
    assert service.describe(low).known_names == {"low"}


@pytest.mark.contract("A54")
async def test_an_unloaded_executor_leaves_its_selection_unavailable_until_replaced(rig, service):
    agent = ScopeKey("agent")
    rig.add("echo")
    rig.tools.set_executor(Named("default"))
    unload = rig.registry.context(agent).set_executor(Named("own", sections=["text"]))
    assert service.sections(agent) == ("text",)
    unload()
    with pytest.raises(ToolExecutorUnavailableError) as caught:
        await service.execute(batch("echo", agent=agent))
    assert caught.value.code == "TOOL_EXECUTOR_UNAVAILABLE"
    for ask in (service.sections, service.describe):
        with pytest.raises(ToolExecutorUnavailableError):
            ask(agent)
    assert service.executor(None).name == "default"
    rig.registry.context(agent).set_executor(Named("new"))
    unload()
    assert service.executor(agent).name == "new"


@pytest.mark.contract("A54")
def test_unloading_a_replaced_executor_changes_nothing(rig, service):
    unload = rig.tools.set_executor(Named("old"))
    rig.tools.set_executor(Named("new"))
    unload()
    assert service.executor().name == "new"


@pytest.mark.contract("A52", "A15")
def test_selecting_tells_of_a_change_and_a_listener_may_undo_it(rig, service):
    rig.tools.on("tools/change", lambda: rig.note("change"))
    unload = rig.tools.set_executor(Named("one"))
    assert rig.seen == ["change"]
    unload()
    assert rig.seen == ["change"] * 2
    rig.tools.set_executor(Named("two"))

    def object_to_it():
        raise LookupError("no")

    rig.tools.on("tools/change", object_to_it)
    with pytest.raises(LookupError):
        rig.tools.set_executor(Named("three"))
    assert service.executor().name == "two"


@pytest.mark.contract("A59")
def test_what_is_no_executor_is_refused(rig):
    with pytest.raises(ToolRegistrationError, match=r"must have a method describe\(\)"):
        rig.tools.set_executor(object())
    with pytest.raises(ToolRegistrationError, match=r"must have a method execute\(\)"):
        rig.tools.set_executor(SimpleNamespace(describe=lambda _tools: None, execute="text"))


@pytest.mark.contract("A53", "A55")
async def test_a_batch_settles_with_the_executor_it_was_accepted_by(rig, service):
    async def body(_arguments, _run):
        unload()
        rig.tools.set_executor(Named("other"))
        return "done"

    class Own(Named):
        async def execute(self, batch):
            result = await run_batch(rig.pipeline, batch)
            rig.note(self.name)
            return result

    rig.add("echo", body)
    unload = rig.tools.set_executor(Own("own"))
    result = await service.execute(batch("echo", "echo"))
    assert [outcome.result.value for outcome in result.results] == ["done", "done"]
    assert rig.seen == ["own"]


@pytest.mark.contract("A56")
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"log": BatchLog(1, 1)}, "a batch with a log needs an agent"),
        ({"max_parallel_tool_calls": 0}, "must be a positive integer"),
        ({"max_parallel_tool_calls": True}, "must be a positive integer"),
        ({"max_parallel_tool_calls": 2.0}, "must be a positive integer"),
    ],
)
async def test_a_malformed_batch_is_refused_before_anything_starts(rig, service, fields, says):
    rig.add("echo")
    executor = Named("own")
    with pytest.raises(ValueError, match=says):
        await run_batch(rig.pipeline, batch("echo", **fields))
    rig.tools.set_executor(executor)
    with pytest.raises(ValueError, match=says):
        await service.execute(batch("echo", **fields))
    assert executor.batches == []
    assert rig.seen == []
    assert rig.observed == []


@pytest.mark.contract("A56")
async def test_the_batch_says_how_many_bodies_run_at_once_for_itself_alone(rig):
    most = running = 0

    async def body(_arguments, _run):
        nonlocal most, running
        running += 1
        most = max(most, running)
        await anyio.wait_all_tasks_blocked()
        running -= 1

    rig.add("echo", body, is_concurrency_safe=lambda _arguments: True)
    service = ToolService(rig.pipeline, default=NativeExecutor(rig.pipeline, max_parallel_tool_calls=2))
    for override, expected in ((None, 2), (3, 3), (1, 1), (None, 2)):
        most = 0
        await service.execute(batch(*["echo"] * 4, max_parallel_tool_calls=override))
        assert most == expected


@pytest.mark.contract("A56")
async def test_the_signal_of_a_batch_reaches_its_calls(rig, service, kit):
    source = SignalSource()

    async def body(_arguments, run):
        source.abort("enough")
        rig.note((run.signal.aborted, run.signal.reason))

    rig.add("echo", body)
    result = await service.execute(batch("echo", "echo", signal=source.signal))
    assert rig.seen == [(True, "enough")]
    assert [kit.identity(outcome.result)[1] for outcome in result.results] == ["ABORTED", "ABORTED_BEFORE_DISPATCH"]


@pytest.mark.contract("A57", "A58", "D17")
async def test_a_result_answers_for_every_call_in_order_and_the_log_is_optional(rig, service, kit):
    log = kit.MemoryLog()
    agent = ScopeKey("agent", session=log)

    async def body(_arguments, run):
        await run.agent.session.append("own/event", {"callId": "x"})
        run.defer_context(kit.context("deferred"))
        return 1

    rig.add("writes", body)
    rig.add("echo")
    result = await service.execute(batch("echo", "nothing", "writes", agent=agent))
    assert [outcome.call_id for outcome in result.results] == ["c1", "c2", "c3"]
    assert [outcome.result.is_error for outcome in result.results] == [False, True, False]
    assert kit.texts(result) == ["deferred"]
    assert result.concluded is False
    assert [kind for kind, _data, _cites in log.events] == ["own/event"]


@pytest.mark.contract("A57")
async def test_contexts_come_in_the_order_they_were_accepted_and_a_turn_may_be_concluded(rig, service, kit):
    async def body(arguments, run):
        run.defer_context(kit.context(arguments["text"]))
        if arguments["text"] == "first":
            await anyio.wait_all_tasks_blocked()
            run.conclude_turn()

    rig.add("tell", body, is_concurrency_safe=lambda _arguments: True)
    calls = [ToolCall(name="tell", arguments={"text": text}) for text in ("first", "second", "third")]
    result = await service.execute(ToolBatchInput(calls=calls))
    assert kit.texts(result) == ["first", "second", "third"]
    assert result.concluded is True


@pytest.mark.contract("A60")
async def test_execute_settles_only_when_nothing_runs_any_more(rig, service, kit):
    log = kit.MemoryLog()
    log.fail_on = lambda kind, data: kind == "tool/call" and data["callId"] == "c3"
    release = anyio.Event()

    async def slow(_arguments, _run):
        await release.wait()
        rig.note("slow body ended")
        return "slow"

    async def quick(_arguments, _run):
        return "quick"

    rig.add("slow", slow, is_concurrency_safe=lambda _arguments: True)
    rig.add("quick", quick, is_concurrency_safe=lambda _arguments: True)
    agent = ScopeKey("agent", session=log)
    async with anyio.create_task_group() as group:

        async def run():
            with pytest.raises(ToolBatchExecutionError) as caught:
                await service.execute(batch("quick", "slow", "quick", agent=agent, log=BatchLog(1, 2)))
            rig.note("rejected")
            assert isinstance(caught.value.__cause__, OSError)
            assert caught.value.code == "TOOL_BATCH_FAILED"

        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        assert rig.seen == []
        release.set()
    assert rig.seen == ["slow body ended", "rejected"]


@pytest.mark.contract("A61")
async def test_with_a_transport_only_calls_with_a_parent_execute_native_names(rig, kit):
    rig.add("echo")

    async def pre(call, next_):
        rig.note("pre")
        return await next_()

    rig.tools.on("tools/pre-execute", pre)
    transport = rig.define("run_code")
    direct = await rig.run(transport=transport)
    assert kit.identity(direct) == ("ToolNotFoundError", "UNKNOWN_TOOL")
    assert rig.seen == []
    parent = rig.pipeline.call(rig.input("run_code"), transport=transport).exec.token
    nested = await rig.run(transport=transport, parent=parent)
    assert nested.value == {"ok": True}
    inner = await rig.run("run_code", transport=transport, parent=parent)
    assert kit.identity(inner) == ("ToolNotFoundError", "UNKNOWN_TOOL")


@pytest.mark.contract("A62", "A59")
def test_sections_belong_to_the_selected_executor(rig, service):
    agent = ScopeKey("agent")
    rig.registry.context(agent).set_executor(Named("ptc", sections=["how to program"]))
    assert service.sections(agent) == ("how to program",)
    assert service.sections(None) == ()
    rig.registry.context(agent).set_executor(Named("plain"))
    assert service.sections(agent) == ()
