"""The frames between a host and a worker: a kind, a length, and that many bytes of UTF-8 text. Both sides read this.

To the worker go `Q` (the request, once) and `R` (replies). From it come `C` (calls), `E` (what the program wrote), `W`
(it waits; the text is how many replies it has taken), `G` (it goes on by itself, because its time was over), `D` (the
completion, after which nothing counts) and `X` (what went wrong in the worker itself, which then ends). Lengths are
bounded by kind, so that a worker cannot make its host keep more than the limits of the run.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

__all__ = ["EMIT_BYTES", "FAULT_BYTES", "LONGEST", "FrameReader", "OversizeError", "frame", "frame_of"]

_HEADER = struct.Struct("<cI")
_HEADER_SIZE = _HEADER.size
_pack, _unpack = _HEADER.pack, _HEADER.unpack_from
EMIT_BYTES = 64 << 10
"""The most that one frame of output carries, in bytes."""
FAULT_BYTES = 1000
"""The most that is said of what went wrong in a worker, in bytes."""
LONGEST = (1 << 32) - 1
"""The most bytes that a frame can have."""


class OversizeError(Exception):
    """A frame says that it is longer than its kind may be, or it is of no known kind."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def frame(kind: str, text: str) -> bytes:
    """Returns one frame."""
    return frame_of(kind, text.encode("utf-8", "backslashreplace"))


def frame_of(kind: str, data: bytes) -> bytes:
    """Returns one frame of text that is encoded already."""
    return _pack(kind.encode(), len(data)) + data


class FrameReader:
    """Takes bytes as they come and gives frames as they become whole.

    Args:
        bounds: the most bytes that a frame of each kind may have.
    """

    def __init__(self, bounds: Mapping[str, int]) -> None:
        self._bounds = {kind.encode(): most for kind, most in bounds.items()}
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[str, str]]:
        """Adds bytes, and gives each whole frame as its kind and its text.

        Bytes that are no UTF-8 are escaped. In a frame that is longer than output may be they make its text empty: it
        should be JSON, cannot be read, and would grow to four times its size.

        Raises:
            OversizeError: nothing that follows can be read.
        """
        # Most often what comes is whole, and nothing has to be kept.
        buffer = self._buffer
        held: bytes | bytearray = data
        if buffer:
            buffer += data
            held = buffer
        start, size = 0, len(held)
        while size - start >= _HEADER_SIZE:
            kind, length = _unpack(held, start)
            if length > self._bounds.get(kind, -1):
                raise OversizeError(kind.decode("ascii", "backslashreplace"))
            end = start + _HEADER_SIZE + length
            if size < end:
                break
            text = _text_of(held, start + _HEADER_SIZE, end)
            start = end
            yield kind.decode(), text
        if buffer:
            del buffer[:start]
        else:
            buffer += held[start:]


# Taken now: a worker reads frames as well, and its program may change what the names stand for.
_view, _string, _UndecodableError = memoryview, str, UnicodeDecodeError


def _text_of(held: bytes | bytearray, start: int, end: int) -> str:
    if end - start <= EMIT_BYTES:
        return held[start:end].decode("utf-8", "backslashreplace")
    try:
        # Through a view, so that what is long is not copied once more.
        with _view(held) as whole, whole[start:end] as part:
            return _string(part, "utf-8")
    except _UndecodableError:
        return ""
