"""What hosts under test share: tools that do something plain and note it, and a reading of their log."""

from __future__ import annotations

import json
from typing import Any

import anyio
import ptc


class Witness:
    """What tools note, and what holds them up.

    Attributes:
        bodies: what has been done, in order.
        started: set when `stuck` has begun.
        release: lets `stuck` end.
    """

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.started = anyio.Event()
        self.release = anyio.Event()


async def recorded(host: ptc.Host, agent: ptc.Agent, *types: str) -> list[tuple[str, dict[str, Any]]]:
    """Returns an agent's recorded events as (type, data), all or of some types."""
    assert agent.session is not None
    store: Any = host._store
    stored = await store.events(agent.session.id)
    return [(event.type, json.loads(json.dumps(event.data))) for event in stored if not types or event.type in types]


def plain_tools(witness: Witness) -> dict[str, ptc.ToolDefinition]:
    """Returns `double`, `stuck`, `fail` and `picture`."""

    @ptc.tool(concurrency_safe=True)
    async def double(x: int) -> int:
        """Double a number."""
        witness.bodies.append(f"double {x}")
        return 2 * x

    @ptc.tool(concurrency_safe=True)
    async def stuck(name: str) -> str:
        """Wait until released."""
        witness.bodies.append(f"stuck {name}")
        witness.started.set()
        await witness.release.wait()
        return name

    @ptc.tool
    async def fail(why: str) -> str:
        """Fail."""
        raise ValueError(why)

    async def picture(_arguments: Any, _run: ptc.ToolRunContext) -> Any:
        return {"width": 2}

    draw = ptc.define_tool(
        name="picture",
        description="Draw.",
        parameters={},
        output={"type": "json"},
        execute=picture,
        render=lambda _a, _v: [ptc.text_block("a picture"), {"type": "image", "data": "AAAA", "mimeType": "image/png"}],
    )
    return {"double": double, "stuck": stuck, "fail": fail, "picture": draw}


def needle_tool() -> ptc.ToolDefinition:
    """Returns a tool each of whose texts can be told from the others, wherever one turns up."""

    async def secret(_arguments: Any, _run: Any) -> Any:
        return {"value": "canonical-needle"}

    return ptc.define_tool(
        name="secret",
        description="description-needle",
        parameters={"note": {"type": "string", "description": "schema-needle"}},
        output={"type": "json"},
        execute=secret,
        render=lambda _arguments, _value: [ptc.text_block("rendered-needle")],
    )
