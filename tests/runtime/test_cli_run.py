"""`ptc run` and `ptc sdk` as whole processes: what they print, where, and with which exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOLS = '''
import asyncio
import pathlib
import ptc


def tools(marker: str = ""):
    @ptc.tool(concurrency_safe=True)
    async def double(x: int) -> int:
        """Double a number."""
        return 2 * x

    @ptc.tool
    async def pay(amount: int, run: ptc.ToolRunContext) -> str:
        """Pay, slowly, unless it is told to stop."""
        pathlib.Path(marker).write_text("paid")
        async with run.signal.cancel_scope():
            await asyncio.sleep(60)
        return "paid"

    return [double, pay]
'''


class Command:
    """Runs `ptc` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tools.py").write_text(TOOLS)

    def argv(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ptc.runtime.cli", *arguments]

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**os.environ, **environment},
            timeout=110,
            check=False,
        )

    def run(
        self, program: str, *options: str, tools: str = "tools.py", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return self("run", "-", "--tools", tools, *options, stdin=program, **environment)


@pytest.fixture
def ptc_command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def no_traceback_of_ours(done: subprocess.CompletedProcess[str]) -> bool:
    return "site-packages" not in done.stderr and "runtime/" not in done.stderr and 'File "/' not in done.stderr


def test_a_program_that_completes_prints_its_output_and_ends_with_0(ptc_command: Command) -> None:
    done = ptc_command.run("print('working')\nreturn await tools.double(x=21)")
    assert (done.returncode, done.stdout) == (0, "working\n42\n")
    assert "recorded in ptc.db as " in done.stderr


def test_a_program_without_output_says_so(ptc_command: Command) -> None:
    done = ptc_command.run("x = 1")
    assert (done.returncode, done.stdout) == (0, "(run_code completed with no output)\n")


def test_json_is_one_object(ptc_command: Command) -> None:
    done = ptc_command.run("print('a')\nreturn [await tools.double(x=2)]", "--json")
    told = json.loads(done.stdout)
    assert (told["ok"], told["logs"], told["result"], told["log"]) == (True, ["a"], [4], "ptc.db")
    assert told["session"]
    assert told["durationMs"] > 0
    failed = ptc_command.run("1/0", "--json")
    told = json.loads(failed.stdout)
    assert (failed.returncode, told["ok"], told["error"]["code"]) == (1, False, "CODE_RUN_FAILED")


def test_an_exception_in_line_7_is_told_with_its_line(ptc_command: Command) -> None:
    done = ptc_command.run("\n" * 6 + "{}['missing']")
    assert (done.returncode, done.stdout) == (1, "")
    assert 'File "<program>", line 7' in done.stderr
    assert "KeyError: 'missing'" in done.stderr
    assert no_traceback_of_ours(done)


def test_a_syntax_error_is_told_with_its_line(ptc_command: Command) -> None:
    done = ptc_command.run("x = 1\nif x\n    pass\n")
    assert done.returncode == 1
    assert 'File "<program>", line 2' in done.stderr
    assert "SyntaxError" in done.stderr
    assert no_traceback_of_ours(done)


def test_an_unknown_tool_is_told_with_near_ones(ptc_command: Command) -> None:
    done = ptc_command.run("await tools.duoble(x=1)")
    assert done.returncode == 1
    assert "tools has no member 'duoble'; did you mean 'double'?" in done.stderr


def test_an_endless_loop_ends_with_its_budget(ptc_command: Command) -> None:
    done = ptc_command.run("print('start')\nwhile True:\n    pass", "--compute-ms", "300")
    assert done.returncode == 1
    assert "code run failed (timeout): compute budget exhausted (300ms busy)" in done.stderr
    assert "start" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "-", "--tools", "absent.py"), "there is no tools file absent.py"),
        (("run", "-", "--tools", "absent_module"), "there is no tools module absent_module"),
        (("run", "absent.program", "--tools", "tools.py"), "the program absent.program cannot be read: No such file"),
        (("run", "-", "--tools", "tools.py", "--sandbox", "docker"), "there is no sandbox 'docker'"),
        (("run", "-", "--tools", "tools.py", "--set", "marker"), "--set takes KEY=VALUE"),
        (("run", "-", "--tools", "tools.py", "--set", "colour=red"), "it takes marker"),
        (("run", "-", "--tools", "tools.py", "--tools", "tools.py"), 'tool "double" is registered'),
        (("run", "-", "--tools", "tools.py", "--compute-ms", "0"), "compute_ms must be a finite number greater than 0"),
        (("run", "-", "--tools", "tools.py", "--log", "no/such/folder/x.db"), "no/such/folder"),
        (("run", "-", "--tools", "tools.py", "--log", "."), "directory"),
        (("run", "-"), "--tools"),
        (("sdk", "--tools", "tools.py", "--language", "cobol"), "there is no SDK text in 'cobol'"),
        (("sdk", "--tools", "tools.py", "--stub", "--json"), "--stub writes a Python module"),
        (("sdk", "--tools", "tools.py", "--stub", "--language", "typescript"), "--stub writes a Python module"),
        (("sdk", "--tools", "tools.py", "--stub", "-o", "no/such/sdk.pyi"), "no/such/sdk.pyi cannot be written"),
    ],
)
def test_wrong_usage_is_one_message_and_2(ptc_command: Command, arguments: tuple[str, ...], told: str) -> None:
    done = ptc_command(*arguments, stdin="return 1")
    assert done.returncode == 2, done
    assert told in done.stderr
    assert no_traceback_of_ours(done)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import ptc\n\nx = undefined_name\n", "(broken.py, line 3): NameError: name 'undefined_name' is not defined"),
        ("import ptc\ndef f(:\n", "(broken.py, line 2): SyntaxError"),
        ("import no_such_module_anywhere\n", "(broken.py, line 1): ModuleNotFoundError"),
        ("import ptc\n", "broken.py defines no tools"),
        ("raise SystemExit('bye')\n", "(broken.py, line 1): SystemExit: bye"),
        ("def tools():\n    return [1]\n", "tools() of broken.py returned int 1, which is not a tool"),
        ("def tools():\n    raise OSError('no disk')\n", "(broken.py, line 2): OSError: no disk"),
    ],
)
def test_a_tools_file_that_does_not_load_is_told_with_its_line(ptc_command: Command, source: str, told: str) -> None:
    (ptc_command.folder / "broken.py").write_text(source)
    done = ptc_command.run("return 1", tools="broken.py")
    assert done.returncode == 2
    assert told in done.stderr
    assert no_traceback_of_ours(done)


def test_a_log_that_is_something_else_is_refused_and_left_alone(ptc_command: Command) -> None:
    other = ptc_command.folder / "notes.txt"
    other.write_text("these are my notes\n" * 100)
    done = ptc_command.run("return 1", "--log", "notes.txt")
    assert done.returncode == 2
    assert "notes.txt" in done.stderr
    assert other.read_text() == "these are my notes\n" * 100
    assert no_traceback_of_ours(done)


def test_what_a_program_wrote_does_not_steer_the_terminal(ptc_command: Command) -> None:
    done = ptc_command.run("print('a\\x1b[31mred\\u202e')")
    assert done.stdout == "a\\x1b[31mred\\u202e\n"


def test_the_sdk_text_declares_the_tools(ptc_command: Command) -> None:
    done = ptc_command("sdk", "--tools", "tools.py")
    assert done.returncode == 0
    assert "async def double(self, args: DoubleArgs) -> int:" in done.stdout
    told = json.loads(ptc_command("sdk", "--tools", "tools.py", "--json").stdout)
    assert set(told) == {"language", "instructions", "block", "text"}
    assert told["text"].strip() == done.stdout.strip()


def test_the_stub_is_a_module_for_type_checkers(ptc_command: Command) -> None:
    done = ptc_command("sdk", "--tools", "tools.py", "--stub")
    assert done.returncode == 0
    assert "class _DoubleCall(Protocol):" in done.stdout
    written = ptc_command("sdk", "--tools", "tools.py", "--stub", "-o", "sdk.pyi")
    assert (written.returncode, written.stdout) == (0, "")
    assert (ptc_command.folder / "sdk.pyi").read_text(encoding="utf-8") == done.stdout


def test_the_sdk_text_comes_in_typescript_for_hosts_that_run_it(ptc_command: Command) -> None:
    done = ptc_command("sdk", "--tools", "tools.py", "--language", "typescript")
    assert done.returncode == 0
    assert "  /** Double a number. */\n  double: {\n    x: number;\n  }" in done.stdout
    told = json.loads(ptc_command("sdk", "--tools", "tools.py", "--language", "typescript", "--json").stdout)
    assert told["language"] == "typescript"
    assert told["text"].strip() == done.stdout.strip()
    about = " ".join(ptc_command("sdk", "--help").stdout.split())
    assert "The sandboxes of ptc run Python only." in about
    assert "hosts with a TypeScript backend of their own" in about


def test_the_run_and_its_calls_can_be_audited(ptc_command: Command) -> None:
    ptc_command.run("await tools.double(x=1)\nawait tools.double(x=2)\n1/0")
    listed = json.loads(ptc_command("audit", "list", "--json").stdout)
    shown = ptc_command("audit", "show")
    assert shown.returncode == 0
    assert "double" in shown.stdout
    assert "failed" in shown.stdout
    assert listed["runs"][0]["agent"] == "cli"


def test_a_process_killed_in_the_middle_of_a_tool_leaves_a_call_of_unknown_outcome(ptc_command: Command) -> None:
    marker = ptc_command.folder / "paid"
    argv = ptc_command.argv("run", "-", "--tools", "tools.py", "--set", f"marker={marker}")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, cwd=ptc_command.folder, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(b"await tools.double(x=1)\nawait tools.pay(amount=5)")
        process.stdin.close()
        deadline = time.monotonic() + 60
        while not marker.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    shown = json.loads(ptc_command("audit", "show", "--json").stdout)
    calls = {call["tool"]: call["outcome"] for call in shown["runs"][0]["calls"]}
    assert calls == {"double": "ok", "pay": "outcome unknown"}
    assert "outcome unknown" in ptc_command("audit", "show").stdout
    assert ptc_command.run("return 1").returncode == 0


def test_an_interrupt_stops_the_run(ptc_command: Command) -> None:
    marker = ptc_command.folder / "paid"
    argv = ptc_command.argv("run", "-", "--tools", "tools.py", "--set", f"marker={marker}")
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, cwd=ptc_command.folder, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("await tools.pay(amount=5)")
        process.stdin.close()
        deadline = time.monotonic() + 60
        while not marker.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
        assert process.wait(timeout=90) == 130
    assert "interrupted" in told
    assert "Traceback" not in told


def test_tabs_of_the_output_are_kept(ptc_command: Command) -> None:
    assert ptc_command.run("print('a\\tb')").stdout == "a\tb\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_message(ptc_command: Command) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            ptc_command.argv("run", "-", "--tools", "tools.py"),
            input="return 1",
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ptc_command.folder,
            check=False,
        )
    assert done.returncode == 1
    assert "the output could not be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
