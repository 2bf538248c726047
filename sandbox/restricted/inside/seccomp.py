"""A filter on system calls: what computing and a conversation over one open socket need, and nothing else.

Whatever is not on the list fails with EPERM. Memory can be neither mapped nor made executable.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
from functools import cache
from typing import Final

from .libc import libc

__all__ = ["install", "prepare", "supported"]

# By machine: the audit number of its calling convention, and the numbers of the calls.
_X86_64: Final = {
    "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "munmap": 11, "brk": 12,
    "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "readv": 19, "writev": 20, "sched_yield": 24,
    "mremap": 25, "madvise": 28, "nanosleep": 35, "getpid": 39, "sendto": 44, "recvfrom": 45, "exit": 60,
    "fcntl": 72, "gettimeofday": 96, "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202,
    "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231,
    "ppoll": 271, "getrandom": 318, "rseq": 334,
}  # fmt: skip
_AARCH64: Final = {
    "fcntl": 25, "close": 57, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "ppoll": 73,
    "fstat": 80, "exit": 93, "exit_group": 94, "futex": 98, "nanosleep": 101, "clock_gettime": 113,
    "clock_getres": 114, "clock_nanosleep": 115, "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132,
    "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "gettimeofday": 169, "getpid": 172,
    "gettid": 178, "sendto": 206, "recvfrom": 207, "brk": 214, "munmap": 215, "mremap": 216, "madvise": 233,
    "getrandom": 278, "rseq": 293,
}  # fmt: skip
# Allowed as long as the protection that they ask for, their third argument, is not executable.
_PROTECTING: Final = {"x86_64": (9, 10), "aarch64": (222, 226)}  # mmap, mprotect
_MACHINES: Final = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_IF_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_IF_ANY: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_ALLOW: Final = 0x7FFF0000
_KILL_PROCESS: Final = 0x80000000
_REFUSE: Final = 0x00050000 | errno.EPERM

# Offsets in `struct seccomp_data`.
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_THIRD_ARGUMENT: Final = 16 + 2 * 8

_PR_SET_SECCOMP: Final = 22
_PR_GET_SECCOMP: Final = 21
_FILTER_MODE: Final = 2


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


@cache
def _filter() -> bytes:
    machine = os.uname().machine
    architecture, calls = _MACHINES[machine]
    steps = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_JUMP_IF_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD, _NUMBER),
    ]
    for number in sorted(calls.values()):
        steps += [_instruction(_JUMP_IF_EQUAL, number, 0, 1), _instruction(_RETURN, _ALLOW)]
    for number in _PROTECTING[machine]:
        steps += [
            _instruction(_JUMP_IF_EQUAL, number, 0, 4),
            _instruction(_LOAD, _THIRD_ARGUMENT),
            _instruction(_JUMP_IF_ANY, mmap.PROT_EXEC, 0, 1),
            _instruction(_RETURN, _REFUSE),
            _instruction(_RETURN, _ALLOW),
        ]
    return b"".join([*steps, _instruction(_RETURN, _REFUSE)])


@cache
def supported() -> bool:
    """Tells whether this machine has such filters and this module knows its system calls."""
    try:
        known = os.uname().machine in _MACHINES
        return known and libc().prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0
    except (AttributeError, OSError):
        return False


def prepare() -> None:
    """Makes ready what `install` needs, in the process that the workers are forked from."""
    if supported():
        _filter()


def install() -> None:
    """Puts the filter on this process, for good; it must have given up new privileges before.

    Raises:
        OSError: the kernel does not take it.
    """
    code = _filter()
    program = _Program(len(code) // 8, code)
    if libc().prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp refused the filter")
