"""`typing.TypedDict` for pydantic on Python 3.11, which takes only the one of `typing_extensions` there.

The older class does not say which of its keys are required when annotations are text; the rebuilt one does.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
import typing
from typing import Any

import typing_extensions

__all__ = ["rebuild_typed_dicts"]

_PRESENCE = (typing.Required, typing.NotRequired, typing_extensions.Required, typing_extensions.NotRequired)


def rebuild_typed_dicts(annotation: Any, namespace: dict[str, Any]) -> Any:
    """Returns an annotation whose `typing.TypedDict` classes are replaced by equal ones that pydantic takes.

    Only what the annotation itself names is replaced, not the fields of models and dataclasses. A TypedDict that
    refers to itself is left as it is, for pydantic to refuse with its own advice.

    Args:
        annotation: a resolved annotation.
        namespace: where the names in a TypedDict's own annotations are looked up beside its module.
    """
    if sys.version_info >= (3, 12):
        return annotation
    return _rebuilt(annotation, namespace, ())


def _rebuilt(annotation: Any, namespace: dict[str, Any], outer: tuple[Any, ...]) -> Any:
    if annotation in outer:
        return annotation
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _rebuilt_class(annotation, namespace, (*outer, annotation))
    arguments = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if not arguments or origin is typing.Literal:
        return annotation
    if origin is typing.Annotated:
        inner = _rebuilt(arguments[0], namespace, outer)
        return annotation if inner is arguments[0] else typing.Annotated[(inner, *arguments[1:])]
    rebuilt = tuple(_rebuilt(each, namespace, outer) for each in arguments)
    if all(new is old for new, old in zip(rebuilt, arguments, strict=True)):
        return annotation
    if origin in (typing.Union, types.UnionType):
        return functools.reduce(operator.or_, rebuilt)
    if isinstance(annotation, types.GenericAlias):
        return types.GenericAlias(origin, rebuilt)
    return annotation.copy_with(rebuilt)


def _rebuilt_class(typed_dict: Any, namespace: dict[str, Any], outer: tuple[Any, ...]) -> Any:
    fields: dict[str, Any] = {}
    for name, hint in typing.get_type_hints(typed_dict, localns=namespace, include_extras=True).items():
        presence, inner = typing.get_origin(hint), hint
        if presence in _PRESENCE:
            (inner,) = typing.get_args(hint)
        else:
            presence = typing.Required if name in typed_dict.__required_keys__ else typing.NotRequired
        fields[name] = presence[_rebuilt(inner, namespace, outer)]
    rebuilt: Any = typing_extensions.TypedDict(typed_dict.__name__, fields)  # pyright: ignore[reportArgumentType]
    rebuilt.__doc__ = typed_dict.__doc__
    config = getattr(typed_dict, "__pydantic_config__", None)
    if config is not None:
        rebuilt.__pydantic_config__ = config
    return rebuilt
