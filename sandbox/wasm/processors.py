"""As many programs compute at once as the machine has processors; the others take turns.

Many threads that compute are bad for the host: the one that holds the interpreter's lock waits in the system's queue
behind all of them, and the event loop waits for that lock. So a program needs a `Turn` while it has control, and where
more want one than there are processors, a program that has had its time gives its turn away. Whoever comes back from a
wait goes first, three times out of four, so that programs that call tools are not slowed down by those that compute.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from ..forks import make_anew_when_forked

__all__ = ["PROCESSORS", "Processors", "Turn"]

_SLICE_S: Final = 0.005
"""How long a program may compute while others wait."""
_AHEAD: Final = 3
"""How many that come back from a wait go before one that has had its time already."""
_IDLE_S: Final = 1.0
"""How long the thread that ends turns stays when nobody waits."""


class Turn:
    """The right of one run to compute.

    Args:
        interrupt: has the run call `Processors.over` soon; from any thread.
    """

    __slots__ = ("_interrupt", "cancelled", "given", "held", "since", "waiting")

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self.given = threading.Lock()
        self.given.acquire()
        self.held = False
        self.waiting = False
        self.cancelled = False
        self.since = 0.0

    def end_soon(self) -> None:
        """Has the run look up whether its time is over."""
        self._interrupt()


class Processors:
    """Gives turns to programs. One for the whole process: that is what has the processors.

    Args:
        count: how many compute at once.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._begin()
        make_anew_when_forked(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._free = self._count
        self._holding: set[Turn] = set()
        self._fresh: deque[Turn] = deque()
        self._used: deque[Turn] = deque()
        self._ahead = 0
        self._wanted = threading.Event()
        self._ending_turns = False

    def after_fork(self) -> None:
        """Makes the copy in a forked process usable: it has none of the threads that compute."""
        self._begin()

    def enter(self, turn: Turn) -> None:
        """Waits until the calling thread may compute; not for a turn that is or gets cancelled, which needs none."""
        with self._lock:
            if turn.cancelled:
                return
            if self._free:
                self._free -= 1
                self._give(turn)
                return
            turn.waiting = True
            self._fresh.append(turn)
            self._wanted.set()
            start, self._ending_turns = not self._ending_turns, True
        if start and not self._start():
            self._go_without(turn)
        turn.given.acquire()

    def leave(self, turn: Turn) -> None:
        """Gives the turn away, because the program has lost control."""
        with self._lock:
            if not turn.held:
                return
            turn.held = False
            self._holding.discard(turn)
            if not self._pass_on():
                self._free += 1

    def over(self, turn: Turn) -> None:
        """Gives the turn away when its time is over and others wait, and waits for the next."""
        with self._lock:
            if not turn.held or turn.cancelled or time.monotonic() - turn.since < _SLICE_S or not self._pass_on():
                return
            turn.held = False
            self._holding.discard(turn)
            turn.waiting = True
            self._used.append(turn)
        turn.given.acquire()

    def cancel(self, turn: Turn) -> None:
        """Has a run go on to its end without a turn, because it has been killed; from any thread."""
        turn.cancelled = True
        self._go_without(turn)

    def _go_without(self, turn: Turn) -> None:
        with self._lock:
            if turn.waiting:
                turn.waiting = False
                turn.given.release()

    def _give(self, turn: Turn) -> None:
        turn.held = True
        turn.since = time.monotonic()
        self._holding.add(turn)

    def _pass_on(self) -> bool:
        """Gives a turn to the next who waits; returns whether there was one."""
        while self._fresh or self._used:
            fresh = bool(self._fresh) and (self._ahead < _AHEAD or not self._used)
            self._ahead = self._ahead + 1 if fresh else 0
            turn = (self._fresh if fresh else self._used).popleft()
            if turn.waiting:  # any other has been cancelled
                turn.waiting = False
                self._give(turn)
                turn.given.release()
                return True
        return False

    # The thread that ends turns

    def _start(self) -> bool:
        thread = threading.Thread(target=self._end_turns, name="ptc-turns", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # One too many computes: better than to wait for a turn that nobody ends.
            with self._lock:
                self._ending_turns = False
            return False
        return True

    def _end_turns(self) -> None:
        while True:
            if not self._wanted.wait(_IDLE_S):
                with self._lock:
                    if self._wanted.is_set():
                        continue
                    self._ending_turns = False
                    return
            time.sleep(_SLICE_S)
            with self._lock:
                if not self._fresh and not self._used:
                    self._wanted.clear()
                before = time.monotonic() - _SLICE_S
                due = [turn for turn in self._holding if turn.since <= before] if self._wanted.is_set() else []
            for turn in due:
                turn.end_soon()


def _count() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


PROCESSORS: Final = Processors(_count())
