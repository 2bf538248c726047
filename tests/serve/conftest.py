"""A server in the test's own process, spoken to by the official client in either era of the protocol."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import ptc
import pytest
from mcp import Client
from ptc.runtime.config import Config
from ptc.runtime.serve.executors import Executors
from ptc.runtime.serve.service import Service


@dataclass
class Stage:
    """A host that is served.

    Attributes:
        host: the host.
        service: what serves it.
        log: its log.
    """

    host: ptc.Host
    service: Service
    log: Path


Serving = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture(params=["legacy", "auto"])
def era(request: pytest.FixtureRequest) -> str:
    """The official client's mode: the handshake of 2025, or requests that stand for themselves."""
    return request.param


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    """Serves a host with some tools for the time of a block, and checks that nothing goes on after it."""

    @asynccontextmanager
    async def serving(
        *tools: ptc.ToolDefinition, config: Config | None = None, alone: bool = True
    ) -> AsyncIterator[Stage]:
        config = Config() if config is None else config
        log = tmp_path / "served.db"
        async with ptc.Host(log=log, approval_timeout_ms=config.approvals.timeout_ms) as host:
            for one in tools:
                host.tools.register(one)
            with anyio.fail_after(60):
                async with anyio.create_task_group() as calls, anyio.create_task_group() as beside:
                    service = Service(host, config, Executors(lambda _line: None), calls, alone=alone)
                    beside.start_soon(service.follow_changes)
                    service.ready.set()
                    yield Stage(host, service, log)
                    await service.drain()
                    beside.cancel_scope.cancel()

    return serving


async def run_code(client: Client, code: str, description: str = "Try it", **options: object):
    """Calls `run_code` as a model would have it called."""
    return await client.call_tool("run_code", {"code": code, "description": description}, **options)  # type: ignore[arg-type]


def audit(*options: object) -> str:
    """Returns what `ptc audit` prints."""
    command = [sys.executable, "-m", "ptc.runtime.cli", "audit", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
