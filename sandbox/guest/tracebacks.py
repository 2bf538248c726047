"""The text of an exception: the program's own frames with its own lines, the same under every Python.

It reads as Python's own traceback does. It is written here because Python's differs between versions, shows the
frames of what runs the program, and names a file where a program has none.
"""

from __future__ import annotations

import ast
import io
import linecache
import re
import types
import warnings
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

from .intrinsics import INTRINSICS
from .program import FILENAME

__all__ = [
    "MadeCall",
    "Spot",
    "format_error",
    "innermost",
    "made_by",
    "parsed",
    "quoted_line",
    "remember_call",
    "remember_source",
    "source_lines",
    "spot_of",
    "suspended_at",
]

__builtins__ = INTRINSICS

_MAX_SPOTS: Final = 16
"""Frames that are shown of one exception; of a deep recursion both ends."""
_REPEATS: Final = 3
_MAX_QUOTED: Final = 400
"""Characters of one source line that are quoted."""
_MAX_CHAIN: Final = 8
"""Exceptions that are shown of one chain of causes."""
_MAX_GROUP: Final = 15
_MAX_NESTED: Final = 6
_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>")
_STOPPED: Final = ("coroutine raised StopIteration", "generator raised StopIteration")
_PLACE: Final = re.compile(r" \((?:unknown location|/[^()]*)\)")
_LEADS: Final = re.compile(r"(?:return\s+|\w+\s*=\s*)?(?:await\s+)?\Z")
_CAUSE: Final = "The above exception was the direct cause of the following exception:"
_CONTEXT: Final = "During handling of the above exception, another exception occurred:"
_CALL: Final = "_call"
_LINES: Final[list[str]] = []
"""The lines of the one program that an interpreter runs; what the program does to `linecache` does not change them."""
_SHIFT: Final = 1
"""The parenthesis that is put before an expression, so that it may go over several lines."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the program, in characters of its lines.

    Attributes:
        line: counted from 1.
        name: the function's name.
        end_line: the line where the failing expression ends.
        start: its first column, or -1 when that is not known.
        end: the column after its last.
    """

    line: int
    name: str
    end_line: int = 0
    start: int = -1
    end: int = -1


@dataclass(frozen=True, slots=True)
class MadeCall:
    """The call of a member that an exception tells of.

    Attributes:
        namespace: the global name that it was made on.
        title: how the program writes the member.
        arguments: the arguments as JSON.
        line: the program's line, or 0.
    """

    namespace: str
    title: str
    arguments: str
    line: int


# The source


def remember_source(source: str) -> None:
    """Makes the program's lines known, so that a traceback can show them."""
    # Lines end where the compiler ends them; `splitlines` knows six more ends.
    lines = io.StringIO(source, newline=None).readlines()
    _LINES[:] = lines
    linecache.cache[FILENAME] = (len(source), None, lines, FILENAME)


def source_lines() -> list[str]:
    """Returns the program's lines, with their ends."""
    return _LINES


# What an exception knows of the program


def remember_call(error: BaseException, made: MadeCall) -> None:
    """Notes which call an exception tells of."""
    error.__dict__[_CALL] = made


def made_by(error: BaseException) -> MadeCall | None:
    """Returns the call that an exception tells of."""
    made = error.__dict__.get(_CALL)
    return made if type(made) is MadeCall else None


def innermost(error: BaseException) -> types.TracebackType | None:
    """Returns the last part of the traceback when the program's own code raised, and not something that it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace if trace is not None and trace.tb_frame.f_code.co_filename == FILENAME else None


def suspended_at(coroutine: Coroutine[Any, Any, object]) -> types.TracebackType | None:
    """Returns where a coroutine waits, as a traceback of the program's own frames."""
    frames: list[types.FrameType] = []
    waiting: object = coroutine
    while (frame := getattr(waiting, "cr_frame", None)) is not None:
        frames.append(frame)
        waiting = getattr(waiting, "cr_await", None)
    trace: types.TracebackType | None = None
    for frame in reversed(frames):
        if frame.f_code.co_filename == FILENAME:
            trace = types.TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
    return trace


def spot_of(trace: types.TracebackType) -> Spot:
    """Returns where in the program a part of a traceback is."""
    code, line = trace.tb_frame.f_code, trace.tb_lineno
    name = code.co_name
    position = None
    for index, found in enumerate(code.co_positions()):
        if index == trace.tb_lasti // 2:
            position = found
            break
    if position is None or None in position or position[0] != line:
        return Spot(line, name)
    _line, end_line, start, end = position
    return Spot(line, name, end_line or line, _characters(line, start), _characters(end_line or line, end))


def _characters(line: int, column: int | None) -> int:
    """Returns a column in characters, of one in bytes."""
    lines = source_lines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    if column is None:
        return -1
    return column if text.isascii() else len(text.encode()[:column].decode("utf-8", "replace"))


def _spots(error: BaseException) -> list[Spot | str]:
    """Returns the program's own frames, outermost first; a text stands for those that are left out."""
    own: list[types.TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            own.append(trace)
        trace = trace.tb_next
    shown: list[types.TracebackType | str] = []
    run = 0
    for index, part in enumerate(own):
        last = own[index - 1] if index else None
        same = last is not None and last.tb_lineno == part.tb_lineno and last.tb_frame.f_code is part.tb_frame.f_code
        run = run + 1 if same else 1
        if run <= _REPEATS:
            shown.append(part)
        elif run == _REPEATS + 1:
            shown.append("")
        if run > _REPEATS:
            more = run - _REPEATS
            shown[-1] = f"  [Previous line repeated {more} more time{'s' if more > 1 else ''}]"
    if len(shown) > _MAX_SPOTS:
        half = _MAX_SPOTS // 2
        left = len(shown) - 2 * half
        shown[half:-half] = [f"  [{left} more calls]"]
    return _without_comprehensions([one if isinstance(one, str) else spot_of(one) for one in shown])


def _without_comprehensions(spots: list[Spot | str]) -> list[Spot | str]:
    """Puts comprehensions into the function around them, where they are since Python 3.12."""
    kept: list[Spot | str] = []
    for spot in spots:
        if isinstance(spot, Spot) and spot.name in _COMPREHENSIONS and kept and isinstance(outer := kept[-1], Spot):
            kept[-1] = Spot(spot.line, outer.name, spot.end_line, spot.start, spot.end)
        else:
            kept.append(spot)
    return kept


# Text


def format_error(error: BaseException, depth: int = 0) -> list[str]:
    """Returns the lines of an exception, its causes first."""
    chain: list[tuple[BaseException, str]] = []
    seen: set[int] = set()
    link, part = "", _stopped(error)
    while part is not None and id(part) not in seen:
        if len(chain) == _MAX_CHAIN:
            break
        seen.add(id(part))
        chain.append((part, link))
        cause, link = part.__cause__, _CAUSE
        if cause is None and not part.__suppress_context__:
            cause, link = part.__context__, _CONTEXT
        if isinstance(part, TimeoutError) and type(cause).__name__ == "CancelledError":
            cause = None  # how a timeout is made: of no use to whoever set it
        part = None if cause is None else _stopped(cause)
    lines: list[str] = []
    for shown, after in reversed(chain):
        lines += _format_one(shown, depth)
        if after:
            lines += ["", after, ""]
    return lines


def _stopped(error: BaseException) -> BaseException:
    """Returns the StopIteration behind the RuntimeError that Python makes of it, with the frames of both."""
    cause = error.__cause__
    if type(error) is RuntimeError and error.args[:1] and error.args[0] in _STOPPED and type(cause) is StopIteration:
        told = StopIteration(*cause.args)
        told.__traceback__ = _joined(error.__traceback__, cause.__traceback__)
        told.__cause__, told.__context__ = cause.__cause__, cause.__context__
        told.__suppress_context__ = cause.__suppress_context__
        return told
    return error


def _joined(first: types.TracebackType | None, then: types.TracebackType | None) -> types.TracebackType | None:
    parts: list[types.TracebackType] = []
    while first is not None:
        parts.append(first)
        first = first.tb_next
    for part in reversed(parts):
        then = types.TracebackType(then, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return then


def _format_one(error: BaseException, depth: int) -> list[str]:
    spots = _spots(error)
    made = made_by(error)
    if made is not None and made.line and not spots:
        spots = [Spot(made.line, "<program>")]  # a task of its own has no frame of the program's
        if _is_the_only_call(made):
            made = None
    elif made is not None and _is_at(spots, made.line) and _is_the_only_call(made):
        made = None
    lines: list[str] = []
    for spot in spots:
        lines += [spot] if isinstance(spot, str) else _frame(spot)
    told = _told(error)
    if made is not None:
        told.append(f"The call was {made.title}({_clip(made.arguments, 100) or '...'}) on line {made.line}.")
    if isinstance(error, BaseExceptionGroup):
        return _format_group(error, lines, told, depth)
    return [*(["Traceback (most recent call last):"] if lines else []), *lines, *told]


def _is_at(spots: list[Spot | str], line: int) -> bool:
    last = spots[-1] if spots else None
    return isinstance(last, Spot) and last.line == line


def _is_the_only_call(made: MadeCall) -> bool:
    """Tells whether the line of a call shows by itself which call it is."""
    line = _line(made.line)
    return made.title in line and len(re.findall(rf"\b{made.namespace}\s*[.\[]", line)) == 1 and " for " not in line


def _format_group(error: BaseExceptionGroup, frames: list[str], told: list[str], depth: int) -> list[str]:
    first, *rest = ["Exception Group Traceback (most recent call last):", *frames, *told] if frames else told
    lines = [f"  + {first}", *(f"  | {line}" for line in rest)]
    if depth >= _MAX_NESTED:
        return [*lines, "  | ... (nested deeper)"]
    for index, one in enumerate(error.exceptions[:_MAX_GROUP]):
        lines.append(f"  {'+-' if index == 0 else '  '}+---------------- {index + 1} ----------------")
        lines += [f"    | {line}" for line in format_error(one, depth + 1)]
    more = len(error.exceptions) - _MAX_GROUP
    if more > 0:
        lines += ["    +---------------- ... ----------------", f"    | and {more} more exceptions"]
    return [*lines, "    +------------------------------------"]


def quoted_line(number: int) -> list[str]:
    """Returns a line of the program with its number, or nothing where there is none."""
    text = _line(number).strip()
    return [f'  File "{FILENAME}", line {number}', f"    {_clip(text, _MAX_QUOTED)}"] if text else []


def _frame(spot: Spot) -> list[str]:
    return [f'  File "{FILENAME}", line {spot.line}, in {spot.name}', *_quoted(spot)]


def _line(number: int) -> str:
    lines = source_lines()
    return lines[number - 1].rstrip("\n") if 0 < number <= len(lines) else ""


def _quoted(spot: Spot) -> list[str]:
    """Returns the line of a place, and carets under the expression where they tell more than the line does."""
    text = _line(spot.line)
    code = text.strip()
    if not code:
        return []
    quoted = [f"    {_clip(code, _MAX_QUOTED)}"]
    if spot.start < 0:
        return quoted
    several = spot.end_line != spot.line
    end = len(text.rstrip()) if several else spot.end
    indent = len(text) - len(text.lstrip())
    before, piece = text[indent : spot.start], text[spot.start : end]
    if not piece:
        return quoted
    tree = None if several else parsed(f"({piece})")
    whole = end >= len(text.rstrip()) and bool(_LEADS.match(before))
    if whole and (
        isinstance(tree, (ast.Call, ast.Await)) or not (before or isinstance(tree, (ast.Subscript, ast.BinOp)))
    ):
        return quoted  # all of the line
    marks = _marks(tree, piece)
    under = (" " * (spot.start - indent) + marks)[:_MAX_QUOTED]
    return [*quoted, f"    {under}"] if under.strip() else quoted


def parsed(source: str) -> ast.expr | None:
    """Returns the tree of an expression; `None` when the text is none by itself."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # told when the program was compiled
            return ast.parse(source, mode="eval").body
    except Exception:  # it is none, or the program has changed what this is made of
        return None


def _marks(tree: ast.expr | None, piece: str) -> str:
    """Returns marks under an expression: `^` under what was done, `~` under what it was done to."""
    first, last = 0, len(piece)
    if piece.isascii():
        match tree:
            case ast.Subscript(value=value):
                first = _end(value)
            case ast.Call(func=called):
                first = _end(called)
            case ast.BinOp(left=left, right=right):
                between = piece[_end(left) : right.col_offset - _SHIFT]
                operator = re.search(r"[^\s()]+", between)
                if operator is not None:
                    first, last = (_end(left) + place for place in operator.span())
    return "~" * first + "^" * (last - first) + "~" * (len(piece) - last)


def _end(node: ast.expr) -> int:
    return (node.end_col_offset or 0) - _SHIFT


def _told(error: BaseException) -> list[str]:
    """Returns the lines that say what an exception is."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return [*_place_in_source(error), f"{_name(error)}: {error.msg}", *_notes(error)]
    try:
        text = str(error)
    except BaseException:  # whatever it is, it is not what the program failed with
        text = "<exception str() failed>"
    if isinstance(error, ImportError):
        text = _PLACE.sub("", text)
    return [*(f"{_name(error)}: {text}" if text else _name(error)).split("\n"), *_notes(error)]


def _name(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__.rpartition("<locals>.")[2]
    return name if kind.__module__ in ("__main__", "builtins", None) else f"{kind.__module__}.{name}"


def _notes(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", None)
    return [line for note in notes if isinstance(note, str) for line in note.split("\n")] if type(notes) is list else []


def _place_in_source(error: SyntaxError) -> list[str]:
    """Returns where a source is not a program, with the line and a mark."""
    number = error.lineno or 0
    lines = [f'  File "{error.filename or "<string>"}", line {number}']
    text = error.text if isinstance(error.text, str) else ""
    if not text and error.filename == FILENAME:
        text = _line(number)
    text = text.rstrip("\n")
    code = text.strip(" \t\n\f")
    if not code:
        return lines
    lines.append(f"    {_clip(code, _MAX_QUOTED)}")
    if not error.offset or error.offset < 1:
        return lines
    start = error.offset - 1 - (len(text) - len(text.lstrip(" \t\n\f")))
    end = start + 1
    if error.end_offset and error.end_offset > error.offset and (error.end_lineno or number) == number:
        end = start + error.end_offset - error.offset
    end = min(end, max(len(code), start + 1))
    if 0 <= start < _MAX_QUOTED:
        lines.append(f"    {' ' * start}{'^' * (min(end, _MAX_QUOTED) - start)}")
    return lines


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [{len(text) - most} more characters]"
