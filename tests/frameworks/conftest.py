"""The examples for frameworks, imported as their own scripts import them."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType

import ptc
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The frameworks run on asyncio alone."""
    return request.param


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], ModuleType]:
    """Imports a module of an example, with the folder on the path as when one of its scripts runs."""

    def load(folder: str, name: str) -> ModuleType:
        monkeypatch.syspath_prepend(str(EXAMPLES / folder))
        return importlib.import_module(name)

    return load


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., str]:
    """Runs a script of an example in an empty folder, with every warning an error, and returns what it printed."""

    def run(script: str, answers: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLES / script)],
            cwd=tmp_path,
            input=answers,
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONUTF8": "1"},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
async def host(anyio_backend: str, tmp_path: Path) -> AsyncIterator[ptc.Host]:
    async with ptc.Host(log=tmp_path / "ptc.db") as opened:
        yield opened


@pytest.fixture
def executor() -> ptc.PtcExecutor:
    return ptc.PtcExecutor(sandbox=ptc.WasmSandbox())
