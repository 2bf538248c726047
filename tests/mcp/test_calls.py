"""Calls on their way: cancelled, too long, with progress, with questions to the user, and side by side."""

from __future__ import annotations

import json
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime import mcp

pytestmark = pytest.mark.anyio


async def test_a_cancelled_call_is_cancelled_at_the_server(servers: Any) -> None:
    async with servers.connected(servers.plain()) as use:
        source = ptc.SignalSource()
        results: list[Any] = []

        async def call() -> None:
            results.append(await use.call("s_sleep", source.signal, seconds=60))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await anyio.sleep(0.2)
            source.abort("enough")
        assert results[0].error.info.code == "ABORTED"
        assert len(json.loads((await use.call("s_cancelled")).value)) == 1


async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(servers: Any) -> None:
    async with servers.connected(servers.plain(timeout_ms=300)) as use:
        late = await use.call("s_sleep", seconds=60)
        assert late.error.info.code == "TOOL_TIMEOUT"
        assert late.error.message == (
            "tool call timed out after 300ms: whether the call has taken effect is unknown; find out before you call "
            "again"
        )
        assert len(json.loads((await use.call("s_cancelled")).value)) == 1


async def test_calls_go_on_side_by_side(servers: Any) -> None:
    async with servers.connected(servers.plain()) as use:
        order: list[str] = []

        async def call(name: str, **arguments: Any) -> None:
            await use.host.agent(name).execute([ptc.ToolCall(name=f"s_{name}", arguments=arguments)])
            order.append(name)

        async with anyio.create_task_group() as group:
            group.start_soon(lambda: call("sleep", seconds=1))
            await anyio.sleep(0.1)
            group.start_soon(lambda: call("echo", text="x"))
        assert order == ["echo", "sleep"]


async def test_progress_is_told_and_only_grows(servers: Any) -> None:
    async with servers.connected(servers.plain("progress")) as use:
        assert (await use.call("s_progress")).value == "without progress"
        told: list[mcp.McpProgress] = []
        stop = use.servers.on_progress(told.append)
        assert (await use.call("s_progress")).value == "with progress"
        steps = [each.progress for each in told]
        assert steps == sorted(set(steps))
        assert steps[-1] == 3
        last = told[-1]
        assert (last.server, last.total, last.message, last.exec.name) == ("s", 3, "step 3", "s_progress")
        stop()
        assert (await use.call("s_progress")).value == "without progress"


async def test_a_listener_of_progress_that_raises_harms_nobody(servers: Any) -> None:
    async with servers.connected(servers.plain("progress")) as use:
        told: list[float] = []

        def raises(_progress: mcp.McpProgress) -> None:
            raise ValueError("mine")

        use.servers.on_progress(raises)
        use.servers.on_progress(lambda each: told.append(each.progress))
        assert (await use.call("s_progress")).value == "with progress"
        assert told


async def test_a_question_is_put_to_the_user_and_its_time_does_not_count(servers: Any) -> None:
    asked: list[mcp.ElicitRequest] = []

    async def elicit(request: mcp.ElicitRequest) -> mcp.ElicitAnswer:
        asked.append(request)
        await anyio.sleep(1.0)
        return mcp.ElicitAnswer(action="accept", content={"colour": "red"})

    async with servers.connected(servers.plain("ask", timeout_ms=700), elicit=elicit) as use:
        answered = await use.call("s_ask")
        assert json.loads(answered.value) == {"action": "accept", "content": {"colour": "red"}}
        (request,) = asked
        assert (request.server, request.message, request.url) == ("s", "Which colour?", None)
        assert request.schema["properties"] == {"colour": {"type": "string"}}
        assert [each.name for each in request.calls] == ["s_ask"]
        assert request.calls[0].agent is use.agent


async def test_a_question_ends_with_its_call(servers: Any) -> None:
    waiting = anyio.Event()
    ended = anyio.Event()

    async def elicit(_request: mcp.ElicitRequest) -> mcp.ElicitAnswer:
        waiting.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with servers.connected(servers.plain("ask"), elicit=elicit) as use:
        source = ptc.SignalSource()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: use.call("s_ask", source.signal))
            await waiting.wait()
            source.abort()
        with anyio.fail_after(10):
            await ended.wait()


async def _declines(_request: mcp.ElicitRequest) -> mcp.ElicitAnswer:
    return mcp.ElicitAnswer(action="decline")


async def _raises(_request: mcp.ElicitRequest) -> mcp.ElicitAnswer:
    raise ValueError("no terminal")


async def _answers_nonsense(_request: mcp.ElicitRequest) -> mcp.ElicitAnswer:
    return mcp.ElicitAnswer(action="accept", content={"colour": {"deep": {}}})


@pytest.mark.parametrize(
    ("elicit", "action"), [(_declines, "decline"), (_raises, "cancel"), (_answers_nonsense, "cancel")]
)
async def test_a_question_that_gets_no_answer(servers: Any, elicit: mcp.ElicitHandler, action: str) -> None:
    async with servers.connected(servers.plain("ask"), elicit=elicit) as use:
        assert json.loads((await use.call("s_ask")).value) == {"action": action}


async def test_without_a_user_the_server_is_told_that_nobody_can_be_asked(servers: Any) -> None:
    async with servers.connected(servers.plain("ask")) as use:
        assert json.loads((await use.call("s_ask")).value)["message"] == "Elicitation not supported"


async def test_a_program_calls_the_tools_and_catches_their_errors(servers: Any) -> None:
    program = """
import asyncio
texts = await asyncio.gather(*[tools.s_echo(text=str(n)) for n in range(3)])
try:
    await tools["s_die"]()
except ToolCallError as error:
    texts.append(str(error))
return texts
"""
    executor = ptc.PtcExecutor(sandbox=ptc.RestrictedSandbox())
    async with servers.connected(servers.plain(), executor=executor) as use:
        done = await use.call("run_code", code=program, description="try")
        assert not done.is_error, done.error
        assert done.value["result"][:3] == ["0", "1", "2"]
        assert "whether the call has taken effect is unknown" in done.value["result"][3]
