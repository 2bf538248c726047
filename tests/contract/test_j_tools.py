"""Group J: the typed handle, and the three tools by which models follow jobs (contract J15 to J18, J20)."""

from __future__ import annotations

from typing import Any

import anyio
import ptc
import pytest

pytestmark = pytest.mark.anyio

NAMES = ["job_kill", "job_list", "job_output"]


@pytest.mark.contract("J15")
async def test_a_tool_answers_with_a_typed_handle(yard: Any) -> None:
    work = yard.Work()
    work.ends_when_cancelled = True

    @ptc.tool
    async def build(run: ptc.ToolRunContext) -> ptc.JobHandle:
        """Build in the background."""
        return await yard.jobs.start(kind="build", label="docs", owner=run.agent, run=work)

    yard.host.tools.register(build)
    result = await yard.call("build")
    assert result.value == {"kind": "background", "jobId": "build-1"}
    schema: Any = build.output.schema
    assert schema["properties"]["kind"]["const"] == "background"
    assert sorted(schema["required"]) == ["jobId", "kind"]


@pytest.mark.contract("J16")
async def test_output_is_the_body_and_a_status_line(yard: Any) -> None:
    work = yard.Work()
    job_id = await yard.start(work, label="the\ndocs")

    async def text() -> str:
        result = await yard.call("job_output", job_id=job_id)
        assert result.text == result.value["text"]
        assert "".join(block["text"] for block in result.content) == result.text
        return result.text

    assert await text() == "(no new output)\n[status: running]"
    work.chunks += ["one\ntwo\n"]
    assert await text() == "one\ntwo\n[status: running]"
    yard.jobs.kill(job_id, caller=yard.agent)
    work.chunks += ["three"]
    assert await text() == "three\n[status: stopping]"
    work.finish("failed", "exit code 2\n[status: completed]")
    await yard.ended(job_id)
    assert await text() == "(no new output)\n[status: failed, exit code 2 [status: completed]]"
    job = yard.jobs.get(job_id, caller=yard.agent)
    assert (await yard.call("job_output", job_id=job_id)).value["job"] == {
        "id": "build-1", "kind": "build", "label": "the\ndocs", "status": "failed",
        "detail": "exit code 2\n[status: completed]", "startedAt": job.started_at, "finishedAt": job.finished_at,
    }  # fmt: skip


@pytest.mark.contract("J16")
async def test_the_list_is_an_array_and_reads_as_lines(yard: Any) -> None:
    empty = await yard.call("job_list")
    assert (empty.value, empty.text) == ([], "(no background jobs)")
    await yard.start(work := yard.Work(), label="the\n docs", output_limit_bytes=9)
    await yard.start(owner=None, kind="watch")
    await yard.start(owner=yard.host.agent("other"))
    work.finish("killed")
    await yard.ended("build-1")
    listed = await yard.call("job_list")
    assert listed.text == "build-1 [build] killed — the docs\nwatch-1 [watch] running — the docs"
    assert [set(job) for job in listed.value] == [
        {"id", "kind", "label", "status", "startedAt", "finishedAt"},
        {"id", "kind", "label", "status", "startedAt"},
    ]


@pytest.mark.contract("J16", "J10")
async def test_kill_tells_what_came_of_it(yard: Any) -> None:
    work = yard.Work()
    job_id = await yard.start(work)
    first = await yard.call("job_kill", job_id=job_id, reason="enough")
    assert (first.value["outcome"], first.value["job"]["status"]) == ("cancellation-requested", "stopping")
    assert first.text == "cancellation of job build-1 was requested\n[status: stopping]"
    await yard.call("job_kill", job_id=job_id)
    assert work.reasons == ["enough", None]
    work.finish("killed", "by the user")
    await yard.ended(job_id)
    late = await yard.call("job_kill", job_id=job_id)
    assert (late.value["outcome"], late.value["job"]["status"]) == ("already-finished", "killed")
    assert late.text == "job build-1 had finished already\n[status: killed, by the user]"


@pytest.mark.contract("J16", "J7")
@pytest.mark.parametrize("name", ["job_output", "job_kill"])
async def test_an_id_that_leads_nowhere_is_refused(yard: Any, name: str) -> None:
    other = await yard.start(owner=yard.host.agent("other"))
    cases = [
        ("", "INVALID_ARGS", "job_id"),
        ("build-9", "UNKNOWN_JOB", "unknown job build-9"),
        (other, "JOB_OTHER_SESSION", "job build-1 belongs to another session"),
    ]
    for job_id, code, says in cases:
        result = await yard.call(name, job_id=job_id)
        assert result.error.info.code == code
        assert says in result.error.message
    assert (await yard.call(name)).error.info.code == "INVALID_ARGS"
    assert (await yard.call(name, job_id=3)).error.info.code == "INVALID_ARGS"


@pytest.mark.contract("J17")
async def test_waits_have_a_default_and_a_cap(yard: Any, monkeypatch: Any) -> None:
    job_id = await yard.start()
    waits: list[float] = []

    async def wait(job_id: str, timeout_ms: float, **_options: Any) -> Any:
        waits.append(timeout_ms)
        return yard.jobs.get(job_id, caller=yard.agent)

    monkeypatch.setattr(yard.jobs, "wait", wait)
    await yard.call("job_output", job_id=job_id)
    await yard.call("job_output", job_id=job_id, wait=False, timeout_ms=5)
    assert waits == []
    for timeout_ms in (None, 5, 0.5, 600_000, 600_001, 10**12):
        given = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
        result = await yard.call("job_output", job_id=job_id, wait=True, **given)
        assert result.value["job"]["status"] == "running"
    assert waits == [30_000, 5, 0.5, 600_000, 600_000, 600_000]
    for timeout_ms in (0, -1):
        result = await yard.call("job_output", job_id=job_id, wait=True, timeout_ms=timeout_ms)
        assert result.error.info.code == "INVALID_ARGS"
    assert len(waits) == 6


@pytest.mark.contract("J17")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"default_wait_ms": 11, "max_wait_ms": 10}, "default_wait_ms is 11, which is more than max_wait_ms, 10"),
        ({"max_wait_ms": 29_999}, "default_wait_ms is 30000, which is more"),
        ({"default_wait_ms": 0}, "default_wait_ms must be positive|default_wait_ms must be a positive"),
        ({"max_wait_ms": float("inf")}, "max_wait_ms must be a positive finite"),
    ],
)
async def test_a_default_beyond_the_cap_is_refused_when_the_tools_are_installed(anyio_backend, options, says) -> None:
    async with ptc.Host() as host, ptc.Jobs(host) as jobs:
        with pytest.raises(ValueError, match=says):
            jobs.install(host.tools, **options)
        assert host.tools.definitions() == []
        jobs.install(host.tools, default_wait_ms=10, max_wait_ms=10)


@pytest.mark.contract("J17", "J11")
async def test_a_wait_that_is_over_is_a_success_and_one_that_was_worth_it_too(yard: Any) -> None:
    work = yard.Work()
    job_id = await yard.start(work)
    over = await yard.call("job_output", job_id=job_id, wait=True, timeout_ms=2)
    assert over.text == "(no new output)\n[status: running]"
    results: list[Any] = []

    async def wait() -> None:
        results.append(await yard.call("job_output", job_id=job_id, wait=True))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        work.chunks.append("last words")
        work.finish()
    assert results[0].text == "last words\n[status: completed]"
    assert yard.agent.take_notices() == ()


@pytest.mark.contract("J11", "J17")
async def test_a_call_that_is_given_up_while_it_waits_reads_nothing(yard: Any) -> None:
    work, source = yard.Work(), ptc.SignalSource()
    work.chunks.append("kept")
    job_id = await yard.start(work)
    yard.jobs.on_change(lambda change: source.abort("in the tick of the end") if change.job.ended else None)
    results: list[Any] = []

    async def wait() -> None:
        results.append(await yard.call("job_output", job_id=job_id, wait=True, signal=source.signal))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        work.finish()
    assert results[0].error.info.code == "ABORTED"
    assert (await yard.call("job_output", job_id=job_id)).text == "kept\n[status: completed]"


LONG = "".join(f"line {number}: €\n" for number in range(100))


@pytest.mark.contract("J18")
@pytest.mark.parametrize("limit", [60, 61, 62, 63, 64, 200, 1000])
async def test_what_is_shown_is_bounded_and_keeps_its_end_and_the_status(yard: Any, limit: int) -> None:
    work = yard.Work()
    job_id = await yard.start(work, output_limit_bytes=limit)
    work.chunks.append(LONG)
    result = await yard.call("job_output", job_id=job_id)
    shown = result.text.encode()
    assert limit - 6 <= len(shown) <= limit  # less than a character, and a digit of the number, are left
    notice, *kept, status = result.text.split("\n")
    assert status == "[status: running]"
    body = "\n".join(kept)
    assert LONG.removesuffix("\n").endswith(body)
    left_out = len(LONG.removesuffix("\n").encode()) - len(body.encode())
    assert notice == f"[{left_out} bytes of earlier output left out]"
    assert result.value["text"] == f"{LONG}[status: running]"  # what programs get is whole


@pytest.mark.contract("J18")
async def test_what_fits_the_limit_is_untouched(yard: Any) -> None:
    work = yard.Work()
    whole = "é\n[status: running]"
    job_id = await yard.start(work, output_limit_bytes=len(whole.encode()))
    work.chunks.append("é")
    assert (await yard.call("job_output", job_id=job_id)).text == whole
    unlimited = await yard.start(work)
    work.chunks.append("x" * 100_000)
    assert len((await yard.call("job_output", job_id=unlimited)).text) > 100_000


@pytest.mark.contract("J18")
async def test_the_status_goes_first_into_a_small_limit(yard: Any) -> None:
    sizes = {50: "[status: running]", 17: "[status: running]", 5: "[stat", 1: "["}
    for limit, shown in sizes.items():
        work = yard.Work()
        work.chunks.append(LONG)
        result = await yard.call("job_output", job_id=await yard.start(work, output_limit_bytes=limit))
        assert result.text == shown


@pytest.mark.contract("J18")
async def test_the_answer_to_a_kill_is_bounded_too(yard: Any) -> None:
    job_id = await yard.start(yard.Work(), output_limit_bytes=30)
    result = await yard.call("job_kill", job_id=job_id)
    assert result.text == "[status: stopping]"


@pytest.mark.contract("J18")
async def test_what_a_policy_has_put_in_the_place_is_bounded_without_a_status(yard: Any) -> None:
    picture: Any = {"type": "image", "data": "AAAA", "mimeType": "image/png"}

    @yard.host.on("tools/post-execute")
    async def replaces(exec: Any, result: Any, next: Any) -> Any:
        return ptc.Accept(content=[ptc.text_block("p" * 100), picture, ptc.text_block("q" * 100)])

    job_id = await yard.start(yard.Work(), output_limit_bytes=120)
    result = await yard.call("job_output", job_id=job_id)
    text, image = result.content
    assert image == picture
    assert len(text["text"].encode()) == 120
    assert text["text"].endswith("q" * 80)
    assert "status" not in text["text"]


@pytest.mark.contract("J18")
async def test_a_failed_call_is_bounded_too(yard: Any) -> None:
    work = yard.Work()

    def read_output() -> str:
        raise OSError("x" * 1000)

    work.read_output = read_output
    result = await yard.call("job_output", job_id=await yard.start(work, output_limit_bytes=100))
    assert result.is_error
    assert len(result.text.encode()) <= 100


@pytest.mark.contract("J18")
async def test_the_limit_is_the_one_that_the_call_began_with(yard: Any) -> None:
    """The job is gone when the call is finalised; its limit was seen before any policy."""
    work = yard.Work(final=True)
    job_id = await yard.start(work, output_limit_bytes=100)

    @yard.host.on("tools/post-execute")
    async def closes(exec: Any, result: Any, next: Any) -> Any:
        await yard.agent.aclose()
        return await next()

    work.finish(output="z" * 1000)
    await yard.ended(job_id)
    result = await yard.call("job_output", job_id=job_id)
    with pytest.raises(ptc.UnknownJobError):
        yard.jobs.get(job_id, caller=yard.agent)
    assert result.text == f"[960 bytes of earlier output left out]\n{'z' * 40}\n[status: completed]"


@pytest.mark.contract("J18", "J7")
async def test_the_limit_of_anothers_job_is_not_seen(yard: Any) -> None:
    job_id = await yard.start(owner=yard.host.agent("other"), output_limit_bytes=5)
    assert (await yard.call("job_output", job_id=job_id)).error.message == "job build-1 belongs to another session"
    assert "belongs to another session" in (await yard.call("job_output", job_id=job_id)).text


@pytest.mark.contract("J20")
async def test_none_of_the_tools_may_overlap_with_others(yard: Any) -> None:
    definitions = yard.host.tools.definitions()
    assert sorted(definition.name for definition in definitions) == NAMES
    assert [definition.is_concurrency_safe for definition in definitions] == [None] * 3


@pytest.mark.contract("J16")
async def test_the_tools_are_installed_and_taken_away_as_one(anyio_backend: str) -> None:
    async with ptc.Host() as host, ptc.Host() as other, ptc.Jobs(host) as jobs:
        with pytest.raises(ValueError, match="another host"):
            jobs.install(other.tools)
        remove = jobs.install(host.tools)
        with pytest.raises(ptc.ToolRegistrationError):
            jobs.install(host.tools)
        assert sorted(definition.name for definition in host.tools.definitions()) == NAMES
        remove()
        remove()
        assert host.tools.definitions() == []

        @ptc.tool
        async def job_list() -> list[str]:
            """Another tool of that name."""
            return []

        host.tools.register(job_list)
        with pytest.raises(ptc.ToolRegistrationError):
            jobs.install(host.tools)
        assert [definition.name for definition in host.tools.definitions()] == ["job_list"]
        with pytest.raises(ptc.JobError, match="not installed"):
            await jobs.start(kind="k", label="l", run=lambda: None)  # type: ignore[arg-type, return-value]
