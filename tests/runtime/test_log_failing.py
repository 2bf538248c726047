"""A log that fails: what cannot be recorded does not happen, somebody is told, and nothing that was recorded goes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime.log import LogUnavailableError, Session, SqliteEventStore, SqliteLogReader, StoredEvent, verify_log

from .test_log_processes import Writer

STARTS = ("tool/call", "tool/ptc-dispatch-start")
PROGRAM = """
said = []
for n in range(3):
    try:
        said.append(await tools.pay(n=n))
    except ToolCallError as error:
        said.append(str(error))
return said
"""
REFUSED = "pay did not run, because its start could not be recorded"
SANDBOXES = {"wasm": ptc.WasmSandbox, "restricted": ptc.RestrictedSandbox}
EXECUTORS = [
    "native",
    "wasm",
    pytest.param(
        "restricted",
        marks=pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted backend needs Linux"),
    ),
]


class FailingStore(SqliteEventStore):
    """Fails at one append, or from one on, counted from 1; events are counted in `asked`."""

    def __init__(self, path: Path, at: int, *, for_good: bool) -> None:
        super().__init__(path)
        self.at = at
        self.for_good = for_good
        self.asked = 0

    async def append(self, session: str, type: str, data: Any, *, cites: int | None = None) -> StoredEvent:
        self.asked += 1
        if self.asked == self.at or (self.for_good and self.asked > self.at):
            raise LogUnavailableError("the disk is full", reason="failed")
        return await super().append(session, type, data, cites=cites)


class Deed:
    """A host with one tool that has an effect, and a model's step with three calls of it, or one program with three."""

    def __init__(self, store: SqliteEventStore, executor: str) -> None:
        self.store = store
        self.executor = executor
        self.paid: list[int] = []
        self.told: list[str] = []
        self.raised: Exception | None = None
        self.said = ""

    async def run(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        async with SANDBOXES.get(self.executor, ptc.WasmSandbox)() as sandbox, ptc.Host(log=self.store) as host:

            @ptc.tool
            async def pay(n: int) -> str:
                """Pay."""
                self.paid.append(n)
                return f"paid {n}"

            host.tools.register(pay)
            native = self.executor == "native"
            agent = host.agent("a", session="s", executor=None if native else ptc.PtcExecutor(sandbox=sandbox))
            calls = [ptc.ToolCall(name="pay", arguments={"n": n}) for n in range(3)]
            program = ptc.ToolCall(name="run_code", arguments={"code": PROGRAM, "description": "Pay"})
            meanwhile()
            try:
                step = await agent.execute(calls if native else [program])
            except ptc.ToolBatchExecutionError as error:
                self.said = error.message
                self.raised = error.__cause__ if isinstance(error.__cause__, Exception) else error
            else:
                outcomes = [outcome.result.value for outcome in step.results]
                self.told = outcomes if native else outcomes[0]["result"]


def started(path: Path) -> list[Any]:
    """What the log says has started of the tool with the effect."""
    with SqliteLogReader(path) as reader:
        return [
            event.data["arguments"]
            for event in reader.events("s")
            if event.type in STARTS and event.data["name"] == "pay"
        ]


@pytest.mark.anyio
@pytest.mark.contract("I5", "D15")
@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("executor", EXECUTORS)
async def test_whatever_append_fails_no_call_runs_without_its_record(
    tmp_path: Path, executor: str, for_good: bool
) -> None:
    appends = 6 if executor == "native" else 8
    for at in range(1, appends + 2):
        path = tmp_path / f"{at}.db"
        store = FailingStore(path, at, for_good=for_good)
        deed = Deed(store, executor)
        await deed.run()
        assert len(started(path)) >= len(deed.paid), at
        assert verify_log(path).whole
        if at > appends:
            assert (store.asked, deed.raised, len(deed.paid)) == (appends, None, 3)
        elif deed.raised is None:
            # The program was told which of its calls did not run, and no other was withheld from it.
            assert executor != "native"
            assert len(deed.told) == 3
            for n, said in enumerate(deed.told):
                assert said == (f"paid {n}" if n in deed.paid else REFUSED)
            assert REFUSED in deed.told
        else:
            assert isinstance(deed.raised, LogUnavailableError), at
        if at == 1:
            assert deed.paid == []
            assert deed.raised is not None
        # The host is told which call of the model did not run, so that it can tell the model.
        odd = executor == "native" and at <= appends and at % 2 == 1
        refused = "run_code" if executor != "native" and at == 1 else "pay" if odd else None
        assert ("did not run" in deed.said) == (refused is not None), at
        if refused is not None:
            assert deed.said.startswith(f"a batch of tool calls stopped: {refused} (")


@pytest.mark.anyio
@pytest.mark.contract("I5", "I6", "E25", "E31", "A60")
@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("executor", EXECUTORS[1:])
async def test_calls_side_by_side_whose_copies_are_shaped_have_their_records_or_the_host_is_told(
    tmp_path: Path, executor: str, for_good: bool
) -> None:
    program = (
        "import asyncio\n"
        "async def pay(n):\n    try:\n        return await tools.pay(n=n)\n"
        "    except ToolCallError as error:\n        return str(error)\n"
        "return await asyncio.gather(*(pay(n) for n in range(5)))"
    )
    appends = 12
    async with SANDBOXES[executor]() as sandbox:
        for at in range(1, appends + 2):
            path = tmp_path / f"{at}.db"
            paid: list[int] = []

            async def pay(arguments: Any, _run: ptc.ToolRunContext, paid: list[int] = paid) -> str:
                paid.append(arguments["n"])
                await anyio.sleep(0.002)
                return f"paid {arguments['n']}"

            raised: ptc.ToolBatchExecutionError | None = None
            async with ptc.Host(log=FailingStore(path, at, for_good=for_good)) as host:
                host.tools.register(
                    ptc.define_tool(
                        name="pay",
                        description="Pay.",
                        parameters={"n": {"type": "integer", "required": True}},
                        output={"type": "string"},
                        execute=pay,
                        is_concurrency_safe=lambda _arguments: True,
                    )
                )

                @host.on("tools/ptc-dispatch-log")
                async def shape(_entry: ptc.DispatchLogEntry, next: Any) -> Any:
                    await anyio.sleep(0.001)
                    return await next()

                executing = ptc.PtcExecutor(sandbox=sandbox, max_parallel_sub_calls=2)
                # The sandbox is used again: the host must not close it.
                executing.aclose = nothing
                agent = host.agent("a", session="s", executor=executing)
                try:
                    with anyio.fail_after(20):
                        await agent.run_code(program)
                except ptc.ToolBatchExecutionError as error:
                    raised = error
            assert {n["n"] for n in started(path)} >= set(paid), at
            with SqliteLogReader(path) as reader:
                settled = [event for event in reader.events("s") if event.type == "tool/ptc-dispatch"]
            assert raised is not None or len(settled) == len(started(path)), at
            if at > appends:
                assert (raised, len(settled)) == (None, 5)
            elif for_good or at in (1, appends):
                assert raised is not None, at
            assert verify_log(path).whole


async def nothing() -> None:
    """Closes nothing."""


@pytest.mark.anyio
@pytest.mark.parametrize("executor", EXECUTORS)
async def test_nothing_runs_while_another_process_keeps_the_log_locked(tmp_path: Path, executor: str) -> None:
    path = tmp_path / "log.db"
    deed = Deed(SqliteEventStore(path, busy_ms=50), executor)
    others: list[sqlite3.Connection] = []

    def lock() -> None:
        others.append(sqlite3.connect(path, isolation_level=None, timeout=0))
        others[0].execute("BEGIN IMMEDIATE")

    await deed.run(lock)
    others[0].close()
    assert deed.paid == []
    assert isinstance(deed.raised, LogUnavailableError)
    assert deed.raised.reason == "locked"
    assert str(path) in deed.raised.message
    assert verify_log(path).whole


FILL = """
import resource, sys, anyio
from ptc.runtime.log import LogUnavailableError, Session, SqliteEventStore

async def main(path, size):
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a", id="s")
        await session.append("x/first", {"ignorable": True})
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        done, failed = 1, 0
        while failed < 3:
            try:
                await session.append("x/y", {"ignorable": True, "n": done, "text": "x" * size})
                done += 1
            except LogUnavailableError as error:
                failed += 1
                print(error.reason, error.message)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        done += 1 if await session.append("x/last", {"ignorable": True}) else 0
        print(done)

anyio.run(main, sys.argv[1], int(sys.argv[2]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a limit on the size of files")
@pytest.mark.parametrize("size", [2_000, 100_000])
def test_a_file_that_cannot_grow_fails_clearly_and_loses_nothing(tmp_path: Path, size: int) -> None:
    path = tmp_path / "log.db"
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(path), str(size)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    *said, count = done.stdout.splitlines()
    assert len(said) == 3
    assert all(line.startswith(f"failed cannot write the log {path}: ") for line in said)
    with SqliteLogReader(path) as reader:
        events = reader.events("s")
    assert len(events) == int(count)
    assert [event.data.get("n", 0) for event in events] == [*range(int(count) - 1), 0]
    assert verify_log(path).whole


async def write(path: Path) -> None:
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a", id="s")
        for n in range(40):
            await session.append("x/y", {"ignorable": True, "n": n, "text": "x" * 1_000})


@pytest.mark.parametrize("cut", [1, 500, 4_096, 3 * 4_096])
def test_a_truncated_file_is_not_written_on(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log.db"
    anyio.run(write, path)
    raw = path.read_bytes()
    path.write_bytes(raw[:-cut])
    with pytest.raises(LogUnavailableError, match=r"keep .*, and restore a copy of it") as caught:
        anyio.run(write, path)
    assert caught.value.reason == "damaged"
    assert str(path) in caught.value.message
    assert path.read_bytes() == raw[:-cut]
    assert not verify_log(path).whole


@pytest.mark.parametrize("names", [("one", "two"), ("same", "same")])
def test_readers_beside_two_writing_processes_see_a_whole_log_at_every_moment(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    path = tmp_path / "log.db"
    counts: list[int] = []
    with Writer(path, names[0], 1_500) as one, Writer(path, names[1], 1_500) as two:
        for writer in (one, two):
            writer.ready()
        for writer in (one, two):
            writer.go()
        while one.process.poll() is None or two.process.poll() is None:
            found = verify_log(path)
            assert found.whole, found.problems
            counts.append(found.events)
            with SqliteLogReader(path) as reader:
                for name in set(names):
                    events = reader.events(name)
                    assert [event.seq for event in events] == list(range(len(events)))
        assert [one.end(), two.end()] == [0, 0]
    assert counts == sorted(counts)
    assert len(set(counts)) > 2
    assert verify_log(path).events == 3_002
