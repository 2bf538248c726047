"""What `ptc audit` costs on a large log: to list it, to show one run, to filter it, to verify it.

    python -m tests.bench.audit_log [--events N] [--sessions N]... [--keep DIRECTORY]

Each log has runs of eight sub-calls, every sixteenth one with a record of 100 kB, every tenth run denied something.
It is written in bulk, in the same bytes as the store writes, which `ptc audit verify` then proves. Every command is a
process of its own, so its start is in the figure; memory is that of the process at its largest.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ptc.registry.lossless import to_json_text
from ptc.runtime.log.chain import canonical_event, genesis_hash, next_hash
from ptc.runtime.log.database import SEQ_BITS, connect_writer

SUB_CALLS = 8
PER_RUN = 2 * SUB_CALLS + 2
START_US = 1_764_411_330_000_000
WORDS = ("order", "invoice", "customer", "refund", "ticket", "total", "Zürich", "東京", "open", "1.50")

Payload = tuple[str, dict[str, Any], int | None]
"""An event's type and data, and how many events before it the one is that it cites."""


def run_payloads(random_: random.Random, session: str, number: int) -> Iterator[Payload]:
    """Gives the events of one run, as a host records them."""

    def words(count: int) -> str:
        return " ".join(random_.choices(WORDS, k=count))

    call_id = f"call-{number}"
    code = "\n".join(f"rows{n} = await tools.search(query={words(4)!r}, limit={n})" for n in range(SUB_CALLS))
    arguments = to_json_text({"code": code, "description": f"Looks up {words(3)}"})
    yield "tool/call", {"turn": number, "step": 1, "callId": call_id, "name": "run_code", "arguments": arguments}, None
    for n in range(SUB_CALLS):
        ids = {"rootCallId": call_id, "parentCallId": call_id, "subCallId": f"{call_id}:ptc:{n + 1}"}
        asked = {**ids, "name": "search", "arguments": {"query": words(4), "limit": n}}
        denied = number % 10 == 0 and n == SUB_CALLS - 1
        yield "tool/ptc-dispatch-start", {**asked, "line": n + 1}, None
        size = 14_000 if n == 3 and number % 16 == 0 else random_.randrange(5, 120)
        text = "denied: nobody deletes" if denied else words(size)
        settled = {**asked, "isError": denied, "content": [{"type": "text", "text": text}]}
        settled["decision"] = {"outcome": "deny" if denied else "allow", "by": "guard no_deletes"}
        if denied:
            settled["error"] = {"name": "PermissionError", "code": "PERMISSION_DENIED"}
        yield "tool/ptc-dispatch", settled, None
    message = {"callId": call_id, "isError": False, "content": [{"type": "text", "text": words(60)}]}
    yield "tool/result", {"turn": number, "step": 1, "message": message}, 2 * SUB_CALLS + 1


def write_log(path: Path, events: int, sessions: int) -> None:
    """Writes a log of about `events` events, spread over `sessions` sessions that were open at the same time.

    Args:
        path: where; there must be no file.
        events: how many events it is to have; there are no half runs.
        sessions: how many sessions.
    """
    connection = connect_writer(path, "process", wait_ms=1_000)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("BEGIN")
    names = [f"20251129T101530-{number:010x}" for number in range(sessions)]
    heads: dict[str, tuple[int, int, bytes]] = {}
    for name in names:
        genesis = genesis_hash(name, "support", START_US, {"sandbox": "wasm"})
        insert = "INSERT INTO sessions (id, agent, opened_us, labels, hash) VALUES (?, 'support', ?, ?, ?)"
        key = connection.execute(insert, (name, START_US, '{"sandbox":"wasm"}', genesis)).lastrowid
        assert key is not None
        heads[name] = key, 0, genesis
    insert = "INSERT INTO events (id, type, time_us, mono_us, cites, hash, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
    connection.executemany(insert, _rows(names, heads, events // PER_RUN // sessions))
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def _rows(names: list[str], heads: dict[str, tuple[int, int, bytes]], runs: int) -> Iterator[tuple[Any, ...]]:
    for order, name in enumerate(names):
        random_ = random.Random(order)
        key, seq, digest = heads[name]
        for number in range(1, runs + 1):
            for kind, data, cites_back in run_payloads(random_, name, number):
                now = START_US + 1_000 * (seq * len(names) + order)
                text = to_json_text(data)
                cites = None if cites_back is None else seq - cites_back
                digest = next_hash(digest, canonical_event(seq, now, now, cites, kind, text))
                yield key << SEQ_BITS | seq, kind, now, now, cites, digest, text
                seq += 1


def measure(log: Path, *arguments: str, codes: tuple[int, ...] = (0,)) -> tuple[float, int, str] | None:
    """Runs `ptc audit` on a log.

    Returns:
        seconds, MiB of memory at its largest, and what it printed; `None` when there is no such command.
    """
    command = [sys.executable, "-m", "ptc.runtime.cli", "audit", arguments[0], "--log", str(log), *arguments[1:]]
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=printed, stderr=said)
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
        printed.seek(0)
        said.seek(0)
        problem = said.read()
        if process.returncode == 2 and "No such command" in problem:
            return None
        if process.returncode not in codes:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}: {problem}")
        return seconds, usage.ru_maxrss // 1024, printed.read()


def commands(sessions: int, runs: int) -> list[tuple[str, tuple[str, ...]]]:
    middle = f"20251129T101530-{sessions // 2:010x}/{runs // 2}"
    return [
        ("list", ("list",)),
        ("show of the latest run", ("show",)),
        ("show of one run in the middle", ("show", middle)),
        ("query: denied calls, 20 of them", ("query", "--outcome", "denied", "-n", "20")),
        ("anchor", ("anchor",)),
        ("verify", ("verify",)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, action="append", help="of one log; 1 and 1,000 when omitted")
    parser.add_argument("--keep", type=Path, help="where the logs are written, and used again when they are there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for sessions in options.sessions or [1, 1_000]:
            log = (options.keep or Path(folder)) / f"log-{options.events}-{sessions}.db"
            if not log.exists():
                started = time.perf_counter()
                write_log(log, options.events, sessions)
                print(f"written in {time.perf_counter() - started:.1f} s")
            runs = options.events // PER_RUN // sessions
            size = f"{log.stat().st_size / 1e6:,.0f} MB"
            print(f"{runs * sessions * PER_RUN:,} events, {sessions:,} sessions, {runs * sessions:,} runs, {size}")
            for title, arguments in commands(sessions, runs):
                done = measure(log, *arguments)
                figure = "there is no such command" if done is None else f"{done[0]:7.2f} s {done[1]:6,} MiB"
                print(f"  {title:34} {figure}")
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    main()
