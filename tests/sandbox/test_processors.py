"""Who may compute: as many programs at once as there are processors, and those that come back from a wait first."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import anyio
import ptc
import pytest
from ptc.sandbox.seam import BindingCall, JsonValue, Member, Namespace, SandboxRequest, SandboxResult
from ptc.sandbox.wasm import processors
from ptc.sandbox.wasm.processors import PROCESSORS, Processors, Turn

HOT = "while True:\n    pass"


def nothing() -> None:
    pass


def entered(gate: Processors, turn: Turn) -> threading.Thread:
    """Has a thread of its own ask for the turn; returns it when it waits or has ended."""
    thread = threading.Thread(target=gate.enter, args=(turn,), daemon=True)
    thread.start()
    until(lambda: turn.waiting or not thread.is_alive())
    return thread


def idle(gate: Processors, turns: list[Turn]) -> bool:
    """Returns whether nobody waits and all processors are free, once these turns have been given back."""
    for turn in turns:
        gate.leave(turn)
    return not gate._holding and not gate._fresh and not gate._used and gate._free == gate._count


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.001)


def test_as_many_compute_as_there_are_processors_and_the_next_follows_who_leaves() -> None:
    gate = Processors(2)
    turns = [Turn(nothing) for _ in range(4)]
    for turn in turns[:2]:
        gate.enter(turn)
    waiting = [entered(gate, turn) for turn in turns[2:]]
    assert [turn.held for turn in turns] == [True, True, False, False]
    gate.leave(turns[1])
    waiting[0].join(20)
    assert [turn.held for turn in turns] == [True, False, True, False]
    gate.leave(turns[0])
    waiting[1].join(20)
    for turn in turns:
        gate.leave(turn)  # also those that hold none
    for turn in turns[:2]:
        gate.enter(turn)  # both processors are free again, and no third is
    assert entered(gate, turns[2]).is_alive()
    turns[2].cancel()


def test_who_has_computed_for_a_while_gives_way_and_who_comes_back_goes_before_it() -> None:
    asked = threading.Event()
    gate = Processors(1)
    hot, first, second = Turn(asked.set), Turn(nothing), Turn(nothing)
    gate.enter(hot)
    gate.over(hot)
    assert hot.held, "nobody waits"
    entered(gate, first)
    assert asked.wait(20), "its time is over"
    gives_way = threading.Thread(target=gate.over, args=(hot,), daemon=True)
    gives_way.start()
    until(lambda: first.held)
    assert hot.waiting
    entered(gate, second)
    gate.leave(first)
    until(lambda: second.held)
    assert hot.waiting
    gate.leave(second)
    gives_way.join(20)
    assert hot.held


def test_who_computes_is_not_kept_waiting_for_ever_by_those_who_come_back() -> None:
    gate = Processors(1)
    hot, chatty = Turn(nothing), [Turn(nothing) for _ in range(8)]
    gate.enter(chatty[0])
    gate._used.append(hot)
    hot.begin_to_wait()
    for turn in chatty[1:]:
        entered(gate, turn)
    before = 0
    while not hot.held:
        before += 1
        gate.leave(next(turn for turn in chatty if turn.held))
    assert before == 4


def test_who_has_had_the_least_goes_before_the_others_every_second_time() -> None:
    gate = Processors(1)
    holds, waiting = Turn(nothing), [Turn(nothing) for _ in range(6)]
    gate.enter(holds)
    for spent, turn in zip((3, 6, 1, 5, 2, 4), waiting, strict=True):
        turn.spent = spent
        gate._used.append(turn)
        turn.begin_to_wait()
    order: list[int] = []
    while True:
        gate.leave(holds)
        if not gate._holding:
            break
        (holds,) = gate._holding
        order.append(round(holds.spent))
    assert order == [1, 3, 2, 6, 4, 5]


def test_a_program_keeps_its_first_turn_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 100.0
    monkeypatch.setattr(processors, "time", SimpleNamespace(monotonic=lambda: clock, sleep=time.sleep))
    turn, gate = Turn(nothing), Processors(1)
    ends: list[int] = []
    for _ in range(4):
        gate.enter(turn)
        ms = 0
        while not turn.is_over(clock):
            ms += 1
            clock += 0.001
        ends.append(ms)
        clock += 0.0001  # past what does not add up exactly
        gate.leave(turn)
    assert ends[0] >= 20
    assert all(5 <= ms <= 6 for ms in ends[1:])
    half = Turn(nothing)
    half.spent = 0.008
    gate.enter(half)
    assert not half.is_over(clock + 0.011)
    assert half.is_over(clock + 0.0121)


def test_a_killed_run_waits_for_no_turn() -> None:
    gate = Processors(1)
    holds, killed, early = Turn(nothing), Turn(nothing), Turn(nothing)
    gate.enter(holds)
    thread = entered(gate, killed)
    killed.cancel()
    thread.join(20)
    assert not thread.is_alive()
    assert not killed.held
    early.cancel()
    gate.enter(early)
    assert not early.held
    gate.leave(holds)
    other = Turn(nothing)
    gate.enter(other)
    assert other.held, "nobody who was killed has the processor"


def test_without_a_thread_that_ends_turns_one_too_many_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    gate = Processors(1)
    first, second = Turn(nothing), Turn(nothing)
    gate.enter(first)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        gate.enter(second)
    assert not second.held
    gate.leave(second)
    gate.leave(first)
    gate.enter(second)
    assert second.held


def test_without_that_thread_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Processors(1)
    holds, first, second = Turn(nothing), Turn(nothing), Turn(nothing)
    gate.enter(holds)
    later: list[threading.Thread] = []
    start = threading.Thread.start

    def fail(thread: threading.Thread) -> None:
        if thread.name != "ptc-turns":
            return start(thread)
        later.append(entered(gate, second))
        assert second.waiting, "who comes while the thread is started leaves that to the first"
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        gate.enter(first)
    later[0].join(20)
    assert not later[0].is_alive()
    assert idle(gate, [holds, first, second])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_when_that_thread_fails_the_next_who_waits_has_another() -> None:
    interrupted = threading.Event()

    def fail() -> None:
        raise RuntimeError("this engine cannot be interrupted")

    gate = Processors(1)
    holds, waits = Turn(fail), Turn(nothing)
    gate.enter(holds)
    thread = entered(gate, waits)
    thread.join(20)
    assert not thread.is_alive()
    assert not waits.held
    gate.leave(holds)
    holds = Turn(interrupted.set)
    gate.enter(holds)
    thread = entered(gate, waits)
    assert interrupted.wait(20)
    gate.leave(holds)
    thread.join(20)
    assert waits.held
    assert idle(gate, [waits])


def test_runs_of_one_engine_are_interrupted_with_one_step() -> None:
    class Engine:
        def __init__(self) -> None:
            self.asked = threading.Event()

        def interrupt(self) -> None:
            self.asked.set()

    gate = Processors(3)
    one, other = Engine(), Engine()
    held = [Turn(one.interrupt), Turn(one.interrupt), Turn(other.interrupt)]
    for turn in held:
        gate.enter(turn)
    waits = Turn(nothing)
    thread = entered(gate, waits)
    assert one.asked.wait(20)
    assert other.asked.wait(20)
    assert len(gate._due()) == 2
    waits.cancel()
    thread.join(20)
    assert idle(gate, held)


def test_a_wait_that_an_error_cut_short_takes_no_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Processors(1)
    holds, failed = Turn(nothing), Turn(nothing)
    gate.enter(holds)

    def fail(_self: Turn) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Turn, "wait", fail)
        with pytest.raises(MemoryError):
            gate.enter(failed)
    gate.leave(failed)
    gate.leave(holds)
    assert not failed.held
    assert idle(gate, [])


def test_a_run_can_be_cancelled_in_the_middle_of_any_step() -> None:
    # As a signal handler or a finalizer does, which may run in the thread that is just giving turns.
    gate = Processors(1)
    holds, waits, early = Turn(nothing), Turn(nothing), Turn(nothing)
    gate.enter(holds)
    thread = entered(gate, waits)
    with gate._lock:
        for turn in (holds, waits, waits, early):
            turn.cancel()
        thread.join(20)
        assert not thread.is_alive()
    gate.enter(early)
    assert idle(gate, [holds, waits, early])


def test_a_cancel_that_comes_just_before_the_wait_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Processors(1)
    holds, late = Turn(nothing), Turn(nothing)
    gate.enter(holds)
    begin_to_wait = Turn.begin_to_wait

    def cancelled_first(turn: Turn) -> bool:
        turn.cancel()
        return begin_to_wait(turn)

    with monkeypatch.context() as patch:
        patch.setattr(Turn, "begin_to_wait", cancelled_first)
        gate.enter(late)  # does not wait
    assert idle(gate, [holds, late])


def test_no_turn_is_lost_or_given_twice_whatever_happens_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "_SLICE_S", 0.0005)
    monkeypatch.setattr(processors, "_FIRST_S", 0)
    gate = Processors(2)
    most, lock = 0, threading.Lock()
    now: set[Turn] = set()

    def compute(turn: Turn, dice: random.Random) -> None:
        nonlocal most
        for _ in range(30):
            gate.enter(turn)
            for _ in range(dice.randrange(4)):
                if turn.held:
                    with lock:
                        now.add(turn)
                        most = max(most, len(now))
                    time.sleep(dice.random() / 2000)
                    with lock:
                        now.discard(turn)
                gate.over(turn)
            gate.leave(turn)

    turns = [Turn(nothing) for _ in range(24)]
    threads = [
        threading.Thread(target=compute, args=(turn, random.Random(seed)), daemon=True)
        for seed, turn in enumerate(turns)
    ]
    for thread in threads:
        thread.start()
    dice = random.Random(0)
    for turn in dice.sample(turns, 12):
        time.sleep(dice.random() / 200)
        turn.cancel()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert most == 2
    assert idle(gate, [])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes can be forked here")
def test_a_forked_process_has_all_its_processors() -> None:
    gate = Processors(1)
    gate.enter(Turn(nothing))
    child = os.fork()
    if not child:
        turn = Turn(nothing)
        gate.enter(turn)
        os._exit(0 if turn.held else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


async def touch(_call: BindingCall) -> JsonValue:
    return 1


@pytest.mark.anyio
@pytest.mark.contract("F17")
async def test_hot_loops_end_in_time_and_programs_that_call_tools_go_on_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for turn in ("_fresh", "_used"):
        assert not getattr(PROCESSORS, turn)
    monkeypatch.setattr(processors, "_SLICE_S", 0.002)
    chatty = "for _ in range(20):\n    await tools.touch()\nreturn 'done'"
    results: dict[str, list[SandboxResult]] = {HOT: [], chatty: []}
    order: list[str] = []
    async with ptc.WasmSandbox(compute_ms=2000) as sandbox:
        await sandbox.prepare()

        async def one(program: str) -> None:
            namespaces = [Namespace("tools", {"touch": Member(touch)})]
            results[program].append(await sandbox.run(SandboxRequest(program=program, namespaces=namespaces)))
            order.append(program)

        async with anyio.create_task_group() as tasks:
            for program in [HOT] * 6 + [chatty] * 4:
                tasks.start_soon(one, program)
    assert order == [chatty] * 4 + [HOT] * 6
    assert all(result.value_json == '"done"' for result in results[chatty])
    for result in results[HOT]:
        assert result.error is not None
        assert result.error.kind == "timeout"
        assert result.statistics.compute_ms >= 2000
    # Nothing is left: the next has its turn at once.
    assert not PROCESSORS._holding
    assert PROCESSORS._free == PROCESSORS._count


@pytest.mark.anyio
@pytest.mark.contract("F17")
async def test_to_wait_for_a_processor_is_no_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Processors(1)
    monkeypatch.setattr("ptc.sandbox.wasm.instance.PROCESSORS", gate)
    other = Turn(nothing)
    gate.enter(other)
    async with ptc.WasmSandbox(compute_ms=200) as sandbox:
        await sandbox.prepare()
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                result = await sandbox.run(SandboxRequest(program="return 1"))
                assert result.value_json == "1"
                assert result.statistics.wall_ms > 400

            tasks.start_soon(run)
            await anyio.sleep(0.5)
            gate.leave(other)
