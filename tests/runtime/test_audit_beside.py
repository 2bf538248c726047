"""What stands beside calls: jobs, questions, policies; how an auditor sees, finds and follows calls by them."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.registry import approval_answer
from ptc.runtime.cli.audit_tail import tail
from ptc.runtime.log import Session, SqliteEventStore, SqliteLogReader
from ptc.runtime.log.content_kinds import has_content
from ptc.runtime.log.follow import CallFollower, CallNews, JobNews
from ptc.runtime.log.otel import export_spans
from ptc.runtime.log.query import CallFilter, find_calls
from ptc.runtime.log.reading import Call, read_session

from .audit_logs import all_calls, assert_printable, run

PROGRAM = """\
job = await tools.start_build(target="docs")
print((await tools.job_output(job_id=job["jobId"], wait=True))["text"])
for target in ("broken", "slow", "late"):
    await tools.start_build(target=target)
for number in range(3):
    try:
        await tools.refund(order=number)
    except ToolCallError as error:
        print(error)
await tools.picture()
await tools.long()
await tools.login(password="s3cret of the customer")
await tools.nothing()
"""

ENDS = "\x1b[2J \u202eevil"

KILLED = """
import os, signal, sys, anyio, ptc

async def main():
    async with ptc.Host(log=sys.argv[1]) as host, ptc.Jobs(host) as jobs:
        jobs.install(host.tools)

        @host.tools.register
        @ptc.tool
        async def start_build(target: str, run: ptc.ToolRunContext) -> ptc.JobHandle:
            "Start."
            async def build(job):
                os.kill(os.getpid(), signal.SIGKILL)
            return await jobs.spawn(build, kind="build", label=target, owner=run.agent, call=run.exec)

        await host.agent("doomed").execute([ptc.ToolCall(name="start_build", arguments={"target": "moon"})])
        await anyio.sleep_forever()

anyio.run(main)
"""


def define_tools(host: ptc.Host) -> None:
    @host.tools.register
    @ptc.tool
    async def refund(order: int) -> bool:
        """Refund."""
        return True

    @host.tools.register
    @ptc.tool
    async def login(password: str) -> str:
        """Log in."""
        return "welcome"

    @host.tools.register
    @ptc.tool
    async def long() -> str:
        """Much."""
        return "much " * 2_000

    async def nothing(_arguments: Any, _run: Any) -> Any:
        return None

    def define(name: str, content: list[Any]) -> None:
        host.tools.register(
            ptc.define_tool(
                name=name,
                description=name,
                parameters={},
                output={"type": "json"},
                execute=nothing,
                render=lambda _arguments, _value: content,
            )
        )

    define("picture", [{"type": "image", "data": "AAAA", "mimeType": "image/png"}])
    define("nothing", [])


async def write_log(path: Path, folder: Path) -> None:
    answers: list[Any] = ["allowed-once", approval_answer("rejected", "Ann, by phone"), "unavailable"]
    late = anyio.Event()

    async with ptc.Host(log=path) as host, ptc.Jobs(host) as jobs:
        jobs.install(host.tools)
        ptc.SpillPolicy.install(host, max_inline_bytes=2_000, store=ptc.LocalSpillStore(folder))
        ptc.RedactionPolicy(["password"], argument_key=b"k" * 16).install(host)

        @host.tools.register
        @ptc.tool
        async def start_build(target: str, run: ptc.ToolRunContext) -> ptc.JobHandle:
            """Start a build."""

            async def build(job: ptc.JobContext) -> str:
                if target == "broken":
                    raise RuntimeError(f"no compiler {ENDS}")
                if target == "slow":
                    await anyio.sleep_forever()
                if target == "late":
                    await late.wait()
                return "done"

            return await jobs.spawn(build, kind="build", label=f"the {target}", owner=run.agent, call=run.exec)

        define_tools(host)

        @host.on("tools/pre-execute")
        async def refunds_are_asked(call: Any, go_on: Any) -> Any:
            return ptc.Ask("refunds cost money") if call.name == "refund" else await go_on()

        @host.on("approval/request")
        async def answer(_request: Any, _go_on: Any) -> Any:
            return answers.pop(0)

        agent = host.agent("builder", session="s1", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
        await host.approvals.set_policy(agent, "ask", source="the operator")
        await ptc.PermissionPresets(host.approvals).set(agent, "workspace-write", source="the operator")
        result = await agent.run_code(PROGRAM, description="Builds and refunds")
        assert not result.is_error, result.text
        late.set()
        await anyio.sleep(0.05)
        native = host.agent("native", session="s2")
        await native.execute([ptc.ToolCall(name="start_build", arguments={"target": "docs"})])
        with native.open_turn():
            request = ptc.ApprovalRequest(agent=native, tool_name="deploy", signal=ptc.Signal(), reason="it is late")
            answers.append("cancelled")
            await host.approvals.request(request)
        await jobs.spawn(_at_once, kind="sweep", label="the floor", owner=native)
        await anyio.sleep(0.05)


async def _at_once(_job: Any) -> None:
    return


@functools.cache
def _written() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ptc.db"
        anyio.run(write_log, path, Path(folder) / "spilled")
        killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, check=False)
        assert killed.returncode == -9, killed.stderr

        async def close() -> None:  # moves what the killed host left in the -wal file
            async with SqliteEventStore(path):
                pass

        anyio.run(close)
        return path.read_bytes()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "ptc.db"
    path.write_bytes(_written())
    return path


def reading(log: Path, session: str) -> Any:
    with SqliteLogReader(log) as reader:
        (info,) = [one for one in reader.sessions() if one.id == session]
        return read_session(info, reader.events(session))


# Show and list ------------------------------------------------------------------------------------------------------


@pytest.mark.contract("J14", "I7")
def test_a_job_stands_below_the_call_that_started_it(log: Path) -> None:
    shown = run("show", "s1/1", "--log", str(log), COLUMNS="140")
    assert shown.exit_code == 0, shown.stderr
    assert_printable(shown.stdout)
    lines = shown.stdout.splitlines()
    rows = [at for at, line in enumerate(lines) if "├   job " in line]
    assert [lines[at].split("├   job ")[1].split("  ")[:2] for at in rows] == [
        ["build-1 [build]", "completed"],
        ["build-2 [build]", "failed"],
        ["build-3 [build]", "killed"],
        ["build-4 [build]", "completed"],
    ]
    assert lines[rows[0] - 2].split("├ ")[1].startswith("1 start_build  ok")
    assert lines[rows[0] + 1].endswith("the docs")
    assert lines[rows[1] + 1].endswith("the broken (no compiler \\x1b[2J \\u202eevil)")
    assert lines[rows[2] + 1].endswith("the slow (the host is closing)")
    # What goes on after its run has no end on the run's scale.
    assert "✗" in lines[rows[1]]
    assert "┤" not in lines[rows[2]]


@pytest.mark.contract("J14")
def test_what_belongs_to_no_call_is_told_at_the_end(log: Path) -> None:
    shown = run("show", "s2", "--log", str(log))
    assert shown.exit_code == 0, shown.stderr
    text = shown.stdout
    assert "  job        build-5 [build]  completed after " in text
    assert ": the docs\n" in text
    questions = text.index("questions of this session about no call")
    jobs = text.index("background jobs of this session that no call of it started")
    assert "deploy: cancelled after " in text[questions:jobs]
    assert ": it is late\n" in text[questions:jobs]
    assert "sweep-1 [sweep]  completed after " in text[jobs:]


@pytest.mark.contract("I12")
def test_the_policies_that_stood_come_first(log: Path) -> None:
    shown = run("show", "s1/1", "--log", str(log)).stdout
    stood = [line for line in shown.splitlines() if line.startswith("policy   ")]
    assert [line.split("  event ")[1] for line in stood] == ["0  preset workspace-write"]
    told = json.loads(run("show", "s1/1", "--log", str(log), "--json").stdout)["settings"]
    assert [(one["what"], one["value"]) for one in told] == [("preset", "workspace-write")]


def test_of_a_single_run_only_the_policies_are_told_that_stood_then(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"

    async def write() -> None:
        async with SqliteEventStore(path) as store:
            session = Session(store, agent="a", id="s")
            for number, policy in enumerate(("ask", "never", "ask")):
                await session.append("approval/policy", {"policy": policy, "source": f"op {number}"})
                await session.append("permission/sandbox", {"mode": f"mode {number}"})
                call = {"turn": 1, "step": 1, "callId": f"c{number}", "name": "pay", "arguments": "{}"}
                seq = await session.append("tool/call", call)
                if number == 1:
                    await session.append("permission/sandbox", {"mode": "in between"})
                message: dict[str, Any] = {"callId": f"c{number}", "isError": False, "content": []}
                await session.append("tool/result", {"turn": 1, "step": 1, "message": message}, cites=seq)

    anyio.run(write)

    def told(name: str) -> list[str]:
        shown = run("show", name, "--log", str(path)).stdout
        stood = [line.split("  event ")[1] for line in shown.splitlines() if line.startswith("policy   ")]
        return [line.split("  ", 1)[1] for line in stood]

    assert told("s/1") == ["approvals ask, by op 0", "sandbox mode 0"]
    assert told("s/2") == ["approvals never, by op 1", "sandbox mode 1", "sandbox in between"]
    assert len(told("s")) == 7


@pytest.mark.contract("J14", "I14")
def test_a_job_whose_process_died_has_no_end(log: Path) -> None:
    listed = run("list", "--log", str(log)).stdout
    assert "JOBS" in listed
    (doomed, native, built) = (
        next(line for line in listed.splitlines() if f"  {name}  " in line) for name in ("doomed", "native", "builder")
    )
    assert "1 (1 unknown)" in doomed
    assert " 1  " in native
    assert "4 (1 failed, 1 killed)" in built
    shown = run("show", doomed.split()[0], "--log", str(log)).stdout
    assert "job        build-1 [build]  outcome unknown: moon\n" in shown
    told = json.loads(run("show", doomed.split()[0], "--log", str(log), "--json").stdout)
    ((job,),) = [one["jobs"] for one in told["runs"]]
    assert (job["jobId"], job["label"], job["status"], job["settledSeq"]) == ("build-1", "moon", None, None)
    objects = json.loads(run("list", "--log", str(log), "--json").stdout)["runs"]
    assert [one["jobs"] for one in objects] == [
        {"unknown": 1},
        {"completed": 1},
        {"completed": 2, "failed": 1, "killed": 1},
    ]


# Query --------------------------------------------------------------------------------------------------------------

Judge = Callable[[Call], bool]

QUERIES: list[tuple[dict[str, Any], Judge, int]] = [
    ({"approval": "asked"}, lambda call: bool(call.approvals), 3),
    ({"approval": "answered"}, lambda call: any(one.outcome for one in call.approvals), 3),
    ({"approval": "unanswered"}, lambda call: any(one.outcome is None for one in call.approvals), 0),
    ({"approval": "rejected"}, lambda call: any(one.outcome == "rejected" for one in call.approvals), 1),
    ({"approval": "allowed-once"}, lambda call: any(one.outcome == "allowed-once" for one in call.approvals), 1),
    ({"answered": "Ann"}, lambda call: any("Ann" in (one.detail or "") for one in call.approvals), 1),
    (
        {"answered": "Ann", "approval": "allowed-once"},
        lambda call: any("Ann" in (one.detail or "") and one.outcome == "allowed-once" for one in call.approvals),
        0,
    ),
    ({"approval": "asked", "outcome": "denied"}, lambda call: bool(call.approvals) and call.outcome == "denied", 2),
    ({"job": "any"}, lambda call: bool(call.jobs), 6),
    ({"job": "unknown"}, lambda call: any(job.status is None for job in call.jobs), 1),
    ({"job": "killed"}, lambda call: any(job.status == "killed" for job in call.jobs), 1),
    ({"job": "failed", "tool": "start*"}, lambda call: any(job.status == "failed" for job in call.jobs), 1),
    ({"job": "any", "outcome": "failed"}, lambda call: bool(call.jobs) and call.outcome == "failed", 0),
    ({"content": "image"}, lambda call: has_content(call, "image"), 1),
    ({"content": "text", "tool": "refund"}, lambda call: call.name == "refund" and has_content(call, "text"), 3),
    ({"content": "empty"}, lambda call: has_content(call, "empty"), 1),
    ({"content": "spilled"}, lambda call: has_content(call, "spilled"), 1),
    # The program, the call that was given the password, and a text that was cut through.
    ({"content": "redacted"}, lambda call: has_content(call, "redacted"), 3),
    ({"content": "redaction-failed"}, lambda call: has_content(call, "redaction-failed"), 0),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "judge", "count"), QUERIES, ids=[str(wanted) for wanted, _judge, _count in QUERIES])
def test_calls_are_found_by_what_stands_beside_them(
    log: Path, wanted: dict[str, Any], judge: Judge, count: int
) -> None:
    found = find_calls(log, CallFilter(**wanted), limit=1_000)
    assert (found.more, found.unreadable) == (False, {})
    expected = [(one["session"].id, one["call"].seq) for one in all_calls(log) if judge(one["call"])]
    assert len(expected) == count
    assert [(one.session, one.call.seq) for one in found.calls] == expected


def test_a_found_call_has_the_questions_and_jobs_that_a_reading_of_its_session_gives(log: Path) -> None:
    whole = {(one["session"].id, one["call"].seq): one["call"] for one in all_calls(log)}
    found = find_calls(log, CallFilter(), limit=1_000).calls
    assert len(found) == len(whole)
    for one in found:
        call = whole[one.session, one.call.seq]
        assert (one.call.approvals, one.call.jobs) == (call.approvals, call.jobs)


def test_the_options_and_what_is_printed(log: Path) -> None:
    def printed(*options: str) -> list[str]:
        done = run("query", "--log", str(log), *options)
        assert done.exit_code == 0, done.stderr
        return done.stdout.splitlines()

    (line,) = printed("--answered", "Ann")
    assert "  refund  denied  " in line
    (line,) = printed("--job", "killed")
    assert "  job build-3 killed  " in line
    (line,) = printed("--content", "spilled")
    assert "  long  ok  " in line
    (line,) = printed("--approval", "unanswered")
    assert line == "no call fits"
    (told,) = map(json.loads, printed("--approval", "rejected", "--json"))
    assert [(one["outcome"], one["detail"]) for one in told["approvals"]] == [("rejected", "Ann, by phone")]
    for option in ("--approval", "--job"):
        wrong = run("query", "--log", str(log), option, "maybe")
        assert wrong.exit_code == 2
        assert "it takes one of" in " ".join(wrong.stderr.split())
    for wanted in ({"approval": "maybe"}, {"job": "maybe"}):
        with pytest.raises(ValueError, match=r"there is no state of .* 'maybe'; give one of"):
            CallFilter(**wanted)


def test_calls_of_calls_are_found_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"

    async def write() -> None:
        async with SqliteEventStore(path) as store:
            session = Session(store, agent="a", id="s")
            call = {"turn": 1, "step": 1, "callId": "c1", "name": "run_code", "arguments": "{}"}
            await session.append("tool/call", call)
            parent = "c1"
            for depth in range(3):
                ids = {"rootCallId": "c1", "parentCallId": parent, "subCallId": f"{parent}:ptc:1"}
                data = {**ids, "name": f"at {depth}", "arguments": {}}
                await session.append("tool/ptc-dispatch-start", data)
                parent = f"{parent}:ptc:1"
                if depth == 2:
                    await session.append("tool/ptc-dispatch", {**data, "isError": True, "content": []})

    path.touch()
    with CallFollower(path) as follower:
        anyio.run(write)
        news = [one.found.call.name for one in follower.poll() if isinstance(one, CallNews)]
    assert news == ["run_code", "at 0", "at 1", "at 2", "at 2"]
    found = find_calls(path, CallFilter())
    assert [one.call.name for one in found.calls] == ["at 2", "at 1", "at 0", "run_code"]
    (deepest,) = find_calls(path, CallFilter(outcome="failed")).calls
    assert (deepest.call.name, deepest.call.parent_call_id, deepest.run) == ("at 2", "c1:ptc:1:ptc:1", 1)


@pytest.mark.contract("I15")
def test_a_search_says_of_which_sessions_it_does_not_know_all(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"

    async def write() -> None:
        async with SqliteEventStore(path) as store:
            for name in ("s1", "s2"):
                session = Session(store, agent=f"agent of {name}", id=name)
                call = {"turn": 1, "step": 1, "callId": "c1", "name": "pay", "arguments": "{}"}
                await session.append("tool/call", call)
                await session.append("tool/later", {} if name == "s2" else {"ignorable": True})

    anyio.run(write)
    found = find_calls(path, CallFilter())
    assert [one.session for one in found.calls] == ["s2", "s1"]
    assert list(found.unreadable) == ["s2 event 1"]
    assert "has the type 'tool/later', which this version of ptc does not know" in found.unreadable["s2 event 1"]
    assert find_calls(path, CallFilter(session="s1")).unreadable == {}
    assert find_calls(path, CallFilter(agent="*s1")).unreadable == {}
    done = run("query", "--log", str(path))
    assert (done.exit_code, done.stdout.count("pay")) == (1, 2)
    assert "event 1 of session s2 has the type 'tool/later'" in done.stderr
    with CallFollower(path, since_us=0) as follower:
        assert len(follower.poll()) == 2
        assert [problem[:23] for problem in follower.unreadable] == ["event 1 of session s2 h"]


def test_a_list_of_nothing_that_can_be_read_does_not_say_that_there_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ptc.db"

    async def write() -> None:
        async with SqliteEventStore(path) as store:
            await Session(store, agent="a", id="s").append("tool/later", {})

    anyio.run(write)
    done = run("list", "--log", str(path))
    assert (done.exit_code, done.stdout) == (1, f"{path} has no run that can be read\n")


# Tail and export ----------------------------------------------------------------------------------------------------


@pytest.mark.contract("J14")
def test_jobs_are_followed_as_they_start_and_end(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with CallFollower(log, since_us=0) as follower:
        news = follower.poll()
    jobs = [one for one in news if isinstance(one, JobNews)]
    ends = {(one.session, one.run, one.job.job_id): one.job.status for one in jobs if one.happened == "end"}
    assert ends == {
        ("s1", 1, "build-1"): "completed",
        ("s1", 1, "build-2"): "failed",
        ("s1", 1, "build-3"): "killed",
        ("s1", 1, "build-4"): "completed",
        ("s2", 1, "build-5"): "completed",
        ("s2", None, "sweep-1"): "completed",
    }
    starts = [one for one in jobs if one.happened == "start"]
    assert [one.job.status for one in starts] == [None] * 7
    assert {one.run for one in starts if one.agent == "doomed"} == {1}

    def told(**wanted: Any) -> list[str]:
        def stop(_seconds: float) -> None:
            raise KeyboardInterrupt

        tail(log, CallFilter(since_us=0, **wanted), json=False, say=pytest.fail, pause=stop)
        printed = capsys.readouterr().out
        assert_printable(printed)
        return printed.splitlines()

    lines = [line for line in told(session="s1") if "[build]" in line]
    assert any(line.endswith("  s1/1    > build-1 [build]  started: the docs") for line in lines)
    assert any("  < build-3 [build]  killed after " in line for line in lines)
    assert len(lines) == 8
    assert [line for line in told(tool="refund", agent="builder") if "[build]" in line] == []
    assert len(told(approval="rejected")) == 1
    assert len(told(job="killed")) == 1
    assert len(told(content="spilled")) == 1


@pytest.mark.contract("J14")
def test_a_job_is_a_span_below_the_call_that_started_it(log: Path) -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    spans: dict[int, Any] = {}
    exporter = memory.InMemorySpanExporter()
    assert isinstance(exporter, trace.SpanExporter)
    export_spans(log, exporter, content=True)
    spans = {span.context.span_id: span for span in exporter.get_finished_spans()}
    jobs = [span for span in spans.values() if span.name.startswith("background_job ")]
    assert len({span.context.span_id for span in jobs}) == len(jobs) == 7
    told = {(span.attributes["gen_ai.conversation.id"], span.attributes["ptc.job.id"]): span for span in jobs}
    killed = told["s1", "build-3"]
    assert killed.attributes["ptc.job.status"] == "killed"
    assert killed.attributes["ptc.job.label"] == "the slow"
    assert killed.attributes["ptc.run"] == "s1/1"
    parent = spans[killed.parent.span_id]
    assert parent.name == "execute_tool start_build"
    assert parent.context.trace_id == killed.context.trace_id
    assert killed.start_time >= parent.start_time
    assert killed.end_time > parent.end_time
    assert told["s1", "build-2"].status.status_code.name == "ERROR"
    assert told["s2", "sweep-1"].parent is None
    (unknown,) = [span for span in jobs if span.attributes["ptc.job.status"] == "outcome unknown"]
    assert unknown.attributes["gen_ai.agent.name"] == "doomed"
    bare = memory.InMemorySpanExporter()
    export_spans(log, bare)
    assert all("ptc.job.label" not in span.attributes for span in bare.get_finished_spans())
    assert {span.context.span_id for span in bare.get_finished_spans()} == set(spans)
    none = memory.InMemorySpanExporter()
    export_spans(log, none, until_us=0)
    assert none.get_finished_spans() == ()
