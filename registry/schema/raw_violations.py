"""What the full validator finds, told in the words that the subset uses: a quoted path, then what must be (B34).

No message repeats the value itself: it may be a secret, or a megabyte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..lossless import item_path, member_path, shown_path, to_json_text
from .scalars import KIND_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import jsonschema_rs

__all__ = ["describe"]

_MAX_BRANCHES: Final = 8

_LIMITS: Final = {
    "Maximum": "must be at most {}",
    "Minimum": "must be at least {}",
    "ExclusiveMaximum": "must be less than {}",
    "ExclusiveMinimum": "must be greater than {}",
    "MaxItems": "must have at most {} items",
    "MinItems": "must have at least {} items",
    "AdditionalItems": "must have at most {} items",
    "MaxLength": "must have at most {} characters",
    "MinLength": "must have at least {} characters",
    "MaxProperties": "must have at most {} properties",
    "MinProperties": "must have at least {} properties",
}


def describe(error: jsonschema_rs.ValidationError, root: str) -> Iterator[str]:
    """Yields the messages for one finding; one for each unexpected property, and one for anything else."""
    path = root
    for step in error.instance_path:
        path = item_path(path, step) if isinstance(step, int) else member_path(path, step)
    kind: Any = error.kind
    name = type(kind).__name__
    if name == "Required":
        yield f'missing required property "{member_path(path, kind.property)}"'
    elif name in ("AdditionalProperties", "UnevaluatedProperties"):
        for unexpected in kind.unexpected:
            yield f'"{member_path(path, unexpected)}" is not a declared property ({kind.name}: false)'
    else:
        yield f'"{shown_path(path)}" {_problem(error, root, path)}'


def _problem(error: jsonschema_rs.ValidationError, root: str, path: str) -> str:  # noqa: C901  # one arm a keyword
    """What is wrong with the value at `path`, as the end of a sentence."""
    kind: Any = error.kind
    name = type(kind).__name__
    if name in _LIMITS:
        return _LIMITS[name].format(to_json_text(kind.limit))
    match name:
        case "Type":
            return f"must be {' or '.join(KIND_NAMES[each] for each in kind.types)}"
        case "Enum":
            return f"must be one of {to_json_text(kind.options)}"
        case "Constant":
            return f"must be {to_json_text(kind.expected_value)}"
        case "Pattern":
            return f"must match the pattern {to_json_text(kind.pattern)}"
        case "Format":
            return f"must be a valid {kind.format}"
        case "MultipleOf":
            return f"must be a multiple of {kind.multiple_of}"
        case "UnevaluatedItems":
            surplus = len(kind.unexpected)
            return f"must not have items beyond the declared ones (unevaluatedItems: false), and has {surplus}"
        case "UniqueItems":
            return "must not have equal items"
        case "Contains":
            return "must have enough items, and not too many, that fit `contains`"
        case "Not":
            return "must not fit the schema under `not`"
        case "FalseSchema":
            return "is not allowed here (its schema is false)"
        case "PropertyNames":
            return f"has a property whose name {_problem(kind.error, root, path)}"
        case "AnyOf":
            return f"must match at least one anyOf branch{_branches(kind.context, root, path)}"
        case "OneOfNotValid":
            return f"must match exactly one oneOf branch (matched 0){_branches(kind.context, root, path)}"
        case "OneOfMultipleValid":
            return f"must match exactly one oneOf branch (matched {sum(not branch for branch in kind.context)})"
        case _:
            return f"fails `{kind.name}`: {error.message}"


def _branches(context: list[list[jsonschema_rs.ValidationError]], root: str, path: str) -> str:
    """What each branch of a union asks for; the path is told again only where it leads deeper."""
    own = f'"{shown_path(path)}" '
    told: list[str] = []
    for branch in context[:_MAX_BRANCHES]:
        text = " and ".join(message.removeprefix(own) for error in branch for message in describe(error, root))
        if text and text not in told:
            told.append(text)
    if len(context) > _MAX_BRANCHES:
        told.append(f"{len(context) - _MAX_BRANCHES} more")
    return f": {', or '.join(told)}" if told else ""
