"""Long values that bindings give: they are written beside the event loop, and arrive as any other does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from ptc.sandbox.longjson import detached
from ptc.sandbox.restricted import RestrictedSandbox
from ptc.sandbox.seam import BindingCall, ErrorClass, Member, Namespace, SandboxRequest
from ptc.sandbox.wasm import WasmSandbox

pytestmark = pytest.mark.anyio

BACKENDS: list[Callable[..., Any]] = [WasmSandbox]
if sys.platform.startswith("linux"):
    BACKENDS.append(RestrictedSandbox)

ROWS = [{"n": n, "name": f"row é {n}"} for n in range(100_000)]


async def give(call: BindingCall) -> Any:
    match call.arguments:
        case {"what": "rows"}:
            return ROWS
        case {"what": "text"}:
            return "é" * 3_000_000
        case {"what": "lossy"}:
            return [*ROWS, {"set": {1}}]
        case {"what": "odd"}:
            return [*ROWS, {1: 2}]
    return "short"


@pytest.mark.contract("F37")
@pytest.mark.parametrize("make", BACKENDS)
async def test_long_values_arrive_and_lossy_ones_name_the_place(make: Callable[..., Any]) -> None:
    program = (
        "rows = await tools.give(what='rows')\n"
        "text = await tools.give(what='text')\n"
        "failed = []\n"
        "for what in ('lossy', 'odd'):\n"
        "    try:\n        await tools.give(what=what)\n    except ToolCallError as e:\n        failed.append(str(e))\n"
        "return [len(rows), rows[-1], len(text), text[-1], failed, await tools.give()]"
    )
    tools = Namespace("tools", {"give": Member(give)}, ErrorClass("ToolCallError", "toolName"))
    async with make() as sandbox:
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[tools]))
    assert result.error is None, result.error
    rows, last, length, end, failed, short = json.loads(result.value_json)
    assert (rows, last, length, end, short) == (100_000, ROWS[-1], 3_000_000, "é", "short")
    assert all(one.startswith("binding resolution must be lossless JSON: ") for one in failed)
    assert "[100000]" in failed[0]
    assert len(failed) == 2


@pytest.mark.contract("F38")
@pytest.mark.parametrize("make", BACKENDS)
async def test_a_run_that_ends_while_a_long_value_is_written_does_not_wait_for_it(make: Callable[..., Any]) -> None:
    program = (
        "import asyncio\n"
        "task = asyncio.create_task(tools.give(what='rows'))\n"
        "await tools.give()\n"
        "return await tools.give()"
    )
    tools = Namespace("tools", {"give": Member(give)})
    async with make() as sandbox:
        for _ in range(3):
            result = await sandbox.run(SandboxRequest(program=program, namespaces=[tools]))
            assert result.error is None, result.error
            assert result.value_json == '"short"'


@pytest.mark.contract("F37")
@pytest.mark.parametrize("make", BACKENDS)
async def test_a_long_value_is_the_one_of_the_moment_when_it_was_given(make: Callable[..., Any]) -> None:
    rows: list[Any] = [{"n": [n]} for n in range(50_000)]

    async def change() -> None:
        for row in rows:
            row["n"][0] = row["more"] = -1
        rows.clear()

    async def give_and_change(_call: BindingCall) -> Any:
        tasks.start_soon(change)
        return rows

    tools = Namespace("tools", {"give": Member(give_and_change)})
    program = "rows = await tools.give()\nreturn [len(rows), sum(row['n'][0] for row in rows), len(rows[0])]"
    async with make() as sandbox, anyio.create_task_group() as tasks:
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[tools]))
    assert result.error is None, result.error
    assert json.loads(result.value_json or "") == [50_000, sum(range(50_000)), 1]
    assert rows == []


def test_a_detached_value_shares_and_circles_as_the_value_does() -> None:
    shared = [1]
    value: Any = {"a": shared, "b": [shared, (shared,)]}
    value["self"] = value
    copy: Any = detached(value)
    assert copy["a"] is copy["b"][0]
    assert copy["a"] is not shared
    assert copy["b"][1][0] is shared  # a tuple is not plain, and stays
    assert copy["self"] is copy
    assert detached("x") == "x"
