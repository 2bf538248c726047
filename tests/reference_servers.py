"""The fixture `reference_servers`: MCP servers that others wrote, installed once into the user's cache.

From npm come `everything`, `filesystem` and `memory`, from PyPI `time` and `git`, those in an environment of their own,
since they need an older SDK. A test that asks for one is skipped, and says why, where it cannot be had.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pytest
from filelock import FileLock
from platformdirs import user_cache_path

NPM = {
    "everything": "@modelcontextprotocol/server-everything@2026.8.31",
    "filesystem": "@modelcontextprotocol/server-filesystem@2026.8.31",
    "memory": "@modelcontextprotocol/server-memory@2026.8.31",
}
PYPI = {"time": "mcp-server-time==2026.10.19", "git": "mcp-server-git==2026.10.19"}
_NPM_OPTIONS = (
    *("--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"),
    *("--fetch-retries", "1", "--fetch-retry-mintimeout", "1000"),  # without a network the answer is soon known
)
_PIP_OPTIONS = ("--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "10")
_TIMEOUT_S = 100


class ReferenceServers:
    """Says how to start each of the servers."""

    def command(self, name: str, *arguments: str) -> list[str]:
        """Returns the program and its arguments; skips the test when the server cannot be had."""
        if name in PYPI:
            return [os.fspath(_environment() / f"mcp-server-{name}"), *arguments]
        program = _modules() / NPM[name].rpartition("@")[0] / "dist" / "index.js"
        return [shutil.which("node") or "node", os.fspath(program), *arguments]


@pytest.fixture(scope="session")
def reference_servers() -> ReferenceServers:
    return ReferenceServers()


def _cache(name: str) -> Path:
    return user_cache_path("ptc-runtime-tests", appauthor=False) / name


def _run(command: list[str], tool: str) -> str | None:
    """Runs an installer; returns what went wrong."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return f"{tool} did not answer within {_TIMEOUT_S} s"
    if done.returncode:
        return next(iter(done.stderr.strip().splitlines()), f"{tool} ended with {done.returncode}")
    return None


def _modules() -> Path:
    """The folder of the packages of npm."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("Node.js with npm is not installed, so no reference server of npm runs")
    directory = _cache("mcp-servers-npm-1")
    modules = directory / "node_modules"  # by this name the packages find one another
    directory.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{directory}.lock"):
        if not modules.exists():
            with tempfile.TemporaryDirectory(dir=directory) as fresh:
                problem = _run([npm, "install", "--prefix", fresh, *_NPM_OPTIONS, *NPM.values()], "npm")
                if problem is not None:
                    pytest.skip(f"npm could not install the reference servers: {problem}")
                shutil.move(Path(fresh) / "node_modules", modules)
    return modules


def _environment() -> Path:
    """The folder of the commands of the packages of PyPI."""
    directory = _cache(f"mcp-servers-pypi-1-{sys.version_info.major}.{sys.version_info.minor}")
    commands = directory / ("Scripts" if sys.platform == "win32" else "bin")
    done = directory / "complete"
    directory.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{directory}.lock"):
        if not done.exists():  # an environment cannot be moved, so that a file says when it is whole
            venv.create(directory, with_pip=True, clear=True)
            problem = _run(
                [os.fspath(commands / "python"), "-m", "pip", "install", *_PIP_OPTIONS, *PYPI.values()], "pip"
            )
            if problem is not None:
                pytest.skip(f"pip could not install the reference servers: {problem}")
            done.touch()
    return commands
