"""Conditional activation (contract A38 to A47)."""

from __future__ import annotations

import anyio
import pytest
from ptc.registry import (
    AbortError,
    ActivationContext,
    ExecutorDescription,
    ModelSelection,
    ScopeKey,
    SignalSource,
    ToolBatchInput,
    ToolCall,
    ToolService,
    run_batch,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def agent():
    return ScopeKey("agent")


@pytest.mark.contract("A38")
async def test_a_condition_gets_agent_model_and_signal_and_may_wait(rig, agent):
    asked = []

    async def waits(context):
        await anyio.lowlevel.checkpoint()
        asked.append(context)
        return True

    rig.add("later", when=waits)
    context = ActivationContext(agent=agent, model_selection=ModelSelection(provider="p", model="m"))
    tool_set = await rig.registry.resolve(context)
    assert list(tool_set.view(agent)) == ["later"]
    assert asked == [context]
    assert (asked[0].agent, asked[0].model_selection.model, asked[0].signal.aborted) == (agent, "m", False)
    with pytest.raises(AttributeError):
        asked[0].model_selection.model = "other"


@pytest.mark.contract("A39")
async def test_false_drops_the_tool_from_declaring_and_dispatching(rig, agent, kit):
    rig.add("plain")
    rig.add("off", when=lambda _context: False)
    rig.add("on", when=lambda _context: True)
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    assert [schema.name for schema in rig.registry.schemas(agent, tool_set)] == ["plain", "on"]
    refused = await rig.run("off", agent=agent, tool_set=tool_set)
    assert kit.identity(refused) == ("ToolNotFoundError", "UNKNOWN_TOOL")
    assert not (await rig.run("on", agent=agent, tool_set=tool_set)).is_error


@pytest.mark.contract("A39", "A41")
@pytest.mark.parametrize("answer", [None, 1, "yes"])
async def test_an_answer_that_is_no_bool_fails_the_step(rig, agent, answer):
    rig.add("odd", when=lambda _context: answer)
    with pytest.raises(TypeError, match='the condition of tool "odd" must answer True or False'):
        await rig.registry.resolve(ActivationContext(agent=agent))


@pytest.mark.contract("A39", "A41")
async def test_a_condition_that_raises_fails_the_step_and_changes_nothing(rig, agent):
    def fails(_context):
        raise LookupError("no quota service")

    rig.add("first", when=lambda _context: True)
    rig.add("second", when=fails)
    with pytest.raises(LookupError, match="no quota service"):
        await rig.registry.resolve(ActivationContext(agent=agent))
    assert rig.names(agent) == ["first", "second"]


@pytest.mark.contract("A40")
async def test_conditions_are_asked_once_for_each_step_and_change_nothing_shared(rig, agent):
    answers = iter([True, False])
    asked = []

    def when(_context):
        asked.append(1)
        return next(answers)

    rig.add("sometimes", when=when)
    first = await rig.registry.resolve(ActivationContext(agent=agent))
    for _ in range(3):
        await rig.run("sometimes", agent=agent, tool_set=first)
        first.view(agent)
    assert len(asked) == 1
    second = await rig.registry.resolve(ActivationContext(agent=agent))
    assert list(first.view(agent)) == ["sometimes"]
    assert list(second.view(agent)) == []
    assert rig.names(agent) == ["sometimes"]


@pytest.mark.contract("A41")
async def test_cancellation_publishes_nothing_and_asks_no_further(rig, agent):
    source = SignalSource()

    async def stubborn(context):
        source.abort("enough")
        await anyio.lowlevel.checkpoint()
        rig.note("answered")
        return True

    rig.add("first", when=stubborn)
    rig.add("second", when=lambda _context: rig.note("asked"))
    with pytest.raises(AbortError) as caught:
        await rig.registry.resolve(ActivationContext(agent=agent, signal=source.signal))
    assert caught.value.reason == "enough"
    assert rig.seen == ["answered"]


@pytest.mark.contract("A41")
async def test_a_cancellation_after_the_last_answer_publishes_nothing(rig, agent):
    source = SignalSource()
    rig.add("only", when=lambda _context: source.abort("enough") is None)
    with pytest.raises(AbortError):
        await rig.registry.resolve(ActivationContext(agent=agent, signal=source.signal))
    with pytest.raises(AbortError):
        await rig.registry.resolve(ActivationContext(agent=agent, signal=source.signal))


@pytest.mark.contract("A40")
async def test_the_condition_of_a_hidden_tool_is_not_asked(rig, agent):
    def fails(_context):
        raise LookupError("no quota service")

    rig.add("hidden", when=fails)
    rig.add("plain")
    rig.registry.context(agent).restrict(deny=["hidden"])
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    assert list(tool_set.view(agent)) == ["plain"]


@pytest.mark.contract("A42")
async def test_the_answer_for_a_registration_that_went_away_is_ignored(rig, agent):
    async def when(_context):
        undo()
        rig.add("moving", description="newer")
        await anyio.lowlevel.checkpoint()
        return True

    undo = rig.add("moving", when=when)
    rig.add("plain")
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    assert list(tool_set.view(agent)) == ["plain"]
    assert rig.registry.executable("moving", agent, tool_set) is None


@pytest.mark.contract("A42")
async def test_a_registration_gone_before_its_turn_is_not_asked(rig, agent):
    rig.add("plain", when=lambda _context: undo() is None)
    undo = rig.add("unasked", when=lambda _context: rig.note("asked") is None)
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    assert list(tool_set.view(agent)) == ["plain"]
    assert rig.seen == []


@pytest.mark.contract("A43")
async def test_a_set_answers_for_its_own_agent_only(rig, agent):
    parent, child = ScopeKey("parent"), ScopeKey("child")
    rig.registry.bind(agent, parent)
    rig.registry.bind(child, agent)
    definition = rig.define("echo")
    rig.tools.register(definition)
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    assert tool_set.view(agent)["echo"] is definition
    for other in (parent, child, None):
        assert tool_set.view(other) == {}
        assert rig.registry.executable("echo", other, tool_set) is None
    unscoped = await rig.registry.resolve(ActivationContext())
    assert list(unscoped.view(None)) == ["echo"]


@pytest.mark.contract("A44")
async def test_replacement_restriction_and_removal_take_a_tool_out_of_the_set(rig, agent, kit):
    definition = rig.define("echo")
    undo = rig.tools.register(definition)
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    lift = rig.registry.context(agent).restrict(deny=["echo"])
    assert tool_set.view(agent) == {}
    assert (await rig.run(agent=agent, tool_set=tool_set)).is_error
    lift()
    assert not (await rig.run(agent=agent, tool_set=tool_set)).is_error
    undo()
    rig.tools.register(definition)
    assert tool_set.view(agent) == {}
    again = await rig.run(agent=agent, tool_set=tool_set)
    assert kit.identity(again) == ("ToolNotFoundError", "UNKNOWN_TOOL")


@pytest.mark.contract("A44", "A45")
async def test_a_started_call_is_not_affected_and_nothing_is_admitted_after_disposal(rig, agent):
    async def body(_arguments, run):
        run.exec.tool_set.dispose()
        undo()
        return "done"

    undo = rig.add("echo", body)
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    result = await rig.run(agent=agent, tool_set=tool_set)
    assert result.value == "done"
    tool_set.dispose()
    assert tool_set.view(agent) == {}
    assert (await rig.run(agent=agent, tool_set=tool_set)).is_error


@pytest.mark.contract("A45")
async def test_a_disposed_set_admits_nothing_and_may_be_disposed_again(rig, agent, kit):
    rig.add("echo")
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    other = await rig.registry.resolve(ActivationContext(agent=agent))
    for _ in range(2):
        tool_set.dispose()
        assert tool_set.view(agent) == {}
        assert rig.registry.executable("echo", agent, tool_set) is None
        refused = await rig.run(agent=agent, tool_set=tool_set)
        assert kit.identity(refused) == ("ToolNotFoundError", "UNKNOWN_TOOL")
    assert rig.seen == []
    assert not (await rig.run(agent=agent, tool_set=other)).is_error


class Told:
    """An executor that says which tools it is shown, and runs batches natively."""

    def __init__(self, pipeline):
        self.pipeline = pipeline

    def describe(self, tools):
        return ExecutorDescription(schemas=tools.schemas(), known_names=tools.known_names)

    def sections(self, tools):
        return tuple(tools.definitions)

    async def execute(self, batch):
        return await run_batch(self.pipeline, batch)


@pytest.mark.contract("A46")
async def test_one_set_rules_declarations_sections_and_every_call_of_the_batch(rig, agent, kit):
    service = ToolService(rig.pipeline, default=Told(rig.pipeline))
    asked = []
    rig.add("plain")
    rig.add("on", when=lambda _context: True, is_concurrency_safe=lambda _arguments: asked.append("on") is None)
    rig.add("off", when=lambda _context: False, is_concurrency_safe=lambda _arguments: asked.append("off") is None)
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    rig.add("late")
    assert [schema.name for schema in service.describe(agent, tool_set).schemas] == ["plain", "on"]
    assert service.sections(agent, tool_set) == ("plain", "on")
    calls = [ToolCall(name=name, call_id=name) for name in ("plain", "on", "off", "late")]
    result = await service.execute(ToolBatchInput(calls=calls, agent=agent, tool_set=tool_set))
    assert [outcome.result.is_error for outcome in result.results] == [False, False, True, True]
    assert kit.identity(result.results[2].result) == ("ToolNotFoundError", "UNKNOWN_TOOL")
    assert asked == ["on"]  # whether calls may overlap is asked of what the step admitted, and of nothing else


@pytest.mark.contract("A46", "A47")
async def test_the_set_rules_declarations_as_it_rules_calls(rig, agent):
    rig.add("plain")
    rig.add("maybe", when=lambda _context: True)
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    assert list(rig.registry.view(agent, tool_set).definitions) == ["plain", "maybe"]
    assert list(rig.registry.view(agent).definitions) == ["plain"]
    assert (await rig.run("maybe", agent=agent)).is_error
