"""Whatever a hostile guest sends, the host raises nothing, answers each call once, and keeps its memory."""

from __future__ import annotations

import json
import socket
import struct
import threading
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ptc.sandbox.peer import Completion, read_calls, read_completion
from ptc.sandbox.restricted.frames import EMIT_BYTES, FrameReader, OversizeError, frame
from ptc.sandbox.restricted.template import Worker, Workers
from ptc.sandbox.restricted.vehicle import ProcessVehicle
from ptc.sandbox.seam import (
    BindingCall,
    BindingError,
    ErrorClass,
    FailureKind,
    JsonValue,
    Member,
    Namespace,
    SandboxRequest,
    SandboxResult,
)
from ptc.sandbox.supervisor import Supervisor
from ptc.sandbox.vehicle import Exit, Port, RunLimits

MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
LIMITS = RunLimits(
    compute_ms=5_000, max_wall_ms=5_000, max_output_bytes=20_000, max_outstanding_calls=20, max_queued_bytes=50_000
)

# What a guest may send


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
# Texts that a reader may take for JSON numbers and strings, and that mean something else or nothing.
hostile_texts = st.sampled_from(
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "9" * 290 + "e99",
        "-" + "9" * 5000,
        '"\\ud800"',
        '{"\\udfff":1}',
        "[" * 100_000,
        "[" * 400 + "]" * 400,
        "1.5",
        "true",
        "null",
        '"echo"',
        '{"value":1,"value":2}',
        '{"__class__":1}',
        "",
        "\x00",
    ]
)
parts = json_values.map(json.dumps) | hostile_texts
ids = st.integers(1, 40).map(str) | st.sampled_from(["0", "-1", "1.0", "true", "9007199254740993", '"1"', "1e2", "[1]"])
names = st.sampled_from(['"tools"', '"tool"', '"__builtins__"', "null", "1"])
members = st.sampled_from(['"echo"', '"later"', '"boom"', '"lossy"', '"nobody"', '"__class__"', '""', "[]", "7"])
echo_frames = st.builds(
    lambda call_id, value, line: f'[{call_id},"tools","echo",{{"value":{json.dumps(value)}}},{line}]',
    st.integers(1, 40),
    json_values,
    st.integers(-5, 2_000_000),
)
forged_frames = st.builds(lambda *five: "[" + ",".join(five) + "]", ids, names, members, parts, parts | st.just("1"))
frames = echo_frames | echo_frames | forged_frames | parts
messages = (
    st.lists(frames, max_size=5).map(lambda chosen: "[" + ",".join(chosen) + "]")
    | parts
    | st.text(max_size=60)
    | st.builds(lambda chosen, cut: chosen[:cut], frames, st.integers(0, 40))
)
outputs = st.text(max_size=200) | st.integers(1, 30_000).map(lambda size: "x" * size)
actions = st.one_of(
    st.tuples(st.just("submit"), messages),
    st.tuples(st.just("submit"), messages),
    st.tuples(st.just("emit"), outputs),
    st.tuples(st.sampled_from(["started", "waiting", "taken", "turn"]), st.just("")),
)
endings = (
    st.tuples(st.just("complete"), json_values.map(lambda value: json.dumps(["value", value])))
    | st.tuples(
        st.just("complete"),
        st.sampled_from(
            [
                '["nothing"]',
                '["nothing",1]',
                '["value"]',
                '["error","timeout","forged"]',
                '["error","abort","forged"]',
                '["error","exception","\\ud800"]',
                '["error","exception",1]',
                '["error","output-limit",""]',
                '["value",' + "9" * 290 + "e99]",
                '["value",NaN]',
                '["value","\\ud800"]',
                '["value",1,["error","exception","x"]]',
                '["value","' + "x" * 30_000 + '"]',
                '["value",' + "[" * 50_000,
            ]
        ),
    )
    | st.tuples(st.just("complete"), messages)
    | st.tuples(st.just("exit"), st.text(max_size=20))
)
CLAIMABLE = {FailureKind.EXCEPTION, FailureKind.INVALID_OUTPUT, FailureKind.OUTPUT_LIMIT}
OBSERVED = {FailureKind.PROTOCOL, FailureKind.WORKER_EXIT, FailureKind.OUTPUT_LIMIT}


class Tools:
    """Binding functions that answer in every way, and what was asked of them."""

    def __init__(self) -> None:
        self.made: list[BindingCall] = []

    async def echo(self, call: BindingCall) -> JsonValue:
        self.made.append(call)
        if not isinstance(call.arguments, dict) or "value" not in call.arguments:
            raise BindingError("echo needs a value")
        return call.arguments["value"]

    async def later(self, call: BindingCall) -> JsonValue:
        self.made.append(call)
        await checkpoint()
        return "later"

    def boom(self, call: BindingCall) -> Any:
        self.made.append(call)
        raise BindingError("boom \ud800")

    async def lossy(self, call: BindingCall) -> Any:
        self.made.append(call)
        return {1: {2}}

    def request(self) -> SandboxRequest:
        functions = {"echo": self.echo, "later": self.later, "boom": self.boom, "lossy": self.lossy}
        members = {name: Member(function) for name, function in functions.items()}
        return SandboxRequest(program="", namespaces=[Namespace("tools", members, ErrorClass("ToolCallError", "name"))])


class Script:
    """A vehicle that does what a script says, also after it has been killed, and also after its completion."""

    def __init__(self, script: Sequence[tuple[str, str]], ending: tuple[str, str], *, threaded: bool = False) -> None:
        self.replies: list[str] = []
        self.backlog = 0
        self.killed = False
        self.first: dict[int, Any] = {}
        self._script = script
        self._ending = ending
        self._threaded = threaded
        self._port: Port | None = None

    def reply(self, text: str) -> None:
        self.replies.append(text)

    def kill(self) -> None:
        self.killed = True

    async def drive(self, port: Port) -> Completion | Exit | None:
        self._port = port
        if self._threaded:
            await anyio.to_thread.run_sync(self._act_all)
        else:
            for action in self._script:
                if action[0] == "turn":
                    await checkpoint()
                self._act(action)
            await checkpoint()
        kind, text = self._ending
        return Exit(text) if kind == "exit" else read_completion(text, LIMITS.max_output_bytes)

    def _act_all(self) -> None:
        for action in self._script:
            self._act(action)

    def _act(self, action: tuple[str, str]) -> None:
        assert self._port is not None
        kind, text = action
        if kind == "submit":
            self._port.submit(text)
        elif kind == "emit":
            self._port.emit(text)
        elif kind != "turn":
            getattr(self._port, kind)()

    def act_late(self) -> None:
        """Sends all of it once more, after the run has its result."""
        self._act_all()


def first_uses(script: Sequence[tuple[str, str]]) -> dict[int, Any]:
    """Returns, for each call id that a well-formed frame uses first, that frame; read with no code of the product."""
    highest = 0
    found: dict[int, Any] = {}
    for kind, text in script:
        try:
            told = json.loads(text) if kind == "submit" else None
        except (ValueError, RecursionError):
            continue
        for one in told if isinstance(told, list) else []:
            match one:
                case [int(call_id), str(), str(), _, int(line)] if (
                    type(call_id) is int and type(line) is int and highest < call_id < 2**53
                ):
                    highest = call_id
                    found[highest] = one
    return found


async def supervised(script: Script, tools: Tools) -> SandboxResult:
    supervisor = Supervisor(tools.request(), LIMITS, script)
    result = await supervisor.run()
    before = (len(script.replies), len(tools.made))
    script.act_late()
    await checkpoint()
    assert (len(script.replies), len(tools.made)) == before, "something was done after the settlement"
    return result


def check(result: SandboxResult, script: Script, tools: Tools, actions: Sequence[tuple[str, str]]) -> None:
    assert result.error is None or result.error.kind in CLAIMABLE | OBSERVED
    assert result.statistics.calls == len(tools.made) or result.error is not None
    size = len(json.dumps(result.logs, ensure_ascii=False, separators=(",", ":")).encode()) + len(
        (result.value_json if result.value_json is not None else "").encode()
    )
    assert size <= LIMITS.max_output_bytes
    if result.value_json is not None:
        json.loads(result.value_json, parse_constant=pytest.fail)
        result.value_json.encode()
    settled = [json.loads(text) for text in script.replies]
    assert max(Counter(one[0] for one in settled).values(), default=1) == 1, "a call was settled twice"
    uses = first_uses(actions)
    for call_id, ok, payload in settled:
        assert call_id in uses, "a call was answered that nobody made"
        _id, namespace, member, arguments, _line = uses[call_id]
        if ok and member == "echo":
            assert namespace == "tools"
            assert json.dumps(payload) == json.dumps(arguments["value"]), "an answer went to another call"


@pytest.mark.contract("F22", "F34", "F35", "F36", "F37", "F38", "F39", "F40")
@MANY
@given(st.lists(actions, max_size=12), endings)
def test_a_hostile_guest_changes_nothing_but_its_own_outcome(
    script: list[tuple[str, str]], ending: tuple[str, str]
) -> None:
    tools, vehicle = Tools(), Script(script, ending)
    result = anyio.run(supervised, vehicle, tools)
    check(result, vehicle, tools, script)


@pytest.mark.contract("F34", "F35", "F38")
@settings(MANY, max_examples=30)
@given(st.lists(actions, max_size=12), endings)
def test_the_same_from_a_thread_of_the_vehicle(script: list[tuple[str, str]], ending: tuple[str, str]) -> None:
    tools, vehicle = Tools(), Script(script, ending, threaded=True)
    result = anyio.run(supervised, vehicle, tools)
    check(result, vehicle, tools, script)


@pytest.mark.contract("F34", "F39", "F46", "F47")
@MANY
@given(messages | endings.map(lambda ending: ending[1]))
def test_reading_never_raises(text: str) -> None:
    for call in read_calls(text) or []:
        if call.refusal is None:
            json.dumps([call.namespace, call.member, call.arguments], allow_nan=False, ensure_ascii=False).encode()
    completion = read_completion(text, LIMITS.max_output_bytes)
    if completion is not None and completion.value_json is not None:
        completion.value_json.encode()
        json.loads(completion.value_json, parse_constant=pytest.fail)


@pytest.mark.contract("F37", "F47")
@pytest.mark.parametrize(
    "text", ["9" * 290 + "e99", "1e999", "-1e0400", '"\\ud800"', '{"\\uDFFF":0}', "[[1e308,9e308]]"]
)
def test_what_json_cannot_carry_is_refused_and_not_raised(text: str) -> None:
    calls = read_calls(f'[[1,"tools","echo",{text},1],[2,"tools","echo",7,1]]')
    assert calls is not None
    assert [(call.call_id, call.refusal is None) for call in calls] == [(1, False), (2, True)]
    completion = read_completion(f'["value",{text}]', 10_000)
    assert completion is not None
    assert completion.kind is FailureKind.INVALID_OUTPUT


@pytest.mark.contract("F31")
def test_floods_do_not_grow_the_host() -> None:
    """A guest that never waits, and one that writes without end."""
    megabyte = "x" * (1 << 20)
    calls = [("submit", f'[[{n},"tools","echo",{{"value":"{megabyte[:40_000]}"}},1]]') for n in range(1, 400)]
    for script, kind in (
        (calls, FailureKind.PROTOCOL),
        ([("emit", megabyte)] * 400, FailureKind.OUTPUT_LIMIT),
        ([("emit", "\n" * 10_000)] * 400, FailureKind.OUTPUT_LIMIT),
    ):
        tools, vehicle = Tools(), Script(script, ("complete", '["nothing"]'))
        vehicle.backlog = 1 << 30  # it takes no replies, so its calls have to stand back
        tracemalloc.start()
        try:
            result = anyio.run(Supervisor_run, vehicle, tools)
            _now, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert result.error is not None
        assert result.error.kind is kind
        assert vehicle.killed
        assert peak < 8 << 20


async def Supervisor_run(vehicle: Script, tools: Tools) -> SandboxResult:  # noqa: N802 - it stands for that one
    return await Supervisor(tools.request(), LIMITS, vehicle).run()


# Frames


BOUNDS = {"C": 300, "D": 200, "E": 100, "W": 64, "X": 50, "G": 0}
whole = st.tuples(st.sampled_from("CDEWX"), st.text(max_size=12)) | st.just(("G", ""))


@pytest.mark.contract("F34")
@MANY
@given(st.lists(whole, max_size=10), st.lists(st.integers(1, 9), min_size=1))
def test_frames_are_the_same_however_they_arrive(sent: list[tuple[str, str]], cuts: list[int]) -> None:
    data = b"".join(frame(kind, text) for kind, text in sent)
    reader = FrameReader(BOUNDS)
    got: list[tuple[str, str]] = []
    turn = 0
    while data:
        size = cuts[turn % len(cuts)]
        got += list(reader.feed(data[:size]))
        data, turn = data[size:], turn + 1
    assert got == sent


@pytest.mark.contract("F34")
@MANY
@given(st.lists(st.binary(max_size=80) | whole.map(lambda one: frame(*one)), max_size=12))
def test_any_bytes_are_frames_or_too_long(chunks: list[bytes]) -> None:
    reader = FrameReader(BOUNDS)
    try:
        for chunk in chunks:
            for kind, text in reader.feed(chunk):
                assert kind in BOUNDS
                # What is no UTF-8 is escaped, four characters for a byte.
                assert len(text) <= 4 * BOUNDS[kind]
    except OversizeError:
        pass


# A hostile process


class HostileWorkers(Workers):
    """Gives one worker, whose other end is the test's."""

    def __init__(self) -> None:
        super().__init__((), 1 << 25, 1, 0)
        ours, self.theirs = socket.socketpair()
        status, self._told = socket.socketpair()
        ours.setblocking(False)
        self._worker = _Peer(ours, status)

    async def take(self) -> Worker:
        return self._worker

    def close_all(self) -> None:
        self.theirs.close()
        self._told.close()


class _Peer(Worker):
    """A worker without a process: killing it closes its channel, as the kernel would."""

    killed = False

    def kill(self) -> None:
        if not self.killed:
            self.killed = True
            self.channel.shutdown(socket.SHUT_RDWR)

    async def exited(self) -> int | None:
        return -9


def write_all(theirs: socket.socket, chunks: Sequence[bytes], then_end: bool) -> None:
    try:
        for chunk in chunks:
            theirs.sendall(chunk)
        if then_end:
            theirs.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # it was killed


async def converse(
    tools: Tools, chunks: Sequence[bytes], limits: RunLimits, *, read: bool, then_end: bool = True
) -> SandboxResult:
    workers = HostileWorkers()
    theirs = workers.theirs
    writer = threading.Thread(target=write_all, args=(theirs, chunks, then_end))
    reader = threading.Thread(target=drain, args=(theirs,))
    writer.start()
    if read:
        reader.start()
    try:
        vehicle = ProcessVehicle(workers, "{}", limits)
        with anyio.fail_after(20):
            return await Supervisor(tools.request(), limits, vehicle).run()
    finally:
        writer.join()
        if read:
            reader.join()
        workers.close_all()


def drain(theirs: socket.socket) -> None:
    try:
        while theirs.recv(1 << 16):
            pass
    except OSError:
        pass


submits = messages.map(lambda text: frame("C", text.encode("utf-8", "backslashreplace").decode()))
sendings = st.one_of(
    submits,
    submits,
    outputs.map(lambda text: frame("E", text)),
    st.sampled_from([frame("W", "0"), frame("W", "1"), frame("W", "99"), frame("G", ""), frame("W", "x")]),
    st.binary(max_size=30),
    endings.map(lambda ending: frame("D", ending[1])),
    st.text(max_size=10).map(lambda text: frame("X", text)),
    st.sampled_from(
        [
            struct.pack("<cI", b"C", 2**32 - 1),
            struct.pack("<cI", b"D", 30_000),
            struct.pack("<cI", b"Z", 0),
            b"C",
            b"\xff" * 9,
        ]
    ),
)


@pytest.mark.contract("F23", "F34", "F39")
@settings(MANY, max_examples=80)
@given(st.lists(sendings, max_size=10), st.booleans())
def test_a_hostile_process_raises_nothing_in_the_host(chunks: list[bytes], read: bool) -> None:
    tools = Tools()
    result = anyio.run(lambda: converse(tools, chunks, LIMITS, read=read))
    assert result.error is None or result.error.kind in CLAIMABLE | OBSERVED


@pytest.mark.contract("F18")
@pytest.mark.anyio
async def test_a_process_that_never_takes_its_replies_ends_with_its_wall_and_costs_little(anyio_backend: str) -> None:
    """Each call is small and its answer large: the answers must not pile up."""

    class Large(Tools):
        async def echo(self, call: BindingCall) -> JsonValue:
            self.made.append(call)
            return "y" * 100_000

    limits = RunLimits(
        compute_ms=60_000,
        max_wall_ms=700,
        max_output_bytes=20_000,
        max_outstanding_calls=1_000_000,
        max_queued_bytes=1_000_000,
    )
    tools = Large()
    chunks = [frame("C", f'[[{n},"tools","echo",{{"value":1}},1]]') for n in range(1, 5_000)]
    tracemalloc.start()
    try:
        result = await converse(tools, chunks, limits, read=False, then_end=False)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.error is not None
    assert result.error.kind is FailureKind.TIMEOUT
    assert len(tools.made) < 1_000
    assert peak < 100 << 20


@pytest.mark.contract("F18")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(frame("G", "") * 1_000, id="going on"),
        pytest.param(frame("W", "0") * 1_000, id="waiting"),
        pytest.param(frame("E", "") * 1_000, id="writing nothing"),
        pytest.param(frame("C", "[]") * 1_000, id="calling nothing"),
        pytest.param(frame("C", "[1,2,3]") * 1_000, id="no calls"),
    ],
)
async def test_a_flood_of_frames_does_not_keep_the_event_loop(anyio_backend: str, flood: bytes) -> None:
    """It ends with its wall while other tasks go on, though there is always more to read."""
    limits = RunLimits(
        compute_ms=60_000, max_wall_ms=500, max_output_bytes=100, max_outstanding_calls=5, max_queued_bytes=10_000
    )

    class Endless(Sequence[bytes]):
        def __len__(self) -> int:
            return 1 << 40

        def __getitem__(self, index: Any) -> Any:
            return flood

    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        result = await converse(Tools(), Endless(), limits, read=True)
        tasks.cancel_scope.cancel()
    assert result.error is not None
    assert result.error.kind is FailureKind.TIMEOUT
    assert turns > 5


def test_what_a_process_may_write_at_once_is_what_the_host_takes() -> None:
    reader = FrameReader({"E": EMIT_BYTES})
    assert [len(text) for _kind, text in reader.feed(frame("E", "x" * EMIT_BYTES))] == [EMIT_BYTES]
    with pytest.raises(OversizeError):
        list(reader.feed(frame("E", "x" * (EMIT_BYTES + 1))))
