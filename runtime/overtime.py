"""How long the listeners of a run may go on when it is over.

A run does not end before each of its calls is recorded (contract E31). A listener that waits for what never comes must
not be able to hold it for ever, so what is left of a listener's work after the end of the run has a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio

__all__ = ["POLICY_GRACE_S", "SHAPING_GRACE_S", "Overtime"]

SHAPING_GRACE_S: Final = 5.0
"""How long a listener of a durable copy may go on when the run is over, in seconds."""

POLICY_GRACE_S: Final = 30.0
"""How long the policies of a call may go on when its run is over, in seconds.

Longer than for the copy: what a policy answers late is still its decision (contract C23, C54).
"""


class Overtime:
    """Blocks of work in one run, which are cancelled some time after its end."""

    __slots__ = ("_grace", "_scopes")

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self._grace: float | None = None

    @contextmanager
    def scope(self) -> Iterator[anyio.CancelScope]:
        """Cancels the block when its time is up; the scope tells whether that was so."""
        scope = anyio.CancelScope()
        self._scopes.add(scope)
        if self._grace is not None:
            scope.deadline = anyio.current_time() + self._grace
        try:
            with scope:
                yield scope
        finally:
            self._scopes.discard(scope)

    def end(self, grace_s: float) -> None:
        """The run is over: every block, and each that begins later, has `grace_s` seconds. The first call counts."""
        if self._grace is None:
            self._grace = grace_s
            for scope in self._scopes:
                scope.deadline = anyio.current_time() + grace_s
