"""How large the stack of a thread is: by the system's word, as the limits that it comes from differ by C library."""

from __future__ import annotations

import ctypes
import threading

__all__ = ["thread_stack_bytes"]

_ATTRIBUTES_BYTES = 256
"""More than any system's `pthread_attr_t` takes."""
_USUAL = 8 << 20
"""What is taken for true where the system cannot tell."""


def thread_stack_bytes() -> int:
    """Returns the size of the calling thread's stack."""
    libc = ctypes.CDLL(None)
    thread = ctypes.c_void_p(threading.get_ident())
    if hasattr(libc, "pthread_get_stacksize_np"):  # macOS
        libc.pthread_get_stacksize_np.restype = ctypes.c_size_t
        return int(libc.pthread_get_stacksize_np(thread))
    if not hasattr(libc, "pthread_getattr_np"):
        return _USUAL
    attributes = ctypes.create_string_buffer(_ATTRIBUTES_BYTES)
    size = ctypes.c_size_t()
    if libc.pthread_getattr_np(thread, attributes) != 0:
        return _USUAL
    try:
        told = libc.pthread_attr_getstacksize(attributes, ctypes.byref(size))
    finally:
        libc.pthread_attr_destroy(attributes)
    return size.value if told == 0 else _USUAL
