"""Depth-first walks that read like recursion and cannot overflow (ruling 34).

A step is a generator: it yields the step that it waits for, is sent that step's result, and returns its own. Python's
stack stays flat however deep the walk goes.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

__all__ = ["MAX_SCHEMA_NODES", "Step", "descend", "is_array", "is_record"]

ResultT = TypeVar("ResultT")

Step: TypeAlias = Generator[Any, ResultT, ResultT]
"""One step of a walk whose results are of one type."""

MAX_SCHEMA_NODES = 100_000
"""How many nodes a schema may have in all. One node object may stand in many places, so a small schema that uses a
node twice at each level would otherwise never come to an end."""


def descend(first: Step[ResultT]) -> ResultT:
    """Runs a walk to its end and returns the result of its first step; what a step raises comes out."""
    waiting = [first]
    result: Any = None
    while waiting:
        try:
            step = waiting[-1].send(result)
        except StopIteration as finished:
            waiting.pop()
            result = finished.value
        else:
            waiting.append(step)
            result = None
    return result


def is_record(value: object) -> bool:
    """Returns whether a value is a dict with text for keys: what a schema node or a property map must be (B14, B24)."""
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def is_array(value: object) -> bool:
    """Returns whether a value is what JSON writes as an array (ruling 33)."""
    return isinstance(value, (list, tuple))
