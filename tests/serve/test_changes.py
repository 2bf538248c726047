"""Clients hear of it when their tools are not any more what they were told."""

from __future__ import annotations

from typing import Any

import anyio
import ptc
import pytest
from mcp import Client
from mcp_types import ToolListChangedNotification
from ptc.runtime.config import Config, ScopeConfig

from .conftest import Serving

pytestmark = pytest.mark.anyio


@ptc.tool
async def old() -> None:
    """Be there from the start."""


@ptc.tool
async def new() -> None:
    """Come later."""


@ptc.tool
async def hidden() -> None:
    """Be seen by nobody."""


class News:
    """Counts what a client of the handshake era is told of its tools."""

    def __init__(self) -> None:
        self.heard = 0
        self._more = anyio.Event()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.heard += 1
            self._more.set()

    async def more(self) -> None:
        with anyio.fail_after(20):
            await self._more.wait()
        self._more = anyio.Event()


async def test_a_client_of_the_handshake_era_is_notified(serving: Serving) -> None:
    news = News()
    config = Config(clients={"*": ScopeConfig(deny=("hidden",))})
    async with (
        serving(old, config=config) as stage,
        Client(stage.service.server, mode="legacy", message_handler=news) as client,
    ):
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed
        before = (await client.list_tools()).tools[0].description
        stage.host.tools.register(hidden)
        await anyio.sleep(0.3)
        unheard = news.heard
        comes = stage.host.tools.register(new)
        await news.more()
        after = (await client.list_tools()).tools[0].description
        comes()
        await news.more()
        last = (await client.list_tools()).tools[0].description

    assert unheard == 0
    assert "Come later." not in (before or "")
    assert "Come later." in (after or "")
    assert "Be seen" not in (after or "")
    assert last == before
    assert news.heard == 2


async def test_many_changes_at_once_are_told_once(serving: Serving) -> None:
    news = News()
    async with serving(old) as stage, Client(stage.service.server, mode="legacy", message_handler=news) as client:
        await client.list_tools()
        for number in range(50):
            stage.host.tools.register(
                ptc.define_tool(
                    name=f"tool_{number}",
                    description="One of many.",
                    parameters={},
                    output={"type": "string"},
                    execute=_nothing,
                )
            )
        await news.more()
        await anyio.sleep(0.3)

    assert news.heard == 1


async def _nothing(_arguments: object, _run: ptc.ToolRunContext) -> str:
    return ""


async def test_a_client_of_the_later_era_hears_of_it_where_it_listens(serving: Serving) -> None:
    async with serving(old) as stage, Client(stage.service.server, mode="auto") as client:
        await client.list_tools()
        async with client.listen(tools_list_changed=True) as news:
            stage.host.tools.register(new)
            with anyio.fail_after(20):
                async for event in news:
                    assert type(event).__name__ == "ToolsListChanged"
                    break
        after = (await client.list_tools(cache_mode="bypass")).tools[0].description

    assert "Come later." in (after or "")
