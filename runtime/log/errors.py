"""What the session log raises: it cannot be used, or it holds what this version does not know."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from ...registry.errors import HarnessError

__all__ = ["LogUnavailableError", "UnavailableReason", "UnknownEventError"]

UnavailableReason: TypeAlias = Literal[
    "missing",  # no such file, or no such directory
    "not-a-log",  # a directory, no database, or the database of another program
    "no-permission",
    "newer",  # written by a newer version
    "locked",  # another process kept the file busy
    "damaged",  # it is a log, and its content cannot be read
    "closed",  # the store has been closed, or was never opened
    "replaced",  # the file was moved or deleted while the store had it open
    "failed",  # the disk is full, or another fault of the system below
]


class LogUnavailableError(HarnessError):
    """The log cannot be opened, written or read. The message says what happened, where, and what to do.

    Nothing was recorded when `append` raises it, so the effect that the record announces must not happen.

    Args:
        message: what happened, with the path of the log, and the way out.
        reason: which kind of trouble it is.
    """

    default_code: ClassVar[str] = "LOG_UNAVAILABLE"

    def __init__(self, message: str, *, reason: UnavailableReason) -> None:
        super().__init__(message)
        self.reason: UnavailableReason = reason


class UnknownEventError(HarnessError):
    """A session holds an event that this version does not know and that is not marked ignorable (contract I15)."""

    default_code: ClassVar[str] = "UNKNOWN_EVENT"
