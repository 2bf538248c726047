"""Presenters: what may be one, what it is given, and what becomes of its answer (contract H5 to H8, H10, H12, B59)."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ptc.registry import (
    MISSING,
    DiffCallCard,
    FileDiff,
    GenericCallCard,
    GenericResultCard,
    TerminalCallCard,
    TerminalResultCard,
    ToolError,
    ToolFailure,
    ToolRegistrationError,
    ToolSuccess,
    define_raw_tool,
    define_tool,
    materialise,
    present_call,
    present_result,
    text_block,
    tool,
)

DONE = {"content": [{"type": "text", "text": "done"}], "isError": False}
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


async def body(arguments: Any) -> str:
    return "done"


def by_dsl(**options: Any) -> Any:
    parameters = {"q": {"type": "string", "required": True}}
    return define_tool(
        name="search", description="", parameters=parameters, output={"type": "string"}, execute=body, **options
    )


def by_schema(**options: Any) -> Any:
    return define_raw_tool(name="search", description="", parameters=SCHEMA, execute=body, **options)


def by_annotations(**options: Any) -> Any:
    @tool(**options)
    async def search(q: str) -> str:
        return "done"

    return search


FACTORIES = pytest.mark.parametrize("make", [by_dsl, by_schema, by_annotations])


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The warnings of the test, so far; each was logged by the registry."""

    class Warned(list[str]):
        def __iter__(self) -> Iterator[str]:
            assert all((record.name, record.levelname) == ("ptc.registry", "WARNING") for record in caplog.records)
            return iter([record.getMessage() for record in caplog.records])

    with caplog.at_level(logging.DEBUG):
        yield Warned()


# What may be a presenter ---------------------------------------------------------------------------------------------


async def later(*_given: Any) -> Any:
    return None


async def yielding(*_given: Any) -> Any:
    yield None


class Later:
    async def __call__(self, *_given: Any) -> Any:
        return None

    async def method(self, *_given: Any) -> Any:
        return None


ASYNCHRONOUS = [later, yielding, Later(), Later().method, functools.partial(later, 1)]


@pytest.mark.contract("H5")
@FACTORIES
@pytest.mark.parametrize("member", ["present_call", "present_result"])
@pytest.mark.parametrize("presenter", ASYNCHRONOUS, ids=["def", "generator", "object", "method", "partial"])
def test_an_asynchronous_presenter_is_refused_when_the_tool_is_defined(make: Any, member: str, presenter: Any) -> None:
    with pytest.raises(ToolRegistrationError) as caught:
        make(**{member: presenter})
    told = str(caught.value)
    assert "(search)" in told
    assert f"{member} is asynchronous" in told
    assert "write a plain `def`" in told


@pytest.mark.contract("H5")
@pytest.mark.parametrize("member", ["present_call", "present_result"])
@pytest.mark.parametrize("presenter", ASYNCHRONOUS, ids=["def", "generator", "object", "method", "partial"])
def test_an_asynchronous_presenter_is_refused_when_the_tool_is_registered(
    rig: Any, member: str, presenter: Any
) -> None:
    with pytest.raises(ToolRegistrationError, match=f'tool "echo": {member} is asynchronous'):
        rig.add("echo", **{member: presenter})
    assert rig.names() == []


@pytest.mark.contract("H5")
@pytest.mark.parametrize("member", ["present_call", "present_result"])
def test_a_presenter_is_a_function(rig: Any, member: str) -> None:
    with pytest.raises(ToolRegistrationError, match=f"{member} must be a function, not dict"):
        by_dsl(**{member: {"view": "generic"}})
    with pytest.raises(ToolRegistrationError, match=f"{member} must be a function, not str"):
        rig.add("echo", **{member: "generic"})


# What a presenter is given -------------------------------------------------------------------------------------------


@pytest.mark.contract("H5", "H10")
@FACTORIES
def test_a_presenter_is_given_the_arguments_and_what_is_durable(rig: Any, kit: Any, make: Any) -> None:
    given: list[Any] = []
    rig.tools.register(
        make(
            present_call=lambda *all_of_it: given.append(all_of_it),
            present_result=lambda *all_of_it: given.append(all_of_it),
        )
    )
    success = ToolSuccess(
        value={"secret": 1},
        content=[text_block("done")],
        meta={"before": "x"},
        additional_contexts=(kit.context("context"),),
        concludes_turn=True,
    )
    present_call(rig.registry, "search", {"q": "x"})
    present_result(rig.registry, "search", {"q": "x"}, success)
    assert given[0] == ({"q": "x"},)
    assert given[1] == ({"q": "x"}, {**DONE, "meta": {"before": "x"}})
    for one in (given[0][0], given[1][0], given[1][1], given[1][1]["meta"]):
        with pytest.raises(TypeError, match="frozen"):
            one["q"] = "y"
    with pytest.raises(TypeError, match="frozen"):
        given[1][1]["content"].append(text_block("more"))


@pytest.mark.contract("H10")
def test_meta_is_what_presentation_meta_gave_and_absent_without_it(rig: Any) -> None:
    given: list[Any] = []
    rig.add("echo", present_result=lambda _arguments, result: given.append(result))
    results: list[Any] = [
        ToolSuccess(value=1, content=[text_block("done")]),
        ToolSuccess(value=1, content=[text_block("done")], meta=None),
        ToolFailure(error=ToolError("no"), content=[text_block("Error: no")]),
        ToolFailure(error=ToolError("no"), content=[text_block("Error: no")], meta=[1]),
    ]
    for result in results:
        present_result(rig.registry, "echo", {}, result)
    error = {"content": [{"type": "text", "text": "Error: no"}], "isError": True}
    assert given == [DONE, {**DONE, "meta": None}, error, {**error, "meta": [1]}]


@pytest.mark.contract("H5", "H10")
@pytest.mark.parametrize("meta", [{}, {"meta": {"before": None}}, {"meta": None}])
def test_a_record_gives_a_presenter_what_the_live_result_gave(rig: Any, meta: dict[str, Any]) -> None:
    given: list[Any] = []
    rig.add("echo", present_result=lambda _arguments, result: given.append(result))
    live = ToolSuccess(value=1, content=[text_block("done")], **meta)
    message = {"callId": "c1", **DONE}
    result_event = {"turn": 1, "step": 1, "message": message, "error": {"name": "E", "code": "C"}, **meta}
    dispatch_event = {
        "rootCallId": "r",
        "parentCallId": "r",
        "subCallId": "s",
        "name": "echo",
        "arguments": {},
        **DONE,
        **meta,
    }
    for result in (live, result_event, dispatch_event, {**DONE, **meta}, materialise({**DONE, **meta})):
        present_result(rig.registry, "echo", {}, result)
    assert given == [{**DONE, **meta}] * 5


@pytest.mark.contract("H10")
@pytest.mark.parametrize(
    "record",
    [
        {},
        {"isError": False},
        {"content": []},
        {"content": [], "isError": 0},
        {"content": "x", "isError": False},
        {"message": 1},
    ],
)
def test_what_is_no_result_is_told_to_the_caller(rig: Any, record: Any) -> None:
    rig.add("echo")
    with pytest.raises(TypeError, match=r"list of (content )?blocks"):
        present_result(rig.registry, "echo", {}, record)
    no_result: Any = "done"
    with pytest.raises(TypeError, match="must be a ToolSuccess, a ToolFailure or a record, not str"):
        present_result(rig.registry, "echo", {}, no_result)


@pytest.mark.contract("H5", "H6")
@pytest.mark.parametrize(
    ("text", "means"),
    [('{"q": "x"}', {"q": "x"}), ("", {}), ("not json", "not json"), ('{"q": NaN}', '{"q": NaN}'), ("[1]", [1])],
)
def test_text_is_read_as_the_call_reads_it(rig: Any, text: str, means: Any) -> None:
    given: list[Any] = []
    rig.add("echo", present_call=given.append)
    card = present_call(rig.registry, "echo", text)
    assert given == [means]
    assert card.to_wire() == {"view": "generic", "title": "echo", "kind": "other", "rawInput": means}


# What becomes of its answer ------------------------------------------------------------------------------------------


@pytest.mark.contract("H1", "H2", "B59")
@FACTORIES
def test_a_presenter_answers_a_card_or_a_mapping(rig: Any, make: Any, warned: list[str]) -> None:
    answers: dict[str, Any] = {}
    rig.tools.register(make(present_call=lambda _a: answers["call"], present_result=lambda _a, _r: answers["result"]))
    call, result = TerminalCallCard(title="ls"), TerminalResultCard(output="a", exit_code=2)
    for answers["call"], answers["result"] in (
        (call, result),
        (call.to_wire(), result.to_wire()),
        (View(call.to_wire()), View(result.to_wire())),
        ({"view": "terminal", "title": "ls"}, {"view": "terminal", "output": "a", "exit_code": 2}),
    ):
        assert present_call(rig.registry, "search", {"q": "x"}) == call
        assert present_result(rig.registry, "search", {"q": "x"}, DONE) == result
    assert list(warned) == []


class View(Mapping[str, Any]):
    """A mapping that is no dict, and that may fail while it is read."""

    def __init__(self, members: dict[str, Any] | None) -> None:
        self._members = members

    def __getitem__(self, key: str) -> Any:
        return self._known()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def _known(self) -> dict[str, Any]:
        if self._members is None:
            raise RuntimeError("gone")
        return self._members


@pytest.mark.contract("B59", "H7")
@FACTORIES
@pytest.mark.parametrize("arguments", [{"q": 5}, {}, "not json", [], None, '{"q": ', MISSING])
def test_arguments_that_do_not_fit_have_the_generic_card(
    rig: Any, make: Any, arguments: Any, warned: list[str]
) -> None:
    asked: list[Any] = []
    rig.tools.register(make(present_call=asked.append, present_result=lambda *given: asked.append(given)))
    card = present_call(rig.registry, "search", arguments)
    shown = {} if arguments is MISSING else {"rawInput": arguments}
    assert card.to_wire() == {"view": "generic", "title": "search", "kind": "other", **shown}
    assert present_result(rig.registry, "search", arguments, DONE).to_wire() == {
        "view": "generic", "title": "search", "content": DONE["content"],
    }  # fmt: skip
    assert asked == []
    assert list(warned) == []


class Broken(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("gone")

    def __repr__(self) -> str:
        raise RuntimeError("gone")


@pytest.mark.contract("H7")
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"q": {1}}, "{'q': {1}}"),
        ({"q": float("inf")}, "{'q': inf}"),
        ('{"q": 1e999}', '{"q": 1e999}'),
        ('{"q": "\\ud800"}', '{"q": "\\ud800"}'),
        ("\ud800", "\\ud800"),
        (b"bytes", "b'bytes'"),
        (View(None), None),
        (Broken(q=1), None),
    ],
)
def test_arguments_that_are_no_json_are_shown_as_text(rig: Any, arguments: Any, shown: str | None) -> None:
    asked: list[Any] = []
    rig.add("echo", present_call=asked.append, present_result=lambda *given: asked.append(given))
    wire = present_call(rig.registry, "echo", arguments).to_wire()
    if shown is None:
        assert isinstance(wire["rawInput"], str)
    else:
        assert wire["rawInput"] == shown
    assert present_result(rig.registry, "echo", arguments, DONE).title == "echo"
    assert asked == []


def raising(*_given: Any) -> Any:
    raise LookupError("no such row")


def changing(arguments: Any, *_result: Any) -> Any:
    arguments["q"] = "changed"


WRONG = [
    (raising, "raised LookupError: no such row"),
    (changing, "raised TypeError: this JSON value is frozen"),
    (lambda *_: "card", "returned what is no card"),
    (lambda *_: {"title": "x"}, "returned what is no card: Unable to extract tag"),
    (lambda *_: {"view": "chart"}, "returned what is no card: Input tag 'chart'"),
    (
        lambda *_: {"view": "terminal", "title": 1},
        "returned what is no card: terminal.title: Input should be a valid string",
    ),
    (
        lambda *_: {"view": "generic", "title": "x", "content": [{}]},
        "generic.content: Value error, content must be a list",
    ),
    (lambda *_: View(None), "returned what cannot be read: RuntimeError: gone"),
    (lambda *_: later(), "is asynchronous, and presenters are plain functions"),
    (lambda *_: (each for each in ()), "returned what is no card"),
]


@pytest.mark.contract("H6", "H7")
@pytest.mark.parametrize(("presenter", "told"), WRONG)
def test_a_pending_presenter_that_fails_is_told_of_once_and_replaced(
    rig: Any, presenter: Any, told: str, warned: list[str]
) -> None:
    rig.add("echo", present_call=presenter)
    card = present_call(rig.registry, "echo", {"q": "x"})
    assert card == GenericCallCard(title="echo", raw_input={"q": "x"})
    (warning,) = warned
    assert warning.startswith('present_call of tool "echo" ')
    assert told in warning
    assert warning.endswith("; the generic card is shown instead")


@pytest.mark.contract("H6", "H7")
@pytest.mark.parametrize(("presenter", "told"), WRONG)
def test_a_result_presenter_that_fails_is_told_of_once_and_replaced(
    rig: Any, presenter: Any, told: str, warned: list[str]
) -> None:
    rig.add("echo", present_call=lambda _a: TerminalCallCard(title="ls"), present_result=presenter)
    card = present_result(rig.registry, "echo", {"q": "x"}, DONE)
    assert card.to_wire() == {"view": "generic", "title": "ls", "content": DONE["content"]}
    (warning,) = warned
    assert warning.startswith('present_result of tool "echo" ')
    assert told in warning


@pytest.mark.contract("H7")
def test_the_traceback_of_a_presenter_is_logged(rig: Any, caplog: pytest.LogCaptureFixture) -> None:
    rig.add("echo", present_call=raising)
    present_call(rig.registry, "echo", {})
    (record,) = caplog.records
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


@pytest.mark.contract("H7")
def test_the_caller_may_bring_a_logger(rig: Any, caplog: pytest.LogCaptureFixture) -> None:
    rig.add("echo", present_call=raising, present_result=raising)
    mine = logging.getLogger("display")
    present_call(rig.registry, "echo", {}, logger=mine)
    present_result(rig.registry, "echo", {}, DONE, logger=mine)
    assert [record.name for record in caplog.records] == ["display"] * 3


@pytest.mark.contract("H7")
def test_a_request_to_end_is_no_failure_of_a_presenter(rig: Any) -> None:
    def leaving(_arguments: Any) -> Any:
        raise KeyboardInterrupt

    rig.add("echo", present_call=leaving)
    with pytest.raises(KeyboardInterrupt):
        present_call(rig.registry, "echo", {})


# The generic cards ---------------------------------------------------------------------------------------------------


@pytest.mark.contract("H6")
def test_without_a_presenter_the_card_has_the_name_and_the_raw_arguments(rig: Any, warned: list[str]) -> None:
    rig.add("plain")
    rig.add("silent", present_call=lambda _a: None, present_result=lambda _a, _r: None)
    for name in ("plain", "silent", "unknown", "run_code", "", "\ud800"):
        shown = "\\ud800" if name == "\ud800" else name
        assert present_call(rig.registry, name, {"q": [1]}).to_wire() == {
            "view": "generic", "title": shown, "kind": "other", "rawInput": {"q": [1]},
        }  # fmt: skip
        assert present_result(rig.registry, name, {"q": [1]}, DONE).to_wire() == {
            "view": "generic", "title": shown, "content": DONE["content"],
        }  # fmt: skip
    assert list(warned) == []


@pytest.mark.contract("H6")
def test_a_generic_result_keeps_the_pending_title_and_the_raw_content(rig: Any) -> None:
    card = DiffCallCard(title="Edit a.py", diffs=[FileDiff(path="a.py", old_text=None, new_text="x")])
    rig.add("edit", present_call=lambda _a: card)
    content = [{"type": "text", "text": "```\n<raw>\n```"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]
    result = present_result(rig.registry, "edit", {}, {"content": content, "isError": True})
    assert result == GenericResultCard(title="Edit a.py", content=content)  # type: ignore[arg-type]


@pytest.mark.contract("H8")
def test_the_card_of_a_result_stands_alone(rig: Any) -> None:
    diffs = [{"path": "a.py", "oldText": "1", "newText": "2"}]
    asked: list[str] = []
    rig.add(
        "edit",
        present_call=lambda _a: asked.append("call") or {"view": "diff", "title": "Edit", "diffs": diffs},
        present_result=lambda _a, _r: {"view": "diff", "diffs": diffs},
    )
    assert present_result(rig.registry, "edit", {}, DONE).to_wire() == {"view": "diff", "diffs": diffs}
    assert asked == []


@pytest.mark.contract("H12", "H10")
@pytest.mark.anyio
async def test_what_a_card_shows_is_in_neither_value_nor_content(rig: Any) -> None:
    def framed(*_given: Any) -> Any:
        return {"view": "generic", "title": "Framed", "content": [text_block("```diff\n+ x\n```")]}

    asked: list[str] = []
    bare = {"schema": {"type": "object"}, "presentation_meta": lambda arguments, value: {"path": "a", "of": value}}
    rig.add("plain", **bare)
    rig.add(
        "shown",
        **bare,
        present_call=lambda *given: asked.append("call") or framed(*given),
        present_result=lambda *given: asked.append("result") or framed(*given),
    )
    plain, shown = await rig.run("plain", {"q": 1}), await rig.run("shown", {"q": 1})
    assert asked == []
    assert (shown.value, shown.content, shown.meta) == (plain.value, plain.content, plain.meta)
    assert shown.value == {"ok": True}
    assert shown.content == [{"type": "text", "text": '{"ok": true}'}]
    assert shown.meta == {"path": "a", "of": {"ok": True}}
    before = (shown.value, shown.content, shown.meta)
    assert present_result(rig.registry, "shown", {"q": 1}, shown).to_wire()["title"] == "Framed"
    assert (shown.value, shown.content, shown.meta) == before
