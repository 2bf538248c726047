"""A worker's end of the conversation with its host: the guest's three verbs over one socket."""

from __future__ import annotations

import os
import select
import time
from collections import deque
from typing import Final

from ..frames import EMIT_BYTES, FAULT_BYTES, LONGEST, FrameReader, frame, frame_of

__all__ = ["SocketChannel"]

_CHUNK: Final = 1 << 20
_MILLISECONDS: Final = 1000
_LONGEST_MS: Final = 1 << 30


class SocketChannel:
    """The way to the host; see `frames` for what crosses.

    Args:
        descriptor: the socket. It is made non-blocking.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._fd = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._both = select.poll()
        self._both.register(descriptor, select.POLLIN | select.POLLOUT)
        self._reader = FrameReader({"Q": LONGEST, "R": LONGEST})
        self._outbound = b""
        self._replies: deque[str] = deque()
        self._taken = 0

    def request(self) -> str:
        """Returns the request, which comes first; ends the worker when its host has gone."""
        while True:
            if self._read():
                return self._replies.popleft()
            self._poll.poll()

    def submit(self, calls: str) -> None:
        # Kept for the next frame, which comes at once: a program that has made calls asks for what has settled.
        self._outbound += frame("C", calls)

    def emit(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        for start in range(0, len(data), EMIT_BYTES):
            self._write(frame_of("E", data[start : start + EMIT_BYTES]))

    def complete(self, completion: str) -> None:
        """Says what came of the program; nothing counts afterwards."""
        self._write(frame("D", completion))

    def fail(self, problem: str) -> None:
        """Says what went wrong in the worker itself, which ends with it."""
        self._write(frame_of("X", problem.encode("utf-8", "backslashreplace")[:FAULT_BYTES]))

    def wait(self, timeout_us: int) -> str:
        self._read()
        if self._outbound and (self._replies or not timeout_us):
            self._write(b"")
        if not self._replies and timeout_us:
            self._write(frame("W", str(self._taken)))
            self._sleep(None if timeout_us < 0 else time.monotonic() + timeout_us / 1e6)
        replies = list(self._replies)
        self._replies.clear()
        self._taken += len(replies)
        return "[" + ",".join(replies) + "]"

    def _sleep(self, until: float | None) -> None:
        while not self._read():
            if until is None:
                self._poll.poll()
                continue
            left = until - time.monotonic()
            if left <= 0:
                self._write(frame("G", ""))
                return
            self._poll.poll(min(left * _MILLISECONDS, _LONGEST_MS))

    def _read(self) -> bool:
        """Takes in what has come; returns whether there is a frame."""
        while (data := self._pull()) is not None:
            if not data:
                os._exit(0)  # the host has gone
            self._replies.extend([text for _kind, text in self._reader.feed(data)])
            if len(data) < _CHUNK:
                break
        return bool(self._replies)

    def _pull(self) -> bytes | None:
        try:
            return os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return None

    def _write(self, data: bytes) -> None:
        view = memoryview(self._outbound + data)
        self._outbound = b""
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                # The host may be waiting for its replies to be taken before it reads on.
                self._both.poll()
                self._read()
            except BrokenPipeError:
                os._exit(0)
