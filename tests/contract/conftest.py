"""What the contract tests of registry, pipeline and scheduler share: one registry, and a record of what happened."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from ptc.registry import (
    MISSING,
    ApprovalService,
    ContextMessage,
    Pipeline,
    ScopeKey,
    ToolDefinition,
    ToolExecutionInput,
    ToolExecutionResult,
    ToolOutput,
    ToolRegistry,
    text_block,
)

Body = Callable[[Any, Any], Awaitable[Any]]


def render_json(_arguments: Any, value: Any) -> list[Any]:
    return [text_block(json.dumps(value))]


class MemoryLog:
    """A session log that keeps its events, and that can be told to fail."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any, int | None]] = []
        self.fail_on: Callable[[str, Any], bool] = lambda _type, _data: False

    async def append(self, type: str, data: Any, *, cites: int | None = None) -> int:
        if self.fail_on(type, data):
            raise OSError("disk full")
        self.events.append((type, data, cites))
        return len(self.events) - 1

    def short(self) -> list[str]:
        """Returns the events as `call:<id>` and `result:<id>`, in order."""
        return [
            f"call:{data['callId']}" if kind == "tool/call" else f"result:{data['message']['callId']}"
            for kind, data, _cites in self.events
        ]


class Rig:
    """One registry and pipeline, a tool maker, and a record of what happened in which order."""

    def __init__(self, approval: ApprovalService | None = None) -> None:
        self.registry = ToolRegistry()
        self.tools = self.registry.context()
        self.pipeline = Pipeline(self.registry, approval=approval)
        self.seen: list[Any] = []
        self.observed: list[tuple[Any, ToolExecutionResult]] = []
        self.tools.on("tools/result", lambda call, result: self.observed.append((call, result)))

    def define(self, name: str = "echo", body: Body | None = None, **options: Any) -> ToolDefinition:
        """Makes a definition whose body notes `body` and answers `{"ok": True}`, unless it is given one."""

        async def default(_arguments: Any, _run: Any) -> Any:
            self.seen.append("body")
            return {"ok": True}

        output = ToolOutput(
            schema=options.pop("schema", {}),
            render=options.pop("render", render_json),
            presentation_meta=options.pop("presentation_meta", None),
        )
        return ToolDefinition(
            name=name,
            description=options.pop("description", f"the tool {name}"),
            parameters=options.pop("parameters", {"type": "object", "properties": {}}),
            output=output,
            execute=body or default,
            **options,
        )

    def add(
        self, name: str = "echo", body: Body | None = None, *, scope: ScopeKey | None = None, **options: Any
    ) -> Any:
        """Registers a tool made by `define`, and returns its disposer."""
        when = options.pop("when", None)
        return self.registry.context(scope).register(self.define(name, body, **options), when=when)

    def input(self, name: str = "echo", arguments: Any = MISSING, **fields: Any) -> ToolExecutionInput:
        given = {} if arguments is MISSING else arguments
        return ToolExecutionInput(call_id=fields.pop("call_id", "c1"), name=name, arguments=given, **fields)

    async def run(
        self, name: str = "echo", arguments: Any = MISSING, *, transport: ToolDefinition | None = None, **fields: Any
    ) -> ToolExecutionResult:
        return await self.pipeline.execute(self.input(name, arguments, **fields), transport=transport)

    def names(self, scope: ScopeKey | None = None, tool_set: Any = None) -> list[str]:
        return [definition.name for definition in self.registry.definitions(scope, tool_set)]

    def note(self, what: Any) -> None:
        self.seen.append(what)


class Kit:
    """What test modules need by name; they cannot import from here."""

    Rig = Rig
    MemoryLog = MemoryLog

    @staticmethod
    def text(result: ToolExecutionResult) -> str:
        """Returns the text of a result's content."""
        return "".join(block["text"] if block["type"] == "text" else "?" for block in result.content)

    @staticmethod
    def identity(result: ToolExecutionResult) -> tuple[str, str] | None:
        """Returns name and code of a failure, or `None` when it has no identity."""
        assert result.is_error
        info = result.error.info
        return None if info is None else (info.name, info.code)

    @staticmethod
    def context(text: str, who: str = "test") -> ContextMessage:
        return ContextMessage(content=[text_block(text)], source={"kind": who})

    @staticmethod
    def texts(result: Any) -> list[str]:
        """Returns the texts of the contexts of a result, in order."""
        return [message.content[0]["text"] for message in result.additional_contexts]


@pytest.fixture
def kit() -> type[Kit]:
    return Kit


@pytest.fixture
def rig() -> Rig:
    return Rig()


class Desk:
    """A host with a log on disk, an agent whose tool `delete` notes what it deleted, and a person who is asked."""

    def __init__(self, host: ptc.Host, log: Path) -> None:
        self.host = host
        self.log = log
        self.agent = host.agent("clerk")
        self.seen: list[Any] = []

        @ptc.tool
        async def delete(id: int) -> bool:
            """Delete something."""
            self.seen.append(f"deleted {id}")
            return True

        host.tools.register(delete)

    def ask(self, reason: str | None = "deletes for good", *, tool: str = "delete", **options: Any) -> None:
        """Has every call of one tool need approval."""

        @self.host.on("tools/pre-execute")
        async def asks(call: Any, next: Any) -> Any:
            return ptc.Ask(reason, **options) if call.name == tool else await next()

    def answer(self, answer: Any) -> None:
        """Has every question answered in the same way, or by the exception being raised."""

        @self.host.on("approval/request")
        async def answers(request: Any, _next: Any) -> Any:
            self.seen.append(request)
            if isinstance(answer, Exception):
                raise answer
            return answer

    async def call(self, name: str = "delete", *, signal: Any = None, **arguments: Any) -> ToolExecutionResult:
        call = ptc.ToolCall(name=name, arguments=arguments or {"id": 1})
        return (await self.agent.execute([call], signal=signal)).results[0].result

    async def events(self, *types: str) -> list[Any]:
        """Returns the agent's events, those of some types or all."""
        assert self.agent.session is not None
        return [event for event in await self.agent.session.events() if not types or event.type in types]

    async def types(self) -> list[str]:
        return [event.type for event in await self.events()]

    async def outcomes(self) -> list[Any]:
        """Returns the answers on record; fails when they do not pair with the questions, one to one."""
        asked = {event.data["id"]: event.seq for event in await self.events("approval/asked")}
        decided = await self.events("approval/decided")
        assert sorted(event.data["id"] for event in decided) == sorted(asked)
        assert [event.cites for event in decided] == [asked[event.data["id"]] for event in decided]
        return [event.data["outcome"] for event in decided]

    def refuse(self, monkeypatch: pytest.MonkeyPatch, *types: str) -> list[str]:
        """Has the session refuse events of these types; returns the list of those it has refused."""
        session = self.agent.session
        assert session is not None
        append, refused = session.append, list[str]()

        async def failing(type: str, data: Any, *, cites: int | None = None) -> int:
            if type in types:
                refused.append(type)
                raise OSError(f"no space left on {self.log}")
            return await append(type, data, cites=cites)

        monkeypatch.setattr(session, "append", failing)
        return refused


@pytest.fixture
async def desk(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Desk]:
    async with ptc.Host(log=tmp_path / "desk.db") as host:
        yield Desk(host, tmp_path / "desk.db")


class Work:
    """The work of a background job, under control of a test: it ends when it is told to, and notes cancellations."""

    def __init__(self, *, final: bool = False) -> None:
        self.chunks: list[str] = []
        self.reasons: list[str | None] = []
        self.begun = 0
        self.refuses: Exception | None = None
        self.ends_when_cancelled = False
        self._ended = anyio.Event()
        self._end: Any = None
        if not final:
            self.read_output = self._read

    def __call__(self) -> Work:
        self.begun += 1
        return self

    @property
    def done(self) -> Awaitable[Any]:
        return self._wait()

    def cancel(self, reason: str | None = None, /) -> None:
        self.reasons.append(reason)
        if self.refuses is not None:
            raise self.refuses
        if self.ends_when_cancelled:
            self.finish("killed")

    def finish(self, status: str = "completed", detail: str | None = None, output: str | None = None) -> None:
        self.settle({"status": status, "detail": detail, "output": output})

    def settle(self, end: Any) -> None:
        """Has `done` return this, or raise it when it is an exception."""
        self._end = end
        self._ended.set()

    async def _wait(self) -> Any:
        await self._ended.wait()
        if isinstance(self._end, BaseException):
            raise self._end
        return self._end

    def _read(self) -> str:
        text = "".join(self.chunks)
        self.chunks.clear()
        return text


class Yard:
    """A host with background jobs, and an agent that owns them."""

    Work = Work

    def __init__(self, host: ptc.Host, jobs: ptc.Jobs) -> None:
        self.host = host
        self.jobs = jobs
        self.agent = host.agent("owner")
        self.changes: list[tuple[str, str]] = []
        self._works: list[Any] = []
        jobs.on_change(lambda change: self.changes.append((change.what, change.job.id)))

    async def start(self, work: Work | None = None, **options: Any) -> str:
        """Starts a job of the agent, unless another owner is given, and returns its id."""
        given = {"kind": "build", "label": "the docs", "owner": self.agent, **options}
        run = Work() if work is None else work
        self._works.append(run)
        handle = await self.jobs.start(run=run, **given)
        assert set(handle) == {"kind", "jobId"}
        return handle["jobId"]

    def leave(self) -> None:
        """Has all work end that a test has left, once it is told to."""
        for work in self._works:
            work.ends_when_cancelled = True

    async def ended(self, job_id: str) -> ptc.JobSnapshot:
        """Returns the job once it has ended; nobody counts as having been told of it."""
        ended = anyio.Event()
        with self.jobs.on_change(lambda change: ended.set() if change.job.id == job_id and change.job.ended else None):
            if not self.jobs.get(job_id, caller=self.agent).ended:
                with anyio.fail_after(10):
                    await ended.wait()
        return self.jobs.get(job_id, caller=self.agent)

    async def call(self, name: str, *, agent: ptc.Agent | None = None, signal: Any = None, **arguments: Any) -> Any:
        """Returns what a job tool answers to the agent, or to another one."""
        call = ptc.ToolCall(name=name, arguments=arguments)
        return (await (agent or self.agent).execute([call], signal=signal)).results[0].result


@pytest.fixture
async def yard(anyio_backend: str) -> AsyncIterator[Yard]:
    async with ptc.Host() as host, ptc.Jobs(host) as jobs:
        jobs.install(host.tools)
        made = Yard(host, jobs)
        yield made
        made.leave()


@pytest.fixture
async def logged_yard(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Yard]:
    async with ptc.Host(log=tmp_path / "yard.db") as host, ptc.Jobs(host) as jobs:
        jobs.install(host.tools)
        made = Yard(host, jobs)
        yield made
        made.leave()
