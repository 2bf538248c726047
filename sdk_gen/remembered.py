"""What has been worked out already: a host writes the text of much the same tools at every step of an agent."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, cast

__all__ = ["MAX_REMEMBERED", "Remembered", "fingerprint", "remembered"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_REMEMBERED = 32_768
"""How many results are kept; when there are more, all are forgotten and it begins anew."""

MAX_FINGERPRINT = 65_536
"""The largest fingerprint that is kept, in bytes: what is larger is rare, and would fill the memory."""


class Remembered(Generic[K, V]):
    """Results by a key that says all that they depend on, so that a changed input never meets an old result."""

    __slots__ = ("_ids", "_results")

    def __init__(self) -> None:
        self._results: dict[K, V] = {}
        self._ids: set[int] = set()

    def get(self, key: K) -> V | None:
        """Returns what was kept under `key`."""
        return self._results.get(key)

    def holds(self, result: V) -> bool:
        """Whether `result` itself is kept, so that it will be met again."""
        return id(result) in self._ids

    def keep(self, key: K, result: V) -> None:
        """Keeps a result, which nobody may change any more."""
        if len(self._results) >= MAX_REMEMBERED:
            self._results.clear()
            self._ids.clear()
        self._results[key] = result
        self._ids.add(id(result))


def fingerprint(value: object) -> bytes | None:
    """Returns bytes that only an equal value of the same types has; `None` for what is not plain data, or too large.

    The same value may have several fingerprints, for they also tell which of its parts are shared. That keeps them as
    small as the value is in memory.
    """
    try:
        found = marshal.dumps(cast("Any", value), 4)
    except ValueError:  # not plain data, or nested too deep
        return None
    return found if len(found) <= MAX_FINGERPRINT else None


def remembered(results: Remembered[bytes, V], value: object, work_out: Callable[[object], V]) -> V:
    """Returns `work_out(value)`, from memory where the value has been there before."""
    key = fingerprint(value)
    if key is None:
        return work_out(value)
    result = results.get(key)
    if result is None:
        result = work_out(value)
        # Results refer to texts of the value, which are shared from now on: it is this fingerprint that comes again.
        results.keep(fingerprint(value) or key, result)
    return result
