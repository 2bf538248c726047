"""Group I: the session is an append-only log, and what is in it can be read back."""

from __future__ import annotations

import itertools
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from ptc.registry.lossless import LosslessError
from ptc.runtime.log import LogUnavailableError, Session, SqliteEventStore, StoredEvent, UnknownEventError
from ptc.runtime.log.events import DispatchSettled, DispatchStarted, ToolCalled, ToolResulted, read_event

if TYPE_CHECKING:
    from pathlib import Path

CALL = {"turn": 1, "step": 1, "callId": "c1", "name": "run_code", "arguments": '{"code": "1", "description": "d"}'}
RESULT = {"turn": 1, "step": 1, "message": {"callId": "c1", "isError": False, "content": []}}
IDS = {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "c1:ptc:1", "name": "search", "arguments": {"q": "x"}}


def stored(kind: str, data: dict) -> StoredEvent:
    return StoredEvent("s", 0, kind, 0, 0, data)


@pytest.mark.anyio
@pytest.mark.contract("I1")
async def test_seq_is_the_index_and_time_is_the_clock_in_ms(tmp_path: Path) -> None:
    ticks = itertools.count(1_700_000_000_123_456, 1_500)
    async with SqliteEventStore(tmp_path / "log.db", clock=lambda: next(ticks)) as store:
        session = Session(store, agent="support")
        seqs = [await session.append("tool/call", dict(CALL)) for _ in range(3)]
        events = await store.events(session.id)
    assert seqs == [0, 1, 2] == [event.seq for event in events]
    assert [event.time for event in events] == [1_700_000_000_124, 1_700_000_000_126, 1_700_000_000_127]
    assert all(type(event.time) is int for event in events)
    assert [event.time_us for event in events] == [1_700_000_000_124_956 + 1_500 * n for n in range(3)]


@pytest.mark.anyio
@pytest.mark.contract("I1")
async def test_data_is_detached_and_frozen_at_append(tmp_path: Path) -> None:
    seen: list[StoredEvent] = []
    async with SqliteEventStore(tmp_path / "log.db") as store:
        session = Session(store, agent="support")
        session.observe(seen.append)
        data = {"arguments": {"ids": [1, 2]}, "rest": (1, 2)}
        await session.append("x/y", data)
        data["arguments"]["ids"].append(3)
        arguments: Any = seen[0].data["arguments"]
        with pytest.raises(TypeError, match="frozen"):
            arguments["ids"].append(4)
        (event,) = await store.events(session.id)
    assert event.data == seen[0].data == {"arguments": {"ids": [1, 2]}, "rest": [1, 2]}


@pytest.mark.anyio
@pytest.mark.contract("I1", "I2")
@pytest.mark.parametrize(
    ("kind", "data", "cites", "error"),
    [
        ("x/y", {"a": {1, 2}}, None, LosslessError),
        ("x/y", {"a": float("nan")}, None, LosslessError),
        ("x/y", {"a": "\ud800"}, None, LosslessError),
        ("x/y", ["no", "object"], None, TypeError),
        ("x y", {}, None, ValueError),
        ("", {}, None, ValueError),
        ("x/y", {}, 1, ValueError),
        ("x/y", {}, -1, ValueError),
    ],
)
async def test_a_rejected_append_changes_nothing_and_is_not_observed(tmp_path: Path, kind, data, cites, error) -> None:
    seen: list[StoredEvent] = []
    async with SqliteEventStore(tmp_path / "log.db") as store:
        session = Session(store, agent="support")
        await session.append("x/first", {})
        session.observe(seen.append)
        with pytest.raises(error):
            await session.append(kind, data, cites=cites)
        assert seen == []
        assert await session.append("x/second", {}, cites=0) == 1
        assert [event.type for event in await store.events(session.id)] == ["x/first", "x/second"]


@pytest.mark.anyio
@pytest.mark.contract("I1")
async def test_a_refusal_names_the_path_of_what_is_wrong(tmp_path: Path) -> None:
    unfit: Any = {"rows": [1, {"when": object()}]}
    async with SqliteEventStore(tmp_path / "log.db") as store:
        with pytest.raises(LosslessError, match=r"data\.rows\[1\]\.when"):
            await Session(store, agent="a").append("x/y", unfit)
        assert await store.sessions() == []


@pytest.mark.anyio
@pytest.mark.contract("I2")
async def test_observers_hear_of_committed_events_and_cannot_undo_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    order: list[object] = []
    async with SqliteEventStore(tmp_path / "log.db") as store:
        session = Session(store, agent="support")

        def failing(event: StoredEvent) -> None:
            order.append(("failing", event.seq))
            raise RuntimeError("observer trouble")

        async def mistaken(event: StoredEvent) -> None:
            order.append("an async observer was run")

        session.observe(failing)
        session.observe(mistaken)
        stop = session.observe(lambda event: order.append(("second", event.seq)))
        with caplog.at_level(logging.WARNING):
            assert await session.append("x/y", {}) == 0
        stop()
        stop()
        assert await session.append("x/y", {}) == 1
        assert len(await store.events(session.id)) == 2
    assert order == [("failing", 0), ("second", 0), ("failing", 1)]
    assert "observer trouble" in caplog.text
    assert "observers are plain functions" in caplog.text


@pytest.mark.contract("I3", "I4", "I5", "I6")
def test_payloads_read_back_with_their_wire_spellings() -> None:
    call = read_event(stored("tool/call", CALL))
    assert call == ToolCalled(turn=1, step=1, call_id="c1", name="run_code", arguments=CALL["arguments"])
    result = read_event(stored("tool/result", {**RESULT, "error": {"name": "N", "code": "C"}, "meta": [1]}))
    assert isinstance(result, ToolResulted)
    assert (result.message.call_id, result.message.is_error, result.message.content) == ("c1", False, [])
    assert result.error is not None
    assert (result.error.name, result.error.code, result.error.reason, result.meta) == ("N", "C", None, [1])
    start = read_event(stored("tool/ptc-dispatch-start", {**IDS, "line": 3}))
    assert isinstance(start, DispatchStarted)
    assert (start.root_call_id, start.parent_call_id, start.sub_call_id) == ("c1", "c1", "c1:ptc:1")
    assert (start.name, start.arguments, start.line) == ("search", {"q": "x"}, 3)
    decision = {"outcome": "deny", "by": "guard g"}
    settle = read_event(stored("tool/ptc-dispatch", {**IDS, "isError": True, "content": [], "decision": decision}))
    assert isinstance(settle, DispatchSettled)
    assert settle.is_error is True
    assert settle.decision is not None
    assert (settle.decision.outcome, settle.decision.by) == ("deny", "guard g")


@pytest.mark.contract("I3", "I6")
@pytest.mark.parametrize(
    ("kind", "data", "named"),
    [
        ("tool/call", {**CALL, "arguments": {"code": "1"}}, "arguments"),
        ("tool/call", {**CALL, "turn": "1"}, "turn"),
        ("tool/call", {key: value for key, value in CALL.items() if key != "callId"}, "callId"),
        ("tool/ptc-dispatch", {**IDS, "isError": 1, "content": []}, "isError"),
        ("tool/ptc-dispatch", {**IDS, "isError": False, "content": "text"}, "content"),
    ],
)
def test_a_payload_that_is_not_what_its_type_says_is_refused(kind: str, data: dict, named: str) -> None:
    with pytest.raises(LogUnavailableError, match=f"event 0 of session s is no {kind} .*{named}") as caught:
        read_event(stored(kind, data))
    assert caught.value.reason == "damaged"


@pytest.mark.contract("I15")
def test_unknown_keys_are_tolerated_and_unknown_types_are_not() -> None:
    assert read_event(stored("tool/call", {**CALL, "later": {"x": 1}})) == read_event(stored("tool/call", CALL))
    with pytest.raises(UnknownEventError, match=r"'tool/later'.*newer version"):
        read_event(stored("tool/later", {}))
    assert read_event(stored("tool/later", {"ignorable": True})) is None
    for almost in ("true", 1, None):
        with pytest.raises(UnknownEventError):
            read_event(stored("tool/later", {"ignorable": almost}))


@pytest.mark.contract("I15")
def test_the_old_names_of_dispatch_events_are_read() -> None:
    assert isinstance(read_event(stored("tool/code-dispatch-start", IDS)), DispatchStarted)
    assert isinstance(
        read_event(stored("tool/code-dispatch", {**IDS, "isError": False, "content": []})), DispatchSettled
    )


@pytest.mark.anyio
@pytest.mark.contract("I1", "I9")
async def test_a_result_cites_its_call(tmp_path: Path) -> None:
    async with SqliteEventStore(tmp_path / "log.db") as store:
        session = Session(store, agent="support")
        seq = await session.append("tool/call", dict(CALL))
        await session.append("tool/result", dict(RESULT), cites=seq)
        events = await store.events(session.id)
    assert [event.cites for event in events] == [None, 0]
    assert json.loads(json.dumps(events[1].data)) == RESULT
