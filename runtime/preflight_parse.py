"""Prints the syntax tree of the program on standard input as JSON; a script of its own, with the standard library only.

A hostile source can bring down the process that parses it, so the host never does that itself: it runs this file apart
(`python -I -S -B preflight_parse.py`). A node is a list: its kind, its place, and its fields by name. A place is first
line, first column, last line, last column after the end, in characters; lines and columns count from 1.
"""

from __future__ import annotations

import ast
import json
import sys

_MAX_INT_BITS = 1024


def _column(lines: list[bytes], line: int, offset: int) -> int:
    """The parser counts bytes of UTF-8; everyone else counts characters."""
    text = lines[line - 1]
    return (offset if text.isascii() else len(text[:offset].decode("utf-8", "replace"))) + 1


def _place(node: ast.AST, lines: list[bytes]) -> list[int] | None:
    line, end_line = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if line is None or end_line is None:
        return None
    first = _column(lines, line, node.col_offset)  # type: ignore[attr-defined]
    return [line, first, end_line, _column(lines, end_line, node.end_col_offset)]  # type: ignore[attr-defined]


def _plain(value: object) -> object:
    """A constant as JSON; one that JSON does not have is told by its type alone."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int) and value.bit_length() <= _MAX_INT_BITS:
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return {"type": type(value).__name__}


def _encoded(node: ast.AST, lines: list[bytes]) -> list[object]:
    fields: dict[str, object] = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            fields[name] = _encoded(value, lines)
        elif isinstance(value, list):
            fields[name] = [_encoded(item, lines) if isinstance(item, ast.AST) else _plain(item) for item in value]
        else:
            fields[name] = _plain(value)
    return [type(node).__name__, _place(node, lines), fields]


def main() -> None:
    """Reads the program and prints its tree."""
    source = sys.stdin.buffer.read().decode("utf-8")
    tree = ast.parse(source)
    # The parser's own lines: it takes no other character for an end of line.
    lines = source.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8").split(b"\n")
    sys.stdout.write(json.dumps(_encoded(tree, lines), allow_nan=False))


if __name__ == "__main__":
    main()
