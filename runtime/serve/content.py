"""What a model would see of a call, as content of MCP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mcp_types import CallToolResult, ImageContent, TextContent

if TYPE_CHECKING:
    from mcp_types import ContentBlock as McpBlock

    from ...registry import ContentBlock, ToolBatchResult

__all__ = ["failed", "result_of"]


def result_of(batch: ToolBatchResult) -> CallToolResult:
    """Returns the result of a batch of one call: its content, and then what the batch says to the model beside it.

    Images that the tools of a program gave are in those messages (contract E42).
    """
    result = batch.results[0].result
    blocks = [*_blocks(result.content)]
    for message in batch.additional_contexts:
        blocks.extend(_blocks(message.content))
    return CallToolResult(content=blocks, is_error=result.is_error)


def failed(message: str) -> CallToolResult:
    """Returns the result of a call that could not be made."""
    return CallToolResult(content=[TextContent(text=message)], is_error=True)


def _blocks(content: Iterable[ContentBlock]) -> Iterable[McpBlock]:
    for block in content:
        if block["type"] == "text":
            yield TextContent(text=block["text"])
        else:
            yield ImageContent(data=block["data"], mime_type=block["mimeType"])
