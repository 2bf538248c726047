"""Calls out of a program: how they are written, what comes back, and what is never done silently."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ..seam import BindingCall, BindingError, ErrorClass, JsonValue, Member, Namespace, SandboxRequest
from .backend import Capability, SandboxFactory, holds, needs
from .fixtures import Calls, Run


@holds("F12")
@pytest.mark.parametrize(
    "call",
    [
        "tools.add(a=1, b=2)",
        "tools.add({'a': 1, 'b': 2})",
        "tools['add'](a=1, b=2)",
        "tools.add(1, 2)",
        "tools.add(1, b=2)",
        "getattr(tools, 'add')(**{'a': 1, 'b': 2})",
    ],
)
@pytest.mark.anyio
async def test_all_forms_are_the_same_call(run: Run, calls: Calls, call: str) -> None:
    """Ruling 35."""
    result = await run(f"return await {call}")
    assert (result.error, result.value_json) == (None, "3")
    assert calls.made[0].arguments == {"a": 1, "b": 2}
    assert calls.made[0].line == 1


@holds("F12")
@pytest.mark.anyio
async def test_no_argument_is_an_empty_object(run: Run, calls: Calls) -> None:
    await run("await tools.echo()")
    assert calls.made[0].arguments == {}


@holds("F12")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("tools.add({'a': 1}, b=2)", "takes one mapping or keyword arguments, not both"),
        ("tools.add(1, 2, 3)", "takes 2 positional arguments (a, b) but 3 were given"),
        ("tools.add(1, a=2)", "got two values for argument 'a'"),
        ("tools.stuck(1)", "takes 0 positional arguments"),
    ],
)
@pytest.mark.anyio
async def test_a_call_that_cannot_be_meant_says_why(run: Run, calls: Calls, call: str, told: str) -> None:
    result = await run(f"await {call}")
    assert result.error is not None
    assert told in result.error.message
    assert calls.made == []


@holds("F12", "E14")
@pytest.mark.anyio
async def test_a_lossy_argument_is_refused_with_its_path_and_without_a_call(run: Run, calls: Calls) -> None:
    result = await run(
        "try:\n    await tools.echo(value=[{'tags': {1, 2}}])\nexcept ToolCallError as error:\n    return str(error)"
    )
    told = json.loads(result.value_json or "")
    assert told.startswith("tool arguments must be lossless JSON: arguments.value[0].tags is of type set")
    assert calls.made == []


@holds("F12")
@pytest.mark.anyio
async def test_a_member_is_a_function_that_can_be_kept(run: Run, calls: Calls) -> None:
    result = await run("f, again = tools.echo, tools.echo\nreturn [await f(1), await again(value=2), f is again]")
    assert result.value_json == "[1,2,true]"
    assert [call.member for call in calls.made] == ["echo", "echo"]


@holds("F7", "F9", "F12", "F13")
@pytest.mark.anyio
async def test_each_namespace_is_a_global_of_its_own_with_its_own_error_class(run: Run, calls: Calls) -> None:
    members = {"echo": Member(calls.echo, ("value",)), "boom": Member(calls.boom, ("message",))}
    namespaces = [
        Namespace("A1", members, ErrorClass("E1", "member")),
        Namespace("_b", members, ErrorClass("_E", "not an identifier")),
        Namespace("print_", members),
    ]
    result = await run(
        "told = [await A1.echo(1), await _b.echo(2), await print_.echo(3)]\n"
        "try:\n    await A1.boom('first')\nexcept E1 as error:\n"
        "    told.append([str(error), error.name, error.member, isinstance(error, _E)])\n"
        "try:\n    await _b.boom('second')\nexcept _E as error:\n"
        "    told.append([str(error), error.name, getattr(error, 'not an identifier'), isinstance(error, E1)])\n"
        "return told",
        namespaces=namespaces,
    )
    assert result.error is None, result.error.message
    assert json.loads(result.value_json or "") == [
        1, 2, 3, ["first", "E1", "boom", False], ["second", "_E", "boom", False],
    ]  # fmt: skip
    assert [call.namespace for call in calls.made] == ["A1", "_b", "print_", "A1", "_b"]


@pytest.mark.anyio
async def test_arguments_are_taken_when_the_call_is_written(run: Run, calls: Calls) -> None:
    await run("value = [1]\ncall = tools.echo(value=value)\nvalue.append(2)\nawait call")
    assert calls.made[0].arguments == {"value": [1]}


@holds("F13")
@pytest.mark.anyio
async def test_a_failed_call_raises_the_runs_own_error_class(run: Run) -> None:
    result = await run(
        "try:\n"
        "    await tools.boom(message='no stock')\n"
        "except ToolCallError as error:\n"
        "    told = [str(error), error.toolName, error.name]\n"
        "    return told + [type(error) is ToolCallError, isinstance(error, Exception)]"
    )
    assert json.loads(result.value_json or "") == ["no stock", "boom", "ToolCallError", True, True]


@holds("F13")
@pytest.mark.anyio
async def test_a_namespace_without_an_error_class_raises_a_plain_error(run: Run, calls: Calls) -> None:
    plain = Namespace("api", {"boom": Member(calls.boom, ("message",))})
    result = await run(
        "try:\n    await api.boom('x')\nexcept RuntimeError as error:\n    return str(error)", namespaces=[plain]
    )
    assert result.value_json == '"x"'


@holds("F13")
@pytest.mark.anyio
async def test_one_failing_call_does_not_kill_a_fan_out(run: Run) -> None:
    result = await run(
        "import asyncio\n"
        "calls = tools.echo(value=1), tools.boom(message='x'), tools.echo(value=3)\n"
        "got = await asyncio.gather(*calls, return_exceptions=True)\n"
        "return [g if not isinstance(g, ToolCallError) else 'failed: ' + str(g) for g in got]"
    )
    assert json.loads(result.value_json or "") == [1, "failed: x", 3]


@pytest.mark.anyio
async def test_calls_overlap(run: Run) -> None:
    result = await run("import asyncio\nreturn await asyncio.gather(*[tools.meet(parties=20) for _ in range(20)])")
    assert (result.error, result.value_json) == (None, json.dumps([20] * 20, separators=(",", ":")))


@holds("E27")
@pytest.mark.anyio
async def test_a_call_that_is_never_awaited_did_not_run_and_is_named(run: Run, calls: Calls) -> None:
    """Ruling 37."""
    result = await run("print('kept')\ntools.echo(value=1)\nx = 2\nreturn x")
    assert result.logs == ("kept",)
    assert result.error is not None
    assert result.error.kind == "exception"
    assert "tools.echo(...) on line 2" in result.error.message
    assert "await" in result.error.message
    assert calls.made == []


@pytest.mark.parametrize(
    "use",
    [
        "print(found)",
        "found['rows']",
        "for row in found:\n    pass",
        "len(found)",
        "found.rows",
        "found + 1",
        "f'{found}'",
    ],
)
@pytest.mark.anyio
async def test_a_pending_call_used_as_its_value_says_to_await_it(run: Run, use: str) -> None:
    """Ruling 37."""
    result = await run(f"found = tools.echo(value=1)\n{use}")
    assert result.error is not None
    assert "tools.echo(...) on line 1 was not awaited; write `await tools.echo(...)`" in result.error.message


@pytest.mark.anyio
async def test_a_call_that_a_program_gave_up_is_not_held_against_it(run: Run, calls: Calls) -> None:
    result = await run(
        "import asyncio\n"
        "tools.echo(value=1).close()\n"
        "task = asyncio.create_task(tools.echo(value=2))\n"
        "task.cancel()\n"
        "await asyncio.sleep(0)\n"
        "return 'ok'"
    )
    assert (result.error, result.value_json) == (None, '"ok"')
    assert calls.made == []


@holds("F11")
@pytest.mark.parametrize("name", ["odd name", "_hidden"])
@pytest.mark.anyio
async def test_a_name_that_is_no_attribute_is_reached_by_subscript(run: Run, name: str) -> None:
    result = await run(f"return await tools[{name!r}](value=7)")
    assert result.value_json == "7"


@holds("F11")
@pytest.mark.anyio
async def test_member_names_are_any_strings(run: Run, calls: Calls) -> None:
    names = ["", "__proto__", "constructor", "__class__", "__getitem__", "class", "a.b", "é 日", "\0", "keys", "1"]
    namespace = Namespace("tools", {name: Member(calls.echo, ("value",)) for name in names})
    result = await run(f"return [await tools[name](value=name) for name in {names!r}]", namespaces=[namespace])
    assert result.error is None, result.error.message
    assert json.loads(result.value_json or "") == names
    assert [call.member for call in calls.made] == names


async def _refusal(run: Run, use: str, kind: str) -> str:
    """Returns what a program is told that does something to `tools` and catches what that raises."""
    result = await run(f"try:\n    {use}\nexcept {kind} as error:\n    return str(error)")
    assert result.error is None, result.error.message
    told = json.loads(result.value_json or "null")
    assert isinstance(told, str)
    return told


@holds("F11", "F36")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("use", "kind", "told"),
    [
        ("tools.ehco", "AttributeError", "did you mean 'echo'?"),
        ("tools['ehco']", "KeyError", "did you mean 'echo'?"),
        ("tools.zzz", "AttributeError", "there are: "),
    ],
)
async def test_an_unknown_member_is_refused_with_near_ones(run: Run, use: str, kind: str, told: str) -> None:
    assert told in await _refusal(run, use, kind)


@holds("F11", "F36")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "use", ["tools._hidden", "tools.__dict__", "tools.__init__", "tools.echo = 1", "del tools.echo"]
)
async def test_there_is_nothing_behind_a_namespace_and_it_cannot_be_changed(run: Run, use: str) -> None:
    """By the sandbox or by its language; the words are theirs."""
    assert await _refusal(run, use, "AttributeError")
    assert (await run("return await tools.echo(value=1)")).value_json == "1"


@holds("F11", "F36")
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["__class__", "__getitem__", "__init__", "__dict__", "keys", "get", "", "__proto__"])
async def test_what_a_namespace_inherits_is_no_member(run: Run, calls: Calls, name: str) -> None:
    assert await _refusal(run, f"tools[{name!r}]", "KeyError")
    assert calls.made == []


@holds("F11", "F36")
@needs(Capability.INTERPRETER)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("use", "told"),
    [
        ("tools._hidden", "write tools['_hidden']"),
        ("tools.__dict__", "tools has no member"),
        ("tools.__init__", "tools has no member"),
        ("tools.echo = 1", "tools cannot be changed"),
    ],
)
async def test_what_is_behind_a_namespace_is_refused_by_the_namespace_itself(run: Run, use: str, told: str) -> None:
    assert told in await _refusal(run, use, "AttributeError")


@holds("F37")
@pytest.mark.anyio
async def test_a_resolution_that_is_not_json_fails_the_call(run: Run) -> None:
    result = await run("try:\n    await tools.lossy()\nexcept ToolCallError as error:\n    return str(error)")
    told = json.loads(result.value_json or "")
    assert told.startswith("binding resolution must be lossless JSON: ")
    assert ".when" in told


@holds("F37", "F13")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (BindingError("no stock: é 😀\nsecond line \0"), "no stock: é 😀\nsecond line \0"),
        (ValueError("bad"), "bad"),
        (KeyError("k"), "'k'"),
        (RuntimeError(), "RuntimeError"),
        (BindingError("half \ud800"), "half \\ud800"),
    ],
)
async def test_whatever_a_binding_raises_fails_that_call_with_its_message(
    run: Run, calls: Calls, error: Exception, message: str
) -> None:
    async def fails(_call: BindingCall) -> JsonValue:
        raise error

    members = {"fails": Member(fails), "echo": Member(calls.echo, ("value",))}
    result = await run(
        "try:\n    await tools.fails()\nexcept ToolCallError as error:\n"
        "    return [str(error), error.message, list(error.args), await tools.echo(value=1)]",
        namespaces=[Namespace("tools", members, ErrorClass("ToolCallError", "toolName"))],
    )
    assert result.error is None, result.error.message
    assert json.loads(result.value_json or "") == [message, message, [message], 1]


@holds("F37")
@pytest.mark.anyio
async def test_a_resolution_is_taken_when_it_is_given(run: Run) -> None:
    rows: list[Any] = []

    async def grow(_call: BindingCall) -> JsonValue:
        rows.append(len(rows))
        return rows

    result = await run(
        "first = await tools.grow()\nsecond = await tools.grow()\nfirst.append('mine')\nreturn [first, second]",
        namespaces=[Namespace("tools", {"grow": Member(grow)})],
    )
    assert result.value_json == '[[0,"mine"],[0,1]]'
    assert rows == [0, 1]


@holds("F46", "F48")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "number",
    [
        0, 2**53, 2**53 + 1, -(2**53) - 1, 2**63, 10**300, 4**2000, 0.0, 1.0, 0.1, 1e16, 1e22, 2.0**70, 5e-324,
        1.7976931348623157e308, -0.0, "9007199254740993",
    ],
    ids=lambda number: f"{str(number)[:20]}",
)  # fmt: skip
async def test_numbers_are_exact_on_every_way(run: Run, calls: Calls, number: Any) -> None:
    """Rulings 13 and 33: an integer of any size, and -0.0."""
    result = await run(f"got = await tools.echo(value={number!r})\nreturn [got, repr(got) == {repr(number)!r}]")
    assert result.error is None, result.error.message
    value, same = json.loads(result.value_json or "")
    assert same is True
    arguments: Any = calls.made[0].arguments
    for seen in (value, arguments["value"]):
        assert (type(seen), repr(seen)) == (type(number), repr(number))


@holds("F32")
@pytest.mark.anyio
async def test_what_calls_carry_is_no_output(make_sandbox: SandboxFactory, calls: Calls) -> None:
    async with make_sandbox(max_output_bytes=1000) as sandbox:
        program = "return sum([len(await tools.echo(value='x' * 50_000)) for _ in range(20)])"
        result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
        assert (result.error, result.value_json) == (None, "1000000")


@holds("F41")
@pytest.mark.anyio
async def test_arguments_and_resolutions_may_be_nested_200_levels(run: Run, calls: Calls) -> None:
    """Ruling 34."""
    deep: Any = 0
    for _ in range(199):
        deep = {"a": deep}

    async def give(_call: BindingCall) -> JsonValue:
        return deep

    members = {"give": Member(give), "echo": Member(calls.echo, ("value",))}
    result = await run(
        "return (await tools.echo(value=await tools.give())) == await tools.give()",
        namespaces=[Namespace("tools", members)],
    )
    assert (result.error, result.value_json) == (None, "true")
    arguments: Any = calls.made[0].arguments
    assert arguments["value"] == deep


@holds("F32")
@pytest.mark.anyio
async def test_large_values_pass_both_ways(run: Run) -> None:
    result = await run("text = 'x' * 2_000_000\nreturn len(await tools.echo(value=text))")
    assert result.value_json == "2000000"


@pytest.mark.anyio
async def test_awkward_characters_survive(run: Run) -> None:
    result = await run(
        "s = '\\x00\\x01\\x7f\\x85\\u2028\\u2029\\ufeff\\uffff\\U0001f600\\U0010ffff\"\\\\'\n"
        "return (await tools.echo(value=s)) == s"
    )
    assert result.value_json == "true"


@holds("F40")
@pytest.mark.anyio
async def test_an_answer_to_a_call_that_was_given_up_goes_to_no_other(run: Run, calls: Calls) -> None:
    result = await run(
        "import asyncio\n"
        "told = []\n"
        "try:\n"
        "    async with asyncio.timeout(0.05):\n"
        "        await tools.slow(ms=200)\n"
        "except TimeoutError:\n"
        "    told.append('gave up')\n"
        "told.append(await tools.slow(ms=400))\n"
        "told.append(await tools.echo(value=1))\n"
        "return told"
    )
    assert (result.error, result.value_json) == (None, '["gave up",400,1]')
    assert len(calls.made) == 3


@holds("F23", "F25")
@pytest.mark.anyio
async def test_a_call_left_running_is_cancelled_when_the_program_ends(run: Run, calls: Calls) -> None:
    result = await run(
        "import asyncio\nasyncio.create_task(tools.stuck())\nawait asyncio.sleep(0)\nawait tools.hello()\nreturn 'done'"
    )
    assert (result.error, result.value_json) == (None, '"done"')
    assert calls.cancelled == 1
