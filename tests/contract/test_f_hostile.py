"""The program's side is hostile: what it sends is checked and rebuilt, and one outcome of a run wins (F22 to F48).

Here a vehicle plays the program's side and sends what a real one never would. No frame that it sends may raise in the
host, make a call that was not asked for, or be told from a sandbox's own verdict.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.lowlevel import checkpoint
from ptc.sandbox.conformance import Stop
from ptc.sandbox.peer import Completion, read_completion
from ptc.sandbox.seam import (
    BindingCall,
    BindingError,
    FailureKind,
    JsonText,
    Member,
    Namespace,
    RunFailure,
    SandboxRequest,
    SandboxResult,
)
from ptc.sandbox.supervisor import Supervisor
from ptc.sandbox.vehicle import Exit, Port, RunLimits

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("anyio_backend")]

MALFORMED = "the program's side ended with a malformed completion"
Ending = Completion | Exit | None


class Guest:
    """A vehicle that does what a test says, and keeps what it is sent.

    Args:
        act: plays the program's side, to its end.
        limits: the budgets of the run.
    """

    def __init__(self, act: Callable[[Guest], Awaitable[Ending]], limits: RunLimits) -> None:
        self.backlog = 0
        self.sent: list[str] = []
        self.killed = anyio.Event()
        self.port: Port | None = None
        self._act = act
        self._limits = limits

    async def drive(self, port: Port) -> Ending:
        self.port = port
        return await self._act(self)

    def reply(self, text: str) -> None:
        self.sent.append(text)

    def kill(self) -> None:
        self.killed.set()

    # What acts use

    @property
    def replies(self) -> list[Any]:
        return [json.loads(text) for text in self.sent]

    def submit(self, *frames: object) -> None:
        """Sends calls: a frame is JSON text, or a value that is written as such."""
        assert self.port is not None
        texts = [frame if isinstance(frame, str) else json.dumps(frame) for frame in frames]
        self.port.submit("[" + ",".join(texts) + "]")

    def emit(self, text: str) -> None:
        assert self.port is not None
        self.port.emit(text)

    def complete(self, text: str) -> Completion | None:
        return read_completion(text, self._limits.max_output_bytes)


def shortly(value: object) -> str | None:
    """Names a set of parameters; a long text by how it begins."""
    return value[:40] if isinstance(value, str) else None


async def turns(number: int = 30) -> None:
    for _ in range(number):
        await checkpoint()


class Tools:
    """What the hostile side may call, and what reached it."""

    def __init__(self) -> None:
        self.made: list[BindingCall] = []
        self.cancelled = 0

    def echo(self, call: BindingCall) -> Awaitable[Any]:
        # Noted here and not in the coroutine: bindings are called in the program's order, tasks start in any.
        self.made.append(call)
        return self._answer(call.arguments["value"] if isinstance(call.arguments, dict) else None)

    async def _answer(self, value: Any) -> Any:
        return value

    async def stuck(self, call: BindingCall) -> Any:
        self.made.append(call)
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled += 1

    @property
    def values(self) -> list[Any]:
        return [call.arguments["value"] for call in self.made if isinstance(call.arguments, dict)]


@pytest.fixture
def tools() -> Tools:
    return Tools()


async def supervise(
    tools: Tools,
    act: Callable[[Guest], Awaitable[Ending]],
    *,
    functions: dict[str, Any] | None = None,
    signal: Stop | None = None,
    **limits: Any,
) -> tuple[SandboxResult, Guest]:
    """Runs one hostile side under a supervisor; returns the result, and the side with what it was sent."""
    budgets = RunLimits(
        **{
            "compute_ms": 20_000,
            "max_wall_ms": 20_000,
            "max_output_bytes": 10_000,
            "max_outstanding_calls": 100,
            "max_queued_bytes": 100_000,
            **limits,
        }
    )
    guest = Guest(act, budgets)
    bound = {"echo": tools.echo, "stuck": tools.stuck, **(functions or {})}
    namespaces = [Namespace("tools", {name: Member(function) for name, function in bound.items()})]
    request = SandboxRequest(program="", namespaces=namespaces, signal=signal)
    with anyio.fail_after(30):
        return await Supervisor(request, budgets, guest).run(), guest


def call(call_id: object, value: object = None, *, member: str = "echo", line: object = 1) -> list[object]:
    return [call_id, "tools", member, {"value": value}, line]


# Calls


def dropped_frames() -> Iterator[Any]:
    """Yields frames that are no calls."""
    yield from ("null", "7", '"call"', "{}", "[]", "[2]", '[[2,"tools","echo",{},1]]')
    # No arguments, and something more than a call has.
    yield '[2,"tools","echo",1]'
    yield '[2,"tools","echo",{},1,{"trusted":true}]'
    yield '{"id":2,"namespace":"tools","member":"echo","arguments":{},"line":1}'
    for call_id in ("null", '"2"', "2.0", "2e0", "true", "[2]", "{}", "0", "-0", "-0.0", "-2", "1e999"):
        yield f'[{call_id},"tools","echo",{{}},1]'
    # What a double does not hold exactly, or is beyond all that do.
    yield from (f'[{call_id},"tools","echo",{{}},1]' for call_id in (2**53, 2**53 + 1, 2**60, 10**30))
    for other in ("null", "7", "true", "[]", "{}"):
        yield f'[2,{other},"echo",{{}},1]'
        yield f'[2,"tools",{other},{{}},1]'
    for line in ("null", '"1"', "1.0", "true", "[]", "{}"):
        yield f'[2,"tools","echo",{{}},{line}]'


@pytest.mark.contract("F34", "F46", "F48")
@pytest.mark.parametrize("frame", list(dropped_frames()))
async def test_a_frame_that_is_no_call_is_dropped_and_those_beside_it_are_made(tools: Tools, frame: str) -> None:
    async def act(guest: Guest) -> Ending:
        guest.submit(call(1, "before"), frame, call(3, "after"))
        await turns()
        return guest.complete('["value",1]')

    result, guest = await supervise(tools, act)
    assert (result.error, result.value_json) == (None, "1")
    assert tools.values == ["before", "after"]
    assert sorted(guest.replies) == [[1, True, "before"], [3, True, "after"]]


@pytest.mark.contract("F34")
@pytest.mark.parametrize(
    "text", ["", " ", "null", "7", '"x"', "{}", "[", "]", "[1,]", "[NaN]", "[" * 100_000, "\x00"], ids=shortly
)
async def test_a_message_that_cannot_be_read_ends_the_run_and_raises_nothing(tools: Tools, text: str) -> None:
    async def act(guest: Guest) -> Ending:
        assert guest.port is not None
        guest.port.submit(text)
        with anyio.fail_after(10):
            await guest.killed.wait()  # a long message is read in a thread
        guest.submit(call(1))
        await turns()
        return guest.complete('["value",1]')

    result, guest = await supervise(tools, act)
    failure = RunFailure(FailureKind.PROTOCOL, "the program's side sent calls that cannot be read")
    assert (result.error, result.value_json) == (failure, None)
    assert (tools.made, guest.sent) == ([], [])


@pytest.mark.contract("F34")
async def test_an_empty_message_and_one_of_dropped_frames_alone_do_nothing(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        for _ in range(1000):
            guest.submit()
            guest.submit("[1,2,3]")
        guest.submit(call(1, 5))
        await turns()
        return guest.complete('["nothing"]')

    result, guest = await supervise(tools, act, max_queued_bytes=200)
    assert (result.error, result.value_json, guest.replies) == (None, None, [[1, True, 5]])


@pytest.mark.contract("F34", "F49")
async def test_a_call_is_rebuilt_and_carries_nothing_else(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        guest.submit('[1,"tools","echo",{"value":[1,2.5,"é",null,true],"__proto__":{"a":1}},7]')
        for call_id, line in enumerate((-1, 10**6, 10**6 + 1, 2**70), 2):
            guest.submit(call(call_id, 0, line=line))
        guest.submit('[6,"tools","echo",[1],3]')
        await turns()
        return guest.complete('["nothing"]')

    await supervise(tools, act)
    arguments = {"value": [1, 2.5, "é", None, True], "__proto__": {"a": 1}}
    assert tools.made[0] == BindingCall("tools", "echo", arguments, 7)
    # A line that no program has is none.
    assert [made.line for made in tools.made] == [7, 0, 10**6, 0, 0, 3]
    assert tools.made[-1].arguments == [1]


@pytest.mark.contract("F35")
async def test_each_id_is_answered_once_and_a_repeated_one_is_ignored(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        guest.submit(call(1, "a"), call(1, "b"), call(2, "c", member="nobody"), call(2, "d"))
        guest.submit(call(2, "e"), call(1, "f"), call(5, "g"))
        await turns()
        guest.submit(call(1, "h"), call(2, "i"), call(5, "j"), call(4, "k"), call(6, "l"))
        await turns()
        return guest.complete('["nothing"]')

    result, guest = await supervise(tools, act)
    assert tools.values == ["a", "g", "l"]
    assert sorted(reply[0] for reply in guest.replies) == [1, 2, 5, 6]
    assert result.statistics.calls == 3


@pytest.mark.contract("F36")
@pytest.mark.parametrize(
    ("namespace", "member"),
    [
        ("tools", "nobody"), ("tools", "Echo"), ("tools", ""), ("tools", "__class__"), ("tools", "get"),
        ("tools", "items"), ("tools", "__proto__"), ("tools", "constructor"), ("tool", "echo"), ("", "echo"),
        ("__class__", "echo"), ("keys", "echo"), ("__proto__", "echo"),
    ],
)  # fmt: skip
async def test_an_unknown_binding_is_a_failed_call_and_nothing_inherited_is_found(
    tools: Tools, namespace: str, member: str
) -> None:
    async def act(guest: Guest) -> Ending:
        guest.submit([1, namespace, member, {}, 1], call(2, "well"))
        await turns()
        return guest.complete('["nothing"]')

    result, guest = await supervise(tools, act)
    assert sorted(guest.replies) == [[1, False, f'unknown binding "{namespace}.{member}"'], [2, True, "well"]]
    assert (result.error, tools.values) == (None, ["well"])


@pytest.mark.contract("F36")
async def test_an_unknown_binding_with_a_name_that_no_reply_can_carry_is_a_failed_call(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        guest.submit('[1,"tools","\\ud800",{},1]', call(2, "well"))
        await turns()
        return guest.complete('["nothing"]')

    result, guest = await supervise(tools, act)
    assert (result.error, tools.values) == (None, ["well"])
    assert [reply[:2] for reply in sorted(guest.replies)] == [[1, False], [2, True]]


@pytest.mark.contract("F37", "F46")
@pytest.mark.parametrize(
    "argument", ["1e999", "-1e400", '"\\ud800"', '{"\\udc00":1}', "[[1e309]]", "9" * 310 + "e9", '["\\uD834"]']
)
async def test_arguments_that_json_cannot_carry_reach_no_binding(tools: Tools, argument: str) -> None:
    async def act(guest: Guest) -> Ending:
        guest.submit(f'[1,"tools","echo",{{"value":{argument}}},1]', call(2, "well"))
        await turns()
        return guest.complete('["nothing"]')

    result, guest = await supervise(tools, act)
    assert sorted(guest.replies) == [[1, False, "binding arguments must be lossless JSON"], [2, True, "well"]]
    assert (result.error, tools.values) == (None, ["well"])


@pytest.mark.contract("F37", "F46")
@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
async def test_arguments_that_are_no_json_reach_no_binding(tools: Tools, constant: str) -> None:
    async def act(guest: Guest) -> Ending:
        guest.submit(f'[1,"tools","echo",{{"value":{constant}}},1]')
        await turns()
        return guest.complete('["nothing"]')

    result, _guest = await supervise(tools, act)
    assert tools.made == []
    assert result.error is not None


@pytest.mark.contract("F46", "F48")
@pytest.mark.parametrize(
    "number",
    [
        "0", "-0.0", "-0", "9007199254740993", "-9007199254740993", "9007199254740992", "1152921504606846976",
        "1.0", "9007199254740993.0", "1e22", "0.1", "5e-324", "1.7976931348623157e308", str(10**300), str(2**200 + 1),
        '"9007199254740993"',
    ],
)  # fmt: skip
async def test_numbers_cross_exactly_and_with_their_kind(tools: Tools, number: str) -> None:
    """Rulings 13 and 33: integers of any size are exact inside Python, and -0.0 is a number."""

    async def act(guest: Guest) -> Ending:
        guest.submit(f'[1,"tools","echo",{{"value":{number}}},1]')
        await turns()
        return guest.complete(f'["value",{number}]')

    result, guest = await supervise(tools, act)
    expected = json.loads(number)
    for seen in (tools.values[0], guest.replies[0][2], json.loads(result.value_json or "")):
        assert (type(seen), repr(seen)) == (type(expected), repr(expected))


@pytest.mark.contract("F34", "F48")
@pytest.mark.parametrize("digits", [4301, 100_000])
async def test_an_integer_beyond_what_python_reads_raises_nothing(tools: Tools, digits: int) -> None:
    async def act(guest: Guest) -> Ending:
        guest.submit(f'[1,"tools","echo",{{"value":{"9" * digits}}},1]')
        return guest.complete('["value",1]')

    result, _guest = await supervise(tools, act, max_queued_bytes=200_000)
    assert result.error is not None
    assert result.error.kind is FailureKind.PROTOCOL
    assert tools.made == []


@pytest.mark.contract("F35", "F46")
async def test_the_largest_id_is_the_largest_integer_that_a_double_holds_with_its_neighbours(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        guest.submit(call(1, "a"), call(2**53 - 1, "b"), call(2**53, "c"))
        await turns()
        return guest.complete('["nothing"]')

    _result, guest = await supervise(tools, act)
    assert sorted(guest.replies) == [[1, True, "a"], [2**53 - 1, True, "b"]]


@pytest.mark.contract("F34", "F37")
async def test_many_calls_of_one_message_are_all_answered_and_the_host_goes_on_in_between(tools: Tools) -> None:
    turned: list[int] = []

    async def others() -> None:
        while True:
            await checkpoint()
            turned.append(len(tools.made))

    async def act(guest: Guest) -> Ending:
        guest.submit(*(call(number, number) for number in range(1, 101)))
        guest.submit(*(call(number, number) for number in range(101, 201)))
        await turns(200)
        return guest.complete('["nothing"]')

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        result, guest = await supervise(tools, act, max_outstanding_calls=1000)
        tasks.cancel_scope.cancel()
    assert (result.error, result.statistics.calls) == (None, 200)
    assert tools.values == list(range(1, 201))
    assert len(guest.replies) == 200
    assert len(set(turned) - {0, 200}) > 3


@pytest.mark.contract("F33", "F34")
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_flood_of_calls_is_not_read_at_all(tools: Tools, at_once: bool) -> None:
    """Its side takes no replies, so what it sends would have to be kept."""

    async def act(guest: Guest) -> Ending:
        guest.backlog = 1 << 30
        texts = ["x" * 1001] if at_once else ["x" * 300] * 4
        for number, text in enumerate(texts, 1):
            guest.submit(call(number, text))
        assert guest.killed.is_set()
        guest.backlog = 0
        await turns()
        return guest.complete('["value",1]')

    result, _guest = await supervise(tools, act, max_queued_bytes=1000)
    assert result.error is not None
    assert (result.error.kind, tools.made) == (FailureKind.PROTOCOL, [])
    assert "more than 1000 bytes of calls" in result.error.message


@pytest.mark.contract("F34")
async def test_calls_stand_back_while_replies_are_not_taken_and_go_on_afterwards(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        assert guest.port is not None
        guest.port.taken()  # there is nothing that waits
        guest.backlog = 1001
        guest.submit(call(1, "a"), call(2, "b"))
        await turns()
        assert tools.made == []
        guest.backlog = 1000
        guest.port.taken()
        await turns()
        return guest.complete('["nothing"]')

    result, guest = await supervise(tools, act, max_queued_bytes=1000)
    assert result.error is None
    assert (tools.values, len(guest.replies)) == (["a", "b"], 2)


@pytest.mark.contract("F34")
async def test_what_may_be_unanswered_is_bounded_and_is_free_again_once_it_is_answered(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        for first in (1, 5, 9):
            guest.submit(*(call(number, member="later") for number in range(first, first + 3)))
            guest.submit(call(first + 3, "refused"))
            await turns()
            for later in waiting[-3:]:
                later.give("done")
        guest.submit(call(13, "x" * 600, member="later"))
        guest.submit(call(14, "y" * 600))
        await turns()
        waiting[-1].give("done")
        guest.submit(call(15, "z" * 600))
        await turns()
        return guest.complete('["nothing"]')

    waiting: list[Later] = []

    def later(_call: BindingCall) -> Any:
        waiting.append(Later())
        return waiting[-1]

    result, guest = await supervise(
        tools, act, functions={"later": later}, max_outstanding_calls=3, max_queued_bytes=1000
    )
    refused = {reply[0]: reply[2] for reply in guest.replies if not reply[1]}
    assert list(refused) == [4, 8, 12, 14]
    assert "more than 3 calls are unanswered" in refused[4]
    assert "hold more than 1000 bytes" in refused[14]
    assert (result.error, tools.values) == (None, ["z" * 600])
    assert result.statistics.calls == 11


# Answers


class Unspeakable(Exception):  # noqa: N818 - it cannot be told
    def __str__(self) -> str:
        raise RuntimeError("even its text fails")


@pytest.mark.contract("F37")
@pytest.mark.parametrize("when", ["called", "awaited", "deferred"])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (BindingError("no stock"), "no stock"),
        (ValueError("bad é\n\x00"), "bad é\n\x00"),
        (KeyError("k"), "'k'"),
        (RuntimeError(), "RuntimeError"),
        (BindingError("half \ud800"), "half \\ud800"),
        (Unspeakable(), "Unspeakable"),
    ],
)
async def test_a_binding_that_raises_fails_that_call_with_its_message(
    tools: Tools, when: str, error: Exception, message: str
) -> None:
    def called(_call: BindingCall) -> Any:
        raise error

    async def awaited(_call: BindingCall) -> Any:
        await checkpoint()
        raise error

    def deferred(_call: BindingCall) -> Any:
        return Settled(error)

    async def act(guest: Guest) -> Ending:
        guest.submit(call(1, member="fails"), call(2, "well"))
        await turns()
        return guest.complete('["nothing"]')

    functions = {"fails": {"called": called, "awaited": awaited, "deferred": deferred}[when]}
    result, guest = await supervise(tools, act, functions=functions)
    assert sorted(guest.replies) == [[1, False, message], [2, True, "well"]]
    assert result.error is None


class Settled:
    """A deferred answer that is there already."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def add_done_callback(self, callback: Callable[[Any], object], /) -> object:
        return callback(self)

    def result(self) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def a_cycle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.contract("F37", "F41")
@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({1, 2}, "binding resolution is of type set"),
        ([1, {"when": float("nan")}], "binding resolution[1].when is nan"),
        (float("inf"), "binding resolution is inf"),
        ({1: 2}, "binding resolution has a key that is not a string"),
        ("\ud800", "binding resolution holds a lone surrogate"),
        (a_cycle(), "binding resolution[0] contains itself"),
        (object(), "binding resolution is of type object"),
        pytest.param(10**5000, "binding resolution is an integer of more than 4300 digits", id="digits"),
        (json.loads("[" * 400 + "]" * 400), "is nested deeper than"),
    ],
)
async def test_a_resolution_that_is_not_json_fails_that_call(
    tools: Tools, deferred: bool, value: Any, path: str
) -> None:
    async def awaited(_call: BindingCall) -> Any:
        return value

    async def act(guest: Guest) -> Ending:
        guest.submit(call(1, member="lossy"), call(2, "well"))
        with anyio.fail_after(30):
            while len(guest.replies) < 2:  # noqa: ASYNC110 - a cycle looks long, and is written in a thread
                await anyio.sleep(0.001)
        return guest.complete('["nothing"]')

    functions = {"lossy": (lambda _call: Settled(value)) if deferred else awaited}
    result, guest = await supervise(tools, act, functions=functions)
    failed, well = sorted(guest.replies)
    assert failed[:2] == [1, False]
    assert failed[2].startswith("binding resolution must be lossless JSON: ")
    assert path in failed[2]
    assert (well, result.error) == ([2, True, "well"], None)


@pytest.mark.contract("F37")
async def test_a_resolution_is_taken_when_it_is_given(tools: Tools) -> None:
    rows: list[int] = []

    async def grow(_call: BindingCall) -> Any:
        rows.append(len(rows))
        return rows

    async def act(guest: Guest) -> Ending:
        for call_id in (1, 2, 3):
            guest.submit(call(call_id, member="grow"))
            await turns()
        return guest.complete('["nothing"]')

    _result, guest = await supervise(tools, act, functions={"grow": grow})
    assert guest.replies == [[1, True, [0]], [2, True, [0, 1]], [3, True, [0, 1, 2]]]


@pytest.mark.contract("F37")
async def test_a_resolution_that_is_text_already_crosses_as_it_is(tools: Tools) -> None:
    async def text(_call: BindingCall) -> Any:
        return JsonText('{"a":1.50,"b":"é"}')

    async def act(guest: Guest) -> Ending:
        guest.submit(call(1, member="text"))
        await turns()
        return guest.complete('["nothing"]')

    _result, guest = await supervise(tools, act, functions={"text": text})
    assert guest.sent == ['[1,true,{"a":1.50,"b":"é"}]']


@pytest.mark.contract("F32")
async def test_arguments_and_resolutions_are_never_charged(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        for call_id in range(1, 21):
            guest.submit(call(call_id, "x" * 1000))
            await turns()
        return guest.complete('["value",1]')

    result, guest = await supervise(tools, act, max_output_bytes=4)
    assert (result.error, result.value_json) == (None, "1")
    assert len(guest.replies) == 20


# Completions


@pytest.mark.contract("F39", "F34")
@pytest.mark.parametrize(
    "text",
    [
        "", "null", "1", '"value"', "{}", "[]", '["nothing",1]', '["value"]', '["value",1,2]', '["Value",1]',
        '[["value",1]]', '{"value":1}', "[1,2]", '["error"]', '["error","exception"]', '["error","exception",1]',
        '["error","exception",null]', '["error","exception",["m"]]', '["error","exception","m",1]',
        '["error",1,"m"]', '["error",null,"m"]', '["error","","m"]', '["error","Exception","m"]',
        # An error and a value: no value comes of it.
        '["value",1,["error","exception","m"]]', '["error","exception","m","value",1]', '["value",1,"error"]',
        # Verdicts that only the host reaches.
        '["error","timeout","m"]', '["error","abort","m"]', '["error","worker-exit","m"]', '["error","protocol","m"]',
        '["error","sandbox-unavailable","m"]',
        '["value",NaN]', '["value",Infinity]', '["value",', '["value",1]x', "[" * 9_000,
    ],
    ids=shortly,
)  # fmt: skip
async def test_a_completion_that_is_none_is_dropped_whole(tools: Tools, text: str) -> None:
    async def act(guest: Guest) -> Ending:
        guest.emit("kept\n")
        return guest.complete(text)

    result, _guest = await supervise(tools, act)
    assert result.error == RunFailure(FailureKind.PROTOCOL, MALFORMED)
    assert (result.logs, result.value_json) == (("kept",), None)


@pytest.mark.contract("F3", "F39", "F22")
@pytest.mark.parametrize("kind", ["exception", "invalid-output"])
@pytest.mark.parametrize("message", ["m", "", "a\nb é 😀", "\x00"])
async def test_the_program_side_may_say_that_the_program_failed(tools: Tools, kind: str, message: str) -> None:
    async def act(guest: Guest) -> Ending:
        guest.emit("kept")
        return guest.complete(json.dumps(["error", kind, message]))

    result, _guest = await supervise(tools, act)
    assert result.error == RunFailure(FailureKind(kind), message)
    assert (result.logs, result.value_json) == (("kept",), None)


@pytest.mark.contract("F33", "F39")
async def test_the_program_side_may_say_that_it_wrote_too_much_and_the_host_has_the_words(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        guest.emit("kept")
        return guest.complete('["error","output-limit","trust me"]')

    result, _guest = await supervise(tools, act, max_output_bytes=100)
    assert result.error == RunFailure(FailureKind.OUTPUT_LIMIT, "outer output exceeded 100 bytes")
    assert result.logs == ("kept",)


@pytest.mark.contract("F39")
async def test_a_lone_surrogate_in_a_message_is_escaped(tools: Tools) -> None:
    """Ruling 31."""

    async def act(guest: Guest) -> Ending:
        return guest.complete('["error","exception","a\\ud800b"]')

    result, _guest = await supervise(tools, act)
    assert result.error == RunFailure(FailureKind.EXCEPTION, "a\\ud800b")


@pytest.mark.contract("F16", "F47")
@pytest.mark.parametrize("value", ["1e999", '"\\ud800"', '{"\\udfff":0}', "[[-1e400]]", "9" * 310 + "e9"])
async def test_a_value_that_json_cannot_carry_is_no_value(tools: Tools, value: str) -> None:
    async def act(guest: Guest) -> Ending:
        return guest.complete(f'["value",{value}]')

    result, _guest = await supervise(tools, act)
    assert result.error is not None
    assert result.error.kind is FailureKind.INVALID_OUTPUT
    assert result.error.message.startswith("program completion must be lossless JSON")
    assert result.value_json is None


@pytest.mark.contract("F33", "F47")
@pytest.mark.parametrize("inside", ['"x"', "1e999", '"\\ud800"', "NaN", "nonsense", "[" * 20])
async def test_size_comes_before_anything_else_that_is_wrong(tools: Tools, inside: str) -> None:
    """What is over the cap is not even read, so neither its faults nor its claims count."""

    async def act(guest: Guest) -> Ending:
        return guest.complete(f'["value",["{"x" * 1000}",{inside}]]')

    result, _guest = await supervise(tools, act, max_output_bytes=500)
    assert result.error == RunFailure(FailureKind.OUTPUT_LIMIT, "outer output exceeded 500 bytes")
    assert result.value_json is None


@pytest.mark.contract("F47")
async def test_a_value_of_very_many_small_parts_is_not_built_in_the_host(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        return guest.complete('["value",[' + "1," * 2_000_001 + "1]]")

    result, _guest = await supervise(tools, act, max_output_bytes=10_000_000)
    assert result.error is not None
    assert result.error.kind is FailureKind.INVALID_OUTPUT
    assert "values" in result.error.message


@pytest.mark.contract("F5", "F34")
async def test_a_value_is_written_anew(tools: Tools) -> None:
    """Not the program side's text: spaces, escapes and repeated keys do not go on."""

    async def act(guest: Guest) -> Ending:
        return guest.complete(' [ "value" , { "a" : 1 , "a" : [ 1.50 , "\\u00e9\\/" ] } ] ')

    result, _guest = await supervise(tools, act)
    assert result.value_json == '{"a":[1.5,"é/"]}'


@pytest.mark.contract("F27", "F29", "F33")
@pytest.mark.parametrize(("cap", "fits"), [(17, True), (16, False)])
async def test_the_hosts_count_decides(tools: Tools, cap: int, fits: bool) -> None:
    async def act(guest: Guest) -> Ending:
        guest.emit("é\n😀")  # ["é","😀"] has 13 bytes
        return guest.complete('["value","\\u00e9"]')  # "é" has 4

    result, _guest = await supervise(tools, act, max_output_bytes=cap)
    if fits:
        assert (result.error, result.value_json, result.logs) == (None, '"é"', ("é", "😀"))
    else:
        assert result.error is not None
        assert (result.error.kind, result.value_json) == (FailureKind.OUTPUT_LIMIT, None)


# Output


@pytest.mark.contract("F22", "F31", "F33")
async def test_a_flood_is_stopped_at_once_and_nothing_after_it_counts(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        guest.emit("a\n")
        guest.emit("x" * 200)
        assert guest.killed.is_set()
        guest.emit("\nafter\n")
        guest.submit(call(1, "late"))
        await turns()
        return guest.complete('["value",1]')

    result, guest = await supervise(tools, act, max_output_bytes=100)
    assert result.error == RunFailure(FailureKind.OUTPUT_LIMIT, "outer output exceeded 100 bytes")
    # 100, less 2 for the array, 33 for the diagnostic, 3 for `"a"`, 1 for the comma and 2 quotes.
    assert result.logs == ("a", "x" * 59)
    assert (tools.made, guest.sent) == ([], [])


@pytest.mark.contract("F45")
async def test_the_words_of_a_verdict_are_just_output(tools: Tools) -> None:
    """No text that a program writes marks an end, a cut or a call: those are not in the output."""
    written = (
        "outer output exceeded 10000 bytes",
        '["error","output-limit","outer output exceeded 10000 bytes"]',
        '{"type":"log","text":"x","truncated":true}',
        '[[1,"tools","echo",{"value":"forged"},1]]',
        "D\x02\x00\x00\x00[]",
    )

    async def act(guest: Guest) -> Ending:
        for line in written:
            guest.emit(f"{line}\n")
        guest.emit("after")
        return guest.complete('["value",1]')

    result, _guest = await supervise(tools, act)
    assert (result.error, result.value_json) == (None, "1")
    assert result.logs == (*written, "after")
    assert tools.made == []


# The end


@pytest.mark.contract("F22")
async def test_what_comes_first_is_the_outcome(tools: Tools) -> None:
    stop = Stop()

    async def act(guest: Guest) -> Ending:
        guest.emit("before")
        stop.press("first")
        assert guest.killed.is_set()
        guest.emit("x" * 100_000)
        assert guest.port is not None
        guest.port.submit("nonsense")
        return guest.complete('["value",1]')

    result, _guest = await supervise(tools, act, signal=stop)
    assert result.error == RunFailure(FailureKind.ABORT, "first")
    assert (result.logs, result.value_json) == (("before",), None)


@pytest.mark.contract("F22")
@pytest.mark.parametrize("ending", [Completion(value_json="1"), Exit("worker error: it died"), None])
async def test_a_signal_after_the_end_changes_nothing(tools: Tools, ending: Ending) -> None:
    stop = Stop()

    async def act(_guest: Guest) -> Ending:
        return ending

    budgets = RunLimits(
        compute_ms=1e4, max_wall_ms=1e4, max_output_bytes=1000, max_outstanding_calls=1, max_queued_bytes=1000
    )
    guest = Guest(act, budgets)
    supervisor = Supervisor(SandboxRequest(program="", signal=stop), budgets, guest)
    result = await supervisor.run()
    stop.press("too late")
    supervisor.end(FailureKind.TIMEOUT, "too late")
    assert (result.error is None) == (ending == Completion(value_json="1"))
    assert result.error is None or result.error.kind in ("worker-exit", "protocol")
    assert not guest.killed.is_set()


@pytest.mark.contract("F19", "F22", "F31")
@pytest.mark.parametrize(
    ("end", "limits", "failure"),
    [
        ("exit", {}, RunFailure(FailureKind.WORKER_EXIT, "worker exited with code 3 before completing")),
        ("wall", {"max_wall_ms": 30}, RunFailure(FailureKind.TIMEOUT, "wall-clock ceiling reached (30ms)")),
        ("busy", {"compute_ms": 30}, RunFailure(FailureKind.TIMEOUT, "compute budget exhausted (30ms busy)")),
        ("abort", {}, RunFailure(FailureKind.ABORT, "stop")),
    ],
)
async def test_every_end_keeps_what_was_written_and_is_counted(
    tools: Tools, end: str, limits: dict[str, float], failure: RunFailure
) -> None:
    for room in (0, -1):
        stop = Stop()

        async def act(guest: Guest) -> Ending:
            guest.emit("ab")
            if end == "exit":
                return Exit(failure.message)
            if end == "busy":
                assert guest.port is not None
                guest.port.started()
            if end == "abort":
                stop.press("stop")  # noqa: B023 - it is awaited in the same round
            await guest.killed.wait()
            return guest.complete('["value",1]')

        # ["ab"] has 6 bytes, and the message its quotes.
        cap = 6 + len(failure.message) + 2 + room
        result, _guest = await supervise(tools, act, signal=stop, max_output_bytes=cap, **limits)
        if room:
            assert result.error is not None
            assert result.error.kind is FailureKind.OUTPUT_LIMIT
            told = len(json.dumps(result.logs, separators=(",", ":"))) + len(json.dumps(result.error.message))
            assert told <= cap
        else:
            assert (result.error, result.logs) == (failure, ("ab",))
        assert result.value_json is None


@pytest.mark.contract("F17")
async def test_control_is_counted_over_all_its_stretches_and_waiting_is_not(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        assert guest.port is not None
        while not guest.killed.is_set():
            guest.port.started()
            await anyio.sleep(0.02)
            guest.port.waiting()
            await anyio.sleep(0.05)
        return None

    result, _guest = await supervise(tools, act, compute_ms=70)
    assert result.error == RunFailure(FailureKind.TIMEOUT, "compute budget exhausted (70ms busy)")
    assert 70 <= result.statistics.compute_ms < result.statistics.wall_ms - 100


@pytest.mark.contract("F17")
async def test_control_counts_while_calls_are_pending(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        assert guest.port is not None
        guest.port.started()
        guest.submit(call(1, member="stuck"))
        await guest.killed.wait()
        return None

    result, _guest = await supervise(tools, act, compute_ms=50)
    assert result.error == RunFailure(FailureKind.TIMEOUT, "compute budget exhausted (50ms busy)")
    assert len(tools.made) == 1


@pytest.mark.contract("F18")
async def test_the_wall_does_not_pause_while_the_program_waits(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        assert guest.port is not None
        guest.port.started()
        guest.submit(call(1, member="stuck"))
        guest.port.waiting()
        await guest.killed.wait()
        return None

    result, _guest = await supervise(tools, act, max_wall_ms=50, compute_ms=10_000)
    assert result.error == RunFailure(FailureKind.TIMEOUT, "wall-clock ceiling reached (50ms)")
    assert tools.cancelled == 1


@pytest.mark.contract("F23")
@pytest.mark.parametrize("cause", ["abort", "wall"])
async def test_a_run_settles_only_when_its_substrate_has_ended(tools: Tools, cause: str) -> None:
    stop, may_end = Stop(), anyio.Event()
    settled: list[SandboxResult] = []
    guests: list[Guest] = []

    async def act(guest: Guest) -> Ending:
        guests.append(guest)
        await may_end.wait()
        return guest.complete('["value",1]')

    async def go() -> None:
        result, _guest = await supervise(tools, act, signal=stop, max_wall_ms=20 if cause == "wall" else 20_000)
        settled.append(result)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        await turns()
        if cause == "abort":
            stop.press("stop")
        await guests[0].killed.wait()
        await turns()
        assert settled == []
        may_end.set()
    assert settled[0].error is not None
    assert settled[0].error.kind == ("timeout" if cause == "wall" else "abort")


@pytest.mark.contract("F23")
async def test_a_cancelled_host_still_waits_for_the_substrate(tools: Tools) -> None:
    may_end, ended = anyio.Event(), anyio.Event()
    guests: list[Guest] = []

    async def act(guest: Guest) -> Ending:
        guests.append(guest)
        await guest.killed.wait()
        await may_end.wait()
        ended.set()
        return None

    async with anyio.create_task_group() as tasks:

        async def go() -> None:
            with anyio.CancelScope() as scope:
                tasks.start_soon(cancel, scope)
                await supervise(tools, act)
            assert scope.cancelled_caught
            assert ended.is_set()

        async def cancel(scope: anyio.CancelScope) -> None:
            await turns()
            scope.cancel()
            await guests[0].killed.wait()
            await turns()
            assert not ended.is_set()
            may_end.set()

        tasks.start_soon(go)


class Later:
    """A deferred answer that a test gives whenever it likes."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[Any], object]] = []
        self.value: Any = None

    def add_done_callback(self, callback: Callable[[Any], object], /) -> object:
        return self.callbacks.append(callback)

    def result(self) -> Any:
        return self.value

    def give(self, value: Any) -> None:
        self.value = value
        for callback in self.callbacks:
            callback(self)


@pytest.mark.contract("F25", "F38")
async def test_the_end_of_a_run_settles_no_call_of_the_host_and_a_late_answer_goes_nowhere(tools: Tools) -> None:
    later = Later()

    async def act(guest: Guest) -> Ending:
        guest.submit(call(1, member="later"))
        await turns()
        return guest.complete('["value",1]')

    result, guest = await supervise(tools, act, functions={"later": lambda _call: later})
    assert (result.error, result.value_json, result.statistics.calls) == (None, "1", 1)
    assert (later.value, len(later.callbacks), guest.sent) == (None, 1, [])
    later.give("late")
    assert guest.sent == []


@pytest.mark.contract("F25")
async def test_work_that_a_binding_shields_is_finished_and_its_answer_goes_nowhere(tools: Tools) -> None:
    done: list[str] = []

    async def careful(_call: BindingCall) -> Any:
        with anyio.CancelScope(shield=True):
            await turns()
            done.append("written")
        return "late"

    async def act(guest: Guest) -> Ending:
        guest.submit(call(1, member="careful"))
        await checkpoint()
        await checkpoint()
        return guest.complete('["nothing"]')

    result, guest = await supervise(tools, act, functions={"careful": careful})
    assert (result.error, done, guest.sent) == (None, ["written"], [])


@pytest.mark.contract("F38")
@pytest.mark.parametrize("how", ["completed", "aborted", "exited"])
async def test_after_the_settlement_nothing_is_heard_and_nothing_is_said(tools: Tools, how: str) -> None:
    stop = Stop()

    async def act(guest: Guest) -> Ending:
        guest.submit(call(1, "in time"))
        guest.emit("in time\n")
        await turns()
        if how == "aborted":
            stop.press("stop")
        return Exit("worker error: gone") if how == "exited" else guest.complete('["value",1]')

    result, guest = await supervise(tools, act, signal=stop)
    before = (result.logs, result.value_json, result.error, list(guest.sent), tools.values)
    assert (result.logs, tools.values) == (("in time",), ["in time"])
    guest.submit(call(2, "late"), call(3, member="nobody"))
    guest.emit("late\n" * 10_000)
    assert guest.port is not None
    guest.port.submit("nonsense")
    guest.port.started()
    guest.port.taken()
    guest.port.waiting()
    await turns()
    assert (result.logs, result.value_json, result.error, guest.sent, tools.values) == before


@pytest.mark.contract("F38")
async def test_calls_that_were_queued_when_it_ended_are_not_made(tools: Tools) -> None:
    """A message of many calls is answered in several turns; its run may end between two of them."""

    async def act(guest: Guest) -> Ending:
        guest.submit(*(call(number, number) for number in range(1, 101)))
        return guest.complete('["nothing"]')

    result, guest = await supervise(tools, act)
    await turns()
    assert result.error is None
    assert len(tools.made) < 100
    assert len(guest.sent) <= len(tools.made)


@pytest.mark.contract("F21")
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("stop", "stop"),
        (None, "the run was aborted"),
        (ValueError("bad"), "bad"),
        (ValueError(), "ValueError"),
        (7, "7"),
        ("half \ud800", "half \\ud800"),
        (Unspeakable(), "the run was aborted"),
    ],
)
async def test_the_message_of_an_abort_is_its_reason(tools: Tools, before: bool, reason: object, message: str) -> None:
    stop = Stop()
    if before:
        stop.press(reason)

    async def act(guest: Guest) -> Ending:
        if not before:
            stop.press(reason)
        await guest.killed.wait()
        return None

    result, _guest = await supervise(tools, act, signal=stop)
    assert result.error == RunFailure(FailureKind.ABORT, message)
    assert stop._observers == []


@pytest.mark.contract("F34")
async def test_what_the_vehicle_itself_raises_is_raised_as_it_is(tools: Tools) -> None:
    """A fault of the host is no verdict on the program."""

    async def act(_guest: Guest) -> Ending:
        raise OSError("the host has no more descriptors")

    with pytest.raises(OSError, match="no more descriptors"):
        await supervise(tools, act)


@pytest.mark.contract("F34", "F38")
async def test_all_of_it_may_come_from_a_thread(tools: Tools) -> None:
    async def act(guest: Guest) -> Ending:
        def talk() -> None:
            assert guest.port is not None
            guest.port.started()
            guest.submit(call(1, "a"), "nonsense" and "[7]", call(2, "b"))
            guest.emit("from a thread\n")
            guest.port.waiting()
            guest.port.taken()

        await anyio.to_thread.run_sync(talk)
        await turns()
        return guest.complete('["value",1]')

    result, guest = await supervise(tools, act)
    assert (result.error, result.value_json, result.logs) == (None, "1", ("from a thread",))
    assert sorted(guest.replies) == [[1, True, "a"], [2, True, "b"]]
