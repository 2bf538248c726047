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

from .dialect import FULL_PYTHON, Dialect
from .run import run

__all__ = ["warm"]

_PROGRAM = """
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


class _Echo:
    """A channel that answers at once and drops what is written."""

    def __init__(self) -> None:
        self._replies: list[list[object]] = []

    def submit(self, calls: str) -> None:
        for call_id, _namespace, member, arguments, _line in json.loads(calls):
            ok = member != "fail"
            self._replies.append([call_id, ok, arguments if ok else "failed"])

    def wait(self, timeout_us: int) -> str:  # noqa: ARG002
        replies, self._replies = self._replies, []
        return json.dumps(replies)

    def emit(self, text: str) -> None:
        pass


def warm(dialect: Dialect = FULL_PYTHON) -> None:
    """Runs the warm-up program, and puts back what it changed."""
    kept = [(module, dict(vars(module))) for module in (asyncio, time)]
    main = sys.modules.get("__main__", types.ModuleType("__main__"))
    request = {
        "program": _PROGRAM,
        "seed": 0,
        "namespaces": [
            {
                "global": "tools",
                "members": {"touch": ["value"], "fail": []},
                "errorClass": {"name": "ToolCallError", "property": "toolName"},
            }
        ],
    }
    completion = run(_Echo(), json.dumps(request), dialect)
    if not completion.startswith('["value"'):
        raise RuntimeError(completion)
    for module, names in kept:
        vars(module).update(names)
    sys.modules["__main__"] = main
