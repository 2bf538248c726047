"""What to do about a failure, where that is known: the slips that programs make most often."""

from __future__ import annotations

import ast
import builtins
import difflib
import re
import sys
import types
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .absence import absence
from .intrinsics import INTRINSICS
from .namespaces import CalledObject, written
from .program import FILENAME
from .tracebacks import innermost, source_lines, spot_of

__all__ = ["World", "hint", "module_message"]

__builtins__ = INTRINSICS

_CUTOFF: Final = 0.75
_MOST_KEYS: Final = 12
_PENDING: Final = re.compile(
    r"'?\b(?:_?asyncio\.)?(?:futures\.|tasks\.)?(coroutine|PendingCall|_GatheringFuture|Future|Task)\b'?"
)
_ABOUT_TYPES: Final = re.compile(r"object|type|instance|operand|argument|arg \d|sequence|expected|iterable|item")
_NOT_AWAITABLE: Final = re.compile(r"object (\w+) can't be used in 'await'|'(\w+)' object can't be awaited")
_FOREIGN: Final = re.compile(r"\s*(?:const|let|var|function)\s|.*=>|\s*(?://|/\*)|\s*import\s.+\sfrom\s")
_ELSEWHERE: Final = {
    "false": "write `False`",
    "nil": "write `None`",
    "null": "write `None`",
    "true": "write `True`",
    "undefined": "write `None`",
    "console": "write `print(...)`",
    "JSON": "write `json.loads(...)` or `json.dumps(...)`, after `import json`",
    "Promise": "write `await asyncio.gather(...)`, after `import asyncio`",
}
_OF_KIND: Final[dict[str, str]] = {
    "FileNotFoundError": "the sandbox has no file system; use the tools for files",
    "EOFError": "input() has nothing to read; pass what the program needs in its source",
    "MemoryError": "the program has reached its memory limit; keep less in memory at once",
    "RecursionError": "a function calls itself without an end; check the case that ends it, or use a loop",
    "StopIteration": "`next(...)` found no more items; give it a default, as in `next(items, None)`",
    "SystemExit": "to end a program early, write `return`",
}
_UNKNOWN: Final = object()


@dataclass(frozen=True, slots=True)
class World:
    """What a program finds around it.

    Attributes:
        names: its global names.
        modules: the names of the modules that it may import.
    """

    names: Mapping[str, object] = field(default_factory=dict)
    modules: Collection[str] = ()

    def namespaces(self) -> Iterator[tuple[str, CalledObject]]:
        """The objects on which it finds what it may call, by name."""
        return ((name, one) for name, one in self.names.items() if isinstance(one, CalledObject))


def hint(error: BaseException, world: World) -> str | None:
    """Returns what to do about an exception, without a full stop; `None` when nothing is known."""
    text = _text(error)
    match error:
        case SyntaxError():
            return _of_source(error)
        case ModuleNotFoundError():
            return _of_module(error, world)
        case ImportError():
            return _of_import(error)
        case UnboundLocalError():
            return "a name that a function gives a value is its own there; write `global` or `nonlocal` before it"
        case NameError():
            return _of_name(error, world)
        case AttributeError():
            return _of_attribute(error, text, world)
        case TypeError():
            return _of_type(error, text)
        case KeyError() | IndexError():
            return _of_lookup(error)
        case RuntimeError() if "wasn't used with future" in text:
            return _await_first("Future")
        case RuntimeError() if "start new thread" in text:
            return "there are no threads; use asyncio.gather(...) or asyncio.TaskGroup"
        case MemoryError() if "too complex" in text:  # of the parser's stack, not of the program
            return "the source is nested too deep; write it in smaller expressions"
        case _:
            return next((_OF_KIND[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _OF_KIND), None)


def module_message(error: BaseException, world: World) -> str | None:
    """Returns what is told of a module that is not there, in place of Python's own words."""
    if not isinstance(error, ModuleNotFoundError) or not isinstance(error.name, str) or not world.modules:
        return None
    if _namespace(error.name, world):
        return f"No module named {error.name!r}"
    return absence(error.name, world.modules) if _text(error).startswith("No module named") else None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


# The source


def _of_source(error: SyntaxError) -> str | None:
    message, lines = error.msg or "", source_lines()
    number = error.lineno or 0
    line = lines[number - 1] if error.filename == FILENAME and 0 < number <= len(lines) else ""
    if "'await' outside" in message:
        if "lambda" in line:
            return "a lambda cannot await; use an `async def`, or a loop"
        return "write `async def` for the function around it, and `await` where that function is called"
    if line.lstrip().startswith("```"):
        return "leave out the ``` lines; the program is the plain source"
    if _FOREIGN.match(line):
        return "the program is Python"
    if isinstance(error, TabError):
        return "indent with spaces alone"
    if message.startswith("f-string"):
        return "inside the braces of an f-string use the other kind of quotes, or give the value a name first"
    return None


# Imports


def _namespace(name: str | None, world: World) -> CalledObject | None:
    return next((one for known, one in world.namespaces() if known == (name or "").partition(".")[0]), None)


def _of_module(error: ModuleNotFoundError, world: World) -> str | None:
    if _namespace(error.name, world):
        return f"`{error.name}` is there without an import; call its members as `await {error.name}.<name>(...)`"
    return None


def _of_import(error: ImportError) -> str | None:
    wanted = getattr(error, "name_from", None)
    module = sys.modules.get(error.name or "")
    if "did you mean" in _text(error) or not isinstance(wanted, str) or module is None:
        return None
    near = difflib.get_close_matches(wanted, [name for name in dir(module) if name[0] != "_"], n=2, cutoff=_CUTOFF)
    return f"did you mean {' or '.join(near)}?" if near else None


# Names


def _of_name(error: NameError, world: World) -> str | None:
    name = error.name
    if not isinstance(name, str) or not name:
        return None
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    for known, namespace in world.namespaces():
        if name in namespace:
            return f"`{name}` is a member of `{known}`; write `await {written(known, name)}(...)`"
    if name in world.modules:
        return f"write `import {name}` first"
    known_names = {*world.names, *dir(builtins)}
    trace = innermost(error)
    if trace is not None:
        known_names |= set(trace.tb_frame.f_locals)
    shown = [one for one in known_names if isinstance(one, str) and one[:1].isalpha()]
    near = difflib.get_close_matches(name, sorted(shown), n=1, cutoff=_CUTOFF)
    if near:
        return f"did you mean `{near[0]}`?"
    for known, namespace in world.namespaces():
        members = difflib.get_close_matches(name, list(namespace), n=1, cutoff=_CUTOFF)
        if members:
            return f"did you mean `await {written(known, members[0])}(...)`?"
    return None


# Attributes and types


def _of_attribute(error: AttributeError, text: str, world: World) -> str | None:
    name, target = error.name, error.obj
    if found := _PENDING.search(text):
        return _await_first(found[1])
    if not isinstance(name, str) or "did you mean" in text:
        return None
    if isinstance(target, CalledObject):
        if name in world.names and not name.startswith("_"):
            return f"`{name}` is a name of its own; write it without `{type(target).__name__}.`"
        return None
    if type(target) is dict:
        return f"it is a dict; write `[{name!r}]`" if name in target else f"it is a dict; {_keys(target)}"
    if type(target) is list:
        return f"it is {_of_length(target)}; loop over it, or take an element first, as in `[0]`"
    if target is None or isinstance(target, types.FunctionType):
        return None
    public = [one for one in object.__dir__(target) if isinstance(one, str) and one[:1] not in ("_", "")]
    near = difflib.get_close_matches(name, public, n=1, cutoff=_CUTOFF)
    return f"did you mean `.{near[0]}`?" if near else None


def _of_type(error: TypeError, text: str) -> str | None:
    if "was not awaited" in text:
        return None  # it has told
    if found := _NOT_AWAITABLE.search(text):
        return _not_awaitable(found[1] or found[2])
    found = _PENDING.search(text)
    if found is not None and _ABOUT_TYPES.search(text):
        return _await_first(found[1])
    if "is not JSON serializable" in text:
        return "turn it into JSON first, or write `json.dumps(value, default=str)`"
    if "unhashable type: 'list'" in text and "gather(" in _failing_line(error):
        return "asyncio.gather takes the calls one by one; write `asyncio.gather(*calls)`"
    if text.startswith("list indices must be") and "str" in text:
        return "it is a list; loop over it, or take an element first, as in `[0]`"
    if text.startswith("string indices must be"):
        subject = _subject(error)
        shown = f": {_short(subject)}" if type(subject) is str else ""
        return f"it is a string and no dict{shown}; a loop over a dict gives its keys, `.items()` its keys and values"
    return None


def _not_awaitable(kind: str) -> str:
    if kind in ("function", "method", "builtin_function_or_method", "type"):
        return "call it, as in `await name(...)`"
    if kind in ("list", "tuple", "set", "generator"):
        return "to wait for several calls write `await asyncio.gather(*calls)`"
    return "it is a value already; leave out `await`"


def _await_first(kind: str) -> str:
    if kind == "coroutine":
        return "write `await` before the call of an async function"
    if kind == "PendingCall":
        return "a call that was not awaited is not its result; write `await` before it"
    if kind == "Task":
        return "write `await` before the task, or take its `.result()` when it has ended"
    return "write `await` before `asyncio.gather(...)` or the future"


def _failing_line(error: BaseException) -> str:
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    lines = source_lines()
    return lines[line - 1] if 0 < line <= len(lines) else ""


# Lookups


def _of_lookup(error: KeyError | IndexError) -> str | None:
    subject = _subject(error)
    if isinstance(error, KeyError):
        wanted = error.args[0] if error.args else None
        if type(subject) is dict and type(wanted) in (str, int) and wanted not in subject:
            return _keys(subject)
    elif type(subject) in (list, tuple, str):
        return f"it is {_of_length(subject)}"
    return None


def _keys(found: dict[Any, Any]) -> str:
    if not found:
        return "it is empty"
    shown = [_short(key) for key in list(found)[:_MOST_KEYS] if type(key) in (str, int)]
    return f"its keys are {', '.join(shown)}{', ...' if len(found) > len(shown) else ''}"


def _of_length(found: Any) -> str:
    kind = {"str": "string"}.get(type(found).__name__, type(found).__name__)
    return f"a {kind} of {len(found)} {'character' if kind == 'string' else 'element'}{'' if len(found) == 1 else 's'}"


def _short(value: object) -> str:
    text = repr(value[:60]) if type(value) is str else repr(value)
    return f"{text[:40]}..." if len(text) > 43 else text


def _subject(error: BaseException) -> object:
    """Returns what the failing subscript was taken of, where looking at it runs nothing of the program."""
    trace = innermost(error)
    if trace is None:
        return _UNKNOWN
    spot = spot_of(trace)
    lines = source_lines()
    if spot.start < 0 or spot.end_line > len(lines):
        return _UNKNOWN
    for node in ast.walk(_parsed("".join(lines))):
        if isinstance(node, ast.Subscript) and (node.lineno, node.end_lineno) == (spot.line, spot.end_line):
            text = lines[node.lineno - 1].encode()
            if len(text[: node.col_offset].decode()) == spot.start and node.end_col_offset is not None:
                ending = lines[spot.end_line - 1].encode()[: node.end_col_offset].decode()
                if len(ending) == spot.end:
                    return _value(node.value, trace.tb_frame)
    return _UNKNOWN


def _parsed(source: str) -> ast.AST:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # told when the program was compiled
        return ast.parse(source)


def _value(node: ast.expr, frame: types.FrameType) -> object:
    match node:
        case ast.Name(id=name):
            return frame.f_locals.get(name, frame.f_globals.get(name, _UNKNOWN))
        case ast.Subscript(value=value, slice=ast.Constant(value=key)):
            found: Any = _value(value, frame)
            fits = (type(found) is dict and type(key) in (str, int)) or (
                type(found) in (list, tuple) and type(key) is int
            )
            try:
                return found[key] if fits else _UNKNOWN
            except LookupError:
                return _UNKNOWN
        case _:
            return _UNKNOWN
