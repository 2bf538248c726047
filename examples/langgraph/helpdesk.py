"""A helpdesk, written with LangGraph; the model answers with programs, and closing a ticket is asked for.

    python examples/langgraph/helpdesk.py                            no model: what one answered, played again
    python examples/langgraph/helpdesk.py anthropic:claude-sonnet-4-5      or any other that init_chat_model knows

Then `ptc audit show --log helpdesk.db` shows what the program called, and what you have answered.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Literal, NotRequired

import ptc
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from run_code_node import RunCodeNode, tools_or_end
from typing_extensions import TypedDict

INSTRUCTIONS = "You work at a helpdesk. Answer in one or two sentences."
QUESTION = "Close the tickets whose customers have said that it works now. What is left?"

PROGRAM = """\
import asyncio

numbers = await tools.list_tickets(status="open")
tickets = await asyncio.gather(*[tools.read_ticket(number=n) for n in numbers])
left = []
for ticket in tickets:
    if "works now" in ticket["messages"][-1]:
        try:
            await tools.close_ticket(number=ticket["number"], reason="solved")
            continue
        except ToolCallError as error:
            print(f"{ticket['number']} stays open: {error}")
    left.append({"number": ticket["number"], "subject": ticket["subject"]})
return left
"""


class Ticket(TypedDict):
    number: int
    subject: str
    status: Literal["open", "closed"]
    messages: list[str]
    reason: NotRequired[str]


def open_tickets() -> dict[int, Ticket]:
    tickets = [
        (101, "Printer is offline", ["It is offline.", "It works now, thank you."]),
        (102, "Password expired", ["I cannot log in.", "Still nothing."]),
        (103, "Screen flickers", ["Since Monday.", "Oh, it works now."]),
    ]
    return {
        number: Ticket(number=number, subject=subject, status="open", messages=messages)
        for number, subject, messages in tickets
    }


def make_tools(tickets: dict[int, Ticket]) -> list[Any]:
    @tool
    def list_tickets(status: Literal["open", "closed"]) -> list[int]:
        """List the numbers of the tickets."""
        return [number for number, ticket in tickets.items() if ticket["status"] == status]

    @tool
    async def read_ticket(number: int) -> Ticket:
        """Read one ticket with all its messages."""
        if number not in tickets:
            raise ToolException(f"there is no ticket {number}")
        return tickets[number]

    @tool
    async def close_ticket(number: int, reason: str) -> None:
        """Close a ticket."""
        if number not in tickets:
            raise ToolException(f"there is no ticket {number}")
        tickets[number].update(status="closed", reason=reason)

    return [list_tickets, read_ticket, close_ticket]


def make_graph(
    model: BaseChatModel, tools: list[Any], host: ptc.Host, executor: ptc.PtcExecutor
) -> CompiledStateGraph[MessagesState]:
    node = RunCodeNode(tools, host=host, executor=executor, name="helpdesk")

    async def call_model(state: MessagesState) -> dict[str, Any]:
        prompt, schemas = node.describe()
        system = SystemMessage(f"{INSTRUCTIONS}\n\n{prompt}")
        return {"messages": [await model.bind_tools(schemas).ainvoke([system, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", call_model)
    graph.add_node("tools", node.run)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_or_end)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=InMemorySaver())


async def closing_is_asked(call: ptc.ToolExecution, go_on: ptc.Next[ptc.PreToolDecision]) -> ptc.PreToolDecision:
    """A policy of the host: it sees every call of every program."""
    return ptc.Ask("closes a ticket") if call.name == "close_ticket" else await go_on()


async def ask_on_the_terminal(
    request: ptc.ApprovalRequest, _go_on: ptc.Next[ptc.ApprovalOutcome]
) -> ptc.ApprovalOutcome:
    """Asks; the program waits meanwhile, what else it has begun goes on."""
    call = f"{request.tool_name} {json.dumps(request.arguments)}"  # escapes what would control the terminal
    question = f"{call} {request.reason}. Go on? [y/N] "
    answer = await asyncio.to_thread(input, question)
    return "allowed-once" if answer.strip().lower() == "y" else "rejected"


class PlayedAgain(FakeMessagesListChatModel):
    """Says what a model once said; LangChain's own test model, which does not mind that there are tools."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=tools, **kwargs)


def played_again() -> PlayedAgain:
    arguments = {"code": PROGRAM, "description": "Close the tickets that are solved"}
    calls = [{"name": "run_code", "args": arguments, "id": "call_1", "type": "tool_call"}]
    return PlayedAgain(responses=[AIMessage("", tool_calls=calls), AIMessage("That is what is left.")])


async def main(model: BaseChatModel) -> None:
    async with ptc.Host(log="helpdesk.db") as host:
        host.on("tools/pre-execute", closing_is_asked)
        host.on("approval/request", ask_on_the_terminal)
        executor = ptc.PtcExecutor(sandbox=ptc.WasmSandbox())
        graph = make_graph(model, make_tools(open_tickets()), host, executor)
        config: Any = {"configurable": {"thread_id": "morning"}}
        result = await graph.ainvoke({"messages": [HumanMessage(QUESTION)]}, config)
        for message in result["messages"]:
            message.pretty_print()


def chat_model(name: str) -> BaseChatModel:
    try:
        from langchain.chat_models import init_chat_model  # pyright: ignore[reportMissingImports]
    except ImportError:
        sys.exit("a model needs langchain and the package of its provider: pip install langchain langchain-anthropic")
    return init_chat_model(name)


if __name__ == "__main__":
    asyncio.run(main(chat_model(sys.argv[1]) if len(sys.argv) > 1 else played_again()))
