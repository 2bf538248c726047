"""Hosts are killed in the middle of their work, and what the log says afterwards is held against what was done.

The suite kills 40; `PTC_CRASH_KILLS=100` kills as many on each backend, and `PTC_CRASH_SEED` chooses other instants.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime.log import Session, SqliteEventStore, SqliteLogReader, verify_log
from ptc.runtime.log.reading import read_session

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's fork and its subreapers")

KILLS = int(os.environ.get("PTC_CRASH_KILLS", "20"))
SEED = int(os.environ.get("PTC_CRASH_SEED", "20261130"))
HOST = Path(__file__).with_name("crash_host.py")


@dataclass
class Account:
    """What the effects say beside what the log says."""

    begun: Counter[tuple[str, str]] = field(default_factory=Counter)
    ended: set[tuple[str, str]] = field(default_factory=set)
    started: Counter[tuple[str, str]] = field(default_factory=Counter)
    settled: set[tuple[str, str]] = field(default_factory=set)
    failed: set[tuple[str, str]] = field(default_factory=set)
    unknown: set[tuple[str, str]] = field(default_factory=set)
    violations: list[Any] = field(default_factory=list)

    def problems(self) -> dict[str, list[Any]]:
        """Returns what must not be, by what it is."""
        found = {
            "effects without a start record": [call for call in self.begun if call not in self.started],
            "calls that were made twice": [call for call, times in self.begun.items() if times > 1],
            "calls that were recorded twice": [call for call, times in self.started.items() if times > 1],
            "results of what did not happen": [call for call in self.settled if call not in self.ended],
            "calls that failed": sorted(self.failed),
            "events that do not pair": self.violations,
        }
        return {what: which for what, which in found.items() if which}


def read_account(folder: Path) -> Account:
    account = Account()
    for line in (folder / "effects").read_text(encoding="utf-8").splitlines():
        what, session, call_id = line.split()
        if what == "begin":
            account.begun[session, call_id] += 1
        else:
            account.ended.add((session, call_id))
    with SqliteLogReader(folder / "ptc.db") as reader:
        for info in reader.sessions():
            reading = read_session(info, reader.events(info.id))
            account.violations.extend((info.id, violation) for violation in reading.violations)
            for call in (one for run in reading.runs for one in (run.call, *run.calls) if one is not None):
                who = info.id, call.call_id
                account.started[who] += 1
                if call.outcome == "outcome unknown":
                    account.unknown.add(who)
                elif call.outcome != "ok":
                    account.failed.add(who)
                elif call.name != "run_code":
                    account.settled.add(who)
    return account


async def repair_all(path: Path) -> list[str]:
    """Takes up every session, as a host would that goes on with it; returns the calls of models without a result."""
    async with SqliteEventStore(path) as store:
        for info in await store.sessions():
            await Session(store, agent=info.agent, id=info.id).repair()
        left: list[str] = []
        for info in await store.sessions():
            calls = await Session(store, agent=info.agent, id=info.id).replay()
            left += [f"{info.id} {call.call_id}" for call in calls if call.content is None]
            known = [call.error.code for call in calls if call.repaired and call.error]
            assert set(known) <= {"TOOL_OUTCOME_UNKNOWN"}
        return left


@pytest.mark.timeout(60 + 4 * KILLS)
@pytest.mark.contract("I13", "I14", "I5", "I6", "I8")
@pytest.mark.parametrize("backend", ["wasm", "restricted"])
def test_no_effect_is_without_a_record_wherever_the_host_is_killed(tmp_path: Path, backend: str) -> None:
    command = [sys.executable, str(HOST), str(tmp_path), backend, str(KILLS), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    log = tmp_path / "ptc.db"

    crashed = read_account(tmp_path)
    assert crashed.problems() == {}
    assert verify_log(log).problems == []
    # The kills hit what they should: calls whose effect had begun, in programs and in batches.
    interrupted = [call for call in crashed.begun if call not in crashed.ended]
    assert len(interrupted) >= KILLS // 4
    assert {session.partition("-")[0] for session, _call in interrupted} == {"programs", "native"}
    assert all(call in crashed.unknown for call in interrupted)

    assert anyio.run(repair_all, log) == []
    repaired = read_account(tmp_path)
    assert repaired.problems() == {}
    assert repaired.unknown == crashed.unknown
    assert repaired.started == crashed.started
    assert verify_log(log).problems == []
    figures = json.loads(done.stdout)
    print(
        f"{backend}: {figures['kills']} hosts killed in {figures['seconds']:.1f} s; {len(crashed.begun)} effects, "
        f"{len(crashed.settled)} results, {len(crashed.unknown)} calls of unknown outcome, 0 lost; leftovers gone "
        f"{figures['leftovers_seconds'] * 1000:.0f} ms after the last kill"
    )


@pytest.mark.anyio
async def test_the_harness_finds_what_is_lost(tmp_path: Path) -> None:
    async with ptc.Host(log=tmp_path / "ptc.db") as host:

        @ptc.tool
        async def mark() -> str:
            """Leave a mark."""
            return "done"

        host.tools.register(mark)
        agent = host.agent("native", session="s")
        await agent.execute([ptc.ToolCall(name="mark", arguments="{}", call_id=one) for one in ("a", "b", "c")])
    lines = ("begin s a", "end s a", "begin s b", "end s b", "begin s b", "begin s c", "begin s d")
    (tmp_path / "effects").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert read_account(tmp_path).problems() == {
        "effects without a start record": [("s", "d")],
        "calls that were made twice": [("s", "b")],
        "results of what did not happen": [("s", "c")],
    }
