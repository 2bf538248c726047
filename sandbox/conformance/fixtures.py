"""The sandbox under test, and the tools that programs call in these tests."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Protocol

import anyio
import pytest

from ..seam import (
    AbortSignal,
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
from .backend import SandboxFactory

__all__ = ["Calls", "Run", "Stop", "calls", "run", "sandbox"]


class Stop:
    """A caller's cancellation signal, and the button that fires it."""

    def __init__(self) -> None:
        self.aborted = False
        self.reason: object = None
        self._observers: list[Callable[[object], None]] = []

    def subscribe(self, observer: Callable[[object], None]) -> Callable[[], None]:
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def press(self, reason: object) -> None:
        """Fires the signal."""
        self.aborted, self.reason = True, reason
        for observer in tuple(self._observers):
            observer(reason)


class Calls:
    """Tools as a host would bind them, and a record of who called what.

    Attributes:
        made: the calls, in order.
        cancelled: how many calls of `stuck` were cancelled.
        greeted: set once `hello` was called.
        release: lets calls of `stuck` go on.
    """

    def __init__(self) -> None:
        self.made: list[BindingCall] = []
        self.cancelled = 0
        self.greeted = anyio.Event()
        self.release = anyio.Event()
        self._met = anyio.Event()
        self._present = 0

    async def echo(self, call: BindingCall) -> JsonValue:
        """Answers with its argument."""
        self.made.append(call)
        assert isinstance(call.arguments, dict)
        return call.arguments.get("value")

    async def add(self, call: BindingCall) -> JsonValue:
        self.made.append(call)
        arguments: Any = call.arguments
        return arguments["a"] + arguments["b"]

    async def slow(self, call: BindingCall) -> JsonValue:
        """Answers after `ms` milliseconds."""
        self.made.append(call)
        arguments: Any = call.arguments
        await anyio.sleep(arguments["ms"] / 1000)
        return arguments["ms"]

    async def hello(self, _call: BindingCall) -> JsonValue:
        """Tells the test that the program has come so far."""
        self.greeted.set()
        return None

    async def meet(self, call: BindingCall) -> JsonValue:
        """Answers when `parties` calls of it are there at the same time."""
        arguments: Any = call.arguments
        self._present += 1
        if self._present >= arguments["parties"]:
            self._met.set()
        await self._met.wait()
        return self._present

    async def stuck(self, call: BindingCall) -> JsonValue:
        """Answers once the test says so."""
        self.made.append(call)
        try:
            await self.release.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        return "released"

    async def boom(self, call: BindingCall) -> JsonValue:
        """Fails with `message`."""
        self.made.append(call)
        arguments: Any = call.arguments
        raise BindingError(arguments["message"])

    async def lossy(self, call: BindingCall) -> Any:
        """Answers with what is no JSON."""
        self.made.append(call)
        return {"when": {1, 2}}

    def namespace(self) -> Namespace:
        return Namespace(
            "tools",
            {
                "echo": Member(self.echo, ("value",)),
                "add": Member(self.add, ("a", "b")),
                "slow": Member(self.slow, ("ms",)),
                "hello": Member(self.hello),
                "meet": Member(self.meet, ("parties",)),
                "stuck": Member(self.stuck),
                "boom": Member(self.boom, ("message",)),
                "lossy": Member(self.lossy),
                "odd name": Member(self.echo, ("value",)),
                "_hidden": Member(self.echo, ("value",)),
            },
            ErrorClass("ToolCallError", "toolName"),
        )


class Run(Protocol):
    """Runs a program in the sandbox under test; with the tools of `calls` when it is given no others."""

    def __call__(
        self, program: str, *, namespaces: Sequence[Namespace] | None = None, signal: AbortSignal | None = None
    ) -> Coroutine[Any, Any, SandboxResult]: ...


@pytest.fixture(scope="module")
def sandbox(make_sandbox: SandboxFactory) -> Iterator[Sandbox]:
    """One sandbox for all tests that need no budgets of their own: it serves one event loop after another."""
    made = make_sandbox(compute_ms=20_000, max_wall_ms=60_000)
    anyio.run(made.prepare)  # what the first run needs may take longer to make than a run may take
    yield made
    anyio.run(made.aclose)


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def run(sandbox: Sandbox, calls: Calls) -> Run:
    async def run(
        program: str, *, namespaces: Sequence[Namespace] | None = None, signal: AbortSignal | None = None
    ) -> SandboxResult:
        chosen = [calls.namespace()] if namespaces is None else namespaces
        return await sandbox.run(SandboxRequest(program=program, namespaces=chosen, signal=signal))

    return run
