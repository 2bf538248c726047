"""What carries one program in a worker process, on the event loop and in no thread."""

from __future__ import annotations

import signal
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from ..peer import IN_ONE_STEP, Completion, read_completion
from ..seam import FailureKind
from ..vehicle import Exit, RunLimits
from ..waits import Patience, outlast
from ..wakeup import when_readable
from .frames import EMIT_BYTES, FAULT_BYTES, FrameReader, OversizeError, frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..vehicle import Port
    from .template import Worker, Workers

__all__ = ["ProcessVehicle"]

_CHUNK: Final = 1 << 16
_WORK_EACH_TURN: Final = 128
"""Frames that are heeded before the event loop goes on with other work; 2 KiB of text count like one more."""
_TEXT_LIKE_A_FRAME: Final = 2048
_ENVELOPE: Final = 64
_ALONE_SECONDS: Final = 0.01
_PARTS: Final = 256
"""Replies that go out in one system call."""
_UTF8: Final = 4
"""The most bytes of one character."""


class ProcessVehicle:
    """Carries one program in a worker.

    Args:
        workers: where it gets the worker.
        request: the guest's request.
        limits: the budgets of the run.
    """

    def __init__(self, workers: Workers, request: str, limits: RunLimits) -> None:
        self._workers = workers
        self._request = request
        self._limits = limits
        self._reader = FrameReader(
            {
                "C": limits.max_queued_bytes * _UTF8,
                "D": limits.max_output_bytes + _ENVELOPE,
                "E": EMIT_BYTES,
                "W": _ENVELOPE,
                "X": FAULT_BYTES,
                "G": 0,
            }
        )
        self._patience = Patience()
        self._worker: Worker | None = None
        self._killed = False
        self._frames: Iterator[tuple[str, str]] | None = None
        self._completion: Completion | Exit | None = None
        self._claim: str | None = None
        self._whole = False
        self._over = False
        self._fault: Exception | None = None
        self._heeding = False
        self._unsent: deque[bytes | memoryview] = deque()
        self._more = anyio.Event()
        self._replied = 0
        self._port: Port | None = None
        self._waiting = False
        self.backlog = 0

    async def drive(self, port: Port) -> Completion | Exit | None:
        worker = await self._patience.wait_for(self._workers.take)
        if worker is None:
            return None  # killed meanwhile
        try:
            # In this order: `kill` sets the flag and then looks at the worker, so one of the two is always seen.
            self._worker, self._port = worker, port
            if self._killed:
                worker.kill()
            await self._converse(worker, port)
            worker.kill()
            if self._whole or self._killed:
                # How it ended does not count then: what it said does, or why it was killed.
                if self._claim is not None:
                    self._completion = await self._patience.wait_for(partial(self._read_claim, self._claim))
                return self._completion
            return self._ending(await self._patience.wait_for(worker.exited))
        finally:
            self._worker = None
            worker.kill()
            await outlast(worker.gone)
            worker.close()

    async def _read_claim(self, text: str) -> Completion | None:
        """Reads a long completion in a thread, so that the event loop goes on."""
        return await anyio.to_thread.run_sync(
            read_completion,
            text,
            self._limits.max_output_bytes,
            abandon_on_cancel=True,
            limiter=anyio.CapacityLimiter(1),
        )

    async def _converse(self, worker: Worker, port: Port) -> None:
        """Talks with the worker until it has completed or has ended."""
        self._keep(frame("Q", self._request))
        port.started()
        try:
            if not self._flush(worker):
                self._more.set()
            async with when_readable(worker.channel, partial(self._look, worker, port)):
                # A short run has the processors to itself; after that the next worker is made beside it.
                with anyio.move_on_after(_ALONE_SECONDS):
                    await self._more.wait()
                if not self._over:
                    self._workers.fill()
                while not self._over:
                    await self._more.wait()
                    self._more = anyio.Event()
                    while not self._over and not self._flush(worker):
                        await anyio.wait_writable(worker.channel)
                    port.taken()
        finally:
            port.waiting()
        if self._fault is not None:
            raise self._fault

    # What the worker says

    def _look(self, worker: Worker, port: Port) -> bool:
        """Heeds what has come, and answers what can be answered; returns whether there may be more at once."""
        if self._over:
            return False
        self._heeding = True
        try:
            more = self._listen(worker, port)
        except OversizeError as error:
            self._end(worker, Completion(kind=FailureKind.OUTPUT_LIMIT) if error.kind == "D" else None)
            return False
        except Exception as fault:  # noqa: BLE001 - `drive` raises it, where the event loop would only log it
            self._fault = fault
            self._stop(worker)
            return False
        finally:
            self._heeding = False
        if self._unsent and not self._over:
            # What has been answered meanwhile goes out together, and now: it is what the worker waits for.
            if self._flush(worker):
                port.taken()
            else:
                self._more.set()
        return more

    def _listen(self, worker: Worker, port: Port) -> bool:
        if self._frames is None:
            try:
                data = worker.channel.recv(_CHUNK)
            except BlockingIOError:
                return False
            except ConnectionError:
                data = b""
            if not data:
                self._stop(worker)
                return False
            self._frames = self._reader.feed(data)
        heeded = 0
        for kind, text in self._frames:
            if kind == "D":
                long = len(text) > IN_ONE_STEP
                self._claim = text if long else None
                self._end(worker, None if long else read_completion(text, self._limits.max_output_bytes))
                return False
            if kind == "X":
                self._end(worker, Exit(f"worker error: {text}"))
                return False
            self._heed(kind, text, port)
            heeded += 1 + len(text) // _TEXT_LIKE_A_FRAME
            if heeded >= _WORK_EACH_TURN:
                return True  # there may be no end of them
        self._frames = None
        return False  # when there is more, the event loop comes back at once

    def _end(self, worker: Worker, completion: Completion | Exit | None) -> None:
        """Keeps what the worker has said last."""
        self._completion, self._whole = completion, True
        self._stop(worker)

    def _stop(self, worker: Worker) -> None:
        worker.kill()
        self._over = True
        self._more.set()

    def _heed(self, kind: str, text: str, port: Port) -> None:
        if kind == "C":
            port.submit(text)
        elif kind == "E":
            port.emit(text)
        elif kind == "G":
            self._waiting = False
            port.started()
        elif text == str(self._replied):
            # Had more been sent to it than it has taken, it would go on at once.
            self._waiting = True
            port.waiting()

    # What it is told

    def reply(self, text: str) -> None:
        worker = self._worker
        if worker is None or self._over:
            return
        self._replied += 1
        self._keep(frame("R", text))
        awaited, self._waiting = self._waiting, False
        if awaited and self._port is not None:
            self._port.started()
        # Where it does not wait for this one, many may go out together.
        if not self._heeding and not (awaited and self._flush(worker)):
            self._more.set()

    def _keep(self, data: bytes) -> None:
        self._unsent.append(data)
        self.backlog += len(data)

    def _flush(self, worker: Worker) -> bool:
        """Sends what is to be sent; returns whether the socket took all of it."""
        unsent = self._unsent
        while unsent:
            try:
                if len(unsent) == 1:
                    sent = worker.channel.send(unsent[0])
                else:
                    sent = worker.channel.sendmsg(list(islice(unsent, _PARTS)))
            except BlockingIOError:
                return False
            except ConnectionError:
                return True  # it has ended; whoever listens sees that
            self._drop(sent)
        return True

    def _drop(self, sent: int) -> None:
        self.backlog -= sent
        while sent:
            first = self._unsent[0]
            if sent < len(first):
                self._unsent[0] = memoryview(first)[sent:]
                return
            self._unsent.popleft()
            sent -= len(first)

    def kill(self) -> None:
        self._killed = True
        worker = self._worker
        if worker is not None:
            worker.kill()
        self._patience.end()

    def _ending(self, code: int | None) -> Completion | Exit | None:
        """Says how a worker ended that did not complete (contract F19)."""
        if code is None:
            return Exit("worker error: it ended, and its template process cannot say how")
        if code == -signal.SIGXCPU:
            message = f"compute budget exhausted ({self._limits.compute_ms:g}ms busy)"
            return Completion(kind=FailureKind.TIMEOUT, message=message)
        if code >= 0:
            return Exit(f"worker exited with code {code} before completing")
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return Exit(f"worker error: killed by {name}")
