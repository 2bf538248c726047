"""What carries a program, what it tells its supervisor, and the budgets that it runs under.

A backend brings a `Vehicle`; the supervisor brings the `Port` and decides when it is over.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from .peer import Completion

__all__ = ["MILLISECONDS", "ComputeClock", "Exit", "Port", "RunLimits", "Vehicle"]

MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """The budgets of a run (contract F17 to F20, ruling 43).

    Attributes:
        compute_ms: milliseconds that the program may have control.
        max_wall_ms: milliseconds from request to result, whatever it waits for.
        max_output_bytes: bytes of logs and result together.
        max_outstanding_calls: calls that may be unanswered at once.
        max_queued_bytes: bytes of calls that may be unanswered at once.
    """

    compute_ms: float
    max_wall_ms: float
    max_output_bytes: int
    max_outstanding_calls: int
    max_queued_bytes: int


@dataclass(frozen=True, slots=True)
class Exit:
    """How the substrate ended when it ended without a completion."""

    message: str


class Vehicle(Protocol):
    """What carries one program."""

    async def drive(self, port: Port) -> Completion | Exit | None:
        """Runs the program to its end; returns when the substrate has exited. `None` is a malformed completion."""
        ...

    @property
    def backlog(self) -> int:
        """How many characters of replies the program has not taken yet."""
        ...

    def reply(self, text: str) -> None:
        """Gives one reply to the program. Called on the event loop."""
        ...

    def kill(self) -> None:
        """Ends the program at once, from any thread; harmless when it has ended."""
        ...


class Port(Protocol):
    """Where a vehicle tells what its program does. Its methods may be called from one thread of the vehicle."""

    def started(self) -> None:
        """The program has control."""
        ...

    def waiting(self) -> None:
        """The program has given control away."""
        ...

    def taken(self) -> None:
        """The program has taken replies."""
        ...

    def submit(self, text: str) -> None:
        """The program makes calls."""
        ...

    def emit(self, text: str) -> None:
        """The program writes."""
        ...


class ComputeClock:
    """Measures how long the program has had control (contract F17)."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._since: float | None = None

    def resume(self) -> None:
        if self._since is None:
            self._since = time.perf_counter()

    def pause(self) -> None:
        since, self._since = self._since, None
        if since is not None:
            self._spent += time.perf_counter() - since

    @property
    def ms(self) -> float:
        # `_spent` first: a pause between the two reads then counts too little, which the next look mends.
        spent = self._spent
        since = self._since
        running = time.perf_counter() - since if since is not None else 0.0
        return (spent + running) * MILLISECONDS
