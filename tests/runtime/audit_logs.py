"""A log for the tests of `ptc audit`, written by real hosts: three executors, and calls that ended in every way."""

from __future__ import annotations

import functools
import json
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
import ptc
from ptc.runtime.cli.audit import audit
from ptc.runtime.log import Session, SqliteEventStore, SqliteLogReader
from ptc.runtime.log.reading import read_session
from typer.testing import CliRunner

HOSTILE = "\x1b[2J\x1b]0;root@prod\x07 \r\n \x9b1m \x7f \x00 \u2028 \u200b \ufeff [red]x[/red] \u202eevil\u2066"
SECRET = "the-secret-of-the-customer"

PROGRAM = f"""\
import asyncio
told = await asyncio.gather(*[tools.nap(ms=60, name=f"nap {{n}}") for n in range(4)])
for name, arguments in [
    ("fail", {{"why": "no such order"}}),
    ("delete_order", {{"id": 3}}),
    ("pay", {{"amount": 7}}),
    ("refund", {{"order": 1}}),
    ("refund", {{"order": 2}}),
    ("echo", {{"text": {HOSTILE!a}}}),
    ("echo", {{"text": "x" * 20000}}),
    ("echo", {{"text": {SECRET!a}}}),
]:
    try:
        await tools[name](arguments)
    except ToolCallError as error:
        print(name, error)
return told
"""

KILLED = """
import os, signal, sys, anyio, ptc

@ptc.tool
async def launch(target: str) -> str:
    "Launch."
    os.kill(os.getpid(), signal.SIGKILL)
    return target

async def main():
    async with ptc.Host(log=sys.argv[1]) as host:
        host.tools.register(launch)
        agent = host.agent("doomed", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
        await agent.run_code("await tools.launch(target='moon')", description="Launch it")

anyio.run(main)
"""


@ptc.tool(concurrency_safe=True)
async def nap(ms: float, name: str, run: ptc.ToolRunContext) -> str:
    """Wait for a while."""
    async with run.signal.cancel_scope():  # else whoever aborts the call waits for all of it
        await anyio.sleep(ms / 1000)
    return name


@ptc.tool
async def fail(why: str) -> str:
    """Fail."""
    raise LookupError(why)


@ptc.tool
async def delete_order(id: int) -> bool:
    """Delete an order."""
    return True


@ptc.tool
async def pay(amount: int) -> bool:
    """Pay."""
    return True


@ptc.tool
async def refund(order: int) -> bool:
    """Refund an order."""
    return True


@ptc.tool
async def echo(text: str) -> str:
    """Return the text."""
    return text


def nobody_deletes(call: Any) -> str | None:
    return "nobody deletes orders" if call.name == "delete_order" else None


async def paying_is_closed(call: Any, go_on: Any) -> Any:
    if call.name == "pay":
        return ptc.Deny("payments are closed")
    return ptc.Ask("refunds cost money") if call.name == "refund" else await go_on()


async def write_log(path: Path) -> None:
    answers = ["allowed-once", "rejected"]

    async def answer(_request: Any, _go_on: Any) -> str:
        await anyio.sleep(0.01)
        return answers.pop(0)

    async with ptc.Host(log=path) as host:
        for tool in (nap, fail, delete_order, pay, refund, echo):
            host.tools.register(tool)
        host.tools.guard(nobody_deletes)
        host.on("tools/pre-execute", paying_is_closed)
        host.on("approval/request", answer)
        support = host.agent("support", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
        await support.run_code(PROGRAM, description="Weekly refunds")
        source = ptc.SignalSource()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_abort, source)
            await support.run_code("await tools.nap(ms=60000, name='long')", description="Wait", signal=source.signal)
        native = host.agent(f"billing {HOSTILE}", executor=ptc.NativeExecutor())
        await native.execute([ptc.ToolCall(name="echo", arguments={"text": HOSTILE}, call_id="call_0")])
        native.next_turn()
        await native.execute(
            [
                ptc.ToolCall(name="nap", arguments={"ms": 5, "name": "a"}),
                ptc.ToolCall(name="delete_order", arguments={"id": 4}),
            ]
        )
        if sys.platform.startswith("linux"):
            other = host.agent("other", executor=ptc.PtcExecutor(sandbox=ptc.RestrictedSandbox()))
            await other.run_code("await tools.nap(ms=1, name='r')\nraise ValueError('broken')", description="Break")
    async with SqliteEventStore(path) as store:  # no registry takes such a name, other writers might
        session = Session(store, agent=HOSTILE, id="20300101T000000-hostile")
        call = {"turn": 1, "step": 1, "callId": HOSTILE, "name": HOSTILE, "arguments": HOSTILE}
        seq = await session.append("tool/call", call)
        ids = {"rootCallId": HOSTILE, "parentCallId": HOSTILE, "subCallId": f"{HOSTILE}:ptc:1"}
        await session.append("tool/ptc-dispatch-start", {**ids, "name": HOSTILE, "arguments": [HOSTILE], "line": 1})
        content = [{"type": "text", "text": HOSTILE}]
        error = {"name": HOSTILE, "code": HOSTILE, "reason": HOSTILE}
        decision = {"outcome": "deny", "by": HOSTILE}
        settled = {**ids, "name": HOSTILE, "arguments": [HOSTILE], "isError": True, "content": content}
        await session.append("tool/ptc-dispatch", {**settled, "error": error, "decision": decision})
        message = {"callId": HOSTILE, "isError": False, "content": content}
        await session.append("tool/result", {"turn": 1, "step": 1, "message": message}, cites=seq)


async def _abort(source: ptc.SignalSource) -> None:
    await anyio.sleep(0.3)
    source.abort("the user went away")


@functools.cache
def _written() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ptc.db"
        anyio.run(write_log, path)
        killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr

        async def close() -> None:  # moves what the killed host left in the -wal file
            async with SqliteEventStore(path):
                pass

        anyio.run(close)
        return path.read_bytes()


def real_log(folder: Path) -> Path:
    """Puts the log into a folder, and returns its path."""
    path = folder / "ptc.db"
    path.write_bytes(_written())
    return path


def run(*arguments: str, **environment: str) -> Any:
    """Runs `ptc audit` in this process, with its output in pipes."""
    return CliRunner(env={"NO_COLOR": None, "FORCE_COLOR": None, "COLUMNS": None, **environment}).invoke(
        audit, list(arguments)
    )


def assert_printable(text: str) -> None:
    assert {char for char in text if not char.isprintable()} <= {"\n"}


def all_calls(path: Path) -> list[dict[str, Any]]:
    """Returns every call of a log, as `read_session` has them, the one that started last first."""
    found: list[tuple[tuple[int, int, int], dict[str, Any]]] = []
    with SqliteLogReader(path) as reader:
        sessions = sorted(reader.sessions(), key=lambda one: (one.opened_us, one.id))
        for order, session in enumerate(sessions):
            for run in read_session(session, reader.events(session.id)).runs:
                for call in ([run.call] if run.call else []) + list(run.calls):
                    key = (call.started_us, order, call.seq)
                    found.append((key, {"session": session, "run": run.id, "call": call}))
    return [one for _key, one in sorted(found, key=lambda one: one[0], reverse=True)]


async def write_random(path: Path, seed: int, runs: int = 30) -> None:
    """Writes three sessions whose calls overlap, use ids again, never end, or were not recorded as a whole."""
    choose = random.Random(seed)
    now = 1_764_411_330_000_000

    def clock() -> int:
        nonlocal now
        now += choose.randrange(1, 5_000)
        return now

    async with SqliteEventStore(path, clock=clock, monotonic=lambda: now) as store:
        sessions = [Session(store, agent=f"agent {n}", id=f"s{n}") for n in range(3)]
        pending: list[list[tuple[Session, str, dict[str, Any], Any]]] = []
        for number in range(runs):
            session = choose.choice(sessions)
            root = f"call_{choose.randrange(4)}" if choose.random() < 0.5 else f'r{number} "\\\u00e9'
            cites: list[int] = []
            steps: list[Any] = []
            if choose.random() < 0.8:
                arguments = json.dumps({"code": f"run {number}", "q": choose.choice(["a b", "c\nd"])})
                data = {"turn": 1, "step": 1, "callId": root, "name": choose.choice(["run_code", "get"])}
                steps.append((session, "tool/call", {**data, "arguments": arguments}, cites))
            subs = []
            for sub in range(choose.randrange(4)):
                ids = {"rootCallId": root, "parentCallId": root, "subCallId": f"{root}:{number}:ptc:{sub}"}
                call = {**ids, "name": choose.choice(["get", "put", "del[x]"]), "arguments": {"q": f"{number} \u00fc"}}
                steps.append((session, "tool/ptc-dispatch-start", {**call, "line": sub}, None))
                subs.append(call)
            choose.shuffle(subs)
            for call in subs:
                if choose.random() < 0.2:
                    continue
                steps.append((session, "tool/ptc-dispatch", {**call, **_random_end(choose)}, None))
            if steps and steps[0][1] == "tool/call" and choose.random() < 0.8:
                end = _random_end(choose)
                message = {"callId": root, "isError": end.pop("isError"), "content": end.pop("content")}
                steps.append((session, "tool/result", {"turn": 1, "step": 1, "message": message, **end}, cites))
            pending.append(steps)
            while len(pending) > 3 or (number == runs - 1 and pending):
                steps = choose.choice(pending)
                if not steps:
                    pending.remove(steps)
                    continue
                of, kind, data, cited = steps.pop(0)
                if kind == "tool/result":
                    await of.append(kind, data, cites=cited[0])
                else:
                    seq = await of.append(kind, data)
                    if kind == "tool/call":
                        cited.append(seq)


def _random_end(choose: random.Random) -> dict[str, Any]:
    content = [{"type": "text", "text": "done"}]
    end: dict[str, Any] = {"isError": choose.random() < 0.5, "content": content}
    if end["isError"] and choose.random() < 0.7:
        end["error"] = {"name": "E", "code": choose.choice(["ABORTED", "APPROVAL_REJECTED", "TIMEOUT"])}
    if choose.random() < 0.5:
        end["decision"] = {
            "outcome": choose.choice(["allow", "deny", "block"]),
            "by": choose.choice(["g 1", "l \u00e9"]),
        }
    return end
