"""Questions in the middle of a call: to the user of the client, in either era, and what happens without an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import ptc
import pytest
from mcp import Client, MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult, InputRequiredResult, TextContent
from ptc.runtime.config import ApprovalSettings, Config
from ptc.runtime.mcp import ElicitAnswer, ElicitRequest

from .conftest import Serving, run_code

pytestmark = pytest.mark.anyio

ASKS = Config(rules=(ptc.PermissionRule("delete", ptc.Ask("deletes for good")),))
SAFE = "try:\n    return await tools.delete(id=3)\nexcept ToolCallError as error:\n    return str(error)"
YES = ElicitResult(action="accept", content={"approve": True})


@ptc.tool(concurrency_safe=True)
async def delete(id: int) -> str:
    """Delete something."""
    return f"deleted {id}"


class User:
    """A client's user, who gives one answer to whatever is asked."""

    def __init__(self, answer: ElicitResult = YES) -> None:
        self.answer = answer
        self.asked: list[ElicitRequestFormParams] = []

    async def __call__(self, _context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        return self.answer


async def test_the_user_is_asked_and_a_yes_lets_the_call_run(serving: Serving, era: str) -> None:
    user = User()
    async with serving(delete, config=ASKS) as stage:
        async with Client(stage.service.server, mode=era, elicitation_callback=user) as client:
            result = await run_code(client, SAFE, "Clean \x1b[2Jup")
        store: ptc.EventStore = stage.host._store  # type: ignore[assignment]
        events = await store.events((await store.sessions())[0].id)

    assert result.content == [TextContent(text="deleted 3")]
    (params,) = user.asked
    assert params.message.splitlines() == [
        "Allow the call of delete?",
        "Why you are asked: deletes for good",
        'Arguments: {"id":3}',
        "The program that makes it: Clean \\x1b[2Jup",
    ]
    assert user.asked[0].requested_schema["required"] == ["approve"]
    assert user.asked[0].requested_schema["properties"]["approve"]["type"] == "boolean"
    decided = [event.data["outcome"] for event in events if event.type == "approval/decided"]
    assert decided == ["allowed-once"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ElicitResult(action="decline"), 'the user rejected tool "delete"'),
        (ElicitResult(action="cancel"), 'approval for tool "delete" was cancelled'),
        (ElicitResult(action="accept", content={"approve": False}), 'the user rejected tool "delete"'),
        (ElicitResult(action="accept", content={"approve": "yes"}), 'the user rejected tool "delete"'),
        (ElicitResult(action="accept", content={}), 'the user rejected tool "delete"'),
        (ElicitResult(action="accept"), 'the user rejected tool "delete"'),
    ],
)
async def test_what_is_no_clear_yes_denies_the_call(
    serving: Serving, era: str, answer: ElicitResult, told: str
) -> None:
    async with (
        serving(delete, config=ASKS) as stage,
        Client(stage.service.server, mode=era, elicitation_callback=User(answer)) as client,
    ):
        result = await run_code(client, SAFE)

    assert result.content == [TextContent(text=told)]


async def test_a_client_that_cannot_ask_has_the_call_denied_and_is_told_why(serving: Serving, era: str) -> None:
    async with serving(delete, config=ASKS) as stage, Client(stage.service.server, mode=era) as client:
        result = await run_code(client, SAFE)

    assert result.content == [
        TextContent(
            text='tool "delete" requires approval, but the client cannot ask its user (it does not support elicitation)'
        )
    ]


async def test_no_answer_in_time_denies_the_call_and_says_so(serving: Serving, era: str) -> None:
    given_up = anyio.Event()

    async def asleep(_context: Any, _params: Any) -> ElicitResult:
        try:
            await anyio.sleep(1.5 if era == "auto" else 60)
        except anyio.get_cancelled_exc_class():
            given_up.set()
            raise
        return YES

    config = Config(rules=ASKS.rules, approvals=ApprovalSettings(timeout_ms=200))
    async with (
        serving(delete, config=config) as stage,
        Client(stage.service.server, mode=era, elicitation_callback=asleep) as client,
    ):
        result = await run_code(client, SAFE)
        if era == "legacy":  # the question is taken back, as that era can
            await given_up.wait()

    assert isinstance(result.content[0], TextContent)
    assert 'tool "delete" requires approval, but' in result.content[0].text
    assert "in time" in result.content[0].text or "within" in result.content[0].text


async def test_nobody_is_asked_where_the_configuration_says_so(serving: Serving, era: str) -> None:
    user = User()
    config = Config(rules=ASKS.rules, approvals=ApprovalSettings(channel="none"))
    async with (
        serving(delete, config=config) as stage,
        Client(stage.service.server, mode=era, elicitation_callback=user) as client,
    ):
        result = await run_code(client, SAFE)

    assert isinstance(result.content[0], TextContent)
    assert "no approval channel is available" in result.content[0].text
    assert user.asked == []


async def test_the_other_calls_of_the_program_go_on_meanwhile(serving: Serving, era: str) -> None:
    other_ran = anyio.Event()

    @ptc.tool(concurrency_safe=True)
    async def other() -> str:
        """Run at any time."""
        other_ran.set()
        return "ran"

    async def user(_context: Any, _params: Any) -> ElicitResult:
        with anyio.fail_after(20):
            await other_ran.wait()
        return YES

    code = (
        "import asyncio\n"
        "asked = asyncio.create_task(tools.delete(id=1))\n"
        "await asyncio.sleep(0.05)\n"
        "ran = await tools.other()\n"
        "return [ran, await asked]"
    )
    async with (
        serving(delete, other, config=ASKS) as stage,
        Client(stage.service.server, mode=era, elicitation_callback=user) as client,
    ):
        result = await run_code(client, code)

    assert result.content == [TextContent(text='[\n  "ran",\n  "deleted 1"\n]')]


async def test_several_questions_are_each_answered_for_themselves(serving: Serving, era: str) -> None:
    async def user(_context: Any, params: Any) -> ElicitResult:
        return YES if '{"id":2}' in params.message else ElicitResult(action="decline")

    code = (
        "import asyncio\n"
        "done = await asyncio.gather(*[tools.delete(id=n) for n in (1, 2, 3)], return_exceptions=True)\n"
        "return [str(one) for one in done]"
    )
    async with (
        serving(delete, config=ASKS) as stage,
        Client(stage.service.server, mode=era, elicitation_callback=user) as client,
    ):
        result = await run_code(client, code)

    no = 'the user rejected tool "delete"'
    assert isinstance(result.content[0], TextContent)
    assert json.loads(result.content[0].text) == [no, "deleted 2", no]


async def test_a_call_that_is_given_up_takes_its_question_back(serving: Serving, era: str) -> None:
    asked, ended = anyio.Event(), anyio.Event()

    async def user(_context: Any, _params: Any) -> ElicitResult:
        asked.set()
        await anyio.sleep_forever()
        return YES

    async with serving(delete, config=ASKS) as stage:

        @stage.host.on("tools/result")
        def watch(call: ptc.ToolExecution, result: ptc.ToolExecutionResult) -> None:
            if call.name == "delete":
                assert result.is_error
                ended.set()

        async with Client(stage.service.server, mode=era, elicitation_callback=user) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_code, client, SAFE)
                await asked.wait()
                tasks.cancel_scope.cancel()
            if era == "legacy":  # in the other era nothing is under way while the user thinks
                with anyio.fail_after(20):
                    await ended.wait()


async def test_the_question_of_a_server_goes_to_the_user_of_the_call(serving: Serving, era: str) -> None:
    form = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    user = User(ElicitResult(action="accept", content={"size": 4}))
    answers: list[ElicitAnswer] = []
    elicit: Callable[[ElicitRequest], Any]

    @ptc.tool(concurrency_safe=True)
    async def order(run: ptc.ToolRunContext) -> str:
        """Order something whose size the server asks for."""
        request = ElicitRequest(server="shop", message="Which size?\x07\nSay it", schema=form, calls=(run.exec,))  # type: ignore[arg-type]
        answers.append(await elicit(request))
        return answers[-1].action

    async with serving(order) as stage:
        elicit = stage.service.elicit
        async with Client(stage.service.server, mode=era, elicitation_callback=user) as client:
            first = await run_code(client, "return await tools.order()")
        async with Client(stage.service.server, mode=era) as client:
            second = await run_code(client, "return await tools.order()")

    assert user.asked[0].message == "The MCP server shop asks: Which size?\\x07\nSay it"
    assert user.asked[0].requested_schema == form
    assert answers[0].content == {"size": 4}
    assert first.content == [TextContent(text="accept")]
    assert second.content == [TextContent(text="cancel")]


class Rounds:
    """A client of the later era that makes its requests by hand."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, code: str = SAFE, **more: Any) -> Any:
        arguments = {"code": code, "description": "Try it"}
        return await self.client.session.call_tool("run_code", arguments, allow_input_required=True, **more)


async def test_a_request_with_answers_goes_on_with_the_program_that_waits(serving: Serving) -> None:
    user = User()
    async with (
        serving(delete, config=ASKS) as stage,
        Client(stage.service.server, mode="auto", elicitation_callback=user) as client,
    ):
        rounds = Rounds(client)
        asked = await rounds.call()
        assert isinstance(asked, InputRequiredResult)
        assert asked.input_requests is not None
        (key,) = asked.input_requests
        again = await rounds.call(request_state=asked.request_state)  # without an answer the question stays
        assert isinstance(again, InputRequiredResult)
        assert list(again.input_requests or ()) == [key]
        stray = {"question-99": YES, key: YES}
        done = await rounds.call(request_state=asked.request_state, input_responses=stray)

    assert done.content == [TextContent(text="deleted 3")]


async def test_a_state_that_was_not_given_for_this_call_is_refused(serving: Serving) -> None:
    async with (
        serving(delete, config=ASKS) as stage,
        Client(stage.service.server, mode="auto", elicitation_callback=User()) as client,
    ):
        rounds = Rounds(client)
        asked = await rounds.call()
        with pytest.raises(MCPError, match="not known"):
            await rounds.call(request_state="made up")
        with pytest.raises(MCPError, match="another call"):
            await rounds.call("return 'something else'", request_state=asked.request_state)
        (key,) = asked.input_requests
        done = await rounds.call(request_state=asked.request_state, input_responses={key: YES})
        with pytest.raises(MCPError, match="not known"):
            await rounds.call(request_state=asked.request_state, input_responses={key: YES})

    assert done.content == [TextContent(text="deleted 3")]


async def test_a_client_that_does_not_come_back_has_its_program_stopped(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptc.runtime.serve.service._GRACE_S", 0.1)
    config = Config(rules=ASKS.rules, approvals=ApprovalSettings(timeout_ms=100))
    stopped = anyio.Event()
    reasons: list[object] = []

    @ptc.tool
    async def wait(run: ptc.ToolRunContext) -> None:
        """Wait until told otherwise."""
        reasons.append(await run.signal.wait())
        stopped.set()

    async with (
        serving(delete, wait, config=config) as stage,
        Client(stage.service.server, mode="auto", elicitation_callback=User()) as client,
    ):
        code = "try:\n    await tools.delete(id=3)\nexcept ToolCallError:\n    await tools.wait()"
        asked = await Rounds(client).call(code)
        assert isinstance(asked, InputRequiredResult)
        with anyio.fail_after(20):
            await stopped.wait()

    assert reasons == ["the client did not come back with an answer"]
