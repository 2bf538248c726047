"""What holds for whom: sections of clients and agents over the whole file, and rules and lists in force."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import ptc
import pytest
from ptc.registry import ToolAnnotations, ToolRegistrationError
from ptc.runtime.config import Config

pytestmark = pytest.mark.anyio

SECTIONS = """
[sandbox]
compute_ms = 1000
memory_mib = 64

[[rules]]
tools = "all"
decision = "ask"

[clients."claude*"]
agent = "writer"
allow = ["fs_*", "git_*"]
deny = ["fs_delete"]
rules = [{tools = "client", decision = "deny"}]
sandbox = {compute_ms = 3000}

[clients."claude-code"]
sandbox = {compute_ms = 9000}

[clients.cursor]
deny = ["x"]

[agents.writer]
allow = ["fs_*", "web_*"]
deny = ["fs_secret"]
rules = [{tools = "agent", decision = "allow"}]
sandbox = {compute_ms = 2000, backend = "restricted"}

[agents.cursor]
sandbox = {memory_mib = 128}
"""


def limits(profile):
    return profile.sandbox.backend, profile.sandbox.compute_ms, profile.sandbox.memory_mib


async def test_a_client_has_its_own_section_over_its_agents_over_the_file(desk):
    profile = desk.load(SECTIONS).profile(client="claude-code")
    assert profile.agent == "writer"
    assert limits(profile) == ("restricted", 3000, 64)
    assert [rule.tool for rule in profile.rules] == ["client", "agent", "all"]
    names = ["fs_read", "fs_delete", "fs_secret", "git_log", "web_get", "other"]
    assert [name for name in names if profile.sees(name)] == ["fs_read"]


@pytest.mark.parametrize(
    ("who", "agent", "expected"),
    [
        ({"client": "cursor"}, "cursor", ("wasm", 1000, 128)),
        ({"client": "Claude"}, "Claude", ("wasm", 1000, 64)),
        ({"client": "writer"}, "writer", ("restricted", 2000, 64)),
        ({"agent": "writer"}, "writer", ("restricted", 2000, 64)),
        ({"client": "claude", "agent": "cursor"}, "cursor", ("wasm", 3000, 128)),
        ({}, None, ("wasm", 1000, 64)),
    ],
)
async def test_whoever_has_no_section_has_what_the_file_says(desk, who, agent, expected):
    profile = desk.load(SECTIONS).profile(**who)
    assert (profile.agent, limits(profile)) == (agent, expected)


async def test_a_section_can_set_something_back_to_its_default(desk):
    config = desk.load(
        "[sandbox]\npreflight = true\ncompute_ms = 5\n[agents.a.sandbox]\npreflight = false\ncompute_ms = 60000"
    )
    sandbox = config.profile(agent="a").sandbox
    assert (sandbox.preflight, sandbox.compute_ms) == (False, 60_000)


# In force -----------------------------------------------------------------------------------------------------------


class House:
    """A host with some tools, an agent for a profile, and the questions that were asked."""

    def __init__(self, host: ptc.Host) -> None:
        self.host = host
        self.asked: list[Any] = []
        self.run: list[str] = []

        @host.on("approval/request")
        async def answer(request: Any, _next: Any) -> Any:
            self.asked.append((request.tool_name, request.reason))
            return "rejected"

    def register(self, name: str, annotations: ToolAnnotations | None = None) -> ptc.registry.Disposer:
        async def execute(_arguments: Any) -> str:
            self.run.append(name)
            return name

        return self.host.tools.register(
            ptc.define_tool(
                name=name,
                description="",
                parameters={},
                output={"type": "string"},
                execute=execute,
                annotations=annotations,
            )
        )

    async def outcome(self, agent: ptc.Agent, name: str) -> str:
        batch = await agent.execute([ptc.ToolCall(name=name)])
        result = batch.results[0].result
        return "ran" if not result.is_error else result.error.message


@pytest.fixture
async def house(anyio_backend: str, tmp_path: Any) -> AsyncIterator[House]:
    async with ptc.Host(log=tmp_path / "log.db") as host:
        made = House(host)
        made.register("look", ToolAnnotations(read_only=True))
        made.register("add", ToolAnnotations(read_only=False, destructive=False))
        made.register("wipe", ToolAnnotations(destructive=True))
        made.register("silent")
        yield made


RULES = """
[[rules]]
tools = "silent"
decision = "deny"
reason = "not today"

[[rules]]
tools = "*"
read_only = true
decision = "allow"

[[rules]]
tools = "*"
destructive = true
decision = "ask"
reason = "it may delete"

[[rules]]
tools = "*"
decision = "deny"
"""


async def test_rules_by_name_and_by_annotations_allow_ask_and_deny(desk, house):
    agent = house.host.agent("a")
    desk.load(RULES).profile(agent="a").install(agent.tools)
    outcomes = {name: await house.outcome(agent, name) for name in ("look", "add", "wipe", "silent")}
    assert outcomes == {
        "look": "ran",
        "add": "the configuration does not permit this call",
        "wipe": 'the user rejected tool "wipe"',
        "silent": "not today",
    }
    assert house.asked == [("wipe", "it may delete")]
    assert house.run == ["look"]


async def test_a_denial_has_the_line_of_its_rule_on_record_and_not_before_the_model(desk, house):
    agent = house.host.agent("a")
    desk.load(RULES).profile().install(agent.tools)
    result = (await agent.execute([ptc.ToolCall(name="silent")])).results[0].result
    assert "ptc.toml" not in str(result.content) + result.error.message
    (event,) = [event for event in await agent.session.events() if event.type == "tool/result"]
    assert event.data["error"] == {
        "name": "PermissionError",
        "code": "PERMISSION_DENIED",
        "reason": 'ptc.toml:2: rules[0]: the rule for tools "silent"',
    }


async def test_patterns_are_for_the_calls_of_a_program_and_not_for_the_program(desk, house):
    agent = house.host.agent("a", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
    desk.load(RULES).profile().install(agent.tools)
    result = await agent.run_code(
        "print(await tools.look())\ntry:\n    await tools.add()\nexcept ToolCallError as error:\n    print(error)"
    )
    assert not result.is_error, result.text
    assert "look" in result.text
    assert "does not permit" in result.text


@pytest.mark.parametrize("place", ["before", "behind"])
async def test_programs_themselves_can_be_denied_by_their_full_name(desk, house, place):
    rule = '[[rules]]\ntools = "run_code"\ndecision = "deny"\nreason = "no programs"\n'
    agent = house.host.agent("a", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
    desk.load(rule + RULES if place == "before" else RULES + rule).profile().install(agent.tools)
    result = await agent.run_code("return 1")
    assert result.is_error
    assert result.error.message == "no programs"


async def test_rules_hold_for_one_agent_until_they_are_taken_away(desk, house):
    one, other = house.host.agent("one"), house.host.agent("other")
    installed = desk.load(RULES).profile().install(one.tools)
    assert await house.outcome(one, "silent") == "not today"
    assert await house.outcome(other, "silent") == "ran"
    installed()
    assert await house.outcome(one, "silent") == "ran"


# What is there ------------------------------------------------------------------------------------------------------


def seen(agent):
    return sorted(schema.name for schema in agent.describe().schemas)


LISTS = '[agents.a]\nallow = ["l*", "add", "new_*"]\ndeny = ["new_secret"]\n'


async def test_lists_hide_tools_that_are_there_and_that_come_and_go_later(desk, house):
    agent = house.host.agent("a")
    installed = desk.load(LISTS).profile(agent="a").install(agent.tools)
    assert seen(agent) == ["add", "look"]
    assert "unknown tool" in await house.outcome(agent, "wipe")
    gone = house.register("new_one")
    house.register("new_secret")
    house.register("later")
    house.register("x")
    assert seen(agent) == ["add", "later", "look", "new_one"]
    assert await house.outcome(agent, "new_one") == "ran"
    assert "unknown tool" in await house.outcome(agent, "new_secret")
    gone()
    assert seen(agent) == ["add", "later", "look"]
    house.register("new_one")
    assert seen(agent) == ["add", "later", "look", "new_one"]
    assert len(seen(house.host.agent("b"))) == 8
    installed()
    assert len(seen(agent)) == 8
    house.register("y")
    assert "y" in seen(agent)


async def test_nobody_sees_a_hidden_tool_for_a_moment(desk, house):
    agent = house.host.agent("a")
    sights: list[list[str]] = []
    house.host.tools.on("tools/change", lambda: sights.append(seen(agent)))
    desk.load(LISTS).profile(agent="a").install(agent.tools)
    del sights[:]
    house.register("new_secret")
    house.register("new_one")
    house.register("z")
    assert len(sights) >= 3
    assert {name for sight in sights for name in sight} == {"add", "look", "new_one"}
    assert sights[-1] == ["add", "look", "new_one"]


async def test_an_empty_list_hides_everything(desk, house):
    agent = house.host.agent("a")
    desk.load("[agents.a]\nallow = []\n").profile(agent="a").install(agent.tools)
    assert seen(agent) == []
    house.register("new")
    assert seen(agent) == []


async def test_lists_follow_the_tools_while_programs_call_them(desk, house):
    agent = house.host.agent("a", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
    desk.load('[agents.a]\ndeny = ["wipe"]\n').profile(agent="a").install(agent.tools)
    result = await agent.run_code("print('wipe' in tools, 'look' in tools)\nprint(await tools.look())")
    assert result.text.startswith("False True\nlook"), result.text


async def test_nothing_can_be_hidden_from_everybody(desk, house):
    with pytest.raises(ToolRegistrationError, match="a restriction needs a scope"):
        desk.load(LISTS + RULES).profile(agent="a").install(house.host.tools)
    assert await house.outcome(house.host.agent("b"), "silent") == "ran"


async def test_a_profile_without_rules_and_lists_changes_nothing(house):
    agent = house.host.agent("a")
    changes: list[None] = []
    house.host.tools.on("tools/change", lambda: changes.append(None))
    Config().profile(client="x").install(agent.tools)()
    assert changes == []
    with anyio.fail_after(5):
        assert await house.outcome(agent, "silent") == "ran"
