"""What a step has admitted also rules the programs of that step (contract A46)."""

from __future__ import annotations

import ptc
import pytest
from ptc.registry import ActivationContext, ToolBatchInput

from .conftest import Rig

pytestmark = pytest.mark.anyio

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
