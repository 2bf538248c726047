"""What a host sees of its MCP servers, and what it may be asked and told by them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ...registry import JsonObject, JsonValue, ToolExecution

__all__ = [
    "ElicitAnswer",
    "ElicitHandler",
    "ElicitRequest",
    "McpProgress",
    "ProgressListener",
    "ServerState",
    "ServerStatus",
]

ServerStatus: TypeAlias = Literal["connected", "reconnecting", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """One server as it stands now; a snapshot.

    Attributes:
        name: what it is called here.
        state: `connected`; `reconnecting` while another attempt is under way or due; `failed` when no attempt is due
            any more. A call of one of its tools makes a new attempt then.
        tools: the names of its tools as they are registered, with the prefix, in its own order.
        problem: why it is not connected, or what is wrong with its list as a whole; for the host's people, it may
            hold paths and what the server wrote to its standard error.
        problems: why single tools were left out, or how they were mended, by the server's own names of them.
        instructions: what it tells models of itself; foreign text, and `None` when there is none.
        version: the revision of the protocol that is spoken; `None` before the first connection.
    """

    name: str
    state: ServerStatus
    tools: tuple[str, ...] = ()
    problem: str | None = None
    problems: Mapping[str, str] = field(default_factory=dict)
    instructions: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ElicitRequest:
    """A server asks the user something, while it works on a call.

    Attributes:
        server: the server's name.
        message: what it asks; foreign text.
        schema: for a form, the JSON Schema of the answer, a flat object of plain values; `None` for an address.
        url: for something to be done in a browser, the address; `None` for a form.
        calls: the calls that it may be about. One where the protocol tells, else all that the server works on.
    """

    server: str
    message: str
    schema: JsonObject | None = None
    url: str | None = None
    calls: tuple[ToolExecution, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitAnswer:
    """What the user answered.

    Attributes:
        action: `accept`, `decline`, or `cancel` when no choice was made.
        content: the filled form, when a form was accepted.
    """

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, JsonValue] | None = None


ElicitHandler: TypeAlias = Callable[[ElicitRequest], Awaitable[ElicitAnswer]]
"""Puts a server's question to the user. It is cancelled when the server takes the question back, or is gone."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class McpProgress:
    """How far a server is with a call.

    Attributes:
        server: the server's name.
        exec: the call.
        progress: a number that grows.
        total: what it grows to, if that is known.
        message: what is being done; foreign text.
    """

    server: str
    exec: ToolExecution
    progress: float
    total: float | None = None
    message: str | None = None


ProgressListener: TypeAlias = Callable[[McpProgress], None]
"""Is told of progress; a plain function that does not block."""
