"""Who is told of jobs: observers of every change, then listeners of ends, each contained (contract J12)."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from ...registry import Disposer, ScopeKey
from ...registry.events import callable_name, close_stray
from ..agent import Agent
from .job import JobChange, JobSnapshot

if TYPE_CHECKING:
    from ...registry.scopes import ScopeTree

__all__ = ["Audience", "ChangeObserver", "DoneListener", "add_entry"]

ChangeObserver: TypeAlias = Callable[[JobChange], object]
"""Is told, at once, of what happens to jobs. What it raises is logged and goes no further."""

DoneListener: TypeAlias = Callable[[JobSnapshot, Agent | None], object]
"""Is told, at once, of a job that has ended, and whose it is. What it raises is logged and goes no further."""

ValueT = TypeVar("ValueT")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_LOGGER: Final = logging.getLogger("ptc.runtime")


class Audience:
    """Observers and listeners.

    Args:
        tree: tells which scopes hear of which owners.
    """

    def __init__(self, tree: ScopeTree) -> None:
        self._tree = tree
        self._observers: dict[object, ChangeObserver] = {}
        self._listeners: dict[object, tuple[ScopeKey | None, DoneListener]] = {}

    def on_change(self, observer: ChangeObserver) -> Disposer:
        """Adds an observer; see `Jobs.on_change`."""
        return add_entry(self._observers, _plain(observer))

    def on_done(self, listener: DoneListener, scope: ScopeKey | None) -> Disposer:
        """Adds a listener; see `Jobs.on_done`."""
        return add_entry(self._listeners, (scope, _plain(listener)))

    def changed(self, change: JobChange) -> None:
        """Tells every observer."""
        for observer in tuple(self._observers.values()):
            _contained(observer, change)

    def done(self, snapshot: Callable[[], JobSnapshot], owner: Agent | None) -> None:
        """Tells the listeners of all jobs, then those of the owner's chain, the nearest scope first."""
        for scope in (None, *self._tree.chain(owner)):
            for heard, listener in tuple(self._listeners.values()):
                if heard is scope:
                    _contained(listener, snapshot(), owner)


def _contained(function: Callable[..., object], *args: object) -> None:
    try:
        answer = function(*args)
    except Exception:
        _LOGGER.exception("a listener of background jobs failed: %s", callable_name(function))
    else:
        if inspect.isawaitable(answer):
            close_stray(answer)
            _LOGGER.warning("a listener of background jobs is async and was not run: %s", callable_name(function))


def _plain(function: FunctionT) -> FunctionT:
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise TypeError("a listener of background jobs must be a plain function; it is told and not awaited")
    return function


def add_entry(entries: dict[object, ValueT], value: ValueT) -> Disposer:
    """Adds a value under a key of its own, and returns what takes it away."""
    key = object()
    entries[key] = value

    def remove() -> None:
        del entries[key]

    return Disposer(remove)
