"""Group J: jobs outlive calls, and end with their owner or their host (contract J13, J14)."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import ptc
import pytest

pytestmark = pytest.mark.anyio


@pytest.mark.contract("J13")
async def test_an_owner_that_closes_ends_its_jobs_and_no_others(yard: Any) -> None:
    other = yard.host.agent("other")
    work, ended, others = yard.Work(), yard.Work(), yard.Work()
    job_id = await yard.start(work)
    await yard.start(ended)
    await yard.start(others, owner=other)
    ended.finish()
    await yard.ended("build-2")
    seen: list[Any] = []
    yard.jobs.on_change(lambda change: seen.append((change.what, change.job.id, change.job.reported)))
    yard.jobs.on_done(lambda job, _owner: seen.append(("done", job.id, job.reported)))

    async def finish_later() -> None:
        await anyio.wait_all_tasks_blocked()
        assert seen == [("stopping", job_id, True)]
        assert yard.jobs.get(job_id, caller=yard.agent).status == "stopping"
        work.finish("killed")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(finish_later)
        await yard.agent.aclose()
    assert work.reasons == ["its agent is closing"]
    assert seen[1:] == [
        ("settled", job_id, True),
        ("done", job_id, True),
        ("removed", job_id, True),
        ("removed", "build-2", False),
    ]
    assert [job.id for job in yard.jobs.snapshots(caller=yard.agent)] == []
    with pytest.raises(ptc.UnknownJobError):
        yard.jobs.get(job_id, caller=yard.agent)
    assert (others.reasons, yard.jobs.get("build-3", caller=other).status) == ([], "running")
    (notice,) = yard.agent.take_notices()  # none but that of the job that had ended before
    assert "build-2" in notice.content[0]["text"]
    with pytest.raises(ptc.JobError, match="is closed"):
        await yard.start()
    await yard.agent.aclose()


@pytest.mark.contract("J13")
async def test_the_service_that_closes_ends_all_jobs_and_tells_no_listener(anyio_backend: str, yard: Any) -> None:
    seen: list[Any] = []
    async with ptc.Host() as host:
        async with ptc.Jobs(host) as jobs:
            jobs.install(host.tools)
            agent = host.agent("a")
            jobs.on_change(lambda change: seen.append((change.what, change.job.id, change.job.status)))
            jobs.on_done(lambda *_args: seen.append("done"))
            works = [yard.Work(), yard.Work()]
            for work, owner in zip(works, (agent, None), strict=True):
                work.ends_when_cancelled = True
                await jobs.start(kind="k", label="l", owner=owner, run=work)
            seen.clear()
        assert [work.reasons for work in works] == [["the host is closing"]] * 2
        assert sorted(seen[:2]) == [("stopping", "k-1", "stopping"), ("stopping", "k-2", "stopping")]
        assert sorted(seen[2:4]) == [("settled", "k-1", "killed"), ("settled", "k-2", "killed")]
        assert seen[4:] == [("removed", "k-1", "killed"), ("removed", "k-2", "killed")]
        assert agent.take_notices() == ()
        assert jobs.snapshots(caller=agent) == []


@pytest.mark.contract("J13")
@pytest.mark.parametrize("closer", ["owner", "host"])
async def test_a_job_that_cannot_be_cancelled_is_orphaned(logged_yard: Any, caplog: Any, closer: str) -> None:
    yard, work = logged_yard, logged_yard.Work()
    work.refuses = PermissionError("no signal may be sent")
    ends: list[Any] = []
    yard.jobs.on_change(lambda change: ends.append((change.what, change.job.status, change.job.detail)))
    await yard.start(work)
    await (yard.agent.aclose() if closer == "owner" else yard.jobs.aclose())
    detail = "orphaned: it could not be cancelled (no signal may be sent)"
    assert ends == [("started", "running", None), ("settled", "failed", detail), ("removed", "failed", detail)]
    settled = (await yard.agent.session.events())[-1]
    assert (settled.type, settled.data["detail"]) == ("job/settled", detail)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.contract("J13")
async def test_a_job_that_does_not_end_is_orphaned_after_a_while(yard: Any, caplog: Any) -> None:
    ends: list[Any] = []
    async with ptc.Host() as host, ptc.Jobs(host, stop_timeout_ms=50) as jobs:
        jobs.install(host.tools)
        jobs.on_change(lambda change: ends.append((change.what, change.job.status, change.job.detail)))
        agent, work = host.agent("owner"), yard.Work()
        await jobs.start(kind="k", label="l", owner=agent, run=work)
        with anyio.fail_after(10):
            await agent.aclose()
    detail = "orphaned: it did not end within 0.05 s"
    assert ends[1:] == [("stopping", "stopping", None), ("settled", "failed", detail), ("removed", "failed", detail)]
    assert work.reasons == ["its agent is closing"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.contract("J13")
async def test_the_host_ends_jobs_before_its_log_closes(anyio_backend: str, tmp_path: Any) -> None:
    log = tmp_path / "log.db"
    host = await ptc.Host(log=log).__aenter__()
    async with ptc.Jobs(host) as jobs:
        jobs.install(host.tools)
        agent = host.agent("a")
        assert agent.session is not None
        ended: list[str] = []

        async def work(job: ptc.JobContext) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.append(job.reason or "")

        await jobs.spawn(work, kind="k", label="l", owner=agent)
        await anyio.wait_all_tasks_blocked()
        await host.aclose()
        assert ended == ["the host is closing"]
    async with ptc.Host(log=log) as again:
        events = await again.agent("a", session=agent.session.id).session.events()  # type: ignore[union-attr]
    assert [(event.type, event.data.get("status"), event.cites) for event in events] == [
        ("job/started", None, None),
        ("job/settled", "killed", 0),
    ]


@pytest.mark.contract("J13")
@pytest.mark.parametrize("how", ["error", "cancelled"])
async def test_what_ends_the_block_comes_out_as_it_is_once_the_jobs_have_ended(anyio_backend, tmp_path, how) -> None:
    ended: list[str] = []

    async def work(job: ptc.JobContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            reason = job.reason or "cancelled by another"
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
            ended.append(reason)

    async def block() -> None:
        async with ptc.Host(log=tmp_path / "log.db") as host, ptc.Jobs(host) as jobs:
            jobs.install(host.tools)
            await jobs.spawn(work, kind="k", label="l", owner=host.agent("a"))
            await anyio.wait_all_tasks_blocked()
            if how == "error":
                raise LookupError("the host's own")
            scope.cancel()
            await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        if how == "error":
            with pytest.raises(LookupError, match="the host's own"):
                await block()
        else:
            await block()
    assert scope.cancelled_caught is (how == "cancelled")
    assert ended == ["the host is closing"]


@pytest.mark.contract("J13")
async def test_the_oldest_jobs_that_have_ended_are_dropped_beyond_what_is_kept(anyio_backend: str, yard: Any) -> None:
    async with ptc.Host() as host, ptc.Jobs(host, keep_finished=2, stop_timeout_ms=50) as jobs:
        jobs.install(host.tools)
        removed: list[str] = []
        jobs.on_change(lambda change: removed.append(change.job.id) if change.what == "removed" else None)
        await jobs.start(kind="k", label="live", run=yard.Work())

        async def end_one() -> None:
            work = yard.Work(final=True)
            handle = await jobs.start(kind="k", label="l", run=work)
            work.finish()
            await anyio.wait_all_tasks_blocked()
            assert jobs.get(handle["jobId"]).ended

        await end_one()
        await end_one()
        jobs.read("k-3")
        await end_one()
        assert removed == ["k-3"]  # its end has been told
        await end_one()
        assert removed == ["k-3", "k-2"]
        assert [job.id for job in jobs.snapshots()] == ["k-1", "k-4", "k-5"]


# --- jobs and the calls that start them


@pytest.mark.contract("J14")
@pytest.mark.parametrize("how", ["signal", "scope"])
async def test_a_job_outlives_the_call_that_has_started_it(yard: Any, how: str) -> None:
    published, foreground = anyio.Event(), list[Any]()

    @ptc.tool
    async def build(run: ptc.ToolRunContext) -> ptc.JobHandle:
        """Build in the background, and look at it for a while."""
        handle = await yard.jobs.start(kind="k", label="l", owner=run.agent, run=work, call=run.exec)
        published.set()
        foreground.append(await run.signal.wait())
        return handle

    work, source = yard.Work(), ptc.SignalSource()
    yard.host.tools.register(build)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: yard.call("build", signal=source.signal))
        await published.wait()
        if how == "signal":
            source.abort("the user")
        else:
            tasks.cancel_scope.cancel()
    assert len(foreground) == 1
    assert (work.reasons, yard.jobs.get("k-1", caller=yard.agent).status) == ([], "running")
    work.finish()
    assert (await yard.ended("k-1")).status == "completed"


@pytest.mark.contract("J14")
async def test_a_call_that_was_given_up_before_starts_nothing(yard: Any) -> None:
    begun: list[str] = []

    @ptc.tool
    async def build(run: ptc.ToolRunContext) -> ptc.JobHandle:
        """Build in the background."""
        begun.append("body")
        return await yard.jobs.start(kind="k", label="l", owner=run.agent, run=yard.Work())

    source = ptc.SignalSource()
    source.abort("the user")
    yard.host.tools.register(build)
    result = await yard.call("build", signal=source.signal)
    assert (result.error.info.code, begun) == ("ABORTED_BEFORE_DISPATCH", [])
    assert yard.jobs.snapshots(caller=yard.agent) == []


@pytest.mark.contract("J14")
async def test_a_call_that_is_given_up_while_it_starts_a_job_starts_none(logged_yard: Any, monkeypatch: Any) -> None:
    yard, work, source = logged_yard, logged_yard.Work(), ptc.SignalSource()
    append = yard.agent.session.append

    async def aborting(type: str, data: Any, *, cites: int | None = None) -> int:
        seq = await append(type, data, cites=cites)
        if type == "job/started":
            source.abort("the user")
        return seq

    monkeypatch.setattr(yard.agent.session, "append", aborting)

    @ptc.tool
    async def build(run: ptc.ToolRunContext) -> ptc.JobHandle:
        """Build in the background."""
        return await yard.jobs.start(kind="k", label="l", owner=run.agent, run=work, call=run.exec)

    yard.host.tools.register(build)
    result = await yard.call("build", signal=source.signal)
    assert (result.error.info.code, work.begun) == ("ABORTED", 0)
    events = [event for event in await yard.agent.session.events() if event.type.startswith("job/")]
    assert [(event.type, event.data.get("status")) for event in events] == [
        ("job/started", None),
        ("job/settled", "failed"),
    ]
    assert events[1].cites == events[0].seq


@pytest.mark.contract("J14")
async def test_a_task_that_is_cancelled_while_it_starts_a_job_starts_none(logged_yard: Any, monkeypatch: Any) -> None:
    yard, work = logged_yard, logged_yard.Work()
    append, appending = yard.agent.session.append, anyio.Event()

    async def slow(type: str, data: Any, *, cites: int | None = None) -> int:
        appending.set()
        await anyio.sleep(0.01)
        return await append(type, data, cites=cites)

    monkeypatch.setattr(yard.agent.session, "append", slow)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: yard.start(work))
        await appending.wait()
        tasks.cancel_scope.cancel()
    assert work.begun == 0
    events = await yard.agent.session.events()
    assert [event.type for event in events] == ["job/started", "job/settled"]
    assert events[1].data["detail"] == "it was not started: the task that started it was cancelled"
    assert await yard.start() == "build-1"


@pytest.mark.contract("J14")
async def test_an_owner_that_closes_while_a_job_starts_gets_none(logged_yard: Any, monkeypatch: Any) -> None:
    yard, work, refused = logged_yard, logged_yard.Work(), list[str]()
    append, appending = yard.agent.session.append, anyio.Event()

    async def slow(type: str, data: Any, *, cites: int | None = None) -> int:
        appending.set()
        await anyio.sleep(0.01)
        return await append(type, data, cites=cites)

    await yard.start(ends := yard.Work())
    ends.ends_when_cancelled = True
    monkeypatch.setattr(yard.agent.session, "append", slow)

    async def start() -> None:
        try:
            await yard.start(work)
        except ptc.JobError as error:
            refused.append(str(error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        await appending.wait()
        await yard.agent.aclose()
    assert (work.begun, refused) == (0, ["agent 'owner' is closed and can own no more jobs"])
    assert yard.jobs.snapshots(caller=yard.agent) == []


@pytest.mark.contract("J12", "J13")
async def test_an_end_that_comes_while_another_one_is_recorded_does_not_count(logged_yard, monkeypatch) -> None:
    yard, work = logged_yard, logged_yard.Work()
    work.refuses = RuntimeError("stuck")
    append, appending, go_on = yard.agent.session.append, anyio.Event(), anyio.Event()
    heard: list[Any] = []
    yard.jobs.on_done(lambda job, _owner: heard.append(job.status))

    async def slow(type: str, data: Any, *, cites: int | None = None) -> int:
        if type == "job/settled":
            appending.set()
            await go_on.wait()
        return await append(type, data, cites=cites)

    await yard.start(work)
    monkeypatch.setattr(yard.agent.session, "append", slow)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(yard.agent.aclose)
        await appending.wait()
        work.finish("completed")
        await anyio.wait_all_tasks_blocked()
        go_on.set()
    events = await yard.agent.session.events()
    assert [event.data.get("status") for event in events] == [None, "failed"]
    assert heard == ["failed"]
