"""What the runtime adds to the tree of errors in `registry/errors.py`."""

from __future__ import annotations

from ..registry import HarnessError

__all__ = ["CodeRunFailedError"]


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
        if logs:
            text += "\nCaptured output:\n" + "\n".join(logs)
        super().__init__(text)
        self.kind = kind
        self.logs = logs
