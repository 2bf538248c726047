"""What has to end before something else is closed: the jobs of a host before its log, for example."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from ..registry import Disposer
from ..registry.signals import void

__all__ = ["Closing"]

_LOGGER: Final = logging.getLogger("ptc.runtime")


class Closing:
    """Async functions that are called once, the last one first, when their owner closes."""

    __slots__ = ("_enders",)

    def __init__(self) -> None:
        self._enders: dict[object, Callable[[], Awaitable[None]]] = {}

    def add(self, end: Callable[[], Awaitable[None]]) -> Disposer:
        """Has `end` called when the owner closes; returns what takes that back."""
        key = object()
        self._enders[key] = end
        return Disposer(lambda: void(self._enders.pop(key, None)))

    async def run(self) -> None:
        """Calls them all. What one raises is logged, so that the others and the owner still close."""
        while self._enders:
            _key, end = self._enders.popitem()
            try:
                await end()
            except Exception:
                _LOGGER.exception("something that ends before its owner closes has failed to end")
