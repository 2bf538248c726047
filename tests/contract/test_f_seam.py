"""The seam itself, and what every sandbox does around its runs: checks, places, disposal (F1 to F11, F20 to F24).

Most of it is held here with a backend that starts nothing, so that "before anything is started" can be seen.
"""

from __future__ import annotations

import dataclasses
import json
import keyword
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from ptc.sandbox.backend import ProgramSandbox
from ptc.sandbox.conformance import Stop
from ptc.sandbox.peer import Completion
from ptc.sandbox.restricted import RestrictedSandbox
from ptc.sandbox.seam import (
    ErrorClass,
    FailureKind,
    Guarantees,
    Member,
    Namespace,
    RunFailure,
    RunStatistics,
    Sandbox,
    SandboxMisuseError,
    SandboxRequest,
    SandboxResult,
    SandboxUnavailableError,
)
from ptc.sandbox.turns import Turn
from ptc.sandbox.vehicle import Exit, Port
from ptc.sandbox.wasm import WasmSandbox

ECMASCRIPT = """
arguments async await break case catch class const continue debugger default delete do else enum eval export extends
false finally for function if implements import in instanceof interface let new null package private protected public
return static super switch this throw true try typeof undefined var void while with yield
""".split()  # noqa: SIM905 - words, and not a list of quotes
BACKEND_GLOBALS = ["console", "__builtins__", "__name__", "__main__", "__debug__", "asyncio"]
BACKENDS = pytest.mark.parametrize("make", [WasmSandbox, RestrictedSandbox])


async def nothing(_call: object) -> None:
    return None


class Idle:
    """A vehicle that ends when it is told to, with the value 1."""

    def __init__(self, act: Callable[[Idle], Awaitable[None]]) -> None:
        self.backlog = 0
        self.killed = anyio.Event()
        self.driven = False
        self._act = act

    async def drive(self, port: Port) -> Completion | Exit | None:
        self.driven = True
        port.started()
        await self._act(self)
        return Completion(value_json="1")

    def reply(self, text: str) -> None:
        raise AssertionError(text)

    def kill(self) -> None:
        self.killed.set()


class IdleSandbox(ProgramSandbox):
    """A sandbox whose programs do nothing, and that notes what was asked of it."""

    isolation = "process"

    def __init__(self, act: Callable[[Idle], Awaitable[None]] | None = None, **budgets: Any) -> None:
        self.vehicles: list[Idle] = []
        self.requests: list[Any] = []
        self.let_go = 0
        self.made_ready = 0
        self._act = act
        defaults: dict[str, Any] = {
            "compute_ms": 1000,
            "max_wall_ms": 10_000,
            "max_memory_bytes": 32 << 20,
            "max_output_bytes": 1000,
            "max_concurrent_runs": 2,
            "max_outstanding_calls": 1,
            "max_queued_bytes": 1,
            "require": (),
        }
        super().__init__(**{**defaults, **budgets})

    @property
    def guarantees(self) -> Guarantees:
        return Guarantees(
            **{**dict.fromkeys((field.name for field in dataclasses.fields(Guarantees)), ""), "wall": "w"}
        )

    def _vehicle(self, request: str) -> Idle:
        self.requests.append(json.loads(request))

        async def at_once(_idle: Idle) -> None:
            return None

        self.vehicles.append(Idle(self._act or at_once))
        return self.vehicles[-1]

    async def _make_ready(self) -> None:
        self.made_ready += 1

    async def _let_go(self) -> None:
        self.let_go += 1


async def turns(number: int = 30) -> None:
    for _ in range(number):
        await checkpoint()


# Shapes


@pytest.mark.contract("F1")
def test_a_request_has_no_knobs_and_a_result_holds_its_failure() -> None:
    assert [field.name for field in dataclasses.fields(SandboxRequest)] == ["program", "namespaces", "signal"]
    assert [field.name for field in dataclasses.fields(SandboxResult)] == ["logs", "value_json", "error", "statistics"]
    assert SandboxResult() == SandboxResult(logs=(), value_json=None, error=None, statistics=RunStatistics())
    for made in (SandboxRequest(program=""), SandboxResult(), RunFailure(FailureKind.ABORT, "")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, dataclasses.fields(made)[0].name, "changed")


@pytest.mark.contract("F3")
def test_the_kinds_of_failure_are_these() -> None:
    """Ruling 8 adds the last two."""
    assert [kind.value for kind in FailureKind] == [
        "exception", "timeout", "abort", "worker-exit", "invalid-output", "output-limit", "protocol",
        "sandbox-unavailable",
    ]  # fmt: skip


@pytest.mark.contract("F4")
@BACKENDS
def test_a_sandbox_says_what_it_is_and_what_it_guarantees(make: Callable[..., Sandbox]) -> None:
    """Ruling 41: wasm is meant as a wall, the process contains, and each says in data by what."""
    sandbox = make()
    assert isinstance(sandbox, Sandbox)
    assert (sandbox.language, sandbox.isolation) == ("python", "wasm" if make is WasmSandbox else "process")
    told = dataclasses.asdict(sandbox.guarantees)
    assert list(told) == [
        "memory", "compute", "wall", "files", "network", "environment", "processes", "syscalls",
    ]  # fmt: skip
    assert all(isinstance(text, str) for text in told.values())
    for name in ("memory", "compute", "wall", "environment"):
        assert told[name]


@pytest.mark.contract("F4")
@BACKENDS
def test_guarantees_tell_the_budgets_that_are_in_force(make: Callable[..., Sandbox]) -> None:
    told = make(compute_ms=1234, max_wall_ms=5678, max_memory_bytes=99_999_744).guarantees
    assert "1234 ms" in told.compute
    assert "5678 ms" in told.wall
    assert "99999744" in told.memory


@pytest.mark.contract("F4")
def test_what_is_not_enforced_can_be_required_and_is_then_refused() -> None:
    assert IdleSandbox(require=["wall"])
    with pytest.raises(SandboxUnavailableError, match=r"does not enforce files, network on this machine"):
        IdleSandbox(require=["network", "wall", "files"])
    with pytest.raises(ValueError, match="there is no guarantee 'speed'; there are: memory, compute, "):
        IdleSandbox(require=["speed"])


# Bindings


async def refused(namespaces: list[Namespace]) -> str:
    """Returns why bindings are refused; nothing may have been started for them."""
    sandbox = IdleSandbox()
    with pytest.raises(SandboxMisuseError) as caught:
        await sandbox.run(SandboxRequest(program="return 1", namespaces=namespaces))
    assert sandbox.vehicles == []
    return str(caught.value)


async def accepted(namespaces: list[Namespace]) -> None:
    result = await IdleSandbox().run(SandboxRequest(program="return 1", namespaces=namespaces))
    assert result.value_json == "1"


@pytest.mark.contract("F7", "F9")
@pytest.mark.anyio
@pytest.mark.parametrize("name", sorted({*ECMASCRIPT, *keyword.kwlist, "match", "type", "_"}))
async def test_a_reserved_word_of_either_language_is_no_global(anyio_backend: str, name: str) -> None:
    assert "is a reserved word" in await refused([Namespace(name, {})])
    assert "is a reserved word" in await refused([Namespace("tools", {}, ErrorClass(name, "p"))])


@pytest.mark.contract("F7", "F9")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "name", ["", " ", "1a", "a-b", "a.b", "a b", "$a", "a$", "näme", "ａ", "a\n", "\na", "名", "a\0"]
)
async def test_a_global_is_an_ascii_identifier_without_dollars(anyio_backend: str, name: str) -> None:
    assert "must be an ASCII identifier" in await refused([Namespace(name, {})])
    assert "must be an ASCII identifier" in await refused([Namespace("tools", {}, ErrorClass(name, "p"))])


@pytest.mark.contract("F8", "F9")
@pytest.mark.anyio
@pytest.mark.parametrize("name", BACKEND_GLOBALS)
async def test_what_the_backend_owns_is_no_global(anyio_backend: str, name: str) -> None:
    assert "belongs to the sandbox" in await refused([Namespace(name, {})])
    assert "belongs to the sandbox" in await refused([Namespace("tools", {}, ErrorClass(name, "p"))])


@pytest.mark.contract("F7")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "name", ["tools", "A1", "_x", "__x__", "a_1", "Match", "Type", "__", "print", "json", "Console"]
)
async def test_any_other_ascii_identifier_is_a_global(anyio_backend: str, name: str) -> None:
    await accepted([Namespace(name, {})])
    await accepted([Namespace("other", {}, ErrorClass(name, "p"))])


@pytest.mark.contract("F8", "F9")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "namespaces",
    [
        [Namespace("a", {}), Namespace("b", {}), Namespace("a", {})],
        [Namespace("a", {}, ErrorClass("a", "p"))],
        [Namespace("a", {}, ErrorClass("b", "p")), Namespace("b", {})],
        [Namespace("a", {}), Namespace("b", {}, ErrorClass("a", "p"))],
        [Namespace("a", {}, ErrorClass("E", "p")), Namespace("b", {}, ErrorClass("E", "p"))],
    ],
)
async def test_no_name_is_injected_twice(anyio_backend: str, namespaces: list[Namespace]) -> None:
    assert "is declared twice" in await refused(namespaces)


@pytest.mark.contract("F10")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "name",
    [
        "",
        "name",
        "message",
        "stack",
        "args",
        "with_traceback",
        "add_note",
        "__cause__",
        "__x__",
        "_____",
        "__a b__",
        "__\n__",
    ],
)
async def test_a_member_property_that_an_error_has_already_is_refused(anyio_backend: str, name: str) -> None:
    assert "cannot keep the member's name in" in await refused([Namespace("tools", {}, ErrorClass("E", name))])


@pytest.mark.contract("F10")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "name", ["toolName", "not an identifier", "____", "__", "_", "__x", "x__", "_x_", "é", "Name", "1"]
)
async def test_any_other_member_property_is_accepted(anyio_backend: str, name: str) -> None:
    await accepted([Namespace("tools", {}, ErrorClass("E", name))])


@pytest.mark.contract("F11")
@pytest.mark.anyio
async def test_member_names_are_any_strings(anyio_backend: str) -> None:
    names = ["", "__proto__", "constructor", "class", "a b", "é", "\0", "a.b", "__class__", "1"]
    await accepted([Namespace("tools", {name: Member(nothing) for name in names})])


@pytest.mark.contract("F2", "F10", "F11")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "namespace",
    [
        Namespace("tools", {1: Member(nothing)}),  # type: ignore[dict-item]
        Namespace(1, {}),  # type: ignore[arg-type]
        Namespace("tools", {}, ErrorClass(None, "p")),  # type: ignore[arg-type]
        Namespace("tools", {}, ErrorClass("E", 1)),  # type: ignore[arg-type]
        # No text that can cross (ruling 31).
        Namespace("tools", {"\ud800": Member(nothing)}),
        Namespace("tools", {}, ErrorClass("E", "\ud800")),
    ],
)
async def test_what_is_no_text_is_no_name(anyio_backend: str, namespace: Namespace) -> None:
    assert await refused([namespace])


# Budgets


NUMBERS = ["compute_ms", "max_wall_ms"]
INTEGERS = ["max_memory_bytes", "max_output_bytes", "max_concurrent_runs", "max_outstanding_calls", "max_queued_bytes"]
LEAST = {"max_memory_bytes": 32 << 20, "max_output_bytes": 4}


@pytest.mark.contract("F20")
@pytest.mark.parametrize("budget", NUMBERS)
@pytest.mark.parametrize("value", [0, -1, -0.5, float("nan"), float("inf"), float("-inf"), True, None, "1"])
def test_a_budget_in_milliseconds_is_finite_and_more_than_nothing(budget: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{budget} must be a finite number greater than 0"):
        IdleSandbox(**{budget: value})


@pytest.mark.contract("F20")
@pytest.mark.parametrize("budget", INTEGERS)
@pytest.mark.parametrize("value", [0, -1, 1.0, 1e9, float("nan"), float("inf"), True, None, "1", 2**53, 2**60])
def test_a_budget_that_counts_is_a_safe_integer(budget: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{budget} must be an integer from"):
        IdleSandbox(**{budget: value})


@pytest.mark.contract("F20")
def test_the_bounds_of_budgets() -> None:
    for budget in INTEGERS:
        least = LEAST.get(budget, 1)
        assert IdleSandbox(**{budget: least})
        assert IdleSandbox(**{budget: 2**53 - 1})
        with pytest.raises(ValueError, match=budget):
            IdleSandbox(**{budget: least - 1})
    for budget in NUMBERS:
        assert IdleSandbox(**{budget: 0.001})
    assert IdleSandbox(max_wall_ms=2_147_483_647, compute_ms=1e300)
    with pytest.raises(ValueError, match="max_wall_ms must be at most 2147483647"):
        IdleSandbox(max_wall_ms=2_147_483_648)


@pytest.mark.contract("F17", "F18", "F19", "F20")
@BACKENDS
def test_budgets_that_are_not_given_are_those_of_the_contract(make: Callable[..., Sandbox]) -> None:
    """Ruling 43."""
    told = make().guarantees
    assert "60000 ms" in told.compute
    assert "600000 ms" in told.wall
    assert str(512 << 20) in told.memory
    limits = make()._limits  # type: ignore[attr-defined]
    assert (limits.compute_ms, limits.max_wall_ms, limits.max_output_bytes) == (60_000, 600_000, 67_108_864)


@pytest.mark.contract("F43")
@pytest.mark.anyio
async def test_what_goes_to_the_program_is_its_source_names_a_seed_and_limits(anyio_backend: str) -> None:
    """And no functions, nothing else of the host; the seed is another one each time."""
    sandbox = IdleSandbox()
    namespaces = [
        Namespace("tools", {"a b": Member(nothing, ("x", "y")), "c": Member(nothing)}, ErrorClass("E", "p")),
        Namespace("other", {}),
    ]
    for _ in range(2):
        await sandbox.run(SandboxRequest(program="return '\ud800é'", namespaces=namespaces))
    request, other = sandbox.requests
    assert sorted(request) == ["limits", "namespaces", "program", "seed"]
    assert request["program"] == "return '\ud800é'"
    assert request["namespaces"] == [
        {"global": "tools", "members": {"a b": ["x", "y"], "c": []}, "errorClass": {"name": "E", "property": "p"}},
        {"global": "other", "members": {}, "errorClass": None},
    ]
    assert all(type(one["seed"]) is int and one["seed"].bit_length() <= 128 for one in (request, other))
    assert request["seed"] != other["seed"]
    assert all(type(limit) is int for limit in request["limits"].values())


# Runs


@pytest.mark.contract("F21", "F31")
@pytest.mark.anyio
async def test_an_aborted_signal_starts_nothing(anyio_backend: str) -> None:
    stop = Stop()
    stop.press("too late")
    sandbox = IdleSandbox(max_output_bytes=12)
    result = await sandbox.run(SandboxRequest(program="no python at all (", signal=stop))
    assert result == SandboxResult(error=RunFailure(FailureKind.ABORT, "too late"))
    stop.reason = "much too late"
    result = await sandbox.run(SandboxRequest(program="", signal=stop))
    assert result.error == RunFailure(FailureKind.OUTPUT_LIMIT, "outer output exceeded 12 bytes"[:8])
    assert sandbox.vehicles == []
    with pytest.raises(SandboxMisuseError):
        await sandbox.run(SandboxRequest(program="", namespaces=[Namespace("class", {})], signal=stop))


@pytest.mark.contract("F2", "F23", "F24")
@pytest.mark.anyio
async def test_disposal_ends_all_runs_waits_for_them_and_refuses_later_ones(anyio_backend: str) -> None:
    may_end = anyio.Event()

    async def act(_idle: Idle) -> None:
        await may_end.wait()

    sandbox = IdleSandbox(act, max_concurrent_runs=2)
    results: list[SandboxResult] = []
    closed: list[int] = []

    async def go() -> None:
        results.append(await sandbox.run(SandboxRequest(program="")))

    async def close() -> None:
        await sandbox.aclose()
        closed.append(len(results))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(go)
        await turns()
        # Two have their places, and the third waits.
        assert sorted(idle.driven for idle in sandbox.vehicles) == [False, True, True]
        tasks.start_soon(close)
        tasks.start_soon(close)
        await turns()
        with pytest.raises(SandboxMisuseError, match=r"run\(\) after disposal"):
            await sandbox.run(SandboxRequest(program=""))
        with pytest.raises(SandboxMisuseError, match=r"prepare\(\) after disposal"):
            await sandbox.prepare()
        assert all(idle.killed.is_set() for idle in sandbox.vehicles)
        # The one that only waited has ended; two have been killed, and are waited for.
        assert (len(results), closed, sandbox.let_go) == (1, [], 0)
        may_end.set()
    assert [result.error for result in results] == [RunFailure(FailureKind.ABORT, "runtime disposed")] * 3
    assert len(closed) == 2
    assert sandbox.let_go >= 1
    await sandbox.aclose()


@pytest.mark.contract("F2", "F24")
@pytest.mark.anyio
async def test_a_sandbox_that_is_entered_disposes_itself_on_leaving(anyio_backend: str) -> None:
    async with IdleSandbox() as sandbox:
        await sandbox.prepare()
        assert (await sandbox.run(SandboxRequest(program=""))).value_json == "1"
    assert (sandbox.made_ready, sandbox.let_go) == (1, 1)
    with pytest.raises(SandboxMisuseError, match=r"run\(\) after disposal"):
        await sandbox.run(SandboxRequest(program=""))


@pytest.mark.contract("F24")
@pytest.mark.anyio
async def test_a_disposal_that_is_cancelled_still_waits(anyio_backend: str) -> None:
    may_end = anyio.Event()

    async def act(_idle: Idle) -> None:
        await may_end.wait()

    sandbox = IdleSandbox(act)

    async def close() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await sandbox.aclose()
        assert sandbox.let_go == 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sandbox.run, SandboxRequest(program=""))
        await turns()
        tasks.start_soon(close)
        await turns()
        assert sandbox.let_go == 0
        may_end.set()


@pytest.mark.contract("F18", "F21")
@pytest.mark.anyio
@pytest.mark.parametrize("cause", ["abort", "timeout"])
async def test_a_run_that_waits_for_a_place_ends_without_one(anyio_backend: str, cause: str) -> None:
    may_end, stop = anyio.Event(), Stop()

    async def act(_idle: Idle) -> None:
        await may_end.wait()

    sandbox = IdleSandbox(act, max_concurrent_runs=1, max_wall_ms=100 if cause == "timeout" else 10_000)
    waiting: list[SandboxResult] = []
    ended = anyio.Event()

    async def wait() -> None:
        waiting.append(await sandbox.run(SandboxRequest(program="", signal=stop)))
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sandbox.run, SandboxRequest(program=""))
        await turns()
        tasks.start_soon(wait)
        await turns()
        if cause == "abort":
            stop.press("stop")
        with anyio.fail_after(5):
            await ended.wait()
        may_end.set()
    assert waiting[0].error is not None
    assert waiting[0].error.kind == cause
    assert [idle.driven for idle in sandbox.vehicles] == [True, False]
    # Its place was never taken, and none is lost.
    assert (await sandbox.run(SandboxRequest(program=""))).value_json == "1"


@pytest.mark.contract("F23")
@pytest.mark.anyio
async def test_a_fault_of_the_host_leaves_no_run_and_no_place_behind(anyio_backend: str) -> None:
    async def act(_idle: Idle) -> None:
        raise OSError("no room")

    sandbox = IdleSandbox(act, max_concurrent_runs=1)
    for _ in range(3):
        with pytest.raises(OSError, match="no room"):
            await sandbox.run(SandboxRequest(program=""))
    with anyio.fail_after(5):
        await sandbox.aclose()


@pytest.mark.contract("F21", "F23")
@pytest.mark.anyio
@pytest.mark.parametrize("ticks", range(5))
@pytest.mark.parametrize("taken", [False, True])
async def test_a_turn_that_is_given_up_holds_no_place_whenever_that_was(
    anyio_backend: str, ticks: int, taken: bool
) -> None:
    """Before it is asked for, while it is waited for, and when it has just been got."""
    places = anyio.CapacityLimiter(1)
    turn, other = Turn(places), Turn(places)
    if taken:
        assert await other.come()
    got: list[bool] = []

    async def come() -> None:
        got.append(await turn.come())
        if got[0]:
            turn.release()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            if ticks:
                tasks.start_soon(come)
                await turns(ticks - 1)
            turn.give_up()
            other.release()
            if not ticks:
                tasks.start_soon(come)
        assert ticks > 0 or got == [False]
        assert places.borrowed_tokens == 0
        assert await other.come()
        other.release()
        other.release()
    assert places.borrowed_tokens == 0
