"""`ptc audit query`: the right calls, in order, on one line each, without reading the log into memory."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import anyio
import pytest
from ptc.registry.lossless import to_json_text
from ptc.runtime.log import Session, SqliteEventStore
from ptc.runtime.log.pairs import Pairs
from ptc.runtime.log.query import CallFilter, UnknownRunError, find_calls

from .audit_logs import HOSTILE, SECRET, all_calls, assert_printable, real_log, run, write_random


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return real_log(tmp_path)


def text_of(call: Any) -> str:
    """The canonical text of a call's arguments, as the plain reading has it."""
    if call.parent_call_id is not None:
        return to_json_text(call.arguments)
    try:
        return to_json_text(json.loads(call.arguments))
    except ValueError:
        return call.arguments


Judge = Callable[[dict[str, Any]], bool]

QUERIES: list[tuple[dict[str, Any], Judge]] = [
    ({}, lambda one: True),
    ({"outcome": "ok"}, lambda one: one["call"].outcome == "ok"),
    ({"outcome": "failed"}, lambda one: one["call"].outcome == "failed"),
    ({"outcome": "denied"}, lambda one: one["call"].outcome == "denied"),
    ({"outcome": "cancelled"}, lambda one: one["call"].outcome == "cancelled"),
    ({"outcome": "outcome unknown"}, lambda one: one["call"].outcome == "outcome unknown"),
    ({"tool": "n?p"}, lambda one: one["call"].name == "nap"),
    ({"tool": "*e*"}, lambda one: "e" in one["call"].name),
    ({"tool": "[gp]et"}, lambda one: one["call"].name in ("get", "pet")),
    ({"tool": "del[[]x]"}, lambda one: one["call"].name == "del[x]"),
    ({"agent": "*1", "outcome": "ok"}, lambda one: one["session"].agent.endswith("1") and one["call"].outcome == "ok"),
    ({"agent": "support"}, lambda one: one["session"].agent == "support"),
    ({"code": "ABORTED"}, lambda one: one["call"].error is not None and one["call"].error.code == "ABORTED"),
    ({"decision": "deny"}, lambda one: one["call"].decision is not None and one["call"].decision.outcome == "deny"),
    (
        {"decided_by": "\u00e9", "outcome": "ok"},
        lambda one: one["call"].outcome == "ok" and "\u00e9" in ((one["call"].decision or A).by or ""),
    ),
    ({"decided_by": "nobody_deletes"}, lambda one: "nobody_deletes" in ((one["call"].decision or A).by or "")),
    ({"argument": "c\nd"}, lambda one: "c\\nd" in text_of(one["call"])),
    ({"argument": '{"q":"1'}, lambda one: '{"q":"1' in text_of(one["call"])),
    (
        {"argument": "\u00fc", "outcome": "failed"},
        lambda one: one["call"].outcome == "failed" and "\u00fc" in text_of(one["call"]),
    ),
    ({"argument": SECRET}, lambda one: SECRET in text_of(one["call"])),
]  # fmt: skip


class A:
    by = ""


def found(log: Path, **wanted: Any) -> list[tuple[str, str, int]]:
    answer = find_calls(log, CallFilter(**wanted), limit=10_000)
    assert (answer.more, answer.unreadable) == (False, {})
    return [(one.session, f"{one.session}/{one.run}", one.call.seq) for one in answer.calls]


def expected(log: Path, judge: Judge) -> list[tuple[str, str, int]]:
    return [(one["session"].id, one["run"], one["call"].seq) for one in all_calls(log) if judge(one)]


@pytest.mark.parametrize(("wanted", "judge"), QUERIES, ids=[str(wanted) for wanted, _judge in QUERIES])
def test_it_finds_what_a_plain_reading_finds(log: Path, wanted: dict[str, Any], judge: Judge) -> None:
    assert found(log, **wanted) == expected(log, judge)


@pytest.mark.parametrize("seed", range(8))
def test_it_finds_the_same_in_logs_of_any_shape(tmp_path: Path, seed: int) -> None:
    log = tmp_path / "ptc.db"
    anyio.run(write_random, log, seed)
    assert len(all_calls(log)) > 30
    for wanted, judge in QUERIES:
        assert sorted(found(log, **wanted)) == sorted(expected(log, judge)), wanted
    times = [one["call"].started_us for one in all_calls(log)]
    assert [one.call.started_us for one in find_calls(log, CallFilter(), limit=999).calls] == times
    assert [one.call.started_us for one in find_calls(log, CallFilter(outcome="failed"), limit=999).calls] == [
        one["call"].started_us for one in all_calls(log) if one["call"].outcome == "failed"
    ]
    middle = times[len(times) // 2]
    assert found(log, since_us=middle) == expected(log, lambda one: one["call"].started_us >= middle)
    assert found(log, until_us=middle, outcome="failed") == expected(
        log, lambda one: one["call"].started_us < middle and one["call"].outcome == "failed"
    )
    for name in {one["run"] for one in all_calls(log)}:
        session, number = name.split("/")
        assert found(log, session=session, run=int(number)) == expected(log, lambda one, name=name: one["run"] == name)


def test_the_log_has_every_ending(log: Path) -> None:
    assert {one["call"].outcome for one in all_calls(log)} == {"ok", "failed", "denied", "cancelled", "outcome unknown"}


def test_the_latest_come_first_and_the_limit_says_when_there_are_more(log: Path) -> None:
    everything = found(log)
    for limit in (1, 3, len(everything) - 1):
        answer = find_calls(log, CallFilter(), limit=limit)
        assert [(one.session, one.call.seq) for one in answer.calls] == [
            (session, seq) for session, _run, seq in everything[:limit]
        ]
        assert answer.more
    for wanted, count in ({"outcome": "denied"}, 5), ({"outcome": "outcome unknown"}, 2):
        answer = find_calls(log, CallFilter(**wanted), limit=1)
        assert (len(answer.calls), answer.more) == (1, True)
        assert len(found(log, **wanted)) == count
    done = run("query", "--log", str(log), "-n", "2")
    assert done.stdout.count("\n") == 3
    assert done.stdout.endswith("older calls that fit are not shown; --limit shows more\n")


def test_a_call_whose_end_was_put_in_by_a_repair_is_unknown_still(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"

    async def write() -> None:
        for number in range(2):
            async with SqliteEventStore(log) as store:
                call: dict[str, Any] = {"turn": 1, "step": 1, "name": "pay", "arguments": "{}", "callId": f"c{number}"}
                await Session(store, agent="a", id="s1").append("tool/call", call)

    anyio.run(write)
    calls = [one["call"] for one in all_calls(log)]
    assert [(one.outcome, one.settled_seq is None) for one in calls] == [
        ("outcome unknown", True), ("outcome unknown", False)
    ]  # fmt: skip
    assert len(found(log, outcome="outcome unknown")) == 2
    assert len(found(log, outcome="outcome unknown", code="TOOL_OUTCOME_UNKNOWN")) == 1
    assert len(found(log, code="TOOL_OUTCOME_UNKNOWN")) == 1


def test_a_run_that_is_not_there(log: Path) -> None:
    session = all_calls(log)[0]["session"].id
    with pytest.raises(UnknownRunError):
        find_calls(log, CallFilter(session=session, run=99))
    assert found(log, session="nobody") == []
    done = run("query", "--log", str(log), "--run", f"{session}/99")
    assert (done.exit_code, done.stderr) == (2, f"ptc: session {session} has no run 99\n")


def test_lines_tell_who_what_and_why_and_steer_nothing(log: Path) -> None:
    done = run("query", "--log", str(log))
    assert done.exit_code == 0, done.stderr
    assert_printable(done.stdout)
    lines = done.stdout.splitlines()
    assert len(lines) == len(all_calls(log))
    (refused,) = (line for line in lines if '{"order":2}' in line)
    assert refused.split("  ")[1] == "support"
    assert "  refund  denied  " in refused
    assert "paying_is_closed (asked: rejected), APPROVAL_REJECTED" in refused
    (deleted,) = (line for line in lines if '{"id":3}' in line)
    assert "  delete_order  denied  " in deleted
    assert "nobody_deletes" in deleted
    assert max(map(len, lines)) < 1_500
    assert any("\\x1b[2J" in line and "\\u202eevil" in line for line in lines)


def test_json_lines_have_the_same_keys_and_all_of_the_arguments(log: Path) -> None:
    done = run("query", "--log", str(log), "--json", "--tool", "echo")
    assert done.exit_code == 0
    assert done.stdout.isascii()
    assert_printable(done.stdout)
    calls = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(list(call) == list(calls[0]) for call in calls)
    assert list(calls[0]) == [
        "session", "agent", "run", "callId", "parentCallId", "tool", "arguments", "outcome", "error", "decision",
        "approvals", "jobs", "line", "started", "durationMs", "seq", "settledSeq",
    ]  # fmt: skip
    texts = [call["arguments"]["text"] for call in calls if isinstance(call["arguments"], dict)]
    assert sorted(texts) == sorted([HOSTILE, "x" * 20000, SECRET])


def test_options_reach_the_filter(log: Path) -> None:
    def tools(*options: str) -> list[str]:
        done = run("query", "--log", str(log), "--json", *options)
        assert done.exit_code == 0, done.stderr
        return [json.loads(line)["tool"] for line in done.stdout.splitlines()]

    session = next(one["session"].id for one in all_calls(log) if one["session"].agent == "support")
    assert tools("--outcome", "unknown") == ["launch", "run_code"]
    assert tools("--session", session, "--outcome", "cancelled") == ["nap"]
    assert tools("--run", f"{session}/2") == ["nap", "run_code"]
    assert tools("--since", "1h", "--tool", "refund", "--decision", "allow") == ["refund"]
    assert tools("--until", "2020-01-01") == []
    assert tools("--since", "2020-01-01T00:00+02:00", "--code", "APPROVAL_REJECTED") == ["refund"]
    assert tools("--decided-by", "paying", "--agent", "supp*", "--argument", '"amount":7') == ["pay"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--since", "yesterday"), "'yesterday' is no time"),
        (("--until", "12:00"), "'12:00' is no time"),
        (("--outcome", "good"), "it takes one of ok, failed"),
        (("--decision", "maybe"), "it takes one of allow"),
        (("--run", "abc"), "it takes SESSION/NUMBER"),
        (("--run", "abc/x"), "it takes SESSION/NUMBER"),
        (("--session", "nobody"), "has no session 'nobody'"),
        (("--limit", "0"), "greater than or equal"),
    ],
)
def test_wrong_usage_ends_with_2(log: Path, options: tuple[str, ...], says: str) -> None:
    done = run("query", "--log", str(log), *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in " ".join(done.stderr.split())


def test_a_damaged_record_is_told_and_hides_no_other(log: Path) -> None:
    calls = all_calls(log)
    (fail,) = (one for one in calls if one["call"].name == "fail")
    connection = sqlite3.connect(log)
    connection.execute("DROP TRIGGER events_no_update")
    connection.execute(
        "UPDATE events SET data = replace(data, '\"isError\"', '\"isErrer\"') WHERE data LIKE '%LookupError%'"
    )
    broken = "UPDATE events SET data = substr(data, 1, length(data) - 1) WHERE data LIKE '%such order%' AND type = ?"
    connection.execute(broken, ("tool/ptc-dispatch",))
    connection.commit()
    connection.close()
    done = run("query", "--log", str(log), "--json")
    assert done.exit_code == 1
    assert len(done.stdout.splitlines()) == len(calls) - 1
    assert "is not the JSON that was written; see `ptc audit verify`" in done.stderr
    assert fail["call"].seq not in [
        json.loads(line)["seq"] for line in done.stdout.splitlines() if fail["session"].id in line
    ]


def test_memory_is_that_of_the_answer(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"
    anyio.run(write_random, log, 1, 2)
    connection = sqlite3.connect(log)
    (key,) = connection.execute("SELECT max(key) FROM sessions").fetchone()
    ids = '{"rootCallId":"r","parentCallId":"r","subCallId":"%d","name":"get","arguments":{"q":"%s"}'
    rows = []
    for n in range(30_000):
        call = ids % (n, "x" * 100)
        rows.append(((key << 32) + 1000 + 2 * n, "tool/ptc-dispatch-start", n, n, b"", call + "}"))
        rows.append(
            ((key << 32) + 1001 + 2 * n, "tool/ptc-dispatch", n, n, b"", call + ',"isError":true,"content":[]}')
        )
    connection.executemany("INSERT INTO events (id, type, time_us, mono_us, hash, data) VALUES (?,?,?,?,?,?)", rows)
    connection.commit()
    steps: list[int] = []
    connection.set_progress_handler(lambda: steps.append(1), 100)
    assert Pairs(connection, "the log").start_of(rows[-1][0]) == rows[-2][0]
    assert len(steps) < 10  # hundreds of instructions: what is near is found without a look at what is far
    connection.close()
    del rows
    for wanted in ({}, {"outcome": "failed"}, {"outcome": "outcome unknown"}, {"argument": "xx"}):
        tracemalloc.start()
        find_calls(log, CallFilter(**wanted), limit=10)
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1_500_000, wanted


def test_patterns_are_those_of_file_names() -> None:
    assert fnmatchcase("del[x]", "del[[]x]")  # what the queries above rely on


@pytest.mark.parametrize("command", [("list",), ("show",), ("query",), ("verify",)])
def test_a_session_id_that_was_changed_in_the_file_steers_nothing(log: Path, command: tuple[str, ...]) -> None:
    """No log writes such an id; who works on the file can, and the auditor's terminal must not obey it."""
    with sqlite3.connect(log) as connection:
        connection.execute("DROP TRIGGER sessions_no_update")
        connection.execute("UPDATE sessions SET id = id || char(27) || '[2J' || char(10) || 'run s/1  ok'")
    connection.close()
    done = run(*command, "--log", str(log))
    assert "\\x1b[2J\\nrun s/1" in done.stdout
    assert_printable(done.stdout)
    assert not any(line.startswith("run s/1") for line in done.stdout.split("\n"))
