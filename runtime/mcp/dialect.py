"""Schemas of older drafts, which many servers still write, in the words of JSON Schema 2020-12.

The raw-schema door reads 2020-12 alone, and rightly refuses what it would not enforce. A schema that names an older
draft means something by those words, so they are written anew. Nothing else of a schema is touched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["to_2020_12"]

_OLDER: Final = re.compile(r"https?://json-schema\.org/(draft-0[3467]|draft/2019-09)/schema#?")
_MAX_DEPTH: Final = 200
_MAPS: Final = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "items",
                  "additionalItems", "unevaluatedItems", "unevaluatedProperties")  # fmt: skip


def to_2020_12(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the schema in the words of 2020-12; the schema itself when it names no older draft.

    Raises:
        ValueError: it is nested too deep.
    """
    draft = schema.get("$schema")
    if not isinstance(draft, str) or _OLDER.fullmatch(draft) is None:
        return schema
    return {key: value for key, value in _translated(schema, _MAX_DEPTH).items() if key != "$schema"}


def _translated(schema: Any, depth: int) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    if depth == 0:
        raise ValueError(f"the schema is nested more than {_MAX_DEPTH} levels deep")
    new: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, Mapping):
            new[key] = {name: _translated(each, depth - 1) for name, each in value.items()}
        elif key in _LISTS and isinstance(value, list):
            new[key] = [_translated(each, depth - 1) for each in value]
        elif key in _SINGLE and not isinstance(value, list):
            new[key] = _translated(value, depth - 1)
        else:
            new[key] = value
    _rewrite_items(new, depth)
    _rewrite_dependencies(new, depth)
    _rewrite_limits(new)
    return new


def _rewrite_items(new: dict[str, Any], depth: int) -> None:
    """A list of `items` is `prefixItems`, and `additionalItems` the `items` of the rest."""
    rest = new.pop("additionalItems", None)
    if isinstance(listed := new.get("items"), list):
        new["prefixItems"] = [_translated(each, depth - 1) for each in listed]
        del new["items"]
        if rest is not None:
            new["items"] = rest


def _rewrite_dependencies(new: dict[str, Any], depth: int) -> None:
    """`dependencies` became two keywords, one for names and one for schemas."""
    if not isinstance(old := new.get("dependencies"), Mapping):
        return
    del new["dependencies"]
    names = {key: [value] if isinstance(value, str) else value for key, value in old.items()
             if isinstance(value, list | str)}  # fmt: skip
    schemas = {key: _translated(value, depth - 1) for key, value in old.items() if not isinstance(value, list | str)}
    if names:
        new["dependentRequired"] = {**names, **new.get("dependentRequired", {})}
    if schemas:
        new["dependentSchemas"] = {**schemas, **new.get("dependentSchemas", {})}


def _rewrite_limits(new: dict[str, Any]) -> None:
    """In draft 4 an exclusive limit was a mark on the other one."""
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(mark := new.get(exclusive), bool):
            del new[exclusive]
            if mark and limit in new:
                new[exclusive] = new.pop(limit)
