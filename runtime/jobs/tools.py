"""`job_output`, `job_list` and `job_kill`: how background jobs are followed (contract J16 to J18, J20)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ...registry import Disposer, ToolAnnotations, ToolArgsError, ToolSuccess, define_tool, text_block
from .errors import JobError
from .numbers import checked_ms
from .output import bound_content
from .text import job_line, public_job, status_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...registry import (
        ContentBlock,
        Next,
        PreToolDecision,
        ScopedTools,
        ToolDefinition,
        ToolExecution,
        ToolExecutionResult,
        ToolRunContext,
    )
    from ...registry.execution import ExecutionToken
    from .service import Jobs

__all__ = ["install_tools"]

OUTPUT: Final = "job_output"
LIST: Final = "job_list"
KILL: Final = "job_kill"
NO_OUTPUT: Final = "(no new output)"
NO_JOBS: Final = "(no background jobs)"

_KILLED: Final = {
    "cancellation-requested": "cancellation of job {id} was requested",
    "already-finished": "job {id} had finished already",
}
_JOB_ID: Final = {"type": "string", "required": True, "description": "The job, as its handle has it under jobId"}
_JOB: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "required": True},
        "kind": {"type": "string", "required": True},
        "label": {"type": "string", "required": True},
        "status": {
            "type": "string",
            "enum": ["running", "stopping", "completed", "killed", "failed"],
            "required": True,
        },
        "detail": {"type": "string"},
        "startedAt": {"type": "integer", "required": True, "description": "Milliseconds since 1970 UTC"},
        "finishedAt": {"type": "integer", "description": "Milliseconds since 1970 UTC"},
    },
}  # fmt: skip


def install_tools(jobs: Jobs, tools: ScopedTools, default_wait_ms: float, max_wait_ms: float) -> Disposer:
    """Registers the three tools in a scope, and makes that scope one whose jobs are controlled; see `Jobs.install`."""
    default, longest = checked_ms("default_wait_ms", default_wait_ms), checked_ms("max_wait_ms", max_wait_ms)
    if default > longest:
        raise ValueError(f"default_wait_ms is {default:g}, which is more than max_wait_ms, {longest:g}")
    made = _JobTools(jobs, default, longest)
    with ExitStack() as undo:
        for definition in made.definitions():
            undo.callback(tools.register(definition))
        undo.callback(tools.on("tools/pre-execute", made.note_limit, prepend=True))
        undo.callback(jobs.add_controller(tools.scope))
        return Disposer(undo.pop_all().close)
    raise AssertionError("an exit stack lets nothing pass")


class _JobTools:
    """The tools of one installation.

    What a model sees of a job's output is bounded when the call is finalised, by the limit that the job had when the
    call began; for the job may be gone by then (contract J18).
    """

    def __init__(self, jobs: Jobs, default_wait_ms: float, max_wait_ms: float) -> None:
        self._jobs = jobs
        self._default_wait_ms = default_wait_ms
        self._max_wait_ms = max_wait_ms
        self._limits: WeakKeyDictionary[ExecutionToken, int] = WeakKeyDictionary()

    def definitions(self) -> tuple[ToolDefinition, ...]:
        output = define_tool(
            name=OUTPUT,
            description=(
                "Returns what a background job has written since the last time, and its status. A job that has one "
                "final output gives it once it has ended, and then again at each call."
            ),
            parameters={
                "job_id": _JOB_ID,
                "wait": {
                    "type": "boolean",
                    "description": "Whether to wait first until the job has ended; false when left out",
                },
                "timeout_ms": {
                    "type": "number",
                    "description": (
                        f"How long to wait at most, in milliseconds; {self._default_wait_ms:.16g} when left out, and "
                        f"never more than {self._max_wait_ms:.16g}. A job that has not ended by then goes on"
                    ),
                },
            },
            output={
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "text": {
                        "type": "string",
                        "required": True,
                        "description": "The output, and a last line with the status",
                    },
                    "job": {**_JOB, "required": True},
                },
            },
            execute=self._output,
            render=_render_output,
            finalize_content=self._bound,
            annotations=ToolAnnotations(read_only=False, destructive=False, open_world=False),
        )
        listing = define_tool(
            name=LIST,
            description="Lists the background jobs, those that have ended too, in the order of their start.",
            parameters={},
            output={"type": "array", "items": _JOB},
            execute=self._list,
            render=_render_list,
            annotations=ToolAnnotations(read_only=True, open_world=False),
        )
        kill = define_tool(
            name=KILL,
            description="Asks a background job to stop. That it has stopped is told by its status, later.",
            parameters={"job_id": _JOB_ID, "reason": {"type": "string", "description": "Why, for the job's record"}},
            output={
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "outcome": {"type": "string", "enum": list(_KILLED), "required": True},
                    "job": {**_JOB, "required": True},
                },
            },
            execute=self._kill,
            render=_render_kill,
            finalize_content=self._bound,
            annotations=ToolAnnotations(read_only=False, destructive=True, open_world=False),
        )
        return output, listing, kill

    async def note_limit(self, call: ToolExecution, next_: Next[PreToolDecision]) -> PreToolDecision:
        """Keeps the limit of the job that a call is about, as it is before any policy."""
        if call.name in (OUTPUT, KILL) and isinstance(call.arguments, dict):
            job_id = call.arguments.get("job_id")
            if isinstance(job_id, str):
                try:
                    limit = self._jobs.get(job_id, caller=call.agent).output_limit_bytes
                except JobError:
                    limit = None  # the body says what is wrong
                if limit is not None:
                    self._limits[call.token] = limit
        return await next_()

    async def _output(self, arguments: Any, run: ToolRunContext) -> Any:
        job_id = _job_id(arguments)
        if arguments.get("wait"):
            timeout = arguments.get("timeout_ms", self._default_wait_ms)
            if not timeout > 0:
                raise ToolArgsError([f'"timeout_ms" must be positive, not {timeout}'])
            await self._jobs.wait(job_id, min(timeout, self._max_wait_ms), caller=run.agent, signal=run.signal)
            run.signal.raise_if_aborted()  # nobody would get what is read now
        reading = self._jobs.read(job_id, caller=run.agent)
        job = public_job(reading.job)
        body = reading.text.removesuffix("\n") or NO_OUTPUT
        return {"text": f"{body}\n{status_line(job)}", "job": job}

    async def _list(self, _arguments: Any, run: ToolRunContext) -> Any:
        return [public_job(job) for job in self._jobs.snapshots(caller=run.agent)]

    async def _kill(self, arguments: Any, run: ToolRunContext) -> Any:
        killed = self._jobs.kill(_job_id(arguments), arguments.get("reason"), caller=run.agent)
        outcome = "cancellation-requested" if killed.outcome == "requested" else killed.outcome
        return {"outcome": outcome, "job": public_job(killed.job)}

    def _bound(self, call: ToolExecution, result: ToolExecutionResult) -> Sequence[ContentBlock] | None:
        limit = self._limits.pop(call.token, None)
        if limit is None:
            return None
        ending = ""
        if isinstance(result, ToolSuccess):
            value: Any = result.value
            rendered = _render_output(None, value) if call.name == OUTPUT else _render_kill(None, value)
            if list(result.content) == rendered:  # else a policy has put something else in its place
                ending = f"\n{status_line(value['job'])}"
        return bound_content(result.content, limit, ending)


def _job_id(arguments: Any) -> str:
    job_id: str = arguments["job_id"]
    if not job_id:
        raise ToolArgsError(['"job_id" must not be empty'])
    return job_id


def _render_output(_arguments: Any, value: Any) -> list[ContentBlock]:
    return [text_block(value["text"])]


def _render_list(_arguments: Any, value: Any) -> list[ContentBlock]:
    return [text_block("\n".join(map(job_line, value)) or NO_JOBS)]


def _render_kill(_arguments: Any, value: Any) -> list[ContentBlock]:
    job = value["job"]
    return [text_block(f"{_KILLED[value['outcome']].format(id=job['id'])}\n{status_line(job)}")]
