"""Shows foreign text in a terminal: what a program, a tool or a model wrote must not steer the auditor's screen.

Every character that does not stand for itself on the screen is written as a Python escape: controls (ANSI sequences
start with one), the marks that turn the direction of text, line separators, and what is invisible. Escapes stand out
by their style where the terminal has styles. Rich's own markup is never read.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["can_encode", "console", "cut", "escaped_lines", "folded", "print_line", "visible"]

_ESCAPE_STYLE: Final = "reverse"

_INVISIBLE: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Characters that Unicode counts as printable, and that show nothing."""

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_REST: Final = "    ┆ "
"""What further rows of a line begin with; no line of ours begins so."""

_PIPE_WIDTH: Final = 240
"""The width of a table that goes into a file or a pipe, in columns."""


def console() -> Console:
    """Returns the console for standard output. It reads no markup and colours nothing by itself."""
    wide = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(file=sys.stdout, markup=False, emoji=False, highlight=False, width=wide)


def visible(text: str, style: str = "") -> Text:
    """Returns `text` on one line, with everything escaped that would not show as itself."""
    shown = Text(style=style)
    for piece, is_escape in _pieces(text):
        shown.append(piece, _ESCAPE_STYLE if is_escape else None)
    return shown


def print_line(console: Console, line: Text, margin: str = _REST) -> None:
    """Prints one line as long as it is: what a terminal folds must not be broken in a file.

    A terminal would begin the next row at its left edge, where foreign text could pass for a line of ours. So we fold
    for it, and further rows have a margin.

    Args:
        console: where to.
        line: the line; foreign text in it is `visible`, so that line feeds are our own.
        margin: what further rows begin with.
    """
    if not sys.stdout.isatty() or line.cell_len <= console.width or "\n" in line.plain:
        console.print(line, soft_wrap=True)
        return
    rest = margin if can_encode(margin) else margin.replace("┆", ":")
    for at, row in enumerate(folded(line, console.width, max(1, console.width - len(rest)))):
        console.print(Text.assemble((rest, "dim"), row) if at else row, soft_wrap=True)


def folded(line: Text, first: int, others: int) -> list[Text]:
    """Cuts a line into rows; the first may take so many columns, and the others so many."""
    offsets: list[int] = []
    used = 0
    for at, char in enumerate(line.plain):
        size = cell_len(char)
        if used + size > (others if offsets else first):
            offsets.append(at)
            used = 0
        used += size
    return list(line.divide(offsets))


def can_encode(signs: str) -> bool:
    """Returns whether standard output has these characters."""
    try:
        signs.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def escaped_lines(text: str) -> list[Text]:
    """Splits `text` at line feeds, and at nothing else, and returns each line as `visible` does."""
    return [visible(line) for line in text.split("\n")]


def cut(text: str, limit: int | None) -> tuple[str, str | None]:
    """Cuts `text` to at most `limit` bytes of UTF-8, at the border of a character; `None` cuts nothing.

    Returns:
        what is left, and a note that says how much is missing, or `None` when nothing is.
    """
    if limit is None or len(text) * 4 <= limit:
        return text, None
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= limit:
        return text, None
    kept = raw[:limit].decode("utf-8", "ignore")
    missing = len(raw) - len(kept.encode())
    return kept, f"… {missing:,} of {len(raw):,} bytes are not shown; --full shows them"


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yields the text in pieces, each with whether it is an escape."""
    if text.isprintable() and _INVISIBLE.search(text) is None:
        yield text, False
        return
    plain = ""
    for char in text:
        if char.isprintable() and _INVISIBLE.match(char) is None:
            plain += char
            continue
        if plain:
            yield plain, False
            plain = ""
        yield _escape(char), True
    if plain:
        yield plain, False


def _escape(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
