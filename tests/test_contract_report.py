"""The report on the contract, on a small contract and tests of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

CONTRACT = """
## A. Apples
- **A1** one
- **A2** two
- **A3** three
- **A4** four
- **A5** five
## B. Pears
- **B1** one
- **B2** two
"""

TESTS = """
import pytest

@pytest.mark.contract("A1", "A2")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_passes(n): ...

@pytest.mark.contract("A2")
@pytest.mark.parametrize("n", [1, 2])
def test_fails_once(n):
    assert n != 2

@pytest.mark.contract("A3")
@pytest.mark.skip
def test_is_skipped(): ...

@pytest.mark.contract("B1")
@pytest.mark.xfail
def test_is_expected_to_fail():
    assert False

class TestGroup:
    @pytest.mark.contract("A1")
    def test_passes(self): ...
"""


def run(folder: Path, tests: str, *options: str) -> tuple[int, str]:
    """Runs pytest over a small tree that has the plugin, and returns its exit code and what it wrote."""
    (folder / "tests" / "contract").mkdir(parents=True)
    for name in ("conftest.py", "contract_report.py", "reference_servers.py", "typescript_compiler.py"):
        shutil.copy(HERE / name, folder / "tests" / name)
    (folder / "tests" / "contract" / "CONTRACT.md").write_text(CONTRACT)
    (folder / "tests" / "test_small.py").write_text(tests)
    (folder / "pytest.ini").write_text(
        "[pytest]\naddopts = --import-mode=importlib --confcutdir=tests -p no:cacheprovider --strict-markers\n"
        "testpaths = tests\nmarkers = contract(*items): the items\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    return done.returncode, done.stdout + done.stderr


def rows(text: str) -> dict[str, list[int]]:
    found = re.findall(r"^(A\. Apples|B\. Pears|all) +([0-9 ]+)$", text, re.MULTILINE)
    return {title: [int(number) for number in numbers.split()] for title, numbers in found}


def test_what_ran_is_held_or_not(tmp_path: Path) -> None:
    code, text = run(tmp_path, TESTS, "--contract-report", "tests")
    assert code == 1
    # items, held, failing, not run, no test
    assert rows(text) == {"A. Apples": [5, 1, 1, 1, 2], "B. Pears": [2, 0, 0, 1, 1], "all": [7, 1, 1, 2, 3]}
    assert "\nItems without a test: A4-A5, B2\nItems failing: A2\nItems not run: A3, B1\n" in text
    assert "\nA1:   2  A2:   2  A3:   1\nB1:   1\n" in text


def test_what_is_only_collected_is_named(tmp_path: Path) -> None:
    code, text = run(tmp_path, TESTS, "--contract-report", "--collect-only", "-q")
    assert code == 0
    assert rows(text) == {"A. Apples": [5, 3, 2], "B. Pears": [2, 1, 1], "all": [7, 4, 3]}
    assert "\nItems without a test: A4-A5, B2\n\n" in text


def test_a_published_test_names_its_items_without_a_mark(tmp_path: Path) -> None:
    source = "def test_x(): ...\ntest_x.contract_items = {!r}\n"
    code, text = run(tmp_path / "good", source.format(("A1", "A4")), "--contract-report")
    assert code == 0
    assert rows(text)["A. Apples"] == [5, 2, 0, 0, 3]
    code, text = run(tmp_path / "bad", source.format(("A1", "A9")))
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "test_x: the contract has no item A9" in text


def test_when_every_item_has_a_test_it_says_none(tmp_path: Path) -> None:
    every = '@pytest.mark.contract("A1", "A2", "A3", "A4", "A5", "B1", "B2")'
    code, text = run(tmp_path, f"import pytest\n{every}\ndef test_all(): ...\n", "--contract-report")
    assert code == 0
    assert "\nItems without a test: none\nItems failing: none\nItems not run: none\n" in text
    assert rows(text)["all"] == [7, 7, 0, 0, 0]


def test_an_item_whose_tests_are_deselected_did_not_run(tmp_path: Path) -> None:
    code, text = run(tmp_path, TESTS, "--contract-report", "-v", "-k", "TestGroup")
    assert code == 0
    assert "\nItems without a test: A4-A5, B2\nItems failing: none\nItems not run: A2-A3, B1\n" in text
    # With -v the tests stand there by name, a function once.
    assert (
        "\nA1 (held)\n    tests/test_small.py::test_passes\n    tests/test_small.py::TestGroup::test_passes\nA2 "
        in text
    )


def test_without_the_option_there_is_no_report(tmp_path: Path) -> None:
    code, text = run(tmp_path, TESTS)
    assert code == 1
    assert "Apples" not in text


FAULTY = """
import pytest

@pytest.mark.contract("A1", "A6")
@pytest.mark.parametrize("n", [1, 2])
def test_number(n): ...

@pytest.mark.contract("a1", "A01", 3, ["A1"])
def test_spelling(): ...

@pytest.mark.contract()
def test_nothing(): ...

@pytest.mark.contract
def test_not_even_called(): ...

@pytest.mark.contract("A1", why="x")
def test_keyword(): ...

@pytest.mark.contract("A1")
def test_good(): ...
"""


@pytest.mark.parametrize("options", [["--contract-report"], ["-k", "good"]])
def test_a_mark_that_names_nothing_of_the_contract_is_an_error(tmp_path: Path, options: list[str]) -> None:
    code, text = run(tmp_path, FAULTY, *options)
    assert code == pytest.ExitCode.USAGE_ERROR
    without = 'a contract mark without items; name them: contract("C12")'
    assert re.findall("^ERROR: tests/test_small.py::(.*)$", text, re.MULTILINE) == [
        "test_number: the contract has no item A6",
        "test_spelling: the contract has no item a1, A01, 3, ['A1']",
        f"test_nothing: {without}",
        f"test_not_even_called: {without}",
        "test_keyword: a contract mark takes names alone, not why=",
    ]
