"""The program's event loop: asyncio as models write it, with the host as its selector.

Waiting for anything gives control to the host, which answers with what has settled. The loop may be entered again
from inside itself, so that `asyncio.run(main())` works wherever a program says it.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from asyncio import base_events, events, tasks
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from .channel import Channel
from .intrinsics import INTRINSICS
from .jsontext import MAX_VALUES, byte_size, decode, too_many_values

__all__ = ["GuestLoop"]

__builtins__ = INTRINSICS

_MICROSECONDS = 1_000_000
_LONGEST_S = 1_000_000.0
"""The longest single wait, in seconds; longer ones are waited in parts."""
_MOST_CALLS = 500
"""Calls that go out in one message."""
_MOST_TEXT = 1 << 20
"""Characters that go out in one message; more only when one call has more."""
_AROUND = 2
"""Bytes that a message adds to a call at most: two brackets around one, a comma between two."""
_monotonic = time.monotonic


class GuestLoop(base_events.BaseEventLoop):
    """An asyncio event loop whose only sources of events are time and the host.

    Args:
        channel: the way to the host.
        most_bytes: bytes of calls that may be unanswered at once. The host ends a program that sends more; here such
            a call fails instead, which the program can catch.
    """

    def __init__(self, channel: Channel, most_bytes: int) -> None:
        super().__init__()
        self._channel = channel
        self._most_bytes = most_bytes
        self._unanswered = 0
        self._outbox: list[str] = []
        self._unsent: list[str] = []
        self._pending: dict[int, tuple[asyncio.Future[object], int]] = {}
        self._settled: list[tuple[int, bool, object]] = []
        self._next_id = 0

    def time(self) -> float:
        return _monotonic()

    # What BaseEventLoop asks of a selector loop and this one has no use for.

    def _process_events(self, event_list: object) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    # Calls to the host

    def submit(self, target: str, arguments: str, title: str, line: int) -> asyncio.Future[object]:
        """Queues a call; it goes out when the loop next waits, together with all others of the same turn.

        Args:
            target: namespace and member, as two JSON strings with a comma between.
            arguments: the arguments, as JSON.
            title: how the program writes the call.
            line: the program's line.
        """
        settled = self.create_future()
        call_id = self._next_id + 1
        call = f"[{call_id},{target},{arguments},{line}]"
        size = byte_size(call) + _AROUND
        refusal = self._refusal(title, call, size)
        if refusal is not None:
            settled.set_result((False, refusal))
            return settled
        self._next_id = call_id
        self._unanswered += size
        self._pending[call_id] = settled, size
        self._outbox.append(call)
        self._unsent.append(f"{title} on line {line}")
        return settled

    def _refusal(self, title: str, call: str, size: int) -> str | None:
        """Returns why a call cannot go out, in words for the program; `None` when it can."""
        most, held = self._most_bytes, self._unanswered
        if size > most:
            return (
                f"the arguments of {title} are too large: the call takes {size:,} bytes, and {most:,} may be unanswered"
                " at once; send less, or in parts"
            )
        if size > MAX_VALUES and too_many_values(f"[{call}]"):  # as the message that carries it alone
            return f"the arguments of {title} hold more than {MAX_VALUES:,} values; send them in parts"
        if held + size > most:
            return (
                f"{title} takes {size:,} bytes, unanswered calls hold {held:,}, and {most:,} may be unanswered at once;"
                " await some of them first"
            )
        return None

    def flush(self) -> None:
        """Hands the queued calls to the host."""
        if self._outbox:
            calls = self._outbox[:]
            self._outbox.clear()
            self._unsent.clear()
            for part in _parts(calls):
                self._channel.submit("[" + ",".join(part) + "]")

    def unsent(self) -> list[str]:
        """Returns one phrase for each call that was queued and has not gone out."""
        return list(self._unsent)

    def sleep(self, seconds: float) -> None:
        """Blocks the whole program for a time, as `time.sleep` does; what settles meanwhile is kept for later."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self.flush()
        until = _monotonic() + seconds
        while (left := until - _monotonic()) > 0:
            self._receive(max(1, int(min(left, _LONGEST_S) * _MICROSECONDS)))

    def _receive(self, timeout_us: int) -> None:
        self._settled += decode(self._channel.wait(timeout_us))  # type: ignore[operator]

    def _deliver(self) -> None:
        settled, self._settled = self._settled, []
        for call_id, ok, value in settled:
            pending = self._pending.pop(call_id, None)
            if pending is None:
                continue
            future, size = pending
            self._unanswered -= size
            if not future.done():
                future.set_result((ok, value))

    # Turning

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            self._timer_cancelled_count = max(0, self._timer_cancelled_count - 1)  # type: ignore[attr-defined]
            heapq.heappop(scheduled)._scheduled = False
        if self._outbox:
            self.flush()
        if ready or self._settled or self._stopping:  # type: ignore[attr-defined]
            if self._pending and not self._settled:
                self._receive(0)
        elif self._pending or scheduled:
            self._receive(self._until_next_timer())
        else:
            raise RuntimeError("the program waits for something that cannot happen: no call and no timer is pending")
        if self._settled:
            self._deliver()
        if scheduled:
            now = self.time() + self._clock_resolution  # type: ignore[attr-defined]
            while scheduled and scheduled[0]._when < now:
                handle = heapq.heappop(scheduled)
                handle._scheduled = False
                ready.append(handle)
        # A handle may turn the loop from inside itself, so the queue can be shorter than it was.
        for _ in range(len(ready)):
            if not ready:
                break
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _until_next_timer(self) -> int:
        scheduled = self._scheduled  # type: ignore[attr-defined]
        if not scheduled:
            return -1
        return max(0, int(min(scheduled[0]._when - self.time(), _LONGEST_S) * _MICROSECONDS) + 1)

    def run_program(self, main: Coroutine[Any, Any, object]) -> object:
        """Turns the loop until `main` has ended, and returns its result; other tasks are left where they are."""
        events._set_running_loop(self)  # type: ignore[attr-defined]
        task = self.create_task(main)
        while not task.done():
            self._run_once()
        return task.result()

    def run_nested(self, main: Any) -> object:
        """Runs an awaitable to its end from inside the running program (what `asyncio.run` does here)."""
        task = asyncio.ensure_future(main, loop=self)
        outer = tasks.current_task(self)
        if outer is not None:
            tasks._leave_task(self, outer)  # type: ignore[attr-defined]
        try:
            while not task.done():
                self._run_once()
        finally:
            if outer is not None:
                tasks._enter_task(self, outer)  # type: ignore[attr-defined]
        return task.result()

    # What a program may ask of a loop that is already running

    def run_until_complete(self, future: Any) -> Any:
        return self.run_nested(future)

    def close(self) -> None:
        """Does nothing: the loop ends with the run."""

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # noqa: ARG002
        """Calls `func` at once: a sandbox has no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def _parts(calls: list[str]) -> Iterator[list[str]]:
    """Splits calls into what goes out together, because the host reads each message as a whole."""
    part: list[str] = []
    room = _MOST_TEXT
    for call in calls:
        room -= len(call)
        if part and (room < 0 or len(part) == _MOST_CALLS):
            yield part
            part, room = [], _MOST_TEXT - len(call)
        part.append(call)
    yield part


def install(loop: GuestLoop) -> None:
    """Makes `asyncio.run`, `time.sleep` and their kin work on `loop`, the only loop there is."""

    def run(main: Any, *, debug: bool | None = None, loop_factory: object = None) -> object:
        del debug, loop_factory
        return loop.run_nested(main)

    async def to_thread(func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    asyncio.run = run  # type: ignore[assignment]
    asyncio.to_thread = to_thread
    asyncio.new_event_loop = lambda: loop  # type: ignore[assignment]
    asyncio.set_event_loop = lambda _loop: None  # type: ignore[assignment]
    asyncio.get_event_loop = lambda: loop  # type: ignore[assignment]
    time.sleep = loop.sleep
