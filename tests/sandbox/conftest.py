"""The sandbox under test, and the tools that programs call in these tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
import pytest
from ptc.sandbox.seam import (
    BindingCall,
    BindingError,
    ErrorClass,
    JsonValue,
    Member,
    Namespace,
    Sandbox,
    SandboxRequest,
    SandboxResult,
)
from ptc.sandbox.wasm import WasmSandbox


class Calls:
    """Tools as a host would bind them, and a record of who called what."""

    def __init__(self) -> None:
        self.made: list[BindingCall] = []
        self.cancelled = 0
        self.release = anyio.Event()

    async def echo(self, call: BindingCall) -> JsonValue:
        self.made.append(call)
        assert isinstance(call.arguments, dict)
        return call.arguments.get("value")

    async def add(self, call: BindingCall) -> JsonValue:
        self.made.append(call)
        arguments: Any = call.arguments
        return arguments["a"] + arguments["b"]

    async def slow(self, call: BindingCall) -> JsonValue:
        self.made.append(call)
        arguments: Any = call.arguments
        await anyio.sleep(arguments["ms"] / 1000)
        return arguments["ms"]

    async def stuck(self, call: BindingCall) -> JsonValue:
        self.made.append(call)
        try:
            await self.release.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        return "released"

    async def boom(self, call: BindingCall) -> JsonValue:
        self.made.append(call)
        arguments: Any = call.arguments
        raise BindingError(arguments["message"])

    async def lossy(self, call: BindingCall) -> Any:
        self.made.append(call)
        return {"when": {1, 2}}

    def namespace(self) -> Namespace:
        return Namespace(
            "tools",
            {
                "echo": Member(self.echo, ("value",)),
                "add": Member(self.add, ("a", "b")),
                "slow": Member(self.slow, ("ms",)),
                "stuck": Member(self.stuck),
                "boom": Member(self.boom, ("message",)),
                "lossy": Member(self.lossy),
                "odd name": Member(self.echo, ("value",)),
                "_hidden": Member(self.echo, ("value",)),
            },
            ErrorClass("ToolCallError", "toolName"),
        )


SandboxFactory = Callable[..., Sandbox]


@pytest.fixture(params=["wasm"])
def make_sandbox(request: pytest.FixtureRequest) -> SandboxFactory:
    """Makes a sandbox of the backend under test, with budgets of the test's own."""
    return {"wasm": WasmSandbox}[request.param]


@pytest.fixture
async def sandbox(anyio_backend: str, make_sandbox: SandboxFactory) -> AsyncIterator[Sandbox]:
    async with make_sandbox(compute_ms=20_000, max_wall_ms=60_000) as made:
        yield made


@pytest.fixture
def calls(anyio_backend: str) -> Calls:
    return Calls()


Run = Callable[..., Any]


@pytest.fixture
def run(sandbox: Sandbox, calls: Calls) -> Run:
    """Runs a program with the tools of `calls`."""

    async def run(program: str, *, namespaces: Sequence[Namespace] | None = None, signal: Any = None) -> SandboxResult:
        chosen = [calls.namespace()] if namespaces is None else namespaces
        return await sandbox.run(SandboxRequest(program=program, namespaces=chosen, signal=signal))

    return run
