"""What the native executor and the service hand on: the step's tool set, the cap, the order, the known names."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from ptc.registry import (
    UNLISTED_TOOLS,
    ActivationContext,
    ExecutorDescription,
    NativeExecutor,
    Pipeline,
    ScopeKey,
    ToolBatchInput,
    ToolBatchResult,
    ToolCall,
    ToolRegistry,
    ToolService,
    define_tool,
    run_batch,
)

pytestmark = pytest.mark.anyio


class Rig:
    """Two tools, of which `sometimes` is a conditional one; both note how many of their bodies run at once."""

    def __init__(self) -> None:
        self.registry = ToolRegistry()
        self.pipeline = Pipeline(self.registry)
        self.agent = ScopeKey("agent")
        self.running = self.most = 0
        self.add("always")
        self.add("sometimes", when=lambda _context: True)

    def add(self, name: str, *, when: Any = None) -> None:
        async def body(_arguments: Any) -> str:
            self.running += 1
            self.most = max(self.most, self.running)
            await anyio.wait_all_tasks_blocked()
            self.running -= 1
            return name

        definition = define_tool(
            name=name,
            description="",
            parameters={},
            output={"type": "string"},
            execute=body,
            is_concurrency_safe=lambda _arguments: True,
        )
        self.registry.context().register(definition, when=when)

    async def resolve(self) -> Any:
        return await self.registry.resolve(ActivationContext(agent=self.agent))


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.contract("A40", "A25", "D2", "D3")
async def test_the_tool_set_of_the_step_decides_what_runs_and_what_overlaps(rig):
    calls = [ToolCall(name="sometimes")] * 2
    admitted = ToolBatchInput(calls=calls, agent=rig.agent, tool_set=await rig.resolve())
    result = await run_batch(rig.pipeline, admitted)
    assert [outcome.result.value for outcome in result.results] == ["sometimes"] * 2
    assert rig.most == 2
    result = await run_batch(rig.pipeline, ToolBatchInput(calls=calls, agent=rig.agent))
    assert [outcome.result.error.info.code for outcome in result.results] == ["UNKNOWN_TOOL"] * 2


@pytest.mark.contract("D4")
@pytest.mark.parametrize(("cap", "override", "most"), [(2, None, 2), (1, None, 1), (1, 3, 3)])
async def test_the_executors_cap_counts_unless_the_batch_has_its_own(rig, cap, override, most):
    executor = NativeExecutor(rig.pipeline, max_parallel_tool_calls=cap)
    await executor.execute(ToolBatchInput(calls=[ToolCall(name="always")] * 4, max_parallel_tool_calls=override))
    assert rig.most == most


@pytest.mark.contract("A22", "A28")
def test_an_order_may_name_what_is_known_though_it_is_hidden(rig):
    tools = rig.registry.context(rig.agent)
    tools.restrict(deny=["sometimes"])
    rig.add("zebra")
    executor = NativeExecutor(rig.pipeline, order=["zebra", "sometimes", UNLISTED_TOOLS])
    described = executor.describe(rig.registry.view(rig.agent))
    assert [schema.name for schema in described.schemas] == ["zebra", "always"]
    assert described.known_names == {"always", "sometimes", "zebra"}


class Listing:
    """An executor that says which tools it was shown."""

    def describe(self, tools: Any) -> ExecutorDescription:
        return ExecutorDescription(schemas=tools.schemas(), known_names=tools.known_names)

    def sections(self, tools: Any) -> list[str]:
        return sorted(tools.definitions)

    async def execute(self, batch: ToolBatchInput) -> ToolBatchResult:
        raise NotImplementedError


@pytest.mark.contract("A40", "A59", "A62")
async def test_a_description_and_the_sections_are_of_the_step(rig):
    service = ToolService(rig.pipeline, default=Listing())
    tool_set = await rig.resolve()
    assert [schema.name for schema in service.describe(rig.agent, tool_set).schemas] == ["always", "sometimes"]
    assert service.sections(rig.agent, tool_set) == ("always", "sometimes")
    tool_set.dispose()
    assert service.describe(rig.agent, tool_set).schemas == []
    assert service.sections(rig.agent, tool_set) == ()


@pytest.mark.contract("C68")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (ToolCall(name=""), r"calls\[1\].name must be a string that is not empty"),
        (ToolCall(name=5), r"calls\[1\].name must be a string that is not empty"),  # type: ignore[arg-type]
        (ToolCall(name="always", call_id=5), r"calls\[1\].call_id must be a string"),  # type: ignore[arg-type]
    ],
)
async def test_a_call_without_a_name_is_refused_before_anything_starts(rig, call, says):
    with pytest.raises(ValueError, match=says):
        await run_batch(rig.pipeline, ToolBatchInput(calls=[ToolCall(name="always"), call]))
    assert rig.most == 0
