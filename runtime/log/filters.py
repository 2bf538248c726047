"""Filters of records: what every event passes on its way into a session, whoever appends it and whatever its type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from ...registry.values import JsonObject, JsonValue

__all__ = ["INLINE_CHARS", "RecordFilter", "RecordFilters", "is_long"]

RecordFilter: TypeAlias = Callable[[str, str, "JsonObject"], "JsonObject"]
"""Takes the session's id, an event's type and its data, frozen, and returns what is recorded in place of the data.

It has no effects, answers for the data alone, and may be called in a worker thread. If it raises, the event is not
recorded, and with that the call is not made that the event is about (ruling 40); so a filter that can fail says in the
record itself that it did.
"""

INLINE_CHARS: Final = 64 * 1024
"""The longest record that is filtered on the event loop's thread, in characters of its texts, about."""


class RecordFilters:
    """The filters of a session, or of all sessions of a host, in the order in which they were added.

    Args:
        outer: what events pass after these.
    """

    __slots__ = ("_filters", "_outer")

    def __init__(self, outer: RecordFilters | None = None) -> None:
        self._filters: dict[object, RecordFilter] = {}
        self._outer = outer

    def add(self, record_filter: RecordFilter) -> Callable[[], None]:
        """Has events pass a filter from now on; returns the way to stop that."""
        key = object()
        self._filters[key] = record_filter

        def stop() -> None:
            self._filters.pop(key, None)

        return stop

    def __iter__(self) -> Iterator[RecordFilter]:
        yield from tuple(self._filters.values())
        if self._outer is not None:
            yield from self._outer


def is_long(data: JsonValue) -> bool:
    """Returns whether filtering this takes more than a moment."""
    left = INLINE_CHARS
    unvisited = [data]
    while unvisited:
        value = unvisited.pop()
        if isinstance(value, dict):
            unvisited += value.values()
            left -= sum(map(len, value))
        elif isinstance(value, list):
            unvisited += value
        elif isinstance(value, str):
            left -= len(value)
        left -= 1
        if left < 0:
            return True
    return False
