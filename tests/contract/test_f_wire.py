"""What crosses between a host and a program, on both backends: three verbs, one description, limits first (F40 to F49).

Ruling 42: the verbs are submit, wait and emit, whatever carries them; what the contract says of a pipe with lines of
JSON binds in what it protects.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from ptc.sandbox import supervisor as supervisors
from ptc.sandbox.conformance import Calls
from ptc.sandbox.guest.channel import Channel
from ptc.sandbox.peer import read_calls
from ptc.sandbox.restricted import RestrictedSandbox, frames
from ptc.sandbox.restricted import vehicle as host_side
from ptc.sandbox.restricted.inside import channel as worker_side
from ptc.sandbox.restricted.inside import seccomp
from ptc.sandbox.seam import Sandbox, SandboxRequest
from ptc.sandbox.supervisor import Supervisor
from ptc.sandbox.wasm import WasmSandbox, hostcalls

BACKENDS = pytest.mark.parametrize("make", [WasmSandbox, RestrictedSandbox])


@pytest.mark.contract("F40")
@pytest.mark.anyio
@BACKENDS
async def test_replies_that_nobody_waits_for_are_ignored_and_each_call_settles_once(
    anyio_backend: str, make: Callable[..., Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer comes among others: for ids that no call has, for calls that are settled, and for itself again."""
    encode_reply = supervisors.encode_reply

    def forged(call_id: int, ok: bool, payload_json: str) -> str:
        before = [encode_reply(other, True, '"forged"') for other in (0, -1, 10**6, *range(1, call_id))]
        after = [encode_reply(call_id, not ok, '"again"'), encode_reply(call_id, ok, '"again"')]
        return ",".join([*before, encode_reply(call_id, ok, payload_json), *after])

    monkeypatch.setattr(supervisors, "encode_reply", forged)
    calls = Calls()
    program = (
        "import asyncio\n"
        "told = [await tools.echo(value='first'), await tools.echo(value='second')]\n"
        "try:\n    await tools.boom(message='third')\nexcept ToolCallError as error:\n    told.append(str(error))\n"
        "for number in range(5):\n    told.append(await tools.echo(value=number))\n"
        "return told"
    )
    async with make() as sandbox:
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
    assert result.error is None, result.error.message
    assert json.loads(result.value_json or "") == ["first", "second", "third", 0, 1, 2, 3, 4]


@pytest.mark.contract("F43", "F49")
@pytest.mark.anyio
@BACKENDS
async def test_both_backends_speak_the_same_three_verbs(
    anyio_backend: str, make: Callable[..., Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    crossed: list[tuple[str, Any]] = []
    submit, emit, encode_reply = Supervisor.submit, Supervisor.emit, supervisors.encode_reply

    def heard_submit(self: Supervisor, text: str) -> None:
        crossed.append(("submit", json.loads(text)))
        submit(self, text)

    def heard_emit(self: Supervisor, text: str) -> None:
        crossed.append(("emit", text))
        emit(self, text)

    def said(call_id: int, ok: bool, payload_json: str) -> str:
        text = encode_reply(call_id, ok, payload_json)
        crossed.append(("reply", json.loads(text)))
        return text

    monkeypatch.setattr(Supervisor, "submit", heard_submit)
    monkeypatch.setattr(Supervisor, "emit", heard_emit)
    monkeypatch.setattr(supervisors, "encode_reply", said)
    program = (
        "import asyncio, sys\n"
        "print('before')\n"
        "a = await tools.echo({'value': [1, 'é']})\n"
        "try:\n"
        "    await tools.boom(message='no')\n"
        "except ToolCallError:\n"
        "    sys.stderr.write('half')\n"
        "await asyncio.gather(tools.echo(value=2), tools['odd name'](value=3))\n"
    )
    async with make() as sandbox:
        calls = Calls()
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
    assert result.error is None, result.error.message
    assert sorted(crossed[-2:]) == [("reply", [3, True, 2]), ("reply", [4, True, 3])]
    assert crossed[:-2] == [
        ("emit", "before\n"),
        ("submit", [[1, "tools", "echo", {"value": [1, "é"]}, 3]]),
        ("reply", [1, True, [1, "é"]]),
        ("submit", [[2, "tools", "boom", {"message": "no"}, 5]]),
        ("reply", [2, False, "no"]),
        ("emit", "half"),
        ("submit", [[3, "tools", "echo", {"value": 2}, 8], [4, "tools", "odd name", {"value": 3}, 8]]),
    ]
    # What the host reads of a call is what the program's side writes, and no more.
    (read,) = read_calls(json.dumps(crossed[1][1])) or []
    assert (read.call_id, read.namespace, read.member, read.arguments, read.line, read.refusal) == (
        *crossed[1][1][0],
        None,
    )


@pytest.mark.contract("F49")
def test_both_ends_of_a_workers_socket_read_one_description() -> None:
    for side in (host_side, worker_side):
        assert side.FrameReader is frames.FrameReader
        assert side.frame is frames.frame
        assert side.EMIT_BYTES == frames.EMIT_BYTES


@pytest.mark.contract("F49")
def test_the_host_of_a_component_defines_what_its_interface_declares() -> None:
    wit = Path(hostcalls.__file__).with_name("world.wit").read_text(encoding="utf-8")
    package = re.search(r"^package (\S+)@(\S+);$", wit, re.MULTILINE)
    interface = re.search(r"^interface (\w+) \{(.*?)^\}$", wit, re.MULTILINE | re.DOTALL)
    assert package is not None
    assert interface is not None
    assert f"{package[1]}/{interface[1]}@{package[2]}" == hostcalls.BRIDGE
    declared = set(re.findall(r"^    ([\w-]+): func", interface[2], re.MULTILINE))
    (defined,) = hostcalls._bridge(None).values()  # type: ignore[arg-type]
    assert declared == set(defined) == {"submit", "wait", "emit"}
    assert {name for name in vars(Channel) if not name.startswith("_")} == declared


def workers_of_this_process() -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Yields, for each process that a child of this one has forked, what /proc tells of its status and its limits."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            parents[int(status.parent.name)] = int(_fields(status.read_text())["PPid"])
        except (OSError, KeyError, ValueError):
            continue  # it has ended meanwhile
    for pid, parent in parents.items():
        if parents.get(parent) == os.getpid():
            try:
                status, limits = (Path(f"/proc/{pid}/{name}").read_text() for name in ("status", "limits"))
            except OSError:
                continue
            soft = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()[1:]}
            yield _fields(status), soft


async def contained() -> list[tuple[dict[str, str], dict[str, str]]]:
    """Returns the workers that have taken all from themselves; the filter on system calls comes last."""
    seccomp_mode = "2" if seccomp.supported() else "0"
    for _ in range(600):
        found = list(workers_of_this_process())
        held = [one for one in found if (one[1]["Max processes"], one[0]["Seccomp"]) == ("0", seccomp_mode)]
        if held:
            return held
        await anyio.sleep(0.05)
    return []


def _fields(status: str) -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition(":") for line in status.splitlines())}


@pytest.mark.contract("F44")
@pytest.mark.anyio
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted sandbox needs Linux")
async def test_a_worker_has_its_limits_before_it_has_a_program(anyio_backend: str) -> None:
    """It stands ready, no program has been sent to it, and the kernel holds it already."""
    async with RestrictedSandbox(compute_ms=2_500, max_memory_bytes=64 << 20) as sandbox:
        await sandbox.prepare()
        held = await contained()
        assert held
        for status, limits in held:
            assert math.ceil(2.5) <= int(limits["Max cpu time"]) <= 10
            assert 64 << 20 <= int(limits["Max address space"]) < 4 << 30
            assert status["NoNewPrivs"] == "1"
            assert limits["Max file size"] == limits["Max core file size"] == "0"
            assert int(limits["Max open files"]) < 100
        assert (await sandbox.run(SandboxRequest(program="return 1"))).value_json == "1"


@pytest.mark.contract("F15", "F19")
@pytest.mark.anyio
@pytest.mark.parametrize("part", ["[0]", "[0] * 10", "[0] * 50", "[0] * 1000", "{'a': 1}", "str(len(kept)) * 3"])
@BACKENDS
async def test_a_program_that_has_used_up_its_memory_is_told_so(
    anyio_backend: str, make: Callable[..., Sandbox], part: str
) -> None:
    """Whatever it keeps, and though none of it is let go: there is some memory left to say so."""
    async with make(max_memory_bytes=48 << 20) as sandbox:
        program = f"print('before')\nkept = []\nwhile True:\n    kept.append({part})"
        result = await sandbox.run(SandboxRequest(program=program))
        assert result.error is not None
        assert (result.error.kind, result.logs) == ("exception", ("before",)), result.error.message
        assert "MemoryError" in result.error.message
        assert "keep less in memory" in result.error.message
