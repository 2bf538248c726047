"""A TOML file with the places of its keys: what is wrong with a value can be told with its line.

The standard library reads the values and knows no places; the grammar of tree-sitter knows the places and reads no
values. Both see the same text, and where the grammar does not understand something, its nearest table has the line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .errors import ConfigError, ConfigSupportError, Finding, Severity

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["KeyPath", "Source", "key_text", "read_toml"]

KeyPath: TypeAlias = tuple[str | int, ...]
"""A key of the file: names of tables and keys, and places in lists from 0."""

_DEEPEST: Final = 12
"""How many parts a key may have whose line is known; no key that means something has as many."""
_AT: Final = re.compile(r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_KEYS: Final = frozenset({"bare_key", "quoted_key", "dotted_key"})


@dataclass(frozen=True, slots=True)
class Source:
    """A file and the lines of its keys.

    Attributes:
        file: the file, as it was named; `options` when there is none, and a program has said everything.
        lines: the line of each key and of each element of a list, from 1.
    """

    file: str = "options"
    lines: Mapping[KeyPath, int] = field(default_factory=dict[KeyPath, int], repr=False)

    def line(self, path: KeyPath) -> int | None:
        """Returns the line of a key, or of the nearest table or list around it that has one."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None

    def finding(self, path: KeyPath, problem: str, severity: Severity = "error") -> Finding:
        """Returns what is wrong with a key, with its place."""
        return Finding(severity, self.file, self.line(path), key_text(path), problem)


def key_text(path: KeyPath) -> str:
    """Returns a key as TOML has it, with places in lists as `[0]`; one that cannot stand as it is, is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if _BARE.fullmatch(part) else _quoted(part)
            text += f".{shown}" if text else shown
    return text


def _quoted(part: str) -> str:
    return '"' + part.encode("unicode_escape").decode().replace('"', '\\"') + '"'


def read_toml(data: bytes, file: str) -> tuple[dict[str, Any], Source]:
    """Reads a file of TOML.

    Args:
        data: what it says.
        file: what it is called in messages.

    Returns:
        its values, and the places of its keys.

    Raises:
        ConfigError: it is no TOML.
        ConfigSupportError: the grammar is not installed.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = "this is not UTF-8 text; save the file as UTF-8"
        raise ConfigError([Finding("error", file, line, "", problem)]) from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([_syntax(str(error), text, file)]) from None
    except RecursionError:
        problem = "its lists or tables lie too deep in each other"
        raise ConfigError([Finding("error", file, None, "", problem)]) from None
    return values, Source(file, dict(_lines(text)))


def _syntax(message: str, text: str, file: str) -> Finding:
    """Says where a text is no TOML; the library has the place at the end of its message."""
    place = _AT.search(message)
    problem = message[: place.start()] if place is not None else message
    problem = problem[:1].lower() + problem[1:]
    if place is not None and place["line"] is not None:
        return Finding("error", file, int(place["line"]), "", f"this is not TOML: {problem} (column {place['column']})")
    last = len(text.rstrip().splitlines()) or 1
    return Finding("error", file, last, "", f"this is not TOML: {problem}, and here the file ends")


def _lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yields the places of keys; a key that is mentioned several times is first where it is mentioned first."""
    try:
        import tree_sitter_toml
        from tree_sitter import Language, Parser
    except ImportError:
        raise ConfigSupportError from None
    document = Parser(Language(tree_sitter_toml.language())).parse(text.encode()).root_node
    lines: dict[KeyPath, int] = {}
    elements: dict[KeyPath, int] = {}
    for node in document.named_children:
        if node.type == "pair":
            _pair(node, (), lines)
        elif node.type in ("table", "table_array_element"):
            _table(node, lines, elements)
    yield from lines.items()


def _table(node: Node, lines: dict[KeyPath, int], elements: dict[KeyPath, int]) -> None:
    """Notes a `[table]` or `[[element]]` and its pairs; `elements` counts the elements of each list of tables."""
    header = _key_of(node)
    if header is None:
        return
    path: KeyPath = ()
    *outer, last = _parts(header)
    for part in outer:
        path = _into(path, part, elements)
        lines.setdefault(path, _line(header))
    if node.type == "table_array_element":
        whole = (*path, last)
        lines.setdefault(whole, _line(header))
        elements[whole] = elements.get(whole, -1) + 1
        path = (*whole, elements[whole])
    else:
        path = _into(path, last, elements)
    lines[path] = _line(header)
    for child in node.named_children:
        if child.type == "pair":
            _pair(child, path, lines)


def _key_of(node: Node) -> Node | None:
    """Returns the key of a table or pair; there is none where the grammar did not understand it."""
    return next((child for child in node.named_children if child.type in _KEYS), None)


def _into(path: KeyPath, part: str, elements: Mapping[KeyPath, int]) -> KeyPath:
    """Goes on to a table; in a list of tables that is its last element so far."""
    path = (*path, part)
    return (*path, elements[path]) if path in elements else path


def _pair(node: Node, path: KeyPath, lines: dict[KeyPath, int]) -> None:
    key = _key_of(node)
    if key is None:
        return
    for part in _parts(key):
        path = (*path, part)
        lines.setdefault(path, _line(key))
    for child in node.named_children:
        if child.type in ("array", "inline_table"):
            _value(child, path, lines)


def _value(node: Node, path: KeyPath, lines: dict[KeyPath, int]) -> None:
    if len(path) > _DEEPEST:
        return
    if node.type == "array":
        elements = [child for child in node.named_children if child.type != "comment"]
        for place, element in enumerate(elements):
            lines[*path, place] = _line(element)
            _value(element, (*path, place), lines)
    elif node.type == "inline_table":
        for child in node.named_children:
            if child.type == "pair":
                _pair(child, path, lines)


def _parts(key: Node) -> list[str]:
    """Returns the names of a key, dotted or not; the library that reads values reads them too."""
    parts: list[str] = []
    found: Any = tomllib.loads(f"{(key.text or b'').decode()} = 0")
    while isinstance(found, dict):
        ((part, found),) = found.items()
        parts.append(part)
    return parts


def _line(node: Node) -> int:
    return node.start_point[0] + 1
