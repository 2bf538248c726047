# pyright: strict
"""Everything that an author writes with types: a type checker has nothing to say of it, and it runs as it is typed."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import NotRequired, TypedDict

import ptc
from pydantic import BaseModel


class SearchArgs(TypedDict):
    query: str
    limit: NotRequired[int]


class Hit(TypedDict):
    title: str


class BookingArgs(BaseModel):
    day: datetime.date
    guests: int = 2


class Booking(BaseModel):
    day: datetime.date
    table: int


# Tools


async def search(args: SearchArgs, run: ptc.ToolRunContext) -> list[Hit]:
    run.signal.raise_if_aborted()
    return [{"title": f"{args['query']} {number}"} for number in range(args.get("limit", 1))]


SEARCH = ptc.define_tool(
    name="search", description="Search.", parameters=SearchArgs, output=list[Hit], execute=search, concurrency_safe=True
)


def count_hits(args: SearchArgs, value: list[Hit]) -> list[ptc.TextContent]:
    return [ptc.text_block(f"{len(value)} for {args['query']}")]


SEARCH_BY_DSL = ptc.define_tool(
    name="search_by_dsl",
    description="Search.",
    parameters={"query": {"type": "string", "required": True}, "limit": {"type": "integer"}},
    output={"type": "array", "items": {"type": "object", "additionalProperties": True}},
    execute=search,
    render=count_hits,
    is_concurrency_safe=lambda args: args.get("limit", 1) < 100,
)


@ptc.define_tool(name="book", description="Book a table.", parameters=BookingArgs, output=Booking, timeout_ms=5_000)
async def book(args: BookingArgs) -> Booking:
    return Booking(day=args.day + datetime.timedelta(days=1), table=args.guests)


async def weekday(args: BookingArgs) -> str:
    return args.day.strftime("%A")


WEEKDAY = ptc.define_tool(
    name="weekday",
    description="Name a day.",
    parameters=BookingArgs,
    output={"type": "string"},
    execute=weekday,
    is_concurrency_safe=lambda args: args["guests"] < 10 if "guests" in args else True,
)


async def latest(args: dict[str, object]) -> Booking:
    return Booking(day=datetime.date(2024, 2, len(args) + 1), table=1)


LATEST = ptc.define_tool(name="latest", description="The last one.", parameters={}, output=Booking, execute=latest)


@ptc.tool(concurrency_safe=True)
async def get_price(item: str) -> float:
    """Look up the price of an item."""
    return {"tea": 2.5}[item]


async def price_of_tea() -> float:
    return await get_price.function("tea")


# Policies


def no_secrets(exec: ptc.ToolExecution) -> str | None:
    return "not for programs" if exec.parent is not None else None


def with_identity(exec: ptc.ToolExecution) -> ptc.ToolGuardDenial | None:
    if exec.name != "book":
        return None
    return ptc.ToolGuardDenial("closed", ptc.ErrorInfo("Closed", "CLOSED"))


def is_on(context: ptc.ActivationContext) -> bool:
    return context.model_selection.model != "small"


async def is_on_later(context: ptc.ActivationContext) -> bool:
    return is_on(context)


async def pre(exec: ptc.ToolExecution, next: ptc.Next[ptc.PreToolDecision]) -> ptc.PreToolDecision:
    if exec.name == "delete":
        return ptc.Deny("read-only")
    return ptc.Ask("costs money") if exec.name == "buy" else await next()


class Gate:
    async def __call__(
        self, call: ptc.ToolExecution, rest: Callable[[], Awaitable[ptc.PreToolDecision]]
    ) -> ptc.PreToolDecision:
        return ptc.Cancel() if call.name == "stop" else await rest()


async def named(
    reason: str, call: ptc.ToolExecution, next: ptc.Next[ptc.PreToolDecision]
) -> ptc.Deny | ptc.PreToolDecision:
    return ptc.Deny(reason) if call.name == "drop" else await next()


async def around(view: ptc.DispatchView, next: ptc.Next[ptc.ToolExecutionResult]) -> ptc.ToolExecutionResult:
    before, view.signal = view.signal, ptc.SignalSource().signal
    try:
        return await next()
    finally:
        view.signal = before


async def ask(request: ptc.ApprovalRequest, next: ptc.Next[ptc.ApprovalOutcome]) -> ptc.ApprovalOutcome:
    return "allowed-once" if request.tool_name == "buy" else await next()


def set_up(host: ptc.Host, agent: ptc.Agent, seen: list[str]) -> list[ptc.Disposer]:
    @host.on("tools/pre-execute", prepend=True)
    async def no_deletes(call: ptc.ToolExecution, next: ptc.Next[ptc.PreToolDecision]) -> ptc.PreToolDecision:
        return ptc.Deny("no") if call.name.startswith("delete") else await next()

    @agent.on("tools/post-execute")
    async def accept(
        call: ptc.ToolExecution, result: ptc.ToolExecutionResult, next: ptc.Next[ptc.PostToolDecision]
    ) -> ptc.PostToolDecision:
        if isinstance(result, ptc.ToolFailure):
            return ptc.Block([ptc.text_block(f"{call.name} failed")])
        return await next()

    @agent.tools.on("tools/result")
    def note(call: ptc.ToolExecution, result: ptc.ToolExecutionResult) -> None:
        seen.append(f"{call.name} {result.is_error}")

    @host.on("tools/ptc-dispatch-log")
    async def shorten(
        entry: ptc.DispatchLogEntry, next: ptc.Next[Sequence[ptc.ContentBlock]]
    ) -> Sequence[ptc.ContentBlock]:
        return (await next())[:1] if entry.is_error else [ptc.text_block(entry.name)]

    listening: ptc.PreExecuteListener = no_deletes  # the decorator returns the function as it was
    return [
        host.tools.register(SEARCH),
        host.tools.register(book),
        host.tools.register(WEEKDAY),
        host.tools.register(LATEST, when=is_on),
        agent.tools.register(SEARCH_BY_DSL, when=is_on_later),
        agent.tools.register(get_price, when=lambda context: context.agent is agent),
        host.tools.guard(no_secrets),
        host.tools.guard(with_identity),
        agent.tools.guard(lambda exec: "no" if exec.name == "rm" else None),
        host.on("tools/pre-execute", pre),
        host.on("tools/pre-execute", listening),
        host.on("tools/pre-execute", Gate()),
        host.on("tools/pre-execute", functools.partial(named, "dropped")),
        agent.on("tools/pre-execute", lambda call, next: next()),
        agent.on("tools/execute", around, prepend=True),
        agent.tools.on("tools/post-execute", accept),
        host.on("tools/result", note),
        host.on("tools/change", lambda: seen.append("change")),
        host.on("approval/request", ask),
        agent.on("tools/ptc-dispatch-log", shorten),
    ]


# Events of the host's own


async def own_event(host: ptc.Host, agent: ptc.Agent) -> str:
    host.registry.events.declare("shop/greeting")

    async def polite(name: str, next: ptc.Next[str]) -> str:
        return f"{await next()}, dear {name}"

    async def default() -> str:
        return "Hello"

    with host.registry.events.on("shop/greeting", polite, scope=agent):
        return await host.registry.events.waterfall("shop/greeting", agent, ["Ann"], default)


async def work(host: ptc.Host, agent: ptc.Agent, arguments: ptc.JsonObject) -> list[ptc.ContentBlock]:
    batch = await agent.execute([ptc.ToolCall(name="search", arguments=arguments)])
    result = batch.results[0].result
    value: ptc.JsonValue = result.value if isinstance(result, ptc.ToolSuccess) else None
    return [*result.content, ptc.text_block(str(value)), ptc.text_block(await own_event(host, agent))]


# Background jobs


class Batch:
    """Work with a protocol of its own."""

    def __init__(self) -> None:
        self.reasons: list[str | None] = []

    async def _end(self) -> ptc.JobOutcome:
        return ptc.JobOutcome(status="completed", output="all of it")

    @property
    def done(self) -> Awaitable[ptc.JobOutcome]:
        return self._end()

    def cancel(self, reason: str | None = None) -> None:
        self.reasons.append(reason)


async def wake(agent: ptc.Agent) -> None:
    agent.take_notices()


async def background(host: ptc.Host, agent: ptc.Agent) -> list[str]:
    seen: list[str] = []

    def note(job: ptc.JobSnapshot, owner: ptc.Agent | None) -> None:
        seen.append(f"{job.id} {job.status} {owner is None}")

    async def ends() -> dict[str, str]:
        return {"status": "failed", "detail": "exit code 1"}

    async def count(job: ptc.JobContext) -> str:
        job.write("one ")
        return "two"

    async with ptc.Jobs(host, on_wake=wake) as jobs:
        jobs.install(host.tools, default_wait_ms=1_000)
        jobs.on_done(note)
        jobs.on_change(lambda change: seen.append(f"{change.what} {change.job.kind}"))

        @ptc.tool
        async def start_count(run: ptc.ToolRunContext) -> ptc.JobHandle:
            return await jobs.spawn(count, kind="count", label="numbers", owner=run.agent, call=run.exec)

        agent.tools.register(start_count)
        await agent.execute([ptc.ToolCall(name="start_count")])
        await jobs.start(kind="batch", label="a batch", run=Batch)
        handle = await jobs.start(
            kind="run", label="a run", run=lambda: ptc.JobRun(cancel=lambda reason: None, done=ends())
        )
        for job in [*jobs.snapshots(caller=agent), jobs.get(handle["jobId"])]:
            await jobs.wait(job.id, 5_000, caller=agent)
        seen.append(jobs.read("count-1", caller=agent).text + jobs.read("batch-1").text)
        seen.append(jobs.kill("run-1", "late").outcome)
    return seen
