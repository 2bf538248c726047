"""What tools say of their effects: kept with the definition, and shown to whoever decides on a call."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

import anyio
import ptc
import pytest
from ptc.registry import RUN_CODE, Allow, Ask, Deny, ToolAnnotations, ToolRegistrationError
from ptc.runtime.discovery import Discovery
from ptc.runtime.policies.gate import PermissionGate, PermissionRule

pytestmark = pytest.mark.anyio

READS = ToolAnnotations(title="Look", read_only=True, open_world=False)


class Nothing(TypedDict):
    """No arguments."""


async def body(_arguments):
    return 1


def defined(door, **options):
    async def look() -> int:
        """Look."""
        return 1

    common = {"name": "look", "description": "", "execute": body}
    match door:
        case "tool":
            return ptc.tool(**options)(look)
        case "raw":
            return ptc.define_raw_tool(parameters={"type": "object"}, **common, **options)
        case "class":
            return ptc.define_tool(parameters=Nothing, output=int, **common, **options)
        case _:
            return ptc.define_tool(parameters={}, output={"type": "integer"}, **common, **options)


DOORS = pytest.mark.parametrize("door", ["tool", "raw", "class", "dsl"])


@DOORS
async def test_every_way_to_define_a_tool_keeps_them(door):
    assert defined(door, annotations=READS).annotations is READS
    assert defined(door, annotations=None).annotations is None
    assert defined(door).annotations is None


@DOORS
@pytest.mark.parametrize("wrong", [{"read_only": True}, True, "read_only"])
async def test_something_else_is_refused_where_the_tool_is_defined(door, wrong):
    with pytest.raises(TypeError, match=r"look\): annotations must be ToolAnnotations\(\.\.\.\), not "):
        defined(door, annotations=wrong)


async def test_something_else_is_refused_where_a_bare_definition_is_registered():
    async with ptc.Host() as host:
        with pytest.raises(ToolRegistrationError, match=r'tool "look" annotations must be ToolAnnotations'):
            host.tools.register(replace(defined("dsl"), annotations={"read_only": True}))
        assert host.tools.definitions() == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"read_only": 1}, "read_only must be True, False or None, not int"),
        ({"destructive": "yes"}, "destructive must be"),
        ({"idempotent": 0}, "idempotent must be"),
        ({"open_world": []}, "open_world must be"),
        ({"title": 5}, "title of a tool must be text or None, not int"),
    ],
)
async def test_claims_are_bools_or_nothing(given, problem):
    with pytest.raises(TypeError, match=problem):
        ToolAnnotations(**given)


@pytest.mark.parametrize(
    ("said", "assumed"),
    [
        # read_only, destructive, idempotent, open_world
        ((None, None, None, None), (False, True, False, True)),
        ((True, None, None, None), (True, False, True, True)),
        ((True, False, False, False), (True, False, True, False)),
        ((True, True, None, None), (False, True, False, True)),
        ((False, None, True, None), (False, True, True, True)),
        ((None, False, None, True), (False, False, False, True)),
        ((False, False, True, False), (False, False, True, False)),
    ],
)
async def test_what_is_not_said_is_taken_for_the_worse(said, assumed):
    names = ("read_only", "destructive", "idempotent", "open_world")
    made = ToolAnnotations(title="t", **dict(zip(names, said, strict=True))).assumed
    assert tuple(getattr(made, name) for name in names) == assumed
    assert made.title == "t"
    assert made.assumed == made


# Whoever decides ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def host(anyio_backend):
    async with ptc.Host() as host:
        host.tools.register(defined("tool", annotations=READS))
        host.tools.register(ptc.tool(name="silent")(defined("tool").function))
        yield host


async def call(agent, name):
    return (await agent.execute([ptc.ToolCall(name=name)])).results[0].result


async def test_policies_wrappers_bodies_and_observers_see_them(host):
    seen = []

    async def noting(run: ptc.ToolRunContext) -> int:
        """Note."""
        seen.append(run.exec.annotations)
        return 1

    host.tools.register(ptc.tool(annotations=READS)(noting))
    host.tools.guard(lambda exec: seen.append(exec.annotations))

    @host.on("tools/pre-execute")
    async def before(exec, next):
        seen.append(exec.annotations)
        return await next()

    @host.on("tools/execute")
    async def around(view, next):
        seen.append(view.annotations)
        with anyio.CancelScope():
            source = ptc.SignalSource()
            former, view.signal = view.signal, source.signal
            result = await next()
            view.signal = former
        return result

    host.on("tools/result", lambda exec, _result: seen.append(exec.annotations))
    agent = host.agent("a")
    assert not (await call(agent, "noting")).is_error
    assert seen == [READS] * 5
    del seen[:]
    await call(agent, "silent")
    await call(agent, "unknown")
    assert set(seen) == {None}


async def test_the_tools_of_ptc_say_what_they_do(host):
    jobs = ptc.Jobs(host)
    jobs.install(host.tools)
    claims = {one.name: one.annotations for one in host.tools.definitions() if one.name.startswith("job_")}
    assert [claims[name].assumed.read_only for name in ("job_list", "job_output", "job_kill")] == [True, False, False]
    assert [claims[name].assumed.destructive for name in ("job_output", "job_kill")] == [False, True]
    await jobs.aclose()


@pytest.mark.contract("K18")
@pytest.mark.parametrize(
    ("annotations", "denied"),
    [
        (ToolAnnotations(read_only=True), ["look"]),
        (ToolAnnotations(read_only=False), ["silent", "unknown"]),
        (ToolAnnotations(destructive=True), ["silent", "unknown"]),
        (ToolAnnotations(destructive=False), ["look"]),
        (ToolAnnotations(idempotent=True, open_world=False), ["look"]),
        (ToolAnnotations(read_only=True, open_world=True), []),
        (None, ["look", "silent", "unknown"]),
    ],
)
async def test_a_rule_is_about_the_tools_that_make_its_claims(host, annotations, denied):
    PermissionGate([PermissionRule("*", Deny("no"), annotations=annotations)]).install(host.tools)
    agent = host.agent("a")
    results = {name: await call(agent, name) for name in ("look", "silent", "unknown")}
    refused = [name for name, result in results.items() if result.is_error and result.error.message == "no"]
    assert refused == denied


@pytest.mark.contract("K18")
async def test_the_first_rule_that_fits_counts_whichever_has_claims(host):
    rules = [
        PermissionRule("*", Allow(), annotations=ToolAnnotations(read_only=True)),
        PermissionRule("*", Deny("no")),
    ]
    PermissionGate(rules).install(host.tools)
    agent = host.agent("a")
    assert not (await call(agent, "look")).is_error
    assert (await call(agent, "silent")).error.message == "no"


@pytest.mark.contract("K18")
async def test_a_rule_with_claims_is_about_the_calls_of_a_program_and_not_about_the_program(host):
    rules = [PermissionRule("*", Deny("no"), annotations=ToolAnnotations(destructive=True))]
    PermissionGate(rules).install(host.tools)
    agent = host.agent("a", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
    program = (
        "print(await tools.look())\ntry:\n    await tools.silent()\nexcept ToolCallError as error:\n    print(error)"
    )
    result = await agent.run_code(program)
    assert not result.is_error
    assert result.text.startswith("1\n")
    assert "no" in result.text
    assert not rules[0].fits(RUN_CODE, None)


async def test_the_calls_that_an_executor_provides_have_theirs(host):
    rules = [PermissionRule("*", Deny("no"), annotations=ToolAnnotations(read_only=False))]
    PermissionGate(rules).install(host.tools)
    for number in range(40):
        host.tools.register(ptc.tool(name=f"look_{number}", description="Look. " * 40)(defined("tool").function))
    executor = ptc.PtcExecutor(sandbox=ptc.WasmSandbox(), sdk_budget=2_000, discovery=Discovery())
    agent = host.agent("a", executor=executor)
    result = await agent.run_code("print(await tools.search(query='look'))")
    assert not result.is_error, result.text
    assert "look" in result.text


@pytest.mark.contract("K18")
@pytest.mark.parametrize(
    ("annotations", "says"),
    [
        ({"read_only": True}, r"annotations must be ToolAnnotations\(\.\.\.\), not dict"),
        (ToolAnnotations(), "must claim something of a tool"),
        (ToolAnnotations(title="x", read_only=True), "have no title"),
    ],
)
async def test_a_rule_without_a_claim_is_refused(annotations, says):
    with pytest.raises(ValueError, match=says):
        PermissionGate([PermissionRule("x", Ask(), annotations=annotations)])


async def test_a_rule_names_its_claims():
    rule = PermissionRule("x*", Deny("no"), annotations=ToolAnnotations(read_only=False, open_world=True))
    assert str(rule) == 'tool "x*", read_only false, open_world true'
    assert rule.fits("xy", None)
    assert not rule.fits("y", None)
    assert not rule.fits("xy", READS)
