"""Guard tables (contract A48 to A51)."""

from __future__ import annotations

import pytest
from ptc.registry import ErrorInfo, ScopeKey, ToolGuardDenial

pytestmark = pytest.mark.anyio


def noting(rig, label, answer=None):
    def guard(_call):
        rig.note(label)
        return answer

    return guard


@pytest.fixture
def call(rig):
    """Returns the check of the guards for a call of an agent."""

    def check(agent=None):
        return rig.registry.check_guards(rig.pipeline.call(rig.input(agent=agent)).exec)

    return check


@pytest.mark.contract("A48")
def test_the_same_guard_twice_makes_two_entries(rig, call):
    guard = noting(rig, "asked")
    first = rig.tools.guard(guard)
    rig.tools.guard(guard)
    call()
    assert rig.seen == ["asked", "asked"]
    first()
    first()
    call()
    assert rig.seen == ["asked"] * 3


@pytest.mark.contract("A48", "A49")
def test_global_guards_come_first_then_the_chain_from_far_to_near(rig, call):
    top, low = ScopeKey("top"), ScopeKey("low")
    rig.registry.bind(low, top)
    rig.registry.context(low).guard(noting(rig, "low"))
    rig.registry.context(top).guard(noting(rig, "top"))
    rig.tools.guard(noting(rig, "global 1"))
    rig.tools.guard(noting(rig, "global 2"))
    assert call(low) is None
    assert rig.seen == ["global 1", "global 2", "top", "low"]
    rig.seen.clear()
    call(top)
    assert rig.seen == ["global 1", "global 2", "top"]
    rig.seen.clear()
    call(None)
    assert rig.seen == ["global 1", "global 2"]


@pytest.mark.contract("A49")
def test_the_first_denial_wins(rig, call):
    agent = ScopeKey("agent")
    rig.registry.context(agent).guard(noting(rig, "near", "no, near"))
    rig.tools.guard(noting(rig, "far"))
    rig.tools.guard(noting(rig, "far, too", "no, far"))
    rig.tools.guard(noting(rig, "never asked", "no"))
    assert call(agent) == ToolGuardDenial("no, far")
    assert rig.seen == ["far", "far, too"]


@pytest.mark.contract("A50")
def test_a_guard_that_is_added_during_the_check_is_asked_in_it(rig, call):
    agent = ScopeKey("agent")

    def adds(_call):
        rig.note("adds")
        if len(rig.seen) == 1:
            rig.tools.guard(noting(rig, "added here"))
            rig.registry.context(agent).guard(noting(rig, "added nearer", "no"))

    rig.tools.guard(adds)
    assert call(agent) == ToolGuardDenial("no")
    assert rig.seen == ["adds", "added here", "added nearer"]


@pytest.mark.contract("A50")
def test_a_guard_that_is_removed_during_the_check_is_not_asked(rig, call):
    rig.tools.guard(lambda _call: undo() or rig.note("removes"))
    undo = rig.tools.guard(noting(rig, "removed"))
    rig.tools.guard(noting(rig, "last"))
    call()
    call()
    assert rig.seen == ["removes", "last"] * 2


@pytest.mark.contract("A50")
def test_a_drained_table_ends_its_check_so_that_a_replacement_counts_from_the_next_call(rig, call):
    def replaces_itself(_call):
        rig.note("old")
        undo()
        rig.tools.guard(noting(rig, "new"))

    undo = rig.tools.guard(replaces_itself)
    call()
    assert rig.seen == ["old"]
    call()
    assert rig.seen == ["old", "new"]


@pytest.mark.contract("A50")
def test_no_replacement_for_a_drained_table_counts_however_many_there_are(rig, call):
    def replaces_both(_call):
        rig.note("old")
        first()
        second()
        rig.tools.guard(noting(rig, "new 1"))
        rig.tools.guard(noting(rig, "new 2"))

    first = rig.tools.guard(replaces_both)
    second = rig.tools.guard(noting(rig, "removed"))
    call()
    assert rig.seen == ["old"]
    call()
    assert rig.seen == ["old", "new 1", "new 2"]


@pytest.mark.contract("A50")
def test_a_check_that_has_lost_a_guard_still_sees_one_that_is_added(rig, call):
    def changes(_call):
        rig.note("changes")
        undo()
        rig.tools.guard(noting(rig, "added", "no"))

    rig.tools.guard(changes)
    undo = rig.tools.guard(noting(rig, "removed"))
    assert call() == ToolGuardDenial("no")
    assert rig.seen == ["changes", "added"]


@pytest.mark.contract("A51")
def test_a_denial_is_normalised(rig, call):
    info = ErrorInfo("PolicyError", "NO_DELETES", "ticket 5")
    for answer, denial in [
        (None, None),
        ("", ToolGuardDenial("")),
        ("no", ToolGuardDenial("no", None)),
        (ToolGuardDenial("no", info), ToolGuardDenial("no", info)),
    ]:
        with rig.tools.guard(lambda _call, answer=answer: answer):
            assert call() == denial


@pytest.mark.contract("A51")
@pytest.mark.parametrize("answer", [False, True, 0, ["no"], ErrorInfo("a", "b")])
async def test_any_other_answer_is_an_error(rig, kit, call, answer):
    rig.add("echo")
    rig.tools.guard(lambda _call: answer)
    with pytest.raises(TypeError, match="must answer None, a reason or a ToolGuardDenial"):
        call()
    result = await rig.run()
    assert result.is_error
    assert "must answer None, a reason or a ToolGuardDenial" in kit.text(result)
    assert rig.seen == []


@pytest.mark.contract("A51")
def test_a_stray_coroutine_is_an_error_and_leaves_no_warning(rig, call):
    async def stray():
        return None

    rig.tools.guard(lambda _call: stray())
    with pytest.raises(TypeError, match="a coroutine"):
        call()
