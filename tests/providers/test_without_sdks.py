"""The adapters are plain data: they load no SDK, and they answer calls out of a record as well as out of a batch."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import ptc
import pytest
from ptc.runtime.providers import anthropic, gemini, openai_chat, openai_responses


def test_no_sdk_is_loaded() -> None:
    code = (
        "import sys, ptc.runtime.providers\n"
        "print([name for name in ('anthropic', 'openai', 'google.genai', 'httpx', 'httpx2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


RESPONSES: dict[str, Any] = {
    "anthropic": {"content": [{"type": "tool_use", "id": "c1", "name": "ship", "input": {}}]},
    "openai_responses": {"output": [{"type": "function_call", "call_id": "c1", "name": "ship", "arguments": "{}"}]},
    "openai_chat": {"choices": [{"message": {"tool_calls": [{"id": "c1", "function": {"name": "ship"}}]}}]},
    "gemini": {"candidates": [{"content": {"parts": [{"functionCall": {"id": "c1", "name": "ship"}}]}}]},
}
ADAPTERS: dict[str, Any] = {
    "anthropic": anthropic,
    "openai_responses": openai_responses,
    "openai_chat": openai_chat,
    "gemini": gemini,
}


@pytest.mark.anyio
@pytest.mark.contract("I13")
@pytest.mark.parametrize("name", sorted(ADAPTERS))
async def test_calls_of_a_process_that_ended_are_answered_out_of_the_record(
    anyio_backend: str, tmp_path: Path, name: str
) -> None:
    adapter, response = ADAPTERS[name], RESPONSES[name]
    async with ptc.Host(log=tmp_path / "ptc.db") as host:
        agent = host.agent("tester")
        recovered = await agent.recover(adapter.calls(response))
    (answer,) = adapter.results(response, recovered)
    assert "c1" in str(answer)
    assert "did not run" in str(answer)
    if name == "anthropic":
        assert answer["content"][0]["is_error"] is True
    with pytest.raises(ValueError, match="has no result yet"):
        adapter.results(response, [_open(recovered[0])])


def _open(recorded: Any) -> Any:
    return dataclasses.replace(recorded, content=None, is_error=None)
