"""A question as a terminal shows it: what is foreign in it is escaped, and has a margin that no line of ours has."""

from __future__ import annotations

import json
import locale
from itertools import islice
from typing import TYPE_CHECKING, Final

from ...registry import Missing, thaw
from ..cli.terminal import folded, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...registry import ApprovalRequest

__all__ = ["MOST_ROWS", "question_text"]

MOST_ROWS: Final = 40
"""How many rows of foreign text a question shows, unless all of it is asked for."""

_PIECE: Final = 4096
"""How many characters are escaped and folded at once, so that rows which nobody sees cost nothing."""


def question_text(request: ApprovalRequest, width: int, margin: str, *, whole: bool) -> tuple[str, bool]:
    """Returns the text of a question, which ends with a line feed, and whether something was left out of it.

    Args:
        request: the question.
        width: how wide the terminal is, in columns.
        margin: what rows of foreign text begin with.
        whole: whether nothing is left out.
    """
    text = _told(request)
    rows = _rows(text, max(1, width - len(margin)))
    shown = list(rows if whole else islice(rows, MOST_ROWS))
    lines = ["", "ptc: a call needs your approval", *(f"{margin}{row}" for row in shown)]
    cut = next(rows, None) is not None
    if cut:
        lines.append(f"ptc: that is not all: {len(shown)} rows of {len(text):,} characters are shown")
    return "".join(f"{line}\n" for line in lines), cut


def _told(request: ApprovalRequest) -> str:
    """Returns what there is to know of a call; all of it is worded by others than us."""
    lines = [f"tool: {request.tool_name}", f"agent: {request.agent.name}"]
    if request.call_id is not None:
        lines.append(f"call: {request.call_id}")
    reason = _reason(request)
    if reason is not None:
        lines.append(f"reason: {reason}")
    if not isinstance(request.arguments, Missing):
        lines.append(f"arguments: {json.dumps(thaw(request.arguments), indent=2, ensure_ascii=False)}")
    return "\n".join(lines)


def _reason(request: ApprovalRequest) -> str | None:
    """Returns the text for the prompt, in the user's language if it is there; else the audited text."""
    prompts = request.display_reason
    if prompts is None:
        return request.reason
    tag = (locale.getlocale(locale.LC_CTYPE)[0] or "en").replace("_", "-")
    return next((prompts[known] for known in (tag, tag.partition("-")[0], "en") if known in prompts), request.reason)


def _rows(text: str, width: int) -> Iterator[str]:
    for line in text.split("\n"):
        for at in range(0, max(1, len(line)), _PIECE):
            for row in folded(visible(line[at : at + _PIECE]), width, width):
                yield row.plain
