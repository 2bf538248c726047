"""The jobs service: starts background jobs, and ends them with their owner or host (contract J2 to J5, J13, J14)."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio

from ...registry import Disposer, ScopeKey
from ...registry.pipeline.outcome import message_of, printable
from ..agent import Agent
from ..policies.record import run_whole
from .admission import Admission
from .audience import Audience, ChangeObserver, DoneListener
from .following import JobFollowing
from .function import FunctionJob, JobFunction
from .job import Job, JobHandle, JobOutcome, RunningJob, checked_run
from .notices import Notices, WakeHook
from .numbers import checked_count
from .record import JobRecord
from .table import JobTable, now_ms

if TYPE_CHECKING:
    from ...registry import ScopedTools, ToolExecution
    from ..host import Host

__all__ = ["Jobs"]


class Jobs(JobFollowing):
    """Work that goes on after the call that has started it, and the tools by which models and programs follow it.

        async with ptc.Host(log="ptc.db") as host, ptc.Jobs(host) as jobs:
            jobs.install(host.tools)                   # job_output, job_list, job_kill

            @ptc.tool
            async def build(target: str, run: ptc.ToolRunContext) -> ptc.JobHandle:
                '''Build something, in the background.'''
                async def work(job: ptc.JobContext) -> None:
                    async for line in compiler(target):
                        job.write(line)
                return await jobs.spawn(work, kind="build", label=target, owner=run.agent, call=run.exec)

    Use it as an async context manager inside that of the host. Jobs run in it, whatever becomes of the tasks and calls
    that have started them (contract J14); leaving it, or closing the host, ends them before the log closes.

    Args:
        host: whose agents own the jobs.
        max_jobs: how many live jobs one owner may have; those without owner have one such limit together (J3).
        keep_finished: how many jobs that have ended are kept for one owner. Beyond that the oldest are dropped, first
            those whose end has been told.
        stop_timeout_ms: how long a job may take to end when its owner or the host closes. After that it has failed
            with an `orphaned` detail, and nobody waits for it.
        on_wake: `async (agent) -> None`, opens a turn of an idle agent whose job has ended, and gives its model what
            `agent.take_notices()` returns. An agent is idle while `agent.in_turn` is false, so a host that has a hook
            holds `agent.open_turn()` around each of its turns. Without a hook notices wait for the next batch (J19).
        max_consecutive_wakes: how many turns are opened in a row before the user has said something; see `user_spoke`.

    Raises:
        ValueError: a number is not positive.
        TypeError: `on_wake` is no function.
    """

    def __init__(
        self,
        host: Host,
        *,
        max_jobs: int = 10,
        keep_finished: int = 100,
        stop_timeout_ms: float = 30_000,
        on_wake: WakeHook | None = None,
        max_consecutive_wakes: int = 3,
    ) -> None:
        if on_wake is not None and not callable(on_wake):
            raise TypeError("on_wake must be an async function that takes the agent")
        self._host = host
        self._audience = Audience(host.registry.tree)
        self._notices = Notices(on_wake, checked_count("max_consecutive_wakes", max_consecutive_wakes))
        super().__init__(JobTable(self._audience, self._notices, keep_finished, stop_timeout_ms))
        self._admission = Admission(host.registry, self._table, max_jobs)
        self._counts: dict[str, int] = {}
        self._owners: dict[int, list[Disposer]] = {}  # by identity; what is disposed of keeps the owner alive
        self._starting = anyio.Lock()
        self._detach: Disposer | None = None

    async def __aenter__(self) -> Self:
        """Opens the service.

        Raises:
            RuntimeError: it was opened before.
        """
        if self._table.tasks is not None or self._table.closing:
            raise RuntimeError("a Jobs service is opened once; make another one")
        self._table.tasks = await anyio.create_task_group().__aenter__()
        self._notices.open(self._table.tasks)
        self._detach = self._host.on_close(self.aclose)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.aclose()
        finally:
            assert self._table.tasks is not None
            # All has ended, and the group need not cancel anything. Told of the error, it would wrap it in its own.
            await self._table.tasks.__aexit__(None, None, None)

    async def aclose(self) -> None:
        """Ends every job and drops it; no listener of `on_done` hears of that (contract J13). May be called again."""
        self._table.closing = True
        self._notices.close()

        async def end_all() -> None:
            async with self._starting:  # whoever is starting a job has started it then, or never will
                pass
            await self._table.end(self._table.all(), "the host is closing")

        await run_whole(end_all)
        for disposers in self._owners.values():
            _dispose(disposers)
        self._owners.clear()
        if self._detach is not None:
            self._detach()

    def install(self, tools: ScopedTools, *, default_wait_ms: float = 30_000, max_wait_ms: float = 600_000) -> Disposer:
        """Registers `job_output`, `job_list` and `job_kill` in a scope, whose agents may then own jobs (contract J16).

        Args:
            tools: the host's tools, for everybody; or an agent's.
            default_wait_ms: how long `job_output` waits when it is told to wait, and not how long.
            max_wait_ms: the longest that it waits, whatever it is told.

        Returns:
            what takes the tools away again; jobs that run go on.

        Raises:
            ValueError: `default_wait_ms` is more than `max_wait_ms`, one of them is not positive, or the tools are
                another host's (contract J17).
            ToolRegistrationError: one of the names is taken in this scope.
        """
        from .tools import install_tools

        if tools.registry is not self._host.registry:
            raise ValueError("these tools are another host's; a Jobs service is installed in its own host")
        return install_tools(self, tools, default_wait_ms, max_wait_ms)

    def add_controller(self, scope: ScopeKey | None = None) -> Disposer:
        """Says that jobs of a scope, and those below it, can be followed and stopped; `install` does so (contract J2).

        For a host that gives models other means than the three tools.

        Args:
            scope: the scope; `None` for every agent, and for jobs without owner.
        """
        return self._admission.add_controller(scope)

    def on_change(self, observer: ChangeObserver) -> Disposer:
        """Has `observer` told of each start, stop, end and removal of a job.

        Raises:
            TypeError: it is no plain function.
        """
        return self._audience.on_change(observer)

    def on_done(self, listener: DoneListener, *, scope: ScopeKey | None = None) -> Disposer:
        """Has `listener` told of jobs that have ended, after observers of changes (contract J12).

        Args:
            listener: `(job, owner) -> None`.
            scope: hears only of jobs whose owner is this scope or below it, after those who hear of all.

        Raises:
            TypeError: it is no plain function.
        """
        return self._audience.on_done(listener, scope)

    def user_spoke(self, agent: Agent) -> None:
        """Says that the agent's model has been told what the user said, so wakes count anew (J19)."""
        self._notices.user_spoke(agent)

    async def start(
        self,
        *,
        kind: str,
        label: str,
        run: Callable[[], RunningJob],
        owner: ScopeKey | None = None,
        output_limit_bytes: int | None = None,
        call: ToolExecution | None = None,
    ) -> JobHandle:
        """Starts a job, and returns its handle. From then on nobody's cancellation but its own stops it.

        Args:
            kind: what sort of work it is, for example `build`; ids are `<kind>-<n>`.
            label: what it is, for people and models.
            run: begins the work and returns at once, with the means to cancel and await it. If it raises there is no
                job (contract J4).
            owner: the agent whose session the job belongs to, and has on record; when `None` it is everybody's and on
                no record.
            output_limit_bytes: how much of the job's output a model is shown at once, in UTF-8 bytes (contract J18).
            call: the call that starts it, for the record; a call that has been given up starts nothing.

        Raises:
            JobError: no controller serves the owner, the owner is no open agent of this host, or the service is not
                open; `run` has not been called.
            JobLimitError: the owner has its limit of live jobs; likewise (contract J3).
            ValueError: kind or label is empty, or the limit is no positive integer; likewise.
            TypeError: kind or label is no text, or what `run` returned is no job.
            LogUnavailableError: the start could not be recorded; `run` has not been called.
            AbortError: the call has been given up; `run` has not been called.
            Exception: whatever `run` raised.
        """
        async with self._starting:
            agent = self._admission.preflight(kind, label, owner, output_limit_bytes)
            number = self._counts.get(kind, 0) + 1
            job_id = f"{kind}-{number}"
            record = JobRecord(None if agent is None else agent.session, job_id)
            try:
                await record.start(kind, label, output_limit_bytes, call)
                if call is not None:
                    call.signal.raise_if_aborted()
                self._admission.check_open(agent)  # it may have been closed meanwhile
                running = checked_run(run())
            except BaseException as error:
                why = message_of(error) if isinstance(error, Exception) else "the task that started it was cancelled"
                await record.settle(JobOutcome(status="failed", detail=f"it was not started: {why}"))
                raise
            self._counts[kind] = number
            job = Job(
                job_id,
                kind,
                printable(label),
                owner=agent,
                limit=output_limit_bytes,
                running=running,
                record=record,
                started_at=now_ms(),
            )
            self._keep(job)
            return {"kind": "background", "jobId": job_id}

    async def spawn(
        self,
        function: JobFunction,
        *,
        kind: str,
        label: str,
        owner: ScopeKey | None = None,
        output_limit_bytes: int | None = None,
        call: ToolExecution | None = None,
    ) -> JobHandle:
        """Starts an async function as a job, in a task of the service.

        What it writes is the job's output, as it comes; text that it returns is the last of it. A function that raises
        has failed, with the error's message as the detail. To kill the job cancels what the function awaits.

        Args:
            function: `async (job) -> None | text | JobOutcome`; see `JobContext` for what it is given.
            kind: see `start`.
            label: see `start`.
            owner: see `start`.
            output_limit_bytes: see `start`; it is also how much unread output is kept, 1 MiB when `None`. Older output
                is dropped, and the next reader is told how much.
            call: see `start`.

        Raises:
            Exception: what `start` raises.
            TypeError: the function is not async.
        """

        def run() -> FunctionJob:
            assert self._table.tasks is not None
            job = FunctionJob(function, output_limit_bytes)
            self._table.tasks.start_soon(job.run)
            return job

        return await self.start(
            kind=kind, label=label, run=run, owner=owner, output_limit_bytes=output_limit_bytes, call=call
        )

    async def end(self, owner: Agent) -> None:
        """Ends every job of an owner and drops it; `Agent.aclose` does so (contract J13)."""

        async def end_its() -> None:
            async with self._starting:
                pass
            await self._table.end(self._table.of(owner), "its agent is closing")

        await run_whole(end_its)
        _dispose(self._owners.pop(id(owner), []))

    def _keep(self, job: Job) -> None:
        owner = job.owner
        if owner is not None and id(owner) not in self._owners:
            self._owners[id(owner)] = [
                owner.on_close(lambda: self.end(owner)),
                owner.on_turn_closed(lambda: self._notices.turn_closed(owner)),
            ]
        self._table.add(job)


def _dispose(disposers: list[Disposer]) -> None:
    for dispose in disposers:
        dispose()
