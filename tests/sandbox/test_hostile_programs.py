"""Hostile programs end as they must, show and leave nothing, and the next program runs: `tests/corpus/hostile`."""

from __future__ import annotations

import ctypes
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from ptc.sandbox.restricted import RestrictedSandbox
from ptc.sandbox.seam import FailureKind, Sandbox, SandboxRequest, SandboxResult
from ptc.sandbox.wasm import WasmSandbox

from .hostile_cases import CANARY, Case, Watched, cases, judge

CATEGORIES = (
    "bridge_protocol",
    "builtins_import",
    "escape_attribute",
    "escape_format",
    "exception_abuse",
    "generator_frames",
    "information_leak",
    "log_injection",
    "policy_bypass",
    "resource_exhaustion",
)
CHUNK = 48
SHORT: dict[str, Any] = {"compute_ms": 400, "max_wall_ms": 1_500}
LONG: dict[str, Any] = {"compute_ms": 20_000, "max_wall_ms": 60_000}
AT_ONCE_SHORT = 3
AT_ONCE_LONG = 6
INSTANCES = 3
ORDINARY = "print('fine')\nreturn await tools.add(a=1, b=2)"
TRIES = 5
_PR_SET_CHILD_SUBREAPER = 36

BACKENDS: dict[str, Callable[..., Sandbox]] = {"wasm": WasmSandbox, "restricted": RestrictedSandbox}


def chunks() -> list[Any]:
    made = []
    for category in CATEGORIES:
        all_of_it = cases(category)
        for start in range(0, len(all_of_it), CHUNK):
            name = f"{category}-{start // CHUNK + 1}" if len(all_of_it) > CHUNK else category
            made.append(pytest.param(all_of_it[start : start + CHUNK], id=name))
    return made


@dataclass(frozen=True)
class Ran:
    """A case that has been run, what came of it, and what it called."""

    case: Case
    result: SandboxResult
    tools: Watched


class Chunk:
    """Runs cases on two sandboxes of one backend: one for programs that may use up their time, one for all others."""

    def __init__(self, make: Callable[..., Sandbox], *, walled: bool) -> None:
        self._make = make
        self._walled = walled
        self._ran: list[Ran] = []
        self._wrong: list[str] = []

    async def run(self, members: list[Case]) -> list[str]:
        """Returns what was wrong."""
        shared: dict[str, Any] = {"max_memory_bytes": 256 << 20, "max_output_bytes": 4 << 20}
        async with self._make(**SHORT, **shared) as short, self._make(**LONG, **shared) as long:
            alone = [case for case in members if case.leads or case.follows]
            for case in alone:
                await self._one(case, short if case.may_time_out else long)
            for sandbox, at_once, mine in (
                (short, AT_ONCE_SHORT, [one for one in members if one not in alone and one.may_time_out]),
                (long, AT_ONCE_LONG, [one for one in members if one not in alone and not one.may_time_out]),
            ):
                places = anyio.Semaphore(at_once)
                async with anyio.create_task_group() as tasks:
                    for case in mine:
                        await places.acquire()
                        tasks.start_soon(self._placed, case, sandbox, places)
        # Only now, so that calls that come late are seen.
        for ran in self._ran:
            self._wrong += judge(ran.case, ran.result, ran.tools, walled=self._walled)
        return self._wrong

    async def _placed(self, case: Case, sandbox: Sandbox, places: anyio.Semaphore) -> None:
        try:
            await self._one(case, sandbox)
        finally:
            places.release()

    async def _one(self, case: Case, sandbox: Sandbox) -> None:
        results = [await self._once(case, sandbox)]
        if case.must_differ and results[0].value_json is not None:
            results += [await self._once(case, sandbox) for _ in range(INSTANCES - 1)]
            if len({result.value_json for result in results}) < INSTANCES:
                self._wrong.append(f"{case.id}: fresh instances gave the same value {results[0].value_json}")
        after = await self._ordinary(sandbox)
        if after is not None:
            self._wrong.append(f"{case.id}: the next program ended as {after}")

    async def _once(self, case: Case, sandbox: Sandbox) -> SandboxResult:
        tools = Watched()
        result = await sandbox.run(SandboxRequest(program=case.source, namespaces=[tools.namespace()]))
        tools.ended = True
        self._ran.append(Ran(case, result, tools))
        return result

    async def _ordinary(self, sandbox: Sandbox) -> SandboxResult | None:
        """Runs an ordinary program; returns how it ended when that is not as it should."""
        for _ in range(TRIES):
            tools = Watched()
            result = await sandbox.run(SandboxRequest(program=ORDINARY, namespaces=[tools.namespace()]))
            if result.error is None or result.error.kind is not FailureKind.TIMEOUT:
                break  # the others that run now may have taken its time
        right = (result.error, result.value_json, result.logs, len(tools.made)) == (None, "3", ("fine",), 1)
        return None if right else result


def held() -> Counter[str]:
    """Returns what this process holds that a run could leave: threads, descriptors, child processes."""
    own = _own_pid()
    children = [one.parent.name for one in Path("/proc").glob("[0-9]*/stat") if _parent(one) == own]
    threads = [one.name for one in Path("/proc/self/task").iterdir()]
    found = Counter([f"process {pid}" for pid in children] + [f"thread {tid}" for tid in threads])
    found.update(_target(one) for one in Path("/proc/self/fd").iterdir())
    return found


def left_since(before: Counter[str]) -> Counter[str]:
    """Returns what is held now and was not before, once the threads that were told to end have ended."""
    for _ in range(200):
        if not (left := held() - before):
            break
        time.sleep(0.02)
    return left


def _own_pid() -> str:
    return Path("/proc/self").resolve().name


def _parent(stat: Path) -> str:
    try:
        return stat.read_text().rpartition(")")[2].split()[1]
    except OSError:
        return ""  # it has ended meanwhile


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink()).partition(":[")[0]
    except OSError:
        return "the listing itself"


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """The backend under test, warmed so that what this process loads once is loaded; orphans come to this process."""
    if not sys.platform.startswith("linux"):
        pytest.skip("what is left is counted in /proc")
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    async def warm() -> None:
        async with BACKENDS[request.param]() as sandbox:
            assert (await sandbox.run(SandboxRequest(program="return 1"))).value_json == "1"

    anyio.run(warm)
    try:
        yield request.param
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.mark.contract("F2", "F6", "F22", "F23", "F34", "F38", "F42")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("members", chunks())
def test_hostile_programs_are_contained(
    backend: str, members: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_CANARY", CANARY)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = held()
    chunk = Chunk(BACKENDS[backend], walled=backend == "wasm")
    wrong = anyio.run(chunk.run, members)
    assert not wrong, "\n".join(wrong)
    assert left_since(before) == Counter()
    assert list(tmp_path.iterdir()) == []
