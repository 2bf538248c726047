"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["iso"]


def iso(time_us: int) -> str:
    """Returns a time, given in microseconds since 1970 UTC, as ISO 8601 text in UTC.

    A number that is no time between the years 1 and 9999, as only a changed record has it, is given as it is.
    """
    seconds, micros = divmod(time_us, 1_000_000)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micros:06d}Z"
    except (ValueError, OverflowError, OSError):
        return f"{time_us} us"
