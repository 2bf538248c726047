"""What all these examples have in common: a shop's tools, and the host that has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypedDict

import ptc

QUESTION = "Can order 1042 go out today? And have a look at the photo of whatever is missing."

HOSTED_QUESTION = "Which items of order 1042 are short, and by how many?"


class Line(TypedDict):
    item: str
    units: int


ORDERS: dict[int, list[Line]] = {
    1042: [{"item": "lamp", "units": 2}, {"item": "desk", "units": 1}, {"item": "chair", "units": 4}]
}
STOCK = {"lamp": 0, "desk": 7, "chair": 9}

# A red square of 8 by 8 pixels, PNG.
PHOTO = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mO4YGCAFTEMLQkA2ntMAZZ5tYQAAAAASUVORK5CYII="


@ptc.tool(concurrency_safe=True)
async def get_order(order: int) -> list[Line]:
    """Return the lines of an order."""
    if order not in ORDERS:
        raise LookupError(f"there is no order {order}")
    return ORDERS[order]


@ptc.tool(concurrency_safe=True)
async def get_stock(item: str) -> int:
    """Return how many units of an item are in stock."""
    if item not in STOCK:
        raise LookupError(f"there is no item {item!r}")
    return STOCK[item]


async def _photo(arguments: Any, _run: ptc.ToolRunContext) -> ptc.JsonValue:
    return {"item": arguments["item"], "width": 8, "height": 8}


get_photo = ptc.define_tool(
    name="get_photo",
    description="Fetch the photo of an item; it is shown after the run.",
    parameters={"item": {"type": "string", "required": True, "description": "The item's name."}},
    output={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "item": {"type": "string", "required": True},
            "width": {"type": "integer", "required": True},
            "height": {"type": "integer", "required": True},
        },
    },
    execute=_photo,
    render=lambda arguments, _value: [
        ptc.text_block(f"The photo of {arguments['item']}:"),
        {"type": "image", "data": PHOTO, "mimeType": "image/png"},
    ],
    is_concurrency_safe=lambda _arguments: True,
)


@asynccontextmanager
async def open_shop(log: str | None = None) -> AsyncIterator[ptc.Host]:
    async with ptc.Host(log=log) as host:
        for tool in (get_order, get_stock, get_photo):
            host.tools.register(tool)
        yield host
