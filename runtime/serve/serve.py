"""From a configuration to a server that runs: the host, its tools, one transport, and the end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from ...registry.pipeline.outcome import unwrap
from ...sandbox.seam import SandboxUnavailableError
from ..host import Host
from ..policies.spill import SpillPolicy
from ..spill_store import LocalSpillStore
from ..tools_file import load_tools
from .executors import Executors
from .service import Service
from .standard import serve_standard_streams

if TYPE_CHECKING:
    from ..config import Config
    from .http import Listening

__all__ = ["log_path", "serve"]

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


def log_path(config: Config) -> Path:
    """Returns where the audit log goes: as configured, and else where the user's data is."""
    if config.log.path is not None:
        return config.log.path
    from platformdirs import user_data_path

    return user_data_path("ptc", appauthor=False, ensure_exists=True) / "ptc.db"


async def serve(
    config: Config, say: Callable[[str], None], listening: Listening | None = None
) -> signal.Signals | None:
    """Serves until the client has gone, or a signal comes; then programs are stopped and awaited.

    Args:
        config: what is offered, to whom, and how.
        say: tells the person who has started the server something, in lines.
        listening: where HTTP clients come in; standard input and output when `None`.

    Returns:
        the signal that ended it, if it was one.

    Raises:
        LogUnavailableError: the log cannot be written.
        ToolRegistrationError: two tools have one name.
        ToolsFileError: a module of tools cannot be loaded.
        SandboxUnavailableError: this machine does not have the configured sandbox.
        ValueError: a limit of the sandbox is out of its range.
        OSError: the client cannot be written to, for another reason than that it has gone.
    """
    definitions = [one for module in config.modules for one in load_tools(module.source, module.settings)]
    path = log_path(config)
    host = Host(log=path, durability=config.log.durability, approval_timeout_ms=config.approvals.timeout_ms)
    for definition in definitions:
        host.tools.register(definition)
    if config.log.spill is not None:
        SpillPolicy.install(host, max_inline_bytes=config.log.spill_bytes, store=LocalSpillStore(config.log.spill))
    run = _Run(config, host, say, listening)
    run.executors.of(config.sandbox)
    try:
        async with host:
            say(f"calls are recorded in {path}")
            await run.whole()
    except ExceptionGroup as error:
        raise unwrap(error) from None
    return run.ended_by


class _Run:
    """One server from its start to its end."""

    def __init__(self, config: Config, host: Host, say: Callable[[str], None], listening: Listening | None) -> None:
        self.ended_by: signal.Signals | None = None
        self._config = config
        self._host = host
        self._say = say
        self._listening = listening
        self.executors = Executors(lambda line: say(f"{line} ..."))
        self._transport = anyio.CancelScope()
        self._connecting = anyio.CancelScope()
        self._closing = anyio.Event()

    async def whole(self) -> None:
        """Serves. The servers go after the programs, which may wait for their answers until they have ended."""
        async with anyio.create_task_group() as servers, anyio.create_task_group() as calls:
            service = Service(self._host, self._config, self.executors, calls, alone=self._listening is None)
            servers.start_soon(self._offer, service)
            async with anyio.create_task_group() as beside:
                beside.start_soon(self._stop_on_signals, service, servers.cancel_scope)
                beside.start_soon(self._prepare)
                beside.start_soon(service.follow_changes)
                with self._transport:
                    await self._converse(service)
                beside.cancel_scope.cancel()
            await service.drain()
            self._closing.set()
            if not service.ready.is_set():
                self._connecting.cancel()

    async def _converse(self, service: Service) -> None:
        if self._listening is not None:
            await self._listening.serve(service.server, self._say)
        else:
            await serve_standard_streams(service.server)

    async def _offer(self, service: Service) -> None:
        """Has the tools of the MCP servers there until the end."""
        if not self._config.servers:
            service.ready.set()
            return
        from ..mcp import connect

        with self._connecting:
            async with connect(self._host.tools, self._config.servers, elicit=service.elicit) as servers:
                servers.on_progress(service.on_progress)
                service.ready.set()
                await self._closing.wait()

    async def _prepare(self) -> None:
        """Makes the sandbox ready while the client says hello."""
        try:
            await self.executors.prepare(self._config.sandbox)
        except SandboxUnavailableError as error:
            self._say(f"programs cannot be run: {error}")

    async def _stop_on_signals(self, service: Service, everything: anyio.CancelScope) -> None:
        """Ends the server when it is told to: programs first, so that their clients still hear of it."""
        with anyio.open_signal_receiver(*_STOPPING) as signals:
            async with anyio.create_task_group() as ending:
                async for number in signals:
                    if self.ended_by is not None:
                        everything.cancel()  # told twice: bodies are interrupted, and still awaited
                    self.ended_by = number
                    ending.start_soon(self._end, service)

    async def _end(self, service: Service) -> None:
        await service.drain()
        await service.answered()
        self._transport.cancel()
