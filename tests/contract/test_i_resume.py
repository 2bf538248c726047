"""Group I: what a host that takes up a session has from the log, what it answers for the dead, and what it refuses."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.registry.errors import HarnessError
from ptc.runtime.log import Session, SqliteEventStore, SqliteLogReader, StoredEvent, UnknownEventError
from ptc.runtime.log.reading import read_session
from ptc.runtime.log.store import SearchingStore

from ..rigs import needle_tool

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="claims of sessions need Linux")

pytestmark = pytest.mark.anyio


def stored(path: Path, session: str = "s") -> Sequence[StoredEvent]:
    with SqliteLogReader(path) as reader:
        return reader.events(session)


def writer(host: ptc.Host, bodies: list[str], session: str = "s") -> ptc.Agent:
    @ptc.tool
    async def write(text: str) -> str:
        """Write a text."""
        bodies.append(text)
        return f"wrote {text}"

    agent = host.agent("clerk", session=session)
    agent.tools.register(write)
    return agent


def call(call_id: str, text: str) -> ptc.ToolCall:
    return ptc.ToolCall(name="write", arguments={"text": text}, call_id=call_id)


async def leave(path: Path, *events: tuple[str, Any]) -> None:
    """Leaves a session with these events, as another process might."""
    async with SqliteEventStore(path) as store:
        session = Session(store, agent="clerk", id="s")
        for kind, data in events:
            await session.append(kind, data)


def started(call_id: str, turn: int = 1) -> tuple[str, Any]:
    return "tool/call", {"turn": turn, "step": 1, "callId": call_id, "name": "write", "arguments": '{"text":"x"}'}


# Written -------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("I3", "I4")
async def test_calls_are_recorded_at_their_start_and_results_in_the_order_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    second = anyio.Event()

    @ptc.tool(concurrency_safe=True)
    async def wait(n: int) -> int:
        """End in the other order."""
        if n == 1:
            await second.wait()
        else:
            second.set()
        return n

    async with ptc.Host(log=path) as host:
        host.tools.register(wait)
        raw = '{ "n" : 1 }'
        calls = [
            ptc.ToolCall(name="wait", arguments=raw, call_id="first"),
            ptc.ToolCall(name="wait", arguments={"n": 2}, call_id="second"),
            ptc.ToolCall(name="nobody", arguments="{bad", call_id="third"),
        ]
        await host.agent("clerk", session="s").execute(calls)
    events = stored(path)
    calls_seen = {event.data["callId"]: event for event in events if event.type == "tool/call"}
    results = [event for event in events if event.type == "tool/result"]
    assert calls_seen["first"].data["arguments"] == raw
    assert calls_seen["third"].data["arguments"] == "{bad"
    assert calls_seen["second"].seq < results[0].seq, "the second call starts before the first one has ended"
    told: list[Any] = [event.data["message"] for event in results]
    assert [message["callId"] for message in told] == ["first", "second", "third"]
    assert [event.cites for event in results] == [calls_seen[name].seq for name in ("first", "second", "third")]
    assert [event.data.get("error") for event in results] == [
        None,
        None,
        {"name": "ToolNotFoundError", "code": "UNKNOWN_TOOL"},
    ]


@pytest.mark.contract("I4", "K19", "C63")
async def test_the_reason_of_a_denial_is_on_record_and_the_model_is_not_told(tmp_path: Path, kit: Any) -> None:
    path = tmp_path / "log.db"
    bodies: list[str] = []
    async with ptc.Host(log=path) as host:
        agent = writer(host, bodies)

        @host.on("tools/pre-execute")
        async def no(_call: Any, _next: Any) -> Any:
            return ptc.Deny("read-only", ptc.ErrorInfo("PolicyError", "READ_ONLY", reason="rule 7"))

        batch = await agent.execute([call("c1", "x")])
    assert kit.text(batch.results[0].result) == "Error: read-only"
    (ended,) = [event for event in stored(path) if event.type == "tool/result"]
    assert ended.data["error"] == {"name": "PolicyError", "code": "READ_ONLY", "reason": "rule 7"}
    assert bodies == []


@pytest.mark.contract("I4", "I6")
@pytest.mark.parametrize("code", ["APPROVAL_REJECTED", "APPROVAL_CANCELLED", "APPROVAL_UNAVAILABLE"])
async def test_a_tool_cannot_pass_for_denied_by_the_code_of_its_error(tmp_path: Path, code: str) -> None:
    path = tmp_path / "log.db"

    class DisguisedError(HarnessError):
        default_code = code

    @ptc.tool
    async def write() -> str:
        """Write."""
        raise DisguisedError("nobody did anything")

    async with ptc.Host(log=path) as host:
        host.tools.register(write)
        await host.agent("clerk", session="s").execute([ptc.ToolCall(name="write", arguments={})])
    with SqliteLogReader(path) as reader:
        (info,) = reader.sessions()
        (run,) = read_session(info, reader.events("s")).runs
    assert run.call is not None
    assert run.call.error is not None
    assert (run.outcome, run.call.error.code) == ("failed", code)


# Read back -----------------------------------------------------------------------------------------------------------


@pytest.mark.contract("I7", "I10")
async def test_a_conversation_comes_back_as_messages_and_calls_of_programs_are_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    bodies: list[str] = []
    async with ptc.Host(log=path) as host:
        agent = writer(host, bodies)
        await agent.execute([call("c1", "one"), call("c2", "two")])
    ids = {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "c1:ptc:1", "name": "write", "arguments": {}}
    await leave(
        path,
        ("tool/ptc-dispatch-start", ids),
        ("tool/ptc-dispatch", {**ids, "isError": False, "content": [ptc.text_block("not told")]}),
        ("approval/policy", {"policy": "never"}),
    )
    async with ptc.Host(log=path) as host:
        session = writer(host, bodies).session
        assert session is not None
        replayed = await session.replay()
    assert bodies == ["one", "two"], "nothing is done again"
    assert [(one.turn, one.step, one.call_id, one.name) for one in replayed] == [
        (1, 1, "c1", "write"),
        (1, 1, "c2", "write"),
    ]
    assert [json.loads(one.arguments) for one in replayed] == [{"text": "one"}, {"text": "two"}]
    assert [one.content for one in replayed] == [[ptc.text_block("wrote one")], [ptc.text_block("wrote two")]]


@pytest.mark.contract("I10", "I11")
async def test_neither_values_nor_schemas_nor_sets_of_tools_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    async with ptc.Host(log=path) as host:
        host.tools.register(
            needle_tool(),
            when=lambda _context: True,
        )
        agent = host.agent("clerk", session="s")
        async with agent.resolve() as tools:
            batch = await agent.execute(
                [ptc.ToolCall(name="secret", arguments={"note": "argument-needle"})], tool_set=tools
            )
        assert not batch.results[0].result.is_error
    events = stored(path)
    text = json.dumps([event.data for event in events])
    assert ("rendered-needle" in text, "argument-needle" in text) == (True, True)
    for needle in ("canonical-needle", "description-needle", "schema-needle"):
        assert needle not in text
    assert set(events[0].data) == {"turn", "step", "callId", "name", "arguments"}
    assert set(events[1].data) == {"turn", "step", "message"}


# Taken up ------------------------------------------------------------------------------------------------------------


@linux_only
@pytest.mark.contract("I13", "I14")
async def test_what_a_dead_process_left_open_is_answered_before_anything_else_happens(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await leave(
        path,
        started("c1"),
        (
            "tool/ptc-dispatch-start",
            {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "c1:ptc:1", "name": "write", "arguments": {}},
        ),
    )
    before = stored(path)
    bodies: list[str] = []
    async with ptc.Host(log=path) as host:
        await writer(host, bodies).execute([call("c2", "two")])
    after = stored(path)
    assert [event.type for event in after[2:]] == ["tool/result", "tool/call", "tool/result"]
    answer: Any = after[2].data
    assert (after[2].cites, after[2].time_us) == (0, before[-1].time_us)
    assert answer["error"] == {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}
    assert answer["message"]["id"] == "repaired-0"
    assert [one for one in after if one.type == "tool/ptc-dispatch"] == []
    assert bodies == ["two"]
    async with ptc.Host(log=path) as host:
        await writer(host, bodies).execute([call("c3", "three")])
    assert [event.type for event in stored(path)[5:]] == ["tool/call", "tool/result"]


class OnlyTheSeam:
    """A store that has what `EventStore` asks for and nothing beside it."""

    def __init__(self, store: SqliteEventStore) -> None:
        for name in ("open", "close", "open_session", "append", "sessions", "events", "members"):
            setattr(self, name, getattr(store, name))


@pytest.mark.contract("I15")
@pytest.mark.parametrize("bare", [False, True])
async def test_nobody_goes_on_with_a_session_of_which_not_all_is_known(tmp_path: Path, bare: bool) -> None:
    path = tmp_path / "log.db"
    await leave(path, started("c1"), ("x/own", {"ignorable": True}), ("tool/later", {"who": "knows"}))
    before = stored(path)
    async with SqliteEventStore(path) as store:
        seam: Any = OnlyTheSeam(store) if bare else store
        assert isinstance(seam, SearchingStore) is not bare
        session = Session(seam, agent="clerk", id="s")
        for attempt in (
            lambda: session.append("tool/call", started("c2")[1]),
            session.repair,
            session.replay,
            lambda: session.record_not_started(2, 1, [("c3", "write", "{}")]),
            lambda: session.append("tool/call", started("c2")[1]),
        ):
            with pytest.raises(UnknownEventError, match=r"event 2 of session s has the type 'tool/later'"):
                await attempt()
    assert stored(path) == before


@pytest.mark.contract("I15", "I13")
async def test_a_host_refuses_such_a_session_before_any_body_runs(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await leave(path, started("c1"), ("tool/later", {}))
    before = stored(path)
    bodies: list[str] = []
    async with ptc.Host(log=path) as host:
        agent = writer(host, bodies)
        for _ in range(2):
            with pytest.raises(UnknownEventError, match="a newer version wrote it"):
                await agent.execute([call("c2", "two")])
        with pytest.raises(UnknownEventError):
            await agent.recover([call("c1", "x")])
        other = writer(host, bodies, session="another")
        assert not (await other.execute([call("c1", "elsewhere")])).results[0].result.is_error
    assert bodies == ["elsewhere"]
    assert stored(path) == before


@pytest.mark.contract("I15")
async def test_events_of_a_host_s_own_are_passed_over_when_they_are_marked(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await leave(path, ("shop/closed", {"ignorable": True, "until": "monday"}))
    bodies: list[str] = []
    async with ptc.Host(log=path) as host:
        await writer(host, bodies).execute([call("c1", "one")])
    assert bodies == ["one"]
    with SqliteLogReader(path) as reader:
        (info,) = reader.sessions()
        reading = read_session(info, reader.events("s"))
    assert (len(reading.runs), reading.violations) == (1, [])
