"""Takes tools out of a list that the protocol does not allow, so that one of them does not hide the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from .limits import MAX_PROBLEMS

if TYPE_CHECKING:
    from mcp import ClientSession

__all__ = ["SiftingDispatcher", "note"]


class SiftingDispatcher(JSONRPCDispatcher):
    """A dispatcher that takes tools out of a list which the protocol does not allow, instead of refusing the list.

    Attributes:
        session: whose revision counts.
        rejected: where the names of such tools go, and what is wrong with them.
        listed: the names of the others on the last page.
    """

    session: ClientSession
    rejected: dict[str, str]
    listed: list[str]

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, *more: Any, **named: Any) -> Any:
        raw = await super().send_raw_request(method, params, *more, **named)
        if method == "tools/list" and isinstance(listed := raw.get("tools"), list):
            kept = [tool for place, tool in enumerate(listed) if self._is_allowed(raw, tool, place)]
            raw["tools"] = kept
            self.listed = [tool["name"] for tool in kept]
        return raw

    def _is_allowed(self, raw: Mapping[str, Any], tool: Any, place: int) -> bool:
        version = self.session.protocol_version or HANDSHAKE_PROTOCOL_VERSIONS[-1]
        try:
            methods.validate_server_result("tools/list", version, {**raw, "tools": [tool]})
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            if first["loc"][:1] != ("tools",):
                return True  # the page itself is wrong, which whoever asked for it is told
            name = tool.get("name") if isinstance(tool, dict) else None
            where = ".".join(str(step) for step in first["loc"][2:])
            shown = name if isinstance(name, str) else f"number {place + 1} of a page"
            note(self.rejected, shown, f"{where or 'it'}: {first['msg']}")
            return False
        return True


def note(problems: dict[str, str], name: str, problem: str) -> None:
    if len(problems) < MAX_PROBLEMS:
        problems.setdefault(name, problem)
