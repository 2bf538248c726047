"""A sub-call of a program meets the same pipeline as a native call (contract E47): one table, walked both ways."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import anyio
import pytest
from ptc import (
    BindingCall,
    BindingError,
    FailureKind,
    Guarantees,
    PtcExecutor,
    SandboxRequest,
    SandboxResult,
)
from ptc.registry import (
    MISSING,
    Accept,
    ActivationContext,
    Allow,
    Ask,
    BatchLog,
    Block,
    Cancel,
    Deny,
    ErrorInfo,
    HarnessError,
    NativeExecutor,
    ScopeKey,
    SignalSource,
    ToolArgsError,
    ToolBatchInput,
    ToolCall,
    ToolError,
    ToolFailure,
    ToolGuardDenial,
    ToolSuccess,
    from_json_text,
    text_block,
    to_json_text,
)
from ptc.sandbox.seam import JsonText, Member, RunFailure

pytestmark = pytest.mark.anyio

Call = Callable[[str, Any], Awaitable[Any]]
NOTHING = "not enforced"


class Answer:
    """Awaits what a binding gave back, as a program's runtime does."""

    def __init__(self, deferred: Any) -> None:
        self._deferred = deferred
        self._done = anyio.Event()
        deferred.add_done_callback(lambda _deferred: self._done.set())

    async def get(self) -> Any:
        await self._done.wait()
        value = self._deferred.result()
        return from_json_text(value.text) if isinstance(value, JsonText) else value


class Scripted:
    """A sandbox whose program is a function of the test: `async (submit) -> value`."""

    language: Literal["python"] = "python"
    isolation: Literal["wasm", "process"] = "process"
    guarantees = Guarantees(
        memory="",
        compute="",
        wall="",
        files=NOTHING,
        network=NOTHING,
        environment=NOTHING,
        processes=NOTHING,
        syscalls=NOTHING,
    )

    def __init__(self, program: Callable[[Callable[[str, Any], Answer]], Awaitable[Any]]) -> None:
        self._program = program

    async def run(self, request: SandboxRequest) -> SandboxResult:
        (namespace,) = request.namespaces

        def submit(name: str, arguments: Any) -> Answer:
            member: Member = namespace.members[name]
            return Answer(member.function(BindingCall(namespace.name, name, arguments, 1)))

        try:
            value = await self._program(submit)
        except BindingError as error:
            return SandboxResult(error=RunFailure(FailureKind.EXCEPTION, str(error)))
        return SandboxResult(value_json=to_json_text(value))

    async def prepare(self) -> None:
        """Nothing is to be made ready."""

    async def aclose(self) -> None:
        """Nothing is held."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


@dataclass
class Walk:
    """One call on its way, and what came of it."""

    rig: Any
    kit: Any
    nested: bool
    source: SignalSource = field(default_factory=SignalSource)
    answer: Any = None
    batch: Any = None
    program: Any = None
    tool_set: Any = None

    def __post_init__(self) -> None:
        self.rig.registry.events.declare("tools/ptc-dispatch-log")
        self.log = self.kit.MemoryLog()
        self.agent = ScopeKey("agent", session=self.log)

    def on(self, event: str, listener: Any) -> Any:
        """Installs a listener that is not asked about the program around the call."""

        async def listen(call: Any, *rest: Any) -> Any:
            return await rest[-1]() if call.name == "run_code" else await listener(call, *rest)

        listen.__qualname__ = "listen"
        return self.rig.tools.on(event, listen)

    def guard(self, guard: Any) -> None:
        self.rig.tools.guard(lambda call: None if call.name == "run_code" else guard(call))

    async def execute(self, *calls: tuple[str, Any]) -> Any:
        """Makes the calls at once, and returns the batch's result."""
        common = {
            "agent": self.agent,
            "log": BatchLog(1, 1),
            "signal": self.source.signal,
            "tool_set": self.tool_set,
        }
        if not self.nested:
            made = [
                ToolCall(name=name, arguments=arguments, call_id=f"c{n}") for n, (name, arguments) in enumerate(calls)
            ]
            self.batch = await NativeExecutor(self.rig.pipeline).execute(ToolBatchInput(calls=made, **common))
            return self.batch

        async def program(submit: Any) -> Any:
            self.program = []
            for answer in [submit(name, arguments) for name, arguments in calls]:
                try:
                    self.program.append(await answer.get())
                except BindingError as error:
                    self.program.append(str(error))
            return None

        made = [ToolCall(name="run_code", arguments={"code": "", "description": "Call"}, call_id="c0")]
        executor = PtcExecutor(sandbox=Scripted(program)).bind(self.rig.pipeline)
        self.batch = await executor.execute(ToolBatchInput(calls=made, **common))
        return self.batch

    def observed(self, name: str = "echo") -> tuple[Any, Any]:
        (seen,) = [(call, result) for call, result in self.rig.observed if call.name == name]
        return seen

    def record(self) -> dict[str, Any]:
        """Returns what is durable of the call's end, without what says where it stood."""
        kind = "tool/ptc-dispatch" if self.nested else "tool/result"
        (data,) = [data for type_, data, _cites in self.log.events if type_ == kind]
        kept = {key: data[key] for key in ("error", "meta", "decision") if key in data}
        message = data if self.nested else data["message"]
        return kept | {"isError": message["isError"], "content": message["content"]}


class TableError(HarnessError):
    default_code = "TABLE"


INFO = ErrorInfo("PolicyError", "NO", "ticket 7")
BEFORE = ErrorInfo("AbortError", "ABORTED_BEFORE_DISPATCH")
ABORTED = ErrorInfo("AbortError", "ABORTED")
PRE = ["pre"]
TO_BODY = ["pre", "guard", "around", "body"]
POST = ["project", "post", "finalize", "result"]
FINAL = ["finalize", "result"]


@dataclass
class Row:
    """What each stage of the call does, and what must come of it."""

    stages: list[str]
    pre: Any = None
    answer: Any = None
    guard: Any = None
    around: Any = None
    body: Any = "value"
    post: Any = None
    arguments: Any = field(default_factory=dict)
    aborts: str = ""
    vanishes: str = ""
    error: ToolError | None = None
    value: Any = MISSING
    text: str | None = None
    meta: Any = MISSING
    contexts: tuple[str, ...] = ()
    concludes: bool = False
    outcome: str | None = None


def success(value: Any, stages: list[str], *contexts: str, **fields: Any) -> Row:
    made = {"value": value, "text": to_json_text(value), "meta": {"of": value}, "contexts": contexts}
    return Row(stages, **(made | fields))


def denied(message: str, info: ErrorInfo | None, stages: list[str], **fields: Any) -> Row:
    return Row(stages, **({"error": ToolError(message, info), "text": f"Error: {message}"} | fields))


GAVE_UP = "tool call aborted before dispatch"

TABLE: dict[str, Row] = {
    "allowed": success("value", [*TO_BODY, *POST], "body's", concludes=True),
    "denied": denied("no", INFO, [*PRE, *POST], pre=Deny("no", INFO), outcome="deny"),
    "cancelled by policy": denied(GAVE_UP, BEFORE, [*PRE, *POST], pre=Cancel(), outcome="cancel"),
    "asked without a service": denied(
        "why", ErrorInfo("ApprovalError", "APPROVAL_UNAVAILABLE"), [*PRE, *POST], pre=Ask("why"), outcome="deny"
    ),
    "asked and rejected": denied(
        'the user rejected tool "echo"',
        ErrorInfo("ApprovalError", "APPROVAL_REJECTED"),
        [*PRE, "ask", *POST],
        pre=Ask("why"),
        answer="rejected",
        outcome="deny",
    ),
    "asked and cancelled": denied(
        'approval for tool "echo" was cancelled',
        ErrorInfo("ApprovalError", "APPROVAL_CANCELLED"),
        [*PRE, "ask", *POST],
        pre=Ask("why"),
        answer="cancelled",
        outcome="deny",
    ),
    "asked and allowed": success(
        "value",
        ["pre", "ask", "guard", "around", "body", *POST],
        "body's",
        pre=Ask("why"),
        answer="allowed-once",
        concludes=True,
        outcome="allow",
    ),
    "asked and answered badly": denied(
        "the approval service must answer allowed-once, rejected, cancelled or unavailable, not str 'maybe'",
        None,
        [*PRE, "ask", *FINAL],
        pre=Ask("why"),
        answer="maybe",
        outcome="error",
    ),
    "policy raised": denied("pre broke", None, [*PRE, *FINAL], pre=LookupError("pre broke"), outcome="error"),
    "guard denied": denied(
        "limit", INFO, ["pre", "guard", *POST], guard=ToolGuardDenial("limit", INFO), outcome="deny"
    ),
    "guard raised": denied(
        "guard broke",
        ErrorInfo("TableError", "TABLE"),
        ["pre", "guard", *FINAL],
        guard=TableError("guard broke"),
        outcome="error",
    ),
    "given up in a policy": denied(
        GAVE_UP, BEFORE, ["pre", "guard", *POST], pre=Allow(), aborts="pre", outcome="cancel"
    ),
    "denied though given up": denied("no", INFO, [*PRE, *POST], pre=Deny("no", INFO), aborts="pre", outcome="deny"),
    "given up in a wrapper": denied(GAVE_UP, BEFORE, ["pre", "guard", "around", *POST], aborts="around"),
    "given up in the body": denied(
        "tool call aborted", ABORTED, [*TO_BODY, *POST], aborts="body", contexts=("body's",)
    ),
    "given up in post": denied("tool call aborted", ABORTED, [*TO_BODY, *POST], aborts="post", contexts=("body's",)),
    "wrapper answered": success(
        "authored",
        ["pre", "guard", "around", *POST],
        "wrapper's",
        around=lambda kit: ToolSuccess(
            value="authored", content=[], meta=1, concludes_turn=True, additional_contexts=[kit.context("wrapper's")]
        ),
    ),
    "wrapper answered badly": denied(
        'tool "echo" returned invalid output: "value" must be a string',
        ErrorInfo("ToolOutputError", "INVALID_TOOL_OUTPUT"),
        ["pre", "guard", "around", *FINAL],
        around=lambda _kit: ToolSuccess(value=5, content=[]),
    ),
    "wrapper failed the call": Row(
        ["pre", "guard", "around", *POST],
        around=lambda kit: ToolFailure(
            error=ToolError("mine", INFO),
            content=[text_block("verbatim")],
            meta={"m": 1},
            additional_contexts=[kit.context("wrapper's")],
        ),
        error=ToolError("mine", INFO),
        text="verbatim",
        meta={"m": 1},
        contexts=("wrapper's",),
    ),
    "wrapper raised": denied(
        "over",
        ErrorInfo("TableError", "TABLE"),
        [*TO_BODY, *FINAL],
        around=TableError("over"),
    ),
    "blocked": denied(
        "secret",
        INFO,
        [*TO_BODY, *POST],
        text="secret",
        post=lambda kit: Block([text_block("secret")], INFO, (kit.context("policy's"),)),
        contexts=("policy's",),
        outcome="block",
    ),
    "content replaced": success(
        "value",
        [*TO_BODY, *POST],
        "body's",
        "policy's",
        post=lambda kit: Accept(content=[text_block("cut")], additional_contexts=(kit.context("policy's"),)),
        text="cut",
        concludes=True,
    ),
    "value replaced": success(
        "other",
        [*TO_BODY, *POST],
        "body's",
        post=lambda _kit: Accept(value="other"),
        concludes=True,
    ),
    "value replaced badly": denied(
        'tool "echo" returned invalid output: "value" must be a string',
        ErrorInfo("ToolOutputError", "INVALID_TOOL_OUTPUT"),
        [*TO_BODY, *POST],
        post=lambda _kit: Accept(value=5),
    ),
    "post raised": denied("post broke", None, [*TO_BODY, *POST], post=LookupError("post broke")),
    "unknown tool": denied(
        'unknown tool "echo"',
        ErrorInfo("ToolNotFoundError", "UNKNOWN_TOOL"),
        ["pre", "guard", "around", *POST],
        vanishes="pre",
    ),
    "unknown tool for its new value": denied(
        'unknown tool "echo"',
        ErrorInfo("ToolNotFoundError", "UNKNOWN_TOOL"),
        [*TO_BODY, *POST],
        post=lambda _kit: Accept(value="other"),
        vanishes="post",
    ),
    "bad arguments": denied(
        "invalid arguments: n must be a number",
        ErrorInfo("ToolArgsError", "INVALID_ARGS"),
        [*TO_BODY, *POST],
        body=ToolArgsError(["n must be a number"]),
        contexts=("body's",),
    ),
    "output error": denied(
        'tool "echo" returned invalid output: "value" must be a string',
        ErrorInfo("ToolOutputError", "INVALID_TOOL_OUTPUT"),
        [*TO_BODY, *POST],
        body=5,
        contexts=("body's",),
    ),
    "body error": denied("disk", None, [*TO_BODY, *POST], body=LookupError("disk"), contexts=("body's",)),
    "body error of the harness": denied(
        "over", ErrorInfo("TableError", "TABLE"), [*TO_BODY, *POST], body=TableError("over"), contexts=("body's",)
    ),
}


class Approval:
    def __init__(self, rig: Any, answer: Any) -> None:
        self._rig = rig
        self._answer = answer

    async def request(self, request: Any) -> Any:
        assert request.tool_name == "echo"
        self._rig.note("ask")
        return self._answer


class Stages:
    """What each stage of a walk does, as its row says."""

    def __init__(self, made: Walk, row: Row) -> None:
        self.made = made
        self.row = row
        self.vanish: Callable[[], object] = lambda: None

    def enter(self, stage: str) -> None:
        self.made.rig.note(stage)
        if self.row.aborts == stage:
            self.made.source.abort("given up")
        if self.row.vanishes == stage:
            self.vanish()

    def give(self, answer: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer(self.made.kit) if callable(answer) else answer

    async def pre(self, _call: Any, next_: Any) -> Any:
        self.enter("pre")
        return await next_() if self.row.pre is None else self.give(self.row.pre)

    def guard(self, _call: Any) -> Any:
        self.enter("guard")
        return self.give(self.row.guard)

    async def around(self, _view: Any, next_: Any) -> Any:
        self.enter("around")
        answer = self.row.around
        if answer is not None and not isinstance(answer, Exception):
            return self.give(answer)
        result = await next_()
        return result if answer is None else self.give(answer)

    async def body(self, _arguments: Any, run: Any) -> Any:
        self.enter("body")
        run.defer_context(self.made.kit.context("body's"))
        run.conclude_turn()
        return self.give(self.row.body)

    async def post(self, _call: Any, _result: Any, next_: Any) -> Any:
        self.enter("post")
        return await next_() if self.row.post is None else self.give(self.row.post)

    def observe(self, call: Any, _result: Any) -> None:
        if call.name == "echo":
            self.made.rig.note("result")


async def walk(kit: Any, row: Row, *, nested: bool) -> Walk:
    """Takes a call through a row of the table."""
    made = Walk(kit.Rig(), kit, nested)
    rig, stages = made.rig, Stages(made, row)
    if row.answer is not None:
        rig.pipeline.approval = Approval(rig, row.answer)
    made.on("tools/pre-execute", stages.pre)
    made.guard(stages.guard)
    made.on("tools/execute", stages.around)
    made.on("tools/post-execute", stages.post)
    rig.tools.on("tools/result", stages.observe)
    stages.vanish = rig.add(
        "echo",
        stages.body,
        schema={"type": "string"},
        presentation_meta=lambda _arguments, value: {"of": value},
        project_content=lambda _call, _result: rig.note("project"),
        finalize_content=lambda _call, _result: rig.note("finalize"),
    )
    await made.execute(("echo", row.arguments))
    return made


def outcome(made: Walk) -> dict[str, Any]:
    """Returns all there is to say of an outcome."""
    call, result = made.observed()
    return {
        "stages": made.rig.seen,
        "name": call.name,
        "arguments": call.arguments,
        "agent is the caller": call.agent is made.agent,
        "error": result.error if result.is_error else None,
        "value": MISSING if result.is_error else result.value,
        "text": made.kit.text(result),
        "meta": result.meta,
        "contexts": tuple(made.kit.texts(result)),
        "concludes": getattr(result, "concludes_turn", False),
        "record": made.record(),
    }


@pytest.mark.contract(
    "E47", "C1", "C9", "C14", "C15", "C17", "C18", "C20", "C24", "C26", "C27", "C36", "C37", "C38", "C42",
    "C43", "C48", "C49", "C51", "C52", "C53", "C54", "C55", "C56", "C61", "C63", "C64", "C66", "C67",
)  # fmt: skip
@pytest.mark.parametrize("case", TABLE)
async def test_a_sub_call_meets_the_same_pipeline_as_a_native_call(kit, case):
    row = TABLE[case]
    native = await walk(kit, row, nested=False)
    nested = await walk(kit, row, nested=True)
    came = outcome(native)
    assert came["stages"] == row.stages
    assert (came["error"], came["value"], came["text"]) == (row.error, row.value, row.text)
    assert (came["meta"], came["contexts"], came["concludes"]) == (row.meta, row.contexts, row.concludes)
    assert came["record"].get("decision", {}).get("outcome") == row.outcome
    info = None if row.error is None else row.error.info
    assert came["record"].get("error", {}).get("code") == (None if info is None else info.code)
    assert outcome(nested) == came


@pytest.mark.contract("E47", "C4", "C5", "E15", "E16", "E27")
@pytest.mark.parametrize("case", ["allowed", "denied", "blocked", "wrapper answered", "body error", "unknown tool"])
async def test_a_sub_call_has_the_outer_call_for_a_parent_and_gives_the_program_value_or_message(kit, case):
    row = TABLE[case]
    native, nested = await walk(kit, row, nested=False), await walk(kit, row, nested=True)
    call, result = native.observed()
    assert (call.call_id, call.root_call_id, call.parent) == ("c0", "c0", None)
    assert native.batch.results[0].result is result
    call, result = nested.observed()
    outer, _result = nested.observed("run_code")
    assert (call.call_id, call.root_call_id) == ("c0:ptc:1", "c0")
    assert call.parent is outer.token
    assert call.token is not outer.token
    assert nested.program == [result.error.message if result.is_error else result.value]


@pytest.mark.contract("C66", "C67", "D9", "D10", "E23", "E33")
@pytest.mark.parametrize("case", TABLE)
async def test_contexts_and_the_wish_to_conclude_reach_the_batch_both_ways(kit, case):
    """Ruling 18; what gives the whole run up takes the wish to conclude with it."""
    row = TABLE[case]
    for nested in (False, True):
        made = await walk(kit, row, nested=nested)
        assert tuple(kit.texts(made.batch)) == row.contexts
        assert made.batch.concluded is row.concludes


@pytest.mark.contract("C7", "C11", "E19", "D3")
@pytest.mark.parametrize("nested", [False, True], ids=["native", "nested"])
async def test_a_call_that_has_to_wait_begins_when_it_starts(rig, kit, nested):
    """What the call before it changed counts: the hooks and the body are those of one and the same definition."""
    made = Walk(rig, kit, nested)

    def version(label):
        async def body(_arguments, _run):
            return label

        return {
            "body": body,
            "project_content": lambda _call, _result: rig.note(f"{label} projects"),
            "finalize_content": lambda _call, _result: [text_block(f"{label} finalizes")],
        }

    async def replaces(_arguments, _run):
        undo()
        rig.add("echo", **version("new"))

    undo = rig.add("echo", **version("old"))
    rig.add("replaces", replaces)
    await made.execute(("replaces", {}), ("echo", {}))
    _call, result = made.observed()
    assert (result.value, kit.text(result), rig.seen) == ("new", "new finalizes", ["new projects"])


@pytest.mark.contract("C6", "E11")
async def test_what_a_program_was_told_of_a_tool_cannot_be_changed_by_a_policy(rig, kit):
    made = Walk(rig, kit, nested=True)

    async def pre(call, next_):
        rig.note((call.schema.name, call.schema.parameters))
        with pytest.raises(TypeError, match="frozen"):
            call.schema.parameters["properties"]["n"]["type"] = "string"
        with pytest.raises(AttributeError):
            call.schema.parameters = {}
        return await next_()

    made.on("tools/pre-execute", pre)
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
    rig.add("echo", parameters=parameters)
    await made.execute(("echo", {}))
    parameters["properties"]["late"] = {"type": "null"}
    assert rig.seen == [("echo", {"type": "object", "properties": {"n": {"type": "integer"}}}), "body"]


@pytest.mark.contract("C28", "C31", "D19", "E16")
async def test_a_wrappers_signal_stays_with_its_own_sub_call(rig, kit):
    made = Walk(rig, kit, nested=True)
    own = SignalSource()

    async def around(view, next_):
        if view.arguments["n"] == 1:
            view.signal = own.signal
            own.abort("only the first")
        return await next_()

    made.on("tools/execute", around)
    rig.add("echo")
    await made.execute(("echo", {"n": 1}), ("echo", {"n": 2}))
    first, second = (result for call, result in rig.observed if call.name == "echo")
    assert first.error.info == BEFORE
    assert second.value == {"ok": True}
    assert not made.source.signal.aborted


@pytest.mark.contract("C12", "E30")
async def test_a_sub_call_that_starts_after_the_caller_gave_up_is_a_final_result(rig, kit):
    made = Walk(rig, kit, nested=True)

    async def gives_up(_arguments, _run):
        made.source.abort("given up")

    rig.add("gives_up", gives_up)
    rig.add("echo", finalize_content=lambda _call, _result: rig.note("finalize"))
    made.on("tools/pre-execute", lambda call, next_: rig.note(f"pre {call.name}") or next_())
    await made.execute(("gives_up", {}), ("echo", {}))
    _call, result = made.observed()
    assert result.error == replace(result.error, message="tool call aborted before dispatch", info=BEFORE)
    assert rig.seen == ["pre gives_up", "finalize"]


@pytest.mark.contract("A40", "D2", "E11", "E16", "E19")
@pytest.mark.parametrize("nested", [False, True], ids=["native", "nested"])
async def test_a_tool_of_this_step_only_runs_and_overlaps_as_any_other(rig, kit, nested):
    made = Walk(rig, kit, nested)

    async def meets(_arguments, run):
        rig.note("begins")
        await anyio.wait_all_tasks_blocked()
        rig.note("ends")
        return run.exec.tool_set is made.tool_set

    rig.add("echo", meets, when=lambda _context: True, is_concurrency_safe=lambda _arguments: True)
    made.tool_set = await rig.registry.resolve(ActivationContext(agent=made.agent))
    await made.execute(("echo", {}), ("echo", {}))
    assert [result.value for call, result in rig.observed if call.name == "echo"] == [True, True]
    assert rig.seen == ["begins", "begins", "ends", "ends"]
