"""What providers of models send and take, as plain JSON: an agent's tools, the model's calls, their results.

Each adapter is a module with the same functions, and needs no SDK:

    system(description)         the agent's text, for the request
    tools(description)          its tools, for the request
    reply(response)             what the model said, for the conversation: untouched
    calls(response)             the calls, for `Agent.execute`
    results(response, batch)    their results, for the conversation

`anthropic` and `openai_responses` have `hosted_tools` and `hosted_step` beside these, for programs that the provider
runs itself; `HostedExecutor` takes the calls of those through the agent's policies and log.
"""

from __future__ import annotations

from . import anthropic, gemini, openai_chat, openai_responses
from .hosted import HostedExecutor
from .hosted_programs import HostedPrograms
from .hosted_step import HostedEnd, HostedProgram, HostedStep
from .shapes import HostedCall, ProviderResponseError

__all__ = [
    "HostedCall",
    "HostedEnd",
    "HostedExecutor",
    "HostedProgram",
    "HostedPrograms",
    "HostedStep",
    "ProviderResponseError",
    "anthropic",
    "gemini",
    "openai_chat",
    "openai_responses",
]
