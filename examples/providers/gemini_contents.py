"""A conversation over Gemini's API in which the model writes programs.

python examples/providers/gemini_contents.py             replays a recorded conversation
python examples/providers/gemini_contents.py --live      asks the API; needs GEMINI_API_KEY and `google-genai`
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
import ptc
from provider_recording import Recording
from provider_shop import QUESTION, open_shop
from ptc.runtime.providers import gemini

if TYPE_CHECKING:
    from google.genai import Client

MODEL = "gemini-3.8-flash"


async def converse(agent: ptc.Agent, send: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> str:
    description = agent.describe()
    contents: list[Any] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    while True:
        response = await send(
            {
                "systemInstruction": gemini.system(description),
                "tools": gemini.tools(description),
                "contents": contents,
            }
        )
        contents += gemini.reply(response)
        calls = gemini.calls(response)
        if not calls:
            return "".join(part["text"] for part in contents[-1]["parts"] if not part.get("thought"))
        batch = await agent.execute(calls)
        contents += gemini.results(response, batch)


def over(client: Client) -> Callable[[Mapping[str, Any]], Awaitable[Any]]:
    """Returns what sends a request with the SDK, which takes its parts by other names."""

    async def send(request: Mapping[str, Any]) -> Any:
        config: Any = {"system_instruction": request["systemInstruction"], "tools": request["tools"]}
        return await client.aio.models.generate_content(model=MODEL, contents=request["contents"], config=config)

    return send


async def main(live: bool) -> None:
    async with open_shop() as host:
        agent = host.agent("shop", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
        if not live:
            print(await converse(agent, Recording("gemini_contents").send))
            return
        from google.genai import Client

        print(await converse(agent, over(Client())))


if __name__ == "__main__":
    anyio.run(main, "--live" in sys.argv[1:])
