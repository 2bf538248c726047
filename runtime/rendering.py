"""What the model sees of a completed program: its output, then what it returned (contract E38 to E41)."""

from __future__ import annotations

from collections.abc import Sequence

from ..registry import JsonValue, to_json_text
from ..sandbox.loglines import LogLines, joined_lines

__all__ = ["NO_OUTPUT", "log_entries", "render_outcome", "render_value"]

NO_OUTPUT = "(run_code completed with no output)"
_INDENT = 2
_MAX_COLUMNS = 10


def render_outcome(logs: Sequence[str], result: str | None) -> str:
    """Joins what the program printed and what it returned; empty parts add nothing (contract E38)."""
    parts = [part for part in (joined_lines(logs), result) if part]
    return "\n".join(parts) if parts else NO_OUTPUT


def log_entries(logs: Sequence[str]) -> list[JsonValue]:
    """Returns the logs as the value of `run_code` has them: one entry for each line (ruling 36).

    Where the sandbox gives too many lines for a tuple, one entry holds many of them: joined by a line feed, the
    entries are the same text, and they take no more than its room.
    """
    return list(logs.blocks()) if isinstance(logs, LogLines) else list(logs)


def render_value(value: JsonValue) -> str:
    """Returns the text of a result: a string as it is, everything else as JSON (contract E39, E40).

    Containers are laid out over several lines while their members are indented by at most 10 columns; deeper ones
    are compact, so that the text grows with the value and not with its depth.
    """
    if isinstance(value, str):
        return value
    parts: list[str] = []
    # What is still to be written, last first: a text, or a value with its depth.
    pending: list[str | tuple[JsonValue, int]] = [(value, 0)]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            parts.append(item)
        else:
            _open(*item, parts, pending)
    return "".join(parts)


def _open(value: JsonValue, depth: int, parts: list[str], pending: list[str | tuple[JsonValue, int]]) -> None:
    if not isinstance(value, (dict, list)) or not value or (depth + 1) * _INDENT > _MAX_COLUMNS:
        parts.append(to_json_text(value))
        return
    inner = "\n" + " " * ((depth + 1) * _INDENT)
    rest: list[str | tuple[JsonValue, int]] = []
    if isinstance(value, dict):
        for index, (key, member) in enumerate(value.items()):
            rest.append(("," if index else "{") + inner + to_json_text(key) + ": ")
            rest.append((member, depth + 1))
    else:
        for index, member in enumerate(value):
            rest.append(("," if index else "[") + inner)
            rest.append((member, depth + 1))
    rest.append("\n" + " " * (depth * _INDENT) + ("}" if isinstance(value, dict) else "]"))
    pending.extend(reversed(rest))
