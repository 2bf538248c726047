"""A session that a process left in the middle of a step is answered when it is taken up again, and not before."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime.log import LogUnavailableError, Session, SqliteEventStore, SqliteLogReader, StoredEvent, verify_log
from ptc.runtime.log.query import CallFilter, find_calls
from ptc.runtime.log.reading import read_session
from ptc.runtime.log.writers import WriterClaims

pytestmark = pytest.mark.anyio

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="claims of sessions need Linux")


def call(call_id: str, **more: Any) -> dict[str, Any]:
    return {"turn": 2, "step": 1, "callId": call_id, "name": "write", "arguments": "{}", **more}


def result(call_id: str) -> dict[str, Any]:
    message = {"role": "tool", "callId": call_id, "isError": False, "content": [ptc.text_block("done")]}
    return {"turn": 2, "step": 1, "message": message}


async def interrupt(path: Path) -> None:
    """Leaves a session `s` whose step has one call that ended and two that did not, one of them a program."""
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a", id="s")
        first = await session.append("tool/call", call("c1"))
        await session.append("tool/call", call("c2"))
        await session.append("tool/call", call("c3", name="run_code"))
        await session.append("tool/result", result("c1"), cites=first)
        ids = {"rootCallId": "c3", "parentCallId": "c3"}
        for n in (1, 2, 3):
            start = {**ids, "subCallId": f"c3:ptc:{n}", "name": "write", "arguments": {}}
            await session.append("tool/ptc-dispatch-start", start)
        settled = {**ids, "subCallId": "c3:ptc:1", "name": "write", "arguments": {}, "isError": False, "content": []}
        await session.append("tool/ptc-dispatch", settled)


def stored(path: Path) -> Sequence[StoredEvent]:
    with SqliteLogReader(path) as reader:
        return reader.events("s")


def native(host: ptc.Host, bodies: list[str] | None = None, *, name: str = "a", session: str | None = "s") -> ptc.Agent:
    done = bodies if bodies is not None else []

    @ptc.tool
    async def write() -> str:
        """Write."""
        done.append("write")
        return "written"

    agent = host.agent(name, session=session)
    agent.tools.register(write)
    return agent


@linux_only
@pytest.mark.contract("I13", "I14", "C65")
async def test_calls_without_a_result_are_answered_once_before_the_first_batch(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await interrupt(path)
    before = stored(path)
    async with ptc.Host(log=path) as host:
        agent = native(host)
        async with anyio.create_task_group() as tasks:  # two batches at once: one of them repairs
            for _ in range(2):
                tasks.start_soon(agent.execute, [ptc.ToolCall(name="write", arguments="{}", call_id="c1")])
    after = stored(path)
    assert after[: len(before)] == before
    repaired = [event for event in after if event.data.get("repaired")]
    assert [event.seq for event in repaired] == [8, 9]
    assert [event.cites for event in repaired] == [1, 2]
    assert [event.data["message"]["callId"] for event in repaired] == ["c2", "c3"]  # type: ignore[index, call-overload]
    assert [event.data["message"]["id"] for event in repaired] == ["repaired-1", "repaired-2"]  # type: ignore[index, call-overload]
    assert {(event.time_us, event.mono_us) for event in repaired} == {(before[-1].time_us, before[-1].mono_us)}
    for event in repaired:
        assert event.data["error"] == {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}
        assert (event.data["turn"], event.data["step"]) == (2, 1)
    program: Any = repaired[1].data["message"]
    assert "Check what it has done" in program["content"][0]["text"]
    assert "unknown too: write (2 times)" in program["content"][0]["text"]
    # What comes after belongs to the next turn, and the sub-calls stay as they were (contract I14).
    assert {event.data["turn"] for event in after[10:]} == {3}
    assert not [event for event in after[8:] if "dispatch" in event.type]
    assert verify_log(path).whole


@linux_only
@pytest.mark.contract("I13")
async def test_a_balanced_session_is_left_alone_and_a_repaired_one_is_balanced(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await interrupt(path)
    for _ in range(3):
        async with SqliteEventStore(path) as store:
            await Session(store, agent="a", id="s").repair()
        assert len(stored(path)) == 10
    async with SqliteEventStore(path) as store:
        await Session(store, agent="a", id="nobody").repair()
    with SqliteLogReader(path) as reader:
        assert [session.id for session in reader.sessions()] == ["s"]


@linux_only
@pytest.mark.contract("I13")
async def test_copies_of_a_session_are_repaired_alike(tmp_path: Path) -> None:
    await interrupt(tmp_path / "one.db")
    (tmp_path / "two.db").write_bytes((tmp_path / "one.db").read_bytes())
    for name in ("one.db", "two.db"):
        async with SqliteEventStore(tmp_path / name) as store:
            await Session(store, agent="a", id="s").append("x/y", {"ignorable": True})
    assert stored(tmp_path / "one.db")[:10] == stored(tmp_path / "two.db")[:10]


@linux_only
@pytest.mark.contract("I13", "I2")
async def test_what_repair_appends_is_filtered_and_observed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await interrupt(path)
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a", id="s")
        session.filters.add(lambda _session, _type, data: {**data, "seen": True})
        seen: list[int] = []
        session.observe(lambda event: seen.append(event.seq))
        await session.append("x/y", {"ignorable": True})
    assert seen == [8, 9, 10]
    assert [event.data.get("seen") for event in stored(path)[8:]] == [True] * 3


@linux_only
@pytest.mark.contract("I13")
async def test_the_session_of_another_agent_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await interrupt(path)
    async with SqliteEventStore(path) as store:
        with pytest.raises(ValueError, match='session s belongs to agent "a", not to "b"'):
            await Session(store, agent="b", id="s").repair()
    assert len(stored(path)) == 8


HOLD = """
import sys, anyio
from ptc.runtime.log import Session, SqliteEventStore

async def main():
    async with SqliteEventStore(sys.argv[1]) as store:
        session = Session(store, agent="a", id="s")
        await session.append("tool/call", {"turn": 1, "step": 1, "callId": "c1", "name": "x", "arguments": "{}"})
        print("ready", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)

anyio.run(main)
"""


@linux_only
@pytest.mark.contract("I13")
async def test_a_session_that_a_live_process_writes_is_not_repaired_and_a_dead_one_s_is(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:  # noqa: ASYNC220
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        async with ptc.Host(log=path) as host:
            agent = native(host)
            await agent.execute([ptc.ToolCall(name="write", arguments="{}")])
            assert not [event for event in stored(path) if event.data.get("repaired")]
            first = next(iter(await session_of(agent).replay()))
            assert (first.call_id, first.content) == ("c1", None)
            other.kill()
            other.wait()
            # The host has had the session open all the time, and a call of its own might be running.
            await native(host).execute([ptc.ToolCall(name="write", arguments="{}")])
            assert not [event for event in stored(path) if event.data.get("repaired")]
        async with ptc.Host(log=path) as host:
            await native(host).execute([ptc.ToolCall(name="write", arguments="{}")])
    assert [event.cites for event in stored(path) if event.data.get("repaired")] == [0]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.db"]
    assert verify_log(path).whole


def session_of(agent: ptc.Agent) -> Session:
    assert agent.session is not None
    return agent.session


@linux_only
async def test_claims_are_shared_or_alone_and_the_last_one_removes_the_file(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    one, two = WriterClaims(log), WriterClaims(log)
    assert one.alone(1)
    assert not two.alone(1)
    assert not two.share(1)
    assert two.alone(2)
    one.release(1)
    assert two.share(1)
    assert not one.alone(1)
    assert one.share(1)
    two.close()
    assert (tmp_path / "log.db-writers").exists()
    assert two.share(1)  # a closed one begins anew
    one.close()
    assert (tmp_path / "log.db-writers").exists()
    two.close()
    assert not (tmp_path / "log.db-writers").exists()
    # A file that was removed under an open one is not taken for the real one.
    assert one.alone(5)
    one.release(5)
    assert two.alone(6)
    (tmp_path / "log.db-writers").unlink()
    two.release(6)
    assert two.alone(6)
    assert not one.alone(6)
    one.close()
    two.close()


@linux_only
async def test_whoever_comes_while_a_session_is_repaired_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await interrupt(path)
    claims = WriterClaims(path)
    assert claims.alone(1)
    async with SqliteEventStore(path, busy_ms=50) as store:
        with pytest.raises(LogUnavailableError, match="another process keeps session s for itself"):
            await Session(store, agent="a", id="s").append("x/y", {})
    async with SqliteEventStore(path) as store, anyio.create_task_group() as tasks:
        with anyio.fail_after(10):
            tasks.start_soon(Session(store, agent="a", id="s").append, "x/y", {"ignorable": True})
            await anyio.sleep(0.1)
            assert len(stored(path)) == 8
            claims.close()
    assert len(stored(path)) > 8


@linux_only
@pytest.mark.contract("I13", "I4", "I10")
async def test_a_host_learns_what_became_of_each_call_of_the_interrupted_step(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await interrupt(path)
    asked = [ptc.ToolCall(name="write", arguments="{}", call_id=f"c{n}") for n in (1, 2)]
    asked += [
        ptc.ToolCall(name=name, arguments='{"x":1}', call_id=f"c{n}") for n, name in ((3, "run_code"), (4, "write"))
    ]
    async with ptc.Host(log=path) as host:
        bodies: list[str] = []
        agent = native(host, bodies)
        answers = await agent.recover(asked)
        assert await agent.recover(asked) == answers
        assert bodies == []
        await agent.execute([ptc.ToolCall(name="write", arguments="{}")])
        with pytest.raises(RuntimeError, match="has begun its first batch"):
            await agent.recover(asked)
        replayed = await session_of(agent).replay()
    assert [one.call_id for one in answers] == ["c1", "c2", "c3", "c4"]
    assert [one.error.code if one.error else None for one in answers] == [
        None,
        "TOOL_OUTCOME_UNKNOWN",
        "TOOL_OUTCOME_UNKNOWN",
        "TOOL_NOT_STARTED",
    ]
    assert [one.repaired for one in answers] == [False, True, True, True]
    assert "safe to call it again" in answers[3].content[0]["text"]  # type: ignore[index]
    assert answers[3].arguments == '{"x":1}'
    assert replayed[:4] == list(answers)
    assert (replayed[4].turn, replayed[4].step, replayed[4].content) == (3, 1, [ptc.text_block("written")])
    late = stored(path)[8:12]
    assert [event.type for event in late] == ["tool/result", "tool/result", "tool/call", "tool/result"]
    assert {event.time_us for event in late} == {stored(path)[7].time_us}
    assert late[3].cites == late[2].seq
    assert verify_log(path).whole


@linux_only
@pytest.mark.contract("I13")
async def test_a_step_of_which_the_log_has_nothing_never_started(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await interrupt(path)
    async with ptc.Host(log=path) as host:
        agent = native(host)
        answers = await agent.recover([ptc.ToolCall(name="write", arguments="{}", call_id="d1")])
        assert [(one.turn, one.step, one.error.code if one.error else "") for one in answers] == [
            (2, 2, "TOOL_NOT_STARTED")
        ]
        fresh = native(host, name="b", session=None)
        answers = await fresh.recover([ptc.ToolCall(name="write", arguments="{}", call_id="")])
        assert [(one.turn, one.step) for one in answers] == [(1, 1)]
        await fresh.execute([ptc.ToolCall(name="write", arguments="{}")])
        assert [(one.turn, one.step) for one in await session_of(fresh).replay()] == [(1, 1), (2, 1)]
    async with ptc.Host() as host:
        with pytest.raises(RuntimeError, match="keeps no log"):
            await host.agent("c").recover([])


@linux_only
@pytest.mark.contract("I13")
async def test_an_auditor_is_told_that_the_outcome_stays_unknown(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await interrupt(path)
    async with ptc.Host(log=path) as host:
        await native(host).recover(
            [
                *(ptc.ToolCall(name="write", arguments="{}", call_id=f"c{n}") for n in (1, 2)),
                ptc.ToolCall(name="run_code", arguments="{}", call_id="c3"),
                ptc.ToolCall(name="write", arguments="{}", call_id="c4"),
            ]
        )
    with SqliteLogReader(path) as reader:
        (info,) = reader.sessions()
        reading = read_session(info, reader.events("s"))
    assert reading.violations == []
    calls = [run.call for run in reading.runs if run.call is not None]
    assert [one.outcome for one in calls] == ["ok", "outcome unknown", "outcome unknown", "cancelled"]
    assert [one.error.code if one.error else None for one in calls][1:] == [
        "TOOL_OUTCOME_UNKNOWN",
        "TOOL_OUTCOME_UNKNOWN",
        "TOOL_NOT_STARTED",
    ]
    assert [one.duration_ms is None for one in calls] == [False, True, True, True]
    found = find_calls(path, CallFilter(outcome="outcome unknown"))
    assert {one.call.call_id for one in found.calls} == {"c2", "c3", "c3:ptc:2", "c3:ptc:3"}
    found = find_calls(path, CallFilter(outcome="outcome unknown", code="TOOL_OUTCOME_UNKNOWN"))
    assert {one.call.call_id for one in found.calls} == {"c2", "c3"}
    command = [sys.executable, "-m", "ptc.runtime.cli", "audit", "show", "s", "--log", str(path)]
    shown = await anyio.run_process(command, check=False)
    assert b"TOOL_OUTCOME_UNKNOWN" in shown.stdout, shown.stderr
    assert b"outcome unknown" in shown.stdout


@pytest.mark.contract("I13")
async def test_a_tool_cannot_pass_for_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a", id="s")
        seq = await session.append("tool/call", call("c1"))
        data: Any = result("c1")
        data["message"]["isError"] = True
        await session.append("tool/result", {**data, "error": {"name": "E", "code": "TOOL_OUTCOME_UNKNOWN"}}, cites=seq)
    with SqliteLogReader(path) as reader:
        (info,) = reader.sessions()
        (run,) = read_session(info, reader.events("s")).runs
    assert run.outcome == "failed"
    assert json.loads(json.dumps(stored(path)[1].data)).get("repaired") is None
