"""One agent's session: events go into the store first, and observers hear of them afterwards."""

from __future__ import annotations

import inspect
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio

from ...registry.lossless import materialise
from .store import EventStore, StoredEvent

if TYPE_CHECKING:
    from ...registry.values import JsonObject

__all__ = ["EventObserver", "Session", "new_session_id"]

EventObserver: TypeAlias = Callable[[StoredEvent], Any]
"""Hears of a committed event. Synchronous and quick; what it raises is logged and goes no further (contract I2)."""

_logger = logging.getLogger(__name__)


def new_session_id() -> str:
    """Returns a new session id, for example `20261129T101530-4f2a9c01d7`: the time in UTC, then 40 random bits.

    Ids sort by the time at which they were made.
    """
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(5)}"


class Session:
    """The log of one agent; what the registry knows as a `SessionLog` (contract I1, I2).

    The session comes into the store with its first event, so an agent that does nothing leaves nothing.

    Args:
        store: an opened store.
        agent: the agent's name.
        id: the session to go on with if the store has it, or to make under this id; a new id when omitted.
        labels: what an auditor should know of the whole session, for example `{"sandbox": "wasm"}`.

    Attributes:
        id: the session's id, unique in the store.
        agent: the agent's name.
    """

    def __init__(
        self,
        store: EventStore,
        *,
        agent: str,
        id: str | None = None,  # noqa: A002  # the attribute's name
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self.id: Final = new_session_id() if id is None else id
        self.agent: Final = agent
        self._store = store
        self._labels = dict(labels or {})
        self._resume = id is not None
        self._in_store = False
        self._opening = anyio.Lock()
        self._observers: dict[object, EventObserver] = {}

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self.agent!r}>"

    def observe(self, observer: EventObserver) -> Callable[[], None]:
        """Has `observer` called with each event from now on, after its commit; returns the way to stop that."""
        key = object()
        self._observers[key] = observer

        def stop() -> None:
            self._observers.pop(key, None)

        return stop

    async def append(self, type: str, data: JsonObject, *, cites: int | None = None) -> int:  # noqa: A002  # the field's name
        """Adds one event, and returns its `seq` when it is durable (contract I1, ruling 40).

        A rejected append changes nothing and is not observed. One that has begun is finished even when the calling
        task is cancelled.

        Args:
            type: what happened, for example `tool/call`.
            data: the payload, a JSON object. A frozen copy of it is taken, so the caller's own may change afterwards.
            cites: the `seq` of the earlier event that this one answers.

        Raises:
            LosslessError: `data` is not lossless JSON. It is a `ValueError`.
            TypeError: `data` is not an object.
            ValueError: `type` or `cites` is not what the store takes.
            LogUnavailableError: the event could not be made durable.
        """
        payload = materialise(data, root="data")
        if not isinstance(payload, dict):
            raise TypeError(f"the data of a {type} event must be a JSON object, not {_kind(payload)}")
        if not self._in_store or self._opening.locked():
            await self._enter_store()
        event = await self._store.append(self.id, type, payload, cites=cites)
        if self._observers:
            self._tell(event)
        return event.seq

    async def left_off(self) -> tuple[set[str], int]:
        """Returns where a session that goes on has left off: the ids of its root calls, and its last turn.

        A new session has none, and the turn 0.

        Raises:
            LogUnavailableError: the store cannot be read.
        """
        if not self._resume:
            return set(), 0
        calls = [event.data for event in await self.events() if event.type == "tool/call"]
        turns = [turn for call in calls if isinstance(turn := call.get("turn"), int)]
        return {str(call["callId"]) for call in calls if "callId" in call}, max(turns, default=0)

    async def events(self) -> Sequence[StoredEvent]:
        """Returns what the session has so far, in order; nothing for one that has not come into the store.

        Raises:
            LogUnavailableError: the store cannot be read.
        """
        return await self._store.events(self.id)

    async def _enter_store(self) -> None:
        # Whoever came while the first one waited keeps its place, also before those who find the session opened.
        with anyio.CancelScope(shield=True):
            async with self._opening:
                await self._open_once()

    async def _open_once(self) -> None:
        if not self._in_store:
            await self._store.open_session(self.id, agent=self.agent, labels=self._labels, resume=self._resume)
            self._in_store = True

    def _tell(self, event: StoredEvent) -> None:
        for observer in tuple(self._observers.values()):
            try:
                answer = observer(event)
            except Exception:
                _logger.exception("an observer of session %s failed at event %d (%s)", self.id, event.seq, event.type)
            else:
                if inspect.iscoroutine(answer):
                    answer.close()
                    _logger.warning(
                        "an observer of session %s is async and was not run; observers are plain functions", self.id
                    )


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
