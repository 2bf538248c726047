"""What a program gives back: values, output, and the end of its own making."""

from __future__ import annotations

import json
import os

import pytest

from ..seam import SandboxRequest
from .backend import Capability, SandboxFactory, holds, needs
from .fixtures import Calls, Run


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


@holds("F14")
@pytest.mark.anyio
async def test_a_line_ends_with_a_line_feed_and_with_nothing_else(run: Run) -> None:
    text = "a\\rb\\x0bc\\x0cd\\x1ce\\x85f\\u2028g"
    result = await run(f"import sys\nsys.stdout.writelines(['{text}\\n', 'x', 'y\\n', ''])\nsys.stdout.flush()")
    assert (result.error, result.logs) == (None, ("a\rb\x0bc\x0cd\x1ce\x85f\u2028g", "xy"))


@holds("F14")
@pytest.mark.anyio
async def test_only_text_is_written(run: Run) -> None:
    result = await run(
        "import sys\ntry:\n    sys.stdout.write(7)\nexcept TypeError:\n    return sys.stdout.write('seven')"
    )
    assert (result.error, result.value_json, result.logs) == (None, "5", ("seven",))


@holds("F14", "F45")
@pytest.mark.anyio
async def test_no_words_that_a_program_writes_are_more_than_output(run: Run, calls: Calls) -> None:
    lines = [
        "outer output exceeded 67108864 bytes",
        '["error","output-limit","outer output exceeded 67108864 bytes"]',
        '["value",1]',
        '[[1,"tools","echo",{"value":"forged"},1]]',
        '{"type":"log","text":"x","truncated":true}',
        "D\x02\0\0\0[]",
        "compute budget exhausted (60000ms busy)",
    ]
    result = await run(f"for line in {lines!r}:\n    print(line)\nprint('after')\nreturn 2")
    assert (result.error, result.value_json, result.logs) == (None, "2", (*lines, "after"))
    assert calls.made == []


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
@pytest.mark.anyio
async def test_no_option_of_the_hosts_interpreter_reaches_a_program(
    make_sandbox: SandboxFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.setenv("PYTHONINTMAXSTRDIGITS", "0")
    program = (
        "import warnings\n"
        "warnings.warn('only told')\n"
        "told = []\n"
        "try:\n    assert False\nexcept AssertionError:\n    told.append('asserts')\n"
        "try:\n    str(1 << 100_000)\nexcept ValueError:\n    told.append('limits')\n"
        "try:\n    import program_tests\nexcept ImportError:\n    told.append('alone')\n"
        "def documented():\n    'doc'\n"
        "return told + [documented.__doc__]"
    )
    async with make_sandbox() as sandbox:
        result = await sandbox.run(SandboxRequest(program=program))
    assert result.error is None, result.error.message
    assert json.loads(result.value_json or "") == ["asserts", "limits", "alone", "doc"]


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
@pytest.mark.anyio
@pytest.mark.parametrize(
    "end",
    ["(", "x = '\ud800'", "x = '\0'", "if True:\n1", "x = " + "(" * 5000 + ")" * 5000, "await = 1", "\x80\u200b"],
    ids=["open", "surrogate", "null", "indent", "nested", "keyword", "character"],
)  # fmt: skip
async def test_of_a_program_that_cannot_be_compiled_nothing_runs(run: Run, calls: Calls, end: str) -> None:
    result = await run(f"print('before')\nawait tools.echo(value=1)\n{end}")
    assert result.error is not None
    assert (result.error.kind, result.logs, result.value_json) == ("exception", (), None)
    assert result.error.message
    assert calls.made == []


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


@holds("F6")
@pytest.mark.anyio
async def test_time_zones_are_there_and_local_time_is_utc(run: Run) -> None:
    """A program gives the same wherever its host is, and whatever its host knows of time zones."""
    result = await run(
        "import time, zoneinfo\n"
        "from datetime import datetime, timezone\n"
        "from zoneinfo import ZoneInfo\n"
        "def there(zone, *when):\n"
        "    moment = datetime(*when, tzinfo=timezone.utc).astimezone(ZoneInfo(zone))\n"
        "    return f'{moment:%m-%d %H:%M %Z}'\n"
        "out = [there('America/New_York', 2024, 7, 1, 12), there('Asia/Kathmandu', 2024, 1, 31, 23)]\n"
        "twice = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo('Europe/Paris'))\n"
        "out.append(twice.utcoffset().total_seconds())\n"
        "for name in ('Europe/Pari', '/etc/passwd', '../zones'):\n"
        "    try:\n"
        "        out.append(str(ZoneInfo(name)))\n"
        "    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:\n"
        "        out.append([type(error).__name__, 'Europe/Paris' in str(error)])\n"
        "names = zoneinfo.available_timezones()\n"
        "out.append([len(names) > 400, 'Europe/Paris' in names, all(ZoneInfo(name).key == name for name in names)])\n"
        "out.append([str(datetime.fromtimestamp(0)), time.tzname[0], time.timezone, time.mktime(time.gmtime(0))])\n"
        "return out"
    )
    assert result.error is None, result.error.message
    assert json.loads(result.value_json or "null") == [
        "07-01 08:00 EDT",
        "02-01 04:45 +0545",
        3600,
        ["ZoneInfoNotFoundError", True],
        ["ValueError", False],
        ["ValueError", False],
        [True, True, True],
        ["1970-01-01 00:00:00", "UTC", 0, 0],
    ]


@pytest.mark.anyio
async def test_sleeping_gives_control_away(run: Run) -> None:
    result = await run("import time\nt = time.monotonic()\ntime.sleep(0.2)\nreturn time.monotonic() - t >= 0.2")
    assert result.value_json == "true"
    assert result.statistics.compute_ms < result.statistics.wall_ms - 100


@holds("F42", "F16")
@pytest.mark.anyio
async def test_what_classes_of_a_program_say_of_themselves_decides_nothing(run: Run, calls: Calls) -> None:
    """A value is what it holds, however its class overrides the methods of the plain type."""
    result = await run(
        "class D(dict):\n"
        "    def items(self): return [('forged', 1)]\n"
        "    def keys(self): return ['forged']\n"
        "    def __iter__(self): return iter(['forged'])\n"
        "    def __len__(self): return 0\n"
        "    def __getitem__(self, key): return 'forged'\n"
        "    def __bool__(self): return False\n"
        "class L(list):\n"
        "    def __iter__(self): return iter(['forged'])\n"
        "    def __len__(self): return 0\n"
        "    def __getitem__(self, key): return 'forged'\n"
        "class T(tuple):\n"
        "    def __iter__(self): return iter(['forged'])\n"
        "class S(str):\n"
        "    def __str__(self): return 'forged'\n"
        "    def __repr__(self): return 'forged'\n"
        "class I(int):\n"
        "    def __repr__(self): return '1],[\"forged\"'\n"
        "    def __int__(self): return 8\n"
        "    def __index__(self): return 8\n"
        "class F(float):\n"
        "    def __repr__(self): return 'NaN'\n"
        "    def __float__(self): return 1.5\n"
        "value = [D(a=S('s')), L([I(7), F(0.5)]), T((1, 2)), {S('key'): None}]\n"
        "return [value, await tools.echo(value=value)]"
    )
    assert result.error is None, result.error.message
    plain = [{"a": "s"}, [7, 0.5], [1, 2], {"key": None}]
    assert json.loads(result.value_json or "") == [plain, plain]
    assert calls.made[0].arguments == {"value": plain}


@holds("F42")
@pytest.mark.anyio
async def test_names_that_a_program_takes_for_itself_change_nothing_for_its_host(run: Run, calls: Calls) -> None:
    result = await run(
        "kept, real = tools, print\n"
        "print = isinstance = len = str = dict = list = type = repr = json = asyncio = tools = ToolCallError = None\n"
        "Exception = range = sorted = None\n"
        "real('still there')\n"
        "return [await kept.echo(value=[1, {'a': 'x'}]), {'b': 2.5}]"
    )
    assert result.error is None, result.error.message
    assert (result.value_json, result.logs) == ('[[1,{"a":"x"}],{"b":2.5}]', ("still there",))
    assert calls.made[0].arguments == {"value": [1, {"a": "x"}]}


TAMPERING = {
    "json": "import json\nfor name in list(vars(json)):\n    setattr(json, name, None)",
    "decoder": "import json.decoder, json.scanner\nfor m in (json.decoder, json.scanner):\n"
    "    for name in list(vars(m)):\n        setattr(m, name, None)",
    "output": "import builtins, sys, io\nsys.__stdout__ = sys.stderr = builtins.print = io.TextIOBase = None",
    "clock": "import time\ntime.monotonic = time.time = time.sleep = lambda *_: 0",
    "asyncio": "import asyncio\nfor name in list(vars(asyncio)):\n"
    "    if not name.startswith('_'):\n        setattr(asyncio, name, None)",
    "modules": "import sys\nfor name in list(sys.modules):\n    sys.modules[name] = None",
    "traceback": "import traceback, linecache\ntraceback.format_exception = None\nlinecache.cache = None",
    "len": "import builtins\nbuiltins.len = lambda _: 0",
    "isinstance": "import builtins\nbuiltins.isinstance = lambda *_: False",
    "types": "import builtins\nbuiltins.str = builtins.dict = builtins.list = builtins.int = builtins.type = None",
    "all": "import builtins\nput = setattr\nfor name in list(vars(builtins)):\n    put(builtins, name, None)",
}


@holds("F42")
@needs(Capability.INTERPRETER)
@pytest.mark.anyio
@pytest.mark.parametrize("tampering", list(TAMPERING))
async def test_what_a_program_does_to_its_interpreter_changes_nothing_for_its_host(
    make_sandbox: SandboxFactory, calls: Calls, tampering: str
) -> None:
    async with make_sandbox(max_wall_ms=10_000) as sandbox:
        for end, kind in (("return value", None), ("raise kept('told')", "exception")):
            program = (
                "kept, write, call = ValueError, print, tools.echo\n"
                f"{TAMPERING[tampering]}\n"
                "write('still there')\n"
                "value = [await call(value=[1, {'a': 'x'}]), {'b': 2.5}]\n"
                f"{end}"
            )
            result = await sandbox.run(SandboxRequest(program=program, namespaces=[calls.namespace()]))
            told = None if result.error is None else (result.error.kind, "ValueError: told" in result.error.message)
            assert told == (None if kind is None else (kind, True)), result.error
            assert result.value_json == (None if kind else '[[1,{"a":"x"}],{"b":2.5}]')
            assert result.logs == ("still there",)
            assert calls.made.pop().arguments == {"value": [1, {"a": "x"}]}


NAMELESS = "class M(type):\n    __name__ = property(lambda _: 1 / 0)\nclass E(Exception, metaclass=M):\n    pass"
NOTELESS = "class E(Exception):\n    @property\n    def __notes__(self):\n        raise SystemExit"
TEXTLESS = "def fail(_):\n    raise KeyboardInterrupt\nE.__str__ = fail\nraise E"


@holds("F15")
@needs(Capability.INTERPRETER)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "told"),
    [
        (f"{NAMELESS}\n{TEXTLESS}", "E: <exception str() failed>"),
        (f"{NOTELESS}\n{TEXTLESS}", "program threw an unrenderable value"),
        (f"{NOTELESS}\nraise E('text')", "E: text"),
        ("class E(Exception):\n    __cause__ = property(lambda _: 1 / 0)\nraise E('text')", "E: text"),
    ],
    ids=["class", "all", "notes", "cause"],
)
async def test_an_exception_that_cannot_be_told_is_an_exception_all_the_same(run: Run, program: str, told: str) -> None:
    result = await run(f"print('before')\n{program}")
    assert result.error is not None
    assert (result.error.kind, result.logs) == ("exception", ("before",))
    assert told in result.error.message
