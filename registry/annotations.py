"""A function's annotations, resolved: what its parameters take and what it returns."""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass
from typing import Any, Final

from . import values
from .definition import ToolRunContext
from .typed_dicts import rebuild_typed_dicts

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Parameter", "Signature", "read_signature"]

# The JSON aliases refer to themselves by text, which no schema generator can follow; any JSON is what they mean. The
# run's type is often imported for type checkers alone.
_KNOWN: Final[Mapping[str, Any]] = {
    "JsonValue": Any,
    "JsonObject": dict[str, Any],
    "ToolRunContext": ToolRunContext,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that callers fill.

    Attributes:
        name: its name in the function.
        annotation: its resolved annotation, with what `Annotated` adds.
        default: its default; `inspect.Parameter.empty` when it must be given.
        positional: whether it can only be passed by position.
    """

    name: str
    annotation: Any
    default: Any
    positional: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """A function as a tool sees it.

    Attributes:
        parameters: what callers fill, in order.
        run: the name of the parameter that receives the run, if there is one.
        returns: the resolved return annotation; `inspect.Signature.empty` without one.
    """

    parameters: tuple[Parameter, ...]
    run: str | None
    returns: Any


def read_signature(function: Callable[..., Any], owner: str, local_names: Mapping[str, Any]) -> Signature:
    """Reads the signature of a function.

    Args:
        function: the function.
        owner: who is told, for example `tool(search)`.
        local_names: names that its annotations may use beside the module's own.

    Raises:
        TypeError: a parameter has no annotation or one that cannot be resolved, or takes any number of arguments.
    """
    namespace = _namespace(function, local_names)
    hints = _hints(function, owner, namespace)
    parameters: list[Parameter] = []
    run: str | None = None
    for each in inspect.signature(function).parameters.values():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            stars = "*" if each.kind is each.VAR_POSITIONAL else "**"
            raise TypeError(f"{owner}: parameter {stars}{each.name} takes any arguments; name the ones there are")
        if each.name not in hints:
            raise TypeError(f"{owner}: parameter {each.name} has no annotation; its schema is made from it")
        annotation = hints[each.name]
        if annotation is ToolRunContext:
            if run is not None or each.kind is each.POSITIONAL_ONLY:
                raise TypeError(f"{owner}: one parameter, not positional-only, may receive the run; {each.name} cannot")
            run = each.name
        else:
            positional = each.kind is each.POSITIONAL_ONLY
            parameters.append(Parameter(each.name, annotation, each.default, positional))
    return Signature(tuple(parameters), run, hints.get("return", inspect.Signature.empty))


def _namespace(function: Callable[..., Any], local_names: Mapping[str, Any]) -> dict[str, Any]:
    innermost: Any = inspect.unwrap(function)
    namespace: dict[str, Any] = {**getattr(innermost, "__globals__", {}), **local_names}
    for name, meaning in _KNOWN.items():
        if namespace.get(name) is None or namespace[name] is getattr(values, name, None):
            namespace[name] = meaning
    return namespace


def _hints(function: Callable[..., Any], owner: str, namespace: dict[str, Any]) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    try:
        raw: dict[str, Any] = inspect.get_annotations(function)
    except NameError as error:
        raise TypeError(f"{owner}: an annotation cannot be resolved: {error}") from error
    for name, annotation in raw.items():
        one = type("Annotated", (), {"__annotations__": {name: annotation}})
        try:
            resolved = typing.get_type_hints(one, globalns=namespace, localns=namespace, include_extras=True)[name]
        except Exception as error:
            what = "the return annotation" if name == "return" else f"parameter {name}: its annotation"
            raise TypeError(f"{owner}: {what} {annotation!r} cannot be resolved: {error}") from error
        hints[name] = rebuild_typed_dicts(resolved, namespace)
    return hints
