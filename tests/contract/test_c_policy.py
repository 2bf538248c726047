"""Pre-execute decisions, approval and guards (contract C13 to C27)."""

from __future__ import annotations

import pytest
from ptc.registry import (
    Allow,
    Ask,
    Cancel,
    Deny,
    ErrorInfo,
    HarnessError,
    ScopeKey,
    SignalSource,
    ToolGuardDenial,
    ToolOutput,
)
from ptc.registry.lossless import is_frozen

pytestmark = pytest.mark.anyio

INFO = ErrorInfo("PolicyError", "READ_ONLY", "ticket 7")
BEFORE = ("AbortError", "ABORTED_BEFORE_DISPATCH")


class Approval:
    """An approval service with a prepared answer."""

    def __init__(self, answer, meanwhile=None):
        self.answer = answer
        self.meanwhile = meanwhile
        self.requests = []

    async def request(self, request):
        self.requests.append(request)
        if self.meanwhile is not None:
            self.meanwhile()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def decide(rig):
    """Installs a listener that decides, and notes on every later stage that it was reached."""

    def install(decision):
        async def pre(_call, _next):
            if isinstance(decision, Exception):
                raise decision
            return decision

        async def around(_view, next_):
            rig.note("around")
            return await next_()

        async def post(_call, result, next_):
            rig.note("post")
            rig.note(result)
            return await next_()

        rig.tools.on("tools/pre-execute", pre)
        rig.tools.guard(lambda _call: rig.note("guard"))
        rig.tools.on("tools/execute", around)
        rig.tools.on("tools/post-execute", post)
        rig.add("echo", finalize_content=lambda _call, _result: rig.note("finalize"))

    return install


def stages(rig):
    return [what for what in rig.seen if isinstance(what, str)]


@pytest.mark.contract("C14")
async def test_allow_goes_to_the_guards(rig, decide):
    decide(Allow())
    assert not (await rig.run()).is_error
    assert stages(rig) == ["guard", "around", "body", "post", "finalize"]


@pytest.mark.contract("C14", "C47", "C46")
async def test_deny_is_a_failure_that_post_execute_sees_frozen(rig, kit, decide):
    decide(Deny("read-only scope", INFO))
    result = await rig.run()
    assert kit.text(result) == "Error: read-only scope"
    assert (result.error.message, result.error.info) == ("read-only scope", INFO)
    assert stages(rig) == ["post", "finalize"]
    seen = rig.seen[1]
    assert is_frozen(seen.content)
    with pytest.raises(AttributeError):
        seen.error = None


@pytest.mark.contract("C14")
async def test_deny_without_info_has_no_identity(rig, kit, decide):
    decide(Deny("no"))
    assert kit.identity(await rig.run()) is None


@pytest.mark.contract("C15")
async def test_cancel_is_a_cancellation_and_no_denial(rig, kit, decide):
    decide(Cancel())
    source = SignalSource()
    result = await rig.run(signal=source.signal)
    assert not source.signal.aborted
    assert kit.identity(result) == BEFORE
    assert kit.text(result) == "Error: tool call aborted before dispatch"
    assert stages(rig) == ["post", "finalize"]


@pytest.mark.contract("C16", "C19")
async def test_an_approval_request_carries_what_the_ask_gave(rig, decide):
    service = rig.pipeline.approval = Approval("allowed-once")
    agent, source = ScopeKey("agent"), SignalSource()
    display = {"en": "Delete it?", "de": "Löschen?"}
    decide(Ask("audited", display))
    assert not (await rig.run(agent=agent, signal=source.signal, call_id="c9")).is_error
    (request,) = service.requests
    assert request.agent is agent
    assert (request.tool_name, request.call_id, request.reason) == ("echo", "c9", "audited")
    assert request.display_reason == display
    assert request.signal is source.signal


@pytest.mark.contract("C19")
async def test_a_request_without_a_reason_has_none(rig, decide):
    service = rig.pipeline.approval = Approval("allowed-once")
    decide(Ask())
    await rig.run(agent=ScopeKey("agent"))
    assert service.requests[0].reason is None
    assert service.requests[0].display_reason is None


@pytest.mark.contract("C16")
async def test_a_display_reason_without_english_is_a_bad_answer(rig, kit, decide):
    service = rig.pipeline.approval = Approval("allowed-once")
    decide(Ask("audited", {"de": "Löschen?"}))
    result = await rig.run(agent=ScopeKey("agent"))
    assert 'has "en"' in kit.text(result)
    assert "tools/pre-execute" in kit.text(result)
    assert service.requests == []
    assert stages(rig) == ["finalize"]


@pytest.mark.contract("C17", "C21")
@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (Ask("needs a human"), "needs a human"),
        (Ask(), 'tool "echo" requires approval (not yet supported)'),
    ],
)
async def test_without_a_service_an_ask_is_denied(rig, kit, decide, ask, says):
    decide(ask)
    result = await rig.run(agent=ScopeKey("agent"))
    assert result.error.message == says
    assert kit.identity(result) == ("ApprovalError", "APPROVAL_UNAVAILABLE")
    assert stages(rig) == ["post", "finalize"]


@pytest.mark.contract("C18", "C21")
async def test_without_an_agent_the_service_is_not_called(rig, kit, decide):
    service = rig.pipeline.approval = Approval("allowed-once")
    decide(Ask("why"))
    result = await rig.run()
    assert "no agent to route" in result.error.message
    assert kit.identity(result) == ("ApprovalError", "APPROVAL_UNAVAILABLE")
    assert service.requests == []
    assert stages(rig) == ["post", "finalize"]


@pytest.mark.contract("C20", "C21")
@pytest.mark.parametrize(
    ("answer", "says", "code"),
    [
        ("rejected", 'the user rejected tool "echo"', "APPROVAL_REJECTED"),
        ("cancelled", 'approval for tool "echo" was cancelled', "APPROVAL_CANCELLED"),
        (
            "unavailable",
            'tool "echo" requires approval, but no approval channel is available',
            "APPROVAL_UNAVAILABLE",
        ),
    ],
)
async def test_answers_that_are_no_yes_deny(rig, kit, decide, answer, says, code):
    rig.pipeline.approval = Approval(answer)
    decide(Ask("why"))
    result = await rig.run(agent=ScopeKey("agent"))
    assert result.error.message == says
    assert kit.identity(result) == ("ApprovalError", code)
    assert stages(rig) == ["post", "finalize"]


@pytest.mark.contract("C20")
async def test_a_yes_still_goes_to_the_guards(rig, kit, decide):
    rig.pipeline.approval = Approval("allowed-once")
    decide(Ask())
    rig.tools.guard(lambda _call: "never")
    result = await rig.run(agent=ScopeKey("agent"))
    assert result.error.message == "never"
    assert stages(rig) == ["guard", "post", "finalize"]


@pytest.mark.contract("C20", "C24")
@pytest.mark.parametrize("answer", ["maybe", None, True, "allowed"])
async def test_any_other_answer_is_an_error_past_post_execute(rig, kit, decide, answer):
    rig.pipeline.approval = Approval(answer)
    decide(Ask())
    result = await rig.run(agent=ScopeKey("agent"))
    assert "must answer allowed-once, rejected, cancelled or unavailable" in kit.text(result)
    assert kit.identity(result) is None
    assert stages(rig) == ["finalize"]


@pytest.mark.contract("C22", "C23")
@pytest.mark.parametrize(
    ("answer", "identity"),
    [
        ("cancelled", BEFORE),
        ("rejected", ("ApprovalError", "APPROVAL_REJECTED")),
        ("unavailable", ("ApprovalError", "APPROVAL_UNAVAILABLE")),
        ("allowed-once", BEFORE),
    ],
)
async def test_answers_that_come_after_the_caller_gave_up(rig, kit, decide, answer, identity):
    source = SignalSource()
    rig.pipeline.approval = Approval(answer, meanwhile=lambda: source.abort("bye"))
    decide(Ask())
    result = await rig.run(agent=ScopeKey("agent"), signal=source.signal)
    assert kit.identity(result) == identity
    assert stages(rig)[-2:] == ["post", "finalize"]
    assert "body" not in rig.seen


@pytest.mark.contract("C23")
async def test_a_denial_after_the_caller_gave_up_keeps_reason_and_info(rig):
    source = SignalSource()

    async def pre(_call, _next):
        source.abort("bye")
        return Deny("still no", INFO)

    rig.add("echo")
    rig.tools.on("tools/pre-execute", pre)
    result = await rig.run(signal=source.signal)
    assert (result.error.message, result.error.info) == ("still no", INFO)


@pytest.mark.contract("C23", "C24")
async def test_an_error_of_a_listener_after_the_caller_gave_up_stays(rig, kit):
    source = SignalSource()

    async def pre(_call, _next):
        source.abort("bye")
        raise LookupError("policy store is down")

    rig.add("echo")
    rig.tools.on("tools/pre-execute", pre)
    result = await rig.run(signal=source.signal)
    assert result.error.message == "policy store is down"
    assert kit.identity(result) is None


class PolicyStoreError(HarnessError):
    default_code = "POLICY_STORE"


@pytest.mark.contract("C24", "C63")
@pytest.mark.parametrize("where", ["listener", "approval", "guard"])
@pytest.mark.parametrize(
    ("error", "identity"),
    [(LookupError("down"), None), (PolicyStoreError("down"), ("PolicyStoreError", "POLICY_STORE"))],
)
async def test_an_error_of_a_policy_skips_post_execute(rig, kit, decide, where, error, identity):
    agent = ScopeKey("agent")

    def guard(_call):
        raise error

    if where == "listener":
        decide(error)
    elif where == "approval":
        rig.pipeline.approval = Approval(error)
        decide(Ask())
    else:
        decide(Allow())
        rig.tools.guard(guard)
    result = await rig.run(agent=agent)
    assert result.error.message == "down"
    assert kit.identity(result) == identity
    assert stages(rig) == (["guard", "finalize"] if where == "guard" else ["finalize"])


@pytest.mark.contract("C25")
@pytest.mark.parametrize("decision", [Allow, Deny, Ask, Cancel])
def test_no_decision_can_carry_arguments(decision):
    assert not any("arg" in field for field in decision.__dataclass_fields__)


@pytest.mark.contract("C26")
async def test_a_guard_denial_is_seen_by_post_execute_with_its_identity(rig, kit, decide):
    decide(Allow())
    rig.tools.guard(lambda _call: ToolGuardDenial("limit reached", INFO))
    result = await rig.run()
    assert kit.text(result) == "Error: limit reached"
    assert result.error.info == INFO
    assert stages(rig) == ["guard", "post", "finalize"]


@pytest.mark.contract("C26")
@pytest.mark.parametrize("decision", [Deny("no"), Cancel(), Ask()])
async def test_guards_run_only_for_what_is_allowed(rig, decide, decision):
    decide(decision)
    assert (await rig.run()).is_error
    assert "guard" not in rig.seen


@pytest.mark.contract("C27")
@pytest.mark.parametrize("denies", [False, True])
async def test_after_the_guards_a_denial_wins_over_a_caller_that_gave_up(rig, kit, decide, denies):
    source = SignalSource()
    decide(Allow())

    def guard(_call):
        source.abort("bye")
        return "no" if denies else None

    rig.tools.guard(guard)
    result = await rig.run(signal=source.signal)
    if denies:
        assert (result.error.message, kit.identity(result)) == ("no", None)
    else:
        assert kit.identity(result) == BEFORE
    assert stages(rig) == ["guard", "post", "finalize"]


@pytest.mark.contract("C13", "C24")
@pytest.mark.parametrize(
    ("answer", "came"),
    [(None, "None"), (True, "bool True"), ("deny", "str 'deny'"), (Allow, "the class Allow"), (ToolOutput, "class")],
)
async def test_a_nonsense_answer_names_event_listener_and_what_was_expected(rig, kit, decide, answer, came):
    decide(answer)
    result = await rig.run()
    said = kit.text(result)
    assert 'the "tools/pre-execute" listener' in said
    assert "pre must answer Allow, Deny, Ask or Cancel" in said
    assert came in said
    assert stages(rig) == ["finalize"]


@pytest.mark.contract("C24")
@pytest.mark.parametrize(
    "decision",
    [Deny(None), Deny("no", "PolicyError"), Ask(5)],
    ids=["reason", "info", "ask reason"],  # pyright: ignore
)
async def test_a_decision_with_bad_parts_is_a_bad_answer(rig, kit, decide, decision):
    decide(decision)
    said = kit.text(await rig.run(agent=ScopeKey("agent")))
    assert "gave a bad answer" in said
    assert stages(rig) == ["finalize"]
