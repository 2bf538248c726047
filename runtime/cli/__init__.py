"""The command line, `ptc`. A command is one module beside this one, and imports what it needs when it runs."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Runs the command line, and ends the process: 0 fine, 1 failed, 2 wrong usage."""
    import typer

    from .audit import audit
    from .run import run
    from .sdk import sdk
    from .serve import serve

    # Whatever a program wrote is escaped before it is printed; this is for plain letters that a narrow terminal lacks.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")

    app = typer.Typer(
        name="ptc",
        help="Programmatic tool calling: programs that call your tools from inside a sandbox, every call on record.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top)
    app.command("run")(run)
    app.command("sdk")(sdk)
    app.command("serve")(serve)
    app.add_typer(audit, name="audit")
    app(prog_name="ptc")


def _top() -> None:
    """Keeps `ptc` a group of commands however few they are."""
