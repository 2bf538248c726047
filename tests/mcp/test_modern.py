"""Servers of the era without handshake: questions within the answer, changes for whoever listens, cancellation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime import mcp

pytestmark = pytest.mark.anyio


async def test_calls_questions_changes_and_cancellation(servers: Any, tmp_path: Path) -> None:
    asked: list[mcp.ElicitRequest] = []

    async def elicit(request: mcp.ElicitRequest) -> mcp.ElicitAnswer:
        asked.append(request)
        return mcp.ElicitAnswer(action="accept", content={"colour": "red"})

    async with servers.connected(servers.script("modern.py"), elicit=elicit) as use:
        state = use.servers["s"]
        assert (state.version, state.instructions) == ("2026-07-28", "Modern.")
        assert (await use.call("s_point", x=1)).value == {"x": 1, "y": 2}
        assert use.host.tools.get("s_point").annotations.read_only is True
        assert (await use.call("s_picture")).content[0]["type"] == "image"
        assert (await use.call("s_fail")).error.message == "Error executing tool fail: not today"

        assert (await use.call("s_paint")).value == {"result": "painted red"}
        assert [each.name for each in asked[0].calls] == ["s_paint"]
        assert asked[0].schema["properties"]["colour"]["type"] == "string"

        told: list[mcp.McpProgress] = []
        use.servers.on_progress(told.append)
        source = ptc.SignalSource()
        mark = tmp_path / "mark"
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: use.call("s_wait", source.signal, seconds=60, mark=str(mark)))
            await servers.until(lambda: told)
            source.abort()
        await servers.until(lambda: mark.exists())
        assert (told[0].progress, told[0].total, told[0].message) == (1, 2, "waiting")

        assert (await use.call("s_grow")).value == {"result": "grown"}
        await servers.until(lambda: use.host.tools.get("s_grown") is not None)


async def test_without_a_user_a_question_fails_the_call(servers: Any) -> None:
    async with servers.connected(servers.script("modern.py")) as use:
        failed = await use.call("s_paint")
        assert failed.is_error
        assert "elicitation" in failed.error.message.lower()
