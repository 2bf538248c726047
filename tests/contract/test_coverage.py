"""Every item of the finished groups has a test in this folder that names it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
CONFORMANCE = HERE.parents[1] / "sandbox" / "conformance"
"""The published tests of sandboxes, which name the items of group F."""

FINISHED = ("A", "B", "C", "D", "F", "G", "H", "I", "J", "K")
"""The groups, and stretches of groups, that the product keeps."""


def names_in(node: ast.AST) -> Iterator[str]:
    """Yields the names in the contract marks of a decorator, or of what `pytestmark` is set to."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("pytest.mark.contract", "holds"):
            yield from (ast.literal_eval(argument) for argument in call.args)


def named_by_tests(source: str) -> set[str]:
    """Returns the items that the test functions of one module name; read from its text, so that nothing need run."""
    found: set[str] = set()
    waiting: list[tuple[list[ast.stmt], set[str]]] = [(ast.parse(source).body, set())]
    while waiting:
        body, outer = waiting.pop()
        around = set(outer)
        for statement in body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark":
                around.update(names_in(statement.value))
        for statement in body:
            if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                own = {name for decorator in statement.decorator_list for name in names_in(decorator)}
                if isinstance(statement, ast.ClassDef):
                    waiting.append((statement.body, around | own if statement.name.startswith("Test") else set()))
                elif statement.name.startswith("test_"):
                    found |= around | own
    return found


def test_every_item_of_the_finished_groups_has_a_test(contract: Any) -> None:
    named: set[str] = set()
    for path in HERE.rglob("test_*.py"):
        named |= named_by_tests(path.read_text(encoding="utf-8"))
    for path in CONFORMANCE.glob("*_tests.py"):
        named |= {item for item in named_by_tests(path.read_text(encoding="utf-8")) if item[0] == "F"}
    missing = [item for stretch in FINISHED for item in contract.stretch(stretch) if item not in named]
    assert missing == []


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ('@pytest.mark.contract("A1", "B2")\ndef test_x(): ...', {"A1", "B2"}),
        ('@holds("F1", "F2")\nasync def test_x(): ...', {"F1", "F2"}),
        ('@other\n@pytest.mark.contract("A1")\nasync def test_x(): ...', {"A1"}),
        ('pytestmark = [pytest.mark.anyio, pytest.mark.contract("A1")]\ndef test_x(): ...', {"A1"}),
        ('@parametrize("x", [pytest.param(1, marks=pytest.mark.contract("A1"))])\ndef test_x(x): ...', {"A1"}),
        ('@pytest.mark.contract("A1")\nclass TestX:\n    def test_x(self): ...', {"A1"}),
        ('class TestX:\n    @pytest.mark.contract("A1")\n    def test_x(self): ...', {"A1"}),
        ('pytestmark = pytest.mark.contract("A1")', set()),
        ('@pytest.mark.contract("A1")\ndef helps(): ...', set()),
        ('@pytest.mark.anyio("A1")\ndef test_x(): ...', set()),
        ('def test_x():\n    """pytest.mark.contract("A1")"""', set()),
    ],
)  # fmt: skip
def test_marks_are_read_as_pytest_reads_them(source: str, named: set[str]) -> None:
    assert named_by_tests(textwrap.dedent(source)) == named


def test_the_contract_has_its_groups_and_no_item_without_a_neighbour(contract: Any) -> None:
    assert list(contract.titles) == list("ABCDEFGHIJK")
    for group in contract.titles:
        items = contract.of_group(group)
        assert items == [f"{group}{number}" for number in range(1, len(items) + 1)]
    assert contract.stretch("K1-K3") == ["K1", "K2", "K3"]
    assert contract.stretch("A62") == ["A62"]
    assert len(contract.items) == 403
