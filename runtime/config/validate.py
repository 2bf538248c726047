"""Values against the models of the file, with messages for people: what is wrong, and what would be right."""

from __future__ import annotations

import difflib
import json
import re
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from ..policies.secret_shapes import find_shapes
from .references import Expanded
from .settings import FileSettings

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from .source import KeyPath

__all__ = ["did_you_mean", "validate"]

_LONGEST_SHOWN: Final = 60
_PLAIN: Final = {
    "string_type": "must be text, in quotes",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "finite_number": "must be a number that is finite",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "tuple_type": "must be a list, in [ ]",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "missing": "is missing",
}
_BOUNDS: Final = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def validate(values: dict[str, Any]) -> tuple[FileSettings | None, list[tuple[KeyPath, str]]]:
    """Checks the values of a file.

    Returns:
        what they say, or `None`, and what is wrong, as keys and messages.
    """
    try:
        return FileSettings.model_validate(values), []
    except ValidationError as error:
        found = [(_path(each["loc"], values), _problem(each)) for each in error.errors()]
        # A misspelt key is one mistake, and not also the lack of the right one.
        meant = {(path[:-1], key) for path, problem in found if (key := _meant(problem)) is not None}
        return None, [one for one in found if one[1] != _PLAIN["missing"] or (one[0][:-1], one[0][-1]) not in meant]


def did_you_mean(given: str, known: Sequence[str]) -> str:
    """Returns a suggestion for a misspelt name, as the end of a message; empty when none is near."""
    near = difflib.get_close_matches(given.lower(), known, n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def _meant(problem: str) -> str | None:
    """Returns the key that a message suggests for an unknown one."""
    suggested = re.match(r'unknown key; did you mean "(.+)"', problem)
    return None if suggested is None else suggested[1]


def _path(loc: tuple[str | int, ...], values: Any) -> KeyPath:
    """Returns where in the file a fault is; what the models add to that is no part of it."""
    path: list[str | int] = []
    inside: Any = values
    for place, part in enumerate(loc):
        try:
            inside = inside[part]
        except (KeyError, IndexError, TypeError):
            if place < len(loc) - 1:
                continue
        path.append(part)
    return tuple(path)


def _problem(error: ErrorDetails) -> str:
    kind, context, given = error["type"], error.get("ctx", {}), error["input"]
    if kind == "extra_forbidden":
        return _unknown(error["loc"])
    if kind == "literal_error":
        return _none_of(error["loc"], context, given)
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"must be {words} {context[key]:g}{_given(given)}"
    return _PLAIN.get(kind, error["msg"]) + (
        "" if kind in ("missing", "string_too_short", "too_short") else _given(given)
    )


def _unknown(loc: tuple[str | int, ...]) -> str:
    known = sorted(_table(loc[:-1]))
    return f"unknown key{did_you_mean(str(loc[-1]), known) or _listed('; the keys here are', known)}"


def _none_of(loc: tuple[str | int, ...], context: dict[str, Any], given: object) -> str:
    table = _table(loc[:-1])
    choices = _choices(table.get(str(loc[-1])))
    if not choices:
        return f"must be {context.get('expected', 'something else')}{_given(given)}"
    near = did_you_mean(given, choices) if isinstance(given, str) and not isinstance(given, Expanded) else ""
    quoted = [f'"{choice}"' for choice in choices]
    return f"must be {_listed('', quoted, ' or ')}{_given(given)}{near}"


def _given(value: object) -> str:
    """Says what was given, where that may be shown: nothing from the environment, and no secret."""
    if isinstance(value, Expanded):
        return ", and what the environment has for it is not"
    if isinstance(value, bool):
        return f", not {str(value).lower()}"
    if isinstance(value, int | float):
        return f", not {value}"
    if isinstance(value, str) and len(value) <= _LONGEST_SHOWN and next(find_shapes(value), None) is None:
        return f", not {json.dumps(value, ensure_ascii=False)}"
    return ""


def _listed(before: str, names: Sequence[str], last: str = " and ") -> str:
    """Returns names as a list in a sentence."""
    text = ", ".join(names[:-1]) + (last if len(names) > 1 else "") + names[-1] if names else "none"
    return f"{before} {text}" if before else text


def _table(loc: tuple[str | int, ...]) -> dict[str, Any]:
    """Returns the keys that a table of the file may have, with their types; none for what is no such table."""
    model: Any = FileSettings
    for part in loc:
        if _is_model(model):
            info = model.model_fields.get(part)
            model = None if info is None else info.annotation
        else:  # a list of tables, or a table of tables with names of the user's own
            model = next(filter(_is_model, typing.get_args(model)), None)
    return {name: info.annotation for name, info in model.model_fields.items()} if _is_model(model) else {}


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _choices(annotation: Any) -> list[str]:
    """Returns the texts of a literal type."""
    if typing.get_origin(annotation) is typing.Literal:
        return [str(choice) for choice in typing.get_args(annotation)]
    return [choice for argument in typing.get_args(annotation) for choice in _choices(argument)]
