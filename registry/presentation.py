"""Presentation: which card stands for a call, now or out of the record (contract H5 to H12).

A card is made of durable data alone, the arguments and `{content, isError, meta?}`, so the card of a live call and the
card of its record are the same. A presenter is a tool's own function, and it cannot break a display: whatever it does
wrong is logged as one warning, and the generic card takes its place.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from pydantic import ValidationError

from .argument_text import argument_text, parse_arguments
from .cards import CallCard, GenericCallCard, GenericResultCard, ResultCard, as_call_card, as_result_card, card_problems
from .events import close_stray
from .execution import ToolExecutionResult, ToolFailure, ToolSuccess
from .lossless import materialise
from .pipeline.outcome import freeze_blocks, message_of, printable
from .presenters import RecordedResult
from .values import MISSING, JsonObject, JsonValue, Missing

if TYPE_CHECKING:
    from .activation import ResolvedToolSet
    from .definition import ToolDefinition
    from .registry import ToolRegistry
    from .scopes import ScopeKey

__all__ = ["PresentableArguments", "PresentableResult", "present_call", "present_result", "recorded"]

CardT = TypeVar("CardT")

_LOGGER: Final = logging.getLogger("ptc.registry")

PresentableArguments: TypeAlias = str | Mapping[str, object] | JsonValue | Missing
"""Arguments as a model wrote them (contract D1), as a program gave them, or as a record or a call has them."""

PresentableResult: TypeAlias = ToolExecutionResult | Mapping[str, object]
"""A live result, or what a record has of one: the data of a `tool/result` or `tool/ptc-dispatch` event, or
`{content, isError, meta?}` alone."""


def present_call(
    registry: ToolRegistry,
    name: str,
    arguments: PresentableArguments,
    *,
    scope: ScopeKey | None = None,
    tool_set: ResolvedToolSet | None = None,
    transport: ToolDefinition | None = None,
    logger: logging.Logger = _LOGGER,
) -> CallCard:
    """Returns the card of a pending call; the generic one when the tool has none to offer (contract H6, H7).

    Args:
        registry: where the tool is looked up.
        name: the tool's name.
        arguments: the arguments; text is read as a model's (contract D1).
        scope: the calling agent, whose view has the definition that is executed (contract H11).
        tool_set: limits the look-up to what the step admitted.
        transport: the `run_code` of the scope's executor, which the registry does not have (contract A23, E8).
        logger: told of presenters that fail.
    """
    definition = _definition(registry, name, scope, tool_set, transport)
    return _call_card(definition, name, *_read(arguments), logger)


def present_result(
    registry: ToolRegistry,
    name: str,
    arguments: PresentableArguments,
    result: PresentableResult,
    *,
    scope: ScopeKey | None = None,
    tool_set: ResolvedToolSet | None = None,
    transport: ToolDefinition | None = None,
    logger: logging.Logger = _LOGGER,
) -> ResultCard:
    """Returns the card of a completed call, which replaces the pending one (contract H8).

    When the tool has none to offer, it is a generic card with the pending card's title and the raw content (H6).

    Args:
        registry: as for `present_call`, like the others that are not named here.
        name: the tool's name.
        arguments: the arguments.
        result: the live result, or what a record has of it.
        scope: the calling agent.
        tool_set: limits the look-up.
        transport: the `run_code` of the scope's executor.
        logger: told of presenters that fail.

    Raises:
        TypeError: `result` is neither, or its content is no list of content blocks.
        LosslessError: its content or meta is not lossless JSON. It is a `ValueError`.
    """
    definition = _definition(registry, name, scope, tool_set, transport)
    known = recorded(result)
    given, shown = _read(arguments)
    presenter = None if definition is None else definition.present_result
    if presenter is not None and given is not MISSING:
        card = _ask(name, "present_result", lambda: presenter(given, known), as_result_card, logger)
        if card is not None:
            return card
    pending = _call_card(definition, name, given, shown, logger)
    return GenericResultCard(title=pending.title, content=known["content"])


def recorded(result: PresentableResult) -> RecordedResult:
    """Returns what a record has of a result, frozen: all that a presenter may know of it (contract H5, H10).

    Raises:
        TypeError: it is neither a result nor a record of one.
        LosslessError: its content or meta is not lossless JSON. It is a `ValueError`.
    """
    if isinstance(result, ToolSuccess | ToolFailure):
        content, is_error, meta = result.content, result.is_error, result.meta
    elif isinstance(result, Mapping):
        # A `tool/result` has its content in the message, and its meta beside it (contract I4).
        message = result.get("message", result)
        body = message if isinstance(message, Mapping) else {}
        content, is_error, meta = body.get("content"), body.get("isError"), result.get("meta", MISSING)
        if not isinstance(is_error, bool) or content is None:
            raise TypeError("the record of a result must have `content`, a list of blocks, and `isError`, a bool")
    else:
        raise TypeError(f"result must be a ToolSuccess, a ToolFailure or a record, not {type(result).__name__}")
    known: JsonObject = {"content": cast("JsonValue", freeze_blocks(content)), "isError": is_error}
    if meta is not MISSING:
        known["meta"] = materialise(meta, root="meta")
    return cast("RecordedResult", materialise(known))


def _definition(
    registry: ToolRegistry,
    name: str,
    scope: ScopeKey | None,
    tool_set: ResolvedToolSet | None,
    transport: ToolDefinition | None,
) -> ToolDefinition | None:
    if transport is not None and name == transport.name:
        return transport
    return registry.get(name, scope, tool_set)


def _read(arguments: PresentableArguments) -> tuple[JsonValue | Missing, JsonValue | Missing]:
    """Returns the arguments for a presenter, if they are JSON, and what a generic card shows of them.

    What is not JSON is shown as the text that the record has of it (contract I3).
    """
    if arguments is MISSING:
        return MISSING, MISSING
    try:
        parsed = parse_arguments(arguments) if isinstance(arguments, str | Mapping) else arguments
        given = materialise(parsed, root="arguments")
    except Exception:  # noqa: BLE001 - no JSON, or its own code failed
        return MISSING, argument_text(cast("Mapping[str, object]", arguments))
    return given, given


def _call_card(
    definition: ToolDefinition | None,
    name: str,
    given: JsonValue | Missing,
    shown: JsonValue | Missing,
    logger: logging.Logger,
) -> CallCard:
    presenter = None if definition is None else definition.present_call
    if presenter is not None and given is not MISSING:
        card = _ask(name, "present_call", lambda: presenter(given), as_call_card, logger)
        if card is not None:
            return card
    return GenericCallCard(title=printable(name), raw_input=shown)


def _ask(
    tool: str, member: str, present: Callable[[], Any], as_card: Callable[[object], CardT], logger: logging.Logger
) -> CardT | None:
    """Asks a presenter; `None` when it has no card, or none that does (contract H6, H7)."""
    raised: Exception | None = None
    try:
        answer = present()
    except Exception as error:  # noqa: BLE001 - a presenter cannot break a display
        raised, problem = error, f"raised {_described(error)}"
    else:
        if answer is None:
            return None
        try:
            return as_card(answer)
        except ValidationError as error:
            problem = f"returned what is no card: {card_problems(error)}"
        except Exception as error:  # noqa: BLE001 - a mapping may raise anything while it is read
            problem = f"returned what cannot be read: {_described(error)}"
        if inspect.isawaitable(answer):
            close_stray(answer)
            problem = "is asynchronous, and presenters are plain functions"
    logger.warning(
        '%s of tool "%s" %s; the generic card is shown instead', member, printable(tool), problem, exc_info=raised
    )
    return None


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {message_of(error)}"
