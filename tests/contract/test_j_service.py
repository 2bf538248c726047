"""Group J: starting, reading, stopping and awaiting background jobs (contract J1 to J12)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import FrozenInstanceError
from types import SimpleNamespace
from typing import Any

import anyio
import ptc
import pytest

pytestmark = pytest.mark.anyio

WARNINGS = "ptc.runtime"


@pytest.mark.contract("J1", "J10")
@pytest.mark.parametrize("end", ["completed", "killed", "failed"])
async def test_a_job_runs_then_may_be_stopping_and_ends_for_good(yard: Any, end: str) -> None:
    work = yard.Work()
    job_id = await yard.start(work)
    statuses = [yard.jobs.get(job_id, caller=yard.agent).status]
    yard.jobs.kill(job_id, caller=yard.agent)
    statuses.append(yard.jobs.get(job_id, caller=yard.agent).status)
    work.finish(end)
    statuses.append((await yard.ended(job_id)).status)
    assert statuses == ["running", "stopping", end]
    assert yard.jobs.kill(job_id, caller=yard.agent).job.status == end


# --- the order of the checks: each case breaks one rule and all that come after it


def test_the_cases_below_are_in_the_order_of_the_contract() -> None:
    assert [case.id for case in PREFLIGHT] == ["controller", "kind", "label", "limit", "owner", "room"]


PREFLIGHT = [
    pytest.param("JobError", "job tools are not installed", 6, id="controller"),
    pytest.param("ValueError", "kind", 5, id="kind"),
    pytest.param("ValueError", "label", 4, id="label"),
    pytest.param("ValueError", "output_limit_bytes", 3, id="limit"),
    pytest.param("JobError", "agent of the same host", 2, id="owner"),
    pytest.param("JobLimitError", "limit", 1, id="room"),
]


@pytest.mark.contract("J2", "J3")
@pytest.mark.parametrize(("error", "says", "broken"), PREFLIGHT)
async def test_the_first_broken_rule_is_told_and_nothing_has_run(anyio_backend, error, says, broken) -> None:
    async with ptc.Host() as host, ptc.Host() as other, ptc.Jobs(host, max_jobs=1, stop_timeout_ms=50) as jobs:
        install = jobs.install(host.tools)
        agent, stranger = host.agent("a"), other.agent("b")
        await jobs.start(kind="build", label="first", owner=agent, run=runs_on)
        begun: list[int] = []
        if broken >= 6:
            install()
        with pytest.raises(Exception, match=says) as raised:
            await jobs.start(
                kind="" if broken >= 5 else "build",
                label="" if broken >= 4 else "second",
                output_limit_bytes=0 if broken >= 3 else 10,
                owner=stranger if broken >= 2 else agent,
                run=lambda: begun.append(1),  # type: ignore[arg-type, return-value]
            )
        assert (type(raised.value).__name__, begun) == (error, [])
        assert len(jobs.snapshots(caller=agent)) == 1


def runs_on() -> ptc.JobRun:
    return ptc.JobRun(cancel=lambda _reason: None, done=anyio.sleep_forever())


@pytest.mark.contract("J2")
async def test_a_controller_serves_its_scope_and_those_below_it(anyio_backend: str) -> None:
    async with ptc.Host() as host, ptc.Jobs(host, stop_timeout_ms=50) as jobs:
        team = host.agent("team")
        member, outsider = host.agent("member", parent=team), host.agent("outsider")
        withdraw = jobs.install(team.tools)
        for owner in (team, member):
            await jobs.start(kind="build", label="docs", owner=owner, run=runs_on)
        for owner in (outsider, None):
            with pytest.raises(ptc.JobError, match="not installed") as raised:
                await jobs.start(kind="build", label="docs", owner=owner, run=runs_on)
            assert raised.value.code == "JOB_REFUSED"
        everybody = jobs.add_controller()
        for owner in (outsider, None):
            await jobs.start(kind="build", label="docs", owner=owner, run=runs_on)
        everybody()
        withdraw()
        assert [definition.name for definition in member.tools.definitions()] == []
        with pytest.raises(ptc.JobError, match="not installed"):
            await jobs.start(kind="build", label="docs", owner=member, run=runs_on)


@pytest.mark.contract("J2")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"kind": " "}, ValueError),
        ({"kind": "a\nb"}, ValueError),
        ({"kind": "\ud800"}, ValueError),
        ({"kind": 1}, TypeError),
        ({"label": "\t"}, ValueError),
        ({"label": None}, TypeError),
        ({"output_limit_bytes": -1}, ValueError),
        ({"output_limit_bytes": True}, ValueError),
        ({"output_limit_bytes": 1.5}, ValueError),
        ({"output_limit_bytes": 2**53}, ValueError),
        ({"owner": ptc.ScopeKey("no agent")}, ptc.JobError),
        ({"owner": "owner"}, ptc.JobError),
    ],
)
async def test_what_does_not_do_is_refused_before_anything_runs(yard: Any, options: Any, error: Any) -> None:
    work = yard.Work()
    with pytest.raises(error):
        await yard.start(work, **options)
    assert (work.begun, yard.changes) == (0, [])
    assert await yard.start(output_limit_bytes=2**53 - 1) == "build-1"


@pytest.mark.contract("J2")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_service_that_is_not_open_starts_nothing(anyio_backend: str, when: str) -> None:
    async with ptc.Host() as host:
        jobs = ptc.Jobs(host)
        jobs.install(host.tools)
        if when == "after":
            async with jobs:
                pass
            with pytest.raises(RuntimeError, match="once"):
                async with jobs:
                    pass
        with pytest.raises(ptc.JobError, match="not open"):
            await jobs.start(kind="build", label="docs", run=runs_on)


@pytest.mark.contract("J3")
async def test_ten_live_jobs_for_each_owner_and_ten_for_all_without_one(yard: Any) -> None:
    twin = yard.host.agent("owner")
    works = {id(owner): [yard.Work() for _ in range(10)] for owner in (yard.agent, twin, None)}
    for owner in (yard.agent, twin, None):
        for work in works[id(owner)]:
            await yard.start(work, owner=owner)
    for owner in (yard.agent, twin, None):
        with pytest.raises(ptc.JobLimitError, match=r"kill one.*wait for one.*try again") as raised:
            await yard.start(owner=owner)
        assert raised.value.code == "JOB_LIMIT"
    yard.jobs.kill("build-1", caller=yard.agent)
    with pytest.raises(ptc.JobLimitError):  # one that is stopping is live
        await yard.start()
    works[id(yard.agent)][0].finish("killed")
    await yard.ended("build-1")
    assert await yard.start() == "build-31"
    with pytest.raises(ptc.JobLimitError):
        await yard.start(owner=twin)


@pytest.mark.contract("J3")
async def test_starts_that_overlap_do_not_pass_the_limit(anyio_backend: str, tmp_path: Any) -> None:
    async with (
        ptc.Host(log=tmp_path / "log.db") as host,
        ptc.Jobs(host, max_jobs=3, stop_timeout_ms=50) as jobs,
    ):
        jobs.install(host.tools)
        agent = host.agent("a")
        handles, refused = list[str](), list[Exception]()

        async def start() -> None:
            try:
                handles.append((await jobs.start(kind="k", label="l", owner=agent, run=runs_on))["jobId"])
            except ptc.JobLimitError as error:
                refused.append(error)

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(start)
        assert sorted(handles) == ["k-1", "k-2", "k-3"]
        assert len(refused) == 5


@pytest.mark.contract("J4", "J5")
async def test_what_run_raises_comes_out_and_there_is_no_job(yard: Any) -> None:
    def run() -> Any:
        raise LookupError("no compiler")

    assert await yard.start() == "build-1"
    with pytest.raises(LookupError, match="no compiler"):
        await yard.start(run)
    assert [job.id for job in yard.jobs.snapshots(caller=yard.agent)] == ["build-1"]
    assert await yard.start() == "build-2"


async def _asynchronous() -> Any: ...


@pytest.mark.contract("J4")
@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (_asynchronous, "plain function"),
        (lambda: None, "JobRun"),
        (lambda: SimpleNamespace(done=_asynchronous()), "JobRun"),
        (lambda: SimpleNamespace(cancel=print, done="later"), "JobRun"),
        (lambda: SimpleNamespace(cancel=lambda _r: None, done=_asynchronous(), read_output="text"), "read_output"),
    ],
)
async def test_what_is_no_job_is_refused_and_no_number_is_used(yard: Any, returned: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        await yard.start(returned)
    assert yard.jobs.snapshots(caller=yard.agent) == []
    assert await yard.start() == "build-1"


@pytest.mark.contract("J4")
async def test_what_is_no_job_and_can_be_cancelled_is(yard: Any) -> None:
    reasons: list[Any] = []
    with pytest.raises(TypeError):
        await yard.start(lambda: SimpleNamespace(cancel=reasons.append, done=None))
    assert len(reasons) == 1


@pytest.mark.contract("J4")
async def test_the_members_of_a_job_are_read_once(yard: Any) -> None:
    class Counting(yard.Work):
        reads = 0

        @property
        def done(self) -> Any:
            Counting.reads += 1
            return self._wait()

    work = Counting()
    job_id = await yard.start(work)
    work.finish()
    await yard.ended(job_id)
    assert Counting.reads == 1


@pytest.mark.contract("J5")
async def test_ids_count_for_each_kind_from_one(yard: Any) -> None:
    kinds = ["build", "build", "test", "build", "a-1", "test"]
    assert [await yard.start(kind=kind, owner=None if kind == "test" else yard.agent) for kind in kinds] == [
        "build-1", "build-2", "test-1", "build-3", "a-1-1", "test-2"
    ]  # fmt: skip


@pytest.mark.contract("J6")
@pytest.mark.parametrize(
    ("given", "status", "detail", "output"),
    [
        ({"status": "completed"}, "completed", None, ""),
        ({"status": "failed", "detail": "exit code 2", "output": "x"}, "failed", "exit code 2", "x"),
        (ptc.JobOutcome(status="killed", detail="\ud800", output="a\udfffb"), "killed", "\\ud800", "a\\udfffb"),
    ],
)
async def test_a_job_ends_as_it_says(yard: Any, caplog: Any, given, status, detail, output) -> None:
    work = yard.Work(final=True)
    job_id = await yard.start(work)
    work.settle(given)
    job = await yard.ended(job_id)
    assert (job.status, job.detail, yard.jobs.read(job_id, caller=yard.agent).text) == (status, detail, output)
    assert caplog.records == []


@pytest.mark.contract("J6")
@pytest.mark.parametrize(
    ("given", "detail"),
    [
        (OSError("disk full"), "disk full"),
        (KeyError("x"), "KeyError: 'x'"),
        (ptc.AbortError("gave up"), "gave up"),
        (None, "must settle with a JobOutcome"),
        ({"status": "running"}, "completed, killed or failed"),
        ({"status": ["failed"]}, "completed, killed or failed"),
        ({"status": "failed", "detail": 2}, "detail of an outcome is text"),
        ({"status": "completed", "output": b"x"}, "output of an outcome is text"),
    ],
)
async def test_a_breach_is_a_failure_with_a_warning(yard: Any, caplog: Any, given: Any, detail: str) -> None:
    work = yard.Work()
    job_id = await yard.start(work)
    work.settle(given)
    job = await yard.ended(job_id)
    assert job.status == "failed"
    assert detail in str(job.detail)
    assert [(record.levelno, job_id in record.getMessage()) for record in caplog.records] == [(logging.WARNING, True)]


@pytest.mark.contract("J6", "J10")
@pytest.mark.parametrize("killed", [True, False])
def test_a_done_that_is_a_task_of_asyncio_may_be_cancelled(killed: bool, caplog: Any) -> None:
    async def main() -> ptc.JobSnapshot:
        async with ptc.Host() as host, ptc.Jobs(host) as jobs:
            jobs.install(host.tools)
            task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(anyio.sleep_forever())
            run = ptc.JobRun(cancel=lambda _reason: task.cancel(), done=task)
            job_id = (await jobs.start(kind="k", label="l", run=lambda: run))["jobId"]
            await anyio.wait_all_tasks_blocked()
            if killed:
                jobs.kill(job_id)
            else:
                task.cancel()
            return await jobs.wait(job_id, 5_000)

    job = anyio.run(main, backend="asyncio")
    assert job.status == ("killed" if killed else "failed")
    assert bool(caplog.records) is not killed


@pytest.mark.contract("J7")
async def test_an_owned_job_is_for_its_own_session_alone(logged_yard: Any) -> None:
    yard = logged_yard
    session = yard.agent.session.id
    same, other = yard.host.agent("owner", session="".join([*session])), yard.host.agent("owner")
    assert same.session.id is not session
    work = yard.Work()
    job_id = await yard.start(work)
    nobody: Any = None
    for caller in (other, nobody, ptc.ScopeKey("owner")):
        for reach in (yard.jobs.get, yard.jobs.read, yard.jobs.kill):
            with pytest.raises(ptc.JobAccessError, match=f"^job {job_id} belongs to another session$") as refused:
                reach(job_id, caller=caller)
            assert refused.value.code == "JOB_OTHER_SESSION"
        with pytest.raises(ptc.JobAccessError):
            await yard.jobs.wait(job_id, 1, caller=caller)
        assert yard.jobs.snapshots(caller=caller) == []
    for caller in (yard.agent, same):
        assert yard.jobs.get(job_id, caller=caller).owner_session == session
        assert yard.jobs.read(job_id, caller=caller).text == ""
        assert (await yard.jobs.wait(job_id, 1, caller=caller)).status == "running"
    assert work.reasons == []
    assert yard.jobs.kill(job_id, caller=same).outcome == "requested"


@pytest.mark.contract("J7")
async def test_an_agent_without_a_session_reaches_its_own_jobs(yard: Any) -> None:
    job_id = await yard.start()
    assert yard.jobs.get(job_id, caller=yard.agent).owner_session is None
    for caller in (yard.host.agent("owner"), None):
        with pytest.raises(ptc.JobAccessError):
            yard.jobs.get(job_id, caller=caller)


@pytest.mark.contract("J7")
async def test_a_job_without_owner_is_everybodys_and_an_unknown_one_nobodys(yard: Any) -> None:
    job_id = await yard.start(owner=None)
    for caller in (yard.agent, yard.host.agent("other"), None):
        assert yard.jobs.get(job_id, caller=caller).id == job_id
        with pytest.raises(ptc.UnknownJobError, match=r"^unknown job build-2$") as unknown:
            yard.jobs.get("build-2", caller=caller)
        assert unknown.value.code == "UNKNOWN_JOB"
    assert yard.jobs.kill(job_id).outcome == "requested"


@pytest.mark.contract("J8")
async def test_the_list_has_own_and_unowned_jobs_in_order_as_fresh_copies(logged_yard: Any) -> None:
    yard = logged_yard
    work, other = yard.Work(), yard.host.agent("other")
    await yard.start(work, label="mine", output_limit_bytes=5)
    await yard.start(owner=other)
    await yard.start(owner=None, kind="watch", label="ours")
    first, second = yard.jobs.snapshots(caller=yard.agent)
    assert [job.id for job in yard.jobs.snapshots(caller=other)] == ["build-2", "watch-1"]
    assert (first.id, first.kind, first.label, first.output_limit_bytes) == ("build-1", "build", "mine", 5)
    assert (first.status, first.detail, first.finished_at, first.reported) == ("running", None, None, False)
    assert (first.owner_session, second.owner_session) == (yard.agent.session.id, None)
    assert (second.id, second.output_limit_bytes, second.label) == ("watch-1", None, "ours")
    with pytest.raises(FrozenInstanceError):
        first.status = "failed"
    work.finish("failed", "exit code 1")
    ended = await yard.ended("build-1")
    assert first.status == "running"
    assert (ended.status, ended.detail) == ("failed", "exit code 1")
    assert ended.started_at == first.started_at <= ended.finished_at
    assert yard.jobs.get("build-1", caller=yard.agent) is not yard.jobs.get("build-1", caller=yard.agent)


@pytest.mark.contract("J9")
async def test_a_stream_is_read_once(yard: Any) -> None:
    work = yard.Work()
    job_id = await yard.start(work)

    def read() -> tuple[str, bool]:
        reading = yard.jobs.read(job_id, caller=yard.agent)
        return reading.text, reading.job.reported

    assert read() == ("", False)
    work.chunks += ["a", "b"]
    assert [read(), read()] == [("ab", False), ("", False)]
    work.chunks += ["c\ud800"]
    work.finish(output="passed over")
    await yard.ended(job_id)
    assert yard.jobs.get(job_id, caller=yard.agent).reported is False
    assert [read(), read()] == [("c\\ud800", True), ("", True)]


@pytest.mark.contract("J9")
async def test_final_output_is_there_once_the_job_has_ended_and_stays(yard: Any) -> None:
    work = yard.Work(final=True)
    job_id = await yard.start(work)
    assert yard.jobs.read(job_id, caller=yard.agent).text == ""
    work.finish(output="result")
    assert not (await yard.ended(job_id)).reported
    for _ in range(2):
        reading = yard.jobs.read(job_id, caller=yard.agent)
        assert (reading.text, reading.job.reported) == ("result", True)


@pytest.mark.contract("J9")
@pytest.mark.parametrize("answer", [OSError("pipe"), b"bytes", None])
async def test_output_that_cannot_be_read_does_not_count_as_told(yard: Any, answer: Any) -> None:
    work = yard.Work()

    def read_output() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    work.read_output = read_output
    job_id = await yard.start(work)
    work.finish()
    await yard.ended(job_id)
    with pytest.raises(OSError if isinstance(answer, Exception) else TypeError):
        yard.jobs.read(job_id, caller=yard.agent)
    assert not yard.jobs.get(job_id, caller=yard.agent).reported


@pytest.mark.contract("J10")
async def test_kill_cancels_first_and_again_when_it_is_asked_again(yard: Any) -> None:
    work = yard.Work()
    job_id = await yard.start(work)
    first = yard.jobs.kill(job_id, "enough", caller=yard.agent)
    assert (first.outcome, first.job.status, first.job.reported) == ("requested", "stopping", True)
    again = yard.jobs.kill(job_id, caller=yard.agent)
    assert (again.outcome, again.job.status) == ("requested", "stopping")
    assert work.reasons == ["enough", None]
    work.finish("completed")
    await yard.ended(job_id)
    late = yard.jobs.kill(job_id, "late", caller=yard.agent)
    assert (late.outcome, late.job.status, len(work.reasons)) == ("already-finished", "completed", 2)
    assert yard.changes == [("started", job_id), ("stopping", job_id), ("settled", job_id)]


@pytest.mark.contract("J10")
async def test_to_kill_a_job_that_has_ended_counts_as_told(yard: Any) -> None:
    work = yard.Work()
    job_id = await yard.start(work)
    work.finish()
    assert not (await yard.ended(job_id)).reported
    assert yard.jobs.kill(job_id, caller=yard.agent).job.reported


@pytest.mark.contract("J10")
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_what_cancel_raises_comes_out_and_nothing_has_changed(yard: Any, asynchronous: bool) -> None:
    work = yard.Work()
    work.refuses = PermissionError("not now")
    if asynchronous:
        work.cancel = lambda _reason: _asynchronous()
    job_id = await yard.start(work)
    before = yard.jobs.get(job_id, caller=yard.agent)
    with pytest.raises(TypeError if asynchronous else PermissionError):
        yard.jobs.kill(job_id, caller=yard.agent)
    assert yard.jobs.get(job_id, caller=yard.agent) == before
    assert yard.changes == [("started", job_id)]


@pytest.mark.contract("J11")
@pytest.mark.parametrize("timeout_ms", [0, -1, float("inf"), float("nan"), True, "1", 10**400])
async def test_a_timeout_is_positive_and_finite(yard: Any, timeout_ms: Any) -> None:
    job_id = await yard.start()
    with pytest.raises(ValueError, match="timeout_ms must be a positive finite number"):
        await yard.jobs.wait(job_id, timeout_ms, caller=yard.agent)


@pytest.mark.contract("J11")
async def test_a_wait_ends_with_the_job_or_with_its_time(yard: Any) -> None:
    work = yard.Work()
    job_id = await yard.start(work)
    timed_out = await yard.jobs.wait(job_id, 5, caller=yard.agent)
    assert (timed_out.status, timed_out.reported) == ("running", False)
    async with anyio.create_task_group() as tasks:
        waits: list[Any] = []

        async def wait() -> None:
            waits.append(await yard.jobs.wait(job_id, 60_000, caller=yard.agent))

        tasks.start_soon(wait)
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        work.finish("failed", "d")
    assert [(job.status, job.detail, job.reported) for job in waits] == [("failed", "d", True)] * 2
    aborted = ptc.SignalSource()
    aborted.abort("late")
    for signal in (None, aborted.signal):  # a job that has ended is there at once, whatever the signal says
        assert (await yard.jobs.wait(job_id, 1, caller=yard.agent, signal=signal)).status == "failed"


@pytest.mark.contract("J11")
async def test_a_wait_that_is_over_tells_nobody(yard: Any) -> None:
    work = yard.Work()
    job_id = await yard.start(work)
    await yard.jobs.wait(job_id, 1, caller=yard.agent)
    with anyio.move_on_after(0.005):
        await yard.jobs.wait(job_id, 60_000, caller=yard.agent)
    work.finish()
    assert not (await yard.ended(job_id)).reported


@pytest.mark.contract("J11")
@pytest.mark.parametrize("before", [True, False])
async def test_a_wait_that_is_given_up_leaves_the_job_alone(yard: Any, before: bool) -> None:
    work, source = yard.Work(), ptc.SignalSource()
    job_id = await yard.start(work)
    if before:
        source.abort("the user")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(abort_when_quiet, source)
        with pytest.raises(ptc.AbortError, match=r"^wait aborted$") as raised:
            await yard.jobs.wait(job_id, 60_000, caller=yard.agent, signal=source.signal)
    assert raised.value.reason == "the user"
    assert (yard.jobs.get(job_id, caller=yard.agent).status, work.reasons) == ("running", [])
    work.finish()
    assert not (await yard.ended(job_id)).reported


async def abort_when_quiet(source: ptc.SignalSource) -> None:
    await anyio.wait_all_tasks_blocked()
    source.abort("the user")


@pytest.mark.contract("J11")
async def test_an_end_in_the_tick_of_the_abort_wins(yard: Any) -> None:
    work, source = yard.Work(), ptc.SignalSource()
    job_id = await yard.start(work)
    # Told of the end before the task that waits can run again: by then it has been aborted as well, and again.
    yard.jobs.on_change(lambda change: source.abort("late") if change.what == "settled" else None)
    waits: list[Any] = []

    async def wait() -> None:
        waits.append(await yard.jobs.wait(job_id, 60_000, caller=yard.agent, signal=source.signal))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        work.finish()
    assert source.signal.aborted
    assert [(job.status, job.reported) for job in waits] == [("completed", True)]


@pytest.mark.contract("J11")
async def test_an_abort_in_the_tick_before_the_end_loses_too(yard: Any) -> None:
    source = ptc.SignalSource()

    class Aborting(yard.Work):
        async def _wait(self) -> Any:
            end = await super()._wait()
            source.abort("first")  # and the end follows before anything else runs
            return end

    work = Aborting()
    job_id = await yard.start(work)
    waits: list[Any] = []

    async def wait() -> None:
        waits.append(await yard.jobs.wait(job_id, 60_000, caller=yard.agent, signal=source.signal))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        work.finish()
    assert [(job.status, job.reported) for job in waits] == [("completed", True)]


@pytest.mark.contract("J12")
async def test_an_end_is_recorded_then_waiters_observers_and_listeners_hear_of_it(logged_yard: Any) -> None:
    yard, heard = logged_yard, []
    team = yard.host.agent("team")
    yard.host.registry.bind(yard.agent, team)
    stranger = yard.host.agent("stranger")
    job_id = await yard.start(work := yard.Work())
    yard.agent.session.observe(lambda event: heard.append(event.type))

    def listen(name: str, scope: Any = None) -> None:
        def listener(job: ptc.JobSnapshot, owner: Any) -> None:
            assert (job.status, owner) == ("failed", yard.agent)
            heard.append(name)

        yard.jobs.on_done(listener, scope=scope)

    listen("stranger", stranger)
    listen("team", team)
    listen("owner", yard.agent)
    listen("all")
    yard.jobs.on_change(lambda change: heard.append((change.what, change.job.status, change.job.reported)))
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            await yard.jobs.wait(job_id, 60_000, caller=yard.agent)
            heard.append("waiter")

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        work.finish("failed")
    assert heard == ["job/settled", ("settled", "failed", True), "all", "owner", "team", "waiter"]


@pytest.mark.contract("J12")
async def test_listeners_that_fail_are_contained(yard: Any, caplog: Any) -> None:
    heard: list[str] = []

    def fails(*_args: Any) -> None:
        raise LookupError("listener")

    yard.jobs.on_change(fails)
    yard.jobs.on_change(lambda change: heard.append(change.what))
    yard.jobs.on_done(fails)
    yard.jobs.on_done(lambda *_args: _asynchronous())
    yard.jobs.on_done(lambda *_args: heard.append("done"))
    job_id = await yard.start(work := yard.Work())
    work.finish()
    await yard.ended(job_id)
    assert heard == ["started", "settled", "done"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 3 + [logging.WARNING]
    for method in (yard.jobs.on_change, yard.jobs.on_done):
        with pytest.raises(TypeError, match="plain function"):
            method(_asynchronous)


@pytest.mark.contract("J12")
async def test_a_disposed_listener_hears_nothing(yard: Any) -> None:
    heard: list[Any] = []
    for dispose in (yard.jobs.on_change(heard.append), yard.jobs.on_done(lambda *job: heard.append(job))):
        dispose()
        dispose()
    job_id = await yard.start(work := yard.Work())
    work.finish()
    await yard.ended(job_id)
    assert heard == []


@pytest.mark.contract("J12")
async def test_the_first_end_stays(yard: Any) -> None:
    work = yard.Work()
    work.refuses = RuntimeError("stuck")
    agent = yard.agent
    ends: list[Any] = []
    yard.jobs.on_done(lambda job, _owner: ends.append((job.status, job.detail)))
    await yard.start(work)
    await agent.aclose()
    work.finish("completed")  # too late: it was given up as orphaned
    await anyio.wait_all_tasks_blocked()
    assert ends == [("failed", "orphaned: it could not be cancelled (stuck)")]
