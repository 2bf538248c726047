"""Who has a session open for writing, told by the system and not by the log: the claims of processes that live.

Beside a log stands `<log>-writers`, an empty file. Whoever has a session open holds a shared lock on one byte of it,
the one at the session's key, and the system lets go of it when the process ends, however sudden. Who gets the lock for
itself alone therefore knows that nobody else writes that session. The locks belong to the open file and not to the
process, so that two stores in one process are told apart, and closing one does not let go of the other's. The last
one to close removes the file.

Only Linux has such locks. Elsewhere nobody can tell whether a session is being written, and `alone` says so.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "linux":
    import fcntl

    _SHARED = fcntl.F_RDLCK
    _ALONE = fcntl.F_WRLCK
    _NONE = fcntl.F_UNLCK

    def _locks() -> bool:
        return True

    def _set_lock(file: int, kind: int, start: int, length: int) -> None:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0))

else:
    _SHARED = _ALONE = _NONE = 0

    def _locks() -> bool:
        return False

    def _set_lock(file: int, kind: int, start: int, length: int) -> None:
        raise NotImplementedError


__all__ = ["WRITERS_SUFFIX", "WriterClaims"]

WRITERS_SUFFIX: Final = "-writers"
"""What the file's name has behind that of the log."""

_WHOLE_FILE: Final = 0
"""The length of a range that has no end."""


class WriterClaims:
    """The claims of one store on the sessions of its log. May be used from several threads.

    Args:
        log: the absolute path of the log.
    """

    def __init__(self, log: Path) -> None:
        self._path: Final = log.with_name(log.name + WRITERS_SUFFIX)
        self._guard = threading.Lock()
        self._file: int | None = None
        self._shared: set[int] = set()
        self._alone: set[int] = set()

    def held(self, key: int) -> bool:
        """Returns whether this store has the session open."""
        return key in self._shared

    def share(self, key: int) -> bool:
        """Claims a session, so that nobody repairs it; returns false while another store is repairing it.

        What was claimed `alone` is shared from now on.

        Raises:
            OSError: the file cannot be opened.
        """
        if not _locks():
            return True
        with self._guard:
            if key not in self._shared and not self._lock(_SHARED, key):
                return False
            self._shared.add(key)
            return True

    def alone(self, key: int) -> bool:
        """Claims a session for this store alone, until `share` or `release`; returns false if others may have it.

        Raises:
            OSError: the file cannot be opened.
        """
        if not _locks():
            return False
        with self._guard:
            if key in self._shared or not self._lock(_ALONE, key):
                return False
            self._alone.add(key)
            return True

    def release(self, key: int) -> None:
        """Lets go of a session that was claimed `alone` and is not shared."""
        with self._guard:
            if self._file is not None and key in self._alone and key not in self._shared:
                self._set(_NONE, key, 1)
            self._alone.discard(key)

    def close(self) -> None:
        """Lets go of all sessions, and removes the file if no other store has a claim in it."""
        with self._guard:
            file, self._file = self._file, None
            self._shared.clear()
            self._alone.clear()
            if file is None:
                return
            self._file = file
            try:
                # Whoever opens the file meanwhile finds out that it is gone, see `_lock`.
                if self._set(_ALONE, 0, _WHOLE_FILE) and self._in_place(file):
                    self._path.unlink(missing_ok=True)
            finally:
                self._file = None
                os.close(file)

    def _lock(self, kind: int, key: int) -> bool:
        while True:
            if self._file is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(self._path, flags, 0o600)
            if not self._set(kind, key, 1):
                return False
            # A lock keeps the file in its place; without one, another store may have removed it before this one came.
            if self._shared or self._in_place(self._file):
                return True
            os.close(self._file)
            self._file = None

    def _set(self, kind: int, start: int, length: int) -> bool:
        assert self._file is not None
        try:
            _set_lock(self._file, kind, start, length)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _in_place(self, file: int) -> bool:
        try:
            found = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(file))
