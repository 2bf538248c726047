"""The output ledger: how many bytes of logs, value and diagnostic a run may hand out (contract F27 to F33).

Counted is the UTF-8 size of the JSON text of the logs array, plus that of the value or of the failure message. What a
program writes is kept as UTF-8 and counted by the piece, so that many short lines cost no more than their bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from .loglines import LogLines

__all__ = ["MAX_TUPLE_LINES", "OutputLedger", "json_string_size"]

MAX_TUPLE_LINES = 100_000
"""Up to so many lines are handed out as a tuple, more as `LogLines`."""

_SHORT_ESCAPES = b'"\\\b\t\n\f\r'
_CONTROLS = bytes(sorted(set(range(0x20)) - set(_SHORT_ESCAPES)))
_CONTROL = re.compile(rb"[\x00-\x07\x0b\x0e-\x1f]")
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")
_PIECE = 1 << 16
"""Characters or bytes that are taken at a time: millions at once would keep other threads waiting."""
_FRAME = 3
"""What a line costs beside its text: two quotes, and a comma that all but the first have."""


def json_string_size(text: str) -> int:
    """Returns the bytes of `text` as a JSON string (contract F28)."""
    size = 2
    for start in range(0, len(text), _PIECE):
        size += _content_size(_encoded(text[start : start + _PIECE]))
    return size


def _content_size(data: bytes | bytearray) -> int:
    """Returns the bytes that UTF-8 text has inside a JSON string."""
    size = len(data)
    plain = data.translate(None, _SHORT_ESCAPES)
    size += size - len(plain)
    if _CONTROL.search(plain):
        size += 5 * (len(plain) - len(plain.translate(None, _CONTROLS)))
    # A lone surrogate has three bytes here; its escape has six.
    return size if plain.isascii() else size + 3 * len(_SURROGATE.findall(plain))


def _logs_size(data: bytes | bytearray) -> int:
    """Returns what text costs in the logs; each line feed in it is the end of a line, and pays the line's frame."""
    return _content_size(data) + (_FRAME - 2) * data.count(b"\n")


class OutputLedger:
    """Takes what a program writes, until the cap is reached.

    Args:
        max_bytes: the cap, an integer of at least 4.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._data = bytearray()
        self._spent = 0
        """What `_data` costs, with a comma too many and without the brackets."""
        self._ends = 0
        self._closed = False
        self.overflowed = False
        message = f"outer output exceeded {max_bytes} bytes"
        while message and json_string_size(message) + 2 > max_bytes:
            message = message[:-1]
        self._message = message
        self._room = max_bytes - json_string_size(message) - 2 + 1
        """What the logs may cost beside that message; the first line has no comma, and so there is one byte more."""
        self._known = (0, 0)
        """How much of `_data` surely fits beside it, and what that costs: an overflow is not counted from the start."""

    def write(self, text: str) -> None:
        """Adds text as the program wrote it; sets `overflowed` when it is more than the cap takes."""
        for start in range(0, len(text), _PIECE):
            if self.overflowed or self._closed:
                return
            piece = _encoded(text[start : start + _PIECE])
            self._data += piece
            self._spent += _logs_size(piece)
            self._ends += piece.count(b"\n")
            if self._spent <= self._room - _FRAME:
                self._known = (len(self._data), self._spent)
            if self._used > self._max:
                self.overflowed = True
                # More than the cap is never handed out, and a flood must not grow the host.
                del self._data[_whole(self._data, self._max) :]

    @property
    def _used(self) -> int:
        """The bytes of the logs array as it would be if the program wrote no more."""
        if not self._data:
            return 2
        return 2 + self._spent - 1 + (0 if self._data.endswith(b"\n") else _FRAME)

    def settle(self, payload_size: int) -> LogLines | tuple[str, ...] | None:
        """Closes the ledger for a completion or diagnostic of `payload_size` bytes.

        Returns:
            the log entries, or `None` when all together is more than the cap (contract F29).
        """
        if self.overflowed or self._used + payload_size > self._max:
            self.overflowed = True
            return None
        self._closed = True  # the lines are read from what is here
        return self._lines()

    def _lines(self) -> LogLines | tuple[str, ...]:
        """Returns the lines of what is kept; one that was begun with nothing is none."""
        data = self._data
        if self._ends < MAX_TUPLE_LINES or data.count(b"\n") < MAX_TUPLE_LINES:
            lines = data.decode("utf-8", "surrogatepass").split("\n")
            return tuple(lines if lines[-1] else lines[:-1])
        if not data.endswith(b"\n"):
            data += b"\n"
        return LogLines(data)

    def overflow(self) -> tuple[LogLines | tuple[str, ...], str]:
        """Returns what is kept after an overflow: the longest prefix of the logs, and the diagnostic (F30)."""
        known, cost = self._known
        # In the line that is reached there is only as much as leaves room for its frame.
        start = self._data.rfind(b"\n", 0, _fitting(self._data, known, self._room - cost)) + 1
        end = max(start, _fitting(self._data, known, self._room - cost - _FRAME))
        self._closed = True
        del self._data[end:]
        return self._lines(), self._message


def _whole(data: bytes | bytearray, end: int) -> int:
    """Returns the last offset up to `end` at which no character is cut apart."""
    if end >= len(data):
        return len(data)
    while end > 0 and data[end] & 0xC0 == 0x80:
        end -= 1
    return end


def _fitting(data: bytearray, start: int, room: int) -> int:
    """Returns the last offset between two characters up to which the text from `start` on costs at most `room`."""
    while start < len(data) and room > 0:
        stop = _whole(data, start + _PIECE)
        cost = _logs_size(data[start:stop])
        if cost > room:
            text = data[start:stop].decode("utf-8", "surrogatepass")
            sizes = range(1, len(text) + 1)
            most = bisect_right(sizes, room, key=lambda size: _logs_size(_encoded(text[:size])))
            return start + len(_encoded(text[:most]))
        start, room = stop, room - cost
    return start


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
