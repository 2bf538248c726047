"""The typed preflight: a program is checked against the stub of its tools before any of it runs.

    agent = host.agent("support", executor=ptc.PtcExecutor(sandbox=..., preflight=ptc.Preflight()))

A wrong argument name or type, a required argument that is missing, an unknown tool or the misuse of a result comes back
to the model as one short list, before the program's first call has had an effect. Only what cannot be right stops a
program; whatever the check does not understand, or has no time for, runs unchecked, and the record says so.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import anyio

from ..registry import JsonObject, Signal, ToolDefinition, positive_cap
from ..registry.views import RUN_CODE, schema_of
from .errors import ProgramRefusedError

if TYPE_CHECKING:
    from ..registry import SessionLog
    from ..sdk_gen.stub import StubModule

__all__ = ["Preflight", "PreflightReport", "PreflightUnavailableError"]

MAX_PROGRAM_CHARS: Final = 200_000
_MAX_STUBS: Final = 64


class PreflightUnavailableError(RuntimeError):
    """The type checker of the preflight is not installed; the message names the extra."""


@dataclass(frozen=True, slots=True)
class PreflightReport:
    """What came of the check of one program.

    Attributes:
        outcome: `passed`, `refused`, or `unchecked`.
        findings: one line for each mistake: the line of the program, the tool and the argument.
        reason: why it is unchecked; empty otherwise.
        elapsed_ms: how long the check took.
    """

    outcome: Literal["passed", "refused", "unchecked"]
    findings: tuple[str, ...] = ()
    reason: str = ""
    elapsed_ms: float = 0.0


class Preflight:
    """The check of programs against their tools, for `PtcExecutor(preflight=...)`.

    The checker is `ty`, of the extra `preflight`. It runs as a command of its own for each program, in a private
    folder, with nothing of the host to read, and is ended with whatever it has started when its time is over.

    Args:
        timeout_ms: how long one check may take; a program that takes longer to check runs unchecked.
        max_findings: how many mistakes the model is told of.
        fallback: what happens on a host without the checker: programs run unchecked, and the record says so, in place
            of the error here.

    Raises:
        PreflightUnavailableError: the checker is not installed, and `fallback` is not set.
        ValueError: `timeout_ms` is not a finite number greater than 0, or `max_findings` not a positive integer.
    """

    def __init__(self, *, timeout_ms: float = 3_000, max_findings: int = 10, fallback: bool = False) -> None:
        is_number = isinstance(timeout_ms, (int, float)) and not isinstance(timeout_ms, bool)
        if not is_number or not 0 < timeout_ms < float("inf"):
            raise ValueError(f"timeout_ms must be a finite number greater than 0, not {timeout_ms!r}")
        from .preflight_checker import find_checker

        self.timeout_ms = timeout_ms
        self.max_findings = positive_cap("max_findings", max_findings)
        self._checker = find_checker()
        if self._checker is None and not fallback:
            raise PreflightUnavailableError(
                "the preflight needs the type checker ty, which is not installed; install the extra: "
                'pip install "ptc-runtime[preflight]", or let programs run unchecked there: Preflight(fallback=True)'
            )
        self._stubs: OrderedDict[tuple[int, ...], _Stub] = OrderedDict()

    async def check(
        self, program: str, tools: Sequence[ToolDefinition], *, signal: Signal | None = None
    ) -> PreflightReport:
        """Checks one program; nothing of it runs, and no failure of the checker is raised.

        Args:
            program: the program, the body of an async function.
            tools: all tools that it may call.
            signal: gives the check up, which leaves the program unchecked.
        """
        began = time.perf_counter()
        outcome: Literal["passed", "refused", "unchecked"] = "unchecked"
        findings: tuple[str, ...] = ()
        reason = "its time was over"
        signal = signal or Signal()
        with anyio.move_on_after(self.timeout_ms / 1000) as scope:
            unsubscribe = signal.subscribe(lambda _reason: scope.cancel())
            try:
                if signal.aborted:
                    scope.cancel()
                findings, reason = await self._findings(program, tools)
                outcome = "unchecked" if reason else "refused" if findings else "passed"
            finally:
                unsubscribe()
        if scope.cancelled_caught and signal.aborted:
            reason = "the run was cancelled"
        return PreflightReport(outcome, findings, reason, (time.perf_counter() - began) * 1000)

    async def admit(
        self,
        program: str,
        tools: Sequence[ToolDefinition],
        *,
        call_id: str,
        log: SessionLog | None = None,
        signal: Signal | None = None,
    ) -> None:
        """Checks one program and records what came of it.

        Args:
            program: the program.
            tools: all tools that it may call.
            call_id: the call of `run_code`, for the record.
            log: where that is recorded, as `tool/ptc-preflight`.
            signal: gives the check up.

        Raises:
            ProgramRefusedError: the program must not run.
        """
        report = await self.check(program, tools, signal=signal)
        if log is not None:
            data: JsonObject = {"callId": call_id, "outcome": report.outcome, "findings": len(report.findings)}
            data["elapsedMs"] = round(report.elapsed_ms)
            if report.reason:
                data["reason"] = report.reason
            await log.append("tool/ptc-preflight", data)
        if report.outcome == "refused":
            told = report.findings[: self.max_findings]
            raise ProgramRefusedError(told, len(report.findings) - len(told))

    async def _findings(self, program: str, tools: Sequence[ToolDefinition]) -> tuple[tuple[str, ...], str]:
        """Returns the mistakes, or why there is no telling."""
        from .preflight_checker import CheckFailedError, Workplace
        from .preflight_findings import explain

        if self._checker is None:
            return (), "no checker is installed"
        if len(program) > MAX_PROGRAM_CHARS:
            return (), f"it is longer than {MAX_PROGRAM_CHARS} characters"
        if not _is_text(program):
            return (), "it is no Unicode text"
        stub = self._stub(program, tools)
        try:
            async with Workplace(self._checker, program, stub.module.text) as place:
                diagnostics = await place.diagnose()
                if not diagnostics:
                    return (), ""
                tree = await place.parse()
            known = [tool.name for tool in tools]
            found = explain(tree, diagnostics, stub.module, stub.parameters, known)
        except CheckFailedError as error:
            return (), str(error)
        except RecursionError:
            return (), "it is nested too deeply"
        return tuple(str(each) for each in found), ""

    def _stub(self, program: str, tools: Sequence[ToolDefinition]) -> _Stub:
        """Returns the stub of those tools that the program names, made once for the same tools."""
        named = [tool for tool in tools if tool.name in program and tool.name != RUN_CODE]
        key = tuple(map(id, named))
        stub = self._stubs.pop(key, None) or _Stub(named)
        self._stubs[key] = stub
        if len(self._stubs) > _MAX_STUBS:
            self._stubs.popitem(last=False)
        return stub


class _Stub:
    """The stub of some tools; it holds them, so that their identities stay theirs."""

    __slots__ = ("module", "parameters", "tools")

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        from ..sdk_gen.build import build_maps
        from ..sdk_gen.stub import stub_module

        schemas = [schema_of(tool, with_output=True) for tool in tools]
        self.tools = tuple(tools)
        self.module: StubModule = stub_module(*build_maps(schemas), extra_items=True)
        self.parameters: dict[str, object] = {schema.name: schema.parameters for schema in schemas}


def _is_text(program: str) -> bool:
    try:
        program.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\0" not in program
