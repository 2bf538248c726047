"""The fixture `tsc`: the TypeScript compiler, installed once into the user's cache where Node.js is there.

A test that asks for it is skipped, and says why, where there is no Node.js or the package cannot be had.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from filelock import FileLock
from platformdirs import user_cache_path

VERSION = "6.0.3"
"""The compiler that the text is held against: the last one that is JavaScript alone, the same on every machine."""

OPTIONS = {
    "strict": True,
    "noEmit": True,
    "target": "es2022",
    "lib": ["es2022"],
    "types": [],
    "module": "esnext",
    "moduleDetection": "force",  # every file on its own
}
_NPM_OPTIONS = (
    *("--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefer-offline"),
    *("--fetch-retries", "1", "--fetch-retry-mintimeout", "1000"),  # without a network the answer is soon known
)
_TIMEOUT_S = 55

Check = Callable[[Mapping[str, str]], list[str]]
"""Checks files, given by name, each a module of its own; returns the errors, each as `NAME:LINE TSxxxx MESSAGE`."""


def _install(directory: Path, npm: str) -> str | None:
    """Installs the compiler under another name and renames it; returns what went wrong."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{directory}.lock"):
        if directory.exists():
            return None
        with tempfile.TemporaryDirectory(dir=directory.parent) as fresh:
            try:
                done = subprocess.run(
                    [npm, "install", "--prefix", fresh, *_NPM_OPTIONS, f"typescript@{VERSION}"],
                    capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return f"npm did not answer within {_TIMEOUT_S} s"
            if done.returncode:
                return next(iter(done.stderr.strip().splitlines()), f"npm ended with {done.returncode}")
            shutil.move(Path(fresh) / "node_modules", directory)
    return None


@pytest.fixture(scope="session")
def tsc(tmp_path_factory: pytest.TempPathFactory) -> Check:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node.js with npm is not installed, so no TypeScript compiler runs")
    directory = user_cache_path("ptc-runtime-tests", appauthor=False) / f"typescript-{VERSION}"
    problem = None if directory.exists() else _install(directory, npm)
    if problem is not None:
        pytest.skip(f"npm could not install typescript {VERSION}: {problem}")
    program = directory / "typescript" / "lib" / "tsc.js"

    def check(files: Mapping[str, str]) -> list[str]:
        folder = tmp_path_factory.mktemp("typescript")
        for name, source in files.items():
            (folder / f"{name}.ts").write_text(source, encoding="utf-8")
        (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS}))
        done = subprocess.run(
            [node, os.fspath(program), "--project", ".", "--pretty", "false"],
            cwd=folder, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S,
        )  # fmt: skip
        found = re.findall(r"^(\S+)\.ts\((\d+),\d+\): error (TS\d+): (.*)$", done.stdout, re.MULTILINE)
        assert bool(found) == bool(done.returncode), done.stdout + done.stderr
        return [f"{name}:{line} {code} {message}" for name, line, code, message in found]

    return check
