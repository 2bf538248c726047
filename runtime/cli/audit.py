"""`ptc audit`: who called what, with which arguments, under which decision, inside which program, and how it ended."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from .audit_filters import (
    Agent,
    Answered,
    Approved,
    Argument,
    Code,
    Content,
    Decided,
    DecidedBy,
    Ended,
    Job,
    RunName,
    SessionName,
    Since,
    Tool,
    Until,
    call_filter,
    time_us,
)

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
JsonLines = Annotated[
    bool, typer.Option("--json", help="Print JSON Lines instead, one object for each call, for other programs.")
]

_WRONG_USAGE: Final = frozenset({"missing", "not-a-log"})


@audit.command("list")
def list_command(
    log: Log = Path("ptc.db"),
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many runs to list.", metavar="N")] = 20,
    json: Json = False,
) -> None:
    """List the latest runs: one line for each call that a model made, with its jobs, the latest first."""
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

    Beside each call stand the questions about it and the background jobs that it started, with how these ended. The
    policies that stood for the session come first.

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


@audit.command("verify")
def verify_command(
    log: Log = Path("ptc.db"),
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", help="Verify this session alone; the beginning of its id is enough."),
    ] = None,
    anchor: Annotated[
        list[str] | None,
        typer.Option(
            "--anchor",
            help="A file of what `ptc audit anchor` printed; - for standard input. Repeatable.",
            metavar="FILE",
        ),
    ] = None,
    final: Annotated[
        bool,
        typer.Option(
            "--final", help="Nothing was to be written after the last anchors, so whatever follows them is forged."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Prove the log whole, or name the first record of each session that was changed, dropped, moved or forged.

    The hash chain shows every change but two: the end of a session, or of the log, that was cut off, and a chain that
    somebody computed anew after a change. Anchors that were kept elsewhere show those too. What was written after the
    last anchor hangs on the chain alone until the next one is taken.

    Exit codes: 0 whole, 1 not whole, 2 wrong usage.
    """
    with _explained():
        from ..log.verify import verify_log
        from .audit_verify import anchors_in, session_named

        if final and not anchor:
            raise typer.BadParameter("it says of anchors that they are the last word; give them with --anchor")
        anchors = anchors_in(anchor or ())
        only = None if session is None else session_named(log, session, anchors)
        found = verify_log(log, session=only, anchors=anchors, final=final)
        if json:
            from .audit_object import json_text
            from .audit_verify import verification_object

            _print(json_text(verification_object(log, only, found)))
        else:
            from .audit_verify import print_verification
            from .terminal import console

            print_verification(console(), log, only, found)
    if not found.whole:
        raise typer.Exit(1)


@audit.command("anchor")
def anchor_command(
    log: Log = Path("ptc.db"),
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", help="The anchor of this session alone; the beginning of its id is enough."),
    ] = None,
) -> None:
    """Print where each session stands: one line of JSON with the hash of its last event.

    Append the lines to a file that nobody who writes the log can change, or mail them. Later `ptc audit verify
    --anchor FILE` shows whether the log still has all that it had, unchanged. This command verifies nothing itself.
    """
    with _explained():
        from ..log.anchor import anchor_log
        from .audit_verify import session_named

        only = None if session is None else session_named(log, session)
        for one in anchor_log(log, session=only):
            _print(one.line())


@audit.command("query")
def query_command(
    log: Log = Path("ptc.db"),
    since: Since = None,
    until: Until = None,
    agent: Agent = None,
    tool: Tool = None,
    outcome: Ended = None,
    code: Code = None,
    decision: Decided = None,
    decided_by: DecidedBy = None,
    approval: Approved = None,
    answered: Answered = None,
    content: Content = None,
    job: Job = None,
    argument: Argument = None,
    session: SessionName = None,
    run: RunName = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many calls to list.", metavar="N")] = 50,
    json: JsonLines = False,
) -> None:
    """Find calls, of models and of programs, that fit all filters: one line for each, the latest first.

    Each line tells when the call started, the agent, the run (which `ptc audit show` takes), the tool, how the call
    ended and how long it took, who decided, the error, the jobs that it started, and the arguments.
    """
    with _explained():
        from ..log.query import find_calls

        wanted = call_filter(log, locals())
        found = find_calls(log, wanted, limit=limit)
        if json:
            from .audit_query import call_object, json_line

            for call in found.calls:
                _print(json_line(call_object(call)))
        else:
            from .audit_query import print_findings
            from .terminal import console

            print_findings(console(), found)
    for problem in found.unreadable.values():
        _say(problem)
    if found.unreadable:
        raise typer.Exit(1)


@audit.command("tail")
def tail_command(
    log: Log = Path("ptc.db"),
    since: Annotated[
        str | None,
        typer.Option("--since", help="Print what has happened since this time too: 10m, 2026-11-29.", metavar="TIME"),
    ] = None,
    agent: Agent = None,
    tool: Tool = None,
    outcome: Ended = None,
    code: Code = None,
    decision: Decided = None,
    decided_by: DecidedBy = None,
    approval: Approved = None,
    answered: Answered = None,
    content: Content = None,
    job: Job = None,
    argument: Argument = None,
    session: SessionName = None,
    json: JsonLines = False,
) -> None:
    """Follow the log while hosts write it: one line when a call or a job starts (>) and one when it has ended (<).

    It waits for a log that is not there yet. With filters on how calls end, only ends are printed; with filters that
    only calls can meet, no jobs. Ctrl-C ends it.
    """
    with _explained():
        from .audit_tail import tail

        tail(log, call_filter(log, locals()), json=json, say=_say)


@audit.command("export")
def export_command(
    log: Log = Path("ptc.db"),
    format_: Annotated[
        str, typer.Option("--format", "-f", help="jsonl: every event; otel: OpenTelemetry spans.", metavar="FORMAT")
    ] = "jsonl",
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", help="Export this session alone; the beginning of its id is enough."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="otel: runs that started at this time or later.", metavar="TIME")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="otel: runs that started before this time.", metavar="TIME")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="A new file, readable by you alone; - is standard output.", metavar="FILE"),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint",
            help="otel: the collector's URL for OTLP over HTTP, for example http://localhost:4318.",
            metavar="URL",
        ),
    ] = None,
    content: Annotated[
        bool,
        typer.Option("--content", help="otel: put arguments, results, programs and reasons into the spans as well."),
    ] = False,
) -> None:
    """Copy the log out: as JSON Lines with all that its hash chain needs, or as OpenTelemetry spans.

    jsonl writes a line for each session, then one for each of its events; the whole chain can be verified from them.
    otel writes a span for each call, by the GenAI conventions, to a collector (--endpoint) or as OTLP JSON (--output);
    it needs the extra `otel`. Ids are made of session and call, so the same call has the same id in every export.
    """
    with _explained():
        from .audit_verify import session_named

        if format_ == "jsonl":
            given = {"--endpoint": endpoint, "--since": since, "--until": until, "--content": content or None}
            for option, value in given.items():
                if value is not None:
                    raise typer.BadParameter(f"it is for --format otel, not for {format_}", param_hint=option)
        elif format_ != "otel":
            raise typer.BadParameter(f"it takes jsonl or otel, not {format_!r}", param_hint="--format")
        elif (endpoint is None) == (output is None):
            raise typer.BadParameter("give the one or the other", param_hint="--endpoint, --output")
        only = None if session is None else session_named(log, session)
        if format_ == "jsonl":
            from .audit_export import export_events

            export_events(log, only, output)
        else:
            from .audit_export import export_otel

            done = export_otel(
                log,
                session=only,
                since_us=time_us("--since", since),
                until_us=time_us("--until", until),
                output=output,
                endpoint=endpoint,
                content=content,
            )
            _say(f"{done.spans:,} spans exported")
            for name, problem in done.unreadable.items():
                _say(f"session {name} cannot be read to its end: {problem}")
            if done.unreadable:
                raise typer.Exit(1)


@contextmanager
def _explained() -> Iterator[None]:
    """Turns the errors that the user should read into a message and an exit code."""
    from ...registry.errors import HarnessError
    from ..log.anchor import AnchorError
    from ..log.errors import LogUnavailableError
    from ..log.query import UnknownRunError
    from .audit_find import NoSuchRunError

    try:
        yield
    except LogUnavailableError as error:
        _end(error, 2 if error.reason in _WRONG_USAGE else 1)
    except (AnchorError, NoSuchRunError, UnknownRunError) as error:
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
