"""The benchmark of sandboxes side by side works: every row is there, and what is not installed is left out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROWS = [
    "trivial run, one stands ready, ms",
    "trivial run, none stands ready, ms",
    "50 calls one after another, ms",
    "50 calls of 10 ms at once, ms",
    "fib(24), ms",
    "JSON round trip of 1 MB, ms",
    "sort of 100,000 ints, ms",
    "trivial runs in a second, 1 at once",
    "trivial runs in a second, 2 at once",
    "trivial runs in a second, 8 at once",
    "memory of a live run, MiB",
    "killing a hot loop, ms",
]
FIGURE = re.compile(r"-?[\d,]+(\.\d+)?( \([\d.,]+(-[\d.,]+|x)\))?|unreadable")
WITHOUT_THE_OTHERS = """
import runpy, sys
sys.modules["pydantic_monty"] = sys.modules["smolagents"] = None
sys.argv[1:] = ["--quick", "--markdown", "--subjects", "wasm", "restricted", "monty", "smolagents"]
runpy.run_module("tests.bench.peers", run_name="__main__", alter_sys=True)
"""


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted backend needs Linux")
def test_every_row_has_a_figure_and_what_is_missing_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_OTHERS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    missing = [line for line in done.stdout.splitlines() if line.startswith("left out")]
    assert missing == [
        "left out: pydantic-monty; pydantic-monty is not installed: pip install 'ptc-runtime[bench]'",
        "left out: smolagents; smolagents is not installed: pip install 'ptc-runtime[bench]'",
    ]
    header, _ruler, *lines = [cells(line) for line in done.stdout.splitlines() if line.startswith("|")]
    assert header == ["", "ptc wasm", "goal", "ptc restricted", "goal"]
    assert [line[0] for line in lines] == ROWS
    for _label, wasm, _goal, restricted, _other_goal in lines:
        assert FIGURE.fullmatch(wasm), wasm
        assert FIGURE.fullmatch(restricted), restricted


def test_the_table_of_the_readme_has_the_rows_of_the_benchmark() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("<!-- peers -->\n\n")[2].partition("\n\n")[0]
    assert [cells(line)[0] for line in table.splitlines()[2:]] == ROWS
