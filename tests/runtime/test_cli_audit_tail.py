"""`ptc audit tail`: each call as it starts and ends, while hosts write, from before there is a log until Ctrl-C."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime.cli.audit_tail import tail
from ptc.runtime.log import LogUnavailableError, Session, SqliteEventStore
from ptc.runtime.log.follow import CallFollower, CallNews
from ptc.runtime.log.query import CallFilter

from .audit_logs import (
    HOSTILE,
    assert_printable,
    delete_order,
    nap,
    nobody_deletes,
    pay,
    paying_is_closed,
    real_log,
    run,
)


class Tail:
    """`ptc audit tail` in a process of its own."""

    def __init__(self, log: Path, *options: str) -> None:
        command = [sys.executable, "-u", "-m", "ptc.runtime.cli", "audit", "tail", "--log", str(log), *options]
        environment = {**os.environ, "PYTHONUTF8": "1"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def lines(self, count: int) -> list[str]:
        return [self._lines.get(timeout=60) for _ in range(count)]

    def said(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def interrupt(self) -> tuple[int, list[str], str]:
        """Ends it as Ctrl-C does; returns its exit code, the lines that were not taken, and what else it said."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=60)
        self._reader.join()
        assert self.process.stderr is not None
        return code, list(self._lines.queue), self.process.stderr.read()


@contextmanager
def tailing(log: Path, *options: str) -> Iterator[Tail]:
    started = Tail(log, *options)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
        started._reader.join()
        for stream in (started.process.stdout, started.process.stderr):
            assert stream is not None
            stream.close()


async def work(log: Path, program: str) -> None:
    async with ptc.Host(log=log) as host:
        for tool in (nap, delete_order, pay):
            host.tools.register(tool)
        host.tools.guard(nobody_deletes)
        host.on("tools/pre-execute", paying_is_closed)
        agent = host.agent("support", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
        await agent.run_code(program)


PROGRAM = """\
import asyncio
await asyncio.gather(tools.nap(ms=30, name="a"), tools.nap(ms=60, name="b"))
try:
    await tools.delete_order(id=3)
except ToolCallError:
    pass
"""


def test_it_waits_for_the_log_and_prints_each_start_and_end_as_it_comes(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"
    with tailing(log, "--json") as tail, tailing(log) as told, tailing(log, "--outcome", "denied") as denied:
        for one in (tail, told, denied):
            assert one.said() == f"ptc: there is no log at {log} yet; waiting for it\n"
        anyio.run(work, log, PROGRAM)
        lines = [json.loads(line) for line in tail.lines(8)]
        anyio.run(work, log, "await tools.nap(ms=1, name='later')")  # another host, after the first one has closed it
        more = [json.loads(line) for line in tail.lines(4)]
        printed = told.lines(12)
        (refused,) = denied.lines(1)
        assert tail.interrupt() == (0, [], "")
        assert told.interrupt() == (0, [], "")
        assert denied.interrupt() == (0, [], "")
    seen = [(line["event"], line["tool"], line["outcome"]) for line in lines]
    assert seen == [
        ("start", "run_code", "outcome unknown"),
        ("start", "nap", "outcome unknown"),
        ("start", "nap", "outcome unknown"),
        ("end", "nap", "ok"),
        ("end", "nap", "ok"),
        ("start", "delete_order", "outcome unknown"),
        ("end", "delete_order", "denied"),
        ("end", "run_code", "ok"),
    ]
    assert [line["durationMs"] is None for line in lines] == [event == "start" for event, _tool, _outcome in seen]
    assert {line["run"] for line in lines} == {f"{lines[0]['session']}/1"}
    assert [line["tool"] for line in more] == ["run_code", "nap", "nap", "run_code"]
    assert "> run_code  {" in printed[0]
    assert '  > 1 nap  {"ms":30,"name":"a"}' in printed[1]
    assert "  < 3 delete_order  denied  " in printed[6]
    assert "deny by " in refused
    assert "nobody_deletes" in refused
    assert refused in printed


def pulled(follower: CallFollower) -> list[tuple[str, str]]:
    return [(news.happened, news.found.call.name) for news in follower.poll()]


async def call(session: Session, name: str, *, end: bool = True) -> None:
    data: dict[str, Any] = {"turn": 1, "step": 1, "callId": name, "name": name, "arguments": "{}"}
    seq = await session.append("tool/call", data)
    if end:
        message: dict[str, Any] = {"callId": name, "isError": False, "content": []}
        await session.append("tool/result", {"turn": 1, "step": 1, "message": message}, cites=seq)


def test_a_follower_starts_at_the_end_and_keeps_its_place_when_writers_come_and_go(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"

    async def main() -> None:
        async with SqliteEventStore(log) as store:
            await call(Session(store, agent="a", id="s1"), "before")
        with CallFollower(log) as follower:
            assert pulled(follower) == []
            async with SqliteEventStore(log) as store:
                one, two = Session(store, agent="a", id="s1"), Session(store, agent="b", id="s2")
                await call(one, "first", end=False)
                assert pulled(follower) == [("start", "first")]
                assert pulled(follower) == []
                await call(two, "second")
                await call(one, "third")
                assert pulled(follower) == [
                    ("start", "second"), ("end", "second"), ("start", "third"), ("end", "third")
                ]  # fmt: skip
                await one.append("x/y", {"ignorable": True})
                assert pulled(follower) == []
            assert pulled(follower) == []
            async with SqliteEventStore(log) as store:
                await call(Session(store, agent="a", id="s3"), "fourth")
            assert pulled(follower) == [("start", "fourth"), ("end", "fourth")]
        with CallFollower(log, since_us=0) as follower:
            assert len(follower.poll()) == 9

    anyio.run(main)


def test_a_log_that_takes_the_place_of_another_one_is_new(tmp_path: Path) -> None:
    log, other = tmp_path / "ptc.db", tmp_path / "other.db"

    async def write(path: Path, name: str) -> None:
        async with SqliteEventStore(path) as store:
            await call(Session(store, agent="a", id="s1"), name)

    anyio.run(write, log, "old")
    anyio.run(write, other, "new")
    with CallFollower(log) as follower:
        assert pulled(follower) == []
        other.replace(log)
        assert pulled(follower) == [("start", "new"), ("end", "new")]
        log.unlink()
        assert pulled(follower) == []
        assert follower.waiting
        log.touch()  # another process is about to make a log
        assert pulled(follower) == []
        anyio.run(write, log, "third")
        assert pulled(follower) == [("start", "third"), ("end", "third")]


def test_what_is_no_log_is_one_clear_error(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_text("plain text " * 50)

    def follow() -> None:
        with CallFollower(other) as follower:
            for _ in range(100):
                follower.poll()

    with pytest.raises(LogUnavailableError, match="it is not a ptc log"):
        follow()
    done = run("tail", "--log", str(tmp_path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "it is a directory" in done.stderr


def test_an_event_that_cannot_be_read_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"

    async def main() -> None:
        async with SqliteEventStore(log) as store:
            session = Session(store, agent="a", id="s1")
            await call(session, "one", end=False)
            with CallFollower(log) as follower:
                await session.append("tool/call", {"turn": 1, "step": 1, "callId": "c"})
                await call(session, "two", end=False)
                assert pulled(follower) == [("start", "two")]
                assert len(follower.unreadable) == 1
                assert "event 1 of session s1" in follower.unreadable[0]

    anyio.run(main)


def printed(log: Path, capsys: pytest.CaptureFixture[str], *, json_lines: bool = False, **wanted: Any) -> list[str]:
    """Returns what `tail` prints of a finished log until it is interrupted."""
    said: list[str] = []
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    tail(log, CallFilter(since_us=0, **wanted), json=json_lines, say=said.append, pause=pause)
    assert said == []
    return capsys.readouterr().out.splitlines()


def test_foreign_text_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = real_log(tmp_path)
    lines = printed(log, capsys, json_lines=False)
    assert_printable("\n".join(lines))
    assert any("\\x1b[2J" in line and "\\u202eevil" in line for line in lines)
    assert max(map(len, lines)) < 1_500
    as_json = printed(log, capsys, json_lines=True)
    assert "\n".join(as_json).isascii()
    assert_printable("\n".join(as_json))
    assert len(as_json) == len(lines)
    assert HOSTILE in {json.loads(line)["tool"] for line in as_json}


def test_filters_choose_among_starts_and_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = real_log(tmp_path)

    def told(**wanted: Any) -> list[tuple[str, str]]:
        lines = [json.loads(line) for line in printed(log, capsys, json_lines=True, **wanted)]
        return [(line["event"], line["tool"]) for line in lines]

    assert told(tool="ref*") == [("start", "refund"), ("end", "refund")] * 2
    assert told(tool="launch") == [("start", "launch")]
    assert told(outcome="failed", tool="fail") == [("end", "fail")]
    assert told(decided_by="nobody_deletes", agent="support") == [("end", "delete_order")]
    assert told(argument='"amount":7') == [("start", "pay"), ("end", "pay")]
    assert told(session="nobody") == []


def test_looking_costs_next_to_nothing_while_nothing_is_new(tmp_path: Path) -> None:
    log = real_log(tmp_path)

    async def main() -> None:
        async with SqliteEventStore(log) as store:
            await call(Session(store, agent="a", id="sx"), "one")
            with CallFollower(log) as follower:
                assert follower.poll() == []
                assert follower._connection is not None
                steps: list[int] = []
                follower._connection.set_progress_handler(lambda: steps.append(1), 1)
                for _ in range(50):
                    assert follower.poll() == []
                assert len(steps) < 50 * 20  # instructions of SQLite's machine
                await call(Session(store, agent="a", id="sy"), "two")
                found: list[CallNews] = follower.poll()
                assert len(found) == 2

    anyio.run(main)
