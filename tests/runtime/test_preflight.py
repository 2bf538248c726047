"""The typed preflight: wrong programs are refused with lines before they run, and nothing else stops a program."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import ptc
import pytest
from ptc.runtime import preflight as module
from ptc.runtime import preflight_checker

from .conftest import Rig

if TYPE_CHECKING:
    from ptc.sdk_gen.stub import StubModule

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(find_spec("ty") is None, reason="the extra preflight is not installed"),
]


@pytest.fixture
def make_sandbox() -> Callable[..., ptc.Sandbox]:
    """One backend for all: what is tested here is the same for both, and the other tests of the runtime have both."""
    return ptc.WasmSandbox


def load(name: str) -> Any:
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


programs = load("preflight_programs")
styles = load("preflight_styles")
TOOLS = programs.TOOLS


def preflight(**options: Any) -> ptc.Preflight:
    return ptc.Preflight(timeout_ms=60_000, **options)


WRONG = [
    *((program, line, words, TOOLS) for program, line, words in programs.WRONG),
    *((program, line, words, styles.STYLE_TOOLS) for program, line, words in styles.WRONG_STYLES),
]
RIGHT = [
    *((program, TOOLS) for program in programs.RIGHT),
    *((program, styles.STYLE_TOOLS) for program in styles.RIGHT_STYLES),
]


@pytest.mark.parametrize(("program", "line", "words", "tools"), WRONG, ids=[each[0][:60] for each in WRONG])
async def test_a_wrong_program_is_told_its_line_its_tool_and_its_argument(
    program: str, line: int, words: tuple[str, ...], tools: list[ptc.ToolDefinition]
) -> None:
    report = await preflight().check(program, tools)
    assert report.outcome == "refused", report
    assert any(
        finding.startswith(f"line {line}: ") and all(word in finding for word in words) for finding in report.findings
    ), report.findings
    assert len(report.findings) <= 2


@pytest.mark.parametrize(("program", "tools"), RIGHT, ids=[each[0].strip()[:60] for each in RIGHT])
async def test_a_program_that_may_be_right_passes(program: str, tools: list[ptc.ToolDefinition]) -> None:
    report = await preflight().check(program, tools)
    assert (report.outcome, report.findings, report.reason) == ("passed", (), "")


@pytest.fixture
async def checked(anyio_backend: str, rig: Rig) -> Rig:
    """The rig, with an agent whose programs are checked."""
    executor = ptc.PtcExecutor(sandbox=ptc.WasmSandbox(compute_ms=20_000), preflight=preflight(max_findings=2))
    rig.agent = rig.host.agent("checked", executor=executor)
    return rig


async def test_a_dict_may_be_the_first_of_several_arguments(checked: Rig) -> None:
    @ptc.tool
    async def move(point: dict[str, int], by: int = 1) -> int:
        return point["x"] + by

    checked.host.tools.register(move)
    assert (await checked.run("return await tools.move({'x': 1}, 2)")).text == "3"
    assert (await checked.run("return await tools.move({'x': 1}, by=2)")).is_error
    refused = await preflight().check("await tools.move({'x': 1}, 'far')", [move])
    assert refused.findings == ('line 1: tools.move(...): argument "by" must be int, not str',)


@pytest.mark.contract("C63", "E15", "I4", "I5")
async def test_a_refused_program_has_no_effect_and_is_on_record(checked: Rig) -> None:
    wrong = (
        "print('here')\nawait tools.double(x=1)\nawait tools.double(y=2)\nawait tools.double(x='3')\nawait tools.nope()"
    )
    result = await checked.run(wrong)
    assert result.is_error
    assert result.error.info is not None
    assert (result.error.info.name, result.error.info.code) == ("ProgramRefusedError", "PROGRAM_REFUSED")
    assert result.error.message.split("\n") == [
        "the program was not run, and none of its calls was made: 4 mistakes in its use of the tools",
        'line 3: tools.double(...): required argument "x" is missing',
        'line 3: tools.double(...): there is no argument "y"; there are: "x"',
        "and 2 more",
        "Mend this, and send the whole program again.",
    ]
    assert checked.bodies == []
    recorded = await checked.events()
    assert [type for type, _data in recorded] == ["tool/call", "tool/ptc-preflight", "tool/result"]
    assert recorded[1][1]["outcome"] == "refused"
    assert recorded[1][1]["callId"] == recorded[0][1]["callId"]
    assert recorded[2][1]["error"]["code"] == "PROGRAM_REFUSED"


@pytest.mark.contract("E15", "I5")
async def test_a_program_that_passes_runs_and_counts_its_calls_from_one(checked: Rig) -> None:
    await checked.run("await tools.double(y=1)")
    assert await checked.value("return await tools.double(x=21)") == 42
    events = await checked.events("tool/ptc-preflight", "tool/ptc-dispatch-start")
    assert [type for type, _data in events] == ["tool/ptc-preflight", "tool/ptc-preflight", "tool/ptc-dispatch-start"]
    assert [data["outcome"] for _type, data in events[:2]] == ["refused", "passed"]
    assert events[2][1]["subCallId"].endswith(":ptc:1")


async def test_a_call_that_is_told_to_be_lost_is_lost_when_it_runs(checked: Rig) -> None:
    """What the preflight refuses would have failed: as a statement, and as the last line too."""
    checked_agent = checked.agent
    plain = checked.host.agent("plain", executor=ptc.PtcExecutor(sandbox=ptc.WasmSandbox(compute_ms=20_000)))
    for program in ("tools.double(x=1)\nprint(1)", "tools.double(x=1)"):
        checked.agent = checked_agent
        assert "tools.double(...) is never awaited, so it would not run" in await checked.failure(program)
        checked.agent = plain
        assert "this call was never awaited and did not run" in await checked.failure(program)
    assert checked.bodies == []


@pytest.mark.contract("A18", "E10")
async def test_a_tool_that_the_agent_may_not_see_is_unknown(checked: Rig) -> None:
    checked.agent.tools.restrict(deny=["double"])
    assert 'there is no tool "double"' in await checked.failure("return await tools.double(x=21)")


@pytest.mark.contract("A60")
async def test_a_record_that_cannot_be_written_stops_the_batch(checked: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    session = checked.agent.session
    assert session is not None
    append = session.append

    async def failing(type: str, data: Any, *, cites: int | None = None) -> int:
        if type == "tool/ptc-preflight":
            raise OSError("no space left")
        return await append(type, data, cites=cites)

    monkeypatch.setattr(session, "append", failing)
    with pytest.raises(ptc.ToolBatchExecutionError, match="no space left"):
        await checked.run("return await tools.double(x=21)")
    assert checked.bodies == []


async def test_an_auditor_sees_what_came_of_the_check(checked: Rig) -> None:
    await checked.run("await tools.double(y=1)")
    await checked.run("return 1")
    assert checked.agent.session is not None
    show = [sys.executable, "-m", "ptc.runtime.cli", "audit", "show", checked.agent.session.id]
    shown = [*show, "--log", str(checked.log)]
    told = (await anyio.run_process(shown)).stdout.decode()
    assert "preflight  refused, 2 found, after" in told
    assert "preflight  nothing found, after" in told
    runs = json.loads((await anyio.run_process([*shown, "--json"])).stdout)["runs"]
    assert [run["preflight"]["outcome"] for run in runs] == ["refused", "passed"]
    assert [run["preflight"]["findings"] for run in runs] == [2, 0]


# Bounds


SLOW = """#!/bin/sh
echo $$ > {folder}/pid
sleep 600 &
echo $! >> {folder}/pid
wait
"""

GONE = SLOW.replace("wait\n", "")
"""It ends, and what it has started goes on and holds its output."""


def fake_checker(folder: Path, text: str) -> str:
    path = folder / "ty"
    path.write_text(text.format(folder=folder), encoding="utf-8")
    path.chmod(0o700)
    return str(path)


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]
    except (FileNotFoundError, ProcessLookupError):  # the latter when it goes between the opening and the reading
        return False
    return status not in "ZX"


async def both_started(folder: Path) -> None:
    """Waits until the slow checker has written down its own process and the one that it has started."""
    with anyio.fail_after(30):
        while not (folder / "pid").exists() or (folder / "pid").read_text().count("\n") < 2:  # noqa: ASYNC110 - a file
            await anyio.sleep(0.01)


async def both_gone(folder: Path) -> None:
    pids = [int(pid) for pid in (folder / "pid").read_text().split()]
    assert len(pids) == 2
    with anyio.fail_after(30):
        while any(map(is_alive, pids)):  # noqa: ASYNC110 - processes
            await anyio.sleep(0.01)


IN_PROC = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")


@IN_PROC
async def test_a_check_that_is_given_up_while_the_checker_starts_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight_checker, "find_checker", lambda: fake_checker(tmp_path, SLOW))
    open_process = anyio.open_process
    source = ptc.SignalSource()

    async def late(*args: Any, **options: Any) -> Any:
        """The checker runs already while its pipes are still being made: then the check is given up."""
        process = await open_process(*args, **options)
        await both_started(tmp_path)
        source.abort("enough")
        await anyio.sleep(0.05)
        return process

    monkeypatch.setattr(anyio, "open_process", late)
    report = await preflight().check("await tools.count()", TOOLS, signal=source.signal)
    assert (report.outcome, report.reason) == ("unchecked", "the run was cancelled")
    await both_gone(tmp_path)


@IN_PROC
@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("text", [SLOW, GONE], ids=["slow", "gone"])
async def test_a_check_that_takes_too_long_is_given_up_with_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancelled: bool, text: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(preflight_checker, "find_checker", lambda: fake_checker(tmp_path, text))
    source = ptc.SignalSource()
    report: list[ptc.PreflightReport] = []

    async def check() -> None:
        made = ptc.Preflight(timeout_ms=60_000 if cancelled else 2_000)
        report.append(await made.check("await tools.count()", TOOLS, signal=source.signal))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check)
        await both_started(tmp_path)
        if cancelled:
            await anyio.sleep(0.2)
            source.abort("enough")
    assert report[0].outcome == "unchecked"
    assert report[0].reason == ("the run was cancelled" if cancelled else "its time was over")
    await both_gone(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("ptc-preflight")] == []


@pytest.mark.contract("I15")
async def test_a_program_that_cannot_be_checked_runs_and_the_record_says_so(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight_checker, "find_checker", lambda: fake_checker(tmp_path, SLOW))
    sandbox = ptc.WasmSandbox(compute_ms=20_000)
    rig.agent = rig.host.agent(
        "late", executor=ptc.PtcExecutor(sandbox=sandbox, preflight=ptc.Preflight(timeout_ms=50))
    )
    assert await rig.value("return await tools.double(x=21)") == 42
    ((_type, data),) = await rig.events("tool/ptc-preflight")
    assert (data["outcome"], data["reason"]) == ("unchecked", "its time was over")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/bin/sh\nexit 2\n", "the checker ended with 2"),
        ("#!/bin/sh\nkill -ABRT $$\n", "the checker ended with -6"),
        ("#!/bin/sh\necho 'not JSON'\n", "the checker's answer cannot be read"),
        ("#!/bin/sh\necho '[{{\"check_name\": 1}}]'\n", "the checker's answer cannot be read"),
        ("#!/bin/sh\necho '[]'\n", "the checker did not see the declarations of the tools"),
        ("#!/bin/sh\nexec yes\n", "the checker has too much to say"),
        ("", "the checker cannot be started"),
    ],
)
async def test_a_checker_that_fails_leaves_a_program_unchecked(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checker = fake_checker(tmp_path, text) if text else str(tmp_path / "absent")
    monkeypatch.setattr(preflight_checker, "find_checker", lambda: checker)
    report = await preflight().check("await tools.count(3)", TOOLS)
    assert report.outcome == "unchecked"
    assert report.reason.startswith(reason)


async def test_without_the_checker_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ty", None)
    with pytest.raises(ptc.PreflightUnavailableError, match=r'pip install "ptc-runtime\[preflight\]"'):
        ptc.Preflight()
    report = await ptc.Preflight(fallback=True).check("await tools.count(3)", TOOLS)
    assert (report.outcome, report.reason) == ("unchecked", "no checker is installed")


@pytest.mark.parametrize(
    "options",
    [
        *({"timeout_ms": value} for value in (0, float("nan"), "3", True, None)),
        *({"max_findings": value} for value in (0, 1.5, "3", True, None)),
    ],
)
async def test_limits_are_checked_when_it_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be a"):
        ptc.Preflight(**options)


# What the checker may read


@pytest.fixture
def host_module(tmp_path: Path) -> Path:
    """A folder with a module that gives an int; where it can be read, `tools.find(query=found())` is wrong."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "hostmodule.py").write_text("def found() -> int:\n    return 1\n", encoding="utf-8")
    return folder


USES_IT = "import hostmodule\nawait tools.find(query=hostmodule.found())\n"
BLOCK = """# /// script
# requires-python = ">=3.11"
# [tool.ty.environment]
# extra-paths = ["{folder}"]
# [tool.ty.rules]
# all = "ignore"
# ///
"""


async def test_imports_lead_to_nothing_of_the_host(host_module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = BLOCK.format(folder=host_module)
    (host_module / "ty.toml").write_text(f'[environment]\nextra-paths = ["{host_module}"]\n[rules]\nall = "ignore"\n')
    monkeypatch.chdir(host_module)
    for name in ("PYTHONPATH", "TY_EXTRA_PATHS"):
        monkeypatch.setenv(name, str(host_module))
    monkeypatch.setenv("TY_CONFIG_FILE", str(host_module / "ty.toml"))
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setattr(tempfile, "tempdir", str(host_module))  # the folders above the private one have settings
    own = preflight()
    for program in (USES_IT, block + USES_IT, USES_IT + block):
        report = await own.check(program, TOOLS)
        assert (report.outcome, report.findings) == ("passed", ()), program
        wrong = await own.check(f"{program}await tools.count(3)\n", TOOLS)
        assert (wrong.outcome, len(wrong.findings)) == ("refused", 1), program
    site = "import anyio\nawait tools.find(query=anyio.get_all_backends())\n"
    assert (await own.check(site, TOOLS)).outcome == "passed"
    stdlib = "import os\nawait tools.find(query=os.getpid())\n"
    assert (await own.check(stdlib, TOOLS)).outcome == "refused"


async def test_a_program_cannot_silence_the_check() -> None:
    for head in ("# type: ignore\n", "# ty: ignore\n", "#!/usr/bin/env python\n# type: ignore\n"):
        assert (await preflight().check(f"{head}await tools.count(3)", TOOLS)).outcome == "refused", head
    for tail in ("# type: ignore", "#type:ignore", "# ty: ignore[too-many-positional-arguments]", "# ty:ignore"):
        assert (await preflight().check(f"await tools.count(3)  {tail}", TOOLS)).outcome == "refused", tail


HOSTILE = {
    "parentheses": "x = " + "(" * 5_000 + ")" * 5_000 + "\nawait tools.count(3)",
    "minuses": "x = " + "-" * 50_000 + "1\nawait tools.count(3)",
    "attributes": "x = a" + ".b" * 50_000 + "\nawait tools.count(3)",
    "nested argument": "await tools.save(record=" + "[" * 150 + "]" * 150 + ", to=3)",
    "many mistakes": "await tools.count(3)\n" * 3_000,
    "tuples": "x = (1,)\n" + "x = (x, x)\n" * 60 + "await tools.count(3)",
    "no text": "await tools.count('\udc00')",
    "NUL": "await tools.count('\0')",
    "bytes of all kinds": "é\u2028 = '\x0c'\r\nawait tools.count(3)\r",
    "long": "x = 1\n" * 50_000,
    "empty": "",
}


@pytest.mark.parametrize("program", HOSTILE.values(), ids=HOSTILE.keys())
async def test_no_program_brings_the_host_down(program: str) -> None:
    report = await ptc.Preflight(timeout_ms=20_000).check(program, TOOLS)
    assert report.outcome in ("passed", "refused", "unchecked")
    assert (report.outcome == "unchecked") == bool(report.reason)
    assert all(len(finding) < 500 for finding in report.findings)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("long", "it is longer than 200000 characters"), ("NUL", "no Unicode text"), ("no text", "no Unicode")],
)
async def test_what_no_checker_is_asked_about_is_unchecked(
    name: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight_checker, "Workplace", None)
    report = await preflight().check(HOSTILE[name], TOOLS)
    assert report.outcome == "unchecked"
    assert reason in report.reason


async def test_a_run_that_is_cancelled_already_is_not_checked() -> None:
    source = ptc.SignalSource()
    source.abort("enough")
    report = await preflight().check("await tools.count(3)", TOOLS, signal=source.signal)
    assert (report.outcome, report.reason, report.findings) == ("unchecked", "the run was cancelled", ())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
async def test_the_memory_of_the_checker_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "#!/bin/sh\nfor _ in $(seq 200); do ulimit -v; sleep 0.01; done > {folder}/limits\nexit 2\n"
    monkeypatch.setattr(preflight_checker, "find_checker", lambda: fake_checker(tmp_path, text))
    assert (await preflight().check("await tools.count()", TOOLS)).reason == "the checker ended with 2"
    limit = preflight_checker.MAX_MEMORY_BYTES // 1024
    assert (tmp_path / "limits").read_text().split()[-1] == f"{limit}"


# Cost


async def test_the_stubs_that_are_kept_are_few() -> None:
    own = preflight()
    many = [programs._tool(f"tool{number}", {"type": "object"}, {}) for number in range(2 * module._MAX_STUBS)]
    first = own._stub("tools.tool0()", many[:1])
    for tool in many:
        own._stub(f"tools.{tool.name}()", [tool])
        assert own._stub("tools.tool0()", many[:1]) is first  # what is used stays
    assert len(own._stubs) == module._MAX_STUBS


async def test_the_stub_of_the_same_tools_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    stub = module._Stub.__init__

    def counted(self: StubModule, tools: Any) -> None:
        made.append(len(tools))
        stub(self, tools)  # type: ignore[arg-type]

    monkeypatch.setattr(module._Stub, "__init__", counted)
    own = preflight()
    for program in (
        "await tools.count()",
        "print(await tools.count())",
        "await tools.find('x')",
        "await tools.count()",
    ):
        await own.check(program, TOOLS)
    assert made == [1, 1]


async def test_the_private_folder_is_private_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen: list[int] = []
    run = preflight_checker.Workplace._run

    async def watched(self: Any, *args: Any) -> Any:
        seen.append(os.stat(self._folder).st_mode & 0o777)
        return await run(self, *args)

    monkeypatch.setattr(preflight_checker.Workplace, "_run", watched)
    await preflight().check("await tools.count(3)", TOOLS)
    assert seen == [0o700, 0o700]
    assert list(tmp_path.iterdir()) == []
