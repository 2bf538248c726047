"""What carries one program in a worker process, on the event loop and in no thread."""

from __future__ import annotations

import signal
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

import anyio
from anyio.lowlevel import checkpoint

from ..peer import Completion, read_completion
from ..seam import FailureKind
from ..vehicle import Exit, RunLimits
from .frames import EMIT_BYTES, FAULT_BYTES, FrameReader, OversizeError, frame

if TYPE_CHECKING:
    from ..vehicle import Port
    from .template import Worker, Workers

__all__ = ["ProcessVehicle"]

_CHUNK: Final = 1 << 18
_WORK_EACH_TURN: Final = 128
"""Frames that are heeded before the event loop goes on with other work; 2 KiB of text count like one more."""
_TEXT_LIKE_A_FRAME: Final = 2048
_ENVELOPE: Final = 64
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
        self._worker: Worker | None = None
        self._killed = False
        self._unsent: deque[memoryview] = deque()
        self._more = anyio.Event()
        self._replied = 0
        self._port: Port | None = None
        self._waiting = False
        self.backlog = 0

    async def drive(self, port: Port) -> Completion | Exit | None:
        worker = await self._workers.take()
        try:
            # In this order: `kill` sets the flag and then looks at the worker, so one of the two is always seen.
            self._worker, self._port = worker, port
            if self._killed:
                worker.kill()
            completion, whole = await self._converse(worker, port)
            worker.kill()
            code = await worker.exited()
        finally:
            self._worker = None
            worker.kill()
            worker.close()
        return completion if whole else self._ending(code)

    async def _converse(self, worker: Worker, port: Port) -> tuple[Completion | Exit | None, bool]:
        """Talks with the worker until it has completed or has ended; tells which with the completion."""
        heard: tuple[Completion | Exit | None, bool] = None, False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write, worker)
            self._send(worker, frame("Q", self._request))
            port.started()
            try:
                heard = await self._listen(worker, port)
            finally:
                port.waiting()
                tasks.cancel_scope.cancel()
        return heard

    async def _listen(self, worker: Worker, port: Port) -> tuple[Completion | Exit | None, bool]:
        heeded = 0
        while True:
            try:
                data = worker.channel.recv(_CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(worker.channel)
                continue
            except ConnectionError:
                data = b""
            if not data:
                return None, False
            try:
                for kind, text in self._reader.feed(data):
                    if kind == "D":
                        return read_completion(text, self._limits.max_output_bytes), True
                    if kind == "X":
                        return Exit(f"worker error: {text}"), True
                    self._heed(kind, text, port)
                    heeded += 1 + len(text) // _TEXT_LIKE_A_FRAME
                    if heeded >= _WORK_EACH_TURN:
                        heeded = 0
                        await checkpoint()  # there may be no end of them
            except OversizeError as error:
                if error.kind == "D":
                    return Completion(kind=FailureKind.OUTPUT_LIMIT), True
                return None, True

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

    def reply(self, text: str) -> None:
        worker = self._worker
        if worker is None:
            return
        self._replied += 1
        data = frame("R", text)
        if self._waiting and self._port is not None:
            self._waiting = False
            self._port.started()
            self._send(worker, data)
        else:
            # It is not waiting for this one, so that many may go out together.
            self._keep(memoryview(data))

    def _send(self, worker: Worker, data: bytes) -> None:
        view = memoryview(data)
        if not self._unsent:
            try:
                view = view[worker.channel.send(view) :]
            except BlockingIOError:
                pass
            except ConnectionError:
                return  # it has ended; whoever listens sees that
        if view:
            self._keep(view)

    def _keep(self, view: memoryview) -> None:
        self._unsent.append(view)
        self.backlog += len(view)
        self._more.set()

    async def _write(self, worker: Worker) -> None:
        """Sends what the socket did not take at once, and what may go out together."""
        while True:
            await self._more.wait()
            self._more = anyio.Event()
            while self._unsent:
                try:
                    sent = worker.channel.sendmsg(list(islice(self._unsent, _PARTS)))
                except BlockingIOError:
                    await anyio.wait_writable(worker.channel)
                    continue
                except ConnectionError:
                    return
                self._drop(sent)
            if self._port is not None:
                self._port.taken()

    def _drop(self, sent: int) -> None:
        self.backlog -= sent
        while sent:
            first = self._unsent[0]
            if sent < len(first):
                self._unsent[0] = first[sent:]
                return
            self._unsent.popleft()
            sent -= len(first)

    def kill(self) -> None:
        self._killed = True
        worker = self._worker
        if worker is not None:
            worker.kill()

    def _ending(self, code: int | None) -> Completion | Exit | None:
        """Says how a worker ended that did not complete (contract F19)."""
        if code is None:
            return Exit("worker error: its template process has died")
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
