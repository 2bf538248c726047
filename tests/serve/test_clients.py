"""Which client a request is from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import ptc
import pytest
from ptc.runtime.config import Config
from ptc.runtime.serve.clients import Client, Clients
from ptc.runtime.serve.executors import Executors

pytestmark = pytest.mark.anyio


async def test_first_requests_that_come_together_are_of_one_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(_clients: Clients) -> None:
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(Clients, "_forget_idle", slow)  # as it is when another client is closed first
    told = SimpleNamespace(client_info=SimpleNamespace(name="desk"))
    context: Any = SimpleNamespace(session=SimpleNamespace(client_params=told), request=None, protocol_version="")
    found: list[Client] = []
    async with ptc.Host(log=tmp_path / "ptc.db") as host:
        clients = Clients(host, Config(), Executors(lambda _line: None), alone=False)

        async def ask() -> None:
            found.append(await clients.of(context))

        async with anyio.create_task_group() as requests:
            for _ in range(3):
                requests.start_soon(ask)
        assert [one.name for one in found] == ["desk"] * 3
        assert len({id(one) for one in found}) == 1
        assert list(clients) == found[:1]
        await clients.aclose()
