"""Who may compute: as many programs at once as there are processors, and those that come back from a wait first."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

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
    gate.cancel(turns[2])


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
    hot.waiting = True
    for turn in chatty[1:]:
        entered(gate, turn)
    before = 0
    while not hot.held:
        before += 1
        gate.leave(next(turn for turn in chatty if turn.held))
    assert before == 4


def test_a_killed_run_waits_for_no_turn() -> None:
    gate = Processors(1)
    holds, killed, early = Turn(nothing), Turn(nothing), Turn(nothing)
    gate.enter(holds)
    thread = entered(gate, killed)
    gate.cancel(killed)
    thread.join(20)
    assert not thread.is_alive()
    assert not killed.held
    gate.cancel(early)
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
