"""What one server may put on its host: beyond these it is cut off, or what is too much is left out."""

from __future__ import annotations

from typing import Final

__all__ = [
    "MAX_JUNK_BYTES",
    "MAX_LIST_BYTES",
    "MAX_MESSAGE_BYTES",
    "MAX_NAME_CHARS",
    "MAX_PAGES",
    "MAX_PROBLEMS",
    "MAX_ROUNDS",
    "MAX_TOOLS",
    "MAX_UNANSWERED",
    "STDERR_TAIL_BYTES",
]

MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
"""The longest message of a server, in bytes."""

MAX_JUNK_BYTES: Final = 1024 * 1024
"""How much a server may print to its standard output without one message in it, in bytes."""

MAX_UNANSWERED: Final = 256
"""How many requests of a server may wait for our answer."""

MAX_TOOLS: Final = 5_000
"""How many tools of one server are registered."""

MAX_PAGES: Final = 1_000
"""How many pages the list of one server's tools may have."""

MAX_LIST_BYTES: Final = 64 * 1024 * 1024
"""How long the definitions of one server's tools may be together, as JSON, in bytes."""

MAX_NAME_CHARS: Final = 128
"""The longest name of a tool, prefix included, in characters."""

MAX_PROBLEMS: Final = 100
"""How many tools that were left out are told of one by one."""

MAX_ROUNDS: Final = 10
"""How often a server may ask for something else before it gives the result of one call."""

STDERR_TAIL_BYTES: Final = 4 * 1024
"""How much of what a server writes to its standard error is kept for the description of a problem, in bytes."""
