"""After the body: project, post-execute, and then publishing: materialise, finalize, observe (contract C47 to C61)."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..decisions import Accept, Block, ContextMessage, ErrorInfo, PostToolDecision
from ..events import POST_EXECUTE, RESULT, close_stray, describe_answer, run_waterfall
from ..execution import ToolError, ToolExecutionResult, ToolFailure, ToolSuccess
from ..lossless import LosslessError
from ..values import MISSING, ContentBlock
from .outcome import (
    NOT_SERIALIZABLE,
    aborted,
    build_success,
    error_of,
    failure,
    failure_of,
    freeze_blocks,
    freeze_result,
    message_of,
    not_found,
    printable,
    with_contexts,
)
from .shelter import await_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .state import CallState, ContentHook


__all__ = ["publish", "review"]

_ACCEPT: Final = Accept()
_EXPECTED: Final = ((Accept, Block), "Accept or Block")
_BLOCKED: Final = "tool result blocked by post-execute policy"


async def review(state: CallState) -> None:
    """Lets the tool project its content and the policies have their say on the result (contract C47 to C55).

    Whatever raises here ends the call with its error, without contexts and presentation data (contract C53).
    """
    outcome = state.outcome
    assert outcome is not None
    try:
        result = await _post_execute(state, _project(state, outcome))
    except Exception as error:
        state.logger.warning(
            'the result of tool "%s" (call %s) was dropped: a hook or post-execute listener raised',
            state.exec.name, state.exec.call_id, exc_info=error,
        )  # fmt: skip
        state.end(failure_of(error_of(error)))
        return
    if isinstance(result, ToolSuccess) and state.exec.signal.aborted:
        result = aborted(body_invoked=state.body_invoked, contexts=result.additional_contexts)
    state.settle(result)


def _project(state: CallState, result: ToolExecutionResult) -> ToolExecutionResult:
    if state.projector is None:
        return result
    content = _hook_content(state, state.projector, result, "project_content")
    return result if content is None else replace(result, content=content)


def _hook_content(
    state: CallState, hook: ContentHook, result: ToolExecutionResult, label: str
) -> Sequence[ContentBlock] | None:
    """Calls a content hook, and returns what it wants to put in the content's place.

    Raises:
        TypeError: what it returned is not lossless content.
        Exception: whatever the hook raised.
    """
    content = hook(state.exec, result)
    if content is None:
        return None
    try:
        return freeze_blocks(content, label)
    except LosslessError as error:
        close_stray(content)
        raise TypeError(f'{label} of tool "{state.exec.name}" returned non-lossless JSON: {error}') from error


async def _post_execute(state: CallState, result: ToolExecutionResult) -> ToolExecutionResult:
    listeners = state.registry.events.listeners(POST_EXECUTE, state.exec.agent)
    if not listeners:
        return result
    decision, author = await await_policy(
        run_waterfall(POST_EXECUTE, listeners, (state.exec, result), _accept, _EXPECTED)
    )
    if author is None:
        return result
    if isinstance(decision, Block):
        blocked = _block(decision, author.name)
        state.blocked_by = author.name
        return blocked
    return _apply(state, result, decision, author.name)


async def _accept() -> PostToolDecision:
    return _ACCEPT


def _apply(state: CallState, result: ToolExecutionResult, accept: Accept, author: str) -> ToolExecutionResult:
    """Keeps the result, or replaces its content or its value (contract C48 to C50, C52)."""
    added = _contexts(accept.additional_contexts, author)
    if accept.value is not MISSING and accept.content is not MISSING:
        raise TypeError(f"{POST_EXECUTE} accept decision cannot replace both value and content ({author})")
    if accept.content is not MISSING:
        result = replace(result, content=_decided(accept.content, author))
    elif accept.value is not MISSING:
        if isinstance(result, ToolFailure):
            raise TypeError(f"{POST_EXECUTE} cannot replace the value of a failed result ({author})")
        definition = state.resolve()
        if definition is None:
            raise not_found(state.exec.name)
        result = build_success(
            definition,
            state.exec.arguments,
            accept.value,
            concludes_turn=state.concludes,
            contexts=result.additional_contexts,
        )
    return with_contexts(result, (*result.additional_contexts, *added)) if added else result


def _decided(content: object, author: str) -> Sequence[ContentBlock]:
    try:
        return freeze_blocks(content)
    except LosslessError:
        raise
    except TypeError as error:
        raise TypeError(f'the "{POST_EXECUTE}" listener {author} gave a bad answer: {error}') from error


def _block(block: Block, author: str) -> ToolFailure:
    """Turns the result into a failure that says what the policy says (contract C51)."""
    feedback = _decided(block.feedback, author)
    if not isinstance(block.info, ErrorInfo | None):
        raise TypeError(
            f'the "{POST_EXECUTE}" listener {author} gave a bad answer: Block.info must be an ErrorInfo, '
            f"not {describe_answer(block.info)}"
        )
    message = "\n".join(
        block_["text"] if block_["type"] == "text" else f"[{block_['type']} content]" for block_ in feedback
    )
    return ToolFailure(
        error=ToolError(printable(message) or _BLOCKED, block.info),
        content=feedback,
        additional_contexts=_contexts(block.additional_contexts, author),
    )


def _contexts(contexts: object, author: str) -> tuple[ContextMessage, ...]:
    if isinstance(contexts, list | tuple):
        checked = tuple(message for message in contexts if isinstance(message, ContextMessage))
        if len(checked) == len(contexts):
            return checked
    raise TypeError(
        f'the "{POST_EXECUTE}" listener {author} gave a bad answer: '
        "additional_contexts must be a list of ContextMessage objects"
    )


def publish(state: CallState) -> ToolExecutionResult:
    """Materialises the outcome, lets the tool finalize its content, and tells the observers, once (C56 to C61).

    Returns:
        the very object that observers are given (contract C60).
    """
    assert state.outcome is not None
    assert not state.published
    state.published = True
    result = state.outcome = _finalize(state, _materialise(state.outcome))
    _observe(state, result)
    return result


def _materialise(outcome: ToolExecutionResult) -> ToolExecutionResult:
    try:
        return freeze_result(outcome)
    except Exception:  # noqa: BLE001 - a part's own code may raise anything while it is read (contract C57)
        return failure(NOT_SERIALIZABLE)


def _finalize(state: CallState, result: ToolExecutionResult) -> ToolExecutionResult:
    finalizer = state.finalizer
    if finalizer is None:
        return result
    try:
        content = _hook_content(state, finalizer, result, "finalize_content")
    except Exception as error:  # noqa: BLE001 - the hook's error is the call's outcome (contract C58)
        return failure_of(error_of(error))
    return result if content is None else replace(result, content=content)


def _observe(state: CallState, result: ToolExecutionResult) -> None:
    """Tells every observer in order; what one raises is logged and hidden from the others (contract C59)."""
    call = state.exec
    for listener in state.registry.events.listeners(RESULT, call.agent):
        problem: Exception | None = None
        try:
            answer = listener.function(call, result)
            if answer is not None and inspect.isawaitable(answer):
                close_stray(answer)
                problem = TypeError("it returned an awaitable, which nobody awaits; observers are synchronous")
        except Exception as error:  # noqa: BLE001 - an observer cannot change what has happened
            problem = error
        if problem is not None:
            state.logger.warning(
                'the "%s" observer %s failed for tool "%s" (call %s): %s',
                RESULT, listener.name, call.name, call.call_id, message_of(problem), exc_info=problem,
            )  # fmt: skip
