"""A short night at a shop: one program makes calls side by side, asks twice, is denied twice, and meets a failure.

    python examples/audit_tour/tour.py tour.db
    ptc audit show --log tour.db

Everything in the log is written by a host as in earnest; only the tools are made up. They sleep, so that there is
something to see.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
import ptc

PROGRAM = """\
import asyncio

orders = await tools.list_orders(day="2026-11-28")
checks = await asyncio.gather(
    *[tools.check_payment(order=n) for n in orders], return_exceptions=True
)
unpaid = [n for n, paid in zip(orders, checks) if paid is not True]

for n in unpaid:
    try:
        await tools.cancel_order(order=n)
    except ToolCallError as error:
        print(f"{n}: {error}")
try:
    await tools.drop_table(name="orders")
except ToolCallError as error:
    print(error)
return {"unpaid": unpaid}
"""

ORDERS = {"2026-11-28": [17, 18, 19, 20]}


@ptc.tool(concurrency_safe=True)
async def list_orders(day: str) -> list[int]:
    """List the orders of a day."""
    await anyio.sleep(0.08)
    return ORDERS.get(day, [])


@ptc.tool(concurrency_safe=True)
async def check_payment(order: int) -> bool:
    """Say whether an order has been paid."""
    await anyio.sleep({17: 0.2, 18: 0.12, 19: 0.3, 20: 0.16}[order])
    if order == 19:
        raise LookupError("the bank does not know order 19")
    return order != 18


@ptc.tool
async def cancel_order(order: int) -> str:
    """Cancel an order."""
    await anyio.sleep(0.06)
    return f"order {order} is cancelled"


@ptc.tool
async def drop_table(name: str) -> str:
    """Drop a table."""
    return f"{name} is gone"


def nobody_drops_tables(call: ptc.ToolExecution) -> str | None:
    return "tables are dropped by day" if call.name == "drop_table" else None


async def cancelling_is_asked(call: ptc.ToolExecution, go_on: Any) -> Any:
    return ptc.Ask("cancels an order") if call.name == "cancel_order" else await go_on()


class NightShift:
    """A person who reads each question, says yes to the first one and no to the second."""

    def __init__(self) -> None:
        self.answers: list[ptc.ApprovalOutcome] = ["allowed-once", "rejected"]

    async def answer(self, _request: ptc.ApprovalRequest, _go_on: Any) -> ptc.ApprovalOutcome:
        await anyio.sleep(0.1)
        return self.answers.pop(0)


async def main(log: str) -> None:
    async with ptc.Host(log=log) as host:
        for tool in (list_orders, check_payment, cancel_order, drop_table):
            host.tools.register(tool)
        host.tools.guard(nobody_drops_tables)
        host.on("tools/pre-execute", cancelling_is_asked)
        host.on("approval/request", NightShift().answer)
        agent = host.agent("night-shift", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
        result = await agent.run_code(PROGRAM, description="Cancel the orders of yesterday that nobody has paid")
        print(result.text)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
