"""The other sandboxes, each used as its documentation has it, and two yardsticks: a bare process, and no sandbox."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

from .programs import Dialect, Tools
from .subjects import Subject, require

_CHILD = Path(__file__).with_name("child.py")
_ONE_AFTER_ANOTHER = "got = [slow(n) for n in range({calls})]"


class Monty(Subject):
    """pydantic-monty: an interpreter of its own in worker processes, which serve one run after another."""

    name = "monty"
    title = "pydantic-monty"
    dialect = Dialect(
        call="{name}({arguments})",
        wait="await {name}({arguments})",
        at_once="import asyncio\ngot = await asyncio.gather(*[slow(n) for n in range({calls})])",
        value="{value}",
    )

    @classmethod
    def version(cls) -> str:
        return require("pydantic_monty", "pydantic-monty")

    async def open(self) -> None:
        monty: Any = importlib.import_module("pydantic_monty")
        options: dict[str, Any] = {"max_processes": self.at_once} if self.at_once else {}
        if not self.ready:
            options |= {"min_processes": 0, "max_checkouts_per_worker": 1}
        self._pool = await self.stack.enter_async_context(monty.AsyncMonty(**options))

    async def execute(self, source: str, tools: Tools) -> Any:
        worker: int | None = None
        try:
            async with self._pool.checkout() as session:
                worker = session.worker_pid
                return await session.feed_run(source, external_lookup=tools.immediate | tools.waited_for)
        except asyncio.CancelledError:
            # It may return before its worker has ended, and there is nothing but looking to learn of that.
            while worker is not None and _runs(worker):  # noqa: ASYNC110
                await asyncio.sleep(0)
            raise


def _runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class Smolagents(Subject):
    """The local executor of smolagents: it walks the syntax tree in the host's own process, in a thread."""

    name = "smolagents"
    title = "smolagents"
    dialect = Dialect(
        call="{name}({arguments})", wait="{name}({arguments})", at_once=_ONE_AFTER_ANOTHER, value="{value}"
    )
    lacks: ClassVar[Mapping[str, str]] = {
        "kill": "a run cannot be killed; its thread goes on until the executor's own count of iterations ends it",
    }

    @classmethod
    def version(cls) -> str:
        return require("smolagents", "smolagents")

    async def open(self) -> None:
        self._made: Any = None
        # An async host must not wait in its event loop for a program, so it has a thread for each.
        self._threads = self.stack.enter_context(ThreadPoolExecutor(max_workers=max(self.at_once, 8)))
        self._module: Any = importlib.import_module("smolagents.local_python_executor")

    async def prepare(self) -> None:
        if self.ready and self._made is None:
            self._made = self._make()

    def _make(self) -> Any:
        return self._module.LocalPythonExecutor(["json"])

    async def execute(self, source: str, tools: Tools) -> Any:
        loop = asyncio.get_running_loop()
        executor, self._made = self._made, None

        def waited(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *arguments: asyncio.run_coroutine_threadsafe(function(*arguments), loop).result()

        def run() -> Any:
            own = executor if executor is not None else self._make()
            own.send_tools(tools.immediate | {name: waited(one) for name, one in tools.waited_for.items()})
            return own(source).output

        return await loop.run_in_executor(self._threads, run)


class Process(Subject):
    """A fresh `python -I` for each run, which sends its calls as lines of JSON; nothing contains it."""

    name = "process"
    title = "python -I"
    dialect = Dialect(
        call='call("{name}", {arguments})',
        wait='call("{name}", {arguments})',
        at_once='got = call_all("slow", [[n] for n in range({calls})])',
        value="result = {value}",
    )
    lacks: ClassVar[Mapping[str, str]] = {"ready": "it is one process for one run, started for it"}

    async def execute(self, source: str, tools: Tools) -> Any:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(sys.executable, "-I", str(_CHILD), stdin=pipe, stdout=pipe)
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a process that was started with pipes has none")
        try:
            return await _converse(process.stdin, process.stdout, source, tools)
        finally:
            if process.returncode is None:
                process.kill()
            process.stdin.close()
            await process.wait()


async def _converse(
    stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader, source: str, tools: Tools
) -> Any:  # fmt: skip
    immediate, waited_for = tools.immediate, tools.waited_for
    answering: set[asyncio.Task[None]] = set()

    def send(value: Any) -> None:
        stdin.write(json.dumps(value).encode() + b"\n")

    async def answer(number: int, name: str, arguments: list[Any]) -> None:
        send([number, await waited_for[name](*arguments)])

    send(source)
    while line := await stdout.readline():
        told = json.loads(line)
        if isinstance(told, dict):
            return told["result"]
        number, name, arguments = told
        if name in immediate:
            send([number, immediate[name](*arguments)])
        else:
            task = asyncio.create_task(answer(number, name, arguments))
            answering.add(task)
            task.add_done_callback(answering.discard)
    raise RuntimeError("the process ended without a result")


class Native(Subject):
    """The host's own Python without any sandbox: what the CPU rows are compared with."""

    name = "native"
    title = "native"
    dialect = Dialect(
        call="{name}({arguments})", wait="{name}({arguments})", at_once=_ONE_AFTER_ANOTHER, value="result = {value}"
    )
    lacks: ClassVar[Mapping[str, str]] = dict.fromkeys(("ready", "unready", "calls", "rate", "memory", "kill"), "")

    async def execute(self, source: str, tools: Tools) -> Any:
        scope: dict[str, Any] = dict(tools.immediate)
        exec(compile(source, "<program>", "exec", dont_inherit=True), scope)
        return scope["result"]
