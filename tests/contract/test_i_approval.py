"""Group I: approvals and permissions on record, and how an auditor reads them (contract I12)."""

from __future__ import annotations

import json

import ptc
import pytest
from ptc.runtime.log import LogUnavailableError, SessionInfo, SqliteLogReader, StoredEvent
from ptc.runtime.log.events import ApprovalAsked, ApprovalDecided, ApprovalPolicySet, PermissionPresetSet, read_event
from ptc.runtime.log.reading import Approval, read_session

INFO = SessionInfo(id="s", agent="support", opened_us=0, labels={}, events=0, last_us=0)
CALL = {"turn": 1, "step": 1, "callId": "c1", "name": "run_code", "arguments": "{}"}
SUB = {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "c1:ptc:1", "name": "delete", "arguments": {}}


def read(*script):
    """Reads a session of (type, data), 1 ms apart."""
    return read_session(
        INFO, [StoredEvent("s", seq, kind, 1000 * seq, 1000 * seq, data) for seq, (kind, data) in enumerate(script)]
    )


def asked(id="q1", call_id: str | None = "c1", **more):
    about = {} if call_id is None else {"callId": call_id}
    return ("approval/asked", {"id": id, "toolName": "delete", **about, **more})


def decided(id="q1", outcome="rejected"):
    return ("approval/decided", {"id": id, "outcome": outcome})


# Written ------------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.contract("I12")
async def test_the_payloads_have_these_keys_and_no_others(desk):
    desk.ask("deletes for good", display_reason={"en": "Really?"})
    desk.answer("rejected")
    await desk.call()
    call, question, answer, _result = await desk.events()
    assert question.data == {
        "id": question.data["id"],
        "toolName": "delete",
        "callId": call.data["callId"],
        "reason": "deletes for good",
    }
    assert question.data["id"].startswith("approval_")
    assert answer.data == {"id": question.data["id"], "outcome": "rejected"}
    assert answer.cites == question.seq


@pytest.mark.anyio
@pytest.mark.contract("I12", "C19")
async def test_what_the_question_does_not_have_is_absent(desk):
    desk.ask(None)
    with desk.agent.open_turn():
        await desk.host.approvals.request(ptc.ApprovalRequest(agent=desk.agent, tool_name="t", signal=ptc.Signal()))
    await desk.call()
    first, second = await desk.events("approval/asked")
    assert set(first.data) == {"id", "toolName"}
    assert set(second.data) == {"id", "toolName", "callId"}


@pytest.mark.anyio
@pytest.mark.contract("I12")
async def test_every_question_has_an_id_of_its_own(desk):
    desk.ask()
    desk.answer("allowed-once")
    for _ in range(5):
        await desk.call()
    assert await desk.outcomes() == ["allowed-once"] * 5
    assert len({event.data["id"] for event in await desk.events("approval/asked")}) == 5


@pytest.mark.anyio
@pytest.mark.contract("I12")
async def test_they_are_in_the_log_only(desk, kit):
    desk.ask("deletes for good")
    desk.answer("rejected")
    batch = await desk.agent.execute([ptc.ToolCall(name="delete", arguments={"id": 1})])
    assert batch.additional_contexts == ()
    assert kit.text(batch.results[0].result) == 'Error: the user rejected tool "delete"'


# Read ---------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("I12")
def test_payloads_read_back_with_their_wire_spellings():
    def event(kind, data):
        return read_event(StoredEvent("s", 0, kind, 0, 0, data))

    question = {"id": "q", "toolName": "t", "callId": "c", "reason": "r", "later": 1}
    assert event("approval/asked", question) == ApprovalAsked(id="q", tool_name="t", call_id="c", reason="r")
    assert event("approval/asked", {"id": "q", "toolName": "t"}) == ApprovalAsked(id="q", tool_name="t")
    assert event("approval/decided", {"id": "q", "outcome": "cancelled"}) == ApprovalDecided(
        id="q", outcome="cancelled"
    )
    policy = event("approval/policy", {"policy": "never", "source": "x"})
    assert policy == ApprovalPolicySet(policy="never", source="x")
    assert event("permission/preset", {"preset": "p"}) == PermissionPresetSet(preset="p")
    for kind, data in [
        ("approval/decided", {"id": "q", "outcome": "maybe"}),
        ("approval/policy", {"policy": "always"}),
        ("approval/asked", {"id": "q"}),
        ("permission/preset", {}),
        ("permission/sandbox", {"mode": 5}),
    ]:
        with pytest.raises(LogUnavailableError, match=kind):
            event(kind, data)


@pytest.mark.contract("I12", "I8")
def test_questions_are_read_beside_the_calls_that_they_are_about():
    reading = read(
        ("tool/call", CALL),
        asked("q0", reason="runs a program"),
        decided("q0", "allowed-once"),
        ("tool/ptc-dispatch-start", SUB),
        asked("q1", "c1:ptc:1", reason="deletes"),
        asked("q2", "c1:ptc:1"),
        ("approval/policy", {"policy": "never"}),
        decided("q1"),
        asked("q3", None),
        decided("q3"),
    )
    assert reading.violations == []
    (run,) = reading.runs
    assert run.call is not None
    assert run.call.approvals == [
        Approval(reason="runs a program", outcome="allowed-once", waited_ms=1.0, seq=1, decided_seq=2)
    ]
    (sub,) = run.calls
    assert sub.approvals == [
        Approval(reason="deletes", outcome="rejected", waited_ms=3.0, seq=4, decided_seq=7),
        Approval(reason=None, outcome=None, waited_ms=None, seq=5, decided_seq=None),
    ]


@pytest.mark.contract("I12", "I8")
def test_of_calls_that_share_an_id_the_question_is_about_the_latest():
    reading = read(("tool/call", CALL), ("tool/call", CALL), asked(), decided())
    first, second = reading.runs
    assert first.call is not None
    assert second.call is not None
    assert (len(first.call.approvals), len(second.call.approvals)) == (0, 1)


@pytest.mark.contract("I12", "I8")
@pytest.mark.parametrize(
    ("script", "seq", "problem"),
    [
        ([asked(call_id="c9")], 1, "the question is about no call that was recorded"),
        ([asked(), asked()], 2, "the question has been put already"),
        ([decided()], 1, "the answer is to no question that was recorded"),
        ([asked(), decided(), decided(outcome="allowed-once")], 3, "the question has an answer already"),
    ],
)
def test_questions_and_answers_that_do_not_pair_are_reported(script, seq, problem):
    reading = read(("tool/call", CALL), *script)
    assert [(violation.seq, violation.problem) for violation in reading.violations] == [(seq, problem)]
    (run,) = reading.runs
    assert run.call is not None
    assert [approval.outcome for approval in run.call.approvals] in ([], [None], ["rejected"])


@pytest.mark.anyio
@pytest.mark.contract("I12", "K19")
async def test_an_auditor_reads_what_a_host_recorded(desk):
    presets = ptc.PermissionPresets(desk.host.approvals)
    desk.ask("deletes for good")
    desk.answer("rejected")
    await presets.set(desk.agent, "danger-full-access")
    await presets.set(desk.agent, "workspace-write")
    await desk.call()
    with SqliteLogReader(desk.log) as reader:
        (session,) = reader.sessions()
        reading = read_session(session, reader.events(session.id))
    assert reading.violations == []
    (run,) = reading.runs
    assert run.outcome == "denied"
    assert run.call is not None
    (approval,) = run.call.approvals
    assert (approval.reason, approval.outcome) == ("deletes for good", "rejected")
    assert approval.waited_ms is not None
    assert approval.waited_ms >= 0
    assert json.loads(str(run.call.arguments)) == {"id": 1}
