"""Reads a log file without writing to it, while others append to it or after they have died."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

from ...registry.lossless import from_json_text, to_json_text
from .database import SEQ_BITS, connect_reader, explained
from .errors import LogUnavailableError
from .snapshot import file_state, resting_state
from .store import SessionInfo, StoredEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from ...registry.values import JsonObject, JsonValue

__all__ = ["SqliteLogReader"]

_SESSIONS: Final = """
SELECT s.id, s.agent, s.opened_us, s.labels, s.hash, last.id, last.time_us
FROM sessions s LEFT JOIN events last
    ON last.id = (SELECT max(id) FROM events WHERE id >= s.key << 32 AND id < (s.key + 1) << 32)
ORDER BY coalesce(last.time_us, s.opened_us) DESC, s.key DESC
"""

_OF_SESSION: Final = "FROM sessions s JOIN events e ON e.id >= s.key << 32 AND e.id < (s.key + 1) << 32 WHERE s.id = ?1"

_EVENTS: Final = f"""
SELECT e.id, e.type, e.time_us, e.mono_us, e.cites, e.hash, e.data
{_OF_SESSION} AND e.id >= (s.key << 32) + ?2 AND e.id <= (s.key << 32) + ?3 ORDER BY e.id
"""

_LATEST_CALLS: Final = f"""
SELECT e.time_us {_OF_SESSION} AND e.type = 'tool/call' AND instr(e.data, '"callId":""') = 0 ORDER BY e.id DESC LIMIT ?2
"""

_LAST_SEQ: Final = (1 << SEQ_BITS) - 1


class SqliteLogReader:
    """A log file, open for reading. Its methods block; it belongs to the thread that made it.

    Args:
        path: the file.

    Raises:
        LogUnavailableError: the file is not there, or is no log that this version reads.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = Path(path).absolute()
        self._seen: tuple[int, int] | None = None
        self._connection = self._connect()

    def close(self) -> None:
        """Closes the file; closing it twice changes nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def sessions(self) -> Sequence[SessionInfo]:
        """Returns all sessions, the one with the latest event first.

        Raises:
            LogUnavailableError: the file cannot be read.
        """
        return [
            SessionInfo(
                id=session,
                agent=agent,
                opened_us=opened_us,
                labels=cast("Mapping[str, str]", self._object(labels, f"the labels of session {session}")),
                events=0 if last is None else (last & _LAST_SEQ) + 1,
                last_us=opened_us if last is None else last_us,
                hash=digest,
            )
            for session, agent, opened_us, labels, digest, last, last_us in self._rows(_SESSIONS)
        ]

    def events(self, session: str, *, first: int = 0, last: int | None = None) -> Sequence[StoredEvent]:
        """Returns a session's events in order; none when there is no such session.

        Args:
            session: the session's id.
            first: the `seq` of the first event to return.
            last: that of the last one; up to the end when `None`.

        Raises:
            LogUnavailableError: the file cannot be read, or a record in it is not what was written.
        """
        bounds = first, _LAST_SEQ if last is None else last
        return self._stored(session, self._rows(_EVENTS, session, *bounds))

    def _stored(self, session: str, rows: Iterable[tuple[Any, ...]]) -> list[StoredEvent]:
        found: list[StoredEvent] = []
        for packed, kind, time_us, mono_us, cites, digest, text in rows:
            seq = packed & _LAST_SEQ
            data = self._object(text, f"event {seq} of session {session}")
            found.append(StoredEvent(session, seq, kind, time_us, mono_us, data, cites, digest))
        return found

    def events_of(self, session: str, types: Sequence[str]) -> Sequence[StoredEvent]:
        """Returns a session's events of some types, in order.

        Args:
            session: the session's id.
            types: the types.

        Raises:
            LogUnavailableError: the file cannot be read, or a record in it is not what was written.
        """
        return self._picked(session, f"e.type IN ({', '.join('?' for _ in types)})", *types)

    def answers(self, session: str, types: Sequence[str], asked: Iterable[int], *, after: int) -> Sequence[StoredEvent]:
        """Returns a session's events of some types that cite one of some others, in order.

        Args:
            session: the session's id.
            types: the types of the events that cite.
            asked: the `seq` of those that they may cite.
            after: the `seq` behind which they stand.

        Raises:
            LogUnavailableError: the file cannot be read, or a record in it is not what was written.
        """
        return self._behind(session, types, "e.cites", [*asked], after)

    def naming(
        self, session: str, types: Sequence[str], member: str, calls: Iterable[str], *, after: int
    ) -> Sequence[StoredEvent]:
        """Returns a session's events of some types that have one of some ids in a member of their data, in order.

        Args:
            session: the session's id.
            types: the types.
            member: the name of the member: letters alone.
            calls: the ids.
            after: the `seq` behind which the events stand.

        Raises:
            LogUnavailableError: the file cannot be read, or a record in it is not what was written.
        """
        return self._behind(session, types, f"json_extract(e.data, '$.{member}')", [*calls], after)

    def _behind(
        self, session: str, types: Sequence[str], what: str, values: list[JsonValue], after: int
    ) -> list[StoredEvent]:
        marks = ", ".join("?" for _ in types)
        # The type is looked at first: the text of other events need not even be JSON.
        condition = (
            f"e.id > (s.key << 32) + ? AND CASE WHEN e.type IN ({marks}) "  # noqa: S608 - of our own words
            f"THEN {what} IN (SELECT value FROM json_each(?)) ELSE 0 END"
        )
        return self._picked(session, condition, after, *types, to_json_text(values))

    def _picked(self, session: str, condition: str, *parameters: object) -> list[StoredEvent]:
        query = _EVENTS.partition(" AND e.id >=")[0] + f" AND {condition} ORDER BY e.id"
        try:
            rows = self._rows(query.replace("?1", "?"), session, *parameters)
        except LogUnavailableError:
            self.events(session)  # names the record, if one of them is to blame
            raise
        return self._stored(session, rows)

    def members(self, session: str, types: Sequence[str], names: Sequence[str]) -> Sequence[tuple[JsonValue, ...]]:
        """Returns the `seq` and some members of the data of a session's events of some types; see `EventStore.members`.

        The rest of the data is not taken out of the file, so that this is quick where `events` is not.

        Args:
            session: the session's id.
            types: the types of the events.
            names: the names of the members: letters, digits and underscores, at least one.

        Raises:
            LogUnavailableError: the file cannot be read, or a record in it is not what was written.
        """
        paths = ["$.seq", *(f"$.{name}" for name in names)]  # two at least, since one alone is not returned as an array
        marks = ", ".join("?" for _ in paths), ", ".join("?" for _ in types)
        query = f"SELECT e.id, json_extract(e.data, {marks[0]}) {_OF_SESSION} AND e.type IN ({marks[1]}) ORDER BY e.id"
        try:
            rows = self._rows(query.replace("?1", "?"), *paths, session, *types)
            return [(packed & _LAST_SEQ, *cast("list[JsonValue]", json.loads(text))[1:]) for packed, text in rows]
        except (LogUnavailableError, ValueError):
            self.events(session)  # names the record, if one of them is to blame
            raise

    def first_of_each(self, session: str, types: Sequence[str], name: str) -> Sequence[tuple[str, int]]:
        """Returns each text that a member has in a session's events of some types, with the first event that has it.

        Raises:
            LogUnavailableError: the file cannot be read, or a record in it is not what was written.
        """
        query = f"""
            SELECT json_extract(e.data, ?), min(e.id) {_OF_SESSION} AND e.type IN ({", ".join("?" for _ in types)})
            GROUP BY 1
        """
        try:
            rows = self._rows(query.replace("?1", "?"), f"$.{name}", session, *types)
        except LogUnavailableError:
            self.events(session)
            raise
        return [(value, packed & _LAST_SEQ) for value, packed in rows if isinstance(value, str)]

    def first_of_other_types(self, session: str, types: Sequence[str]) -> StoredEvent | None:
        """Returns the first event of a session that is of none of some types and not marked ignorable.

        Raises:
            LogUnavailableError: the file cannot be read, or a record in it is not what was written.
        """
        marks = ", ".join("?" for _ in types)
        query = f"""
            SELECT e.id {_OF_SESSION} AND e.type NOT IN ({marks}) AND json_type(e.data, '$.ignorable') IS NOT 'true'
            ORDER BY e.id LIMIT 1
        """
        try:
            rows = self._rows(query.replace("?1", "?"), session, *types)
        except LogUnavailableError:
            self.events(session)
            raise
        if not rows:
            return None
        seq = rows[0][0] & _LAST_SEQ
        return self.events(session, first=seq, last=seq)[0]

    def latest_calls(self, session: str, limit: int) -> Sequence[int]:
        """Returns when the last calls of a model started in a session, the latest first, in us since 1970 UTC.

        Raises:
            LogUnavailableError: the file cannot be read.
        """
        return [time_us for (time_us,) in self._rows(_LATEST_CALLS, session, limit) if isinstance(time_us, int)]

    def last_mention(self, session: str, text: str, *, first: int, last: int) -> int | None:
        """Returns the last event of a session that cites the event `first` or has `text` as a JSON text in its data.

        Args:
            session: the session's id.
            text: the text, for example the id of a call.
            first: the `seq` from which on events are looked at.
            last: the `seq` up to which they are.

        Raises:
            LogUnavailableError: the file cannot be read.
        """
        # Quotes inside a JSON text are escaped, so that a text with its quotes is found as a text of its own alone.
        query = f"""
            SELECT max(e.id) {_OF_SESSION} AND e.id >= (s.key << 32) + ?2 AND e.id <= (s.key << 32) + ?3
                AND (e.cites = ?2 OR instr(e.data, ?4) > 0)
        """
        ((packed,),) = self._rows(query, session, first, last, to_json_text(text))
        return None if packed is None else packed & _LAST_SEQ

    def _object(self, text: object, where: str) -> JsonObject:
        try:
            value = from_json_text(text) if isinstance(text, str) else None
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise LogUnavailableError(
                f"cannot read the log {self.path}: {where} is not the JSON that was written; "
                "somebody or something changed the file, so keep it and compare it with a copy",
                reason="damaged",
            )
        return value

    def _rows(self, query: str, *parameters: object) -> Sequence[tuple[Any, ...]]:
        """Runs one query, and once more when a writer appeared while a file without writers was read."""
        with explained(self.path, "read"):
            try:
                rows = self._connection.execute(query, parameters).fetchall()
            except (sqlite3.DatabaseError, UnicodeDecodeError):
                if self._seen is None or self._seen == file_state(self.path):
                    raise
                rows = None
            if rows is None or (self._seen is not None and self._seen != file_state(self.path)):
                self._connection.close()
                self._connection = self._connect()
                rows = self._connection.execute(query, parameters).fetchall()
            return rows

    def _connect(self) -> sqlite3.Connection:
        with explained(self.path, "read"):  # a directory that may not be searched is no answer to "is it there?"
            self._seen = resting_state(self.path)
        return connect_reader(self.path, frozen=self._seen is not None)
