"""A tool's body: what may be one, and how it is called (contract B58)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from .definition import ToolRunContext

__all__ = ["ToolBody", "adapt_body", "is_async"]

ToolBody: TypeAlias = Callable[[Any, ToolRunContext], Awaitable[Any]]


def is_async(body: object) -> bool:
    """Returns whether calling `body` is known to give an awaitable.

    So it is for an `async def` function or method, an object with such a `__call__`, or a partial application of one.
    """
    while isinstance(body, functools.partial):
        body = body.func
    call = getattr(type(body), "__call__", None)  # noqa: B004  # the method itself is looked at, not whether it is there
    return inspect.iscoroutinefunction(body) or inspect.iscoroutinefunction(call)


def adapt_body(body: Callable[..., Awaitable[Any]], owner: str) -> ToolBody:
    """Returns a body of exactly two parameters, `(arguments, run)`, from one that takes one or two.

    The run is given to a second positional parameter that has no default, or that is called `run`.

    Args:
        body: what the author wrote.
        owner: who is told, for example `define_tool(search)`.

    Raises:
        TypeError: it is not asynchronous, or takes other parameters.
    """
    if inspect.isasyncgenfunction(body):
        raise TypeError(f"{owner}: execute yields values; a tool returns one value, so collect them in a list")
    if not callable(body) or not is_async(body):
        raise TypeError(f"{owner}: execute must be asynchronous; write `async def` (and `await` what blocks)")
    if _takes_run(body, owner):
        return cast("ToolBody", body)
    one = cast("Callable[[Any], Awaitable[Any]]", body)
    return lambda arguments, _run: one(arguments)


def _takes_run(body: Callable[..., Any], owner: str) -> bool:
    try:
        parameters = inspect.signature(body).parameters.values()
    except (TypeError, ValueError):
        return True  # a callable that does not say what it takes is given both
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return True
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    if not positional or len(needed) > 2 or any(each.kind is each.KEYWORD_ONLY for each in needed):
        raise TypeError(f"{owner}: execute must take (arguments, run) or (arguments)")
    return len(positional) > 1 and (positional[1].default is inspect.Parameter.empty or positional[1].name == "run")
