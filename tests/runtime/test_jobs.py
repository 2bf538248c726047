"""Background jobs as async functions, their bounded output, and their record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import ptc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptc.runtime.jobs.output import DEFAULT_BUFFER_BYTES, OutputBuffer, bound_content, bound_text
from ptc.runtime.log.events import JobSettled, JobStarted, read_event
from ptc.runtime.log.reading import read_session

pytestmark = pytest.mark.anyio


class Site:
    """A host that keeps a log, with jobs and an agent."""

    def __init__(self, host: ptc.Host, jobs: ptc.Jobs, log: Path) -> None:
        self.host, self.jobs, self.log = host, jobs, log
        self.agent = host.agent("owner")

    async def spawn(self, function: ptc.JobFunction, **options: Any) -> str:
        given = {"kind": "k", "label": "l", "owner": self.agent, **options}
        return (await self.jobs.spawn(function, **given))["jobId"]

    async def ended(self, job_id: str) -> ptc.JobSnapshot:
        with anyio.fail_after(10):
            return await self.jobs.wait(job_id, 10_000, caller=self.agent)

    def read(self, job_id: str) -> str:
        return self.jobs.read(job_id, caller=self.agent).text

    async def events(self) -> list[Any]:
        assert self.agent.session is not None
        return list(await self.agent.session.events())


@pytest.fixture
async def site(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Site]:
    async with ptc.Host(log=tmp_path / "log.db") as host, ptc.Jobs(host, stop_timeout_ms=200) as jobs:
        jobs.install(host.tools)
        yield Site(host, jobs, tmp_path / "log.db")


async def test_what_a_function_writes_is_read_as_it_comes(site: Site) -> None:
    go_on = anyio.Event()

    async def work(job: ptc.JobContext) -> str:
        job.write("one ")
        job.write("two ")
        await go_on.wait()
        await anyio.to_thread.run_sync(job.write, "three ")
        assert (job.cancelled, job.reason) == (False, None)
        return "four"

    job_id = await site.spawn(work)
    await anyio.wait_all_tasks_blocked()
    assert site.read(job_id) == "one two "
    go_on.set()
    assert (await site.ended(job_id)).status == "completed"
    assert (site.read(job_id), site.read(job_id)) == ("three four", "")


@pytest.mark.parametrize(
    ("returned", "status", "detail", "output"),
    [
        (None, "completed", None, ""),
        ("text", "completed", None, "text"),
        (ptc.JobOutcome(status="failed", detail="exit code 2", output="log"), "failed", "exit code 2", "log"),
        (ptc.JobOutcome(status="killed"), "killed", None, ""),
    ],
)
async def test_what_a_function_returns_is_its_end(site: Site, returned, status, detail, output) -> None:
    async def work(_job: ptc.JobContext) -> Any:
        return returned

    job_id = await site.spawn(work)
    job = await site.ended(job_id)
    assert (job.status, job.detail, site.read(job_id)) == (status, detail, output)


@pytest.mark.parametrize("returned", [3, {"status": "completed"}])
async def test_a_function_that_returns_something_else_has_failed(site: Site, caplog: Any, returned: Any) -> None:
    async def work(_job: ptc.JobContext) -> Any:
        return returned

    job = await site.ended(await site.spawn(work))
    assert job.status == "failed"
    assert "returns text, a JobOutcome or None" in str(job.detail)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_a_function_that_raises_has_failed_with_the_errors_message(site: Site, caplog: Any) -> None:
    async def work(job: ptc.JobContext) -> None:
        job.write("so far")
        async with anyio.create_task_group():
            raise LookupError("no such \ud800 target")

    job_id = await site.spawn(work)
    job = await site.ended(job_id)
    assert (job.status, job.detail) == ("failed", "no such \\ud800 target")
    assert site.read(job_id) == "so far"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert await site.spawn(work) == "k-2"  # the service is not the worse for it


@pytest.mark.parametrize("function", [lambda _job: None, lambda _job: "text"])
async def test_a_function_that_is_not_async_starts_nothing(site: Site, function: Any) -> None:
    with pytest.raises(TypeError, match="must be async"):
        await site.spawn(function)
    assert site.jobs.snapshots(caller=site.agent) == []


async def test_a_kill_cancels_what_the_function_awaits_and_lets_it_clean_up(site: Site) -> None:
    seen: list[Any] = []

    async def work(job: ptc.JobContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            seen.append((job.cancelled, job.reason))
            job.write("cleaned up")

    job_id = await site.spawn(work)
    await anyio.wait_all_tasks_blocked()
    site.jobs.kill(job_id, "enough", caller=site.agent)
    site.jobs.kill(job_id, "really", caller=site.agent)
    job = await site.ended(job_id)
    assert (job.status, job.detail, seen) == ("killed", "enough", [(True, "enough")])
    assert site.read(job_id) == "cleaned up"


async def test_a_kill_before_the_first_step_kills(site: Site) -> None:
    async def work(job: ptc.JobContext) -> None:
        job.write("began")
        await anyio.sleep_forever()

    job_id = await site.spawn(work)
    site.jobs.kill(job_id, caller=site.agent)
    assert (await site.ended(job_id)).status == "killed"


async def test_a_function_that_ends_well_all_the_same_has_completed(site: Site) -> None:
    async def work(_job: ptc.JobContext) -> str:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return "saved"  # what it may do instead of going on with the cancellation, since it ends here

    job_id = await site.spawn(work)
    await anyio.wait_all_tasks_blocked()
    site.jobs.kill(job_id, caller=site.agent)
    assert (await site.ended(job_id)).status == "completed"
    assert site.read(job_id) == "saved"


def test_a_host_task_that_is_cancelled_again_while_jobs_end_leaves_nothing_behind(tmp_path: Path) -> None:
    """What asyncio alone cancels passes every shield."""
    seen, log = list[str](), tmp_path / "log.db"
    started, cleaning = asyncio.Event(), asyncio.Event()

    async def work(job: ptc.JobContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaning.set()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.02)
            seen.append("cleaned up")

    async def never() -> Any:
        await anyio.sleep_forever()

    async def block() -> None:
        async with ptc.Host(log=log) as host, ptc.Jobs(host, stop_timeout_ms=300) as jobs:
            jobs.install(host.tools)
            await jobs.spawn(work, kind="k", label="l", owner=host.agent("a", session="s"))
            await jobs.start(kind="k", label="l", run=lambda: ptc.JobRun(cancel=seen.append, done=never()))
            started.set()
            await anyio.sleep_forever()

    async def main() -> None:
        task = asyncio.create_task(block())
        await asyncio.wait_for(started.wait(), 10)
        task.cancel()
        await asyncio.wait_for(cleaning.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)
        assert len(asyncio.all_tasks()) == 1

        async with ptc.Host(log=log) as again:
            events = await again.agent("a", session="s").session.events()  # type: ignore[union-attr]
        assert [event.data.get("status") for event in events] == [None, "killed"]

    asyncio.run(main())
    assert sorted(seen) == ["cleaned up", "the host is closing"]


# --- output that nobody reads is bounded


@pytest.mark.parametrize("limit", [None, 1000])
async def test_unread_output_is_bounded_and_the_reader_is_told(site: Site, limit: int | None) -> None:
    most = DEFAULT_BUFFER_BYTES if limit is None else limit

    async def work(job: ptc.JobContext) -> None:
        for _ in range(3):
            job.write("x" * most)
        job.write("end")

    job_id = await site.spawn(work, output_limit_bytes=limit)
    await site.ended(job_id)
    notice, text = site.read(job_id).split("\n")
    assert notice == f"[{2 * most + 3} bytes of earlier output left out]"
    assert text == "x" * (most - 3) + "end"
    assert site.read(job_id) == ""


@given(st.lists(st.text("aé€😀\n\ud800", max_size=12)), st.integers(1, 20))
def test_a_buffer_keeps_whole_characters_of_the_end(texts: list[str], limit: int) -> None:
    buffer = OutputBuffer(limit)
    for text in texts:
        buffer.write(text)
    whole = "".join(texts).encode("utf-8", "backslashreplace").decode()
    taken = buffer.take()
    if len(whole.encode()) <= limit:
        assert taken == whole
    else:
        notice, _, kept = taken.partition("\n")
        assert whole.endswith(kept)
        assert limit - 3 <= len(kept.encode()) <= limit
        assert notice == f"[{len(whole.encode()) - len(kept.encode())} bytes of earlier output left out]"
    assert buffer.take() == ""


@given(st.text("aé€😀\n"), st.integers(1, 120), st.sampled_from(["", "\n[status: running]", "\n[status: failed, é]"]))
def test_a_bounded_text_never_passes_its_limit(body: str, limit: int, ending: str) -> None:
    text = body + ending
    bounded = bound_text(text, limit, ending)
    assert len(bounded.encode()) <= limit
    if len(text.encode()) <= limit:
        assert bounded == text
    elif limit >= len(ending.encode()):
        assert bounded.endswith(ending.lstrip("\n"))


def test_a_buffer_takes_text_alone() -> None:
    with pytest.raises(TypeError, match="output is text, not bytes"):
        OutputBuffer(10).write(b"x")  # type: ignore[arg-type]


def test_content_without_text_is_not_touched() -> None:
    picture: Any = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert bound_content([picture], 1) is None
    assert bound_content([], 1) is None


# --- the record


async def test_a_job_is_on_record_before_it_runs_and_when_it_has_ended(site: Site) -> None:
    events: list[list[str]] = []

    def begin() -> Any:
        raise LookupError("no compiler")

    async def work(_job: ptc.JobContext) -> None:
        events.append([event.type for event in await site.events()])

    with pytest.raises(LookupError):
        await site.jobs.start(kind="k", label="first", owner=site.agent, run=begin)
    await site.ended(await site.spawn(work, label="second", output_limit_bytes=9))
    assert events == [["job/started", "job/settled", "job/started"]]
    recorded = await site.events()
    assert [read_event(event) for event in recorded] == [
        JobStarted(job_id="k-1", kind="k", label="first"),
        JobSettled(job_id="k-1", status="failed", detail="it was not started: no compiler"),
        JobStarted(job_id="k-1", kind="k", label="second", output_limit_bytes=9),
        JobSettled(job_id="k-1", status="completed"),
    ]
    assert [event.cites for event in recorded] == [None, 0, None, 2]


async def test_a_start_that_cannot_be_recorded_does_not_run(site: Site, monkeypatch: Any) -> None:
    begun: list[str] = []

    async def work(_job: ptc.JobContext) -> None:
        begun.append("work")

    async def full(type: str, data: Any, *, cites: int | None = None) -> int:
        raise OSError(f"no space left on {site.log}")

    monkeypatch.setattr(site.agent.session, "append", full)
    with pytest.raises(ptc.LogUnavailableError) as raised:
        await site.spawn(work)
    assert str(raised.value) == "the background job could not be recorded, so it was not started"
    await anyio.wait_all_tasks_blocked()
    assert (begun, site.jobs.snapshots(caller=site.agent)) == ([], [])


async def test_an_end_that_cannot_be_recorded_is_an_end_all_the_same(site: Site, monkeypatch: Any, caplog: Any) -> None:
    assert site.agent.session is not None
    append = site.agent.session.append

    async def full(type: str, data: Any, *, cites: int | None = None) -> int:
        if type == "job/settled":
            raise OSError("no space left")
        return await append(type, data, cites=cites)

    monkeypatch.setattr(site.agent.session, "append", full)

    async def work(_job: ptc.JobContext) -> str:
        return "result"

    job_id = await site.spawn(work)
    assert (await site.ended(job_id)).status == "completed"
    assert site.read(job_id) == "result"
    assert [(record.levelno, job_id in record.getMessage()) for record in caplog.records] == [(logging.ERROR, True)]


async def test_jobs_are_no_runs_and_break_none(site: Site) -> None:
    async def work(_job: ptc.JobContext) -> None: ...

    @ptc.tool
    async def build(run: ptc.ToolRunContext) -> ptc.JobHandle:
        """Build."""
        return await site.jobs.spawn(work, kind="k", label="l", owner=run.agent, call=run.exec)

    site.host.tools.register(build)
    await site.agent.execute([ptc.ToolCall(name="build", call_id="c1")])
    await site.ended("k-1")
    events = await site.events()
    started = next(event for event in events if event.type == "job/started")
    assert (started.data["callId"], started.data["rootCallId"]) == ("c1", "c1")
    store: Any = site.host._store
    (session,) = await store.sessions()
    reading = read_session(session, events)
    assert [run.outcome for run in reading.runs] == ["ok"]
    assert reading.violations == []


async def test_a_host_without_jobs_has_nothing_to_do_with_them(anyio_backend: str, tmp_path: Path) -> None:
    async with ptc.Host(log=tmp_path / "log.db") as host:
        agent = host.agent("a")
        assert host.registry.events.listeners("tools/pre-execute", agent) == ()
        await agent.aclose()


async def test_what_ends_with_a_host_is_called_once_the_last_one_first(anyio_backend: str, caplog: Any) -> None:
    seen: list[str] = []
    host = ptc.Host()

    def ender(name: str) -> Any:
        async def end() -> None:
            seen.append(name)
            if name == "fails":
                raise LookupError(name)

        return end

    for name in ("first", "fails", "last"):
        host.on_close(ender(name))
    host.on_close(ender("withdrawn"))()
    async with host:
        pass
    await host.aclose()
    assert seen == ["last", "fails", "first"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
