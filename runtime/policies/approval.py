"""The shipped approval service: puts a policy's question to whoever listens, with question and answer on record.

asked -> decide -> decided      contract K14
decide: given up meanwhile -> cancelled; policy "never" -> rejected; else the listeners' answer (contract K15)
"""

from __future__ import annotations

import inspect
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio

from ...registry import APPROVAL_REQUEST, ContextMessage, ToolContextUnavailableError, text_block
from ...registry.events import Listener, close_stray, describe_answer, run_waterfall
from ...registry.pipeline.shelter import await_foreign
from ..agent import Agent
from ..log import LogUnavailableError
from .record import StandingEvents, run_whole

if TYPE_CHECKING:
    from ...registry import ApprovalOutcome, ApprovalRequest, EventBus, JsonObject

__all__ = ["ApprovalPolicy", "Approvals", "checked_policy", "checked_source"]

ApprovalPolicy: TypeAlias = Literal["ask", "never"]
"""Whether questions are put to anybody: `ask` does that, `never` rejects whatever needs approval."""

_LOGGER: Final = logging.getLogger("ptc.runtime")
_POLICIES: Final[dict[object, ApprovalPolicy]] = {"ask": "ask", "never": "never"}
_OUTCOMES: Final[dict[object, ApprovalOutcome]] = {
    "allowed-once": "allowed-once",
    "rejected": "rejected",
    "cancelled": "cancelled",
    "unavailable": "unavailable",
}
_POLICY_EVENT: Final = "approval/policy"
_SOURCE: Final[JsonObject] = {"kind": "plugin", "plugin": "approval"}
_NOTICES: Final[dict[ApprovalPolicy, str]] = {
    "ask": 'The approval policy is now "ask": a tool call that needs approval is put to a person first.',
    "never": 'The approval policy is now "never": a tool call that needs approval is rejected, and nobody is asked.',
}
_ID_BYTES: Final = 8


def checked_policy(policy: object) -> ApprovalPolicy:
    """Returns an approval policy, checked.

    Raises:
        ValueError: it is neither `ask` nor `never`.
    """
    known = _POLICIES.get(policy) if isinstance(policy, str) else None
    if known is None:
        raise ValueError(f'an approval policy is "ask" or "never", not {policy!r}')
    return known


def checked_source(source: object) -> JsonObject:
    """Returns who changed something as the record has it; nothing for `None`.

    Raises:
        TypeError: it is no text.
    """
    if source is None:
        return {}
    if not isinstance(source, str):
        raise TypeError(f"source must be a string that says who makes the change, not {type(source).__name__}")
    return {"source": source}


class Approvals:
    """Answers the questions of policies by asking the listeners of `approval/request`, outermost first.

        @host.on("approval/request")
        async def ask_on_the_terminal(request, next):
            return "allowed-once" if await confirm(request.tool_name, request.reason) else "rejected"

    Each question and its answer are in the agent's session as `approval/asked` and `approval/decided` (contract I12),
    the answer also when the host's task is cancelled meanwhile. What cannot be recorded is not allowed.

    Args:
        events: the listeners of the registry; `approval/request` is declared there.
    """

    def __init__(self, events: EventBus) -> None:
        events.declare(APPROVAL_REQUEST)
        self._events = events
        self._standing = StandingEvents(_POLICY_EVENT)

    async def request(self, request: ApprovalRequest) -> ApprovalOutcome:
        """Asks, and returns the answer (contract K14, K15).

        A listener gets no answer in once the request's signal has fired: it is cancelled, awaited, and what it says
        then is discarded. A listener that fails or answers nonsense has the outcome `unavailable` and a warning.

        Raises:
            ToolContextUnavailableError: no turn of the agent is open; nothing is recorded.
            LogUnavailableError: question or answer could not be recorded; the cause is the log's own error.
        """
        agent = _agent_in_turn(request)
        question = _Question(agent, request)
        try:
            with _on_record(request):
                await self._standing.load(agent)
                await question.ask()
            outcome = await self._decide(agent, request)
            with _on_record(request):
                await question.close(outcome)
        except BaseException:
            await question.abandon()
            raise
        return outcome

    async def policy(self, agent: Agent) -> ApprovalPolicy:
        """Returns the agent's policy: what its session says last, and `ask` when it says nothing.

        Raises:
            LogUnavailableError: the session cannot be read.
        """
        await self._standing.load(agent)
        return self._policy(agent)

    async def set_policy(self, agent: Agent, policy: ApprovalPolicy, source: str | None = None) -> None:
        """Changes the agent's policy, on record, and queues a notice for its model (contract K16).

        Nothing happens when the policy is that already. Questions that are open stay open.

        Args:
            agent: whose policy.
            policy: `ask` or `never`.
            source: who makes the change, for the record.

        Raises:
            ValueError: there is no such policy; nothing is recorded.
            TypeError: the source is no text.
            LogUnavailableError: the change could not be recorded, and is not in force.
        """
        policy = checked_policy(policy)
        data: JsonObject = {"policy": policy, **checked_source(source)}
        async with self._standing.lock(agent):
            if await self.policy(agent) == policy:
                return

            async def change() -> None:
                await self._standing.append(agent, _POLICY_EVENT, data)
                agent.inform(ContextMessage([text_block(_NOTICES[policy])], _SOURCE))

            await run_whole(change)

    def _policy(self, agent: Agent) -> ApprovalPolicy:
        from ..log.events import ApprovalPolicySet

        event = self._standing.last(agent, _POLICY_EVENT)
        return event.policy if isinstance(event, ApprovalPolicySet) else "ask"

    async def _decide(self, agent: Agent, request: ApprovalRequest) -> ApprovalOutcome:
        """Decides in the order of contract K15."""
        if request.signal.aborted:
            return "cancelled"
        if self._policy(agent) == "never":
            return "rejected"
        listeners = self._events.listeners(APPROVAL_REQUEST, agent)
        answer: ApprovalOutcome = "unavailable"
        if listeners:
            with anyio.CancelScope() as asking:
                unsubscribe = request.signal.subscribe(lambda _reason: asking.cancel())
                try:
                    answer = await _ask(listeners, request)
                finally:
                    unsubscribe()
        return "cancelled" if request.signal.aborted else answer


class _Question:
    """One question on record: asked once, and then decided exactly once, whoever fails or is cancelled (contract I12).

    Without a session it is nowhere on record.
    """

    __slots__ = ("_closed", "_id", "_request", "_seq", "_session")

    def __init__(self, agent: Agent, request: ApprovalRequest) -> None:
        self._session = agent.session
        self._request = request
        self._id = f"approval_{secrets.token_hex(_ID_BYTES)}"
        self._seq: int | None = None
        self._closed = False

    async def ask(self) -> None:
        session, request = self._session, self._request
        if session is None:
            return
        data: JsonObject = {"id": self._id, "toolName": request.tool_name}
        if request.call_id is not None:
            data["callId"] = request.call_id
        if request.reason is not None:
            data["reason"] = request.reason

        async def record() -> None:
            self._seq = await session.append("approval/asked", data)

        await run_whole(record)

    async def close(self, outcome: ApprovalOutcome) -> None:
        """Records the answer; nothing more once it has been tried, or when there is no question on record."""
        session, asked = self._session, self._seq
        if session is None or asked is None or self._closed:
            return
        self._closed = True
        data: JsonObject = {"id": self._id, "outcome": outcome}

        async def record() -> None:
            await session.append("approval/decided", data, cites=asked)

        await run_whole(record)

    async def abandon(self) -> None:
        """Closes a question whose asker does not wait any more; what fails is logged, for something is on its way out."""
        try:
            await self.close("cancelled")
        except Exception:
            _LOGGER.exception('the record of the approval of tool "%s" has no end', self._request.tool_name)


def _agent_in_turn(request: ApprovalRequest) -> Agent:
    agent = request.agent
    if isinstance(agent, Agent) and agent.in_turn:
        return agent
    raise ToolContextUnavailableError(
        f'tool "{request.tool_name}" requires approval, but no turn of {agent!r} is open: questions are put only while '
        "a batch of the agent executes (Agent.execute)"
    )


@contextmanager
def _on_record(request: ApprovalRequest) -> Iterator[None]:
    """Says of what goes wrong with the record only that: the rest is the host's business and not the model's."""
    try:
        yield
    except Exception as error:
        raise LogUnavailableError(
            f'tool "{request.tool_name}" requires approval, and its approval could not be recorded', reason="failed"
        ) from error


async def _nobody() -> ApprovalOutcome:
    return "unavailable"


async def _ask(listeners: Sequence[Listener], request: ApprovalRequest) -> ApprovalOutcome:
    """Returns the answer of the listeners, and `unavailable` with a warning when the one that failed was not caught."""
    failed: list[tuple[Exception, str]] = []

    def checked(listener: Listener) -> Listener:
        async def ask(_request: ApprovalRequest, next_: Callable[[], Awaitable[ApprovalOutcome]]) -> ApprovalOutcome:
            try:
                return await await_foreign(_answer(listener.function(request, next_)))
            except Exception as error:
                if not any(error is known for known, _name in failed):
                    failed.append((error, listener.name))
                raise

        return Listener(ask, listener.scope)

    try:
        chain = [checked(listener) for listener in listeners]
        outcome, _author = await run_waterfall(APPROVAL_REQUEST, chain, (request,), _nobody, None)
    except Exception as error:
        if not request.signal.aborted:  # else it is late, whatever it is
            name = next((name for known, name in failed if known is error), "?")
            _LOGGER.warning(
                'the "%s" listener %s failed, so nobody has answered for tool "%s" (call %s)',
                APPROVAL_REQUEST, name, request.tool_name, request.call_id, exc_info=error,
            )  # fmt: skip
        return "unavailable"
    return outcome


async def _answer(waiting: Any) -> ApprovalOutcome:
    """Awaits one listener, and checks what it answers.

    Raises:
        TypeError: it is not async, or its answer is none of the outcomes.
    """
    if not inspect.isawaitable(waiting):
        raise TypeError(f"it must be an async function; it returned {describe_answer(waiting)} at once")
    answer = await waiting
    outcome = _OUTCOMES.get(answer) if isinstance(answer, str) else None
    if outcome is None:
        close_stray(answer)
        raise TypeError(f"it must answer {', '.join(map(str, _OUTCOMES))}, not {describe_answer(answer)}")
    return outcome
