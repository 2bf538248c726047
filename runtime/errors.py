"""What the runtime adds to the tree of errors in `registry/errors.py`."""

from __future__ import annotations

from ..registry import HarnessError

__all__ = ["CodeRunFailedError"]

_HINTS = {
    "output-limit": "print and return less; count, filter or cut it down in the program.",
    "timeout": "do less in one run, with calls side by side in asyncio.gather; what its calls have done stays done.",
    "worker-exit": "where the program holds much in memory, hold less at once; what its calls have done stays done.",
}
"""What whoever wrote the program can do about a failure that is no exception of it, by its kind."""


class CodeRunFailedError(HarnessError):
    """A program did not complete (contract E34).

    Args:
        kind: the failure kind, for example `exception` or `timeout` (contract F3).
        message: what happened, for whoever wrote the program.
        logs: what the program had written.
    """

    default_code = "CODE_RUN_FAILED"

    def __init__(self, kind: str, message: str, logs: tuple[str, ...] = ()) -> None:
        text = f"code run failed ({kind}): {message}"
        if kind in _HINTS:
            text += f"\nHint: {_HINTS[kind]}"
        if logs:
            text += "\nCaptured output:\n" + "\n".join(logs)
        super().__init__(text)
        self.kind = kind
        self.logs = logs
