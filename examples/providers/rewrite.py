"""Writes anew what the examples send, into the recordings; the responses stay as they are.

    python examples/providers/rewrite.py

To be run when the examples are meant to send something else, for example because a tool says something else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic_hosted
import anthropic_messages
import anyio
import gemini_contents
import openai_chat_messages
import openai_hosted
import openai_responses_items
import ptc
from provider_recording import Recording
from provider_shop import open_shop
from ptc.runtime.providers import HostedExecutor


async def rewrite(example: Any, hosted: bool) -> None:
    recording = Recording(example.__name__)

    async def send(request: Mapping[str, Any]) -> Any:
        place = len(recording.sent)
        recording.recorded["exchanges"][place]["request"] = recording.varying(json.loads(json.dumps(request)))
        return await recording.send(request)

    async with open_shop() as host:
        if hosted:
            executor = HostedExecutor()
            print(await example.converse(host.agent("shop", executor=executor), executor, send))
        else:
            agent = host.agent("shop", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
            print(await example.converse(agent, send))
    text = json.dumps(recording.recorded, indent=2, ensure_ascii=False)
    recording.path.write_text(text + "\n", encoding="utf-8")


async def main() -> None:
    for example in (anthropic_messages, openai_responses_items, openai_chat_messages, gemini_contents):
        await rewrite(example, hosted=False)
    for example in (anthropic_hosted, openai_hosted):
        await rewrite(example, hosted=True)


if __name__ == "__main__":
    anyio.run(main)
