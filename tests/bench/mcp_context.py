"""What a job of 20 calls on a real MCP server puts into a model's context, and how long its calls take.

    python -m tests.bench.mcp_context [--rounds N] [--markdown] [--tokens] [--server COMMAND]

The job: list the modules of this checkout's `registry/`, read 19 of them, and name the five exceptions that they raise
most often. Once it is done natively: the official client is connected to the server, and the model makes 20 calls. Once
ptc is connected to the same server, and the model makes one call of `run_code`. The server is the reference server for
files, which npx starts (it comes with Node.js); `--server` names another one that has `list_directory` and
`read_text_file` like it, for example `--server "python tests/bench/folder_server.py ."`.

The first table is what the model reads and writes: the tools that it is told of (name, description and schema as
compact JSON; for ptc the SDK text as well), its calls, and the text of their results. "In the context" counts each of
them once; "sent" is what the requests of the whole job carry, each with all that was before: natively 21 of them when
the model makes one call after another, 3 when it reads all modules at once, and 2 with `run_code`. The unit is UTF-8
bytes, or with `--tokens` tokens of `o200k_base`, for which the extra `bench` has the counter. Percentages are of the
first column.

The second table is the time of the calls alone, without any model, over a connection that stands, in milliseconds: from
the first call to the last result, and for ptc from the program to the model's text, every call in the log.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import ptc
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent
from ptc.runtime import mcp

from .sdk_size import counter, show

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "registry"
MODULES = 19
MOST = 5
SERVER = "npx --yes @modelcontextprotocol/server-filesystem@2026.8.31 ."

PROGRAM = f"""\
import asyncio
import re
from collections import Counter

listing = await tools.list_directory(path="{FOLDER}")
entries = [line.removeprefix("[FILE] ") for line in listing["content"].splitlines()]
names = sorted(name for name in entries if name.endswith(".py"))[:{MODULES}]
files = await asyncio.gather(*[tools.read_text_file(path=f"{FOLDER}/{{name}}") for name in names])
raised = Counter(re.findall(r"raise ([A-Z]\\w+)", "".join(file["content"] for file in files)))
return sorted(raised.items(), key=lambda item: (-item[1], item[0]))[:{MOST}]
"""
DESCRIPTION = "Count the exceptions that the modules raise"
ONE_BY_ONE = PROGRAM.replace(
    f'await asyncio.gather(*[tools.read_text_file(path=f"{FOLDER}/{{name}}") for name in names])',
    f'[await tools.read_text_file(path=f"{FOLDER}/{{name}}") for name in names]',
)

Call = tuple[str, dict[str, Any]]


def modules() -> list[str]:
    return sorted(path.name for path in (ROOT / FOLDER).glob("*.py"))[:MODULES]


def calls() -> list[Call]:
    """What a model calls natively: one listing, then the modules."""
    reads: list[Call] = [("read_text_file", {"path": f"{FOLDER}/{name}"}) for name in modules()]
    return [("list_directory", {"path": FOLDER}), *reads]


def answer() -> list[list[Any]]:
    """The answer of the job, found without any of what is measured."""
    texts = [(ROOT / FOLDER / name).read_text(encoding="utf-8") for name in modules()]
    raised = Counter(re.findall(r"raise ([A-Z]\w+)", "".join(texts)))
    return [list(item) for item in sorted(raised.items(), key=lambda item: (-item[1], item[0]))[:MOST]]


@dataclass
class Context:
    """What a model is told and says in one job.

    Attributes:
        tools: what it is told before anything happens.
        steps: for each request that it answers with calls, the texts of its calls and those of their results.
    """

    tools: list[str]
    steps: list[tuple[list[str], list[str]]] = field(default_factory=list)

    def rows(self, count: Callable[[str], int]) -> dict[str, int]:
        told = sum(map(count, self.tools))
        written = [sum(map(count, said)) for said, _read in self.steps]
        read = [sum(map(count, results)) for _said, results in self.steps]
        grown = [told + sum(written[:step]) + sum(read[:step]) for step in range(len(self.steps) + 1)]
        return {
            "tools that it is told of": told,
            "calls that it writes": sum(written),
            "results that it reads": sum(read),
            "in the context": grown[-1],
            "requests": len(grown),
            "sent, over the whole job": sum(grown),
        }


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def call_text(name: str, arguments: Any) -> str:
    return compact({"name": name, "arguments": arguments})


class Native:
    """The official client, and what a model sees of its calls."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        result = await self._client.call_tool(name, arguments)
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        assert not result.is_error, text
        return text

    async def one_by_one(self) -> list[str]:
        return [await self.call(*call) for call in calls()]

    async def at_once(self) -> list[str]:
        listing, *reads = calls()
        texts = [await self.call(*listing), *[""] * len(reads)]

        async def read(place: int, call: Call) -> None:
            texts[place] = await self.call(*call)

        async with anyio.create_task_group() as group:
            for place, call in enumerate(reads, start=1):
                group.start_soon(read, place, call)
        return texts

    async def contexts(self) -> tuple[Context, Context]:
        """What a model has read when it made one call after another, and when it read all modules at once."""
        listed = (await self._client.list_tools()).tools
        tools = [
            compact({"name": one.name, "description": one.description, "input_schema": one.input_schema})
            for one in listed
        ]
        said, texts = [call_text(*call) for call in calls()], await self.one_by_one()
        slow = Context(tools, [([one], [text]) for one, text in zip(said, texts, strict=True)])
        return slow, Context(tools, [(said[:1], texts[:1]), (said[1:], texts[1:])])


class Programmatic:
    """ptc on the same server, and what a model sees of `run_code`."""

    def __init__(self, agent: ptc.Agent) -> None:
        self._agent = agent

    async def run(self, program: str) -> str:
        result = await self._agent.run_code(program, description=DESCRIPTION)
        assert not result.is_error, result.text
        assert json.loads(result.text) == answer(), result.text
        return result.text

    async def context(self) -> Context:
        prompt, schemas = self._agent.describe()
        tools = [
            compact({"name": one.name, "description": one.description, "input_schema": one.parameters})
            for one in schemas
        ]
        said = call_text("run_code", {"code": PROGRAM, "description": DESCRIPTION})
        return Context([prompt, *tools], [([said], [await self.run(PROGRAM)])])


async def connect(stack: AsyncExitStack, command: str) -> tuple[Native, Programmatic]:
    """Starts the server twice: once behind the official client, and once behind ptc."""
    program, *arguments = shlex.split(command)
    quiet = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - the stack closes it
    parameters = StdioServerParameters(command=program, args=arguments, cwd=ROOT)
    client = await stack.enter_async_context(Client(stdio_client(parameters, errlog=quiet)))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    host = await stack.enter_async_context(ptc.Host(log=folder / "ptc.db"))
    server = mcp.StdioServer(command=program, args=arguments, cwd=ROOT, prefix="")
    servers = await stack.enter_async_context(mcp.connect(host.tools, {"files": server}))
    state = servers["files"]
    assert state.state == "connected", state
    agent = host.agent("bench", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox(), max_parallel_sub_calls=MODULES))
    return Native(client), Programmatic(agent)


Run = Callable[[], Awaitable[object]]


async def measure(runs: dict[str, Run], rounds: int) -> dict[str, list[float]]:
    """Returns the milliseconds of each run, in the order of the rounds; all take turns."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 2):
        for name, run in runs.items():
            started = time.perf_counter()
            await run()
            if turn >= 2:  # the first ones warm up
                taken[name].append((time.perf_counter() - started) * 1000)
            await anyio.sleep(0.02)  # the next instance is made ready meanwhile
    return taken


def share(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})"


def context_rows(columns: Sequence[dict[str, int]]) -> list[list[str]]:
    slow, fast, program = columns
    rows = []
    for name, value in slow.items():
        own = f"{program[name]:,}" if name == "requests" else share(program[name], value)
        rows.append([name, f"{value:,}", f"{fast[name]:,}", own])
    return rows


def time_rows(taken: dict[str, list[float]]) -> list[list[str]]:
    rows = []
    for name, times in taken.items():
        p90 = statistics.quantiles(times, n=10)[-1] if len(times) > 1 else times[0]
        rows.append([name, f"{statistics.median(times):.1f}", f"{min(times):.1f}", f"{p90:.1f}"])
    return rows


async def main(rounds: int, command: str, in_tokens: bool, markdown: bool) -> None:
    unit, count = counter(not in_tokens)
    async with AsyncExitStack() as stack:
        native, programmatic = await connect(stack, command)
        contexts = (*await native.contexts(), await programmatic.context())
        heads = [unit, "native, one call after another", "native, reads at once", "run_code"]
        show(heads, context_rows([context.rows(count) for context in contexts]), markdown)
        runs: dict[str, Run] = {
            "native, one call after another": native.one_by_one,
            "run_code, one call after another": lambda: programmatic.run(ONE_BY_ONE),
            "native, reads at once": native.at_once,
            "run_code, reads at once": lambda: programmatic.run(PROGRAM),
        }
        show(["milliseconds", "median", "best", "p90"], time_rows(await measure(runs, rounds)), markdown)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--server", default=SERVER, metavar="COMMAND", help="starts the server; the default needs npx")
    parser.add_argument("--tokens", action="store_true", help="count tokens instead of bytes")
    parser.add_argument("--markdown", action="store_true", help="print tables for a README")
    options = parser.parse_args()
    if shutil.which(shlex.split(options.server)[0]) is None:
        sys.exit(f"{shlex.split(options.server)[0]!r} is not there; name another server with --server")
    anyio.run(main, options.rounds, options.server, options.tokens, options.markdown)
