"""Long messages of a program are read in pieces, and mean what they would mean if they were read at once."""

from __future__ import annotations

import json
import re
import sys
import tracemalloc

import anyio
import anyio.to_thread
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ptc.sandbox import jsonpieces, peer
from ptc.sandbox.guest.jsontext import MAX_VALUES, too_many_values
from ptc.sandbox.jsonpieces import MalformedError, TextReader, TooManyValuesError
from ptc.sandbox.peer import Completion, PeerCall, read_calls, read_completion
from ptc.sandbox.restricted.frames import EMIT_BYTES, FrameReader, frame
from ptc.sandbox.seam import FailureKind

MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
CAP = 1 << 24

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**40, -(10**300), 1e300, 5e-324, '"[{,', "\\", "\x00", "😀", "\ud800", "a\udc00b"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=5),
    max_leaves=40,
)
spellings = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:  ")])
odd = st.sampled_from(
    ["1e999", "9" * 290 + "e99", "-0", "NaN", "-Infinity", "1.", "01", "tru", '"\\x"', '"\\ud83d\\ude00"', '"\\ud83d"',
     '{"a":1,"a":2}', '{"a" 1}', "{1:2}", "[1,]", '{"a":1,}', "[,1]", "{,}", "[", "]", "{", "}", '"', "\x01", "[1 2]",
     "1e5", "-", "+1", '"\x01"', "[[[[[[1]]]]]]", '{"a":{"b":{"c":{"d":[[]]}}}}', ""]
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A JSON text, most often a well-formed one, sometimes with a part that is odd or lacks."""
    separators = draw(spellings)
    text = json.dumps(draw(values), ensure_ascii=draw(st.booleans()), separators=separators)
    text = draw(st.sampled_from(["{}", "[{}]", '{{"k":{}}}', "[[1],{},[2]]"])).format(text)
    match draw(st.integers(0, 5)):
        case 0:
            places = [one.start() for one in re.finditer(r"[\[,:]", text)] or [0]
            place = draw(st.sampled_from(places)) + 1
            return f"{text[:place]}{draw(odd)}{',' if draw(st.booleans()) else ''}{text[place:]}"
        case 1:
            return text[: draw(st.integers(0, len(text)))]
        case 2:
            place = draw(st.integers(0, len(text)))
            return text[:place] + draw(st.sampled_from(list('[]{}",:1e.\\ x'))) + text[place:]
        case _:
            return text


@pytest.fixture(params=[(1 << 14, 1 << 13), (700, 40), (400, 3)], ids=["pieces", "small pieces", "no glances"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that follows is read in pieces, however short it is."""
    monkeypatch.setattr(jsonpieces, "PIECE", request.param[0])
    monkeypatch.setattr(jsonpieces, "_GLANCE", request.param[1])


def in_pieces(text: str, *, completion: bool) -> Completion | list[PeerCall] | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peer, "IN_ONE_STEP", 1)
        if completion:
            return peer._read_long_completion(text)
        return read_calls(text)


def plainly(completion: Completion | None) -> object:
    """What a completion says, without how its value is spelled."""
    if completion is None or completion.value_json is None:
        return completion
    return json.dumps(json.loads(completion.value_json)), completion.kind, completion.message


@pytest.mark.contract("F34", "F39", "F47")
@pytest.mark.usefixtures("pieces")
@MANY
@given(texts())
def test_a_completion_means_the_same_in_pieces(text: str) -> None:
    for message in (f'["value",{text}]', f' [ "value" , {text} ] ', f'["value",{text}', text):
        assert plainly(in_pieces(message, completion=True)) == plainly(read_completion(message, CAP))  # type: ignore[arg-type]


@pytest.mark.contract("F34", "F37")
@pytest.mark.usefixtures("pieces")
@MANY
@given(st.lists(texts(), max_size=4), st.booleans())
def test_calls_mean_the_same_in_pieces(arguments: list[str], ends: bool) -> None:
    frames = [f'[{number},"tools","echo",{text},3]' for number, text in enumerate(arguments, 1)]
    # As a vehicle gives it, which has read it from UTF-8.
    message = ("[" + ",".join(frames) + "]" * ends).encode("utf-8", "replace").decode()
    assert in_pieces(message, completion=False) == read_calls(message)


@pytest.mark.contract("F39")
@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    "message",
    ['["nothing"]', '["error","exception","no"]', '["error","timeout","no"]', '["error","exception","\\ud800"]', "[]",
     "7", '"value"', '["value"]', '["value",1,2]', '{"value":1}', '["nothing",1]'],
)  # fmt: skip
def test_other_completions_mean_the_same_in_pieces(message: str) -> None:
    assert in_pieces(message, completion=True) == read_completion(message, CAP)


def test_a_value_that_is_announced_oddly_is_no_completion_when_it_is_long() -> None:
    text = "[" + "0," * 40_000 + "0]"
    assert read_completion(f'["val\\u0075e",{text}]', CAP) is None
    assert read_completion(f'["value",{text}]', CAP) == Completion(value_json=text)


# What is hostile


LONG = {
    "small values": "[" + "[0],{},0," * 50_000 + "0]",
    "one string": '"' + "[" * 4_000_000 + '"',
    "quotes": '"' + '\\"' * 2_000_000 + '"',
    "rows": "[" + '{"id":1,"tags":["a","b"],"at":{"lat":1.5,"all":[[1],[2]]}},' * 15_000 + "0]",
    "deep": "[" + "[[[[[[[[0]]]]]]]]," * 20_000 + "0]",
    "exponents": "[" + "1.5e300," * 100_000 + "0]",
    "chains": "[" + ("[" * 200 + "0" + ",0]" * 200 + ",") * 300 + "0]",
    "space": "[" + " " * 4_000_000 + "0]",
}
BROKEN = {
    "open": "[" * 4_000_000,
    "open objects": '{"a":' * 600_000,
    "digits": "[0." + "1" * 4_000_000 + "]",
    "late": "[" + "[0,0]," * 500_000 + "x]",
    "open string": '"' + "x" * 4_000_000,
    "chains": ("[" * 500 + "0" + ",0]" * 499 + ",") * 1_000,
}


@pytest.mark.contract("F34", "F39")
@pytest.mark.parametrize("name", LONG)
def test_a_long_value_stays_text_and_costs_little(name: str) -> None:
    """Objects of its millions of values would cost many times its text."""
    message = f'["value",{LONG[name]}]'
    tracemalloc.start()
    try:
        completion = read_completion(message, CAP)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert completion == Completion(value_json=LONG[name])
    assert peak < len(message) + (8 << 20)


@pytest.mark.contract("F34", "F39")
@pytest.mark.parametrize("name", BROKEN)
def test_a_long_text_that_is_no_json_is_no_message(name: str) -> None:
    assert read_completion(f'["value",{BROKEN[name]}]', CAP) is None
    assert read_calls(f'[[1,"tools","echo",{BROKEN[name]},1]]') is None


@pytest.mark.contract("F37", "F47")
@pytest.mark.parametrize("text", ["9" * 290 + "e99", "-1e0400", '"\\ud800"', '{"\\uDFFF":0}', '{"a":{"b":[[1e999]]}}'])
@pytest.mark.parametrize("before", ["", '"' + "x" * 100_000 + '",'])
def test_what_json_cannot_carry_is_refused_in_a_long_message_too(text: str, before: str) -> None:
    long = "[" + "0," * 40_000 + "0]"
    calls = read_calls(
        f'[[1,"tools","echo",{long},1],[2,"tools","echo",[{before}{text}],1],[3,"tools","echo",{long},1]]'
    )
    assert calls is not None
    assert [(call.call_id, call.refusal is None) for call in calls] == [(1, True), (2, False), (3, True)]
    completion = read_completion(f'["value",[{long},{before}{text}]]', CAP)
    assert completion is not None
    assert completion.kind is FailureKind.INVALID_OUTPUT


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("shape", ["[{}]", '["[[[,,,",{}]', "[[[[{}]]]]", '{{"a":[{}]}}'])
def test_values_are_counted_as_the_programs_side_counts_them(shape: str, over: int) -> None:
    around = shape.format("").replace("[[[,,,", "")
    marks = around.count("[") + around.count("{") + around.count(",")
    text = shape.format(",".join(["0"] * (MAX_VALUES - marks + 1 + over)))
    assert too_many_values(text) == bool(over)
    reader = TextReader(text, 0, build=False)
    if over:
        with pytest.raises(TooManyValuesError):
            reader.read()
    else:
        reader.read()
        reader.finish()


def test_levels_are_limited() -> None:
    def nested(levels: int) -> str:
        return "[" * levels + "0," * 40_000 + "0" + "]" * levels

    TextReader(nested(jsonpieces.MAX_DEPTH), 0, build=True).read()
    with pytest.raises(MalformedError):
        TextReader(nested(jsonpieces.MAX_DEPTH + 1), 0, build=True).read()


@pytest.mark.contract("F34")
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["small values", "rows", "exponents", "deep"])
async def test_other_threads_go_on_while_a_long_value_is_read(anyio_backend: str, name: str) -> None:
    """In one native step the event loop would get no turn; here it gets one whenever the interpreter is asked for.

    Two readings, so that the turns of a busy machine, too, are far more than those between the steps.
    """
    message = f'["value",{LONG[name]}]'
    turns = 0
    reading = True

    async def others() -> None:
        nonlocal turns
        while reading:
            await anyio.sleep(0.001)
            turns += 1

    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(others)
            for _ in range(2):
                completion = await anyio.to_thread.run_sync(read_completion, message, CAP)
                assert completion == Completion(value_json=LONG[name])
            reading = False
    finally:
        sys.setswitchinterval(before)
    assert turns > 10  # a reading in one step would leave a turn at its beginning and one at its end


@pytest.mark.contract("F34")
def test_a_long_frame_is_not_copied_more_than_it_must_be() -> None:
    """What is no UTF-8 does not grow to four times its size either: it cannot be JSON."""
    size = 4 << 20
    for data, text in ((b"x" * size, "x" * size), (b"\xff" * size, "")):
        sent = frame("D", "")[:1] + size.to_bytes(4, "little") + data
        reader = FrameReader({"D": size})
        tracemalloc.start()
        try:
            got = [
                one for start in range(0, len(sent), 1 << 16) for one in reader.feed(sent[start : start + (1 << 16)])
            ]
            _now, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert got == [("D", text)]
        assert peak < 3.5 * size
    short = b"\xff" * EMIT_BYTES
    assert list(FrameReader({"E": EMIT_BYTES}).feed(b"E" + EMIT_BYTES.to_bytes(4, "little") + short)) == [
        ("E", "\\xff" * EMIT_BYTES)
    ]


@pytest.mark.contract("F37")
def test_each_call_of_a_message_with_room_behind_it_is_judged_for_itself() -> None:
    message = '[[1,"t","m",[1e999],3],[2,"t","m",{},3],[3,"t","m",{"":"\\ud800"},3]' + "]" + " " * 70_000
    calls = read_calls(message)
    assert calls is not None
    assert [call.refusal is not None for call in calls] == [True, False, True]
