"""The threads of the wasm backend: who starts them, and what comes of a machine that has no room for one."""

from __future__ import annotations

import threading

import anyio
import ptc
import pytest
from ptc.sandbox.wasm.threads import Threads

pytestmark = pytest.mark.anyio


def refuse(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    start = threading.Thread.start

    def failing(self: threading.Thread) -> None:
        if self.name in names:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", failing)


@pytest.mark.contract("F2", "F23")
@pytest.mark.parametrize("ready", [0, 1])
@pytest.mark.parametrize("name", ["ptc-run", "ptc-run-starter"])
async def test_a_run_without_a_thread_is_told_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch, ready: int, name: str
) -> None:
    request = ptc.SandboxRequest(program="return 1")
    async with ptc.WasmSandbox(ready=ready) as sandbox:
        await sandbox.prepare()
        for _ in range(2):
            sandbox._instances._threads = Threads("ptc-run")  # none is idle
            sandbox._instances._makers._threads = sandbox._instances._threads
            with monkeypatch.context() as patch, anyio.fail_after(20):
                refuse(patch, name)
                with pytest.raises(ptc.SandboxUnavailableError, match="gets no thread for a run"):
                    await sandbox.run(request)
            with anyio.fail_after(20):
                assert (await sandbox.run(request)).value_json == "1"


def test_whoever_has_work_to_be_done_does_not_wait_for_a_thread_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = threading.Event()
    start = threading.Thread.start

    def slow(self: threading.Thread) -> None:
        if self.name == "slow":
            begin.wait(20)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", slow)
    threads = Threads("slow")
    done = [threads.start(lambda one=one: one) for one in range(5)]
    assert not any(future.done() for future in done)
    begin.set()
    assert [future.result(20) for future in done] == [0, 1, 2, 3, 4]
    threads.join()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("slow")]


def test_work_that_waits_is_done_before_the_threads_end() -> None:
    threads = Threads("ptc-test")
    done = [threads.start(lambda one=one: one) for one in range(20)]
    threads.join()
    assert [future.result(0) for future in done] == list(range(20))
