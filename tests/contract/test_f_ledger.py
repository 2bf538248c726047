"""What a run may hand out is counted as JSON text, and an overflow keeps the longest prefix (contract F27 to F33)."""

from __future__ import annotations

import json
import pickle
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptc.runtime.rendering import log_entries, render_outcome
from ptc.sandbox import ledger as ledgers
from ptc.sandbox import loglines
from ptc.sandbox.ledger import MAX_TUPLE_LINES, OutputLedger, json_string_size
from ptc.sandbox.loglines import LogLines, joined_lines
from ptc.sandbox.seam import FailureKind, RunFailure
from ptc.sandbox.supervisor import failed_before_start

characters = st.characters() | st.sampled_from('"\\\b\t\n\f\r\x00\x01\x1f\x7f\x80é日😀\ud800\udfff')
texts = st.text(characters, max_size=12)
lines = st.text(characters.filter(lambda one: one != "\n"), max_size=12)


def size_of(entries: list[str]) -> int:
    """Counts the bytes of a logs array as it would be written, with the escapes that JSON must have and no others."""
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
    return sum(6 if "\ud800" <= one <= "\udfff" else len(one.encode()) for one in text)


@pytest.mark.contract("F28")
@settings(max_examples=300, deadline=None)
@given(texts)
def test_a_string_is_counted_as_json_writes_it(text: str) -> None:
    assert json_string_size(text) == size_of([text]) - 2


@pytest.mark.contract("F27")
@given(st.integers(0, 9), st.integers(0, 3), st.booleans())
def test_a_text_of_many_pieces_gives_the_lines_that_it_has(around: int, after: int, ends: bool) -> None:
    line = "x" * ((1 << 16) - 5 + around)
    text = "\n".join([line, *["y"] * after, line]) + "\n" * ends
    ledger = OutputLedger(1 << 20)
    ledger.write(text)
    assert ledger.settle(0) == tuple(text.splitlines())


@pytest.mark.contract("F28")
@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 2), ("a", 3), ('"', 4), ("\\", 4), ("\b\t\n\f\r", 12), ("\x00", 8), ("\x1f", 8), ("\x0b", 8), ("\x7f", 3),
        ("\x80", 4), ("é", 4), ("日", 5), ("😀", 6), ("\ud800", 8), ("\ud800é\udfff", 16), ("/", 3),
    ],
)  # fmt: skip
def test_what_escapes_cost(text: str, size: int) -> None:
    assert json_string_size(text) == size


@pytest.mark.contract("F27", "F29")
@settings(max_examples=300, deadline=None)
@given(st.lists(lines, max_size=6), st.integers(0, 20), st.booleans(), st.data())
def test_exactly_the_cap_is_allowed_and_one_byte_over_is_not(
    entries: list[str], payload: int, ended: bool, data: st.DataObject
) -> None:
    text = "\n".join(entries) + ("\n" if ended and entries else "")
    if not ended and entries and not entries[-1]:
        entries = entries[:-1]  # a line that was begun with nothing is none
    needed = size_of(entries) + payload
    cap = max(4, needed + data.draw(st.integers(-3, 3)))
    cut = data.draw(st.integers(0, len(text)))
    ledger = OutputLedger(cap)
    ledger.write(text[:cut])
    ledger.write(text[cut:])
    assert ledger.settle(payload) == (tuple(entries) if needed <= cap else None)


@pytest.mark.contract("F30")
@settings(max_examples=300, deadline=None)
@given(st.lists(lines.filter(bool), min_size=1, max_size=8), st.integers(4, 120), st.data())
def test_an_overflow_keeps_the_longest_prefix_beside_the_diagnostic(
    entries: list[str], cap: int, data: st.DataObject
) -> None:
    text = "\n".join(entries)
    # The last entry makes it too much, whatever came before.
    text += "x" * cap
    entries[-1] += "x" * cap
    ledger = OutputLedger(cap)
    cut = data.draw(st.integers(0, len(text)))
    ledger.write(text[:cut])
    ledger.write(text[cut:])
    assert ledger.settle(0) is None
    kept, message = ledger.overflow()

    full = f"outer output exceeded {cap} bytes"
    assert full.startswith(message)
    assert message == full or json_string_size(message + full[len(message)]) + 2 > cap
    room = cap - json_string_size(message)
    assert size_of(list(kept)) <= room
    whole = len(kept) if list(kept) == entries[: len(kept)] else len(kept) - 1
    assert list(kept[:whole]) == entries[:whole]
    # One character more of the first entry that does not fit would not have fitted.
    prefix = kept[whole] if whole < len(kept) else ""
    assert whole < len(kept) or not prefix
    assert entries[whole].startswith(prefix)
    assert size_of([*entries[:whole], prefix + entries[whole][len(prefix)]]) > room


@pytest.mark.contract("F30")
def test_nothing_is_kept_of_what_comes_after_the_entry_that_did_not_fit() -> None:
    ledger = OutputLedger(60)
    ledger.write("one\n" + "😀" * 20 + "\nx\ny\n")
    kept, message = ledger.overflow()
    # 60, less 2 for the array, 32 for the diagnostic, 5 for `"one"`, 1 for the comma, and 2 quotes: 18 are left.
    assert (kept, message) == (("one", "😀" * 4), "outer output exceeded 60 bytes")


@pytest.mark.contract("F30")
def test_a_prefix_of_nothing_is_dropped() -> None:
    ledger = OutputLedger(43)
    ledger.write("one\n😀\nx\n" + "x" * 100)
    # 43, less 2, 32 and 5: 4 are left, which is no room for one character of four bytes in its quotes.
    assert ledger.overflow() == (("one",), "outer output exceeded 43 bytes")


@pytest.mark.contract("F30")
def test_a_diagnostic_that_does_not_fit_is_cut_off() -> None:
    for cap in range(4, 40):
        ledger = OutputLedger(cap)
        ledger.write("x" * 50)
        kept, message = ledger.overflow()
        assert message == f"outer output exceeded {cap} bytes"[: cap - 4]
        assert size_of(list(kept)) + json_string_size(message) <= cap


@pytest.mark.contract("F31")
def test_a_failure_before_anything_is_started_is_counted_as_well() -> None:
    failure = RunFailure(FailureKind.ABORT, "x" * 30)
    assert failed_before_start(failure, 34).error == failure
    over = failed_before_start(failure, 33)
    assert over.error == RunFailure(FailureKind.OUTPUT_LIMIT, "outer output exceeded 33 bytes"[:29])
    assert (over.logs, over.value_json) == ((), None)


@pytest.mark.contract("F33")
def test_what_comes_after_the_overflow_is_not_kept() -> None:
    """However long a flood goes on, one byte over the cap is all that is ever held."""
    ledger = OutputLedger(100)
    ledger.write("x" * 1_000_000)
    assert ledger.overflowed
    ledger.write("\nafter\n")
    kept, _message = ledger.overflow()
    assert set("".join(kept)) == {"x"}
    assert len(ledger._data) <= 100


@pytest.mark.contract("F28", "F31")
@pytest.mark.parametrize("line", ["", '"' * 10, "\x00", "\ud800", "é"])
def test_an_overflow_is_seen_at_the_line_that_makes_it_though_the_text_is_short(line: str) -> None:
    """Quotes, commas and escapes count when a line is written, and not first when the run ends."""
    ledger = OutputLedger(100)
    used = 2
    for number in range(100):
        used += json_string_size(line) + (1 if number else 0)
        ledger.write(f"{line}\n")
        assert ledger.overflowed == (used > 100)


# Many lines


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is taken a few bytes at a time, and more than a few lines are too many for a tuple."""
    monkeypatch.setattr(ledgers, "_PIECE", 5)
    monkeypatch.setattr(ledgers, "MAX_TUPLE_LINES", 3)
    monkeypatch.setattr(loglines, "_PIECE", 7)


@pytest.mark.contract("F27", "F29", "F30")
@pytest.mark.usefixtures("small_pieces")
def test_nothing_changes_where_a_piece_ends() -> None:
    """The rules hold as well where texts have many pieces and lines are made as they are read."""
    test_exactly_the_cap_is_allowed_and_one_byte_over_is_not()
    test_an_overflow_keeps_the_longest_prefix_beside_the_diagnostic()
    test_a_string_is_counted_as_json_writes_it()


@pytest.mark.contract("F27", "F30", "F31")
@pytest.mark.parametrize("line", ["", "ab", "é", '"', "x" * 70_000])
def test_a_cap_full_of_lines_costs_the_host_little_more_than_the_cap(line: str) -> None:
    """Each entry as an object of its own would cost up to thirty times its text."""
    cap = 4 << 20
    wrote = max(1, (1 << 16) // (len(line) + 1)) * f"{line}\n"
    tracemalloc.start()
    try:
        ledger = OutputLedger(cap)
        while not ledger.overflowed:
            ledger.write(wrote)
        kept, message = ledger.overflow()
        _now, peak = tracemalloc.get_traced_memory()
        text = render_outcome(log_entries(kept), None)
        _now, rendered = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * cap
    assert rendered < 6 * cap
    assert text == joined_lines(kept) == "\n".join(kept)
    # As many whole lines as there is room for, and no more.
    each = json_string_size(line) + 1
    room = cap - json_string_size(message) - 1
    assert list(kept[: room // each]) == [line] * (room // each)
    assert len(kept) - room // each in (0, 1)


@pytest.mark.contract("F27")
def test_a_cap_full_of_single_writes_costs_little_as_well() -> None:
    tracemalloc.start()
    try:
        ledger = OutputLedger(1 << 20)
        for _ in range(150_000):
            ledger.write("ab\n")
        logs = ledger.settle(0)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(logs, LogLines)
    assert (len(logs), logs[0], logs[-1]) == (150_000, "ab", "ab")
    assert peak < 2 << 20


@pytest.mark.contract("F38")
def test_lines_that_were_handed_out_do_not_change_any_more() -> None:
    ledger = OutputLedger(1 << 20)
    ledger.write("a\n" * (MAX_TUPLE_LINES + 1))
    logs = ledger.settle(0)
    assert logs is not None
    before = len(logs)
    ledger.write("late\n")
    assert (len(logs), logs[-1], joined_lines(logs)[-3:]) == (before, "a", "a\na")


@settings(max_examples=200, deadline=None)
@given(st.lists(lines, max_size=30), st.data())
def test_lines_that_are_made_as_they_are_read_are_those_of_a_tuple(entries: list[str], data: st.DataObject) -> None:
    many = LogLines("".join(f"{one}\n" for one in entries).encode("utf-8", "surrogatepass"))
    plain = tuple(entries)
    assert many == plain
    assert plain == many
    assert hash(many) == hash(plain)
    assert (tuple(many), len(many), bool(many)) == (plain, len(plain), bool(plain))
    assert many != (*plain, "x")
    assert many != (*plain[:-1], "another")
    assert many != entries
    assert pickle.loads(pickle.dumps(many)) == many
    start, stop, step = (data.draw(st.none() | st.integers(-35, 35)) for _ in range(3))
    assert many[start : stop : step or None] == plain[start : stop : step or None]
    for index in range(-len(plain), len(plain)):
        assert many[index] == plain[index]
    for index in (len(plain), -len(plain) - 1):
        with pytest.raises(IndexError):
            many[index]
    assert "\n".join(log_entries(many)) == joined_lines(many) == "\n".join(plain)
    assert len(repr(LogLines(b"x\n" * 1000))) < 200


def test_lines_need_an_end_each() -> None:
    with pytest.raises(ValueError, match="no end"):
        LogLines(b"one\ntwo")
