"""Landlock: this process opens no file, no TCP connection, and reaches no process outside itself.

The rules are a layer of their own beside the filter on system calls, which refuses the same earlier.
"""

from __future__ import annotations

import ctypes
import os
import struct
from functools import cache
from typing import Final

from .libc import libc

__all__ = ["NETWORK_SINCE", "abi", "restrict"]

_CREATE_RULESET: Final = 444
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1

# How many rights the file system has in each version of the interface, from the first on; then those of the network.
_FILE_RIGHTS: Final = (13, 14, 15, 15, 16)
NETWORK_SINCE: Final = 4
_NETWORK_RIGHTS: Final = 0b11  # bind and connect TCP
_SCOPES_SINCE: Final = 6
_SCOPES: Final = 0b11  # abstract Unix sockets, signals


def _syscall(*arguments: object) -> int:
    syscall = libc().syscall
    syscall.restype = ctypes.c_long
    return int(syscall(*arguments))


@cache
def abi() -> int:
    """Returns the version of the interface that this kernel has; 0 for none."""
    try:
        return max(0, _syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))
    except (AttributeError, OSError):
        return 0


def restrict(version: int) -> None:
    """Takes from this process, for good, every right that the interface knows.

    Args:
        version: what `abi` said.

    Raises:
        OSError: the kernel does not take it.
    """
    files = (1 << _FILE_RIGHTS[min(version, len(_FILE_RIGHTS)) - 1]) - 1
    handled = [files]
    if version >= NETWORK_SINCE:
        handled.append(_NETWORK_RIGHTS)
    if version >= _SCOPES_SINCE:
        handled.append(_SCOPES)
    attributes = struct.pack(f"={len(handled)}Q", *handled)
    ruleset = _syscall(ctypes.c_long(_CREATE_RULESET), attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock made no ruleset")
    try:
        if _syscall(ctypes.c_long(_RESTRICT_SELF), ctypes.c_int(ruleset), ctypes.c_uint32(0)) != 0:
            raise OSError(ctypes.get_errno(), "landlock refused the ruleset")
    finally:
        os.close(ruleset)
