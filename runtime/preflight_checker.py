"""Runs the type checker `ty` on one program: a command in a private folder with nothing but the program and its stub.

The checker reads types and runs nothing. It is given an empty Python environment and an empty configuration, and a home
of its own, so that neither the program nor the host's files decide what it reads: imports lead to its own copy of the
standard library's types, to the stub, or nowhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Self

import anyio
from anyio.abc import Process

from .preflight_diagnostics import RULES, Diagnostic
from .preflight_tree import Node, read_tree

try:
    import resource
except ImportError:  # Windows has none
    resource = None

__all__ = ["CheckFailedError", "Workplace", "find_checker"]

_STUB = "ptc_tools_stub"
_CANARY = "__no_tool_has_this_name"
_HEAD = f"from {_STUB} import ToolCallError, tools; tools.{_CANARY}\n"
"""The line before the program; its last part must be found to be wrong, or the checker has not seen the stub."""

_PYTHON_VERSION = "3.14"
_PARSE = Path(__file__).with_name("preflight_parse.py")
MAX_OUTPUT_BYTES = 16 * 1024 * 1024
"""The most that the checker or the parser may print."""

MAX_MEMORY_BYTES = 2 * 1024 * 1024 * 1024
"""The most memory that either may map; the checker maps about 200 MB for a usual program."""

_DIRECTIVE = re.compile(r"(?<=# //)/(?= )|(?<=# ty):(?= *ignore)|(?<=# type):(?= *ignore)|(?<=#ty):|(?<=#type):")
"""What speaks to the checker in comments: a block of settings for scripts, and what silences it. A dot in its place
says nothing, and moves nothing."""


class CheckFailedError(Exception):
    """The checker gave no answer; the text says why."""


def find_checker() -> str | None:
    """Returns the path of the command `ty`; `None` when the extra `preflight` is not installed."""
    try:
        from ty import find_ty_bin
    except ImportError:
        return None
    try:
        return str(find_ty_bin())
    except FileNotFoundError:
        return None


class Workplace:
    """A private folder for the check of one program; a context manager that makes and removes it.

    Args:
        checker: the path of `ty`.
        program: the program.
        stub: the stub module of its tools.
    """

    def __init__(self, checker: str, program: str, stub: str) -> None:
        self._checker = checker
        self._program = program
        self._stub = stub
        self._folder = ""

    async def __aenter__(self) -> Self:
        with anyio.CancelScope(shield=True):
            self._folder = await anyio.to_thread.run_sync(self._make)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(self._folder, ignore_errors=True))

    def _make(self) -> str:
        folder = Path(tempfile.mkdtemp(prefix="ptc-preflight-"))
        (folder / "env" / "lib" / f"python{_PYTHON_VERSION}" / "site-packages").mkdir(parents=True)
        (folder / "env" / "Lib" / "site-packages").mkdir(parents=True, exist_ok=True)  # as Windows has it
        (folder / "env" / "pyvenv.cfg").write_text(f"version = {_PYTHON_VERSION}.0\nhome = {folder / 'env'}\n")
        (folder / "home").mkdir()
        (folder / "ty.toml").write_text("")
        (folder / f"{_STUB}.pyi").write_text(self._stub, encoding="utf-8")
        text = _DIRECTIVE.sub(".", self._program)
        (folder / "program.py").write_text(_HEAD + text, encoding="utf-8", newline="")
        return str(folder)

    async def diagnose(self) -> list[Diagnostic]:
        """Returns what the checker finds by the rules that count, with places in the program.

        Raises:
            CheckFailedError: the checker did not end as it should.
        """
        levels = [part for rule in RULES for part in ("--error", rule)]
        isolation = ["--project", ".", "--config-file", "ty.toml", "--python", "env"]
        target = ["--python-version", _PYTHON_VERSION, "--python-platform", "linux"]
        told = ["--output-format", "gitlab", "--no-progress", "--color", "never", "--ignore", "all", *levels]
        code, output = await self._run([self._checker, "check", *isolation, *target, *told, "program.py"], b"")
        if code not in (0, 1):
            raise CheckFailedError(f"the checker ended with {code}")
        try:
            found = [_diagnostic(item) for item in json.loads(output or b"[]")]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise CheckFailedError("the checker's answer cannot be read") from None
        if not any(each.line == 0 and _CANARY in each.text for each in found):
            raise CheckFailedError("the checker did not see the declarations of the tools")
        return [each for each in found if each.rule in RULES and each.line > 0]

    async def parse(self) -> Node:
        """Returns the program's syntax tree.

        Raises:
            CheckFailedError: it has none, which its sandbox will tell of; or it is too much for the parser.
        """
        command = [sys.executable, "-I", "-S", "-B", str(_PARSE)]
        _code, output = await self._run(command, self._program.encode("utf-8"))
        try:
            return read_tree(json.loads(output))
        except (ValueError, RecursionError, TypeError):
            raise CheckFailedError("it cannot be parsed here") from None

    async def _run(self, command: Sequence[str], given: bytes) -> tuple[int, bytes]:
        """Runs a command in the folder, and ends it with all it has started when the check is given up."""
        env = {"HOME": f"{self._folder}/home", "XDG_CONFIG_HOME": f"{self._folder}/home", "APPDATA": self._folder}
        env |= {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        process: Process | None = None
        try:
            # Given up while it starts, it would be left alone with what it has started by then.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd=self._folder, env=env, start_new_session=True
                )
        except OSError as error:
            raise CheckFailedError(f"the checker cannot be started: {error.strerror}") from None
        assert process is not None
        output: bytes | None = None
        _limit(process)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_give, process, given)
                output = await _read(process)
            if output is None:
                raise CheckFailedError("the checker has too much to say")
            return await process.wait(), output
        finally:
            with anyio.CancelScope(shield=True):
                if output is None or process.returncode is None:
                    _kill(process)
                await process.aclose()


async def _give(process: Process, given: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.send(given)
        await process.stdin.aclose()


async def _read(process: Process) -> bytes | None:
    """Returns all that a process prints; `None`, and ends it, when that is too much."""
    assert process.stdout is not None
    chunks: list[bytes] = []
    size = 0
    async for chunk in process.stdout:
        size += len(chunk)
        if size > MAX_OUTPUT_BYTES:
            _kill(process)
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _limit(process: Process) -> None:
    """Keeps a hostile program from taking the host's memory through the checker, where the system can do that."""
    prlimit = getattr(resource, "prlimit", None)  # only Linux has it
    if resource is not None and prlimit is not None:
        with contextlib.suppress(OSError):
            prlimit(process.pid, resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


def _kill(process: Process) -> None:
    """Ends a process with its group: what it has started may have outlived it, and hold what it prints into."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _diagnostic(item: dict[str, object]) -> Diagnostic:
    where = item["location"]["positions"]  # type: ignore[index]
    begin, end = where["begin"], where["end"]
    rule = str(item["check_name"])
    return Diagnostic(
        rule=rule,
        text=str(item["description"]).removeprefix(f"{rule}: "),
        line=int(begin["line"]) - 1,  # the head has one line
        column=int(begin["column"]),
        end_line=int(end["line"]) - 1,
        end_column=int(end["column"]),
    )
