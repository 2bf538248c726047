"""What a scope sees (contract A18 to A28)."""

from __future__ import annotations

import pytest
from ptc.registry import (
    ActivationContext,
    NativeExecutor,
    ScopeKey,
    ToolRegistrationError,
    ToolSchema,
    order_names,
)
from ptc.registry.values import MISSING

pytestmark = pytest.mark.anyio


@pytest.fixture
def chain(rig):
    """Three scopes under each other: top, middle, low."""
    top, middle, low = ScopeKey("top"), ScopeKey("middle"), ScopeKey("low")
    rig.registry.bind(middle, top)
    rig.registry.bind(low, middle)
    return top, middle, low


def described(rig, scope):
    """Returns name and description of what a scope sees; looking one of them up must find the same."""
    definitions = rig.registry.definitions(scope)
    for name in rig.registry.view(scope).known_names:
        assert rig.registry.get(name, scope) is next((each for each in definitions if each.name == name), None)
    return [(definition.name, definition.description) for definition in definitions]


@pytest.mark.contract("A18", "A20", "A24", "A26")
def test_nearer_tools_shadow_and_keep_the_place_of_the_farther(rig, chain):
    top, middle, low = chain
    for name in ("a", "b", "c"):
        rig.add(name, description="global")
    rig.add("d", scope=top, description="top")
    rig.add("b", scope=top, description="top")
    rig.add("d", scope=middle, description="middle")
    rig.add("a", scope=middle, description="middle")
    rig.add("e", scope=low, description="low")
    rig.add("c", scope=low, description="low")
    assert described(rig, low) == [("a", "middle"), ("b", "top"), ("c", "low"), ("d", "middle"), ("e", "low")]
    assert described(rig, middle) == [("a", "middle"), ("b", "top"), ("c", "global"), ("d", "middle")]
    assert described(rig, None) == [("a", "global"), ("b", "global"), ("c", "global")]


@pytest.mark.contract("A19")
def test_every_layer_of_the_chain_must_admit_an_inherited_name(rig, chain):
    top, middle, low = chain
    for name in ("a", "b", "c", "d"):
        rig.add(name)
    rig.registry.context(top).restrict(deny=["a"])
    rig.registry.context(middle).restrict(allow=["a", "b", "c"])
    rig.registry.context(low).restrict(deny=["b"])
    assert rig.names(low) == ["c"]
    assert rig.names(middle) == ["b", "c"]
    assert rig.names(top) == ["b", "c", "d"]
    for name in ("a", "b", "c", "d"):
        assert (rig.registry.get(name, low) is not None) == (name == "c")


@pytest.mark.contract("A19", "A24")
def test_a_farther_layer_hides_what_a_nearer_one_brings(rig, chain):
    top, middle, low = chain
    rig.add("a")
    rig.registry.context(top).restrict(deny=["a"])
    rig.add("a", scope=middle, description="middle")
    assert described(rig, low) == []
    assert described(rig, middle) == [("a", "middle")]


@pytest.mark.contract("A20", "A36")
def test_own_tools_are_exempt_from_every_restriction(rig, chain):
    top, _middle, low = chain
    rig.add("a")
    rig.add("own", scope=low)
    rig.add("a", scope=low, description="low")
    rig.registry.context(top).restrict(allow=[])
    rig.registry.context(low).restrict(deny=["a"])
    assert described(rig, low) == [("own", "the tool own"), ("a", "low")]
    assert rig.registry.get("a", low).description == "low"


@pytest.mark.contract("A21")
def test_a_restriction_hides_an_ancestors_own_tools_from_its_children_only(rig, chain):
    top, middle, low = chain
    rig.add("of-top")
    rig.add("of-middle", scope=middle)
    rig.registry.context(middle).restrict(allow=[])
    assert rig.names(middle) == ["of-middle"]
    assert rig.names(low) == []
    assert rig.registry.get("of-middle", low) is None
    assert rig.names(top) == ["of-top"]


@pytest.mark.contract("A22")
def test_known_names_are_inherited_and_own_before_restriction(rig, chain):
    _top, middle, low = chain
    rig.add("global")
    rig.add("of-middle", scope=middle)
    rig.add("own", scope=low)
    tools = rig.registry.context(low)
    tools.restrict(allow=[])
    assert rig.registry.view(low).known_names == {"global", "of-middle", "own"}
    assert rig.registry.view(None).known_names == {"global"}
    with pytest.raises(ToolRegistrationError, match='unknown tool "own"; inherited tools: global, of-middle'):
        tools.restrict(deny=["own"])


@pytest.mark.contract("A23")
async def test_the_transport_is_the_executors_and_in_no_view(rig, kit):
    transport = rig.define("run_code")
    assert (await rig.run("run_code", transport=transport)).value == {"ok": True}
    assert kit.identity(await rig.run("run_code")) == ("ToolNotFoundError", "UNKNOWN_TOOL")
    assert rig.registry.get("run_code") is None
    assert rig.registry.view().known_names == frozenset()


@pytest.mark.contract("A24", "A25", "A26", "A47")
async def test_inspection_sees_conditional_tools_and_execution_does_not(rig):
    agent = ScopeKey("agent")
    rig.add("plain")
    rig.add("maybe", when=lambda _context: True)
    rig.add("never", when=lambda _context: False)
    registry = rig.registry
    assert registry.get("maybe", agent) is not None
    assert registry.executable("maybe", agent) is None
    assert registry.executable("plain", agent) is registry.get("plain")
    tool_set = await registry.resolve(ActivationContext(agent=agent))
    assert registry.executable("maybe", agent, tool_set) is registry.get("maybe")
    assert registry.get("never", agent, tool_set) is None
    assert registry.executable("never", agent, tool_set) is None
    assert rig.names(agent) == ["plain", "maybe", "never"]
    assert rig.names(agent, tool_set) == ["plain", "maybe"]
    rig.add("late")
    assert registry.executable("late", agent, tool_set) is None


@pytest.mark.contract("A24")
def test_a_restricted_name_reads_as_absent(rig):
    agent = ScopeKey("agent")
    rig.add("echo")
    rig.registry.context(agent).restrict(deny=["echo"])
    assert rig.registry.get("echo", agent) is None
    assert rig.registry.get("echo") is not None
    assert rig.registry.context(agent).get("echo") is None


@pytest.mark.contract("A27")
def test_schemas_have_exactly_three_parts_and_are_copied_each_time(rig):
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
    rig.add("echo", parameters=parameters, timeout_ms=5, is_concurrency_safe=lambda _arguments: True)
    first, second = rig.registry.schemas()[0], rig.registry.schemas()[0]
    assert first == ToolSchema(name="echo", description="the tool echo", parameters=parameters)
    assert first.output is MISSING
    first.parameters["properties"]["n"]["type"] = "string"
    assert second.parameters == parameters == {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert rig.registry.schemas()[0].parameters == parameters


@pytest.mark.contract("A27")
def test_schemas_of_two_hundred_levels_are_cloned(rig):
    schema: dict[str, object] = {"type": "string"}
    for _ in range(180):
        schema = {"type": "array", "items": schema}
    rig.add("deep", parameters=schema)
    copy = rig.registry.schemas()[0].parameters
    depth = 0
    while "items" in copy:
        copy, depth = copy["items"], depth + 1
    assert depth == 180


@pytest.mark.contract("A26", "A27")
def test_the_sdk_is_given_the_output_schema_too(rig):
    rig.add("echo", schema={"type": "string"})
    assert rig.registry.view().schemas(with_output=True)[0].output == {"type": "string"}
    assert rig.registry.view().schemas()[0].output is MISSING


@pytest.mark.contract("A28")
def test_models_see_tools_by_name_unless_an_order_is_configured(rig):
    for name in ("b", "a", "C", "ä", "c"):
        rig.add(name)
    described_names = [schema.name for schema in NativeExecutor(rig.pipeline).describe(rig.registry.view()).schemas]
    assert described_names == ["C", "a", "b", "c", "ä"]
    order = ["c", "<unlisted-tools>", "a"]
    ordered = NativeExecutor(rig.pipeline, order=order)
    order.clear()
    assert [schema.name for schema in ordered.describe(rig.registry.view()).schemas] == ["c", "C", "b", "ä", "a"]


@pytest.mark.contract("A28")
@pytest.mark.parametrize(
    ("order", "says"),
    [
        (["a"], "exactly once"),
        (["<unlisted-tools>", "<unlisted-tools>"], "exactly once"),
        (["a", "<unlisted-tools>", "a"], 'repeats "a"'),
        (["<unlisted-tools>", "x"], 'an unknown tool: "x"'),
        (["y", "<unlisted-tools>", "x"], 'unknown tools: "y", "x"'),
    ],
)
def test_a_bad_order_fails_assembly(rig, order, says):
    rig.add("a")
    executor = NativeExecutor(rig.pipeline, order=order)
    with pytest.raises(ValueError, match=says):
        executor.describe(rig.registry.view())


@pytest.mark.contract("A28")
def test_an_order_may_name_a_known_tool_that_is_hidden():
    assert order_names(["a", "c"], ["b", "<unlisted-tools>"], {"a", "b", "c"}) == ["a", "c"]
