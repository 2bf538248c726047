"""How a program's failure is told: its own frames, its own lines, and what to do where that is known."""

from __future__ import annotations

import re
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from typing import Any, Final

from .hints import World, hint, module_message
from .intrinsics import INTRINSICS
from .program import FILENAME
from .tracebacks import format_error, quoted_line, remember_source, suspended_at

__all__ = [
    "World",
    "describe",
    "describe_forgotten",
    "remember_source",
    "render",
    "suspended_at",
    "tell_as_a_program_may_see",
    "tell_of_coroutines",
    "traceback_functions",
]

__builtins__ = INTRINSICS

_MOST_HINTS: Final = 3
_MOST_FORGOTTEN: Final = 5
_ON_LINE: Final = re.compile(r" on line ([0-9]+)")


def describe(error: BaseException, world: World | None = None) -> str:
    """Returns the text of an exception: a traceback of the program's own frames only (ruling 38, contract F15).

    Args:
        error: what the program raised.
        world: what the program finds around it, for hints.
    """
    world = world or World()
    try:
        text = render(error)
    except BaseException:
        text = _plain(error)
    try:
        hints = _hints(error, world)
        told = module_message(error, world)
        if told is not None:
            text = text.removesuffix(f": {error}") + f": {told}"
    except BaseException:  # looking at the program's objects may run what it has written
        hints = []
    return "\n".join([text, *(f"Hint: {one}{'' if one.endswith('?') else '.'}" for one in hints)])


def render(error: BaseException) -> str:
    """Returns the traceback of an exception, of the program's own frames only, without a line end."""
    return "\n".join(format_error(error))


def _hints(error: BaseException, world: World) -> list[str]:
    found: list[str] = []
    pending = [error]
    while pending and len(found) < _MOST_HINTS:
        one = pending.pop(0)
        if isinstance(one, BaseExceptionGroup):
            pending.extend(one.exceptions[:50])
            continue
        if isinstance(one, RuntimeError) and isinstance(one.__cause__, StopIteration):
            one = one.__cause__
        told = hint(one, world)
        if told is not None and told not in found:
            found.append(told)
    return found


def describe_forgotten(calls: list[str]) -> str:
    """Returns the text for calls that were never awaited (ruling 37).

    Args:
        calls: a phrase for each, which ends with its line.
    """
    shown = "; ".join(calls[:_MOST_FORGOTTEN]) + ("; ..." if len(calls) > _MOST_FORGOTTEN else "")
    several = len(calls) > 1 or calls[0].endswith(" times)")
    text = f"{'these calls were' if several else 'this call was'} never awaited and did not run: {shown}."
    text += " Write `await` before the call"
    text += ", or `await asyncio.gather(...)` around several." if several else "."
    quoted = dict.fromkeys(int(found[1]) for one in calls[:_MOST_FORGOTTEN] if (found := _ON_LINE.search(one)))
    return "\n".join([text, *(line for number in quoted for line in quoted_line(number))])


def tell_of_coroutines(world: World) -> None:
    """Writes to stderr which coroutines the program has kept under a name and never awaited.

    Python itself tells of those that are let go of, and of these when it ends, which here is too late.
    """
    for value in tuple(world.names.values()):
        if type(value) is not types.CoroutineType or value.cr_frame is None or value.cr_running or value.cr_suspended:
            continue
        try:
            sys.stderr.write(f"RuntimeWarning: coroutine {value.__qualname__!r} was never awaited\n")
        except Exception:
            return  # the program has put something else there


def tell_as_a_program_may_see() -> None:
    """Has what Python itself tells of exceptions and warnings name the program's own lines, and no others."""
    traceback.__dict__.update(traceback_functions())
    warnings.formatwarning = _format_warning  # type: ignore[assignment]


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    if filename == FILENAME:
        return _python_format(message, category, filename, lineno, line)
    return f"{category.__name__}: {message}\n"


def _plain(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return "program threw an unrenderable value"


def traceback_functions() -> dict[str, Callable[..., Any]]:
    """Returns the functions of `traceback` that tell of an exception, with the program's own frames only."""

    def format_exception(
        exc: Any, /, value: Any = None, tb: object = None, limit: object = None, chain: bool = True, **_more: object
    ) -> list[str]:
        del tb, limit, chain
        error = value if isinstance(value, BaseException) else exc
        if not isinstance(error, BaseException):
            return ["NoneType: None\n"]
        return (render(error) + "\n").splitlines(keepends=True)

    def format_exception_only(exc: Any, /, value: Any = None, **_options: object) -> list[str]:
        error = value if isinstance(value, BaseException) else exc
        return _format_only(error)

    def print_exception(
        exc: Any,
        /,
        value: Any = None,
        tb: object = None,
        limit: object = None,
        file: Any = None,
        chain: bool = True,
        **_more: object,
    ) -> None:
        text = "".join(format_exception(exc, value, tb, limit, chain))
        (sys.stderr if file is None else file).write(text)

    def format_exc(limit: object = None, chain: bool = True) -> str:
        return "".join(format_exception(sys.exc_info()[1], None, None, limit, chain))

    def print_exc(limit: object = None, file: Any = None, chain: bool = True) -> None:
        print_exception(sys.exc_info()[1], None, None, limit, file, chain)

    made: tuple[Callable[..., Any], ...] = (
        format_exc,
        format_exception,
        format_exception_only,
        print_exc,
        print_exception,
    )
    return {function.__name__: function for function in made}


_python_format = warnings.formatwarning
_format_only = traceback.format_exception_only
