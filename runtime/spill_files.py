"""The files of a `LocalSpillStore`: private, each under a name of its own, and removed by age and size if asked."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["SpillFiles"]

_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_CLOSE: Final = getattr(os, "O_CLOEXEC", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
"""So that opening a pipe that somebody put there does not wait for its other end."""

_SESSION_DIGITS: Final = 32
_PREFIX_BYTES: Final = 8
_ATTEMPTS: Final = 3
_MAX_NAME: Final = 80
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SESSION: Final = re.compile(r"[0-9a-f]{32}")
_NAME: Final = re.compile(r"[0-9a-f]{16}-[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}")
_SWEEP_SECONDS: Final = 60.0
"""How often files are looked through while texts are saved, for age and for what other processes wrote."""


class _File(NamedTuple):
    modified: float
    size: int
    path: Path


class SpillFiles:
    """Reads and writes the files; every method may block, and may be called from any thread.

    Args:
        root: the directory, absolute.
        max_age_seconds: as `LocalSpillStore` has it.
        max_total_bytes: likewise.
        clock: likewise.

    Raises:
        ValueError: a retention option is not a positive number.
    """

    def __init__(
        self,
        root: Path,
        max_age_seconds: float | None,
        max_total_bytes: int | None,
        clock: Callable[[], float] | None,
    ) -> None:
        for name, value, kinds in (
            ("max_age_seconds", max_age_seconds, (int, float)),
            ("max_total_bytes", max_total_bytes, (int,)),
        ):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < math.inf:
                raise ValueError(f"{name} must be a positive number, or None, not {value!r}")
        self._root = root
        self._max_age = max_age_seconds
        self._max_total = max_total_bytes
        self._clock = time.time if clock is None else clock
        self._lock = threading.Lock()
        self._total = 0
        self._next_sweep = -math.inf

    def save(self, session_id: str, suggested_name: str, content: str) -> str:
        """Writes a text to a new file, and returns the path of it."""
        data = content.encode()
        directory = self._session(session_id)
        _make_private(self._root)
        path = directory / f"{secrets.token_hex(_PREFIX_BYTES)}-{_safe(suggested_name)}"
        with os.fdopen(_make(path), "wb") as file:
            try:
                file.write(data)
                file.flush()
            except BaseException:
                with contextlib.suppress(OSError):
                    path.unlink()
                raise
        self._retain(path, len(data))
        return str(path)

    def read(self, session_id: str, locator: str, offset: int, limit: int) -> tuple[bytes, int] | None:
        """Returns at most `limit` bytes and the length of the whole; `None` when the session has no such text."""
        directory = self._session(session_id)
        before = f"{directory}{os.sep}"
        name = locator[len(before) :]
        # The text is compared and never resolved: there is one spelling of a locator, and no other way to a file.
        if not locator.startswith(before) or not _NAME.fullmatch(name):
            return None
        try:
            _require_directory(self._root)
            _require_directory(directory)
            if not stat.S_ISREG((directory / name).lstat().st_mode):
                return None
            descriptor = os.open(directory / name, os.O_RDONLY | _NO_FOLLOW | _CLOSE | _BINARY | _NO_WAIT)
        except (FileNotFoundError, NotADirectoryError, _NotPrivateError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link was put there since
                return None
            raise
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                return None
            if offset >= found.st_size:
                return b"", found.st_size
            file.seek(offset)
            return file.read(limit), found.st_size

    def _session(self, session_id: str) -> Path:
        return self._root / hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:_SESSION_DIGITS]

    # Retention

    def _retain(self, newest: Path, size: int) -> None:
        """Removes what is too old or too much, without reading the directory for each text that is saved."""
        if self._max_age is None and self._max_total is None:
            return
        with self._lock:
            self._total += size
            now = self._clock()
            full = self._max_total is not None and self._total > self._max_total
            if full or now >= self._next_sweep or self._next_sweep > now + _SWEEP_SECONDS:
                self._next_sweep = now + min(_SWEEP_SECONDS, self._max_age or _SWEEP_SECONDS)
                self._total = self._sweep(newest, now)

    def _sweep(self, newest: Path, now: float) -> int:
        """Removes files, the oldest first, and returns how many bytes are left."""
        files = sorted(self._all(), key=lambda file: file.modified)
        total = sum(file.size for file in files)
        for file in files:
            old = self._max_age is not None and file.modified < now - self._max_age
            much = self._max_total is not None and total > self._max_total
            if file.path == newest or not (old or much):
                continue
            with contextlib.suppress(FileNotFoundError):  # another process was quicker
                file.path.unlink()
            total -= file.size
            with contextlib.suppress(OSError):  # it is not empty
                file.path.parent.rmdir()
        return total

    def _all(self) -> Iterator[_File]:
        """Yields the files that are certainly a store's own; whatever else lies in the directory is left alone."""
        for session in self._root.iterdir():
            if not _SESSION.fullmatch(session.name) or session.is_symlink():
                continue
            try:
                for path in session.iterdir():
                    if _NAME.fullmatch(path.name):
                        found = path.lstat()
                        yield _File(found.st_mtime, found.st_size, path)
            except (FileNotFoundError, NotADirectoryError):
                continue  # removed meanwhile, or no directory


def _make(path: Path) -> int:
    """Makes a file that was not there, in the directory of its session, and returns its descriptor."""
    for attempts_left in reversed(range(_ATTEMPTS)):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _require_directory(path.parent)
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _CLOSE | _BINARY, 0o600)
        except FileNotFoundError:  # another process removed the directory, which was empty
            if not attempts_left:
                raise
    raise AssertionError("the last attempt returns or raises")


class _NotPrivateError(PermissionError):
    """A directory of the store is none, or not the user's alone."""


def _make_private(root: Path) -> None:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_directory(root)
    found = root.lstat()
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077):
        raise _NotPrivateError(
            f"the directory {root} for spilled texts belongs to another user or is open to others (mode "
            f"{stat.S_IMODE(found.st_mode):04o}); give one that is not there yet, or close it: chmod 700"
        )


def _require_directory(path: Path) -> None:
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise _NotPrivateError(f"{path} is in the place of a directory for spilled texts, and is none itself")


def _safe(name: str) -> str:
    """Returns a file name that means nothing to any file system, and still something to people."""
    stem = _UNSAFE.sub("_", name)[-_MAX_NAME:].lstrip(".")
    return stem or "text"
