"""A sandbox is after many runs, ordinary ones and killed ones, what it was: `tests/bench/endurance.py`, shorter."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

RUNS = 200
GROWTH = 24 << 20
"""Bytes by which this process may grow: a few instances and their buffers, far less than a leak of 200 runs."""


@pytest.fixture(scope="module")
def endurance() -> ModuleType:
    path = Path(__file__).parent.parent / "bench" / "endurance.py"
    spec = importlib.util.spec_from_file_location("endurance", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["endurance"] = module  # its dataclasses look it up
    spec.loader.exec_module(module)
    return module


@pytest.mark.anyio
@pytest.mark.contract("F6", "F23")
@pytest.mark.parametrize("backend", ["wasm", "restricted"])
async def test_two_hundred_runs_leave_nothing_and_see_nothing_of_each_other(
    anyio_backend: str, endurance: ModuleType, backend: str
) -> None:
    endured = await endurance.endure(backend, RUNS)
    assert endured.crossed == []
    assert endured.wrong == []
    assert endured.slow < RUNS // 4
    assert endured.late.descriptors <= endured.early.descriptors + 4  # an instance or a worker more that stands ready
    assert endured.late.memory - endured.early.memory < GROWTH
