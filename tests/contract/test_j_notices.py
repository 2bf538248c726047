"""Group J: an owner's model is told of jobs that have ended, and woken for it within bounds (contract J19)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import ptc
import pytest

pytestmark = pytest.mark.anyio


def texts(notices: Any) -> list[str]:
    return [notice.content[0]["text"] for notice in notices]


class Model:
    """A host's loop around a model that is woken: it opens a turn, takes the notices, and does what a test says."""

    def __init__(self) -> None:
        self.woken: list[list[str]] = []
        self.turn: Callable[[], Awaitable[None]] | None = None

    async def wake(self, agent: ptc.Agent) -> None:
        with agent.open_turn():
            self.woken.append(texts(agent.take_notices()))
            if self.turn is not None:
                await self.turn()


class Watch:
    """An agent with jobs, and a model that may be woken."""

    def __init__(self, yard: Any, jobs: ptc.Jobs, agent: ptc.Agent) -> None:
        self.yard, self.jobs, self.agent = yard, jobs, agent

    async def finish(self, status: str = "completed", **options: Any) -> str:
        """Starts a job, has it end, and returns its id once everything has come to rest."""
        work = self.yard.Work()
        given = {"kind": "build", "label": "the\ndocs", "owner": self.agent, **options}
        handle = await self.jobs.start(run=work, **given)
        work.finish(status)
        await anyio.wait_all_tasks_blocked()
        return handle["jobId"]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture(params=["wakeup"])
async def watch(request: Any, anyio_backend: str, yard: Any, model: Model) -> Any:
    hook = None if request.param == "quiet" else model.wake
    async with ptc.Host() as host, ptc.Jobs(host, on_wake=hook, stop_timeout_ms=50) as jobs:
        jobs.install(host.tools)
        yield Watch(yard, jobs, host.agent("owner"))


quiet = pytest.mark.parametrize("watch", ["quiet"], indirect=True)


@quiet
@pytest.mark.contract("J19")
async def test_a_notice_names_the_job_its_status_and_how_to_read_it(watch: Any, model: Model) -> None:
    for status in ("completed", "killed", "failed"):
        await watch.finish(status)
    notices = watch.agent.take_notices()
    assert texts(notices) == [
        'Background job build-1 (the docs) has completed. Read its output with job_output, job_id "build-1".',
        'Background job build-2 (the docs) was killed. Read its output with job_output, job_id "build-2".',
        'Background job build-3 (the docs) has failed. Read its output with job_output, job_id "build-3".',
    ]
    assert {notice.source["plugin"] for notice in notices} == {"jobs"}
    assert model.woken == []


@quiet
@pytest.mark.contract("J19")
async def test_in_quiet_mode_a_notice_comes_with_the_next_batch(watch: Any) -> None:
    job_id = await watch.finish()
    batch = await watch.agent.execute([ptc.ToolCall(name="job_list")])
    assert len(texts(batch.additional_contexts)) == 1
    assert not watch.jobs.get(job_id, caller=watch.agent).reported
    assert (await watch.agent.execute([ptc.ToolCall(name="job_list")])).additional_contexts == ()


@pytest.mark.contract("J19")
@pytest.mark.parametrize("how", ["kill", "wait", "listener", "unowned", "closed"])
async def test_no_notice_of_an_end_that_was_told_or_that_is_nobodys(watch: Any, model: Model, how: str) -> None:
    work, owner = watch.yard.Work(), None if how == "unowned" else watch.agent
    if how == "listener":
        watch.jobs.on_done(lambda job, owner: watch.jobs.read(job.id, caller=owner))
    job_id = (await watch.jobs.start(kind="k", label="l", owner=owner, run=work))["jobId"]
    if how == "kill":
        watch.jobs.kill(job_id, caller=watch.agent)
    if how == "closed":
        work.ends_when_cancelled = True
        await watch.agent.aclose()
    async with anyio.create_task_group() as tasks:
        if how == "wait":
            tasks.start_soon(lambda: watch.jobs.wait(job_id, 60_000, caller=watch.agent))
            await anyio.wait_all_tasks_blocked()
        work.finish()
    await anyio.wait_all_tasks_blocked()
    assert (watch.agent.take_notices(), model.woken) == ((), [])


@pytest.mark.contract("J19")
async def test_a_busy_owner_gets_the_notice_with_its_batch_and_is_not_woken(watch: Any, model: Model) -> None:
    @ptc.tool
    async def think() -> str:
        """Think while a job ends."""
        return await watch.finish()

    watch.agent.tools.register(think)
    batch = await watch.agent.execute([ptc.ToolCall(name="think")])
    await anyio.wait_all_tasks_blocked()
    assert len(texts(batch.additional_contexts)) == 1
    assert model.woken == []


@pytest.mark.contract("J19")
async def test_an_idle_owner_is_woken_with_the_notice(watch: Any, model: Model) -> None:
    await watch.finish()
    assert [len(told) for told in model.woken] == [1]
    assert "build-1" in model.woken[0][0]
    assert watch.agent.take_notices() == ()


@pytest.mark.contract("J19")
async def test_a_turn_that_ends_with_a_notice_unread_is_followed_by_another(watch: Any, model: Model) -> None:
    with watch.agent.open_turn():
        await watch.finish()  # the model is thinking, and makes no call any more
        assert model.woken == []
    await anyio.wait_all_tasks_blocked()
    assert [len(told) for told in model.woken] == [1]
    with watch.agent.open_turn():
        await watch.finish()
        watch.agent.take_notices()  # this host looks before it ends the turn
    await anyio.wait_all_tasks_blocked()
    assert len(model.woken) == 1


@pytest.mark.contract("J19")
async def test_at_most_three_turns_are_opened_before_the_user_speaks(watch: Any, model: Model) -> None:
    for _ in range(5):
        await watch.finish()
    assert [len(told) for told in model.woken] == [1, 1, 1]
    assert len(texts(watch.agent.take_notices())) == 2  # they are there for the next turn
    watch.agent.next_turn()  # of whomever
    await watch.finish()
    assert len(model.woken) == 3
    watch.jobs.user_spoke(watch.agent)
    watch.agent.take_notices()
    for _ in range(4):
        await watch.finish()
    assert len(model.woken) == 6


@pytest.mark.contract("J19")
async def test_a_job_that_ends_during_a_wake_is_told_by_another_one(watch: Any, model: Model) -> None:
    async def starts_another() -> None:
        await watch.finish()

    model.turn = starts_another
    await watch.finish()
    with anyio.fail_after(5):
        while not (len(model.woken) == 3 and watch.agent.has_notices):
            await anyio.wait_all_tasks_blocked()
    await anyio.wait_all_tasks_blocked()
    # Each turn ends a job that makes the next turn, until the bound.
    assert [len(told) for told in model.woken] == [1, 1, 1]
    assert len(texts(watch.agent.take_notices())) == 1


@pytest.mark.contract("J19")
async def test_a_hook_that_opens_no_turn_is_called_again_for_what_has_ended_meanwhile(anyio_backend, yard) -> None:
    woken: list[list[str]] = []

    async def wake(agent: ptc.Agent) -> None:
        woken.append(texts(agent.take_notices()))
        if len(woken) == 1:
            await watch.finish()
            assert len(woken) == 1  # one at a time

    async with ptc.Host() as host, ptc.Jobs(host, on_wake=wake) as jobs:
        jobs.install(host.tools)
        watch = Watch(yard, jobs, host.agent("owner"))
        await watch.finish()
        with anyio.fail_after(5):
            while len(woken) < 2:
                await anyio.wait_all_tasks_blocked()
    assert [len(told) for told in woken] == [1, 1]


@pytest.mark.contract("J19")
async def test_two_ends_at_once_wake_once(watch: Any, model: Model) -> None:
    works = [watch.yard.Work(), watch.yard.Work()]
    for work in works:
        await watch.jobs.start(kind="k", label="l", owner=watch.agent, run=work)
    release = anyio.Event()
    model.turn = release.wait
    for work in works:
        work.finish()
    await anyio.wait_all_tasks_blocked()
    assert len(model.woken) == 1
    release.set()
    await anyio.wait_all_tasks_blocked()
    assert sum(len(told) for told in model.woken) == 2


@pytest.mark.contract("J19")
async def test_wakes_of_one_owner_do_not_count_for_another(watch: Any, model: Model) -> None:
    other = watch.jobs._host.agent("other")
    for _ in range(4):
        await watch.finish()
    await watch.finish(owner=other)
    assert len(model.woken) == 4


@pytest.mark.contract("J19")
async def test_a_hook_that_fails_leaves_the_notice_and_the_service_alone(watch, model, caplog) -> None:
    async def fails() -> None:
        raise LookupError("no model")

    model.turn = fails
    await watch.finish()
    await watch.finish()
    assert len(model.woken) == 2
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert (await watch.agent.execute([ptc.ToolCall(name="job_list")])).results[0].result.is_error is False


@pytest.mark.contract("J19", "J13")
async def test_a_wake_is_cancelled_when_the_service_closes(anyio_backend: str, yard: Any, model: Model) -> None:
    model.turn = anyio.sleep_forever
    with anyio.fail_after(5):
        async with ptc.Host() as host, ptc.Jobs(host, on_wake=model.wake) as jobs:
            jobs.install(host.tools)
            await Watch(yard, jobs, host.agent("owner")).finish()
            assert len(model.woken) == 1


@pytest.mark.contract("J19")
@pytest.mark.parametrize("options", [{"on_wake": "wake"}, {"max_consecutive_wakes": 0}])
async def test_options_are_checked(anyio_backend: str, options: Any) -> None:
    async with ptc.Host() as host:
        with pytest.raises((TypeError, ValueError), match=r"on_wake|max_consecutive_wakes"):
            ptc.Jobs(host, **options)
