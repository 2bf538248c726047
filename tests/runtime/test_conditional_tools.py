"""What a step has admitted also rules the programs of that step (contract A46)."""

from __future__ import annotations

from collections.abc import Callable

import ptc
import pytest
from ptc.registry import ActivationContext, ToolBatchInput

from .conftest import Rig

pytestmark = pytest.mark.anyio


@pytest.fixture
def make_sandbox() -> Callable[..., ptc.Sandbox]:
    """One backend for all: what is tested here is the same for both, and the other tests of the runtime have both."""
    return ptc.WasmSandbox


PROGRAM = """
on = await tools.on()
try:
    late = await tools.late()
except Exception as error:
    late = str(error)
return [dir(tools), on, late]
"""


@pytest.mark.contract("A46", "E10")
async def test_a_program_is_bound_to_what_its_step_admitted(rig: Rig) -> None:
    withdraw = []

    def make(name: str) -> ptc.ToolDefinition:
        @ptc.tool(name=name)
        async def body() -> str:
            """Say its name, and take the tool `late` away."""
            for undo in withdraw:
                undo()
            return name

        return body

    rig.agent.tools.restrict(allow=["double"])
    rig.agent.tools.register(make("on"), when=lambda _context: True)
    rig.agent.tools.register(make("off"), when=lambda _context: False)
    withdraw.append(rig.agent.tools.register(make("late"), when=lambda _context: True))
    tool_set = await rig.host.registry.resolve(ActivationContext(agent=rig.agent))
    rig.agent.tools.register(make("after"))
    call = ptc.ToolCall(name="run_code", arguments={"code": PROGRAM, "description": "Look."}, call_id="c1")
    batch = await rig.host.execute(ToolBatchInput(calls=[call], agent=rig.agent, tool_set=tool_set))
    result = batch.results[0].result
    assert not result.is_error, result.error.message
    assert isinstance(result.value, dict)
    bound, on, late = result.value["result"]  # type: ignore[misc]
    assert bound == ["double", "late", "on"]
    assert on == "on"
    assert late == 'unknown tool "late"'
    tool_set.dispose()
    later = await rig.host.execute(ToolBatchInput(calls=[call], agent=rig.agent, tool_set=tool_set))
    assert later.results[0].result.is_error


@pytest.mark.contract("A38", "A45", "A46", "A47")
async def test_an_agent_resolves_a_step_and_disposes_its_tools(rig: Rig) -> None:
    asked: list[ActivationContext] = []

    @ptc.tool
    async def reset() -> str:
        """Reset the counter."""
        return "reset"

    def only_large_models(context: ActivationContext) -> bool:
        asked.append(context)
        return context.model_selection.model == "large"

    rig.agent.tools.register(reset, when=only_large_models)
    assert "reset" not in rig.agent.describe().prompt
    selection = ptc.ModelSelection(provider="any", model="large")
    code = "return await tools.reset()"
    async with rig.agent.resolve(model_selection=selection) as tool_set:
        assert "reset" in rig.agent.describe(tool_set=tool_set).prompt
        result = await rig.agent.run_code(code, tool_set=tool_set)
        call = ptc.ToolCall(name="run_code", arguments={"code": code, "description": "Reset."})
        batch = await rig.agent.execute([call], tool_set=tool_set)
    assert result.value == batch.results[0].result.value == {"logs": [], "result": "reset"}
    assert [context.agent for context in asked] == [rig.agent]
    assert (await rig.agent.run_code(code, tool_set=tool_set)).is_error
    assert (await rig.agent.run_code(code)).is_error
    async with rig.agent.resolve() as tool_set:
        assert "reset" not in rig.agent.describe(tool_set=tool_set).prompt


@pytest.mark.contract("A39", "A41")
async def test_a_step_that_is_given_up_or_whose_condition_fails_has_no_tools(rig: Rig) -> None:
    source = ptc.SignalSource()

    def given_up(context: ActivationContext) -> bool:
        source.abort("changed my mind")
        return True

    undo = rig.agent.tools.register(make_tool("first"), when=given_up)
    rig.agent.tools.register(make_tool("second"), when=lambda _context: 1 / 0 > 0)
    with pytest.raises(ptc.AbortError):
        async with rig.agent.resolve(signal=source.signal):
            pytest.fail("the step has begun")
    undo()
    with pytest.raises(ZeroDivisionError):
        async with rig.agent.resolve():
            pytest.fail("the step has begun")


def make_tool(name: str) -> ptc.ToolDefinition:
    @ptc.tool(name=name)
    async def body() -> str:
        """Say its name."""
        return name

    return body
