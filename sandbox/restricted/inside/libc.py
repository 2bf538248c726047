"""The C library, opened once: each opening makes its functions anew, which a worker need not do."""

from __future__ import annotations

import ctypes
from functools import cache

__all__ = ["libc"]


@cache
def libc() -> ctypes.CDLL:
    """Returns the C library of this process; `ctypes.get_errno()` tells why one of its functions failed."""
    return ctypes.CDLL(None, use_errno=True)
