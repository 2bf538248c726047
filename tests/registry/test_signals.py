"""Cancellation as notification: who is told, when, with which reason, and that nobody is kept (contract C28, C34)."""

from __future__ import annotations

import gc
import weakref

import anyio
import pytest
from ptc.registry import AbortError, Signal, SignalSource, fuse

pytestmark = pytest.mark.anyio


class Ear:
    """An observer that can be referred to weakly."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def hear(self, reason: object) -> None:
        self.heard.append(reason)


@pytest.fixture
def source() -> SignalSource:
    return SignalSource()


@pytest.mark.contract("C28")
def test_the_first_reason_wins_and_observers_are_told_once_in_order(source):
    heard = []
    source.signal.subscribe(lambda reason: heard.append(("first", reason)))
    undo = source.signal.subscribe(lambda reason: heard.append(("gone", reason)))
    source.signal.subscribe(lambda reason: heard.append(("second", reason)))
    undo()
    undo()
    assert (source.signal.aborted, source.signal.reason) == (False, None)
    assert source.abort("why") == []
    assert source.abort("too late") == []
    assert (source.signal.aborted, source.signal.reason) == (True, "why")
    assert heard == [("first", "why"), ("second", "why")]


@pytest.mark.contract("C28", "C33")
def test_observers_find_the_signal_fired_already(source):
    seen = []
    source.signal.subscribe(lambda _reason: seen.append((source.signal.aborted, source.signal.reason)))
    source.abort("why")
    assert seen == [(True, "why")]


@pytest.mark.contract("C28")
def test_an_observer_that_raises_hides_the_signal_from_nobody(source):
    def raises(_reason):
        raise LookupError("broken")

    ear = Ear()
    source.signal.subscribe(raises)
    source.signal.subscribe(ear.hear)
    raised = source.abort("why")
    assert [str(error) for error in raised] == ["broken"]
    assert ear.heard == ["why"]


@pytest.mark.contract("C28")
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_fired_signal_calls_nobody_any_more_and_keeps_nobody(source, late):
    ear = Ear()
    if late:
        source.abort("why")
    source.signal.subscribe(ear.hear)
    source.abort("why")
    assert ear.heard == ([] if late else ["why"])
    gone = weakref.ref(ear)
    del ear
    gc.collect()
    assert gone() is None


@pytest.mark.contract("C28")
async def test_waiting_gives_the_reason_and_leaves_no_observer(source):
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def give_up():
                await anyio.wait_all_tasks_blocked()
                assert len(source.signal._observers) == 1
                scope.cancel()

            group.start_soon(give_up)
            await source.signal.wait()
    assert len(source.signal._observers) == 0

    heard = []
    async with anyio.create_task_group() as group:

        async def listen():
            heard.append(await source.signal.wait())

        group.start_soon(listen)
        await anyio.wait_all_tasks_blocked()
        source.abort("why")
    assert heard == ["why"]
    assert await source.signal.wait() == "why"


@pytest.mark.contract("C34")
async def test_a_cancel_scope_interrupts_and_raises_the_reason(source):
    reached = []
    async with anyio.create_task_group() as group:

        async def abort():
            await anyio.wait_all_tasks_blocked()
            source.abort("why")

        group.start_soon(abort)
        with pytest.raises(AbortError) as raised:
            async with source.signal.cancel_scope():
                await anyio.sleep_forever()
        reached.append("after")
    assert (raised.value.reason, reached) == ("why", ["after"])
    assert len(source.signal._observers) == 0
    with pytest.raises(AbortError):
        async with source.signal.cancel_scope():
            reached.append("inside")
    assert reached == ["after"]


@pytest.mark.contract("C34")
async def test_a_block_that_ended_before_it_could_be_interrupted_stands(source):
    async with source.signal.cancel_scope():
        source.abort("why")
    with pytest.raises(AbortError):
        source.signal.raise_if_aborted()


@pytest.mark.contract("C28")
def test_joining_takes_the_first_that_fires_and_can_be_taken_apart():
    one, other = SignalSource(), SignalSource()
    assert fuse(one.signal, one.signal)[0] is one.signal
    assert fuse(one.signal, None)[0] is one.signal
    assert fuse(None, other.signal)[0] is other.signal
    assert isinstance(fuse(None, None)[0], Signal)

    joined, part = fuse(one.signal, other.signal)
    other.abort("other")
    one.abort("one")
    assert joined.reason == "other"
    part()
    assert fuse(one.signal, other.signal)[0].reason == "one"

    one, other = SignalSource(), SignalSource()
    joined, part = fuse(one.signal, other.signal)
    part()
    one.abort("one")
    assert not joined.aborted
    assert len(other.signal._observers) == 0
