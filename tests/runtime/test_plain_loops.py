"""Hosts start their event loop as they like: everything works where no part of anyio has started it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
import trio

PROGRAM = """
import asyncio
first = await tools.double(x=1)
return [first, *await asyncio.gather(*[tools.double(x=n) for n in range(3)])]
"""


@ptc.tool
async def double(x: int) -> int:
    """Double a number."""
    await anyio.sleep(0.001)
    return 2 * x


def start_on_asyncio(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


@pytest.mark.parametrize("start", [start_on_asyncio, trio.run], ids=["asyncio", "trio"])
@pytest.mark.parametrize("kind", [ptc.WasmSandbox, ptc.RestrictedSandbox])
def test_programs_call_tools_on_a_loop_that_their_host_started(
    start: Callable[..., None], kind: Callable[..., Any], tmp_path: Path
) -> None:
    if kind is ptc.RestrictedSandbox and not sys.platform.startswith("linux"):
        pytest.skip("the restricted backend needs Linux")
    values: list[object] = []

    async def main() -> None:
        async with ptc.Host(log=tmp_path / "log.db") as host:
            host.tools.register(double)
            agent = host.agent("a", executor=ptc.PtcExecutor(sandbox=kind(max_wall_ms=20_000)))
            result = await agent.run_code(PROGRAM)
            values.append(result.value if not result.is_error else result.text)

    start(main)
    assert values == [{"logs": [], "result": [2, 0, 2, 4]}]


@pytest.mark.parametrize("start", [start_on_asyncio, trio.run], ids=["asyncio", "trio"])
@pytest.mark.parametrize("kind", [ptc.WasmSandbox, ptc.RestrictedSandbox])
def test_bindings_that_are_awaited_run_on_such_a_loop(start: Callable[..., None], kind: Callable[..., Any]) -> None:
    if kind is ptc.RestrictedSandbox and not sys.platform.startswith("linux"):
        pytest.skip("the restricted backend needs Linux")
    values: list[str | None] = []

    async def reply(call: Any) -> Any:
        await anyio.sleep(0.001)
        return call.arguments["x"]

    async def main() -> None:
        from ptc.sandbox.seam import Member, Namespace, SandboxRequest

        async with kind(max_wall_ms=20_000) as sandbox:
            tools = Namespace("tools", {"echo": Member(reply, ("x",))})
            result = await sandbox.run(SandboxRequest(program="return await tools.echo(x=7)", namespaces=[tools]))
            values.append(result.value_json)

    start(main)
    assert values == ["7"]
