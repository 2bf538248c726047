"""`pytest --contract-report`: which items of the contract have a test, and which of them hold.

Tests name the items that they hold: `@pytest.mark.contract("C12")`. A name that the contract does not have is an error
at collection, with the option or without it, and so is a mark without names. One function counts once, whatever number
of parameter sets it runs with. A published test has `contract_items` in place of marks, because a mark is one of the
suite that it runs in. An item is held when a test that names it passed and none that names it failed.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CONTRACT = Path(__file__).with_name("contract") / "CONTRACT.md"
OPTION = "--contract-report"

_ITEM = re.compile(r"^- \*\*([A-Z])([0-9]+)\*\* ", re.MULTILINE)
_GROUP = re.compile(r"^## ([A-Z])\. (.+)$", re.MULTILINE)


class Contract:
    """The items of the contract, in order, and the titles of their groups.

    Raises:
        ValueError: an item stands there twice, or has no group.
    """

    def __init__(self, text: str) -> None:
        self.titles: dict[str, str] = dict(_GROUP.findall(text))
        numbered = _ITEM.findall(text)
        self.items: tuple[str, ...] = tuple(group + number for group, number in numbered)
        self._known = frozenset(self.items)
        twice = [item for item, count in Counter(self.items).items() if count > 1]
        orphans = sorted({group for group, _ in numbered} - self.titles.keys())
        if twice or orphans:
            raise ValueError(f"{CONTRACT.name}: items that stand there twice: {twice}; groups without title: {orphans}")

    def of_group(self, group: str) -> list[str]:
        """Returns the items of one group, in order."""
        return [item for item in self.items if item[0] == group]

    def stretch(self, text: str) -> list[str]:
        """Returns the items that `B` (a whole group) or `K1-K5` (from one to the other) stands for.

        Raises:
            ValueError: the contract has no such group or item.
        """
        if text in self.titles:
            return self.of_group(text)
        first, _, last = text.partition("-")
        return list(self.items[self.items.index(first) : self.items.index(last or first) + 1])

    def faults(self, args: Sequence[object], kwargs: Mapping[str, object]) -> str | None:
        """Returns what is wrong with a mark, or `None`."""
        if kwargs:
            return f"a contract mark takes names alone, not {', '.join(kwargs)}="
        if not args:
            return 'a contract mark without items; name them: contract("C12")'
        unknown = [str(item) for item in args if not isinstance(item, str) or item not in self._known]
        return f"the contract has no item {', '.join(unknown)}" if unknown else None


def ranges(contract: Contract, items: Iterable[str]) -> str:
    """Writes items in the order of the contract, neighbours as `A3-A7`; `none` when there are none."""
    wanted = set(items)
    runs: list[list[str]] = []
    previous = ""
    for item in contract.items:
        if item in wanted:
            if runs and runs[-1][-1] == previous and item[0] == previous[0]:
                runs[-1].append(item)
            else:
                runs.append([item])
        previous = item
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) or "none"


@dataclass(slots=True)
class Outcome:
    """What became of one test function, over all its parameter sets."""

    passed: bool = False
    failed: bool = False


class Report:
    """What the tests of one run say of the contract.

    Args:
        contract: the contract.
        ran: whether the tests run; when they are only collected, an item counts as soon as a test names it.
    """

    def __init__(self, contract: Contract, *, ran: bool) -> None:
        self.contract = contract
        self.ran = ran
        self.functions: dict[str, str] = {}
        self.outcomes: defaultdict[str, Outcome] = defaultdict(Outcome)
        self.named: dict[str, dict[str, None]] = {item: {} for item in contract.items}

    def add(self, item: pytest.Item, names: Iterable[str]) -> None:
        """Notes which items a collected test names."""
        assert item.parent is not None
        function = f"{item.parent.nodeid}::{getattr(item, 'originalname', None) or item.name}"
        self.functions[item.nodeid] = function
        for name in names:
            self.named[name][function] = None

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        function = self.functions.get(report.nodeid)
        if function is not None:
            outcome = self.outcomes[function]
            outcome.failed |= report.failed
            outcome.passed |= report.when == "call" and report.passed and not hasattr(report, "wasxfail")

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        terminalreporter.section("contract")
        for line in self.lines(terminalreporter.verbosity > 0, terminalreporter._tw.fullwidth):
            write(line)

    def lines(self, verbose: bool, width: int) -> Iterator[str]:
        """Yields the report, line by line."""
        states = {item: self.state(item) for item in self.contract.items}
        good = "held" if self.ran else "named"
        yield "A test function counts once, whatever number of parameter sets it runs with."
        yield (
            "An item is held when a test that names it passed and none failed."
            if self.ran
            else "Nothing ran: an item is named when a collected test names it."
        )
        yield ""
        yield from _table(self.contract, states, good, self.ran)
        yield ""
        shown = {"no test": "Items without a test", "failing": "Items failing", "not run": "Items not run"}
        for state, label in list(shown.items())[: None if self.ran else 1]:
            listed = ranges(self.contract, (item for item, what in states.items() if what == state))
            yield from textwrap.wrap(f"{label}: {listed}", width, subsequent_indent="    ", break_on_hyphens=False)
        yield ""
        if verbose:
            yield from self._tests_by_name()
        else:
            yield "Tests for each item that has one (their names with -v):"
            yield from self._test_counts(width)

    def state(self, item: str) -> str:
        """Returns `held` or `named`, `failing`, `not run`, or `no test`."""
        functions = self.named[item]
        if not functions:
            return "no test"
        if not self.ran:
            return "named"
        outcomes = [self.outcomes.get(function, Outcome()) for function in functions]
        if any(outcome.failed for outcome in outcomes):
            return "failing"
        return "held" if any(outcome.passed for outcome in outcomes) else "not run"

    def _test_counts(self, width: int) -> Iterator[str]:
        for group in self.contract.titles:
            cells = [
                f"{item + ':':<4}{len(self.named[item]):>3}"
                for item in self.contract.of_group(group)
                if self.named[item]
            ]
            across = max(1, (width + 2) // 9)
            for start in range(0, len(cells), across):
                yield "  ".join(cells[start : start + across])

    def _tests_by_name(self) -> Iterator[str]:
        for item, functions in self.named.items():
            yield f"{item} ({self.state(item)})"
            yield from (f"    {function}" for function in functions)


def _table(contract: Contract, states: Mapping[str, str], good: str, ran: bool) -> Iterator[str]:
    columns = [good, "failing", "not run", "no test"] if ran else [good, "no test"]
    yield f"{'group':<40}{'items':>5}" + "".join(f"{column:>{len(column) + 2}}" for column in columns)
    rows = [(f"{group}. {title}", contract.of_group(group)) for group, title in contract.titles.items()]
    for title, items in [*rows, ("all", list(contract.items))]:
        counts = Counter(states[item] for item in items)
        cells = "".join(f"{counts[column]:>{len(column) + 2}}" for column in columns)
        yield f"{textwrap.shorten(title, 39, placeholder='…'):<40}{len(items):>5}{cells}"


# The hooks -----------------------------------------------------------------------------------------------------------

_report = pytest.StashKey[Report]()
_contract = pytest.StashKey[Contract]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("contract").addoption(
        OPTION,
        action="store_true",
        help="print which items of tests/contract/CONTRACT.md the tests hold, and which have none",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_contract] = Contract(CONTRACT.read_text(encoding="utf-8"))
    if config.getoption(OPTION, default=False):
        report = Report(config.stash[_contract], ran=not config.option.collectonly)
        config.stash[_report] = report
        config.pluginmanager.register(report, "contract-report")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Checks every mark, before anything is deselected, and notes what each test names."""
    contract = config.stash[_contract]
    report = config.stash.get(_report, None)
    faults: dict[str, None] = {}
    for item in items:
        for args, kwargs in _named(item):
            fault = contract.faults(args, kwargs)
            if fault is not None:
                faults[f"{item.nodeid.partition('[')[0]}: {fault}"] = None
            elif report is not None:
                report.add(item, args)
    if faults:
        raise pytest.UsageError(*faults)


def _named(item: pytest.Item) -> Iterator[tuple[Sequence[Any], Mapping[str, object]]]:
    """Yields what the marks of a test name, and its `contract_items`: published tests bring those in place of marks."""
    for mark in item.iter_markers("contract"):
        yield mark.args, mark.kwargs
    published = getattr(getattr(item, "function", None), "contract_items", None)
    if published is not None:
        yield published, {}


@pytest.fixture(scope="session")
def contract(pytestconfig: pytest.Config) -> Contract:
    """The contract that the tests of this run are held to."""
    return pytestconfig.stash[_contract]
