"""`RunCodeToolset`: the tools of a pydantic-ai toolset, offered to the model as one, `run_code`.

    agent = Agent(model, deps_type=Deps, toolsets=[RunCodeToolset(tools, host=host, executor=executor)])

What a program calls goes through the policies and into the log of `host`, and then the way of any pydantic-ai call:
argument validators, hooks, `RunContext` with the run's `deps`, the tool's timeout.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeGuard

import ptc
from pydantic_ai import BinaryContent, ModelRetry, RunContext, ToolDefinition, ToolDenied, ToolFailed
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.messages import InstructionPart, ToolCallPart, ToolReturn, UserContent
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, core_schema, to_jsonable_python

MAX_RETRIES = 2  # for a call of `run_code` whose arguments are no JSON; a program that fails is a result
ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))  # ptc checks them


@dataclass
class RunCodeToolset(WrapperToolset[AgentDepsT]):
    """Offers the tools of `wrapped` as `run_code`, and tells the model of them in its instructions.

    Tools that a program cannot wait for stay as they are beside it: those that need approval or are executed elsewhere
    (pydantic-ai ends the run for them), and those that the model has still to search for.

    Args:
        wrapped: the tools.
        host: has the policies and the log. Each conversation is a session, under its `conversation_id`.
        executor: runs the programs. One executor serves every run.
        name: what the agent is called in the log.
    """

    host: ptc.Host
    executor: ptc.PtcExecutor
    name: str = "assistant"
    _run: _Run[AgentDepsT] | None = field(default=None, repr=False)

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        agent = self.host.agent(self.name, executor=self.executor, session=ctx.conversation_id)
        return replace(self, wrapped=await self.wrapped.for_run(ctx), _run=_Run(agent))

    async def __aexit__(self, *args: object) -> bool | None:
        try:
            if self._run is not None:
                await self._run.aclose()
        finally:
            ended = await super().__aexit__(*args)
        return ended

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        tools = await super().get_tools(ctx)
        if self._run is None:  # somebody only lists the tools
            return tools
        self._run.offer({name: tool for name, tool in tools.items() if in_programs(tool.tool_def)})
        beside = {name: tool for name, tool in tools.items() if not in_programs(tool.tool_def)}
        for schema in self._run.description.schemas:
            definition = ToolDefinition(
                name=schema.name,
                description=schema.description,
                parameters_json_schema=schema.parameters,
                sequential=True,  # one program after another
            )
            beside[schema.name] = ToolsetTool(
                toolset=self, tool_def=definition, max_retries=MAX_RETRIES, args_validator=ARGUMENTS
            )
        return beside

    async def get_instructions(
        self, ctx: RunContext[AgentDepsT]
    ) -> str | InstructionPart | Sequence[str | InstructionPart] | None:
        wrapped = await super().get_instructions(ctx)
        if self._run is None:
            return wrapped
        own = self._run.description.prompt
        if wrapped is None:
            return own
        return [own, wrapped] if isinstance(wrapped, str | InstructionPart) else [own, *wrapped]

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        if self._run is None or tool.toolset is not self:
            return await super().call_tool(name, tool_args, ctx, tool)
        return await self._run.execute(name, tool_args, ctx, self.wrapped)


def in_programs(tool: ToolDefinition) -> bool:
    """Tells whether a program can call a tool and go on with its answer."""
    return tool.kind == "function" and not tool.defer_loading


@dataclass
class _Run(Generic[AgentDepsT]):
    """One run of the pydantic-ai agent: a scope of the host, and the tools that it has in this step."""

    agent: ptc.Agent
    description: ptc.AgentDescription = field(default=ptc.AgentDescription("", []))
    _tools: Mapping[str, ToolsetTool[AgentDepsT]] = field(default_factory=dict)
    _offered: dict[str, tuple[ToolDefinition, ptc.Disposer]] = field(default_factory=dict)
    _manager: ToolManager[AgentDepsT] | None = None

    def offer(self, tools: Mapping[str, ToolsetTool[AgentDepsT]]) -> None:
        """Has programs find exactly these tools; registers only what is new or has changed since the last step."""
        self._tools = tools
        for name, (definition, dispose) in list(self._offered.items()):
            if name not in tools or tools[name].tool_def != definition:
                dispose()
                del self._offered[name]
        for name, tool in tools.items():
            if name not in self._offered:
                self._offered[name] = (tool.tool_def, self.agent.tools.register(self._as_ptc(tool.tool_def)))
        self.description = self.agent.describe()

    async def execute(
        self, name: str, arguments: dict[str, Any], ctx: RunContext[AgentDepsT], toolset: AbstractToolset[AgentDepsT]
    ) -> str:
        """Runs one program, and returns what the model is told of it.

        Raises:
            ToolFailed: the program failed; says how, so that the model can write a better one.
        """
        self._manager = ToolManager(
            toolset=toolset, root_capability=ctx.root_capability, ctx=ctx, tools=dict(self._tools)
        )
        call = ptc.ToolCall(name=name, arguments=arguments, call_id=ctx.tool_call_id or "")
        batch = await self.agent.execute([call])
        for message in batch.additional_contexts:  # for example the images of tools
            ctx.enqueue(*[as_user_content(block) for block in message.content])
        result = batch.results[0].result
        if result.is_error:
            raise ToolFailed(result.text)
        return result.text

    async def aclose(self) -> None:
        await self.agent.aclose()
        self.offer({})

    def _as_ptc(self, tool: ToolDefinition) -> ptc.ToolDefinition:
        async def execute(arguments: dict[str, Any], run: ptc.ToolRunContext) -> Any:
            return await self._call(tool.name, arguments, run)

        return ptc.define_raw_tool(
            name=tool.name,
            description=tool.description or "",
            parameters=tool.parameters_json_schema,
            output=tool.return_schema or None,
            execute=execute,
            render=render,
            concurrency_safe=not tool.sequential,
        )

    async def _call(self, name: str, arguments: dict[str, Any], run: ptc.ToolRunContext) -> Any:
        """Makes one call of a program. What it raises is the `ToolCallError` of the program."""
        if self._manager is None:
            raise RuntimeError(f"{name} was called outside of a run")
        call = ToolCallPart(name, dict(arguments), tool_call_id=run.exec.call_id)
        try:
            async with run.signal.cancel_scope():  # a tool of pydantic-ai is cancelled when its run is
                value = await self._manager.handle_call(call, wrap_validation_errors=False)
        except (ApprovalRequired, CallDeferred):
            raise ModelRetry(f"{name} cannot be called from a program: it waits for somebody outside") from None
        if isinstance(value, ToolDenied):
            raise ModelRetry(value.message)
        if isinstance(value, ToolReturn):
            if value.content is not None:
                shown = render(arguments, to_jsonable_python(value.content))
                run.defer_context(ptc.ContextMessage(shown, source={"kind": "tool", "tool": name}))
            value = value.return_value
        return to_jsonable_python(value)


def render(_arguments: Any, value: Any) -> list[ptc.ContentBlock]:
    """Shows the model the JSON of a tool's value: the images in it as images, which it is sent after the program."""
    items = value if isinstance(value, list | tuple) else [value]
    if not any(is_image(item) for item in items):
        return [ptc.text_block(as_text(value))]
    return [image_block(item) if is_image(item) else ptc.text_block(as_text(item)) for item in items]


def is_image(value: Any) -> TypeGuard[dict[str, Any]]:
    return (
        isinstance(value, dict) and value.get("kind") == "binary" and str(value.get("media_type")).startswith("image/")
    )


def image_block(image: dict[str, Any]) -> ptc.ContentBlock:
    data = base64.b64encode(base64.urlsafe_b64decode(image["data"])).decode()
    return {"type": "image", "data": data, "mimeType": image["media_type"]}


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def as_user_content(block: ptc.ContentBlock) -> UserContent:
    if block["type"] == "text":
        return block["text"]
    return BinaryContent(base64.b64decode(block["data"]), media_type=block["mimeType"])
