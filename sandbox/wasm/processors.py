"""As many programs compute at once as the machine has processors; the others take turns.

Many threads that compute are bad for the host: the one that holds the interpreter's lock waits in the system's queue
behind all of them, and the event loop waits for that lock. So a program needs a `Turn` while it has control, and where
more want one than there are processors, a program that has had its time gives its turn away. Whoever comes back from a
wait goes first, three times out of four, so that programs that call tools are not slowed down by those that compute.

A program that gave its turn away goes on using up its budget, so a short one must not wait for long ones: it keeps its
first turn for longer, and of those that wait again the one that has had the least goes before the others, every second
time.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import Final

from ..forks import make_anew_when_forked

__all__ = ["PROCESSORS", "Processors", "Turn"]

_SLICE_S: Final = 0.005
"""How long a program may compute while others wait."""
_FIRST_S: Final = 0.02
"""How long it may compute in all before it gives a turn away for the first time; most programs end within that."""
_AHEAD: Final = 3
"""How many that come back from a wait go before one that has had its time already."""
_IDLE_S: Final = 1.0
"""How long the thread that ends turns stays when nobody waits."""


class Turn:
    """The right of one run to compute.

    The run's thread waits for it. Only one can claim such a wait, and has to wake the thread then. Nothing is waited
    for to do so, so the event loop can cancel at any instant, also in a signal handler or a finalizer that runs in the
    middle of another step.

    Args:
        interrupt: has the run call `Processors.over` soon; from any thread.

    Attributes:
        held: the run may compute.
        since: the time of the monotonic clock from which it has been held, in seconds.
        spent: how long it had been held before, in seconds.
        cancelled: the run needs no turn any more.
    """

    __slots__ = ("_unclaimed", "_woken", "cancelled", "held", "interrupt", "since", "spent")

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self.interrupt = interrupt
        self.held = False
        self.since = 0.0
        self.spent = 0.0
        self.cancelled = False
        self._unclaimed = threading.Lock()
        self._unclaimed.acquire()
        self._woken = threading.Lock()
        self._woken.acquire()

    def cancel(self) -> None:
        """Has the run go on to its end without a turn, because it has been killed; from any thread."""
        self.cancelled = True
        if self.claim():
            self.wake()

    # What the processors do with it

    def is_over(self, now: float) -> bool:
        """Returns whether others may have it, at a time of the monotonic clock."""
        return now - self.since >= max(_SLICE_S, _FIRST_S - self.spent)

    @property
    def waiting(self) -> bool:
        """Whether the run is in a wait that nobody has claimed."""
        return not self._unclaimed.locked()

    def begin_to_wait(self) -> bool:
        """Makes the wait known; returns whether there is one, which a cancelled run does not begin."""
        self._unclaimed.release()
        # In this order: a cancel sets its mark and then claims, so one of the two sees the other.
        return not (self.cancelled and self.claim())

    def wait(self) -> None:
        """Waits to be woken."""
        self._woken.acquire()

    def claim(self) -> bool:
        """Ends the run's wait, where it is in one; returns whether it was."""
        return self._unclaimed.acquire(blocking=False)

    def wake(self) -> None:
        """Has the run's thread go on, after a claim."""
        self._woken.release()


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
        self._least_first = False
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
            self._fresh.append(turn)
            if not turn.begin_to_wait():
                return
            self._wanted.set()
            start, self._ending_turns = not self._ending_turns, True
        if start:
            self._start()
        turn.wait()

    def leave(self, turn: Turn) -> None:
        """Gives the turn away, because the program has lost control, and any wait for it that an error cut short."""
        with self._lock:
            turn.claim()
            if not turn.held:
                return
            self._take_back(turn)
            if not self._pass_on():
                self._free += 1

    def over(self, turn: Turn) -> None:
        """Gives the turn away when its time is over and others wait, and waits for the next."""
        with self._lock:
            if not turn.held or turn.cancelled or not turn.is_over(time.monotonic()) or not self._pass_on():
                return
            self._take_back(turn)
            self._used.append(turn)
            if not turn.begin_to_wait():
                return
        turn.wait()

    def _give(self, turn: Turn) -> None:
        turn.held = True
        turn.since = time.monotonic()
        self._holding.add(turn)

    def _take_back(self, turn: Turn) -> None:
        turn.held = False
        turn.spent += time.monotonic() - turn.since
        self._holding.discard(turn)

    def _pass_on(self) -> bool:
        """Gives a turn to the next who waits; returns whether there was one."""
        while self._fresh or self._used:
            turn = self._next()
            if turn.claim():  # any other has been cancelled
                self._give(turn)
                turn.wake()
                return True
        return False

    def _next(self) -> Turn:
        if self._fresh and (self._ahead < _AHEAD or not self._used):
            self._ahead += 1
            return self._fresh.popleft()
        self._ahead = 0
        self._least_first = not self._least_first
        if self._least_first:
            turn = min(self._used, key=attrgetter("spent"))
            self._used.remove(turn)
            return turn
        return self._used.popleft()

    # The thread that ends turns

    def _start(self) -> None:
        try:
            threading.Thread(target=self._end_turns, name="ptc-turns", daemon=True).start()
        except (RuntimeError, MemoryError):
            self._have_all_compute()

    def _have_all_compute(self) -> None:
        """Ends all waits, where nothing ends turns: too many that compute are better than a wait without end."""
        with self._lock:
            self._ending_turns = False
            for turn in (*self._fresh, *self._used):
                if turn.claim():
                    turn.wake()
            self._fresh.clear()
            self._used.clear()

    def _end_turns(self) -> None:
        try:
            while self._is_wanted():
                time.sleep(_SLICE_S)
                for interrupt in self._due():
                    interrupt()
        except BaseException:
            self._have_all_compute()  # the next who has to wait tries again
            raise

    def _is_wanted(self) -> bool:
        """Waits until somebody waits for a turn; returns `False` after a while in which nobody did."""
        if self._wanted.wait(_IDLE_S):
            return True
        with self._lock:
            self._ending_turns = self._wanted.is_set()
            return self._ending_turns

    def _due(self) -> set[Callable[[], None]]:
        """Returns what interrupts those whose time is over, when somebody waits. The runs of one engine share it."""
        with self._lock:
            if not self._fresh and not self._used:
                self._wanted.clear()
                return set()
            now = time.monotonic()
            return {turn.interrupt for turn in self._holding if turn.is_over(now)}


def _count() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


PROCESSORS: Final = Processors(_count())
