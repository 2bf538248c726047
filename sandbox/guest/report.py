"""How a program's failure is told: its own frames, its own lines, and what to do where that is known."""

from __future__ import annotations

import io
import linecache
import re
import traceback
import types

from .program import FILENAME

__all__ = ["describe", "remember_source", "render"]

_MAX_FRAMES = 30
_MAX_QUOTED = 400
"""Characters of one source line that are quoted."""
_CARETS = re.compile(r"[ |^~]*\Z")
_HINTS = {
    "ModuleNotFoundError": "only the standard library is there, without files, network and processes",
    "FileNotFoundError": "the sandbox has no file system; use the tools for files",
    "EOFError": "input() has nothing to read; pass what the program needs in its source",
    "MemoryError": "the program has reached its memory limit; keep less in memory at once",
    "SystemExit": "to end a program early, write `return`",
}


def remember_source(source: str) -> None:
    """Makes the program's lines known, so that a traceback can show them."""
    # Lines end where the compiler ends them; `splitlines` knows six more ends.
    lines = io.StringIO(source, newline=None).readlines()
    linecache.cache[FILENAME] = (len(source), None, lines, FILENAME)


def describe(error: BaseException) -> str:
    """Returns the text of an exception: a traceback of the program's own frames only (ruling 38, contract F15)."""
    try:
        text = render(error)
    except Exception:
        text = _plain(error)
    hint = _hint(error)
    return f"{text}\nHint: {hint}." if hint else text


def render(error: BaseException) -> str:
    """Returns the traceback of an exception, of the program's own frames only, without a line end."""
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
    return _clip_source("".join(traceback.format_exception(error)).rstrip("\n"))


def _clip_source(text: str) -> str:
    """Shortens the source lines that a traceback quotes, where they are too long to be read."""
    entry = linecache.cache.get(FILENAME)
    lines = entry[2] if entry is not None and len(entry) == 4 else []
    long = {line.strip() for line in lines if len(line) > _MAX_QUOTED}
    if not long:
        return text
    return "\n".join([_clip_line(line, long) if len(line) > _MAX_QUOTED else line for line in text.split("\n")])


def _clip_line(line: str, long: set[str]) -> str:
    if _CARETS.match(line):
        return line[:_MAX_QUOTED].rstrip()
    if line.lstrip(" |") not in long:
        return line
    return f"{line[:_MAX_QUOTED]} [{len(line) - _MAX_QUOTED} more characters]"


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
    if isinstance(error, MemoryError) and "too complex" in str(error):  # of the parser's stack, not of the program
        return "the source is nested too deep; write it in smaller expressions"
    if isinstance(error, ModuleNotFoundError) and "in this sandbox" in str(error):  # the dialect's own, which has told
        return None
    return _HINTS.get(type(error).__name__)
