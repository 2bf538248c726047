"""A conversation over OpenAI's Responses API in which the model writes programs.

    python examples/providers/openai_responses_items.py             replays a recorded conversation
    python examples/providers/openai_responses_items.py --live      asks the API; needs OPENAI_API_KEY and its SDK

Nothing is kept at the provider (`store` is false): the model's items go back as they came, reasoning included.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import ptc
from provider_recording import Recording
from provider_shop import QUESTION, open_shop
from ptc.runtime.providers import openai_responses

MODEL = "gpt-5.6-sol"


async def converse(agent: ptc.Agent, send: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> str:
    description = agent.describe()
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        response = await send(
            {
                "model": MODEL,
                "store": False,
                "include": ["reasoning.encrypted_content"],
                "instructions": openai_responses.system(description),
                "tools": openai_responses.tools(description),
                "input": items,
            }
        )
        said = openai_responses.reply(response)
        items += said
        calls = openai_responses.calls(response)
        if not calls:
            messages: list[Any] = [item for item in said if item["type"] == "message"]
            return "".join(part.get("text", "") for message in messages for part in message["content"])
        batch = await agent.execute(calls)
        items += openai_responses.results(response, batch)


async def main(live: bool) -> None:
    async with open_shop() as host:
        agent = host.agent("shop", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
        if not live:
            print(await converse(agent, Recording("openai_responses_items").send))
            return
        from openai import AsyncOpenAI

        client = AsyncOpenAI()
        print(await converse(agent, lambda request: client.responses.create(**request)))


if __name__ == "__main__":
    anyio.run(main, "--live" in sys.argv[1:])
