"""The template process as its host sees it: started, asked for workers, found to hang, and ended."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ..seam import SandboxUnavailableError
from .worker import Worker

__all__ = ["Template"]

_MAIN: Final = Path(__file__).parent / "inside" / "main.py"
_BOOT_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.1
_SILENT_SECONDS: Final = 10.0
"""How long a template may give no sign of life while it is waited for; to fork a worker takes it a millisecond."""
_MESSAGE: Final = 1 << 16
_BUFFER: Final = 1 << 20


class Template:
    """A template process that stands ready to fork.

    Args:
        control: the socket to it.
        process: itself.

    Attributes:
        process: itself.
    """

    def __init__(self, control: socket.socket, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._control: socket.socket | None = control
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._workers = 0
        self._retired = False
        self._awaited_since: float | None = None

    @classmethod
    def start(cls, boot: dict[str, object], started: Callable[[subprocess.Popen[bytes]], object]) -> Template:
        """Starts one. Blocks until it stands ready, a minute at most.

        Args:
            boot: what it is told.
            started: told of the process as soon as there is one; whoever kills it ends the wait.

        Raises:
            SandboxUnavailableError: it cannot be started on this machine.
        """
        control, process = _spawn(boot, started)
        return cls(control, process)

    def fork(self) -> Worker | None:
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
                socket.send_fds(control, [b"fork"], [theirs.fileno(), told.fileno()])
        except OSError as error:
            channel.close()
            status.close()
            if isinstance(error, BlockingIOError):
                raise
            return None
        with self._lock:
            self._workers += 1
        return Worker(channel, status, self._let_go_of_one)

    # Whether it hangs

    def awaited(self) -> None:
        """Says that a run begins to wait for a worker."""
        if self._awaited_since is None:
            self._awaited_since = time.monotonic()

    def answered(self) -> None:
        """Says that a worker has come."""
        self._awaited_since = None

    @property
    def doubted(self) -> bool:
        """Whether a run is waiting for it, or has waited in vain."""
        return self._awaited_since is not None

    def hangs(self) -> bool:
        """Tells whether it has been stopped, or has given no sign of life for long to those who wait."""
        since = self._awaited_since
        return self._stopped() or (since is not None and time.monotonic() - since > _SILENT_SECONDS)

    def _stopped(self) -> bool:
        try:
            told = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False  # it has ended, which shows elsewhere
        return told.rpartition(")")[2].split()[0] in ("T", "t")

    def ended(self) -> bool:
        """Tells whether the process has ended."""
        return self.process.poll() is not None

    # Its end

    def retire(self) -> None:
        """Has it end as soon as no run has a worker of it any more: they die with it."""
        with self._lock:
            self._retired = True
        self._end_when_unused()

    def _let_go_of_one(self) -> None:
        with self._lock:
            self._workers -= 1
        self._end_when_unused()

    def _end_when_unused(self) -> None:
        with self._lock:
            if not self._retired or self._workers or self._control is None or os.getpid() != self._owner:
                return
            control, self._control = self._control, None
        control.close()
        self.process.kill()
        # It is reaped beside the event loop, which a process that dies slowly must not keep.
        threading.Thread(target=self.process.wait, name="ptc-template-end", daemon=True).start()

    def end(self) -> None:
        """Ends it and all its workers, and waits for that. Blocks: seconds at most, also when it has been stopped."""
        with self._lock:
            control, self._control = self._control, None
        if control is not None:
            # Closing it alone is not seen as long as a process that was forked from this one has it too.
            with suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)
            control.close()
        until = time.monotonic() + _STOP_SECONDS
        while True:
            if self._stopped() or time.monotonic() > until:
                self.process.kill()
                self.process.wait()
                return
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_LOOK_SECONDS)
                return

    def leave_to_the_owner(self) -> None:
        """In a process that was forked from the one that started it: lets go of it."""
        self._lock = threading.Lock()
        control, self._control = self._control, None
        if control is not None:
            control.close()
        self.process.returncode = 0  # no child of this process, which must not wait for it


def _spawn(
    boot: dict[str, object], started: Callable[[subprocess.Popen[bytes]], object]
) -> tuple[socket.socket, subprocess.Popen[bytes]]:
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
    started(process)
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
    control.setblocking(False)  # by its mode, because `send_fds` leaves out its flags in some versions of Python
    return control, process


def _required(package: str) -> str:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SandboxUnavailableError(
            f"the restricted sandbox needs {package}, which is not installed; install the extra: "
            'pip install "ptc-runtime[restricted]"'
        )
    return str(Path(spec.origin).parent)
