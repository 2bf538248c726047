"""One span as plain data, and how its ids and attributes are made; needs no OpenTelemetry."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ERROR_TYPES", "AttributeValue", "SpanEvent", "SpanRecord", "attributes", "span_id", "span_text", "trace_id"]

AttributeValue: TypeAlias = str | int | float | bool

_MOST_CHARS: Final = 64 * 1024
"""The longest text of an attribute, in characters."""

ERROR_TYPES: Final = {"denied": "denied", "cancelled": "cancelled", "failed": "_OTHER"}
"""The class of an error whose code is not recorded, by the call's outcome; `_OTHER` is the conventions' own."""


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened at one instant of a span: its name, when in ns since 1970 UTC, and its attributes."""

    name: str
    time_ns: int
    attributes: Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    """One span.

    Attributes:
        trace_id: 128 bits.
        span_id: 64 bits.
        parent_id: the span that it is part of; `None` for the outermost.
        name: as the conventions have it, for example `execute_tool search`.
        start_ns: when it began, in ns since 1970 UTC.
        end_ns: when it ended.
        attributes: what is told of it.
        events: what happened meanwhile.
        failed: whether its status is an error.
        why: the description of that status.
    """

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, AttributeValue]
    events: tuple[SpanEvent, ...] = ()
    failed: bool = False
    why: str | None = None


def attributes(told: Mapping[str, AttributeValue | None]) -> dict[str, AttributeValue]:
    """Returns the attributes that are told, with texts cut; what is `None` is not."""
    kept = {span_text(key): value for key, value in told.items() if value is not None}
    return {key: span_text(value) if isinstance(value, str) else value for key, value in kept.items()}


def span_text(text: str) -> str:
    """Cuts a text, and makes one of it that UTF-8 can carry."""
    kept = text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}… ({len(text):,} characters)"
    return kept.encode("utf-8", "backslashreplace").decode()


def trace_id(session: str, what: str) -> int:
    """Returns the id of a trace, made of a session's id and of what the record says of it."""
    return int.from_bytes(sha256(f"ptc-trace 1\n{session}\n{what}".encode()).digest()[:16]) or 1


def span_id(session: str, what: str) -> int:
    """Returns the id of a span, likewise."""
    return int.from_bytes(sha256(f"ptc-span 1\n{session}\n{what}".encode()).digest()[:8]) or 1
