"""One agent's session: events go into the store first, and observers hear of them afterwards."""

from __future__ import annotations

import inspect
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import anyio.to_thread

from ...registry.lossless import materialise
from .filters import RecordFilters, is_long
from .repair import LateRecord, answers_of_open_calls, not_started
from .store import EventStore, RepairingStore, SearchingStore, StoredEvent

if TYPE_CHECKING:
    from ...registry.values import JsonObject
    from .filters import RecordFilter
    from .repair import RepairPlan, Tail
    from .replay import RecordedCall

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
        filters: what events pass beside the filters of this session, for example those of its host.

    Attributes:
        id: the session's id, unique in the store.
        agent: the agent's name.
        filters: what every event passes before it is recorded; nothing comes into the store around them.
    """

    def __init__(
        self,
        store: EventStore,
        *,
        agent: str,
        id: str | None = None,  # noqa: A002  # the attribute's name
        labels: Mapping[str, str] | None = None,
        filters: RecordFilters | None = None,
    ) -> None:
        self.id: Final = new_session_id() if id is None else id
        self.agent: Final = agent
        self._store = store
        self._labels = dict(labels or {})
        self._resume = id is not None
        self._in_store = False
        self._repaired = False
        self._opening = anyio.Lock()
        self.filters: Final = RecordFilters(filters)
        self._filtering = anyio.Lock()
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
            type: what happened, for example `tool/call`. An event of a type of your own is marked `"ignorable": true`
                in its data; otherwise nobody can read the session or go on with it (contract I15).
            data: the payload, a JSON object. A frozen copy of it is taken, so the caller's own may change afterwards.
            cites: the `seq` of the earlier event that this one answers.

        Raises:
            LosslessError: `data` is not lossless JSON. It is a `ValueError`.
            TypeError: `data` is not an object.
            ValueError: `type` or `cites` is not what the store takes.
            UnknownEventError: the session goes on, and has an event of a type that this version does not know (I15).
            LogUnavailableError: the event could not be made durable.
            Exception: whatever a filter raised; the event is not recorded.
        """
        payload = _payload(type, data)
        filters = tuple(self.filters)
        if filters:
            payload = await self._filtered(type, payload, filters)
        if not self._in_store or self._opening.locked():
            await self._enter_store()
        event = await self._store.append(self.id, type, payload, cites=cites)
        if self._observers:
            self._tell(event)
        return event.seq

    async def repair(self) -> None:
        """Answers the calls that the process which had the session before has left without a result (contract I13).

        The first event of a session that goes on does so by itself. Once is enough, and nothing happens when no call
        is open, or when somebody else has the session open: what looks interrupted may still be running.

        Raises:
            UnknownEventError: the session has an event of a type that this version does not know (contract I15).
            ValueError: the session belongs to another agent.
            LogUnavailableError: the store cannot be read or written.
        """
        if self._resume and not self._repaired:
            with anyio.CancelScope(shield=True):
                async with self._opening:
                    await self._repair_once()

    async def record_not_started(self, turn: int, step: int, calls: Sequence[tuple[str, str, str]]) -> None:
        """Records calls that the model has made and that never started, as pairs with `TOOL_NOT_STARTED` (I13).

        Args:
            turn: the turn that they were made in.
            step: the step.
            calls: the id, the tool's name and the arguments' text of each.

        Raises:
            LogUnavailableError: the store cannot be written.
        """

        def plan(tail: Tail) -> Sequence[LateRecord]:
            return not_started(turn, step, calls, tail.next_seq)

        if not self._in_store:
            await self._enter_store()
        if isinstance(self._store, RepairingStore):
            await self._append_late(self._store, plan, alone=False)
            return
        records = not_started(turn, step, calls, 0)
        for called, ended in zip(records[::2], records[1::2], strict=True):
            seq = await self.append(called.type, called.data)
            await self.append(ended.type, ended.data, cites=seq)

    async def replay(self) -> Sequence[RecordedCall]:
        """Returns the model's calls so far with what the model was told of them, in the model's order (I4, I10).

        A host that goes on with a conversation has its messages from here. It reads the whole session.

        Raises:
            UnknownEventError: an event has a type that this version does not know (contract I15).
            LogUnavailableError: the store cannot be read, or an event is not what its type says.
        """
        from .replay import replay_calls  # it needs pydantic, which takes its time to load

        await self.repair()
        return replay_calls(await self.events())

    async def left_off(self) -> tuple[set[str], int]:
        """Returns where a session that goes on has left off: the ids of its root calls, and its last turn.

        A new session has none, and the turn 0.

        Raises:
            LogUnavailableError: the store cannot be read.
        """
        if not self._resume:
            return set(), 0
        calls = await self._store.members(self.id, ["tool/call"], ["callId", "turn"])
        turns = [turn for _seq, _call_id, turn in calls if isinstance(turn, int)]
        return {str(call_id) for _seq, call_id, _turn in calls if call_id is not None}, max(turns, default=0)

    async def events(self) -> Sequence[StoredEvent]:
        """Returns what the session has so far, in order; nothing for one that has not come into the store.

        Raises:
            LogUnavailableError: the store cannot be read.
        """
        return await self._store.events(self.id)

    async def _filtered(self, type_: str, data: JsonObject, filters: Sequence[RecordFilter]) -> JsonObject:
        """Has an event pass the filters; a long one does so in a thread, and later ones then wait for their turn."""

        def run() -> JsonObject:
            filtered = data
            for record_filter in filters:
                filtered = record_filter(self.id, type_, filtered)
            return data if filtered is data else _payload(type_, filtered)

        long = is_long(data)
        if not long and not self._filtering.locked():
            return run()
        with anyio.CancelScope(shield=True):
            async with self._filtering:
                # A limiter of its own: tools that run in threads must not be able to keep the log from getting one.
                return await anyio.to_thread.run_sync(run, limiter=anyio.CapacityLimiter(1)) if long else run()
        raise AssertionError("nobody cancels this scope")  # it could be left without a value only then

    async def _enter_store(self) -> None:
        # Whoever came while the first one waited keeps its place, also before those who find the session opened.
        with anyio.CancelScope(shield=True):
            async with self._opening:
                await self._open_once()

    async def _open_once(self) -> None:
        if not self._in_store:
            await self._repair_once()
            await self._store.open_session(self.id, agent=self.agent, labels=self._labels, resume=self._resume)
            self._in_store = True

    async def _repair_once(self) -> None:
        if self._resume and not self._repaired:
            await self._refuse_unknown()
            if isinstance(self._store, RepairingStore):
                await self._append_late(self._store, answers_of_open_calls, alone=True)
        self._repaired = True

    async def _refuse_unknown(self) -> None:
        """Refuses to go on with a session of which this version does not know all events (contract I15)."""
        from .events import EVENT_TYPES, read_event  # it needs pydantic, which takes its time to load

        store = self._store
        if isinstance(store, SearchingStore):
            found = await store.first_of_other_types(self.id, EVENT_TYPES)
        else:
            events = await store.events(self.id)
            others = (one for one in events if one.type not in EVENT_TYPES and one.data.get("ignorable") is not True)
            found = next(others, None)
        if found is not None:
            read_event(found)

    async def _append_late(self, store: RepairingStore, plan: RepairPlan, *, alone: bool) -> None:
        filters = tuple(self.filters)

        def filtered(tail: Tail) -> Sequence[LateRecord]:
            records: list[LateRecord] = []
            for record in plan(tail):
                data = _payload(record.type, record.data)
                for record_filter in filters:
                    data = record_filter(self.id, record.type, data)
                records.append(record._replace(data=_payload(record.type, data)))
            return records

        for event in await store.repair(self.id, agent=self.agent, plan=filtered, alone=alone):
            self._tell(event)

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


def _payload(type_: str, data: object) -> JsonObject:
    """Returns the data of an event, detached and frozen."""
    payload = materialise(data, root="data")
    if not isinstance(payload, dict):
        raise TypeError(f"the data of a {type_} event must be a JSON object, not {_kind(payload)}")
    return payload


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
