"""Checks JSON against the types of requests that a provider's SDK publishes, strictly in both directions.

pydantic reads these types as well, and lets pass what they do not name; here a key that they do not name is a mistake,
which is what a typing error in an adapter would make.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict


def problems(data: object, wanted: Any, where: str = "") -> list[str]:
    """Returns what is wrong with JSON data, each with where it is; the nearest of the alternatives is told of."""
    origin = get_origin(wanted)
    if origin in (Annotated, Required, NotRequired):
        return problems(data, get_args(wanted)[0], where)
    if origin in (Union, types.UnionType):
        tried = [problems(data, one, where) for one in get_args(wanted)]
        return min(tried, key=lambda found: (len(found), -max(map(len, found), default=0)))
    if origin is Literal:
        return [] if data in get_args(wanted) else [f"{where}: {data!r} is none of {get_args(wanted)}"]
    if is_typeddict(wanted):
        return _object_problems(data, wanted, where)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(data, dict):
            return [f"{where}: {data!r} is no object"]
        inner = get_args(wanted)[1]
        return [one for key, value in data.items() for one in problems(value, inner, f"{where}.{key}")]
    if wanted_array(wanted, origin):
        return _array_problems(data, wanted, where)
    return _plain_problems(data, wanted, where)


def wanted_array(wanted: Any, origin: Any) -> bool:
    # Anthropic's SDK has a protocol of its own for arrays that are no strings.
    of_its_own = getattr(origin or wanted, "__name__", "") == "SequenceNotStr"
    return of_its_own or (origin is not None and issubclass(origin, (Iterable, Sequence)))


def _object_problems(data: object, wanted: Any, where: str) -> list[str]:
    if not isinstance(data, dict):
        return [f"{where}: {data!r} is no {wanted.__name__}"]
    hints = get_type_hints(wanted, include_extras=True)
    found = [f"{where}.{key}: {wanted.__name__} has no such key" for key in data if key not in hints]
    # Read from the hints: where annotations are text, the class itself does not know what it requires.
    needed = {key for key, hint in hints.items() if get_origin(hint) is Required}
    found += [f"{where}.{key}: {wanted.__name__} needs it" for key in sorted(needed - data.keys())]
    for key in hints.keys() & data.keys():
        found += problems(data[key], hints[key], f"{where}.{key}")
    return found


def _array_problems(data: object, wanted: Any, where: str) -> list[str]:
    if not isinstance(data, list):
        return [f"{where}: {data!r} is no array"]
    (inner,) = get_args(wanted) or (object,)
    return [one for place, value in enumerate(data) for one in problems(value, inner, f"{where}[{place}]")]


def _plain_problems(data: object, wanted: Any, where: str) -> list[str]:
    if wanted in (object, Any):
        return []
    if wanted in (None, type(None)):
        return [] if data is None else [f"{where}: {data!r} is not null"]
    if wanted is float:
        fits = isinstance(data, int | float) and not isinstance(data, bool)
    elif wanted is int:
        fits = isinstance(data, int) and not isinstance(data, bool)
    elif get_origin(wanted) is IO:
        fits = False  # an open file, which is no JSON
    elif isinstance(wanted, type):
        fits = isinstance(data, wanted)
    else:
        raise TypeError(f"{where}: a type that this does not know: {wanted!r}")
    return [] if fits else [f"{where}: {data!r} is no {getattr(wanted, '__name__', wanted)}"]


def unknown_keys(model: object, where: str = "") -> list[str]:
    """Returns the keys of a response that the SDK's models do not know; they keep them without a word."""
    if isinstance(model, BaseModel):
        found = [f"{where}.{key}" for key in model.model_extra or {}]
        return found + [
            one for name in type(model).model_fields for one in unknown_keys(getattr(model, name), f"{where}.{name}")
        ]
    if isinstance(model, list):
        return [one for place, value in enumerate(model) for one in unknown_keys(value, f"{where}[{place}]")]
    return []
