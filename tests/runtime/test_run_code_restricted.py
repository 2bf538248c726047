"""`run_code` over the restricted sandbox: the same calls, the same record, chosen per agent."""

from __future__ import annotations

import sys
from pathlib import Path

import ptc
import pytest

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted backend needs Linux"),
]

PROGRAM = """
import asyncio, json
doubled = await asyncio.gather(*[tools.double(x=n) for n in range(5)])
try:
    await tools.double(x="one")
except ToolCallError as error:
    print(error.toolName, error)
return {"doubled": doubled, "text": json.dumps(doubled)}
"""


@ptc.tool
async def double(x: int) -> int:
    """Double a number."""
    return 2 * x


@pytest.mark.contract("E15", "E27")
async def test_two_agents_of_one_host_run_the_same_program_in_different_sandboxes(tmp_path: Path) -> None:
    values: list[object] = []
    started: list[list[object]] = []
    async with ptc.Host(log=tmp_path / "log.db") as host:
        host.tools.register(double)
        for sandbox in (ptc.WasmSandbox(), ptc.RestrictedSandbox()):
            agent = host.agent(sandbox.isolation, executor=ptc.PtcExecutor(sandbox=sandbox))
            result = await agent.run_code(PROGRAM)
            assert not result.is_error, result.text
            values.append(result.value)
            assert agent.session is not None
            events = await agent.session.events()
            started.append([event.data["arguments"] for event in events if event.type == "tool/ptc-dispatch-start"])
    assert values[0] == values[1]
    assert values[0]["result"]["doubled"] == [0, 2, 4, 6, 8]  # type: ignore[index, call-overload]
    assert started[0] == started[1] == [*({"x": n} for n in range(5)), {"x": "one"}]


async def test_a_refused_program_says_why_and_runs_nothing(tmp_path: Path) -> None:
    async with ptc.Host(log=tmp_path / "log.db") as host:
        host.tools.register(double)
        agent = host.agent("a", executor=ptc.PtcExecutor(sandbox=ptc.RestrictedSandbox()))
        result = await agent.run_code("await tools.double(x=1)\nreturn (1).__class__.__subclasses__()")
        assert agent.session is not None
        types = [event.type for event in await agent.session.events()]
    assert result.is_error
    assert "__subclasses__" in result.text
    assert "line 2" in result.text
    assert types == ["tool/call", "tool/result"]
