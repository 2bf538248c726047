"""The guest knows what its host takes: it never sends too much, and what would be fails inside the program."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptc.sandbox.guest.jsontext import MAX_VALUES, encode, exceeds, too_many_values
from ptc.sandbox.guest.loop import GuestLoop
from ptc.sandbox.peer import read_calls, read_completion
from ptc.sandbox.seam import BindingCall, FailureKind, JsonValue, Member, Namespace, SandboxRequest
from ptc.sandbox.wasm import WasmSandbox

TARGET = '"tools","echo"'
MOST_CALLS = 500


class Sent:
    """A channel that keeps what is sent, and answers what it is told to answer."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def submit(self, calls: str) -> None:
        self.messages.append(calls)

    def wait(self, timeout_us: int) -> str:
        ids = [call[0] for message in self.messages for call in json.loads(message)]
        return json.dumps([[call_id, True, None] for call_id in ids])

    def emit(self, text: str) -> None:
        raise AssertionError(text)


def make_loop(channel: Sent, most_bytes: int) -> GuestLoop:
    loop = GuestLoop(channel, most_bytes)
    loop._closed = True  # type: ignore[attr-defined] - it has nothing to close, and does not warn of that
    return loop


def submit(loop: GuestLoop, arguments: str) -> str | None:
    """Makes a call; returns why it was refused, `None` when it was not."""
    settled = loop.submit(TARGET, arguments, "tools.echo(...)", 7)
    if not settled.done():
        return None
    result: Any = settled.result()
    assert result[0] is False
    return result[1]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 700) | st.integers(1, 40), max_size=60), st.sampled_from(["x", "é", "日", "😀", ","]))
def test_what_goes_out_at_once_is_never_more_than_the_limit(sizes: list[int], char: str) -> None:
    """The host counts whole messages, and each character as one or more; the guest must never count less."""
    channel = Sent()
    loop = make_loop(channel, 2_000)
    refused = [submit(loop, json.dumps(char * size, ensure_ascii=False)) for size in sizes]
    loop.flush()
    assert sum(len(message.encode()) for message in channel.messages) <= 2_000
    sent = [call for message in channel.messages for call in json.loads(message)]
    assert [call[0] for call in sent] == list(range(1, len(sent) + 1))
    assert len(sent) == refused.count(None)


def test_the_limit_itself_is_allowed_and_one_byte_more_is_not() -> None:
    call = f'[1,{TARGET},"é",7]'
    size = len(f"[{call}]".encode())
    assert submit(make_loop(Sent(), size), '"é"') is None
    assert submit(make_loop(Sent(), size - 1), '"é"') == (
        f"the arguments of tools.echo(...) are too large: the call takes {size} bytes, and {size - 1} may be "
        "unanswered at once; send less, or in parts"
    )


def test_a_refusal_says_what_is_held_and_what_to_do_and_answers_make_room() -> None:
    channel = Sent()
    loop = make_loop(channel, 5_000)
    text = json.dumps("x" * 2_000)
    assert [submit(loop, text), submit(loop, text)] == [None, None]
    assert submit(loop, text) == (
        "tools.echo(...) takes 2,025 bytes, unanswered calls hold 4,050, and 5,000 may be unanswered at once; await "
        "some of them first"
    )
    loop._run_once()
    assert [submit(loop, text), submit(loop, text), submit(loop, text) is None] == [None, None, False]


def test_a_call_of_too_many_values_is_refused_where_the_host_would_not_read_it() -> None:
    loop = make_loop(Sent(), 16 << 20)
    around = len(f"[[1,{TARGET},[") - len(f"[[1,{TARGET},[".translate(str.maketrans("", "", "[,"))) + 1
    full = "[" + "0," * (MAX_VALUES - around) + "0]"
    assert read_calls(f"[[1,{TARGET},{full},7]]") is not None
    assert submit(loop, full) is None
    more = full.replace("[", "[0,")
    assert read_calls(f"[[1,{TARGET},{more},7]]") is None
    assert submit(loop, more) == "the arguments of tools.echo(...) hold more than 2,000,000 values; send them in parts"


def test_commas_in_texts_are_no_values() -> None:
    text = json.dumps(['a,"\\' * (MAX_VALUES + 1), "\\"])
    assert not too_many_values(text)
    assert read_calls(f"[[1,{TARGET},{text},7]]") is not None
    completion = read_completion(f'["value",{text}]', 64 << 20)
    assert completion is not None
    assert completion.kind is None


@pytest.mark.parametrize("one", ["[" * 200 + "]" * 200, '{"a":' * 200 + "0" + "}" * 200])
def test_values_inside_one_another_count_like_values_side_by_side(one: str) -> None:
    within = MAX_VALUES // 201 - 10  # each with its comma
    fits = f"[[1,{TARGET},[{','.join([one] * within)}],7]]"
    assert not too_many_values(fits)
    more = f"[{','.join([one] * (within + 20))}]"
    assert read_calls(f"[[1,{TARGET},{more},7]]") is None
    completion = read_completion(f'["value",{more}]', 64 << 20)
    assert completion is not None
    assert completion.kind is FailureKind.INVALID_OUTPUT


def test_a_result_of_too_many_values_is_no_output_and_says_so() -> None:
    completion = read_completion('["value",[' + "0," * MAX_VALUES + "0]]", 64 << 20)
    assert completion is not None
    assert completion.kind is FailureKind.INVALID_OUTPUT
    assert "more than 2,000,000 values" in completion.message


def test_many_and_large_calls_go_out_in_parts() -> None:
    channel = Sent()
    loop = make_loop(channel, 16 << 20)
    for size in [1] * (MOST_CALLS + 1) + [900_000, 900_000, 3_000_000, 1]:
        assert submit(loop, json.dumps("x" * size)) is None
    loop.flush()
    lengths = [len(json.loads(message)) for message in channel.messages]
    assert lengths == [MOST_CALLS, 2, 1, 1, 1]
    assert [call[0] for message in channel.messages for call in json.loads(message)] == list(range(1, MOST_CALLS + 6))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@pytest.mark.contract("F47")
@settings(max_examples=300, deadline=None)
@given(values, st.integers(0, 60))
def test_a_value_that_fits_is_never_taken_for_one_that_does_not(value: Any, slack: int) -> None:
    assert not exceeds(value, len(encode(value, "value").encode()) + slack)


class Liar(list):
    def __len__(self) -> int:
        raise AssertionError

    __iter__ = __bool__ = __len__  # type: ignore[assignment]


@pytest.mark.contract("F47")
def test_far_too_large_is_seen_in_every_part_and_loops_are_no_size() -> None:
    loop: list[Any] = []
    loop.append(loop)
    for value in (
        "x" * 1_000,
        ["x" * 400] * 3,
        {"x" * 1_000: 1},
        {"k": ("x" * 1_000,)},
        [0] * 600,
        Liar(["x" * 1_000]),
    ):
        assert exceeds(value, 1_000)
    assert exceeds([{1, 2}, "x" * 1_000], 1_000)
    assert not exceeds([loop, 1], 1_000)
    assert not exceeds(object(), 1_000)


async def never(call: BindingCall) -> JsonValue:
    raise AssertionError(call)


@pytest.mark.anyio
async def test_a_guest_that_sends_more_all_the_same_ends_as_protocol() -> None:
    async with WasmSandbox(max_queued_bytes=100_000) as sandbox:
        program = (
            "import asyncio\nasyncio.get_event_loop()._most_bytes = 1 << 40\nawait tools.echo(value='x' * 200_000)"
        )
        result = await sandbox.run(
            SandboxRequest(program=program, namespaces=[Namespace("tools", {"echo": Member(never)})])
        )
    assert result.error is not None
    assert result.error.kind == "protocol"
    assert "more than 100000 bytes of calls" in result.error.message
