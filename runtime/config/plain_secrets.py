"""Secrets that stand in a configuration in plain text, by their shape or by the name of the key that has them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..policies.secret_shapes import COMMON_FIELDS, find_shapes
from .references import without_references
from .source import KeyPath, key_text

__all__ = ["named_secrets", "names_a_secret", "plain_secrets", "secret_lines"]

_OPTION: Final = re.compile(r"--?(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.+))?", re.DOTALL)


def names_a_secret(name: str) -> bool:
    """Tells whether what has this name is mostly a secret, for example `GITHUB_TOKEN` or `X-Api-Key`."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower().strip("_")
    return any(plain == field or plain.endswith(f"_{field}") for field in COMMON_FIELDS)


def plain_secrets(values: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yields the keys whose text is a secret, and the variable to put it into.

    Args:
        values: the values of the file, references not replaced.
        path: where they stand.
    """
    if isinstance(values, Mapping):
        for name, value in values.items():
            yield from _of(value, (*path, name), str(name))
    elif isinstance(values, list):
        before: object = None
        for place, value in enumerate(values):
            yield from _of(value, (*path, place), _option_of(before, value))
            before = value


def secret_lines(text: str) -> Iterator[int]:
    """Yields the lines of a text, from 1, in which a secret begins that has the shape of one."""
    for found in find_shapes(without_references(text)):
        yield text.count("\n", 0, found.start) + 1


def named_secrets(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields the secrets of a JSON document: the line, the key, and the variable to put it into.

    JSON is read without places, so the line is that where the secret stands first as text, or else its key.
    """
    try:
        values = json.loads(text)
    except ValueError:
        return  # whoever reads the servers tells of it
    for path, variable in plain_secrets(values):
        value = values
        for part in path:
            value = value[part]
        key = next(part for part in reversed(path) if isinstance(part, str))
        written = (json.dumps(each, ensure_ascii=escaped) for each in (value, key) for escaped in (False, True))
        at = next((place for place in map(text.find, written) if place >= 0), 0)
        yield text.count("\n", 0, at) + 1, key_text(path), variable


def _of(value: Any, path: KeyPath, name: str) -> Iterator[tuple[KeyPath, str]]:
    if not isinstance(value, str):
        yield from plain_secrets(value, path)
        return
    literal = without_references(value)
    named = value != "" and literal == value and names_a_secret(name)
    if named or next(find_shapes(literal), None) is not None:
        yield path, _variable(name)


def _option_of(before: object, value: object) -> str:
    """Returns the name of the option that an argument is the value of, whether in one word with it or behind it."""
    own = _OPTION.fullmatch(value) if isinstance(value, str) else None
    if own is not None:
        return own["name"] if own["value"] is not None else ""
    former = _OPTION.fullmatch(before) if isinstance(before, str) else None
    return former["name"] if former is not None and former["value"] is None else ""


def _variable(name: str) -> str:
    plain = re.sub(r"\W", "_", name).upper().strip("_")
    return plain if plain and not plain[0].isdigit() else "SECRET"
