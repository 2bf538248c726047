"""What OpenAI takes, over each of its APIs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .shapes import check_names

if TYPE_CHECKING:
    from ..agent import AgentDescription

__all__ = ["IMAGES", "check_tool_names"]

IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""The media types of the images that it takes."""

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_RULE: Final = "1 to 64 of a-z, A-Z, 0-9, _ and -"


def check_tool_names(description: AgentDescription) -> None:
    """Checks that it takes the names of the tools.

    Raises:
        ValueError: it does not take one of them.
    """
    check_names(description, _NAME, "OpenAI", _RULE)
