"""`ptc run --approve` and `--sandbox` as whole processes, with a terminal of their own and without one."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

import pty

TOOLS = '''
import pathlib
import ptc


@ptc.tool(annotations=ptc.ToolAnnotations(read_only=True))
async def balance() -> int:
    """Look the balance up."""
    return 100


@ptc.tool
async def pay(amount: int) -> str:
    """Pay."""
    with pathlib.Path("paid.txt").open("a") as file:
        file.write(f"{amount} ")
    return f"paid {amount}"
'''
PROGRAM = """
print(await tools.balance())
for amount in (1, 2):
    try:
        print(await tools.pay(amount=amount))
    except ToolCallError as error:
        print(error)
"""
PROMPT = "tell why: "
LAUNCH = """
import fcntl, os, sys, termios
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
os.close(int(sys.argv[1]))
os.execv(sys.executable, [sys.executable, "-m", "ptc.runtime.cli", *sys.argv[2:]])
"""
"""Takes a terminal as its own, leader of a session that it is, and becomes `ptc`."""


class Run:
    """One `ptc run` with a terminal of its own, which has nothing but the questions: its output goes elsewhere."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._master, self._slave = pty.openpty()
        argv = ["run", "program.py", "--tools", "tools.py", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(self._slave), *argv],
            cwd=folder,
            pass_fds=[self._slave],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.screen = ""
        self._taken = 0

    def shows(self, what: str) -> str:
        """Waits until something new is on the terminal, and returns what came since the last time, up to that."""
        deadline = time.monotonic() + 90
        while what not in self.screen[self._taken :]:
            assert time.monotonic() < deadline, self.screen
            assert self.process.poll() is None, (self.screen, self.process.communicate())
            if select.select([self._master], [], [], 0.1)[0]:
                self.screen += os.read(self._master, 65536).decode().replace("\r\n", "\n")
        start, self._taken = self._taken, self.screen.index(what, self._taken) + len(what)
        return self.screen[start : self._taken]

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> tuple[int, str, str]:
        """Returns exit code, output and messages of the process."""
        out, said = self.process.communicate(timeout=90)
        return self.process.returncode, out, said

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        os.close(self._slave)
        os.close(self._master)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start(*options: str) -> Run:
        runs.append(Run(folder, *options))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


def ptc_command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `ptc` in a session without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "ptc.runtime.cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        timeout=100,
        check=False,
    )


def approvals(folder: Path) -> list[tuple[str, str | None, str | None]]:
    """Returns each sub-call on record that was asked about, with answer and detail."""
    shown = json.loads(ptc_command(folder, "audit", "show", "--json").stdout)
    return [
        (call["tool"], one["outcome"], one["detail"]) for call in shown["runs"][0]["calls"] for one in call["approvals"]
    ]


needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted backend needs Linux")


@pytest.mark.parametrize("sandbox", ["wasm", pytest.param("restricted", marks=needs_linux)])
def test_each_call_that_may_change_something_is_asked_about(
    start: Callable[..., Run], folder: Path, sandbox: str
) -> None:
    run = start("--approve", "--sandbox", sandbox)
    shown = run.shows(PROMPT)
    assert "tool: pay\n" in shown
    assert '"amount": 1\n' in shown
    run.type("y\n")
    assert '"amount": 2\n' in run.shows(PROMPT)
    run.type("n that is too much\n")
    code, out, _said = run.end()
    assert (code, out) == (0, '100\npaid 1\nthe user rejected tool "pay": that is too much\n')
    assert "balance" not in run.screen
    assert (folder / "paid.txt").read_text() == "1 "
    assert approvals(folder) == [("pay", "allowed-once", "on the terminal"), ("pay", "rejected", "that is too much")]
    told = ptc_command(folder, "audit", "show").stdout
    assert "rejected (that is too much) after" in told


def test_all_further_calls_of_a_tool_can_be_allowed_at_once(start: Callable[..., Run], folder: Path) -> None:
    run = start("--approve")
    run.shows(PROMPT)
    run.type("a\n")
    assert run.end()[:2] == (0, "100\npaid 1\npaid 2\n")
    assert [detail for _tool, _outcome, detail in approvals(folder)] == [
        "on the terminal, with all further calls of the tool",
        "on the terminal, with an earlier call of the tool",
    ]


def test_without_a_terminal_it_is_denied_and_said_so(folder: Path) -> None:
    done = ptc_command(folder, "run", "program.py", "--tools", "tools.py", "--approve")
    why = "there is no terminal to ask on"
    assert done.returncode == 0
    assert done.stdout == "100\n" + f'tool "pay" requires approval, but {why}\n' * 2
    assert f"ptc: {why}; calls that need approval are denied\n" in done.stderr
    assert not (folder / "paid.txt").exists()
    assert approvals(folder) == [("pay", "unavailable", why)] * 2


def test_a_question_has_a_time_limit(start: Callable[..., Run], folder: Path) -> None:
    run = start("--approve", "--approval-ms", "300")
    why = "nobody answered within 0.3 s"
    assert run.shows("ptc: the question is withdrawn: there was no answer in time")
    assert run.end()[:2] == (0, "100\n" + f'tool "pay" requires approval, but {why}\n' * 2)
    assert approvals(folder) == [("pay", "unavailable", why)] * 2


def test_an_interrupt_at_the_question_stops_the_run(start: Callable[..., Run], folder: Path) -> None:
    run = start("--approve")
    run.shows(PROMPT)
    run.type("\x03")
    code, out, said = run.end()
    assert (code, out) == (130, "")
    assert "interrupted; the run was stopped" in said
    assert "Traceback" not in said
    assert not (folder / "paid.txt").exists()
    assert approvals(folder) == [("pay", "cancelled", None)]


def test_a_run_in_the_background_of_its_terminal_is_not_stopped_by_asking(folder: Path) -> None:
    argv = [sys.executable, "-m", "ptc.runtime.cli", "run", "program.py", "--tools", "tools.py", "--approve"]
    launch = LAUNCH.partition("os.execv")[0] + (
        f"import subprocess\nsys.exit(subprocess.run({argv!r}, process_group=0).returncode)"
    )
    master, slave = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", launch, str(slave)],
            cwd=folder, pass_fds=[slave], start_new_session=True, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=100, check=False,
        )  # fmt: skip
    finally:
        os.close(slave)
        os.close(master)
    assert done.returncode == 0
    assert 'tool "pay" requires approval, but the process is in the background of its terminal' in done.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--approval-ms", "5000"), "--approval-ms is the time limit of --approve"),
        (("--approve", "--approval-ms", "0"), "must be a finite number of milliseconds greater than 0, not 0"),
        (("--sandbox", "docker"), "there is no sandbox 'docker'; --sandbox takes: wasm, restricted"),
        (("--sandbox", "restricted", "--memory-mib", "1"), "max_memory_bytes must be"),
        (("--sandbox", "restricted", "--compute-ms", "0"), "compute_ms must be a finite number greater than 0"),
    ],
)
def test_wrong_usage_is_one_message_and_2(folder: Path, options: tuple[str, ...], told: str) -> None:
    done = ptc_command(folder, "run", "program.py", "--tools", "tools.py", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


@needs_linux
def test_a_program_runs_in_the_restricted_sandbox(folder: Path) -> None:
    (folder / "program.py").write_text("return [await tools.balance(), await tools.pay(amount=3)]")
    done = ptc_command(folder, "run", "program.py", "--tools", "tools.py", "--sandbox", "restricted", "--json")
    assert json.loads(done.stdout)["result"] == [100, "paid 3"]
    shown = json.loads(ptc_command(folder, "audit", "show", "--json").stdout)
    assert shown["session"]["labels"] == {"executor": "ptc", "isolation": "process"}
    (folder / "program.py").write_text("while True:\n    pass")
    done = ptc_command(
        folder, "run", "program.py", "--tools", "tools.py", "--sandbox", "restricted", "--compute-ms", "300"
    )
    assert done.returncode == 1
    assert "compute budget exhausted" in done.stderr
