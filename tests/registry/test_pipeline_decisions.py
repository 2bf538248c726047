"""Who decided, kept for the record and out of what the model reads."""

from __future__ import annotations

from typing import Any

import pytest
from ptc.registry import (
    Allow,
    Ask,
    BatchLog,
    Block,
    Cancel,
    Deny,
    Pipeline,
    ScopeKey,
    ToolBatchInput,
    ToolCall,
    ToolDefinition,
    ToolExecutionInput,
    ToolOutput,
    ToolRegistry,
    run_batch,
    text_block,
)

pytestmark = pytest.mark.anyio


class Approves:
    async def request(self, _request: Any) -> Any:
        return "rejected"


async def no_deletes(_call, _next):
    return Deny("no deletes")


async def lets_be(_call, next_):
    return await next_()


async def allows(_call, _next):
    return Allow()


async def asks(_call, _next):
    return Ask("why")


async def cancels(_call, _next):
    return Cancel()


async def breaks(_call, _next):
    raise LookupError("down")


async def overrules(_call, next_):
    await next_()
    return Deny("overruled")


def limit(_call):
    return "limit reached"


async def blocks(_call, _result, _next):
    return Block([text_block("no")])


async def passes_block(_call, _result, next_):
    return await next_()


@pytest.fixture
def made():
    """A registry with one tool, and its pipeline."""

    async def body(_arguments, _run):
        return 1

    registry = ToolRegistry()
    output = ToolOutput(schema={}, render=lambda _arguments, value: [text_block(str(value))])
    registry.context().register(ToolDefinition(name="echo", description="", parameters={}, output=output, execute=body))
    return registry, Pipeline(registry, approval=Approves())


def named(function):
    return f"{function.__module__}.{function.__qualname__}"


@pytest.mark.parametrize(
    ("pre", "guard", "post", "decision", "by", "record"),
    [
        ([], None, [], "allow", None, None),
        ([lets_be], None, [], "allow", None, None),
        ([allows, no_deletes], None, [], "allow", allows, {"outcome": "allow"}),
        ([lets_be, no_deletes], None, [], "deny", no_deletes, {"outcome": "deny"}),
        ([overrules, no_deletes], None, [], "deny", overrules, {"outcome": "deny"}),
        ([lets_be, cancels], None, [], "cancel", cancels, {"outcome": "cancel"}),
        ([lets_be, asks], None, [], "deny", asks, {"outcome": "deny", "approval": "rejected"}),
        ([lets_be, breaks], None, [], "error", None, {"outcome": "error"}),
        ([allows], limit, [], "deny", limit, {"outcome": "deny"}),
        ([], limit, [], "deny", limit, {"outcome": "deny"}),
        ([], None, [passes_block, blocks], "allow", None, {"outcome": "block"}),
    ],
)
async def test_the_record_names_who_decided(made, pre, guard, post, decision, by, record):
    registry, pipeline = made
    tools = registry.context()
    for listener in pre:
        tools.on("tools/pre-execute", listener)
    for listener in post:
        tools.on("tools/post-execute", listener)
    if guard is not None:
        tools.guard(guard)
    agent = ScopeKey("agent")
    call = pipeline.call(ToolExecutionInput(call_id="c", name="echo", arguments={}, agent=agent))
    assert (call.decision, call.decided_by, call.decision_record()) == (None, None, None)
    await call.prepare()
    if call.needs_dispatch:
        await call.dispatch()
    result = await call.finish()
    assert call.decision == decision
    assert call.decided_by == (None if by is None else named(by))
    assert call.blocked_by == (named(blocks) if post else None)
    if record is not None and (by is not None or post):
        record = {**record, "by": named(blocks if post else by)}
    assert call.decision_record() == record
    assert call.approval == (record or {}).get("approval")
    assert "test_pipeline" not in str(result.content)


async def test_root_records_carry_the_decision(made):
    registry, pipeline = made

    class Log:
        def __init__(self) -> None:
            self.events: list[Any] = []

        async def append(self, type: str, data: Any, *, cites: int | None = None) -> int:
            self.events.append((type, data))
            return len(self.events) - 1

    log = Log()
    agent = ScopeKey("agent", session=log)
    batch = ToolBatchInput(calls=[ToolCall(name="echo", call_id="1")], agent=agent, log=BatchLog(1, 1))
    await run_batch(pipeline, batch)
    registry.context().on("tools/pre-execute", no_deletes)
    await run_batch(pipeline, batch)
    decisions = [data.get("decision") for kind, data in log.events if kind == "tool/result"]
    assert decisions == [None, {"outcome": "deny", "by": named(no_deletes)}]
