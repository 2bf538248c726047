"""What a host and its agents refuse before anything starts."""

from __future__ import annotations

from typing import Any

import ptc
import pytest
from ptc.registry import ToolBatchInput

pytestmark = pytest.mark.anyio


@pytest.mark.contract("A7", "A49")
async def test_an_agent_of_another_host_cannot_get_around_its_own_guards() -> None:
    ran: list[str] = []

    @ptc.tool
    async def delete() -> bool:
        """Delete something."""
        ran.append("deleted")
        return True

    async with ptc.Host() as here, ptc.Host() as elsewhere:
        here.tools.register(delete)
        elsewhere.tools.register(delete)
        stranger = elsewhere.agent("stranger")
        stranger.tools.guard(lambda _call: "never")
        with pytest.raises(ValueError, match="'stranger'> is an agent of another host"):
            await here.execute(ToolBatchInput(calls=[ptc.ToolCall(name="delete")], agent=stranger))
        batch = await elsewhere.execute(ToolBatchInput(calls=[ptc.ToolCall(name="delete")], agent=stranger))
        assert batch.results[0].result.text == "Error: never"
    assert ran == []


@pytest.mark.contract("A52", "A59")
@pytest.mark.parametrize("executor", [ptc.PtcExecutor, object(), "ptc"], ids=["class", "object", "text"])
async def test_what_is_no_executor_is_refused_with_what_would_be_one(executor: Any) -> None:
    async with ptc.Host() as host:
        with pytest.raises(TypeError, match=r"must be a PtcExecutor\(sandbox=\.\.\.\) or a NativeExecutor\(\), not"):
            host.agent("support", executor=executor)


@pytest.mark.contract("A52", "A59")
async def test_an_executor_that_is_not_bound_is_refused_with_the_way_to_bind_it() -> None:
    async with ptc.Host() as host:
        unbound: Any = ptc.NativeExecutor()
        with pytest.raises(ptc.ToolRegistrationError, match=r"bind it to a pipeline first, as Host\.set_executor"):
            host.tools.set_executor(unbound)


@pytest.mark.contract("A56", "C68")
@pytest.mark.parametrize(
    ("calls", "signal", "said"),
    [
        ([{"name": "echo"}], None, r"calls\[0\] must be a ToolCall, not dict"),
        ([ptc.ToolCall(name="echo"), "echo"], None, r"calls\[1\] must be a ToolCall, not str 'echo'"),
        ([ptc.ToolCall(name="echo")], ptc.SignalSource(), "signal must be the signal of a SignalSource, not SignalS"),
    ],
    ids=["mapping", "name", "source"],
)
async def test_a_malformed_batch_is_refused_and_is_no_step(calls: Any, signal: Any, said: str) -> None:
    async with ptc.Host() as host:
        agent = host.agent("support")
        with pytest.raises(ValueError, match=said):
            await agent.execute(calls, signal=signal)
        assert (agent.step, agent.in_turn) == (0, False)
