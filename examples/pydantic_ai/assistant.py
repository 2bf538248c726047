"""An assistant that looks after a small warehouse, written with pydantic-ai; its model answers with programs.

    python examples/pydantic_ai/assistant.py                            no model: what one answered, played again
    python examples/pydantic_ai/assistant.py anthropic:claude-sonnet-4-5      or any other model of pydantic-ai

Then `ptc audit show --log warehouse.db` shows what the program called.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field

import ptc
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset
from run_code_toolset import RunCodeToolset

QUESTION = "Order what has fallen below its minimum, up to twice that, and tell me what you did."
MAX_PIECES = 100

PROGRAM = """\
import asyncio

items = await tools.list_items()
stocks = await asyncio.gather(*[tools.get_stock(item=item) for item in items])
for item, stock in zip(items, stocks):
    if stock["pieces"] >= stock["minimum"]:
        continue
    try:
        print(await tools.order(item=item, pieces=2 * stock["minimum"] - stock["pieces"]))
    except ToolCallError as error:
        print(f"{item} not ordered: {error}")
"""


class Stock(BaseModel):
    pieces: int
    minimum: int


@dataclass
class Warehouse:
    """What the tools work on; pydantic-ai hands it to them as the run's `deps`."""

    stocks: dict[str, Stock]
    orders: dict[str, int] = field(default_factory=dict)


def open_warehouse() -> Warehouse:
    stocks = {"tea": (3, 10), "rice": (80, 20), "lamp": (0, 75), "salt": (9, 9), "soap": (6, 8)}
    return Warehouse({item: Stock(pieces=pieces, minimum=minimum) for item, (pieces, minimum) in stocks.items()})


warehouse_tools = FunctionToolset[Warehouse]()


@warehouse_tools.tool
async def list_items(ctx: RunContext[Warehouse]) -> list[str]:
    """List the names of all items."""
    return list(ctx.deps.stocks)


@warehouse_tools.tool
async def get_stock(ctx: RunContext[Warehouse], item: str) -> Stock:
    """Tell how many pieces of an item there are, and how many there should be."""
    if item not in ctx.deps.stocks:
        raise ModelRetry(f"there is no {item!r}; list_items has the names")
    return ctx.deps.stocks[item]


@warehouse_tools.tool(sequential=True)
async def order(ctx: RunContext[Warehouse], item: str, pieces: int) -> str:
    """Order more of an item."""
    await get_stock(ctx, item)
    ctx.deps.orders[item] = ctx.deps.orders.get(item, 0) + pieces
    return f"ordered {pieces} {item}"


def no_large_orders(call: ptc.ToolExecution) -> str | None:
    """A guard of the host: it sees every call of every program, and no answer gets around it."""
    match call.arguments:
        case {"pieces": int(pieces) | float(pieces)} if call.name == "order" and pieces > MAX_PIECES:
            return f"more than {MAX_PIECES} pieces are ordered by a person"
    return None


def make_agent(host: ptc.Host, executor: ptc.PtcExecutor) -> Agent[Warehouse, str]:
    host.tools.guard(no_large_orders)
    toolset = RunCodeToolset(warehouse_tools, host=host, executor=executor, name="warehouse")
    return Agent(
        deps_type=Warehouse,
        toolsets=[toolset],
        instructions="You look after a warehouse. Answer in one or two sentences.",
    )


def played_again(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Answers as a model once did: with a program, and when its output has come, with that."""
    for part in messages[-1].parts:
        if isinstance(part, ToolReturnPart):
            return ModelResponse([TextPart(part.model_response_str())])
    arguments = {"code": PROGRAM, "description": "Order the items that are below their minimum"}
    return ModelResponse([ToolCallPart("run_code", arguments)])


async def main(model: Model | str) -> None:
    async with ptc.Host(log="warehouse.db") as host:
        agent = make_agent(host, ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
        warehouse = open_warehouse()
        result = await agent.run(QUESTION, deps=warehouse, model=model)
        print(result.output)
        print("on order:", warehouse.orders)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else FunctionModel(played_again)))
