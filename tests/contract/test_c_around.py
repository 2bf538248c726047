"""The execute wrappers and the body (contract C28 to C42)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest
from ptc.registry import (
    MISSING,
    AbortError,
    ErrorInfo,
    HarnessError,
    SignalSource,
    ToolError,
    ToolFailure,
    ToolSuccess,
    freeze,
    fuse,
    text_block,
)
from ptc.registry.lossless import is_frozen

pytestmark = pytest.mark.anyio

ABORTED = ("AbortError", "ABORTED")
BEFORE = ("AbortError", "ABORTED_BEFORE_DISPATCH")


@pytest.fixture
def source():
    return SignalSource()


def wrap(rig, wrapper):
    rig.tools.on("tools/execute", wrapper)


def note_post(rig):
    async def post(_call, result, next_):
        rig.note("post")
        rig.note(result)
        return await next_()

    rig.tools.on("tools/post-execute", post)


def success(value, **fields):
    return ToolSuccess(value=value, content=[text_block("authored")], **fields)


def authored_failure(message="mine", **fields: Any):
    return ToolFailure(error=ToolError(message), content=[text_block("verbatim")], **fields)


@pytest.mark.contract("C28", "C6")
async def test_only_the_signal_of_the_view_can_be_changed_and_not_removed(rig, source):
    async def wrapper(view, next_):
        for field in ("call_id", "root_call_id", "name", "token", "arguments", "agent", "parent", "schema", "tool_set"):
            with pytest.raises(AttributeError):
                setattr(view, field, "other")
        for value in (None, MISSING, source):
            with pytest.raises(TypeError, match="another Signal only"):
                view.signal = value
        with pytest.raises(AttributeError):
            del view.signal
        rig.note(view)
        return await next_()

    wrap(rig, wrapper)
    rig.add("echo")
    assert not (await rig.run(signal=source.signal)).is_error
    (view,) = [what for what in rig.seen if what != "body"]
    with pytest.raises(RuntimeError, match="only while tools/execute runs"):
        view.signal = source.signal


@pytest.mark.contract("C28")
async def test_the_same_signal_is_used_as_it_is(rig, source):
    async def body(_arguments, run):
        rig.note(run.signal)
        rig.note(run.exec)

    async def dispatch(**fields):
        rig.seen.clear()
        call = rig.pipeline.call(rig.input(**fields))
        await call.prepare()
        await call.dispatch(shelter=source.signal)
        assert not (await call.finish()).is_error
        return call.exec

    rig.add("echo", body)
    seen = await dispatch(signal=source.signal)
    assert rig.seen[0] is source.signal
    assert rig.seen[1] is seen
    await rig.run()
    assert rig.seen[-2] is rig.observed[-1][0].signal


@pytest.mark.contract("C28")
@pytest.mark.parametrize("first", ["wrapper", "caller"])
async def test_the_body_hears_whichever_signal_fires_first(rig, source, first):
    own = SignalSource()

    async def wrapper(view, next_):
        upstream, view.signal = view.signal, own.signal
        try:
            return await next_()
        finally:
            view.signal = upstream

    async def body(_arguments, run):
        assert run.signal not in (own.signal, source.signal)
        assert run.exec.signal is run.signal
        (own if first == "wrapper" else source).abort(f"from {first}")
        (source if first == "wrapper" else own).abort("too late")
        rig.note(run.signal.reason)

    wrap(rig, wrapper)
    rig.add("echo", body)
    await rig.run(signal=source.signal)
    assert rig.seen == [f"from {first}"]


@pytest.mark.contract("C28")
async def test_when_both_have_fired_the_wrappers_reason_is_taken(rig, kit, source):
    own = SignalSource()
    own.abort(AbortError("of the wrapper"))

    async def wrapper(view, next_):
        source.abort(AbortError("of the caller"))
        view.signal = own.signal
        result = await next_()
        rig.note(result)
        return result

    wrap(rig, wrapper)
    rig.add("echo")
    result = await rig.run(signal=source.signal)
    assert kit.identity(result) == BEFORE
    fused, _part = fuse(own.signal, source.signal)
    assert str(fused.reason) == "of the wrapper"


@pytest.mark.contract("C28")
async def test_the_join_is_taken_apart_when_the_body_settles(rig, source):
    own = SignalSource()

    async def wrapper(view, next_):
        view.signal = own.signal
        return await next_()

    async def body(_arguments, _run):
        rig.note((len(own.signal._observers), len(source.signal._observers)))

    wrap(rig, wrapper)
    rig.add("echo", body)
    before = (len(own.signal._observers), len(source.signal._observers))
    await rig.run(signal=source.signal)
    assert rig.seen != [before]
    assert (len(own.signal._observers), len(source.signal._observers)) == before == (0, 0)


@pytest.mark.contract("C29", "C30")
async def test_a_fired_signal_keeps_the_body_from_being_invoked(rig, kit, source):
    async def wrapper(_view, next_):
        source.abort()
        result = await next_()
        rig.note(kit.identity(result))
        return result

    wrap(rig, wrapper)
    rig.add("echo")
    assert kit.identity(await rig.run(signal=source.signal)) == BEFORE
    assert rig.seen == [BEFORE]


@pytest.mark.contract("C29", "C33")
async def test_the_wrappers_own_signal_alone_keeps_the_body_from_being_invoked(rig, kit, source):
    own = SignalSource()
    own.abort()

    async def wrapper(view, next_):
        view.signal = own.signal
        return await next_()

    wrap(rig, wrapper)
    rig.add("echo")
    assert kit.identity(await rig.run(signal=source.signal)) == BEFORE
    assert rig.seen == []


@pytest.mark.contract("C30")
async def test_an_unknown_tool_never_counts_as_an_invoked_body(rig, kit, source):
    async def wrapper(_view, next_):
        result = await next_()
        assert kit.identity(result) == ("ToolNotFoundError", "UNKNOWN_TOOL")
        source.abort()
        raise AbortError

    wrap(rig, wrapper)
    assert kit.identity(await rig.run("nothing", signal=source.signal)) == BEFORE


@pytest.mark.contract("C30")
async def test_a_body_that_fails_when_called_has_been_invoked(rig, kit, source):
    def body(_arguments, _run):
        source.abort()
        raise AbortError

    async def wrapper(_view, next_):
        assert (await next_()).is_error
        raise AbortError

    wrap(rig, wrapper)
    rig.add("echo", body)
    assert kit.identity(await rig.run(signal=source.signal)) == ABORTED


@pytest.mark.contract("C31")
async def test_wrapper_and_post_listeners_see_their_own_signals_again(rig, source):
    own = SignalSource()

    async def wrapper(view, next_):
        upstream, view.signal = view.signal, own.signal
        await next_()
        rig.note(view.signal is own.signal)
        view.signal = upstream
        rig.note(view.signal is source.signal)
        return await next_()

    async def post(call, _result, next_):
        rig.note(call.signal is source.signal)
        return await next_()

    wrap(rig, wrapper)
    rig.tools.on("tools/post-execute", post)
    rig.add("echo")
    await rig.run(signal=source.signal)
    assert rig.seen == ["body", True, True, "body", True]


@pytest.mark.contract("C32")
async def test_a_started_body_is_awaited_though_it_ignores_cancellation(rig, kit, source):
    release = anyio.Event()

    async def body(_arguments, _run):
        rig.note("started")
        await release.wait()
        rig.note("ended")
        return 1

    rig.add("echo", body)
    async with anyio.create_task_group() as group:

        async def run():
            rig.note(kit.identity(await rig.run(signal=source.signal)))

        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        source.abort("enough")
        await anyio.wait_all_tasks_blocked()
        assert rig.seen == ["started"]
        release.set()
    assert rig.seen == ["started", "ended", ABORTED]


@pytest.mark.contract("C32")
@pytest.mark.parametrize("raises", [False, True], ids=["answers", "raises"])
async def test_a_body_that_a_wrapper_left_behind_in_another_task_is_awaited(rig, kit, raises):
    started, release = anyio.Event(), anyio.Event()

    async def body(_arguments, run):
        started.set()
        await release.wait()
        run.defer_context(kit.context("late"))
        rig.note("ended")
        return 1

    rig.add("echo", body)
    async with anyio.create_task_group() as group:

        async def wrapper(_view, next_):
            async def leave_behind():
                await next_()

            group.start_soon(leave_behind)
            await started.wait()
            if raises:
                raise ValueError("gave up")
            return authored_failure("gave up")

        async def run():
            result = await rig.run()
            rig.note((result.error.message, kit.texts(result)))

        wrap(rig, wrapper)
        group.start_soon(run)
        await started.wait()
        await anyio.wait_all_tasks_blocked()
        assert rig.seen == []
        assert rig.observed == []
        release.set()
    assert rig.seen == ["ended", ("gave up", [] if raises else ["late"])]


@pytest.mark.contract("C33")
@pytest.mark.parametrize("whose", ["caller", "wrapper"])
async def test_a_success_of_a_cancelled_body_is_a_cancellation_that_keeps_contexts(rig, kit, source, whose):
    own = SignalSource()

    async def wrapper(view, next_):
        view.signal = own.signal
        return await next_()

    async def body(_arguments, run):
        run.defer_context(kit.context("kept"))
        (source if whose == "caller" else own).abort()
        return {"not": "shown"}

    wrap(rig, wrapper)
    rig.add("echo", body)
    result = await rig.run(signal=source.signal)
    assert kit.identity(result) == ABORTED
    assert kit.text(result) == "Error: tool call aborted"
    assert kit.texts(result) == ["kept"]


class QuotaError(HarnessError):
    default_code = "QUOTA"


class ForeignAbortError(Exception):
    pass


ForeignAbortError.__name__ = "AbortError"
REASON = LookupError("the reason itself")


@pytest.mark.contract("C34", "C63")
@pytest.mark.parametrize(
    ("thrown", "live", "cancelled"),
    [
        (LookupError("disk"), None, None),
        (QuotaError("quota"), ("QuotaError", "QUOTA"), ("QuotaError", "QUOTA")),
        (REASON, None, ABORTED),
        (ForeignAbortError("foreign"), None, ABORTED),
        (AbortError("my words"), ABORTED, ABORTED),
        (ExceptionGroup("group", [ExceptionGroup("inner", [REASON])]), None, ABORTED),
    ],
    ids=["plain", "harness", "reason", "foreign AbortError", "AbortError", "reason in groups"],
)
@pytest.mark.parametrize("abort", [False, True], ids=["live", "cancelled"])
async def test_a_body_error_keeps_its_words_and_identity(rig, kit, source, thrown, live, cancelled, abort):
    async def body(_arguments, _run):
        if abort:
            source.abort(REASON)
        raise thrown

    rig.add("echo", body)
    result = await rig.run(signal=source.signal)
    leaf = REASON if isinstance(thrown, ExceptionGroup) else thrown
    assert result.error.message == str(leaf)
    assert kit.text(result) == f"Error: {leaf}"
    assert kit.identity(result) == (cancelled if abort else live)


@pytest.mark.contract("C35", "C46")
async def test_next_never_raises_and_gives_frozen_results(rig, kit):
    async def body(_arguments, run):
        run.defer_context(kit.context(f"attempt {rig.seen.count('failed') + 1}"))
        if rig.seen.count("failed") < 2:
            raise LookupError("not yet")
        return "third time"

    async def retry(_view, next_):
        result = await next_()
        while result.is_error:
            assert is_frozen(result.content)
            rig.note("failed")
            result = await next_()
        return result

    wrap(rig, retry)
    rig.add("echo", body)
    result = await rig.run()
    assert result.value == "third time"
    assert kit.texts(result) == ["attempt 1", "attempt 2", "attempt 3"]


@pytest.mark.contract("C35", "C13")
async def test_a_second_next_runs_the_inner_wrappers_again(rig):
    async def outer(_view, next_):
        await next_()
        return await next_()

    async def inner(_view, next_):
        rig.note("inner")
        return await next_()

    wrap(rig, outer)
    wrap(rig, inner)
    rig.add("echo")
    await rig.run()
    assert rig.seen == ["inner", "body", "inner", "body"]


@pytest.mark.contract("C35")
async def test_conclude_and_the_invoked_flag_accumulate_across_attempts(rig, kit, source):
    async def body(_arguments, run):
        rig.note("body")
        if len(rig.seen) == 1:
            run.conclude_turn()
            raise LookupError("first")
        return "second"

    async def retry(_view, next_):
        await next_()
        return await next_()

    undo = rig.tools.on("tools/execute", retry)
    rig.add("echo", body)
    assert (await rig.run()).concludes_turn is True
    undo()

    async def aborts_between(_view, next_):
        await next_()
        source.abort()
        return await next_()

    wrap(rig, aborts_between)
    assert kit.identity(await rig.run(signal=source.signal)) == ABORTED


@pytest.mark.contract("C35", "C45")
async def test_the_wish_to_conclude_of_a_later_attempt_counts_for_an_earlier_result(rig):
    async def body(_arguments, run):
        rig.note("body")
        if len(rig.seen) == 2:
            run.conclude_turn()
            raise LookupError("second")
        return "first"

    async def keeps_the_first(_view, next_):
        first = await next_()
        assert first.concludes_turn is False
        await next_()
        return first

    wrap(rig, keeps_the_first)
    rig.add("echo", body)
    result = await rig.run()
    assert (result.value, result.concludes_turn) == ("first", True)


@pytest.mark.contract("C36")
async def test_a_wrapper_that_raises_ends_the_call_and_loses_deferred_contexts(rig, kit):
    async def wrapper(_view, next_):
        await next_()
        raise QuotaError("over")

    async def body(_arguments, run):
        run.defer_context(kit.context("lost"))

    wrap(rig, wrapper)
    note_post(rig)
    rig.add("echo", body, finalize_content=lambda _call, _result: rig.note("finalize"))
    result = await rig.run()
    assert kit.identity(result) == ("QuotaError", "QUOTA")
    assert kit.texts(result) == []
    assert rig.seen == ["finalize"]


@pytest.mark.contract("C36")
@pytest.mark.parametrize("thrown", [REASON, AbortError("mine"), ForeignAbortError("foreign")])
@pytest.mark.parametrize("invoked", [False, True])
async def test_a_wrapper_that_gives_up_with_the_caller_is_a_cancellation(rig, kit, source, thrown, invoked):
    async def wrapper(_view, next_):
        if invoked:
            await next_()
        source.abort(REASON)
        raise thrown

    wrap(rig, wrapper)
    note_post(rig)
    rig.add("echo")
    result = await rig.run(signal=source.signal)
    assert kit.identity(result) == (ABORTED if invoked else BEFORE)
    assert "post" not in rig.seen


@pytest.mark.contract("C36")
async def test_a_wrapper_that_raises_something_else_after_cancellation_keeps_its_error(rig, kit, source):
    async def wrapper(_view, _next):
        source.abort("bye")
        raise LookupError("cache is gone")

    wrap(rig, wrapper)
    rig.add("echo")
    result = await rig.run(signal=source.signal)
    assert (result.error.message, kit.identity(result)) == ("cache is gone", None)


@pytest.mark.contract("C37")
async def test_an_authored_success_is_checked_and_rendered_anew(rig, kit):
    async def wrapper(_view, _next):
        return success(
            {"n": 1}, meta={"authored": True}, additional_contexts=[kit.context("kept")], concludes_turn=True
        )

    wrap(rig, wrapper)
    rig.add("echo", schema={"type": "object"}, presentation_meta=lambda _arguments, value: ["meta", value])
    result = await rig.run()
    assert result.value == {"n": 1}
    assert is_frozen(result.value)
    assert kit.text(result) == '{"n": 1}'
    assert result.meta == ["meta", {"n": 1}]
    assert result.concludes_turn is False
    assert kit.texts(result) == ["kept"]
    assert rig.seen == []


@pytest.mark.contract("C38", "C57")
async def test_an_authored_failure_is_only_a_failure_and_its_content_only_content(rig):
    class Marked(ToolFailure):
        """A failure with something more to it."""

    async def wrapper(view, _next):
        content = [text_block("verbatim")] if view.call_id == "more" else freeze([1])
        return Marked(error=ToolError("mine"), content=content)

    wrap(rig, wrapper)
    rig.add("echo")
    result = await rig.run(call_id="more")
    assert (type(result), result.error.message) == (ToolFailure, "mine")
    result = await rig.run(call_id="no content")
    assert result.error.message == "tool result must be losslessly JSON-serializable"


@pytest.mark.contract("C37")
async def test_an_authored_success_that_does_not_fit_ends_the_call(rig, kit):
    async def wrapper(_view, _next):
        return success("text")

    wrap(rig, wrapper)
    note_post(rig)
    rig.add("echo", schema={"type": "integer"})
    result = await rig.run()
    assert kit.identity(result) == ("ToolOutputError", "INVALID_TOOL_OUTPUT")
    assert result.error.message == 'tool "echo" returned invalid output: "value" must be an integer'
    assert rig.seen == []


@pytest.mark.contract("C38")
async def test_an_authored_failure_is_kept_verbatim(rig, kit):
    info = ErrorInfo("CacheError", "STALE", "why")
    content = [text_block("verbatim"), {"type": "image", "data": "AA==", "mimeType": "image/png"}]

    async def wrapper(_view, _next):
        return ToolFailure(
            error=ToolError("mine", info), content=content, meta={"m": 1}, additional_contexts=[kit.context("kept")]
        )

    wrap(rig, wrapper)
    note_post(rig)
    rig.add("echo")
    result = await rig.run()
    assert (result.error, result.content, result.meta) == (ToolError("mine", info), content, {"m": 1})
    assert kit.texts(result) == ["kept"]
    content.append(text_block("later"))
    assert len(result.content) == 2
    assert rig.seen[0] == "post"
    assert is_frozen(rig.seen[1].content)


@pytest.mark.contract("C39")
async def test_the_canonical_result_is_known_by_identity(rig):
    rendered = []

    def render(_arguments, value):
        rendered.append(value)
        return [text_block("rendered")]

    async def passes(_view, next_):
        return await next_()

    async def copies(_view, next_):
        return replace(await next_(), content=[text_block("changed")])

    rig.add("echo", render=render)
    with rig.tools.on("tools/execute", passes):
        await rig.run()
    assert len(rendered) == 1
    wrap(rig, copies)
    result = await rig.run()
    assert len(rendered) == 3
    assert result.content == [text_block("rendered")]


@pytest.mark.contract("C39")
async def test_the_canonical_result_of_another_call_is_checked_against_this_tool(rig, kit):
    kept = []

    async def keeps(view, next_):
        if view.name == "texts":
            kept.append(await next_())
            return kept[0]
        return kept[0]

    async def texts(_arguments, _run):
        return "text"

    wrap(rig, keeps)
    rig.add("texts", texts, schema={"type": "string"})
    rig.add("numbers", schema={"type": "integer"})
    rig.add("others", schema={"type": "string"}, render=lambda _arguments, _value: [text_block("of others")])
    assert kit.text(await rig.run("texts")) == '"text"'
    assert kit.identity(await rig.run("numbers")) == ("ToolOutputError", "INVALID_TOOL_OUTPUT")
    result = await rig.run("others")
    assert kit.text(result) == "of others"
    assert result is not kept[0]


@pytest.mark.contract("C40")
async def test_an_authored_success_of_a_vanished_tool_ends_the_call(rig, kit):
    undo = rig.add("echo")

    async def wrapper(_view, _next):
        undo()
        return success(1)

    wrap(rig, wrapper)
    note_post(rig)
    assert kit.identity(await rig.run()) == ("ToolNotFoundError", "UNKNOWN_TOOL")
    assert rig.seen == []


@pytest.mark.contract("C41", "C52")
@pytest.mark.parametrize("fails", [False, True])
async def test_deferred_contexts_go_before_the_results_own(rig, kit, fails):
    async def body(_arguments, run):
        run.defer_context(kit.context("first"))
        run.defer_context(kit.context("second"))

    async def wrapper(_view, next_):
        await next_()
        extra = [kit.context("wrapper's")]
        return authored_failure(additional_contexts=extra) if fails else success(1, additional_contexts=extra)

    wrap(rig, wrapper)
    rig.add("echo", body)
    result = await rig.run()
    assert result.is_error is fails
    assert kit.texts(result) == ["first", "second", "wrapper's"]


@pytest.mark.contract("C42")
@pytest.mark.parametrize("invoked", [False, True])
async def test_a_success_after_the_caller_gave_up_is_a_cancellation(rig, kit, source, invoked):
    async def wrapper(_view, next_):
        result = await next_() if invoked else success(1, meta=None, additional_contexts=[kit.context("kept")])
        source.abort()
        return result

    async def body(_arguments, run):
        run.conclude_turn()
        run.defer_context(kit.context("kept"))
        return 1

    async def post(_call, result, next_):
        rig.note(result)
        return await next_()

    wrap(rig, wrapper)
    rig.tools.on("tools/post-execute", post)
    rig.add("echo", body, project_content=lambda _call, result: rig.note(result))
    result = await rig.run(signal=source.signal)
    assert kit.identity(result) == (ABORTED if invoked else BEFORE)
    assert kit.texts(result) == ["kept"]
    assert result.meta is MISSING
    assert not hasattr(result, "value")
    assert [kit.identity(seen) for seen in rig.seen] == [kit.identity(result)] * 2


@pytest.mark.contract("C42")
async def test_a_failure_keeps_its_identity_after_the_caller_gave_up(rig, kit, source):
    async def wrapper(_view, next_):
        result = await next_()
        source.abort()
        return result

    async def body(_arguments, _run):
        raise QuotaError("over")

    wrap(rig, wrapper)
    rig.add("echo", body)
    assert kit.identity(await rig.run(signal=source.signal)) == ("QuotaError", "QUOTA")


@pytest.mark.contract("C13", "C36")
@pytest.mark.parametrize("answer", [None, {"value": 1}, "text"])
async def test_a_nonsense_answer_of_a_wrapper_names_the_event(rig, kit, answer):
    async def wrapper(_view, _next):
        return answer

    wrap(rig, wrapper)
    rig.add("echo")
    said = kit.text(await rig.run())
    assert 'the "tools/execute" listener' in said
    assert "must answer a ToolSuccess or a ToolFailure" in said


@pytest.mark.contract("C36")
async def test_a_wrapper_that_forgets_to_await_next_is_told(rig, kit):
    async def wrapper(_view, next_):
        return next_()

    wrap(rig, wrapper)
    rig.add("echo")
    assert "a coroutine (is an `await` missing?)" in kit.text(await rig.run())
    assert rig.seen == []


@pytest.mark.contract("C32")
async def test_a_body_cannot_be_started_after_the_result_has_been_taken(rig):
    kept = []

    async def wrapper(_view, next_):
        kept.append(next_)
        return await next_()

    wrap(rig, wrapper)
    rig.add("echo")
    await rig.run()
    with pytest.raises(RuntimeError, match="after the call's result had been taken"):
        await kept[0]()
    assert rig.seen == ["body"]
