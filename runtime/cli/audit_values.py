"""Values that programs and tools have made, as text for a screen: on one line, and cut where they are long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from ...registry.lossless import from_json_text, to_json_text
from .terminal import cut, print_line, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

__all__ = ["content_text", "cut_to", "flat", "print_field"]

_VALUE_BYTES: Final = 500


def content_text(content: Sequence[Mapping[str, Any]]) -> str:
    """Returns the text of content blocks, with a stand-in for what is no text."""
    parts: list[str] = []
    for block in content:
        text, data = block.get("text"), block.get("data")
        if block.get("type") == "text" and isinstance(text, str):
            parts.append(text)
        elif isinstance(data, str):
            parts.append(f"[{block.get('type')} {block.get('mimeType', '')}, {len(data):,} characters of base64]")
        else:
            parts.append(to_json_text(dict(block)))
    return "\n".join(parts)


def print_field(console: Console, margin: str, label: str, value: str, limit: int | None) -> None:
    """Prints a value with its label on one line; `limit` is in bytes, and `None` cuts nothing."""
    kept, note = cut(value, limit)
    line = Text.assemble((margin, "dim"), (f"{label:<9}  ", "dim"), visible(kept), (f" {note}" if note else "", "dim"))
    print_line(console, line)


def flat(text: str) -> str:
    """Returns JSON that was laid out over several lines on one, and any other text as it is."""
    if "\n" not in text or len(text) > 4 * _VALUE_BYTES or text[0] not in "[{":
        return text
    try:
        return to_json_text(from_json_text(text))
    except ValueError:
        return text


def cut_to(value: str, columns: int) -> Text:
    """Cuts a value to so many columns, with a note of how many bytes are missing."""
    kept, _note = cut(value, _VALUE_BYTES)
    shown = visible(kept)
    if kept == value and shown.cell_len <= columns:
        return shown
    size = len(value.encode("utf-8", "surrogatepass"))
    room = max(8, columns - len(f"… {size:,} more bytes"))
    while kept and visible(kept).cell_len > room:
        over = visible(kept).cell_len - room
        kept = kept[: -max(1, over // 10)]
    missing = size - len(kept.encode("utf-8", "surrogatepass"))
    return Text.assemble(visible(kept), (f"… {missing:,} more bytes", "dim"))
