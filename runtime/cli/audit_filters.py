"""The filters that `ptc audit query` and `ptc audit tail` take, as options, and what they come to."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from ..log.call_filter import CallFilter

__all__ = [
    "Agent",
    "Answered",
    "Approved",
    "Argument",
    "Code",
    "Content",
    "Decided",
    "DecidedBy",
    "Ended",
    "Job",
    "RunName",
    "SessionName",
    "Since",
    "Tool",
    "Until",
    "call_filter",
    "time_us",
]

_OUTCOMES: Final = ["ok", "failed", "denied", "cancelled", "unknown"]
_DECISIONS: Final = ["allow", "deny", "cancel", "error", "block"]
_APPROVALS: Final = ["asked", "answered", "unanswered", "allowed-once", "rejected", "cancelled", "unavailable"]
_JOBS: Final = ["any", "completed", "killed", "failed", "unknown"]
_MICROSECOND: Final = timedelta(microseconds=1)
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        help="Calls that started at this time or later: a date, a time like 2026-11-29T10:15 (UTC unless it says "
        "otherwise), or how long ago, like 90s, 30m, 2h, 7d.",
        metavar="TIME",
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", help="Calls that started before this time, told likewise.", metavar="TIME")
]
Agent = Annotated[
    str | None, typer.Option("--agent", help="Calls of agents whose name fits: 'support*'.", metavar="PATTERN")
]
Tool = Annotated[
    str | None, typer.Option("--tool", help="Calls of tools whose name fits: 'delete_*'.", metavar="PATTERN")
]
Ended = Annotated[
    str | None, typer.Option("--outcome", help=f"How they ended: {', '.join(_OUTCOMES)}.", metavar="OUTCOME")
]
Code = Annotated[str | None, typer.Option("--code", help="The code of the error that they ended with.", metavar="CODE")]
Decided = Annotated[
    str | None, typer.Option("--decision", help=f"What policy said: {', '.join(_DECISIONS)}.", metavar="DECISION")
]
DecidedBy = Annotated[
    str | None,
    typer.Option("--decided-by", help="A part of the name of the guard or listener that decided.", metavar="NAME"),
]
Approved = Annotated[
    str | None,
    typer.Option(
        "--approval",
        help=f"Calls that somebody was asked about, by what came of the question: {', '.join(_APPROVALS)}.",
        metavar="STATE",
    ),
]
Answered = Annotated[
    str | None,
    typer.Option(
        "--answered",
        help="A part of what is recorded of who answered such a question, and how.",
        metavar="TEXT",
    ),
]
Content = Annotated[
    str | None,
    typer.Option(
        "--content",
        help="What the record has of their content: text, image or another type of block, empty, spilled (a preview "
        "stands for a long text), redacted, redaction-failed.",
        metavar="KIND",
    ),
]
Job = Annotated[
    str | None,
    typer.Option(
        "--job", help=f"Calls that started background jobs, by how these ended: {', '.join(_JOBS)}.", metavar="STATE"
    ),
]
Argument = Annotated[
    str | None,
    typer.Option("--argument", help="A part of the compact JSON text of their arguments.", metavar="TEXT"),
]
SessionName = Annotated[
    str | None,
    typer.Option("--session", "-s", help="Calls of this session; the beginning of its id is enough.", metavar="ID"),
]
RunName = Annotated[str | None, typer.Option("--run", help="Calls of this run: SESSION/NUMBER.", metavar="RUN")]


def call_filter(log: Path, options: dict[str, Any]) -> CallFilter:
    """Returns the filter that options ask for: `since`, `until`, `agent`, `tool`, `outcome` and so on, by name.

    Raises:
        typer.BadParameter: one of them makes no sense.
        NoSuchRunError: the log has no such session.
        LogUnavailableError: the log, which has to be asked for the session, cannot be read.
    """
    from ..log.call_filter import CallFilter
    from .audit_verify import session_named

    session, run = options.get("session"), options.get("run")
    number: int | None = None
    if run is not None:
        name, slash, text = run.partition("/")
        if session is not None or not slash or not (text.isascii() and text.isdigit()):
            raise typer.BadParameter("it takes SESSION/NUMBER, and no --session beside it", param_hint="--run")
        session, number = name, int(text)
    outcome = _one_of("--outcome", options.get("outcome"), _OUTCOMES)
    return CallFilter(
        since_us=time_us("--since", options.get("since")),
        until_us=time_us("--until", options.get("until")),
        agent=options.get("agent"),
        tool=options.get("tool"),
        outcome="outcome unknown" if outcome == "unknown" else outcome,  # pyright: ignore[reportArgumentType] - checked
        code=options.get("code"),
        decision=_one_of("--decision", options.get("decision"), _DECISIONS),  # pyright: ignore[reportArgumentType] - checked
        decided_by=options.get("decided_by"),
        approval=_one_of("--approval", options.get("approval"), _APPROVALS),  # pyright: ignore[reportArgumentType] - checked
        answered=options.get("answered"),
        content=options.get("content"),
        job=_one_of("--job", options.get("job"), _JOBS),  # pyright: ignore[reportArgumentType] - checked
        argument=options.get("argument"),
        session=None if session is None else session_named(log, session),
        run=number,
    )


def time_us(option: str, text: str | None) -> int | None:
    """Returns the time that a text tells, in microseconds since 1970 UTC.

    Raises:
        typer.BadParameter: it tells none.
    """
    if text is None:
        return None
    ago = re.fullmatch(r"(\d{1,9})([smhdw])", text)
    if ago is not None:
        return time.time_ns() // 1000 - int(ago[1]) * _UNITS[ago[2]] * 1_000_000
    try:
        told = datetime.fromisoformat(text)
        if told.tzinfo is None:
            told = told.replace(tzinfo=UTC)
        return (told - datetime(1970, 1, 1, tzinfo=UTC)) // _MICROSECOND
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is no time; give one like 2026-11-29, 2026-11-29T10:15 or 2h", param_hint=option
        ) from None


def _one_of(option: str, given: str | None, allowed: list[str]) -> str | None:
    if given is not None and given not in allowed:
        raise typer.BadParameter(f"it takes one of {', '.join(allowed)}, not {given!r}", param_hint=option)
    return given
