"""The approval service of a host: asking, deciding, recording, and the policy (contract K14 to K16, C16 to C22)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import anyio
import ptc
import pytest
from ptc.registry import APPROVAL_REQUEST, ScopeKey

pytestmark = pytest.mark.anyio

BEFORE = ("AbortError", "ABORTED_BEFORE_DISPATCH")
OUTCOMES = ("allowed-once", "rejected", "cancelled", "unavailable")


def request(agent, **fields):
    signal = fields.pop("signal", None) or ptc.Signal()
    return ptc.ApprovalRequest(agent=agent, tool_name=fields.pop("tool_name", "delete"), signal=signal, **fields)


@pytest.fixture
def put(desk):
    """Puts a question in an open turn, without any call."""

    async def put(**fields):
        with desk.agent.open_turn():
            return await desk.host.approvals.request(request(desk.agent, **fields))

    return put


# Asked, decided -----------------------------------------------------------------------------------------------------


@pytest.mark.contract("K14")
async def test_outside_an_open_turn_nobody_is_asked_and_nothing_recorded(desk):
    desk.answer("allowed-once")
    assert not desk.agent.in_turn
    for agent in (desk.agent, ScopeKey("no agent of a host")):
        with pytest.raises(ptc.ToolContextUnavailableError, match=r'tool "delete" requires approval, but no turn'):
            await desk.host.approvals.request(request(agent))
    assert desk.seen == []
    assert await desk.events() == []


@pytest.mark.contract("K14", "C24")
async def test_a_call_outside_a_batch_that_needs_approval_is_refused(desk, kit):
    desk.ask()
    desk.answer("allowed-once")
    result = await desk.host.pipeline.execute(
        ptc.registry.ToolExecutionInput(call_id="c1", name="delete", arguments={"id": 1}, agent=desk.agent)
    )
    assert kit.identity(result) == ("ToolContextUnavailableError", "TOOL_CONTEXT_UNAVAILABLE")
    assert desk.seen == []
    assert await desk.events() == []


@pytest.mark.contract("K14", "I12", "C20")
async def test_inside_a_turn_it_is_asked_then_decided_and_both_are_durable_in_time(desk):
    desk.ask()
    meanwhile = []

    @desk.host.on("approval/request")
    async def answer(_request, _next):
        meanwhile.append(await desk.types())
        return "allowed-once"

    desk.host.tools.guard(lambda _call: desk.seen.append("guard"))
    result = await desk.call()
    assert not result.is_error
    assert meanwhile == [["tool/call", "approval/asked"]]
    assert await desk.types() == ["tool/call", "approval/asked", "approval/decided", "tool/result"]
    assert desk.seen == ["guard", "deleted 1"]
    assert await desk.outcomes() == ["allowed-once"]


@pytest.mark.contract("K14")
async def test_the_turn_is_closed_however_the_batch_ends(desk, monkeypatch):
    open_turns = []

    @desk.host.on("tools/result")
    def note(_call, _result):
        open_turns.append(desk.agent.in_turn)

    await desk.call()
    assert not desk.agent.in_turn
    desk.refuse(monkeypatch, "tool/result")
    with pytest.raises(ptc.ToolBatchExecutionError):
        await desk.call()
    assert open_turns == [True, True]
    assert not desk.agent.in_turn


@pytest.mark.contract("K14", "C16", "C19")
async def test_a_listener_is_given_the_question_and_the_record_has_the_audited_text_alone(desk):
    source = ptc.SignalSource()
    desk.ask("deletes for good", display_reason={"en": "Really delete?", "de": "Wirklich löschen?"})
    desk.answer("allowed-once")
    await desk.call(signal=source.signal)
    asked, call = desk.seen[0], (await desk.events("tool/call"))[0].data
    assert (asked.agent, asked.tool_name, asked.call_id) == (desk.agent, "delete", call["callId"])
    assert (asked.reason, asked.signal) == ("deletes for good", source.signal)
    assert asked.display_reason == {"en": "Really delete?", "de": "Wirklich löschen?"}
    (recorded,) = await desk.events("approval/asked")
    assert recorded.data["reason"] == "deletes for good"
    assert "Really" not in str(recorded.data)


@pytest.mark.contract("K15", "C20", "C21")
@pytest.mark.parametrize(
    ("answer", "says", "code"),
    [
        ("rejected", 'the user rejected tool "delete"', "APPROVAL_REJECTED"),
        ("cancelled", 'approval for tool "delete" was cancelled', "APPROVAL_CANCELLED"),
        (
            "unavailable",
            'tool "delete" requires approval, but no approval channel is available',
            "APPROVAL_UNAVAILABLE",
        ),
    ],
)
async def test_every_answer_that_is_no_yes_denies_the_call(desk, kit, answer, says, code):
    desk.ask()
    desk.answer(answer)
    result = await desk.call()
    assert (result.error.message, kit.identity(result)) == (says, ("ApprovalError", code))
    assert await desk.outcomes() == [answer]
    assert len(desk.seen) == 1


# Decide: aborted, policy, waterfall ---------------------------------------------------------------------------------


@pytest.mark.contract("K15")
async def test_what_was_given_up_already_is_cancelled_before_policy_and_listeners(desk, put):
    source = ptc.SignalSource()
    source.abort("bye")
    desk.answer("allowed-once")
    await desk.host.approvals.set_policy(desk.agent, "never")
    assert await put(signal=source.signal) == "cancelled"
    assert desk.seen == []
    assert await desk.outcomes() == ["cancelled"]


@pytest.mark.contract("K15")
async def test_policy_never_rejects_before_any_listener(desk, kit):
    desk.ask()
    desk.answer("allowed-once")
    for prepend in (True, False):
        desk.agent.on("approval/request", partial(_allow, desk), prepend=prepend)
    await desk.host.approvals.set_policy(desk.agent, "never")
    result = await desk.call()
    assert kit.identity(result) == ("ApprovalError", "APPROVAL_REJECTED")
    assert desk.seen == []
    assert await desk.outcomes() == ["rejected"]


async def _allow(desk, _request, _next):
    desk.seen.append("asked")
    return "allowed-once"


@pytest.mark.contract("K15")
@pytest.mark.parametrize("answer", OUTCOMES)
async def test_the_answer_of_the_listener_is_the_outcome(desk, put, answer):
    desk.answer(answer)
    assert await put() == answer
    assert await desk.outcomes() == [answer]


@pytest.mark.contract("K15", "C20")
async def test_while_nobody_listens_it_is_unavailable(desk, put, kit, caplog):
    assert await put() == "unavailable"
    desk.ask()
    assert kit.identity(await desk.call()) == ("ApprovalError", "APPROVAL_UNAVAILABLE")
    assert await desk.outcomes() == ["unavailable", "unavailable"]
    assert caplog.records == []


@pytest.mark.contract("K15", "C13", "A5")
async def test_listeners_are_a_waterfall_of_the_agents_scope(desk, put):
    def listener(name):
        async def ask(_request, next):
            desk.seen.append(name)
            answer = await next()
            desk.seen.append((name, answer))
            return answer if name != "second" else "rejected"

        return ask

    other = desk.host.agent("other")
    other.on("approval/request", listener("other agent"))
    desk.host.on("approval/request", listener("second"))
    desk.agent.on("approval/request", listener("third"))
    desk.host.on("approval/request", listener("first"), prepend=True)
    assert await put() == "rejected"
    assert desk.seen == [
        "first", "second", "third", ("third", "unavailable"), ("second", "unavailable"), ("first", "rejected"),
    ]  # fmt: skip


# Listeners that misbehave -------------------------------------------------------------------------------------------


@pytest.mark.contract("K15")
async def test_a_listener_that_raises_makes_it_unavailable_with_a_warning(desk, put, caplog):
    desk.answer(LookupError("the chat is down"))
    assert await put(call_id="c7") == "unavailable"
    assert await desk.outcomes() == ["unavailable"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert 'tool "delete" (call c7)' in record.getMessage()
    assert "the chat is down" in caplog.text


@pytest.mark.contract("K15")
@pytest.mark.parametrize("answer", [None, True, "yes", "Allowed-once", 5, str, ["allowed-once"], b"allowed-once"])
async def test_an_answer_outside_the_vocabulary_makes_it_unavailable_with_a_warning(desk, kit, answer, caplog):
    desk.ask()
    desk.answer(answer)
    result = await desk.call()
    assert kit.identity(result) == ("ApprovalError", "APPROVAL_UNAVAILABLE")
    assert len(desk.seen) == 1
    assert await desk.outcomes() == ["unavailable"]
    assert "Desk.answer.<locals>.answers must answer allowed-once, rejected, cancelled, unavailable" in caplog.text


@pytest.mark.contract("K15")
async def test_a_sync_listener_and_one_that_forgot_to_await_make_it_unavailable(desk, put, caplog):
    with desk.host.tools.on("approval/request", lambda _request, _next: "allowed-once"):
        assert await put() == "unavailable"
    assert "must be an async function" in caplog.text

    @desk.host.on("approval/request")
    async def forgetful(_request, next):
        return next()

    assert await put() == "unavailable"
    assert "forgetful must answer" in caplog.text
    assert "is an `await` missing?" in caplog.text


@pytest.mark.contract("K15")
async def test_an_outer_listener_may_catch_what_an_inner_one_raised(desk, put, caplog):
    @desk.host.on("approval/request")
    async def second_channel(_request, next):
        try:
            return await next()
        except LookupError:
            return "rejected"

    desk.answer(LookupError("the chat is down"))
    assert await put() == "rejected"
    assert caplog.records == []


@pytest.mark.contract("K15")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_of_the_listeners_own_making_makes_it_unavailable(desk, put, caplog):
    @desk.host.on("approval/request")
    async def careless(_request, _next):
        task = asyncio.ensure_future(asyncio.sleep(3600))
        task.cancel()
        await task

    assert await put() == "unavailable"
    assert "it awaited something that had been cancelled" in caplog.text


@pytest.mark.contract("K15", "C22", "C69")
async def test_a_listener_that_never_answers_is_left_when_the_call_is_given_up(desk, kit, caplog):
    source = ptc.SignalSource()
    desk.ask()

    @desk.host.on("approval/request")
    async def hangs(_request, _next):
        tasks.start_soon(abort_soon)
        try:
            await anyio.sleep_forever()
        finally:
            desk.seen.append("left")

    async def abort_soon():
        source.abort("bye")

    async with anyio.create_task_group() as tasks:
        result = await desk.call(signal=source.signal)
    assert kit.identity(result) == BEFORE
    assert desk.seen == ["left"]
    assert await desk.outcomes() == ["cancelled"]
    assert caplog.records == []


@pytest.mark.contract("K15", "C22")
@pytest.mark.parametrize("late", ["allowed-once", "rejected", None, LookupError("too late")], ids=str)
async def test_an_answer_that_comes_late_is_discarded(desk, put, late, caplog):
    source, given_up, released = ptc.SignalSource(), anyio.Event(), anyio.Event()

    @desk.host.on("approval/request")
    async def stubborn(_request, _next):
        with anyio.CancelScope(shield=True):
            source.abort("bye")
            given_up.set()
            await released.wait()
        desk.seen.append("answers")
        if isinstance(late, Exception):
            raise late
        return late

    async def ask():
        desk.seen.append(await put(signal=source.signal))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await given_up.wait()
        released.set()
    assert desk.seen == ["answers", "cancelled"]
    assert await desk.outcomes() == ["cancelled"]
    assert caplog.records == []


@pytest.mark.contract("K15", "C22")
async def test_a_listener_that_swallows_the_end_has_no_say_either(desk, put):
    source = ptc.SignalSource()

    @desk.host.on("approval/request")
    async def swallows(_request, _next):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            source.abort("bye")
        return "allowed-once"

    assert await put(signal=source.signal) == "cancelled"


@pytest.mark.contract("K15")
async def test_a_question_leaves_nothing_at_the_callers_signal(desk, put):
    source = ptc.SignalSource()
    desk.answer("allowed-once")
    await put(signal=source.signal)
    assert source.signal._observers == {}


@pytest.mark.contract("K14", "I12")
async def test_two_questions_at_once_keep_apart(desk, put):
    answers = {"a": "rejected", "b": "allowed-once"}
    both, got = anyio.Event(), {}

    @desk.host.on("approval/request")
    async def answer(asked, _next):
        desk.seen.append(asked.call_id)
        if len(desk.seen) == 2:
            both.set()
        await both.wait()
        return answers[asked.call_id]

    async def ask(call_id):
        got[call_id] = await put(call_id=call_id)

    async with anyio.create_task_group() as tasks:
        for call_id in answers:
            tasks.start_soon(ask, call_id)
    assert got == answers
    await desk.outcomes()
    calls = {event.data["id"]: event.data["callId"] for event in await desk.events("approval/asked")}
    decided = {calls[event.data["id"]]: event.data["outcome"] for event in await desk.events("approval/decided")}
    assert decided == answers


# A log that fails, a host that is cancelled -------------------------------------------------------------------------


@pytest.mark.contract("K14", "I12")
@pytest.mark.parametrize("refused", ["approval/asked", "approval/decided"])
async def test_what_cannot_be_recorded_is_not_allowed(desk, kit, monkeypatch, refused):
    desk.ask()
    desk.answer("allowed-once")
    tried = desk.refuse(monkeypatch, refused)
    result = await desk.call()
    assert kit.identity(result) == ("LogUnavailableError", "LOG_UNAVAILABLE")
    assert 'tool "delete" requires approval, and the' in result.error.message
    assert "no space left" not in kit.text(result)
    assert tried == [refused]  # and nobody tries again
    assert len(desk.seen) == (refused == "approval/decided")  # the listener, never the body


@pytest.mark.contract("K14", "I12")
async def test_a_session_that_cannot_be_read_asks_nobody(desk, kit, monkeypatch):
    async def unreadable():
        raise OSError("input/output error")

    desk.ask()
    desk.answer("allowed-once")
    monkeypatch.setattr(desk.agent.session, "events", unreadable)
    result = await desk.call()
    monkeypatch.undo()
    assert kit.identity(result) == ("LogUnavailableError", "LOG_UNAVAILABLE")
    assert desk.seen == []
    assert await desk.types() == ["tool/call", "tool/result"]


@pytest.mark.contract("K14", "I12")
async def test_a_host_that_is_cancelled_while_asking_leaves_a_pair(desk):
    desk.ask()
    asking = anyio.Event()

    @desk.host.on("approval/request")
    async def hangs(_request, _next):
        asking.set()
        await anyio.sleep_forever()

    async def execute():
        await desk.call()
        desk.seen.append("went on")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(execute)
        await asking.wait()
        tasks.cancel_scope.cancel()
    assert desk.seen == []
    assert await desk.outcomes() == ["cancelled"]
    assert await desk.types() == ["tool/call", "approval/asked", "approval/decided", "tool/result"]


@pytest.mark.contract("K14", "K15", "I12")
@pytest.mark.parametrize("late", ["allowed-once", LookupError("too late")], ids=str)
async def test_what_a_listener_says_after_its_host_was_cancelled_is_not_on_record(desk, late):
    desk.ask()
    asking = anyio.Event()

    @desk.host.on("approval/request")
    async def goes_on(_request, _next):
        try:
            asking.set()
            await anyio.sleep_forever()
        finally:
            if isinstance(late, Exception):
                raise late
            return late  # noqa: B012 - swallowing the cancellation is the point

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.call)
        await asking.wait()
        tasks.cancel_scope.cancel()
    assert desk.seen == []
    assert await desk.outcomes() == ["cancelled"]


@pytest.mark.contract("K14", "K15", "I12")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("swallows", [False, True], ids=["hangs", "swallows"])
async def test_a_task_that_asyncio_cancels_while_asking_leaves_a_pair(desk, swallows):
    desk.ask()
    asking = anyio.Event()

    @desk.host.on("approval/request")
    async def hangs(_request, _next):
        asking.set()
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            if not swallows:
                raise
        return "allowed-once"

    task = asyncio.ensure_future(desk.call())
    await asking.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await desk.outcomes() == ["cancelled"]


@pytest.mark.contract("K14", "I12")
@pytest.mark.parametrize("event", ["approval/asked", "approval/decided"])
async def test_a_host_that_is_cancelled_while_it_records_leaves_a_pair(desk, put, monkeypatch, event):
    desk.answer("allowed-once")
    session = desk.agent.session
    append, writing, released = session.append, anyio.Event(), anyio.Event()

    async def slow(type, data, *, cites=None):
        if type == event:
            writing.set()
            await released.wait()
        return await append(type, data, cites=cites)

    monkeypatch.setattr(session, "append", slow)

    async def ask():
        await put()
        desk.seen.append("went on")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await writing.wait()
        tasks.cancel_scope.cancel()
        released.set()
    assert "went on" not in desk.seen
    assert await desk.outcomes() == (["cancelled"] if event == "approval/asked" else ["allowed-once"])


@pytest.mark.contract("K14")
async def test_a_cancelled_host_whose_log_fails_too_is_told_in_its_log(desk, put, monkeypatch, caplog):
    asking = anyio.Event()

    @desk.host.on("approval/request")
    async def hangs(_request, _next):
        asking.set()
        await anyio.sleep_forever()

    desk.refuse(monkeypatch, "approval/decided")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(put)
        await asking.wait()
        tasks.cancel_scope.cancel()
    assert 'the record of the approval of tool "delete" has no end' in caplog.text
    assert "no space left" in caplog.text


@pytest.mark.contract("K14")
async def test_a_record_that_fails_while_its_writer_is_cancelled_is_told_in_the_hosts_log(desk, monkeypatch, caplog):
    writing, released = anyio.Event(), anyio.Event()

    async def failing(*_args, **_options):
        writing.set()
        await released.wait()
        raise OSError("no space left")

    monkeypatch.setattr(desk.agent.session, "append", failing)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.host.approvals.set_policy, desk.agent, "never")
        await writing.wait()
        tasks.cancel_scope.cancel()
        released.set()
    assert "a record failed whose writer was cancelled" in caplog.text
    assert "no space left" in caplog.text
    assert await desk.host.approvals.policy(desk.agent) == "ask"


@pytest.mark.contract("K14", "K15")
async def test_without_a_log_it_is_asked_all_the_same(anyio_backend):
    async with ptc.Host() as host:
        agent, asked = host.agent("clerk"), []

        @host.on("approval/request")
        async def answer(question, _next):
            asked.append(question)
            return "allowed-once"

        with agent.open_turn():
            assert await host.approvals.request(request(agent)) == "allowed-once"
            await host.approvals.set_policy(agent, "never")
            assert await host.approvals.request(request(agent)) == "rejected"
            await host.approvals.set_policy(agent, "ask")
            assert await host.approvals.request(request(agent)) == "allowed-once"
    assert len(asked) == 2


# Calls of a program -------------------------------------------------------------------------------------------------

PROGRAM = """
for id in (1, 2):
    try:
        print(await tools.delete(id=id))
    except ToolCallError as error:
        print(error)
"""


@pytest.mark.contract("K14", "C19", "C20", "I12")
async def test_a_call_of_a_program_is_asked_about_by_its_own_id(desk):
    answers = iter(["allowed-once", "rejected"])
    desk.ask()

    @desk.host.on("approval/request")
    async def answer(asked, _next):
        desk.seen.append(asked.call_id)
        return next(answers)

    desk.host.set_executor(desk.agent, ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
    result = await desk.agent.run_code(PROGRAM)
    assert not result.is_error
    assert result.value == {"logs": ["True", 'the user rejected tool "delete"']}
    root = (await desk.events("tool/call"))[0].data["callId"]
    assert desk.seen == [f"{root}:ptc:1", "deleted 1", f"{root}:ptc:2"]
    assert await desk.outcomes() == ["allowed-once", "rejected"]
    assert await desk.types() == [
        "tool/call",
        *["tool/ptc-dispatch-start", "approval/asked", "approval/decided", "tool/ptc-dispatch"] * 2,
        "tool/result",
    ]
    assert [event.data["callId"] for event in await desk.events("approval/asked")] == [f"{root}:ptc:1", f"{root}:ptc:2"]
    settled = [event.data.get("decision") for event in await desk.events("tool/ptc-dispatch")]
    assert [decision["approval"] for decision in settled] == ["allowed-once", "rejected"]


# The policy ---------------------------------------------------------------------------------------------------------


@pytest.mark.contract("K16")
async def test_a_policy_that_is_set_already_changes_nothing(desk):
    await desk.host.approvals.set_policy(desk.agent, "ask")
    assert await desk.events() == []
    await desk.host.approvals.set_policy(desk.agent, "never")
    await desk.host.approvals.set_policy(desk.agent, "never", source="again")
    assert await desk.types() == ["approval/policy"]
    assert len(desk.agent.take_notices()) == 1


@pytest.mark.contract("K16", "I12", "I16")
async def test_a_change_is_recorded_and_the_model_told_after_its_next_batch(desk, kit):
    approvals = desk.host.approvals
    assert await approvals.policy(desk.agent) == "ask"
    await approvals.set_policy(desk.agent, "never", source="the operator")
    await approvals.set_policy(desk.agent, "ask")
    assert await approvals.policy(desk.agent) == "ask"
    assert [event.data for event in await desk.events("approval/policy")] == [
        {"policy": "never", "source": "the operator"},
        {"policy": "ask"},
    ]
    batch = await desk.agent.execute([ptc.ToolCall(name="delete", arguments={"id": 1})])
    first, second = kit.texts(batch)
    assert '"never"' in first
    assert '"ask"' in second
    assert {message.source["plugin"] for message in batch.additional_contexts} == {"approval"}
    assert {message.role for message in batch.additional_contexts} == {"user"}
    again = await desk.agent.execute([ptc.ToolCall(name="delete", arguments={"id": 1})])
    assert again.additional_contexts == ()


@pytest.mark.contract("K16", "I16")
async def test_notices_come_behind_the_messages_of_calls_and_outlast_a_failed_batch(desk, kit, monkeypatch):
    @desk.host.on("tools/post-execute")
    async def adds(_call, _result, _next):
        return ptc.Accept(additional_contexts=[kit.context("of the call")])

    await desk.host.approvals.set_policy(desk.agent, "never")
    with monkeypatch.context() as patch:
        desk.refuse(patch, "tool/result")
        with pytest.raises(ptc.ToolBatchExecutionError):
            await desk.call()
    batch = await desk.agent.execute([ptc.ToolCall(name="delete", arguments={"id": 1})])
    assert kit.texts(batch)[0] == "of the call"
    assert '"never"' in kit.texts(batch)[1]
    assert len(batch.additional_contexts) == 2


@pytest.mark.contract("K16")
@pytest.mark.parametrize("policy", ["always", "", None, 1, ["ask"], "Ask"])
async def test_an_invalid_policy_raises_before_anything_is_recorded(desk, policy):
    with pytest.raises(ValueError, match='an approval policy is "ask" or "never", not '):
        await desk.host.approvals.set_policy(desk.agent, policy)
    with pytest.raises(TypeError, match="source must be a string"):
        await desk.host.approvals.set_policy(desk.agent, "never", source=5)
    assert await desk.events() == []
    assert desk.agent.take_notices() == ()
    assert await desk.host.approvals.policy(desk.agent) == "ask"


@pytest.mark.contract("K16")
async def test_a_change_that_cannot_be_recorded_is_not_in_force(desk, monkeypatch):
    desk.refuse(monkeypatch, "approval/policy")
    with pytest.raises(OSError, match="no space left"):
        await desk.host.approvals.set_policy(desk.agent, "never")
    assert await desk.host.approvals.policy(desk.agent) == "ask"
    assert desk.agent.take_notices() == ()


@pytest.mark.contract("K16")
async def test_a_change_is_made_whole_when_its_maker_is_cancelled(desk, monkeypatch):
    append, writing, released = desk.agent.session.append, anyio.Event(), anyio.Event()

    async def slow(*args, **options):
        writing.set()
        await released.wait()
        return await append(*args, **options)

    monkeypatch.setattr(desk.agent.session, "append", slow)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.host.approvals.set_policy, desk.agent, "never")
        await writing.wait()
        tasks.cancel_scope.cancel()
        released.set()
    assert await desk.host.approvals.policy(desk.agent) == "never"
    assert len(desk.agent.take_notices()) == 1


@pytest.mark.contract("K16")
async def test_two_changes_at_once_are_made_one_after_the_other(desk):
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(desk.host.approvals.set_policy, desk.agent, "never")
    assert await desk.types() == ["approval/policy"]
    assert len(desk.agent.take_notices()) == 1


@pytest.mark.contract("K16", "I12")
async def test_the_policy_is_the_agents_own_and_goes_on_with_its_session(desk):
    other = desk.host.agent("other")
    await desk.host.approvals.set_policy(desk.agent, "never")
    assert await desk.host.approvals.policy(other) == "ask"
    async with ptc.Host(log=desk.log) as host:
        again = host.agent("clerk", session=desk.agent.session.id)
        assert await host.approvals.policy(again) == "never"
        await host.approvals.set_policy(again, "never")
        assert len(await again.session.events()) == 1


@pytest.mark.contract("I12", "K15")
async def test_what_the_session_says_last_counts_and_what_nobody_knows_is_refused(desk, put):
    desk.answer("allowed-once")
    assert await put() == "allowed-once"
    await desk.agent.session.append("approval/policy", {"policy": "never"})
    assert await put() == "rejected"
    await desk.agent.session.append("approval/policy", {"policy": "of a newer version"})
    with pytest.raises(ValueError, match="an approval policy is"):
        await put()
    assert await desk.outcomes() == ["allowed-once", "rejected", "cancelled"]
    await desk.host.approvals.set_policy(desk.agent, "ask")
    assert await put() == "allowed-once"


@pytest.mark.contract("K15")
def test_the_event_has_its_name():
    assert APPROVAL_REQUEST == "approval/request"


# A service of the host's own ----------------------------------------------------------------------------------------


class Desk:
    """A service that says yes, or whatever it is told to say."""

    def __init__(self, answer="allowed-once"):
        self.answer = answer
        self.asked = []

    async def request(self, request):
        self.asked.append(request.tool_name)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def asked_of(service, tmp_path, policy="ask"):
    """Has a call ask in a host with this service; returns what came of the call, and what is on record."""

    async def body(_arguments):
        return "deleted"

    async with ptc.Host(log=tmp_path / "log.db", approval=service) as host:
        delete = ptc.define_tool(
            name="delete", description="Delete.", parameters={}, output={"type": "string"}, execute=body
        )
        host.tools.register(delete)

        @host.on("tools/pre-execute")
        async def ask(_call, _next):
            return ptc.Ask("it deletes")

        agent = host.agent("a")
        await host.approvals.set_policy(agent, policy)
        batch = await agent.execute([ptc.ToolCall(name="delete")])
        events = await agent.session.events()
    return batch.results[0].result, [event.data["outcome"] for event in events if event.type == "approval/decided"]


@pytest.mark.contract("K14", "K15")
async def test_a_service_of_the_hosts_own_answers_what_no_listener_has_and_its_answer_is_on_record(tmp_path):
    service = Desk()
    result, decided = await asked_of(service, tmp_path)
    assert (result.is_error, decided, service.asked) == (False, ["allowed-once"], ["delete"])


@pytest.mark.contract("K15", "K16")
async def test_the_policy_never_holds_for_a_service_of_the_hosts_own(tmp_path):
    service = Desk()
    result, decided = await asked_of(service, tmp_path, "never")
    assert (result.is_error, decided, service.asked) == (True, ["rejected"], [])


@pytest.mark.contract("K15")
@pytest.mark.parametrize("answer", ["perhaps", 5, OSError("the line is dead")])
async def test_a_service_that_fails_or_answers_nonsense_has_not_answered(tmp_path, answer, caplog):
    result, decided = await asked_of(Desk(answer), tmp_path)
    assert (result.is_error, decided) == (True, ["unavailable"])
    assert "nobody has answered for tool" in caplog.text
