"""What a type checker says of code that is right and of code that is wrong, and that the right code runs as typed."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import ptc
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FILES = ("correct.py", "misuse.py")
README_FILES = {
    block.partition("\n")[0].removeprefix("# "): block
    for block in re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
}
EXPECTED = re.compile(r"# expect: (\w+(?:, \w+)*)$")

Findings = Counter[tuple[str, int, str]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """What basedpyright finds in the files: (file, line, rule). One process checks them all."""
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip('basedpyright is not installed (it comes with ptc-runtime[dev], `pip install -e ".[dev]"`)')
    folder = tmp_path_factory.mktemp("typing")
    # An editable installation is invisible to type checkers, so the checkout stands beside the files as `ptc`.
    (folder / "ptc").symlink_to(ROOT, target_is_directory=True)
    for name in FILES:
        shutil.copy(HERE / name, folder)
    for name, block in README_FILES.items():
        (folder / name).write_text(block, encoding="utf-8")
    files = [*FILES, *README_FILES]
    config = {"include": files, "pythonVersion": "3.11", "typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(files), done.stdout
    return Counter(
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each.get("rule", each["message"]))
        for each in report["generalDiagnostics"]
    )


def expected(name: str) -> dict[tuple[str, int], set[str]]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    marked = {(name, number): EXPECTED.search(line) for number, line in enumerate(lines, 1)}
    return {place: set(match[1].split(", ")) for place, match in marked.items() if match is not None}


def rules(found: Findings, name: str) -> dict[tuple[str, int], set[str]]:
    told: dict[tuple[str, int], set[str]] = {}
    for file, line, rule in found:
        if file == name:
            told.setdefault((file, line), set()).add(rule)
    return told


def test_of_correct_code_a_strict_type_checker_says_nothing(found: Findings) -> None:
    assert (HERE / "correct.py").read_text(encoding="utf-8").startswith("# pyright: strict\n")
    assert rules(found, "correct.py") == {}


def test_every_mistake_is_found_where_it_is_and_nothing_else(found: Findings) -> None:
    assert len(expected("misuse.py")) > 50
    assert rules(found, "misuse.py") == expected("misuse.py")


def test_the_readmes_code_is_correct(found: Findings) -> None:
    assert {name: told for name in README_FILES if (told := rules(found, name))} == {}


@pytest.fixture
def correct() -> ModuleType:
    spec = importlib.util.spec_from_file_location("typing_correct", HERE / "correct.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations that are text are looked up there
    spec.loader.exec_module(module)
    return module


class Run:
    """As much of a run as the body of `search` uses."""

    signal = ptc.SignalSource().signal


async def outcome(agent: ptc.Agent, name: str, **arguments: Any) -> Any:
    batch = await agent.execute([ptc.ToolCall(name=name, arguments=arguments)])
    result = batch.results[0].result
    return result.value if isinstance(result, ptc.ToolSuccess) else result.content[0]


@pytest.mark.anyio
async def test_correct_code_runs_as_it_is_typed(correct: ModuleType) -> None:
    async with ptc.Host() as host:
        agent = host.agent("typed", executor=ptc.NativeExecutor())
        seen: list[str] = []
        disposers = correct.set_up(host, agent, seen)
        assert await outcome(agent, "search", query="tea", limit=2) == [{"title": "tea 0"}, {"title": "tea 1"}]
        assert await outcome(agent, "weekday", day="2024-02-05") == "Monday"
        assert await outcome(agent, "book", day="2024-02-28") == ptc.text_block("book failed")  # a guard
        admitted = await host.registry.resolve(ptc.ActivationContext(agent=agent))
        assert {"latest", "search_by_dsl", "get_price"} < set(admitted.view(agent))
        small = ptc.ActivationContext(agent=agent, model_selection=ptc.ModelSelection(model="small"))
        assert {"latest", "search_by_dsl"}.isdisjoint((await host.registry.resolve(small)).view(agent))
        for dispose in disposers:
            dispose()
        assert seen.count("search False") == 2  # `note` listens twice
        assert await outcome(agent, "search", query="tea") == ptc.text_block("search failed")  # unknown, then `accept`
        host.tools.register(correct.book)
        assert await outcome(agent, "book", day="2024-02-28") == {"day": "2024-02-29", "table": 2}
    assert await correct.book.execute({"day": "2024-12-31", "guests": 3}, None) == {"day": "2025-01-01", "table": 3}
    assert await correct.LATEST.execute({}, None) == {"day": "2024-02-01", "table": 1}
    assert await correct.SEARCH_BY_DSL.execute({"query": "tea"}, Run()) == [{"title": "tea 0"}]
    assert await correct.price_of_tea() == 2.5


@pytest.mark.contract("A5", "C13")
@pytest.mark.anyio
async def test_a_hosts_own_events_are_heard_in_the_scope_that_they_happen_in(correct: ModuleType) -> None:
    async with ptc.Host() as host:
        agent, other = host.agent("typed"), host.agent("other")
        host.registry.events.declare("shop/greeting")
        assert await correct.own_event(host, agent) == "Hello, dear Ann"

        async def polite(name: str, next: ptc.Next[str]) -> str:
            return f"{await next()}, {name}"

        async def default() -> str:
            return "Hello"

        events = host.registry.events
        events.on("shop/greeting", polite, scope=agent)
        assert await events.waterfall("shop/greeting", agent, ["Ann"], default) == "Hello, Ann"
        assert await events.waterfall("shop/greeting", other, ["Ann"], default) == "Hello"


def test_what_a_type_checker_finds_is_refused_when_it_runs_too() -> None:
    host = ptc.Host()
    untyped: Any = host

    async def later(*arguments: Any) -> Any:
        return None

    for refusal in (ptc.Deny, ptc.ToolGuardDenial):
        with pytest.raises(TypeError, match="reason"):
            refusal()  # pyright: ignore[reportCallIssue]
    with pytest.raises(ptc.ToolRegistrationError, match="did you mean 'tools/pre-execute'"):
        untyped.on("tools/pre-exectue", later)
    with pytest.raises(ptc.ToolRegistrationError, match="must not be async"):
        untyped.on("tools/result", later)
    with pytest.raises(ptc.ToolRegistrationError, match="a guard must answer at once"):
        untyped.tools.guard(later)


@pytest.mark.anyio
async def test_background_jobs_run_as_they_are_typed(correct: ModuleType) -> None:
    async with ptc.Host() as host:
        seen = await correct.background(host, host.agent("typed"))
    told = seen.index("one twoall of it")
    assert {"count-1 completed False", "batch-1 completed True", "run-1 failed True", "started run"} < set(seen[:told])
    assert seen[told + 1 :] == ["already-finished", "removed count", "removed batch", "removed run"]
