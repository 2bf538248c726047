"""The template: a process that has loaded everything once, and forks a worker for each run.

Its host sends, over one socket, `boot` and then any number of `fork`, each with two descriptors: the worker's channel,
and where to tell of it. There it says the worker's process number, with a descriptor of the process, and in the end how
it ended. When the host has gone, all workers are killed and the template ends.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ...guest.preload import MODULES
from ...guest.run import run
from ...guest.warm import BRIEF, THOROUGH, warm
from ...guest.zones import keep_zones
from .channel import Rehearsal, SocketChannel
from .contain import Limits, contain, drop_privileges, prepare
from .reseed import reseed

if TYPE_CHECKING:
    from .language import RestrictedDialect

__all__ = ["main"]

_MESSAGE: Final = 1 << 20
_ONE_THREAD: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def main(control_fd: int) -> None:
    """Serves until the host has gone."""
    control = socket.socket(fileno=control_fd)
    try:
        boot: dict[str, Any] = json.loads(control.recv(_MESSAGE))
        # Its host may be gone before a module of the host has been loaded, which may never end: then this ends it.
        signal.alarm(math.ceil(boot["seconds"]))
        dialect = _prepare(boot)
        limits = Limits(_address_space() + boot["memory"], boot["cpu_seconds"])
    except Exception as error:  # noqa: BLE001 - whatever it is, the host has to be told
        control.send(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        return
    signal.alarm(0)
    control.send(json.dumps({"ready": True}).encode())
    _Template(control, dialect, limits).serve()


def _prepare(boot: dict[str, Any]) -> RestrictedDialect:
    sys.path[:0] = boot["paths"]
    from .language import RestrictedDialect  # only now: it is made of what lies on that path

    # A fork takes along one thread alone, so libraries must not start others.
    os.environ.update({**dict.fromkeys(_ONE_THREAD, "1"), "TZ": "UTC"})
    time.tzset()  # a program is not told where its host is
    keep_zones()
    dialect = RestrictedDialect(boot["modules"])
    for name in MODULES:
        if name.startswith("encodings."):  # a worker has no files to load them from
            importlib.import_module(name)
    with Rehearsal() as channel:
        warm(dialect, THOROUGH, channel)
    os.environ.clear()
    sys.path.clear()
    drop_privileges()
    prepare()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.close(nowhere)
    gc.collect()
    gc.freeze()  # what is there now is shared with the workers, and stays so when they collect
    return dialect


def _address_space() -> int:
    """Returns the bytes of address space that this process has now."""
    with open("/proc/self/statm", encoding="utf-8") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()


class _Worker:
    """A worker as its template knows it."""

    __slots__ = ("pid", "pidfd", "status")

    def __init__(self, pid: int, pidfd: int, status: socket.socket) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.status = status


class _Template:
    """Forks workers and tells how they ended.

    Args:
        control: the socket to the host.
        dialect: the language of the programs.
        limits: the budgets of each worker.
    """

    def __init__(self, control: socket.socket, dialect: RestrictedDialect, limits: Limits) -> None:
        self._control = control
        self._dialect = dialect
        self._limits = limits
        self._workers: dict[int, _Worker] = {}
        self._poll = select.poll()

    def serve(self) -> None:
        control = self._control.fileno()
        self._poll.register(control, select.POLLIN)
        while True:
            for descriptor, _event in self._poll.poll():
                if descriptor != control:
                    self._reap(self._workers[descriptor])
                elif not self._obey():
                    self._end()
                    return

    def _obey(self) -> bool:
        """Does what the host says; returns whether it is still there."""
        message, descriptors, _flags, _address = socket.recv_fds(self._control, 16, 2)
        if not message:
            return False
        channel, status = descriptors
        self._fork(channel, socket.socket(fileno=status))
        return True

    def _fork(self, channel: int, status: socket.socket) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            status.close()  # which tells the host that there is no worker
            os.close(channel)
            return
        if pid == 0:
            self._work(channel, parent)
        os.close(channel)
        pidfd = os.pidfd_open(pid)
        worker = self._workers[pidfd] = _Worker(pid, pidfd, status)
        self._poll.register(pidfd, select.POLLIN)
        try:
            socket.send_fds(status, [str(worker.pid).encode()], [pidfd])
        except OSError:
            os.kill(pid, signal.SIGKILL)  # the host does not want it any more

    def _work(self, channel: int, parent: int) -> None:
        """Is the worker; does not return."""
        code = 1
        conversation = SocketChannel(channel)
        try:
            contain(channel, parent, self._limits)
            # Once more: what a run writes to is shared with the template until the first write, and those are slow.
            warm(self._dialect, BRIEF)
            reseed()
            request = conversation.request()
            gc.enable()
            conversation.complete(run(conversation, request, self._dialect))
            code = 0
        except BaseException as error:  # noqa: BLE001 - nobody but the host can be told
            conversation.fail(f"{type(error).__name__}: {error}")
        finally:
            os._exit(code)

    def _reap(self, worker: _Worker) -> None:
        """Ends what is left of a worker's process group, and tells the host how the worker ended."""
        os.waitid(os.P_PIDFD, worker.pidfd, os.WEXITED | os.WNOWAIT)
        # Its number cannot have been given to another yet, because it has not been waited for.
        with suppress(ProcessLookupError, PermissionError):  # where nothing is left but the dead leader
            os.killpg(worker.pid, signal.SIGKILL)
        _pid, how = os.waitpid(worker.pid, 0)
        del self._workers[worker.pidfd]
        self._poll.unregister(worker.pidfd)
        os.close(worker.pidfd)
        with suppress(OSError):  # the host may not have waited for it
            worker.status.send(str(os.waitstatus_to_exitcode(how)).encode())
        worker.status.close()

    def _end(self) -> None:
        for worker in list(self._workers.values()):
            signal.pidfd_send_signal(worker.pidfd, signal.SIGKILL)
            self._reap(worker)
