"""Programs that Anthropic runs itself (programmatic tool calling), with this host's tools, policies and log.

    python examples/providers/anthropic_hosted.py [LOG]             replays a recorded conversation
    python examples/providers/anthropic_hosted.py [LOG] --live      asks the API; needs ANTHROPIC_API_KEY and its SDK

With LOG, `ptc audit show --log LOG` shows the program and its calls.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import ptc
from provider_recording import Recording
from provider_shop import HOSTED_QUESTION, open_shop
from ptc.runtime.providers import HostedExecutor, anthropic

MODEL = "claude-opus-4-7"


async def converse(
    agent: ptc.Agent, executor: HostedExecutor, send: Callable[[Mapping[str, Any]], Awaitable[Any]]
) -> str:
    description = agent.describe()
    messages: list[Any] = [{"role": "user", "content": HOSTED_QUESTION}]
    container: dict[str, Any] = {}
    async with executor.programs(agent) as programs:
        while True:
            message = await send(
                {
                    "model": MODEL,
                    "max_tokens": 16_000,
                    "tools": anthropic.hosted_tools(description),
                    "messages": messages,
                    **container,
                }
            )
            if not isinstance(message, Mapping):
                message = message.model_dump(mode="json", exclude_unset=True)
            if message.get("container"):
                container = {"container": message["container"]["id"]}  # where the program waits for its results
            messages += anthropic.reply(message)
            batch = await programs.execute(anthropic.hosted_step(message))
            answers = anthropic.results(message, batch)
            if not answers and message["stop_reason"] != "pause_turn":
                return "".join(block["text"] for block in messages[-1]["content"] if block["type"] == "text")
            messages += answers


async def main(log: str | None, live: bool) -> None:
    async with open_shop(log) as host:
        executor = HostedExecutor()
        agent = host.agent("shop", executor=executor)
        if not live:
            print(await converse(agent, executor, Recording("anthropic_hosted").send))
            return
        from anthropic import AsyncAnthropic

        client = AsyncAnthropic()
        print(await converse(agent, executor, lambda request: client.messages.create(**request)))


if __name__ == "__main__":
    rest = [one for one in sys.argv[1:] if one != "--live"]
    anyio.run(main, rest[0] if rest else None, "--live" in sys.argv[1:])
