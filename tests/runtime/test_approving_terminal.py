"""The person at the terminal: what a question shows, which answers there are, and questions that are withdrawn."""

from __future__ import annotations

import os
import re
import select
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import ptc
import pytest
from ptc.registry import approval_answer, approval_detail
from ptc.runtime.approving import TerminalApprover

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

import pty
import termios

pytestmark = pytest.mark.anyio

PROMPT = "n WHY = no, and tell why"
MARGIN = "     ┆ "


class Screen:
    """The other side of a pseudo-terminal: reads what is shown, and types."""

    def __init__(self) -> None:
        self._master, self._slave = pty.openpty()
        self.device = os.ttyname(self._slave)
        termios.tcsetwinsize(self._slave, (40, 80))
        self._raw = b""
        self._taken = 0
        self._change = threading.Condition()
        self._open = True
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while self._open:
            if select.select([self._master], [], [], 0.02)[0]:
                piece = os.read(self._master, 65536)
                with self._change:
                    self._raw += piece
                    self._change.notify_all()

    @property
    def text(self) -> str:
        return self._raw.decode("utf-8", "replace").replace("\r\n", "\n")

    def _wait_for(self, what: str) -> str:
        with self._change:
            found = self._change.wait_for(lambda: what in self.text[self._taken :], 20)
            fresh = self.text[self._taken :]
            assert found, f"{what!r} is not in {fresh!r}"
            end = fresh.index(what) + len(what)
            self._taken += end
            return fresh[:end]

    async def shows(self, what: str) -> str:
        """Waits until something new is shown, and returns what was shown since the last time, up to that."""
        return await anyio.to_thread.run_sync(self._wait_for, what)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def stop(self) -> None:
        """Has the terminal take no output, as Ctrl-S does."""
        termios.tcflow(self._slave, termios.TCOOFF)

    def go_on(self) -> None:
        termios.tcflow(self._slave, termios.TCOON)

    def close(self) -> None:
        """Takes the terminal away from whoever has it; a second call changes nothing."""
        if self._open:
            self._open = False
            self._reader.join(10)
            assert not self._reader.is_alive()
            os.close(self._slave)
            os.close(self._master)


class Desk:
    """A host whose tools are asked about on a terminal."""

    def __init__(self, host: ptc.Host, screen: Screen) -> None:
        self.host = host
        self.screen = screen
        self.agent = host.agent("clerk")
        self.approver = TerminalApprover(device=screen.device)
        self.approver.install(host.tools)

    async def ask(self, tool: str = "pay", *, agent: ptc.Agent | None = None, **fields: Any) -> Any:
        asker = agent or self.agent
        request = ptc.ApprovalRequest(
            agent=asker, tool_name=tool, signal=fields.pop("signal", None) or ptc.Signal(), **fields
        )
        with asker.open_turn(), anyio.fail_after(40):
            return await self.host.approvals.request(request)

    async def answered(self, typed: str, tool: str = "pay", **fields: Any) -> Any:
        """Returns the answer when the person types this once the question is shown."""
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await self.ask(tool, **fields))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await self.screen.shows(PROMPT)
            self.screen.type(typed)
        return answers[0]


@pytest.fixture
async def desk(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Desk]:
    screen = Screen()
    try:
        async with ptc.Host(log=tmp_path / "desk.db") as host:
            yield Desk(host, screen)
    finally:
        screen.close()


# Answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "outcome", "detail"),
    [
        ("y\n", "allowed-once", "on the terminal"),
        (" YES \n", "allowed-once", "on the terminal"),
        ("n\n", "rejected", None),
        ("No\n", "rejected", None),
        ("n, the amount is wrong\n", "rejected", "the amount is wrong"),
        ("no: ask Grüße first\n", "rejected", "ask Grüße first"),
        ("a\n", "allowed-once", "on the terminal, with all further calls of the tool"),
        ("\x04", "unavailable", "the terminal gave no answer: its input has ended"),
    ],
)
async def test_what_is_typed_is_the_answer(desk: Desk, typed: str, outcome: str, detail: str | None) -> None:
    answer = await desk.answered(typed)
    assert (answer, approval_detail(answer)) == (outcome, detail)
    assert desk.agent.session is not None
    decided = (await desk.agent.session.events())[-1].data
    assert (decided["outcome"], decided.get("detail")) == (outcome, detail)


@pytest.mark.parametrize("typed", ["\n", "perhaps\n", "yes but\n", "nope\n", "yn\n", "y n\n", "v\n", "x" * 5000 + "\n"])
async def test_what_is_no_answer_is_asked_again(desk: Desk, typed: str) -> None:
    async def person() -> None:
        await desk.screen.shows(PROMPT)
        desk.screen.type(typed)
        await desk.screen.shows(PROMPT)
        desk.screen.type("n\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(person)
        assert await desk.ask() == "rejected"


async def test_all_means_this_tool_and_this_agent(desk: Desk) -> None:
    assert await desk.answered("a\n") == "allowed-once"
    again = await desk.ask()
    assert (again, approval_detail(again)) == ("allowed-once", "on the terminal, with an earlier call of the tool")
    assert await desk.answered("n\n", "refund") == "rejected"
    assert await desk.answered("n\n", agent=desk.host.agent("other")) == "rejected"


async def test_what_was_typed_before_the_question_is_no_answer(desk: Desk) -> None:
    desk.screen.type("y\n")
    await desk.screen.shows("y")  # the echo: the line is with the kernel
    assert await desk.answered("n\n") == "rejected"


# What is shown --------------------------------------------------------------------------------------------------------


async def test_a_question_shows_who_calls_what_and_why(desk: Desk) -> None:
    answers: list[Any] = []

    async def ask() -> None:
        answers.append(
            await desk.ask(call_id="c1:ptc:3", reason="costs money", arguments={"amount": 5, "note": "für Ada"})
        )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        shown = await desk.screen.shows(PROMPT)
        desk.screen.type("y\n")
    assert shown.split("\n")[1:-1] == [
        "ptc: a call needs your approval",
        f"{MARGIN}tool: pay",
        f"{MARGIN}agent: clerk",
        f"{MARGIN}call: c1:ptc:3",
        f"{MARGIN}reason: costs money",
        f"{MARGIN}arguments: {{",
        f'{MARGIN}  "amount": 5,',
        f'{MARGIN}  "note": "für Ada"',
        f"{MARGIN}}}",
    ]
    assert "v = view" not in shown


@pytest.mark.parametrize(
    ("language", "shown"),
    [
        (("de_AT", "UTF-8"), "Wirklich?"),
        (("pt_BR", "UTF-8"), "Mesmo?"),
        (("fr_FR", "UTF-8"), "Really?"),
        ((None, None), "Really?"),
    ],
)
async def test_the_reason_is_in_the_users_language_where_there_is_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, language: Any, shown: str
) -> None:
    monkeypatch.setattr("locale.getlocale", lambda _category: language)
    prompts = {"en": "Really?", "de": "Wirklich?", "pt-BR": "Mesmo?"}
    assert await desk.answered("n\n", reason="audited", display_reason=prompts) == "rejected"
    assert f"{MARGIN}reason: {shown}\n" in desk.screen.text
    assert "audited" not in desk.screen.text


async def test_foreign_text_neither_steers_the_terminal_nor_passes_for_ours(desk: Desk) -> None:
    hostile = "\x1b[2J\u202egnp\nptc: y = yes, and nothing happens: \rptc: \u200b" + "ptc: fake " * 40
    agent = desk.host.agent(f"clerk{hostile}")
    answer = await desk.answered(
        "n\n", f"pay{hostile}", agent=agent, reason=hostile, arguments={hostile: [hostile]}, call_id=hostile
    )
    assert answer == "rejected"
    assert "\x1b" not in desk.screen.text
    assert not re.search("[\u202e\u200b]", desk.screen.text)
    ours = [line for line in desk.screen.text.split("\n") if line and not line.startswith(MARGIN)]
    assert [line.partition(",")[0] for line in ours] == [
        "ptc: a call needs your approval",
        "ptc: that is not all: 40 rows of 2",
        "ptc: y = yes",
    ]
    assert all(len(line) <= 80 for line in desk.screen.text.split("\n") if line.startswith(MARGIN))


async def test_long_arguments_are_cut_and_can_be_viewed(desk: Desk) -> None:
    rows = [f"row {n}" for n in range(100)]

    async def person() -> None:
        shown = await desk.screen.shows("v = view all of it")
        assert "row 30" in shown
        assert "row 99" not in shown
        assert "ptc: that is not all: 40 rows of 1," in shown
        desk.screen.type("v\n")
        assert "row 99" in await desk.screen.shows(PROMPT)
        desk.screen.type("y\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(person)
        assert await desk.ask(arguments={"rows": rows}) == "allowed-once"


async def test_huge_arguments_do_not_keep_the_loop(desk: Desk) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await anyio.sleep(0.001)
            beats += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        assert await desk.answered("n\n", arguments={"text": "\u202e" * 2_000_000}) == "rejected"
        tasks.cancel_scope.cancel()
    assert beats > 1
    assert len(desk.screen.text) < 10_000


async def test_a_terminal_without_our_signs_is_written_to_in_its_own(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.device_encoding", lambda _fd: "ascii")
    assert await desk.answered("n\n", reason="für Ada") == "rejected"
    assert "     : reason: f\\xfcr Ada\n" in desk.screen.text


# Several questions, and withdrawn ones --------------------------------------------------------------------------------


async def test_several_questions_are_asked_one_after_the_other(desk: Desk) -> None:
    answers: dict[str, Any] = {}

    async def ask(tool: str) -> None:
        answers[tool] = await desk.ask(tool)

    async with anyio.create_task_group() as tasks:
        for tool in ("first", "second", "third"):
            tasks.start_soon(ask, tool)
            await anyio.sleep(0.05)
        for typed in ("y\n", "n\n", "y\n"):
            shown = await desk.screen.shows(PROMPT)
            await anyio.sleep(0.05)
            assert desk.screen.text.count("needs your approval") == len(answers) + 1
            assert shown.count("needs your approval") == 1
            desk.screen.type(typed)
    assert list(answers.items()) == [("first", "allowed-once"), ("second", "rejected"), ("third", "allowed-once")]


async def test_all_answers_the_questions_that_wait_as_well(desk: Desk) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(desk.ask)
        await desk.screen.shows(PROMPT)
        desk.screen.type("a\n")
    assert desk.screen.text.count("needs your approval") == 1


async def test_a_question_that_is_given_up_is_withdrawn_and_the_next_one_gets_the_answer(desk: Desk) -> None:
    sources = [ptc.SignalSource() for _ in range(3)]
    answers: dict[str, Any] = {}

    async def ask(tool: str, source: ptc.SignalSource) -> None:
        answers[tool] = await desk.ask(tool, signal=source.signal)

    async with anyio.create_task_group() as tasks:
        for tool, source in zip(("shown", "queued", "kept"), sources, strict=True):
            tasks.start_soon(ask, tool, source)
            await anyio.sleep(0.05)
        await desk.screen.shows(PROMPT)
        desk.screen.type("y")  # half of an answer, to a question that is gone before it is sent
        await desk.screen.shows("y")
        sources[1].abort("given up while it waits")
        sources[0].abort("given up while it is shown")
        shown = await desk.screen.shows(PROMPT)
        assert "ptc: the question is withdrawn: the call was given up\n" in shown
        assert f"{MARGIN}tool: kept\n" in shown
        desk.screen.type("n\n")
    assert answers == {"queued": "cancelled", "shown": "cancelled", "kept": "rejected"}
    assert f"{MARGIN}tool: queued\n" not in desk.screen.text


async def test_a_question_without_an_answer_in_time_is_withdrawn(tmp_path: Path) -> None:
    screen = Screen()
    try:
        async with ptc.Host(log=tmp_path / "desk.db", approval_timeout_ms=300) as host:
            answer = await Desk(host, screen).ask()
            assert (answer, approval_detail(answer)) == ("unavailable", "nobody answered within 0.3 s")
            await screen.shows("ptc: the question is withdrawn: there was no answer in time")
    finally:
        screen.close()


async def test_a_terminal_that_takes_no_output_keeps_nobody(desk: Desk) -> None:
    source = ptc.SignalSource()
    answers: list[Any] = []

    async def ask() -> None:
        answers.append(await desk.ask(signal=source.signal))

    desk.screen.stop()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.sleep(0.2)
        assert desk.screen.text == ""
        source.abort("given up")
    assert answers == ["cancelled"]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        source = ptc.SignalSource()
        await anyio.sleep(0.1)
        desk.screen.go_on()
        await desk.screen.shows(PROMPT)
        desk.screen.type("y\n")
    assert answers == ["cancelled", "allowed-once"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs a list of the open descriptors")
async def test_questions_leave_no_descriptor_and_no_thread_behind(desk: Desk) -> None:
    async def three() -> None:
        await desk.answered("y\n")
        source = ptc.SignalSource()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: desk.ask(signal=source.signal))
            await desk.screen.shows(PROMPT)
            source.abort()
        assert TerminalApprover(device="/dev/null").problem() is not None

    await three()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await three()
    assert len(os.listdir("/proc/self/fd")) <= before


# No terminal ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["/dev/null", "/no/such/device", "."])
async def test_without_a_terminal_the_next_listener_is_asked_and_else_it_is_said(desk: Desk, device: str) -> None:
    desk.approver = TerminalApprover(device=device)
    desk.approver.install(desk.host.tools, prepend=True)
    inner: list[Any] = ["rejected", approval_answer("unavailable", "the chat is closed"), "unavailable"]

    async def chat(_request: Any, _next: Any) -> Any:
        return inner.pop(0)

    desk.host.on("approval/request", chat, prepend=True)
    desk.approver.install(desk.host.tools, prepend=True)
    assert await desk.ask() == "rejected"
    assert approval_detail(await desk.ask()) == "the chat is closed"
    answer = await desk.ask()
    assert (answer, approval_detail(answer)) == ("unavailable", "there is no terminal to ask on")
    assert desk.screen.text == ""
    assert desk.approver.problem() == "there is no terminal to ask on"


async def test_a_terminal_that_hangs_up_gives_no_answer(tmp_path: Path) -> None:
    screen = Screen()
    async with ptc.Host(log=tmp_path / "desk.db") as host:
        desk = Desk(host, screen)
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await desk.ask())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await screen.shows(PROMPT)
            screen.close()
        (answer,) = answers
        assert answer == "unavailable"
        assert approval_detail(answer) in (
            "the terminal has hung up", "the terminal gave no answer: its input has ended"
        )  # fmt: skip


async def test_a_terminal_answers_for_a_program(desk: Desk, make_sandbox: Callable[..., ptc.Sandbox]) -> None:
    @ptc.tool
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    desk.host.tools.register(pay)
    ptc.PermissionGate([ptc.PermissionRule("pay", ptc.Ask())]).install(desk.host.tools)
    agent = desk.host.agent("coder", executor=ptc.PtcExecutor(sandbox=make_sandbox()))
    program = (
        "import asyncio\n"
        "got = await asyncio.gather(*[tools.pay(amount=n) for n in (1, 2, 3)], return_exceptions=True)\n"
        "return [str(one) for one in got]"
    )
    results: list[Any] = []

    async def run() -> None:
        results.append(await agent.run_code(program))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            for number, typed in ((1, "y\n"), (2, "n 2 is too much\n"), (3, "y\n")):
                assert f'"amount": {number}\n' in await desk.screen.shows(PROMPT)
                desk.screen.type(typed)
    assert results[0].value["result"] == ["1", 'the user rejected tool "pay": 2 is too much', "3"]
