"""What the typed preflight costs: the time from a program to its report, and that of its two parts.

    python -m tests.bench.preflight [--rounds N]

Prints a table with the median and the 90th percentile, in milliseconds, for a small catalogue and for one of 200
tools. A right program takes one run of the checker; a wrong one is parsed as well. `stub` is the making of the stub of
the tools that a program names, which is done once for the same tools. Needs the extra `preflight`.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import ptc
from ptc.runtime.preflight import _Stub

TESTS = Path(__file__).resolve().parent.parent


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def nothing(_arguments: Any, _run: Any) -> Any:
    return None


def large() -> list[ptc.ToolDefinition]:
    """200 generated tools, beside those of the small catalogue, so that the same programs can be checked."""
    return [
        ptc.define_raw_tool(
            name=tool.name,
            description=tool.description,
            parameters=tool.parameters,
            output=tool.output if isinstance(tool.output, dict) else {},
            execute=nothing,
        )
        for tool in load(TESTS / "sdk_gen" / "catalogues.py").generated(200)
    ]


def row(label: str, times: list[float]) -> None:
    p90 = statistics.quantiles(times, n=10)[-1] if len(times) > 1 else times[0]
    print(f"{label:<44} {statistics.median(times):>8.1f} {p90:>8.1f}")


async def measure(rounds: int) -> None:
    programs = load(TESTS / "runtime" / "preflight_programs.py")
    small = programs.TOOLS
    many = large()
    every = "\n".join(f"await tools.{tool.name}({{}})" for tool in many)
    catalogues = {f"{len(small)} tools": small, f"{len(small) + len(many)} tools": [*small, *many]}
    print(f"{'milliseconds':<44} {'median':>8} {'p90':>8}")
    for name, tools in catalogues.items():
        preflight = ptc.Preflight(timeout_ms=60_000)
        for label, texts in (("right", programs.RIGHT), ("wrong", [wrong[0] for wrong in programs.WRONG])):
            times = []
            for number in range(rounds):
                report = await preflight.check(texts[number % len(texts)], tools)
                assert report.outcome != "unchecked", report
                times.append(report.elapsed_ms)
            row(f"{name}, a {label} program", times)
    preflight = ptc.Preflight(timeout_ms=60_000)
    reports = [await preflight.check(every, many) for _ in range(max(2, rounds // 10))]
    row(f"{len(many)} tools, a program that calls each of them", [report.elapsed_ms for report in reports])
    for count in (1, 5, 200):
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            _Stub(many[:count])
            times.append((time.perf_counter() - began) * 1000)
        row(f"stub of {count} tool{'s' if count > 1 else ''}", times)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=100)
    anyio.run(measure, parser.parse_args().rounds)


if __name__ == "__main__":
    main()
