"""What several commands take, and how each says that it was used wrongly."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

__all__ = ["Settings", "Tools", "read_settings", "say", "shown", "usage_error"]

_WRONG_USAGE = 2

Tools = Annotated[
    list[str],
    typer.Option("--tools", help="A Python file or module that defines tools; may be repeated.", metavar="FILE"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Sets a parameter of the tools file's `tools` function.", metavar="KEY=VALUE"),
]


def read_settings(settings: list[str] | None) -> dict[str, str]:
    """Returns the settings by key.

    Raises:
        typer.Exit: one of them is not `KEY=VALUE`; the user has been told.
    """
    read: dict[str, str] = {}
    for setting in settings or ():
        key, equals, value = setting.partition("=")
        if not equals or not key.isidentifier():
            raise usage_error(f"--set takes KEY=VALUE, not {setting!r}")
        read[key] = value
    return read


def say(message: str) -> None:
    """Writes a message to standard error; it may quote what a program or a tools file wrote."""
    from .terminal import visible

    for line in message.split("\n"):
        sys.stderr.write(f"ptc: {visible(line).plain}\n")


def shown(line: str) -> str:
    """Returns one line of foreign output with everything escaped that would steer the terminal; tabs are kept."""
    from .terminal import visible

    return "\t".join(visible(part).plain for part in line.split("\t"))


def usage_error(message: str) -> typer.Exit:
    """Says what was used wrongly; raise what it returns."""
    say(message)
    return typer.Exit(_WRONG_USAGE)
