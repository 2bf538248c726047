"""Single runs of a large session are what they are when all of it is read; nothing else is read for them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import anyio
import pytest
from ptc.runtime.cli import audit_find
from ptc.runtime.log import (
    LogUnavailableError,
    Session,
    SqliteEventStore,
    SqliteLogReader,
    UnknownEventError,
    verify_log,
)
from ptc.runtime.log.large import LargeSession
from ptc.runtime.log.reading import SessionReading, read_session

from .test_log_verify import tampered

RUNS = 12


class Story:
    """Writes a session in which runs overlap, end late or never, ask, and use the ids of earlier ones again."""

    def __init__(self, session: Session, seed: int) -> None:
        self.session = session
        self.random = random.Random(seed)
        self.started = 0

    async def write(self) -> None:
        running = [self.run(number) for number in range(RUNS)]
        waiting: list[Any] = []
        while running or waiting:
            if running and (not waiting or self.random.random() < 0.2):
                waiting.append(running.pop(0))
            at = self.random.randrange(len(waiting))
            try:
                await anext(waiting[at])
            except StopAsyncIteration:
                del waiting[at]

    async def run(self, number: int) -> Any:
        append, random_ = self.session.append, self.random
        call_id = random_.choice([f"call-{number}", f"cäll-{number}", f"again-{number % 2}-{number // 6}"])
        recorded = random_.random() < 0.8
        seq = None
        jobs: list[int] = []
        if recorded:
            arguments = json.dumps({"code": f'tools.pay("callId", "{call_id}")', "description": "d"})
            data = {"turn": number, "step": 1, "callId": call_id, "name": "run_code", "arguments": arguments}
            seq = await append("tool/call", data)
            yield
        for n in range(random_.randrange(0 if recorded else 1, 5)):
            sub = f"{number}:{n}"
            ids = {"rootCallId": call_id, "parentCallId": call_id, "subCallId": sub}
            call = {**ids, "name": "pay", "arguments": {"note": f'not "{call_id}"', "n": n}}
            asked = await append("tool/ptc-dispatch-start", call)
            yield
            if random_.random() < 0.3:
                asked = await append("approval/asked", {"id": f"q{sub}", "toolName": "pay", "callId": sub})
                yield
                await append("approval/decided", {"id": f"q{sub}", "outcome": "allowed-once"}, cites=asked)
                yield
            job = None
            if random_.random() < 0.3:
                told = {"kind": "build", "label": "docs", "callId": sub, "rootCallId": call_id}
                job = await append("job/started", {"jobId": f"build-{number}", **told})
                yield
            if random_.random() < 0.8:
                await append("tool/ptc-dispatch", {**call, "isError": n == 3, "content": []})
                yield
            if job is not None and random_.random() < 0.8:
                jobs.append(job)
        if seq is not None and random_.random() < 0.8:
            message = {"callId": random_.choice([call_id, None]), "isError": False, "content": []}
            await append("tool/result", {"turn": number, "step": 1, "message": message}, cites=seq)
            yield
        await append("x/more", {"ignorable": True})
        yield
        for job in jobs:  # long after their run
            for _ in range(random_.randrange(3)):
                await append("x/more", {"ignorable": True})
            await append("job/settled", {"jobId": f"build-{number}", "status": "completed"}, cites=job)
            yield


async def write(path: Path, seed: int) -> None:
    async with SqliteEventStore(path) as store:
        await Story(Session(store, agent="a", id="s"), seed).write()


@pytest.mark.parametrize("seed", range(25))
def test_runs_that_are_read_one_by_one_are_those_of_the_whole_session(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "log.db"
    anyio.run(write, path, seed)
    with SqliteLogReader(path) as reader:
        (info,) = reader.sessions()
        whole = read_session(info, reader.events("s")).runs
        large = LargeSession(reader, info)
        assert large.count == len(whole)
        assert [large.run(number) for number in range(1, large.count + 1)] == whole
        for count in (1, 3, len(whole) + 1):
            assert large.latest(count) == whole[-count:]


@pytest.mark.parametrize("arguments", [("list", "-n", "3"), ("show",), ("show", "s/4"), ("show", "s/99")])
def test_the_commands_print_the_same_of_a_large_session(
    tmp_path: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ptc.runtime.cli.audit import audit
    from typer.testing import CliRunner

    path = tmp_path / "log.db"
    anyio.run(write, path, 3)

    def run() -> Any:
        return CliRunner().invoke(audit, [*arguments, "--log", str(path), "--json"])

    whole = run()
    monkeypatch.setattr(audit_find, "LARGE", 10)
    monkeypatch.setattr(audit_find, "read_session", None)
    large = run()
    assert (large.exit_code, large.stderr) == (whole.exit_code, whole.stderr)
    assert large.exit_code == (2 if arguments[-1] == "s/99" else 0)
    if large.exit_code == 0:
        shown, as_whole = json.loads(large.stdout), json.loads(whole.stdout)
        assert shown | {"unpaired": None} == as_whole | {"unpaired": None}


def test_only_the_events_of_the_run_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.db"

    async def many() -> None:
        async with SqliteEventStore(path) as store:
            session = Session(store, agent="a", id="s")
            for n in range(1_500):
                call = {"turn": n, "step": 1, "callId": f"c{n}", "name": "search", "arguments": "{}"}
                seq = await session.append("tool/call", call)
                message: dict[str, Any] = {"callId": f"c{n}", "isError": False, "content": []}
                await session.append("tool/result", {"turn": n, "step": 1, "message": message}, cites=seq)

    anyio.run(many)
    read: list[int] = []
    events = SqliteLogReader.events

    def counted(self: SqliteLogReader, session: str, **bounds: Any) -> Any:
        found = events(self, session, **bounds)
        read.append(len(found))
        return found

    monkeypatch.setattr(SqliteLogReader, "events", counted)
    with SqliteLogReader(path) as reader:
        (info,) = reader.sessions()
        large = LargeSession(reader, info)
        assert large.count == 1_500
        run = large.run(200)
        assert run is not None
        assert (run.id, run.outcome) == ("s/200", "ok")
        assert [run.number for run in large.latest(2)] == [1_499, 1_500]
    assert read == [2, 4]


def test_the_end_of_a_job_and_the_answer_to_a_question_are_found_however_late(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    async def late() -> None:
        async with SqliteEventStore(path) as store:
            session = Session(store, agent="a", id="s")
            await session.append("permission/preset", {"preset": "read-only"})
            call = {"turn": 1, "step": 1, "callId": "c0", "name": "build", "arguments": "{}"}
            seq = await session.append("tool/call", call)
            started = {"jobId": "build-1", "kind": "build", "label": "docs", "callId": "c0", "rootCallId": "c0"}
            job = await session.append("job/started", started)
            asked = await session.append("approval/asked", {"id": "q", "toolName": "build", "callId": "c0"})
            message: dict[str, Any] = {"callId": "c0", "isError": False, "content": []}
            await session.append("tool/result", {"turn": 1, "step": 1, "message": message}, cites=seq)
            for n in range(audit_find.LARGE):
                await session.append("x/y", {"ignorable": True, "n": n})
            await session.append("job/settled", {"jobId": "build-1", "status": "killed"}, cites=job)
            await session.append("approval/decided", {"id": "q", "outcome": "rejected"}, cites=asked)

    anyio.run(late)
    with SqliteLogReader(path) as reader:
        found = audit_find.find(reader, "s/1")
        (call,) = [run.call for run in found.runs]
        assert call is not None
        assert [(job.status, job.settled_seq) for job in call.jobs] == [("killed", audit_find.LARGE + 5)]
        assert [approval.outcome for approval in call.approvals] == ["rejected"]
        assert [one.value for one in found.reading.settings] == ["read-only"]
        assert [one.value for one in audit_find.latest(reader).reading.settings] == ["read-only"]


@pytest.mark.contract("I15")
def test_a_large_session_with_an_unknown_event_is_refused_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    async def more() -> None:
        async with SqliteEventStore(path) as store:
            session = Session(store, agent="a", id="s")
            await session.append("tool/later", {"ignorable": 1})
            for n in range(50):
                await session.append("x/y", {"ignorable": True, "n": n})

    anyio.run(more)
    with SqliteLogReader(path) as reader:
        (info,) = reader.sessions()
        with pytest.raises(UnknownEventError, match="event 0 of session s has the type 'tool/later'"):
            LargeSession(reader, info)


def test_sub_calls_that_do_not_pair_lead_nobody_astray(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    async def odd() -> None:
        async with SqliteEventStore(path) as store:
            session = Session(store, agent="a", id="s")
            ids = {"rootCallId": "c", "parentCallId": "of nobody", "subCallId": "c:1"}
            await session.append("tool/ptc-dispatch-start", {**ids, "name": "pay", "arguments": {}})
            await session.append(
                "tool/ptc-dispatch-start", {**ids, "parentCallId": "c", "name": "pay", "arguments": {}}
            )

    anyio.run(odd)
    with SqliteLogReader(path) as reader:
        (info,) = reader.sessions()
        reading: SessionReading = read_session(info, reader.events("s"))
        assert len(reading.runs) == len(reading.violations) == 1
        large = LargeSession(reader, info)
        assert large.latest(5) == []
        assert large.run(1) is None


@pytest.mark.parametrize("data", ["{", "[]", '{"a": NaN}'])
def test_a_record_that_is_no_json_is_named(tmp_path: Path, data: str) -> None:
    path = tmp_path / "log.db"
    anyio.run(write, path, 1)
    tampered(path, "UPDATE events SET data = ?, type = 'tool/call' WHERE id = (1 << 32 | 5)", data)
    with SqliteLogReader(path) as reader:
        (info,) = reader.sessions()
        if data == "[]":  # no JSON object has no members
            assert (5, None) in reader.members("s", ["tool/call"], ["callId"])
            return
        for _ in range(2):
            with pytest.raises(
                LogUnavailableError, match="event 5 of session s is not the JSON that was written"
            ) as one:
                LargeSession(reader, info)
            assert one.value.reason == "damaged"


@pytest.mark.anyio
async def test_a_session_that_goes_on_reads_the_ids_of_its_calls_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SqliteEventStore(tmp_path / "log.db") as store:
        session = Session(store, agent="a", id="s")
        for n, extra in enumerate([{}, {"callId": "x"}, {"callId": "é\n", "turn": 7}, {"callId": 3, "turn": True}]):
            await session.append("tool/call", {"step": n, **extra})
        await session.append("tool/result", {"callId": "no call", "turn": 99})
        monkeypatch.setattr(SqliteEventStore, "events", None)
        assert await Session(store, agent="a", id="s").left_off() == ({"x", "é\n", "3"}, 7)
        assert await Session(store, agent="a", id="new").left_off() == (set(), 0)
        assert await store.members("s", ["tool/call"], ["step", "turn", "none"]) == [
            (0, 0, None, None),
            (1, 1, None, None),
            (2, 2, 7, None),
            (3, 3, True, None),
        ]


def test_a_log_as_the_benchmark_writes_it_is_whole_and_its_runs_are_found(tmp_path: Path) -> None:
    from tests.bench.audit_log import PER_RUN, write_log

    path = tmp_path / "log.db"
    write_log(path, audit_find.LARGE + 2 * PER_RUN, 1)
    runs = audit_find.LARGE // PER_RUN + 2
    assert verify_log(path).whole
    with SqliteLogReader(path) as reader:
        listing = audit_find.list_runs(reader, 2)
        assert [run.number for _session, run in listing.runs] == [runs, runs - 1]
        assert listing.more
        (run,) = audit_find.find(reader, listing.runs[1][1].id).runs
        assert (len(run.calls), run.outcome) == (8, "ok")
