"""What a client is offered, and what it gets of a call: text, images, errors, progress, and an end when it gives up."""

from __future__ import annotations

import base64
import json

import anyio
import ptc
import pytest
from mcp import Client, MCPError
from mcp_types import ImageContent, Implementation, TextContent
from ptc.runtime.config import Config, SandboxSettings, ScopeConfig, ServeSettings

from .conftest import Serving, run_code

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n not much of one").decode()

pytestmark = pytest.mark.anyio


@ptc.tool(concurrency_safe=True)
async def double(x: int) -> int:
    """Double a number."""
    return 2 * x


@ptc.tool
async def refuse(why: str) -> str:
    """Fail."""
    raise ValueError(why)


async def _draw(_arguments: object, _run: ptc.ToolRunContext) -> dict[str, int]:
    return {"width": 1}


draw = ptc.define_tool(
    name="draw",
    description="Draw a picture.",
    parameters={},
    output={
        "type": "object",
        "properties": {"width": {"type": "integer", "required": True}},
        "additionalProperties": False,
    },
    execute=_draw,
    render=lambda _arguments, _value: [
        ptc.text_block("a picture"),
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
    ],
)


async def test_a_client_is_offered_one_tool_that_declares_all_the_others(serving: Serving, era: str) -> None:
    async with serving(double, refuse) as stage, Client(stage.service.server, mode=era) as client:
        tools = (await client.list_tools()).tools

    assert [tool.name for tool in tools] == ["run_code"]
    assert tools[0].description is not None
    assert "async def double(self, args: DoubleArgs) -> int:" in tools[0].description
    assert "Fail." in tools[0].description
    assert tools[0].input_schema["required"] == ["code", "description"]


async def test_the_instructions_tell_how_to_write_programs_after_those_of_the_host(serving: Serving, era: str) -> None:
    config = Config(serve=ServeSettings(name="shop", instructions="This is the shop."))
    async with serving(double, config=config) as stage, Client(stage.service.server, mode=era) as client:
        told, info = client.instructions, client.server_info

    assert info is not None
    assert info.name == "shop"
    assert told is not None
    assert told.startswith("This is the shop.\n\n")
    assert "await tools." in told
    assert "description of run_code" in told


async def test_a_program_gives_what_a_model_would_see(serving: Serving, era: str) -> None:
    async with serving(double) as stage, Client(stage.service.server, mode=era) as client:
        result = await run_code(client, "print('so')\nreturn [await tools.double(x=n) for n in range(3)]")

    assert not result.is_error
    assert result.content == [TextContent(text="so\n[\n  0,\n  2,\n  4\n]")]


async def test_images_of_tools_come_back_as_images(serving: Serving, era: str) -> None:
    async with serving(draw) as stage, Client(stage.service.server, mode=era) as client:
        result = await run_code(client, "return (await tools.draw())['width']")

    assert result.content == [
        TextContent(text="1"),
        TextContent(text="a picture"),
        ImageContent(data=PIXEL, mime_type="image/png"),
    ]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("await tools.refuse(why='no paper')", "ToolCallError: no paper"),
        ("1 / 0", "ZeroDivisionError"),
        ("while", "SyntaxError"),
        ("await tools.nothing()", "nothing"),
    ],
)
async def test_a_program_that_fails_is_an_error_with_its_text(serving: Serving, era: str, code: str, told: str) -> None:
    async with serving(double, refuse) as stage, Client(stage.service.server, mode=era) as client:
        result = await run_code(client, code)

    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    assert told in result.content[0].text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("double", {"x": 1}),
        ("nothing", {}),
        ("run_code", {}),
        ("run_code", {"code": 3, "description": "no text"}),
        ("run_code", None),
    ],
)
async def test_a_call_of_something_else_is_an_error_for_the_model(
    serving: Serving, era: str, name: str, arguments: dict[str, object] | None
) -> None:
    async with serving(double) as stage, Client(stage.service.server, mode=era) as client:
        result = await client.call_tool(name, arguments)
        after = await run_code(client, "return await tools.double(x=2)")

    assert result.is_error
    assert after.content == [TextContent(text="4")]


async def test_each_call_of_a_program_is_told_when_it_begins_and_when_it_has_ended(serving: Serving, era: str) -> None:
    told: list[tuple[float, str | None]] = []

    async def progress(number: float, total: float | None, message: str | None) -> None:
        assert total is None
        told.append((number, message))

    code = "await tools.double(x=1)\ntry:\n    await tools.refuse(why='no')\nexcept ToolCallError:\n    pass"
    async with serving(double, refuse) as stage, Client(stage.service.server, mode=era) as client:
        await run_code(client, code, progress_callback=progress)

    assert told == [(1, "double: called"), (2, "double: done"), (3, "refuse: called"), (4, "refuse: failed: no")]


async def test_a_client_that_gives_up_stops_the_program_and_what_it_calls(serving: Serving, era: str) -> None:
    begun, ended = anyio.Event(), anyio.Event()
    reasons: list[object] = []

    @ptc.tool
    async def wait(run: ptc.ToolRunContext) -> None:
        """Wait until told otherwise."""
        begun.set()
        reasons.append(await run.signal.wait())
        ended.set()

    async with serving(wait, double) as stage, Client(stage.service.server, mode=era) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_code, client, "await tools.wait()\nawait tools.double(x=1)")
            await begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(20):
            await ended.wait()
        after = await run_code(client, "return await tools.double(x=2)")

    assert [str(reason) for reason in reasons] == ["the client has given the call up"]
    assert after.content == [TextContent(text="4")]


async def test_calls_of_one_client_go_side_by_side(serving: Serving, era: str) -> None:
    met = anyio.Event()

    @ptc.tool(concurrency_safe=True)
    async def first() -> None:
        """Wait for the other."""
        await met.wait()

    @ptc.tool(concurrency_safe=True)
    async def second() -> None:
        """Be waited for."""
        met.set()

    async with serving(first, second) as stage, Client(stage.service.server, mode=era) as client:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_code, client, "await tools.first()")
                tasks.start_soon(run_code, client, "await tools.second()")


async def test_every_call_is_on_record_under_the_name_of_the_client(serving: Serving, era: str) -> None:
    info = Implementation(name="evil\x1b[31m\u202eclient", version="1")
    async with serving(double) as stage, Client(stage.service.server, mode=era, client_info=info) as client:
        await run_code(client, "return await tools.double(x=21)")
        store: ptc.EventStore = stage.host._store  # type: ignore[assignment]
        sessions = await store.sessions()
        events = await store.events(sessions[0].id)

    assert [session.agent for session in sessions] == ["evil_31m_client"]
    types = [event.type for event in events]
    assert types.index("tool/call") < types.index("tool/ptc-dispatch-start") < types.index("tool/ptc-dispatch")
    assert "tool/result" in types
    recorded = next(event for event in events if event.type == "tool/ptc-dispatch")
    assert json.loads(json.dumps(recorded.data))["arguments"] == {"x": 21}


async def test_a_native_client_is_offered_the_tools_themselves(serving: Serving, era: str) -> None:
    config = Config(sandbox=SandboxSettings(backend="native"))
    async with serving(double, draw, config=config) as stage, Client(stage.service.server, mode=era) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool("double", {"x": 4})
        drawn = await client.call_tool("draw", {})
        wrong = await client.call_tool("double", {"x": "four"})
        instructions = client.instructions

    assert [tool.name for tool in tools] == ["double", "draw"]
    assert tools[0].annotations is None
    assert tools[0].description == "Double a number."
    assert result.content == [TextContent(text="8")]
    assert drawn.content == [TextContent(text="a picture"), ImageContent(data=PIXEL, mime_type="image/png")]
    assert wrong.is_error
    assert not instructions


async def test_what_holds_for_a_client_goes_by_its_name(serving: Serving, era: str) -> None:
    config = Config(clients={"guest*": ScopeConfig(deny=("ref*",)), "*": ScopeConfig(sandbox={"backend": "native"})})

    async def offered(name: str) -> dict[str, str | None]:
        async with serving(double, refuse, config=config) as stage:
            info = Implementation(name=name, version="1")
            async with Client(stage.service.server, mode=era, client_info=info) as client:
                return {tool.name: tool.description for tool in (await client.list_tools()).tools}

    guest, other = await offered("guest 7"), await offered("owner")

    assert list(guest) == ["run_code"]
    assert "def double" in (guest["run_code"] or "")
    assert "refuse" not in (guest["run_code"] or "")
    assert list(other) == ["double", "refuse"]


async def test_a_server_that_ends_stops_programs_and_still_answers(serving: Serving, era: str) -> None:
    begun = anyio.Event()

    @ptc.tool
    async def wait(run: ptc.ToolRunContext) -> None:
        """Wait until told otherwise."""
        begun.set()
        await run.signal.wait()

    results = []
    async with serving(wait) as stage, Client(stage.service.server, mode=era) as client:

        async def call() -> None:
            results.append(await run_code(client, "await tools.wait()\nreturn 'never'"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await begun.wait()
            await stage.service.drain()
        with pytest.raises(MCPError, match="the server is ending"):
            await run_code(client, "return 1")

    assert results[0].is_error
    assert "never" not in results[0].content[0].text


async def test_the_configured_sandbox_runs_the_programs(serving: Serving, era: str) -> None:
    sandbox = SandboxSettings(backend="restricted", output_bytes=2_000, sdk_budget=700, max_parallel_sub_calls=3)
    config = Config(sandbox=sandbox)
    async with serving(double, config=config) as stage, Client(stage.service.server, mode=era) as client:
        (offered,) = (await client.list_tools()).tools
        fits = await run_code(client, "return await tools.double(x=1)")
        found = await run_code(client, "return await tools.search('double a number')")
        long = await run_code(client, "print('x' * 3_000)")
        store: ptc.EventStore = stage.host._store  # type: ignore[assignment]
        (session,) = await store.sessions()

    assert fits.content == [TextContent(text="2")]
    assert (session.labels or {})["isolation"] == "process"
    assert long.is_error
    assert "output-limit" in long.content[0].text  # type: ignore[union-attr]
    # With so few tools the text in full is short enough, or else the call that finds them is there.
    assert found.is_error is ("def double" in (offered.description or ""))
