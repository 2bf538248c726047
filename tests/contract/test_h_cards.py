"""What a card may say, and how it looks on the wire (contract H1 to H4, H8, H9)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from ptc.registry import (
    CallCard,
    DiffCallCard,
    DiffResultCard,
    FileDiff,
    GenericCallCard,
    GenericResultCard,
    Location,
    NumberedLine,
    ReadCard,
    ResultCard,
    SearchFile,
    SearchMatch,
    SearchMatchesCard,
    SearchPathsCard,
    TerminalCallCard,
    TerminalResultCard,
    WebFetchCard,
    WebSearchCard,
    WebSource,
    materialise,
    text_block,
)
from ptc.registry.cards import as_call_card, as_result_card, card_problems
from pydantic import TypeAdapter, ValidationError

TEXT = [{"type": "text", "text": "é"}]
DIFF = {"path": "a.py", "oldText": "1", "newText": "2"}
NEW_FILE = {"path": "b.py", "oldText": None, "newText": ""}

# Each with every key that it may have, and then with those alone that it must have.
CALLS: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (
        GenericCallCard(
            title="Move", kind="move", raw_input={"a": [1]}, content=[text_block("é")],
            locations=[Location(path="a", line=3)],
        ),
        {"view": "generic", "title": "Move", "kind": "move", "rawInput": {"a": [1]}, "content": TEXT,
         "locations": [{"path": "a", "line": 3}]},
        {"view": "generic", "title": "Move", "kind": "other"},
    ),
    (
        TerminalCallCard(title="ls", description="Lists", cwd="/tmp"),
        {"view": "terminal", "title": "ls", "description": "Lists", "cwd": "/tmp"},
        {"view": "terminal", "title": "ls"},
    ),
    (
        DiffCallCard(
            title="Edit",
            diffs=[
                FileDiff(path="a.py", old_text="1", new_text="2"),
                FileDiff(path="b.py", old_text=None, new_text=""),
            ],
            locations=[Location(path="a.py")],
        ),
        {"view": "diff", "title": "Edit", "diffs": [DIFF, NEW_FILE], "locations": [{"path": "a.py"}]},
        {"view": "diff", "title": "Edit", "diffs": []},
    ),
]  # fmt: skip
RESULTS: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (
        GenericResultCard(title="Done", content=[text_block("é")]),
        {"view": "generic", "title": "Done", "content": TEXT},
        {"view": "generic"},
    ),
    (
        TerminalResultCard(title="ls", output="a\n", exit_code=0),
        {"view": "terminal", "title": "ls", "output": "a\n", "exitCode": 0},
        {"view": "terminal"},
    ),
    (
        TerminalResultCard(signal="SIGKILL"),
        {"view": "terminal", "signal": "SIGKILL"},
        {"view": "terminal"},
    ),
    (
        DiffResultCard(title="Edited", diffs=[FileDiff(path="a.py", old_text="1", new_text="2")]),
        {"view": "diff", "title": "Edited", "diffs": [DIFF]},
        {"view": "diff", "diffs": []},
    ),
    (
        SearchMatchesCard(
            title="todo",
            files=[SearchFile(path="a.py", matches=[SearchMatch(line_number=7, line="# todo")])],
            truncated=True,
            total=9,
        ),
        {"view": "search", "shape": "matches", "title": "todo", "truncated": True, "total": 9,
         "files": [{"path": "a.py", "matches": [{"lineNumber": 7, "line": "# todo"}]}]},
        {"view": "search", "shape": "matches", "files": [], "truncated": False, "total": 0},
    ),
    (
        SearchPathsCard(title="*.py", paths=["a.py"], truncated=False, total=1),
        {"view": "search", "shape": "paths", "title": "*.py", "paths": ["a.py"], "truncated": False, "total": 1},
        {"view": "search", "shape": "paths", "paths": [], "truncated": False, "total": 0},
    ),
    (
        ReadCard(
            title="a.py", path="a.py", offset=2, lines=[NumberedLine(number=2, text="x")], total_lines=2, lang="python",
            content=[text_block("é")],
        ),
        {"view": "read", "title": "a.py", "path": "a.py", "offset": 2, "lines": [{"number": 2, "text": "x"}],
         "totalLines": 2, "lang": "python", "content": TEXT},
        {"view": "read", "path": "a.py", "offset": 1, "lines": [], "totalLines": 0},
    ),
    (
        WebSearchCard(
            title="weather",
            sources=[WebSource(url="https://a.example", title="A", snippet="s", published_at="2026-01-01")],
            answer="rain",
            truncated=False,
        ),
        {"view": "web", "kind": "search", "title": "weather", "answer": "rain", "truncated": False,
         "sources": [{"url": "https://a.example", "title": "A", "snippet": "s", "publishedAt": "2026-01-01"}]},
        {"view": "web", "kind": "search", "sources": [], "truncated": False},
    ),
    (
        WebFetchCard(title="A", url="https://a.example", status_code=404, truncated=True),
        {"view": "web", "kind": "fetch", "title": "A", "url": "https://a.example", "statusCode": 404,
         "truncated": True},
        {"view": "web", "kind": "fetch", "url": "https://a.example", "statusCode": 200, "truncated": False},
    ),
]  # fmt: skip

BOTH = pytest.mark.parametrize(
    ("read", "union", "rows"),
    [
        pytest.param(as_call_card, CallCard, CALLS, marks=pytest.mark.contract("H1", "H3", "H4")),
        pytest.param(as_result_card, ResultCard, RESULTS, marks=pytest.mark.contract("H2", "H4")),
    ],
    ids=["call", "result"],
)


def refused(read: Any, wire: object) -> str:
    """Returns what is said of something that is no card."""
    with pytest.raises(ValidationError) as caught:
        read(wire)
    return card_problems(caught.value)


@BOTH
def test_every_card_looks_on_the_wire_as_the_contract_says(read: Any, union: Any, rows: Any) -> None:
    for card, wire, least in rows:
        assert card.to_wire() == wire
        assert card.model_dump() == wire
        assert json.loads(card.model_dump_json()) == wire
        assert json.loads(json.dumps(card.to_wire())) == wire
        assert read(least).to_wire() == least


@BOTH
def test_every_card_is_read_back_from_the_wire(read: Any, union: Any, rows: Any) -> None:
    for card, wire, _least in rows:
        for back in (
            read(wire),
            read(materialise(wire)),
            read(card),
            TypeAdapter(union).validate_json(json.dumps(wire)),
        ):
            assert back == card
            assert type(back) is type(card)


@BOTH
def test_a_mapping_may_have_pythons_spelling(read: Any, union: Any, rows: Any) -> None:
    for card, _wire, _least in rows:
        members = {name: value for name in type(card).model_fields if (value := getattr(card, name)) is not None}
        assert read(members) == card


@BOTH
def test_what_a_card_must_say_cannot_be_left_out(read: Any, union: Any, rows: Any) -> None:
    for _card, _wire, least in rows:
        for key in least.keys() - {"view", "shape", "kind"}:
            assert "Field required" in refused(read, {name: value for name, value in least.items() if name != key})


@BOTH
def test_a_card_says_nothing_that_the_wire_does_not_know(read: Any, union: Any, rows: Any) -> None:
    for _card, wire, _least in rows:
        assert "extra: Extra inputs are not permitted" in refused(read, {**wire, "extra": 1})


@BOTH
def test_a_card_without_a_known_view_is_none(read: Any, union: Any, rows: Any) -> None:
    for wrong in (
        {"title": "x"},
        {"view": "chart", "title": "x"},
        {"view": None, "title": "x"},
        "generic",
        [],
        1,
        True,
    ):
        with pytest.raises(ValidationError):
            read(wrong)


@pytest.mark.contract("H8")
@pytest.mark.parametrize("wire", [wire for _card, wire, _least in RESULTS if wire["view"] in ("search", "web", "read")])
def test_what_only_a_result_has_no_pending_call_has(wire: dict[str, Any]) -> None:
    assert "does not match any of the expected tags" in refused(as_call_card, wire)
    with pytest.raises(ValidationError):
        as_call_card(as_result_card(wire))


@pytest.mark.contract("H1", "H2")
def test_a_pending_card_is_no_result_and_a_result_no_pending_card() -> None:
    for card, _wire, _least in CALLS:
        with pytest.raises(ValidationError):
            as_result_card(card)
    for card, _wire, _least in RESULTS:
        with pytest.raises(ValidationError):
            as_call_card(card)


@pytest.mark.contract("H9")
@pytest.mark.parametrize("wire", [wire for _card, wire, _least in RESULTS if wire["view"] in ("search", "web")])
def test_search_and_web_have_no_copy_of_the_content(wire: dict[str, Any]) -> None:
    assert "content: Extra inputs are not permitted" in refused(as_result_card, {**wire, "content": TEXT})


@pytest.mark.contract("H2")
def test_a_command_ends_with_a_code_or_by_a_signal() -> None:
    both = {"view": "terminal", "exitCode": 1, "signal": "SIGTERM"}
    assert "so give only one of them" in refused(as_result_card, both)
    with pytest.raises(ValidationError, match="give only one of them"):
        TerminalResultCard(exit_code=0, signal="SIGTERM")
    assert as_result_card({"view": "terminal", "exitCode": -9}).to_wire() == {"view": "terminal", "exitCode": -9}


@pytest.mark.contract("H3")
def test_the_kinds_are_these_and_other_is_the_default() -> None:
    for kind in ("read", "edit", "delete", "move", "search", "execute", "fetch", "other"):
        assert as_call_card({"view": "generic", "title": "x", "kind": kind}).to_wire()["kind"] == kind
    assert "kind" in refused(as_call_card, {"view": "generic", "title": "x", "kind": "write"})
    assert GenericCallCard(title="x").kind == "other"


@pytest.mark.contract("H4")
def test_the_text_before_a_change_is_null_or_text_and_never_left_out() -> None:
    assert FileDiff(path="a", old_text=None, new_text="").to_wire() == {"path": "a", "oldText": None, "newText": ""}
    without = {"view": "diff", "title": "x", "diffs": [{"path": "a", "newText": ""}]}
    assert "oldText: Field required" in refused(as_call_card, without)


@pytest.mark.contract("H4")
@pytest.mark.parametrize("number", [0, -1, True, 1.0, "1", None])
def test_lines_are_counted_from_1(number: Any) -> None:
    read = {"view": "read", "path": "a", "offset": 1, "lines": [], "totalLines": 1}
    refused(as_result_card, {**read, "offset": number})
    refused(as_result_card, {**read, "lines": [{"number": number, "text": ""}]})
    files = [{"path": "a", "matches": [{"lineNumber": number, "line": ""}]}]
    refused(as_result_card, {"view": "search", "shape": "matches", "files": files, "truncated": False, "total": 1})
    if number is not None:
        refused(as_call_card, {"view": "generic", "title": "x", "locations": [{"path": "a", "line": number}]})


@pytest.mark.contract("H4")
def test_the_offset_is_what_was_asked_for_although_there_are_no_lines() -> None:
    beyond = ReadCard(path="a", offset=500, lines=[], total_lines=20)
    assert beyond.to_wire() == {"view": "read", "path": "a", "offset": 500, "lines": [], "totalLines": 20}


@pytest.mark.contract("H2")
def test_counts_are_not_negative_and_a_status_has_three_digits() -> None:
    refused(as_result_card, {"view": "search", "shape": "paths", "paths": [], "truncated": False, "total": -1})
    refused(as_result_card, {"view": "read", "path": "a", "offset": 1, "lines": [], "totalLines": -1})
    fetched = {"view": "web", "kind": "fetch", "url": "https://a.example", "truncated": False}
    for status in (0, 99, 1000, "200"):
        refused(as_result_card, {**fetched, "statusCode": status})


@pytest.mark.contract("H1", "H4")
def test_paths_and_addresses_are_not_empty() -> None:
    for make in (
        lambda: Location(path=""),
        lambda: FileDiff(path="", old_text=None, new_text=""),
        lambda: SearchFile(path="", matches=[]),
        lambda: SearchPathsCard(paths=[""], truncated=False, total=1),
        lambda: ReadCard(path="", offset=1, lines=[], total_lines=0),
        lambda: WebSource(url=""),
        lambda: WebFetchCard(url="", status_code=200, truncated=False),
    ):
        with pytest.raises(ValidationError, match="at least 1 character"):
            make()


@pytest.mark.contract("H1", "H2")
def test_several_are_a_list_and_no_text() -> None:
    refused(as_result_card, {"view": "search", "shape": "paths", "paths": "abc", "truncated": False, "total": 3})
    refused(as_call_card, {"view": "diff", "title": "x", "diffs": DIFF})
    card = SearchPathsCard(paths=["a"], truncated=False, total=1)
    assert card.paths == ("a",)


@pytest.mark.contract("H1")
def test_null_input_is_shown_and_absent_input_is_not() -> None:
    assert GenericCallCard(title="x", raw_input=None).to_wire() == {
        "view": "generic", "title": "x", "kind": "other", "rawInput": None,
    }  # fmt: skip
    assert "rawInput" not in GenericCallCard(title="x").to_wire()
    assert as_call_card({"view": "generic", "title": "x", "rawInput": None}).model_dump()["rawInput"] is None


@pytest.mark.contract("H1")
def test_input_is_lossless_json_of_at_least_200_levels() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    card = GenericCallCard(title="x", raw_input=deep)
    assert card.to_wire()["rawInput"] == deep
    assert json.loads(card.model_dump_json())["rawInput"] == deep
    for lossy in (float("nan"), {1: 2}, {"a": {1}}, "\ud800"):
        with pytest.raises(ValidationError, match="raw_input"):
            GenericCallCard(title="x", raw_input=lossy)  # type: ignore[arg-type]


@pytest.mark.contract("H1", "H2")
def test_content_is_a_list_of_content_blocks() -> None:
    for content in ([{"type": "text"}], [{"text": "x"}], ["x"], "x", {"type": "text", "text": "x"}):
        refused(as_result_card, {"view": "generic", "content": content})
        refused(as_call_card, {"view": "generic", "title": "x", "content": content})
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert as_result_card({"view": "generic", "content": [image]}).to_wire() == {"view": "generic", "content": [image]}


@pytest.mark.contract("H1", "H2")
def test_text_that_utf8_cannot_carry_is_refused() -> None:
    assert "surrogate pair" in refused(as_call_card, {"view": "terminal", "title": "\ud800"})
    assert "surrogate pair" in refused(as_result_card, {"view": "terminal", "output": "\udfff"})


@pytest.mark.contract("H5")
def test_nothing_of_a_card_can_change() -> None:
    given = {"a": [1]}
    blocks = [text_block("x")]
    places = [Location(path="a")]
    card = GenericCallCard(title="x", raw_input=given, content=blocks, locations=places)
    given["a"].append(2)
    blocks.append(text_block("y"))
    places.clear()
    assert card.to_wire() == {
        "view": "generic", "title": "x", "kind": "other", "rawInput": {"a": [1]},
        "content": [{"type": "text", "text": "x"}], "locations": [{"path": "a"}],
    }  # fmt: skip
    frozen: Any = card
    with pytest.raises(ValidationError, match="frozen"):
        frozen.title = "y"
    with pytest.raises(TypeError, match="frozen"):
        frozen.raw_input["a"].append(2)
    with pytest.raises(TypeError, match="frozen"):
        frozen.content[0]["text"] = "y"
    assert isinstance(frozen.locations, tuple)
    with pytest.raises(ValidationError, match="frozen"):
        frozen.locations[0].path = "b"
    wire = card.to_wire()
    wire["rawInput"]["a"].append(2)
    wire["content"].clear()
    assert card.to_wire()["rawInput"] == {"a": [1]}
    assert len(card.to_wire()["content"]) == 1


@pytest.mark.contract("H1")
def test_a_card_that_was_made_without_checks_is_checked_when_it_is_shown() -> None:
    unchecked = GenericCallCard.model_construct(title=5)
    assert "title" in refused(as_call_card, unchecked)

    class Chart(GenericCallCard):
        points: int = 3

    assert "points: Extra inputs are not permitted" in refused(as_call_card, Chart(title="x"))


@pytest.mark.contract("H7")
def test_what_is_wrong_is_told_in_one_short_line() -> None:
    many = {"view": "diff", "title": "x", "diffs": [{}] * 1000}
    told = refused(as_call_card, many)
    assert told.startswith("diff.diffs.0.path: Field required; ")
    assert told.endswith("; and 2995 more")
    foreign = "a\n\u202e" + "b" * 999
    for odd in ({"view": "terminal", "title": "x", foreign: 1}, {"view": foreign}):
        told = refused(as_call_card, odd)
        assert "a\\n\\u202ebbb" in told
        assert told.isprintable()
        assert len(told) < 300
    assert "unicode" in refused(as_call_card, {"view": "terminal", "title": "x", "\ud800": 1})


@pytest.mark.contract("H1", "H2")
def test_cards_compare_and_copy_by_what_they_say() -> None:
    for card, wire, _least in [*CALLS, *RESULTS]:
        assert copy.deepcopy(card) == card
        assert copy.deepcopy(card).to_wire() == wire
