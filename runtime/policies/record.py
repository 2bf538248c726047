"""The session log as policies use it: writing that nothing breaks off, and the last event of a type (contract I12)."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from ...registry.scopes import IdentityMap
from ..log import LogUnavailableError, StoredEvent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from ...registry import JsonObject
    from ..agent import Agent

__all__ = ["StandingEvents", "log_needed", "run_whole"]

_LOGGER: Final = logging.getLogger("ptc.runtime")


async def run_whole(body: Callable[[], Awaitable[None]]) -> None:
    """Runs `body` to its end in a task of its own, whoever is cancelled meanwhile, so that nobody has to guess.

    A cancellation goes on once the body has ended; what the body raised is then logged.

    Raises:
        Exception: whatever the body raised.
    """
    failed: list[Exception] = []

    async def run() -> None:
        try:
            with anyio.CancelScope(shield=True):
                await body()
        except Exception as error:  # noqa: BLE001 - carried out of the group, which would wrap it
            failed.append(error)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
        await checkpoint_if_cancelled()  # trio does not say so when everything inside was shielded
    except anyio.get_cancelled_exc_class():
        for error in failed:
            _LOGGER.exception("a record failed whose writer was cancelled", exc_info=error)
        raise
    if failed:
        raise failed[0]


@contextmanager
def log_needed(consequence: str) -> Iterator[None]:
    """Has whatever goes wrong inside come out as `consequence`: a model reads it, and the rest is the host's business.

    Raises:
        LogUnavailableError: something went wrong; it is the cause.
    """
    try:
        yield
    except Exception as error:
        raise LogUnavailableError(consequence, reason="failed") from error


class _Standing:
    """What is known of one agent."""

    __slots__ = ("events", "loaded", "lock", "types")

    def __init__(self, types: frozenset[str]) -> None:
        self.types = types
        self.events: dict[str, StoredEvent] = {}
        self.loaded = False
        self.lock = anyio.Lock()

    def note(self, event: StoredEvent) -> None:
        known = self.events.get(event.type)
        if event.type in self.types and (known is None or event.seq > known.seq):
            self.events[event.type] = event


class StandingEvents:
    """The last event of some types in the session of each agent: read once, then followed.

    A session that goes on has what it had. An agent without a session has its events in memory alone.

    Args:
        types: the types of the events.
    """

    def __init__(self, *types: str) -> None:
        self._types = frozenset(types)
        self._agents: IdentityMap[_Standing] = IdentityMap()

    def lock(self, agent: Agent) -> anyio.Lock:
        """Returns the agent's lock, for those who look and then append."""
        return self._of(agent).lock

    async def load(self, agent: Agent) -> None:
        """Reads the agent's session, if that has not been done.

        Raises:
            LogUnavailableError: it cannot be read.
        """
        standing = self._of(agent)
        if not standing.loaded and agent.session is not None:
            for event in await agent.session.events():
                standing.note(event)
        standing.loaded = True

    def last(self, agent: Agent, type_: str) -> JsonObject | None:
        """Returns the data of the last event of a type, as far as loaded; `None` when there is none."""
        event = self._of(agent).events.get(type_)
        return None if event is None else event.data

    async def append(self, agent: Agent, type_: str, data: JsonObject) -> None:
        """Makes this the agent's last event of its type, in the session if there is one.

        Raises:
            Exception: whatever the session raised; nothing has changed.
        """
        if agent.session is not None:
            await agent.session.append(type_, data)  # and noted, since the session is observed
            return
        standing = self._of(agent)
        known = standing.events.get(type_)
        seq = 0 if known is None else known.seq + 1
        standing.note(StoredEvent(session="", seq=seq, type=type_, time_us=0, mono_us=0, data=data))

    def _of(self, agent: Agent) -> _Standing:
        standing = self._agents.get(agent)
        if standing is None:
            standing = _Standing(self._types)
            self._agents.set(agent, standing)
            if agent.session is not None:
                agent.session.observe(standing.note)  # what others append to the session counts as well
        return standing
