"""Approvals inside programs: a question pauses its own call alone, has a time limit, and its answer is on record."""

from __future__ import annotations

import copy
import logging
import pickle
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.registry import ToolExecutionInput, approval_answer, approval_detail

pytestmark = pytest.mark.anyio

ASKED, DECIDED = "approval/asked", "approval/decided"
START, SETTLE = "tool/ptc-dispatch-start", "tool/ptc-dispatch"


class Office:
    """A host whose `pay` and `peek` need approval, and which a program's own calls answer for.

    `pay` has the lane to itself; `peek` may overlap with others, like `look`, which needs no approval. `wait_for` comes
    back when so many questions stand, and `answer` answers the oldest one.
    """

    def __init__(self, host: ptc.Host, sandbox: ptc.Sandbox, most: int = 10) -> None:
        self.host = host
        self.agent = host.agent("office", executor=ptc.PtcExecutor(sandbox=sandbox, max_parallel_sub_calls=most))
        self.bodies: list[str] = []
        self.withdrawn: list[str] = []
        self.standing: list[tuple[str, Any]] = []
        self.most_standing = 0
        self._change = anyio.Event()
        self._register()

    def _register(self) -> None:
        @ptc.tool
        async def pay(amount: int) -> str:
            """Pay."""
            self.bodies.append(f"begin pay {amount}")
            await anyio.sleep(0.02)
            self.bodies.append(f"end pay {amount}")
            return f"paid {amount}"

        @ptc.tool(concurrency_safe=True)
        async def peek(n: int) -> str:
            """Look at something secret."""
            self.bodies.append(f"peek {n}")
            return f"secret {n}"

        @ptc.tool(concurrency_safe=True)
        async def look(n: int) -> str:
            """Look at something."""
            self.bodies.append(f"look {n}")
            return f"seen {n}"

        @ptc.tool
        async def write(text: str) -> str:
            """Write something; nothing else may run meanwhile."""
            self.bodies.append(f"write {text}")
            return text

        @ptc.tool(concurrency_safe=True)
        async def answer(outcome: str) -> None:
            """Answer the oldest question."""
            await self.until(1)
            _tool, reply = self.standing.pop(0)
            reply(outcome)

        @ptc.tool(concurrency_safe=True)
        async def wait_for(questions: int) -> list[str]:
            """Wait until so many questions stand."""
            await self.until(questions)
            return [tool for tool, _reply in self.standing]

        for tool in (pay, peek, look, write, answer, wait_for):
            self.host.tools.register(tool)

        @self.host.on("tools/pre-execute")
        async def gate(call: ptc.ToolExecution, next: Any) -> ptc.PreToolDecision:
            return ptc.Ask(f"{call.name} needs a yes") if call.name in ("pay", "peek") else await next()

        @self.host.on("approval/request")
        async def channel(request: ptc.ApprovalRequest, _next: Any) -> Any:
            answered, given = anyio.Event(), []

            def reply(outcome: Any) -> None:
                given.append(outcome)
                answered.set()

            entry = (f"{request.tool_name} {request.arguments}", reply)
            self.standing.append(entry)
            self.most_standing = max(self.most_standing, len(self.standing))
            self._change.set()
            try:
                await answered.wait()
            except anyio.get_cancelled_exc_class():
                self.standing.remove(entry)
                self.withdrawn.append(entry[0])
                raise
            return given[0]

    async def until(self, questions: int) -> None:
        while len(self.standing) < questions:
            self._change = anyio.Event()
            await self._change.wait()

    async def run(self, program: str, **options: Any) -> ptc.ToolExecutionResult:
        with anyio.fail_after(60):
            return await self.agent.run_code(f"import asyncio\n{program}", **options)

    async def value(self, program: str) -> Any:
        result = await self.run(program)
        assert not result.is_error, result.error.message
        return dict(result.value)["result"]  # type: ignore[call-overload]

    async def events(self, *types: str) -> list[tuple[str, Any]]:
        assert self.agent.session is not None
        return [
            (event.type, event.data) for event in await self.agent.session.events() if not types or event.type in types
        ]

    async def settled(self) -> list[tuple[str, str]]:
        """Returns each sub-call that ended, in order, with `ok` or the code of its error."""
        return [
            (data["name"], data["error"]["code"] if data["isError"] else "ok")
            for _type, data in await self.events(SETTLE)
            if data["name"] not in ("answer", "wait_for")
        ]


@pytest.fixture
async def office(anyio_backend: str, tmp_path: Path, make_sandbox: Callable[..., ptc.Sandbox]) -> AsyncIterator[Office]:
    async with ptc.Host(log=tmp_path / "office.db") as host:
        yield Office(host, make_sandbox(compute_ms=20_000, max_wall_ms=60_000))


# The rest of the program goes on --------------------------------------------------------------------------------------


@pytest.mark.contract("E20", "E22", "C20")
@pytest.mark.parametrize(("call", "value"), [("pay(amount=5)", "paid 5"), ("peek(n=5)", "secret 5")])
async def test_a_question_pauses_its_own_call_and_nothing_else(office: Office, call: str, value: str) -> None:
    got = await office.value(
        f"asked = asyncio.create_task(tools.{call})\n"
        "await asyncio.sleep(0)\n"
        "await tools.wait_for(questions=1)\n"
        "got = [await tools.look(n=1), await tools.write(text='w'), await tools.look(n=2)]\n"
        "assert not asked.done()\n"
        "await tools.answer(outcome='allowed-once')\n"
        "return [*got, await asked]"
    )
    assert got == ["seen 1", "w", "seen 2", value]
    assert office.bodies[:3] == ["look 1", "write w", "look 2"]
    name = call.partition("(")[0]
    assert await office.settled() == [("look", "ok"), ("write", "ok"), ("look", "ok"), (name, "ok")]
    kinds = [
        kind
        for kind, data in await office.events()
        if kind in (ASKED, DECIDED) or (kind in (START, SETTLE) and data["name"] == name)
    ]
    assert kinds == [START, ASKED, DECIDED, SETTLE]


@pytest.mark.contract("E22")
async def test_what_ran_before_the_question_comes_back_while_it_stands(office: Office) -> None:
    @ptc.tool(concurrency_safe=True)
    async def slow() -> str:
        """Come back once somebody was asked."""
        await office.until(1)
        return "slow"

    office.host.tools.register(slow)
    assert await office.value(
        "slow = asyncio.create_task(tools.slow())\n"
        "await asyncio.sleep(0)\n"
        "secret = asyncio.create_task(tools.peek(n=1))\n"
        "first = await slow\n"
        "await tools.answer(outcome='allowed-once')\n"
        "return [first, await secret]"
    ) == ["slow", "secret 1"]


@pytest.mark.contract("E18", "E21")
async def test_an_exclusive_call_has_the_lane_to_itself_once_it_may_run(office: Office) -> None:
    @ptc.tool(concurrency_safe=True)
    async def long() -> None:
        """Take a while."""
        office.bodies.append("begin long")
        await anyio.sleep(0.05)
        office.bodies.append("end long")

    office.host.tools.register(long)
    await office.value(
        "paid = asyncio.create_task(tools.pay(amount=1))\n"
        "await asyncio.sleep(0)\n"
        "await tools.wait_for(questions=1)\n"
        "others = [asyncio.create_task(tools.long()), asyncio.create_task(tools.answer(outcome='allowed-once')),\n"
        "    asyncio.create_task(tools.look(n=1))]\n"
        "await paid\n"
        "await asyncio.gather(*others)\n"
        "return 1"
    )
    begin, end = office.bodies.index("begin pay 1"), office.bodies.index("end pay 1")
    assert end == begin + 1
    assert office.bodies.index("end long") < begin


async def test_a_call_that_was_refused_does_not_wait_for_those_that_run(office: Office) -> None:
    release = anyio.Event()

    @ptc.tool(concurrency_safe=True)
    async def stuck() -> None:
        """Wait until released."""
        await release.wait()

    @ptc.tool(concurrency_safe=True)
    async def opener() -> None:
        """Release what is stuck."""
        release.set()

    for tool in (stuck, opener):
        office.host.tools.register(tool)
    # `opener` could not start if the refused call, which is exclusive, were the next one to start.
    got = await office.value(
        "paid = asyncio.create_task(tools.pay(amount=1))\n"
        "await asyncio.sleep(0)\n"
        "await tools.wait_for(questions=1)\n"
        "stuck = asyncio.create_task(tools.stuck())\n"
        "await asyncio.gather(stuck, tools.answer(outcome='rejected'), tools.opener())\n"
        "try:\n"
        "    await paid\n"
        "except ToolCallError as error:\n"
        "    return str(error)"
    )
    assert got == 'the user rejected tool "pay"'
    assert ("pay", "APPROVAL_REJECTED") in await office.settled()


async def test_questions_stand_side_by_side_and_may_be_answered_in_any_order(office: Office) -> None:
    got = await office.value(
        "calls = [asyncio.create_task(tools.peek(n=n)) for n in range(3)]\n"
        "await asyncio.sleep(0)\n"
        "standing = await tools.wait_for(questions=3)\n"
        "await tools.answer(outcome='rejected')\n"
        "await tools.answer(outcome='allowed-once')\n"
        "await tools.answer(outcome='unavailable')\n"
        "ended = await asyncio.gather(*calls, return_exceptions=True)\n"
        "return [standing, [str(one) for one in ended]]"
    )
    assert got[0] == ["peek {'n': 0}", "peek {'n': 1}", "peek {'n': 2}"]
    assert got[1] == [
        'the user rejected tool "peek"',
        "secret 1",
        'tool "peek" requires approval, but no approval channel is available',
    ]


async def test_no_more_questions_stand_than_calls_may_run_and_the_others_are_never_put_when_the_run_ends(
    tmp_path: Path, make_sandbox: Callable[..., ptc.Sandbox]
) -> None:
    async with ptc.Host(log=tmp_path / "office.db") as host:
        office = Office(host, make_sandbox(), most=2)
        value = await office.value(
            "calls = [asyncio.create_task(tools.peek(n=n)) for n in range(5)]\n"
            "await asyncio.sleep(0)\n"
            "await tools.wait_for(questions=2)\n"
            "await tools.answer(outcome='allowed-once')\n"
            "first = await calls[0]\n"
            "await asyncio.sleep(0)\n"
            "await tools.wait_for(questions=2)\n"
            "return [first, await tools.look(n=9)]"
        )
        assert value == ["secret 0", "seen 9"]
        assert office.most_standing == 2
        assert office.bodies == ["peek 0", "look 9"]
        assert sorted(office.withdrawn) == ["peek {'n': 1}", "peek {'n': 2}"]
        asked = [data["callId"].rpartition(":")[2] for _kind, data in await office.events(ASKED)]
        assert asked == ["1", "2", "3"]
        assert len(await office.events(DECIDED)) == 3
        started = {data["subCallId"] for _kind, data in await office.events(START)}
        assert started == {data["subCallId"] for _kind, data in await office.events(SETTLE)}


@pytest.mark.contract("C20", "C26")
async def test_guards_have_the_last_word_and_are_asked_when_the_call_goes_on(office: Office) -> None:
    seen = []

    def guard(call: ptc.ToolExecution) -> str | None:
        if call.name == "pay":
            seen.append(len(office.bodies))
            return "the till is closed"
        return None

    office.host.tools.guard(guard)
    got = await office.value(
        "paid = asyncio.create_task(tools.pay(amount=1))\n"
        "await asyncio.sleep(0)\n"
        "await tools.wait_for(questions=1)\n"
        "await tools.look(n=1)\n"
        "await tools.answer(outcome='allowed-once')\n"
        "try:\n"
        "    await paid\n"
        "except ToolCallError as error:\n"
        "    return str(error)"
    )
    assert got == "the till is closed"
    assert seen == [1]
    (settle,) = [data for _kind, data in await office.events(SETTLE) if data["name"] == "pay"]
    assert (settle["decision"]["outcome"], settle["decision"]["approval"]) == ("deny", "allowed-once")


async def test_an_approval_service_that_fails_refuses_the_call_alone(office: Office, monkeypatch: Any) -> None:
    async def broken(_request: Any) -> Any:
        raise LookupError("nobody is there")

    monkeypatch.setattr(office.host.approvals, "request", broken)
    got = await office.value(
        "try:\n"
        "    await tools.pay(amount=1)\n"
        "except ToolCallError as error:\n"
        "    return [str(error), await tools.look(n=1)]"
    )
    assert got == ["nobody is there", "seen 1"]
    assert office.bodies == ["look 1"]


# The end of the run ---------------------------------------------------------------------------------------------------


@pytest.mark.contract("E30", "E31", "E32", "C22")
async def test_a_program_that_ends_withdraws_its_question(office: Office) -> None:
    value = await office.value(
        "asyncio.create_task(tools.pay(amount=1))\n"
        "await asyncio.sleep(0)\n"
        "await tools.wait_for(questions=1)\n"
        "return 'over'"
    )
    assert value == "over"
    assert office.withdrawn == ["pay {'amount': 1}"]
    assert office.bodies == []
    assert await office.settled() == [("pay", "ABORTED_BEFORE_DISPATCH")]
    assert [data["outcome"] for _kind, data in await office.events(DECIDED)] == ["cancelled"]


@pytest.mark.contract("E31", "C22")
async def test_a_caller_that_gives_up_withdraws_the_question(office: Office) -> None:
    source = ptc.SignalSource()

    async def give_up() -> None:
        await office.until(1)
        source.abort("changed my mind")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(give_up)
        result = await office.run("await tools.pay(amount=1)", signal=source.signal)
    assert result.is_error
    assert office.withdrawn == ["pay {'amount': 1}"]
    assert office.bodies == []
    assert await office.settled() == [("pay", "ABORTED_BEFORE_DISPATCH")]


@pytest.mark.contract("E31", "I12")
async def test_a_host_whose_task_is_cancelled_leaves_no_question_open(office: Office) -> None:
    with anyio.CancelScope() as scope:

        async def give_up() -> None:
            await office.until(1)
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_up)
            await office.run("await tools.pay(amount=1)")
    assert scope.cancelled_caught
    assert office.bodies == []
    assert office.withdrawn == ["pay {'amount': 1}"]
    assert [data["outcome"] for _kind, data in await office.events(DECIDED)] == ["cancelled"]
    assert await office.settled() == [("pay", "ABORTED_BEFORE_DISPATCH")]


async def test_a_yes_that_comes_with_the_end_of_the_run_runs_nothing(office: Office) -> None:
    source = ptc.SignalSource()

    async def both() -> None:
        await office.until(1)
        office.standing[0][1]("allowed-once")
        source.abort("too late")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(both)
        await office.run("await tools.pay(amount=1)", signal=source.signal)
    assert office.bodies == []
    assert await office.settled() == [("pay", "ABORTED_BEFORE_DISPATCH")]


# The time limit -------------------------------------------------------------------------------------------------------


@pytest.mark.contract("K15", "C20", "I12")
async def test_a_question_without_an_answer_in_time_is_denied_and_record_and_program_say_so(
    tmp_path: Path, make_sandbox: Callable[..., ptc.Sandbox]
) -> None:
    async with ptc.Host(log=tmp_path / "office.db", approval_timeout_ms=150) as host:
        office = Office(host, make_sandbox())
        got = await office.value(
            "paid = asyncio.create_task(tools.pay(amount=1))\n"
            "await asyncio.sleep(0)\n"
            "seen = await tools.look(n=1)\n"
            "try:\n"
            "    await paid\n"
            "except ToolCallError as error:\n"
            "    return [seen, str(error), await tools.look(n=2)]"
        )
        assert got == ["seen 1", 'tool "pay" requires approval, but nobody answered within 0.15 s', "seen 2"]
        assert office.withdrawn == ["pay {'amount': 1}"]
        assert office.bodies == ["look 1", "look 2"]
        assert ("pay", "APPROVAL_UNAVAILABLE") in await office.settled()
        ((_kind, decided),) = await office.events(DECIDED)
        assert decided["outcome"] == "unavailable"
        assert decided["detail"] == "nobody answered within 0.15 s"


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan"), True, "5"])
def test_a_time_limit_is_a_number_of_milliseconds(limit: Any) -> None:
    with pytest.raises(ValueError, match="must be a finite number of milliseconds greater than 0"):
        ptc.Host(approval_timeout_ms=limit)


@pytest.fixture
async def put(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Any]:
    """Puts a question to a listener, with a time limit of 100 ms, and returns the answer and its record."""
    async with ptc.Host(log=tmp_path / "limit.db", approval_timeout_ms=100) as host:
        agent = host.agent("asker")
        assert agent.session is not None

        async def put(listener: Any, **options: Any) -> tuple[Any, dict[str, Any]]:
            request = ptc.ApprovalRequest(agent=agent, tool_name="pay", signal=ptc.Signal(), **options)
            with agent.open_turn(), agent.tools.on("approval/request", listener), anyio.fail_after(30):
                outcome = await host.approvals.request(request)
            last = (await agent.session.events())[-1]
            assert last.type == DECIDED
            return outcome, last.data

        yield put


async def test_an_answer_in_time_counts(put: Any) -> None:
    async def quick(_request: Any, _next: Any) -> str:
        await anyio.sleep(0.001)
        return "allowed-once"

    outcome, record = await put(quick)
    assert outcome == record["outcome"] == "allowed-once"
    assert "detail" not in record


async def test_what_a_listener_says_after_its_time_does_not_count(put: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def stubborn(_request: Any, _next: Any) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            return "allowed-once"  # noqa: B012 - the mistake under test

    async def failing(_request: Any, _next: Any) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            raise LookupError("the chat is down")

    async def busy(_request: Any, _next: Any) -> str:
        time.sleep(0.15)  # noqa: ASYNC251 - it keeps the loop busy on purpose
        return "allowed-once"

    for listener in (stubborn, failing, busy):
        outcome, record = await put(listener)
        assert (outcome, approval_detail(outcome)) == ("unavailable", "nobody answered within 0.1 s"), listener
        assert (record["outcome"], record["detail"]) == ("unavailable", "nobody answered within 0.1 s")
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


# Answers that say more ------------------------------------------------------------------------------------------------


@pytest.mark.contract("C20", "C21", "I12")
@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("rejected", 'the user rejected tool "pay": ask Ada first'),
        ("cancelled", 'approval for tool "pay" was cancelled: ask Ada first'),
        ("unavailable", 'tool "pay" requires approval, but ask Ada first'),
        ("allowed-once", None),
    ],
)
async def test_the_detail_of_an_answer_is_on_record_and_told_where_the_call_is_not_allowed(
    office: Office, outcome: Any, told: str | None
) -> None:
    async def channel(_request: Any, _next: Any) -> Any:
        return approval_answer(outcome, " ask Ada first ")

    office.host.on("approval/request", channel, prepend=True)
    got = await office.value(
        "try:\n    return await tools.pay(amount=1)\nexcept ToolCallError as error:\n    return str(error)"
    )
    assert got == (told or "paid 1")
    ((_kind, decided),) = await office.events(DECIDED)
    assert (decided["outcome"], decided["detail"]) == (outcome, "ask Ada first")
    ((_kind, settle),) = await office.events(SETTLE)
    assert settle["decision"]["approval"] == outcome


async def test_an_answer_that_says_more_equals_the_plain_one() -> None:
    answer = approval_answer("rejected", "why")
    assert answer == "rejected"
    assert hash(answer) == hash("rejected")
    assert {"rejected": 1}[answer] == 1
    for other in (copy.copy(answer), copy.deepcopy(answer), pickle.loads(pickle.dumps(answer))):
        assert (other, approval_detail(other)) == ("rejected", "why")
    assert approval_detail("rejected") is None
    assert approval_detail(None) is None


def test_a_detail_is_checked_and_cut() -> None:
    assert approval_detail(approval_answer("rejected", "x" * 5000)) == "x" * 999 + "…"
    with pytest.raises(ValueError, match="blank"):
        approval_answer("rejected", " \n")
    with pytest.raises(ValueError, match="lone surrogate at 1"):
        approval_answer("rejected", "a\ud800")
    with pytest.raises(TypeError, match="detail must be a string, not NoneType"):
        approval_answer("rejected", None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="outcome must be a string, not bool"):
        approval_answer(True, "why")  # type: ignore[arg-type]


async def test_an_outcome_that_is_none_stays_none_with_a_detail(put: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def channel(_request: Any, _next: Any) -> Any:
        return approval_answer("maybe", "who knows")  # type: ignore[arg-type]

    outcome, record = await put(channel)
    assert (outcome, record["outcome"], "detail" in record) == ("unavailable", "unavailable", False)
    assert "must answer allowed-once, rejected, cancelled, unavailable" in caplog.text


@pytest.mark.contract("C19")
async def test_whoever_is_asked_sees_the_arguments_frozen(office: Office) -> None:
    seen: list[ptc.ApprovalRequest] = []

    async def channel(request: ptc.ApprovalRequest, _next: Any) -> Any:
        seen.append(request)
        return "rejected"

    office.host.on("approval/request", channel, prepend=True)
    await office.run("await tools.pay(amount=7)")
    (request,) = seen
    assert request.arguments == {"amount": 7}
    with pytest.raises(TypeError):
        request.arguments["amount"] = 8  # type: ignore[index,call-overload]


# The phases of a call whose question is left --------------------------------------------------------------------------


@pytest.mark.contract("C68", "C1")
async def test_a_scheduler_can_put_the_question_apart_and_only_once(tmp_path: Path) -> None:
    async with ptc.Host(log=tmp_path / "phases.db") as host:
        agent = host.agent("caller")
        order: list[str] = []

        @ptc.tool
        async def pay() -> None:
            """Pay."""
            order.append("body")

        host.tools.register(pay)
        ptc.PermissionGate([ptc.PermissionRule("pay", ptc.Ask())]).install(host.tools)
        host.tools.guard(lambda _call: order.append("guard"))

        @host.on("approval/request")
        async def yes(_request: Any, _next: Any) -> Any:
            order.append("asked")
            return "allowed-once"

        made = host.pipeline.call(ToolExecutionInput(call_id="c", name="pay", arguments={}, agent=agent))
        for too_early in (made.go_on, made.dispatch, made.ask):
            with pytest.raises(RuntimeError, match="captured"):
                await _await(too_early())
        with agent.open_turn():
            await made.prepare(ask=False)
            assert (made.has_question, made.needs_dispatch, made.granted, order) == (True, False, False, [])
            with pytest.raises(RuntimeError, match="questioned"):
                made.go_on()
            await made.ask()
            assert (made.has_question, made.needs_dispatch, made.granted, order) == (False, False, True, ["asked"])
            with pytest.raises(RuntimeError, match="answered"):
                await made.ask()
            made.go_on()
            assert (made.needs_dispatch, order) == (True, ["asked", "guard"])
            await made.dispatch()
            assert not (await made.finish()).is_error
        assert order == ["asked", "guard", "body"]
        assert made.decision_record() == {"outcome": "allow", "by": made.decided_by, "approval": "allowed-once"}


async def _await(made: Any) -> None:
    if made is not None:
        await made
