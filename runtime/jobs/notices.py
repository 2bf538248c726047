"""Telling an owner's model that a job has ended: a queued message, and a turn for an idle owner (contract J19)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from ...registry import ContextMessage, text_block
from ...registry.pipeline.shelter import await_foreign
from ...registry.scopes import IdentityMap
from .text import one_line

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from ...registry import JsonObject
    from ..agent import Agent
    from .job import JobSnapshot

__all__ = ["Notices", "WakeHook"]

WakeHook: TypeAlias = "Callable[[Agent], Awaitable[object]]"
"""Opens a turn of an idle agent; its model is to be given what `agent.take_notices()` returns."""

_LOGGER: Final = logging.getLogger("ptc.runtime")
_SOURCE: Final[JsonObject] = {"kind": "plugin", "plugin": "jobs"}


class _Owner:
    """What is known of one owner.

    Attributes:
        wakes: how many turns were opened since the user's last word.
        waking: whether such a turn is being made.
        untold: whether a notice was queued that nobody has opened a turn for.
    """

    __slots__ = ("untold", "wakes", "waking")

    def __init__(self) -> None:
        self.wakes = 0
        self.waking = False
        self.untold = False


class Notices:
    """Queues notices, and opens turns for idle owners when there is a hook for that.

    Args:
        on_wake: opens a turn; without it the mode is quiet, and notices wait for the owner's next batch.
        max_wakes: how many turns are opened in a row.
    """

    def __init__(self, on_wake: WakeHook | None, max_wakes: int) -> None:
        self._on_wake = on_wake
        self._max_wakes = max_wakes
        self._owners: IdentityMap[_Owner] = IdentityMap()
        self._wakes: set[anyio.CancelScope] = set()
        self._tasks: TaskGroup | None = None

    def open(self, tasks: TaskGroup) -> None:
        """Lets turns be opened, in tasks of this group."""
        self._tasks = tasks

    def close(self) -> None:
        """Opens no more turns, and cancels those that it has opened."""
        self._tasks = None
        for scope in tuple(self._wakes):
            scope.cancel()

    def tell(self, owner: Agent, job: JobSnapshot) -> None:
        """Queues the notice of a job that has ended; opens a turn if the owner is idle."""
        how = {"completed": "has completed", "killed": "was killed", "failed": "has failed"}[job.status]
        detail = f" ({one_line(job.detail)})" if job.detail else ""
        owner.inform(
            ContextMessage(
                [
                    text_block(
                        f"Background job {job.id} ({one_line(job.label)}) {how}{detail}. "
                        f'Read its output with job_output, job_id "{job.id}".'
                    )
                ],
                _SOURCE,
            )
        )
        self._of(owner).untold = True
        self._wake(owner)

    def turn_closed(self, owner: Agent) -> None:
        """Opens a turn later, if the one that was closed has left a notice behind."""
        if self._tasks is not None and self._on_wake is not None and self._of(owner).untold:
            # Not yet: whoever executes a batch takes the notices when it returns, before any other task runs.
            self._tasks.start_soon(self._look_again, owner)

    def user_spoke(self, owner: Agent) -> None:
        """Counts turns anew."""
        self._of(owner).wakes = 0

    async def _look_again(self, owner: Agent) -> None:
        self._wake(owner)

    def _wake(self, owner: Agent) -> None:
        state = self._of(owner)
        if not owner.has_notices:
            state.untold = False
        if not state.untold or state.waking or owner.in_turn or self._tasks is None or self._on_wake is None:
            return
        if state.wakes >= self._max_wakes:
            return
        state.wakes += 1
        state.waking = True
        state.untold = False
        self._tasks.start_soon(self._turn, self._on_wake, owner, state)

    async def _turn(self, on_wake: WakeHook, owner: Agent, state: _Owner) -> None:
        try:
            with anyio.CancelScope() as scope:
                self._wakes.add(scope)
                try:
                    await await_foreign(on_wake(owner))
                finally:
                    self._wakes.discard(scope)
        except Exception:
            _LOGGER.exception("on_wake failed for agent %r; its notices stay queued", owner.name)
        finally:
            state.waking = False
        self._wake(owner)  # for a job that has ended meanwhile

    def _of(self, owner: Agent) -> _Owner:
        state = self._owners.get(owner)
        if state is None:
            state = _Owner()
            self._owners.set(owner, state)
        return state
