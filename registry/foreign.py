"""What a value is that JSON does not have, and the way out (ruling 33)."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import inspect
import os
import uuid
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from .values import MISSING

__all__ = ["a_kind", "describe_foreign"]


def a_kind(kind: type) -> str:
    """Returns the name of a class with its article: `a set`, `an int`."""
    name = kind.__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


_WAYS_OUT: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    ((set, frozenset), "sorted(...)"),
    ((bytes, bytearray, memoryview), ".decode(), or base64.b64encode(...).decode()"),
    (decimal.Decimal, "str(...)"),
    ((datetime.datetime, datetime.date, datetime.time), ".isoformat()"),
    (datetime.timedelta, ".total_seconds()"),
    ((uuid.UUID, os.PathLike, complex), "str(...)"),
    (BaseException, "str(...)"),
    (enum.Enum, ".value"),
    (Mapping, "dict(...)"),
    (AbstractSet, "sorted(...)"),
)


def describe_foreign(value: Any) -> tuple[str, str]:
    """Returns what is wrong with a value, as the end of a sentence, and the way out."""
    kind = type(value)
    if value is MISSING:
        return "is MISSING, which says that there is no value", "leave the key out, or use None for JSON null"
    if inspect.isawaitable(value):
        return f"is {a_kind(kind)} that was not awaited", "write `await` before it"
    if isinstance(value, type) or inspect.isroutine(value):
        return f"is {a_kind(kind)}, not data", "call it, or leave it out"
    problem = f"is {a_kind(kind)}, which JSON does not have"
    for kinds, way_out in _WAYS_OUT:
        if isinstance(value, kinds):
            return problem, f"use {way_out}"
    if dataclasses.is_dataclass(value):
        return problem, "use dataclasses.asdict(...)"
    for method, way_out in (("model_dump", '.model_dump(mode="json")'), ("tolist", ".tolist()")):
        if callable(getattr(kind, method, None)):
            return problem, f"use {way_out}"
    if hasattr(kind, "__iter__"):
        return problem, "use list(...)"
    return problem, "turn it into a dict, a list, text or a number, for example with str(...)"
