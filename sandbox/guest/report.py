"""How a program's failure is told: its own frames, its own lines, and what to do where that is known."""

from __future__ import annotations

import linecache
import traceback
import types

from .program import FILENAME

__all__ = ["describe", "remember_source"]

_MAX_FRAMES = 30
_HINTS = {
    "ModuleNotFoundError": "only the standard library is there, without files, network and processes",
    "FileNotFoundError": "the sandbox has no file system; use the tools for files",
    "EOFError": "input() has nothing to read; pass what the program needs in its source",
    "MemoryError": "the program has reached its memory limit; keep less in memory at once",
    "SystemExit": "to end a program early, write `return`",
}


def remember_source(source: str) -> None:
    """Makes the program's lines known, so that a traceback can show them."""
    linecache.cache[FILENAME] = (len(source), None, source.splitlines(keepends=True), FILENAME)


def describe(error: BaseException) -> str:
    """Returns the text of an exception: a traceback of the program's own frames only (ruling 38, contract F15)."""
    try:
        text = _render(error)
    except Exception:
        text = _plain(error)
    hint = _hint(error)
    return f"{text}\nHint: {hint}." if hint else text


def _render(error: BaseException) -> str:
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        part = pending.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        part.__traceback__ = _own_frames(part.__traceback__)
        pending.extend((part.__cause__, part.__context__))
        if isinstance(part, BaseExceptionGroup):
            pending.extend(part.exceptions)
    return "".join(traceback.format_exception(error)).rstrip("\n")


def _own_frames(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Returns the traceback with the program's own frames alone; of a deep recursion both ends."""
    own: list[types.TracebackType] = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            own.append(trace)
        trace = trace.tb_next
    if len(own) > _MAX_FRAMES:
        own = own[: _MAX_FRAMES // 2] + own[-_MAX_FRAMES // 2 :]
    chain: types.TracebackType | None = None
    for part in reversed(own):
        chain = types.TracebackType(chain, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return chain


def _plain(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return "program threw an unrenderable value"


def _hint(error: BaseException) -> str | None:
    if isinstance(error, TypeError) and "'coroutine'" in str(error):
        return "write `await` before the call of an async function"
    return _HINTS.get(type(error).__name__)
