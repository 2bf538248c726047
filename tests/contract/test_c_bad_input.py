"""Bodies, policies and hooks that misbehave: each gets the outcome that the contract says, and harms nobody else.

Most of it is walked three ways: as a single call, as a call of a native batch, and as a sub-call of a program. After
each, a second call must still work.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import anyio
import pytest
from ptc import BindingError, PtcExecutor, SandboxResult
from ptc.registry import (
    Accept,
    ActivationContext,
    Allow,
    Ask,
    Block,
    Deny,
    ErrorInfo,
    HarnessError,
    NativeExecutor,
    ScopeKey,
    SignalSource,
    ToolBatchExecutionError,
    ToolBatchInput,
    ToolCall,
    ToolGuardDenial,
    ToolRegistrationError,
    ToolSuccess,
    text_block,
)
from ptc.sandbox.seam import BindingCall

pytestmark = pytest.mark.anyio

ABORTED = ("AbortError", "ABORTED")
BEFORE = ("AbortError", "ABORTED_BEFORE_DISPATCH")
BAD_OUTPUT = ("ToolOutputError", "INVALID_TOOL_OUTPUT")
NOT_SERIALIZABLE = "tool result must be losslessly JSON-serializable"
DEEP = 10_000


class Programs:
    """A sandbox whose program is a function of the test; it gets `submit(name)`, which returns what gets the answer."""

    language = "python"
    isolation = "process"

    def __init__(self, program: Any) -> None:
        self._program = program

    async def run(self, request: Any) -> SandboxResult:
        (namespace,) = request.namespaces

        def submit(name: str) -> Any:
            deferred = namespace.members[name].function(BindingCall(namespace.name, name, {}, 1))
            done = anyio.Event()
            deferred.add_done_callback(lambda _deferred: done.set())

            async def answer() -> Any:
                await done.wait()
                return deferred.result()

            return answer

        await self._program(submit)
        return SandboxResult(value_json="null")


class Way:
    """One of the three ways in which a call can be made."""

    def __init__(self, rig: Any, how: str) -> None:
        self.rig, self.how = rig, how
        rig.registry.events.declare("tools/ptc-dispatch-log")
        rig.add("well", well)
        self.agent = ScopeKey("agent")
        self.answers: list[Any] = []
        self.outer: Any = None

    async def call(self, *names: str) -> Any:
        """Makes the calls, and one of a good tool after them; returns the result of the first."""
        before = len(self.rig.observed)
        if self.how == "alone":
            for name in (*names, "well"):
                await self.rig.run(name, agent=self.agent, signal=SignalSource().signal)
        elif self.how == "batch":
            calls = [ToolCall(name=name, call_id=f"c{n}") for n, name in enumerate((*names, "well"))]
            await NativeExecutor(self.rig.pipeline).execute(ToolBatchInput(calls=calls, agent=self.agent))
        else:
            await self._program(names)
        seen = [(call.name, result) for call, result in self.rig.observed[before:] if call.name != "run_code"]
        assert [name for name, _result in seen] == [*names, "well"]
        assert seen[-1][1].value == "well"
        return seen[0][1]

    async def _program(self, names: tuple[str, ...]) -> None:
        async def program(submit: Any) -> None:
            for answer in [submit(name) for name in (*names, "well")]:
                try:
                    self.answers.append((await answer()).text)
                except BindingError as error:
                    self.answers.append(str(error))

        sandbox: Any = Programs(program)
        executor = PtcExecutor(sandbox=sandbox).bind(self.rig.pipeline)
        call = ToolCall(name="run_code", arguments={"code": "", "description": "Call"})
        batch = await executor.execute(ToolBatchInput(calls=[call], agent=self.agent))
        self.outer = batch.results[0].result

    def listen(self, event: str, listener: Any) -> None:
        """Installs a listener that is asked about the calls alone, and not about the program around them."""

        def passes(call: Any, *rest: Any) -> Any:
            return rest[-1]() if call.name in ("run_code", "well") else listener(call, *rest)

        self.rig.tools.on(event, passes)

    def guard(self, guard: Any) -> None:
        self.rig.tools.guard(lambda call: None if call.name in ("run_code", "well") else guard(call))


async def well(_arguments, _run):
    return "well"


@pytest.fixture(params=["alone", "batch", "nested"])
def way(rig, request):
    return Way(rig, request.param)


def returns(value):
    async def body(_arguments, _run):
        return value()

    return body


def raises(error):
    async def body(_arguments, _run):
        raise error

    return body


async def nothing():
    return None


async def yields():
    yield 1


async def async_generator_body(_arguments, _run):
    yield 1


def nested_lists():
    value: list[Any] = []
    for _ in range(DEEP):
        value = [value]
    return value


def nested_dicts():
    value: dict[str, Any] = {}
    for _ in range(DEEP):
        value = {"a": value}
    return value


def itself():
    value: list[Any] = []
    value.append(value)
    return value


async def endless(_arguments, _run):
    def again():
        again()

    again()


async def in_a_task(error):
    raise error


def in_task_groups(*errors, depth=1):
    """Returns a body that raises from tasks in task groups, one in the other; a sibling is cancelled with them."""

    async def opened(left):
        async with anyio.create_task_group() as group:
            if left > 1:
                group.start_soon(opened, left - 1)
            else:
                for error in errors:
                    group.start_soon(in_a_task, error)
            await anyio.sleep_forever()

    async def body(_arguments, _run):
        await opened(depth)

    return body


class TableError(HarnessError):
    default_code = "TABLE"


class UnprintableError(Exception):
    def __str__(self):
        raise LookupError("cannot say")


class NoTextError(Exception):
    def __str__(self):
        return 5  # pyright: ignore


class UnprintableHarnessError(HarnessError):
    @property
    def message(self):
        raise LookupError("cannot say")


class MissingCustomerError(KeyError):
    """A `KeyError` by class, with a text of its own."""

    def __str__(self):
        return "no such customer"


TABLE = ("TableError", "TABLE")

BODIES = {
    # a value that is none
    "generator": (returns(lambda: (n for n in range(3))), "value is a generator, which JSON does not have", BAD_OUTPUT),
    "async generator": (returns(yields), "value is an async_generator, which JSON does not have", BAD_OUTPUT),
    "coroutine": (returns(nothing), "value is a coroutine that was not awaited; write `await` before it", BAD_OUTPUT),
    "nested lists": (returns(nested_lists), "value is not lossless JSON: value[0][0]", BAD_OUTPUT),
    "nested dicts": (returns(nested_dicts), "value is not lossless JSON: value.a.a", BAD_OUTPUT),
    "itself": (returns(itself), "value[0] contains itself", BAD_OUTPUT),
    "exception": (returns(lambda: ValueError("x")), "value is a ValueError, which JSON does not have", BAD_OUTPUT),
    # no body
    "not async": (lambda _a, _r: 1, "execute must be an async function; it returned int 1 at once", None),
    "yields": (async_generator_body, "execute must be an async function; it returned async_generator at once", None),
    "one parameter": (nothing, "positional argument", None),
    # errors that are hard to tell
    "recursion": (endless, "maximum recursion depth exceeded", None),
    "memory": (raises(MemoryError()), "MemoryError", None),
    "stop": (raises(StopAsyncIteration("done")), "done", None),
    "key": (raises(KeyError("x")), "KeyError: 'x'", None),
    "no key": (raises(KeyError()), "KeyError", None),
    "key with its own text": (raises(MissingCustomerError("x")), "no such customer", None),
    "unprintable": (raises(UnprintableError()), "<unprintable thrown value>", None),
    "no text": (raises(NoTextError()), "<unprintable thrown value>", None),
    "unprintable, known": (
        raises(UnprintableHarnessError("x")),
        "<unprintable thrown value>",
        ("UnprintableHarnessError", "HARNESS_ERROR"),
    ),
    "unprintable leaf": (
        raises(ExceptionGroup("g", [UnprintableError(), ValueError("x")])), "<unprintable thrown value>", None
    ),
    "lone surrogate": (raises(ValueError("half \ud83d of it")), "half \\ud83d of it", None),
    "lone surrogate, known": (raises(TableError("half \udc00")), "half \\udc00", TABLE),
    "lone surrogate in the code": (raises(HarnessError("x", code="\ud800")), NOT_SERIALIZABLE, None),
    # task groups
    "one leaf": (in_task_groups(TableError("the leaf")), "the leaf", TABLE),
    "one leaf, three deep": (in_task_groups(TableError("the leaf"), depth=3), "the leaf", TABLE),
    "two leaves": (in_task_groups(TableError("one"), TableError("two")), "one; two", None),
    "two leaves, two deep": (in_task_groups(TableError("one"), KeyError("k"), depth=2), "one; KeyError: 'k'", None),
    "group of unequal depth": (
        raises(ExceptionGroup("g", [ExceptionGroup("h", [TableError("one")]), TableError("two")])), "one; two", None
    ),
}  # fmt: skip


@pytest.mark.contract("C2", "C32", "C43", "C57", "C61", "C62", "C63", "C64")
@pytest.mark.parametrize("case", BODIES)
async def test_a_body_that_misbehaves_fails_its_own_call(rig, kit, way, case):
    body, says, identity = BODIES[case]
    rig.add("echo", body)
    result = await way.call("echo")
    assert kit.identity(result) == identity
    if case.startswith("two leaves"):  # which of two tasks runs first is the event loop's business
        assert sorted(result.error.message.split("; ")) == sorted(says.split("; "))
    elif identity == BAD_OUTPUT:
        assert result.error.message.startswith('tool "echo" returned invalid output: ')
        assert says in result.error.message
    elif case in ("not async", "yields", "one parameter"):
        assert says in result.error.message
    else:
        assert result.error.message == says
    assert kit.text(result) == f"Error: {result.error.message}"
    kit.text(result).encode()
    if way.how == "nested":
        assert way.answers == [result.error.message, '"well"']


@pytest.mark.contract("C34", "C65")
async def test_a_cancellation_that_a_body_makes_by_hand(rig, kit, way, anyio_backend_name):
    """asyncio lets anybody raise its `CancelledError`; trio's `Cancelled` cannot be made, and to try is an error."""

    async def body(_arguments, _run):
        raise anyio.get_cancelled_exc_class()

    rig.add("echo", body)
    result = await way.call("echo")
    if anyio_backend_name == "asyncio":
        assert kit.identity(result) == ABORTED
        assert result.error.message == "tool call aborted: it awaited something that had been cancelled"
    else:
        assert kit.identity(result) is None
        assert "Cancelled has no public constructor" in result.error.message


@pytest.mark.contract("C34", "C69")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_made_by_hand_after_the_caller_gave_up_is_a_cancellation(rig, kit, anyio_backend):
    source = SignalSource()

    async def body(_arguments, _run):
        source.abort("enough")
        raise asyncio.CancelledError

    rig.add("echo", body)
    assert kit.identity(await rig.run(signal=source.signal)) == ABORTED


# ---- Bodies that leave their task in disorder


async def leaves_a_scope_open(_arguments, _run):
    anyio.CancelScope().__enter__()


async def leaves_a_group_open(_arguments, _run):
    await anyio.create_task_group().__aenter__()


async def closes_groups_in_the_wrong_order(_arguments, _run):
    outer, inner = anyio.create_task_group(), anyio.create_task_group()
    await outer.__aenter__()
    await inner.__aenter__()
    await outer.__aexit__(None, None, None)
    await inner.__aexit__(None, None, None)


DISORDERLY = [leaves_a_scope_open, leaves_a_group_open, closes_groups_in_the_wrong_order]


@pytest.mark.contract("C2", "C61")
@pytest.mark.parametrize("body", DISORDERLY)
async def test_a_single_call_survives_a_body_that_leaves_a_scope_open(rig, body):
    rig.add("echo", body)
    assert (await Way(rig, "alone").call("echo")).is_error


@pytest.mark.contract("A60", "D15")
@pytest.mark.parametrize("body", DISORDERLY)
async def test_a_batch_with_a_body_that_leaves_a_scope_open_stops_as_a_whole(rig, body):
    """The task that a body leaves in disorder cannot end well on either event loop; the batch says whose it was."""

    async def other(_arguments, _run):
        rig.note("begin")
        for _ in range(5):
            await anyio.wait_all_tasks_blocked()
        rig.note("end")

    rig.add("other", other, is_concurrency_safe=lambda _arguments: True)
    rig.add("echo", body, is_concurrency_safe=lambda _arguments: True)
    calls = [ToolCall(name="other"), ToolCall(name="echo")]
    with pytest.raises(ToolBatchExecutionError, match='tool "echo" left a cancel scope or task group open'):
        await NativeExecutor(rig.pipeline).execute(ToolBatchInput(calls=calls))
    assert rig.seen == ["begin", "end"]
    rig.add("well", well)
    assert (await rig.run("well")).value == "well"


@pytest.mark.contract("A60", "E34")
@pytest.mark.parametrize("body", DISORDERLY)
async def test_a_program_with_a_body_that_leaves_a_scope_open_fails_and_the_host_goes_on(rig, body):
    rig.add("echo", body)

    async def program(submit: Any) -> None:
        await submit("echo")()

    sandbox: Any = Programs(program)
    executor = PtcExecutor(sandbox=sandbox).bind(rig.pipeline)
    call = ToolCall(name="run_code", arguments={"code": "", "description": "Call"})
    batch = await executor.execute(ToolBatchInput(calls=[call]))
    assert batch.results[0].result.is_error
    rig.add("well", well)
    assert (await rig.run("well")).value == "well"


# ---- What ends the process


class Halt(BaseException):
    """Asks the process to end."""


def leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]


@pytest.mark.contract("C2")
@pytest.mark.parametrize("where", ["tools/pre-execute", "tools/execute", "body", "tools/post-execute", "tools/result"])
@pytest.mark.parametrize("how", ["alone", "batch", "nested"])
async def test_a_request_to_end_the_process_is_no_outcome_of_a_call(rig, where, how):
    way = Way(rig, how)

    def halts(call, *_rest):
        if call.name != "run_code":
            raise Halt

    if where == "tools/result":
        rig.tools.on(where, halts)
    elif where != "body":
        way.listen(where, halts)
    rig.add("echo", raises(Halt()) if where == "body" else None)
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - how it is wrapped is the event loop's business
        await way.call("echo")
    assert [type(leaf) for leaf in leaves(caught.value)] == [Halt]
    if how == "alone":
        assert isinstance(caught.value, Halt)
    assert all(result.is_error for call, result in rig.observed if where != "tools/result")


# ---- Wrappers


async def never_asks(_view, _next):
    return ToolSuccess(value={"authored": True}, content=[])


async def asks_twice(_view, next_):
    await next_()
    return await next_()


async def gives_up_alone(_view, next_):
    result = None
    with anyio.move_on_after(0):
        await anyio.sleep_forever()
    with anyio.CancelScope() as scope:
        scope.cancel()
        result = await next_()
    return result if result is not None else ToolSuccess(value="gave up", content=[])


@pytest.mark.contract("C32", "C35", "C37")
@pytest.mark.parametrize(
    ("wrapper", "bodies", "value"),
    [(never_asks, 0, {"authored": True}), (asks_twice, 2, {"ok": True}), (gives_up_alone, 1, None)],
)
async def test_wrappers_that_ask_never_or_twice_or_cancel_what_is_theirs(rig, way, wrapper, bodies, value):
    way.listen("tools/execute", wrapper)
    rig.add("echo")
    result = await way.call("echo")
    assert not result.is_error
    if value is not None:
        assert result.value == value
    assert rig.seen == ["body"] * bodies


async def returns_none(_view, next_):
    await next_()


async def returns_next(_view, next_):
    return next_()


async def returns_a_class(_view, _next):
    return ToolSuccess


def not_async(_view, _next):
    return ToolSuccess(value=1, content=[])


async def raises_a_group(_view, _next):
    raise ExceptionGroup("g", [TableError("the leaf")])


@pytest.mark.contract("C13", "C36")
@pytest.mark.parametrize(
    ("wrapper", "says", "identity"),
    [
        (returns_none, "not None (is a `return` missing?)", None),
        (returns_next, "not a coroutine (is an `await` missing?)", None),
        (returns_a_class, "not the class ToolSuccess (make an instance of it)", None),
        (not_async, "must be an async function; it returned ToolSuccess at once", None),
        (raises(UnprintableError()), "<unprintable thrown value>", None),
        (raises_a_group, "the leaf", TABLE),
    ],
)
async def test_a_wrapper_that_misbehaves_ends_its_own_call(rig, kit, way, wrapper, says, identity):
    way.listen("tools/execute", wrapper)
    rig.add("echo", project_content=lambda _call, _result: rig.note("project"))
    result = await way.call("echo")
    assert says in result.error.message
    assert kit.identity(result) == identity
    assert "project" not in rig.seen


def swallows(rig, how):
    """Returns a listener that waits, catches whatever interrupts it, and goes on as if nothing had happened."""

    async def listener(*args):
        try:
            await anyio.sleep_forever()
        except BaseException:
            rig.note("swallowed")
        if how == "fails":
            raise LookupError("as if nothing had happened")
        return await args[-1]()

    return listener


@pytest.mark.contract("C32", "C61")
@pytest.mark.parametrize("how", ["answers", "fails"])
@pytest.mark.parametrize("event", ["tools/pre-execute", "tools/execute", "tools/post-execute"])
async def test_a_policy_cannot_swallow_the_hosts_cancellation(rig, kit, event, how):
    rig.tools.on(event, swallows(rig, how))
    rig.add("echo")
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancel():
                await anyio.wait_all_tasks_blocked()
                scope.cancel()

            group.start_soon(cancel)
            await rig.run()
            pytest.fail("the call must not return")
    assert scope.cancelled_caught
    assert "swallowed" in rig.seen
    ((_call, result),) = rig.observed
    assert kit.identity(result) == (ABORTED if "body" in rig.seen else BEFORE)


@pytest.mark.contract("C32", "C61")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("how", ["answers", "fails"])
@pytest.mark.parametrize("event", ["tools/pre-execute", "tools/execute", "tools/post-execute"])
async def test_a_policy_cannot_swallow_a_cancellation_that_asyncio_alone_knows(rig, kit, event, how, anyio_backend):
    rig.tools.on(event, swallows(rig, how))
    rig.add("echo")
    task = asyncio.ensure_future(rig.run())
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    ((_call, result),) = rig.observed
    assert kit.identity(result) == (ABORTED if "body" in rig.seen else BEFORE)


@pytest.mark.contract("C32", "D6")
async def test_in_a_batch_the_hosts_cancellation_never_reaches_a_wrapper(rig, kit):
    released = anyio.Event()

    async def wrapper(_view, next_):
        try:
            await released.wait()
        except BaseException:
            rig.note("interrupted")
            raise
        return await next_()

    rig.tools.on("tools/execute", wrapper)
    rig.add("echo")
    async with anyio.create_task_group() as group:
        batch = ToolBatchInput(calls=[ToolCall(name="echo")])
        group.start_soon(NativeExecutor(rig.pipeline).execute, batch)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
            released.set()
    assert rig.seen == []
    ((_call, result),) = rig.observed
    assert kit.identity(result) == BEFORE


# ---- Decisions of the wrong kind, or with the wrong parts


def answers(answer):
    async def listener(*_args):
        return answer() if callable(answer) and not isinstance(answer, type) else answer

    return listener


NAMES_PRE = "must answer Allow, Deny, Ask or Cancel, not "
BAD_ANSWER = "gave a bad answer: "


@pytest.mark.contract("C13", "C24")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Accept(), f"{NAMES_PRE}Accept"),
        (Block([]), f"{NAMES_PRE}Block"),
        (ToolGuardDenial("no"), f"{NAMES_PRE}ToolGuardDenial"),
        (Allow, f"{NAMES_PRE}the class Allow (make an instance of it)"),
        (Deny, f"{NAMES_PRE}the class Deny (make an instance of it)"),
        (nothing, f"{NAMES_PRE}a coroutine (is an `await` missing?)"),
        (None, f"{NAMES_PRE}None (is a `return` missing?)"),
        (True, f"{NAMES_PRE}bool True"),
        (Deny(None), f"{BAD_ANSWER}Deny.reason must be a string, not None"),  # pyright: ignore
        (Deny(LookupError("x")), f"{BAD_ANSWER}Deny.reason must be a string, not LookupError"),  # pyright: ignore
        (Deny("no", "POLICY"), f"{BAD_ANSWER}Deny.info must be an ErrorInfo, not str"),  # pyright: ignore
        (Deny("no", ErrorInfo), f"{BAD_ANSWER}Deny.info must be an ErrorInfo, not the class"),  # pyright: ignore
        (Deny("no", ErrorInfo(5, "X")), NOT_SERIALIZABLE),  # pyright: ignore
        (Deny("no", ErrorInfo("N", "X", ["why"])), NOT_SERIALIZABLE),  # pyright: ignore
        (Ask(5), f"{BAD_ANSWER}Ask.reason must be a string, not int 5"),  # pyright: ignore
        (Ask(display_reason="why"), f"{BAD_ANSWER}Ask.display_reason must be a mapping"),  # pyright: ignore
        (Ask(display_reason={"de": "warum"}), f"{BAD_ANSWER}Ask.display_reason must be a mapping"),
        (Ask(display_reason={"en": 5}), f"{BAD_ANSWER}Ask.display_reason must be a mapping"),  # pyright: ignore
    ],
)  # fmt: skip
async def test_a_bad_decision_before_the_body_is_an_error_and_never_a_yes(rig, kit, way, answer, says):
    way.listen("tools/pre-execute", answers(answer))
    rig.add("echo")
    result = await way.call("echo")
    assert says in result.error.message
    assert kit.identity(result) is None
    assert rig.seen == []


NAMES_POST = "must answer Accept or Block, not "


@pytest.mark.contract("C50", "C53")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Allow(), f"{NAMES_POST}Allow"),
        (Deny("no"), f"{NAMES_POST}Deny"),
        (Accept, f"{NAMES_POST}the class Accept (make an instance of it)"),
        (Block, f"{NAMES_POST}the class Block (make an instance of it)"),
        (nothing, f"{NAMES_POST}a coroutine (is an `await` missing?)"),
        (None, f"{NAMES_POST}None (is a `return` missing?)"),
        (Accept(content="text"), "content must be a list of content blocks"),  # pyright: ignore
        (Accept(content=None), "content must be a list of content blocks"),  # pyright: ignore
        (Accept(content=[text_block("x"), "y"]), "content must be a list of content blocks"),  # pyright: ignore
        (Accept(content=None, value=None), "cannot replace both value and content"),  # pyright: ignore
        (Accept(additional_contexts=["x"]), "additional_contexts must be a list of ContextMessage objects"),  # pyright: ignore
        (Accept(additional_contexts=5), "additional_contexts must be a list of ContextMessage objects"),  # pyright: ignore
        (Block("no"), "content must be a list of content blocks"),  # pyright: ignore
        (Block(None), "content must be a list of content blocks"),  # pyright: ignore
        (Block([], "POLICY"), "Block.info must be an ErrorInfo, not str"),  # pyright: ignore
        (Block([], additional_contexts="x"), "additional_contexts must be a list of ContextMessage objects"),  # pyright: ignore
    ],
)  # fmt: skip
async def test_a_bad_decision_after_the_body_is_an_error_and_never_the_result(rig, kit, way, answer, says):
    way.listen("tools/post-execute", answers(answer))
    rig.add("echo")
    result = await way.call("echo")
    assert says in result.error.message
    assert kit.identity(result) is None
    assert kit.texts(result) == []
    assert rig.seen == ["body"]


async def async_guard(_call):
    return None


class AsyncGuard:
    async def __call__(self, _call):
        return None


@pytest.mark.contract("A51", "C24", "C26")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (nothing, "a coroutine (is an `await` missing?)"),
        (True, "not bool True"),
        (False, "not bool False"),
        (Deny("no"), "not Deny"),
        (ToolGuardDenial, "not the class ToolGuardDenial"),
        (ToolGuardDenial(5), "ToolGuardDenial.reason must be a string, not int 5"),  # pyright: ignore
        (ToolGuardDenial("no", "POLICY"), "ToolGuardDenial.info must be an ErrorInfo, not str"),  # pyright: ignore
    ],
)
async def test_a_bad_answer_of_a_guard_is_an_error_and_never_a_yes(rig, kit, way, answer, says):
    way.guard(lambda _call: answer() if answer is nothing else answer)
    rig.add("echo")
    result = await way.call("echo")
    assert says in result.error.message
    assert kit.identity(result) is None
    assert rig.seen == []


@pytest.mark.contract("C26", "C24")
async def test_an_async_guard_is_refused_or_else_lets_nothing_pass(rig, kit):
    for guard in (async_guard, functools.partial(async_guard)):
        with pytest.raises(ToolRegistrationError, match="must answer at once"):
            rig.tools.guard(guard)
    rig.tools.guard(AsyncGuard())
    rig.add("echo")
    assert "a coroutine (is an `await` missing?)" in kit.text(await rig.run())
    assert rig.seen == []


# ---- Classifiers, conditions, observers


async def says_yes_later(_arguments):
    return True


def cannot_say(_arguments):
    raise LookupError("cannot say")


class Yes:
    def __bool__(self):
        return True

    def __eq__(self, other):
        return True

    __hash__ = None  # pyright: ignore


@pytest.mark.contract("D2", "E19")
@pytest.mark.parametrize("how", ["batch", "nested"])
@pytest.mark.parametrize(
    ("classifier", "parallel"),
    [
        (lambda _arguments: True, True),
        (says_yes_later, False),
        (cannot_say, False),
        (lambda _arguments: "yes", False),
        (lambda _arguments: Yes(), False),
        (lambda _arguments: None, False),
        (lambda: True, False),
    ],
)
async def test_calls_overlap_only_for_a_classifier_that_says_true(rig, how, classifier, parallel):
    async def body(_arguments, _run):
        rig.note("begin")
        await anyio.wait_all_tasks_blocked()
        rig.note("end")

    rig.add("slow", body, is_concurrency_safe=classifier)
    await Way(rig, how).call("slow", "slow")
    assert rig.seen == (["begin", "begin", "end", "end"] if parallel else ["begin", "end", "begin", "end"])


async def later_later(_context):
    return nothing()


@pytest.mark.contract("A38", "A39")
@pytest.mark.parametrize(
    ("when", "says"),
    [
        (later_later, "must answer True or False, not a coroutine (is an `await` missing?)"),
        (lambda _context: 1, "must answer True or False, not int 1"),
        (cannot_say, "cannot say"),
    ],
)
async def test_a_condition_that_misbehaves_fails_the_step_and_not_the_registry(rig, when, says):
    agent = ScopeKey("agent")
    undo = rig.add("echo", when=when)
    with pytest.raises((TypeError, LookupError)) as caught:
        await rig.registry.resolve(ActivationContext(agent=agent))
    assert says in str(caught.value)
    undo()
    rig.add("echo", when=says_yes_later)
    tool_set = await rig.registry.resolve(ActivationContext(agent=agent))
    assert (await rig.run(agent=agent, tool_set=tool_set)).value == {"ok": True}


class AsyncObserver:
    async def __call__(self, _call, _result):
        return None


@pytest.mark.contract("C59", "C61")
async def test_observers_that_misbehave_are_contained_and_named(rig, way, caplog):
    def fails(_call, _result):
        raise UnprintableError

    def stray(_call, _result):
        return nothing()

    for observer in (fails, stray, AsyncObserver(), lambda _call, result: rig.note(result)):
        rig.tools.on("tools/result", observer)
    rig.add("echo")
    result = await way.call("echo")
    assert result.value == {"ok": True}
    assert result in rig.seen
    warned = [record.getMessage() for record in caplog.records if '"echo"' in record.getMessage()]
    assert len(warned) == 3
    for name, warning in zip(("fails", "stray", "AsyncObserver"), warned, strict=True):
        assert name in warning


@pytest.mark.contract("C59")
async def test_an_async_observer_is_refused_even_in_a_partial_application(rig):
    async def waits(_call, _result):
        return None

    with pytest.raises(ToolRegistrationError, match="must not be async"):
        rig.tools.on("tools/result", functools.partial(waits))
