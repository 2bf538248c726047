"""The SQLite store on one event loop: order, durability settings, a busy file, an overgrown one, a lost one."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import threading
from typing import TYPE_CHECKING

import anyio
import pytest
from ptc.runtime.log import LogUnavailableError, Session, SqliteEventStore, new_session_id
from ptc.runtime.log import sqlite as sqlite_module
from ptc.runtime.log.checkpoint import Checkpointer, wal_bytes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

LARGE = "x" * 100_000


def held(path: Path) -> sqlite3.Connection:
    """Takes the write lock of a log, as another process would."""
    other = sqlite3.connect(path, isolation_level=None, timeout=0)
    other.execute("BEGIN IMMEDIATE")
    return other


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def writing_threads(store: SqliteEventStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list that gets the id of the thread of each insert of an event."""
    threads: list[int] = []
    assert store._file is not None
    insert = store._file.rows.insert

    def noting(*args):
        threads.append(threading.get_ident())
        return insert(*args)

    monkeypatch.setattr(store._file.rows, "insert", noting)
    return threads


@pytest.mark.contract("I1")
async def test_a_log_is_private_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        await Session(store, agent="a").append("x/y", {})
        beside = {"log.db-wal": 0o600, "log.db-shm": 0o600, "log.db-writers": 0o600}
        assert modes(tmp_path) == {"log.db": 0o600, **beside}
    assert modes(tmp_path) == {"log.db": 0o600}


@pytest.mark.contract("I1")
async def test_small_and_large_records_keep_the_order_of_their_appends(tmp_path: Path) -> None:
    async with SqliteEventStore(tmp_path / "log.db") as store:
        session = Session(store, agent="a")
        begun: list[int] = []
        seqs: dict[int, int] = {}

        async def append(n: int) -> None:
            begun.append(n)
            seqs[n] = await session.append("x/y", {"n": n, "text": LARGE if n % 3 == 0 else "small"})

        async with anyio.create_task_group() as tasks:
            for n in range(60):
                tasks.start_soon(append, n)
        events = await store.events(session.id)
    assert [event.data["n"] for event in events] == begun
    assert seqs == {n: seq for seq, n in enumerate(begun)}


@pytest.mark.contract("I1")
async def test_no_append_overtakes_one_that_waits(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a")
        await session.append("x/first", {})
        other = held(path)
        done: list[str] = []

        async def append(kind: str, data: dict) -> None:
            await session.append(kind, data)
            done.append(kind)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append, "x/waits", {"text": LARGE})
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(append, "x/small", {})
            await anyio.wait_all_tasks_blocked()
            assert done == []
            other.execute("COMMIT")
            other.close()
            tasks.start_soon(append, "x/last", {})
        events = await store.events(session.id)
    assert [event.type for event in events] == ["x/first", "x/waits", "x/small", "x/last"]


async def test_first_appends_of_a_session_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a")
        other = held(path)

        async def append(n: int) -> None:
            await session.append("x/y", {"n": n})

        async with anyio.create_task_group() as tasks:
            for n in range(5):
                tasks.start_soon(append, n)
                await anyio.wait_all_tasks_blocked()
            other.execute("COMMIT")
            other.close()
        assert [event.data["n"] for event in await store.events(session.id)] == [0, 1, 2, 3, 4]


@pytest.mark.contract("I1")
async def test_who_waited_for_the_session_to_open_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a")
        other = held(path)

        async def append(*numbers: int) -> None:
            for n in numbers:
                await session.append("x/y", {"n": n})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append, 1, 3)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(append, 2)
            await anyio.wait_all_tasks_blocked()
            other.execute("COMMIT")
            other.close()
        assert [event.data["n"] for event in await store.events(session.id)] == [1, 2, 3]


@pytest.mark.contract("I1")
async def test_a_file_that_stays_busy_fails_the_append_and_names_the_path(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path, busy_ms=50) as store:
        session = Session(store, agent="a")
        await session.append("x/first", {})
        other = held(path)
        with pytest.raises(LogUnavailableError, match=re.escape(str(path))) as caught:
            await session.append("x/lost", {})
        assert (caught.value.code, caught.value.reason) == ("LOG_UNAVAILABLE", "locked")
        other.execute("ROLLBACK")
        other.close()
        assert await session.append("x/second", {}) == 1
        assert [event.type for event in await store.events(session.id)] == ["x/first", "x/second"]


async def test_a_busy_file_fails_every_waiting_append_with_an_error_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path, busy_ms=50) as store:
        session = Session(store, agent="a")
        await session.append("x/first", {})
        other = held(path)
        errors: list[Exception] = []

        async def append() -> None:
            try:
                await session.append("x/lost", {})
            except LogUnavailableError as error:
                errors.append(error)

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(append)
        other.close()
        assert len({id(error) for error in errors}) == 4
        assert len(await store.events(session.id)) == 1


async def test_one_wrong_append_does_not_fail_those_committed_with_it(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a")
        await session.append("x/first", {})
        other = held(path)
        refused: list[str] = []

        async def append(cites: int) -> None:
            try:
                await session.append("x/y", {"cites": cites}, cites=cites)
            except ValueError as error:
                refused.append(str(error))

        async with anyio.create_task_group() as tasks:
            for cites in (0, 0, 99, 0):
                tasks.start_soon(append, cites)
                await anyio.wait_all_tasks_blocked()
            other.execute("COMMIT")
            other.close()
        assert [event.cites for event in await store.events(session.id)] == [None, 0, 0, 0]
        assert len(refused) == 1
        assert "cites event 99" in refused[0]


@pytest.mark.contract("I1")
async def test_an_append_that_has_begun_is_finished_although_its_task_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a")
        await session.append("x/first", {})
        other = held(path)
        answers: list[int] = []

        async def append(data: dict) -> None:
            answers.append(await session.append("x/y", data))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append, {})
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(append, {"text": LARGE})
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
            other.execute("COMMIT")
            other.close()
        assert answers == [1, 2]
        assert len(await store.events(session.id)) == 3


@pytest.mark.parametrize("text", ["", LARGE])
async def test_a_record_is_made_even_when_the_caller_is_cancelled_already(tmp_path: Path, text: str) -> None:
    async with SqliteEventStore(tmp_path / "log.db") as store:
        session = Session(store, agent="a")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await session.append("x/y", {"text": text})
        assert len(await store.events(session.id)) == 1


@pytest.mark.contract("I1")
async def test_where_a_commit_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = threading.get_ident()
    async with SqliteEventStore(tmp_path / "process.db") as store:
        threads = writing_threads(store, monkeypatch)
        session = Session(store, agent="a")
        await session.append("x/y", {})
        await session.append("x/y", {"text": LARGE})
        assert [thread == here for thread in threads] == [True, False]
    async with SqliteEventStore(tmp_path / "power.db", durability="power") as store:
        threads = writing_threads(store, monkeypatch)
        await Session(store, agent="a").append("x/y", {})
        assert [thread == here for thread in threads] == [False]


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power", 2)])
async def test_the_hot_connection_is_set_for_its_durability(tmp_path: Path, durability, synchronous: int) -> None:
    async with SqliteEventStore(tmp_path / "log.db", durability=durability) as store:
        assert store._file is not None
        connection = store._file.connection

        def pragma(name: str) -> object:
            return connection.execute(f"PRAGMA {name}").fetchone()[0]

        await Session(store, agent="a").append("x/y", {"text": LARGE})
        assert pragma("synchronous") == synchronous
        assert pragma("journal_mode") == "wal"
        assert pragma("wal_autocheckpoint") == 0
        assert pragma("busy_timeout") == 0


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='give "process" or "power"'):
        SqliteEventStore(tmp_path / "log.db", durability="disk")  # pyright: ignore[reportArgumentType]


async def test_checkpoints_are_made_off_the_loop_while_appends_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    checkpointing: list[int] = []
    run = Checkpointer._run

    def noting(self: Checkpointer) -> None:
        checkpointing.append(threading.get_ident())
        run(self)

    monkeypatch.setattr(Checkpointer, "_run", noting)
    async with SqliteEventStore(path) as store:
        assert store._file is not None
        store._file.checkpointer = Checkpointer(path, every_bytes=200_000)
        session = Session(store, agent="a")
        appended = 0
        # One checkpoint may find the file busy; the next one then takes its part along.
        while path.stat().st_size <= 100_000 and appended < 1_000:
            await session.append("x/y", {"n": appended, "text": "x" * 5_000})
            appended += 1
        store._file.checkpointer.join()
        assert path.stat().st_size > 100_000
        assert len(await store.events(session.id)) == appended
    assert checkpointing
    assert threading.get_ident() not in checkpointing


async def test_an_overgrown_write_ahead_log_is_emptied_before_the_next_append(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        assert store._file is not None
        checkpointer = store._file.checkpointer = Checkpointer(path, every_bytes=900_000, overgrown_bytes=100_000)
        session = Session(store, agent="a")
        for n in range(60):
            await session.append("x/y", {"n": n, "text": "x" * 5_000})
        assert not checkpointer.overgrown
        assert wal_bytes(path) > 300_000
        await session.append("x/y", {"text": LARGE * 3})
        checkpointer.join()
        assert checkpointer.overgrown
        await session.append("x/y", {})
        assert not checkpointer.overgrown
        assert wal_bytes(path) < 50_000
        assert len(await store.events(session.id)) == 62


async def test_opening_waits_for_those_who_read_a_log_that_is_not_in_wal_mode(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        await Session(store, agent="a").append("x/y", {})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN")
    other.execute("SELECT * FROM events").fetchall()
    store = SqliteEventStore(path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.open)
        await anyio.sleep(0.1)
        other.close()
    assert len(await store.sessions()) == 1
    await store.close()


async def test_a_checkpoint_that_fails_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        assert store._file is not None
        store._file.checkpointer = Checkpointer(tmp_path / "no" / "such.db", every_bytes=1)
        session = Session(store, agent="a")
        await session.append("x/y", {})
        store._file.checkpointer.join()
        assert "was not checkpointed" in caplog.text
        assert await session.append("x/y", {}) == 1


@pytest.mark.contract("I1")
async def test_a_full_disk_fails_the_append_and_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="a")
        await session.append("x/first", {})
        assert store._file is not None
        connection = store._file.connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        for text in ("x" * 20_000, LARGE):
            with pytest.raises(LogUnavailableError, match="the disk is full") as caught:
                await session.append("x/lost", {"text": text})
            assert caught.value.reason == "failed"
        connection.execute("PRAGMA max_page_count = 100000")
        assert await session.append("x/second", {}) == 1
        assert [event.type for event in await store.events(session.id)] == ["x/first", "x/second"]


async def test_a_record_beyond_all_bounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_module, "_MAX_CHARS", 1_000)
    async with SqliteEventStore(tmp_path / "log.db") as store:
        session = Session(store, agent="a")
        with pytest.raises(LogUnavailableError, match=r"1,0.. characters.*shorten"):
            await session.append("x/y", {"text": "x" * 1_000})
        assert await session.append("x/y", {"text": "x" * 900}) == 0


@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_a_file_that_was_taken_away_is_not_written_to(tmp_path: Path, how: str) -> None:
    path = tmp_path / "log.db"
    seconds = iter(range(1, 1_000_000))
    async with SqliteEventStore(path, monotonic=lambda: next(seconds) * 1_000_000) as store:
        session = Session(store, agent="a")
        await session.append("x/first", {})
        path.rename(tmp_path / "elsewhere.db")
        if how == "replaced":
            path.write_bytes(b"")
        for _ in range(2):
            with pytest.raises(LogUnavailableError, match="moved or deleted") as caught:
                await session.append("x/lost", {})
            assert caught.value.reason == "replaced"
        path.unlink(missing_ok=True)
        (tmp_path / "elsewhere.db").rename(path)
        assert await session.append("x/second", {}) == 1


async def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    store = SqliteEventStore(tmp_path / "log.db")
    session = Session(store, agent="a")
    with pytest.raises(LogUnavailableError, match="is not open") as caught:
        await session.append("x/y", {})
    assert caught.value.reason == "closed"
    await store.open()
    await store.open()
    await session.append("x/y", {})
    await store.close()
    await store.close()
    with pytest.raises(LogUnavailableError, match="is not open"):
        await session.append("x/y", {})


async def test_closing_waits_for_appends_that_have_begun(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteEventStore(path)
    await store.open()
    session = Session(store, agent="a")
    await session.append("x/first", {})
    other = held(path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.append, "x/second", {})
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(store.close)
        await anyio.wait_all_tasks_blocked()
        other.execute("COMMIT")
        other.close()
    async with SqliteEventStore(path) as again:
        assert len(await again.events(session.id)) == 2


@pytest.mark.contract("I1")
async def test_a_session_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with SqliteEventStore(path) as store:
        first = Session(store, agent="support", labels={"sandbox": "wasm"})
        await first.append("x/y", {"ignorable": True})
    async with SqliteEventStore(path) as store:
        again = Session(store, agent="support", id=first.id)
        assert await again.append("x/y", {"ignorable": True}, cites=0) == 1
        with pytest.raises(ValueError, match='belongs to agent "support", not to "billing"'):
            await Session(store, agent="billing", id=first.id).append("x/y", {"ignorable": True})
        with pytest.raises(ValueError, match="already in the log"):
            await store.open_session(first.id, agent="support")
        (info,) = await store.sessions()
    assert (info.id, info.agent, info.events, info.labels) == (first.id, "support", 2, {"sandbox": "wasm"})


async def test_an_unknown_session_is_refused(tmp_path: Path) -> None:
    async with SqliteEventStore(tmp_path / "log.db") as store:
        with pytest.raises(ValueError, match="no session nobody"):
            await store.append("nobody", "x/y", {})
        assert await store.events("nobody") == []


@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "x" * 101, "a\n"])
async def test_a_session_id_that_could_mislead_is_refused(tmp_path: Path, name: str) -> None:
    async with SqliteEventStore(tmp_path / "log.db") as store:
        with pytest.raises(ValueError, match="session id"):
            await store.open_session(name, agent="a")


async def test_sessions_come_into_the_log_with_their_first_event_and_the_latest_is_first(tmp_path: Path) -> None:
    async with SqliteEventStore(tmp_path / "log.db") as store:
        silent, one, two = (Session(store, agent=name) for name in ("silent", "one", "two"))
        await one.append("x/y", {})
        await two.append("x/y", {})
        assert [info.agent for info in await store.sessions()] == ["two", "one"]
        await one.append("x/y", {})
        assert [info.agent for info in await store.sessions()] == ["one", "two"]
    assert silent.id != one.id


def test_session_ids_tell_their_time_and_differ() -> None:
    ids = [new_session_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(re.fullmatch(r"\d{8}T\d{6}-[0-9a-f]{10}", one) for one in ids)
    assert [one[:15] for one in ids] == sorted(one[:15] for one in ids)


@pytest.mark.contract("I1")
async def test_values_of_every_kind_come_back_as_they_were(tmp_path: Path) -> None:
    deep: object = "end"
    for _ in range(200):
        deep = {"in": [deep]}
    data = {
        "big": 10**40,
        "float": 0.1,
        "minus": -0.0,
        "integral": 1.0,
        "yes": True,
        "none": None,
        "text": "nul \0 line\u2028 \U0001f600 \x1b[2J",
        "empty": [{}, [], ""],
        "deep": deep,
    }
    async with SqliteEventStore(tmp_path / "log.db") as store:
        session = Session(store, agent="agent é")
        await session.append("x/y", data)
        (event,) = await store.events(session.id)
    assert repr(event.data) == repr(data)


async def test_a_path_that_sqlite_would_take_for_something_else_is_a_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:x?mode=memory", "a%20b#c?.db"):
        async with SqliteEventStore(name) as store:
            session = Session(store, agent="a")
            await session.append("x/y", {})
            assert len(await store.events(session.id)) == 1
    assert sorted(os.listdir(tmp_path)) == sorted([":memory:", "file:x?mode=memory", "a%20b#c?.db"])
