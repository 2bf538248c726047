"""A host with real tools, a real sandbox and a real log, for the tests of the runtime."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest

from ..rigs import Witness, plain_tools, recorded


class Rig(Witness):
    """A host under test, its agent, and what its tools did."""

    def __init__(self, host: ptc.Host, agent: ptc.Agent, log: Path) -> None:
        super().__init__()
        self.host = host
        self.agent = agent
        self.log = log

    async def run(self, program: str, **options: Any) -> ptc.ToolExecutionResult:
        return await self.agent.run_code(program, **options)

    async def value(self, program: str) -> Any:
        """Returns what the program returned; fails the test with its error when it did not complete."""
        result = await self.run(program)
        assert not result.is_error, result.error.message
        assert isinstance(result.value, dict)
        return result.value.get("result")

    async def failure(self, program: str, **options: Any) -> str:
        result = await self.run(program, **options)
        assert result.is_error, result.value
        return result.error.message

    async def events(self, *types: str) -> list[tuple[str, dict[str, Any]]]:
        """Returns the agent's recorded events as (type, data), all or of some types."""
        return await recorded(self.host, self.agent, *types)


def define_tools(rig: Rig) -> list[ptc.ToolDefinition]:
    @ptc.tool(concurrency_safe=True)
    async def nap(ms: float, name: str) -> str:
        """Wait for a while."""
        rig.bodies.append(f"begin {name}")
        await anyio.sleep(ms / 1000)
        rig.bodies.append(f"end {name}")
        return name

    @ptc.tool
    async def write(name: str) -> str:
        """Change something; nothing else may run meanwhile."""
        rig.bodies.append(f"begin {name}")
        await anyio.sleep(0.02)
        rig.bodies.append(f"end {name}")
        return name

    plain = plain_tools(rig)
    return [plain["double"], plain["stuck"], nap, write, plain["fail"], plain["picture"]]


@pytest.fixture(
    params=[
        "wasm",
        pytest.param(
            "restricted",
            marks=pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted backend needs Linux"),
        ),
    ]
)
def make_sandbox(request: pytest.FixtureRequest) -> Callable[..., ptc.Sandbox]:
    """Makes sandboxes of one backend, then of the other."""
    return {"wasm": ptc.WasmSandbox, "restricted": ptc.RestrictedSandbox}[request.param]


@pytest.fixture
async def rig(anyio_backend: str, tmp_path: Path, make_sandbox: Callable[..., ptc.Sandbox]) -> AsyncIterator[Rig]:
    async with ptc.Host(log=tmp_path / "ptc.db") as host:
        sandbox = make_sandbox(compute_ms=20_000, max_wall_ms=60_000)
        agent = host.agent("tester", executor=ptc.PtcExecutor(sandbox=sandbox))
        made = Rig(host, agent, tmp_path / "ptc.db")
        for definition in define_tools(made):
            host.tools.register(definition)
        yield made


Factory = Callable[..., Any]
