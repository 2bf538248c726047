"""What comes before a program starts holds no run: not a template that was stopped, not a guest that is being built."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from ptc.sandbox.conformance import Stop
from ptc.sandbox.restricted import RestrictedSandbox, process
from ptc.sandbox.seam import (
    BindingCall,
    JsonValue,
    Member,
    Namespace,
    Sandbox,
    SandboxMisuseError,
    SandboxRequest,
    SandboxResult,
)
from ptc.sandbox.wasm import WasmSandbox, instances

pytestmark = pytest.mark.anyio
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted sandbox needs Linux")
AT_ONCE_S = 3.0
"""How long what ends at once may take on a busy machine; what hangs would take far longer."""


# What ends a run that has not begun


async def _by_the_wall(run: Callable[[Stop], Awaitable[SandboxResult]], _sandbox: Sandbox) -> tuple[str, str]:
    return _told(await run(Stop()))


async def _by_the_signal(run: Callable[[Stop], Awaitable[SandboxResult]], _sandbox: Sandbox) -> tuple[str, str]:
    return _told(await _meanwhile(run, lambda stop: stop.press("the user pressed stop")))


async def _by_disposal(run: Callable[[Stop], Awaitable[SandboxResult]], sandbox: Sandbox) -> tuple[str, str]:
    async def dispose(_stop: Stop) -> None:
        await sandbox.aclose()

    return _told(await _meanwhile(run, dispose))


async def _by_cancellation(run: Callable[[Stop], Awaitable[SandboxResult]], _sandbox: Sandbox) -> tuple[str, str]:
    with anyio.move_on_after(0.1):
        await run(Stop())
        raise AssertionError("it ran")
    return ("cancelled", "")


async def _meanwhile(run: Callable[[Stop], Awaitable[SandboxResult]], act: Callable[[Stop], Any]) -> SandboxResult:
    stop, results = Stop(), []

    async def go() -> None:
        results.append(await run(stop))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        await anyio.sleep(0.1)
        acting = act(stop)
        if acting is not None:
            await acting
    return results[0]


def _told(result: SandboxResult) -> tuple[str, str]:
    assert result.error is not None
    assert (result.logs, result.value_json) == ((), None)
    return result.error.kind, result.error.message


ENDS = pytest.mark.parametrize(
    ("end", "wall_ms", "told"),
    [
        pytest.param(_by_the_wall, 300, ("timeout", "wall-clock ceiling reached (300ms)"), id="wall"),
        pytest.param(_by_the_signal, 60_000, ("abort", "the user pressed stop"), id="signal"),
        pytest.param(_by_disposal, 60_000, ("abort", "runtime disposed"), id="disposal"),
        pytest.param(_by_cancellation, 60_000, ("cancelled", ""), id="cancellation"),
    ],
)
End = Callable[[Callable[[Stop], Awaitable[SandboxResult]], Sandbox], Awaitable[tuple[str, str]]]


async def _ends_at_once(end: End, sandbox: Sandbox) -> tuple[str, str]:
    async def run(stop: Stop) -> SandboxResult:
        return await sandbox.run(SandboxRequest(program="return 1", signal=stop))

    with anyio.fail_after(AT_ONCE_S):
        return await end(run, sandbox)


async def _value(sandbox: Sandbox) -> str | None:
    result = await sandbox.run(SandboxRequest(program="return 1"))
    assert result.error is None
    return result.value_json


# Processes and threads


def _state(pid: int) -> str:
    """Returns the letter of a process's state; an empty text when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _workers_of(template: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{template}/task/{template}/children").read_text().split()]


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("ptc-"))


async def _until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not true():  # noqa: ASYNC110 - what it waits for tells nobody
            await anyio.sleep(0.01)


async def _stopped(sandbox: RestrictedSandbox) -> int:
    """Stops the template of a sandbox, and returns its number."""
    template = sandbox._workers._template
    assert template is not None
    pid = template.process.pid
    os.kill(pid, signal.SIGSTOP)
    await _until(lambda: _state(pid) == "T")
    return pid


# The restricted sandbox


@LINUX
@pytest.mark.contract("F18", "F21", "F23", "F24")
@ENDS
async def test_a_stopped_template_holds_no_run_and_leaves_nothing_behind(
    end: End, wall_ms: int, told: tuple[str, str]
) -> None:
    async with RestrictedSandbox(ready=0, max_wall_ms=wall_ms) as sandbox:
        await sandbox.prepare()
        before = _descriptors()
        template = await _stopped(sandbox)
        # Before it is found to hang, which takes half a second.
        assert await _ends_at_once(end, sandbox) == told
        if end is _by_disposal:
            assert _state(template) == ""
            return
        assert _descriptors() <= before
        os.kill(template, signal.SIGCONT)
        # The worker that nobody waits for any more is made, killed and reaped.
        await _until(lambda: not _workers_of(template))
        await _until(lambda: _descriptors() <= before)
        assert await _value(sandbox) == "1"
        assert _state(template) in ("S", "R")
        await _until(lambda: not _workers_of(template))


@LINUX
@pytest.mark.contract("F18")
async def test_a_template_that_stays_stopped_is_replaced_at_the_next_run() -> None:
    async with RestrictedSandbox(ready=0, max_wall_ms=300) as sandbox:
        await sandbox.prepare()
        template = await _stopped(sandbox)
        assert (await sandbox.run(SandboxRequest(program="return 1"))).error is not None
        with anyio.fail_after(20):
            # The first may be over before the other template stands ready.
            while (await sandbox.run(SandboxRequest(program="return 1"))).value_json != "1":
                pass
        await _until(lambda: _state(template) == "")  # reaped as well
        await _until(lambda: _threads() == [])


@LINUX
@pytest.mark.contract("F18")
@pytest.mark.parametrize("ready", [0, 1])
async def test_a_run_that_has_the_time_gets_its_worker_of_another_template(ready: int) -> None:
    async with RestrictedSandbox(ready=ready) as sandbox:
        await sandbox.prepare()
        await _value(sandbox)
        template = await _stopped(sandbox)
        for _ in range(3):
            with anyio.fail_after(20):
                assert await _value(sandbox) == "1"
        await _until(lambda: _state(template) == "")


@LINUX
@pytest.mark.contract("F18")
async def test_a_template_that_is_not_stopped_but_silent_is_replaced_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_SILENT_SECONDS", 1.0)
    monkeypatch.setattr(process.Template, "_stopped", lambda _self: False)
    monkeypatch.setattr(process, "_STOP_SECONDS", 1.0)
    async with RestrictedSandbox(ready=0) as sandbox:
        await sandbox.prepare()
        template = await _stopped(sandbox)
        with anyio.fail_after(20):
            assert await _value(sandbox) == "1"
        await _until(lambda: _state(template) == "")
        await _stopped(sandbox)
        with anyio.fail_after(AT_ONCE_S):
            await sandbox.aclose()


@asynccontextmanager
async def _running(sandbox: Sandbox) -> AsyncIterator[tuple[anyio.Event, list[SandboxResult]]]:
    """Has a program run that waits for a tool, which answers once the event is set."""
    there, release, results = anyio.Event(), anyio.Event(), []

    async def wait(_call: BindingCall) -> JsonValue:
        there.set()
        await release.wait()
        return "released"

    async def go() -> None:
        tools = [Namespace("tools", {"wait": Member(wait)})]
        program = "print('before')\nreturn await tools.wait()"
        results.append(await sandbox.run(SandboxRequest(program=program, namespaces=tools)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        await there.wait()
        yield release, results


@LINUX
@pytest.mark.contract("F22", "F23")
async def test_a_template_that_is_replaced_goes_with_the_last_run_that_has_a_worker_of_it() -> None:
    async with RestrictedSandbox(ready=0) as sandbox:
        async with _running(sandbox) as (release, results):
            template = await _stopped(sandbox)
            with anyio.fail_after(20):
                assert await _value(sandbox) == "1"
            assert _state(template) == "T"
            release.set()
        assert results[0].value_json == '"released"'
        await _until(lambda: _state(template) == "")


@LINUX
@pytest.mark.contract("F19", "F23")
async def test_a_worker_that_dies_while_its_template_is_stopped_ends_its_run() -> None:
    async with RestrictedSandbox(ready=0) as sandbox:
        with anyio.fail_after(AT_ONCE_S + 2):
            async with _running(sandbox) as (release, results):
                template = await _stopped(sandbox)
                (worker,) = _workers_of(template)
                os.kill(worker, signal.SIGKILL)
                await _until(lambda: bool(results))
                release.set()
    error = results[0].error
    assert error is not None
    assert (error.kind, results[0].logs) == ("worker-exit", ("before",))
    assert error.message == "worker error: it ended, and its template process cannot say how"


@LINUX
@pytest.mark.contract("F24")
async def test_disposal_while_the_template_is_stopped_ends_it_and_all_its_workers() -> None:
    sandbox = RestrictedSandbox(ready=3)
    await sandbox.prepare()
    async with _running(sandbox) as (_release, results):
        template = sandbox._workers._template
        assert template is not None
        sandbox._workers.fill()
        await _until(lambda: len(_workers_of(template.process.pid)) == 4)
        await _stopped(sandbox)
        workers = _workers_of(template.process.pid)
        with anyio.fail_after(AT_ONCE_S):
            await sandbox.aclose()
        # Whoever they belong to then reaps them in its own time.
        assert [_state(pid) for pid in workers if _state(pid) not in ("", "Z")] == []
        assert _state(template.process.pid) == ""
    assert _told_kind(results[0]) == "abort"
    with pytest.raises(SandboxMisuseError):
        await sandbox.run(SandboxRequest(program="return 1"))
    assert _threads() == []


def _told_kind(result: SandboxResult) -> str | None:
    return result.error.kind if result.error is not None else None


@LINUX
@pytest.mark.contract("F18", "F21", "F23", "F24")
@ENDS
async def test_a_template_that_does_not_come_up_holds_no_run(
    end: End, wall_ms: int, told: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    (tmp_path / "endless.py").write_text(
        f"import os\nopen({str(pid)!r}, 'a').write(f'{{os.getpid()}}\\n')\nwhile 1: 0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    sandbox = RestrictedSandbox(modules=["endless"], max_wall_ms=wall_ms)
    assert await _ends_at_once(end, sandbox) == told
    if end is not _by_disposal:
        # The next run waits for the same one, which goes on.
        assert await _ends_at_once(end, sandbox) == told
        await _until(lambda: pid.exists() and pid.read_text().endswith("\n"))
        with anyio.move_on_after(0.1):
            await sandbox.prepare()
        assert _threads() == ["ptc-template"]
    with anyio.fail_after(AT_ONCE_S):
        await sandbox.aclose()
    assert _threads() == []
    started = pid.read_text().split() if pid.exists() else []
    assert len(started) <= 1
    assert [_state(int(one)) for one in started if _state(int(one))] == []


# The wasm sandbox


@contextmanager
def _held(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[tuple[threading.Event, list[str]]]:
    """Has what the instances call wait for an event, and notes each call of it."""
    release, calls = threading.Event(), []
    called = getattr(instances, name)

    def wait(*arguments: Any) -> Any:
        calls.append(name)
        assert release.wait(60)
        return called(*arguments)

    monkeypatch.setattr(instances, name, wait)
    try:
        yield release, calls
    finally:
        release.set()


@pytest.mark.contract("F18", "F21", "F23", "F24")
@ENDS
async def test_a_guest_that_is_being_built_holds_no_run_and_is_built_once(
    end: End, wall_ms: int, told: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = WasmSandbox(max_wall_ms=wall_ms)
    with _held(monkeypatch, "compiled_guest") as (release, calls):
        for _ in range(1 if end is _by_disposal else 3):
            assert await _ends_at_once(end, sandbox) == told
        if end is not _by_disposal:
            with anyio.move_on_after(0.1):
                await sandbox.prepare()
                raise AssertionError("it is not built yet")
        assert (calls, _threads()) == (["compiled_guest"], ["ptc-load"])
        release.set()
        if end is not _by_disposal:
            await sandbox.prepare()
            assert await _value(sandbox) == "1"
            assert calls == ["compiled_guest"]
            await sandbox.aclose()
        await _until(lambda: _threads() == [])
        assert sandbox._instances._engine is None


@pytest.mark.contract("F18", "F21", "F23", "F24")
@ENDS
async def test_an_instance_that_is_being_made_holds_no_run_and_is_let_go_of(
    end: End, wall_ms: int, told: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, closed = [], []
    make, close = instances.GuestInstance.__init__, instances.GuestInstance.close

    def note_made(instance: Any, *arguments: Any) -> None:
        make(instance, *arguments)
        made.append(instance)

    def note_closed(instance: Any) -> None:
        close(instance)
        closed.append(instance)

    monkeypatch.setattr(instances.GuestInstance, "__init__", note_made)
    monkeypatch.setattr(instances.GuestInstance, "close", note_closed)
    sandbox = WasmSandbox(ready=0, max_wall_ms=wall_ms)
    await sandbox.prepare()
    assert await _value(sandbox) == "1"
    with _held(monkeypatch, "GuestInstance") as (release, calls):
        if end is _by_disposal:
            # That waits for what is being made, which is a matter of milliseconds otherwise.
            threading.Timer(0.5, release.set).start()
        for _ in range(1 if end is _by_disposal else 5):
            assert await _ends_at_once(end, sandbox) == told
        assert len(calls) <= 2  # however many runs have waited, no more are made at once
        release.set()
        if end is not _by_disposal:
            assert await _value(sandbox) == "1"
            await sandbox.aclose()
    assert _threads() == []
    assert len(made) > 1
    assert sorted(map(id, made)) == sorted(map(id, closed))
