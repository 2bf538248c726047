"""The steps of one turn whose programs the provider runs: what a response tells becomes calls, and their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from ...registry import (
    RUN_CODE,
    ContextMessage,
    ResolvedToolSet,
    Signal,
    ToolBatchResult,
    ToolCall,
    ToolCallOutcome,
    ToolExecutionResult,
    ToolFailure,
)
from .hosted_run import HostedRun, PendingCall, ProgramCall, failed
from .hosted_step import HostedProgram, HostedStep
from .shapes import HostedCall

if TYPE_CHECKING:
    from ..agent import Agent

__all__ = ["HostedPrograms"]

_UNTOLD = "the conversation ended before the provider told how the program ended"


@dataclass(slots=True)
class _Program:
    """One program and the call of `run_code` that stands for it.

    Attributes:
        run: the program's run.
        done: set once the call has its result.
        batch: what came of the call, until that has been told.
        refusal: why the call was refused before its body ran; so are the program's calls then.
        fault: what the host failed with, until that has been told.
    """

    run: HostedRun = field(default_factory=HostedRun)
    done: anyio.Event = field(default_factory=anyio.Event)
    batch: ToolBatchResult | None = None
    refusal: str | None = None
    fault: Exception | None = None


class HostedPrograms:
    """Executes the steps of one turn whose programs the provider runs. `HostedExecutor.programs` makes it."""

    def __init__(self, agent: Agent, tasks: TaskGroup, signal: Signal | None, tool_set: ResolvedToolSet | None) -> None:
        self._agent = agent
        self._tasks = tasks
        self._signal = signal
        self._tool_set = tool_set
        self._programs: dict[str, _Program] = {}
        self._held: list[ContextMessage] = []

    @property
    def running(self) -> tuple[str, ...]:
        """The provider's ids of the programs that have begun and not ended."""
        return tuple(name for name, program in self._programs.items() if not program.run.over.is_set())

    async def execute(self, step: HostedStep) -> ToolBatchResult:
        """Executes the calls of one response, those of programs and the model's own, and takes notice of the rest.

        Args:
            step: what the response tells, as `hosted_step` of a provider's adapter gives it.

        Returns:
            one outcome for each call, in order. That of a program's call is what the program gets: a value, or a
            failure with the message alone (contract E27). The messages for the conversation, images of sub-calls among
            them, come once no program is running: until then providers take results and nothing else.

        Raises:
            ToolBatchExecutionError: an internal fault, for example a log that cannot be written; nothing that was
                started runs any more.
            ToolExecutorUnavailableError: the agent's executor has been unloaded (contract A54).
        """
        for program in step.begun:
            self._begin(program)
        asked: list[_Program] = []
        pending: list[PendingCall] = []
        for call in step.calls:
            if isinstance(call, HostedCall):
                program = self._programs.get(call.program_id) or self._begin(
                    HostedProgram(call.program_id, "", "unknown")  # it began before this process did
                )
                await program.run.ready.wait()
                asked.append(program)
                pending.append(self._submit(program, call))
        own = [call for call in step.calls if not isinstance(call, HostedCall)]
        batch = await self._agent.execute(own, signal=self._signal, tool_set=self._tool_set) if own else None
        answers = [await one.result() for one in pending]
        for program in asked:
            if program.run.over.is_set():  # by a fault or the signal, since nobody told its end yet
                await self._settled(program)
        concluded = batch is not None and batch.concluded
        if batch is not None:
            self._held += batch.additional_contexts
        for end in step.ended:
            ended = self._programs.get(end.program_id)
            if ended is not None and not ended.run.over.is_set():
                ended.run.end(end)
                concluded = await self._settled(ended) or concluded
        return ToolBatchResult(
            results=_in_order(step.calls, batch, answers),
            additional_contexts=self._release(),
            concluded=concluded,
        )

    def close(self) -> None:
        """Ends the programs that are running, as failed; their tasks go on until all that they started has ended."""
        for program in self._programs.values():
            program.run.fail(_UNTOLD)

    def raise_fault(self) -> None:
        """Raises the first fault of the host that no step has told.

        Raises:
            ToolBatchExecutionError: there is one.
        """
        for program in self._programs.values():
            if program.fault is not None:
                fault, program.fault = program.fault, None
                raise fault

    def _begin(self, told: HostedProgram) -> _Program:
        """Starts the call that stands for a program; a program that is known goes on."""
        known = self._programs.get(told.program_id)
        if known is not None:
            return known
        program = self._programs[told.program_id] = _Program()
        arguments = {"code": told.code, "description": f"Program that the provider runs ({told.language})"}
        call = ProgramCall(name=RUN_CODE, arguments=arguments, call_id=told.program_id, run=program.run)
        self._tasks.start_soon(self._drive, program, call)
        return program

    async def _drive(self, program: _Program, call: ProgramCall) -> None:
        try:
            program.batch = await self._agent.execute([call], signal=self._signal, tool_set=self._tool_set)
            result = program.batch.results[0].result
            if isinstance(result, ToolFailure) and not program.run.started:
                program.refusal = result.error.message
        except Exception as fault:  # noqa: BLE001 - told by the step that comes next, or when the block is left
            program.fault = fault
        finally:
            program.run.fail(_UNTOLD)  # it may never have run; an end that was told counts
            program.run.ready.set()
            program.done.set()

    def _submit(self, program: _Program, call: HostedCall) -> PendingCall:
        """Makes a call of a program; where `run_code` itself was refused, its failure is the call's."""
        if program.refusal is not None:
            return PendingCall(failed(f"{call.name} was not called: {program.refusal}"))
        return program.run.submit(call)

    async def _settled(self, program: _Program) -> bool:
        """Waits until the call that stands for a program is recorded; tells whether it concludes the turn.

        Raises:
            ToolBatchExecutionError: the host failed in it.
        """
        await program.done.wait()
        if program.fault is not None:
            fault, program.fault = program.fault, None
            raise fault
        batch, program.batch = program.batch, None
        if batch is None:
            return False  # settled before
        self._held += batch.additional_contexts
        return batch.concluded

    def _release(self) -> tuple[ContextMessage, ...]:
        if self.running:
            return ()
        held, self._held = tuple(self._held), []
        return held


def _in_order(
    calls: Sequence[ToolCall], batch: ToolBatchResult | None, answers: Sequence[ToolExecutionResult]
) -> tuple[ToolCallOutcome, ...]:
    """Returns the outcomes of a step's calls in their order."""
    own = iter(batch.results if batch is not None else ())
    of_programs = iter(answers)
    return tuple(
        ToolCallOutcome(call.call_id, next(of_programs)) if isinstance(call, HostedCall) else next(own)
        for call in calls
    )
