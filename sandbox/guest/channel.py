"""The three verbs through which a program's world reaches its host.

Whoever runs the guest brings a channel: inside the component it is the imported interface, inside a worker process a
pair of pipes. Everything that crosses is text, and the host treats it as hostile.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Channel"]


class Channel(Protocol):
    """The way to the host."""

    def submit(self, calls: str) -> None:
        """Starts calls without waiting: a JSON array of `[id, namespace, member, arguments, line]`."""
        ...

    def wait(self, timeout_us: int) -> str:
        """Gives control to the host until something has settled or the time is over.

        Args:
            timeout_us: microseconds; negative waits without end.

        Returns:
            a JSON array of `[id, true, value]` and `[id, false, message]`; empty when only time passed.
        """
        ...

    def emit(self, text: str) -> None:
        """Hands over what the program wrote to stdout or stderr, in order."""
        ...
