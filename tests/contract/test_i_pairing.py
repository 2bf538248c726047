"""Group I: sub-calls are paired by their ids, and what cannot be paired is reported."""

from __future__ import annotations

import json

import pytest
from ptc.runtime.log import SessionInfo, StoredEvent
from ptc.runtime.log.reading import Run, SessionReading, read_session

INFO = SessionInfo(id="s", agent="support", opened_us=0, labels={}, events=0, last_us=0)


class Script:
    """A session as a list of events, 1 ms apart."""

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []

    def add(self, kind: str, data: dict, cites: int | None = None, mono_us: int | None = None) -> int:
        seq = len(self.events)
        mono = 1000 * seq if mono_us is None else mono_us
        self.events.append(StoredEvent("s", seq, kind, 10_000_000 + 1000 * seq, mono, data, cites))
        return seq

    def call(self, call_id: str = "c1", code: str = "pass") -> int:
        arguments = json.dumps({"code": code, "description": "what for"})
        data = {"turn": 1, "step": 1, "callId": call_id, "name": "run_code", "arguments": arguments}
        return self.add("tool/call", data)

    def result(self, cites: int | None, call_id: str = "c1", is_error: bool = False, **more) -> int:
        message = {"callId": call_id, "isError": is_error, "content": [{"type": "text", "text": "done"}]}
        return self.add("tool/result", {"turn": 1, "step": 1, "message": message, **more}, cites)

    def start(self, sub: str, parent: str = "c1", root: str = "c1", name: str = "search", **more) -> int:
        data = {"rootCallId": root, "parentCallId": parent, "subCallId": sub, "name": name, "arguments": {"q": 1}}
        return self.add("tool/ptc-dispatch-start", {**data, **more})

    def settle(self, sub: str, parent: str = "c1", root: str = "c1", name: str = "search", **more) -> int:
        data = {"rootCallId": root, "parentCallId": parent, "subCallId": sub, "name": name, "arguments": {"q": 1}}
        return self.add("tool/ptc-dispatch", {**data, "isError": False, "content": [], **more})

    def read(self) -> SessionReading:
        return read_session(INFO, self.events)

    def only_run(self) -> Run:
        reading = self.read()
        assert reading.violations == []
        (run,) = reading.runs
        return run


@pytest.mark.contract("I8", "I9")
def test_sub_calls_are_paired_by_id_and_not_by_position() -> None:
    script = Script()
    call = script.call(code="a\nb")
    for n in (1, 2, 3):
        script.start(f"c1:ptc:{n}", line=n)
    for n in (2, 3, 1):
        script.settle(f"c1:ptc:{n}", content=[{"type": "text", "text": str(n)}])
    script.result(call)
    run = script.only_run()
    assert (run.id, run.program, run.description, run.outcome) == ("s/1", "a\nb", "what for", "ok")
    assert [sub.call_id for sub in run.calls] == ["c1:ptc:1", "c1:ptc:2", "c1:ptc:3"]
    assert [sub.content for sub in run.calls] == [[{"type": "text", "text": str(n)}] for n in (1, 2, 3)]
    assert [sub.duration_ms for sub in run.calls] == [5.0, 2.0, 2.0]
    assert [sub.line for sub in run.calls] == [1, 2, 3]
    assert run.call is not None
    assert run.call.duration_ms == 7.0


@pytest.mark.contract("I7")
def test_durations_have_microseconds_and_survive_a_change_of_the_wall_clock() -> None:
    script = Script()
    call = script.call()
    script.start("c1:ptc:1")
    script.settle("c1:ptc:1")
    script.result(call)
    wall_set_back = [
        StoredEvent(
            "s", event.seq, event.type, 10_000_000 - event.seq, 7_000 + 123 * event.seq, event.data, event.cites
        )
        for event in script.events
    ]
    (run,) = read_session(INFO, wall_set_back).runs
    assert [sub.duration_ms for sub in run.calls] == [0.123]


@pytest.mark.contract("I7")
def test_a_duration_over_a_restart_of_the_machine_comes_from_the_wall_clock() -> None:
    script = Script()
    call = script.call()
    script.add("tool/result", {"turn": 1, "step": 1, "message": {"isError": False, "content": []}}, call, mono_us=-5)
    run = script.only_run()
    assert run.call is not None
    assert run.call.duration_ms == 1.0


@pytest.mark.contract("I14")
def test_a_start_without_a_settle_is_outcome_unknown() -> None:
    script = Script()
    script.call()
    script.start("c1:ptc:1")
    run = script.only_run()
    (sub,) = run.calls
    assert (run.outcome, sub.outcome) == ("outcome unknown", "outcome unknown")
    assert (sub.duration_ms, sub.content, sub.settled_seq) == (None, None, None)


@pytest.mark.contract("I6")
@pytest.mark.parametrize(
    ("settle", "outcome"),
    [
        ({"isError": False}, "ok"),
        ({"isError": True}, "failed"),
        ({"isError": True, "error": {"name": "ToolArgsError", "code": "INVALID_ARGS"}}, "failed"),
        ({"isError": True, "error": {"name": "AbortError", "code": "ABORTED"}}, "cancelled"),
        ({"isError": True, "error": {"name": "AbortError", "code": "ABORTED_BEFORE_DISPATCH"}}, "cancelled"),
        ({"isError": True, "error": {"name": "ApprovalError", "code": "APPROVAL_REJECTED"}}, "failed"),
        (
            {
                "isError": True,
                "error": {"name": "ApprovalError", "code": "APPROVAL_REJECTED"},
                "decision": {"outcome": "deny", "by": "l", "approval": "rejected"},
            },
            "denied",
        ),
        ({"isError": True, "decision": {"outcome": "deny", "by": "guard g"}}, "denied"),
        ({"isError": True, "decision": {"outcome": "block", "by": "l"}}, "failed"),
        ({"isError": False, "decision": {"outcome": "allow"}}, "ok"),
    ],
)
def test_outcomes(settle: dict, outcome: str) -> None:
    script = Script()
    call = script.call()
    script.start("c1:ptc:1")
    script.settle("c1:ptc:1", **settle)
    script.result(call, is_error=settle["isError"], **{k: v for k, v in settle.items() if k != "isError"})
    run = script.only_run()
    assert [run.outcome, run.calls[0].outcome] == [outcome, outcome]


@pytest.mark.contract("I8")
def test_nested_parents_belong_to_the_same_root() -> None:
    script = Script()
    script.call()
    script.start("c1:ptc:1")
    script.start("c1:ptc:1:ptc:1", parent="c1:ptc:1")
    run = script.only_run()
    assert [sub.parent_call_id for sub in run.calls] == ["c1", "c1:ptc:1"]


def _twice(script: Script) -> int:
    script.start("c1:ptc:1")
    return script.start("c1:ptc:1")


def _settle_without_start(script: Script) -> int:
    return script.settle("c1:ptc:9")


def _settled_twice(script: Script) -> int:
    script.start("c1:ptc:1")
    script.settle("c1:ptc:1")
    return script.settle("c1:ptc:1", isError=True)


def _another_root(script: Script) -> int:
    script.call("c2")
    script.start("c1:ptc:1")
    return script.settle("c1:ptc:1", root="c2", parent="c2")


def _unknown_parent(script: Script) -> int:
    return script.start("c1:ptc:1:ptc:1", parent="c1:ptc:1")


def _parent_of_another_root(script: Script) -> int:
    script.call("c2")
    script.start("c2:ptc:1", root="c2", parent="c2")
    return script.start("x", parent="c2:ptc:1")


def _empty_id(script: Script) -> int:
    return script.start("")


def _empty_root(script: Script) -> int:
    return script.start("x", root="", parent="")


def _own_parent(script: Script) -> int:
    return script.start("c1")


def _other_name(script: Script) -> int:
    script.start("c1:ptc:1")
    return script.settle("c1:ptc:1", name="delete")


def _other_arguments(script: Script) -> int:
    script.start("c1:ptc:1")
    return script.settle("c1:ptc:1", arguments={"q": True})


def _second_result(script: Script) -> int:
    script.result(0)
    return script.result(0, is_error=True)


def _result_of_nothing(script: Script) -> int:
    return script.result(None, call_id="c7")


def _result_of_another_call(script: Script) -> int:
    script.call("c2")
    return script.result(0, call_id="c2")


@pytest.mark.contract("I8")
@pytest.mark.parametrize(
    "write",
    [
        _twice,
        _settle_without_start,
        _settled_twice,
        _another_root,
        _unknown_parent,
        _parent_of_another_root,
        _empty_id,
        _empty_root,
        _own_parent,
        _other_name,
        _other_arguments,
        _second_result,
        _result_of_nothing,
        _result_of_another_call,
    ],
)
def test_what_cannot_be_paired_is_reported_and_not_indexed(write) -> None:
    good, bad = Script(), Script()
    good.call()
    bad.call()
    wrong = write(bad)
    # The same story without the wrong event reads the same.
    without = [event for event in bad.events if event.seq != wrong]
    reading = bad.read()
    assert [violation.seq for violation in reading.violations] == [wrong]
    assert reading.violations[0].problem
    assert read_session(INFO, without).runs == reading.runs


@pytest.mark.contract("I8")
def test_a_provider_may_use_a_call_id_again() -> None:
    script = Script()
    first = script.call("c1")
    script.start("c1:ptc:1")
    script.settle("c1:ptc:1")
    script.result(first)
    second = script.call("c1")
    script.start("other", parent="c1", root="c1")
    script.result(second, is_error=True)
    reading = script.read()
    assert reading.violations == []
    assert [(run.id, run.outcome, len(run.calls)) for run in reading.runs] == [("s/1", "ok", 1), ("s/2", "failed", 1)]


@pytest.mark.contract("I8")
def test_sub_calls_without_a_recorded_root_are_not_lost() -> None:
    script = Script()
    script.start("c1:ptc:1")
    script.settle("c1:ptc:1")
    run = script.only_run()
    assert (run.call, run.root_call_id, run.outcome) == (None, "c1", "outcome unknown")
    assert [sub.outcome for sub in run.calls] == ["ok"]
    assert run.started_us == 10_000_000


@pytest.mark.contract("I3")
@pytest.mark.parametrize("arguments", ["", "{", "[1]", '{"code": 3}', "[" * 100_000])
def test_arguments_that_are_no_program_do_not_hide_the_run(arguments: str) -> None:
    script = Script()
    script.add("tool/call", {"turn": 1, "step": 1, "callId": "c1", "name": "run_code", "arguments": arguments})
    run = script.only_run()
    assert run.program is None
    assert run.call is not None
    assert run.call.arguments == arguments


def _job(script: Script, job_id: str = "build-1", **more) -> int:
    return script.add("job/started", {"jobId": job_id, "kind": "build", "label": "docs", **more})


def _job_end(script: Script, cites: int | None, job_id: str = "build-1", status: str = "completed", **more) -> int:
    return script.add("job/settled", {"jobId": job_id, "status": status, **more}, cites)


@pytest.mark.contract("I8", "J14")
def test_jobs_stand_beside_the_calls_that_started_them_and_end_when_they_do() -> None:
    script = Script()
    call = script.call()
    script.start("c1:ptc:1")
    first = _job(script, callId="c1:ptc:1", rootCallId="c1")
    second = _job(script, "build-2", callId="c1:ptc:1", rootCallId="c1")
    script.settle("c1:ptc:1")
    own = _job(script, "build-3", callId="c1", rootCallId="c1")
    script.result(call)
    _job_end(script, second, "build-2", "killed", detail="enough")
    _job_end(script, first)
    run = script.only_run()
    assert run.call is not None
    assert [(job.job_id, job.status, job.seq) for job in run.call.jobs] == [("build-3", None, own)]
    told = [(job.job_id, job.kind, job.label, job.status, job.detail, job.duration_ms) for job in run.calls[0].jobs]
    assert told == [
        ("build-1", "build", "docs", "completed", None, 6.0),
        ("build-2", "build", "docs", "killed", "enough", 4.0),
    ]


@pytest.mark.contract("I8", "J5")
def test_the_id_of_a_job_may_be_used_again_by_another_process() -> None:
    script = Script()
    for _ in range(2):
        call = script.call()
        job = _job(script, callId="c1", rootCallId="c1")
        script.result(call)
        _job_end(script, job, status="completed" if call == 0 else "failed")
    reading = script.read()
    assert reading.violations == []
    assert [[job.status for job in run.call.jobs] for run in reading.runs if run.call] == [["completed"], ["failed"]]


@pytest.mark.contract("I8")
def test_a_job_of_no_call_of_the_session_is_told_of_all_the_same() -> None:
    script = Script()
    script.call()
    _job(script)
    _job(script, "build-2", callId="of another session")
    reading = script.read()
    assert reading.violations == []
    assert [(job.job_id, job.call_id) for job in reading.jobs] == [
        ("build-1", None),
        ("build-2", "of another session"),
    ]
    assert [list(run.call.jobs) for run in reading.runs if run.call] == [[]]


def _job_without_id(script: Script) -> int:
    return _job(script, "", callId="c1")


def _job_end_of_nothing(script: Script) -> int:
    return _job_end(script, 0)


def _job_end_without_citing(script: Script) -> int:
    _job(script, callId="c1")
    return _job_end(script, None)


def _job_ended_twice(script: Script) -> int:
    job = _job(script, callId="c1")
    _job_end(script, job)
    return _job_end(script, job, status="failed")


def _end_of_another_job(script: Script) -> int:
    return _job_end(script, _job(script, callId="c1"), "build-9")


@pytest.mark.contract("I8")
@pytest.mark.parametrize(
    "write",
    [_job_without_id, _job_end_of_nothing, _job_end_without_citing, _job_ended_twice, _end_of_another_job],
)
def test_jobs_that_do_not_pair_are_reported_and_not_indexed(write) -> None:
    script = Script()
    script.call()
    wrong = write(script)
    reading = script.read()
    assert [violation.seq for violation in reading.violations] == [wrong]
    assert reading.violations[0].problem
    assert read_session(INFO, script.events[:-1]).runs == reading.runs


@pytest.mark.contract("I12")
def test_policies_that_were_set_and_questions_about_no_call_are_told() -> None:
    script = Script()
    script.add("permission/preset", {"preset": "read-only"})
    script.add("permission/sandbox", {"mode": "read-only", "source": "op"})
    script.call()
    script.add("approval/policy", {"policy": "never"})
    script.add("approval/asked", {"id": "q", "toolName": "deploy", "reason": "it is late"})
    script.add("approval/decided", {"id": "q", "outcome": "rejected", "detail": "by ann"})
    reading = script.read()
    assert reading.violations == []
    assert [(one.what, one.value, one.source, one.seq) for one in reading.settings] == [
        ("preset", "read-only", None, 0),
        ("sandbox", "read-only", "op", 1),
        ("approvals", "never", None, 3),
    ]
    (question,) = reading.questions
    assert (question.tool_name, question.approval.reason) == ("deploy", "it is late")
    assert (question.approval.outcome, question.approval.detail) == ("rejected", "by ann")
