"""What a process makes anew that was forked from a host: locks that another thread of the host may have held."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["Forkable", "make_anew_when_forked"]


class Forkable(Protocol):
    """Something that a forked process has a copy of."""

    def after_fork(self) -> None:
        """Makes the copy usable. Called in the forked process, in its only thread, before anything else runs there."""
        ...


_ALL: WeakSet[Forkable] = WeakSet()


def make_anew_when_forked(thing: Forkable) -> None:
    """Has `after_fork` called in each process that is forked from this one while the thing is there."""
    _ALL.add(thing)


def _after_fork() -> None:
    for thing in tuple(_ALL):
        thing.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
