"""A conversation over Anthropic's Messages API in which the model writes programs.

python examples/providers/anthropic_messages.py             replays a recorded conversation
python examples/providers/anthropic_messages.py --live      asks the API; needs ANTHROPIC_API_KEY and its SDK
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import ptc
from provider_recording import Recording
from provider_shop import QUESTION, open_shop
from ptc.runtime.providers import anthropic

MODEL = "claude-opus-4-7"


async def converse(agent: ptc.Agent, send: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> str:
    description = agent.describe()
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        message = await send(
            {
                "model": MODEL,
                "max_tokens": 16_000,
                "thinking": {"type": "adaptive"},
                "system": anthropic.system(description, cache_control={"type": "ephemeral"}),
                "tools": anthropic.tools(description),
                "messages": messages,
            }
        )
        messages += anthropic.reply(message)
        calls = anthropic.calls(message)
        if not calls:
            return "".join(block["text"] for block in messages[-1]["content"] if block["type"] == "text")
        batch = await agent.execute(calls)
        messages += anthropic.results(message, batch)


async def main(live: bool) -> None:
    async with open_shop() as host:
        agent = host.agent("shop", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
        if not live:
            print(await converse(agent, Recording("anthropic_messages").send))
            return
        from anthropic import AsyncAnthropic

        client = AsyncAnthropic()
        print(await converse(agent, lambda request: client.messages.create(**request)))


if __name__ == "__main__":
    anyio.run(main, "--live" in sys.argv[1:])
