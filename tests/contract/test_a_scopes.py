"""Layers and scopes (contract A1 to A8)."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass

import pytest
from ptc.registry import ActivationContext, ScopeKey, ToolRegistrationError, ToolService
from ptc.registry.errors import ToolExecutorUnavailableError
from ptc.registry.scopes import IdentityMap

pytestmark = pytest.mark.anyio


@pytest.mark.contract("A1")
async def test_reading_never_makes_a_layer_and_the_first_contribution_does(rig):
    agent = ScopeKey("agent")
    tools = rig.registry.context(agent)
    assert rig.registry.has_layer(None)
    tools.get("echo")
    tools.definitions()
    tools.schemas()
    rig.registry.view(agent)
    await rig.run("nothing", agent=agent)
    assert not rig.registry.has_layer(agent)
    tools.guard(lambda _call: None)
    assert rig.registry.has_layer(agent)


@pytest.mark.contract("A1")
def test_a_refused_contribution_makes_no_layer(rig):
    agent = ScopeKey("agent")
    tools = rig.registry.context(agent)

    async def waits(_call):
        return None

    with pytest.raises(ToolRegistrationError, match="async"):
        tools.guard(waits)
    with pytest.raises(ToolRegistrationError):
        tools.register(rig.define("run_code"))
    with pytest.raises(ToolRegistrationError):
        tools.restrict(deny=["unknown"])
    assert not rig.registry.has_layer(agent)


@pytest.mark.contract("A2")
async def test_two_equal_looking_agents_are_two_scopes(rig):
    @dataclass(eq=True, unsafe_hash=True)
    class Agent(ScopeKey):
        label: str = ""

    one, other = Agent("same"), Agent("same")
    assert one == other
    rig.add("mine", scope=one)
    rig.registry.context(one).on("tools/pre-execute", _deny_nothing(rig, "one"))
    assert rig.names(one) == ["mine"]
    assert rig.names(other) == []
    assert (await rig.run("mine", agent=other)).is_error
    assert rig.seen == []
    rig.add("shared")
    tool_set = await rig.registry.resolve(ActivationContext(agent=one))
    assert list(tool_set.view(one)) == ["shared", "mine"]
    assert tool_set.view(other) == {}
    assert rig.registry.executable("shared", other, tool_set) is None
    rig.registry.bind(other, one)
    assert rig.names(other) == ["shared", "mine"]


def _deny_nothing(rig, label):
    async def listen(_call, next_):
        rig.note(label)
        return await next_()

    return listen


@pytest.mark.contract("A3")
def test_a_layer_goes_with_its_last_contribution_of_whatever_kind(rig):
    agent = ScopeKey("agent")
    tools = rig.registry.context(agent)
    rig.add("global")
    undo = [tools.register(rig.define("own")), tools.restrict(deny=["global"]), tools.guard(lambda _call: None)]
    for disposer in undo:
        assert rig.registry.has_layer(agent)
        disposer()
    assert not rig.registry.has_layer(agent)
    tools.register(rig.define("again"))
    assert rig.names(agent) == ["global", "again"]


@pytest.mark.contract("A3")
@pytest.mark.parametrize(
    "contribute",
    [
        lambda rig, tools, name: tools.register(rig.define(name)),
        lambda rig, tools, name: tools.restrict(deny=["global"]),
        lambda rig, tools, name: tools.guard(lambda _call: None),
    ],
    ids=["tool", "restriction", "guard"],
)
def test_one_contribution_of_a_kind_keeps_the_layer_and_the_last_one_takes_it_along(rig, contribute):
    agent = ScopeKey("agent")
    tools = rig.registry.context(agent)
    rig.add("global")
    first, second = contribute(rig, tools, "one"), contribute(rig, tools, "two")
    rig.tools.on("tools/change", lambda: rig.note(rig.registry.has_layer(agent)))
    first()
    assert rig.registry.has_layer(agent)
    second()
    assert not rig.registry.has_layer(agent)
    # Who is told of a change finds the layer gone already.
    assert rig.seen in ([True, False], [])


@pytest.mark.contract("A3")
def test_what_is_kept_for_a_scope_goes_with_the_scope():
    kept = IdentityMap()
    scopes = [ScopeKey("gone"), ScopeKey("stays")]
    for scope in scopes:
        kept.set(scope, scope.name)
    del scopes[0], scope
    gc.collect()
    assert len(kept) == 1
    assert kept.get(scopes[0]) == "stays"


@pytest.mark.contract("A3")
def test_a_forgotten_scope_leaves_nothing_behind(rig):
    agent = ScopeKey("agent")
    rig.add("own", scope=agent)
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None


@pytest.mark.contract("A4")
def test_binding_happens_once_and_only_the_handle_binds_elsewhere(rig):
    child, first, second = ScopeKey("child"), ScopeKey("first"), ScopeKey("second")
    rig.add("of-first", scope=first)
    rig.add("of-second", scope=second)
    handle = rig.registry.bind(child, first)
    assert rig.names(child) == ["of-first"]
    with pytest.raises(ToolRegistrationError, match="bound to a parent already"):
        rig.registry.bind(child, second)
    assert rig.names(child) == ["of-first"]
    below = ScopeKey("below")
    rig.registry.bind(below, child)
    assert rig.names(below) == ["of-first"]
    handle.rebind(second)
    assert rig.names(child) == ["of-second"]
    assert rig.names(below) == ["of-second"]


@pytest.mark.contract("A4")
def test_a_bind_that_would_form_a_cycle_fails(rig):
    top, middle, low = ScopeKey("top"), ScopeKey("middle"), ScopeKey("low")
    rig.registry.bind(middle, top)
    handle = rig.registry.bind(low, middle)
    for scope in (top, middle):
        with pytest.raises(ToolRegistrationError, match=r"cycle|already"):
            rig.registry.bind(scope, low)
    with pytest.raises(ToolRegistrationError, match="cycle"):
        rig.registry.bind(top, low)
    with pytest.raises(ToolRegistrationError, match="cycle"):
        handle.rebind(low)
    assert rig.registry.tree.chain(low) == (low, middle, top)


@pytest.mark.contract("A5", "A6")
async def test_registrations_flow_down_and_events_flow_up(rig):
    parent, child = ScopeKey("parent"), ScopeKey("child")
    rig.registry.bind(child, parent)
    rig.add("shared", scope=parent)
    rig.add("anywhere")
    rig.registry.context(parent).on("tools/pre-execute", _deny_nothing(rig, "parent"))
    rig.registry.context(child).on("tools/pre-execute", _deny_nothing(rig, "child"))
    rig.tools.on("tools/pre-execute", _deny_nothing(rig, "everywhere"))
    assert rig.names(child) == ["anywhere", "shared"]

    async def heard(agent):
        rig.seen.clear()
        await rig.run("anywhere", agent=agent)
        return [what for what in rig.seen if what != "body"]

    assert await heard(child) == ["parent", "child", "everywhere"]
    assert await heard(parent) == ["parent", "everywhere"]
    assert await heard(ScopeKey("stranger")) == ["everywhere"]
    assert await heard(None) == ["everywhere"]


@pytest.mark.contract("A7")
def test_the_registering_context_decides_the_layer(rig):
    agent, other = ScopeKey("agent"), ScopeKey("other")
    rig.registry.context(agent).register(rig.define("mine"))
    rig.tools.register(rig.define("ours"))
    assert rig.names(agent) == ["ours", "mine"]
    assert rig.names(other) == ["ours"]
    assert rig.names() == ["ours"]


@pytest.mark.contract("A8")
def test_a_disposer_removes_its_one_entry_once(rig):
    first = rig.add("echo")
    first()
    rig.add("echo")
    first()
    first()
    assert rig.names() == ["echo"]


@pytest.mark.contract("A8")
def test_teardown_of_the_owner_uses_the_same_disposers_in_reverse(rig):
    tools = rig.registry.context()
    changes: list[list[str]] = []
    early = tools.register(rig.define("early"))
    tools.register(rig.define("first"))
    late = tools.register(rig.define("second"))
    early()
    rig.tools.on("tools/change", lambda: changes.append(rig.names()))
    tools.close()
    assert changes == [["first"], []]
    late()
    early()
    assert changes == [["first"], []]
    assert late.disposed


@pytest.mark.contract("A8")
async def test_teardown_takes_back_contributions_of_every_kind(rig):
    agent = ScopeKey("agent")
    service = ToolService(rig.pipeline)
    rig.add("echo")
    before = rig.registry.context()
    before.on("tools/pre-execute", _deny_nothing(rig, "before"))
    tools = rig.registry.context(agent)
    tools.register(rig.define("own"))
    tools.restrict(deny=["echo"])
    tools.guard(lambda _call: "no")
    tools.on("tools/pre-execute", _deny_nothing(rig, "listener"))
    tools.set_executor(service.executor())
    rig.tools.on("tools/pre-execute", _deny_nothing(rig, "after"))
    tools.close()
    assert not rig.registry.has_layer(agent)
    with pytest.raises(ToolExecutorUnavailableError):
        service.executor(agent)
    assert (await rig.run(agent=agent)).value == {"ok": True}
    assert rig.seen == ["before", "after", "body"]


@pytest.mark.contract("A8")
def test_teardown_takes_everything_back_though_a_listener_raises(rig):
    tools = rig.registry.context()
    tools.register(rig.define("first"))
    tools.register(rig.define("second"))

    def object_to_it():
        raise LookupError("no")

    rig.tools.on("tools/change", object_to_it)
    with pytest.raises(ExceptionGroup) as caught:
        tools.close()
    assert len(caught.value.exceptions) == 2
    assert rig.names() == []


@pytest.mark.contract("A8")
def test_a_disposer_is_a_context_manager(rig):
    with rig.add("echo"):
        assert rig.names() == ["echo"]
    assert rig.names() == []
