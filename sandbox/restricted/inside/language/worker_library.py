"""The worker's standard library, changed where it would write to any object, or tell where files lie.

The changes are for the whole process: they belong into the worker and its template, and nowhere else.
"""

from __future__ import annotations

import asyncio
import copy
import warnings
from asyncio import coroutines, format_helpers, futures
from collections.abc import Callable
from typing import Any

from ....guest.program import FILENAME

__all__ = ["prepare_library"]

_COPIED = frozenset(
    {
        "array",
        "builtins",
        "calendar",
        "collections",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "ipaddress",
        "itertools",
        "json.decoder",
        "json.encoder",
        "operator",
        "random",
        "re",
        "statistics",
        "string",
        "types",
        "typing",
        "urllib.parse",
        "uuid",
        "zoneinfo",
    }
)
"""The modules whose objects hold nothing but data."""


def prepare_library(owns: Callable[[type], bool]) -> None:
    """Changes what must be changed.

    Args:
        owns: tells whether a class is the program's own.
    """
    kept = copy._reconstruct  # type: ignore[attr-defined]
    copy._reconstruct = _checked_reconstruct(getattr(kept, "original", kept), owns)  # type: ignore[attr-defined]
    # Also of a class of the program's own the loop would believe it: it would be given the loop's callbacks.
    asyncio.isfuture = futures.isfuture = _is_future  # type: ignore[assignment]
    coroutines._format_coroutine = _coroutine_text  # type: ignore[attr-defined]
    format_helpers._get_function_source = _no_source  # type: ignore[attr-defined]
    shown = warnings.formatwarning
    warnings.formatwarning = _make_formatwarning(getattr(shown, "original", shown))  # type: ignore[assignment]


def _is_future(value: object) -> bool:
    return issubclass(type(value), asyncio.Future)


def _checked_reconstruct(original: Callable[..., Any], owns: Callable[[type], bool]) -> Callable[..., Any]:
    """Copying walks into an object, shows what it meets in the memo, and sets attributes of the copy.

    So only the program's objects and data are copied. An entry in an instance's `__dict__` may say what to make it
    with, and name any object and any attributes: what comes back must be of the same type as what is copied.
    """

    def reconstruct(target: Any, memo: Any, func: Any, args: Any, state: Any = None, *rest: Any, **options: Any) -> Any:
        kind = type(target)
        if not (owns(kind) or issubclass(kind, BaseException) or kind.__module__ in _COPIED):
            raise copy.Error(f"an object of type {kind.__name__} cannot be copied in this sandbox")

        def make(*given: Any) -> Any:
            made = func(*given)
            if state is not None and type(made) is not kind:
                raise copy.Error(f"an object of type {kind.__name__} cannot be copied in this sandbox")
            return made

        return original(target, memo, make, args, state, *rest, **options)

    reconstruct.original = original  # type: ignore[attr-defined]
    return reconstruct


def _coroutine_text(coroutine: Any) -> str:
    return f"<{getattr(coroutine, '__qualname__', type(coroutine).__name__)}()>"


def _no_source(_function: object) -> None:
    """A callback's place in a file is not told."""


def _make_formatwarning(original: Callable[..., str]) -> Callable[..., str]:
    def formatwarning(message: Any, category: Any, filename: str, lineno: int, line: str | None = None) -> str:
        if filename == FILENAME:
            return original(message, category, filename, lineno, line)
        return f"{category.__name__}: {message}\n"

    formatwarning.original = original  # type: ignore[attr-defined]
    return formatwarning
