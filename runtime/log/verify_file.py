"""Says whether the file around the records is a log as ptc makes it: its settings, tables and triggers, its pages."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from .database import SCHEMA_VERSION, schema_objects
from .verify_rows import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DAMAGED", "look_at_pages", "look_at_schema", "look_at_size"]

DAMAGED: Final = "the file is damaged; keep it, and restore a copy of it"

_LINES: Final = 10
"""How many lines SQLite may print of damaged pages."""

_SETTINGS: Final = {"user_version": SCHEMA_VERSION, "encoding": "UTF-8", "auto_vacuum": 0}


def look_at_schema(connection: sqlite3.Connection) -> tuple[list[Problem], list[str], bool]:
    """Compares what the file is made of with what a log is made of.

    A trigger or a table of ours that is missing or changed is a problem even when all records are whole: no version of
    ptc makes such a file, so somebody has worked on it, and what the triggers hold off may happen next. The same is
    true of a foreign trigger, which could write to the log. A foreign table, view or index touches no record.

    Returns:
        the problems, what an auditor should know beside them, and whether the records can be read as such.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    for name, right in _SETTINGS.items():
        (value,) = connection.execute(f"PRAGMA {name}").fetchone()
        found = value.decode(errors="replace") if isinstance(value, bytearray) else value
        if found != right:
            problems.append(
                Problem("schema", f"the file's setting {name} is {found!r}, and that of a log is {right!r}")
            )
    ours = schema_objects()
    found_objects = {(_text(kind), _text(name)): sql for kind, name, sql in _objects(connection)}
    readable = True
    for (kind, name), sql in ours.items():
        if (kind, name) in found_objects and found_objects[kind, name] == (sql if sql is None else sql.encode()):
            continue
        what = "changed" if (kind, name) in found_objects else "dropped"
        text = f"the {kind} {name} of the log was {what}"
        if kind == "table":
            readable = False
            text += ", so the records were not checked"
        problems.append(Problem("schema", text))
    for kind, name in found_objects.keys() - ours.keys():
        if kind in ("table", "view", "index"):
            notes.append(f"the {kind} {name} is none of the log's; it does not touch the records")
        else:
            problems.append(Problem("schema", f"the {kind} {name} is none of the log's, and it could change records"))
    return problems, sorted(notes), readable


def _objects(connection: sqlite3.Connection) -> Iterator[tuple[object, object, object]]:
    yield from connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name")


def _text(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytearray) else repr(value)


def look_at_size(connection: sqlite3.Connection, size: int) -> list[Problem]:
    """Compares the size of a file that nobody writes, in bytes, with that which its header gives."""
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if size == page * pages:
        return []
    what = "was cut off" if size < page * pages else "has something at its end"
    text = f"{DAMAGED}. It {what}: it has {size:,} bytes, and should have {page * pages:,}"
    return [Problem("damaged", text)]


def look_at_pages(connection: sqlite3.Connection) -> list[Problem]:
    """Has SQLite look through all pages of the file: their form, their links, and that the index fits its table."""
    lines = [_text(line) for (line,) in connection.execute(f"PRAGMA integrity_check({_LINES})")]
    if lines == ["ok"]:
        return []
    return [Problem("damaged", f"{DAMAGED}. SQLite says: {' / '.join(' '.join(line.split()) for line in lines)}")]
