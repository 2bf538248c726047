"""What a program that fails is told: what happened, where in the program, and what to do."""

from __future__ import annotations

import re

import pytest

from ..seam import BindingCall, BindingError, ErrorClass, JsonValue, Member, Namespace, SandboxRequest, SandboxResult
from .backend import Capability, SandboxFactory, holds, needs
from .fixtures import Calls, Run

FOREIGN = re.compile(r'File "(?!<program>"|<string>")|site-packages|ptc_guest|ptc_sandbox|<locals>|\.py\b')
"""What is of the machinery and never of the program."""


async def failure(run: Run, program: str, namespaces: list[Namespace] | None = None) -> str:
    """Returns what a program is told that must fail; it names nothing of the machinery."""
    result = await run(program, namespaces=namespaces)
    assert result.error is not None, result.value_json
    for text in (result.error.message, *result.logs):
        assert not FOREIGN.search(text), text
    return result.error.message


def in_line(number: int, text: str, marks: str = "", name: str = "<program>") -> str:
    """Returns how a traceback shows a line."""
    shown = f'  File "<program>", line {number}, in {name}\n    {text}'
    return f"{shown}\n    {marks}\n" if marks else f"{shown}\n"


# The source


@holds("F15", "F26")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "told"),
    [
        (
            "x = 1\nif x:\nprint(x)",
            (
                '  File "<program>", line 3\n    print(x)\n    ^^^^^\n'
                "IndentationError: expected an indented block after 'if' statement on line 2"
            ),
        ),
        ("x = 1\n    y = 2", '  File "<program>", line 2\n    y = 2\nIndentationError: unexpected indent'),
        (
            "x = [1, 2,\ny = 3",
            "  File \"<program>\", line 1\n    x = [1, 2,\n        ^\nSyntaxError: '[' was never closed",
        ),
        (
            "if True:\n\tx = 1\n        y = 2",
            (
                '  File "<program>", line 3\n    y = 2\nTabError: inconsistent use of tabs and spaces in indentation\n'
                "Hint: indent with spaces alone."
            ),
        ),
        (
            "def f():\n    return await tools.echo(value=1)",
            (
                '  File "<program>", line 2\n    return await tools.echo(value=1)\n'
                "           ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
                "SyntaxError: 'await' outside async function\n"
                "Hint: write `async def` for the function around it, and `await` where that function is called."
            ),
        ),
        (
            "f = lambda: await tools.echo(value=1)",
            (
                '  File "<program>", line 1\n    f = lambda: await tools.echo(value=1)\n'
                "                ^^^^^^^^^^^^^^^^^^^^^^^^^\nSyntaxError: 'await' outside async function\n"
                "Hint: a lambda cannot await; use an `async def`, or a loop."
            ),
        ),
        ("x = 1\nyield x", "  File \"<program>\", line 2\n    yield x\n    ^\nSyntaxError: 'yield' outside function"),
        (
            "```python\nreturn 1\n```",
            (
                '  File "<program>", line 1\n    ```python\n    ^\nSyntaxError: invalid syntax\n'
                "Hint: leave out the ``` lines; the program is the plain source."
            ),
        ),
        (
            "const x = 1;",
            (
                '  File "<program>", line 1\n    const x = 1;\n          ^\nSyntaxError: invalid syntax\n'
                "Hint: the program is Python."
            ),
        ),
    ],
)
async def test_a_source_that_is_no_program_shows_its_line_and_the_place(run: Run, program: str, told: str) -> None:
    assert await failure(run, program) == told


# Calls that were not awaited


@holds("F12")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("use", "part"),
    [
        ("call['rows']", "[...]"),
        ("call['rows'] = 1", "[...]"),
        ("del call['rows']", "[...]"),
        ("call.rows", ".rows"),
        ("call.get('rows')", ".get"),
        ("[row for row in call]", ""),
        ("len(call)", ""),
        ("bool(call)", ""),
        ("not call", ""),
        ("'x' in call", ""),
        ("call + 1", ""),
        ("1 - call", ""),
        ("call / 2", ""),
        ("call > 1", ""),
        ("-call", ""),
        ("sum([call])", ""),
        ("sorted([call, call])", ""),
        ("str(call)", ""),
        ("f'{call}'", ""),
        ("'%s' % call", ""),
        ("print('got', call)", ""),
        ("a, b = call", ""),
        ("print(*call)", ""),
        ("{**call}", ""),
        ("call()", ""),
        ("int(call)", ""),
        ("range(call)", ""),
        ("with call as x:\n    pass", ""),
        ("async with call as x:\n    pass", ""),
        ("async for x in call:\n    pass", ""),
    ],
)
async def test_a_call_that_is_used_as_its_value_says_to_await_it(run: Run, use: str, part: str) -> None:
    """Ruling 37."""
    told = await failure(run, f"call = tools.echo(value=1)\n{use}")
    last = "TypeError: tools.echo(...) on line 1 was not awaited; write `await tools.echo(...)`"
    if part:
        last += f", with parentheses to go on from there: `(await tools.echo(...)){part}`"
    assert told.startswith("Traceback (most recent call last):\n" + in_line(2, use.partition("\n")[0]))
    assert told.endswith(f"\n{last}")


@holds("F12")
@pytest.mark.anyio
async def test_a_function_that_cannot_await_is_named(run: Run) -> None:
    told = await failure(run, "def total(n):\n    return tools.echo(value=n) + 1\nreturn total(1)")
    assert told == (
        "Traceback (most recent call last):\n"
        + in_line(3, "return total(1)")
        + in_line(2, "return tools.echo(value=n) + 1", "       ~~~~~~~~~~~~~~~~~~~~^~~", "total")
        + "TypeError: tools.echo(...) on line 2 was not awaited; write `await tools.echo(...)`;"
        " for that `total` must be an `async def`, and be awaited itself"
    )


@holds("F12")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "first"),
    [
        ("tools.echo(value=1)\nx = 2", "this call was never awaited and did not run: tools.echo(...) on line 1."),
        ("return tools.echo(value=1)", "this call was never awaited and did not run: tools.echo(...) on line 1."),
        (
            "return [tools.echo(value=n) for n in (1, 2)]",
            "these calls were never awaited and did not run: tools.echo(...) on line 1 (2 times).",
        ),
        (
            "import asyncio\nasyncio.gather(tools.echo(value=1), tools.hello())\nreturn 1",
            "these calls were never awaited and did not run: tools.echo(...) on line 2; tools.hello(...) on line 2.",
        ),
        (
            "import asyncio\nreturn asyncio.create_task(tools.echo(value=1))",
            "this call was never awaited and did not run: tools.echo(...) on line 2.",
        ),
        ("return tools.echo(value=1) == 1", "this call was never awaited and did not run: tools.echo(...) on line 1."),
    ],
)
async def test_calls_that_never_ran_are_told_with_their_lines(run: Run, program: str, first: str) -> None:
    """Ruling 37."""
    told = await failure(run, program)
    several = ", or `await asyncio.gather(...)` around several" if first.startswith("these") else ""
    number = int(first.partition("line ")[2][0])
    quoted = f'  File "<program>", line {number}\n    {program.splitlines()[number - 1]}'
    assert told == f"{first} Write `await` before the call{several}.\n{quoted}"


@holds("F15")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "told", "hint"),
    [
        ("f()['a']", "'coroutine' object is not subscriptable", "write `await` before the call of an async function."),
        ("f().get", "'coroutine' object has no attribute 'get'", "write `await` before the call of an async function."),
        ("for x in f():\n    pass", "not iterable", "write `await` before the call of an async function."),
        ("f() + f()", "'coroutine' and 'coroutine'", "write `await` before the call of an async function."),
        ("len(f())", "'coroutine' has no len()", "write `await` before the call of an async function."),
        (
            "import json\njson.dumps([f()])",
            "Object of type coroutine is not JSON serializable",
            "write `await` before the call of an async function.",
        ),
        (
            "import json\njson.dumps(tools.echo(value=1))",
            "Object of type PendingCall is not JSON serializable",
            "a call that was not awaited is not its result; write `await` before it.",
        ),
        (
            "import asyncio\nasyncio.create_task(f())['a']",
            "Task' object is not subscriptable",
            "write `await` before the task, or take its `.result()` when it has ended.",
        ),
        (
            "import asyncio\nasyncio.gather(f())[0]",
            "object is not subscriptable",
            "write `await` before `asyncio.gather(...)` or the future.",
        ),
        (
            "import asyncio\nfor x in asyncio.gather(f()):\n    pass",
            "await wasn't used with future",
            "write `await` before `asyncio.gather(...)` or the future.",
        ),
        (
            "import asyncio\nawait asyncio.gather([f(), f()])",
            "unhashable type: 'list'",
            "asyncio.gather takes the calls one by one; write `asyncio.gather(*calls)`.",
        ),
        ("await [f(), f()]", "await", "to wait for several calls write `await asyncio.gather(*calls)`."),
        ("await {'a': 1}", "await", "it is a value already; leave out `await`."),
        ("await tools.echo", "await", "call it, as in `await name(...)`."),
    ],
)
async def test_what_is_awaited_too_little_or_too_much_has_a_hint(run: Run, program: str, told: str, hint: str) -> None:
    message = await failure(run, f"async def f():\n    return {{'a': 1}}\n{program}")
    assert told in message
    assert message.endswith(f"\nHint: {hint}")


@holds("F14")
@pytest.mark.anyio
async def test_a_coroutine_that_is_kept_and_never_awaited_is_told_in_the_output(run: Run) -> None:
    result = await run("async def main():\n    print('never')\ndone = main()")
    assert result.error is None
    assert result.logs == ("RuntimeWarning: coroutine 'main' was never awaited",)


# Members and their arguments


@holds("F11", "F36")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("use", "told"),
    [
        ("tools.ehco(value=1)", "AttributeError: tools has no member 'ehco'; did you mean 'echo'?"),
        ("tools['ehco'](value=1)", "KeyError: tools has no member 'ehco'; did you mean 'echo'?"),
        ("getattr(tools, 'ehco')", "AttributeError: tools has no member 'ehco'; did you mean 'echo'?"),
        ("tools.odd_name(value=1)", "AttributeError: tools has no member 'odd_name'; did you mean tools['odd name']?"),
        ("tools.odd-name(value=1)", "AttributeError: tools has no member 'odd'; did you mean tools['odd name']?"),
        ("tools._hidden(value=1)", "AttributeError: tools._hidden starts with an underscore; write tools['_hidden']"),
        (
            "tools.zzz(value=1)",
            (
                "AttributeError: tools has no member 'zzz'; there are: _hidden, add, boom, echo, hello, lossy, meet,"
                " odd name, slow, stuck"
            ),
        ),
        (
            "tools('echo', value=1)",
            "TypeError: tools is no function; call a member of it, as in `await tools.<name>(...)`",
        ),
        (
            "echo(value=1)",
            (
                "NameError: name 'echo' is not defined\n"
                "Hint: `echo` is a member of `tools`; write `await tools.echo(...)`."
            ),
        ),
        ("ehco(value=1)", "NameError: name 'ehco' is not defined\nHint: did you mean `await tools.echo(...)`?"),
        (
            "tools.echo(1, 2)",
            "TypeError: tools.echo takes 1 positional argument (value) but 2 were given; use keywords or one mapping",
        ),
        (
            "tools.hello(None)",
            "TypeError: tools.hello takes 0 positional arguments but 1 was given; write `await tools.hello()`",
        ),
        ("tools.echo(1, value=2)", "TypeError: tools.echo got two values for argument 'value'"),
        (
            "tools.echo({'value': 1}, value=2)",
            "TypeError: tools.echo takes one mapping or keyword arguments, not both",
        ),
    ],
)
async def test_a_wrong_call_says_what_is_right(run: Run, calls: Calls, use: str, told: str) -> None:
    message = await failure(run, f"x = 1\nreturn await {use}")
    assert message.startswith("Traceback (most recent call last):\n" + in_line(2, f"return await {use}"))
    assert message.endswith(f"\n{told}")
    assert calls.made == []


@holds("F12")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("{'rows': [1, {2}]}", "arguments.value.rows[1] is of type set, which JSON does not have; use sorted(...)"),
        ("float('nan')", "arguments.value is nan, which JSON does not have; use None or a string"),
        ("{1: 2}", "arguments.value has a key that is not a string: 1 (int); use str(key)"),
        ("tools.echo(value=1)", "arguments.value is of type PendingCall, which JSON does not have; write `await`"),
    ],
)
async def test_an_argument_that_is_not_json_is_told_by_its_path(
    run: Run, calls: Calls, argument: str, told: str
) -> None:
    message = await failure(run, f"return await tools.echo(value={argument})")
    assert in_line(1, f"return await tools.echo(value={argument})") in message
    assert f"\nToolCallError: tool arguments must be lossless JSON: {told}" in message
    assert calls.made == []


@holds("F13", "F15")
@pytest.mark.anyio
async def test_a_failed_call_is_told_with_its_line(run: Run) -> None:
    told = await failure(run, "x = 1\nrow = await tools.boom(message='no stock')\nreturn row")
    assert told == (
        "Traceback (most recent call last):\n"
        + in_line(2, "row = await tools.boom(message='no stock')")
        + "ToolCallError: no stock"
    )


@holds("F13", "F15")
@pytest.mark.anyio
async def test_where_a_line_makes_several_calls_the_one_that_failed_is_named(run: Run) -> None:
    program = (
        "import asyncio\n"
        "await asyncio.gather(tools.echo(value=1), tools.boom(message='first'))\n"
    )  # fmt: skip
    told = await failure(run, program)
    assert told.endswith('\nToolCallError: first\nThe call was tools.boom({"message":"first"}) on line 2.')
    program = "import asyncio\ncalls = [tools.boom(message=f'no {n}') for n in (7, 8)]\nawait asyncio.gather(*calls)"
    told = await failure(run, program)
    assert in_line(3, "await asyncio.gather(*calls)") in told
    # Which of the two fails first is the loop's own business.
    ends = [f'\nToolCallError: no {n}\nThe call was tools.boom({{"message":"no {n}"}}) on line 2.' for n in (7, 8)]
    assert told.endswith(tuple(ends))


@holds("F13", "F15")
@pytest.mark.anyio
async def test_each_failure_of_a_task_group_is_told_with_its_line(run: Run, calls: Calls) -> None:
    async def fail_together(call: BindingCall) -> JsonValue:
        await calls.meet(BindingCall("tools", "meet", {"parties": 2}, 0))
        raise BindingError(f"no {call.arguments}")

    namespaces = [Namespace("shop", {"sell": Member(fail_together, ("what",))}, ErrorClass("ShopError", "item"))]
    program = (
        "import asyncio\n"
        "async def sell(what):\n"
        "    return await shop.sell(what=what)\n"
        "async with asyncio.TaskGroup() as group:\n"
        "    group.create_task(sell('a'))\n"
        "    group.create_task(shop.sell('b'))\n"
    )
    told = await failure(run, program, namespaces)
    assert told.startswith("  + Exception Group Traceback (most recent call last):\n")
    assert '\n  |   File "<program>", line 4, in <program>\n  |     async with asyncio.TaskGroup() as group:\n' in told
    assert "\n  | ExceptionGroup: unhandled errors in a TaskGroup (" in told
    first = (
        '    |   File "<program>", line 3, in sell\n    |     return await shop.sell(what=what)\n'
        "    | ShopError: no {'what': 'a'}\n"
    )
    second = (
        "    |   File \"<program>\", line 6, in <program>\n    |     group.create_task(shop.sell('b'))\n"
        "    | ShopError: no {'what': 'b'}\n"
    )
    assert first in told or second in told


# Imports


@holds("F15")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("import requests", "No module named 'requests' in this sandbox: there is no network; use the tools"),
        (
            "import numpy as np",
            (
                "No module named 'numpy' in this sandbox: it is not part of Python; use lists, with math, statistics"
                " and random"
            ),
        ),
        (
            "from pandas import DataFrame",
            (
                "No module named 'pandas' in this sandbox: it is not part of Python; use lists and dicts, with csv,"
                " collections and statistics"
            ),
        ),
        ("import statistic", "No module named 'statistic' in this sandbox; did you mean statistics?"),
        ("import sqlite3", "No module named 'sqlite3' in this sandbox: it works on files, and there are none"),
        (
            "from tools import echo",
            (
                "No module named 'tools'\nHint: `tools` is there without an import; call its members as"
                " `await tools.<name>(...)`."
            ),
        ),
    ],
)
async def test_a_module_that_is_not_there_has_a_way_out(run: Run, statement: str, told: str) -> None:
    expected = "Traceback (most recent call last):\n" + in_line(1, statement) + f"ModuleNotFoundError: {told}"
    assert await failure(run, f"{statement}\nreturn 1") == expected


@holds("F15")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "near"),
    [
        ("from collections import defaultdic", "did you mean defaultdict?"),
        ("import math\nmath.squrt(4)", "sqrt"),
        ("import json\njson.dunps(4)", "dumps"),
    ],
)
async def test_a_name_that_a_module_does_not_have_has_near_ones(run: Run, program: str, near: str) -> None:
    message = await failure(run, program)
    assert near in message
    assert "did you mean" in message


# Exceptions


@holds("F15")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("return true", "NameError: name 'true' is not defined\nHint: write `True`."),
        ("x = [null]", "NameError: name 'null' is not defined\nHint: write `None`."),
        ("json.dumps(1)", "NameError: name 'json' is not defined\nHint: write `import json` first."),
        ("results = 1\nreturn resutls", "NameError: name 'resutls' is not defined\nHint: did you mean `results`?"),
        (
            "def f(rows):\n    return rosw\nf([])",
            "NameError: name 'rosw' is not defined\nHint: did you mean `rows`?",
        ),
        (
            "try:\n    await tools.boom(message='x')\nexcept tools.ToolCallError:\n    pass",
            "Hint: `ToolCallError` is a name of its own; write it without `tools.`.",
        ),
        (
            "try:\n    await tools.boom(message='x')\nexcept ToolError:\n    pass",
            "NameError: name 'ToolError' is not defined\nHint: did you mean `ToolCallError`?",
        ),
        ("d = {'total': 1}\nreturn d['totals']", "KeyError: 'totals'\nHint: its keys are 'total'."),
        (
            "r = await tools.echo(value={'rows': [{'id': 1, 'name': 'a'}]})\nreturn r['rows'][0]['title']",
            "KeyError: 'title'\nHint: its keys are 'id', 'name'.",
        ),
        ("d = {}\nreturn d['a']", "KeyError: 'a'\nHint: it is empty."),
        ("d = {'a': 1}\nreturn d.pop('b')", "KeyError: 'b'"),
        (
            "d = {'rows': []}\nreturn d.rows",
            "AttributeError: 'dict' object has no attribute 'rows'\nHint: it is a dict; write `['rows']`.",
        ),
        (
            "d = {'rows': []}\nreturn d.items_",
            "AttributeError: 'dict' object has no attribute 'items_'\nHint: it is a dict; its keys are 'rows'.",
        ),
        (
            "d = [{'a': 1}]\nreturn d.a",
            (
                "AttributeError: 'list' object has no attribute 'a'\n"
                "Hint: it is a list of 1 element; loop over it, or take an element first, as in `[0]`."
            ),
        ),
        (
            "d = [{'a': 1}]\nreturn d['a']",
            "Hint: it is a list; loop over it, or take an element first, as in `[0]`.",
        ),
        ("d = [1, 2]\nreturn d[2]", "IndexError: list index out of range\nHint: it is a list of 2 elements."),
        (
            "for row in {'id': 1}:\n    print(row['id'])",
            (
                "Hint: it is a string and no dict: 'id'; a loop over a dict gives its keys, `.items()` its keys and"
                " values."
            ),
        ),
        (
            "next(iter([]))",
            "StopIteration\nHint: `next(...)` found no more items; give it a default, as in `next(items, None)`.",
        ),
        ("import sys\nsys.exit(0)", "SystemExit: 0\nHint: to end a program early, write `return`."),
        (
            "import datetime, json\njson.dumps({'day': datetime.date(2026, 1, 2)})",
            "Hint: turn it into JSON first, or write `json.dumps(value, default=str)`.",
        ),
        ("x = 3\nassert x == 4, f'{x} is not 4'", "           ^^^^^^\nAssertionError: 3 is not 4"),
        (
            "class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E",
            "E: <exception str() failed>",
        ),
        ("error = ValueError('x')\nerror.add_note('in row 3')\nraise error", "ValueError: x\nin row 3"),
        (
            "import asyncio\nawait asyncio.wait_for(tools.slow(ms=5000), 0.01)",
            "Traceback (most recent call last):\n"
            + in_line(2, "await asyncio.wait_for(tools.slow(ms=5000), 0.01)")
            + "TimeoutError",
        ),
        (
            "import asyncio\nasync def wait():\n    await asyncio.Event().wait()\nawait wait()",
            "Traceback (most recent call last):\n"
            + in_line(4, "await wait()")
            + in_line(3, "await asyncio.Event().wait()", name="wait")
            + "RuntimeError: the program waits for something that cannot happen: no call and no timer is pending",
        ),
    ],
)
async def test_an_exception_is_told_with_what_to_do(run: Run, program: str, told: str) -> None:
    message = await failure(run, program)
    assert f"\n{message}".endswith(f"\n{told}"), message


@holds("F15")
@pytest.mark.anyio
async def test_frames_of_functions_and_causes_are_told_in_order(run: Run) -> None:
    program = (
        "def parse(text):\n"
        "    try:\n"
        "        return {'a': 1}[text]\n"
        "    except KeyError as error:\n"
        "        raise ValueError(f'bad {text}') from error\n"
        "def load(texts):\n"
        "    return [parse(text) for text in texts]\n"
        "return load(['a', 'é'])"
    )
    assert await failure(run, program) == (
        "Traceback (most recent call last):\n"
        + in_line(3, "return {'a': 1}[text]", "       ~~~~~~~~^^^^^^", "parse")
        + "KeyError: 'é'\n\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        + in_line(8, "return load(['a', 'é'])")
        + in_line(7, "return [parse(text) for text in texts]", "        ~~~~~^^^^^^", "load")
        + in_line(5, "raise ValueError(f'bad {text}') from error", name="parse")
        + "ValueError: bad é"
    )


@holds("F15")
@pytest.mark.anyio
async def test_a_stop_iteration_is_told_as_such_through_async_functions(run: Run) -> None:
    program = "async def first(rows):\n    return next(row for row in rows if row > 2)\nreturn await first([1])"
    assert (await failure(run, program)).startswith(
        "Traceback (most recent call last):\n"
        + in_line(3, "return await first([1])")
        + in_line(2, "return next(row for row in rows if row > 2)", name="first")
        + "StopIteration\n"
    )


@holds("F15")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "left_out"),
    [
        ("def f(n):\n    return f(n + 1)\nf(0)", r"  \[Previous line repeated \d+ more times\]"),
        ("def f(n):\n    return g(n)\ndef g(n):\n    return f(n)\nf(0)", r"  \[\d+ more calls\]"),
    ],
)
async def test_of_a_deep_recursion_both_ends_are_told(run: Run, program: str, left_out: str) -> None:
    message = await failure(run, program)
    assert len(message.splitlines()) < 45
    assert re.search(rf"^{left_out}$", message, re.MULTILINE)
    assert "\nRecursionError: " in message
    assert "\nHint: a function calls itself without an end" in message


@holds("F15")
@pytest.mark.anyio
async def test_a_place_is_marked_by_characters_and_not_by_bytes(run: Run) -> None:
    told = await failure(run, "x = {'é': None}\nreturn ('日本', x['é']['a'])")
    assert "    return ('日本', x['é']['a'])\n                  ^^^^^^^^^^^\n" in told


@holds("F14", "F15")
@pytest.mark.anyio
async def test_what_a_program_prints_of_an_exception_shows_its_own_frames_alone(run: Run) -> None:
    result = await run(
        "import logging, traceback\n"
        "try:\n"
        "    await tools.boom(message='first')\n"
        "except ToolCallError as error:\n"
        "    traceback.print_exc()\n"
        "    print(traceback.format_exc(), end='')\n"
        "    traceback.print_exception(error)\n"
        "    logging.getLogger('mine').exception('told')\n"
    )
    shown = (
        "Traceback (most recent call last):",
        '  File "<program>", line 3, in <program>',
        "    await tools.boom(message='first')",
        "ToolCallError: first",
    )
    assert result.error is None, result.error.message
    assert [line for line in result.logs if "told" not in line] == [*shown * 4]


@holds("F15")
@needs(Capability.INTERPRETER)
@pytest.mark.anyio
async def test_files_and_threads_that_are_not_there_have_a_way_out(run: Run) -> None:
    assert (await failure(run, "open('data.csv')")).endswith("the sandbox has no file system; use the tools for files.")
    told = await failure(run, "import threading\nthreading.Thread(target=print).start()")
    assert told.endswith("there are no threads; use asyncio.gather(...) or asyncio.TaskGroup.")


@holds("F19")
@pytest.mark.anyio
async def test_a_program_that_takes_too_much_memory_is_told_so(make_sandbox: SandboxFactory) -> None:
    async with make_sandbox(compute_ms=20_000, max_memory_bytes=128 << 20) as sandbox:
        result: SandboxResult = await sandbox.run(SandboxRequest(program="x = 1\nrows = [0] * 10**9"))
    assert result.error is not None
    assert result.error.message == (
        "Traceback (most recent call last):\n"
        + in_line(2, "rows = [0] * 10**9", "       ~~~~^~~~~~~")
        + "MemoryError\nHint: the program has reached its memory limit; keep less in memory at once."
    )
