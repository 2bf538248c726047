"""Registering tools (contract A9 to A17)."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from ptc.registry import JsonSchemaError, ScopeKey, ToolDefinition, ToolOutput, ToolRegistrationError

pytestmark = pytest.mark.anyio


def faulty(rig, *faults):
    """Returns a definition that has all of these faults, so that the first check tells."""
    definition = rig.define("taken")
    output, schema, timeout, name = definition.output, definition.output.schema, None, "taken"
    if "schema" in faults:
        schema = {"type": "tuple"}
    if "timeout" in faults:
        timeout = -1
    if "reserved" in faults:
        name = "run_code"
    output = ToolOutput(schema=schema, render=None if "output" in faults else output.render)  # pyright: ignore
    return replace(definition, name=name, output=output, timeout_ms=timeout)


@pytest.mark.contract("A9", "A10", "A11")
@pytest.mark.parametrize(
    ("faults", "error", "says"),
    [
        (["output", "schema", "timeout", "reserved"], ToolRegistrationError, "must declare output"),
        (["schema", "timeout", "reserved"], JsonSchemaError, "schema.type must be one of"),
        (["timeout", "reserved"], ToolRegistrationError, "timeout_ms must be a positive finite number"),
        (["reserved"], ToolRegistrationError, "reserved"),
        ([], ToolRegistrationError, "registered globally already"),
    ],
)
def test_checks_come_in_order(rig, faults, error, says):
    rig.add("taken")
    with pytest.raises(error, match=says):
        rig.tools.register(faulty(rig, *faults))


@pytest.mark.contract("A9")
@pytest.mark.parametrize("timeout", [0, -1, math.inf, math.nan, True, "5"])
def test_a_timeout_is_a_positive_finite_number(rig, timeout):
    with pytest.raises(ToolRegistrationError, match='tool "slow" timeout_ms must be a positive finite number'):
        rig.add("slow", timeout_ms=timeout)
    rig.add("slow", timeout_ms=0.5)


@pytest.mark.contract("A9")
def test_presentation_meta_must_be_callable_if_present(rig):
    with pytest.raises(ToolRegistrationError, match=r'tool "x" must declare output \{ schema, render'):
        rig.add("x", presentation_meta="no function")


@pytest.mark.contract("A9")
@pytest.mark.parametrize(
    "output",
    [
        None,
        {"schema": {}, "render": list},
        SimpleNamespace(render=lambda _arguments, _value: []),
        SimpleNamespace(schema={}),
        SimpleNamespace(schema={}, render="text"),
        SimpleNamespace(schema={}, render=lambda _arguments, _value: [], presentation_meta=5),
    ],
)
def test_an_output_has_a_schema_and_a_render_that_can_be_called(rig, output):
    with pytest.raises(
        ToolRegistrationError, match=r'tool "x" must declare output \{ schema, render, presentation_meta'
    ):
        rig.tools.register(replace(rig.define("x"), output=output))
    assert rig.names() == []


@pytest.mark.contract("A9")
def test_name_body_and_condition_are_what_they_must_be(rig):
    for name in ("", None, 5):
        with pytest.raises(ToolRegistrationError, match="a tool's name must be a string that is not empty"):
            rig.tools.register(rig.define(name))
    with pytest.raises(ToolRegistrationError, match='tool "x" execute must be an async function'):
        rig.tools.register(rig.define("x", "no function"))
    assert rig.names() == []


@pytest.mark.contract("A9")
def test_what_is_no_definition_is_refused_with_the_way_out(rig):
    async def plain():
        return 1

    with pytest.raises(ToolRegistrationError, match="@tool or define_tool"):
        rig.tools.register(plain)


@pytest.mark.contract("A10", "A23")
@pytest.mark.parametrize("scope", [None, ScopeKey("agent")])
def test_the_name_of_the_transport_is_refused_everywhere(rig, scope):
    with pytest.raises(ToolRegistrationError, match='"run_code" is reserved'):
        rig.add("run_code", scope=scope)


@pytest.mark.contract("A11")
def test_a_duplicate_fails_in_its_layer_and_shadows_in_another(rig):
    agent = ScopeKey("agent")
    rig.add("echo")
    with pytest.raises(ToolRegistrationError, match="from the agent's own context"):
        rig.add("echo")
    rig.add("echo", scope=agent, description="nearer")
    with pytest.raises(ToolRegistrationError, match=r"already taken in this scope \('agent'\); dispose"):
        rig.add("echo", scope=agent)
    near, far = rig.registry.get("echo", agent), rig.registry.get("echo")
    assert near is not None
    assert far is not None
    assert (near.description, far.description) == ("nearer", "the tool echo")


@pytest.mark.contract("A12")
def test_lossy_parameters_fail_only_when_schemas_are_projected(rig):
    rig.add("odd", parameters={"type": "object", "default": {1, 2}})
    assert rig.names() == ["odd"]
    with pytest.raises(ToolRegistrationError, match='tool "odd" parameters must be lossless JSON before schema'):
        rig.registry.schemas()


@pytest.mark.contract("A12")
@pytest.mark.parametrize("parameters", [None, 5, "ab", {1: "number"}, {"const": float("nan")}])
def test_parameters_of_any_kind_are_registered_and_told_of_by_name_when_they_are_projected(rig, parameters):
    rig.add("good")
    rig.add("odd", parameters=parameters)
    assert rig.names() == ["good", "odd"]
    with pytest.raises(ToolRegistrationError, match=r'^tool "odd" parameters must be lossless JSON before schema'):
        rig.registry.schemas()


@pytest.mark.contract("A13")
def test_the_registry_borrows_the_very_definition(rig):
    definition = rig.define("echo")
    undo = rig.tools.register(definition)
    assert rig.registry.get("echo") is definition
    undo()
    swapped = rig.define("echo", description="newer")
    rig.tools.register(swapped)
    assert rig.registry.get("echo") is swapped


@pytest.mark.contract("A14")
def test_changes_are_told_at_once_to_every_scope_but_not_of_guards(rig):
    agent, stranger = ScopeKey("agent"), ScopeKey("stranger")
    rig.registry.context(stranger).on("tools/change", lambda: rig.note(rig.names(agent)))
    tools = rig.registry.context(agent)
    rig.add("shared")
    undo = tools.register(rig.define("own"))
    lift = tools.restrict(deny=["shared"])
    tools.guard(lambda _call: None)()
    lift()
    undo()
    assert rig.seen == [["shared"], ["shared", "own"], ["own"], ["shared", "own"], ["shared"]]


@pytest.mark.contract("A15")
def test_a_listener_that_raises_rolls_a_registration_back(rig):
    agent = ScopeKey("agent")
    tools = rig.registry.context(agent)
    rig.add("shared")

    def object_to_it():
        rig.note(rig.names(agent))
        raise LookupError("not here")

    rig.tools.on("tools/change", object_to_it)
    with pytest.raises(LookupError, match="not here"):
        tools.register(rig.define("own"))
    assert rig.seen == [["shared", "own"]]
    assert rig.names(agent) == ["shared"]
    with pytest.raises(LookupError):
        tools.restrict(allow=[])
    assert rig.names(agent) == ["shared"]
    assert not rig.registry.has_layer(agent)


@pytest.mark.contract("A15")
def test_a_listener_that_ends_the_program_rolls_back_too(rig):
    agent = ScopeKey("agent")
    tools = rig.registry.context(agent)
    rig.add("shared")

    def interrupts():
        raise KeyboardInterrupt

    rig.tools.on("tools/change", interrupts)
    for contribute in (lambda: tools.register(rig.define("own")), lambda: tools.restrict(allow=[])):
        with pytest.raises(KeyboardInterrupt):
            contribute()
        assert rig.names(agent) == ["shared"]
        assert not rig.registry.has_layer(agent)


@pytest.mark.contract("A16")
async def test_a_condition_is_optional(rig):
    rig.tools.register(rig.define("plain"))
    with pytest.raises(ToolRegistrationError, match='the condition of tool "odd" must be callable'):
        rig.tools.register(rig.define("odd"), when=True)
    rig.tools.register(rig.define("also"), when=None)
    assert not (await rig.run("plain")).is_error
    assert not (await rig.run("also")).is_error


@pytest.mark.contract("A17")
async def test_the_registry_does_not_check_the_arguments_of_raw_definitions(rig):
    taken = []

    async def body(arguments, _run):
        taken.append(arguments)
        return

    strict = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    rig.add("raw", body, parameters=strict)
    assert isinstance(rig.registry.get("raw"), ToolDefinition)
    assert not (await rig.run("raw", {"n": "text"})).is_error
    assert taken == [{"n": "text"}]
