"""What is measured: ours here, and what all of them have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from importlib import metadata, util
from typing import Any, ClassVar, Self

import ptc
from ptc.sandbox.seam import BindingCall, JsonValue, Member, Namespace

from .programs import PARAMETERS, Dialect, Program, Tools

EXTRA = "pip install 'ptc-runtime[bench]'"


class UnavailableError(Exception):
    """A subject cannot be measured here; the message says what to do."""


class Subject(ABC):
    """One sandbox, with one configuration.

    Args:
        ready: whether an instance stands ready for the next run, where the sandbox knows such a thing.
        at_once: how many runs at once it must take; 0 leaves that as the sandbox has it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    dialect: ClassVar[Dialect]
    lacks: ClassVar[Mapping[str, str]] = {}
    """What it cannot be measured in, and why; without a word where that goes without saying."""

    def __init__(self, *, ready: bool = True, at_once: int = 0) -> None:
        self.ready = ready
        self.at_once = at_once
        self.stack = AsyncExitStack()

    @classmethod
    def version(cls) -> str:
        """Returns what is measured, with its version.

        Raises:
            UnavailableError: it is not installed, or does not work on this machine.
        """
        return ""

    async def open(self) -> None:
        """Makes it ready for its first run; what it enters on `stack` is left when it closes."""
        return

    async def prepare(self) -> None:
        """Does, before each run that is measured, what has been done before it where something stands ready."""
        return

    @abstractmethod
    async def execute(self, source: str, tools: Tools) -> Any:
        """Runs a program in fresh state, and returns its value; cancelled, it ends it first."""

    async def run(self, program: Program, tools: Tools) -> None:
        """Runs a program.

        Raises:
            RuntimeError: it did not return what it must.
        """
        got = await self.execute(program.text(self.dialect), tools)
        if got != program.result:
            raise RuntimeError(f"{self.title}: {got!r} was returned in place of {program.result!r}")

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.push_async_exit(self.stack)
            await self.open()
            stack.pop_all()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.stack.aclose()


class _Ours(Subject):
    dialect = Dialect(
        call="await tools.{name}({arguments})",
        wait="await tools.{name}({arguments})",
        at_once="import asyncio\ngot = await asyncio.gather(*[tools.slow(n) for n in range({calls})])",
        value="return {value}",
    )
    make: ClassVar[Callable[..., ptc.Sandbox]]

    @classmethod
    def version(cls) -> str:
        try:
            cls.make()
        except ptc.SandboxUnavailableError as error:
            raise UnavailableError(str(error)) from None
        return ""

    async def open(self) -> None:
        self._sandbox = await self.stack.enter_async_context(type(self).make(ready=1 if self.ready else 0))
        await self._sandbox.prepare()

    async def execute(self, source: str, tools: Tools) -> Any:
        result = await self._sandbox.run(ptc.SandboxRequest(program=source, namespaces=[_namespace(tools)]))
        if result.error is not None:
            raise RuntimeError(f"{self.title}: {result.error.message}")
        return json.loads(result.value_json or "null")


def _namespace(tools: Tools) -> Namespace:
    def at_once(function: Callable[..., Any]) -> Callable[[BindingCall], Awaitable[JsonValue]]:
        async def answer(call: BindingCall) -> JsonValue:
            return function(**_arguments(call))

        return answer

    def later(function: Callable[..., Awaitable[Any]]) -> Callable[[BindingCall], Awaitable[JsonValue]]:
        return lambda call: function(**_arguments(call))

    functions = {name: at_once(function) for name, function in tools.immediate.items()}
    functions |= {name: later(function) for name, function in tools.waited_for.items()}
    return Namespace("tools", {name: Member(one, PARAMETERS.get(name, ())) for name, one in functions.items()})


def _arguments(call: BindingCall) -> dict[str, Any]:
    return call.arguments if isinstance(call.arguments, dict) else {}


class Wasm(_Ours):
    name = "wasm"
    title = "ptc wasm"
    make = ptc.WasmSandbox


class Restricted(_Ours):
    name = "restricted"
    title = "ptc restricted"
    make = ptc.RestrictedSandbox

    @classmethod
    def version(cls) -> str:
        super().version()
        return require("RestrictedPython", "RestrictedPython")


def require(module: str, distribution: str) -> str:
    """Returns the name and version of an installed distribution.

    Raises:
        UnavailableError: it is not installed; the message names the extra.
    """
    if util.find_spec(module) is None:
        raise UnavailableError(f"{distribution} is not installed: {EXTRA}")
    return f"{distribution} {metadata.version(distribution)}"
