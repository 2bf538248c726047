"""Permission gates, and what of a denial is durable but not shown to a model (contract K18, K19)."""

from __future__ import annotations

import ptc
import pytest
from ptc.registry import ErrorInfo, Signal, ToolExecutionInput
from ptc.runtime.policies.gate import PermissionGate, PermissionRule

pytestmark = pytest.mark.anyio

INFO = ErrorInfo("PolicyError", "READ_ONLY", "ticket 4711: read-only until Friday")
RULE = PermissionRule


@pytest.fixture
def presets(desk):
    return ptc.PermissionPresets(desk.host.approvals)


def install(desk, *rules, **options):
    return PermissionGate(rules, **options).install(desk.host.tools)


# Rules --------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("K18")
@pytest.mark.parametrize(
    ("decision", "outcome"),
    [(ptc.Allow(), None), (ptc.Deny("no"), "no"), (ptc.Ask("why"), 'the user rejected tool "delete"')],
)
async def test_a_rule_allows_denies_or_asks(desk, decision, outcome):
    desk.answer("rejected")
    install(desk, RULE("delete", decision))
    result = await desk.call()
    assert (result.error.message if result.is_error else None) == outcome
    assert ("deleted 1" in desk.seen) == (outcome is None)
    asked = await desk.events("approval/asked")
    assert [event.data["reason"] for event in asked] == (["why"] if isinstance(decision, ptc.Ask) else [])


@pytest.mark.contract("K18")
@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("delete", True), ("del*", True), ("*", True), ("d?lete", True), ("[a-e]elete", True),
        ("del", False), ("elete", False), ("DELETE", False), ("delete?", False), ("[!d]elete", False), ("del.*", False),
        ("write", False),
    ],
)  # fmt: skip
async def test_a_pattern_is_for_the_whole_name(desk, pattern, fits):
    install(desk, RULE(pattern, ptc.Deny("no")))
    assert (await desk.call()).is_error == fits


@pytest.mark.contract("K18")
async def test_the_first_rule_that_fits_counts(desk):
    install(desk, RULE("write", ptc.Deny("first")), RULE("del*", ptc.Deny("second")), RULE("*", ptc.Deny("third")))
    assert (await desk.call()).error.message == "second"


@pytest.mark.contract("K18")
async def test_an_allow_spares_a_call_the_rules_after_it(desk):
    install(desk, RULE("del*", ptc.Allow()), RULE("*", ptc.Deny("no")))
    assert not (await desk.call()).is_error
    assert (await desk.call("write")).error.message == "no"


@pytest.mark.contract("K18", "K17")
async def test_a_rule_with_a_sandbox_mode_goes_by_the_agents_own(desk, presets):
    rules = [
        RULE("delete", ptc.Deny("only with full access"), sandbox="workspace-write"),
        RULE("delete", ptc.Allow(), sandbox="danger-full-access"),
        RULE("*", ptc.Deny("unknown mode")),
    ]
    install(desk, *rules, presets=presets)
    assert (await desk.call()).error.message == "only with full access"
    await presets.set(desk.agent, "danger-full-access")
    assert not (await desk.call()).is_error
    await presets.set(desk.agent, "workspace-write")
    assert (await desk.call()).error.message == "only with full access"


@pytest.mark.contract("K18", "K15")
async def test_a_preset_of_never_has_what_the_gate_asks_about_rejected(desk, presets, kit):
    table = {"open": ptc.Preset("open", "ask"), "unattended": ptc.Preset("open", "never")}
    presets = ptc.PermissionPresets(desk.host.approvals, table)
    desk.answer("allowed-once")
    install(desk, RULE("delete", ptc.Ask("deletes for good"), sandbox="open"), presets=presets)
    assert not (await desk.call()).is_error
    await presets.set(desk.agent, "unattended")
    assert kit.identity(await desk.call()) == ("ApprovalError", "APPROVAL_REJECTED")


@pytest.mark.contract("K18")
async def test_a_call_without_an_agent_has_the_mode_of_the_first_preset(desk, presets):
    install(desk, RULE("delete", ptc.Deny("no"), sandbox="workspace-write"), presets=presets)
    result = await desk.host.pipeline.execute(
        ToolExecutionInput(call_id="c1", name="delete", arguments={"id": 1}, signal=Signal())
    )
    assert result.error.message == "no"


# A listener like any other ------------------------------------------------------------------------------------------


@pytest.mark.contract("K18", "C13")
@pytest.mark.parametrize(
    ("own", "inner", "outcome"),
    [
        (ptc.Allow(), ptc.Deny("inner"), "inner"),
        (ptc.Ask("own"), ptc.Deny("inner"), "inner"),
        (ptc.Ask("own"), ptc.Cancel(), "tool call aborted before dispatch"),
        (ptc.Deny("own"), ptc.Allow(), "own"),
        (ptc.Deny("own"), ptc.Deny("inner"), "own"),
        (ptc.Ask("own"), ptc.Allow(), ["own"]),
        (ptc.Ask("own"), ptc.Ask("inner"), ["inner"]),
        (ptc.Allow(), ptc.Ask("inner"), ["inner"]),
        (None, ptc.Ask("inner"), ["inner"]),
        (ptc.Allow(), ptc.Allow(), []),
    ],
)
async def test_a_gate_tightens_what_later_listeners_say_and_never_loosens_it(desk, own, inner, outcome):
    desk.answer("allowed-once")
    install(desk, *([] if own is None else [RULE("delete", own)]))

    @desk.host.on("tools/pre-execute")
    async def later(_call, _next):
        return inner

    result = await desk.call()
    asked = [event.data["reason"] for event in await desk.events("approval/asked")]
    assert (result.error.message if result.is_error else asked) == outcome


@pytest.mark.contract("K18", "C26")
async def test_a_guard_is_a_harder_limit_than_any_rule_or_answer(desk):
    desk.answer("allowed-once")
    install(desk, RULE("delete", ptc.Ask("sure?")))
    desk.host.tools.guard(lambda _call: "never")
    assert (await desk.call()).error.message == "never"


@pytest.mark.contract("K18")
async def test_a_gate_is_installed_for_a_scope_before_or_behind_others_and_taken_away(desk):
    @desk.host.on("tools/pre-execute")
    async def earlier(_call, _next):
        return ptc.Deny("the listener")

    gate = PermissionGate([RULE("delete", ptc.Deny("the gate"))])
    with gate.install(desk.agent.tools):
        assert (await desk.call()).error.message == "the listener"
    with gate.install(desk.agent.tools, prepend=True):
        assert (await desk.call()).error.message == "the gate"
    with gate.install(desk.host.agent("other").tools, prepend=True):
        assert (await desk.call()).error.message == "the listener"
    assert (await desk.call()).error.message == "the listener"


@pytest.mark.contract("K18")
async def test_a_gate_can_be_given_to_on_as_it_is(desk):
    desk.host.on("tools/pre-execute", PermissionGate(iter([RULE("delete", ptc.Deny("no"))])))
    assert (await desk.call()).error.message == "no"
    (result,) = await desk.events("tool/result")
    assert result.data["decision"] == {"outcome": "deny", "by": "ptc.runtime.policies.gate.PermissionGate"}


# Trouble ------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("K18", "C24")
async def test_a_mode_that_cannot_be_read_lets_nothing_through(desk, presets, kit, monkeypatch):
    async def unreadable():
        raise OSError("input/output error on /dev/sda")

    install(desk, RULE("other", ptc.Deny("no"), sandbox="danger-full-access"), presets=presets)
    monkeypatch.setattr(desk.agent.session, "events", unreadable)
    result = await desk.call()
    assert kit.identity(result) == ("LogUnavailableError", "LOG_UNAVAILABLE")
    assert 'tool "delete" is not permitted' in result.error.message
    assert "sda" not in kit.text(result)
    assert desk.seen == []


@pytest.mark.contract("K18", "C24")
@pytest.mark.parametrize("mode", ["of an older table", 5])
async def test_a_mode_that_no_preset_has_lets_nothing_through(desk, presets, mode):
    install(desk, RULE("delete", ptc.Deny("no"), sandbox="workspace-write"), presets=presets)
    await desk.agent.session.append("permission/sandbox", {"mode": mode})
    assert 'tool "delete" is not permitted, because the sandbox mode' in (await desk.call()).error.message
    assert desk.seen == []


@pytest.mark.contract("K18")
@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (("delete", ptc.Deny("no")), r"permission rule 2 must be a PermissionRule, not tuple"),
        (RULE, r"permission rule 2 must be a PermissionRule, not the class PermissionRule"),
        (RULE("", ptc.Allow()), r'permission rule 2 \(tool ""\): tool must be a pattern'),
        (RULE(5, ptc.Allow()), r'permission rule 2 \(tool "5"\): tool must be a pattern'),
        (RULE("del*", ptc.Allow), r'permission rule 2 \(tool "del\*"\): decision must be .* not the class Allow'),
        (RULE("del*", "deny"), r"decision must be Allow\(\), Deny\(reason\) or Ask\(reason\), not str 'deny'"),
        (RULE("del*", ptc.Cancel()), r"decision must be .* not Cancel"),
        (RULE("del*", ptc.Deny(None)), r'permission rule 2 \(tool "del\*"\): Deny\.reason must be a string'),
        (RULE("del*", ptc.Deny("no", "READ_ONLY")), r"Deny\.info must be an ErrorInfo"),
        (RULE("del*", ptc.Ask(5)), r"Ask\.reason must be a string"),
        (RULE("del*", ptc.Ask("why", {"de": "warum"})), r'has "en"'),
        (RULE("del*", ptc.Allow(), sandbox="workspace-wrte"), r"no preset has that sandbox mode; the modes are danger"),
        (RULE("del*", ptc.Allow(), sandbox=["workspace-write"]), r"no preset has that sandbox mode"),
    ],
)
async def test_a_rule_is_checked_when_the_gate_is_made_and_named(presets, rule, says):
    with pytest.raises(ValueError, match=says):
        PermissionGate([RULE("*", ptc.Allow()), rule], presets=presets)


@pytest.mark.contract("K18")
async def test_rules_with_a_mode_need_presets(desk):
    with pytest.raises(
        ValueError, match=r'rule 1 \(tool "delete", sandbox mode "workspace-write"\): .* needs presets='
    ):
        PermissionGate([RULE("delete", ptc.Allow(), sandbox="workspace-write")])


# What is durable and not shown --------------------------------------------------------------------------------------


def deny_before(host, info):
    @host.on("tools/pre-execute")
    async def policy(call, next):
        return ptc.Deny("refused", info) if call.name == "delete" else await next()


def deny_by_guard(host, info):
    host.tools.guard(lambda call: ptc.ToolGuardDenial("refused", info) if call.name == "delete" else None)


def block_after(host, info):
    @host.on("tools/post-execute")
    async def policy(call, _result, next):
        return ptc.Block([ptc.text_block("refused")], info) if call.name == "delete" else await next()


def deny_by_rule(host, info):
    PermissionGate([RULE("delete", ptc.Deny("refused", info))]).install(host.tools)


POLICIES = pytest.mark.parametrize("policy", [deny_before, deny_by_guard, block_after, deny_by_rule])
RECORDED = {"name": "PolicyError", "code": "READ_ONLY", "reason": INFO.reason}


@pytest.mark.contract("K19", "C63")
@POLICIES
async def test_the_reason_of_a_denied_call_is_durable_and_not_shown(desk, kit, policy):
    policy(desk.host, INFO)
    result = await desk.call()
    assert result.error.info == INFO
    assert "refused" in kit.text(result)
    assert "4711" not in str(result.content)
    assert "4711" not in result.error.message
    async with ptc.Host(log=desk.log) as reader:
        (event,) = [e for e in await reader._store.events(desk.agent.session.id) if e.type == "tool/result"]
    assert event.data["error"] == RECORDED
    assert "4711" not in str(event.data["message"])


@pytest.mark.contract("K19", "C63")
@POLICIES
async def test_the_reason_of_a_denied_call_of_a_program_is_durable_and_not_shown(desk, policy):
    policy(desk.host, INFO)
    desk.host.set_executor(desk.agent, ptc.PtcExecutor(sandbox=ptc.WasmSandbox()))
    program = "try:\n    await tools.delete(id=1)\nexcept ToolCallError as error:\n    print(error, vars(error))"
    result = await desk.agent.run_code(program)
    assert not result.is_error
    assert "refused" in result.content[0]["text"]
    assert "4711" not in str(result.content)
    assert "READ_ONLY" not in str(result.content)
    (event,) = await desk.events("tool/ptc-dispatch")
    assert event.data["error"] == RECORDED
    assert "4711" not in str(event.data["content"])
    (root,) = await desk.events("tool/result")
    assert "4711" not in str(root.data)


@pytest.mark.contract("K18", "K19")
async def test_a_denial_of_a_rule_without_info_names_the_rule_in_the_record_alone(desk, kit, presets):
    rule = RULE("del*", ptc.Deny("read-only scope"), sandbox="workspace-write")
    install(desk, RULE("x", ptc.Allow()), rule, presets=presets)
    result = await desk.call()
    assert kit.text(result) == "Error: read-only scope"
    (event,) = await desk.events("tool/result")
    assert event.data["error"] == {
        "name": "PermissionError",
        "code": "PERMISSION_DENIED",
        "reason": 'permission rule 2 (tool "del*", sandbox mode "workspace-write")',
    }
