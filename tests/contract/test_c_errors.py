"""Error identity and the run context (contract C62 to C67)."""

from __future__ import annotations

import pytest
from ptc.registry import (
    AbortError,
    Accept,
    Block,
    ContextMessage,
    HarnessError,
    JsonSchemaError,
    ToolArgsError,
    ToolContextUnavailableError,
    ToolNotFoundError,
    ToolOutputError,
    define_tool,
    text_block,
)

pytestmark = pytest.mark.anyio


def raises(error):
    async def body(_arguments, _run):
        raise error

    return body


class SilentError(Exception):
    """An error without a text."""


class MessageError(Exception):
    message = "from its message"

    def __str__(self):
        return ""


class OddMessageError(Exception):
    message = 5

    def __str__(self):
        return ""


class UnprintableError(Exception):
    def __str__(self):
        raise RuntimeError("cannot say")


@pytest.mark.contract("C62", "C63")
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("plain"), "plain"),
        (HarnessError("of the harness"), "of the harness"),
        (MessageError(), "from its message"),
        (OddMessageError(), "OddMessageError"),
        (SilentError(), "SilentError"),
        (KeyError("customer"), "KeyError: 'customer'"),
        (UnprintableError(), "<unprintable thrown value>"),
        (ValueError("lone \ud800 half"), "lone \\ud800 half"),
        (ExceptionGroup("one", [ExceptionGroup("inner", [ValueError("the leaf")])]), "the leaf"),
        (ExceptionGroup("two", [ValueError("one"), KeyError("k")]), "one; KeyError: 'k'"),
        (StopIteration("done"), "coroutine raised StopIteration"),
    ],
)
async def test_the_message_of_what_was_raised(rig, kit, error, message):
    rig.add("echo", raises(error))
    result = await rig.run()
    assert result.error.message == message
    assert kit.text(result) == f"Error: {message}"
    assert kit.identity(result) == (("HarnessError", "HARNESS_ERROR") if isinstance(error, HarnessError) else None)


class BrokenNameError(HarnessError):
    @property
    def name(self):
        raise LookupError("no name")


class NumericCodeError(HarnessError):
    default_code = 7  # pyright: ignore


@pytest.mark.contract("C63")
@pytest.mark.parametrize("error", [BrokenNameError("x"), NumericCodeError("x")])
async def test_an_identity_that_cannot_be_read_is_no_identity(rig, kit, error):
    rig.add("echo", raises(error))
    result = await rig.run()
    assert (result.error.message, kit.identity(result)) == ("x", None)


@pytest.mark.contract("C65", "C63", "C64")
@pytest.mark.parametrize(
    ("error", "name", "code"),
    [
        (ToolNotFoundError("x"), "ToolNotFoundError", "UNKNOWN_TOOL"),
        (ToolArgsError(["x"]), "ToolArgsError", "INVALID_ARGS"),
        (ToolOutputError("t", ["x"]), "ToolOutputError", "INVALID_TOOL_OUTPUT"),
        (JsonSchemaError(["x"]), "JsonSchemaError", "UNSUPPORTED_SCHEMA"),
        (AbortError(), "AbortError", "ABORTED"),
        (AbortError(code="ABORTED_BEFORE_DISPATCH"), "AbortError", "ABORTED_BEFORE_DISPATCH"),
        (ToolContextUnavailableError("no agent"), "ToolContextUnavailableError", "TOOL_CONTEXT_UNAVAILABLE"),
    ],
)
async def test_the_identity_table(rig, kit, error, name, code):
    rig.add("echo", raises(error))
    result = await rig.run()
    assert kit.identity(result) == (name, code)
    assert result.error.info.reason is None
    assert kit.text(result) == f"Error: {error.message}"


@pytest.mark.contract("C65", "C63")
async def test_a_group_with_one_leaf_keeps_its_identity(rig, kit):
    rig.add("echo", raises(ExceptionGroup("tg", [ToolArgsError(["x"])])))
    assert kit.identity(await rig.run()) == ("ToolArgsError", "INVALID_ARGS")
    rig.add("two", raises(ExceptionGroup("tg", [ToolArgsError(["x"]), ToolArgsError(["y"])])))
    assert kit.identity(await rig.run("two")) is None


@pytest.mark.contract("C65")
async def test_typed_tools_answer_invalid_args(rig, kit):
    async def body(arguments, _run):
        rig.note(arguments)

    rig.tools.register(
        define_tool(
            name="typed",
            description="",
            parameters={"n": {"type": "integer", "required": True}},
            output={"type": "null"},
            execute=body,
        )
    )
    result = await rig.run("typed", {"n": "x"})
    assert kit.identity(result) == ("ToolArgsError", "INVALID_ARGS")
    assert rig.seen == []


@pytest.mark.contract("C66")
@pytest.mark.parametrize("fails", [False, True])
async def test_deferred_contexts_survive_success_and_failure_in_order_and_as_they_are(rig, fails):
    first = ContextMessage(content=[text_block("one")], source={"kind": "plugin", "plugin": "a"})
    second = ContextMessage(content=[text_block("two")], source={"kind": "tool"}, role="system")

    async def body(_arguments, run):
        run.defer_context(first)
        run.defer_context(second)
        if fails:
            raise LookupError("x")

    rig.add("echo", body)
    result = await rig.run()
    assert list(result.additional_contexts) == [first, second]


@pytest.mark.contract("C66", "C53", "C36")
@pytest.mark.parametrize(
    ("event", "answer"),
    [
        ("tools/post-execute", Block([text_block("no")])),
        ("tools/post-execute", LookupError("x")),
        ("tools/execute", LookupError("x")),
    ],
)
async def test_deferred_contexts_are_dropped_by_a_block_and_by_exceptions(rig, kit, event, answer):
    async def body(_arguments, run):
        run.defer_context(kit.context("lost"))

    async def listener(*args):
        if event == "tools/execute":
            await args[-1]()
        if isinstance(answer, Exception):
            raise answer
        return answer

    rig.add("echo", body)
    rig.tools.on(event, listener)
    assert kit.texts(await rig.run()) == []


@pytest.mark.contract("C66")
async def test_a_context_deferred_after_the_around_stage_counts_for_nothing(rig, kit, caplog):
    kept = []

    async def body(_arguments, run):
        kept.append(run)

    async def post(_call, _result, _next):
        kept[0].defer_context(kit.context("late"))
        return Accept()

    rig.add("echo", body)
    rig.tools.on("tools/post-execute", post)
    assert kit.texts(await rig.run()) == []
    assert "deferred a context after" in caplog.text


@pytest.mark.contract("C66")
async def test_what_is_no_context_is_refused_where_it_is_deferred(rig, kit):
    async def body(_arguments, run):
        run.defer_context("text")

    rig.add("echo", body)
    assert "defer_context() takes a ContextMessage" in kit.text(await rig.run())


@pytest.mark.contract("C67", "C45")
@pytest.mark.parametrize("how", ["success", "body failure", "block"])
async def test_conclude_counts_only_for_a_final_success(rig, how):
    async def body(_arguments, run):
        run.conclude_turn()
        if how == "body failure":
            raise LookupError("x")

    async def post(_call, _result, next_):
        return Block([]) if how == "block" else await next_()

    rig.add("echo", body)
    rig.tools.on("tools/post-execute", post)
    result = await rig.run()
    assert getattr(result, "concludes_turn", False) == (how == "success")
