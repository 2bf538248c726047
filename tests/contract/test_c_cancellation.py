"""The cancellation table, row by row (contract C69)."""

from __future__ import annotations

import pytest
from ptc.registry import Allow, Ask, Block, Deny, HarnessError, ScopeKey, SignalSource, ToolSuccess, text_block

pytestmark = pytest.mark.anyio

BEFORE = ("AbortError", "ABORTED_BEFORE_DISPATCH")
ABORTED = ("AbortError", "ABORTED")
POST = ["post", "finalize", "result"]
FINAL = ["finalize", "result"]


class TableError(HarnessError):
    default_code = "TABLE"


ROWS = {
    # abort moment, then what happens: (identity, message or None, stages reached)
    "before entry": (BEFORE, None, FINAL),
    "during pre, allow": (BEFORE, None, ["pre", "guard", *POST]),
    "during pre, deny": (None, "denied", ["pre", *POST]),
    "during pre, throw": (("TableError", "TABLE"), "pre broke", ["pre", *FINAL]),
    "during ask, cancelled": (BEFORE, None, ["pre", "ask", *POST]),
    "during ask, allowed-once": (BEFORE, None, ["pre", "ask", "guard", *POST]),
    "during guard, allow": (BEFORE, None, ["pre", "guard", *POST]),
    "during guard, deny": (None, "the limit", ["pre", "guard", *POST]),
    "during ask, rejected": (
        ("ApprovalError", "APPROVAL_REJECTED"),
        'the user rejected tool "echo"',
        ["pre", "ask", *POST],
    ),
    "in wrapper before next": (BEFORE, None, ["pre", "guard", "around", *POST]),
    "in wrapper before next, reason thrown": (BEFORE, None, ["pre", "guard", "around", *FINAL]),
    "in wrapper after next, reason thrown": (ABORTED, None, ["pre", "guard", "around", "body", *FINAL]),
    "in wrapper after next, throw": (
        ("TableError", "TABLE"),
        "wrapper broke",
        ["pre", "guard", "around", "body", *FINAL],
    ),
    "during body, success": (ABORTED, None, ["pre", "guard", "around", "body", *POST]),
    "during body, failure": (("TableError", "TABLE"), "body broke", ["pre", "guard", "around", "body", *POST]),
    "during body, reason thrown": (ABORTED, "the reason", ["pre", "guard", "around", "body", *POST]),
    "wrapper delays after body": (ABORTED, None, ["pre", "guard", "around", "body", *POST]),
    "wrapper short-circuits": (BEFORE, None, ["pre", "guard", "around", *POST]),
    "during post, body ran": (ABORTED, None, ["pre", "guard", "around", "body", *POST]),
    "during post, body did not run": (BEFORE, None, ["pre", "guard", "around", *POST]),
    "during post, block": (None, "blocked", ["pre", "guard", "around", "body", *POST]),
    "after finalise": ("success", None, ["pre", "guard", "around", "body", *POST]),
}
REASON = LookupError("the reason")


class Approval:
    def __init__(self, rig, row, abort):
        self.rig, self.row, self.abort = rig, row, abort

    async def request(self, _request):
        self.rig.note("ask")
        self.abort()
        return self.row.partition(", ")[2]


@pytest.mark.contract("C69", "C12", "C22", "C23", "C27", "C33", "C34", "C36", "C42", "C54")
@pytest.mark.parametrize("row", ROWS)
async def test_when_the_caller_gives_up(rig, kit, row):  # noqa: C901 - one table, one rig
    source = SignalSource()
    moment, _, what = row.partition(", ")

    def abort(*_args):
        source.abort(REASON)

    async def pre(_call, next_):
        rig.note("pre")
        if moment == "during ask":
            return Ask()
        if moment != "during pre":
            return await next_()
        abort()
        if what == "throw":
            raise TableError("pre broke")
        return Deny("denied") if what == "deny" else Allow()

    async def around(_view, next_):
        rig.note("around")
        if moment == "in wrapper before next":
            abort()
            if what == "reason thrown":
                raise REASON
        if moment == "wrapper short-circuits":
            abort()
        if moment == "wrapper short-circuits" or what == "body did not run":
            return ToolSuccess(value=1, content=[])
        result = await next_()
        if moment in ("wrapper delays after body", "in wrapper after next"):
            assert not result.is_error
            abort()
        if moment == "in wrapper after next":
            raise REASON if what == "reason thrown" else TableError("wrapper broke")
        return result

    async def body(_arguments, _run):
        rig.note("body")
        if moment == "during body":
            abort()
            if what == "failure":
                raise TableError("body broke")
            if what == "reason thrown":
                raise REASON
        return 1

    async def post(_call, _result, next_):
        rig.note("post")
        if moment == "during post":
            abort()
        return Block([text_block("blocked")]) if what == "block" else await next_()

    def guard(_call):
        rig.note("guard")
        if moment == "during guard":
            abort()
        return "the limit" if moment == "during guard" and what == "deny" else None

    def finalize(_call, _result):
        rig.note("finalize")

    def observe(_call, _result):
        rig.note("result")
        if moment == "after finalise":
            abort()

    rig.pipeline.approval = Approval(rig, row, abort)
    rig.tools.on("tools/pre-execute", pre)
    rig.tools.guard(guard)
    rig.tools.on("tools/execute", around)
    rig.tools.on("tools/post-execute", post)
    rig.tools.on("tools/result", observe)
    rig.add("echo", body, finalize_content=finalize)
    if moment == "before entry":
        abort()

    result = await rig.run(agent=ScopeKey("agent"), signal=source.signal)

    assert source.signal.aborted
    identity, message, stages = ROWS[row]
    if identity == "success":
        assert result.value == 1
    else:
        assert kit.identity(result) == identity
        if message is not None:
            assert result.error.message == message
        elif identity in (BEFORE, ABORTED):
            said = "tool call aborted before dispatch" if identity == BEFORE else "tool call aborted"
            assert result.error.message == said
    assert rig.seen == stages
    assert len(rig.observed) == 1
