"""What is shown of a text that is too long: its beginning, its end, and a notice, in a fixed number of UTF-8 bytes.

preview    the first half of the room, a line `[...]` for the gap, and the second half    contract K8, K12
notice     how many bytes are missing, and where the whole text is                        contract K9
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GAP", "Ends", "ends_of", "shortened"]

GAP: Final = "\n[...]\n"
"""Stands between the two ends, so that nobody takes them for one text."""

_CONTINUES: Final = range(0x80, 0xC0)
"""The bytes that go on with a character in UTF-8."""


class Ends(NamedTuple):
    """The two ends of a text.

    Attributes:
        head: its beginning; the whole text when nothing is left out.
        tail: its end.
        omitted: how many bytes are between them.
    """

    head: str
    tail: str
    omitted: int


def ends_of(data: bytes, room: int) -> Ends:
    """Returns the two ends of a text, cut between characters (contract K12).

    Args:
        data: the text in UTF-8.
        room: how many bytes both may take together; the head gets the odd one.
    """
    if len(data) <= room:
        return Ends(data.decode(), "", 0)
    room = max(room, 0)
    end = (room + 1) // 2
    while end > 0 and data[end] in _CONTINUES:
        end -= 1
    start = len(data) - room // 2
    while start < len(data) and data[start] in _CONTINUES:
        start += 1
    return Ends(data[:end].decode(), data[start:].decode(), start - end)


def shortened(data: bytes, cap: int, notice: Callable[[int, int], str]) -> str | None:
    """Returns what stands in the place of a text of more than `cap` bytes; `None` when there is no room for it (K9).

    Args:
        data: the text in UTF-8.
        cap: the most bytes of what is returned.
        notice: makes the notice of the bytes that are left out and the offset of the first one. Its length may
            depend on nothing but how many digits these have.
    """
    # No other number of bytes takes more digits, so what is reserved here is enough (contract K9).
    longest = notice(len(data), len(data))
    room = cap - len(f"{GAP}\n\n{longest}".encode())
    ends = ends_of(data, room)
    if room > 0 and (ends.head or ends.tail):
        text = f"{ends.head}{GAP}{ends.tail}\n\n{notice(ends.omitted, len(ends.head.encode()))}"
    else:
        text = notice(len(data), 0)
    return text if len(text.encode()) <= cap else None
