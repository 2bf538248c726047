"""`ptc run`: one program, with tools from a file, in a sandbox, on record."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from .options import Settings, Tools, read_settings, say, shown, usage_error

if TYPE_CHECKING:
    from ...registry import ToolDefinition, ToolExecutionResult
    from ...sandbox.seam import Sandbox
    from ..host import Host

__all__ = ["run"]

_INTERRUPTED: Final = 130
_WASM: Final = "wasm"
_RESTRICTED: Final = "restricted"


def run(
    program: Annotated[str, typer.Argument(help="The program: a file of Python source, or - for standard input.")],
    tools: Tools,
    settings: Settings = None,
    sandbox: Annotated[
        str,
        typer.Option(
            "--sandbox",
            help="Where the program runs: wasm, or restricted, a worker process that the kernel contains (Linux).",
            metavar="BACKEND",
        ),
    ] = _WASM,
    approve: Annotated[
        bool,
        typer.Option(
            "--approve", help="Ask on the terminal before each call of a tool that is not declared read-only."
        ),
    ] = False,
    approval_ms: Annotated[
        float | None,
        typer.Option(help="Milliseconds that a question of --approve may wait for an answer; then the call is denied."),
    ] = None,
    log: Annotated[
        Path, typer.Option("--log", envvar="PTC_LOG", help="The log file that the run is recorded in.", metavar="FILE")
    ] = Path("ptc.db"),
    agent: Annotated[str, typer.Option("--agent", help="The agent's name in the record.", metavar="NAME")] = "cli",
    description: Annotated[
        str | None, typer.Option("--description", help="What the program does, for the record.", metavar="TEXT")
    ] = None,
    compute_ms: Annotated[float, typer.Option(help="Milliseconds that the program may have control.")] = 60_000,
    wall_ms: Annotated[float, typer.Option(help="Milliseconds that the run may take.")] = 600_000,
    memory_mib: Annotated[int, typer.Option(help="Memory that the program may have, in MiB.")] = 512,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for other programs.")] = False,
) -> None:
    """Run a program with the tools of a file.

    The program is the body of an async function: `await tools.name(...)` calls a tool, and what it prints or returns
    goes to standard output. Exit codes: 0 the program completed, 1 it failed (why is on standard error), 2 wrong
    usage, 130 interrupted.

    With --approve, where there is no terminal to ask on, what would be asked is denied.
    """
    source, title = _read(program)
    from ..tools_file import ToolsFileError, load_tools

    try:
        definitions = [one for each in tools for one in load_tools(each, read_settings(settings))]
        backend = _backend(sandbox, compute_ms, wall_ms, memory_mib)
        host = _host(log, approval_ms, approve=approve)
    except (ToolsFileError, ValueError) as error:
        raise usage_error(str(error)) from None
    outcome = _Outcome(log)
    try:
        import anyio

        anyio.run(_run, outcome, host, definitions, backend, agent, source, description or f"Run {title}")
    except KeyboardInterrupt:
        say("interrupted; the run was stopped")
        raise typer.Exit(_INTERRUPTED) from None
    try:
        _show(outcome, as_json=json)
    except OSError as error:
        # The reader of the output is gone or the disk is full; the run itself is recorded.
        sys.stdout = None  # type: ignore[assignment] - else the interpreter tries once more to flush it
        say(f"the output could not be written: {error.strerror}")
        raise typer.Exit(1) from None


class _Outcome:
    """What is known of a run when it has ended."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.session: str | None = None
        self.result: ToolExecutionResult | None = None
        self.duration_ms = 0.0


def _read(program: str) -> tuple[str, str]:
    """Returns the program's source, and what to call it."""
    try:
        if program == "-":
            return sys.stdin.buffer.read().decode("utf-8"), "a program from standard input"
        path = Path(program)
        return path.read_bytes().decode("utf-8"), path.name
    except OSError as error:
        raise usage_error(f"the program {program} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise usage_error(f"the program {program} is not UTF-8 text (byte {error.start})") from None


def _backend(name: str, compute_ms: float, wall_ms: float, memory_mib: int) -> Sandbox:
    """Returns the sandbox of that name.

    Raises:
        typer.Exit: there is none, or not on this machine; the user has been told.
        ValueError: for a budget that is not one.
    """
    memory = memory_mib << 20
    if name == _WASM:
        from ...sandbox.wasm import WasmSandbox

        return WasmSandbox(
            compute_ms=compute_ms, max_wall_ms=wall_ms, max_memory_bytes=memory, ready=0, progress=_progress
        )
    if name != _RESTRICTED:
        raise usage_error(f"there is no sandbox {name!r}; --sandbox takes: {_WASM}, {_RESTRICTED}")
    from ...sandbox.restricted import RestrictedSandbox
    from ...sandbox.seam import SandboxError

    try:
        return RestrictedSandbox(compute_ms=compute_ms, max_wall_ms=wall_ms, max_memory_bytes=memory, ready=0)
    except SandboxError as error:
        raise usage_error(str(error)) from None


def _host(log: Path, approval_ms: float | None, *, approve: bool) -> Host:
    """Returns a host that asks on the terminal, if that is wanted.

    Raises:
        typer.Exit: a time limit for questions that nobody puts; the user has been told.
        ValueError: for a time limit that is none.
    """
    from ..host import Host

    if not approve:
        if approval_ms is not None:
            raise usage_error("--approval-ms is the time limit of --approve, and nobody is asked without that")
        return Host(log=log)
    from ...registry import Ask, ToolAnnotations
    from ..approving import TerminalApprover
    from ..policies.gate import PermissionGate, PermissionRule

    host = Host(log=log, approval_timeout_ms=approval_ms)
    changing = PermissionRule("*", Ask(), annotations=ToolAnnotations(read_only=False))
    PermissionGate([changing]).install(host.tools)
    approver = TerminalApprover()
    approver.install(host.tools)
    problem = approver.problem()
    if problem is not None:
        say(f"{problem}; calls that need approval are denied")
    return host


async def _run(
    outcome: _Outcome,
    host: Host,
    definitions: list[ToolDefinition],
    backend: Sandbox,
    agent_name: str,
    source: str,
    description: str,
) -> None:
    import time

    from ..executor import PtcExecutor

    with _explained():
        async with host:
            for definition in definitions:
                host.tools.register(definition)
            agent = host.agent(agent_name, executor=PtcExecutor(sandbox=backend))
            started = time.perf_counter()
            outcome.result = await agent.run_code(source, description=description)
            outcome.duration_ms = (time.perf_counter() - started) * 1000
            outcome.session = agent.session.id if agent.session is not None else None


@contextmanager
def _explained() -> Iterator[None]:
    """Turns what may go wrong around a run into one message and an exit code."""
    from ...registry import HarnessError, ToolRegistrationError
    from ...sandbox.seam import SandboxError
    from ..log import LogUnavailableError

    try:
        yield
    except (LogUnavailableError, ToolRegistrationError) as error:
        raise usage_error(error.message) from None
    except HarnessError as error:
        say(error.message)
        raise typer.Exit(1) from None
    except SandboxError as error:
        say(str(error))
        raise typer.Exit(1) from None


def _progress(line: str) -> None:
    say(f"{line} ...")


def _show(outcome: _Outcome, *, as_json: bool) -> NoReturn:
    result = outcome.result
    assert result is not None
    text = result.text
    if as_json:
        from ...registry import to_json_text

        sys.stdout.write(to_json_text(_json(outcome)) + "\n")
    elif result.is_error:
        say(f"recorded in {outcome.log} as {outcome.session}")
        for line in text.split("\n"):
            sys.stderr.write(shown(line) + "\n")
    else:
        say(f"recorded in {outcome.log} as {outcome.session}")
        sys.stderr.flush()
        for line in text.split("\n"):
            sys.stdout.write(shown(line) + "\n")
    sys.stdout.flush()
    raise typer.Exit(1 if result.is_error else 0)


def _json(outcome: _Outcome) -> dict[str, Any]:
    from ...registry import ToolFailure

    result = outcome.result
    assert result is not None
    told: dict[str, Any] = {
        "ok": not result.is_error,
        "log": str(outcome.log),
        "session": outcome.session,
        "durationMs": round(outcome.duration_ms, 3),
    }
    if isinstance(result, ToolFailure):
        told["error"] = {"message": result.error.message}
        if result.error.info is not None:
            told["error"] |= {"name": result.error.info.name, "code": result.error.info.code}
    elif isinstance(result.value, dict):
        told |= result.value
    return told
