"""A large tool set within a token budget: what the model is told, and the two calls that lead to the rest."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.registry import ToolRegistry
from ptc.registry.views import ToolView
from ptc.runtime.discovery import _MAX_PLANS, MAX_RESULTS, SdkBudget
from ptc.sdk_gen import render_python

pytestmark = pytest.mark.anyio


START, SETTLE = "tool/ptc-dispatch-start", "tool/ptc-dispatch"
SMALL = 1_000
"""A budget that the tools of these tests are beyond, and their index is not."""


def make(name: str, description: str = "", ran: list[str] | None = None) -> ptc.ToolDefinition:
    async def execute(arguments: Any) -> Any:
        if ran is not None:
            ran.append(name)
        return {"name": name, **arguments}

    return ptc.define_tool(
        name=name,
        description=description or f"Does {name.replace('_', ' ')}.",
        parameters={"subject": {"type": "string", "required": True, "description": f"What {name} is about"}},
        output={"type": "object", "additionalProperties": True, "properties": {"name": {"type": "string"}}},
        execute=execute,
    )


NAMES = sorted(f"{area}_{verb}" for area in ("mail", "files", "notes") for verb in ("create", "find", "delete", "list"))


class Rig:
    """A host with twelve tools, and agents whose prompt has no room for them."""

    def __init__(self, host: ptc.Host, sandbox: Callable[[], ptc.Sandbox]) -> None:
        self.host = host
        self.ran: list[str] = []
        self._sandbox = sandbox
        for name in NAMES:
            host.tools.register(make(name, ran=self.ran))

    def agent(self, **options: Any) -> ptc.Agent:
        return self.host.agent(
            "finder", executor=ptc.PtcExecutor(sandbox=self._sandbox(), **{"sdk_budget": SMALL, **options})
        )

    async def value(self, agent: ptc.Agent, program: str, **options: Any) -> Any:
        result = await agent.run_code(program, **options)
        assert not result.is_error, result.text
        assert isinstance(result.value, dict)
        return result.value.get("result")


@pytest.fixture(params=["wasm", "restricted"])
async def rig(request: pytest.FixtureRequest, anyio_backend: str, tmp_path: Path) -> AsyncIterator[Rig]:
    if request.param == "restricted" and not sys.platform.startswith("linux"):
        pytest.skip("the restricted backend needs Linux")
    kinds: dict[str, Callable[[], ptc.Sandbox]] = {"wasm": ptc.WasmSandbox, "restricted": ptc.RestrictedSandbox}
    async with ptc.Host(log=tmp_path / "ptc.db") as host:
        yield Rig(host, kinds[request.param])


class NoSandbox:
    """For tests in which no program runs."""

    isolation = "none"
    language = "python"

    async def aclose(self) -> None:
        pass


@pytest.fixture
async def told(anyio_backend: str) -> AsyncIterator[Rig]:
    async with ptc.Host() as host:
        yield Rig(host, NoSandbox)  # type: ignore[arg-type]


def full_text(agent: ptc.Agent) -> str:
    return render_python(agent._host.registry.view(agent).schemas(with_output=True)).text


REFUSED = """
try:
    return await {call}
except ToolCallError as error:
    return [error.toolName, str(error)]
"""


# What the model is told ---------------------------------------------------------------------------------------------


@pytest.mark.contract("A62", "G1")
async def test_within_the_budget_all_is_told_in_full_and_there_are_no_calls(rig: Rig) -> None:
    for agent in (rig.agent(sdk_budget=100_000), rig.agent(sdk_budget=None)):
        assert agent.describe().prompt == full_text(agent)
        assert await rig.value(agent, "return dir(tools)") == NAMES


@pytest.mark.contract("A62", "E10")
async def test_beyond_the_budget_there_is_an_index_and_two_calls(rig: Rig) -> None:
    agent = rig.agent()
    prompt, schemas = agent.describe()
    assert [schema.name for schema in schemas] == ["run_code"]
    assert "# files_create: Does files create\n# files_delete: " in prompt
    assert "FilesCreateArgs" not in prompt
    assert "async def search(self, args: SearchArgs) -> str:" in prompt
    assert "async def describe(self, args: DescribeArgs) -> str:" in prompt
    assert await rig.value(agent, "return dir(tools)") == sorted([*NAMES, "search", "describe"])


async def test_a_model_finds_reads_and_calls(rig: Rig) -> None:
    agent = rig.agent()
    read = await agent.run_code('return await tools.search("create a note")')
    assert "class NotesCreateArgs(TypedDict):\n    # What notes_create is about\n    subject: str\n" in read.text
    assert "async def notes_create(self, args: NotesCreateArgs) -> NotesCreateOutput:" in read.text
    assert await rig.value(agent, 'return await tools.notes_create(subject="tea")') == {
        "name": "notes_create",
        "subject": "tea",
    }
    assert rig.ran == ["notes_create"]


async def test_the_tokens_are_counted_as_the_host_says(told: Rig) -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text)

    whole = len(full_text(told.agent()))
    for budget, full in ((whole, True), (whole - 1, False)):
        agent = told.agent(sdk_budget=budget, count_tokens=count)
        prompt = agent.describe().prompt
        assert (prompt == full_text(agent)) == full
        assert counted[-1] == len(prompt)
    taken = len(counted)
    assert agent.describe().prompt == prompt
    assert len(counted) == taken  # the same tools are not counted again


async def test_a_counter_that_fails_is_the_hosts_to_know_and_not_the_models(rig: Rig) -> None:
    def count(text: str) -> int:
        raise LookupError("/secret/vocabulary.bin is not there")

    agent = rig.agent(count_tokens=count)
    with pytest.raises(LookupError, match="vocabulary"):
        agent.describe()
    with pytest.raises(ptc.ToolBatchExecutionError, match="vocabulary") as caught:
        await agent.run_code("return 1")
    (outcome,) = caught.value.results
    assert outcome.result.is_error
    assert "secret" not in outcome.result.text


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"count_tokens": 3}, TypeError, "count_tokens must be a function"),
        ({"discovery": "search"}, TypeError, r"discovery must be a Discovery\(...\)"),
        ({"preflight": True}, TypeError, r"preflight must be a Preflight\(...\)"),
        ({"sdk_budget": None, "count_tokens": len}, ValueError, "count_tokens.*give sdk_budget as well"),
        ({"sdk_budget": None, "discovery": ptc.Discovery()}, ValueError, "discovery.*give sdk_budget as well"),
    ],
    ids=str,
)
def test_options_that_mean_nothing_are_refused_at_once(
    options: dict[str, Any], kind: type[Exception], says: str
) -> None:
    given: dict[str, Any] = {"sdk_budget": SMALL, **options}
    with pytest.raises(kind, match=says):
        ptc.PtcExecutor(sandbox=NoSandbox(), **given)  # type: ignore[arg-type]


async def test_the_host_is_told_when_even_the_shortest_text_is_beyond_the_budget(
    told: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "ptc.runtime"):
        prompt = told.agent(sdk_budget=10).describe().prompt
        assert "# files: 4 tools\n# mail: 4 tools\n# notes: 4 tools\n" in prompt
        assert "shortest form, which is beyond the budget of 10" in caplog.text
        caplog.clear()
        told.agent(sdk_budget=SMALL).describe()
        assert caplog.text == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sdk_budget": 0}, "sdk_budget must be a positive integer, not 0"),
        ({"sdk_budget": True}, "sdk_budget must be a positive integer, not True"),
        ({"sdk_budget": 1.5}, "sdk_budget must be a positive integer, not 1.5"),
    ],
)
async def test_a_budget_is_a_positive_integer(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ptc.PtcExecutor(sandbox=NoSandbox(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": "find-tools"}, "search must be a name that can be called as tools.name, not 'find-tools'"),
        ({"describe": "_describe"}, "describe must be a name"),
        ({"describe": "class"}, "describe must be a name"),
        ({"search": "run_code"}, "search must be a name"),
        ({"search": ""}, "search must be a name"),
        ({"search": 1}, "search must be a name"),
        ({"search": "describe"}, "search and describe must have two names"),
        ({"results": 0}, "results must be a positive integer"),
        ({"results": MAX_RESULTS + 1}, f"results must be at most {MAX_RESULTS}"),
    ],
)
async def test_a_discovery_that_cannot_be_called_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ptc.Discovery(**options)


# Names --------------------------------------------------------------------------------------------------------------


async def test_the_calls_have_the_names_that_the_host_gives(rig: Rig) -> None:
    agent = rig.agent(discovery=ptc.Discovery(search="find_tools", describe="declare", results=1))
    prompt = agent.describe().prompt
    assert 'await tools.find_tools("' in prompt
    assert 'await tools.declare(["' in prompt
    assert "tools.search" not in prompt
    found = await rig.value(agent, 'return await tools.find_tools("create note")')
    assert found.count("async def") == 1
    assert "async def mail_list(" in await rig.value(agent, 'return await tools.declare("mail_list")')


@pytest.mark.contract("E10")
@pytest.mark.parametrize("hidden", [False, True])
async def test_a_tool_of_that_name_keeps_it(rig: Rig, hidden: bool) -> None:
    """Hidden tools too: one name is one tool in the records of all agents, and a prompt stays as it is."""
    rig.host.tools.register(make("search", ran=rig.ran))
    rig.host.tools.register(make("describe_tools", ran=rig.ran))
    rig.host.tools.register(make("describe", ran=rig.ran))
    agent = rig.agent()
    if hidden:
        agent.tools.restrict(deny=["search", "describe", "describe_tools"])
    prompt = agent.describe().prompt
    assert 'await tools.search_tools("' in prompt
    assert 'await tools.describe_tools_2(["' in prompt
    own = [] if hidden else ["search", "describe", "describe_tools"]
    assert await rig.value(agent, "return dir(tools)") == sorted([*NAMES, *own, "search_tools", "describe_tools_2"])
    assert "NotesFindArgs" in await rig.value(agent, 'return await tools.search_tools("find notes")')
    assert "NotesFindArgs" in await rig.value(agent, 'return await tools.describe_tools_2("notes_find")')
    if not hidden:
        assert (await rig.value(agent, 'return await tools.search(subject="x")'))["name"] == "search"
        assert rig.ran == ["search"]


async def test_one_call_does_not_take_the_name_of_the_other(told: Rig) -> None:
    told.host.tools.register(make("search"))
    prompt = told.agent(discovery=ptc.Discovery(search="search", describe="search_tools")).describe().prompt
    assert 'await tools.search_tools_2("' in prompt
    assert 'await tools.search_tools(["' in prompt


async def test_a_name_that_is_taken_while_a_program_runs_stays_with_the_call(rig: Rig) -> None:
    @ptc.tool
    async def take() -> None:
        """Register a tool under the name of the call."""
        rig.host.tools.register(make("search", ran=rig.ran))

    rig.host.tools.register(take)
    found = await rig.value(rig.agent(), 'await tools.take()\nreturn await tools.search("find notes")')
    assert "NotesFindArgs" in found
    assert rig.ran == []


# What the calls give ------------------------------------------------------------------------------------------------


@pytest.mark.contract("G19", "G21")
async def test_a_declaration_is_what_the_full_text_says(rig: Rig) -> None:
    for name in ("notes-list", "notesList"):  # classes of these have numbers
        rig.host.tools.register(make(name))
    agent = rig.agent()
    for name in ("mail_find", "notes_list", "notes-list", "notesList"):
        declared = await rig.value(agent, f"return await tools.describe({name!r})")
        classes, _, method = declared.partition("class Tools(Protocol):\n")
        assert classes in full_text(agent)
        assert method.removeprefix("    pass\n") in full_text(agent)
        assert f"What {name} is about" in classes
        assert name in method
    several = await rig.value(agent, 'return await tools.describe(["notes_list", "mail_find", "notes_list"])')
    assert several.index("NotesListOutput") < several.index("MailFindArgs")
    assert several.count("async def") == 2


@pytest.mark.contract("E27")
async def test_an_unknown_name_is_an_error_with_near_names(rig: Rig) -> None:
    agent = rig.agent()
    assert await rig.value(agent, REFUSED.format(call='tools.describe("notes_fnd")')) == [
        "describe",
        'invalid arguments: there is no tool "notes_fnd"; did you mean "notes_find"?',
    ]
    several = REFUSED.format(call='tools.describe(["mail_find", "create_notes", "zzz", "x" * 200, *"abcdef"])')
    _, message = await rig.value(agent, several)
    assert 'there is no tool "create_notes"; did you mean "notes_create"' in message
    assert 'there is no tool "zzz"; ' in message
    assert f'there is no tool "{"x" * 80}..."' in message
    assert message.endswith("and 4 more are unknown")
    assert message.count("there is no tool") == 5
    assert "mail_find" not in message
    _, message = await rig.value(agent, REFUSED.format(call="tools.describe([])"))
    assert message == 'invalid arguments: "name" must name at least one tool'
    _, message = await rig.value(agent, REFUSED.format(call="tools.describe(7)"))
    assert message.startswith("invalid arguments: ")


async def test_a_search_declares_the_best_and_names_those_that_are_less_close(rig: Rig) -> None:
    agent = rig.agent()
    found = await rig.value(agent, 'return await tools.search("create a note", limit=2)')
    assert found.startswith("# The best of 6 matches, in order.\n\n\nclass NotesCreateArgs(TypedDict):\n")
    assert found.count("async def") == 2
    _, _, less = found.partition("\n\n\n# Less close:\n")
    assert len(less.splitlines()) == 4
    assert "# mail_create: Does mail create" in less
    assert await rig.value(agent, 'return await tools.search("create a note", limit=2.0)') == found
    assert (await rig.value(agent, 'return await tools.search("create a note")')).count("async def") == 5
    assert (await rig.value(agent, 'return await tools.search("notes_find", limit=1)')).count("notes_find") == 2
    every = await rig.value(agent, 'return await tools.search("create find delete list", limit=50)')
    assert every.count("async def") == 12
    assert "Less close" not in every
    assert "# The best of" not in every


async def test_a_search_that_finds_nothing_says_what_there_is(rig: Rig) -> None:
    found = await rig.value(rig.agent(), 'return await tools.search("weather")')
    assert found == (
        '# No tool has any word of "weather"; try others. There are:\n'
        "# files: 4 tools\n# mail: 4 tools\n# notes: 4 tools"
    )


@pytest.mark.parametrize("limit", [0, -1, MAX_RESULTS + 1])
async def test_a_limit_out_of_range_is_refused(rig: Rig, limit: int) -> None:
    refused = await rig.value(rig.agent(), REFUSED.format(call=f'tools.search("mail", limit={limit})'))
    assert refused == ["search", f'invalid arguments: "limit" must be from 1 to {MAX_RESULTS}, not {limit}']


# What an agent sees -------------------------------------------------------------------------------------------------


@pytest.mark.contract("A37", "E11")
async def test_hidden_tools_are_in_no_answer(rig: Rig) -> None:
    agent = rig.agent(discovery=ptc.Discovery(results=50))
    agent.tools.restrict(deny=[name for name in NAMES if name.startswith("notes")])
    other = rig.agent(discovery=ptc.Discovery(results=50))
    assert "notes" not in agent.describe().prompt
    assert "notes" not in (await rig.value(agent, 'return await tools.search("create find notes")')).lower()
    _, message = await rig.value(agent, REFUSED.format(call='tools.describe("notes_fin")'))
    assert '"notes_fin"; did you mean "files_find"?' in message
    _, hidden = await rig.value(agent, REFUSED.format(call='tools.describe("notes_find")'))
    assert hidden == message.replace("notes_fin", "notes_find")
    assert "notes_find" in await rig.value(other, 'return await tools.search("create find notes")')


@pytest.mark.contract("A39", "A46")
async def test_conditional_tools_are_found_in_steps_that_have_them(rig: Rig) -> None:
    rig.host.tools.register(
        make("secret_transfer"), when=lambda context: context.model_selection.reasoning_effort == "high"
    )
    agent = rig.agent()
    program = 'return await tools.search("secret transfer")'
    for effort in ("high", "low"):
        selection = ptc.ModelSelection(reasoning_effort=effort)
        async with agent.resolve(model_selection=selection) as tool_set:
            found = await rig.value(agent, program, tool_set=tool_set)
            assert ("SecretTransferArgs" in found) == (effort == "high")
            assert ("secret_transfer" in agent.describe(tool_set=tool_set).prompt) == (effort == "high")
    assert "SecretTransferArgs" not in await rig.value(agent, program)


@pytest.mark.contract("E12")
async def test_answers_are_of_the_tools_as_they_are_at_the_call(rig: Rig) -> None:
    removed = rig.host.tools.register(make("late_one"))

    @ptc.tool
    async def change() -> None:
        """Take one tool away and add another."""
        removed()
        rig.host.tools.register(make("late_two"))

    rig.host.tools.register(change)
    program = 'before = await tools.search("late")\nawait tools.change()\nreturn [before, await tools.search("late")]'
    before, after = await rig.value(rig.agent(), program)
    assert ("LateOneArgs" in before, "LateTwoArgs" in before) == (True, False)
    assert ("LateOneArgs" in after, "LateTwoArgs" in after) == (False, True)


# Ordinary calls -----------------------------------------------------------------------------------------------------


@pytest.mark.contract("I5", "I6", "E15", "E45")
async def test_the_calls_are_on_record(rig: Rig) -> None:
    agent = rig.agent()
    await agent.run_code(
        'await tools.search("mail", limit=1)\nawait tools.mail_list(subject="x")\n'
        'try:\n    await tools.describe("x")\nexcept ToolCallError:\n    pass'
    )
    assert agent.session is not None
    events = await agent.session.events()
    started = [event.data for event in events if event.type == START]
    settled = [event.data for event in events if event.type == SETTLE]
    names = ["search", "mail_list", "describe"]
    assert [data["name"] for data in started] == names
    assert [data["name"] for data in settled] == names
    assert [str(data["subCallId"]).rpartition(":")[2] for data in started] == ["1", "2", "3"]
    assert started[0]["arguments"] == {"query": "mail", "limit": 1}
    assert [data["isError"] for data in settled] == [False, False, True]
    assert "async def mail_" in json.dumps(settled[0]["content"])
    assert settled[2]["error"] == {"name": "ToolArgsError", "code": "INVALID_ARGS"}


@pytest.mark.contract("E47", "C13", "C26", "E16")
async def test_the_calls_pass_every_policy(rig: Rig) -> None:
    seen: list[tuple[str, Any, bool, Any]] = []
    results: list[tuple[str, bool]] = []

    @rig.host.on("tools/pre-execute")
    async def watch(call: ptc.ToolExecution, next: Any) -> Any:
        assert call.schema is not None or call.parent is None
        seen.append((call.name, call.arguments, call.parent is not None, call.schema and call.schema.name))
        return ptc.Deny("not that") if "secret" in str(call.arguments) and call.parent else await next()

    @rig.host.on("tools/execute")
    async def around(call: Any, next: Any) -> Any:
        result = await next()
        results.append((call.name, result.is_error))
        return result

    @rig.host.on("tools/post-execute")
    async def after(call: ptc.ToolExecution, _result: Any, next: Any) -> Any:
        return (
            ptc.Block([ptc.text_block("blocked")]) if "files" in str(call.arguments) and call.parent else await next()
        )

    rig.host.tools.guard(lambda call: "guarded" if call.name == "describe" else None)
    agent = rig.agent()
    assert await rig.value(agent, REFUSED.format(call='tools.search("secret")')) == ["search", "not that"]
    assert await rig.value(agent, REFUSED.format(call='tools.describe("mail_list")')) == ["describe", "guarded"]
    assert await rig.value(agent, REFUSED.format(call='tools.search("files")')) == ["search", "blocked"]
    assert "MailListArgs" in await rig.value(agent, REFUSED.format(call='tools.search("mail")'))
    inner = [call for call in seen if call[2]]
    assert inner[0] == ("search", {"query": "secret"}, True, "search")
    assert inner[1] == ("describe", {"name": "mail_list"}, True, "describe")
    assert [result for result in results if result[0] != "run_code"] == [("search", False), ("search", False)]


@pytest.mark.contract("A61", "C10")
async def test_a_model_cannot_make_the_calls_past_run_code(told: Rig) -> None:
    agent = told.agent()
    agent.describe()
    batch = await agent.execute([ptc.ToolCall(name="search", arguments={"query": "mail"})])
    result = batch.results[0].result
    assert isinstance(result, ptc.ToolFailure)
    assert result.error.info is not None
    assert result.error.info.code == "UNKNOWN_TOOL"


@pytest.mark.contract("A23")
async def test_no_registry_has_them(told: Rig) -> None:
    agent = told.agent()
    agent.describe()
    assert agent.tools.get("search") is None
    assert {schema.name for schema in agent.tools.schemas()} == set(NAMES)
    native = told.host.agent("native", executor=ptc.NativeExecutor())
    assert {schema.name for schema in native.describe().schemas} == set(NAMES)


@pytest.mark.contract("D2", "E19")
async def test_the_calls_overlap_with_others(rig: Rig) -> None:
    searched = anyio.Event()

    @rig.host.on("tools/execute")
    async def watch(call: Any, next: Any) -> Any:
        if call.name == "search":
            searched.set()
        return await next()

    @ptc.tool(concurrency_safe=True)
    async def wait_for_search() -> bool:
        """Wait until a search has begun."""
        with anyio.move_on_after(20):
            await searched.wait()
        return searched.is_set()

    rig.host.tools.register(wait_for_search)
    program = 'import asyncio\nreturn (await asyncio.gather(tools.wait_for_search(), tools.search("mail")))[0]'
    assert await rig.value(rig.agent(), program) is True


@pytest.mark.contract("E36")
async def test_the_calls_work_without_a_log_and_without_an_agent(anyio_backend: str) -> None:
    async with ptc.Host() as host:
        for name in NAMES:
            host.tools.register(make(name))
        host.set_executor(None, ptc.PtcExecutor(sandbox=ptc.WasmSandbox(), sdk_budget=SMALL))
        call = ptc.ToolCall(
            name="run_code",
            call_id="c",
            arguments={"code": 'return await tools.search("mail")', "description": "Look for mail."},
        )
        batch = await host.execute(ptc.ToolBatchInput(calls=[call]))
    assert "MailCreateArgs" in batch.results[0].result.text


async def test_the_preflight_knows_the_calls(rig: Rig) -> None:
    pytest.importorskip("ty", reason="the type checker is not installed")
    agent = rig.agent(preflight=ptc.Preflight())
    assert "MailListArgs" in await rig.value(agent, 'return await tools.describe(["mail_list"])')
    refused = await agent.run_code('return await tools.search(qery="mail")')
    assert refused.is_error
    assert 'there is no argument "qery"; did you mean "query"?' in refused.text


# The command --------------------------------------------------------------------------------------------------------

TOOLS_FILE = '''
import ptc


def tools():
    def make(name):
        @ptc.tool(name=name)
        async def body(subject: str) -> str:
            """Do something. In a way that takes many words to tell, and more."""
            return subject
        return body

    return [make(f"{area}_{n}") for area in ("mail", "notes") for n in range(50)]
'''


def sdk(folder: Path, *arguments: str) -> Any:
    (folder / "tools.py").write_text(TOOLS_FILE)
    return subprocess.run(
        [sys.executable, "-m", "ptc.runtime.cli", "sdk", "--tools", "tools.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_prints_what_a_budget_allows(tmp_path: Path) -> None:
    full = sdk(tmp_path)
    assert sdk(tmp_path, "--budget", "100000").stdout == full.stdout
    assert "# mail_0: Do something\n" in sdk(tmp_path, "--budget", "2500").stdout
    told = json.loads(sdk(tmp_path, "--budget", "1", "--json").stdout)
    assert told["form"] == "groups"
    assert told["tokens"] == -(-len(told["text"].encode()) // 4)
    assert "# mail: 50 tools\n# notes: 50 tools" in told["text"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "0"), "--budget"),
        (("--budget", "9", "--language", "typescript"), "there is no index"),
    ],
)
def test_the_command_refuses_what_cannot_be(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = sdk(tmp_path, *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_the_two_calls_never_get_one_name() -> None:
    assert ptc.Discovery(search="x_tools", describe="x").free_names({"x"}) == ("x_tools", "x_tools_2")
    assert ptc.Discovery(search="x", describe="x_tools").free_names({"x"}) == ("x_tools_2", "x_tools")
    assert ptc.Discovery().free_names({"search", "search_tools"}) == ("search_tools_2", "describe")


def test_what_was_found_out_of_a_tool_set_is_kept_while_it_is_used() -> None:
    budget = SdkBudget(ToolRegistry(), 10_000)
    views = [ToolView(None, {f"t{n}": make(f"t{n}")}, frozenset({f"t{n}"})) for n in range(2 * _MAX_PLANS)]
    plan = budget.plan(views[0])
    for view in views:
        budget.plan(view)
        assert budget.plan(views[0]) is plan
    assert len(budget._plans) == _MAX_PLANS
