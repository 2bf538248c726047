"""Around the body: the `tools/execute` wrappers, the signals they may swap, and the body itself (C28 to C42)."""

from __future__ import annotations

import inspect
from dataclasses import replace
from types import CoroutineType
from typing import TYPE_CHECKING, Final, cast

import anyio

from ..decisions import ContextMessage, ErrorInfo
from ..errors import AbortError
from ..events import EXECUTE, describe_answer, run_waterfall
from ..execution import ToolExecution, ToolExecutionResult, ToolFailure, ToolSuccess
from ..lossless import is_frozen
from ..signals import Signal, SignalSource, fuse
from ..wake import Wake
from .dispatch_view import DispatchView
from .outcome import aborted, build_success, error_of, failure_of, freeze_result, not_found, unwrap, with_contexts
from .shelter import await_foreign, await_policy, await_sheltered, await_shielded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from ..definition import ToolDefinition
    from ..events import Listener
    from ..scopes import ScopeKey
    from ..values import ContentBlock
    from .state import CallState

__all__ = ["run_around"]

_EXPECTED: Final = ((ToolSuccess, ToolFailure), "a ToolSuccess or a ToolFailure")


class _RunContext:
    """What a body is given beside its arguments; see `ToolRunContext`."""

    __slots__ = ("_state", "exec")

    def __init__(self, state: CallState, exec: ToolExecution) -> None:  # noqa: A002 - the field's name everywhere
        self._state = state
        self.exec = exec

    @property
    def signal(self) -> Signal:
        return self.exec.signal

    @property
    def agent(self) -> ScopeKey | None:
        return self.exec.agent

    def defer_context(self, message: ContextMessage) -> None:
        if not isinstance(message, ContextMessage):
            raise TypeError(f"defer_context() takes a ContextMessage, not {describe_answer(message)}")
        if self._state.around_open:
            self._state.deferred.append(message)
        else:
            self._state.logger.warning(
                'tool "%s" (call %s) deferred a context after its result had been taken; it is dropped',
                self.exec.name, self.exec.call_id,
            )  # fmt: skip

    def conclude_turn(self) -> None:
        self._state.concludes = True


async def run_around(state: CallState, shelter: Signal | None) -> None:
    """Runs the wrappers around the body and settles the call with what comes out.

    A wrapper that raises, or whose own success does not fit the tool, ends the call past post-execute (contract C36,
    C37, C40). Whatever the body deferred goes before the result's own contexts (contract C41); when a wrapper raises,
    it is lost (ruling 15).

    Args:
        state: the call.
        shelter: see `PipelineCall.dispatch`.
    """
    call = state.exec
    view = DispatchView(call)

    running, ended = 0, Wake()

    async def attempt() -> ToolExecutionResult:
        nonlocal running
        running += 1
        try:
            return await _attempt(state, view, shelter, wrapped=bool(listeners))
        finally:
            running -= 1
            ended.change()

    listeners = state.registry.events.listeners(EXECUTE, call.agent)
    state.around_open = True
    try:
        if all(_passes_on(listener, view) for listener in listeners):
            listeners = ()
        if listeners:
            waterfall = run_waterfall(EXECUTE, listeners, (view,), attempt, _EXPECTED)
            # Where a scheduler shelters the call nobody can cancel it here, and nothing need be asked.
            result, _author = await (await_policy(waterfall) if shelter is None else await_foreign(waterfall))
        else:
            result = await attempt()
    except Exception as error:  # noqa: BLE001 - a wrapper's error is the call's outcome
        state.end(_wrapper_failure(state, error))
        return
    finally:
        if running:  # a wrapper went on without a body that it had started in another task (contract C32)
            with anyio.CancelScope(shield=True):
                while running:
                    ended.look()
                    await ended.wait()
        state.around_open = False
        view.close()
    try:
        result = _normalise(state, result)
    except Exception as error:  # noqa: BLE001 - the wrapper's success does not fit the tool
        state.end(failure_of(error_of(error)))
        return
    state.settle(_merge(state, result))


def _passes_on(listener: Listener, view: DispatchView) -> bool:
    """Tells whether a wrapper says of itself that it would do nothing but await `next()`.

    A wrapper may have a method `passes_on(view)` for that. It is asked only to spare the waterfall where all of them
    pass on; where one does not, all of them run, and each sees the call as the ones outside have left it.
    """
    ask = getattr(listener.function, "passes_on", None)
    return ask is not None and ask(view) is True


async def _attempt(
    state: CallState, view: DispatchView, shelter: Signal | None, *, wrapped: bool
) -> ToolExecutionResult:
    """Runs the body once, under the wrapper's and the caller's signal joined, and always returns a result."""
    if not state.around_open:
        raise RuntimeError(f'next() of "{EXECUTE}" was called after the call\'s result had been taken')
    host, caller = None, state.exec.signal
    if shelter is None:
        host = state.own_source or SignalSource()
        shelter = host.signal
    fused, part = fuse(view.signal, caller)
    part_shelter = None
    if shelter is not caller:
        fused, part_shelter = fuse(fused, shelter)
    try:
        result = await _run_body(state, fused, host, wrapped=wrapped)
    finally:
        part()
        if part_shelter is not None:
            part_shelter()
    state.canonical.append(result)
    return result


async def _run_body(
    state: CallState, fused: Signal, host: SignalSource | None, *, wrapped: bool
) -> ToolExecutionResult:
    if fused.aborted:
        return aborted(body_invoked=state.body_invoked)
    call = state.exec
    definition = state.resolve()
    if definition is None:
        return failure_of(error_of(not_found(call.name)))
    run = _RunContext(state, call if fused is call.signal else _under(call, fused))
    state.body_invoked = True
    try:
        body = _start(definition, run)
        if host is not None:
            value = await await_sheltered(body, host)
        else:
            value = await (await_shielded(body) if wrapped else await_foreign(body))
    except Exception as error:  # noqa: BLE001 - a body's error is its call's outcome
        return _body_failure(error, fused)
    if fused.aborted:
        return aborted(body_invoked=True)
    try:
        return build_success(definition, call.arguments, value, concludes_turn=state.concludes)
    except Exception as error:  # noqa: BLE001 - an output that does not do is an ordinary failure (contract C43)
        return failure_of(error_of(error))


def _under(call: ToolExecution, signal: Signal) -> ToolExecution:
    """Returns the same call under another signal, as a body sees it; spelled out, because `replace` is slow (C31)."""
    return ToolExecution(
        call_id=call.call_id,
        root_call_id=call.root_call_id,
        name=call.name,
        token=call.token,
        arguments=call.arguments,
        agent=call.agent,
        parent=call.parent,
        signal=signal,
        schema=call.schema,
        tool_set=call.tool_set,
        annotations=call.annotations,
    )


def _start(definition: ToolDefinition, run: _RunContext) -> Awaitable[object]:
    body = definition.execute(run.exec.arguments, run)
    if type(body) is not CoroutineType and not inspect.isawaitable(body):
        raise TypeError(
            f'tool "{definition.name}" execute must be an async function; it returned {describe_answer(body)} at once'
        )
    return body


def _cancellation(thrown: Exception, signal: Signal) -> bool:
    """Tells whether an error is how a cancelled body or wrapper gave up (contract C34)."""
    leaf = unwrap(thrown)
    return signal.aborted and (
        thrown is signal.reason
        or leaf is signal.reason
        or isinstance(leaf, AbortError)
        or type(leaf).__name__ == AbortError.__name__
    )


def _body_failure(thrown: Exception, fused: Signal) -> ToolFailure:
    error = error_of(thrown)
    if _cancellation(thrown, fused):
        error = replace(error, info=ErrorInfo(AbortError.__name__, AbortError.default_code))
    return failure_of(error)


def _wrapper_failure(state: CallState, thrown: Exception) -> ToolFailure:
    if _cancellation(thrown, state.exec.signal):
        return aborted(body_invoked=state.body_invoked)
    return failure_of(error_of(thrown))


def _normalise(state: CallState, result: ToolExecutionResult) -> ToolExecutionResult:
    """Returns a result of this call's own: as it is when the pipeline made it, else checked anew (C37 to C40).

    Raises:
        ToolNotFoundError: the tool of a wrapper's success is gone.
        ToolOutputError: a wrapper's success does not fit the tool's output.
    """
    if any(made is result for made in state.canonical):
        return result
    if isinstance(result, ToolSuccess):
        definition = state.resolve()
        if definition is None:
            raise not_found(state.exec.name)
        return build_success(
            definition,
            state.exec.arguments,
            result.value,
            concludes_turn=state.concludes,
            contexts=_listed(result.additional_contexts),
        )
    return _frozen(_verbatim(result))


def _verbatim(failure: ToolFailure) -> ToolFailure:
    """Returns a failure of this call's own, with what a failure may carry and nothing else (contract C38)."""
    content = failure.content
    if is_frozen(content):  # somebody froze it as JSON; that it is content has still to be seen
        content = cast("Sequence[ContentBlock]", list(content))
    return ToolFailure(
        error=failure.error, content=content, meta=failure.meta, additional_contexts=failure.additional_contexts
    )


def _listed(contexts: Sequence[ContextMessage]) -> Sequence[ContextMessage]:
    """Returns contexts that can be joined with others; what is no list of them is refused when published (C57)."""
    return contexts if isinstance(contexts, list | tuple) else cast("Sequence[ContextMessage]", (contexts,))


def _frozen(result: ToolExecutionResult) -> ToolExecutionResult:
    """Freezes what policies are about to see; what cannot be frozen is refused when it is published (contract C57)."""
    try:
        return freeze_result(result)
    except Exception:  # noqa: BLE001 - a part may be anything, and its own code may raise anything
        return result


def _merge(state: CallState, result: ToolExecutionResult) -> ToolExecutionResult:
    """Adds the deferred contexts, and lets a caller that has given up turn a success into a cancellation."""
    if state.deferred:
        result = with_contexts(result, (*state.deferred, *_listed(result.additional_contexts)))
    if result.additional_contexts:
        result = _frozen(result)
    if isinstance(result, ToolSuccess):
        if state.exec.signal.aborted:
            return aborted(body_invoked=state.body_invoked, contexts=result.additional_contexts)
        if result.concludes_turn is not state.concludes:
            result = replace(result, concludes_turn=state.concludes)
    return result
