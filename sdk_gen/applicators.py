"""What a schema node says through other schemas, where reading the node alone would mislead."""

from __future__ import annotations

from collections.abc import Mapping

from .keywords import lookup

__all__ = ["has_inner_resources", "leaves_undeclared"]

_UNREAD = frozenset({"if", "dependentSchemas", "$dynamicRef", "patternProperties", "additionalProperties"})
"""Keywords that let undeclared keys pass `unevaluatedProperties`."""


def leaves_undeclared(root: object, node: Mapping[str, object]) -> bool:
    """Whether `unevaluatedProperties: false` of a node accepts keys that no `properties` in place there declares."""
    pending: list[object] = [node]
    seen: set[int] = set()
    while pending:
        part = pending.pop()
        if not isinstance(part, Mapping):
            continue
        if id(part) in seen:
            return True  # a reference in place leads back to where it stands, and its keys are not read twice
        seen.add(id(part))
        if not _UNREAD.isdisjoint(part):
            return True
        if "$ref" in part:
            target = lookup(root, part["$ref"])
            if not isinstance(target, Mapping):
                return True
            pending.append(target)
        for keyword in ("allOf", "anyOf", "oneOf"):
            members = part.get(keyword)
            pending += members if isinstance(members, (list, tuple)) else []
    return False


def has_inner_resources(root: object) -> bool:
    """Whether a part of a schema has an `$id`, so that references in it do not lead into the whole schema."""
    pending = list(root.values()) if isinstance(root, Mapping) else []
    seen: set[int] = set()
    while pending:
        part = pending.pop()
        if id(part) in seen or not isinstance(part, (Mapping, list, tuple)):
            continue
        seen.add(id(part))
        if not isinstance(part, Mapping):
            pending += part
            continue
        if isinstance(part.get("$id"), str):
            return True
        pending += part.values()
    return False
