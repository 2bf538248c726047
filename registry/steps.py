"""Recursion on an explicit stack: schemas may nest deeper than Python's own stack goes (contract G3, ruling 34).

A recursive function is written as a generator that yields the steps it needs and gets their results back::

    def depth(node) -> Step[int]:
        below = yield depth(node.child)
        return below + 1

    descend(depth(root))
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

__all__ = ["Step", "descend"]

T = TypeVar("T")

Step: TypeAlias = Generator["Step[Any]", Any, T]
"""A function that is under way: it yields other steps, is sent their results, and returns a `T`."""


def descend(step: Step[T]) -> T:
    """Runs `step` and every step that it yields, however deep, and returns its result.

    Raises:
        Exception: whatever a step raises ends the run; the steps above it cannot catch it.
    """
    stack: list[Step[Any]] = [step]
    result: Any = None
    while stack:
        try:
            below = stack[-1].send(result)
        except StopIteration as done:
            stack.pop()
            result = done.value
        else:
            stack.append(below)
            result = None
    return result
