"""The deadline that a tool declares (contract K1 to K5, rulings 23 and 24).

Bodies here wait for the signal that their deadline fires, so no test measures time. Where something must outlast a
deadline, it waits a multiple of it; that can make a test slow, and not wrong.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import ptc
import pytest
from ptc.registry import (
    HOST_CANCELLED,
    MISSING,
    AbortError,
    Deny,
    HarnessError,
    ScopeKey,
    SignalSource,
    ToolCall,
    ToolError,
    ToolFailure,
    ToolSuccess,
    ToolTimeoutError,
    text_block,
)
from ptc.runtime.policies.timeout import MAX_TIMEOUT_MS, TimeoutPolicy

pytestmark = pytest.mark.anyio

TIMED_OUT = ("ToolTimeoutError", "TOOL_TIMEOUT")
ABORTED = ("AbortError", "ABORTED")
BEFORE = ("AbortError", "ABORTED_BEFORE_DISPATCH")
SOON = 5  # milliseconds
A_DAY = 24 * 3600 * 1000
REASON = LookupError("the caller's reason")


class QuotaError(HarnessError):
    default_code = "QUOTA"


@pytest.fixture
def source():
    return SignalSource()


@pytest.fixture
def limited(rig):
    """The rig, with the policy in it, outermost."""
    TimeoutPolicy.install(rig.tools)
    return rig


def wrap(rig, wrapper, **options):
    return rig.tools.on("tools/execute", wrapper, **options)


def waits_for_its_signal(rig, then=None):
    """Returns a body that ends when its signal fires: with the value `late`, or by raising `then`."""

    async def body(_arguments, run):
        rig.note("body")
        await run.signal.wait()
        rig.note(run.signal.reason)
        if then is not None:
            raise then
        return "late"

    return body


async def tasks_but_mine():
    """Returns the other tasks of the event loop, as far as they are still there when all is quiet."""
    await anyio.wait_all_tasks_blocked()
    mine = anyio.get_current_task().id
    return {task.id for task in anyio.get_running_tasks() if task.id != mine}


@pytest.mark.contract("K1")
async def test_a_call_without_a_deadline_is_untouched(limited, source):
    async def inner(view, next_):
        limited.note(view.signal)
        limited.note(await next_())
        return limited.seen[-1]

    async def outer(_view, next_):
        limited.note(await next_())
        return limited.seen[-1]

    wrap(limited, inner)
    wrap(limited, outer, prepend=True)
    limited.add("echo")
    await limited.run(signal=source.signal)
    signal, _body, made, passed_on = limited.seen
    assert signal is source.signal
    assert passed_on is made


@pytest.mark.contract("K1")
async def test_a_deadline_that_is_not_reached_changes_nothing_but_the_signal(limited, kit, source):
    async def inner(view, next_):
        limited.note(view.signal is not source.signal)
        return await next_()

    async def body(_arguments, run):
        run.conclude_turn()
        run.defer_context(kit.context("deferred"))
        return {"n": 1}

    wrap(limited, inner)
    limited.add("echo", body, timeout_ms=A_DAY, presentation_meta=lambda _arguments, value: [value])
    result = await limited.run(signal=source.signal)
    assert limited.seen == [True]
    assert (result.value, result.meta, result.concludes_turn) == ({"n": 1}, [{"n": 1}], True)
    assert kit.texts(result) == ["deferred"]


@pytest.mark.contract("K1")
async def test_the_deadline_is_that_of_the_callers_view(limited, kit):
    patient, hasty = ScopeKey("patient"), ScopeKey("hasty")

    async def quick(_arguments, _run):
        return "quick"

    limited.add("echo", waits_for_its_signal(limited), timeout_ms=SOON)
    limited.add("echo", quick, scope=patient)
    limited.add("other", quick)
    limited.add("other", waits_for_its_signal(limited), scope=hasty, timeout_ms=SOON)
    assert (await limited.run("echo", agent=patient)).value == "quick"
    assert kit.identity(await limited.run("echo", agent=hasty)) == TIMED_OUT
    assert (await limited.run("other", agent=patient)).value == "quick"
    assert kit.identity(await limited.run("other", agent=hasty)) == TIMED_OUT


@pytest.mark.contract("K1", "A25")
async def test_the_deadline_of_a_conditional_tool_counts_for_the_step_that_admits_it(limited, kit):
    agent = ScopeKey("agent")
    limited.add("echo", waits_for_its_signal(limited), timeout_ms=SOON, when=lambda _context: True)
    tool_set = await limited.registry.resolve(ptc.registry.ActivationContext(agent=agent))
    assert kit.identity(await limited.run(agent=agent, tool_set=tool_set)) == TIMED_OUT
    assert kit.identity(await limited.run(agent=agent)) == ("ToolNotFoundError", "UNKNOWN_TOOL")


@pytest.mark.contract("K1")
async def test_only_the_wrappers_turn_counts_and_not_the_policies_before_it(limited):
    async def slow_policy(_call, next_):
        await anyio.sleep(4 * SOON / 1000)
        return await next_()

    async def body(_arguments, run):
        return run.signal.aborted

    limited.tools.on("tools/pre-execute", slow_policy)
    limited.add("echo", body, timeout_ms=SOON)
    assert (await limited.run()).value is False


@pytest.mark.contract("K2")
@pytest.mark.parametrize("timeout_ms", [MAX_TIMEOUT_MS + 1, float(MAX_TIMEOUT_MS) + 0.5, 10**400])
async def test_a_deadline_beyond_any_timer_is_an_error_of_the_call(limited, kit, timeout_ms):
    async def post(_call, _result, next_):
        limited.note("post")
        return await next_()

    limited.tools.on("tools/post-execute", post)
    limited.add("echo", timeout_ms=timeout_ms)
    result = await limited.run()
    assert 'tool "echo" declares a timeout_ms of' in result.error.message
    assert "the limit is 2147483647" in result.error.message
    assert kit.identity(result) is None
    assert limited.seen == []


@pytest.mark.contract("K2")
async def test_the_longest_deadline_is_allowed(limited):
    limited.add("echo", timeout_ms=2_147_483_647)
    assert (await limited.run()).value == {"ok": True}


@pytest.mark.contract("K2", "A9", "B57")
@pytest.mark.parametrize("timeout_ms", [float("nan"), float("inf"), 0, -0.0, -1, True, "5", -(10**400)])
async def test_what_is_no_deadline_never_gets_as_far_as_a_call(rig, timeout_ms):
    async def body(_arguments):
        return 1

    with pytest.raises(TypeError, match=r"define_tool\(t\): timeout_ms must be a positive finite number"):
        ptc.define_tool(
            name="t", description="", parameters={}, output={"type": "json"}, execute=body, timeout_ms=timeout_ms
        )
    with pytest.raises(ptc.ToolRegistrationError, match='tool "t" timeout_ms must be a positive finite number'):
        rig.add("t", timeout_ms=timeout_ms)


ENDINGS = ["success", "failure", "timeout", "timeout, failure", "caller gives up", "wrapper raises", "never dispatched"]


@pytest.mark.contract("K2")
@pytest.mark.parametrize("ending", ENDINGS)
async def test_however_it_ends_the_timer_is_gone_and_the_signal_restored(limited, kit, source, ending):
    async def outer(view, next_):
        try:
            return await next_()
        finally:
            limited.note(view.signal is source.signal)

    async def inner(_view, next_):
        if ending == "never dispatched":
            return ToolSuccess(value=1, content=[])
        result = await next_()
        if ending == "wrapper raises":
            raise QuotaError("over")
        return result

    async def body(_arguments, run):
        if ending == "caller gives up":
            source.abort(REASON)
        if ending.startswith("timeout"):
            await run.signal.wait()
        if ending.endswith("failure"):
            raise LookupError("disk")
        return 1

    wrap(limited, outer, prepend=True)
    wrap(limited, inner)
    limited.add("echo", body, timeout_ms=SOON if ending.startswith("timeout") else A_DAY)
    before = await tasks_but_mine()
    result = await limited.run(signal=source.signal)
    assert limited.seen == [True]
    assert len(source.signal._observers) == 0
    assert await tasks_but_mine() == before
    expected = dict.fromkeys(ENDINGS, None) | {
        "timeout": TIMED_OUT,
        "timeout, failure": TIMED_OUT,
        "caller gives up": ABORTED,
        "wrapper raises": ("QuotaError", "QUOTA"),
    }
    assert (kit.identity(result) if result.is_error else None) == expected[ending]


@pytest.mark.contract("K3", "C65")
@pytest.mark.parametrize("then", [None, LookupError("disk"), QuotaError("quota"), AbortError("gave up"), "the reason"])
async def test_whatever_comes_back_after_its_own_timer_is_a_timeout(limited, kit, then):
    async def body(_arguments, run):
        run.conclude_turn()
        await run.signal.wait()
        assert isinstance(run.signal.reason, ToolTimeoutError)
        if then is not None:
            raise run.signal.reason if isinstance(then, str) else then
        return "late"

    limited.add("echo", body, timeout_ms=SOON, presentation_meta=lambda _arguments, _value: 1)
    result = await limited.run()
    assert kit.identity(result) == TIMED_OUT
    assert result.error.message == "tool call timed out after 5ms"
    assert kit.text(result) == "Error: tool call timed out after 5ms"
    assert result.meta is MISSING
    assert not hasattr(result, "value")


@pytest.mark.contract("K3")
@pytest.mark.parametrize(("timeout_ms", "shown"), [(5, "5ms"), (5.0, "5ms"), (2.5, "2.5ms")])
async def test_the_message_says_the_declared_time(limited, timeout_ms, shown):
    limited.add("echo", waits_for_its_signal(limited), timeout_ms=timeout_ms)
    assert (await limited.run()).error.message == f"tool call timed out after {shown}"


@pytest.mark.contract("K3")
@pytest.mark.parametrize("then", [None, QuotaError("quota"), REASON])
async def test_when_the_caller_gives_up_first_it_is_no_timeout(limited, kit, source, then):
    async def body(_arguments, run):
        source.abort(REASON)
        await anyio.sleep(4 * SOON / 1000)
        limited.note(run.signal.reason)
        if then is not None:
            raise then
        return "late"

    limited.add("echo", body, timeout_ms=SOON)
    result = await limited.run(signal=source.signal)
    assert kit.identity(result) == (("QuotaError", "QUOTA") if isinstance(then, QuotaError) else ABORTED)
    assert limited.seen == [REASON]


@pytest.mark.contract("K3")
@pytest.mark.parametrize("where", ["body", "inner wrapper", "outer wrapper", "post"])
async def test_a_caller_that_gives_up_after_the_timeout_changes_nothing(limited, kit, source, where):
    def reach(place):
        if place == where:
            source.abort(REASON)

    async def body(_arguments, run):
        await run.signal.wait()
        reach("body")
        return "late"

    async def inner(_view, next_):
        result = await next_()
        reach("inner wrapper")
        return result

    async def outer(_view, next_):
        result = await next_()
        reach("outer wrapper")
        return result

    async def post(_call, _result, next_):
        reach("post")
        return await next_()

    wrap(limited, inner)
    wrap(limited, outer, prepend=True)
    limited.tools.on("tools/post-execute", post)
    limited.add("echo", body, timeout_ms=SOON)
    assert kit.identity(await limited.run(signal=source.signal)) == TIMED_OUT
    assert source.signal.aborted


@pytest.mark.contract("K3", "C41")
async def test_contexts_of_body_and_inner_wrappers_survive_a_timeout(limited, kit):
    async def inner(_view, next_):
        result = await next_()
        return replace(result, additional_contexts=[kit.context("wrapper's")])

    async def body(_arguments, run):
        run.defer_context(kit.context("before"))
        await run.signal.wait()
        run.defer_context(kit.context("after"))

    wrap(limited, inner)
    limited.add("echo", body, timeout_ms=SOON)
    result = await limited.run()
    assert kit.identity(result) == TIMED_OUT
    assert kit.texts(result) == ["before", "after", "wrapper's"]


@pytest.mark.contract("K3", "C57")
async def test_contexts_that_are_none_are_refused_as_they_are_without_a_timeout(limited, kit):
    async def inner(view, _next):
        await view.signal.wait()
        return ToolFailure(error=ToolError("mine"), content=[], additional_contexts=5)  # pyright: ignore

    wrap(limited, inner)
    limited.add("echo", timeout_ms=SOON)
    assert kit.text(await limited.run()) == "Error: tool result must be losslessly JSON-serializable"


@pytest.mark.contract("K3", "C28")
async def test_a_signal_that_an_inner_wrapper_puts_in_place_does_not_count_as_the_deadline(limited, kit):
    own = SignalSource()

    async def inner(view, next_):
        upstream, view.signal = view.signal, own.signal
        result = await next_()
        view.signal = upstream
        return result

    async def body(_arguments, run):
        own.abort("the wrapper's")
        limited.note(run.signal.reason)
        return "late"

    wrap(limited, inner)
    limited.add("echo", body, timeout_ms=A_DAY)
    assert kit.identity(await limited.run()) == ABORTED
    assert limited.seen == ["the wrapper's"]


@pytest.mark.contract("K3")
async def test_a_timeout_is_seen_by_post_execute_and_can_be_answered_there(limited):
    async def post(_call, result, next_):
        limited.note(result.error)
        return ptc.Accept(content=[text_block("try a smaller range")]) if result.is_error else await next_()

    limited.tools.on("tools/post-execute", post)
    limited.add("echo", waits_for_its_signal(limited), timeout_ms=SOON)
    result = await limited.run()
    assert result.error.info.code == "TOOL_TIMEOUT"
    assert result.content == [text_block("try a smaller range")]
    assert limited.seen[-1] is result.error


@pytest.mark.contract("K4", "C32")
async def test_a_body_that_ignores_its_deadline_is_awaited_and_never_interrupted(limited, kit):
    fired, release = anyio.Event(), anyio.Event()

    async def body(_arguments, run):
        run.signal.subscribe(lambda _reason: fired.set())
        try:
            await release.wait()
        except BaseException as error:
            limited.note(error)
            raise
        limited.note("ended")
        return 1

    limited.add("echo", body, timeout_ms=SOON)
    async with anyio.create_task_group() as group:

        async def run():
            limited.note(kit.identity(await limited.run()))

        group.start_soon(run)
        await fired.wait()
        await anyio.wait_all_tasks_blocked()
        assert limited.seen == []
        release.set()
    assert limited.seen == ["ended", TIMED_OUT]


@pytest.mark.contract("K4")
async def test_a_body_that_heeds_its_signal_ends_at_the_deadline(limited, kit):
    async def body(_arguments, run):
        async with run.signal.cancel_scope():
            await anyio.sleep_forever()

    limited.add("echo", body, timeout_ms=SOON)
    assert kit.identity(await limited.run()) == TIMED_OUT


@pytest.mark.contract("K4", "C36")
@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize("error", [QuotaError("over"), ExceptionGroup("two", [QuotaError("a"), QuotaError("b")])])
async def test_an_exception_of_a_wrapper_comes_through_as_it_is(limited, kit, expired, error):
    async def inner(_view, next_):
        await next_()
        raise error

    async def outer(_view, next_):
        with pytest.raises(type(error)) as caught:
            await next_()
        limited.note(caught.value)
        raise caught.value

    async def body(_arguments, run):
        run.defer_context(kit.context("lost"))
        if expired:
            await run.signal.wait()

    wrap(limited, inner)
    wrap(limited, outer, prepend=True)
    limited.add("echo", body, timeout_ms=SOON if expired else A_DAY)
    result = await limited.run()
    assert limited.seen == [error]
    assert result.error.message == ("over" if isinstance(error, QuotaError) else "a; b")
    assert kit.texts(result) == []


class Halt(BaseException):
    """Asks the process to end."""


@pytest.mark.contract("K4")
@pytest.mark.parametrize("where", ["body", "wrapper"])
async def test_what_ends_the_process_comes_through_bare(limited, where):
    async def inner(_view, next_):
        if where == "wrapper":
            raise Halt
        return await next_()

    async def body(_arguments, _run):
        raise Halt

    wrap(limited, inner)
    limited.add("echo", body, timeout_ms=A_DAY)
    before = await tasks_but_mine()
    with pytest.raises(Halt):
        await limited.run()
    assert await tasks_but_mine() == before


@pytest.mark.contract("K4", "C32", "C61")
@pytest.mark.parametrize("expired", [False, True])
async def test_a_cancelled_host_waits_for_a_body_under_a_deadline(limited, kit, expired):
    fired, release = anyio.Event(), anyio.Event()

    async def body(_arguments, run):
        run.signal.subscribe(limited.note)
        run.signal.subscribe(lambda _reason: fired.set())
        await release.wait()
        limited.note("ended")
        return 1

    limited.add("echo", body, timeout_ms=SOON if expired else A_DAY)
    async with anyio.create_task_group() as group:

        async def run():
            try:
                await limited.run()
            finally:
                limited.note("left")

        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        if expired:
            await fired.wait()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await fired.wait()
            await anyio.wait_all_tasks_blocked()
            release.set()
    first, *rest = limited.seen
    assert isinstance(first, ToolTimeoutError) if expired else first == HOST_CANCELLED
    assert rest == ["ended", "left"]
    ((_call, result),) = limited.observed
    assert kit.identity(result) == ABORTED


@pytest.mark.contract("K5")
@pytest.mark.parametrize("shorter", ["inner", "outer", "neither"])
async def test_each_of_two_nested_calls_knows_whether_it_was_its_own_deadline(limited, kit, shorter):
    async def outer(_arguments, run):
        nested = limited.input("inner", call_id="c1:1", parent=run.exec.token, signal=run.signal)
        result = await limited.pipeline.execute(nested)
        limited.note(kit.identity(result) if result.is_error else result.value)
        return "done"

    async def inner(_arguments, run):
        if shorter != "neither":
            await run.signal.wait()
            limited.note(run.signal.reason.timeout_ms)
        return "done"

    limited.add("outer", outer, timeout_ms=SOON if shorter == "outer" else A_DAY)
    limited.add("inner", inner, timeout_ms=SOON + 1 if shorter == "inner" else A_DAY + 1)
    result = await limited.run("outer")
    if shorter == "outer":
        assert limited.seen == [SOON, ABORTED]
        assert kit.identity(result) == TIMED_OUT
    else:
        assert limited.seen == ([SOON + 1, TIMED_OUT] if shorter == "inner" else ["done"])
        assert result.value == "done"


@pytest.mark.contract("K5", "K1")
async def test_two_policies_around_one_call_make_one_timeout(limited, kit):
    agent = ScopeKey("agent")
    TimeoutPolicy.install(limited.registry.context(agent))
    limited.add("echo", waits_for_its_signal(limited), timeout_ms=SOON)
    result = await limited.run(agent=agent)
    assert kit.identity(result) == TIMED_OUT
    assert limited.seen[0] == "body"
    assert len(limited.seen) == 2


@pytest.mark.contract("K1", "K4")
@pytest.mark.parametrize("prepend", [False, True])
async def test_the_policy_stands_where_it_is_installed(rig, prepend):
    async def wrapper(_view, next_):
        result = await next_()
        rig.note(result.error.info.code)
        return result

    wrap(rig, wrapper)
    TimeoutPolicy.install(rig.tools, prepend=prepend)
    rig.add("echo", waits_for_its_signal(rig), timeout_ms=SOON)
    await rig.run()
    assert rig.seen[-1] == ("ABORTED" if prepend else "TOOL_TIMEOUT")


@pytest.mark.contract("K1", "C35")
async def test_a_retry_outside_gives_each_attempt_the_whole_time(limited, kit):
    """Ruling 23: the second `next()` runs the policy again, so that a retry outside it is still limited."""

    async def retry(_view, next_):
        result = await next_()
        while result.is_error and limited.seen.count("body") < 3:
            limited.note(kit.identity(result))
            result = await next_()
        return result

    async def body(_arguments, run):
        limited.note("body")
        if limited.seen.count("body") < 3:
            await run.signal.wait()
        return [run.signal.aborted, limited.seen.count("body")]

    wrap(limited, retry, prepend=True)
    limited.add("echo", body, timeout_ms=SOON)
    assert (await limited.run()).value == [False, 3]
    assert limited.seen == ["body", TIMED_OUT, "body", TIMED_OUT, "body"]


@pytest.mark.contract("K1", "K3", "C30", "C35")
async def test_a_retry_inside_shares_the_time_between_its_attempts(limited, kit):
    """Ruling 24: the second attempt does not reach the body, and still the body counts as invoked."""

    async def retry(_view, next_):
        for _ in range(2):
            limited.note(kit.identity(await next_()))
        return await next_()

    wrap(limited, retry)
    limited.add("echo", waits_for_its_signal(limited), timeout_ms=SOON)
    assert kit.identity(await limited.run()) == TIMED_OUT
    body, reason, first, second = limited.seen
    assert body == "body"
    assert isinstance(reason, ToolTimeoutError)
    assert first == second == ABORTED


@pytest.mark.contract("C30", "C42")
@pytest.mark.parametrize("attempts", [0, 1, 2])
async def test_that_a_body_was_invoked_is_remembered_across_attempts(rig, kit, source, attempts):
    """Ruling 24: the flag is of the call, not of the last attempt."""

    async def wrapper(_view, next_):
        for _ in range(attempts):
            await next_()
        source.abort()
        assert kit.identity(await next_()) == (ABORTED if attempts else BEFORE)
        return ToolSuccess(value=1, content=[])

    wrap(rig, wrapper)
    rig.add("echo")
    assert kit.identity(await rig.run(signal=source.signal)) == (ABORTED if attempts else BEFORE)


@pytest.mark.contract("K2", "C31")
async def test_a_next_that_comes_too_late_is_refused_under_a_deadline_too(limited):
    kept = []

    async def outer(_view, next_):
        kept.append(next_)
        return await next_()

    wrap(limited, outer, prepend=True)
    limited.add("echo", timeout_ms=A_DAY)
    await limited.run()
    with pytest.raises(RuntimeError, match="only while tools/execute runs"):
        await kept[0]()
    assert limited.seen == ["body"]


# ---- A host: the policy is there by default, and meets the calls of programs


def define(name: str, body: Any, **options: Any) -> ptc.ToolDefinition:
    return ptc.define_tool(name=name, description=name, parameters={}, output={"type": "json"}, execute=body, **options)


@pytest.mark.contract("K1")
@pytest.mark.parametrize("timeouts", [None, True, False])
async def test_a_host_limits_calls_unless_it_is_told_otherwise(kit, timeouts):
    seen: list[str] = []

    async def body(_arguments: Any, run: ptc.ToolRunContext) -> str:
        for _ in range(40):  # many looks: where the machine stalls, timers that are due together ring in any order
            await anyio.sleep(SOON / 10 / 1000)
            if run.signal.aborted:
                return "aborted"
        return "live"

    async with ptc.Host() if timeouts is None else ptc.Host(timeouts=timeouts) as host:
        agent = host.agent("a")

        @host.on("tools/execute")
        async def wrapper(_view: Any, next: Any) -> Any:
            result = await next()
            seen.append(result.error.info.code if result.is_error else result.value)
            return result

        host.tools.register(define("slow", body, timeout_ms=SOON))
        batch = await agent.execute([ToolCall(name="slow")])
    result = batch.results[0].result
    if timeouts is False:
        assert (result.value, seen) == ("live", ["live"])
    else:
        # The wrapper, added later, stands inside the policy.
        assert (kit.identity(result), seen) == (TIMED_OUT, ["ABORTED"])


@pytest.mark.contract("K1", "K5")
async def test_one_agent_alone_can_be_limited(kit):
    async def body(_arguments: Any, run: ptc.ToolRunContext) -> str:
        for _ in range(40):  # many looks: where the machine stalls, timers that are due together ring in any order
            await anyio.sleep(SOON / 10 / 1000)
            if run.signal.aborted:
                return "aborted"
        return "live"

    async with ptc.Host(timeouts=False) as host:
        host.tools.register(define("slow", body, timeout_ms=SOON))
        one, other = host.agent("one"), host.agent("other")
        undo = TimeoutPolicy.install(one.tools)
        results = [(await agent.execute([ToolCall(name="slow")])).results[0].result for agent in (one, other)]
        undo()
        results += [(await one.execute([ToolCall(name="slow")])).results[0].result]
    assert kit.identity(results[0]) == TIMED_OUT
    assert [result.value for result in results[1:]] == ["live", "live"]


@pytest.mark.contract("K1")
async def test_a_denied_call_of_a_host_arms_no_deadline(kit):
    async with ptc.Host() as host:
        host.on("tools/pre-execute", denies)
        host.tools.register(define("slow", denies, timeout_ms=MAX_TIMEOUT_MS + 1))
        result = (await host.agent("a").execute([ToolCall(name="slow")])).results[0].result
    assert (result.error.message, kit.identity(result)) == ("no", None)


async def denies(*_args: Any) -> Any:
    return Deny("no")


PROGRAM = """
import asyncio

async def attempt(name):
    try:
        return await getattr(tools, name)()
    except ToolCallError as error:
        return f"{error.toolName}: {error}"

return await asyncio.gather(*[attempt(name) for name in ("stuck", "quick", "deaf")])
"""


@pytest.mark.contract("K5", "K3", "E28")
async def test_each_sub_call_of_a_program_has_its_own_deadline(tmp_path: Path):
    async def quick(_arguments: Any) -> str:
        return "quick"

    async def stuck(_arguments: Any, run: ptc.ToolRunContext) -> None:
        async with run.signal.cancel_scope():
            await anyio.sleep_forever()

    async def deaf(_arguments: Any, run: ptc.ToolRunContext) -> str:
        await run.signal.wait()
        return "too late"

    async with ptc.Host(log=tmp_path / "ptc.db") as host:
        for body, timeout_ms in ((quick, A_DAY), (stuck, SOON), (deaf, 2 * SOON)):
            host.tools.register(define(body.__name__, body, timeout_ms=timeout_ms, concurrency_safe=True))
        agent = host.agent("a", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox(compute_ms=20_000)))
        result = await agent.run_code(PROGRAM)
        assert agent.session is not None
        store: Any = host._store
        events = await store.events(agent.session.id)
    assert not result.is_error, result.error.message
    assert result.value["result"] == [  # type: ignore[index, call-overload]
        f"stuck: tool call timed out after {SOON}ms",
        "quick",
        f"deaf: tool call timed out after {2 * SOON}ms",
    ]
    recorded = {event.data["name"]: event.data.get("error") for event in events if event.type == "tool/ptc-dispatch"}
    timed_out = {"name": "ToolTimeoutError", "code": "TOOL_TIMEOUT"}
    assert recorded == {"stuck": timed_out, "quick": None, "deaf": timed_out}


@pytest.mark.contract("K5", "K3")
async def test_a_program_that_is_given_up_ends_its_sub_calls_as_cancelled_and_not_as_late(tmp_path: Path):
    source, started = SignalSource(), anyio.Event()

    async def waits(_arguments: Any, run: ptc.ToolRunContext) -> None:
        started.set()
        await run.signal.wait()

    async with ptc.Host(log=tmp_path / "ptc.db") as host:
        host.tools.register(define("waits", waits, timeout_ms=A_DAY))
        agent = host.agent("a", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox(compute_ms=20_000)))
        async with anyio.create_task_group() as group:

            async def give_up() -> None:
                await started.wait()
                source.abort(REASON)

            group.start_soon(give_up)
            result = await agent.run_code("await tools.waits()", signal=source.signal)
        assert agent.session is not None
        store: Any = host._store
        events = await store.events(agent.session.id)
    assert result.is_error
    (record,) = [event.data for event in events if event.type == "tool/ptc-dispatch"]
    assert record["error"] == {"name": "AbortError", "code": "ABORTED"}
