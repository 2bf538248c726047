"""Input, identity, arguments, collapsed and unknown calls (contract C3 to C12)."""

from __future__ import annotations

import copy
import pickle

import pytest
from ptc.registry import MISSING, ActivationContext, ScopeKey, SignalSource, ToolSchema, text_block

pytestmark = pytest.mark.anyio


class CountingInput:
    """An input that counts how often each field is read, and changes with each reading."""

    FIELDS = ("call_id", "root_call_id", "name", "agent", "parent", "signal", "arguments", "schema", "tool_set")

    def __init__(self, fields):
        self.reads = dict.fromkeys(self.FIELDS, 0)
        self._fields = fields

    def __getattr__(self, field):
        self.reads[field] += 1
        assert self.reads[field] == 1, f"{field} was read twice"
        return self._fields[field]


@pytest.mark.contract("C3")
async def test_every_field_is_read_exactly_once(rig):
    rig.add("echo")
    rig.tools.on("tools/pre-execute", noting_pre(rig))
    fields = {
        "call_id": "c7",
        "root_call_id": "r",
        "name": "echo",
        "agent": None,
        "parent": None,
        "signal": SignalSource().signal,
        "arguments": {"n": 1},
        "schema": ToolSchema(name="echo", description="", parameters={}),
        "tool_set": None,
    }
    given = CountingInput(fields)
    call = rig.pipeline.call(given)
    fields.update(name="other", call_id="changed")
    await call.prepare()
    await call.dispatch()
    result = await call.finish()
    assert not result.is_error
    assert set(given.reads.values()) == {1}
    seen = call.exec
    assert (seen.call_id, seen.root_call_id, seen.name, seen.arguments) == ("c7", "r", "echo", {"n": 1})
    assert seen.signal is fields["signal"]
    assert seen.schema is fields["schema"]


def noting_pre(rig):
    async def pre(_call, next_):
        rig.note("pre")
        return await next_()

    return pre


@pytest.mark.contract("C4")
async def test_the_root_call_id_defaults_to_the_call_id(rig):
    rig.add("echo")
    await rig.run(call_id="c1")
    await rig.run(call_id="c1:ptc:1", root_call_id="c1")
    assert [call.root_call_id for call, _result in rig.observed] == ["c1", "c1"]


@pytest.mark.contract("C5")
async def test_each_execution_has_a_token_of_its_own_that_says_nothing(rig):
    rig.add("echo")
    one = rig.input()
    await rig.pipeline.execute(one)
    await rig.pipeline.execute(one)
    first, second = (call.token for call, _result in rig.observed)
    assert first is not second
    assert first != second
    assert repr(first) == repr(second)
    assert not hasattr(first, "__dict__")
    with pytest.raises(TypeError):
        pickle.dumps(first)
    with pytest.raises(TypeError):
        copy.copy(first)
    await rig.run(parent=first)
    nested = rig.observed[-1][0]
    assert nested.parent is first
    assert nested.token is not first


@pytest.mark.contract("C6")
async def test_arguments_are_detached_and_frozen_before_any_policy(rig):
    mine = {"rows": [{"n": 1}], "same": {"x": 1}}

    async def pre(call, next_):
        mine["rows"][0]["n"] = 2
        for change in (
            lambda: call.arguments.update(n=1),
            lambda: call.arguments["rows"].append(1),
            lambda: call.arguments["rows"][0].pop("n"),
            lambda: setattr(call, "name", "other"),
            lambda: setattr(call, "arguments", {}),
            lambda: setattr(call, "signal", SignalSource().signal),
        ):
            with pytest.raises((TypeError, AttributeError)):
                change()
        return await next_()

    async def body(arguments, run):
        assert arguments is run.exec.arguments
        return arguments

    rig.add("echo", body)
    rig.tools.on("tools/pre-execute", pre)
    result = await rig.run("echo", mine)
    assert result.value == {"rows": [{"n": 1}], "same": {"x": 1}}
    mine["rows"].append("still mine")
    assert result.value["rows"] == [{"n": 1}]


@pytest.mark.contract("C7")
async def test_the_content_hooks_are_those_of_the_definition_at_call_start(rig, kit):
    def hooks(label):
        return {
            "project_content": lambda _call, _result: rig.note(f"{label} projects"),
            "finalize_content": lambda _call, _result: [text_block(f"{label} finalized")],
        }

    class Replacing(dict):
        """Replaces the tool while its arguments are read."""

        def items(self):
            return self._swap() or super().items()

        def __iter__(self):
            return self._swap() or super().__iter__()

        def _swap(self):
            if not undo.disposed:
                undo()
                rig.add("echo", **hooks("new"))

    undo = rig.add("echo", **hooks("old"))
    result = await rig.run("echo", Replacing(a=1))
    assert undo.disposed
    assert kit.text(result) == "old finalized"
    assert rig.seen == ["body", "old projects"]
    undo_late = rig.add("late", **hooks("late"))

    async def pre(_call, next_):
        undo_late()
        return await next_()

    rig.tools.on("tools/pre-execute", pre)
    gone = await rig.run("late")
    assert kit.identity(gone) == ("ToolNotFoundError", "UNKNOWN_TOOL")
    assert kit.text(gone) == "late finalized"


@pytest.mark.contract("C7")
async def test_an_unknown_tool_has_no_finalizer(rig, kit):
    async def pre(_call, next_):
        rig.add("late", finalize_content=lambda _call, _result: [text_block("finalized")])
        return await next_()

    rig.tools.on("tools/pre-execute", pre)
    assert kit.text(await rig.run("late")) == '{"ok": true}'


class Throwing(dict):
    """Arguments whose own iteration fails."""

    def items(self):
        raise LookupError("cannot be read")

    __iter__ = items  # pyright: ignore


@pytest.mark.contract("C8", "C62")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"rows": [{"when": {1}}]}, "tool execution arguments must be losslessly JSON-serializable: "),
        ({"n": float("nan")}, "tool execution arguments must be losslessly JSON-serializable: "),
        (Throwing(a=1), "cannot be read"),
    ],
)
@pytest.mark.parametrize("cancelled", [False, True])
async def test_arguments_that_cannot_be_taken_end_the_call(rig, kit, arguments, says, cancelled):
    source = SignalSource()
    if cancelled:
        source.abort("early")
    rig.add("echo", finalize_content=lambda _call, _result: rig.note("finalized"))
    rig.tools.on("tools/pre-execute", noting_pre(rig))
    result = await rig.run("echo", arguments, signal=source.signal)
    assert result.is_error
    assert result.error.message.startswith(says)
    assert kit.identity(result) is None
    assert rig.seen == ["finalized"]
    assert [(call.arguments, seen) for call, seen in rig.observed] == [(MISSING, result)]


@pytest.mark.contract("C8")
async def test_an_argument_error_names_the_path(rig, kit):
    rig.add("echo")
    result = await rig.run("echo", {"rows": [{"when": {1}}]})
    assert "arguments.rows[0].when" in kit.text(result)


@pytest.mark.contract("C8")
async def test_a_throwing_accessor_of_the_input_ends_the_call_with_its_message(rig, kit):
    class Input:
        call_id, name, agent, parent, root_call_id, signal, schema, tool_set = "c", "echo", *[None] * 6

        @property
        def arguments(self):
            raise LookupError("no arguments today")

    rig.add("echo")
    assert kit.text(await rig.pipeline.execute(Input())) == "Error: no arguments today"
    assert rig.seen == []


@pytest.mark.contract("C9")
@pytest.mark.parametrize("arguments", [{}, {"bad": {1}}], ids=["good arguments", "bad arguments"])
@pytest.mark.parametrize("cancelled", [False, True], ids=["live", "cancelled"])
async def test_a_native_name_beside_the_transport_is_collapsed(rig, kit, arguments, cancelled):
    source = SignalSource()
    if cancelled:
        source.abort()
    rig.add("echo", finalize_content=lambda _call, _result: rig.note("finalized"))
    rig.tools.on("tools/pre-execute", noting_pre(rig))
    rig.tools.guard(lambda _call: rig.note("guard"))
    rig.tools.on("tools/post-execute", noting_post(rig))
    transport = rig.define("run_code")
    result = await rig.run("echo", arguments, transport=transport, signal=source.signal)
    if arguments:
        assert kit.identity(result) is None
        assert "losslessly JSON-serializable" in kit.text(result)
    elif cancelled:
        assert kit.identity(result) == ("AbortError", "ABORTED_BEFORE_DISPATCH")
    else:
        assert kit.identity(result) == ("ToolNotFoundError", "UNKNOWN_TOOL")
        assert result.error.message.startswith('unknown tool "echo": ')
        assert "run_code" in result.error.message
        assert "inside a program" in result.error.message
    assert rig.seen == (["finalized"] if cancelled else [])
    assert len(rig.observed) == 1


def noting_post(rig):
    async def post(_call, _result, next_):
        rig.note("post")
        return await next_()

    return post


@pytest.mark.contract("C9", "C10")
async def test_what_is_not_visible_is_not_collapsed_and_meets_every_policy(rig, kit):
    agent = ScopeKey("agent")
    rig.add("hidden")
    rig.add("maybe", when=lambda _context: False)
    rig.registry.context(agent).restrict(deny=["hidden"])
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    rig.tools.on("tools/pre-execute", noting_pre(rig))
    rig.tools.guard(lambda _call: rig.note("guard"))
    rig.tools.on("tools/post-execute", noting_post(rig))
    transport = rig.define("run_code")
    for name in ("nothing", "hidden", "maybe"):
        for fields in ({"transport": transport}, {}):
            rig.seen.clear()
            result = await rig.run(name, agent=agent, tool_set=tool_set, **fields)
            assert result.error.message == f'unknown tool "{name}"'
            assert kit.identity(result) == ("ToolNotFoundError", "UNKNOWN_TOOL")
            assert rig.seen == ["pre", "guard", "post"]


@pytest.mark.contract("A61", "C9", "C11")
@pytest.mark.parametrize("how", ["registered", "lifted"])
async def test_what_becomes_visible_during_a_direct_call_does_not_run_beside_the_transport(rig, kit, how):
    agent = ScopeKey("agent")
    if how == "lifted":
        rig.add("echo")
        lift = rig.registry.context(agent).restrict(deny=["echo"])

    async def pre(_call, next_):
        if how == "lifted":
            lift()
        else:
            rig.add("echo")
        return await next_()

    rig.tools.on("tools/pre-execute", pre)
    result = await rig.run("echo", agent=agent, transport=rig.define("run_code"))
    assert kit.identity(result) == ("ToolNotFoundError", "UNKNOWN_TOOL")
    assert rig.seen == []


@pytest.mark.contract("C11")
async def test_the_definition_is_looked_up_again_for_the_body(rig, kit):
    undo = rig.add("echo")

    async def around(_view, next_):
        undo()
        return await next_()

    rig.tools.on("tools/execute", around)
    rig.tools.on("tools/post-execute", noting_post(rig))
    assert kit.identity(await rig.run()) == ("ToolNotFoundError", "UNKNOWN_TOOL")
    assert rig.seen == ["post"]


@pytest.mark.contract("C11")
async def test_a_replacement_made_before_the_body_is_what_runs(rig):
    undo = rig.add("echo")

    async def newer(_arguments, _run):
        return "newer"

    async def pre(_call, next_):
        undo()
        rig.add("echo", newer)
        return await next_()

    rig.tools.on("tools/pre-execute", pre)
    assert (await rig.run()).value == "newer"


@pytest.mark.contract("C12", "C61")
async def test_a_caller_that_has_given_up_gets_a_final_result(rig, kit):
    source = SignalSource()
    source.abort("early")
    rig.add("echo", finalize_content=lambda _call, _result: rig.note("finalized"))
    rig.tools.on("tools/pre-execute", noting_pre(rig))
    rig.tools.on("tools/execute", noting_post(rig))
    rig.tools.on("tools/post-execute", noting_post(rig))
    result = await rig.run(signal=source.signal)
    assert kit.identity(result) == ("AbortError", "ABORTED_BEFORE_DISPATCH")
    assert kit.text(result) == "Error: tool call aborted before dispatch"
    assert rig.seen == ["finalized"]
    assert [seen for _call, seen in rig.observed] == [result]
