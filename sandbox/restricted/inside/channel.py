"""A worker's end of the conversation with its host: the guest's three verbs over one socket."""

from __future__ import annotations

import os
import select
import socket
import time
from typing import Final, Self

from ...guest.warm import replies_to
from ..frames import EMIT_BYTES, FAULT_BYTES, LONGEST, FrameReader, frame, frame_of

__all__ = ["Rehearsal", "SocketChannel"]

_CHUNK: Final = 1 << 16
_MILLISECONDS: Final = 1000
_LONGEST_MS: Final = 1 << 30


class SocketChannel:
    """The way to the host; see `frames` for what crosses.

    Args:
        descriptor: the socket, which stays blocking: a wait without end is then one system call.
    """

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(True)
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._both = select.poll()
        self._both.register(descriptor, select.POLLIN | select.POLLOUT)
        self._reader = FrameReader({"Q": LONGEST, "R": LONGEST})
        self._outbound = b""
        self._replies: list[str] = []
        self._taken = 0

    def request(self) -> str:
        """Returns the request, which comes first; ends the worker when its host has gone."""
        while not self._read(0):
            pass
        return self._replies.pop()

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
        if self._outbound and timeout_us:
            # Said unseen: the host does not believe in a wait when it has sent more than has been taken.
            self._sleep(timeout_us)
        else:
            self._read(socket.MSG_DONTWAIT)
            if self._outbound:
                self._write(b"")
            elif not self._replies and timeout_us:
                self._sleep(timeout_us)
        replies, self._replies = self._replies, []
        self._taken += len(replies)
        return "[" + ",".join(replies) + "]"

    def _sleep(self, timeout_us: int) -> None:
        until = time.monotonic() + timeout_us / 1e6
        self._write(frame("W", str(self._taken)))
        while not self._replies:
            if timeout_us < 0:
                self._read(0)
                continue
            left = until - time.monotonic()
            if left <= 0:
                self._write(frame("G", ""))
                return
            self._poll.poll(min(left * _MILLISECONDS, _LONGEST_MS))
            self._read(socket.MSG_DONTWAIT)

    def _read(self, flags: int) -> bool:
        """Takes in what has come; returns whether there is a frame."""
        try:
            while data := self._socket.recv(_CHUNK, flags):
                self._replies.extend([text for _kind, text in self._reader.feed(data)])
                if len(data) < _CHUNK:
                    return bool(self._replies)
                flags = socket.MSG_DONTWAIT
        except BlockingIOError:
            return bool(self._replies)
        os._exit(0)  # the host has gone

    def _write(self, data: bytes) -> None:
        view = memoryview(self._outbound + data)
        self._outbound = b""
        while view:
            try:
                view = view[self._socket.send(view, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                # The host may be waiting for its replies to be taken before it reads on.
                self._both.poll()
                self._read(socket.MSG_DONTWAIT)
            except BrokenPipeError:
                os._exit(0)


class Rehearsal(SocketChannel):
    """A channel whose other end is here as well, and answers the calls of a warm-up program."""

    def __init__(self) -> None:
        ours, self._peer = socket.socketpair()
        super().__init__(ours.detach())
        self._calls = FrameReader(dict.fromkeys("CDEGW", LONGEST))

    def _write(self, data: bytes) -> None:
        super()._write(data)
        for kind, text in self._calls.feed(self._peer.recv(_CHUNK)):
            if kind == "C":
                for reply in replies_to(text):
                    self._peer.send(frame("R", reply))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._peer.close()
        self._socket.close()
