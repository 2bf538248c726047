"""The order of stages, and that every kind of failure becomes a result (contract C1, C2, C61, C68)."""

from __future__ import annotations

import pytest
from ptc.registry import (
    Allow,
    Ask,
    Block,
    Deny,
    ScopeKey,
    ToolExecutionInput,
    text_block,
)

pytestmark = pytest.mark.anyio


class Recorded:
    """A rig on which every stage notes its name."""

    def __init__(self, rig):
        self.rig = rig
        self.decision = Ask("why")
        self.block = False

        class Approval:
            async def request(self, request):
                rig.note("approval")
                return "allowed-once"

        rig.pipeline.approval = Approval()
        rig.tools.on("tools/pre-execute", self.pre)
        rig.tools.guard(lambda _call: rig.note("guard"))
        rig.tools.on("tools/execute", self.around)
        rig.tools.on("tools/post-execute", self.post)
        rig.tools.on("tools/result", lambda _call, _result: rig.note("result"))
        rig.add(
            "staged",
            self.body,
            render=self.render,
            presentation_meta=lambda _arguments, _value: rig.note("meta") or {},
            project_content=lambda _call, _result: rig.note("project"),
            finalize_content=lambda _call, _result: rig.note("finalize"),
        )

    async def pre(self, _call, next_):
        self.rig.note("pre")
        return self.decision if isinstance(self.decision, Ask | Deny) else await next_()

    async def around(self, _view, next_):
        self.rig.note("around in")
        result = await next_()
        self.rig.note("around out")
        return result

    async def body(self, _arguments, _run):
        self.rig.note("body")
        return 1

    def render(self, _arguments, value):
        self.rig.note("render")
        return [text_block(str(value))]

    async def post(self, _call, _result, next_):
        self.rig.note("post")
        return Block([text_block("no")]) if self.block else await next_()


@pytest.fixture
def recorded(rig):
    return Recorded(rig)


class Arguments(dict):
    """Arguments that tell when they are read."""

    def __init__(self, note):
        super().__init__()
        self._note = note

    def items(self):
        self._note("arguments")
        return super().items()

    def __iter__(self):
        self._note("arguments")
        return super().__iter__()


@pytest.mark.contract("C1")
async def test_the_stages_come_in_their_order(rig, recorded):
    result = await rig.run("staged", Arguments(rig.note), agent=ScopeKey("agent"))
    assert not result.is_error
    first, rest = rig.seen[0], [what for what in rig.seen if what != "arguments"]
    assert first == "arguments"
    assert rest == [
        "pre",
        "approval",
        "guard",
        "around in",
        "body",
        "render",
        "meta",
        "around out",
        "project",
        "post",
        "finalize",
        "result",
    ]


@pytest.mark.contract("C1", "C14", "C47")
async def test_a_denied_call_joins_again_at_project(rig, recorded):
    recorded.decision = Deny("no")
    await rig.run("staged")
    assert rig.seen == ["pre", "project", "post", "finalize", "result"]


@pytest.mark.contract("C1", "C8")
async def test_a_call_with_bad_arguments_goes_straight_to_finalize(rig, recorded):
    await rig.run("staged", {"when": {1}})
    assert rig.seen == ["finalize", "result"]


FAULTS = {
    "pre": lambda rig: rig.tools.on("tools/pre-execute", raising_async),
    "guard": lambda rig: rig.tools.guard(raising),
    "around": lambda rig: rig.tools.on("tools/execute", raising_async),
    "body": lambda rig: rig.add("faulty", raising_async),
    "render": lambda rig: rig.add("faulty", render=raising),
    "meta": lambda rig: rig.add("faulty", presentation_meta=raising),
    "schema": lambda rig: rig.add("faulty", schema={"type": "string"}),
    "project": lambda rig: rig.add("faulty", project_content=raising),
    "post": lambda rig: rig.tools.on("tools/post-execute", raising_async),
    "finalize": lambda rig: rig.add("faulty", finalize_content=raising),
    "observer": lambda rig: rig.tools.on("tools/result", raising),
}


def raising(*_args):
    raise LookupError("broken")


async def raising_async(*_args):
    raise LookupError("broken")


@pytest.mark.contract("C2", "C61")
@pytest.mark.parametrize("stage", FAULTS)
async def test_execute_resolves_whatever_fails(rig, kit, stage):
    undo = rig.add("faulty") if stage in {"pre", "guard", "around", "post", "observer"} else None
    FAULTS[stage](rig)
    result = await rig.run("faulty")
    assert result.is_error == (stage != "observer")
    if stage != "observer":
        assert "broken" in kit.text(result) or stage == "schema"
    assert [seen for _call, seen in rig.observed] == [result]
    assert rig.observed[0][1] is result
    assert undo is None or undo() is None


@pytest.mark.contract("C68")
@pytest.mark.parametrize("fields", [{"call_id": ""}, {"name": ""}])
def test_a_call_needs_an_id_and_a_name(rig, fields):
    with pytest.raises(ValueError, match="must be a string that is not empty"):
        rig.pipeline.call(ToolExecutionInput(**({"call_id": "c", "name": "n", "arguments": {}} | fields)))


@pytest.mark.contract("C68")
async def test_the_phases_of_a_call_come_once_and_in_order(rig):
    rig.add("echo")
    call = rig.pipeline.call(rig.input())
    assert not call.needs_dispatch
    with pytest.raises(RuntimeError, match="cannot be dispatched: it is captured"):
        await call.dispatch()
    with pytest.raises(RuntimeError, match="no outcome yet"):
        await call.finish()
    await call.prepare()
    with pytest.raises(RuntimeError, match="cannot be preparing now"):
        await call.prepare()
    assert call.needs_dispatch
    with pytest.raises(RuntimeError, match="no outcome yet"):
        await call.finish()
    await call.dispatch()
    with pytest.raises(RuntimeError, match="cannot be dispatched: it is dispatched"):
        await call.dispatch()
    await call.finish()
    with pytest.raises(RuntimeError, match="cannot be finishing now"):
        await call.finish()
    assert rig.seen == ["body"]
    assert len(rig.observed) == 1


@pytest.mark.contract("C60", "C61")
async def test_a_call_that_has_been_published_keeps_its_result_when_it_is_interrupted(rig):
    rig.add("echo")
    call = rig.pipeline.call(rig.input())
    await call.prepare()
    await call.dispatch()
    result = await call.finish()
    assert call.interrupt() is result
    assert [seen for _call, seen in rig.observed] == [result]


@pytest.mark.contract("C68", "D8")
async def test_a_denied_call_needs_no_dispatch(rig):
    rig.add("echo")
    rig.tools.guard(lambda _call: "no")
    call = rig.pipeline.call(rig.input())
    await call.prepare()
    assert not call.needs_dispatch
    with pytest.raises(RuntimeError, match="cannot be dispatched"):
        await call.dispatch()
    assert (await call.finish()).is_error


@pytest.mark.contract("C13")
async def test_the_listeners_are_those_there_when_the_dispatch_begins(rig):
    async def outer(_call, next_):
        rig.note("outer")
        undo_inner()
        rig.tools.on("tools/pre-execute", late)
        return await next_()

    async def inner(_call, next_):
        rig.note("inner")
        return await next_()

    async def late(_call, next_):
        rig.note("late")
        return await next_()

    rig.add("echo")
    rig.tools.on("tools/pre-execute", outer)
    undo_inner = rig.tools.on("tools/pre-execute", inner)
    await rig.run()
    assert rig.seen == ["outer", "inner", "body"]
    rig.seen.clear()
    await rig.run()
    assert rig.seen == ["outer", "late", "body"]


@pytest.mark.contract("C13")
@pytest.mark.parametrize("event", ["tools/pre-execute", "tools/execute", "tools/post-execute"])
async def test_the_first_is_outermost_and_prepended_ones_stand_before(rig, event):
    def listener(label):
        async def listen(*args):
            rig.note(f"{label} in")
            answer = await args[-1]()
            rig.note(f"{label} out")
            return answer

        return listen

    rig.add("echo")
    rig.tools.on(event, listener("first"))
    rig.tools.on(event, listener("second"))
    rig.tools.on(event, listener("zero"), prepend=True)
    assert not (await rig.run()).is_error
    order = [what for what in rig.seen if what != "body"]
    assert order == ["zero in", "first in", "second in", "second out", "first out", "zero out"]


@pytest.mark.contract("C13")
async def test_a_listener_that_does_not_call_next_short_circuits(rig):
    async def stops(_call, _next):
        rig.note("stops")
        return Allow()

    async def never(_call, next_):
        rig.note("never")
        return await next_()

    rig.add("echo")
    rig.tools.on("tools/pre-execute", stops)
    rig.tools.on("tools/pre-execute", never)
    assert not (await rig.run()).is_error
    assert rig.seen == ["stops", "body"]
