"""What a program gives back: values, output, and the end of its own making."""

from __future__ import annotations

import json
import os

import pytest

from .backend import Capability, holds, needs
from .fixtures import Run


@holds("F5")
@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("return 1 + 1", "2"),
        ("return None", "null"),
        ("return", None),
        ("x = 1", None),
        ("return {'a': [1, 2.5, True, None, 'x']}", '{"a":[1,2.5,true,null,"x"]}'),
        ("return (1, 2)", "[1,2]"),
        ("return 2**80", str(2**80)),
        ("return -0.0", "-0.0"),
        ("return ''", '""'),
        ("if False:\n    return 1", None),
    ],
)
@pytest.mark.anyio
async def test_what_is_returned(run: Run, program: str, value: str | None) -> None:
    result = await run(program)
    assert (result.error, result.value_json) == (None, value)


@holds("F5")
@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("x = 20\nx + 1", "21"),
        ("x = []\nx.append(1)", None),
        ("await tools.echo(value=3)", "3"),
        ("if True:\n    5", None),
        ("def f():\n    return 9\nf()", "9"),
        ("if False:\n    return 1\n2", None),
    ],
)
@pytest.mark.anyio
async def test_a_last_expression_is_the_result_unless_the_program_returns(
    run: Run, program: str, value: str | None
) -> None:
    """Ruling 32."""
    result = await run(program)
    assert (result.error, result.value_json) == (None, value)


@holds("F14")
@pytest.mark.anyio
async def test_output_is_lines_in_the_order_of_writing(run: Run) -> None:
    """Ruling 36."""
    result = await run(
        "import sys\n"
        "print('one', 2, sep='-')\n"
        "print('a\\nb')\n"
        "sys.stderr.write('err\\n')\n"
        "print('x', end='')\n"
        "print('y', file=sys.stderr)\n"
        "print()\n"
        "sys.stdout.write('tail')\n"
        "return None\n"
    )
    assert result.logs == ("one-2", "a", "b", "err", "xy", "", "tail")


@holds("F14", "B65")
@pytest.mark.anyio
async def test_a_lone_surrogate_is_printed_as_an_escape(run: Run) -> None:
    """Ruling 31."""
    result = await run("print('a\\ud800b')")
    assert (result.error, result.logs) == (None, ("a\\ud800b",))


@holds("F6")
@pytest.mark.anyio
async def test_each_run_has_fresh_state(run: Run) -> None:
    """What a program makes, and what it changes where it may, is gone in the next run."""
    await run(
        "import asyncio, json, math\n"
        "kept = 1\n"
        "for place in (json, math, asyncio, int, tools, ToolCallError):\n"
        "    try:\n"
        "        setattr(place, 'leak', 1)\n"
        "    except Exception:\n"
        "        pass\n"
        "ToolCallError.name = 'changed'\n"
        "task = asyncio.create_task(asyncio.sleep(100))\n"
        "print('kept')"
    )
    result = await run(
        "import asyncio, json, math\n"
        "places = (json, math, asyncio, int, ToolCallError)\n"
        "try:\n"
        "    kept\n"
        "except NameError:\n"
        "    return [any([hasattr(place, 'leak') for place in places]), ToolCallError.name, len(asyncio.all_tasks())]"
    )
    assert (result.error, result.logs) == (None, ())
    assert json.loads(result.value_json or "") == [False, "ToolCallError", 1]


@holds("F6")
@needs(Capability.INTERPRETER)
@pytest.mark.anyio
async def test_modules_that_were_changed_are_fresh_in_the_next_run(run: Run) -> None:
    await run("import builtins, json, sys\nbuiltins.leak = json.leak = sys.leak = 1\njson.dumps = None")
    result = await run(
        "import builtins, json, sys\nreturn [hasattr(m, 'leak') for m in (builtins, json, sys)] + [json.dumps([1])]"
    )
    assert result.value_json == '[false,false,false,"[1]"]'


@holds("F6")
@pytest.mark.anyio
async def test_runs_share_no_randomness(run: Run) -> None:
    program = "import random, secrets, uuid\nreturn [random.random(), secrets.token_hex(8), str(uuid.uuid4())]"
    drawn = [json.loads((await run(program)).value_json or "[]") for _ in range(4)]
    for values in zip(*drawn, strict=True):
        assert len(set(values)) == 4


@holds("F6")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "program",
    [
        "return open(__file__).read()",
        "return open('/etc/passwd').read()",
        "return open('/proc/self/environ').read()",
        "with open('written-by-a-program', 'w') as file:\n    file.write('x')",
        "import os\nreturn [dict(os.environ), os.getcwd(), os.listdir('/')]",
        "import pathlib\nreturn [str(path) for path in pathlib.Path('/').iterdir()]",
        "import subprocess\nreturn subprocess.run(['env'], capture_output=True).stdout.decode()",
        "import socket\nreturn socket.create_connection(('127.0.0.1', 1), timeout=1) is not None",
        "import urllib.request\nreturn urllib.request.urlopen('file:///etc/passwd').read().decode()",
        "import sys\nreturn [sys.argv, sys.path]",
        "return input()",
    ],
)
async def test_there_is_nothing_of_the_host(run: Run, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setenv("SANDBOX_CANARY", "canary-81321")
    result = await run(program)
    told = str(result)
    for secret in ("canary-81321", "root:", os.path.dirname(__file__), os.getcwd()):
        assert secret not in told
    assert "written-by-a-program" not in os.listdir()
    assert result.error is None or result.error.kind in ("exception", "worker-exit")
    assert (await run("return 1")).value_json == "1"


@holds("F6")
@needs(Capability.INTERPRETER)
@pytest.mark.anyio
async def test_files_environment_and_arguments_are_empty(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX_CANARY", "canary-81321")
    result = await run(
        "import os, sys\n"
        "found = []\n"
        "for path in ('/', '/etc/passwd', '.', '/proc/self/environ'):\n"
        "    try:\n"
        "        found.append(open(path).read())\n"
        "    except OSError as error:\n"
        "        found.append(type(error).__name__)\n"
        "return ['SANDBOX_CANARY' in os.environ, sys.argv[1:], found]"
    )
    assert result.error is None
    assert json.loads(result.value_json or "") == [False, [], ["FileNotFoundError"] * 4]


@holds("F16")
@pytest.mark.parametrize(
    ("program", "where", "way_out"),
    [
        ("return {'rows': [1, {1, 2}]}", "the returned value.rows[1] is of type set", "use sorted(...)"),
        ("return {1: 'a'}", "the returned value has a key that is not a string: 1", "use str(key)"),
        ("return float('nan')", "the returned value is nan", "use None"),
        ("return b'abc'", "is of type bytes", "use .decode()"),
        (
            "import datetime\nreturn [datetime.date(2026, 1, 2)]",
            "the returned value[0] is of type date",
            "use .isoformat()",
        ),
        ("import decimal\nreturn decimal.Decimal(1)", "is of type Decimal", "use str(...)"),
        ("d = {}\nd['self'] = d\nreturn d", "the returned value.self contains itself", ""),
        ("return {'s': '\\ud800'}", "the returned value.s holds a lone surrogate", ""),
        ("return lambda: 1", "is of type function", ""),
        ("return tools", "is of type tools", ""),
    ],
)
@pytest.mark.anyio
async def test_a_result_that_is_not_json_is_refused_with_its_path_and_the_way_out(
    run: Run, program: str, where: str, way_out: str
) -> None:
    """Ruling 33."""
    result = await run(program)
    assert result.error is not None
    assert result.error.kind == "invalid-output"
    assert result.error.message.startswith("program completion must be lossless JSON: ")
    assert where in result.error.message
    assert way_out in result.error.message
    assert result.value_json is None


@holds("F16", "F41", "B5")
@pytest.mark.anyio
async def test_nesting_works_to_200_levels_and_is_refused_clearly_beyond(run: Run) -> None:
    """Ruling 34."""
    program = "x = 0\nfor _ in range({depth}):\n    x = [x]\nreturn await tools.echo(value=x)"
    deep = await run(program.format(depth=199))
    assert deep.value_json == "[" * 199 + "0" + "]" * 199
    deeper = await run(program.format(depth=100_000))
    assert deeper.error is not None
    assert "nested" in deeper.error.message


@holds("F15")
@pytest.mark.anyio
async def test_an_exception_shows_the_programs_own_frames_and_lines(run: Run) -> None:
    """Ruling 38."""
    result = await run("import json\n\ndef parse(text):\n    return json.loads(text)\n\nprint('before')\nparse('{')\n")
    assert result.logs == ("before",)
    assert result.error is not None
    assert result.error.kind == "exception"
    lines = result.error.message.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    frames = [line.strip() for line in lines if line.startswith("  File")]
    assert frames == ['File "<program>", line 7, in <program>', 'File "<program>", line 4, in parse']
    assert "    return json.loads(text)" in lines
    assert lines[-1].startswith("json.decoder.JSONDecodeError: ")


@holds("F26")
@pytest.mark.parametrize(
    ("program", "line", "error"),
    [
        ("x = 1\ndef f(:\n    pass", 2, "SyntaxError"),
        ("x = 1\nyield x", 2, "SyntaxError: 'yield' outside function"),
        ("x = '''\nnever closed", 1, "SyntaxError"),
        ("    x = 1\nreturn 2", 1, "IndentationError"),
        ("nonlocal tools", 1, "SyntaxError"),
        ("for x in [1]:\n    pass\nbreak", 3, "SyntaxError: 'break' outside loop"),
    ],
)
@pytest.mark.anyio
async def test_a_syntax_error_names_its_line(run: Run, program: str, line: int, error: str) -> None:
    result = await run(program)
    assert result.error is not None
    assert result.error.kind == "exception"
    assert f'File "<program>", line {line}' in result.error.message
    assert error in result.error.message


@holds("F15")
@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import sys\nsys.exit('done')", "SystemExit: done"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise StopIteration(1)", "StopIteration"),
        ("import asyncio\nraise asyncio.CancelledError('mine')", "CancelledError: mine"),
        ("import asyncio\nasyncio.current_task().cancel()\nawait asyncio.sleep(0)", "CancelledError"),
        ("raise BaseExceptionGroup('g', [KeyboardInterrupt(), SystemExit(0)])", "BaseExceptionGroup"),
        (
            "import asyncio\nasync def end():\n    exit(1)\nasyncio.create_task(end())\nawait asyncio.sleep(1)",
            "SystemExit: 1",
        ),
        ("class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E", "E"),
    ],
)
@pytest.mark.anyio
async def test_whatever_a_program_raises_ends_it_as_an_exception(run: Run, program: str, told: str) -> None:
    result = await run(program)
    assert result.error is not None
    assert result.error.kind == "exception"
    assert told in result.error.message


@pytest.mark.anyio
async def test_deep_recursion_ends_that_program_alone(run: Run) -> None:
    result = await run("def f(n):\n    return f(n + 1)\nf(0)")
    assert result.error is not None
    assert "RecursionError" in result.error.message
    assert len(result.error.message) < 5000
    assert (await run("return 1")).value_json == "1"


@holds("F4")
@pytest.mark.anyio
async def test_ordinary_shapes_of_programs_work(run: Run) -> None:
    """Ruling 37."""
    result = await run(
        "import asyncio\n"
        "from math import *\n"
        "from dataclasses import dataclass, asdict\n"
        "count: int = 0\n"
        "later: str\n"
        "@dataclass\n"
        "class Point:\n"
        "    x: int\n"
        "    y: 'int' = 2\n"
        "def bump():\n"
        "    global count\n"
        "    count += 1\n"
        "def counter():\n"
        "    n = 0\n"
        "    def step():\n"
        "        nonlocal n\n"
        "        n += 1\n"
        "        return n\n"
        "    return step\n"
        "step = counter()\n"
        "step()\n"
        "async def main():\n"
        "    bump()\n"
        "    async with asyncio.timeout(5), asyncio.TaskGroup() as group:\n"
        "        tasks = [group.create_task(tools.echo(value=n)) for n in range(3)]\n"
        "    return [task.result() for task in tasks]\n"
        "if __name__ == '__main__':\n"
        "    first = asyncio.run(main())\n"
        "def inside():\n"
        "    return asyncio.run(main())\n"
        "second = inside()\n"
        "squares = [last := n * n for n in range(4)]\n"
        "match asdict(Point(1)):\n"
        "    case {'x': x, **rest}:\n"
        "        pass\n"
        "return [first, second, count, step(), squares, last, x, rest, floor(pi)]\n"
    )
    assert result.error is None, result.error
    assert json.loads(result.value_json or "") == [
        [0, 1, 2], [0, 1, 2], 2, 2, [0, 1, 4, 9], 9, 1, {"y": 2}, 3,
    ]  # fmt: skip


@pytest.mark.anyio
async def test_sleeping_gives_control_away(run: Run) -> None:
    result = await run("import time\nt = time.monotonic()\ntime.sleep(0.2)\nreturn time.monotonic() - t >= 0.2")
    assert result.value_json == "true"
    assert result.statistics.compute_ms < result.statistics.wall_ms - 100
