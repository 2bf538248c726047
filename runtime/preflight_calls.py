"""The calls of tools in a program that the type checker calls wrong: which argument cannot be right, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..sdk_gen.build import build_document
from ..sdk_gen.model import AnyType, ObjectType
from ..sdk_gen.stub import StubModule
from .preflight_diagnostics import Diagnostic
from .preflight_program import Program
from .preflight_tree import Node
from .preflight_types import Problem, Shape

__all__ = ["ToolCalls"]

_ANY_OBJECT = ObjectType(properties=(), additional=AnyType())
_LITERAL_KINDS = frozenset(
    {"Constant", "UnaryOp", "JoinedStr", "Dict", "DictComp", "List", "ListComp", "Tuple", "Set", "SetComp", "Lambda"}
)


class ToolCalls:
    """The calls of one program.

    Args:
        program: the program.
        diagnostics: what the checker found in it.
        stub: the stub that it read.
        parameters: the schema of what each tool takes, by name.
    """

    def __init__(
        self,
        program: Program,
        diagnostics: Sequence[Diagnostic],
        stub: StubModule,
        parameters: Mapping[str, object],
    ) -> None:
        self._program = program
        self._stub = stub
        self._parameters = parameters
        self._found = {(each.line, each.column): each.found for each in diagnostics if each.found}

    def call_at(self, each: Diagnostic) -> Node | None:
        """Returns the call of a tool that a diagnostic is about: the innermost call that it lies in."""
        inner: Node | None = None
        for node in self._program.nodes:  # outer nodes come first
            if node.kind == "Call" and node.holds(each.line, each.column):
                inner = node
        if inner is None or self._program.tool_of(inner["func"]) is None:
            return None
        if each.rule == "invalid-argument-type" and not _is_of_call(each, self._stub):
            return None
        return inner

    def problems(self, call: Node) -> Iterator[Problem]:
        """Yields what is wrong with a call of a tool; nothing when it may be right."""
        name = self._program.tool_of(call["func"])
        assert name is not None
        shape = Shape(build_document(self._parameters[name]), self._stub.objects, self._type_of)
        root = shape.root
        args, keywords = call["args"], call["keywords"]
        complete = all(arg.kind != "Starred" for arg in args)
        if not complete:
            args = []  # nobody can tell which one is which; the keywords are plain still
        if len(args) == 1 and self._type_of(args[0]) == "" and args[0].kind not in _LITERAL_KINDS:
            return  # it may be a mapping, or the first argument
        if len(args) == 1 and self._is_mapping(args[0], shape):
            if keywords:
                yield Problem("", "takes one mapping or keywords, not both", call)
            else:
                yield from shape.problems(args[0], root, "")
            return
        if not isinstance(root, ObjectType):
            return
        order = [item.name for item in root.properties]
        if len(args) > len(order):
            yield Problem("", f"takes {len(order)} arguments, not {len(args)}", call)
            return
        given = list(zip(order, args, strict=False))
        for keyword in keywords:
            pairs = _pairs(keyword)
            complete = complete and pairs is not None
            given += pairs or ()
        yield from shape.pairs(given, root, "", call, complete=complete)

    def _is_mapping(self, node: Node, shape: Shape) -> bool:
        """Whether the only positional argument is, or may be, the mapping of all of them."""
        found = self._type_of(node)
        return node.kind in ("Dict", "DictComp") or (found != "" and shape.may_be(found, _ANY_OBJECT))

    def _type_of(self, node: Node) -> str:
        """The checker's type of an argument, where it has said it: at the argument itself, or at its keyword."""
        if node.kind == "Call" and self._program.tool_of(node["func"]) is not None:
            return "CoroutineType[Any, Any, Any]"
        places = [node.place] if node.place else []
        if node.parent is not None and node.parent.kind == "keyword" and node.parent.place:
            places.append(node.parent.place)
        for place in places:
            found = self._found.get(place[:2])
            if found:
                return found
        return ""


def _pairs(keyword: Node) -> list[tuple[str, Node]] | None:
    """Returns the arguments that a keyword or `**{...}` gives; `None` when that is not plain."""
    if keyword["arg"] is not None:
        return [(keyword["arg"], keyword["value"])]
    given = keyword["value"]
    if given.kind != "Dict":
        return None
    pairs: list[tuple[str, Node]] = []
    for key, value in zip(given["keys"], given["values"], strict=True):
        name = key.constant if isinstance(key, Node) else None
        if not isinstance(name, str):
            return None
        pairs.append((name, value))
    return pairs


def _is_of_call(each: Diagnostic, stub: StubModule) -> bool:
    """Whether a wrong argument is one of a tool, and not of some function inside its arguments."""
    protocol = re.search(r"bound method `(\w+)\.__call__`", each.text)
    if protocol:
        return protocol.group(1) in stub.protocols
    on = re.search(r"on TypedDict `(\w+)`", each.text)
    return on is not None and on.group(1) in stub.objects
