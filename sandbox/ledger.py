"""The output ledger: how many bytes of logs, value and diagnostic a run may hand out (contract F27 to F33).

Counted is the UTF-8 size of the JSON text of the logs array, plus that of the value or of the failure message.
"""

from __future__ import annotations

import re

__all__ = ["OutputLedger", "json_string_size"]

_SHORT_ESCAPE = re.compile(r'["\\\b\t\n\f\r]')
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PIECE = 1 << 16
"""Characters that are taken at a time: making lines of millions at once would keep other threads waiting."""


def json_string_size(text: str) -> int:
    """Returns the bytes of `text` as a JSON string (contract F28)."""
    if text.isascii():
        size = len(text)
    else:
        surrogates = len(_SURROGATE.findall(text))
        # "surrogatepass" writes three bytes for a lone surrogate; its escape has six.
        size = len(text.encode("utf-8", "surrogatepass")) + 3 * surrogates
    return size + 2 + len(_SHORT_ESCAPE.findall(text)) + 5 * len(_CONTROL.findall(text))


class OutputLedger:
    """Takes what a program writes, line by line, until the cap is reached.

    Args:
        max_bytes: the cap, an integer of at least 4.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._entries: list[str] = []
        self._sizes: list[int] = []
        self._used = 2
        self._open: list[str] = []
        self._open_size = 0
        self.overflowed = False

    def write(self, text: str) -> None:
        """Adds text as the program wrote it; sets `overflowed` when it is more than the cap takes."""
        for start in range(0, len(text), _PIECE):
            if self.overflowed:
                return
            self._write(text[start : start + _PIECE])

    def _write(self, text: str) -> None:
        pieces = text.split("\n")
        for piece in pieces[:-1]:
            self._extend(piece)
            self._close_line()
            if self.overflowed:
                return
        self._extend(pieces[-1])

    def _extend(self, piece: str) -> None:
        if not piece:
            return
        # What would not fit is not kept, so that a flood cannot grow the host: one byte over is enough to know.
        room = max(0, self._max - self._used - self._open_size) + 1
        if len(piece) > room:
            piece = piece[:room]
        self._open.append(piece)
        self._open_size += len(piece)
        if self._used + self._open_size > self._max:
            self.overflowed = True

    def _close_line(self) -> None:
        self._add("".join(self._open))
        self._open.clear()
        self._open_size = 0

    def _add(self, entry: str) -> None:
        size = json_string_size(entry) + (1 if self._entries else 0)
        self._entries.append(entry)
        self._sizes.append(size)
        self._used += size
        if self._used > self._max:
            self.overflowed = True

    def settle(self, payload_size: int) -> tuple[str, ...] | None:
        """Closes the ledger for a completion or diagnostic of `payload_size` bytes.

        Returns:
            the log entries, or `None` when all together is more than the cap (contract F29).
        """
        if self._open:
            self._close_line()
        if self.overflowed or self._used + payload_size > self._max:
            self.overflowed = True
            return None
        return tuple(self._entries)

    def overflow(self) -> tuple[tuple[str, ...], str]:
        """Returns what is kept after an overflow: the longest prefix of the logs, and the diagnostic (F30)."""
        if self._open:
            self._add("".join(self._open))
            self._open.clear()
        message = f"outer output exceeded {self._max} bytes"
        while message and json_string_size(message) + 2 > self._max:
            message = message[:-1]
        room = self._max - json_string_size(message) - 2
        kept: list[str] = []
        for entry, size in zip(self._entries, self._sizes, strict=True):
            if size <= room:
                kept.append(entry)
                room -= size
                continue
            prefix = _prefix(entry, room - (1 if kept else 0))
            if prefix:
                kept.append(prefix)
            break
        return tuple(kept), message


def _prefix(entry: str, room: int) -> str:
    """Returns the longest prefix of `entry` whose JSON string has at most `room` bytes."""
    low, high = 0, min(len(entry), max(0, room))
    while low < high:
        middle = (low + high + 1) // 2
        if json_string_size(entry[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return entry[:low]
