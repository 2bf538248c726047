"""Stands in for a provider: answers each request with what a file has for it, if it is the request of the file.

The file has what changes from request to request. The model's instructions and tools are the same in all of them, and
are left out: a test checks those against the types of the provider's SDK.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).with_name("recordings")
CONSTANT = ("system", "instructions", "systemInstruction", "tools")


class Recording:
    """A recorded conversation with a provider.

    Args:
        name: the file's name, without `.json`.

    Attributes:
        sent: the requests that it was given, whole.
    """

    def __init__(self, name: str) -> None:
        self.path = RECORDINGS / f"{name}.json"
        self.recorded: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        self.sent: list[dict[str, Any]] = []

    async def send(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the response to a request.

        Raises:
            LookupError: it is not the request that comes next.
        """
        whole: dict[str, Any] = json.loads(json.dumps(request))  # as it would go over the wire
        place = len(self.sent)
        self.sent.append(whole)
        exchanges = self.recorded["exchanges"]
        if place >= len(exchanges):
            raise LookupError(f"{self.path} has {len(exchanges)} exchanges, and this is one more")
        exchange = exchanges[place]
        if self.varying(whole) != exchange["request"]:
            raise LookupError(
                f"request {place + 1} is not the one that {self.path} has; if the examples are meant to send another "
                "one now, `python examples/providers/rewrite.py` writes it"
            )
        return exchange["response"]

    @staticmethod
    def varying(request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what of a request is recorded."""
        kept = {key: value for key, value in request.items() if key not in CONSTANT}
        if kept.get("messages") and kept["messages"][0]["role"] == "system":
            kept["messages"] = kept["messages"][1:]
        return kept
