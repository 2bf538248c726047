"""What sort of content the record of a call has: its blocks, and whether something was left out of it.

    text, image, ...    the result has a block of this type
    empty               the result has no block
    spilled             a text of the result is only a preview, with a notice of where the whole is
    redacted            something was taken out of the arguments, the result or the reason of the error
    redaction-failed    something could not be redacted and was left out whole

The last three go by the words that the shipped policies leave. A tool can write such words too, and whoever looks at
the calls that are found sees that; but nothing that was redacted or spilled is missed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ...registry.lossless import to_json_text

if TYPE_CHECKING:
    from ...registry.values import JsonValue
    from .calls import Call

__all__ = ["ContentMarks", "has_content", "marks_of"]

_SPILLED: Final = re.compile(r"\(\d+ bytes omitted; the whole text is kept under the locator [^\n]*\)\Z")
_REDACTED: Final = "[redacted"
_FAILED: Final = "[redaction failed]"


class ContentMarks:
    """Where to look for a kind of content.

    Attributes:
        text: what the record of every call that has it holds, as part of its JSON text.
        starts: whether that may stand in the event that starts the call.
    """

    __slots__ = ("starts", "text")

    def __init__(self, text: str, *, starts: bool = False) -> None:
        self.text = text
        self.starts = starts


def marks_of(kind: str) -> ContentMarks:
    """Returns where to look for a kind of content."""
    match kind:
        case "empty":
            return ContentMarks('"content":[]')
        case "spilled":
            return ContentMarks("the whole text is kept under the locator ")
        case "redacted":
            return ContentMarks(_REDACTED, starts=True)
        case "redaction-failed":
            return ContentMarks(_FAILED, starts=True)
        case _:
            return ContentMarks(f'"type":{to_json_text(kind)}')


def has_content(call: Call, kind: str) -> bool:
    """Returns whether the record of a call has a kind of content."""
    content = call.content
    match kind:
        case "empty":
            return content is not None and len(content) == 0
        case "spilled":
            return any(_SPILLED.search(text) for text in _texts(call))
        case "redacted":
            return _REDACTED in _words(call)
        case "redaction-failed":
            return _FAILED in _words(call)
        case _:
            return content is not None and any(block.get("type") == kind for block in content)


def _texts(call: Call) -> list[str]:
    texts: list[Any] = [block.get("text") for block in call.content or () if block.get("type") == "text"]
    return [text for text in texts if isinstance(text, str)]


def _words(call: Call) -> str:
    """Returns what its two events have of a call and may have been redacted, as one text."""
    content: list[JsonValue] = [dict(block) for block in call.content or ()]
    reason = call.error.reason if call.error else None
    return to_json_text([call.name, call.arguments, content, call.meta, reason])
