"""Reads a log as it was at one instant, and tells whether somebody has it open for writing."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Final, TypeVar

from .database import connect_reader, explained
from .errors import LogUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["file_state", "read_snapshot", "resting_state"]

T = TypeVar("T")

_TRIES: Final = 20
"""How often a file is read again because writers came and went meanwhile."""


def read_snapshot(path: Path, read: Callable[[sqlite3.Connection], T]) -> T:
    """Reads a log in one transaction: all that `read` sees is of one instant, whoever writes meanwhile.

    Args:
        path: the absolute path of the file.
        read: reads over the connection that it is given. It is called again, and what it returned or raised before
            is forgotten, when a writer appeared while a file without writers was read.

    Raises:
        LogUnavailableError: the file is not there, or is no log that this version reads, or cannot be read.
    """
    with explained(path, "read"):
        for _ in range(_TRIES):
            seen = resting_state(path)
            try:
                found = _read_once(path, seen is not None, read)
            except (sqlite3.DatabaseError, UnicodeDecodeError, LogUnavailableError):
                if seen is None or seen == file_state(path):
                    raise
                continue
            if seen is None or seen == file_state(path):
                return found
    raise LogUnavailableError(
        f"cannot read the log {path}: processes open, write and close it all the time; try again, or read a copy",
        reason="locked",
    )


def _read_once(path: Path, frozen: bool, read: Callable[[sqlite3.Connection], T]) -> T:
    connection = connect_reader(path, frozen=frozen)
    try:
        connection.execute("BEGIN")
        return read(connection)
    finally:
        connection.close()


def resting_state(path: Path) -> tuple[int, int] | None:
    """Returns the state of a file that nobody has open for writing, and `None` when somebody has, or died with it."""
    wal = path.with_name(path.name + "-wal")
    return None if wal.exists() or not path.exists() else file_state(path)


def file_state(path: Path) -> tuple[int, int]:
    """Returns what changes when somebody writes to the database file itself: its time of change and its size."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size
