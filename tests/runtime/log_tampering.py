"""A real log, and what people might do to a copy of it: each tampering says what a verification has to find.

A tampering works through SQL, as somebody would who may write the file: it drops the triggers, changes what it wants,
and makes the triggers again. `RECOMPUTES` are by somebody who knows how the hash chain works and computes it anew; the
log alone cannot show those, and an anchor has to.
"""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import ptc
from ptc.runtime.log.database import schema_objects

LARGE = 40_000
SESSIONS = ("native", "programs", "short", "last", "empty-handed")
PROGRAM = """
import asyncio
print("starts", RUN)
rows = await asyncio.gather(*[tools.echo(value={"n": n, "text": "é" * n}) for n in range(4)])
for n in range(2):
    try:
        await (tools.large(secret=True) if n else tools.boom(message=f"no {RUN}"))
    except ToolCallError as error:
        print(n, error)
if RUN == 1:
    await tools.large(secret=False)
if RUN == 2:
    raise ValueError("the program fails")
return rows
"""


async def record(path: Path) -> None:
    """Writes a log with a real host: agents with and without programs, denials, failures, large records."""

    async def echo(arguments: Any, _run: ptc.ToolRunContext) -> Any:
        return arguments["value"]

    async def boom(arguments: Any, _run: ptc.ToolRunContext) -> Any:
        raise ValueError(arguments["message"])

    async def large(_arguments: Any, _run: ptc.ToolRunContext) -> Any:
        return "y" * LARGE

    async with ptc.RestrictedSandbox() as sandbox, ptc.Host(log=path) as host:
        for execute, parameters in (
            (echo, {"value": {"type": "json"}}),
            (boom, {"message": {"type": "string"}}),
            (large, {"secret": {"type": "boolean"}}),
        ):
            name = execute.__name__
            definition = ptc.define_tool(
                name=name, description=name, parameters=parameters, output={"type": "json"}, execute=execute
            )
            host.tools.register(definition)

        @host.on("tools/pre-execute")
        async def no_secrets(call: Any, next: Any) -> Any:
            return ptc.Deny("secrets stay here") if call.arguments.get("secret") is True else await next()

        agents = [host.agent("plain", session="native")]
        agents += [
            host.agent(f"agent of {name}", session=name, executor=ptc.PtcExecutor(sandbox=sandbox))
            for name in ("programs", "short", "last")
        ]
        calls = [ptc.ToolCall(name="echo", arguments={"value": n}) for n in range(8)]
        calls += [
            ptc.ToolCall(name="large", arguments={"secret": True}),
            ptc.ToolCall(name="boom", arguments={"message": "m"}),
        ]
        await agents[0].execute([*calls, ptc.ToolCall(name="none of this name")])
        for run in range(3):
            await agents[1].run_code(PROGRAM.replace("RUN", str(run)), description=f"Run {run}, ünlike others")
        await agents[2].run_code("return 1")
        await agents[3].run_code(PROGRAM.replace("RUN", "0"))
        # A host that died right after it had opened a session leaves one without events.
        store: Any = host._store
        await store.open_session("empty-handed", agent="died", labels={"sandbox": "wasm", "a": "é"})


@dataclass(frozen=True, slots=True)
class Event:
    """A row of `events`."""

    seq: int
    type: Any
    time_us: Any
    mono_us: Any
    cites: Any
    hash: Any
    data: Any

    def hashed(self, previous: bytes, seq: int | None = None) -> bytes:
        """The hash after `previous`, computed as the documentation says and not by the code under test."""
        cites = "-" if self.cites is None else self.cites
        place = self.seq if seq is None else seq
        line = f"{place} {self.time_us} {self.mono_us} {cites} {self.type}\n{self.data}"
        return hashlib.sha256(previous + line.encode()).digest()


@dataclass(slots=True)
class Done:
    """What was done to a log, and what has to be found.

    Attributes:
        what: the tampering, for the message of a test that fails.
        session: the id of a session that is no longer what it was; `None` when the log as a whole is meant.
        first: the events of which one is the first that is not what was written; empty when none can be named.
        kinds: what the finding may be called.
        alone: whether the log alone shows it, without an anchor.
        final: whether an anchor shows it only to somebody who knows that nothing was to be written after it.
    """

    what: str
    session: str | None
    first: range = range(0)
    kinds: set[str] = field(default_factory=set)
    alone: bool = True
    final: bool = False


class Copy:
    """A copy of a log in memory, for somebody who may write it."""

    def __init__(self, image: bytes, seed: random.Random) -> None:
        self.random = seed
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(image)
        for kind, name in schema_objects():
            if kind == "trigger":
                self.connection.execute(f"DROP TRIGGER {name}")
        rows = self.connection.execute("SELECT id, key FROM sessions").fetchall()
        self.keys: dict[str, int] = dict(rows)

    def seal(self) -> None:
        """Makes the triggers again, so that nothing but the records tells."""
        for (kind, _name), sql in schema_objects().items():
            if kind == "trigger":
                assert sql is not None
                self.connection.execute(sql)

    def do(self, sql: str, *parameters: Any) -> None:
        self.connection.execute(sql, parameters)

    def events(self, session: str) -> list[Event]:
        first = self.keys[session] << 32
        rows = self.connection.execute(
            "SELECT id - ?1, type, time_us, mono_us, cites, hash, data FROM events "
            "WHERE id >= ?1 AND id < ?1 + (1 << 32) ORDER BY id",
            (first,),
        )
        return [Event(*row) for row in rows]

    def genesis(self, session: str) -> bytes:
        return self.connection.execute("SELECT hash FROM sessions WHERE id = ?", (session,)).fetchone()[0]

    def id(self, session: str, seq: int) -> int:
        return self.keys[session] << 32 | seq

    def put(self, session: str, event: Event) -> None:
        self.do(
            "INSERT OR REPLACE INTO events (id, type, time_us, mono_us, cites, hash, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            self.id(session, event.seq),
            event.type,
            event.time_us,
            event.mono_us,
            event.cites,
            event.hash,
            event.data,
        )

    def renumber(self, session: str, first: int, by: int) -> None:
        """Gives the events from `first` on other numbers."""
        away = 1 << 31
        low, high = self.id(session, first), self.id(session, away)
        self.do("UPDATE events SET id = id + ? WHERE id >= ? AND id < ?", away + by, low, high)
        self.do("UPDATE events SET id = id - ? WHERE id >= ? AND id < ?", away, high, high + away)

    def any_session(self) -> str:
        """One that has events."""
        return self.random.choice([name for name in self.keys if name != "empty-handed"])

    def any_seq(self, session: str, *, margin: int = 0) -> int:
        return self.random.randrange(len(self.events(session)) - margin)


def flipped(raw: bytes, random_: random.Random) -> bytes:
    """Flips one bit."""
    at = random_.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << random_.randrange(8)]) + raw[at + 1 :]


def forged(copy: Copy, session: str, seq: int, previous: bytes | None) -> Event:
    """An event that nobody wrote: with a hash that fits after `previous`, or with any hash."""
    data = json.dumps({"ignorable": True, "n": copy.random.random()})
    event = Event(seq, "x/forged", 1_764_411_330_000_000, 1, None, copy.random.randbytes(32), data)
    return event if previous is None else Event(*_values(event, hash=event.hashed(previous)))


def _values(event: Event, **changes: Any) -> list[Any]:
    return [changes.get(name, getattr(event, name)) for name in Event.__dataclass_fields__]


# Changes of one record ------------------------------------------------------------------------------------------------


def flip_in_event(copy: Copy) -> Done:
    session = copy.any_session()
    seq = copy.any_seq(session)
    column = copy.random.choice(["type", "time_us", "mono_us", "cites", "hash", "data"])
    (value,) = copy.connection.execute(f"SELECT {column} FROM events WHERE id = ?", (copy.id(session, seq),)).fetchone()
    if isinstance(value, str):
        new, cast = flipped(value.encode(), copy.random), "CAST(? AS TEXT)"
    elif isinstance(value, bytes):
        new, cast = flipped(value, copy.random), "?"
    else:
        new, cast = 0 if value is None else value ^ 1 << copy.random.randrange(40), "?"
    copy.do(f"UPDATE events SET {column} = {cast} WHERE id = ?", new, copy.id(session, seq))
    return Done(f"a bit of {column} of event {seq}", session, range(seq, seq + 1), {"changed"})


def flip_in_number(copy: Copy) -> Done:
    session = copy.any_session()
    seq = copy.any_seq(session, margin=1)
    old = copy.id(session, seq)
    while True:
        new = old ^ 1 << copy.random.randrange(48)
        if not copy.connection.execute("SELECT 1 FROM events WHERE id = ?", (new,)).fetchone():
            break
    copy.do("UPDATE events SET id = ? WHERE id = ?", new, old)
    return Done(f"a bit of the number of event {seq}", session, range(seq, seq + 1), {"missing", "reordered"})


def flip_in_header(copy: Copy) -> Done:
    session = copy.random.choice(list(copy.keys))
    column = copy.random.choice(["id", "agent", "opened_us", "labels", "hash", "key"])
    (value,) = copy.connection.execute(f"SELECT {column} FROM sessions WHERE id = ?", (session,)).fetchone()
    if isinstance(value, int):
        new, cast = value ^ 1 << copy.random.randrange(3 if column == "key" else 40), "?"
        if column == "key" and copy.connection.execute("SELECT 1 FROM sessions WHERE key = ?", (new,)).fetchone():
            new += 8
    else:
        raw = value.encode() if isinstance(value, str) else value
        new, cast = flipped(raw, copy.random), "CAST(? AS TEXT)" if isinstance(value, str) else "?"
    copy.do(f"UPDATE sessions SET {column} = {cast} WHERE id = ?", new, session)
    if column == "key":
        return Done(f"a bit of the key of {session}", None, kinds={"missing"})
    return Done(f"a bit of {column} of {session}", None if column == "id" else session, kinds={"header"})


def store_otherwise(copy: Copy) -> Done:
    session = copy.any_session()
    seq = copy.any_seq(session)
    column = copy.random.choice(["type", "data", "hash", "time_us", "cites"])
    as_blob, as_text = "CAST({} AS BLOB)", "CAST({} AS TEXT)"
    new = {"type": as_blob, "data": as_blob, "hash": as_text, "time_us": "CAST(CAST({} AS TEXT) AS BLOB)"}
    cast = new.get(column, "coalesce({}, 0) + 0.5").format(column)
    copy.do(f"UPDATE events SET {column} = {cast} WHERE id = ?", copy.id(session, seq))
    return Done(f"{column} of event {seq} as another kind of value", session, range(seq, seq + 1), {"changed"})


def move_border(copy: Copy) -> Done:
    """The beginning of the data goes over to the type."""
    session = copy.any_session()
    seq = copy.any_seq(session)
    event = copy.events(session)[seq]
    at = copy.random.randrange(1, 20)
    changed = f"{event.type}\n{event.data[:at]}", event.data[at:]
    copy.do("UPDATE events SET type = ?, data = ? WHERE id = ?", *changed, copy.id(session, seq))
    return Done(f"the border of event {seq}", session, range(seq, seq + 1), {"changed"})


def rewrite_one(copy: Copy) -> Done:
    """The forger computes the hash of the changed event, and not of those after it."""
    session = copy.any_session()
    seq = copy.any_seq(session, margin=1)
    events = copy.events(session)
    previous = events[seq - 1].hash if seq else copy.genesis(session)
    event = Event(*_values(events[seq], data='{"ignorable":true}'))
    copy.put(session, Event(*_values(event, hash=event.hashed(previous))))
    return Done(f"event {seq} with a hash of its own", session, range(seq, seq + 1), {"changed", "forged"})


# Changes of the order -------------------------------------------------------------------------------------------------


def delete(copy: Copy) -> Done:
    session = copy.any_session()
    count = copy.random.choice([1, 1, 2, 5])
    seq = copy.any_seq(session, margin=1)
    last = min(seq + count, len(copy.events(session)) - 1)
    copy.do("DELETE FROM events WHERE id >= ? AND id < ?", copy.id(session, seq), copy.id(session, last))
    return Done(f"events {seq} to {last - 1} are deleted", session, range(seq, seq + 1), {"missing"})


def delete_and_renumber(copy: Copy) -> Done:
    session = copy.any_session()
    seq = copy.any_seq(session, margin=1)
    copy.do("DELETE FROM events WHERE id = ?", copy.id(session, seq))
    copy.renumber(session, seq + 1, -1)
    last = seq == len(copy.events(session)) - 1  # then nothing follows that would tell
    return Done(
        f"event {seq} deleted, the rest renumbered",
        session,
        range(seq, seq + 1),
        {"changed"} if last else {"missing"},
    )


def renumber(copy: Copy) -> Done:
    session = copy.any_session()
    seq = copy.any_seq(session)
    by = copy.random.choice([1, 2, 100])
    copy.renumber(session, seq, by)
    return Done(f"renumbered from {seq} on by {by}", session, range(seq, seq + 1), {"reordered"})


def swap(copy: Copy) -> Done:
    session = copy.random.choice(["native", "programs", "last"])
    one, two = sorted(copy.random.sample(range(len(copy.events(session))), 2))
    if copy.random.random() < 0.3:
        two = one + 1
    if two >= len(copy.events(session)):
        one, two = 0, 1
    events = copy.events(session)
    hashes = copy.random.random() < 0.5  # whether the hashes move along
    for here, there in ((one, two), (two, one)):
        keep = {} if hashes else {"hash": events[here].hash}
        copy.put(session, Event(*_values(events[there], seq=here, **keep)))
    return Done(f"events {one} and {two} swapped, hashes {hashes}", session, range(one, one + 1), {"reordered"})


def swap_between_sessions(copy: Copy) -> Done:
    one, two = copy.random.sample(["native", "programs", "last"], 2)
    here, there = copy.any_seq(one), copy.any_seq(two)
    first, second = copy.events(one)[here], copy.events(two)[there]
    copy.put(one, Event(*_values(second, seq=here)))
    copy.put(two, Event(*_values(first, seq=there)))
    return Done(f"{one} {here} and {two} {there} swapped", one, range(here, here + 1), {"reordered"})


# Forged records -------------------------------------------------------------------------------------------------------


def put_in(copy: Copy) -> Done:
    session = copy.any_session()
    seq = copy.any_seq(session)
    events = copy.events(session)
    previous = events[seq - 1].hash if seq else copy.genesis(session)
    fits = copy.random.random() < 0.5
    copy.renumber(session, seq, 1)
    copy.put(session, forged(copy, session, seq, previous if fits else None))
    return Done(f"put in before {seq}, fitting hash: {fits}", session, range(seq, seq + 1), {"forged"})


def append_badly(copy: Copy) -> Done:
    session = copy.any_session()
    seq = len(copy.events(session))
    copy.put(session, forged(copy, session, seq, None))
    return Done("appended with any hash", session, range(seq, seq + 1), {"changed", "forged"})


def append_under_no_session(copy: Copy) -> Done:
    copy.keys["nobody"] = copy.random.choice([0, -1, 77, 2**30])
    copy.put("nobody", forged(copy, "nobody", copy.random.choice([0, 5]), None))
    return Done("an event of no session", None, kinds={"foreign"})


# Sessions -------------------------------------------------------------------------------------------------------------


def replace_header(copy: Copy) -> Done:
    session = copy.any_session()
    row = copy.connection.execute("SELECT agent, opened_us, labels FROM sessions WHERE id = ?", (session,)).fetchone()
    agent, opened_us, labels = row
    what = copy.random.choice(["agent", "opened_us", "labels"])
    if what == "agent":
        agent = "somebody else"
    elif what == "opened_us":
        opened_us += 1
    else:
        labels = '{"sandbox":"none"}'
    computed = copy.random.random() < 0.5
    digest = copy.genesis(session)
    if computed:
        digest = header_hash(session, agent, opened_us, labels)
    copy.do(
        "UPDATE sessions SET agent = ?, opened_us = ?, labels = ?, hash = ? WHERE id = ?",
        agent,
        opened_us,
        labels,
        digest,
        session,
    )
    if computed:  # then the first event does not follow from it
        return Done(f"{what} of the header, with its hash", session, range(1), {"changed", "forged"})
    return Done(f"{what} of the header", session, kinds={"header"})


def header_hash(session: str, agent: str, opened_us: int, labels: str) -> bytes:
    header = f"[{json.dumps(session)},{json.dumps(agent)},{opened_us},{labels}]"
    return hashlib.sha256(b"ptc-session 1\n" + header.encode()).digest()


def exchange_names(copy: Copy) -> Done:
    one, two = copy.random.sample(SESSIONS, 2)
    copy.do("UPDATE sessions SET id = 'x' WHERE id = ?", one)
    copy.do("UPDATE sessions SET id = ? WHERE id = ?", one, two)
    copy.do("UPDATE sessions SET id = ? WHERE id = 'x'", two)
    return Done(f"{one} and {two} have exchanged their names", one, kinds={"header"})


def delete_session(copy: Copy) -> Done:
    session = copy.random.choice([name for name in SESSIONS if copy.keys[name] < len(SESSIONS)])
    copy.do("DELETE FROM sessions WHERE id = ?", session)
    copy.do("DELETE FROM events WHERE id >> 32 = ?", copy.keys[session])
    return Done(f"{session} is deleted", None, kinds={"missing"})


def delete_header(copy: Copy) -> Done:
    session = copy.any_session()
    copy.do("DELETE FROM sessions WHERE id = ?", session)
    return Done(f"the header of {session} is deleted", None, kinds={"foreign"})


# By somebody who computes the chain anew ------------------------------------------------------------------------------


def _chain(copy: Copy, session: str, events: list[Event], genesis: bytes) -> None:
    previous = genesis
    for seq, event in enumerate(events):
        moved = Event(*_values(event, seq=seq))
        previous = moved.hashed(previous)
        copy.put(session, Event(*_values(moved, hash=previous)))


def recompute(copy: Copy) -> Done:
    session = copy.any_session()
    events = copy.events(session)
    seq = copy.any_seq(session)
    how = copy.random.choice(["changed", "deleted", "put in", "swapped"])
    if how == "changed" or len(events) < 3:
        events[seq] = Event(*_values(events[seq], data='{"ignorable":true}'))
    elif how == "deleted":
        seq = min(seq, len(events) - 2)
        del events[seq]
        copy.do("DELETE FROM events WHERE id = ?", copy.id(session, len(events)))
    elif how == "put in":
        events.insert(seq, forged(copy, session, seq, None))
    else:
        seq = min(seq, len(events) - 2)
        events[seq : seq + 2] = events[seq + 1], events[seq]
    _chain(copy, session, events, copy.genesis(session))
    return Done(
        f"event {seq} {how}, and all hashes anew", session, range(seq, seq + 1), {"forged", "missing"}, alone=False
    )


def recompute_header(copy: Copy) -> Done:
    session = copy.random.choice(list(copy.keys))
    (opened_us,) = copy.connection.execute("SELECT opened_us FROM sessions WHERE id = ?", (session,)).fetchone()
    genesis = header_hash(session, "somebody else", opened_us, "{}")
    copy.do("UPDATE sessions SET agent = 'somebody else', labels = '{}', hash = ? WHERE id = ?", genesis, session)
    _chain(copy, session, copy.events(session), genesis)
    return Done(f"header of {session}, and all hashes anew", session, kinds={"header", "forged"}, alone=False)


def cut_off(copy: Copy) -> Done:
    session = copy.any_session()
    seq = copy.any_seq(session)
    copy.do("DELETE FROM events WHERE id >= ? AND id < ?", copy.id(session, seq), copy.id(session, 1 << 31))
    return Done(f"events from {seq} on are cut off", session, range(seq, seq + 1), {"missing"}, alone=False)


def cut_and_append(copy: Copy) -> Done:
    session = copy.any_session()
    events = copy.events(session)[:-1]
    seq = len(events)
    previous = events[-1].hash if events else copy.genesis(session)
    copy.put(session, forged(copy, session, seq, previous))
    return Done(f"event {seq}, the last, replaced", session, range(seq, seq + 1), {"forged"}, alone=False)


def delete_last_session(copy: Copy) -> Done:
    session = max(copy.keys, key=lambda name: copy.keys[name])
    copy.do("DELETE FROM sessions WHERE id = ?", session)
    copy.do("DELETE FROM events WHERE id >> 32 = ?", copy.keys[session])
    return Done(f"the last session, {session}, is deleted", session, kinds={"missing"}, alone=False)


def append_well(copy: Copy) -> Done:
    session = copy.any_session()
    events = copy.events(session)
    seq = len(events)
    copy.put(session, forged(copy, session, seq, events[-1].hash))
    return Done("appended with the right hash", session, range(seq, seq + 1), {"forged"}, alone=False, final=True)


def add_session(copy: Copy) -> Done:
    digest = header_hash("forged", "a", 1, "{}")
    copy.do("INSERT INTO sessions (id, agent, opened_us, labels, hash) VALUES ('forged', 'a', 1, '{}', ?)", digest)
    return Done("a session with the right hash", "forged", kinds={"forged"}, alone=False, final=True)


TAMPERINGS: tuple[Callable[[Copy], Done], ...] = (
    *[flip_in_event] * 6,
    flip_in_number,
    flip_in_header,
    store_otherwise,
    move_border,
    rewrite_one,
    *[delete] * 2,
    delete_and_renumber,
    renumber,
    *[swap] * 2,
    swap_between_sessions,
    put_in,
    append_badly,
    append_under_no_session,
    replace_header,
    exchange_names,
    delete_session,
    delete_header,
    *[recompute] * 4,
    recompute_header,
    cut_off,
    cut_and_append,
    delete_last_session,
    append_well,
    add_session,
)


def image_of(path: Path) -> bytes:
    """A log as bytes that SQLite opens in memory, where there is no write-ahead log."""
    raw = bytearray(path.read_bytes())
    raw[18:20] = b"\x01\x01"
    return bytes(raw)


def write_real_log(path: Path) -> None:
    anyio.run(record, path)
