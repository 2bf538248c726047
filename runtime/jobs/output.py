"""Output that nobody has read yet, and how much of a text is shown: both are bounded in UTF-8 bytes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from ...registry import text_block
from ...registry.pipeline.outcome import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...registry import ContentBlock

__all__ = ["DEFAULT_BUFFER_BYTES", "OutputBuffer", "bound_content", "bound_text"]

DEFAULT_BUFFER_BYTES: Final = 1 << 20
"""How much unread output is kept of a job that declares no limit: 1 MiB."""

_CONTINUES: Final = range(0x80, 0xC0)
"""The bytes that go on with a character in UTF-8."""


class OutputBuffer:
    """Keeps the latest output until it is read; what is beyond the limit falls out at the front, the oldest first.

    Text may be written from any thread.

    Args:
        limit: how many UTF-8 bytes are kept.
    """

    __slots__ = ("_data", "_dropped", "_limit", "_lock")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._dropped = 0
        self._lock = threading.Lock()

    def write(self, text: str) -> None:
        """Adds text at the end.

        Raises:
            TypeError: it is no text.
        """
        if not isinstance(text, str):
            raise TypeError(f"output is text, not {type(text).__name__}")
        data = printable(text).encode()
        with self._lock:
            self._data += data
            excess = len(self._data) - self._limit
            if excess > 0:
                while excess < len(self._data) and self._data[excess] in _CONTINUES:
                    excess += 1
                del self._data[:excess]
                self._dropped += excess

    def take(self) -> str:
        """Returns what was written since the last time, and says first how much of it was dropped."""
        with self._lock:
            data, dropped = bytes(self._data), self._dropped
            self._data.clear()
            self._dropped = 0
        return f"{_left_out(dropped)}{data.decode()}" if dropped else data.decode()


def bound_text(text: str, limit: int, ending: str = "") -> str:
    """Returns at most `limit` UTF-8 bytes of a text: its end, under a line that says how much is left out.

    Args:
        text: the text.
        limit: the most bytes.
        ending: the end of `text` that is kept whole as far as there is room for it, for example a status line.
    """
    if len(text.encode()) <= limit:
        return text
    body, end = text[: len(text) - len(ending)].encode(), ending.encode()
    notice = _left_out(len(body))  # no other number of bytes takes more digits
    room = limit - len(end) - len(notice.encode())
    if room < 0:
        return end.lstrip(b"\n")[:limit].decode(errors="ignore")  # for more than the ending there is no room
    start = len(body) - room
    while start < len(body) and body[start] in _CONTINUES:
        start += 1
    return _left_out(start) + body[start:].decode() + ending


def bound_content(content: Sequence[ContentBlock], limit: int, ending: str = "") -> list[ContentBlock] | None:
    """Returns content whose texts have at most `limit` UTF-8 bytes together; `None` when it is so already.

    The texts become one block, in the place of the first; other blocks stay.

    Args:
        content: the blocks.
        limit: the most bytes.
        ending: see `bound_text`.
    """
    texts = [block["text"] for block in content if block["type"] == "text"]
    if sum(len(text.encode()) for text in texts) <= limit:
        return None
    bounded: list[ContentBlock] = []
    for block in content:
        if block["type"] != "text":
            bounded.append(block)
        elif texts:
            bounded.append(text_block(bound_text("\n".join(texts), limit, ending)))
            texts.clear()
    return bounded


def _left_out(count: int) -> str:
    return f"[{count} bytes of earlier output left out]\n"
