"""Runs programs in the restricted language from tests, in a child process that a hostile program may wreck."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("restricted_child.py")
CORPUS = ROOT / "tests" / "corpus"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program came to."""

    kind: str  # "value", "nothing", "error", "died"
    value: Any
    output: str
    calls: list[list[Any]]
    cpu_s: float | None

    @property
    def text(self) -> str:
        """All that could hold a marker."""
        return json.dumps([self.value, self.output, self.calls], ensure_ascii=False)


def run_jobs(jobs: Iterable[dict[str, Any]], *, timeout_s: float = 110) -> list[Answer]:
    """Runs jobs in order, as `restricted_child.py` describes them."""
    lines = "".join(json.dumps({"id": index, **job}) + "\n" for index, job in enumerate(jobs))
    done = subprocess.run(
        [sys.executable, "-I", str(CHILD), str(ROOT)],
        input=lines.encode("utf-8", "surrogatepass"),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return [_answer(json.loads(line)) for line in done.stdout.splitlines()]


def run_program(program: str, **job: Any) -> Answer:
    """Runs one program."""
    (answer,) = run_jobs([{"program": program, **job}])
    return answer


def _answer(told: dict[str, Any]) -> Answer:
    if told["completion"] is None:
        return Answer("died", told["died"], told["output"], told["calls"], told["cpu_s"])
    kind, *rest = json.loads(told["completion"])
    value = rest[-1] if rest else None
    return Answer(kind, value, told["output"], told["calls"], told["cpu_s"])
