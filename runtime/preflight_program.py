"""What a program says of its own names: which tool an expression is, whose result a value is, what it sets itself."""

from __future__ import annotations

from collections.abc import Container, Iterator

from .preflight_tree import Node

__all__ = ["Program", "is_caught", "is_tools"]

_CATCHES = frozenset({"KeyError", "LookupError", "IndexError", "TypeError", "AttributeError"})
_LOOPS = frozenset({"For", "comprehension"})
_MAX_STEPS = 100


class Program:
    """A program, as far as it can be read without running it.

    Args:
        tree: its syntax tree.
        tools: the names of the tools that it has.
    """

    def __init__(self, tree: Node, tools: Container[str]) -> None:
        self.nodes = list(tree.walk())
        self._tools = tools
        self._bound = self._bindings()
        self.touched = frozenset(name for node in self.nodes for name in _touched(node))
        """The keys that the program sets, looks for, or writes into a dict of its own."""

    @property
    def has_own_tools(self) -> bool:
        """Whether the program has put something else in the place of `tools`."""
        return "tools" in self._bound

    def _bindings(self) -> dict[str, list[Node | None]]:
        """What each name is bound to; `None` stands for a binding that says nothing of the value.

        A name that is drawn from a list stands for the list: it is of the same tool.
        """
        bound: dict[str, list[Node | None]] = {}
        for node in self.nodes:
            if node.kind == "Name" and node["ctx"].kind == "Store":
                bound.setdefault(node["id"], []).append(_source(node))
            elif node.kind == "arg":
                bound.setdefault(node["arg"], []).append(None)
            elif node.kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
                bound.setdefault(node["name"], []).append(None)
            elif node.kind == "alias":
                bound.setdefault((node["asname"] or node["name"]).partition(".")[0], []).append(None)
        return bound

    def tool_of(self, node: Node) -> str | None:
        """Returns the name of the tool that an expression is, as far as the program says it plainly."""
        if node.kind == "Name":
            node = self._behind(node)
        name = None
        if node.kind == "Attribute" and is_tools(node["value"]):
            name = node["attr"]
        elif node.kind == "Subscript" and is_tools(node["value"]):
            name = node["slice"].constant
        return name if isinstance(name, str) and name in self._tools else None

    def _behind(self, node: Node) -> Node:
        """Returns what a name stands for, when it is bound once and plainly; else the name."""
        for _step in range(_MAX_STEPS):
            bound = self._bound.get(node["id"], []) if node.kind == "Name" else []
            if len(bound) != 1 or bound[0] is None:
                break
            node = bound[0]
        return node

    def owner(self, node: Node) -> str | None:
        """Returns the tool whose result a value is, or is a part of, where that is plain."""
        owners = self._owners(node, set())
        return owners.pop() if len(owners) == 1 else None

    def _owners(self, node: Node, seen: set[str]) -> set[str | None]:
        """The tools that a value may be of; `None` among them when it may be of none. A name in itself adds nothing."""
        for _step in range(_MAX_STEPS):
            if node.kind == "Call":
                return {self.tool_of(node["func"])}
            if node.kind == "Name":
                name = node["id"]
                if name in seen:
                    return set()
                seen.add(name)
                owners: set[str | None] = set()
                for value in self._bound.get(name) or [None]:
                    owners |= {None} if value is None else self._owners(value, seen)
                return owners
            if node.kind not in ("Subscript", "Attribute", "Await"):
                break
            node = node["value"]
        return {None}

    def is_drawn(self, node: Node) -> bool:
        """Whether an expression is a name that a loop draws from something."""
        bound = self._bound.get(node["id"], []) if node.kind == "Name" else []
        return any(
            value is not None
            and value.parent is not None
            and value.parent.kind in _LOOPS
            and value.parent["iter"] is value
            for value in bound
        )

    def is_changed(self, node: Node) -> bool:
        """Whether the program itself sets this key, or one on the way to it: then it knows better what is there."""
        if node["ctx"] is not None and node["ctx"].kind != "Load":
            return True
        while node.kind in ("Subscript", "Attribute"):
            key = node["slice"].constant if node.kind == "Subscript" else NotImplemented
            if isinstance(key, str) and key in self.touched:
                return True
            node = node["value"]
        return False


def is_caught(node: Node) -> bool:
    """Whether the program is ready for a mistake here: it stands in a `try` that catches it by name."""
    inner = node
    for outer in node.around():
        if outer.kind in ("Try", "TryStar") and inner in outer["body"]:
            for handler in outer["handlers"]:
                caught = handler["type"]
                names = {each["id"] for each in caught.walk() if each.kind == "Name"} if caught is not None else set()
                if names & _CATCHES:
                    return True
        inner = outer
    return False


def _source(node: Node) -> Node | None:
    """Returns what a name is bound to, or drawn from."""
    parent = node.parent
    if parent is None:
        return None
    if parent.kind == "Assign" and node in parent["targets"]:
        return parent["value"]
    if parent.kind in _LOOPS and parent["target"] is node:
        return parent["iter"]
    return parent["value"] if parent.kind == "NamedExpr" and parent["target"] is node else None


def _touched(node: Node) -> Iterator[str]:
    named: list[Node | None] = []
    if node.kind == "Subscript" and node["ctx"].kind != "Load":
        named.append(node["slice"])
    elif node.kind == "Compare":
        named.append(node["left"])
    elif node.kind == "Call" and node["func"].kind == "Attribute" and not is_tools(node["func"]["value"]):
        named += node["args"] if node["func"]["attr"] in ("setdefault", "pop") else []
        if node["func"]["attr"] == "update":
            yield from (keyword["arg"] for keyword in node["keywords"] if keyword["arg"] is not None)
    elif node.kind == "Dict" and not _is_argument(node):
        named += node["keys"]
    for each in named:
        if each is not None and isinstance(each.constant, str):
            yield each.constant


def _is_argument(node: Node) -> bool:
    """Whether a dict stands in the arguments of a tool's call."""
    for outer in node.around():
        if outer.kind == "Call":
            func = outer["func"]
            return func.kind in ("Attribute", "Subscript") and is_tools(func["value"])
    return False


def is_tools(node: Node) -> bool:
    """Whether an expression is the name `tools`."""
    return node.kind == "Name" and node["id"] == "tools"
