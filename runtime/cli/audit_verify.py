"""`ptc audit verify` and `ptc audit anchor`: what they read, and what they print.

`ptc audit verify --json` prints one object of the format `ptc.audit.verify/1`:

    {"format", "log", "session": the only one that was verified, "whole", "sessions", "events",
     "anchors": how many were given, "anchored": how many events they vouch for,
     "problems": [{"kind", "session", "seq", "last", "message"}], "more": how many problems are not told,
     "notes": [text]}

A `kind` is one of `changed`, `missing`, `reordered`, `forged`, `header`, `foreign`, `schema`, `damaged`. `seq` and
`last` are the first and the last event that a problem is about. What does not apply is null.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ..log.anchor import AnchorError, read_anchors
from ..log.snapshot import read_snapshot
from .audit_find import NoSuchRunError, one_session
from .terminal import print_line, visible

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from ..log.anchor import Anchor
    from ..log.verify import Verification

__all__ = ["anchors_in", "print_verification", "session_named", "verification_object"]

_NO_ANCHOR = (
    "No anchor was given. The log alone cannot tell whether events were cut off from the end of a session, whether the "
    "latest sessions were removed, or whether somebody changed an event and computed the chain anew. "
    "Keep what `ptc audit anchor` prints where nobody who writes the log can change it, and give it with --anchor."
)


def anchors_in(files: Iterable[str]) -> list[Anchor]:
    """Reads the anchors of several files; `-` is standard input.

    Raises:
        AnchorError: a file cannot be read, or holds something else, or nothing.
    """
    anchors: list[Anchor] = []
    for name in files:
        if name == "-":
            anchors += read_anchors(sys.stdin, name="standard input")
            continue
        try:
            with Path(name).open(encoding="utf-8", errors="replace") as lines:
                anchors += read_anchors(lines, name=name)
        except OSError as error:
            raise AnchorError(f"{name} cannot be read: {error.strerror}; give a file of anchors") from None
    return anchors


def session_named(log: Path, beginning: str, anchors: Sequence[Anchor] = ()) -> str:
    """Returns the id of the session that an auditor names by its beginning.

    A session that only an anchor tells of counts too, since to be missing is what it is looked for then.

    Raises:
        NoSuchRunError: the name fits none, or more than one.
        LogUnavailableError: the log cannot be read.
    """

    def read(connection: sqlite3.Connection) -> list[str]:
        connection.text_factory = lambda raw: raw.decode(errors="backslashreplace")
        return [str(session) for (session,) in connection.execute("SELECT id FROM sessions ORDER BY key")]

    stored = read_snapshot(log.absolute(), read)
    try:
        return one_session(log, stored, beginning)
    except NoSuchRunError:
        anchored = {anchor.session for anchor in anchors if anchor.session.startswith(beginning)}
        if len(anchored - set(stored)) != 1 or any(session.startswith(beginning) for session in stored):
            raise
        return anchored.pop()


def verification_object(log: Path, session: str | None, found: Verification) -> dict[str, Any]:
    """Returns what `ptc audit verify --json` prints."""
    return {
        "format": "ptc.audit.verify/1",
        "log": str(log),
        "session": session,
        "whole": found.whole,
        "sessions": found.sessions,
        "events": found.events,
        "anchors": found.anchors,
        "anchored": found.anchored,
        "problems": [
            {
                "kind": problem.kind,
                "session": problem.session,
                "seq": problem.seq,
                "last": problem.last,
                "message": problem.message,
            }
            for problem in found.problems
        ],
        "more": found.more,
        "notes": [*found.notes, *([] if found.anchors else [_NO_ANCHOR])],
    }


def print_verification(console: Console, log: Path, session: str | None, found: Verification) -> None:
    """Prints the verdict, what is wrong, and what the verdict does not cover."""
    what = visible(str(log) if session is None else f"session {session} of {log}")
    size = f"{_count(found.sessions, 'session')}, {_count(found.events, 'event')}"
    if found.whole:
        print_line(console, Text.assemble(what, (" is whole", "green"), f": {size}"))
    else:
        count = _count(len(found.problems) + found.more, "problem")
        print_line(console, Text.assemble(what, (" is not whole", "bold red"), f": {count} in {size}"))
    for problem in found.problems:
        print_line(console, Text.assemble("  ", (f"{problem.kind:<9} ", "red"), visible(problem.message)))
    if found.more:
        print_line(console, Text(f"  and {_count(found.more, 'further problem')}"))
    if found.anchors:
        others = found.events - found.anchored
        rest = f"; {_count(others, 'later event')} hang on the chain alone" if others else ""
        given = _count(found.anchors, "anchor")
        print_line(console, Text(f"{given} given, vouching for {_count(found.anchored, 'event')}{rest}"))
    else:
        print_line(console, Text(_NO_ANCHOR))
    for note in found.notes:
        print_line(console, Text.assemble("note: ", visible(note)))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
