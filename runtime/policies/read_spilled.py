"""`read_spilled`: the tool with which a model, or its program, reads on in a text that was too long for a result.

What it returns must not be too long itself, or it would be spilled again: a part is never longer than what fits under
the policy's cap together with the line that says what is left, and the policy passes the tool by.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from ...registry import HarnessError, ToolAnnotations, ToolArgsError, define_tool, text_block
from ..spill_store import MIN_LIMIT, UnknownLocatorError, session_id_of

if TYPE_CHECKING:
    from ...registry import ContentBlock, ToolDefinition, ToolRunContext
    from ..spill_store import SpillStore

__all__ = ["READ_SPILLED", "read_spilled_tool"]

READ_SPILLED: Final = "read_spilled"
"""The tool's name."""

_LOGGER: Final = logging.getLogger("ptc.runtime")
_UNREADABLE: Final = "the text cannot be read just now; the host's log says why"
_STATUS: Final = "\n\n(bytes {start} to {end} of {total}; {left} left{on})"
_READ_ON: Final = "; go on with offset={end}"
_STATUS_ROOM: Final = len((_STATUS + _READ_ON).format(start="", end="", total="", left="", on="")) + 5 * 20
"""More than the line takes with any numbers of a file."""


def read_spilled_tool(store: SpillStore, max_bytes: int) -> ToolDefinition:
    """Makes the tool.

    Args:
        store: where the texts are.
        max_bytes: how many UTF-8 bytes a result may have, the line that says what is left included.
    """
    most = max(max_bytes - _STATUS_ROOM, MIN_LIMIT)

    async def execute(arguments: Any, run: ToolRunContext) -> Any:
        offset, limit = arguments.get("offset", 0), arguments.get("limit", most)
        if offset < 0:
            raise ToolArgsError([f'"offset" must not be negative, not {offset}'])
        if limit < MIN_LIMIT:
            raise ToolArgsError([f'"limit" must be at least {MIN_LIMIT}, not {limit}'])
        session_id = session_id_of(run.agent)
        if session_id is None:
            raise UnknownLocatorError  # who has no session has spilled nothing
        try:
            part = await store.read_text(
                session_id, arguments["locator"], offset=int(offset), limit=int(min(limit, most))
            )
        except HarnessError:
            raise
        except Exception:
            _LOGGER.exception("a spilled text of session %s cannot be read", session_id)
            raise HarnessError(_UNREADABLE, code="SPILL_UNREADABLE") from None  # the cause names paths of the host
        value: dict[str, Any] = {
            "text": part.text,
            "offset": part.offset,
            "total_bytes": part.total_bytes,
            "left_bytes": part.total_bytes - part.next_offset,
        }
        if part.next_offset < part.total_bytes:
            value["next_offset"] = part.next_offset
        return value

    integer = {"type": "integer", "required": True}
    return define_tool(
        name=READ_SPILLED,
        description=(
            "Reads a part of a text that was too long for a tool's result. The notice in the shortened result has the "
            "locator. Offsets and lengths are bytes of UTF-8, and parts are cut between characters."
        ),
        parameters={
            "locator": {"type": "string", "required": True, "description": "The locator, exactly as the notice has it"},
            "offset": {"type": "integer", "description": "The first byte to read, from 0; 0 when left out"},
            "limit": {
                "type": "integer",
                "description": f"The most bytes to read; {most} when left out, and never more than that",
            },
        },
        output={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "text": {"type": "string", "required": True},
                "offset": {**integer, "description": "Where the text begins, in bytes"},
                "total_bytes": {**integer, "description": "The length of the whole"},
                "left_bytes": {**integer, "description": "How much is left behind this part"},
                "next_offset": {"type": "integer", "description": "Where to go on; absent when nothing is left"},
            },
        },
        execute=execute,
        render=_render,
        is_concurrency_safe=lambda _arguments: True,
        annotations=ToolAnnotations(read_only=True, open_world=False),
    )


def _render(_arguments: Any, value: Any) -> list[ContentBlock]:
    end = value["total_bytes"] - value["left_bytes"]
    on = _READ_ON.format(end=end) if value["left_bytes"] else ""
    status = _STATUS.format(start=value["offset"], end=end, total=value["total_bytes"], left=value["left_bytes"], on=on)
    return [text_block(value["text"] + status)]
