"""`verify_log`, `anchor_log` and their commands: whatever is done to a log is found, the first bad record is named."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from ptc.runtime.log import (
    Anchor,
    AnchorError,
    LogUnavailableError,
    Problem,
    Session,
    SqliteEventStore,
    SqliteLogReader,
    Verification,
    anchor_log,
    read_anchors,
    verify_log,
)
from ptc.runtime.log.database import schema_objects
from ptc.runtime.log.verify import verify_connection

from .log_tampering import SESSIONS, TAMPERINGS, Copy, Done, append_well, cut_off, image_of, recompute, write_real_log
from .test_cli_audit_list import ptc
from .test_log_processes import Writer

EVENT_17 = "event 17 of session programs "
FORGED = "was forged or rewritten: its hash is not that of its content, and the next event does not follow from it"
TRIES = 1_000
FLIPS = 300


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that a real host has written, which no test changes."""
    path = tmp_path_factory.mktemp("real") / "ptc.db"
    write_real_log(path)
    return path


@pytest.fixture
def log(real: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(real, tmp_path / "ptc.db"))


def tampered(path: Path, change: str, *parameters: Any) -> None:
    """Changes a log as somebody would who may write it, and leaves the triggers as they were."""
    with sqlite3.connect(path) as connection:
        for kind, name in schema_objects():
            if kind == "trigger":
                connection.execute(f"DROP TRIGGER {name}")
        connection.execute(change, parameters)
        for (kind, _name), sql in schema_objects().items():
            if kind == "trigger":
                assert sql
                connection.execute(sql)
    connection.close()


# Random tamperings ----------------------------------------------------------------------------------------------------


def names_the_first_bad_record(found: Verification, done: Done) -> bool:
    """Whether what was found says where the log stops being what was written, and calls it by its name."""
    if done.session is None:
        return any(problem.kind in done.kinds for problem in found.problems)
    of_session = [problem for problem in found.problems if problem.session == done.session]
    if not of_session or of_session[0].kind not in done.kinds:
        return False
    problem = of_session[0]
    assert f"session {done.session}" in problem.message
    if not done.first:
        return True
    if problem.seq is None or problem.last is None:
        return False
    bad = done.first[0]
    # A record with a hash that fits shows only in the next one, which says so.
    if problem.seq <= bad <= problem.last:
        return True
    if not done.alone:  # a chain that was computed anew, and is shorter now
        return "which may have been rewritten" in problem.message
    return problem.seq == bad + 1 and f"(or event {bad} was rewritten" in problem.message


@pytest.mark.contract("I1")
def test_a_thousand_tamperings_out_of_a_thousand_are_found(real: Path) -> None:
    image, anchors = image_of(real), anchor_log(real)
    missed: list[str] = []
    done_by: dict[str, int] = {}
    for number in range(TRIES):
        copy = Copy(image, random.Random(number))
        tampering = TAMPERINGS[number % len(TAMPERINGS)]
        done_by[tampering.__name__] = done_by.get(tampering.__name__, 0) + 1
        done = tampering(copy)
        copy.seal()
        alone = verify_connection(copy.connection)
        anchored = verify_connection(copy.connection, anchors=anchors, final=done.final)
        right = not alone.whole and names_the_first_bad_record(alone, done) if done.alone else alone.whole
        if not (right and not anchored.whole and names_the_first_bad_record(anchored, done)):
            told = [problem.message for problem in (*alone.problems, *anchored.problems)]
            missed.append(f"{number} {tampering.__name__}: {done}: {told}")
        copy.connection.close()
    assert missed == []
    assert min(done_by.values()) >= 20, done_by


def content(path: Path) -> list[Any]:
    with SqliteLogReader(path) as reader:
        return [(session, reader.events(session.id)) for session in reader.sessions()]


def interesting_bytes(raw: bytes, count: int, random_: random.Random) -> list[int]:
    """Places in a file: a third in its header and schema, a third where pages have their structure, and anywhere."""
    size = int.from_bytes(raw[16:18], "big")
    pages = range(0, len(raw), size)
    places = [random_.randrange(size) for _ in range(count // 3)]
    places += [random_.choice(pages) + random_.randrange(100) for _ in range(count // 3)]
    return [*places, *(random_.randrange(len(raw)) for _ in range(count - len(places)))]


def test_a_flipped_byte_of_the_file_is_found_or_belongs_to_nothing(real: Path, tmp_path: Path) -> None:
    raw, before = real.read_bytes(), content(real)
    path = tmp_path / "ptc.db"
    random_ = random.Random(6)
    found = 0
    for place in interesting_bytes(raw, FLIPS, random_):
        flip = random_.randrange(1, 256)
        path.write_bytes(raw[:place] + bytes([raw[place] ^ flip]) + raw[place + 1 :])
        try:
            verdict = verify_log(path)
        except LogUnavailableError:
            found += 1
            continue
        if verdict.whole:
            assert content(path) == before, f"byte {place} ^ {flip}"
        else:
            found += 1
            assert all(problem.message for problem in verdict.problems)
    assert found > FLIPS / 2


# What is said ---------------------------------------------------------------------------------------------------------


def only(found: Verification) -> str:
    assert len(found.problems) == 1, found.problems
    return found.problems[0].message


def test_a_whole_log_is_whole(real: Path) -> None:
    found = verify_log(real)
    assert found.whole
    with SqliteLogReader(real) as reader:
        assert found.events == sum(session.events for session in reader.sessions()) > 60
    assert found.sessions == len(SESSIONS)
    anchored = verify_log(real, anchors=anchor_log(real), final=True)
    assert (anchored.whole, anchored.anchors, anchored.anchored) == (True, len(SESSIONS), found.events)


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        (
            "UPDATE events SET data = replace(data, 'Run 1', 'Run 7') WHERE id = (1 << 32 | 17)",
            None,
            None,
        ),
        (
            "UPDATE events SET time_us = time_us + 1 WHERE id = (2 << 32 | 17)",
            "changed",
            EVENT_17 + "was changed: its hash is not that of its content (or event 16 was rewritten with a new hash)",
        ),
        (
            "UPDATE events SET hash = x'00' WHERE id = (2 << 32 | 17)",
            "changed",
            "event 17 of session programs was changed: its hash is not the one that was written; its content is",
        ),
        (
            "UPDATE events SET hash = x'00', data = '{}' WHERE id = (2 << 32 | 17)",
            "forged",
            EVENT_17 + FORGED,
        ),
        (
            "DELETE FROM events WHERE id BETWEEN (2 << 32 | 17) AND (2 << 32 | 19)",
            "missing",
            "events 17 to 19 of session programs are missing",
        ),
        ("DELETE FROM events WHERE id = (2 << 32)", "missing", "event 0 of session programs is missing"),
        (
            "UPDATE events SET id = id + 1000 WHERE id = (1 << 32 | 21)",
            "reordered",
            "event 21 of session native was moved: it is numbered 1021",
        ),
        (
            "UPDATE sessions SET agent = 'x' WHERE id = 'programs'",
            "header",
            "the header of session programs was changed: its hash is not that of its id, agent, time and labels",
        ),
        (
            "UPDATE sessions SET labels = replace(labels, ':', ': ') WHERE id = 'empty-handed'",
            "header",
            "the header of session empty-handed was changed: its hash is not that of its id, agent, time and labels",
        ),
        (
            "INSERT INTO events VALUES (77 << 32, 'x/y', 1, 1, NULL, x'00', '{}')",
            "foreign",
            "1 event belongs to no session, standing under session number 77, which is not there",
        ),
        ("DELETE FROM sessions WHERE id = 'empty-handed'", None, None),
    ],
)
def test_what_is_said(log: Path, change: str, kind: str | None, says: str | None) -> None:
    tampered(log, change)
    found = verify_log(log)
    if kind is None:
        assert found.whole
    else:
        assert only(found) == says
        assert found.problems[0].kind == kind


def test_a_session_that_goes_missing_leaves_a_gap_or_is_told_of_by_an_anchor(log: Path) -> None:
    anchors = anchor_log(log)
    tampered(log, "DELETE FROM sessions WHERE id = 'empty-handed'")
    assert verify_log(log).whole
    found = verify_log(log, anchors=anchors)
    assert only(found) == "session empty-handed is missing: an anchor tells of it"
    tampered(log, "DELETE FROM sessions WHERE id = 'native'")
    tampered(log, "DELETE FROM events WHERE id < (2 << 32)")
    assert only(verify_log(log)) == "session number 1 of the log is missing"
    messages = [problem.message for problem in verify_log(log, anchors=anchors).problems]
    assert "session native is missing: an anchor tells of its events 0 to 21" in messages


def test_events_that_were_all_changed_are_one_problem(log: Path) -> None:
    tampered(log, "UPDATE events SET time_us = 1 WHERE id >= (2 << 32 | 3) AND id < (3 << 32)")
    found = verify_log(log)
    with SqliteLogReader(log) as reader:
        last = len(reader.events("programs")) - 1
    assert (found.problems[0].session, found.problems[0].seq, found.problems[0].last) == ("programs", 3, last - 1)
    assert len(found.problems) == 1


def test_the_first_of_many_problems_of_a_session_comes_first_and_not_all_are_told(log: Path) -> None:
    tampered(log, "UPDATE events SET time_us = 1 WHERE id >= (2 << 32 | 4) AND id < (3 << 32) AND (id & 1) = 0")
    found = verify_log(log)
    assert (found.problems[0].session, found.problems[0].seq) == ("programs", 4)
    assert (len(found.problems), found.more) == (10, 10)


def test_one_session_alone(log: Path) -> None:
    tampered(log, "UPDATE events SET time_us = 1 WHERE id = (2 << 32 | 3)")
    assert verify_log(log, session="native").whole
    assert verify_log(log, session="native").events == 22
    assert not verify_log(log, session="programs").whole
    assert only(verify_log(log, session="none")) == "session none is missing: the log has no session of that id"
    anchor = Anchor("none", 3, "0" * 64)
    assert only(verify_log(log, session="none", anchors=[anchor])).endswith("an anchor tells of its events 0 to 3")
    assert verify_log(log, session="native", anchors=[anchor]).whole


# Anchors --------------------------------------------------------------------------------------------------------------


def with_copy(log: Path, change: Any) -> Done:
    """Does one of the tamperings to the file itself."""
    copy = Copy(image_of(log), random.Random(1))
    done = change(copy)
    copy.seal()
    raw = bytearray(copy.connection.serialize())
    raw[18:20] = b"\x02\x02"
    copy.connection.close()
    log.write_bytes(raw)
    return done


async def append(path: Path, session: str, count: int) -> None:
    async with SqliteEventStore(path) as store:
        (info,) = [info for info in await store.sessions() if info.id == session]
        again = Session(store, agent=info.agent, id=session)
        for n in range(count):
            await again.append("x/later", {"ignorable": True, "n": n})


def test_what_is_appended_after_an_anchor_is_fine_and_said(log: Path) -> None:
    first = anchor_log(log)
    anyio.run(append, log, "native", 3)
    anyio.run(append, log, "empty-handed", 2)
    second = anchor_log(log, session="native")
    assert [(anchor.session, anchor.seq) for anchor in second] == [("native", 24)]
    found = verify_log(log, anchors=[*second, *first])
    assert (found.whole, found.events - found.anchored) == (True, 2)
    text = ptc("audit", "verify", "--log", str(log), "--anchor", write_anchors(log, [*first, *second])).stdout
    assert "6 anchors given, vouching for 85 events; 2 later events hang on the chain alone" in " ".join(text.split())
    final = verify_log(log, anchors=[*first, *second], final=True)
    what = "events 0 to 1 of session empty-handed are forged"
    assert only(final) == f"{what}: after the last anchor, and nothing was to be written after it"


def write_anchors(log: Path, anchors: list[Anchor]) -> str:
    file = log.with_name("anchors")
    file.write_text("\n\n".join(anchor.line() for anchor in anchors) + "\n")
    return str(file)


def test_of_several_anchors_those_that_still_hold_tell_where_to_look(log: Path) -> None:
    early = [Anchor("programs", seq, digest.hex()) for seq, digest in hashes(log, "programs")]
    with_copy(log, recompute_at_20)
    assert verify_log(log).whole
    found = verify_log(log, anchors=[early[5], early[15], early[30], early[33]])
    assert only(found) == (
        "one of the events 16 to 30 of session programs was forged or rewritten, and the chain computed anew from it "
        "on: the hash of event 30 is not the anchored one"
    )
    assert (found.problems[0].seq, found.problems[0].last, found.anchored) == (16, 30, 16)
    found = verify_log(log, anchors=[early[19], early[20]])
    assert only(found).startswith("event 20 of session programs was forged or rewritten")


def recompute_at_20(copy: Copy) -> Done:
    events = copy.events("programs")
    previous = events[19].hash
    for event in [replace(events[20], data='{"ignorable":true}'), *events[21:]]:
        previous = event.hashed(previous)
        copy.put("programs", replace(event, hash=previous))
    return Done("event 20", "programs")


@pytest.mark.parametrize("change", [{"type": "x/y\n{}"}, {"type": "x y"}, {"type": ""}, {"data": "{\udcff}"}])
def test_what_no_log_writes_is_found_although_the_chain_was_computed_anew(log: Path, change: dict[str, str]) -> None:
    """A record whose bytes could be read as those of another one, or as no text at all."""

    def rewrite(copy: Copy) -> Done:
        event = copy.events("short")[1]
        raw = {name: value.encode(errors="surrogateescape") for name, value in change.items()}
        kind, data = raw.get("type", event.type.encode()), raw.get("data", event.data.encode())
        line = f"1 {event.time_us} {event.mono_us} {event.cites} ".encode() + kind + b"\n" + data
        digest = hashlib.sha256(copy.events("short")[0].hash + line).digest()
        update = "UPDATE events SET type = CAST(? AS TEXT), data = CAST(? AS TEXT), hash = ? WHERE id = ?"
        copy.do(update, kind, data, digest, copy.id("short", 1))
        return Done("event 1", "short")

    with_copy(log, rewrite)
    assert only(verify_log(log)) == (
        "event 1 of session short was changed: it holds a value of a kind that no log writes"
    )


def hashes(log: Path, session: str) -> list[tuple[int, bytes]]:
    with SqliteLogReader(log) as reader:
        return [(event.seq, event.hash) for event in reader.events(session)]


def test_an_anchor_is_one_short_line_of_ascii_whatever_the_log_holds(real: Path) -> None:
    for anchor in anchor_log(real):
        line = anchor.line()
        assert re.fullmatch(r"[ -~]{1,300}", line)
        assert read_anchors([line]) == [anchor]
    assert re.fullmatch(r"[ -~]+", Anchor("é\u202e\n\x7f", 1, "0" * 64).line())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no anchor in it"),
        ("\n \n", "there is no anchor in it"),
        ("[]", "line 1: this is no anchor"),
        ("{", "line 1: this is no anchor"),
        ("[" * 100_000, "line 1: this is no anchor"),
        ('{"format": "ptc.audit.anchor/2", "session": "s", "seq": 1, "hash": "' + "0" * 64 + '"}', "line 1"),
        ('{"format": "ptc.audit.anchor/1", "session": "s", "seq": -2, "hash": "' + "0" * 64 + '"}', "line 1"),
        ('{"format": "ptc.audit.anchor/1", "session": "s", "seq": true, "hash": "' + "0" * 64 + '"}', "line 1"),
        ('{"format": "ptc.audit.anchor/1", "session": "s", "seq": 1, "hash": "' + "0" * 63 + '"}', "line 1"),
        ('{"format": "ptc.audit.anchor/1", "session": 1, "seq": 1, "hash": "' + "0" * 64 + '"}', "line 1"),
        (Anchor("s", 1, "0" * 64).line() + "\nnonsense", "line 2: this is no anchor"),
    ],
)
def test_what_is_no_anchor_is_refused(log: Path, text: str, says: str) -> None:
    file = log.with_name("anchors")
    file.write_text(text)
    with pytest.raises(AnchorError, match=re.escape(says)), file.open() as lines:
        read_anchors(lines, name=str(file))
    done = ptc("audit", "verify", "--log", str(log), "--anchor", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{file}" in done.stderr
    assert says in done.stderr


# The commands ---------------------------------------------------------------------------------------------------------


def test_the_command_says_that_a_log_is_whole_and_what_that_does_not_cover(log: Path) -> None:
    done = ptc("audit", "verify", "--log", str(log))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{log} is whole: 5 sessions, {verify_log(log).events} events\n")
    assert "No anchor was given. The log alone cannot tell whether events were cut off" in " ".join(done.stdout.split())


def test_what_the_anchor_command_prints_is_what_verify_takes(log: Path) -> None:
    printed = ptc("audit", "anchor", "--log", str(log))
    assert (printed.returncode, printed.stderr) == (0, "")
    assert [json.loads(line)["session"] for line in printed.stdout.splitlines()] == list(SESSIONS)
    one = ptc("audit", "anchor", "--log", str(log), "--session", "prog")
    assert one.stdout in printed.stdout
    assert one.stdout.count("\n") == 1
    command = [sys.executable, "-m", "ptc.runtime.cli", "audit", "verify", "--log", str(log), "--anchor", "-"]
    whole = subprocess.run(command, input=printed.stdout * 2, capture_output=True, text=True, check=False)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert "10 anchors given" in whole.stdout
    with_copy(log, cut_off)
    assert ptc("audit", "verify", "--log", str(log)).returncode == 0
    cut = subprocess.run(command, input=printed.stdout, capture_output=True, text=True, check=False)
    assert (cut.returncode, cut.stderr) == (1, "")
    assert "missing: an anchor tells of" in cut.stdout


def test_json(log: Path) -> None:
    anchors = write_anchors(log, anchor_log(log))
    with_copy(log, recompute)
    done = ptc("audit", "verify", "--log", str(log), "--anchor", anchors, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    told = json.loads(done.stdout)
    (problem,) = told.pop("problems")
    assert told == {
        "format": "ptc.audit.verify/1",
        "log": str(log),
        "session": None,
        "whole": False,
        "sessions": 5,
        "events": told["events"],
        "anchors": 5,
        "anchored": told["anchored"],
        "more": 0,
        "notes": [],
    }
    assert set(problem) == {"kind", "session", "seq", "last", "message"}
    alone = json.loads(ptc("audit", "verify", "--log", str(log), "--json", "--session", "native").stdout)
    assert (alone["whole"], alone["session"], alone["sessions"]) == (True, "native", 1)
    assert "No anchor was given" in alone["notes"][0]


def test_final_anchors(log: Path) -> None:
    anchors = write_anchors(log, anchor_log(log))
    with_copy(log, append_well)
    assert ptc("audit", "verify", "--log", str(log), "--anchor", anchors).returncode == 0
    done = ptc("audit", "verify", "--log", str(log), "--anchor", anchors, "--final")
    assert done.returncode == 1
    assert "after the last anchor, and nothing was to be written after it" in " ".join(done.stdout.split())
    assert ptc("audit", "verify", "--log", str(log), "--final").returncode == 2


@pytest.mark.parametrize(
    "arguments", [("--anchor", "no/such/file"), ("--session", "none"), ("--nonsense",), ("--log", "no/such.db")]
)
def test_wrong_usage_ends_with_2(log: Path, arguments: tuple[str, ...]) -> None:
    done = ptc("audit", "verify", "--log", str(log), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_a_session_that_only_an_anchor_tells_of_may_be_named(log: Path) -> None:
    anchors = write_anchors(log, [Anchor("gone-1", 4, "0" * 64)])
    done = ptc("audit", "verify", "--log", str(log), "--session", "gone", "--anchor", anchors)
    assert done.returncode == 1
    assert "session gone-1 is missing: an anchor tells of its events 0 to 4" in done.stdout


def test_what_a_log_holds_does_not_steer_the_screen(log: Path) -> None:
    tampered(
        log, "UPDATE sessions SET id = 'x' || char(27) || '[2J' || char(8238) || char(10) || 'whole' WHERE key = 1"
    )
    done = ptc("audit", "verify", "--log", str(log))
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "session x\\x1b[2J\\u202e\\nwhole was changed" in " ".join(done.stdout.split())


# The file -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("DROP TRIGGER events_no_delete", "the trigger events_no_delete of the log was dropped"),
        ("DROP VIEW records", "the view records of the log was dropped"),
        ("DROP TABLE sessions", "the table sessions of the log was dropped, so the records were not checked"),
        ("PRAGMA user_version = 0", "the file's setting user_version is 0, and that of a log is 1"),
        (
            "CREATE TRIGGER mine AFTER INSERT ON events BEGIN SELECT 1; END",
            "the trigger mine is none of the log's, and it could change records",
        ),
        (
            "ALTER TABLE events ADD COLUMN more",
            "the table events of the log was changed, so the records were not checked",
        ),
    ],
)
def test_a_file_that_is_not_made_as_a_log_is_not_whole(log: Path, change: str, says: str) -> None:
    with sqlite3.connect(log) as connection:
        connection.execute(change)
    connection.close()
    found = verify_log(log)
    assert says in [problem.message for problem in found.problems if problem.kind == "schema"]


def test_a_foreign_table_is_said_and_is_no_fault(log: Path) -> None:
    with sqlite3.connect(log) as connection:
        connection.execute("CREATE TABLE mine (x)")
        connection.execute("CREATE INDEX by_type ON events (type)")
    connection.close()
    found = verify_log(log)
    assert found.whole
    assert found.notes == [
        "the index by_type is none of the log's; it does not touch the records",
        "the table mine is none of the log's; it does not touch the records",
    ]
    assert "note: the table mine" in ptc("audit", "verify", "--log", str(log)).stdout


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_found(log: Path, keep: float) -> None:
    raw = log.read_bytes()
    log.write_bytes(raw[: int(len(raw) * keep)])
    done = ptc("audit", "verify", "--log", str(log))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "damaged" in done.stdout + done.stderr


def test_torn_pages_are_a_clear_failure(log: Path) -> None:
    raw = bytearray(log.read_bytes())
    raw[8192:] = b"\xff" * (len(raw) - 8192)
    log.write_bytes(raw)
    done = ptc("audit", "verify", "--log", str(log))
    assert done.returncode == 1
    assert "the file is damaged; keep it, and restore a copy of it" in " ".join(done.stdout.split())


def test_records_lost_with_the_write_ahead_log_are_told_of_by_an_anchor(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Writer(path, "s1", 50, "die") as writer:
        writer.ready()
        writer.go()
        writer.end()
    anchors = anchor_log(path)
    assert [(anchor.session, anchor.seq) for anchor in anchors] == [("s1", 50)]
    assert verify_log(path, anchors=anchors, final=True).whole
    wal = path.with_name("log.db-wal")
    raw = bytearray(wal.read_bytes())
    raw[-20_000] ^= 1  # SQLite takes what follows a broken frame for the rest of an earlier use of the file
    wal.write_bytes(raw)
    found = verify_log(path)
    assert only(found).startswith("log.db-wal was changed or not written to its end: frame ")
    assert "records at the end of the log are lost" in only(found)
    found = verify_log(path, anchors=anchors)
    assert [problem.kind for problem in found.problems] == ["missing", "damaged"]
    assert "to 50 of session s1 are missing: an anchor tells of them" in found.problems[0].message


def test_a_changed_byte_of_the_write_ahead_log_is_found(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Writer(path, "s1", 30, "die") as writer:
        writer.ready()
        writer.go()
        writer.end()
    wal = path.with_name("log.db-wal")
    whole = wal.read_bytes()
    frame = 24 + struct.unpack(">I", whole[8:12])[0]
    assert verify_log(path).whole
    assert verify_log(path).notes == []
    choose = random.Random(7)
    places = [*range(32), *(choose.randrange(32, len(whole) - frame) for _ in range(150))]
    for place in places:
        raw = bytearray(whole)
        raw[place] ^= 1 << choose.randrange(8)
        wal.write_bytes(raw)
        found = verify_log(path)
        assert not found.whole, place
        assert found.problems[-1].kind == "damaged", place
    # Of the last frame nobody can tell whether its process was killed just then.
    raw = bytearray(whole)
    raw[-1] ^= 1
    wal.write_bytes(raw)
    found = verify_log(path)
    assert found.whole
    assert found.notes[0].startswith("the last frame of log.db-wal does not check")
    wal.write_bytes(whole[: -frame // 2])  # and one that was not written to its end is nobody's fault
    assert verify_log(path).whole
    assert verify_log(path).notes == []


def test_what_an_earlier_use_left_in_the_write_ahead_log_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Writer(path, "s1", 200, "die") as writer:
        writer.ready()
        writer.go()
        writer.end()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()  # the next frames go over the first ones
    connection.execute("CREATE TABLE more (x)")
    left = path.with_name("log.db-wal").read_bytes()
    here = path.read_bytes()
    connection.close()
    path.with_name("log.db-wal").write_bytes(left)
    path.write_bytes(here)
    found = verify_log(path)
    assert len(left) > 100_000
    assert (found.problems, found.events) == ([], 201)
    assert all("wal" not in note for note in found.notes)


def test_verifying_changes_nothing_and_leaves_nothing(log: Path) -> None:
    before = log.read_bytes(), log.stat().st_mtime_ns
    assert verify_log(log, anchors=anchor_log(log)).whole
    assert (log.read_bytes(), log.stat().st_mtime_ns) == before
    assert [file.name for file in log.parent.iterdir()] == ["ptc.db"]


@pytest.mark.anyio
async def test_verifying_while_a_host_writes_sees_one_instant(log: Path) -> None:
    verified: list[Verification] = []

    async def write() -> None:
        async with SqliteEventStore(log) as store:
            session = Session(store, agent="a", id="busy")
            while len(verified) < 8:
                for _ in range(20):
                    await session.append("x/y", {"ignorable": True, "text": "x" * 3_000})
                await anyio.lowlevel.checkpoint()

    async def verify() -> None:
        for _ in range(8):
            anchors = await anyio.to_thread.run_sync(anchor_log, log)
            verified.append(await anyio.to_thread.run_sync(lambda given=anchors: verify_log(log, anchors=given)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        tasks.start_soon(verify)
    assert all(found.whole for found in verified), [found.problems for found in verified]
    assert verified[-1].events > verified[0].events


def test_a_writer_that_comes_while_a_resting_log_is_read_does_not_make_it_look_broken(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptc.runtime.log import verify

    looks = 0

    def look_and_write(connection: sqlite3.Connection) -> tuple[list[Problem], list[str], bool]:
        nonlocal looks
        looks += 1
        if looks == 1:  # between the schema and the records, another host opens, writes and closes the log
            anyio.run(append, log, "native", 200)
        return real_look(connection)

    real_look = verify.look_at_schema
    monkeypatch.setattr(verify, "look_at_schema", look_and_write)
    found = verify_log(log)
    assert found.whole, found.problems
    assert looks == 2
    with SqliteLogReader(log) as reader:
        assert found.events == sum(session.events for session in reader.sessions())
