"""Outcomes: how a value becomes a success, and anything else a failure with what identity it has (C43, C62)."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar, cast

from ..decisions import ContextMessage, ErrorInfo
from ..errors import ABORTED, ABORTED_BEFORE_DISPATCH, AbortError, HarnessError, ToolNotFoundError, ToolOutputError
from ..events import close_stray
from ..execution import ToolError, ToolExecutionResult, ToolFailure, ToolSuccess
from ..lossless import FrozenList, LosslessError, materialise
from ..schema import validate_output
from ..values import MISSING, ContentBlock, JsonValue, Missing, text_block

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..definition import ToolDefinition

__all__ = [
    "NOT_SERIALIZABLE",
    "aborted",
    "build_success",
    "error_of",
    "failure",
    "failure_of",
    "freeze_blocks",
    "freeze_context",
    "freeze_result",
    "message_of",
    "not_found",
    "unwrap",
    "with_contexts",
]

NOT_SERIALIZABLE: Final = "tool result must be losslessly JSON-serializable"

FrozenT = TypeVar("FrozenT")


def unwrap(thrown: Exception) -> Exception:
    """Returns the one error inside a group that has exactly one leaf, so that its identity survives."""
    while isinstance(thrown, ExceptionGroup) and len(thrown.exceptions) == 1:
        thrown = thrown.exceptions[0]
    return thrown


def message_of(thrown: BaseException) -> str:
    """Says what was raised: the error's own text, else its `message`, else its class (contract C62)."""
    try:
        text = _text_of(thrown)
    except Exception:  # noqa: BLE001 - an error that cannot even be printed must not hide that there was one
        return "<unprintable thrown value>"
    return printable(text)


def _text_of(thrown: BaseException) -> str:
    if isinstance(thrown, HarnessError):
        return thrown.message or thrown.name
    if isinstance(thrown, BaseExceptionGroup):
        return "; ".join(_text_of(leaf) for leaf in thrown.exceptions)
    text = str(thrown)
    if text and type(thrown).__str__ is KeyError.__str__:
        return f"{type(thrown).__name__}: {text}"  # the bare text is only the key's repr
    if text:
        return text
    own = getattr(thrown, "message", None)
    return own if isinstance(own, str) and own else type(thrown).__name__


def printable(text: str) -> str:
    """Returns the text with lone surrogates written out, so that it can be encoded as UTF-8 (ruling 31)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def error_of(thrown: Exception) -> ToolError:
    """Returns message and identity of what was raised; only harness errors have an identity (contract C63)."""
    thrown = unwrap(thrown)
    return ToolError(message_of(thrown), _identity(thrown))


def _identity(thrown: Exception) -> ErrorInfo | None:
    if not isinstance(thrown, HarnessError):
        return None
    try:
        name, code = thrown.name, thrown.code
    except Exception:  # noqa: BLE001 - a subclass may compute them; without them there is no identity
        return None
    return ErrorInfo(name, code) if isinstance(name, str) and isinstance(code, str) else None


def failure(message: str, info: ErrorInfo | None = None, *, contexts: Sequence[ContextMessage] = ()) -> ToolFailure:
    """Returns a failure whose content is the one block `Error: <message>` (contract C64)."""
    return failure_of(ToolError(printable(message), info), contexts=contexts)


def failure_of(error: ToolError, *, contexts: Sequence[ContextMessage] = ()) -> ToolFailure:
    """Returns a failure for an error, with the pipeline's own content (contract C64)."""
    content = cast("Sequence[ContentBlock]", materialise([text_block(f"Error: {error.message}")]))
    return ToolFailure(error=error, content=content, additional_contexts=tuple(contexts))


def aborted(*, body_invoked: bool, contexts: Sequence[ContextMessage] = ()) -> ToolFailure:
    """Returns the canonical cancellation: before dispatch as long as no body was invoked (contract C29, C42)."""
    error = AbortError(code=ABORTED if body_invoked else ABORTED_BEFORE_DISPATCH)
    return failure(error.message, ErrorInfo(error.name, error.code), contexts=contexts)


def not_found(name: str) -> ToolNotFoundError:
    """Returns the error for a name that the caller cannot see, whatever the cause (contract C10, A37)."""
    return ToolNotFoundError(f'unknown tool "{name}"')


def build_success(
    definition: ToolDefinition,
    arguments: JsonValue | Missing,
    value: object,
    *,
    concludes_turn: bool,
    contexts: Sequence[ContextMessage] = (),
) -> ToolSuccess:
    """Takes the value apart, checks it against the declared output, and renders it (contract C43 to C45).

    Raises:
        ToolOutputError: the value, its rendering or its presentation data does not do.
    """
    name = definition.name
    canonical = _snapshot_value(name, value)
    violations = validate_output(definition, canonical)
    if violations:
        raise ToolOutputError(name, violations)
    given = None if arguments is MISSING else arguments
    output = definition.output
    content = _presented(name, "output.render", lambda: output.render(given, canonical), freeze_blocks)
    meta: JsonValue | Missing = MISSING
    presentation = output.presentation_meta
    if presentation is not None:
        meta = _presented(name, "output.presentation_meta", lambda: presentation(given, canonical), _freeze_meta)
    return ToolSuccess(
        value=canonical,
        content=content,
        meta=meta,
        additional_contexts=tuple(contexts),
        concludes_turn=concludes_turn,
    )


def _snapshot_value(tool: str, value: object) -> JsonValue:
    try:
        return materialise(value)
    except LosslessError as error:
        close_stray(value)
        raise ToolOutputError(tool, [f"value is not lossless JSON: {error}"]) from error
    except Exception as error:
        raise ToolOutputError(tool, [f"value snapshot failed: {message_of(error)}"]) from error


def _presented(tool: str, part: str, make: Callable[[], object], freeze: Callable[[object, str], FrozenT]) -> FrozenT:
    try:
        made = make()
    except Exception as error:
        raise ToolOutputError(tool, [f"{part} failed: {message_of(error)}"]) from error
    try:
        return freeze(made, part)
    except LosslessError as error:
        close_stray(made)
        raise ToolOutputError(tool, [f"{part} returned non-lossless JSON: {error}"]) from error
    except Exception as error:
        raise ToolOutputError(tool, [f"{part} returned a bad value: {message_of(error)}"]) from error


def _freeze_meta(meta: object, root: str) -> JsonValue:
    return materialise(meta, root=root)


def freeze_blocks(content: object, root: str = "content") -> Sequence[ContentBlock]:
    """Detaches and freezes content, and checks that it is a list of content blocks.

    Args:
        content: what a renderer, a policy or a hook returned.
        root: what it is called in messages.

    Raises:
        LosslessError: it is not lossless JSON.
        TypeError: it is something else than a list of blocks.
    """
    blocks = materialise(content, root=root)
    if isinstance(blocks, list):
        for block in blocks:
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                break
            if block["type"] == "text" and not isinstance(block.get("text"), str):
                break
        else:
            return cast("Sequence[ContentBlock]", blocks)
    if inspect.isawaitable(content):
        close_stray(content)
    raise TypeError(f'{root} must be a list of content blocks such as {{"type": "text", "text": "..."}}')


def freeze_result(result: ToolExecutionResult) -> ToolExecutionResult:
    """Detaches and freezes everything of a result that lasts; returns the same object when nothing had to change.

    Raises:
        LosslessError: a part is not lossless JSON (contract C57).
        TypeError: a part is of another type than it should be.
    """
    content = result.content
    if type(content) is not FrozenList:  # what is frozen has been checked when it was frozen
        content = freeze_blocks(content)
    meta = result.meta if result.meta is MISSING else materialise(result.meta, root="meta")
    contexts = _freeze_contexts(result.additional_contexts)
    if isinstance(result, ToolFailure):
        _check_error(result.error)
    unchanged = content is result.content and meta is result.meta and contexts is result.additional_contexts
    return result if unchanged else replace(result, content=content, meta=meta, additional_contexts=contexts)


def _check_error(error: ToolError) -> None:
    info = error.info
    parts: list[object] = [error.message]
    if info is not None:
        parts += [info.name, info.code, "" if info.reason is None else info.reason]
    if not all(isinstance(part, str) for part in parts):
        raise TypeError("error must have texts for message, name, code and reason")
    materialise(parts, root="error")


def _freeze_contexts(contexts: Sequence[ContextMessage]) -> Sequence[ContextMessage]:
    if contexts == ():
        return ()
    frozen = tuple(freeze_context(message) for message in contexts)
    same = isinstance(contexts, tuple) and all(new is old for new, old in zip(frozen, contexts, strict=True))
    return contexts if same else frozen


def freeze_context(message: ContextMessage) -> ContextMessage:
    if not isinstance(message, ContextMessage):
        raise TypeError(f"additional_contexts must hold ContextMessage objects, not {type(message).__name__}")
    if not isinstance(message.role, str):
        raise TypeError(f"additional_contexts.role must be a string, not {type(message.role).__name__}")
    content = freeze_blocks(message.content, "additional_contexts.content")
    source = message.source if isinstance(message.source, dict) else dict(message.source)
    source = cast("dict[str, JsonValue]", materialise(source, root="additional_contexts.source"))
    if content is message.content and source is message.source:
        return message
    return replace(message, content=content, source=source)


def with_contexts(result: ToolExecutionResult, contexts: Sequence[ContextMessage]) -> ToolExecutionResult:
    """Returns the result with exactly these contexts."""
    return replace(result, additional_contexts=tuple(contexts))
