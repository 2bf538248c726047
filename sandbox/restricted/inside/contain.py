"""What a worker takes from itself before a program comes: descriptors, privileges, system calls, and its budgets.

own session and process group · dies with its parent · no other descriptor · limits of the kernel ·
no new privileges, not traceable · landlock · a filter on system calls, last
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import Final

from . import landlock, seccomp
from .libc import libc

__all__ = ["Limits", "contain", "drop_privileges", "prepare"]

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38
_NOBODY: Final = 65_534
_MOST_DESCRIPTORS: Final = 16


class Limits:
    """What the kernel holds a worker to.

    Args:
        address_space: bytes of address space, all of the interpreter's included.
        cpu_seconds: whole seconds of processor time.
    """

    __slots__ = ("address_space", "cpu_seconds")

    def __init__(self, address_space: int, cpu_seconds: int) -> None:
        self.address_space = address_space
        self.cpu_seconds = cpu_seconds


def _prctl(option: int, value: int) -> None:
    if libc().prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option} failed")


def drop_privileges() -> None:
    """Becomes nobody when this process is root."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def prepare() -> None:
    """Makes ready what `contain` needs, in the process that the workers are forked from."""
    landlock.abi()
    seccomp.prepare()


def contain(keep: int, parent: int, limits: Limits) -> None:
    """Contains this process for good. What fails is raised: no program runs in a worker that is not contained.

    Args:
        keep: the one descriptor that stays open, beside the standard streams, which lead nowhere.
        parent: the process that forked this one.
        limits: its budgets.

    Raises:
        OSError: the kernel refused a part of it.
    """
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before that was in force
    top = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, keep)
    os.closerange(keep + 1, top)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for what, most in (
        (resource.RLIMIT_AS, limits.address_space),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, _MOST_DESCRIPTORS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(what, (most, most))
    # The soft limit kills by a signal that says why; the hard one is for a program that would ignore it.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 1))
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    version = landlock.abi()
    if version:
        landlock.restrict(version)
    if seccomp.supported():
        seccomp.install()
