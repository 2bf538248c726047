"""The benchmark of a job on an MCP server works, and what it says of the model's context holds; with a small server."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CONTEXT = [
    "tools that it is told of",
    "calls that it writes",
    "results that it reads",
    "in the context",
    "requests",
    "sent, over the whole job",
]
TIMES = [
    "native, one call after another",
    "run_code, one call after another",
    "native, reads at once",
    "run_code, reads at once",
]


def tables(printed: str) -> list[list[list[str]]]:
    """Returns the rows of each markdown table, without heads."""
    found = [[line for line in part.splitlines() if line.startswith("|")] for part in printed.split("\n\n")]
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]] for lines in found if lines]


def figure(cell: str) -> int:
    """Returns the number of a cell, without the percentage behind it."""
    return int(cell.partition(" ")[0].replace(",", ""))


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.bench.mcp_context", "--rounds", "1", "--markdown", *options],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_every_row_has_figures_and_the_sums_are_right() -> None:
    pytest.importorskip("mcp")
    done = run("--server", shlex.join([sys.executable, "tests/bench/folder_server.py", "."]))
    assert done.returncode == 0, done.stderr
    context, times = tables(done.stdout)
    assert [row[0] for row in context] == CONTEXT
    assert [row[0] for row in times] == TIMES
    assert all(re.fullmatch(r"[\d,]+\.\d", cell) for row in times for cell in row[1:])
    columns = [[figure(row[place]) for row in context] for place in (1, 2, 3)]
    for told, written, read, in_context, _requests, sent in columns:
        assert in_context == told + written + read
        assert sent > in_context
    slow, fast, program = columns
    assert [column[4] for column in columns] == [21, 3, 2]
    assert slow[:4] == fast[:4]
    assert program[5] == 2 * program[0] + program[1] + program[2]
    modules = sorted((ROOT / "registry").glob("*.py"))[:19]
    assert slow[2] > sum(path.stat().st_size for path in modules)  # all of them go through the model
    assert program[2] < 1000  # only the answer does


def test_a_server_that_cannot_be_started_is_one_message() -> None:
    pytest.importorskip("mcp")
    done = run("--server", "there-is-no-such-server .")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "'there-is-no-such-server' is not there; name another server with --server\n"
