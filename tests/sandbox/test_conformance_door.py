"""The published tests: what is behind the door, who may come in, and that the tests can fail."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ptc.sandbox import conformance

FOLDER = Path(conformance.__file__).parent


def test_every_test_is_behind_the_door_under_a_name_of_its_own() -> None:
    written = [
        node
        for path in FOLDER.glob("*_tests.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    published = [name for name in conformance.__all__ if name.startswith("test_")]
    assert sorted(node.name for node in written) == sorted(published)
    marked = {node.name for node in written if "pytest.mark.anyio" in map(ast.unparse, node.decorator_list)}
    assert marked == {node.name for node in written if isinstance(node, ast.AsyncFunctionDef)}


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("import sys\nsys.modules['pytest'] = None", "need pytest, which is not installed"),
        ("import pytest", "run inside pytest, with the plugin that comes with anyio"),
    ],
)
def test_without_pytest_or_its_plugin_the_extra_is_named(first: str, told: str) -> None:
    code = f"{first}\nimport ptc.sandbox.conformance"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert told in done.stderr
    assert 'pip install "ptc-runtime[conformance]"' in done.stderr


BROKEN = """
import dataclasses
import pytest
from ptc.sandbox.conformance import *
from ptc.sandbox.restricted import RestrictedSandbox

class Broken(RestrictedSandbox):
    async def run(self, request):
        result = await super().run(request)
        return dataclasses.replace(result, value_json="0" if result.value_json == "2" else result.value_json)

@pytest.fixture(scope="module")
def make_sandbox():
    return Broken
"""


def run_suite(folder: Path, *options: str, **environment: str) -> tuple[int, str]:
    (folder / "test_mine.py").write_text(BROKEN, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "test_mine.py", *options],
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    return done.returncode, done.stdout


def test_a_backend_that_is_wrong_fails_and_sees_the_values(tmp_path: Path) -> None:
    code, told = run_suite(tmp_path, "-k", "what_is_returned")
    assert code == pytest.ExitCode.TESTS_FAILED
    # One set of parameters on each event loop, with the assertion rewritten.
    assert "2 failed, 18 passed" in told
    assert "At index 1 diff: '0' != '2'" in told


def test_without_the_plugin_of_anyio_nothing_is_passed_by_in_silence(tmp_path: Path) -> None:
    code, told = run_suite(tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert code == pytest.ExitCode.INTERRUPTED
    assert "add `-p anyio`" in told
