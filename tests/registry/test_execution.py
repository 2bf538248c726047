"""What results say of themselves."""

from __future__ import annotations

from ptc.registry.execution import ToolError, ToolFailure, ToolSuccess
from ptc.registry.values import ContentBlock, text_block


def test_the_text_of_a_result_is_that_of_its_text_blocks() -> None:
    image: ContentBlock = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    content = [text_block("a\n"), image, text_block("b")]
    assert ToolSuccess(value=1, content=content).text == "a\n\nb"
    assert ToolFailure(error=ToolError("m"), content=content).text == "a\n\nb"
    assert ToolSuccess(value=1, content=[image]).text == ""
