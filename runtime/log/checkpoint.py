"""Moves what the write-ahead log holds into the database file, in a thread of its own.

A checkpoint waits for the disk, so the connection that commits on the event loop's thread never makes one. After every
few MiB of records a short-lived thread does, over its own connection, while appends go on.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Checkpointer", "checkpoint", "wal_bytes"]

EVERY_BYTES: Final = 4 * 1024 * 1024
"""How much is appended between two checkpoints, in bytes."""

OVERGROWN_BYTES: Final = 64 * 1024 * 1024
"""The size of the write-ahead log beyond which appends wait until it has been emptied, in bytes."""

_logger = logging.getLogger(__name__)


def checkpoint(connection: sqlite3.Connection, *, empty: bool) -> None:
    """Makes one checkpoint over `connection`.

    Args:
        connection: a connection of its own, or one on which nothing else happens meanwhile.
        empty: whether to hold off writers for a moment and to empty the write-ahead log, so far as readers let it.
    """
    connection.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if empty else 'PASSIVE'})").fetchall()


def wal_bytes(path: Path) -> int:
    """Returns the size of the write-ahead log of the database at `path`, in bytes; 0 when there is none."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except OSError:
        return 0


class Checkpointer:
    """Counts what is appended to one file, and starts a checkpoint when it is time.

    Attributes:
        overgrown: whether the write-ahead log has outgrown its bound although checkpoints were made, as happens when
            writers never pause. Whoever sees it empties the log before the next append, and calls `emptied`.
    """

    def __init__(self, path: Path, *, every_bytes: int = EVERY_BYTES, overgrown_bytes: int = OVERGROWN_BYTES) -> None:
        self._path = path
        self._every = every_bytes
        self._bound = overgrown_bytes
        self._appended = 0
        self._thread: threading.Thread | None = None
        self.overgrown = False

    def appended(self, size: int) -> None:
        """Takes note of a commit of about `size` bytes."""
        self._appended += size
        if self._appended >= self._every and (self._thread is None or not self._thread.is_alive()):
            self._appended = 0
            self._thread = threading.Thread(target=self._run, name="ptc-log-checkpoint")
            self._thread.start()

    def emptied(self) -> None:
        """Takes note that the write-ahead log has been dealt with."""
        self.overgrown = False

    def join(self) -> None:
        """Blocks until no checkpoint runs."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            connection = sqlite3.connect(self._path, timeout=0, isolation_level=None)
            try:
                checkpoint(connection, empty=False)
            finally:
                connection.close()
            self.overgrown = wal_bytes(self._path) > self._bound
        except sqlite3.Error as error:
            # Nothing is lost: the records are in the write-ahead log, and the next checkpoint takes them along.
            _logger.warning("the log %s was not checkpointed: %s", self._path, error)
