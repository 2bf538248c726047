"""`RunCodeNode`: LangChain tools in a LangGraph graph, offered to the model as one, `run_code`.

    node = RunCodeNode(tools, host=host, executor=executor)
    graph.add_node("tools", node.run)          # in the place of ToolNode(tools)

What a program calls goes through the policies and into the log of `host`, and then through `tool.ainvoke`, so that
callbacks and traces see it below the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_type_hints

import ptc
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import MessagesState
from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python


class RunCodeNode:
    """Executes the tool calls of the last message of a graph's state.

    Args:
        tools: what programs may call.
        host: has the policies and the log. Each thread of the graph is a session, under its `thread_id`.
        executor: runs the programs.
        name: what the agent is called in the log.

    Raises:
        ValueError: a tool takes arguments that only `ToolNode` can give it; such a tool stays with a `ToolNode`.
    """

    def __init__(
        self, tools: Sequence[BaseTool], *, host: ptc.Host, executor: ptc.PtcExecutor, name: str = "graph"
    ) -> None:
        self._host = host
        self._executor = executor
        self._name = name
        self._threads: dict[str | None, ptc.Agent] = {}
        self._scope = host.agent(name, executor=executor)
        for tool in tools:
            self._scope.tools.register(as_ptc(tool))

    def describe(self) -> tuple[str, list[dict[str, Any]]]:
        """Returns the text for the system prompt, and what to give to the model's `bind_tools`."""
        prompt, schemas = self._scope.describe()
        functions = [
            {"name": one.name, "description": one.description, "parameters": one.parameters} for one in schemas
        ]
        return prompt, [{"type": "function", "function": function} for function in functions]

    async def run(self, state: MessagesState, config: RunnableConfig) -> dict[str, list[AnyMessage]]:
        """The node: executes all calls of the last message as one step, and answers each of them."""
        *before, asked = state["messages"]
        if not isinstance(asked, AIMessage):
            raise TypeError(f"the last message has no tool calls: it is a {type(asked).__name__}")
        calls = [
            ptc.ToolCall(name=one["name"], arguments=one["args"], call_id=one["id"] or "") for one in asked.tool_calls
        ]
        # Arguments that are no JSON come to ptc as they are, and the model is told what is wrong with them.
        calls += [
            ptc.ToolCall(name=one["name"] or "", arguments=one["args"] or "", call_id=one["id"] or "")
            for one in asked.invalid_tool_calls
        ]
        agent = self._agent(config)
        if agent.step and before and isinstance(before[-1], HumanMessage):
            agent.next_turn()
        batch = await agent.execute(calls)
        answers: list[AnyMessage] = []
        for call, outcome in zip(calls, batch.results, strict=True):
            answers.append(
                ToolMessage(
                    content=as_content(outcome.result.content),
                    tool_call_id=outcome.call_id,
                    name=call.name,
                    status="error" if outcome.result.is_error else "success",
                )
            )
        # For example the images of tools, which the program did not see.
        answers += [HumanMessage(as_content(message.content)) for message in batch.additional_contexts]
        return {"messages": answers}

    def _agent(self, config: RunnableConfig) -> ptc.Agent:
        thread = config.get("configurable", {}).get("thread_id")
        agent = self._threads.get(thread)
        if agent is None:
            agent = self._host.agent(self._name, executor=self._executor, parent=self._scope, session=thread)
            self._threads[thread] = agent
        return agent


def tools_or_end(state: MessagesState) -> Literal["tools", "__end__"]:
    """Leads to the node "tools" while there are calls to answer, also such whose arguments are no JSON."""
    asked = state["messages"][-1]
    return "tools" if isinstance(asked, AIMessage) and (asked.tool_calls or asked.invalid_tool_calls) else "__end__"


def as_ptc(tool: BaseTool) -> ptc.ToolDefinition:
    """Returns a LangChain tool as one of ptc's."""
    model = tool.args_schema
    fields = set(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else set[str]()
    if injected := fields - set(tool.args):
        raise ValueError(f"tool {tool.name!r} takes {sorted(injected)} from ToolNode; leave it with a ToolNode")
    # A program is told of a failure as a ToolCallError, and not as a text that looks like a result.
    plain = tool.model_copy(update={"handle_tool_error": False, "handle_validation_error": False})

    async def execute(arguments: dict[str, Any], run: ptc.ToolRunContext) -> Any:
        async with run.signal.cancel_scope():  # a tool of LangChain is cancelled when its graph is
            value = await plain.ainvoke(dict(arguments))
        return to_jsonable_python(value)

    function = convert_to_openai_tool(tool)["function"]
    return ptc.define_raw_tool(
        name=tool.name,
        description=function["description"],
        parameters=function["parameters"],
        output=output_schema(tool),
        execute=execute,
        concurrency_safe=True,  # as ToolNode has it
    )


def output_schema(tool: BaseTool) -> Mapping[str, Any] | None:
    """Returns the schema of what a tool returns, from the annotation of its function; `None` when nothing tells."""
    if not isinstance(tool, StructuredTool) or tool.response_format != "content":
        return None
    function = tool.coroutine or tool.func
    returned = get_type_hints(function).get("return", Any)
    try:
        return TypeAdapter(returned).json_schema(mode="serialization")
    except PydanticUserError:  # a class of which pydantic knows nothing
        return None


def as_content(blocks: Sequence[ptc.ContentBlock]) -> str | list[str | dict[str, Any]]:
    """Returns content blocks as LangChain writes them; mere text as a string."""
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks if block["type"] == "text")
    return [
        {"type": "text", "text": block["text"]}
        if block["type"] == "text"
        else {"type": "image", "base64": block["data"], "mime_type": block["mimeType"]}
        for block in blocks
    ]
