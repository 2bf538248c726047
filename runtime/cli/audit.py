"""`ptc audit`: who called what, with which arguments, under which decision, inside which program, and how it ended."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...registry.errors import HarnessError

__all__ = ["audit"]

audit = typer.Typer(
    name="audit",
    help="Read the log of what programs and models called. Reading never changes the log, "
    "and works while a host is writing to it.",
    no_args_is_help=True,
)

Log = Annotated[
    Path,
    typer.Option(
        "--log", envvar="PTC_LOG", show_default=True, help="The log file that the host writes.", metavar="FILE"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for other programs.")]

_WRONG_USAGE: Final = frozenset({"missing", "not-a-log"})


@audit.command("list")
def list_command(
    log: Log = Path("ptc.db"),
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many runs to list.", metavar="N")] = 20,
    json: Json = False,
) -> None:
    """List the latest runs: one line for each call that a model made, the latest first."""
    with _explained():
        from ..log.sqlite_reader import SqliteLogReader
        from .audit_find import list_runs

        with SqliteLogReader(log) as reader:
            listing = list_runs(reader, limit)
        if json:
            from .audit_object import json_text, list_object

            _print(json_text(list_object(log, listing)))
        else:
            from .audit_text import print_listing
            from .terminal import console

            print_listing(console(), log, listing)
    for session, count in listing.unpaired.items():
        _say(f"session {session}: {count} events do not pair; `ptc audit show {session}` lists them")
    for session, problem in listing.unreadable.items():
        _say(f"session {session} cannot be read: {problem}")
    if listing.unreadable:
        raise typer.Exit(1)


@audit.command("show")
def show_command(
    run: Annotated[
        str | None,
        typer.Argument(
            help="SESSION/NUMBER for one run, SESSION for all runs of a session; the beginning of a session's id is "
            "enough. The latest run when omitted.",
            metavar="[RUN]",
            show_default=False,
        ),
    ] = None,
    log: Log = Path("ptc.db"),
    json: Json = False,
    full: Annotated[bool, typer.Option("--full", help="Cut nothing, however long it is.")] = False,
) -> None:
    """Show a run: its program, each call in order with arguments, outcome and duration, and the result.

    A call ends ok, failed, denied or cancelled; its outcome is unknown when it still runs, or when its process died.
    Characters that would steer the terminal or hide text are shown as escapes, and long values are cut.
    """
    with _explained():
        from ..log.sqlite_reader import SqliteLogReader
        from .audit_find import find, latest

        with SqliteLogReader(log) as reader:
            found = latest(reader) if run is None else find(reader, run)
        if json:
            from .audit_object import json_text, show_object

            _print(json_text(show_object(log, found)))
        else:
            from .audit_text import print_runs
            from .terminal import console

            print_runs(console(), found, full=full)


@contextmanager
def _explained() -> Iterator[None]:
    """Turns the errors that the user should read into a message and an exit code."""
    from ...registry.errors import HarnessError
    from ..log.errors import LogUnavailableError
    from .audit_find import NoSuchRunError

    try:
        yield
    except LogUnavailableError as error:
        _end(error, 2 if error.reason in _WRONG_USAGE else 1)
    except NoSuchRunError as error:
        _end(error, 2)
    except HarnessError as error:
        _end(error, 1)


def _end(error: HarnessError, code: int) -> NoReturn:
    _say(error.message)
    raise typer.Exit(code) from None


def _say(message: str) -> None:
    """Writes a message to standard error; it may quote what a program wrote."""
    from .terminal import visible

    for line in message.split("\n"):
        sys.stderr.write(f"ptc: {visible(line).plain}\n")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
