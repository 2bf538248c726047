"""One call of a client on its way: it runs by itself, and the requests of its client attend to it.

In the handshake era one request attends from the call to its result, and the server asks the client in between. In the
later one a request ends with the questions that are open, and another one comes with the answers; the program runs on
between the two. `Exchange` is the same for both.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, cast

import anyio
from mcp_types import CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from ...registry import SignalSource, Wake, thaw
from ..mcp import ElicitAnswer
from .questions import Question

if TYPE_CHECKING:
    from mcp_types import InputRequests, InputResponses

    from ...registry import JsonObject, Signal

__all__ = ["Exchange", "Report"]

Report = Callable[[float, str], Awaitable[None]]
"""Tells the client how far a call is: a number that grows, and what happens now."""

Ask = Callable[[Question], Awaitable[None]]
"""Puts a question to the client's user, and settles it."""

_MAX_WAITING: Final = 256
"""How many messages may wait for a client that reads slowly; then the oldest are left out."""

_GATHER_S: Final = 0.05
"""How long a request waits for further questions once there is one, so that the client gets them together."""


class Exchange:
    """One call, from when a client makes it until its result is there.

    Attributes:
        call_id: the call's id in the record.
        name: the tool.
        arguments: its arguments, as the client gave them.
        owner: whose it is.
        can_ask: whether the client can put questions to its user.
        token: what the client's further requests have to show.
        signal: fires when the call is given up.
        attended: whether a request of the client waits for it.
    """

    def __init__(self, owner: object, name: str, arguments: JsonObject, *, can_ask: bool) -> None:
        self.call_id = f"mcp_{secrets.token_hex(8)}"
        self.name = name
        self.arguments = arguments
        self.owner = owner
        self.can_ask = can_ask
        self.token = secrets.token_urlsafe(24)
        self.attended = False
        self._back = anyio.Event()
        self._source = SignalSource()
        self._result: CallToolResult | None = None
        self._questions: dict[str, Question] = {}
        self._numbered = 0
        self._progress: deque[tuple[int, str]] = deque(maxlen=_MAX_WAITING)
        self._told = 0
        self._wake = Wake()
        self._finished = anyio.Event()

    @property
    def signal(self) -> Signal:
        return self._source.signal

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        return self._result is not None

    @property
    def purpose(self) -> str | None:
        """What the program does, as the model has said."""
        said = self.arguments.get("description")
        return said if isinstance(said, str) else None

    def stop(self, reason: str) -> None:
        """Gives the call up; what has started of it still ends by itself."""
        self._source.abort(reason)

    def finish(self, result: CallToolResult) -> None:
        """Sets the result."""
        self._result = result
        self._finished.set()
        self._wake.change()

    async def finished(self) -> None:
        """Waits for the result."""
        await self._finished.wait()

    def tell(self, message: str) -> None:
        """Has the client told what happens now, if it wants to know."""
        self._told += 1
        self._progress.append((self._told, message))
        self._wake.change()

    def next_key(self) -> str:
        """Returns the key of the next question."""
        self._numbered += 1
        return f"question-{self._numbered}"

    async def ask(self, question: Question) -> Question:
        """Puts a question, and waits for its answer; it is taken back when the waiting is cancelled."""
        self._questions[question.key] = question
        self._wake.change()
        try:
            await question.wait()
        finally:
            del self._questions[question.key]
            question.withdraw()
            self._wake.change()
        return question

    async def client_is_back(self, seconds: float) -> bool:
        """Waits for a request that attends to the call, and says whether one came in time."""
        with anyio.move_on_after(seconds):
            await self._back.wait()
            return True
        return self.attended

    def forget_client(self) -> None:
        """Says that no further request is waited for."""
        self._back.set()

    async def attend(self, report: Report, ask: Ask | None) -> CallToolResult | InputRequiredResult:
        """Attends for one request of the client, and returns what answers it.

        Args:
            report: tells the client of the progress.
            ask: asks in the course of this request; when `None`, questions answer it.
        """
        self.attended = True
        self._back.set()
        for question in self._questions.values():
            question.sent = False  # a request that went away has taken its questions along
        answer: CallToolResult | InputRequiredResult | None = None
        try:
            async with anyio.create_task_group() as tasks:
                answer = await self._attend(report, ask, tasks.start_soon)
                tasks.cancel_scope.cancel()
        finally:
            self.attended = False
            self._back = anyio.Event()
        assert answer is not None  # nobody else cancels the group
        return answer

    async def _attend(
        self, report: Report, ask: Ask | None, start: Callable[..., object]
    ) -> CallToolResult | InputRequiredResult:
        while True:
            self._wake.look()
            fresh = [question for question in self._questions.values() if not question.sent and question.open]
            if self._progress:
                number, message = self._progress.popleft()
                await report(number, message)
            elif self._result is not None:
                return self._result
            elif fresh and ask is not None:
                for question in fresh:
                    question.sent = True
                    start(ask, question)
            elif fresh:
                await anyio.sleep(_GATHER_S)
                requests = self._requests()
                if requests:
                    return InputRequiredResult(input_requests=requests, request_state=self.token)
            else:
                await self._wake.wait()

    def _requests(self) -> InputRequests:
        requests: InputRequests = {}
        for question in self._questions.values():
            if question.open:
                question.sent = True
                form = ElicitRequestFormParams(message=question.message, requested_schema=dict(thaw(question.form)))  # type: ignore[arg-type]
                requests[question.key] = ElicitRequest(params=form)
        return requests

    def take_answers(self, responses: InputResponses) -> None:
        """Takes the answers that a further request has brought; those to questions that are not open are ignored."""
        for key, response in responses.items():
            question = self._questions.get(key)
            if question is not None and question.sent:
                settle(question, response)


def settle(question: Question, response: object) -> None:
    """Settles a question with what a client has answered; whatever is no answer to a form makes no choice."""
    if isinstance(response, ElicitResult):
        question.settle(ElicitAnswer(action=response.action, content=cast("JsonObject", response.content)))
    else:
        question.settle(ElicitAnswer(action="cancel"))
