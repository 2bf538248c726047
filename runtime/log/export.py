r"""A log as JSON Lines: all that is recorded, in a form from which the hash chains can be computed anew.

Each line is an object in printable ASCII. Sessions come in the order in which they were opened, and the events of each
right behind it:

    {"record": "session", "format": "ptc.audit.export/1", "session", "agent", "opened", "openedUs", "labels", "hash"}
    {"record": "event", "session", "seq", "type", "time", "timeUs", "monoUs", "cites", "hash", "data"}

`opened` and `time` are ISO 8601 in UTC, `openedUs` and `timeUs` the same in microseconds since 1970, `hash` is in
hexadecimal, `cites` null or a `seq`. To verify a chain, compute what `chain.py` says:

    compact = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    header = compact([session, agent, openedUs, labels with its keys in order])
    hash of the session = sha256("ptc-session 1\n" + header)
    hash of an event    = sha256(the hash before + f"{seq} {timeUs} {monoUs} {cites} {type}\n" + compact(data)),
                          and for `cites` a `-` when it is null

A text that was changed, and is not the JSON that it would be written as, cannot be given by `data` alone: then the
event has it in `text` too, and that is what was hashed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ...registry.errors import HarnessError
from .database import SEQ_BITS
from .errors import LogUnavailableError
from .pairs import SEQ_MASK
from .snapshot import read_snapshot
from .times import iso

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterator
    from typing import TextIO

__all__ = ["EXPORT_FORMAT", "ExportError", "export_log", "rewind"]

EXPORT_FORMAT: Final = "ptc.audit.export/1"

_SESSIONS: Final = (
    "SELECT key, id, agent, opened_us, labels, hash FROM sessions WHERE ?1 IS NULL OR id = ?1 ORDER BY key"
)
_EVENTS: Final = "SELECT id, type, time_us, mono_us, cites, hash, data FROM events WHERE id >= ? AND id < ? ORDER BY id"


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


_read_json = json.JSONDecoder(parse_constant=_no_number).decode
_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class ExportError(HarnessError):
    """The export could not be written, or not been taken by who was to have it. The message says why."""

    default_code = "EXPORT_FAILED"


def export_log(log: str | os.PathLike[str], output: TextIO, *, session: str | None = None) -> tuple[int, int]:
    """Writes a log as JSON Lines, as it was at one instant. Blocks; the log is read bit by bit.

    Args:
        log: the path of the log.
        output: where to.
        session: the id of the only session to write; all when omitted.

    Returns:
        how many sessions and how many events were written.

    Raises:
        LogUnavailableError: the log is not there or cannot be read.
        ExportError: the output cannot be written; the `OSError` is its cause.
    """
    path = Path(log).absolute()
    begun = False

    def read(connection: sqlite3.Connection) -> tuple[int, int]:
        nonlocal begun
        if begun:
            rewind(path, output)
        begun = True
        sessions = events = 0
        for is_session, line in _lines(connection, session):
            try:
                output.write(line)
            except OSError as error:
                raise ExportError(f"the export cannot be written: {error.strerror}") from error
            sessions += is_session
            events += not is_session
        return sessions, events

    return read_snapshot(path, read)


def rewind(path: Path, output: TextIO) -> None:
    """Has an output begin anew, for the log was not read as it was at one instant.

    Raises:
        LogUnavailableError: it cannot, since it is no file.
    """
    try:
        output.seek(0)
        output.truncate()
    except (OSError, ValueError) as error:
        raise LogUnavailableError(
            f"cannot read the log {path} as it was at one instant: a process began to write it meanwhile; try again",
            reason="locked",
        ) from error


def _lines(connection: sqlite3.Connection, session: str | None) -> Iterator[tuple[bool, str]]:
    """Yields each line, with whether it is a session's."""
    for key, name, agent, opened_us, labels, digest in connection.execute(_SESSIONS, (session,)):
        yield True, _session_line(name, agent, opened_us, labels, digest)
        for row in connection.execute(_EVENTS, (key << SEQ_BITS, (key + 1) << SEQ_BITS)):
            yield False, _event_line(name, *row)


def _session_line(name: str, agent: str, opened_us: int, labels: str, digest: bytes) -> str:
    told: dict[str, Any] = {
        "record": "session",
        "format": EXPORT_FORMAT,
        "session": name,
        "agent": agent,
        "opened": iso(opened_us),
        "openedUs": opened_us,
        "labels": _parsed(labels)[0],
        "hash": digest.hex(),
    }
    return _printable(_ascii(told))


def _event_line(
    name: str, row: int, kind: str, time_us: int, mono_us: int, cites: int | None, digest: bytes, text: str
) -> str:
    data, exact = _parsed(text)
    told: dict[str, Any] = {
        "record": "event",
        "session": name,
        "seq": row & SEQ_MASK,
        "type": kind,
        "time": iso(time_us),
        "timeUs": time_us,
        "monoUs": mono_us,
        "cites": cites,
        "hash": digest.hex(),
    }
    if not exact:
        return _printable(_ascii({**told, "data": data, "text": text}))
    return _printable(f'{_ascii(told)[:-1]},"data":{text if text.isascii() else _ascii(data)}}}')


def _parsed(text: str) -> tuple[Any, bool]:
    """Returns the value of a text, and whether the text is what that value is written as."""
    try:
        value = _read_json(text)
        return value, _compact(value) == text
    except (ValueError, RecursionError):
        return None, False


def _printable(line: str) -> str:
    return line.replace("\x7f", "\\u007f") + "\n"
