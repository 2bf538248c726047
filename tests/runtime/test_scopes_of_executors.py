"""Agents with different executors, tools, limits and policies in one host at once; what is denied stays denied."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime.log import SqliteLogReader, verify_log
from ptc.runtime.log.reading import Call, read_session

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted backend needs Linux"),
]


@dataclass
class Office:
    """One host with three agents, and what their tools did."""

    host: ptc.Host
    log: Path
    native: ptc.Agent
    wasm: ptc.Agent
    restricted: ptc.Agent
    done: list[str] = field(default_factory=list)

    def calls(self, agent: ptc.Agent) -> list[Call]:
        """Returns every call of an agent's session, the model's own and those of programs, in order."""
        assert agent.session is not None
        with SqliteLogReader(self.log) as reader:
            info = next(one for one in reader.sessions() if one.id == agent.session.id)
            reading = read_session(info, reader.events(info.id))
        assert reading.violations == []
        return [call for run in reading.runs for call in (run.call, *run.calls) if call is not None]

    def denied(self, agent: ptc.Agent, name: str = "delete") -> list[Call]:
        return [call for call in self.calls(agent) if call.name == name]


def tool(office: Office, name: str, *, wait_ms: int = 0) -> ptc.ToolDefinition:
    async def execute(_arguments: Any, run: ptc.ToolRunContext) -> Any:
        await anyio.sleep(wait_ms / 1000)
        agent: Any = run.exec.agent
        office.done.append(f"{agent.name} {name}")
        return name

    return ptc.define_tool(
        name=name,
        description=f"The tool {name}.",
        parameters={},
        output={"type": "string"},
        execute=execute,
        is_concurrency_safe=lambda _arguments: True,
    )


@pytest.fixture
async def office(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Office]:
    log = tmp_path / "ptc.db"
    async with ptc.Host(log=log) as host:
        wasm = ptc.PtcExecutor(sandbox=ptc.WasmSandbox(max_output_bytes=2000), max_parallel_sub_calls=2)
        restricted = ptc.PtcExecutor(sandbox=ptc.RestrictedSandbox(compute_ms=3000), max_parallel_sub_calls=4)
        made = Office(
            host,
            log,
            host.agent("native", executor=ptc.NativeExecutor(max_parallel_tool_calls=1)),
            host.agent("wasm", executor=wasm),
            host.agent("restricted", executor=restricted),
        )
        for name in ("read", "delete"):
            host.tools.register(tool(made, name))
        yield made


async def native_calls(agent: ptc.Agent, *names: str) -> list[ptc.ToolExecutionResult]:
    batch = await agent.execute([ptc.ToolCall(name=name, arguments="{}") for name in names])
    return [one.result for one in batch.results]


def deny_deletes(agent: ptc.Agent) -> None:
    def no_deletes(call: ptc.ToolExecution) -> str | None:
        return f"{agent.name} deletes nothing" if call.name == "delete" else None

    agent.tools.guard(no_deletes)


ROUTES = {
    "by name": "await tools.delete()",
    "by getattr": "await getattr(tools, 'delete')()",
    "by subscript": "await tools['delete']()",
    "out of a list": "held = [tools.delete]\nawait held[0]()",
    "out of a dict": "held = {'x': tools['delete']}\nawait held['x']()",
    "out of a closure": "def keep(f):\n    async def later():\n        return await f()\n    return later\n"
    "await keep(tools.delete)()",
    "as a call that waits": "call = tools.delete()\nawait tools.read()\nawait call",
    "in a gather": "import asyncio\nawait asyncio.gather(tools.read(), tools.delete())",
    "as a task": "import asyncio\nawait asyncio.create_task(tools.delete())",
}


@pytest.mark.contract("E47", "A52", "C21")
@pytest.mark.parametrize("backend", ["wasm", "restricted"])
async def test_a_guarded_tool_is_denied_by_every_route_and_each_attempt_is_recorded(
    office: Office, backend: str
) -> None:
    agent: ptc.Agent = getattr(office, backend)
    deny_deletes(agent)
    for route, code in ROUTES.items():
        result = await agent.run_code(f"try:\n    {indent(code)}\nexcept ToolCallError as e:\n    return str(e)")
        assert not result.is_error, f"{route}: {result.error.message}"
        assert result.value["result"] == f"{backend} deletes nothing", route  # type: ignore[index, call-overload]
    assert not [one for one in office.done if one.endswith("delete")]
    attempts = office.denied(agent)
    parents = [call.call_id for call in office.calls(agent) if call.name == "run_code"]
    assert [call.parent_call_id for call in attempts] == parents
    assert len(parents) == len(ROUTES)
    for attempt in attempts:
        assert attempt.outcome == "denied"
        assert attempt.decision is not None
        assert attempt.decision.outcome == "deny"
        assert "no_deletes" in (attempt.decision.by or "")
    # The others may, at the same time and with the same host.
    other = office.restricted if backend == "wasm" else office.wasm
    assert not (await other.run_code("return await tools.delete()")).is_error
    assert [one.is_error for one in await native_calls(office.native, "delete")] == [False]


def indent(code: str) -> str:
    return code.replace("\n", "\n    ")


OLD = {
    "a list": "held = [tools.delete]\nawait tools.lock()\nawait held[0]()",
    "a dict": "held = {'x': tools['delete']}\nawait tools.lock()\nawait held['x']()",
    "a closure": "def keep(f):\n    async def later():\n        return await f()\n    return later\n"
    "later = keep(getattr(tools, 'delete'))\nawait tools.lock()\nawait later()",
    "a call that waits": "call = tools.delete()\nawait tools.lock()\nawait call",
    "the object itself": "same = tools\nawait tools.lock()\nawait same.delete()",
    "a task that comes later": "import asyncio\n"
    "async def later():\n    await asyncio.sleep(0.02)\n    await tools.delete()\n"
    "task = asyncio.create_task(later())\nawait tools.lock()\nawait task",
}


@pytest.mark.contract("E12", "E11", "C7", "A26")
@pytest.mark.parametrize("backend", ["wasm", "restricted"])
@pytest.mark.parametrize("route", OLD)
async def test_a_reference_from_before_a_restriction_opens_nothing_after_it(
    office: Office, backend: str, route: str
) -> None:
    agent: ptc.Agent = getattr(office, backend)

    async def lock(_arguments: Any, _run: ptc.ToolRunContext) -> Any:
        agent.tools.restrict(deny=["delete"])
        return "locked"

    agent.tools.register(
        ptc.define_tool(name="lock", description="Lock.", parameters={}, output={"type": "string"}, execute=lock)
    )
    code = f"try:\n    {indent(OLD[route])}\nexcept ToolCallError as e:\n    return str(e)"
    result = await agent.run_code(code)
    assert not result.is_error, result.error.message
    assert "delete" in result.value["result"]  # type: ignore[index, call-overload]
    assert office.done == []
    (attempt,) = office.denied(agent)
    (run,) = (call for call in office.calls(agent) if call.name == "run_code")
    assert attempt.parent_call_id == run.call_id
    assert attempt.error is not None
    assert attempt.error.code == "UNKNOWN_TOOL"
    # The next program does not even find it, and nothing of that reaches the host.
    for code in ("await tools.delete()", "await tools['delete']()", "await getattr(tools, 'delete')()"):
        result = await agent.run_code(code)
        assert result.is_error
        assert "no member 'delete'" in result.error.message
    assert len(office.denied(agent)) == 1
    # Restricted is this agent alone.
    assert [one.is_error for one in await native_calls(office.native, "delete")] == [False]


@pytest.mark.contract("A52", "E47", "C5")
@pytest.mark.parametrize(("outer", "inner"), [("wasm", "restricted"), ("restricted", "wasm"), ("wasm", "wasm")])
async def test_a_program_in_a_program_has_the_policies_of_its_own_agent_and_those_of_the_host(
    office: Office, outer: str, inner: str
) -> None:
    first: ptc.Agent = getattr(office, outer)
    second = office.host.agent("inner", executor=executor_of(inner))
    deny_deletes(second)

    async def delegate(arguments: Any, _run: ptc.ToolRunContext) -> Any:
        result = await second.run_code(arguments["code"])
        return result.error.message if result.is_error else result.value

    first.tools.register(
        ptc.define_tool(
            name="delegate",
            description="Have another agent run a program.",
            parameters={"code": {"type": "string", "required": True}},
            output={"type": "json"},
            execute=delegate,
        )
    )
    code = "inner = await tools.delegate(code='await tools.delete()')\nreturn [inner, await tools.delete()]"
    result = await first.run_code(code)
    assert not result.is_error, result.error.message
    told, own = result.value["result"]  # type: ignore[index, call-overload]
    assert "inner deletes nothing" in told
    assert own == "delete"
    assert office.done == [f"{outer} delete"]
    (attempt,) = office.denied(second)
    (run,) = (call for call in office.calls(second) if call.name == "run_code")
    assert attempt.parent_call_id == run.call_id
    assert attempt.outcome == "denied"
    assert attempt.decision is not None
    assert "no_deletes" in (attempt.decision.by or "")
    # `delegate` is not a way around what its caller may not: the inner agent has no tool of the outer one.
    told = await first.run_code("return await tools.delegate(code=\"return 'delegate' in tools\")")
    assert told.value == {"logs": [], "result": {"logs": [], "result": False}}  # type: ignore[union-attr]


def executor_of(backend: str) -> ptc.PtcExecutor:
    return ptc.PtcExecutor(sandbox={"wasm": ptc.WasmSandbox, "restricted": ptc.RestrictedSandbox}[backend]())


@pytest.mark.contract("A52", "A53", "A60", "E18")
async def test_three_executors_work_at_once_each_with_its_own_tools_limits_and_policies(office: Office) -> None:
    together: dict[str, int] = {}
    most: dict[str, int] = {}

    async def busy(_arguments: Any, run: ptc.ToolRunContext) -> Any:
        agent: Any = run.exec.agent
        together[agent.name] = together.get(agent.name, 0) + 1
        most[agent.name] = max(most.get(agent.name, 0), together[agent.name])
        await anyio.sleep(0.02)
        together[agent.name] -= 1
        return agent.name

    options: Any = {"description": "Be busy.", "parameters": {}, "output": {"type": "string"}, "execute": busy}
    office.host.tools.register(ptc.define_tool(name="busy", is_concurrency_safe=lambda _arguments: True, **options))
    for agent in (office.native, office.wasm, office.restricted):
        agent.tools.register(tool(office, f"only_{agent.name}"))
    deny_deletes(office.wasm)
    office.restricted.tools.restrict(deny=["delete"])

    @office.native.on("tools/pre-execute")
    async def ask_first(call: ptc.ToolExecution, next: Any) -> Any:
        return ptc.Deny("native asks first") if call.name == "delete" else await next()

    results: dict[str, Any] = {}

    async def run(agent: ptc.Agent) -> None:
        code = (
            "import asyncio\nbusy = await asyncio.gather(*(tools.busy() for _ in range(8)))\n"
            "try:\n    denied = await tools.delete()\n"
            "except (ToolCallError, AttributeError) as e:\n    denied = str(e)\n"
            "own = sorted(name for name in tools if 'only' in name)\n"
            f"return [sorted(set(busy)), await tools.only_{agent.name}(), own, denied]"
        )
        results[agent.name] = await agent.run_code(code)

    async def run_native() -> None:
        results["native"] = await native_calls(office.native, *["busy"] * 8, "delete", "only_native", "only_wasm")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_native)
            tasks.start_soon(run, office.wasm)
            tasks.start_soon(run, office.restricted)
    for name, denial in (("wasm", "wasm deletes nothing"), ("restricted", "tools has no member 'delete'")):
        assert not results[name].is_error, results[name].error.message
        busy_of, own, listed, denied = results[name].value["result"]
        assert (busy_of, own, listed) == ([name], f"only_{name}", [f"only_{name}"])
        assert denial in denied
    assert [one.is_error for one in results["native"]] == [*[False] * 8, True, False, True]
    assert "native asks first" in results["native"][8].error.message
    assert results["native"][10].error.info.code == "UNKNOWN_TOOL"
    assert most == {"native": 1, "wasm": 2, "restricted": 4}
    # Limits of one are not those of the others.
    assert (await office.wasm.run_code("return 'x' * 3000")).is_error
    assert not (await office.restricted.run_code("return 'x' * 3000")).is_error
    assert office.denied(office.restricted) == []
    (of_wasm,), (of_native,) = office.denied(office.wasm), office.denied(office.native)
    assert (of_wasm.outcome, of_native.outcome) == ("denied", "denied")
    assert of_wasm.parent_call_id is not None
    assert of_native.parent_call_id is None
    assert of_native.decision is not None
    assert "ask_first" in (of_native.decision.by or "")
    assert verify_log(office.log).whole


@pytest.mark.contract("A52", "A53", "A54")
async def test_another_executor_takes_effect_with_the_next_batch(office: Office) -> None:
    agent, host = office.wasm, office.host
    deny_deletes(agent)
    reached, go_on = anyio.Event(), anyio.Event()

    async def gate(_arguments: Any, _run: ptc.ToolRunContext) -> Any:
        reached.set()
        await go_on.wait()
        return "open"

    agent.tools.register(
        ptc.define_tool(name="gate", description="Wait.", parameters={}, output={"type": "string"}, execute=gate)
    )
    code = (
        "await tools.gate()\nhere = await tools.read()\n"
        "try:\n    await tools.delete()\nexcept ToolCallError as e:\n    return [here, str(e)]"
    )
    results: list[ptc.ToolExecutionResult] = []

    async def run() -> None:
        results.append(await agent.run_code(code))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await reached.wait()
            host.set_executor(agent, ptc.NativeExecutor())
            assert [schema.name for schema in agent.describe().schemas] == ["delete", "gate", "read"]
            # The next batch is native, while the program of the one before goes on in its sandbox.
            read, delete, run_code = await native_calls(agent, "read", "delete", "run_code")
            assert not read.is_error
            assert delete.is_error
            assert "wasm deletes nothing" in delete.error.message
            assert run_code.is_error
            go_on.set()
    (result,) = results
    assert not result.is_error, result.error.message
    assert result.value == {"logs": [], "result": ["read", "wasm deletes nothing"]}
    host.set_executor(agent, executor_of("restricted"))
    assert [schema.name for schema in agent.describe().schemas] == ["run_code"]
    result = await agent.run_code("try:\n    await tools.delete()\nexcept ToolCallError as e:\n    return str(e)")
    assert not result.is_error, result.error.message
    assert result.value == {"logs": [], "result": "wasm deletes nothing"}
    assert [call.outcome for call in office.denied(agent)] == ["denied"] * 3
    assert json.dumps(office.done) == '["wasm read", "wasm read"]'
