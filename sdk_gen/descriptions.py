"""What a schema says of one property in words: its own description, or those of what it is made of (contract G17)."""

from __future__ import annotations

from collections.abc import Mapping

from .keywords import description_of, lookup

__all__ = ["full_description"]

_INSIDE = frozenset({"items", "additionalProperties"})
_MADE_OF = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_MAX_HOPS = 8


def full_description(schema: object, root: object) -> str:
    """Returns the description of a property, with that of the items of a list, or of the values of a mapping.

    Args:
        schema: the property's schema.
        root: the schema that its references lead into.
    """
    words = _words(schema, root)
    if not isinstance(schema, (dict, Mapping)) or _INSIDE.isdisjoint(schema):
        return words
    part, label = schema.get("items"), "Each item"
    if part is None and not schema.get("properties"):
        part, label = schema.get("additionalProperties"), "Each value"
    if not isinstance(part, Mapping) or "$ref" in part:  # what a definition is, its name says
        return words
    text = _words(part, root)
    return f"{words} {label}: {text}".lstrip() if text else words


def _words(schema: object, root: object) -> str:
    """A schema's own description, or that of the one thing it is made of beside null, or those of its branches."""
    for _hop in range(_MAX_HOPS):
        text = description_of(schema)
        if text:
            return text
        if not isinstance(schema, (dict, Mapping)) or _MADE_OF.isdisjoint(schema):
            break
        made_of = [branch for keyword in ("allOf", "anyOf", "oneOf") for branch in schema.get(keyword, ())]
        made_of = [branch for branch in made_of if branch != {"type": "null"}]
        if len(made_of) > 1 and "allOf" not in schema:
            return " | ".join(dict.fromkeys(filter(None, map(description_of, made_of))))
        schema = made_of[0] if len(made_of) == 1 else lookup(root, schema.get("$ref"))
    return ""
