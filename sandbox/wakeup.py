"""Waking the event loop from another thread, on whichever loop runs.

anyio's own ways start a task or wait for an answer; here a bare callback is enough, and it is on the path of every
call that a program makes.
"""

from __future__ import annotations

from collections.abc import Callable

from anyio.lowlevel import current_token

__all__ = ["loop_caller", "thread_safe_caller"]


def thread_safe_caller() -> Callable[[Callable[[], object]], object]:
    """Returns a function with which other threads have a callback run soon on the current event loop.

    Call it on the loop. What it returns raises `RuntimeError` once the loop has ended.
    """
    loop = current_token().native_token
    # Trio's token and asyncio's loop have the same thing under two names.
    caller = getattr(loop, "run_sync_soon", None) or getattr(loop, "call_soon_threadsafe", None)
    if caller is None:
        raise RuntimeError(f"no way is known to wake a {type(loop).__name__} from another thread")
    return caller


def loop_caller() -> Callable[[Callable[[], object]], object]:
    """Returns a function with which the loop's own thread has a callback run in a later turn. Call it on the loop."""
    loop = current_token().native_token
    # Where there is no cheaper way than the one that other threads use, that one serves.
    caller = getattr(loop, "call_soon", None)
    return caller if caller is not None else thread_safe_caller()
