"""The batch scheduler (contract D1 to D20)."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from ptc.registry import (
    HOST_CANCELLED,
    Allow,
    BatchLog,
    Block,
    Deny,
    ErrorInfo,
    NativeExecutor,
    PipelineCall,
    ScopeKey,
    SignalSource,
    ToolBatchExecutionError,
    ToolBatchInput,
    ToolCall,
    define_tool,
    parse_arguments,
    run_batch,
    text_block,
)

pytestmark = pytest.mark.anyio

BEFORE = ("AbortError", "ABORTED_BEFORE_DISPATCH")


def always(_arguments):
    return True


class Bench:
    """A batch with a log, whose bodies wait until the test lets them go."""

    def __init__(self, rig, kit):
        self.rig = rig
        self.log = kit.MemoryLog()
        self.agent = ScopeKey("agent", session=self.log)
        self.source = SignalSource()
        self.gates: dict[str, anyio.Event] = {}
        self.running: list[str] = []
        self.most = 0
        self.result: Any = None
        self.raised: Any = None

    def gated(self, name="slow", *, outcome=None, **options):
        """Registers a tool whose call `<id>` ends when `release(<id>)` is called."""

        async def body(_arguments, run):
            own = run.exec.call_id
            self.running.append(own)
            self.most = max(self.most, len(self.running))
            self.rig.note(f"body:{own}")
            gate = self.gate(own)
            undo = run.signal.subscribe(lambda reason: gate.set() if reason == HOST_CANCELLED else None)
            await gate.wait()  # whatever the caller's signal says; only a test that has failed lets it go early
            undo()
            self.running.remove(own)
            if callable(outcome):
                return outcome(run)
            return own

        options.setdefault("is_concurrency_safe", always)
        self.rig.add(name, body, **options)

    def gate(self, call_id):
        return self.gates.setdefault(call_id, anyio.Event())

    async def release(self, *call_ids):
        for call_id in call_ids:
            self.gate(call_id).set()
            await anyio.wait_all_tasks_blocked()

    def batch(self, *calls, **fields):
        """Makes a batch of `name` or `(name, arguments)`, whose ids are 1, 2, ..."""
        made = [
            ToolCall(name=call, call_id=str(place))
            if isinstance(call, str)
            else ToolCall(name=call[0], arguments=call[1], call_id=str(place))
            for place, call in enumerate(calls, 1)
        ]
        fields = {"agent": self.agent, "log": BatchLog(3, 4), "signal": self.source.signal} | fields
        return ToolBatchInput(calls=made, **fields)

    async def run(self, *calls, cap=10, **fields):
        try:
            self.result = await run_batch(self.rig.pipeline, self.batch(*calls, **fields), max_parallel=cap)
        except ToolBatchExecutionError as error:
            self.raised = error
        return self.result

    def failed(self):
        return self.raised is not None

    def values(self):
        assert self.result is not None
        return [getattr(outcome.result, "value", None) for outcome in self.result.results]


@pytest.fixture
def bench(rig, kit):
    return Bench(rig, kit)


@pytest.mark.contract("D1", "B63")
@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("", {}),
        ("{}", {}),
        ('{"a": 1, "b": [true, null]}', {"a": 1, "b": [True, None]}),
        ('{"a": 1, "b": 2, "a": 3}', {"a": 3, "b": 2}),
        ("[1]", [1]),
        ("-0", 0),
        ("{broken", "{broken"),
        ('{"n": NaN}', '{"n": NaN}'),
        ("Infinity", "Infinity"),
        (" ", " "),
        ("9" * 5000, "9" * 5000),
        ("[" * 100_000, "[" * 100_000),
        ({"a": 1}, {"a": 1}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_argument_text(text, means):
    assert parse_arguments(text) == means


@pytest.mark.contract("D1", "B63", "C8")
async def test_bad_argument_text_becomes_an_answer_of_the_tool(rig, bench, kit):
    async def body(arguments, _run):
        return arguments

    rig.tools.register(
        define_tool(
            name="typed",
            description="",
            parameters={"n": {"type": "number"}},
            output={"type": "json"},
            execute=body,
        )
    )
    result = await bench.run(("typed", "{broken"), ("typed", '{"n": 1e400}'), ("typed", '{"n": 1.5}'), ("typed", ""))
    first, second, third, fourth = (outcome.result for outcome in result.results)
    assert kit.identity(first) == ("ToolArgsError", "INVALID_ARGS")
    assert kit.identity(second) is None
    assert "losslessly JSON-serializable" in kit.text(second)
    assert (third.value, fourth.value) == ({"n": 1.5}, {})


def raising(_arguments):
    raise LookupError("cannot say")


async def waits(_arguments):
    return True


@pytest.mark.contract("D2")
@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({"is_concurrency_safe": always}, "parallel"),
        ({}, "exclusive"),
        ({"is_concurrency_safe": lambda _arguments: False}, "exclusive"),
        ({"is_concurrency_safe": lambda _arguments: 1}, "exclusive"),
        ({"is_concurrency_safe": lambda _arguments: "yes"}, "exclusive"),
        ({"is_concurrency_safe": raising}, "exclusive"),
        ({"is_concurrency_safe": waits}, "exclusive"),
        ({"is_concurrency_safe": lambda arguments: arguments["read"]}, "parallel"),
        ({"is_concurrency_safe": lambda arguments: arguments.update(read=False) or True}, "exclusive"),
        ({"is_concurrency_safe": always, "when": lambda _context: True}, "exclusive"),
    ],
)
async def test_a_call_is_parallel_only_if_the_tool_says_exactly_true(rig, options, mode):
    rig.add("echo", **options)
    assert rig.pipeline.classify("echo", {"read": True}) == mode
    assert rig.pipeline.call(rig.input("echo", {"read": True})).execution_mode() == mode


@pytest.mark.contract("D2", "C9")
def test_unknown_hidden_and_collapsed_calls_are_exclusive(rig):
    agent = ScopeKey("agent")
    rig.add("echo", is_concurrency_safe=always)
    rig.add("hidden", is_concurrency_safe=always)
    rig.registry.context(agent).restrict(deny=["hidden"])
    transport = rig.define("run_code")
    token = rig.pipeline.call(rig.input()).exec.token
    classify = rig.pipeline.classify
    assert classify("nothing", {}) == "exclusive"
    assert classify("hidden", {}, agent) == "exclusive"
    assert classify("echo", {1: 2}) == "exclusive"
    assert classify("echo", {}, agent, None, transport) == "exclusive"
    assert classify("run_code", {}, agent, None, transport) == "exclusive"
    assert classify("echo", {}, agent, None, transport, parent=token) == "parallel"
    assert rig.pipeline.call(rig.input("echo"), transport=transport).execution_mode() == "exclusive"
    nested = rig.pipeline.call(rig.input("echo", parent=token), transport=transport)
    assert nested.execution_mode() == "parallel"
    assert rig.pipeline.call(rig.input("echo", {"bad": {1}})).execution_mode() == "exclusive"


@pytest.mark.contract("D4")
@pytest.mark.parametrize("cap", [0, -1, 1.5, True, "3", None])
def test_the_cap_is_a_positive_integer(rig, cap):
    with pytest.raises(ValueError, match="must be a positive integer"):
        NativeExecutor(rig.pipeline, max_parallel_tool_calls=cap)


@pytest.mark.contract("D3", "D20", "D5")
async def test_groups_run_strictly_one_after_another(rig, bench):
    bench.gated("slow")
    rig.add("single")
    async with anyio.create_task_group() as group:
        group.start_soon(bench.run, "slow", "slow", "single", "slow")
        await anyio.wait_all_tasks_blocked()
        assert bench.log.short() == ["call:1", "call:2"]
        await bench.release("1")
        assert bench.log.short() == ["call:1", "call:2", "result:1"]
        await bench.release("2")
        assert bench.log.short()[3:] == ["result:2", "call:3", "result:3", "call:4"]
        await bench.release("4")
    assert bench.values() == ["1", "2", {"ok": True}, "4"]


@pytest.mark.contract("D3")
async def test_calls_are_classified_just_before_their_start(rig, bench):
    async def registers(_arguments, _run):
        undo()
        rig.add("later", is_concurrency_safe=lambda _arguments: rig.note("classified anew") or True)

    undo = rig.add("later", is_concurrency_safe=lambda _arguments: rig.note("classified too early") or True)
    rig.add("registers", registers)
    await bench.run("registers", "later")
    assert rig.seen == ["classified anew", "body"]


@pytest.mark.contract("D3")
async def test_the_first_call_that_is_not_parallel_ends_the_group_for_good(rig, bench):
    answers = iter([False, True])

    def moody(_arguments):
        rig.note("moody asked")
        return next(answers)

    bench.gated("slow")
    rig.add("moody", is_concurrency_safe=moody)
    async with anyio.create_task_group() as group:
        group.start_soon(bench.run, "slow", "slow", "moody")
        await anyio.wait_all_tasks_blocked()
        await bench.release("1")
        assert rig.seen.count("moody asked") == 1
        assert bench.log.short() == ["call:1", "call:2", "result:1"]
        await bench.release("2")
    assert bench.log.short() == ["call:1", "call:2", "result:1", "result:2", "call:3", "result:3"]
    assert rig.seen.count("moody asked") == 2


@pytest.mark.contract("D3", "D4")
async def test_a_call_is_not_classified_while_no_slot_is_free(rig, bench):
    bench.gated("slow", is_concurrency_safe=lambda _arguments: rig.note("classified") or True)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: bench.run("slow", "slow", cap=1))
        await anyio.wait_all_tasks_blocked()
        assert rig.seen == ["classified", "body:1"]
        await bench.release("1", "2")
    assert rig.seen == ["classified", "body:1", "classified", "body:2"]


@pytest.mark.contract("D4")
@pytest.mark.parametrize(("cap", "override", "most"), [(2, None, 2), (1, None, 1), (2, 3, 3), (10, 1, 1)])
async def test_at_most_so_many_bodies_run_and_any_end_frees_a_slot(rig, bench, cap, override, most):
    bench.gated("slow")
    calls = ["slow"] * 5
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: bench.run(*calls, cap=cap, max_parallel_tool_calls=override))
        await anyio.wait_all_tasks_blocked()
        assert len(bench.running) == most
        await bench.release(str(most))
        assert str(most + 1) in bench.running
        assert len(bench.running) == most
        await bench.release(*"12345")
    assert bench.most == most
    assert bench.values() == list("12345")


@pytest.mark.contract("D7", "D6")
async def test_the_example_of_three_calls_and_two_slots(bench):
    bench.gated("slow")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: bench.run("slow", "slow", "slow", cap=2))
        await anyio.wait_all_tasks_blocked()
        await bench.release("1", "2", "3")
    assert bench.log.short() == ["call:1", "call:2", "result:1", "call:3", "result:2", "result:3"]


@pytest.mark.contract("D6", "D16")
async def test_commits_come_in_the_models_order_over_the_settled_prefix(rig, bench):
    async def post(call, _result, next_):
        rig.note(f"post:{call.call_id}")
        return await next_()

    bench.gated("slow")
    rig.tools.on("tools/post-execute", post)
    async with anyio.create_task_group() as group:
        group.start_soon(bench.run, "slow", "slow", "slow")
        await anyio.wait_all_tasks_blocked()
        rig.seen.clear()
        await bench.release("3", "2")
        assert rig.seen == []
        assert bench.log.short() == ["call:1", "call:2", "call:3"]
        await bench.release("1")
    assert rig.seen == ["post:1", "post:2", "post:3"]
    assert bench.log.short()[3:] == ["result:1", "result:2", "result:3"]
    assert [cites for kind, _data, cites in bench.log.events if kind == "tool/result"] == [0, 1, 2]


@pytest.mark.contract("D5", "D6")
async def test_prepares_and_commits_never_overlap(rig, bench):
    inside: list[str] = []

    async def alone(label, call):
        inside.append(f"{label}:{call.call_id}")
        assert len(inside) == 1, inside
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        assert len(inside) == 1, inside
        inside.clear()
        rig.note(f"{label}:{call.call_id}")

    async def pre(call, next_):
        await alone("pre", call)
        return await next_()

    async def post(call, _result, next_):
        await alone("post", call)
        return await next_()

    class SlowLog:
        def __init__(self, log):
            self.log = log

        async def append(self, *args, **fields):
            assert inside == []
            await anyio.lowlevel.checkpoint()
            return await self.log.append(*args, **fields)

    rig.tools.on("tools/pre-execute", pre)
    rig.tools.on("tools/post-execute", post)
    rig.add("quick", is_concurrency_safe=always)
    bench.agent.session = SlowLog(bench.log)
    await bench.run(*["quick"] * 4, cap=3)
    assert sorted(rig.seen) == sorted([f"{p}:{n}" for p in ("pre", "post") for n in range(1, 5)] + ["body"] * 4)


@pytest.mark.contract("D5")
async def test_the_call_is_on_record_before_its_policies_are_asked(rig, bench):
    async def pre(_call, next_):
        rig.note(bench.log.short())
        return await next_()

    rig.tools.on("tools/pre-execute", pre)
    rig.add("echo")
    await bench.run("echo")
    assert rig.seen == [["call:1"], "body"]


@pytest.mark.contract("D8")
async def test_a_denied_call_keeps_its_place_and_runs_no_body(rig, bench):
    async def pre(call, next_):
        return Deny("no") if call.call_id == "2" else await next_()

    bench.gated("slow")
    rig.tools.on("tools/pre-execute", pre)
    async with anyio.create_task_group() as group:
        group.start_soon(bench.run, "slow", "slow", "slow")
        await anyio.wait_all_tasks_blocked()
        assert sorted(bench.running) == ["1", "3"]
        assert bench.log.short() == ["call:1", "call:2", "call:3"]
        await bench.release("3", "1")
    assert bench.log.short()[3:] == ["result:1", "result:2", "result:3"]
    assert bench.values() == ["1", None, "3"]


@pytest.mark.contract("D9", "C52")
async def test_contexts_are_delivered_in_commit_order(rig, bench, kit):
    bench.gated("slow", outcome=lambda run: run.defer_context(kit.context(run.exec.call_id)))
    async with anyio.create_task_group() as group:
        group.start_soon(bench.run, "slow", "slow")
        await anyio.wait_all_tasks_blocked()
        await bench.release("2", "1")
    assert kit.texts(bench.result) == ["1", "2"]


@pytest.mark.contract("D10")
@pytest.mark.parametrize("blocks", [False, True])
async def test_concluding_does_not_stop_later_calls(rig, bench, blocks):
    async def concludes(_arguments, run):
        run.conclude_turn()

    async def post(_call, _result, next_):
        return Block([]) if blocks else await next_()

    rig.add("concludes", concludes)
    rig.add("echo")
    rig.tools.on("tools/post-execute", post)
    await bench.run("concludes", "echo")
    assert bench.result.concluded is not blocks
    assert rig.seen == ["body"]


@pytest.mark.contract("D11", "D12", "D16", "A57")
async def test_after_an_abort_started_calls_drain_and_the_rest_is_recorded_as_skipped(rig, bench, kit):
    async def pre(_call, next_):
        rig.note("pre")
        return await next_()

    rig.tools.on("tools/pre-execute", pre)
    bench.gated("slow", outcome=lambda run: run.defer_context(kit.context("kept")))
    rig.add("single", finalize_content=lambda _call, _result: rig.note("finalize"))
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: bench.run("slow", "slow", "slow", "single", "slow", cap=2))
        await anyio.wait_all_tasks_blocked()
        bench.source.abort("bye")
        await bench.release("2", "1")
    assert bench.log.short() == [
        "call:1", "call:2", "result:1", "result:2", "call:3", "result:3", "call:4", "result:4", "call:5", "result:5",
    ]  # fmt: skip
    identities = [kit.identity(outcome.result) for outcome in bench.result.results]
    assert identities == [("AbortError", "ABORTED")] * 2 + [BEFORE] * 3
    assert kit.texts(bench.result) == ["kept", "kept"]
    assert sorted(rig.seen) == ["body:1", "body:2", "pre", "pre"]
    assert [call.call_id for call, _result in rig.observed] == ["1", "2"]
    kind, data, cites = bench.log.events[-1]
    assert (kind, cites) == ("tool/result", 8)
    assert data == {
        "turn": 3,
        "step": 4,
        "message": {
            "role": "tool",
            "callId": "5",
            "content": [text_block("Error: tool call aborted before dispatch")],
            "isError": True,
        },
        "error": {"name": "AbortError", "code": "ABORTED_BEFORE_DISPATCH"},
    }


@pytest.mark.contract("D11")
@pytest.mark.parametrize("moment", ["prepare", "commit"])
async def test_an_abort_is_seen_after_each_prepare_and_after_each_commit(rig, bench, kit, moment):
    async def pre(_call, next_):
        if moment == "prepare":
            bench.source.abort()
        return await next_()

    async def post(_call, _result, next_):
        if moment == "commit":
            bench.source.abort()
        return await next_()

    rig.tools.on("tools/pre-execute", pre)
    rig.tools.on("tools/post-execute", post)
    rig.add("echo", is_concurrency_safe=always)
    await bench.run("echo", "echo", cap=1)
    assert bench.log.short() == ["call:1", "result:1", "call:2", "result:2"]
    assert [call.call_id for call, _result in rig.observed] == ["1"]
    assert kit.identity(bench.result.results[1].result) == BEFORE


@pytest.mark.contract("D13")
@pytest.mark.parametrize(("decision", "identity"), [(Allow(), BEFORE), (Deny("no"), None)])
async def test_an_abort_during_a_prepare_lets_that_call_end_in_the_pipeline(rig, bench, kit, decision, identity):
    async def pre(_call, _next):
        bench.source.abort()
        return decision

    rig.tools.on("tools/pre-execute", pre)
    rig.add("echo", finalize_content=lambda _call, _result: rig.note("finalize"))
    await bench.run("echo", "echo")
    assert rig.seen == ["finalize"]
    assert [kit.identity(outcome.result) for outcome in bench.result.results] == [identity, BEFORE]
    assert len(rig.observed) == 1


@pytest.mark.contract("D14", "D12")
async def test_a_batch_aborted_on_entry_is_recorded_as_skipped(rig, bench, kit):
    rig.add("echo")
    bench.source.abort()
    await bench.run("echo", "nothing")
    assert bench.log.short() == ["call:1", "result:1", "call:2", "result:2"]
    assert [kit.identity(outcome.result) for outcome in bench.result.results] == [BEFORE] * 2
    assert rig.observed == []
    assert rig.seen == []


@pytest.mark.contract("D15", "A60")
@pytest.mark.parametrize("where", ["tool/call", "tool/result"])
async def test_a_record_that_fails_stops_the_batch_after_it_has_drained(rig, bench, kit, where):
    failed: list[str] = []

    def fail_on(kind, data):
        own = data.get("callId") or data["message"]["callId"]
        if failed or (kind == where and own == ("3" if where == "tool/call" else "2")):
            failed.append(own)
            return True
        return False

    bench.log.fail_on = fail_on
    bench.gated("slow", outcome=lambda run: run.defer_context(kit.context(run.exec.call_id)) or run.conclude_turn())
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: bench.run("slow", "slow", "slow", "slow", cap=3))
        await anyio.wait_all_tasks_blocked()
        await bench.release("1")
        assert not bench.failed()
        await bench.release("2")
        if where == "tool/result":
            assert not bench.failed()
            assert sorted(bench.running) == ["3", "4"]
        await bench.release("3", "4")
    error = bench.raised
    assert isinstance(error, ToolBatchExecutionError)
    assert isinstance(error.__cause__, OSError)
    assert bench.running == []
    assert not bench.source.signal.aborted
    if where == "tool/call":
        assert bench.log.short() == ["call:1", "call:2"]
        assert error.results == ()
    else:
        assert bench.log.short() == ["call:1", "call:2", "call:3", "result:1", "call:4"]
        assert [(outcome.call_id, outcome.result.is_error) for outcome in error.results] == [("1", False)]
        assert kit.texts(error) == ["1"]
        assert error.concluded is True
    assert len(failed) == 1


@pytest.mark.contract("D15", "A60")
@pytest.mark.parametrize("also_the_log", [False, True])
async def test_the_first_fault_is_told_and_nothing_is_committed_after_it(rig, bench, monkeypatch, also_the_log):
    """The dispatch of call 3 breaks while call 1 is committed and call 2 has settled."""
    fault = anyio.Event()
    dispatch = PipelineCall.dispatch

    async def breaks(call, **options):
        if call.exec.call_id == "3":
            await fault.wait()
            raise RuntimeError("first")
        await dispatch(call, **options)

    async def post(call, _result, next_):
        rig.note(f"post:{call.call_id}")
        fault.set()
        await anyio.wait_all_tasks_blocked()
        return await next_()

    monkeypatch.setattr(PipelineCall, "dispatch", breaks)
    bench.log.fail_on = lambda kind, _data: also_the_log and kind == "tool/result"
    rig.tools.on("tools/post-execute", post)
    rig.add("quick", is_concurrency_safe=always)
    async with anyio.create_task_group() as group:
        bench.gated("slow")
        group.start_soon(lambda: bench.run("slow", "quick", "quick", "quick"))
        await anyio.wait_all_tasks_blocked()
        await bench.release("1")
    assert str(bench.raised.__cause__) == "first"
    assert [outcome.call_id for outcome in bench.raised.results] == ([] if also_the_log else ["1"])
    assert [seen for seen in rig.seen if seen.startswith("post")] == ["post:1"]
    assert bench.running == []


@pytest.mark.contract("D16", "C63")
async def test_a_result_event_has_identity_and_meta_only_if_there_are_any_and_never_the_value(rig, bench):
    async def pre(call, next_):
        return Deny("no", ErrorInfo("PolicyError", "NO", "why")) if call.name == "denied" else await next_()

    async def fails(_arguments, _run):
        raise LookupError("broken")

    async def secret(_arguments, _run):
        return {"secret": 1}

    hidden = [text_block("shown")]
    rig.tools.on("tools/pre-execute", pre)
    rig.add("meta", secret, render=lambda _a, _v: hidden, presentation_meta=lambda _a, _v: None)
    rig.add("plain", secret, render=lambda _a, _v: hidden)
    rig.add("denied")
    rig.add("fails", fails)
    await bench.run("meta", "plain", "denied", "fails")
    recorded = [data for kind, data, _cites in bench.log.events if kind == "tool/result"]
    keys = [set(data) - {"turn", "step", "message", "decision"} for data in recorded]
    assert keys == [{"meta"}, set(), {"error"}, set()]
    assert recorded[0]["meta"] is None
    assert recorded[2]["error"] == {"name": "PolicyError", "code": "NO", "reason": "why"}
    assert recorded[1]["message"] == {"role": "tool", "callId": "2", "content": hidden, "isError": False}
    assert "secret" not in str(recorded)


@pytest.mark.contract("D5", "D1")
async def test_a_call_event_keeps_the_models_own_text(rig, bench):
    rig.add("echo")
    await bench.run(("echo", '{ "a":1,  "a":2 }'), ("echo", "{broken"), ("echo", {"b": "ü"}), ("echo", {"x": {1}}))
    calls = [data for kind, data, _cites in bench.log.events if kind == "tool/call"]
    assert [data["arguments"] for data in calls] == ['{ "a":1,  "a":2 }', "{broken", '{"b":"ü"}', "{'x': {1}}"]
    assert calls[0] == {"turn": 3, "step": 4, "callId": "1", "name": "echo", "arguments": '{ "a":1,  "a":2 }'}


@pytest.mark.contract("D17")
@pytest.mark.parametrize("without", ["log", "session"])
async def test_without_a_log_the_same_happens_unrecorded(rig, bench, without):
    if without == "session":
        bench.agent.session = None
    bench.gated("slow")
    fields = {"log": None} if without == "log" else {}
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: bench.run("slow", "slow", "slow", cap=2, **fields))
        await anyio.wait_all_tasks_blocked()
        assert sorted(bench.running) == ["1", "2"]
        await bench.release("1", "2", "3")
    assert bench.values() == ["1", "2", "3"]
    assert bench.log.events == []


@pytest.mark.contract("D18")
async def test_results_are_positional_and_equal_ids_are_not_merged(rig, bench):
    async def body(arguments, _run):
        return arguments["n"]

    rig.add("echo", body)
    calls = [ToolCall(name="echo", arguments={"n": n}, call_id="same") for n in (1, 2)]
    result = await run_batch(rig.pipeline, ToolBatchInput(calls=calls))
    assert [(outcome.call_id, outcome.result.value) for outcome in result.results] == [("same", 1), ("same", 2)]


@pytest.mark.contract("D18")
async def test_a_call_without_an_id_is_given_one(rig):
    rig.add("echo")
    result = await run_batch(rig.pipeline, ToolBatchInput(calls=[ToolCall(name="echo"), ToolCall(name="echo")]))
    first, second = (outcome.call_id for outcome in result.results)
    assert first
    assert second
    assert first != second
    assert [call.call_id for call, _result in rig.observed] == [first, second]


@pytest.mark.contract("D19")
async def test_calls_share_the_signal_but_a_swap_does_not_leak(rig, bench):
    own = SignalSource()

    async def wrapper(view, next_):
        rig.note(view.signal is bench.source.signal)
        if view.call_id == "1":
            view.signal = own.signal
        return await next_()

    rig.tools.on("tools/execute", wrapper)
    bench.gated("slow", outcome=lambda run: run.signal.reason)
    async with anyio.create_task_group() as group:
        group.start_soon(bench.run, "slow", "slow")
        await anyio.wait_all_tasks_blocked()
        own.abort("only the first")
        await bench.release("1", "2")
    assert [what for what in rig.seen if isinstance(what, bool)] == [True, True]
    assert [outcome.result.is_error for outcome in bench.result.results] == [True, False]
    assert bench.values() == [None, None]


@pytest.mark.contract("D20")
async def test_an_exclusive_call_ends_with_its_commit(rig, bench):
    async def post(_call, _result, next_):
        await anyio.lowlevel.checkpoint()
        rig.note(bench.log.short()[-1])
        return await next_()

    rig.tools.on("tools/post-execute", post)
    rig.add("single")
    await bench.run("single", "single")
    assert bench.log.short() == ["call:1", "result:1", "call:2", "result:2"]
    assert rig.seen == ["body", "call:1", "body", "call:2"]


@pytest.mark.contract("D4", "D3")
async def test_an_empty_batch_settles_at_once(bench):
    await bench.run()
    assert (bench.result.results, bench.result.concluded, bench.log.events) == ((), False, [])
