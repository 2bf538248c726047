"""Lines over descriptors: whole, in order, of bounded length, and never in the way of an end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptc.runtime.serve import wire
from ptc.runtime.serve.wire import LineReader, LineWriter

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    source, sink = os.pipe()
    try:
        yield source, sink
    finally:
        for descriptor in (source, sink):
            try:
                os.close(descriptor)
            except OSError:
                assert descriptor == sink  # a test may have closed that end


async def lines(descriptor: int) -> list[str]:
    return [line async for line in LineReader(descriptor, lambda: None)]


async def test_lines_come_whole_and_the_last_one_needs_no_end(pipe: tuple[int, int]) -> None:
    source, sink = pipe
    os.write(sink, "eins\nzwö\n\n\r\nlast \xff".encode("latin-1"))
    os.close(sink)
    assert await lines(source) == ["eins", "zw\ufffd", "", "\r", "last \ufffd"]


async def test_a_line_may_come_in_pieces_and_be_longer_than_a_pipe(pipe: tuple[int, int]) -> None:
    source, sink = pipe
    text = "ü" * 300_000

    async def write() -> None:
        writer = LineWriter(sink)
        await writer.write(text + "\n")
        await writer.write("short\n")
        await writer.flush()
        os.close(sink)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        got = await lines(source)
    assert got == [text, "short"]


@given(pieces=st.lists(st.binary(max_size=20), max_size=20), limit=st.integers(min_value=1, max_value=12))
def test_lines_do_not_depend_on_the_pieces_that_they_come_in(pieces: list[bytes], limit: int) -> None:
    dropped: list[int] = []
    whole = b"".join(pieces)
    before, wire.MAX_LINE_BYTES = wire.MAX_LINE_BYTES, limit  # type: ignore[misc]
    try:
        reader = LineReader(0, lambda: dropped.append(1))
        for piece in (*[piece for piece in pieces if piece], b""):
            reader._take(piece)
    finally:
        wire.MAX_LINE_BYTES = before  # type: ignore[misc]
    *ended, rest = whole.split(b"\n")
    expected = [line for line in ended if len(line) <= limit] + ([rest] if 0 < len(rest) <= limit else [])
    assert list(reader._lines) == expected
    assert len(dropped) == sum(len(line) > limit for line in ended)


async def test_what_is_written_to_nobody_is_an_error(pipe: tuple[int, int]) -> None:
    source, sink = os.pipe()
    os.close(source)
    try:
        with pytest.raises(BrokenPipeError):
            await LineWriter(sink).write("text\n")
    finally:
        os.close(sink)


async def test_reading_and_writing_can_be_given_up(pipe: tuple[int, int]) -> None:
    source, sink = pipe
    with anyio.move_on_after(0.1) as reading:
        await lines(source)
    with anyio.move_on_after(0.1) as writing:
        await LineWriter(sink).write("x" * 10_000_000)
    assert reading.cancelled_caught
    assert writing.cancelled_caught


async def test_files_are_read_and_written_as_well() -> None:
    with tempfile.TemporaryFile() as file:
        await LineWriter(file.fileno()).write("one\ntwo\n")
        file.seek(0)
        assert await lines(file.fileno()) == ["one", "two"]
