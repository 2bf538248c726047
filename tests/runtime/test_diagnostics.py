"""What a model reads when its program fails: the text of `run_code`, the same over both sandboxes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import ptc
import pytest
from ptc.sandbox.restricted import process
from ptc.sandbox.seam import Sandbox, SandboxRequest, SandboxResult, SandboxUnavailableError

pytestmark = pytest.mark.anyio

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted backend needs Linux")
SECRET = "/srv/secret/place"


class Item(TypedDict):
    sku: str
    count: int


@ptc.tool
async def search(query: str, limit: int = 10) -> dict[str, Any]:
    """Search."""
    return {"query": query, "rows": [{"id": 1, "title": "t"}][:limit]}


@ptc.tool
async def order(items: list[Item]) -> str:
    """Order."""
    return f"{len(items)} ordered"


@ptc.tool
async def fail(why: str) -> None:
    """Fail."""
    raise RuntimeError(why)


@pytest.fixture(params=[ptc.WasmSandbox, pytest.param(ptc.RestrictedSandbox, marks=linux)], ids=["wasm", "restricted"])
def make(request: pytest.FixtureRequest) -> Callable[..., Sandbox]:
    return request.param


Told = Callable[..., Any]


@pytest.fixture
def told(make: Callable[..., Sandbox]) -> Told:
    """Runs a program that must fail, and gives the text that the model reads."""

    async def told(program: str, **budgets: Any) -> str:
        async with ptc.Host() as host, make(**{"compute_ms": 20_000, **budgets}) as sandbox:
            await sandbox.prepare()
            for tool in (search, order, fail):
                host.tools.register(tool)
            result = await host.agent("a", executor=ptc.PtcExecutor(sandbox=sandbox)).run_code(program)
            assert result.is_error, result.value
            return result.text

    return told


@pytest.mark.contract("E34", "F15")
@pytest.mark.parametrize(
    ("program", "text"),
    [
        (
            "found = await tools.search(query='x')\nprint('found', len(found))\nreturn found['items']",
            (
                'Traceback (most recent call last):\n  File "<program>", line 3, in <program>\n'
                "    return found['items']\n           ~~~~~^^^^^^^^^\nKeyError: 'items'\n"
                "Hint: its keys are 'query', 'rows'.\nCaptured output:\nfound 2"
            ),
        ),
        (
            "await tools.serach(query='x')",
            (
                'Traceback (most recent call last):\n  File "<program>", line 1, in <program>\n'
                "    await tools.serach(query='x')\n          ^^^^^^^^^^^^\n"
                "AttributeError: tools has no member 'serach'; did you mean 'search'?"
            ),
        ),
        (
            "await tools.order(items=[{'sku': 'a', 'count': 'two'}])",
            (
                'Traceback (most recent call last):\n  File "<program>", line 1, in <program>\n'
                "    await tools.order(items=[{'sku': 'a', 'count': 'two'}])\n"
                'ToolCallError: invalid arguments: "items[0].count" should be a valid integer, unable to parse'
                " string as an integer"
            ),
        ),
        (
            "await tools.search(qurey='x')",
            (
                'Traceback (most recent call last):\n  File "<program>", line 1, in <program>\n'
                "    await tools.search(qurey='x')\n"
                'ToolCallError: invalid arguments: missing required property "query"; "qurey" is not a declared'
                " property (additionalProperties: false)"
            ),
        ),
        (
            "await tools.fail(why='the service is down')",
            (
                'Traceback (most recent call last):\n  File "<program>", line 1, in <program>\n'
                "    await tools.fail(why='the service is down')\nToolCallError: the service is down"
            ),
        ),
        (
            "rows = tools.search(query='x')['rows']",
            (
                'Traceback (most recent call last):\n  File "<program>", line 1, in <program>\n'
                "    rows = tools.search(query='x')['rows']\n           ~~~~~~~~~~~~~~~~~~~~~~~^^^^^^^^\n"
                "TypeError: tools.search(...) on line 1 was not awaited; write `await tools.search(...)`,"
                " with parentheses to go on from there: `(await tools.search(...))[...]`"
            ),
        ),
        (
            "print('begin')\ntools.search(query='x')",
            (
                "this call was never awaited and did not run: tools.search(...) on line 2. Write `await` before the"
                " call.\n"
                "  File \"<program>\", line 2\n    tools.search(query='x')\nCaptured output:\nbegin"
            ),
        ),
        (
            "for row in [1, 2]\n    print(row)",
            "  File \"<program>\", line 1\n    for row in [1, 2]\n                     ^\nSyntaxError: expected ':'",
        ),
    ],
)
async def test_a_model_reads_the_same_over_both_sandboxes(told: Told, program: str, text: str) -> None:
    assert await told(program) == f"Error: code run failed (exception): {text}"


@pytest.mark.contract("E34", "F16")
@pytest.mark.parametrize(
    ("program", "text"),
    [
        (
            "return {'rows': [{1, 2}]}",
            "the returned value.rows[0] is of type set, which JSON does not have; use sorted",
        ),
        ("import datetime\nreturn [datetime.date(2026, 1, 2)]", "the returned value[0] is of type date"),
        ("return float('nan')", "the returned value is nan, which JSON does not have; use None or a string"),
    ],
)
async def test_a_result_that_is_not_json_is_told_by_its_path(told: Told, program: str, text: str) -> None:
    start = "Error: code run failed (invalid-output): program completion must be lossless JSON: "
    assert (await told(program)).startswith(start + text)


@pytest.mark.contract("E34", "F17", "F18", "F29")
@pytest.mark.parametrize(
    ("program", "budgets", "first", "hint"),
    [
        (
            "while True:\n    pass",
            {"compute_ms": 300},
            "(timeout): compute budget exhausted (300ms busy)",
            "do less in one run, with calls side by side in asyncio.gather; what its calls have done stays done.",
        ),
        (
            "import asyncio\nawait asyncio.sleep(60)",
            {"max_wall_ms": 500},
            "(timeout): wall-clock ceiling reached (500ms)",
            "do less in one run, with calls side by side in asyncio.gather; what its calls have done stays done.",
        ),
        (
            "return 'x' * 10_000",
            {"max_output_bytes": 1000},
            "(output-limit): outer output exceeded 1000 bytes",
            "print and return less; count, filter or cut it down in the program.",
        ),
    ],
    ids=["compute", "wall", "output"],
)
async def test_a_budget_that_is_used_up_says_what_to_do(
    told: Told, program: str, budgets: dict[str, Any], first: str, hint: str
) -> None:
    text = await told(f"print('begin')\n{program}", **budgets)
    assert text == f"Error: code run failed {first}\nHint: {hint}\nCaptured output:\nbegin"


@pytest.mark.contract("E34", "F19")
async def test_the_memory_limit_says_what_to_do(told: Told) -> None:
    text = await told("rows = []\nwhile True:\n    rows.append('y' * 1_000_000)", max_memory_bytes=128 << 20)
    assert '  File "<program>", line 3, in <program>' in text
    assert text.endswith("MemoryError\nHint: the program has reached its memory limit; keep less in memory at once.")


class Unavailable(ptc.RestrictedSandbox):
    """A sandbox that cannot be started."""

    async def run(self, request: SandboxRequest) -> SandboxResult:
        raise SandboxUnavailableError(f"the cache directory {SECRET} belongs to another user")


@linux
@pytest.mark.contract("E34")
async def test_where_no_sandbox_can_start_the_log_has_the_cause_and_the_model_no_path(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ruling 8."""
    async with ptc.Host() as host, Unavailable() as sandbox:
        agent = host.agent("a", executor=ptc.PtcExecutor(sandbox=sandbox))
        with caplog.at_level(logging.ERROR, "ptc.runtime"):
            result = await agent.run_code("return 1")
    assert result.is_error
    assert result.text == (
        "Error: code run failed (sandbox-unavailable): the sandbox cannot be started on this host, and nothing of the"
        " program has run; the program is not the cause, and the host's log says what is"
    )
    assert SECRET in caplog.text


@linux
@pytest.mark.contract("E34")
async def test_a_template_that_does_not_start_is_told_without_a_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process, "_MAIN", tmp_path / "not there.py")
    async with ptc.Host() as host, ptc.RestrictedSandbox() as sandbox:
        agent = host.agent("a", executor=ptc.PtcExecutor(sandbox=sandbox))
        result = await agent.run_code("return 1")
    assert result.is_error
    assert "(sandbox-unavailable)" in result.text
    assert str(tmp_path) not in result.text
    assert "/" not in result.text
    assert "does not start" in caplog.text
