"""The host's side of the template process, and the workers that it forks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from ..seam import SandboxMisuseError, SandboxUnavailableError

__all__ = ["Worker", "Workers"]

_MAIN: Final = Path(__file__).parent / "inside" / "main.py"
_BOOT_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 10.0
_DYING_SECONDS: Final = 0.5
_BUSY_SECONDS: Final = 0.002
_MESSAGE: Final = 1 << 16
_BUFFER: Final = 1 << 20


class Worker:
    """A forked worker, or one that is being forked.

    Attributes:
        channel: the socket to it, non-blocking.
    """

    def __init__(self, channel: socket.socket, status: socket.socket) -> None:
        self.channel = channel
        self._status = status
        self._lock = threading.Lock()
        self._pidfd: int | None = None
        self._killed = False

    async def arrived(self) -> bool:
        """Waits until it is there; `False` when it could not be forked."""
        while True:
            try:
                message, descriptors, _flags, _address = socket.recv_fds(self._status, 32, 1, socket.MSG_DONTWAIT)
                break
            except BlockingIOError:
                await anyio.wait_readable(self._status.fileno())
        if not message or not descriptors:
            return False
        with self._lock:
            self._pidfd = descriptors[0]
            if self._killed:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
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
            its exit code, negative for the number of a signal; `None` when the template died before it could say.
        """
        await anyio.wait_readable(self._status.fileno())
        with suppress(ConnectionError):
            told = self._status.recv(32)
            return int(told) if told else None
        return None

    def close(self) -> None:
        """Lets go of the descriptors; a worker that is alive ends when its channel does."""
        with self._lock:
            pidfd, self._pidfd = self._pidfd, None
        if pidfd is not None:
            os.close(pidfd)
        self.channel.close()
        self._status.close()


class Workers:
    """The template process of one sandbox and the workers that stand ready.

    Args:
        modules: what programs may import beside what every program may.
        memory_bytes: the address space of a worker beside its interpreter's.
        cpu_seconds: the processor time of a worker.
        ready: how many workers stand ready.
    """

    def __init__(self, modules: Sequence[str], memory_bytes: int, cpu_seconds: int, ready: int) -> None:
        self._boot = {"modules": list(modules), "memory": memory_bytes, "cpu_seconds": cpu_seconds}
        self._wanted = ready
        self._starting = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: deque[Worker] = deque()
        self._owner = os.getpid()
        self._closed = False

    def prepare(self) -> None:
        """Starts the template, if there is none, and has workers made ready. Blocks; call it in a worker thread.

        Raises:
            SandboxMisuseError: it has been closed.
            SandboxUnavailableError: it cannot be started on this machine.
        """
        with self._starting:
            if self._closed:
                raise SandboxMisuseError("prepare() after disposal")
            if self._control is None:
                self._control, self._process = _start(self._boot)
                self.fill()

    async def take(self) -> Worker:
        """Returns a worker that waits for its request; `fill` has another made ready.

        Raises:
            SandboxUnavailableError: none can be forked.
        """
        self._leave_to_the_owner()
        for _attempt in range(2):
            if self._control is None:
                await anyio.to_thread.run_sync(self.prepare)
            control = self._control
            worker = self._ready.popleft() if self._ready else await self._forked()
            if worker is not None:
                if await worker.arrived():
                    return worker
                worker.close()
            if control is not None:
                await anyio.to_thread.run_sync(self._replace_dead, control)
        raise SandboxUnavailableError("the restricted sandbox cannot fork a worker; is there memory and room for one?")

    async def _forked(self) -> Worker | None:
        while True:
            try:
                return self._fork()
            except BlockingIOError:
                await anyio.sleep(_BUSY_SECONDS)

    def fill(self) -> None:
        """Has workers made ready for the next runs, and does not wait for them."""
        self._leave_to_the_owner()
        while len(self._ready) < self._wanted:
            try:
                worker = self._fork()
            except OSError:
                return  # it has enough to do, or there are no descriptors; the next run tries again, and tells
            if worker is None:
                return
            self._ready.append(worker)

    def _fork(self) -> Worker | None:
        """Has a worker forked, and does not wait for it; `None` when the template is gone.

        Raises:
            BlockingIOError: the template has as many to fork as it takes.
        """
        control = self._control
        if control is None:
            return None
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        status, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, told:
                channel.setblocking(False)
                channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
                socket.send_fds(control, [b"fork"], [theirs.fileno(), told.fileno()], socket.MSG_DONTWAIT)
        except OSError as error:
            channel.close()
            status.close()
            if isinstance(error, BlockingIOError):
                raise
            return None
        return Worker(channel, status)

    def _replace_dead(self, control: socket.socket) -> None:
        """Lets go of the template behind a socket when it has died; one that only could not fork keeps its workers."""
        with self._starting:
            if self._control is not control or self._process is None:
                return  # another run has seen it first
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_DYING_SECONDS)
                self._end()

    def close(self) -> None:
        """Ends the template and all its workers, and waits for them. Blocks; call it in a worker thread."""
        with self._starting:
            self._closed = True
            self._leave_to_the_owner()
            self._end()

    def _leave_to_the_owner(self) -> None:
        """In a process that was forked from the one that started the template: lets go of it and of its workers."""
        if os.getpid() == self._owner:
            return
        self._owner = os.getpid()
        control, self._control = self._control, None
        process, self._process = self._process, None
        while self._ready:
            self._ready.popleft().close()
        if control is not None:
            control.close()
        if process is not None:
            process.returncode = 0  # no child of this process, which must not wait for it

    def _end(self) -> None:
        control, self._control = self._control, None
        process, self._process = self._process, None
        while self._ready:
            self._ready.popleft().close()
        if control is not None:
            # Closing it alone is not seen as long as a process that was forked from this one has it too.
            with suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)
            control.close()
        if process is None:
            return
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _start(boot: dict[str, object]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    paths = [str(Path(_required(package)).parent) for package in ("RestrictedPython", "tzdata")]
    if boot["modules"]:
        # What a host adds may need others of its packages.
        paths += [path for path in sys.path if path and Path(path).is_dir()]
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - this interpreter with a file of ours
            [sys.executable, "-I", "-S", "-X", "utf8", str(_MAIN), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    control.settimeout(_BOOT_SECONDS)
    try:
        control.send(json.dumps({**boot, "paths": paths, "seconds": _BOOT_SECONDS}).encode())
        answer = json.loads(control.recv(_MESSAGE) or b"{}")
    except (OSError, ValueError) as error:
        answer = {"failed": f"{type(error).__name__}: {error}"}
    if answer.get("ready") is not True:
        control.close()
        process.kill()
        process.wait()
        cause = answer.get("failed", "it ended without a word")
        raise SandboxUnavailableError(f"the process of the restricted sandbox does not start: {cause}")
    control.setblocking(True)
    return control, process


def _required(package: str) -> str:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SandboxUnavailableError(
            f"the restricted sandbox needs {package}, which is not installed; install the extra: "
            'pip install "ptc-runtime[restricted]"'
        )
    return str(Path(spec.origin).parent)
