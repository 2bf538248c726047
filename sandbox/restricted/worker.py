"""One worker as its host sees it: a channel, word from its template, and a descriptor of its process."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import anyio

__all__ = ["Worker"]

_TELL_SECONDS: Final = 2.0
"""How long a template may take to tell how a worker ended: it does so at once, unless it has been stopped."""


class Worker:
    """A forked worker, or one that is being forked.

    Args:
        channel: the socket to it, non-blocking.
        status: where its template tells of it.
        closed: called once it has been let go of.

    Attributes:
        channel: the socket to it.
    """

    def __init__(
        self, channel: socket.socket, status: socket.socket, closed: Callable[[], object] | None = None
    ) -> None:
        self.channel = channel
        # By its mode and not by a flag: `recv_fds` takes flags, and in some versions of Python leaves them out.
        status.setblocking(False)
        self._status = status
        self._closed = closed
        self._lock = threading.Lock()
        self._pidfd: int | None = None
        self._killed = False

    async def arrived(self) -> bool:
        """Waits until it is there; `False` when it could not be forked. May be cancelled, and called again."""
        while True:
            try:
                return self._look()
            except BlockingIOError:
                await anyio.wait_readable(self._status.fileno())

    def _look(self) -> bool:
        """Takes what the template tells of it first; returns whether it is there.

        Raises:
            BlockingIOError: nothing has been told yet.
        """
        try:
            message, descriptors, _flags, _address = socket.recv_fds(self._status, 32, 1)
        except ConnectionError:
            return False
        if not message or not descriptors:
            return False
        with self._lock:
            self._pidfd = descriptors[0]
            killed = self._killed
        if killed:
            self.kill()
        return True

    def kill(self) -> None:
        """Ends it at once, from any thread; also when it is not there yet."""
        with self._lock:
            self._killed = True
            if self._pidfd is not None:
                with suppress(ProcessLookupError):  # it has ended by itself
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def gone(self) -> None:
        """Waits until its process has ended. Its template reaps it soon after."""
        if self._pidfd is not None:
            await anyio.wait_readable(self._pidfd)

    async def exited(self) -> int | None:
        """Waits until it has ended and has been reaped.

        Returns:
            its exit code, negative for the number of a signal; `None` when its template cannot say, because it has
            died or is stopped.
        """
        await self.gone()
        with anyio.move_on_after(_TELL_SECONDS), suppress(ConnectionError):
            await anyio.wait_readable(self._status.fileno())
            told = self._status.recv(32)
            return int(told) if told else None
        return None

    def leave(self, seconds: float) -> None:
        """Waits until there is no such process, and lets go of it; for one that nobody has taken. Blocks.

        Args:
            seconds: how long at most.
        """
        with suppress(BlockingIOError):
            self._look()
        poll = select.poll()
        if self._pidfd is not None:
            poll.register(self._pidfd, select.POLLIN)
        else:
            poll.register(self.channel, 0)  # nothing has its other end any more: that is told unasked
        poll.poll(seconds * 1000)
        self.close()

    def close(self) -> None:
        """Lets go of the descriptors; a worker that is alive ends when its channel does.

        One that is not there yet ends as soon as it is: it finds its channel closed, and its template finds that nobody
        wants to know of it, and kills it.
        """
        with self._lock:
            pidfd, self._pidfd = self._pidfd, None
            closed, self._closed = self._closed, None
        if pidfd is not None:
            os.close(pidfd)
        self.channel.close()
        self._status.close()
        if closed is not None:
            closed()
