"""The syntax tree of a program, as it was parsed in a process apart; see `preflight_parse`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Node", "Place", "read_tree"]

Place = tuple[int, int, int, int]
"""First line, first column, last line, last column after the end; from 1, in characters."""


class Node:
    """One node: its kind, as `ast` calls it, its place, its fields, and the node that it is in."""

    __slots__ = ("fields", "kind", "parent", "place")

    def __init__(self, kind: str, place: Place | None, fields: dict[str, Any], parent: Node | None) -> None:
        self.kind = kind
        self.place = place
        self.fields = fields
        self.parent = parent

    def __getitem__(self, name: str) -> Any:
        return self.fields.get(name)

    @property
    def children(self) -> Iterator[Node]:
        """The nodes in this one, in order."""
        for value in self.fields.values():
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, Node):
                    yield item

    def walk(self) -> Iterator[Node]:
        """Yields this node and all that are in it."""
        pending: list[Node] = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed([*node.children]))

    def around(self) -> Iterator[Node]:
        """Yields the nodes that this one is in, the innermost first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def constant(self) -> Any:
        """The value of a constant that JSON has; `NotImplemented` for everything else."""
        if self.kind == "UnaryOp" and self["op"].kind == "USub":
            value = self["operand"].constant
            return -value if isinstance(value, (int, float)) and not isinstance(value, bool) else NotImplemented
        value = self["value"] if self.kind == "Constant" else NotImplemented
        return NotImplemented if isinstance(value, dict) else value

    def holds(self, line: int, column: int) -> bool:
        """Whether a character is part of this node."""
        if self.place is None:
            return False
        return self.place[:2] <= (line, column) < self.place[2:]

    def starts_at(self, line: int, column: int) -> bool:
        """Whether this node's first character is this one."""
        return self.place is not None and self.place[:2] == (line, column)


def read_tree(data: Any, parent: Node | None = None) -> Node:
    """Returns the tree that `preflight_parse` printed."""
    kind, place, fields = data
    node = Node(kind, tuple(place) if place else None, {}, parent)
    for name, value in fields.items():
        node.fields[name] = _read(value, node)
    return node


def _read(value: Any, parent: Node) -> Any:
    if not isinstance(value, list):
        return value
    if len(value) == 3 and isinstance(value[0], str) and isinstance(value[2], dict):
        return read_tree(value, parent)
    return [_read(item, parent) for item in value]
