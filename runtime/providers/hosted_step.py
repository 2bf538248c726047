"""What one response of a provider tells of the programs that the provider runs itself."""

from __future__ import annotations

from dataclasses import dataclass

from ...registry import ToolCall

__all__ = ["HostedEnd", "HostedProgram", "HostedStep"]


@dataclass(frozen=True, slots=True)
class HostedProgram:
    """A program that has begun.

    Attributes:
        program_id: the provider's id of it.
        code: its source.
        language: the language of the source, as the provider says.
    """

    program_id: str
    code: str
    language: str


@dataclass(frozen=True, slots=True)
class HostedEnd:
    """How a program has ended, as the provider tells it.

    Attributes:
        program_id: the provider's id of it.
        output: what it printed or returned.
        error: why it failed; `None` when it completed.
        timed_out: whether it failed because its time was up.
    """

    program_id: str
    output: str = ""
    error: str | None = None
    timed_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedStep:
    """One response of the model.

    Attributes:
        calls: all its calls in order; those of programs are `HostedCall`s, the others the model makes itself.
        begun: the programs that have begun since the response before.
        ended: those that have ended.
    """

    calls: tuple[ToolCall, ...] = ()
    begun: tuple[HostedProgram, ...] = ()
    ended: tuple[HostedEnd, ...] = ()
