"""What a client is told: of the server as a whole, and of the tools that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import mcp_types
from mcp_types import Tool

from ...registry import thaw
from ..run_code import RUN_CODE

if TYPE_CHECKING:
    from ...registry import ToolDefinition
    from ..agent import Agent
    from ..config import Config

__all__ = ["instructions_of", "tools_of"]

_WHERE: Final = "The tools that programs may call are declared in the description of run_code."


def tools_of(agent: Agent) -> list[Tool]:
    """Returns what an agent's client is offered: `run_code` with the text of all the others, or they themselves.

    Raises:
        ToolExecutorUnavailableError: the agent's executor has been unloaded.
    """
    prompt, schemas = agent.describe()
    return [
        Tool(
            name=schema.name,
            description=f"{schema.description}\n\n{prompt}" if schema.name == RUN_CODE else schema.description,
            input_schema=thaw(schema.parameters),  # type: ignore[arg-type]
            annotations=_annotations(agent.tools.get(schema.name)),
        )
        for schema in schemas
    ]


def _annotations(definition: ToolDefinition | None) -> mcp_types.ToolAnnotations | None:
    """Returns what a tool says of its effects; `run_code` says nothing, because a program may do anything."""
    claims = None if definition is None else definition.annotations
    if claims is None:
        return None
    return mcp_types.ToolAnnotations(
        title=claims.title,
        read_only_hint=claims.read_only,
        destructive_hint=claims.destructive,
        idempotent_hint=claims.idempotent,
        open_world_hint=claims.open_world,
    )


def instructions_of(config: Config) -> str:
    """Returns what a model is told of the server as a whole."""
    parts = [config.serve.instructions] if config.serve.instructions else []
    if config.sandbox.backend != "native":
        from ...sdk_gen import render_python

        parts += [render_python([], transport="run_code").instructions, _WHERE]
    return "\n\n".join(parts)
