"""Programs that OpenAI runs itself (programmatic tool calling), with this host's tools, policies and log.

    python examples/providers/openai_hosted.py [LOG]             replays a recorded conversation
    python examples/providers/openai_hosted.py [LOG] --live      asks the API; needs OPENAI_API_KEY and its SDK

With LOG, `ptc audit show --log LOG` shows the program and its calls. The program is JavaScript, and runs at OpenAI.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import ptc
from provider_recording import Recording
from provider_shop import HOSTED_QUESTION, open_shop
from ptc.runtime.providers import HostedExecutor, openai_responses

MODEL = "gpt-5.6-sol"


async def converse(
    agent: ptc.Agent, executor: HostedExecutor, send: Callable[[Mapping[str, Any]], Awaitable[Any]]
) -> str:
    description = agent.describe()
    items: list[Any] = [{"role": "user", "content": HOSTED_QUESTION}]
    async with executor.programs(agent) as programs:
        while True:
            response = await send(
                {
                    "model": MODEL,
                    "store": False,
                    "include": ["reasoning.encrypted_content"],
                    "tools": openai_responses.hosted_tools(description),
                    "input": items,
                }
            )
            said = openai_responses.reply(response)
            items += said
            batch = await programs.execute(openai_responses.hosted_step(response))
            answers = openai_responses.results(response, batch)
            if not answers:
                messages: list[Any] = [item for item in said if item["type"] == "message"]
                return "".join(part.get("text", "") for message in messages for part in message["content"])
            items += answers


async def main(log: str | None, live: bool) -> None:
    async with open_shop(log) as host:
        executor = HostedExecutor()
        agent = host.agent("shop", executor=executor)
        if not live:
            print(await converse(agent, executor, Recording("openai_hosted").send))
            return
        from openai import AsyncOpenAI

        client = AsyncOpenAI()
        print(await converse(agent, executor, lambda request: client.responses.create(**request)))


if __name__ == "__main__":
    rest = [one for one in sys.argv[1:] if one != "--live"]
    anyio.run(main, rest[0] if rest else None, "--live" in sys.argv[1:])
