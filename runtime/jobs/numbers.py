"""Numbers that a host or a caller gives, checked."""

from __future__ import annotations

import math

__all__ = ["checked_count", "checked_ms"]


def checked_count(name: str, value: object) -> int:
    """Returns a positive integer.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{name} must be a positive integer, not {value!r}")
    return value


def checked_ms(name: str, value: object) -> float:
    """Returns a time in milliseconds.

    Raises:
        ValueError: it is not positive and finite.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if 0 < number < math.inf:
            return number
    raise ValueError(f"{name} must be a positive finite number of milliseconds, not {value!r}")
