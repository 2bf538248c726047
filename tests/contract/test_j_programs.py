"""Group J: programs start, follow and stop background jobs, in both sandboxes (contract J14 to J16)."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest

pytestmark = pytest.mark.anyio

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted sandbox is for Linux")
SANDBOXES: list[Any] = [ptc.WasmSandbox, pytest.param(ptc.RestrictedSandbox, marks=linux)]


@pytest.fixture(params=SANDBOXES, ids=["wasm", "restricted"])
async def site(request: Any, anyio_backend: str, tmp_path: Path) -> AsyncIterator[tuple[ptc.Agent, ptc.Jobs]]:
    make: Callable[[], ptc.Sandbox] = request.param
    async with ptc.Host(log=tmp_path / "log.db") as host, ptc.Jobs(host) as jobs:
        jobs.install(host.tools)

        @ptc.tool
        async def build(target: str, run: ptc.ToolRunContext) -> ptc.JobHandle:
            """Build a target in the background."""

            async def work(job: ptc.JobContext) -> str:
                job.write(f"building {target}\n")
                if target == "docs":
                    await anyio.sleep_forever()
                return "done\n"

            return await jobs.spawn(work, kind="build", label=target, owner=run.agent, call=run.exec)

        host.tools.register(build)
        yield host.agent("coder", executor=ptc.PtcExecutor(sandbox=make())), jobs


async def value(agent: ptc.Agent, program: str) -> Any:
    result = await agent.run_code(textwrap.dedent(program))
    assert not result.is_error, result.error.message
    given: Any = result.value
    return given["result"]


@pytest.mark.contract("J14", "J15", "J16")
async def test_one_program_starts_a_job_and_later_ones_read_and_kill_it(site: Any) -> None:
    agent, jobs = site
    handle = await value(agent, "return await tools.build(target='docs')")
    assert handle == {"kind": "background", "jobId": "build-1"}
    await anyio.wait_all_tasks_blocked()
    assert jobs.get("build-1", caller=agent).status == "running"
    read = await value(
        agent,
        """
        listed = await tools.job_list()
        output = await tools.job_output(job_id=listed[0]["id"])
        return [[job["status"] for job in listed], output["text"], output["job"]["label"]]
        """,
    )
    assert read == [["running"], "building docs\n[status: running]", "docs"]
    killed = await value(
        agent,
        """
        answer = await tools.job_kill(job_id="build-1", reason="not needed")
        output = await tools.job_output(job_id="build-1", wait=True)
        again = await tools.job_kill(job_id="build-1")
        return [answer["outcome"], output["text"], again["outcome"], again["job"]["detail"]]
        """,
    )
    assert killed == [
        "cancellation-requested",
        "(no new output)\n[status: killed, not needed]",
        "already-finished",
        "not needed",
    ]
    (started, settled) = [event for event in await agent.session.events() if event.type.startswith("job/")]
    begun = next(event for event in await agent.session.events() if event.type == "tool/ptc-dispatch-start")
    assert started.data["callId"] == begun.data["subCallId"]
    assert started.data["rootCallId"] == begun.data["rootCallId"]
    assert (settled.data["status"], settled.cites) == ("killed", started.seq)


@pytest.mark.contract("J14", "J16")
async def test_one_program_does_it_all_with_the_handle(site: Any) -> None:
    agent, _jobs = site
    result = await value(
        agent,
        """
        handles = [await tools.build(target=name) for name in ("a", "b")]
        texts = [(await tools.job_output(job_id=h["jobId"], wait=True, timeout_ms=20000))["text"] for h in handles]
        try:
            await tools.job_output(job_id="build-3")
        except ToolCallError as error:
            texts.append(str(error))
        return texts
        """,
    )
    assert result == [
        "building a\ndone\n[status: completed]",
        "building b\ndone\n[status: completed]",
        "unknown job build-3",
    ]
