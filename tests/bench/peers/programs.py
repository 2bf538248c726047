"""What every subject is asked to do, and how each dialect says it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

CALLS = 50
SLOW_S = 0.010


@dataclass(frozen=True)
class Dialect:
    """How programs of one sandbox call tools and tell what came of them.

    Attributes:
        call: a call of a tool that answers at once, with `{name}` and `{arguments}`.
        wait: a call of a tool that has to be waited for.
        at_once: statements that leave in `got` what `CALLS` calls of `slow` returned, at once where that is possible.
        value: how the program gives its `{value}`.
    """

    call: str
    wait: str
    at_once: str
    value: str

    def calling(self, name: str, arguments: str = "") -> str:
        return self.call.format(name=name, arguments=arguments)

    def waiting(self, name: str) -> str:
        return self.wait.format(name=name, arguments="")

    def ending(self, value: str) -> str:
        return self.value.format(value=value)


@dataclass(frozen=True)
class Program:
    """A program of any dialect.

    Attributes:
        text: makes its source.
        result: what it must return.
    """

    text: Callable[[Dialect], str]
    result: Any


def _lines(*lines: str) -> str:
    return "\n".join(lines)


TRIVIAL = Program(lambda say: say.ending("1 + 1"), 2)
SEQUENTIAL = Program(
    lambda say: _lines(
        f"for n in range({CALLS}):", f"    last = {say.calling('double', 'n')}", say.ending("last")
    ),
    2 * (CALLS - 1),
)  # fmt: skip
CONCURRENT = Program(lambda say: _lines(say.at_once.format(calls=CALLS), say.ending("sum(got)")), sum(range(CALLS)))
WAITING = Program(lambda say: _lines(say.waiting("gate"), say.ending("1")), 1)
HOT = Program(lambda say: _lines(say.waiting("begin"), "while True:", "    pass"), None)


def _work(before: str, work: str, value: str, result: Any) -> Program:
    """A program that marks the time three times: with nothing between, and then with the work."""

    def text(say: Dialect) -> str:
        mark = say.calling("mark")
        return _lines(before, mark, mark, work, mark, say.ending(value))

    return Program(text, result)


_RECORDS = 11_100
"""As many as make 1 MB of JSON text."""
_NUMBERS = "data = [(n * n * 48271 + n * 7919) % 1000003 for n in range(100000)]"
_SORTED = [100_000, 0, 1_000_000]
"""How many they are, the least and the greatest."""

CPU = {
    "fib(24)": _work(
        "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)", "got = fib(24)", "got", 46_368
    ),
    "JSON round trip of 1 MB": _work(
        "import json\n"
        'doc = [{"id": n, "name": "item " + str(n), "price": n * 1.25, "tags": ["red", "blue"], "ok": True}'
        f" for n in range({_RECORDS})]",
        "got = json.loads(json.dumps(doc))",
        "[len(got), got == doc]",
        [_RECORDS, True],
    ),
    "sort of 100,000 ints": _work(_NUMBERS, "got = sorted(data)", "[len(got), got[0], got[-1]]", _SORTED),
}  # fmt: skip


@dataclass
class Tools:
    """What programs call, and what it has seen.

    Attributes:
        marks: when `mark` was called, in seconds.
        begun: set once `begin` has been called.
        inside: how many wait in `gate`.
        full: set once `wanted` wait there.
        wanted: how many that are.
        opened: lets them go.
    """

    marks: list[float] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    inside: int = 0
    wanted: int = 0
    full: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def immediate(self) -> dict[str, Callable[..., Any]]:
        return {"double": lambda x: 2 * x, "mark": lambda: self.marks.append(time.perf_counter())}

    @property
    def waited_for(self) -> dict[str, Callable[..., Awaitable[Any]]]:
        return {"slow": self._slow, "gate": self._gate, "begin": self._begin}

    async def _slow(self, x: int) -> int:
        await asyncio.sleep(SLOW_S)
        return x

    async def _gate(self) -> None:
        self.inside += 1
        if self.inside >= self.wanted:
            self.full.set()
        await self.opened.wait()

    async def _begin(self) -> None:
        self.begun.set()


PARAMETERS = {"double": ("x",), "slow": ("x",)}
