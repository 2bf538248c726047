"""A conversation over OpenAI's Chat Completions in which the model writes programs; other servers speak it as well.

python examples/providers/openai_chat_messages.py             replays a recorded conversation
python examples/providers/openai_chat_messages.py --live      asks the API; needs OPENAI_API_KEY and its SDK
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import ptc
from provider_recording import Recording
from provider_shop import QUESTION, open_shop
from ptc.runtime.providers import openai_chat

MODEL = "gpt-5.6-terra"


async def converse(agent: ptc.Agent, send: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> str:
    description = agent.describe()
    messages: list[Any] = [*openai_chat.system(description), {"role": "user", "content": QUESTION}]
    while True:
        completion = await send({"model": MODEL, "tools": openai_chat.tools(description), "messages": messages})
        messages += openai_chat.reply(completion)
        calls = openai_chat.calls(completion)
        if not calls:
            return messages[-1]["content"]
        batch = await agent.execute(calls)
        messages += openai_chat.results(completion, batch)


async def main(live: bool) -> None:
    async with open_shop() as host:
        agent = host.agent("shop", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
        if not live:
            print(await converse(agent, Recording("openai_chat_messages").send))
            return
        from openai import AsyncOpenAI

        client = AsyncOpenAI()
        print(await converse(agent, lambda request: client.chat.completions.create(**request)))


if __name__ == "__main__":
    anyio.run(main, "--live" in sys.argv[1:])
