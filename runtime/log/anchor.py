"""Anchors: where the sessions of a log stood at some time, to be kept where whoever can write the log cannot.

The hash chain of a log is not keyed. Whoever may write the file can compute it anew after a change, and can cut off
its end. An anchor is the last hash of a session, in one short line; a log that still has that hash at that place has
everything before it as it was. A line of `ptc.audit.anchor/1` is one JSON object:

    {"format": "ptc.audit.anchor/1", "session": ID, "seq": its last event, "hash": hexadecimal, "time": of that event}

`seq` is -1 for a session that has no events; its hash is then that of its header, and its time that of its opening.
Lines may be kept in one growing file, in any order, several for one session, with empty lines between them.
"""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from ...registry.errors import HarnessError
from .database import SEQ_BITS
from .errors import LogUnavailableError
from .snapshot import read_snapshot
from .times import iso

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

__all__ = ["Anchor", "AnchorError", "anchor_log", "read_anchors"]

_FORMAT: Final = "ptc.audit.anchor/1"

_HASH: Final = re.compile(r"[0-9a-f]{64}")

_HEADS: Final = """
SELECT s.id, s.opened_us, s.hash, last.id, last.time_us, last.hash
FROM sessions s LEFT JOIN events last
    ON last.id = (SELECT max(id) FROM events WHERE id >= s.key << 32 AND id < (s.key + 1) << 32)
WHERE ?1 IS NULL OR s.id = ?1
ORDER BY s.key
"""


class AnchorError(HarnessError):
    """What was given as anchors is none. The message names the file and the line."""

    default_code: ClassVar[str] = "BAD_ANCHOR"


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where a session stood.

    Attributes:
        session: the session's id.
        seq: its last event then; -1 when it had none.
        hash: the hash of that event, or of the session's header, as 64 hexadecimal digits.
        time: when that event was, or when the session was opened: ISO 8601 in UTC. For people; nothing checks it.
    """

    session: str
    seq: int
    hash: str
    time: str = ""

    def line(self) -> str:
        """Returns the anchor as one line of printable ASCII, without the line feed."""
        told = {"format": _FORMAT, "session": self.session, "seq": self.seq, "hash": self.hash, "time": self.time}
        return json.dumps(told).replace("\x7f", "\\u007f")


def anchor_log(path: str | os.PathLike[str], *, session: str | None = None) -> list[Anchor]:
    """Returns where the sessions of a log stand, in the order in which they were opened. It verifies nothing.

    Args:
        path: the log file; it is not changed, and a host may be writing to it.
        session: the id of the only session that matters; all of them when `None`.

    Raises:
        LogUnavailableError: the file is not there, is no log that this version reads, or is damaged.
    """
    place = Path(path).absolute()

    def read(connection: sqlite3.Connection) -> list[Anchor]:
        return [_anchor(place, *row) for row in connection.execute(_HEADS, (session,))]

    return read_snapshot(place, read)


def _anchor(
    path: Path,
    session: Any,
    opened_us: Any,
    genesis: Any,
    last: int | None,
    last_us: Any,
    last_hash: Any,
) -> Anchor:
    digest, time_us = (genesis, opened_us) if last is None else (last_hash, last_us)
    if not (isinstance(session, str) and isinstance(digest, bytes) and len(digest) == 32 and isinstance(time_us, int)):
        raise LogUnavailableError(
            f"cannot read the log {path}: the head of session {session!r} is not what was written; "
            "`ptc audit verify` says more",
            reason="damaged",
        )
    return Anchor(session, -1 if last is None else last & ((1 << SEQ_BITS) - 1), digest.hex(), iso(time_us))


def read_anchors(lines: Iterable[str], *, name: str = "the anchors") -> list[Anchor]:
    """Reads what `ptc audit anchor` printed.

    Args:
        lines: the lines, for example an opened text file.
        name: what messages call the place that they come from.

    Raises:
        AnchorError: a line is no anchor, or there is no line at all.
    """
    anchors = list(_read(lines, name))
    if not anchors:
        raise AnchorError(f"{name}: there is no anchor in it; give what `ptc audit anchor` printed")
    return anchors


def _read(lines: Iterable[str], name: str) -> Iterator[Anchor]:
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix("\ufeff")
        if not text:
            continue
        anchor = _parsed(text)
        if anchor is None:
            raise AnchorError(
                f"{name}, line {number}: this is no anchor; give the lines that `ptc audit anchor` printed, unchanged"
            )
        yield anchor


def _parsed(text: str) -> Anchor | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    told = cast("dict[str, Any]", found)
    session, seq, digest, time = (told.get(key) for key in ("session", "seq", "hash", "time"))
    if not (
        told.get("format") == _FORMAT
        and isinstance(session, str)
        and type(seq) is int
        and -1 <= seq < 1 << SEQ_BITS
        and isinstance(digest, str)
        and _HASH.fullmatch(digest)
    ):
        return None
    return Anchor(session, seq, digest, time if isinstance(time, str) else "")
