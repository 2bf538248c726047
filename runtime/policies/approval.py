"""The shipped approval service: puts a policy's question to whoever listens, with question and answer on record.

asked -> decide -> decided      contract K14
decide: given up meanwhile -> cancelled; policy "never" -> rejected; else the listeners' answer (contract K15),
        and unavailable when it does not come in time
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio

from ...registry import (
    APPROVAL_REQUEST,
    ContextMessage,
    ToolContextUnavailableError,
    approval_answer,
    text_block,
)
from ...registry.events import describe_answer, run_waterfall
from ...registry.pipeline.shelter import await_policy
from ...registry.scopes import IdentityMap
from ..agent import Agent
from .question import OUTCOMES, Question
from .record import StandingEvents, log_needed, run_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...registry import ApprovalOutcome, ApprovalRequest, ApprovalService, EventBus, JsonObject
    from ...registry.events import Listener

__all__ = ["ApprovalPolicy", "Approvals", "checked_policy", "checked_source"]

_MILLISECONDS: Final = 1000

ApprovalPolicy: TypeAlias = Literal["ask", "never"]
"""Whether questions are put to anybody: `ask` does that, `never` rejects whatever needs approval."""

_LOGGER: Final = logging.getLogger("ptc.runtime")
_POLICIES: Final[dict[object, ApprovalPolicy]] = {"ask": "ask", "never": "never"}
_ANSWERS: Final = ((str,), ", ".join(map(str, OUTCOMES)))
_POLICY_EVENT: Final = "approval/policy"
_SOURCE: Final[JsonObject] = {"kind": "plugin", "plugin": "approval"}
_NOTICES: Final[dict[ApprovalPolicy, str]] = {
    "ask": 'The approval policy is now "ask": a tool call that needs approval is put to a person first.',
    "never": 'The approval policy is now "never": a tool call that needs approval is rejected, and nobody is asked.',
}


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

    A listener that cannot ask, or that has more to tell than yes or no, answers with `approval_answer`.

    Args:
        events: the listeners of the registry; `approval/request` is declared there.
        service: answers what no listener has answered; nobody does when `None`.
        timeout_ms: milliseconds that a question may stay without an answer, from when it is put to the listeners;
            no limit when `None`. After that the listener is cancelled like one whose call was given up, and the
            outcome is `unavailable` with the detail that nobody answered in time, for record and model.

    Attributes:
        timeout_ms: that limit.

    Raises:
        ValueError: the limit is no finite number greater than 0.
    """

    def __init__(
        self, events: EventBus, service: ApprovalService | None = None, *, timeout_ms: float | None = None
    ) -> None:
        events.declare(APPROVAL_REQUEST)
        self._events = events
        self._service = service
        self.timeout_ms: Final = _checked_limit(timeout_ms)
        self._standing = StandingEvents(_POLICY_EVENT)
        self._locks: IdentityMap[anyio.Lock] = IdentityMap()

    async def request(self, request: ApprovalRequest) -> ApprovalOutcome:
        """Asks, and returns the answer (contract K14, K15).

        A listener gets no answer in once the request's signal has fired: it is cancelled, awaited, and what it says
        then is discarded. A listener that fails or answers nonsense has the outcome `unavailable` and a warning.

        Raises:
            ToolContextUnavailableError: no turn of the agent is open; nothing is recorded.
            LogUnavailableError: question or answer could not be recorded; the cause is the log's own error.
        """
        agent = _agent_in_turn(request)
        question = Question(agent, request)
        try:
            # One after the other, and nobody comes between this and the listeners: they are asked in the order in which
            # the questions came up.
            async with self._putting(agent):
                with log_needed(
                    f'tool "{request.tool_name}" requires approval, and the question could not be recorded'
                ):
                    await self._standing.load(agent)
                    await question.ask()
            outcome = await self._decide(agent, request)
        except BaseException:
            await question.abandon()
            raise
        with log_needed(f'tool "{request.tool_name}" requires approval, and the answer could not be recorded'):
            await question.close(outcome)
        return outcome

    async def policy(self, agent: Agent) -> ApprovalPolicy:
        """Returns the agent's policy: what its session says last, and `ask` when it says nothing.

        Raises:
            LogUnavailableError: the session cannot be read.
            ValueError: the session has a policy that this version does not know.
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
            await self._standing.load(agent)
            known = self._standing.last(agent, _POLICY_EVENT)
            if ("ask" if known is None else known.get("policy")) == policy:
                return

            async def change() -> None:
                await self._standing.append(agent, _POLICY_EVENT, data)
                agent.inform(ContextMessage([text_block(_NOTICES[policy])], _SOURCE))

            await run_whole(change)

    def _putting(self, agent: Agent) -> anyio.Lock:
        lock = self._locks.get(agent)
        if lock is None:
            lock = anyio.Lock()
            self._locks.set(agent, lock)
        return lock

    def _policy(self, agent: Agent) -> ApprovalPolicy:
        known = self._standing.last(agent, _POLICY_EVENT)
        return "ask" if known is None else checked_policy(known.get("policy"))

    async def _decide(self, agent: Agent, request: ApprovalRequest) -> ApprovalOutcome:
        """Decides in the order of contract K15."""
        if request.signal.aborted:
            return "cancelled"
        if self._policy(agent) == "never":
            return "rejected"
        listeners = self._events.listeners(APPROVAL_REQUEST, agent)
        limit = math.inf if self.timeout_ms is None else self.timeout_ms / _MILLISECONDS
        deadline = anyio.current_time() + limit
        answer: ApprovalOutcome = "unavailable"
        with anyio.CancelScope(deadline=deadline) as asking:
            unsubscribe = request.signal.subscribe(lambda _reason: asking.cancel())
            try:
                answer = await _ask(
                    listeners,
                    request,
                    self._service,
                    lambda: anyio.current_time() >= deadline or request.signal.aborted,
                )
            finally:
                unsubscribe()
        if request.signal.aborted:
            return "cancelled"
        if anyio.current_time() >= deadline:  # also when a listener that kept the loop busy has answered since
            return approval_answer("unavailable", f"nobody answered within {limit:g} s")
        return answer


def _agent_in_turn(request: ApprovalRequest) -> Agent:
    agent = request.agent
    if isinstance(agent, Agent) and agent.in_turn:
        return agent
    raise ToolContextUnavailableError(
        f'tool "{request.tool_name}" requires approval, but no turn of {agent!r} is open: questions are put only while '
        "a batch of the agent executes (Agent.execute)"
    )


def _checked_limit(timeout_ms: object) -> float | None:
    if timeout_ms is None:
        return None
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int | float) or not 0 < timeout_ms < math.inf:
        raise ValueError(
            f"the time limit of approvals must be a finite number of milliseconds greater than 0, not {timeout_ms!r}"
        )
    return timeout_ms


async def _ask(
    listeners: Sequence[Listener],
    request: ApprovalRequest,
    service: ApprovalService | None,
    late: Callable[[], bool],
) -> ApprovalOutcome:
    """Returns the answer of the listeners; `unavailable`, with a warning, when they failed or it is none."""

    async def otherwise() -> ApprovalOutcome:
        return "unavailable" if service is None else await service.request(request)

    try:
        answer, author = await await_policy(
            run_waterfall(APPROVAL_REQUEST, listeners, (request,), otherwise, _ANSWERS)  # a text at least
        )
        if OUTCOMES.get(answer) is None:
            who = "the approval service" if author is None else f'the "{APPROVAL_REQUEST}" listener {author.name}'
            raise TypeError(  # noqa: TRY301 - told below like every other failure
                f"{who} must answer {_ANSWERS[1]}, not {describe_answer(answer)}"
            )
    except Exception as error:
        if not late():  # else it does not matter, whatever it is
            _LOGGER.warning(
                'a listener of "%s" failed, so nobody has answered for tool "%s" (call %s)',
                APPROVAL_REQUEST, request.tool_name, request.call_id, exc_info=error,
            )  # fmt: skip
        return "unavailable"
    return answer
