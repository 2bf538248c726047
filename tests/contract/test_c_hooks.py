"""Content hooks and observation (contract C55 to C61)."""

from __future__ import annotations

import logging

import pytest
from ptc.registry import (
    MISSING,
    Accept,
    Block,
    Cancel,
    ContextMessage,
    Deny,
    ErrorInfo,
    SignalSource,
    ToolError,
    ToolFailure,
    ToolRegistrationError,
    text_block,
)
from ptc.registry.lossless import is_frozen

pytestmark = pytest.mark.anyio


def on(rig, event, answer):
    async def listen(*args):
        if isinstance(answer, Exception):
            raise answer
        return await args[-1]() if answer is None else answer

    return rig.tools.on(event, listen)


@pytest.mark.contract("C55")
@pytest.mark.parametrize("decision", [None, Deny("no"), Cancel()])
@pytest.mark.parametrize("nested", [False, True])
async def test_project_runs_once_for_every_outcome_that_enters_post_execute(rig, kit, decision, nested):
    on(rig, "tools/pre-execute", decision)

    def project(call, result):
        rig.note((call.name, result.is_error))
        return [text_block("projected")]

    rig.add("echo", project_content=project)
    token = rig.pipeline.call(rig.input()).exec.token if nested else None
    result = await rig.run(parent=token)
    assert kit.text(result) == "projected"
    assert [what for what in rig.seen if what != "body"] == [("echo", decision is not None)]


@pytest.mark.contract("C55")
async def test_project_returns_none_to_keep_and_policy_may_still_replace(rig, kit):
    rig.add("keeps", project_content=lambda _call, _result: None)
    rig.add("projects", project_content=lambda _call, _result: [text_block("projected")])
    assert kit.text(await rig.run("keeps")) == '{"ok": true}'
    seen = []

    async def post(_call, result, _next):
        seen.append(kit.text(result))
        return Accept(content=[text_block("policy")])

    rig.tools.on("tools/post-execute", post)
    assert kit.text(await rig.run("projects")) == "policy"
    assert seen == ["projected"]


@pytest.mark.contract("C55")
@pytest.mark.parametrize("why", ["arguments", "aborted", "pre raised", "wrapper raised"])
async def test_final_results_skip_project(rig, why):
    source = SignalSource()
    if why == "aborted":
        source.abort()
    if why == "pre raised":
        on(rig, "tools/pre-execute", LookupError("x"))
    if why == "wrapper raised":
        on(rig, "tools/execute", LookupError("x"))
    rig.add("echo", project_content=lambda _call, _result: rig.note("project"))
    result = await rig.run("echo", {"bad": {1}} if why == "arguments" else {}, signal=source.signal)
    assert result.is_error
    assert rig.seen == []


@pytest.mark.contract("C55")
@pytest.mark.parametrize("content", ["text", [{"type": "text", "text": {1}}], [{}], LookupError("hook broke")])
async def test_a_project_hook_that_fails_skips_post_execute_and_is_finalised(rig, kit, content):
    def project(_call, _result):
        if isinstance(content, Exception):
            raise content
        return content

    async def post(_call, _result, next_):
        rig.note("post")
        return await next_()

    rig.tools.on("tools/post-execute", post)
    rig.add("echo", project_content=project, finalize_content=lambda _call, _result: rig.note("finalize"))
    result = await rig.run()
    assert result.is_error
    assert "project_content" in kit.text(result) or kit.text(result) == "Error: hook broke"
    assert rig.seen == ["body", "finalize"]


@pytest.mark.contract("C55", "C56")
@pytest.mark.parametrize("hook", ["project_content", "finalize_content"])
async def test_an_async_content_hook_is_an_error_without_warnings(rig, kit, hook):
    async def waits(_call, _result):
        return None

    rig.add("echo", **{hook: waits})
    assert hook in kit.text(await rig.run())


OUTCOMES = {
    "success": {},
    "body failure": {"body": LookupError("x")},
    "unknown value": {"schema": {"type": "integer"}},
    "denied": {"pre": Deny("no")},
    "pre raised": {"pre": LookupError("x")},
    "wrapper raised": {"around": LookupError("x")},
    "post raised": {"post": LookupError("x")},
    "blocked": {"post": Block([text_block("no")])},
    "arguments": {"arguments": {"bad": {1}}},
    "aborted": {"aborted": True},
    "not serializable": {"around": ToolFailure(error=ToolError("x"), content=[{"type": "text", "text": {1}}])},
}


@pytest.mark.contract("C56", "C61")
@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_finalize_runs_exactly_once_for_every_outcome(rig, kit, outcome):
    faults = OUTCOMES[outcome]
    for event, key in (("pre-execute", "pre"), ("execute", "around"), ("post-execute", "post")):
        on(rig, f"tools/{event}", faults.get(key))
    source = SignalSource()
    if faults.get("aborted"):
        source.abort()

    async def body(_arguments, _run):
        if "body" in faults:
            raise faults["body"]
        return "text"

    def finalize(call, result):
        assert is_frozen(result.content)
        with pytest.raises(AttributeError):
            result.content = []
        rig.note((call.name, kit.text(result)))
        return [text_block("finalized")]

    rig.add("echo", body, schema=faults.get("schema", {}), finalize_content=finalize)
    result = await rig.run("echo", faults.get("arguments", {}), signal=source.signal)
    assert len(rig.seen) == 1
    assert rig.seen[0][0] == "echo"
    assert kit.text(result) == "finalized"
    assert result.is_error == (outcome != "success")
    assert [seen for _call, seen in rig.observed] == [result]


@pytest.mark.contract("C56")
async def test_finalize_changes_content_only(rig):
    async def body(_arguments, run):
        run.conclude_turn()
        return "value"

    rig.add(
        "echo",
        body,
        presentation_meta=lambda _a, _v: {"m": 1},
        finalize_content=lambda _call, _result: [text_block("short")],
    )
    result = await rig.run()
    assert (result.value, result.meta, result.concludes_turn) == ("value", {"m": 1}, True)
    rig.add("keeps", body, finalize_content=lambda _call, _result: None)
    assert (await rig.run("keeps")).content == [text_block('"value"')]


@pytest.mark.contract("C57")
@pytest.mark.parametrize("part", ["content", "meta", "info", "message", "contexts"])
async def test_a_part_that_is_no_json_becomes_a_json_safe_error_before_finalize(rig, kit, part):
    parts = {
        "content": {"content": [{"type": "text", "text": {1}}]},
        "meta": {"meta": {1}},
        "info": {"error": ToolError("x", ErrorInfo("Name", 5))},  # pyright: ignore
        "message": {"error": ToolError("lone \ud800")},
        "contexts": {"additional_contexts": ["text"]},
    }

    async def wrapper(_view, _next):
        return ToolFailure(**({"error": ToolError("x"), "content": []} | parts[part]))

    rig.tools.on("tools/execute", wrapper)
    rig.add("echo", finalize_content=lambda _call, result: rig.note(kit.text(result)))
    result = await rig.run()
    said = "tool result must be losslessly JSON-serializable"
    assert result.error == ToolError(said)
    assert (result.meta, kit.texts(result)) == (MISSING, [])
    assert rig.seen == [f"Error: {said}"]


@pytest.mark.contract("C57")
@pytest.mark.parametrize("part", [{"source": {"kind": {1}}}, {"role": 5}], ids=["source", "role"])
async def test_a_deferred_context_that_is_no_json_is_caught_too(rig, part):
    async def body(_arguments, run):
        run.defer_context(ContextMessage(**{"content": [text_block("x")], "source": {}} | part))

    rig.add("echo", body)
    assert (await rig.run()).error == ToolError("tool result must be losslessly JSON-serializable")


@pytest.mark.contract("C58")
@pytest.mark.parametrize("content", [LookupError("finalizer broke"), "text", [{"type": "text", "text": {1}}]])
async def test_a_finalizer_that_fails_is_an_error_and_is_not_asked_again(rig, kit, content):
    def finalize(_call, _result):
        rig.note("finalize")
        if isinstance(content, Exception):
            raise content
        return content

    rig.add("echo", finalize_content=finalize)
    result = await rig.run()
    assert result.is_error
    assert "finalize" in kit.text(result)
    assert rig.seen == ["body", "finalize"]


@pytest.mark.contract("C59", "C61")
async def test_observers_come_in_order_and_their_failures_are_contained(rig, caplog):
    async def stray():
        return None

    def raises(_call, _result):
        rig.note("first")
        raise LookupError("observer broke")

    rig.add("echo")
    rig.tools.on("tools/result", raises)
    rig.tools.on("tools/result", lambda _call, _result: stray())
    rig.tools.on("tools/result", lambda _call, _result: rig.note("last"))
    rig.tools.on("tools/result", lambda _call, _result: rig.note("prepended"), prepend=True)
    with caplog.at_level(logging.WARNING):
        assert not (await rig.run(call_id="c7")).is_error
    assert rig.seen == ["body", "prepended", "first", "last"]
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2
    assert "observer broke" in warnings[0]
    assert "returned an awaitable" in warnings[1]
    for warning in warnings:
        assert '"echo"' in warning
        assert "c7" in warning


@pytest.mark.contract("C59")
async def test_an_async_observer_is_refused_when_it_is_installed(rig):
    async def waits(_call, _result):
        return None

    with pytest.raises(ToolRegistrationError, match="must not be async"):
        rig.tools.on("tools/result", waits)


@pytest.mark.contract("C59", "C6")
async def test_the_call_is_frozen_when_observers_see_it(rig):
    rig.add("echo")
    await rig.run()
    call, result = rig.observed[0]
    for thing, field in ((call, "signal"), (call, "name"), (result, "content")):
        with pytest.raises(AttributeError):
            setattr(thing, field, None)


@pytest.mark.contract("C60")
async def test_observers_and_the_caller_get_the_same_result_with_its_value(rig):
    rig.tools.on("tools/result", lambda _call, result: rig.note(result))
    rig.add("echo", finalize_content=lambda _call, _result: [text_block("short")])
    result = await rig.run()
    assert rig.seen[-1] is rig.observed[0][1] is result
    assert rig.seen[-1].value == {"ok": True}
