"""What the user of a client is asked in the middle of a call: whether it may run, or what a server wants to know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from ...registry import Missing, to_json_text
from ...registry.approval import approval_answer
from ..cli.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...registry import ApprovalOutcome, ApprovalRequest, JsonObject
    from ..mcp import ElicitAnswer

__all__ = [
    "Question",
    "approval_outcome",
    "approval_question",
    "cannot_ask",
    "plain",
    "server_question",
]

_APPROVE: Final = "approve"
_FORM: Final[JsonObject] = {
    "type": "object",
    "properties": {
        _APPROVE: {
            "type": "boolean",
            "title": "Allow this call",
            "description": "The call runs, once, only if this is set.",
            "default": False,
        }
    },
    "required": [_APPROVE],
}
_MAX_ARGUMENTS: Final = 1_000
_MAX_REASON: Final = 500
_MAX_MESSAGE: Final = 2_000


class Question:
    """One question, from when it is put until it is answered or taken back.

    Attributes:
        key: tells it from the other questions of its exchange.
        message: what the user reads.
        form: the schema of the answer.
        sent: whether the client has been asked.
        answer: the answer, once there is one.
    """

    def __init__(self, key: str, message: str, form: JsonObject) -> None:
        self.key = key
        self.message = message
        self.form = form
        self.sent = False
        self.answer: ElicitAnswer | None = None
        self._ended = anyio.Event()
        self._withdraw: Callable[[], None] | None = None

    @property
    def open(self) -> bool:
        """Whether somebody still waits for the answer."""
        return not self._ended.is_set()

    def settle(self, answer: ElicitAnswer) -> None:
        """Gives the answer; the first one counts."""
        if self.open:
            self.answer = answer
            self._ended.set()

    def fail(self) -> None:
        """Says that the client could not ask its user after all."""
        if self.open:
            self._ended.set()

    def on_withdrawn(self, withdraw: Callable[[], None]) -> None:
        """Has `withdraw` called when nobody waits for the answer any more."""
        self._withdraw = withdraw

    def withdraw(self) -> None:
        """Says that nobody waits any more; a client that is asking is told to stop."""
        if self.open:
            self._ended.set()
            if self._withdraw is not None:
                self._withdraw()

    async def wait(self) -> None:
        """Waits for the answer, or until it is clear that there will be none."""
        await self._ended.wait()


def plain(text: str, limit: int) -> str:
    """Returns foreign text so that it can stand in a line of ours: nothing in it steers a screen, and it has an end."""
    cut = text if len(text) <= limit else f"{text[:limit]}…"
    return visible(cut).plain


def approval_question(key: str, request: ApprovalRequest, purpose: str | None) -> Question:
    """Returns the question whether a call may run.

    Args:
        key: the question's key.
        request: what the policy asks; the arguments are shown.
        purpose: what the program that makes the call does, as the model has said.
    """
    lines = [f"Allow the call of {plain(request.tool_name, 200)}?"]
    reason = request.reason if request.display_reason is None else request.display_reason["en"]
    if reason:
        lines.append(f"Why you are asked: {plain(reason, _MAX_REASON)}")
    if not isinstance(request.arguments, Missing):
        lines.append(f"Arguments: {plain(to_json_text(request.arguments), _MAX_ARGUMENTS)}")
    if purpose:
        lines.append(f"The program that makes it: {plain(purpose, _MAX_REASON)}")
    return Question(key, "\n".join(lines), _FORM)


def approval_outcome(question: Question) -> ApprovalOutcome:
    """Returns what an answered question means for the call: whatever is no clear yes denies it."""
    answer = question.answer
    if answer is None:
        return approval_answer("unavailable", "the client could not ask its user")
    if answer.action == "cancel":
        return "cancelled"
    approved = answer.action == "accept" and answer.content is not None and answer.content.get(_APPROVE) is True
    return "allowed-once" if approved else "rejected"


def cannot_ask() -> ApprovalOutcome:
    """Returns the answer for a client that cannot ask anybody."""
    return approval_answer("unavailable", "the client cannot ask its user (it does not support elicitation)")


def server_question(key: str, server: str, message: str, form: JsonObject) -> Question:
    """Returns the question of an MCP server whose tool is being called."""
    said = "\n".join(plain(line, _MAX_MESSAGE) for line in message[:_MAX_MESSAGE].split("\n"))
    return Question(key, f"The MCP server {plain(server, 200)} asks: {said}", form)
