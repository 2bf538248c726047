"""Where long texts are kept that are too long for a model: the seam `SpillStore`, and a store on the local disk.

    <root>/                          mode 0700                                     contract K13
      3f2a…/                         one directory for each session, named by a hash of the session's id
        91c4e07d2b5a6f38-search.txt  mode 0600, made under a name that nobody can guess

The locator of a text is the absolute path of its file. To a store it is only a name: whatever path a reader gives, it
is looked for among the texts of that reader's own session.
"""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from ..registry import HarnessError
from .spill_files import SpillFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..registry import ScopeKey

__all__ = [
    "LocalSpillStore",
    "SpillStore",
    "SpillText",
    "SpilledPart",
    "UnknownLocatorError",
    "part_of",
    "session_id_of",
]

MIN_LIMIT: Final = 4
"""The fewest bytes that can be asked for: what the longest character takes in UTF-8."""

_CONTINUES: Final = range(0x80, 0xC0)
"""The bytes that go on with a character in UTF-8."""


class UnknownLocatorError(HarnessError):
    """The session has no spilled text of that locator, or has it no more. The message never tells which."""

    default_code: ClassVar[str] = "UNKNOWN_LOCATOR"

    def __init__(self) -> None:
        super().__init__("unknown locator: give one exactly as the notice of a shortened result has it")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillText:
    """One text to keep (contract K8).

    Attributes:
        session_id: the session of the agent whose call it comes from; only that session can read it.
        tool_name: the tool that gave it.
        call_id: the call.
        label: `result` for what a model is shown, `dispatch` for the record of a program's call.
        suggested_name: a name for people, `<tool>.txt`; a store makes it safe and unique.
        content: the text.
    """

    session_id: str
    tool_name: str
    call_id: str
    label: Literal["result", "dispatch"]
    suggested_name: str
    content: str


@dataclass(frozen=True, slots=True)
class SpilledPart:
    """A part of a spilled text, cut between characters.

    Attributes:
        text: the part.
        offset: its first byte in the whole text: the one asked for, or the next one that begins a character.
        next_offset: where to go on; the same as `total_bytes` when nothing is left.
        total_bytes: the length of the whole text in UTF-8 bytes.
    """

    text: str
    offset: int
    next_offset: int
    total_bytes: int


class SpillStore(Protocol):
    """Keeps long texts, and reads parts of them. Implement it to keep them elsewhere, in an object store for example.

    Both methods are called from the host's event loop and must not block it.
    """

    async def save_text(self, text: SpillText) -> str:
        """Keeps a text, and returns its locator: a short text that models and people can copy.

        Raises:
            Exception: whatever stands in the way; the text then stays where it was (contract K10).
        """
        ...

    async def read_text(self, session_id: str, locator: str, *, offset: int, limit: int) -> SpilledPart:
        """Returns a part of a text that this session has saved.

        Args:
            session_id: the reader's session.
            locator: what `save_text` returned, or anything else that a model may write.
            offset: the first byte, from 0; beyond the end there is nothing to read.
            limit: the most bytes, at least 4. `part_of` cuts bytes as this asks for.

        Raises:
            UnknownLocatorError: the session has no such text, whoever else may have it.
        """
        ...


def session_id_of(agent: ScopeKey | None) -> str | None:
    """Returns the id of the session whose texts an agent saves and reads; `None` without one."""
    session_id = getattr(getattr(agent, "session", None), "id", None)
    return session_id if isinstance(session_id, str) else None


def part_of(data: bytes, offset: int, limit: int, total: int) -> SpilledPart:
    """Cuts a part between characters (contract K12).

    Args:
        data: the bytes of the text from `offset` on: three more than `limit` of them, or all there are.
        offset: where they begin in the text.
        limit: the most bytes of the part.
        total: the length of the whole text in bytes.
    """
    start = 0
    while start < len(data) and data[start] in _CONTINUES:
        start += 1
    cut = data[start : start + limit]
    # A character that the limit, or the end of these bytes, cuts apart is left for the next part.
    text, taken = codecs.utf_8_decode(cut, "strict", offset + start + len(cut) >= total)
    return SpilledPart(text, offset + start, offset + start + taken, total)


class LocalSpillStore:
    """Keeps spilled texts as files that only the user of this process can read (contract K13).

    Several processes may share a directory. Files stay until a retention option removes them or somebody deletes
    them; a text that is gone has an unknown locator.

    Args:
        root: the directory; it is made, with mode 0700, when the first text is saved. One that is there must be the
            user's own and closed to others.
        max_age_seconds: how long a text is kept; for good when `None`.
        max_total_bytes: how much all texts of the directory may take, the oldest going first; no limit when `None`.
            The newest text is kept, whatever its size.
        clock: the wall clock, in seconds since 1970 UTC.

    Attributes:
        root: the directory, absolute.

    Raises:
        ValueError: a retention option is not a positive number.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        max_age_seconds: float | None = None,
        max_total_bytes: int | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.root: Final = Path(os.path.abspath(root))  # not resolve(): it follows links
        self._files: Final = SpillFiles(self.root, max_age_seconds, max_total_bytes, clock)
        self._turn: Final = RunVar[anyio.CapacityLimiter]("spill")

    def __repr__(self) -> str:
        return f"<LocalSpillStore {self.root}>"

    async def save_text(self, text: SpillText) -> str:
        """Writes a text to a new file, in a worker thread, and returns the absolute path of it.

        Raises:
            OSError: it cannot be written; nothing of it is left.
            PermissionError: the directory is open to others, another user's, or none. It is an `OSError`.
            UnicodeEncodeError: the text holds half of a surrogate pair.
        """
        return await anyio.to_thread.run_sync(
            self._files.save, text.session_id, text.suggested_name, text.content, limiter=self._limiter()
        )

    async def read_text(self, session_id: str, locator: str, *, offset: int, limit: int) -> SpilledPart:
        """Reads a part of a text of this session, in a worker thread; see `SpillStore.read_text`.

        Raises:
            UnknownLocatorError: the session has no such text. So ends every path that leads elsewhere, symbolic links
                included.
            ValueError: `offset` is negative, or `limit` less than 4.
            OSError: the file is there and cannot be read.
        """
        if offset < 0:
            raise ValueError(f"offset must not be negative, not {offset}")
        if limit < MIN_LIMIT:
            raise ValueError(f"limit must be at least {MIN_LIMIT}, not {limit}")
        read = await anyio.to_thread.run_sync(
            self._files.read, session_id, locator, offset, limit + MIN_LIMIT - 1, limiter=self._limiter()
        )
        if read is None:
            raise UnknownLocatorError
        data, total = read
        return part_of(data, min(offset, total), limit, total)

    def _limiter(self) -> anyio.CapacityLimiter:
        """One file at a time, in none of the threads that tools run in: long results must not take them all."""
        limiter = self._turn.get(None)
        if limiter is None:
            limiter = anyio.CapacityLimiter(1)  # it belongs to an event loop, and a store may see several
            self._turn.set(limiter)
        return limiter
