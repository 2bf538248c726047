"""The example for pydantic-ai works, with pydantic-ai's own test models in the place of a model."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import ptc
import pytest
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, ModelRetry, RunContext
from pydantic_ai.capabilities import Hooks
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

pytestmark = pytest.mark.anyio

PICTURE = b"\x89PNG\xff\xfe"


@pytest.fixture
def assistant(example: Callable[[str, str], ModuleType]) -> ModuleType:
    return example("pydantic_ai", "assistant")


@pytest.fixture
def wrap(assistant: ModuleType, host: ptc.Host, executor: ptc.PtcExecutor) -> Callable[..., Any]:
    """Wraps a toolset of pydantic-ai."""
    return lambda toolset: assistant.RunCodeToolset(toolset, host=host, executor=executor)


def writes(*programs: str) -> FunctionModel:
    """A model that calls `run_code` with each program in turn, and then says what the last one has printed."""
    left = list(programs)

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if left:
            return ModelResponse([ToolCallPart("run_code", {"code": left.pop(0), "description": "Go on"})])
        return ModelResponse([TextPart(returned(messages)[-1].model_response_str())])

    return FunctionModel(answer)


def returned(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


async def calls_of(host: ptc.Host, session: str) -> list[tuple[str, str]]:
    """Returns (name, id) of the calls that programs have made, from the log."""
    store: Any = host._store
    events = await store.events(session)
    return [(one.data["name"], one.data["subCallId"]) for one in events if one.type == "tool/ptc-dispatch-start"]


def test_the_script_runs_without_a_model(run_script: Callable[..., str], tmp_path: Path) -> None:
    assert run_script("pydantic_ai/assistant.py") == (
        "ordered 17 tea\n"
        "lamp not ordered: more than 100 pieces are ordered by a person\n"
        "ordered 10 soap\n"
        "on order: {'tea': 17, 'soap': 10}\n"
    )
    assert (tmp_path / "warehouse.db").exists()


async def test_a_model_is_offered_run_code_alone_and_told_of_the_tools_with_their_types(
    assistant: ModuleType, host: ptc.Host, executor: ptc.PtcExecutor
) -> None:
    model = TestModel()
    agent = assistant.make_agent(host, executor)
    result = await agent.run("Hello", model=model, deps=assistant.open_warehouse())
    asked = model.last_model_request_parameters
    assert asked is not None
    assert [tool.name for tool in asked.function_tools] == ["run_code"]
    told = "\n".join(part.content for part in asked.instruction_parts or [])
    assert "You look after a warehouse." in told
    assert "async def get_stock(self, args: GetStockArgs) -> GetStockOutput:" in told
    # TestModel calls every tool with whatever fits its schema: a program that is no program is a failed result.
    [failure] = returned(result.all_messages())
    assert failure.outcome == "failed"
    assert "NameError: name 'a' is not defined" in failure.model_response_str()


async def test_a_guard_of_the_host_sees_what_a_program_calls(
    assistant: ModuleType, host: ptc.Host, executor: ptc.PtcExecutor
) -> None:
    warehouse = assistant.open_warehouse()
    agent = assistant.make_agent(host, executor)
    program = "await tools.order(item='tea', pieces=100)\nawait tools.order(item='tea', pieces=101.0)"
    result = await agent.run("Order", model=writes(program), deps=warehouse)
    assert "ToolCallError: more than 100 pieces are ordered by a person" in result.output
    assert warehouse.orders == {"tea": 100}


async def test_a_failed_program_does_not_end_the_run_and_the_next_one_works(
    assistant: ModuleType, host: ptc.Host, executor: ptc.PtcExecutor
) -> None:
    agent = assistant.make_agent(host, executor)
    wrong = ["await tools.get_stock(item='sugar')", "1 / 0", "await tools.get_stock(item=3)", "return ("]
    right = "return (await tools.get_stock(item='tea'))['pieces']"
    result = await agent.run("How much tea?", model=writes(*wrong, right), deps=assistant.open_warehouse())
    *failed, last = returned(result.all_messages())
    assert [one.outcome for one in failed] == ["failed"] * 4
    texts = [one.model_response_str() for one in failed]
    assert "there is no 'sugar'; list_items has the names" in texts[0]
    assert "ZeroDivisionError" in texts[1]
    assert "invalid arguments" in texts[2]
    assert "SyntaxError" in texts[3]
    assert (last.outcome, result.output) == ("success", "3")


async def test_runs_side_by_side_have_their_own_deps_and_sessions(
    assistant: ModuleType, host: ptc.Host, executor: ptc.PtcExecutor
) -> None:
    agent = assistant.make_agent(host, executor)
    program = "import asyncio\nawait asyncio.gather(*[tools.order(item={item!r}, pieces=1) for _ in range(5)])"
    warehouses = {item: assistant.open_warehouse() for item in ("tea", "rice", "salt")}
    results: dict[str, Any] = {}

    async def run(item: str) -> None:
        results[item] = await agent.run("Go", model=writes(program.format(item=item)), deps=warehouses[item])

    async with anyio.create_task_group() as group:
        for item in warehouses:
            group.start_soon(run, item)
    assert {item: warehouse.orders for item, warehouse in warehouses.items()} == {
        item: {item: 5} for item in warehouses
    }
    for result in results.values():
        call_id = returned(result.all_messages())[0].tool_call_id
        expected = [("order", f"{call_id}:ptc:{number}") for number in range(1, 6)]
        assert await calls_of(host, result.conversation_id) == expected


async def test_a_conversation_that_goes_on_is_one_session(
    assistant: ModuleType, host: ptc.Host, executor: ptc.PtcExecutor
) -> None:
    agent = assistant.make_agent(host, executor)
    deps = assistant.open_warehouse()
    first = await agent.run("One", model=writes("await tools.list_items()"), deps=deps)
    again = writes("await tools.get_stock(item='tea')")
    second = await agent.run("Two", model=again, deps=deps, message_history=first.all_messages())
    assert second.conversation_id == first.conversation_id
    assert [name for name, _id in await calls_of(host, first.conversation_id)] == ["list_items", "get_stock"]
    store: Any = host._store
    turns = [one.data["turn"] for one in await store.events(first.conversation_id) if one.type == "tool/call"]
    assert turns == [1, 2]


async def test_tools_that_need_approval_stay_beside_run_code(wrap: Callable[..., Any]) -> None:
    toolset: FunctionToolset[None] = FunctionToolset()

    @toolset.tool_plain
    async def look() -> str:
        return "dust"

    @toolset.tool_plain(requires_approval=True)
    async def sweep() -> str:
        return "clean"

    model = TestModel(call_tools=["sweep"])
    agent = Agent(model, toolsets=[wrap(toolset)], output_type=[str, DeferredToolRequests])
    result = await agent.run("Sweep")
    asked = model.last_model_request_parameters
    assert asked is not None
    assert sorted(tool.name for tool in asked.function_tools) == ["run_code", "sweep"]
    told = "\n".join(part.content for part in asked.instruction_parts or [])
    assert "look" in told
    assert "sweep" not in told
    assert isinstance(result.output, DeferredToolRequests)
    assert [call.tool_name for call in result.output.approvals] == ["sweep"]


async def test_hooks_and_the_run_context_are_those_of_any_call(wrap: Callable[..., Any]) -> None:
    seen: list[tuple[str, str | None]] = []
    hooked: list[tuple[str, dict[str, Any]]] = []
    toolset: FunctionToolset[str] = FunctionToolset()

    @toolset.tool
    async def look(ctx: RunContext[str], where: str) -> str:
        seen.append((ctx.deps, ctx.tool_call_id))
        return f"{ctx.deps}: {where}"

    hooks: Hooks[str] = Hooks()

    @hooks.on.before_tool_execute
    async def before(ctx: RunContext[str], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any) -> Any:
        hooked.append((call.tool_name, args))
        return args

    agent = Agent(deps_type=str, toolsets=[wrap(toolset)], capabilities=[hooks])
    result = await agent.run("Look", model=writes("return await tools.look(where='here')"), deps="mine")
    assert result.output == "mine: here"
    call_id = returned(result.all_messages())[0].tool_call_id
    assert seen == [("mine", f"{call_id}:ptc:1")]
    assert [name for name, _args in hooked] == ["run_code", "look"]
    assert hooked[1][1] == {"where": "here"}


async def test_images_of_tools_reach_the_model_behind_the_result(wrap: Callable[..., Any]) -> None:
    toolset: FunctionToolset[None] = FunctionToolset()

    @toolset.tool_plain
    async def draw() -> BinaryContent:
        return BinaryContent(PICTURE, media_type="image/png")

    program = "picture = await tools.draw()\nreturn [picture['media_type'], picture['data']]"
    result = await Agent(toolsets=[wrap(toolset)]).run("Draw", model=writes(program))
    assert base64.urlsafe_b64encode(PICTURE).decode() in result.output
    request = next(one for one in result.all_messages() if isinstance(one, ModelRequest) and returned([one]))
    [prompt] = [part for part in request.parts if isinstance(part, UserPromptPart)]
    [picture] = [item for item in prompt.content if isinstance(item, BinaryContent)]
    assert (picture.data, picture.media_type) == (PICTURE, "image/png")


async def test_tools_that_change_between_steps_are_followed(wrap: Callable[..., Any]) -> None:
    toolset: FunctionToolset[None] = FunctionToolset()

    async def later(ctx: RunContext[None], definition: ToolDefinition) -> ToolDefinition | None:
        return definition if ctx.run_step > 1 else None

    @toolset.tool_plain(prepare=later)
    async def second() -> str:
        return "now"

    @toolset.tool_plain
    async def first() -> str:
        return "always"

    told: list[bool] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.append("second" in (info.instructions or ""))
        if len(told) > 2:
            return ModelResponse([TextPart(returned(messages)[-1].model_response_str())])
        arguments = {"code": "return [await tools.first(), await tools.second()]", "description": "Both"}
        return ModelResponse([ToolCallPart("run_code", arguments)])

    result = await Agent(toolsets=[wrap(toolset)]).run("Go", model=FunctionModel(answer))
    assert told == [False, True, True]
    before, after = returned(result.all_messages())
    assert (before.outcome, after.outcome) == ("failed", "success")
    assert "now" in result.output


async def test_what_pydantic_ai_lets_a_tool_raise_is_an_error_in_the_program(wrap: Callable[..., Any]) -> None:
    toolset: FunctionToolset[None] = FunctionToolset()

    @toolset.tool_plain
    async def again() -> str:
        raise ModelRetry("another time")

    @toolset.tool_plain(timeout=0.05)
    async def slow() -> str:
        await anyio.sleep(30)
        return "late"

    program = """
for call in (tools.again, tools.again, tools.again, tools.slow):
    try:
        await call()
    except ToolCallError as error:
        print(error.toolName, "|", error)
"""
    result = await Agent(toolsets=[wrap(toolset)]).run("Go", model=writes(program))
    lines = result.output.splitlines()
    assert lines[:3] == ["again | another time"] * 3
    assert lines[3].startswith("slow | ")
    assert "0.05" in lines[3]


async def test_a_cancelled_run_ends_the_program_and_the_tool(wrap: Callable[..., Any], host: ptc.Host) -> None:
    started, ended = anyio.Event(), anyio.Event()
    toolset: FunctionToolset[None] = FunctionToolset()

    @toolset.tool_plain
    async def wait() -> str:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return "never"

    agent = Agent(toolsets=[wrap(toolset)])

    async def run() -> None:
        await agent.run("Wait", model=writes("await tools.wait()"), conversation_id="cancelled")

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await started.wait()
        group.cancel_scope.cancel()
    assert ended.is_set()
    store: Any = host._store
    types = [event.type for event in await store.events("cancelled")]
    assert types.count("tool/ptc-dispatch-start") == types.count("tool/ptc-dispatch") == 1
