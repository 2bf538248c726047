"""The cards of an agent: the definition that it executes, `run_code`, and the same out of the record (H5, H11, E8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, Self

import anyio
import ptc
import pytest
from ptc.registry import ActivationContext, ScopeKey, from_json_text, present_call, present_result, text_block
from ptc.sandbox.seam import BindingCall, JsonText

DONE = {"content": [{"type": "text", "text": "done"}], "isError": False}


class Scripted:
    """A sandbox whose program is a function of the test: `async (call) -> None`."""

    language: Literal["python"] = "python"
    isolation: Literal["wasm", "process"] = "process"
    guarantees: Any = None

    def __init__(self, program: Callable[[Callable[..., Awaitable[Any]]], Awaitable[None]] | None = None) -> None:
        self._program = program

    async def run(self, request: ptc.SandboxRequest) -> ptc.SandboxResult:
        (namespace,) = request.namespaces

        async def call(name: str, arguments: Any) -> Any:
            done = anyio.Event()
            deferred: Any = namespace.members[name].function(BindingCall(namespace.name, name, arguments, 1))
            deferred.add_done_callback(lambda _deferred: done.set())
            await done.wait()
            value = deferred.result()
            return from_json_text(value.text) if isinstance(value, JsonText) else value

        assert self._program is not None
        await self._program(call)
        return ptc.SandboxResult(logs=["ran"])

    async def prepare(self) -> None:
        """Nothing is to be made ready."""

    async def aclose(self) -> None:
        """Nothing is held."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def titled(title: str, name: str = "edit") -> ptc.ToolDefinition:
    """Makes a tool whose cards say which one it is."""

    @ptc.tool(
        name=name,
        present_call=lambda _arguments: ptc.GenericCallCard(title=title),
        present_result=lambda _arguments, _result: ptc.GenericResultCard(title=title),
    )
    async def edit() -> str:
        return title

    return edit


def titles(agent: ptc.Agent, name: str = "edit") -> tuple[Any, Any]:
    return agent.present_call(name, {}).title, agent.present_result(name, {}, DONE).title


@pytest.mark.contract("H11")
@pytest.mark.anyio
async def test_the_card_is_that_of_the_definition_which_the_agent_executes() -> None:
    async with ptc.Host() as host:
        host.tools.register(titled("everybody's"))
        parent, other = host.agent("parent"), host.agent("other")
        child = host.agent("child", parent=parent)
        parent.tools.register(titled("the parent's"))
        child.tools.register(titled("the child's"))
        for agent, title in ((other, "everybody's"), (parent, "the parent's"), (child, "the child's")):
            batch = await agent.execute([ptc.ToolCall(name="edit")])
            assert batch.results[0].result.content == [text_block(title)]
            assert titles(agent) == (title, title)


@pytest.mark.contract("H11")
def test_what_an_agent_cannot_see_has_the_generic_card() -> None:
    host = ptc.Host()
    host.tools.register(titled("everybody's"))
    confined = host.agent("confined")
    assert titles(confined) == ("everybody's", "everybody's")
    lift = confined.tools.restrict(deny=["edit"])
    assert titles(confined) == ("edit", "edit")
    lift()
    assert titles(confined) == ("everybody's", "everybody's")


@pytest.mark.contract("H11")
@pytest.mark.anyio
async def test_a_tool_set_limits_cards_to_what_the_step_admitted(rig: Any) -> None:
    scope = ScopeKey("agent")
    rig.registry.context(scope).register(titled("admitted"), when=lambda _context: True)
    rig.registry.context(scope).register(titled("not admitted", "hidden"), when=lambda _context: False)
    tool_set = await rig.registry.resolve(ActivationContext(agent=scope))
    for name, title in (("edit", "admitted"), ("hidden", "hidden")):
        options: dict[str, Any] = {"scope": scope, "tool_set": tool_set}
        assert present_call(rig.registry, name, {}, **options).title == title
        assert present_result(rig.registry, name, {}, DONE, **options).title == title
    assert present_call(rig.registry, "edit", {}).title == "edit"


@pytest.mark.contract("H11")
@pytest.mark.anyio
async def test_an_agent_takes_the_tool_set_too() -> None:
    host = ptc.Host()
    agent = host.agent("agent")
    agent.tools.register(titled("not admitted"), when=lambda _context: False)
    tool_set = await host.registry.resolve(ActivationContext(agent=agent))
    assert titles(agent) == ("not admitted", "not admitted")
    assert agent.present_call("edit", {}, tool_set=tool_set).title == "edit"
    assert agent.present_result("edit", {}, DONE, tool_set=tool_set).title == "edit"


@pytest.mark.contract("E8", "H11")
def test_run_code_shows_its_description_and_its_program() -> None:
    host = ptc.Host()
    agent = host.agent("agent", executor=ptc.PtcExecutor(sandbox=Scripted()))
    code = "print('```')\nreturn 1"
    arguments = {"code": code, "description": "Say hello"}
    assert agent.present_call("run_code", arguments).to_wire() == {
        "view": "generic", "title": "Say hello", "kind": "execute", "rawInput": code,
    }  # fmt: skip
    assert agent.present_call("run_code", '{"code": "", "description": ""}').to_wire() == {
        "view": "generic", "title": "", "kind": "execute", "rawInput": "",
    }  # fmt: skip
    assert agent.present_result("run_code", arguments, DONE).to_wire() == {
        "view": "generic", "title": "Say hello", "content": DONE["content"],
    }  # fmt: skip
    for wrong in ({"code": "return 1"}, "return 1"):
        assert agent.present_call("run_code", wrong).to_wire() == {
            "view": "generic", "title": "run_code", "kind": "other", "rawInput": wrong,
        }  # fmt: skip


@pytest.mark.contract("E8", "H6")
def test_run_code_has_the_generic_card_where_no_executor_has_it() -> None:
    host = ptc.Host()
    arguments = {"code": "return 1", "description": "Count"}
    native = host.agent("native", executor=ptc.NativeExecutor())
    unselected = host.agent("unselected")
    unloaded = host.agent("unloaded")
    host.set_executor(unloaded, ptc.PtcExecutor(sandbox=Scripted()))()
    for agent in (native, unselected, unloaded):
        assert agent.present_call("run_code", arguments).title == "run_code"
        assert agent.present_result("run_code", arguments, DONE).title == "run_code"


@pytest.mark.contract("H11")
def test_what_an_executor_calls_its_transport_must_be_a_tool() -> None:
    host = ptc.Host()
    agent = host.agent("agent")

    class Remote:
        transport = "https"

        def describe(self, tools: Any) -> Any:
            raise NotImplementedError

        async def execute(self, batch: Any) -> Any:
            raise NotImplementedError

    agent.tools.set_executor(Remote())
    assert agent.present_call("run_code", {}).title == "run_code"


def edit_tool() -> ptc.ToolDefinition:
    """Makes a tool with a card for each state, out of arguments, content and meta."""

    def before(arguments: Any) -> Any:
        return {"view": "diff", "title": f"Edit {arguments['path']}", "diffs": []}

    def after(arguments: Any, result: ptc.RecordedResult) -> Any:
        if result["isError"]:
            return None
        meta: Any = result["meta"]  # type: ignore[typeddict-item]
        diff = ptc.FileDiff(path=arguments["path"], old_text=meta["before"], new_text=arguments["text"])
        return ptc.DiffResultCard(title=str(len(result["content"])), diffs=[diff])

    @ptc.tool(
        present_call=before, present_result=after, presentation_meta=lambda _arguments, value: {"before": value["was"]}
    )
    async def edit(path: str, text: str) -> dict[str, str]:
        if path == "/":
            raise PermissionError("not that one")
        return {"was": "old"}

    return edit


EDIT, FORBIDDEN = {"path": "a.py", "text": "new"}, {"path": "/", "text": "new"}
AFTER = {"view": "diff", "title": "1", "diffs": [{"path": "a.py", "oldText": "old", "newText": "new"}]}
REFUSED = {"view": "generic", "title": "Edit /", "content": [{"type": "text", "text": "Error: not that one"}]}
RAN = {"view": "generic", "title": "Edit twice", "content": [{"type": "text", "text": "ran"}]}


async def edit_twice(call: Any) -> None:
    await call("edit", EDIT)
    with pytest.raises(ptc.BindingError):
        await call("edit", FORBIDDEN)


@pytest.mark.contract("H5", "H8", "H10", "H11", "E8")
@pytest.mark.anyio
async def test_the_record_has_the_cards_of_the_live_calls(tmp_path: Path) -> None:
    live: list[tuple[Any, Any]] = []
    async with ptc.Host(log=tmp_path / "log.db") as host:
        host.tools.register(edit_tool())
        agent = host.agent("agent", executor=ptc.PtcExecutor(sandbox=Scripted(edit_twice)))
        assert agent.session is not None
        session = agent.session.id

        @agent.on("tools/result")
        def observe(call: Any, result: Any) -> None:
            given = call.name, call.arguments
            live.append((agent.present_call(*given).to_wire(), agent.present_result(*given, result).to_wire()))

        arguments = {"code": "...", "description": "Edit twice"}
        await agent.execute([ptc.ToolCall(name="run_code", arguments=arguments)])

    replayed: list[tuple[Any, Any]] = []
    async with ptc.Host(log=tmp_path / "log.db") as host:
        host.tools.register(edit_tool())
        agent = host.agent("agent", executor=ptc.PtcExecutor(sandbox=Scripted()), session=session)
        store: Any = host._store
        root: Any = None
        for event in await store.events(session):
            data: Any = event.data
            if event.type == "tool/call":
                root = data
            elif event.type == "tool/ptc-dispatch":
                given = data["name"], data["arguments"]
                replayed.append((agent.present_call(*given).to_wire(), agent.present_result(*given, data).to_wire()))
            elif event.type == "tool/result":
                given = root["name"], root["arguments"]
                replayed.append((agent.present_call(*given).to_wire(), agent.present_result(*given, data).to_wire()))
    assert replayed == live
    assert live == [
        ({"view": "diff", "title": "Edit a.py", "diffs": []}, AFTER),
        ({"view": "diff", "title": "Edit /", "diffs": []}, REFUSED),
        ({"view": "generic", "title": "Edit twice", "kind": "execute", "rawInput": "..."}, RAN),
    ]
