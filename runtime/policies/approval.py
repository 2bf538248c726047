"""The shipped approval service: puts a policy's question to whoever listens, with question and answer on record.

asked -> decide -> decided      contract K14
decide: given up meanwhile -> cancelled; policy "never" -> rejected; else the listeners' answer (contract K15)
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio

from ...registry import APPROVAL_REQUEST, ContextMessage, ToolContextUnavailableError, text_block
from ...registry.events import describe_answer, run_waterfall
from ...registry.pipeline.shelter import await_policy
from ..agent import Agent
from .record import StandingEvents, log_needed, run_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...registry import ApprovalOutcome, ApprovalRequest, ApprovalService, EventBus, JsonObject
    from ...registry.events import Listener

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
_ANSWERS: Final = ((str,), ", ".join(map(str, _OUTCOMES)))
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
        service: answers what no listener has answered; nobody does when `None`.
    """

    def __init__(self, events: EventBus, service: ApprovalService | None = None) -> None:
        events.declare(APPROVAL_REQUEST)
        self._events = events
        self._service = service
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
            with log_needed(f'tool "{request.tool_name}" requires approval, and the question could not be recorded'):
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
        answer: ApprovalOutcome = "unavailable"
        with anyio.CancelScope() as asking:
            unsubscribe = request.signal.subscribe(lambda _reason: asking.cancel())
            try:
                answer = await _ask(listeners, request, self._service)
            finally:
                unsubscribe()
        return "cancelled" if request.signal.aborted else answer


class _Question:
    """One question on record: asked once, and then decided once, whoever fails or is cancelled (contract I12).

    Without a session it is nowhere on record.
    """

    __slots__ = ("_id", "_request", "_seq", "_session")

    def __init__(self, agent: Agent, request: ApprovalRequest) -> None:
        self._session = agent.session
        self._request = request
        self._id = f"approval_{secrets.token_hex(_ID_BYTES)}"
        self._seq: int | None = None

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
        """Records the answer, if the question is on record."""
        session, asked = self._session, self._seq
        if session is None or asked is None:
            return

        async def record() -> None:
            await session.append("approval/decided", {"id": self._id, "outcome": outcome}, cites=asked)

        await run_whole(record)

    async def abandon(self) -> None:
        """Closes a question whose asker does not wait any more; logs what fails, for something is on its way out."""
        try:
            with anyio.CancelScope(shield=True):
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


async def _ask(
    listeners: Sequence[Listener], request: ApprovalRequest, service: ApprovalService | None
) -> ApprovalOutcome:
    """Returns the answer of the listeners; `unavailable`, with a warning, when they failed or it is none."""

    async def otherwise() -> ApprovalOutcome:
        return "unavailable" if service is None else await service.request(request)

    try:
        answer, author = await await_policy(
            run_waterfall(APPROVAL_REQUEST, listeners, (request,), otherwise, _ANSWERS)  # a text at least
        )
        outcome = _OUTCOMES.get(answer)
        if outcome is None:
            who = "the approval service" if author is None else f'the "{APPROVAL_REQUEST}" listener {author.name}'
            raise TypeError(  # noqa: TRY301 - told below like every other failure
                f"{who} must answer {_ANSWERS[1]}, not {describe_answer(answer)}"
            )
    except Exception as error:
        if not request.signal.aborted:  # else it is late, whatever it is
            _LOGGER.warning(
                'a listener of "%s" failed, so nobody has answered for tool "%s" (call %s)',
                APPROVAL_REQUEST, request.tool_name, request.call_id, exc_info=error,
            )  # fmt: skip
        return "unavailable"
    return outcome
