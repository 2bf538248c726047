"""Many lines in the room of their text: made as they are read, where a tuple costs each of them some 70 bytes more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

__all__ = ["LogLines", "joined_lines"]

_PIECE = 1 << 16
_SHOWN = 10


class LogLines(Sequence[str]):
    """A sequence of lines that compares with a tuple, and hashes like one.

    Reading them in order is cheap; `lines[n]` looks for the line from the first or the last on.

    Args:
        data: the lines as UTF-8, each ended by a line feed. It must not change any more.
    """

    __slots__ = ("_data", "_lines")

    def __init__(self, data: bytes | bytearray) -> None:
        if data and not data.endswith(b"\n"):
            raise ValueError("the last line has no end")
        self._data = data
        self._lines = -1  # not counted yet

    @property
    def text(self) -> str:
        """The lines with a line feed between any two of them."""
        return str(memoryview(self._data)[:-1], "utf-8", "surrogatepass")

    @property
    def _count(self) -> int:
        if self._lines < 0:
            self._lines = self._data.count(b"\n")
        return self._lines

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return bool(self._data)

    def blocks(self) -> Iterator[str]:
        """Yields the lines with many in one text, 64 KiB at the most or one line that is longer."""
        data, start = self._data, 0
        while start < len(data):
            end = data.rfind(b"\n", start, start + _PIECE) + 1 or data.find(b"\n", start) + 1
            yield data[start : end - 1].decode("utf-8", "surrogatepass")
            start = end

    def __iter__(self) -> Iterator[str]:
        for block in self.blocks():
            yield from block.split("\n")

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._count)
            if step < 0:
                return tuple(self)[index]
            return tuple(islice(self, start, stop, step))
        number = index + self._count if index < 0 else index
        if not 0 <= number < self._count:
            raise IndexError("there is no such line")
        if number == self._count - 1:
            start = self._data.rfind(b"\n", 0, len(self._data) - 1) + 1
            return self._data[start:-1].decode("utf-8", "surrogatepass")
        return next(islice(self, number, None))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LogLines):
            return self._data == other._data
        if isinstance(other, tuple):
            return len(other) == self._count and all(mine == its for mine, its in zip(self, other, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = ", ".join([repr(line) for line in islice(self, _SHOWN)])
        more = f", and {self._count - _SHOWN} more" if self._count > _SHOWN else ""
        return f"<lines: {shown}{more}>"


def joined_lines(lines: Sequence[str]) -> str:
    """Returns the lines with a line feed between any two of them; many need no more room than their text."""
    return lines.text if isinstance(lines, LogLines) else "\n".join(lines)
