"""Says whether the write-ahead log beside a log file holds records that SQLite passes over in silence.

While a host has a log open, and after its process was killed, the latest records stand in `<log>-wal`. SQLite reads
that file up to the first frame that does not check, and takes what follows for the rest of an earlier use. So a single
changed bit there drops the end of every session, and the chain, which was cut between two records, is still a chain.

What was written in one use of the file has the same two salts. A process that was killed leaves one frame at most that
was not written to its end, and nothing behind it. Where frames of the same use stand behind one that does not check,
somebody or something has changed the file, or the machine lost power while it wrote.

The form of the file is SQLite's, see https://www.sqlite.org/fileformat2.html#walformat.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, BinaryIO, Final

from .verify_rows import Problem

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["look_at_wal"]

_HEADER: Final = 32
_FRAME: Final = 24
_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}
"""The first number of the file, and the order of bytes in which its checksums are computed."""

_TRIES: Final = 5
"""How often the file is looked at before it is called broken."""

_SAVE: Final = "keep both files, and restore copies of them"


def look_at_wal(log: Path) -> tuple[list[Problem], list[str]]:
    """Looks through the write-ahead log of a log file; a host may be writing it.

    Args:
        log: the log file.

    Returns:
        the problems, and what an auditor should know beside them.

    Raises:
        OSError: the file beside it cannot be read.
    """
    wal = log.with_name(log.name + "-wal")
    found: tuple[list[Problem], list[str]] = [], []
    # What is being written just now may look broken, and is not when one looks again.
    for _ in range(_TRIES):
        try:
            with wal.open("rb") as stream:
                header = stream.read(_HEADER)
                found = _look(wal, header, stream)
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        if not any(found):
            break
    return found


def _look(wal: Path, header: bytes, stream: BinaryIO) -> tuple[list[Problem], list[str]]:
    if len(header) < _HEADER:
        return [], []  # nothing was written yet
    magic, _version, page, _number, salt_1, salt_2, sum_1, sum_2 = struct.unpack(">8I", header)
    order = _MAGIC.get(magic)
    if order is None or _sums(header[:24], order, (0, 0)) != (sum_1, sum_2):
        text = f"the beginning of {wal.name} was changed, so all records in it are lost; {_SAVE}"
        return [Problem("damaged", text)], []
    salts = salt_1, salt_2
    sums = sum_1, sum_2
    good = lost = 0
    broken = torn = False
    # No further than it went when this began: a host may write more of it all the time.
    for _ in range((os.fstat(stream.fileno()).st_size - _HEADER) // (_FRAME + page)):
        frame = stream.read(_FRAME)
        content = stream.read(page)
        if len(frame) < _FRAME or len(content) < page:
            break  # what was being written when the process ended
        numbers = struct.unpack(">6I", frame)
        if broken:
            lost += numbers[2:4] == salts
            continue
        sums = _sums(content, order, _sums(frame[:8], order, sums))
        if numbers[2:4] == salts and numbers[4:] == sums:
            good += 1
        else:
            broken, torn = True, numbers[2:4] == salts
    if not lost:
        note = (
            f"the last frame of {wal.name} does not check: its process ended while it wrote it, or somebody changed it"
        )
        return [], [note] if torn else []
    text = (
        f"{wal.name} was changed or not written to its end: frame {good + 1} does not check, and SQLite passes over it "
        f"and the {lost} behind it, so records at the end of the log are lost; {_SAVE}"
    )
    return [Problem("damaged", text)], []


def _sums(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """Returns the two sums that SQLite keeps of what was written so far."""
    one, two = sums
    whole = len(data) & -32
    # Eight at a time, and cut to 32 bits once: this is what looking through a large file takes.
    for a, b, c, d, e, f, g, h in struct.iter_unpack(f"{order}8I", data[:whole]):
        one += a + two
        two += b + one
        one += c + two
        two += d + one
        one += e + two
        two += f + one
        one = (one + g + two) & 0xFFFFFFFF
        two = (two + h + one) & 0xFFFFFFFF
    for a, b in struct.iter_unpack(f"{order}2I", data[whole:]):
        one = (one + a + two) & 0xFFFFFFFF
        two = (two + b + one) & 0xFFFFFFFF
    return one, two
