"""Building a success (contract C43 to C46)."""

from __future__ import annotations

import pytest
from ptc.registry import MISSING, Accept, text_block
from ptc.registry.lossless import is_frozen

pytestmark = pytest.mark.anyio


def answers(value):
    async def body(_arguments, _run):
        return value

    return body


class Throwing(dict):
    def items(self):
        raise LookupError("cursor closed")

    __iter__ = items  # pyright: ignore


def raising(*_args):
    raise LookupError("template missing")


@pytest.mark.contract("C43")
@pytest.mark.parametrize(
    ("value", "options", "says"),
    [
        ({"when": {1}}, {}, "value is not lossless JSON: "),
        (Throwing(a=1), {}, "value snapshot failed: cursor closed"),
        ("text", {"schema": {"type": "integer"}}, '"value" must be an integer'),
        ({"n": "x"}, {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}, '"value.n" must be an'),
        (1, {"render": raising}, "output.render failed: template missing"),
        (1, {"render": lambda _a, _v: [{"type": "text", "text": {1}}]}, "output.render returned non-lossless JSON"),
        (1, {"render": lambda _a, _v: "text"}, "output.render must be a list of content blocks"),
        (1, {"render": lambda _a, _v: [{"kind": "text"}]}, "output.render must be a list of content blocks"),
        (1, {"presentation_meta": raising}, "output.presentation_meta failed: template missing"),
        (1, {"presentation_meta": lambda _a, _v: {1}}, "output.presentation_meta returned non-lossless JSON"),
    ],
)
async def test_an_output_that_does_not_do_is_an_ordinary_failure(rig, kit, value, options, says):
    async def post(_call, result, next_):
        rig.note(kit.identity(result))
        return await next_()

    rig.tools.on("tools/post-execute", post)
    rig.add("echo", answers(value), **options)
    result = await rig.run()
    assert kit.identity(result) == ("ToolOutputError", "INVALID_TOOL_OUTPUT")
    assert result.error.message.startswith('tool "echo" returned invalid output: ')
    assert says in result.error.message
    assert rig.seen == [("ToolOutputError", "INVALID_TOOL_OUTPUT")]


@pytest.mark.contract("C43")
async def test_a_lossy_value_names_its_path(rig, kit):
    rig.add("echo", answers({"rows": [1, {2}]}))
    assert "value.rows[1]" in kit.text(await rig.run())


@pytest.mark.contract("C43")
async def test_a_forgotten_await_in_a_body_or_renderer_is_an_output_error_without_warnings(rig, kit):
    async def inner():
        return 1

    async def body(_arguments, _run):
        return inner()

    rig.add("body", body)
    rig.add("render", answers(1), render=lambda _a, _v: inner())
    for name in ("body", "render"):
        assert kit.identity(await rig.run(name)) == ("ToolOutputError", "INVALID_TOOL_OUTPUT")


@pytest.mark.contract("C43", "C46")
async def test_value_content_and_meta_are_detached_and_frozen(rig):
    mine = {"rows": [1]}
    blocks = [text_block("one")]
    meta = {"m": []}

    def render(arguments, value):
        assert is_frozen(arguments)
        assert is_frozen(value)
        return blocks

    rig.add("echo", answers(mine), render=render, presentation_meta=lambda _a, _v: meta)

    async def post(_call, result, next_):
        for change in (
            lambda: result.value["rows"].append(2),
            lambda: result.content.append(text_block("two")),
            lambda: result.content[0].update(text="changed"),
            lambda: result.meta["m"].append(1),
        ):
            with pytest.raises(TypeError):
                change()
        with pytest.raises(AttributeError):
            result.value = 1
        return await next_()

    rig.tools.on("tools/post-execute", post)
    result = await rig.run("echo", {"q": 1})
    mine["rows"].append(2)
    blocks.append(text_block("late"))
    meta["m"].append(1)
    assert (result.value, result.content, result.meta) == ({"rows": [1]}, [text_block("one")], {"m": []})


@pytest.mark.contract("C43", "C44")
async def test_renderer_and_meta_get_arguments_and_value(rig):
    rig.add(
        "echo",
        answers("v"),
        render=lambda arguments, value: [text_block(f"{arguments['q']} {value}")],
        presentation_meta=lambda arguments, value: [arguments["q"], value],
    )
    result = await rig.run("echo", {"q": 1})
    assert (result.content, result.meta) == ([text_block("1 v")], [1, "v"])


@pytest.mark.contract("C44")
async def test_meta_is_made_for_nested_calls_too_and_absent_when_undeclared(rig):
    rig.add("with", answers(1), presentation_meta=lambda _a, _v: None)
    rig.add("without", answers(1))
    token = rig.pipeline.call(rig.input("with")).exec.token
    assert (await rig.run("with", parent=token)).meta is None
    assert (await rig.run("without", parent=token)).meta is MISSING


@pytest.mark.contract("C45", "C67")
@pytest.mark.parametrize(
    ("accept", "concludes"), [(Accept(), True), (Accept(content=[]), True), (Accept(value="other"), True)]
)
async def test_conclude_lives_through_replacements(rig, accept, concludes):
    async def body(_arguments, run):
        run.conclude_turn()
        return "text"

    async def post(_call, _result, _next):
        return accept

    rig.add("echo", body)
    rig.add("quiet", answers("text"))
    rig.tools.on("tools/post-execute", post)
    assert (await rig.run()).concludes_turn is concludes
    assert (await rig.run("quiet")).concludes_turn is False


@pytest.mark.contract("C46")
async def test_wrappers_see_frozen_results(rig):
    async def wrapper(_view, next_):
        result = await next_()
        rig.note((is_frozen(result.value), is_frozen(result.content)))
        return result

    rig.add("echo", answers({"a": [1]}))
    rig.tools.on("tools/execute", wrapper)
    await rig.run()
    assert rig.seen == [(True, True)]
