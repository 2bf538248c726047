"""The tools of a large catalogue in few tokens: a line for each, set apart by the prefix of their names.

Everything here goes by one tool's own name and description, and the order is that of the names. So a change in one
tool changes its own line, and one more tool adds a line, or moves the count of its own group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from .names import is_method_name
from .text import comment_text, quoted

__all__ = ["MAX_GROUPS", "MAX_LINE_CHARS", "IndexForm", "group_of", "index_lines", "one_line", "written_name"]

IndexForm: TypeAlias = Literal["index", "names", "groups"]
"""What an index says: a name and a line for each tool, the names alone, or how many tools each group has."""

MAX_LINE_CHARS: Final = 100
"""What a description may take of an index line, in characters."""

MAX_GROUPS: Final = 50
"""How many groups are listed, the largest ones; of the others only their number is."""

_READ_CHARS: Final = 1_000
_GROUP_CHARS: Final = 80
_SPACES: Final = re.compile("__|[./:]")
_WORDS: Final = re.compile("[_\\- ]")
_PARAGRAPH: Final = re.compile(r"\n[ \t\r]*\n")
_SENTENCE: Final = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?](?=\s)|[\u3002\uff01\uff1f]")


def group_of(name: str) -> str:
    """Returns the prefix that a name shares with its kin: `github_create_issue` belongs to `github`.

    What names a space counts first: `mcp__github__create_issue` belongs to `mcp__github`, `files.read` to `files`. A
    name of one word is a group of its own.
    """
    bare = name.strip("_-./: ")
    spaces = [found.start() for found in _SPACES.finditer(bare)]
    if spaces:
        return bare[: spaces[-1]]
    return _WORDS.split(bare, maxsplit=1)[0] or name


def one_line(description: str) -> str:
    """Returns the first sentence of a description on one visible line, cut to `MAX_LINE_CHARS`."""
    paragraph = _PARAGRAPH.split(description[:_READ_CHARS].strip(), maxsplit=1)[0]
    line = comment_text(paragraph)
    ends = _SENTENCE.search(line)
    line = line[: ends.start()] if ends is not None else line.removesuffix(".")
    if len(line) <= MAX_LINE_CHARS:
        return line
    head, space, _ = line[: MAX_LINE_CHARS - 3].rpartition(" ")
    return f"{head if space else line[: MAX_LINE_CHARS - 3]}..."


def written_name(name: str) -> str:
    """Returns a tool's name as a program writes it behind `tools`: bare, or as a string for `tools[...]`."""
    return name if is_method_name(name) else quoted(name)


def index_lines(descriptions: Mapping[str, str], form: IndexForm) -> list[str]:
    """Returns the lines of an index, without `#`; empty ones set groups apart.

    Args:
        descriptions: what each tool says of itself, by name.
        form: how much is said.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(descriptions):
        groups.setdefault(group_of(name), []).append(name)
    if form == "groups":
        return _group_lines(groups)
    lines: list[str] = []
    before = 1
    for _, members in sorted(groups.items()):
        if lines and (len(members) > 1 or before > 1):
            lines.append("")
        before = len(members)
        lines += (index_line(name, descriptions[name] if form == "index" else "") for name in members)
    return lines


def index_line(name: str, description: str) -> str:
    """Returns the line of one tool: its name, and what it does."""
    line = one_line(description)
    return f"{written_name(name)}: {line}" if line else written_name(name)


def _group_lines(groups: Mapping[str, list[str]]) -> list[str]:
    shown = sorted(sorted(groups, key=lambda group: (-len(groups[group]), group))[:MAX_GROUPS])
    lines = [_group_line(group, groups[group]) for group in shown]
    left = [len(members) for group, members in groups.items() if group not in set(shown)]
    return [*lines, f"and {_tools(sum(left))} more"] if left else lines


def _group_line(group: str, members: Iterable[str]) -> str:
    members = list(members)
    if len(members) == 1:
        return written_name(members[0])
    return f"{comment_text(group)[:_GROUP_CHARS]}: {_tools(len(members))}"


def _tools(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"
