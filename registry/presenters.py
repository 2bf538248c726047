"""Presenters: a tool's own functions that make its cards; what they are given, and what may be one (contract H5)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NotRequired, TypeAlias, TypedDict

from .body import is_async
from .errors import ToolRegistrationError
from .values import ContentBlock, JsonValue

if TYPE_CHECKING:
    from .cards import CallCard, ResultCard

__all__ = ["PresentedCall", "PresentedResult", "RecordedResult", "check_presenter", "for_valid_arguments"]

PresentedCall: TypeAlias = "CallCard | Mapping[str, object] | None"
"""What `present_call` may answer: a card, one as a mapping in the wire's spelling, or `None` for the generic card."""

PresentedResult: TypeAlias = "ResultCard | Mapping[str, object] | None"
"""What `present_result` may answer, likewise."""


class RecordedResult(TypedDict):
    """What the record has of a result, and all that a presenter is given of it (contract H10); frozen.

    Attributes:
        content: the content blocks that the model saw.
        isError: whether the call failed.
        meta: what the tool's `presentation_meta` gave, if it gave anything.
    """

    content: list[ContentBlock]
    isError: bool
    meta: NotRequired[JsonValue]


def check_presenter(owner: str, member: str, presenter: object) -> None:
    """Checks that a presenter is a plain function, or absent (contract H5).

    Args:
        owner: whose it is, for example `define_tool(search)`.
        member: `present_call` or `present_result`.
        presenter: what the author gave.

    Raises:
        ToolRegistrationError: it is something else, or asynchronous.
    """
    if presenter is None:
        return
    if not callable(presenter):
        raise ToolRegistrationError(f"{owner}: {member} must be a function, not {type(presenter).__name__}")
    if is_async(presenter) or inspect.isasyncgenfunction(presenter):
        raise ToolRegistrationError(
            f"{owner}: {member} is asynchronous, and a card is made at once, from the record alone; write a plain "
            "`def`, and have presentation_meta keep what it needs beyond the arguments and the content"
        )


def for_valid_arguments(
    presenter: Callable[..., Any] | None, check: Callable[[JsonValue], list[str]]
) -> Callable[..., Any] | None:
    """Returns a presenter that has nothing to say of arguments that do not fit (contract B59, H7).

    Args:
        presenter: what the author gave.
        check: what is wrong with given arguments.
    """
    if presenter is None:
        return None
    return lambda arguments, *rest: None if check(arguments) else presenter(arguments, *rest)
