"""The order in which a program's calls are admitted, started, answered and recorded, and what is never recorded."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.registry import ToolExecutionInput
from ptc.runtime.rendering import render_value
from ptc.sandbox.seam import BindingCall, BindingError, Member, SandboxRequest, SandboxResult

from ..rigs import needle_tool
from .conftest import Rig

pytestmark = pytest.mark.anyio

START, SETTLE = "tool/ptc-dispatch-start", "tool/ptc-dispatch"


class Scripted(ptc.WasmSandbox):
    """A sandbox whose program is a function of the test: it can do what no guest does."""

    def __init__(self, script: Callable[[SandboxRequest], Awaitable[None]]) -> None:
        super().__init__()
        self._script = script

    async def run(self, request: SandboxRequest) -> SandboxResult:
        await self._script(request)
        return SandboxResult(logs=())


def member_of(request: SandboxRequest, name: str) -> Member:
    (tools,) = request.namespaces
    return tools.members[name]


def made(arguments: Any) -> BindingCall:
    return BindingCall("tools", "double", arguments, 1)


@pytest.mark.contract("E13", "E14")
async def test_a_call_is_checked_for_a_run_that_is_over_then_for_its_arguments_and_then_numbered(rig: Rig) -> None:
    said: list[str] = []
    kept: list[Member] = []

    async def script(request: SandboxRequest) -> None:
        double = member_of(request, "double")
        kept.append(double)
        for lossy in (float("nan"), {"x": {1, 2}}):
            with pytest.raises(BindingError) as refused:
                double.function(made(lossy))
            said.append(str(refused.value))
        answered = anyio.Event()
        answer: Any = double.function(made({"x": 1}))
        answer.add_done_callback(lambda _call: answered.set())
        await answered.wait()

    rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=Scripted(script)))
    result = await rig.run("")
    assert not result.is_error
    assert all(one.startswith("tool arguments must be lossless JSON") for one in said)
    assert [data["subCallId"].rpartition(":")[2] for _, data in await rig.events(START)] == ["1"]
    # The arguments are wrong here as well: that the run is over is what counts.
    with pytest.raises(BindingError, match=r"run_code run is over \(run_code settled\); double not dispatched"):
        kept[0].function(made(float("nan")))
    assert len(await rig.events(START)) == 1


@pytest.mark.contract("E9", "E5")
async def test_a_sandbox_of_another_language_is_told_at_each_description_and_fails_its_calls(rig: Rig) -> None:
    for language in ("lua", "toString", "__class__", ""):

        class Foreign(ptc.WasmSandbox):
            pass

        sandbox = Foreign()
        sandbox.language = language  # type: ignore[assignment]
        rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=sandbox))
        for _ in range(2):
            with pytest.raises(ptc.UnknownLanguageError, match=f"{language!r}.*known languages: python"):
                rig.agent.describe()
        result = await rig.run("return 1")
        assert result.is_error
        assert result.error.info is not None
        assert result.error.info.code == "UNKNOWN_LANGUAGE"


@pytest.mark.contract("E24")
async def test_a_program_has_its_answer_before_the_durable_copy_is_shaped(rig: Rig) -> None:
    second = anyio.Event()

    @rig.host.on("tools/ptc-dispatch-log")
    async def patient(entry: ptc.DispatchLogEntry, next: Any) -> Any:
        if entry.name == "double":
            await second.wait()
        return await next()

    @ptc.tool(concurrency_safe=True)
    async def after() -> int:
        """Come after it."""
        assert await rig.events(SETTLE) == []
        second.set()
        return 1

    rig.host.tools.register(after)
    with anyio.fail_after(30):
        assert await rig.value("first = await tools.double(x=2)\nawait tools.after()\nreturn first") == 4
    # Shaping may end in another order than the calls did (contract I9); each start has its one settle all the same.
    assert sorted(data["name"] for _, data in await rig.events(SETTLE)) == ["after", "double"]


@pytest.mark.contract("E25")
async def test_the_lane_stands_back_while_the_record_is_behind(
    rig: Rig, make_sandbox: Callable[..., ptc.Sandbox]
) -> None:
    rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=make_sandbox(), max_parallel_sub_calls=2))
    shaping: list[str] = []
    go_on, behind = anyio.Event(), anyio.Event()

    @rig.host.on("tools/ptc-dispatch-log")
    async def slow(entry: ptc.DispatchLogEntry, next: Any) -> Any:
        shaping.append(entry.sub_call_id)
        if len(shaping) == 3:
            behind.set()
        await go_on.wait()
        return await next()

    async def release() -> None:
        await behind.wait()
        await anyio.sleep(0.2)  # the program asks for its fourth call meanwhile
        assert rig.bodies == ["double 0", "double 1", "double 2"]
        go_on.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(release)
            await rig.value("for n in range(6):\n    await tools.double(x=n)")
    assert len(rig.bodies) == len(shaping) == len(await rig.events(SETTLE)) == 6


@pytest.mark.contract("E26", "E22")
async def test_a_call_that_waits_for_its_commit_holds_no_slot(
    rig: Rig, make_sandbox: Callable[..., ptc.Sandbox]
) -> None:
    rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=make_sandbox(), max_parallel_sub_calls=2))

    @ptc.tool(concurrency_safe=True)
    async def opener() -> str:
        """Release the first call."""
        rig.bodies.append("opener")
        rig.release.set()
        return "opened"

    rig.host.tools.register(opener)
    with anyio.fail_after(30):
        got = await rig.value(
            "import asyncio\n"
            "return await asyncio.gather(tools.stuck(name='first'), tools.nap(ms=1, name='n'), tools.opener())"
        )
    # `nap` has ended and waits for `stuck` to be committed; were its slot taken, `opener` would never start.
    assert got == ["first", "n", "opened"]
    assert [data["name"] for _, data in await rig.events(SETTLE)] == ["stuck", "nap", "opener"]


@pytest.mark.contract("E40", "E39")
def test_a_result_is_laid_out_to_ten_columns_and_compact_below() -> None:
    deep: Any = {"leaf": [1, None]}
    for _ in range(5):
        deep = {"a": deep, "b": []}
    text = render_value(deep)
    lines = text.splitlines()
    assert max(len(line) - len(line.lstrip()) for line in lines) == 10
    assert lines[:3] == ["{", '  "a": {', '    "a": {']
    assert lines[5] == '          "a": {"leaf":[1,null]},'
    assert '          "b": []' in lines
    assert json.loads(text) == deep


@pytest.mark.contract("E40")
def test_a_compact_container_makes_all_that_is_in_it_compact_and_the_text_grows_with_the_value() -> None:
    def nested(levels: int) -> Any:
        value: Any = []
        for _ in range(levels):
            value = [value, {"k": [1]}]
        return value

    hundred, two_hundred = len(render_value(nested(90))), len(render_value(nested(180)))
    assert two_hundred < 2.2 * hundred
    assert render_value(nested(90)).count("\n") < 40


@pytest.mark.contract("E41", "E38")
@pytest.mark.parametrize("program", ["return 1", "print('a')\nprint('b')\nreturn {'c': [1, 2]}", "x = 1", "return ''"])
async def test_the_outer_result_is_one_block_of_text(rig: Rig, program: str) -> None:
    result = await rig.run(program)
    assert [block["type"] for block in result.content] == ["text"]


@pytest.mark.contract("E43", "I10")
async def test_what_passes_between_calls_is_neither_cut_nor_counted_nor_kept(
    rig: Rig, make_sandbox: Callable[..., ptc.Sandbox]
) -> None:
    rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=make_sandbox(max_output_bytes=1000)))

    async def rows(_arguments: Any, _run: ptc.ToolRunContext) -> Any:
        return ["canonical-needle"] * 100_000

    rig.host.tools.register(
        ptc.define_tool(
            name="rows",
            description="Give many rows.",
            parameters={"note": {"type": "string", "description": "schema-needle"}},
            output={"type": "json"},
            execute=rows,
            render=lambda _arguments, value: [ptc.text_block(f"{len(value)} rows")],
        )
    )
    program = "rows = await tools.rows()\nagain = await tools.rows()\nreturn len(rows) + len(again)"
    assert await rig.value(program) == 200_000
    assert [data["content"][0]["text"] for _, data in await rig.events(SETTLE)] == ["100000 rows"] * 2
    assert "canonical-needle" not in json.dumps(await rig.events())


@pytest.mark.contract("I10", "I11")
async def test_no_value_no_schema_and_no_description_of_a_tool_comes_into_the_file(rig: Rig, tmp_path: Path) -> None:
    rig.host.tools.register(needle_tool())
    assert await rig.value("value = await tools.secret(note='argument-needle')\nreturn 1") == 1
    written = b"".join(path.read_bytes() for path in tmp_path.glob("ptc.db*"))
    assert b"rendered-needle" in written
    assert b"argument-needle" in written
    for needle in (b"canonical-needle", b"description-needle", b"schema-needle"):
        assert needle not in written
    known = {"rootCallId", "parentCallId", "subCallId", "name", "arguments", "isError", "content", "line"}
    assert {key for _, data in await rig.events(START, SETTLE) for key in data} <= known


@pytest.mark.contract("E37", "C28")
@pytest.mark.parametrize("ends", ["return await tools.double(x=1)", "1 / 0", "await tools.fail(why='x')"])
async def test_a_run_leaves_nobody_behind_who_listens_for_an_abort(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    listening: dict[object, ptc.Signal] = {}
    subscribe = ptc.Signal.subscribe

    def counted(signal: ptc.Signal, observer: Callable[[object], None]) -> Callable[[], None]:
        undo, key = subscribe(signal, observer), object()
        listening[key] = signal

        def unsubscribe() -> None:
            undo()
            listening.pop(key, None)

        return unsubscribe

    monkeypatch.setattr(ptc.Signal, "subscribe", counted)
    source = ptc.SignalSource()
    await rig.run(ends, signal=source.signal)
    assert not source.signal.aborted
    assert [signal for signal in listening.values() if not signal.aborted] == []


@pytest.mark.contract("E28", "E29", "E31")
async def test_calls_that_a_run_leaves_behind_are_told_what_became_of_them(rig: Rig) -> None:
    answers: dict[str, Any] = {}

    async def script(request: SandboxRequest) -> None:
        answers["running"] = member_of(request, "stuck").function(made({"name": "s"}))
        answers["queued"] = member_of(request, "write").function(made({"name": "w"}))
        await rig.started.wait()
        source.abort("the user left")
        rig.release.set()

    source = ptc.SignalSource()
    rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=Scripted(script)))
    await rig.run("", signal=source.signal)
    for which, what in (("running", "stuck result discarded"), ("queued", "write tool call abandoned")):
        with pytest.raises(BindingError) as told:
            answers[which].result()
        assert str(told.value) == f"run_code run is over (the user left); {what}"
    assert rig.bodies == ["stuck s"]
    assert [data["name"] for _, data in await rig.events(START, SETTLE)] == ["stuck", "stuck"]


@pytest.mark.contract("E23", "E42")
async def test_the_message_with_an_image_comes_before_the_contexts_of_its_call(rig: Rig) -> None:
    async def execute(_arguments: Any, run: ptc.ToolRunContext) -> Any:
        run.defer_context(ptc.ContextMessage([ptc.text_block("a context")], {"kind": "user"}))
        return 1

    def render(_arguments: Any, _value: Any) -> Any:
        return [ptc.text_block("a picture"), {"type": "image", "data": "AAAA", "mimeType": "image/png"}]

    rig.host.tools.register(
        ptc.define_tool(
            name="draw", description="Draw.", parameters={}, output={"type": "json"}, execute=execute, render=render
        )
    )
    arguments = {"code": "await tools.draw()\nawait tools.picture()", "description": "draw"}
    batch = await rig.agent.execute([ptc.ToolCall(name="run_code", arguments=arguments)])
    told = [[block["type"] for block in message.content] for message in batch.additional_contexts]
    assert told == [["text", "image"], ["text"], ["text", "image"]]


@pytest.mark.contract("E42", "E33")
@pytest.mark.parametrize("policy", ["adds", "takes away", "blocks"])
async def test_an_image_counts_as_the_policies_have_left_it(rig: Rig, policy: str) -> None:
    image: Any = {"type": "image", "data": "AAAA", "mimeType": "image/png"}

    @rig.host.on("tools/post-execute")
    async def changes(call: ptc.ToolExecution, _result: ptc.ToolExecutionResult, next: Any) -> Any:
        decision = await next()
        if call.parent is None:
            return decision
        if policy == "blocks":
            return ptc.Block([image, ptc.text_block("no")])
        return ptc.Accept(content=[image] if policy == "adds" else [ptc.text_block("nothing to see")])

    name = "double(x=1)" if policy == "adds" else "picture()"
    code = f"try:\n    await tools.{name}\nexcept ToolCallError:\n    pass"
    batch = await rig.agent.execute([ptc.ToolCall(name="run_code", arguments={"code": code, "description": "draw"})])
    assert not batch.results[0].result.is_error
    assert [list(message.content) for message in batch.additional_contexts] == ([[image]] if policy == "adds" else [])


@pytest.mark.contract("E33", "C51")
async def test_what_sub_calls_deferred_is_lost_when_the_outer_call_is_blocked(rig: Rig) -> None:
    @rig.host.on("tools/post-execute")
    async def blocks(call: ptc.ToolExecution, _result: ptc.ToolExecutionResult, next: Any) -> Any:
        return ptc.Block([ptc.text_block("no")]) if call.parent is None else await next()

    arguments = {"code": "await tools.picture()", "description": "draw"}
    batch = await rig.agent.execute([ptc.ToolCall(name="run_code", arguments=arguments)])
    assert batch.additional_contexts == ()


@pytest.mark.contract("E35", "C33")
async def test_a_program_that_completes_after_its_caller_has_given_up_is_an_aborted_call(rig: Rig) -> None:
    source = ptc.SignalSource()

    async def script(_request: SandboxRequest) -> None:
        source.abort("the user left")

    rig.host.set_executor(rig.agent, ptc.PtcExecutor(sandbox=Scripted(script)))
    result = await rig.run("", signal=source.signal)
    assert result.is_error
    assert result.error.info is not None
    assert (result.error.message, result.error.info.code) == ("tool call aborted", "ABORTED")


@pytest.mark.contract("E4", "D2")
async def test_programs_of_one_step_run_one_after_another(rig: Rig) -> None:
    def call(name: str) -> ptc.ToolCall:
        code = f"await tools.nap(ms=30, name={name!r})"
        return ptc.ToolCall(name="run_code", arguments={"code": code, "description": "nap"})

    batch = await rig.agent.execute([call("a"), call("b")])
    assert not any(outcome.result.is_error for outcome in batch.results)
    assert rig.bodies == ["begin a", "end a", "begin b", "end b"]
    kinds = [kind for kind, _ in await rig.events()]
    assert kinds == ["tool/call", START, SETTLE, "tool/result"] * 2


@pytest.mark.contract("C4", "E16", "I5", "I6")
async def test_a_program_under_another_root_hands_that_root_on(rig: Rig) -> None:
    seen: list[tuple[str, str]] = []
    rig.host.on("tools/result")(lambda call, _result: seen.append((call.call_id, call.root_call_id)))
    outer = ToolExecutionInput(
        call_id="inner",
        root_call_id="root",
        name="run_code",
        arguments={"code": "return await tools.double(x=1)", "description": "double"},
        agent=rig.agent,
    )
    result = await rig.host.pipeline.execute(outer, transport=rig.host.transport(rig.agent))
    assert not result.is_error
    assert seen == [("inner:ptc:1", "root"), ("inner", "root")]
    records = [data for _, data in await rig.events(START, SETTLE)]
    assert [(data["rootCallId"], data["parentCallId"]) for data in records] == [("root", "inner")] * 2


@pytest.mark.contract("E44", "A5")
async def test_a_listener_of_the_durable_copy_hears_of_its_own_scope_and_those_below(
    rig: Rig, make_sandbox: Callable[..., ptc.Sandbox]
) -> None:
    async def shape(_entry: ptc.DispatchLogEntry, _next: Any) -> Any:
        return [ptc.text_block("shaped")]

    below = rig.host.agent("below", parent=rig.agent, executor=ptc.PtcExecutor(sandbox=make_sandbox()))
    beside = rig.host.agent("beside", executor=ptc.PtcExecutor(sandbox=make_sandbox()))
    rig.agent.on("tools/ptc-dispatch-log")(shape)
    recorded: list[str] = []
    for agent in (rig.agent, below, beside):
        await agent.run_code("await tools.double(x=21)")
        assert agent.session is not None
        recorded += [event.data["content"][0]["text"] for event in await agent.session.events() if event.type == SETTLE]
    assert recorded == ["shaped", "shaped", "42"]
