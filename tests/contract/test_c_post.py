"""Post-execute decisions (contract C47 to C54)."""

from __future__ import annotations

import pytest
from ptc.registry import (
    MISSING,
    Accept,
    Block,
    Deny,
    ErrorInfo,
    SignalSource,
    ToolError,
    ToolFailure,
    ToolSuccess,
    text_block,
)

pytestmark = pytest.mark.anyio

INFO = ErrorInfo("SecretsError", "LEAK", "matched rule 3")
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


@pytest.fixture
def decide(rig, kit):
    """Registers a tool with meta and contexts, and a post listener that answers what it is given."""

    def install(decision, **options):
        async def body(_arguments, run):
            run.defer_context(kit.context("body's"))
            run.conclude_turn()
            if options.get("fails"):
                raise LookupError("broken")
            return "value"

        async def wrapper(_view, next_):
            result = await next_()
            if not options.get("wraps"):
                return result
            return ToolSuccess(value="value", content=[], additional_contexts=[kit.context("wrapper's")])

        async def post(_call, result, next_):
            rig.note(result)
            if isinstance(decision, Exception):
                raise decision
            return await next_() if decision is None else decision

        rig.tools.on("tools/execute", wrapper)
        rig.tools.on("tools/post-execute", post)
        return rig.add(
            "echo",
            body,
            schema={"type": "string"},
            presentation_meta=lambda _arguments, value: {"of": value},
            finalize_content=lambda _call, _result: rig.note("finalize"),
        )

    return install


@pytest.mark.contract("C47")
async def test_final_results_do_not_reach_post_execute(rig, decide):
    decide(Accept(content=[text_block("never")]))
    await rig.run("echo", {"bad": {1}})
    assert rig.seen == ["finalize"]


@pytest.mark.contract("C48")
async def test_accepting_keeps_the_very_result(rig, decide):
    decide(Accept())
    result = await rig.run()
    assert rig.seen[0] is result


@pytest.mark.contract("C48")
async def test_content_alone_can_be_replaced(rig, decide):
    content = [text_block("cut"), IMAGE]
    decide(Accept(content=content))
    result = await rig.run()
    content.clear()
    assert result.content == [text_block("cut"), IMAGE]
    assert (result.value, result.meta, result.concludes_turn) == ("value", {"of": "value"}, True)


@pytest.mark.contract("C48")
async def test_the_content_of_a_failure_can_be_replaced(rig, kit, decide):
    decide(Accept(content=[text_block("cut")]), fails=True)
    result = await rig.run()
    assert kit.text(result) == "cut"
    assert result.error == ToolError("broken")


@pytest.mark.contract("C49", "C45")
async def test_a_value_is_checked_rendered_and_described_anew(rig, kit, decide):
    decide(Accept(value="other"))
    result = await rig.run()
    assert (result.value, kit.text(result), result.meta) == ("other", '"other"', {"of": "other"})
    assert result.concludes_turn is True
    assert kit.texts(result) == ["body's"]


@pytest.mark.contract("C49")
async def test_none_as_a_value_is_json_null(rig, kit):
    async def post(_call, _result, _next):
        return Accept(value=None)

    rig.add("echo")
    rig.tools.on("tools/post-execute", post)
    result = await rig.run()
    assert result.value is None
    assert kit.text(result) == "null"


@pytest.mark.contract("C49", "C50", "C53")
@pytest.mark.parametrize(
    ("decision", "options", "says", "identity"),
    [
        (Accept(value="x"), {"fails": True}, "tools/post-execute cannot replace the value of a failed result", None),
        (Accept(value=5), {}, '"value" must be a string', ("ToolOutputError", "INVALID_TOOL_OUTPUT")),
        (
            Accept(value="x", content=[]),
            {},
            "tools/post-execute accept decision cannot replace both value and content",
            None,
        ),
        (
            Accept(value=None, content=[]),
            {"fails": True},
            "tools/post-execute accept decision cannot replace both value and content",
            None,
        ),
        (Accept(content="text"), {}, "must be a list of content blocks", None),
        (Accept(content=[{"type": "text", "text": {1}}]), {}, "content[0].text", None),
        (Accept(additional_contexts=["text"]), {}, "must be a list of ContextMessage objects", None),
        (Block(feedback="text"), {}, "must be a list of content blocks", None),
        (Block(feedback=[], info="LEAK"), {}, "Block.info must be an ErrorInfo", None),
        (LookupError("scanner is down"), {}, "scanner is down", None),
        (True, {}, 'the "tools/post-execute" listener', None),
    ],
)  # fmt: skip
async def test_a_bad_decision_or_an_exception_drops_everything_and_is_still_finalised(
    rig, kit, decide, decision, options, says, identity
):
    decide(decision, **options)
    result = await rig.run()
    assert says in result.error.message
    assert kit.identity(result) == identity
    assert kit.texts(result) == []
    assert result.meta is MISSING
    assert rig.seen[1:] == ["finalize"]


@pytest.mark.contract("C49", "C11")
async def test_the_value_of_a_vanished_tool_cannot_be_replaced(rig, kit, decide):
    async def post(_call, _result, next_):
        undo()
        return await next_()

    rig.tools.on("tools/post-execute", post)
    undo = decide(Accept(value="other"))
    assert kit.identity(await rig.run()) == ("ToolNotFoundError", "UNKNOWN_TOOL")


@pytest.mark.contract("C51", "C63")
@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        ([text_block("no secrets"), IMAGE, text_block("please")], "no secrets\n[image content]\nplease"),
        ([], "tool result blocked by post-execute policy"),
        ([text_block("")], "tool result blocked by post-execute policy"),
    ],
)
async def test_a_block_turns_the_result_into_its_feedback(rig, kit, decide, feedback, message):
    decide(Block(feedback, INFO))
    result = await rig.run()
    assert result.is_error
    assert result.content == feedback
    assert (result.error.message, result.error.info) == (message, INFO)
    assert result.meta is MISSING
    assert not hasattr(result, "value")
    assert not hasattr(result, "concludes_turn")
    assert rig.seen[1:] == ["finalize"]


@pytest.mark.contract("C51")
async def test_a_failed_result_can_be_blocked_too(rig, decide):
    decide(Block([text_block("hidden")]), fails=True)
    result = await rig.run()
    assert (result.error, result.content) == (ToolError("hidden"), [text_block("hidden")])


@pytest.mark.contract("C52")
async def test_contexts_come_in_order_and_a_block_keeps_only_its_own(rig, kit, decide):
    undo = decide(Accept(additional_contexts=[kit.context("policy's")]), wraps=True)
    assert kit.texts(await rig.run()) == ["body's", "wrapper's", "policy's"]
    undo()


@pytest.mark.contract("C52")
async def test_contexts_keep_their_order_when_value_or_content_is_replaced(rig, kit, decide):
    extra = [kit.context("policy's")]
    decide(Accept(value="other", additional_contexts=extra), wraps=True)
    assert kit.texts(await rig.run()) == ["body's", "wrapper's", "policy's"]


@pytest.mark.contract("C52", "C51")
async def test_a_block_keeps_only_the_contexts_of_the_decision(rig, kit, decide):
    decide(Block([text_block("no")], additional_contexts=(kit.context("policy's"),)), wraps=True)
    assert kit.texts(await rig.run()) == ["policy's"]


@pytest.mark.contract("C54", "C45")
@pytest.mark.parametrize("invoked", [False, True])
async def test_a_success_after_the_caller_gave_up_in_post_is_a_cancellation(rig, kit, invoked):
    source = SignalSource()

    async def wrapper(_view, next_):
        return await next_() if invoked else ToolSuccess(value=1, content=[])

    async def post(_call, _result, _next):
        source.abort()
        return Accept(additional_contexts=[kit.context("kept")])

    rig.add("echo")
    rig.tools.on("tools/execute", wrapper)
    rig.tools.on("tools/post-execute", post)
    result = await rig.run(signal=source.signal)
    code = "ABORTED" if invoked else "ABORTED_BEFORE_DISPATCH"
    assert kit.identity(result) == ("AbortError", code)
    assert kit.texts(result) == ["kept"]


@pytest.mark.contract("C54")
@pytest.mark.parametrize("how", ["block", "failure"])
async def test_a_failed_outcome_stands_though_the_caller_gave_up_in_post(rig, kit, how):
    source = SignalSource()

    async def body(_arguments, _run):
        if how == "failure":
            raise LookupError("broken")

    async def post(_call, _result, next_):
        source.abort()
        return Block([text_block("blocked")]) if how == "block" else await next_()

    rig.add("echo", body)
    rig.tools.on("tools/post-execute", post)
    result = await rig.run(signal=source.signal)
    assert result.error == ToolError("blocked" if how == "block" else "broken")


@pytest.mark.contract("C47", "C14")
async def test_post_execute_sees_denials_and_may_change_what_the_model_reads(rig, kit, decide):
    async def pre(_call, _next):
        return Deny("no")

    rig.tools.on("tools/pre-execute", pre)
    decide(Accept(content=[text_block("ask your admin")]))
    result = await rig.run()
    assert isinstance(result, ToolFailure)
    assert (kit.text(result), result.error.message) == ("ask your admin", "no")
