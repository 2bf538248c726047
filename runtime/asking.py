"""The calls of a program about which a person is being asked: each waits by itself, and the program goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from ..registry import Wake
from .dispatch import SubCall
from .overtime import Overtime

__all__ = ["Asking"]


class Asking:
    """Puts the questions of one program, and hands the calls back when they are answered.

    Args:
        tasks: where questions wait; it is left only when they have ended.
        policies: how long they may wait when the run is over.
        most: how many questions may stand at once; more wait until they are put, in order.
        wake: told of each answer.
        on_fault: told of faults of the host.

    Attributes:
        answered: the calls that have their answer, in the order of the answers; the lane takes them from here.
    """

    def __init__(
        self, tasks: TaskGroup, policies: Overtime, most: int, wake: Wake, on_fault: Callable[[Exception], None]
    ) -> None:
        self._tasks = tasks
        self._policies = policies
        self._most = most
        self._wake = wake
        self._on_fault = on_fault
        self._waiting: deque[SubCall] = deque()
        self._standing = 0
        self._workers = 0
        self.answered: deque[SubCall] = deque()

    @property
    def idle(self) -> bool:
        """Whether no call is here."""
        return not (self._waiting or self._standing or self.answered)

    def put(self, call: SubCall) -> None:
        """Takes over a call whose policies have a question."""
        self._waiting.append(call)
        if self._workers < self._most:
            self._hire()

    def _hire(self) -> None:
        self._workers += 1
        self._tasks.start_soon(self._work)

    async def _work(self) -> None:
        """Puts the oldest question, and the next one when it has its answer.

        Which question it is is decided here, and not where the task was made: event loops may start tasks in any order.
        """
        try:
            while self._waiting:
                await self._ask(self._waiting.popleft())
        finally:
            self._workers -= 1
            if self._waiting:  # this task was cancelled
                self._hire()

    async def _ask(self, call: SubCall) -> None:
        made = call.pipeline_call
        assert made is not None  # it has started
        self._standing += 1
        call.broken_off = True
        try:
            with self._policies.scope() as scope:
                await made.ask()
            call.broken_off = scope.cancelled_caught
        except Exception as error:  # noqa: BLE001 - a fault of the pipeline itself; the call is recorded as aborted
            self._on_fault(error)
        except anyio.get_cancelled_exc_class():
            self._on_fault(RuntimeError("who was asked about a program's call has cancelled the task of the question"))
            raise
        finally:
            self._standing -= 1
            self.answered.append(call)
            self._wake.change()
