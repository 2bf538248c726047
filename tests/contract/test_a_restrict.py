"""Restrictions (contract A29 to A37)."""

from __future__ import annotations

import re

import pytest
from ptc.registry import ScopeKey, ToolRegistrationError

pytestmark = pytest.mark.anyio


@pytest.fixture
def agent():
    return ScopeKey("agent")


@pytest.fixture
def tools(rig, agent):
    for name in ("a", "b", "c"):
        rig.add(name)
    return rig.registry.context(agent)


@pytest.mark.contract("A29", "A30", "A31", "A32")
@pytest.mark.parametrize(
    ("scoped", "lists", "says"),
    [
        (False, {}, "needs a scope"),
        (False, {"deny": ["run_code", "x"]}, "needs a scope"),
        (True, {}, "no-op"),
        (True, {"allow": ["run_code", "x"]}, '"run_code" is the transport'),
        (True, {"deny": ["x", "run_code"]}, '"run_code" is the transport'),
        (True, {"deny": ["x"]}, r'unknown tool "x"; inherited tools: a, b, c$'),
        (True, {"allow": ["y", "a"], "deny": ["x", "y"]}, r'unknown tools "y", "x"; inherited tools: a, b, c$'),
    ],
)
def test_checks_come_in_order(rig, tools, scoped, lists, says):
    target = tools if scoped else rig.tools
    with pytest.raises(ToolRegistrationError, match=says):
        target.restrict(**lists)


@pytest.mark.contract("A32")
def test_without_inherited_tools_the_message_says_none(rig):
    tools = rig.registry.context(ScopeKey("agent"))
    tools.register(rig.define("own"))
    with pytest.raises(ToolRegistrationError, match=r'unknown tools "x", "own"; inherited tools: \(none\)$'):
        tools.restrict(deny=["x", "own", "x"])


@pytest.mark.contract("A32")
def test_known_names_are_told_in_order(rig):
    for name in ("b", "c", "a"):
        rig.add(name)
    with pytest.raises(ToolRegistrationError, match=r"inherited tools: a, b, c$"):
        rig.registry.context(ScopeKey("agent")).restrict(deny=["x"])


@pytest.mark.contract("A32")
def test_a_tool_that_is_hidden_already_still_counts_as_known(rig, tools, agent):
    tools.restrict(deny=["a"])
    tools.restrict(deny=["a"])
    assert rig.names(agent) == ["b", "c"]


@pytest.mark.contract("A30")
def test_an_empty_allow_list_hides_everything_inherited(rig, tools, agent):
    tools.register(rig.define("own"))
    tools.restrict(allow=[])
    assert rig.names(agent) == ["own"]


@pytest.mark.contract("A33")
def test_the_lists_are_copied_at_once(rig, tools, agent):
    lift = tools.restrict(allow=(name for name in ["a", "c"]))
    assert rig.names(agent) == ["a", "c"]
    lift()
    allow, deny = ["a", "b"], ["b"]
    tools.restrict(allow=allow, deny=deny)
    allow.append("c")
    deny.clear()
    assert rig.names(agent) == ["a"]


@pytest.mark.contract("A32", "A33")
@pytest.mark.parametrize(
    ("lists", "says"),
    [
        ({"deny": "a"}, "deny must be a list of names, not the string 'a'"),
        ({"allow": 5}, "allow must be a list of names, not int 5"),
        ({"allow": ["a"], "deny": True}, "deny must be a list of names, not bool True"),
        ({"allow": ["a", 5]}, "allow[1] must be the name of a tool, not int 5"),
        ({"deny": [["a"]]}, "deny[0] must be the name of a tool, not list"),
        ({"deny": b"a"}, "deny[0] must be the name of a tool, not int 97"),
    ],
)
def test_a_list_is_of_names(rig, tools, agent, lists, says):
    with pytest.raises(ToolRegistrationError, match=f"^{re.escape(says)}$"):
        tools.restrict(**lists)
    assert rig.names(agent) == ["a", "b", "c"]
    assert not rig.registry.has_layer(agent)


@pytest.mark.contract("A34")
def test_restrictions_intersect_and_lift_one_by_one(rig, tools, agent):
    first = tools.restrict(allow=["a", "b"])
    second = tools.restrict(allow=["b", "c"])
    third = tools.restrict(allow=["a", "b"], deny=["b"])
    assert rig.names(agent) == []
    third()
    assert rig.names(agent) == ["b"]
    first()
    assert rig.names(agent) == ["b", "c"]
    second()
    assert rig.names(agent) == ["a", "b", "c"]


@pytest.mark.contract("A35")
def test_restrictions_are_live(rig, tools, agent):
    lift_deny = tools.restrict(deny=["a"])
    rig.add("later")
    assert rig.names(agent) == ["b", "c", "later"]
    lift_allow = tools.restrict(allow=["b"])
    rig.add("latest")
    assert rig.names(agent) == ["b"]
    lift_allow()
    lift_deny()
    assert rig.names(agent) == ["a", "b", "c", "later", "latest"]


@pytest.mark.contract("A36")
async def test_the_transport_is_never_restricted(rig, tools, agent):
    transport = rig.define("run_code")
    tools.restrict(allow=[])
    assert not (await rig.run("run_code", agent=agent, transport=transport)).is_error


@pytest.mark.contract("A37")
async def test_calling_a_hidden_tool_is_like_calling_none(rig, tools, agent, kit):
    tools.restrict(deny=["a"])
    stages = []

    async def pre(call, next_):
        stages.append(("pre", call.name))
        return await next_()

    async def post(call, _result, next_):
        stages.append(("post", call.name))
        return await next_()

    rig.tools.on("tools/pre-execute", pre)
    rig.tools.on("tools/post-execute", post)
    hidden, unknown = await rig.run("a", agent=agent), await rig.run("zzz", agent=agent)
    assert kit.identity(hidden) == kit.identity(unknown) == ("ToolNotFoundError", "UNKNOWN_TOOL")
    assert kit.text(hidden) == 'Error: unknown tool "a"'
    assert kit.text(unknown) == 'Error: unknown tool "zzz"'
    assert stages == [("pre", "a"), ("post", "a"), ("pre", "zzz"), ("post", "zzz")]
