"""What a sandbox must not do to the process that holds it; each test has a host of its own, which may die of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

_LOSES_A_STACK = """
    import sys, threading
    import anyio
    from ptc.sandbox.seam import SandboxRequest
    from ptc.sandbox.wasm import WasmSandbox

    threading.stack_size(int(sys.argv[1]))

    async def main():
        async with WasmSandbox() as sandbox:
            endless = "class A:\\n    def __getattr__(self, name):\\n        return getattr(self, name)\\nA().x"
            result = await sandbox.run(SandboxRequest(program=f"import sys\\nsys.setrecursionlimit(10**8)\\n{endless}"))
            print(result.error.kind, "native stack exhausted" in result.error.message)
            deep = "[" * 250 + "]" * 250
            result = await sandbox.run(SandboxRequest(program=f"import json\\nreturn json.loads('{deep}')"))
            print(result.value_json == deep)

    anyio.run(main)
"""

_LEAVES_WHILE_IT_WORKS = """
    import asyncio
    from ptc.sandbox.seam import JsonText, Member, Namespace, SandboxMisuseError, SandboxRequest
    from ptc.sandbox.wasm import WasmSandbox

    async def echo(call):
        return call.arguments

    PROGRAMS = (
        "import time\\nwhile True:\\n    time.monotonic()",
        "while True:\\n    try:\\n        await tools.echo(value=1)\\n    except BaseException:\\n        pass",
    )
    TOOLS = [Namespace("tools", {"echo": Member(echo)})]

    async def cancel_all(turn):
        sandbox = WasmSandbox()
        requests = [SandboxRequest(program=program, namespaces=TOOLS) for program in PROGRAMS]
        runs = [asyncio.ensure_future(sandbox.run(request)) for request in requests]
        await asyncio.sleep(0.05)
        # As `asyncio.run` does at its end: also tasks that are shielded from those around them.
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        await sandbox.aclose()

    async def close_while_it_prepares(turn):
        sandbox = WasmSandbox()
        preparing = asyncio.ensure_future(sandbox.prepare())
        await asyncio.sleep(turn * 0.0007)
        await sandbox.aclose()
        try:
            await preparing
        except SandboxMisuseError:
            pass
        instances = sandbox._instances
        assert (instances._engine, list(instances._ready)) == (None, [])

    for turn in range(25):
        asyncio.run(cancel_all(turn))
        asyncio.run(close_while_it_prepares(turn))
    print("whole")
"""

_FORKS = """
    import os
    import anyio
    from ptc.sandbox.restricted import RestrictedSandbox
    from ptc.sandbox.seam import Member, Namespace, SandboxRequest

    sandbox = RestrictedSandbox()

    async def stand_ready():
        await sandbox.run(SandboxRequest(program="return 0"))
        while not sandbox._workers._ready:
            await anyio.sleep(0.01)

    async def in_the_child():
        os.read(theirs, 1)
        with anyio.fail_after(60):
            result = await sandbox.run(SandboxRequest(program="return 'of the child'"))
        print(result.value_json, flush=True)
        os.write(done, b".")
        os.read(theirs, 1)  # it holds what it has, until its parent has closed

    async def in_the_parent():
        async def until_the_child_is_done(call):
            os.write(go, b".")
            await anyio.wait_readable(told)
            return os.read(told, 1) == b"."

        tools = [Namespace("tools", {"meanwhile": Member(until_the_child_is_done)})]
        with anyio.fail_after(60):
            result = await sandbox.run(SandboxRequest(program="return await tools.meanwhile()", namespaces=tools))
        print(result.value_json, flush=True)
        template = sandbox._workers._template.process
        await sandbox.aclose()
        print("template", template.returncode, flush=True)

    anyio.run(stand_ready)
    theirs, go = os.pipe()
    told, done = os.pipe()
    if os.fork() == 0:
        try:
            anyio.run(in_the_child)
        finally:
            os._exit(0)
    os.close(done)
    held, end = os.pipe()
    if os.fork() == 0:
        os.close(end)
        os.read(held, 1)  # this one never uses the sandbox
        os._exit(0)
    anyio.run(in_the_parent)
    os.write(go, b".")
    os.close(end)
    os.wait()
    os.wait()
"""


_CANCELS = """
    import asyncio, gc, os, select, sys
    from ptc.sandbox.restricted import RestrictedSandbox
    from ptc.sandbox.seam import Member, Namespace, SandboxRequest
    from ptc.sandbox.wasm import WasmSandbox

    backend, how = sys.argv[1:]
    left, processes = [], []

    async def echo(call):
        return call.arguments

    async def stubborn(call):
        await asyncio.sleep(0)
        return 1

    PROGRAMS = (
        "while True:\\n    pass",
        "while True:\\n    try:\\n        await tools.echo(value=1)\\n    except BaseException:\\n        pass",
        "import asyncio\\nwhile True:\\n    await asyncio.gather(*[tools.stubborn() for _ in range(30)])",
    )
    TOOLS = [Namespace("tools", {"echo": Member(echo), "stubborn": Member(stubborn)})]

    def watched():
        if backend == "wasm":
            sandbox = WasmSandbox()
            return sandbox, lambda: list(sandbox._instances._engine._runs)
        sandbox = RestrictedSandbox()
        take = sandbox._workers.take

        async def taken():
            worker = await take()
            processes.append(os.dup(worker._pidfd))
            return worker

        sandbox._workers.take = taken
        return sandbox, lambda: [one for one in processes if not select.select([one], [], [], 0)[0]]

    async def cancel(sandbox, request, turns, seconds):
        if how == "wait_for":
            return await asyncio.wait_for(sandbox.run(request), seconds)
        if how == "timeout":
            async with asyncio.timeout(seconds):
                return await sandbox.run(request)
        run = asyncio.ensure_future(sandbox.run(request))
        for _ in range(turns):
            await asyncio.sleep(0)
        await asyncio.sleep(seconds) if seconds else None
        if how == "all":
            # As `asyncio.run` does at its end: also tasks that are shielded from those around them.
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
        else:
            run.cancel()
            if how == "twice":
                await asyncio.sleep(0)
                run.cancel()
        await run

    async def main():
        sandbox, running = watched()
        await sandbox.prepare()
        moments = [(turns, 0) for turns in range(12)] + [(0, ms / 1000) for ms in (1, 2, 3, 5, 8, 13, 30)]
        for turns, seconds in moments:
            for program in PROGRAMS:
                try:
                    await cancel(sandbox, SandboxRequest(program=program, namespaces=TOOLS), turns, seconds)
                    print("it came to an end of its own")
                except (asyncio.CancelledError, TimeoutError):
                    left.extend([(turns, seconds)] * len(running()))
        await sandbox.aclose()
        print("left", left)

    asyncio.run(main())
    gc.collect()
"""

_FORKS_WHILE_LOCKS_ARE_HELD = """
    import os, sys, threading
    import anyio
    from ptc.sandbox.restricted import RestrictedSandbox
    from ptc.sandbox.seam import SandboxRequest
    from ptc.sandbox.wasm import WasmSandbox

    backend, loaded = sys.argv[1], sys.argv[2] == "loaded"
    sandbox = WasmSandbox(max_wall_ms=30_000) if backend == "wasm" else RestrictedSandbox(max_wall_ms=30_000)
    held, release = threading.Event(), threading.Event()

    def locks():
        if backend == "wasm":
            one = sandbox._instances
            return [one._changed, one._threads._lock, one._loading._lock, one._makers._lock]
        return [sandbox._workers._lock, sandbox._workers._boot._lock]

    def hold():
        for lock in locks():
            lock.acquire()
        held.set()
        release.wait()
        for lock in locks():
            lock.release()

    async def use(close):
        with anyio.fail_after(60):
            for _ in range(3):
                result = await sandbox.run(SandboxRequest(program="return 'whole'"))
                print(result.value_json or result.error, flush=True)
            if close:
                await sandbox.aclose()

    if loaded:
        anyio.run(use, False)
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    if os.fork() == 0:
        try:
            anyio.run(use, True)
        finally:
            os._exit(0)
    os.wait()
    release.set()
    holder.join()
    anyio.run(use, True)
"""

_FORKS_WHILE_A_PROGRAM_RUNS = """
    import os, sys, threading
    import anyio
    from ptc.sandbox.restricted import RestrictedSandbox
    from ptc.sandbox.seam import Member, Namespace, SandboxRequest
    from ptc.sandbox.wasm import WasmSandbox

    sandbox = WasmSandbox() if sys.argv[1] == "wasm" else RestrictedSandbox()
    there, forked = threading.Event(), threading.Event()

    async def meanwhile(call):
        there.set()
        while not forked.is_set():
            await anyio.sleep(0.01)
        return "of the parent"

    async def run(program, close):
        tools = [Namespace("tools", {"meanwhile": Member(meanwhile)})]
        with anyio.fail_after(60):
            result = await sandbox.run(SandboxRequest(program=program, namespaces=tools))
            if close:
                await sandbox.aclose()
        print(result.value_json or result.error, flush=True)

    thread = threading.Thread(target=anyio.run, args=(run, "return await tools.meanwhile()", False))
    thread.start()
    there.wait()
    if os.fork() == 0:
        try:
            anyio.run(run, "return 'of the child'", True)
        finally:
            os._exit(0)
    os.wait()
    forked.set()
    thread.join()
    anyio.run(run, "return 'whole'", True)
"""

_FORKS_WHILE_PROGRAMS_TAKE_TURNS = """
    import os, threading, time
    import anyio
    from ptc.sandbox.seam import SandboxRequest
    from ptc.sandbox.wasm import WasmSandbox
    from ptc.sandbox.wasm.processors import PROCESSORS

    sandbox = WasmSandbox()
    COUNT = PROCESSORS._count + 3

    async def run_all(program, seconds):
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:
                for _ in range(COUNT):
                    tasks.start_soon(sandbox.run, SandboxRequest(program=program))
            return True
        return False

    thread = threading.Thread(target=anyio.run, args=(run_all, "while True:\\n    pass", 1.5))
    thread.start()
    while not PROCESSORS._used:
        time.sleep(0.001)
    children = []
    for _ in range(5):
        children.append(os.fork())
        if not children[-1]:
            done = False
            try:
                done = anyio.run(run_all, "for _ in range(10**5):\\n    pass", 60)
            finally:
                os._exit(not done)
        time.sleep(0.007)
    print([os.waitpid(child, 0)[1] for child in children])
    thread.join()
    print(anyio.run(run_all, "return 1", 60), PROCESSORS._free == PROCESSORS._count)
"""

_ENDS_WHILE_PROGRAMS_TAKE_TURNS = """
    import sys, threading, time
    import anyio
    from ptc.sandbox.seam import SandboxRequest
    from ptc.sandbox.wasm import WasmSandbox
    from ptc.sandbox.wasm.processors import PROCESSORS

    async def main():
        sandbox = WasmSandbox()
        async with anyio.create_task_group() as tasks:
            for number in range(PROCESSORS._count + 3):
                program = ("while True:\\n    pass", "while True:\\n    print(1)")[number % 2]
                tasks.start_soon(sandbox.run, SandboxRequest(program=program))

    class GoesLate:
        def __del__(self, sleep=time.sleep):
            sleep(0.2)  # programs go on while the interpreter ends

    late = GoesLate()
    threading.Thread(target=anyio.run, args=(main,), daemon=True).start()
    while not PROCESSORS._used:
        time.sleep(0.001)
    print("leaves", flush=True)
"""

_NEVER_STANDS_READY = """
    import sys
    import anyio
    from ptc.sandbox.restricted import RestrictedSandbox, process

    process._BOOT_SECONDS = 2.0
    sys.path.insert(0, sys.argv[1])
    anyio.run(RestrictedSandbox(modules=["endless"]).prepare)
"""


BACKENDS = pytest.mark.parametrize(
    "backend",
    [
        "wasm",
        pytest.param(
            "restricted",
            marks=pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted sandbox needs Linux"),
        ),
    ],
)


def _in_a_host_of_its_own(program: str, *arguments: str) -> list[str]:
    """Runs a program as a process of its own, in which warnings are errors; returns its lines, and those of errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    # What nobody catches, such as the warning of a coroutine that was never awaited, is only told there.
    return done.stdout.splitlines() + done.stderr.splitlines()


@pytest.mark.contract("F2", "F19")
@pytest.mark.parametrize("stack_bytes", [1 << 20, 2 << 20])
def test_recursion_in_the_guest_does_not_overrun_small_stacks_of_the_host(stack_bytes: int) -> None:
    assert _in_a_host_of_its_own(_LOSES_A_STACK, str(stack_bytes)) == ["worker-exit True", "True"]


@pytest.mark.contract("F23", "F24")
def test_closing_waits_for_threads_that_nobody_waits_for_any_more() -> None:
    assert _in_a_host_of_its_own(_LEAVES_WHILE_IT_WORKS) == ["whole"]


@pytest.mark.contract("F23")
@BACKENDS
@pytest.mark.parametrize("how", ["once", "twice", "all", "wait_for", "timeout"])
def test_a_run_that_asyncio_cancels_ends_when_nothing_of_it_is_left(backend: str, how: str) -> None:
    """At any moment, also before its own tasks have begun."""
    assert _in_a_host_of_its_own(_CANCELS, backend, how) == ["left []"]


@pytest.mark.contract("F6", "F24")
@BACKENDS
@pytest.mark.parametrize("before", ["loaded", "new"])
def test_a_host_that_is_forked_while_its_threads_hold_locks_goes_on_in_both(backend: str, before: str) -> None:
    runs = 3 * (3 if before == "loaded" else 2)
    assert _in_a_host_of_its_own(_FORKS_WHILE_LOCKS_ARE_HELD, backend, before) == ['"whole"'] * runs


@pytest.mark.contract("F6", "F24")
@BACKENDS
def test_a_forked_host_disposes_of_its_own_and_not_of_what_runs_in_the_other(backend: str) -> None:
    told = ['"of the child"', '"of the parent"', '"whole"']
    assert _in_a_host_of_its_own(_FORKS_WHILE_A_PROGRAM_RUNS, backend) == told


@pytest.mark.contract("F6")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes can be forked here")
def test_a_host_that_is_forked_while_programs_take_turns_goes_on_in_both() -> None:
    assert _in_a_host_of_its_own(_FORKS_WHILE_PROGRAMS_TAKE_TURNS) == ["[0, 0, 0, 0, 0]", "True True"]


def test_a_host_ends_while_programs_take_turns() -> None:
    assert _in_a_host_of_its_own(_ENDS_WHILE_PROGRAMS_TAKE_TURNS) == ["leaves"]


@pytest.mark.contract("F6", "F24")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted sandbox needs Linux")
def test_a_forked_host_has_workers_of_its_own_and_keeps_nobody_from_closing() -> None:
    assert _in_a_host_of_its_own(_FORKS) == ['"of the child"', "true", "template 0"]


@pytest.mark.contract("F24")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted sandbox needs Linux")
def test_a_template_that_never_stands_ready_does_not_outlive_its_host(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    source = f"import os\nopen({str(told)!r}, 'w').write(f'{{os.getpid()}}\\n')\nwhile True:\n    pass\n"
    (tmp_path / "endless.py").write_text(source)
    host = subprocess.Popen([sys.executable, "-c", textwrap.dedent(_NEVER_STANDS_READY), str(tmp_path)])
    until = time.monotonic() + 60
    while not (told.exists() and told.read_text().endswith("\n")) and time.monotonic() < until:
        time.sleep(0.02)
    host.kill()
    host.wait()
    template = int(told.read_text())
    try:
        while _runs(template) and time.monotonic() < until:
            time.sleep(0.05)
        assert not _runs(template)
    finally:
        if _runs(template):
            os.kill(template, signal.SIGKILL)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
