"""What a schema is made of: records and arrays, and how many of them there may be."""

from __future__ import annotations

__all__ = ["MAX_SCHEMA_NODES", "is_array", "is_record"]

MAX_SCHEMA_NODES = 100_000
"""How many nodes a schema may have in all. One node object may stand in many places, so a small schema that uses a
node twice at each level would otherwise never come to an end."""


def is_record(value: object) -> bool:
    """Returns whether a value is a dict with text for keys: what a schema node or a property map must be (B14, B24)."""
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def is_array(value: object) -> bool:
    """Returns whether a value is what JSON writes as an array (ruling 33)."""
    return isinstance(value, (list, tuple))
