"""Asking the person at the terminal whether a call may run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from ...registry import APPROVAL_REQUEST, approval_answer, approval_detail
from ...registry.scopes import IdentityMap
from .tty import TerminalUnavailableError, Tty

if TYPE_CHECKING:
    from ...registry import ApprovalOutcome, ApprovalRequest, Disposer, Next, ScopedTools

__all__ = ["TerminalApprover"]

_MARGIN: Final = "     ┆ "
_PROMPT: Final = (
    "ptc: y = yes, a = yes, and to all further calls of this tool, n = no, n WHY = no, and tell why{more}: "
)
_MORE: Final = ", v = view all of it"
_NO: Final = re.compile(r"(?:n|no)(?:[\s,;:.\-]+(?P<why>.*))?", re.IGNORECASE)


class TerminalApprover:
    """Listens to `approval/request`: asks on the terminal that the process was started from.

        approver = ptc.TerminalApprover()
        approver.install(host.tools)

    It shows the tool, the agent, why the policy asks, and the arguments, with everything escaped that would steer the
    terminal. Several questions are asked one after the other, in the order in which they came up, and what was typed
    before a question is no answer to it. A question that is given up meanwhile, because its program has ended or the
    time limit of approvals has passed, is withdrawn: it gives way to the next one.

    The person says yes, yes to this and every further call of that tool by that agent, no, or no and why: the reason
    is told to the model. Where nobody can be asked, the listeners after this one are; when they have no answer either,
    it is `unavailable`, with the detail that says why.

    Args:
        device: the terminal's device.
    """

    def __init__(self, *, device: str = "/dev/tty") -> None:
        self._device = device
        self._turn = anyio.Lock()
        self._allowed: IdentityMap[set[str]] = IdentityMap()

    def install(self, tools: ScopedTools, *, prepend: bool = False) -> Disposer:
        """Has the questions about the calls of a scope and those below it put here.

        Args:
            tools: the scope's context, for example `host.tools` or `agent.tools`.
            prepend: whether it is asked before the listeners that are there.

        Returns:
            what ends that.
        """
        return tools.on(APPROVAL_REQUEST, self, prepend=prepend)

    def problem(self) -> str | None:
        """Says why nobody can be asked now; `None` when somebody can."""
        try:
            with Tty(self._device):
                return None
        except TerminalUnavailableError as error:
            return str(error)

    async def __call__(self, request: ApprovalRequest, next_: Next[ApprovalOutcome], /) -> ApprovalOutcome:
        """Asks, and returns the answer."""
        async with self._turn:
            try:
                if request.tool_name in (self._allowed.get(request.agent) or ()):
                    return approval_answer("allowed-once", "on the terminal, with an earlier call of the tool")
                with Tty(self._device) as tty:
                    return await self._asked(tty, request)
            except TerminalUnavailableError as error:
                problem = str(error)
            except OSError:
                problem = "the terminal has hung up"
        answer = await next_()
        unexplained = answer == "unavailable" and approval_detail(answer) is None
        return approval_answer("unavailable", problem) if unexplained else answer

    async def _asked(self, tty: Tty, request: ApprovalRequest) -> ApprovalOutcome:
        """Puts the question, again and again until there is an answer.

        Raises:
            TerminalUnavailableError: the input has ended.
            OSError: the terminal has hung up.
        """
        try:
            cut = await self._show(tty, request, whole=False)
            while True:
                await tty.write(_PROMPT.format(more=_MORE if cut else ""))
                line = await tty.read_line()
                if line is None:
                    raise TerminalUnavailableError("the terminal gave no answer: its input has ended")
                if cut and line.strip().lower() in ("v", "view"):
                    cut = await self._show(tty, request, whole=True)
                    continue
                answer = self._answer(line.strip(), request)
                if answer is not None:
                    return answer
        except anyio.get_cancelled_exc_class():
            why = "the call was given up" if request.signal.aborted else "there was no answer in time"
            tty.add(f"\nptc: the question is withdrawn: {why}\n")
            raise

    async def _show(self, tty: Tty, request: ApprovalRequest, *, whole: bool) -> bool:
        """Shows the question, and returns whether something was left out."""
        from .question import question_text  # its libraries take their time to load

        margin = _MARGIN if tty.can_show(_MARGIN) else _MARGIN.replace("┆", ":")
        width = tty.width

        def text() -> tuple[str, bool]:
            return question_text(request, width, margin, whole=whole)

        # In a thread, because arguments may be long.
        shown, cut = await anyio.to_thread.run_sync(text, limiter=anyio.CapacityLimiter(1))
        tty.forget_input()
        await tty.write(shown)
        return cut

    def _answer(self, line: str, request: ApprovalRequest) -> ApprovalOutcome | None:
        """Returns what a line says; `None` when it is no answer."""
        match line.lower():
            case "y" | "yes":
                return approval_answer("allowed-once", "on the terminal")
            case "a" | "all":
                allowed = self._allowed.get(request.agent) or set()
                self._allowed.set(request.agent, allowed | {request.tool_name})
                return approval_answer("allowed-once", "on the terminal, with all further calls of the tool")
            case _:
                no = _NO.fullmatch(line)
        if no is None:
            return None
        why = (no["why"] or "").strip()
        return approval_answer("rejected", why) if why else "rejected"
