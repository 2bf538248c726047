"""The example for LangGraph works, with LangChain's own test models in the place of a model."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import anyio
import ptc
import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.prebuilt import InjectedState, ToolRuntime
from langgraph.types import interrupt

pytestmark = pytest.mark.anyio

PICTURE = base64.b64encode(b"\x89PNG\xff\xfe").decode()


@pytest.fixture
def helpdesk(example: Callable[[str, str], ModuleType]) -> ModuleType:
    return example("langgraph", "helpdesk")


@pytest.fixture
def make_node(
    example: Callable[[str, str], ModuleType], host: ptc.Host, executor: ptc.PtcExecutor
) -> Callable[..., Any]:
    module = example("langgraph", "run_code_node")
    return lambda tools: module.RunCodeNode(tools, host=host, executor=executor)


@pytest.fixture
def run_graph(helpdesk: ModuleType, host: ptc.Host, executor: ptc.PtcExecutor) -> Callable[..., Any]:
    """Runs the helpdesk's graph with other tools and what a model says, and returns the messages."""

    async def run(tools: Sequence[Any], *said: AIMessage, **options: Any) -> list[AnyMessage]:
        model = helpdesk.PlayedAgain(responses=[*said, AIMessage("Done.")])
        graph = helpdesk.make_graph(model, list(tools), host, executor)
        config = {"configurable": {"thread_id": "test"}, **options}
        return (await graph.ainvoke({"messages": [HumanMessage("Go")]}, config))["messages"]

    return run


def program(code: str, call_id: str = "call_1") -> dict[str, Any]:
    arguments = {"code": code, "description": "Go on"}
    return {"name": "run_code", "args": arguments, "id": call_id, "type": "tool_call"}


def says(code: str) -> AIMessage:
    return AIMessage("", tool_calls=[program(code)])


def answers(messages: Sequence[AnyMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


async def events_of(host: ptc.Host, session: str) -> list[Any]:
    store: Any = host._store
    return list(await store.events(session))


@pytest.mark.parametrize(("typed", "left"), [("y\ny\n", [102]), ("y\nn\n", [102, 103]), ("\n\n", [101, 102, 103])])
def test_the_script_runs_without_a_model_and_asks(
    run_script: Callable[..., str], tmp_path: Path, typed: str, left: list[int]
) -> None:
    printed = run_script("langgraph/helpdesk.py", typed)
    assert 'close_ticket {"number": 101, "reason": "solved"} closes a ticket. Go on? [y/N]' in printed
    result = printed.partition("Tool Message")[2]
    assert [number for number in (101, 102, 103) if f'"number": {number}' in result] == left
    rejected = [number for number in (101, 103) if f"{number} stays open: the user rejected" in result]
    assert rejected == [number for number in left if number != 102]
    assert (tmp_path / "helpdesk.db").exists()


async def test_a_model_is_given_run_code_alone_and_told_of_the_tools_with_their_types(
    helpdesk: ModuleType, host: ptc.Host, executor: ptc.PtcExecutor
) -> None:
    given: list[Any] = []

    class Watched(helpdesk.PlayedAgain):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            given.append(tools)
            return super().bind_tools(tools, **kwargs)

        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            given.append(messages)
            return super()._generate(messages, *args, **kwargs)

    model = Watched(responses=[AIMessage("Nothing to do.")])
    graph = helpdesk.make_graph(model, helpdesk.make_tools(helpdesk.open_tickets()), host, executor)
    await graph.ainvoke({"messages": [HumanMessage("Hello")]}, {"configurable": {"thread_id": "test"}})
    tools, messages = given
    assert [one["function"]["name"] for one in tools] == ["run_code"]
    assert set(tools[0]["function"]["parameters"]["required"]) == {"code", "description"}
    assert isinstance(messages[0], SystemMessage)
    assert "async def list_tickets(self, args: ListTicketsArgs) -> list[int]:" in messages[0].content
    assert 'status: Literal["open", "closed"]' in messages[0].content


async def test_a_failed_program_is_an_answer_and_the_next_one_works(run_graph: Callable[..., Any]) -> None:
    @tool
    def look(number: int) -> int:
        """Look."""
        if number < 0:
            raise ToolException("below zero")
        return number + 1

    look.handle_tool_error = True  # a text that looks like a result, anywhere but in a program
    wrong = ["await tools.look(number=-1)", "await tools.look(number='x')", "return ("]
    messages = await run_graph([look], *[says(code) for code in wrong], says("return await tools.look(number=1)"))
    *failed, last = answers(messages)
    assert [one.status for one in failed] == ["error"] * 3
    assert "ToolCallError: below zero" in failed[0].content
    assert "invalid arguments" in failed[1].content
    assert "SyntaxError" in failed[2].content
    assert (last.status, last.content, last.name) == ("success", "2", "run_code")


async def test_every_call_of_a_message_is_answered_in_order(run_graph: Callable[..., Any]) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "dust"

    asked = AIMessage(
        "",
        tool_calls=[
            program("return 1", "a"),
            {"name": "look", "args": {}, "id": "b", "type": "tool_call"},
            program("return await tools.look()", "c"),
        ],
        invalid_tool_calls=[
            {"name": "run_code", "args": '{"code": ', "id": "d", "error": None, "type": "invalid_tool_call"}
        ],
    )
    answered = answers(await run_graph([look], asked))
    assert [one.tool_call_id for one in answered] == ["a", "b", "c", "d"]
    assert [one.status for one in answered] == ["success", "error", "success", "error"]
    assert "look" in answered[1].content
    assert answered[2].content == "dust"
    assert answered[3].content == 'Error: invalid arguments: "arguments" must be an object'


async def test_a_message_with_nothing_but_broken_calls_is_answered(run_graph: Callable[..., Any]) -> None:
    broken: Any = {"name": "run_code", "args": "{", "id": "a", "error": None, "type": "invalid_tool_call"}
    messages = await run_graph([], AIMessage("", invalid_tool_calls=[broken]))
    assert [one.status for one in answers(messages)] == ["error"]
    assert messages[-1].content == "Done."


async def test_a_thread_is_a_session_and_its_questions_are_turns(
    helpdesk: ModuleType, host: ptc.Host, executor: ptc.PtcExecutor
) -> None:
    first, second, third = (says(f"await tools.read_ticket(number={number})") for number in (101, 102, 103))
    model = helpdesk.PlayedAgain(responses=[first, second, AIMessage("One."), third, AIMessage("Two.")])
    graph = helpdesk.make_graph(model, helpdesk.make_tools(helpdesk.open_tickets()), host, executor)
    config: Any = {"configurable": {"thread_id": "morning"}}
    for _ in range(2):
        await graph.ainvoke({"messages": [HumanMessage("Go")]}, config)
    steps = [
        (one.data["turn"], one.data["step"]) for one in await events_of(host, "morning") if one.type == "tool/call"
    ]
    assert steps == [(1, 1), (1, 2), (2, 1)]


async def test_tools_run_below_the_node_for_callbacks(run_graph: Callable[..., Any]) -> None:
    class Trace(AsyncCallbackHandler):
        def __init__(self) -> None:
            self.names: dict[Any, str | None] = {}
            self.parents: dict[str, Any] = {}

        async def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, **rest: Any) -> None:
            self.names[run_id] = rest.get("name")

        async def on_tool_start(
            self, serialized: Any, input_str: str, *, parent_run_id: Any = None, **rest: Any
        ) -> None:
            self.parents[serialized["name"]] = parent_run_id

    @tool
    async def look() -> str:
        """Look."""
        return "dust"

    trace = Trace()
    await run_graph([look], says("await tools.look()"), callbacks=[trace])
    assert trace.names[trace.parents["look"]] == "tools"


async def test_images_of_tools_reach_the_model_after_the_answer(
    helpdesk: ModuleType, host: ptc.Host, executor: ptc.PtcExecutor, run_graph: Callable[..., Any]
) -> None:
    async def draw(_arguments: Any) -> str:
        return "a picture"

    image: Any = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
    host.tools.register(
        ptc.define_tool(
            name="draw",
            description="Draw.",
            parameters={},
            output={"type": "string"},
            execute=draw,
            render=lambda _arguments, _value: [image],
        )
    )
    messages = await run_graph([], says("return await tools.draw()"))
    answer, attached = messages[2:4]
    assert answer.content == "a picture"
    assert isinstance(attached, HumanMessage)
    [block] = [one for one in attached.content if isinstance(one, dict) and one["type"] == "image"]
    assert (block["base64"], block["mime_type"]) == (PICTURE, "image/png")


async def test_a_tool_that_needs_what_only_a_tool_node_has_is_refused(make_node: Callable[..., Any]) -> None:
    @tool
    def state(x: int, state: Annotated[dict[str, Any], InjectedState]) -> int:
        """Look at the state."""
        return x

    @tool
    def runtime(x: int, runtime: ToolRuntime) -> int:
        """Look at the runtime."""
        return x

    with pytest.raises(ValueError, match=r"tool 'state' takes \['state'\] from ToolNode; leave it with a ToolNode"):
        make_node([state])
    with pytest.raises(ValueError, match=r"tool 'runtime' takes \['runtime'\]"):
        make_node([runtime])


async def test_an_interrupt_inside_of_a_tool_is_a_failure_of_that_call(run_graph: Callable[..., Any]) -> None:
    @tool
    def ask() -> str:
        """Ask."""
        return interrupt("Go on?")

    messages = await run_graph(
        [ask], says("try:\n    await tools.ask()\nexcept ToolCallError:\n    print('not asked')")
    )
    assert [one.content for one in answers(messages)] == ["not asked"]


async def test_a_cancelled_graph_ends_the_program_and_the_tool(run_graph: Callable[..., Any], host: ptc.Host) -> None:
    started, ended = anyio.Event(), anyio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(run_graph, [wait], says("await tools.wait()"))
        await started.wait()
        group.cancel_scope.cancel()
    assert ended.is_set()
    types = [event.type for event in await events_of(host, "test")]
    assert types.count("tool/ptc-dispatch-start") == types.count("tool/ptc-dispatch") == 1
