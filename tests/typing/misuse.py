"""Mistakes that a type checker finds: each line with one names the rules that find it, after `expect`."""

from __future__ import annotations

from typing import TypedDict

import ptc
from pydantic import BaseModel


class SearchArgs(TypedDict):
    query: str


class OtherArgs(TypedDict):
    query: str
    limit: int


class BookingArgs(BaseModel):
    guests: int


class Hit(TypedDict):
    title: str


# Arguments and values of tools


async def reads_another_key(args: SearchArgs) -> int:
    return len(args["querry"])  # expect: reportGeneralTypeIssues


async def reads_another_member(args: BookingArgs) -> int:
    return args.guest  # expect: reportAttributeAccessIssue


async def wants_more(args: OtherArgs) -> int:
    return args["limit"]


async def wants_a_model(args: BookingArgs) -> int:
    return args.guests


async def wants_two(args: SearchArgs, run: ptc.ToolRunContext, more: int) -> int:
    return more


def at_once(args: SearchArgs) -> int:
    return len(args["query"])


async def counts(args: SearchArgs) -> int:
    return len(args["query"])


NUMBER = {"type": "integer"}
QUERY = {"query": {"type": "string", "required": True}}

ptc.define_tool(  # expect: reportCallIssue
    name="t",
    description="",
    parameters=SearchArgs,
    output=NUMBER,
    execute=wants_more,  # expect: reportArgumentType
)
ptc.define_tool(  # expect: reportCallIssue
    name="t",
    description="",
    parameters=SearchArgs,
    output=int,
    execute=wants_more,  # expect: reportArgumentType
)
ptc.define_tool(  # expect: reportCallIssue
    name="t",
    description="",
    parameters=SearchArgs,
    output=int,
    execute=wants_a_model,  # expect: reportArgumentType
)
ptc.define_tool(  # expect: reportCallIssue
    name="t",
    description="",
    parameters=BookingArgs,
    output=int,
    execute=counts,  # expect: reportArgumentType
)
ptc.define_tool(  # expect: reportCallIssue
    name="t",
    description="",
    parameters=SearchArgs,
    output=int,
    execute=wants_two,  # expect: reportArgumentType
)
ptc.define_tool(  # expect: reportCallIssue
    name="t",
    description="",
    parameters=SearchArgs,
    output=int,
    execute=at_once,  # expect: reportArgumentType
)
ptc.define_tool(  # expect: reportCallIssue
    name="t",
    description="",
    parameters=QUERY,  # expect: reportArgumentType
    output=NUMBER,
    execute=at_once,  # expect: reportArgumentType
)
ptc.define_tool(  # expect: reportCallIssue
    name="t",
    description="",
    parameters=int,  # expect: reportArgumentType
    output=int,
    execute=counts,
)
ptc.define_tool(
    name="t",
    description="",
    parameters=QUERY,  # expect: reportArgumentType
    output=NUMBER,  # expect: reportArgumentType
)
ptc.define_tool(  # expect: reportCallIssue
    name="t", parameters=SearchArgs, output=int, execute=counts
)
ptc.define_tool(  # expect: reportCallIssue
    name="t", description="", parameters=SearchArgs, output=int, execute=counts, time_out_ms=5
)
ptc.define_tool(  # expect: reportCallIssue
    name="t",
    description="",
    parameters=SearchArgs,
    output=int,
    execute=counts,
    timeout_ms="5",  # expect: reportArgumentType
)
ptc.define_tool(
    name="t",
    description="",
    parameters=BookingArgs,
    output=int,
    execute=wants_a_model,
    present_call=lambda a: a.guests,  # expect: reportAttributeAccessIssue
)
ptc.define_tool(  # expect: reportCallIssue
    name="t",
    description="",
    parameters=QUERY,  # expect: reportArgumentType
    output=NUMBER,
    execute=counts,
    render=lambda a, v: v,
)


@ptc.define_tool(name="t", description="", parameters=SearchArgs, output=list[Hit])  # expect: reportArgumentType
async def gives_another_value(args: SearchArgs) -> list[int]:
    return [len(args["query"])]


@ptc.define_tool(name="t", description="", parameters=SearchArgs, output=Hit)  # expect: reportArgumentType
async def takes_other_arguments(args: OtherArgs) -> Hit:
    return {"title": args["query"]}


@ptc.tool  # expect: reportArgumentType
def not_async(item: str) -> float:
    return len(item)


@ptc.tool
async def price(item: str) -> float:
    return len(item)


async def calls_it_wrong() -> float:
    return await price.function(5)  # expect: reportArgumentType


# Answers of policies

ptc.Deny()  # expect: reportCallIssue
ptc.ToolGuardDenial()  # expect: reportCallIssue
ptc.Deny(403)  # expect: reportArgumentType
ptc.Block("bad")  # expect: reportArgumentType
ptc.Ask(display_reason="why?")  # expect: reportArgumentType


async def refuses_with_text(call: ptc.ToolExecution, next: ptc.Next[ptc.PreToolDecision]) -> str:
    return "no"


async def may_forget(call: ptc.ToolExecution, next: ptc.Next[ptc.PreToolDecision]) -> ptc.Deny | None:
    return ptc.Deny("no") if call.name == "rm" else None


async def accepts(call: ptc.ToolExecution, next: ptc.Next[ptc.PostToolDecision]) -> ptc.PostToolDecision:
    return await next()


async def forgets_next(call: ptc.ToolExecution) -> ptc.PreToolDecision:
    return ptc.Deny(call.name)


async def good(call: ptc.ToolExecution, next: ptc.Next[ptc.PreToolDecision]) -> ptc.PreToolDecision:
    return await next()


def not_awaited(call: ptc.ToolExecution, next: ptc.Next[ptc.PreToolDecision]) -> ptc.PreToolDecision:
    return ptc.Deny("no")


async def told_later(call: ptc.ToolExecution, result: ptc.ToolExecutionResult) -> None: ...


async def asks(request: ptc.ApprovalRequest, next: ptc.Next[ptc.ApprovalOutcome]) -> str:
    return "allowed-always"


async def guards_later(call: ptc.ToolExecution) -> str | None:
    return call.name


def guards_with_a_decision(call: ptc.ToolExecution) -> ptc.Deny | None:
    return ptc.Deny("no") if call.name == "rm" else None


def condition_of_a_call(call: ptc.ToolExecution) -> bool:
    return call.name == "rm"


async def condition_with_text(context: ptc.ActivationContext) -> str:
    return "yes"


def set_up(host: ptc.Host, agent: ptc.Agent) -> None:
    host.on("tools/pre-exectue", good)  # expect: reportArgumentType, reportCallIssue
    agent.on("tools/pre_execute", good)  # expect: reportArgumentType, reportCallIssue
    agent.tools.on("shop/greeting", good)  # expect: reportArgumentType, reportCallIssue
    agent.tools.on("tools/ptc-dispatch-log", good)  # expect: reportArgumentType, reportCallIssue
    host.on("tools/pre-execute", refuses_with_text)  # expect: reportArgumentType, reportCallIssue
    agent.on("tools/pre-execute", may_forget)  # expect: reportArgumentType, reportCallIssue
    agent.tools.on("tools/pre-execute", accepts)  # expect: reportArgumentType, reportCallIssue
    host.on("tools/pre-execute", forgets_next)  # expect: reportArgumentType, reportCallIssue
    host.on("tools/pre-execute", not_awaited)  # expect: reportArgumentType, reportCallIssue
    host.on("tools/execute", good)  # expect: reportArgumentType, reportCallIssue
    host.on("tools/post-execute", good)  # expect: reportArgumentType, reportCallIssue
    host.on("tools/result", told_later)  # expect: reportArgumentType, reportCallIssue
    host.on("tools/change", told_later)  # expect: reportArgumentType, reportCallIssue
    host.on("approval/request", asks)  # expect: reportArgumentType, reportCallIssue
    host.on("tools/ptc-dispatch-log", good)  # expect: reportArgumentType, reportCallIssue
    host.on("tools/pre-execute", good, first=True)  # expect: reportCallIssue
    host.tools.guard(guards_later)  # expect: reportArgumentType
    agent.tools.guard(guards_with_a_decision)  # expect: reportArgumentType
    host.tools.register(price, when=condition_of_a_call)  # expect: reportArgumentType
    host.tools.register(price, when=condition_with_text)  # expect: reportArgumentType
    host.tools.register(counts)  # expect: reportArgumentType

    @host.on("tools/pre-execute")  # expect: reportArgumentType
    async def decorated(call: ptc.ToolExecution, next: ptc.Next[ptc.PreToolDecision]) -> str:
        return "no"

    @agent.on("tools/result")  # expect: reportArgumentType
    async def decorated_later(call: ptc.ToolExecution, result: ptc.ToolExecutionResult) -> None: ...

    @host.on("tools/pre-exectue")  # expect: reportArgumentType, reportCallIssue
    async def misspelled(call: ptc.ToolExecution, next: ptc.Next[ptc.PreToolDecision]) -> ptc.PreToolDecision:
        return await next()

    del decorated, decorated_later, misspelled


async def changes_the_view(view: ptc.DispatchView, next: ptc.Next[ptc.ToolExecutionResult]) -> ptc.ToolExecutionResult:
    view.name = "other"  # expect: reportAttributeAccessIssue
    return await next()


def counts_at_once(job: ptc.JobContext) -> str:
    return "not awaited"


async def counts_numbers(job: ptc.JobContext) -> int:
    return 3


async def begins_later() -> ptc.JobRun:
    raise NotImplementedError


async def background(host: ptc.Host, jobs: ptc.Jobs) -> None:
    await jobs.spawn(counts_at_once, kind="count", label="numbers")  # expect: reportArgumentType
    await jobs.spawn(counts_numbers, kind="count", label="numbers")  # expect: reportArgumentType
    await jobs.start(kind="run", label="a run", run=begins_later)  # expect: reportArgumentType
    jobs.install(host)  # expect: reportArgumentType
    jobs.on_done(lambda job: None)  # expect: reportArgumentType
    ptc.JobOutcome(status="running")  # expect: reportArgumentType
