"""Programs as models write them give their exact result: the collection in `ordinary_programs.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from ..seam import BindingCall, BindingError, ErrorClass, JsonValue, Member, Namespace
from .backend import holds
from .fixtures import Run

CORPUS: dict[str, Any] = json.loads(Path(__file__).with_name("ordinary_programs.json").read_text("utf-8"))
DATA = CORPUS["data"]


async def echo(call: BindingCall) -> JsonValue:
    return argument(call, "value")


async def add(call: BindingCall) -> JsonValue:
    a, b = argument(call, "a"), argument(call, "b")
    if type(a) not in (int, float) or type(b) not in (int, float):
        raise BindingError("add takes numbers")
    return a + b


async def slow(call: BindingCall) -> JsonValue:
    await anyio.sleep(argument(call, "ms") / 1000)
    return None


async def boom(call: BindingCall) -> JsonValue:
    raise BindingError(argument(call, "message"))


async def list_orders(_call: BindingCall) -> JsonValue:
    return DATA["orders"]


async def get_customer(call: BindingCall) -> JsonValue:
    customers = DATA["customers"]
    wanted = argument(call, "id")
    found = (
        customers.get(wanted)
        if isinstance(customers, dict)
        else next((c for c in customers if c["id"] == wanted), None)
    )
    if found is None:
        raise BindingError(f"no customer {wanted}")
    return found


async def search(call: BindingCall) -> JsonValue:
    query, limit = argument(call, "query"), argument(call, "limit")
    found = [one for one in DATA["documents"] if query.lower() in one["title"].lower()]
    found.sort(key=lambda one: -one["score"])
    return {"query": query, "total": len(found), "results": found[:limit]}


def argument(call: BindingCall, name: str) -> Any:
    assert isinstance(call.arguments, dict)
    if name not in call.arguments:
        raise BindingError(f"missing argument {name}")
    return call.arguments[name]


TOOLS = Namespace(
    "tools",
    {
        "echo": Member(echo, ("value",)),
        "add": Member(add, ("a", "b")),
        "slow": Member(slow, ("ms",)),
        "boom": Member(boom, ("message",)),
        "list_orders": Member(list_orders),
        "get_customer": Member(get_customer, ("id",)),
        "search": Member(search, ("query", "limit")),
    },
    ErrorClass("ToolCallError", "toolName"),
)


def same(a: Any, b: Any) -> bool:
    """Tells whether two JSON values are the same, numbers by type as well."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@holds("F4", "F5")
@pytest.mark.anyio
@pytest.mark.parametrize("program", CORPUS["programs"], ids=lambda program: program["id"])
async def test_an_ordinary_program_gives_its_exact_result(run: Run, program: dict[str, Any]) -> None:
    result = await run(program["program"], namespaces=[TOOLS])
    assert result.error is None, result.error.message
    expected = program["expect"]
    if expected.startswith("ok:"):
        # A program without a result has none; the collection writes null for it.
        value = json.loads(result.value_json or "null")
        assert same(value, json.loads(expected.removeprefix("ok:"))), result.value_json
    else:
        assert expected == "ok"
    if program.get("stdout") is not None:
        assert "".join(f"{line}\n" for line in result.logs).rstrip("\n") == program["stdout"].rstrip("\n")
