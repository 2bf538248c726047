"""Permission presets: a sandbox mode and an approval policy under one name (contract K17)."""

from __future__ import annotations

import anyio
import ptc
import pytest
from ptc.registry import ScopeKey
from ptc.runtime.log.events import PermissionPresetSet, SandboxModeSet, read_event
from ptc.runtime.policies.presets import DEFAULT_PRESETS

pytestmark = pytest.mark.anyio

TABLE = {
    "read-only": ptc.Preset("read-only", "ask"),
    "workspace-write": ptc.Preset("workspace-write", "ask"),
    "unattended": ptc.Preset("workspace-write", "never"),
    "batch": ptc.Preset("workspace-write", "never"),
}


@pytest.fixture
def presets(desk):
    return ptc.PermissionPresets(desk.host.approvals)


async def recorded(desk):
    return [(event.type, dict(event.data)) for event in await desk.events()]


@pytest.mark.contract("K17")
def test_the_defaults_are_two_presets():
    assert dict(DEFAULT_PRESETS) == {
        "workspace-write": ptc.Preset(sandbox="workspace-write", approval="ask"),
        "danger-full-access": ptc.Preset(sandbox="danger-full-access", approval="never"),
    }


@pytest.mark.contract("K17")
async def test_an_agent_begins_with_the_first_preset_and_nothing_on_record(desk, presets):
    assert await presets.current(desk.agent) == "workspace-write"
    assert await presets.sandbox(desk.agent) == "workspace-write"
    assert await desk.events() == []


@pytest.mark.contract("K17", "I12")
async def test_set_records_the_preset_and_both_knobs_when_both_change(desk, presets):
    await presets.set(desk.agent, "danger-full-access", source="the operator")
    assert await recorded(desk) == [
        ("permission/preset", {"preset": "danger-full-access"}),
        ("permission/sandbox", {"mode": "danger-full-access", "source": "the operator"}),
        ("approval/policy", {"policy": "never", "source": "the operator"}),
    ]
    assert await presets.current(desk.agent) == "danger-full-access"
    assert await presets.sandbox(desk.agent) == "danger-full-access"
    assert await desk.host.approvals.policy(desk.agent) == "never"
    first, second, _third = await desk.events()
    assert read_event(first) == PermissionPresetSet(preset="danger-full-access")
    assert read_event(second) == SandboxModeSet(mode="danger-full-access", source="the operator")


@pytest.mark.contract("K17")
@pytest.mark.parametrize(
    ("before", "written"),
    [
        (("workspace-write", "ask"), ["permission/preset"]),
        (("workspace-write", "never"), ["permission/preset", "approval/policy"]),
        (("danger-full-access", "ask"), ["permission/preset", "permission/sandbox"]),
    ],
)
async def test_set_records_only_the_knobs_that_change(desk, presets, before, written):
    sandbox, approval = before
    await presets.set_sandbox(desk.agent, sandbox)
    await desk.host.approvals.set_policy(desk.agent, approval)
    known = len(await desk.events())
    await presets.set(desk.agent, "workspace-write")
    assert [event.type for event in (await desk.events())[known:]] == written
    assert await presets.current(desk.agent) == "workspace-write"


@pytest.mark.contract("K17", "K16")
async def test_the_model_is_told_of_each_knob_that_changed(desk, presets, kit):
    await presets.set(desk.agent, "danger-full-access")
    await presets.set(desk.agent, "danger-full-access")
    batch = await desk.agent.execute([ptc.ToolCall(name="delete", arguments={"id": 1})])
    sandbox, approval = kit.texts(batch)
    assert sandbox == 'The sandbox mode is now "danger-full-access".'
    assert '"never"' in approval
    assert [message.source["plugin"] for message in batch.additional_contexts] == ["permissions", "approval"]


@pytest.mark.contract("K17")
async def test_knobs_that_no_preset_has_are_custom(desk, presets):
    await desk.host.approvals.set_policy(desk.agent, "never")
    assert await presets.current(desk.agent) == "custom"
    await presets.set_sandbox(desk.agent, "danger-full-access")
    assert await presets.current(desk.agent) == "danger-full-access"  # nobody chose it; it is what the knobs say
    await desk.host.approvals.set_policy(desk.agent, "ask")
    assert await presets.current(desk.agent) == "custom"


@pytest.mark.contract("K17")
async def test_of_presets_with_the_same_knobs_the_chosen_one_counts(desk):
    presets = ptc.PermissionPresets(desk.host.approvals, TABLE)
    assert await presets.current(desk.agent) == "read-only"
    await presets.set(desk.agent, "batch")
    assert await presets.current(desk.agent) == "batch"
    await desk.host.approvals.set_policy(desk.agent, "ask")
    assert await presets.current(desk.agent) == "workspace-write"
    await presets.set(desk.agent, "read-only")
    await presets.set_sandbox(desk.agent, "workspace-write")
    await desk.host.approvals.set_policy(desk.agent, "never")
    assert await presets.current(desk.agent) == "unattended"


@pytest.mark.contract("K17")
@pytest.mark.parametrize("name", ["full-access", "", "custom", None, 5, ["workspace-write"]])
async def test_an_unknown_preset_raises_before_anything_is_recorded(desk, presets, name):
    with pytest.raises(ValueError, match=r"there is no preset .*; the presets are workspace-write, danger-full-access"):
        await presets.set(desk.agent, name)
    with pytest.raises(TypeError, match="source must be a string"):
        await presets.set(desk.agent, "danger-full-access", source=5)
    assert await desk.events() == []
    assert desk.agent.take_notices() == ()


@pytest.mark.contract("K17")
@pytest.mark.parametrize("mode", ["read-only", "", None, ["workspace-write"]])
async def test_an_unknown_sandbox_mode_raises_before_anything_is_recorded(desk, presets, mode):
    with pytest.raises(ValueError, match="no preset has the sandbox mode"):
        await presets.set_sandbox(desk.agent, mode)
    with pytest.raises(TypeError, match="source must be a string"):
        await presets.set_sandbox(desk.agent, "danger-full-access", source=5)
    assert await desk.events() == []


@pytest.mark.contract("K17")
@pytest.mark.parametrize(
    ("table", "error", "says"),
    [
        ({}, ValueError, "at least one"),
        ({"custom": ptc.Preset("x", "ask")}, ValueError, '"custom" is reserved'),
        ({"": ptc.Preset("x", "ask")}, ValueError, "not empty"),
        ({1: ptc.Preset("x", "ask")}, ValueError, "not 1"),
        ({"open": ("x", "ask")}, TypeError, 'preset "open" must be a Preset, not tuple'),
        ([("open", "x")], TypeError, "mapping"),
    ],
)
def test_a_table_is_checked_when_it_is_given(desk, table, error, says):
    with pytest.raises(error, match=says):
        ptc.PermissionPresets(desk.host.approvals, table)


@pytest.mark.contract("K17")
@pytest.mark.parametrize("knobs", [("", "ask"), (None, "ask"), ("x", "always"), ("x", None)])
def test_a_preset_is_checked_when_it_is_made(knobs):
    with pytest.raises(ValueError, match="not "):
        ptc.Preset(*knobs)


@pytest.mark.contract("K17")
def test_the_table_is_a_copy_that_nobody_changes(desk):
    table = dict(TABLE)
    presets = ptc.PermissionPresets(desk.host.approvals, table)
    table.clear()
    assert presets.table == TABLE
    assert presets.modes == {"read-only", "workspace-write"}
    with pytest.raises(TypeError):
        presets.table["more"] = ptc.Preset("x", "ask")


@pytest.mark.contract("K17", "I12")
async def test_the_mode_is_the_agents_own_and_goes_on_with_its_session(desk, presets):
    await presets.set(desk.agent, "danger-full-access")
    assert await presets.sandbox(desk.host.agent("other")) == "workspace-write"
    assert await presets.sandbox(ScopeKey("no agent")) == await presets.sandbox(None) == "workspace-write"
    async with ptc.Host(log=desk.log) as host:
        again = host.agent("clerk", session=desk.agent.session.id)
        resumed = ptc.PermissionPresets(host.approvals)
        await resumed.set_sandbox(again, "danger-full-access")
        assert await resumed.current(again) == "danger-full-access"
        assert len(await again.session.events()) == 3


@pytest.mark.contract("K17")
async def test_without_a_log_the_mode_is_in_memory(anyio_backend):
    async with ptc.Host() as host:
        agent, presets = host.agent("clerk"), ptc.PermissionPresets(host.approvals)
        await presets.set(agent, "danger-full-access")
        assert await presets.current(agent) == "danger-full-access"
        await presets.set(agent, "workspace-write")
        assert await presets.current(agent) == "workspace-write"


@pytest.mark.contract("K17")
@pytest.mark.parametrize(
    ("refused", "then"),
    [
        ("permission/preset", "workspace-write"),
        ("permission/sandbox", "workspace-write"),
        ("approval/policy", "custom"),
    ],
)
async def test_what_counts_are_the_knobs_that_could_be_recorded(desk, presets, monkeypatch, refused, then):
    desk.refuse(monkeypatch, refused)
    with pytest.raises(OSError, match="no space left"):
        await presets.set(desk.agent, "danger-full-access")
    assert await presets.current(desk.agent) == then


@pytest.mark.contract("K17")
async def test_a_preset_is_set_whole_when_its_maker_is_cancelled(desk, presets, monkeypatch):
    append, writing, released = desk.agent.session.append, anyio.Event(), anyio.Event()

    async def slow(*args, **options):
        writing.set()
        await released.wait()
        return await append(*args, **options)

    monkeypatch.setattr(desk.agent.session, "append", slow)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(presets.set, desk.agent, "danger-full-access")
        await writing.wait()
        tasks.cancel_scope.cancel()
        released.set()
    assert await desk.types() == ["permission/preset", "permission/sandbox", "approval/policy"]


@pytest.mark.contract("K17")
async def test_two_presets_at_once_are_set_one_after_the_other(desk, presets):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(presets.set, desk.agent, "danger-full-access")
        tasks.start_soon(presets.set, desk.agent, "workspace-write")
    changed = ["permission/preset", "permission/sandbox", "approval/policy"]
    assert await desk.types() in (changed * 2, ["permission/preset", *changed])  # whichever came first
    last = [event.data["preset"] for event in await desk.events("permission/preset")][-1]
    assert await presets.current(desk.agent) == last


@pytest.mark.contract("K17")
async def test_a_mode_on_record_that_is_none_is_refused_and_can_be_set_anew(desk, presets):
    await desk.agent.session.append("permission/sandbox", {"mode": 5})
    with pytest.raises(ValueError, match="is no text: 5"):
        await presets.sandbox(desk.agent)
    await presets.set(desk.agent, "workspace-write")
    assert await presets.current(desk.agent) == "workspace-write"
