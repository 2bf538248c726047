"""A first turn of everything that a run needs, made before there is a program.

In a fresh instance most of the time of a short run goes into first touches of memory. An instance that stands ready
makes them ahead with this program. It is the same in every instance, and leaves nothing that a program could see.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import types
from typing import Final

from .channel import Channel
from .dialect import FULL_PYTHON, Dialect
from .run import run

__all__ = ["BRIEF", "PROGRAM", "THOROUGH", "replies_to", "warm"]

PROGRAM: Final = """
import asyncio, json, re
async def work(n):
    return await tools.touch(value=n)
class Point:
    def __init__(self, x):
        self.x = x
print("warm", [Point(x).x for x in range(3)])
done = await asyncio.gather(work(1), tools.touch(value=2))
try:
    await tools.fail()
except ToolCallError as error:
    text = f"{error}"
await asyncio.sleep(0)
data = json.loads(json.dumps({"a": [1, 2.5, None, "x"], "b": done}))
re.sub("a+", "b", "caat")
return data
"""
"""What is run in a fresh instance: something of all that programs do most often."""

BRIEF: Final = """
for turn in range(1):
    print(f"{turn}", await tools.touch(value=turn))
return [turn]
"""
"""The least that touches what every run touches."""

_MANY: Final = """
for turn in range(100):
    await tools.touch(value=turn)
"""
THOROUGH: Final = _MANY + PROGRAM
"""With so many calls that the interpreter adapts its code to them; what is copied afterwards has it adapted."""


class _Echo:
    """A channel that answers at once and drops what is written."""

    def __init__(self) -> None:
        self._replies: list[str] = []

    def submit(self, calls: str) -> None:
        self._replies += replies_to(calls)

    def wait(self, timeout_us: int) -> str:  # noqa: ARG002
        replies, self._replies = self._replies, []
        return "[" + ",".join(replies) + "]"

    def emit(self, text: str) -> None:
        pass


def replies_to(calls: str) -> list[str]:
    """Returns what the warm-up programs get for their calls: the arguments, or the failure that they ask for."""
    return [
        json.dumps([call_id, member != "fail", arguments if member != "fail" else "failed"])
        for call_id, _namespace, member, arguments, _line in json.loads(calls)
    ]


def warm(dialect: Dialect = FULL_PYTHON, program: str = PROGRAM, channel: Channel | None = None) -> None:
    """Runs a warm-up program, and puts back what it changed.

    Args:
        dialect: the language that it is written in.
        program: one of those above.
        channel: what answers its calls as `replies_to` says.
    """
    kept = [(module, dict(vars(module))) for module in (asyncio, time)]
    main = sys.modules.get("__main__", types.ModuleType("__main__"))
    request = {
        "program": program,
        "seed": 0,
        "limits": {"queuedBytes": 1 << 20, "outputBytes": 1 << 20},
        "namespaces": [
            {
                "global": "tools",
                "members": {"touch": ["value"], "fail": []},
                "errorClass": {"name": "ToolCallError", "property": "toolName"},
            }
        ],
    }
    completion = run(channel or _Echo(), json.dumps(request), dialect)
    if not completion.startswith('["value"'):
        raise RuntimeError(completion)
    for module, names in kept:
        vars(module).update(names)
    sys.modules["__main__"] = main
