"""The seam to whatever keeps the records: `EventStore`, and the plain data that crosses it.

To write another store (a database server, a queue with acknowledgement), keep these promises:

- `append` returns only when the event is durable in the sense that the store documents, and raises
  `LogUnavailableError` when it is not. A rejected append leaves no trace: no gap in `seq`, nothing to read back.
- `seq` counts from 0 without gaps within a session, in the order in which the calls of `append` began (contract I1).
- What was appended is never changed and never removed.
- An append that has begun is finished even when the calling task is cancelled, so that no caller has to guess.
- `append` does not block the event loop's thread for longer than a quick local write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...registry.values import JsonObject, JsonValue
    from .repair import RepairPlan

__all__ = ["EventStore", "RepairingStore", "SearchingStore", "SessionInfo", "StoredEvent"]


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One event of a session as it was committed.

    Attributes:
        session: the session's id.
        seq: its place in the session, from 0.
        type: what happened, for example `tool/call`.
        time_us: when, in microseconds since 1970 UTC, by the wall clock.
        mono_us: the same instant by a clock that only goes forward, in microseconds since an unspecified start. Only
            differences mean anything, and only between events of one boot of one machine.
        data: the payload, lossless JSON; what `append` returns is frozen.
        cites: the `seq` of the event that this one answers.
        hash: the session's chain up to and with this event (see `chain.py`); empty when the store keeps no chain.
    """

    session: str
    seq: int
    type: str
    time_us: int
    mono_us: int
    data: JsonObject
    cites: int | None = None
    hash: bytes = b""

    @property
    def time(self) -> int:
        """When, in milliseconds since 1970 UTC (contract I1)."""
        return self.time_us // 1000

    def ms_since(self, earlier: StoredEvent) -> float:
        """Returns how long after an earlier event it was, in milliseconds with a fraction."""
        # The wall clock may be set meanwhile; the other one tells the truth, unless the machine was restarted.
        elapsed = self.mono_us - earlier.mono_us
        if elapsed < 0:
            elapsed = max(0, self.time_us - earlier.time_us)
        return elapsed / 1000


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One session as the log lists it.

    Attributes:
        id: the session's id.
        agent: the name of its agent.
        opened_us: when it was opened, in microseconds since 1970 UTC.
        labels: what its host says of it, for example `{"executor": "ptc", "sandbox": "wasm"}`.
        events: how many events it has.
        last_us: the time of its last event, or `opened_us` while it has none, in microseconds since 1970 UTC.
        hash: the genesis hash of its chain.
    """

    id: str
    agent: str
    opened_us: int
    labels: Mapping[str, str]
    events: int
    last_us: int
    hash: bytes = b""


class EventStore(Protocol):
    """Keeps sessions and their events. The module's docstring says what an implementation promises."""

    async def open(self) -> None:
        """Makes the store ready; opening it twice changes nothing.

        Raises:
            LogUnavailableError: the store cannot be used.
        """
        ...

    async def close(self) -> None:
        """Finishes what was begun and lets go of all resources; closing it twice changes nothing."""
        ...

    async def open_session(
        self, session: str, *, agent: str, labels: Mapping[str, str] | None = None, resume: bool = False
    ) -> None:
        """Makes a session durable, or takes up an old one.

        Args:
            session: its id, unique in the store.
            agent: the name of its agent.
            labels: what its host says of it; kept as it was first given when the session is resumed.
            resume: whether the session may exist already.

        Raises:
            ValueError: the id is taken and `resume` is false, or the session belongs to another agent.
            LogUnavailableError: the store cannot be written.
        """
        ...

    async def append(self, session: str, type: str, data: JsonObject, *, cites: int | None = None) -> StoredEvent:  # noqa: A002  # the field's name
        """Adds one event to a session, and returns it when it is durable (contract I1, ruling 40).

        Args:
            session: the id of an opened session.
            type: what happened, for example `tool/call`: printable ASCII without spaces, at most 100 characters.
            data: the payload; already frozen lossless JSON, the store keeps no other reference to it.
            cites: the `seq` of an earlier event of the session that this one answers.

        Raises:
            ValueError: there is no such session, or `type` or `cites` is not as described.
            LogUnavailableError: the event could not be made durable, and has not been recorded.
        """
        ...

    async def sessions(self) -> Sequence[SessionInfo]:
        """Returns all sessions, the one with the latest event first.

        Raises:
            LogUnavailableError: the store cannot be read.
        """
        ...

    async def events(self, session: str) -> Sequence[StoredEvent]:
        """Returns a session's events in order; none when there is no such session.

        Raises:
            LogUnavailableError: the store cannot be read.
        """
        ...

    async def members(
        self, session: str, types: Sequence[str], names: Sequence[str]
    ) -> Sequence[tuple[JsonValue, ...]]:
        """Returns the `seq` and some members of the data of a session's events, in order, without the rest of the data.

        A store that has no better way takes them out of what `events` returns.

        Args:
            session: the session's id.
            types: the types of the events.
            names: the names of the members, at least one: letters, digits and underscores.

        Returns:
            for each event of these types its `seq`, then each member, `None` where there is none of that name.

        Raises:
            LogUnavailableError: the store cannot be read.
        """
        ...


@runtime_checkable
class RepairingStore(Protocol):
    """What an `EventStore` has beside the rest if it can repair sessions whose process has ended (contract I13).

    Sessions of a store without it are gone on with as they are: calls without a result stay so.
    """

    async def repair(self, session: str, *, agent: str, plan: RepairPlan, alone: bool = True) -> Sequence[StoredEvent]:
        """Appends what a plan says, at once and with the time of the session's last event.

        Args:
            session: the session's id.
            agent: the name of its agent.
            plan: is shown what the session has begun and not ended, and says what to append. It may be asked again.
            alone: whether that is done only if nobody, this store included, has the session open for writing.
                From then on this store has it open.

        Returns:
            the events, frozen; none when there is nothing to append, when there is no such session, or when somebody
            may be writing it.

        Raises:
            ValueError: the session belongs to another agent.
            LogUnavailableError: the store cannot be read or written; nothing was appended.
        """
        ...


@runtime_checkable
class SearchingStore(Protocol):
    """What an `EventStore` has beside the rest if it finds events by their type without giving all the others."""

    async def first_of_other_types(self, session: str, types: Sequence[str]) -> StoredEvent | None:
        """Returns the first event of a session that is of none of some types and not marked ignorable.

        Args:
            session: the session's id; of one that is not there, there are no events.
            types: the types.

        Raises:
            LogUnavailableError: the store cannot be read.
        """
        ...
