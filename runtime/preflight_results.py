"""The uses of what tools give that the type checker calls wrong: whose value it is, and what it does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..sdk_gen.model import AnyType
from ..sdk_gen.names import is_method_name
from ..sdk_gen.stub import StubModule
from ..sdk_gen.text import quoted
from .preflight_diagnostics import Diagnostic
from .preflight_program import Program, is_caught
from .preflight_tree import Node
from .preflight_types import near, shown_type

__all__ = ["Results", "written_tool"]

_PENDING = re.compile(r"^(?:CoroutineType|Coroutine)\[")
_LATER = re.compile(r"^(Future|Task)\[(.*)\]$", re.DOTALL)
_WAITING = re.compile(r"Expected `[^`]*(?:Await|Corout|Fut)")
_OF_THE_WHOLE = frozenset({"not-iterable", "not-callable", "invalid-await", "invalid-context-manager"})
_SEQUENCES = frozenset({"List", "ListComp", "Tuple", "GeneratorExp", "SetComp", "Set"})
_PROBLEMS = {
    "not-subscriptable": "has no items",
    "not-iterable": "cannot be iterated over",
    "not-callable": "cannot be called",
    "invalid-await": "is a value already and cannot be awaited",
    "invalid-context-manager": "cannot be used with `with`",
}


class Results:
    """The uses of values in one program.

    Args:
        program: the program.
        stub: the stub that the checker read.
        known: the names of all tools that the program has.
    """

    def __init__(self, program: Program, stub: StubModule, known: Sequence[str]) -> None:
        self._program = program
        self._stub = stub
        self._known = known

    def problems(self, each: Diagnostic) -> Iterator[str]:
        """Yields what is wrong with the use that a diagnostic is about; nothing when that is none of a tool's."""
        types = each.types
        use = self._use_at(each)
        if use is None or is_caught(use):
            return
        if "Tools" in types and use.kind in ("Attribute", "Subscript"):
            name = use["attr"] if use.kind == "Attribute" else use["slice"].constant
            if isinstance(name, str) and name not in self._program.touched:
                yield from self._unknown_tool(name)
            return
        if each.rule in ("unused-awaitable", "no-matching-overload"):
            yield from self._lost_call(each, use)
            return
        if "may not" in each.text or any("Top[" in one or "Unknown" in one for one in types):
            return
        if self._program.is_changed(use):
            return
        text = self._use(each, use, types)
        if text:
            yield text

    def _unknown_tool(self, name: str) -> Iterator[str]:
        if name in self._known or name.startswith("__"):
            return
        hyphened = [known for known in self._known if re.match(rf"{re.escape(name)}\W", known)]
        meant = f"; did you mean tools[{quoted(hyphened[0])}]?" if hyphened else near(name, self._known)
        yield f"there is no tool {quoted(name)}{meant}"

    def _lost_call(self, each: Diagnostic, use: Node) -> Iterator[str]:
        """Tells of a call that nothing awaits, or that `gather` is given in a list."""
        if use.kind != "Call":
            return
        if each.rule == "unused-awaitable":
            name = self._program.tool_of(use["func"])
            if name:
                yield f"{written_tool(name)}(...) is never awaited, so it would not run: write await before the call"
            return
        func, args = use["func"], use["args"]
        called = func["attr"] if func.kind == "Attribute" else func["id"] if func.kind == "Name" else ""
        lists = [arg for arg in args if arg.kind in _SEQUENCES] if called == "gather" else []
        if any(self._program.tool_of(node["func"]) for arg in lists for node in arg.walk() if node.kind == "Call"):
            yield "gather takes the calls of tools one by one, not a list of them: write gather(*[...])"

    def _use(self, each: Diagnostic, use: Node, types: Sequence[str]) -> str:
        """Returns what is wrong with the use of a value; empty when that is none of a tool's."""
        subject = self._subject(each, use)
        owner = self._program.owner(subject)
        of = f"what {written_tool(owner)}(...) gives" if owner else "a tool's result"
        if each.rule == "invalid-typed-dict-key":
            return self._unknown_key(use, types, of)
        value = self._wrong_type(each, types, owner)
        later = _LATER.match(value)
        if later:
            return self._unfinished(later.group(1)) if self._mentions(value) or owner else ""
        if not value or " | " in value:
            return ""
        if _PENDING.match(value):
            name = f"{written_tool(owner)}(...)" if owner else "the call of a tool"
            return f"{name} is not awaited: write (await ...) around the call before its value is used"
        if value in self._stub.protocols:
            tool = written_tool(self._stub.protocols[value])
            return f"{tool} is a tool, not a value: call it, and await the call"
        if value in ("None", "Any", "object") or not (self._mentions(value) or owner):
            return ""
        return self._misuse(each, use, value, of)

    def _misuse(self, each: Diagnostic, use: Node, value: str, of: str) -> str:
        """Returns what a value of this type, in the checker's words, does not have."""
        shown = shown_type(value, self._stub.objects)
        if each.rule == "missing-attribute" and use.kind == "Attribute":
            return self._attribute(use, value, shown, of)
        if use.kind == "Subscript" and isinstance(use["slice"].constant, str):
            key = quoted(use["slice"].constant)
            if shown.startswith("list"):
                return f"{of} is {shown} here: its items have numbers, not the key {key}"
            if each.is_of_subscript and shown == "str":
                drawn = "; iterating over a dict gives its keys" if self._program.is_drawn(use["value"]) else ""
                return f"{of} is str here, which has no key {key}{drawn}"
        if each.rule == "unsupported-operator":
            operator, *operands = (shown_type(one, self._stub.objects) for one in each.types)
            return f"{of}: `{operator}` cannot take {' and '.join(operands)}"
        problem = _PROBLEMS.get(each.rule)
        return f"{of} is {shown} here, which {problem}" if problem else ""

    def _unfinished(self, kind: str) -> str:
        return f"this is a {kind.lower()} of calls of tools, not what they give: await it before its value is used"

    def _use_at(self, each: Diagnostic) -> Node | None:
        """Returns the node in which a value is used wrongly: a subscript, an attribute, a call, or the value itself.

        The checker gives the place of the whole, or of the value in it, or of the key.
        """
        at = [node for node in self._program.nodes if node.place == each.place and node.kind not in ("Expr", "keyword")]
        for node in reversed(at):
            parent = node.parent
            if (
                parent is not None
                and parent.kind == "Subscript"
                and (parent["slice"] is node or (parent["value"] is node and each.is_of_subscript))
            ):
                return parent
        return at[0] if at else None

    def _subject(self, each: Diagnostic, use: Node) -> Node:
        """Returns the value that is used wrongly."""
        if use.kind in ("Subscript", "Attribute") and each.rule not in _OF_THE_WHOLE:
            return use["value"]
        if each.rule == "not-callable" and use.kind == "Call":
            return use["func"]
        if each.rule == "unsupported-operator":
            parts = [part for part in use.children if part.kind not in ("Add", "Sub", "Mult")]
            return next((part for part in parts if self._program.owner(part)), use)
        return use

    def _unknown_key(self, node: Node, types: Sequence[str], of: str) -> str:
        """Tells of a key that a result does not have; one that the program itself sets is its own."""
        slice_ = node["slice"] if node.kind == "Subscript" else node
        key = slice_.constant
        declared = self._stub.objects.get(types[0]) if types else None
        if declared is None:
            return ""
        names = [item.name for item in declared.properties]
        if isinstance(key, int) and not isinstance(key, bool):
            return f"{of} is a dict here: it has no item {key}, but keys{near('', names)}"
        if not isinstance(key, str) or key in self._program.touched or len(types) != 1:
            return ""
        if declared.additional is not None and declared.stated and not isinstance(declared.additional, AnyType):
            return ""
        more = "" if declared.additional is None else '; .get("...") reads what is not declared'
        return f"{of} has no key {quoted(key)} here{near(key, names)}{more}"

    def _attribute(self, node: Node, value: str, shown: str, of: str) -> str:
        name = node["attr"]
        declared = self._stub.objects.get(value)
        if declared is not None:
            if any(item.name == name for item in declared.properties):
                return f"{of} is a dict here: write [{quoted(name)}] in place of .{name}"
            return f"{of} is a dict here, without .{name}{near(name, [item.name for item in declared.properties])}"
        return f"{of} is {shown} here, without .{name}"

    def _wrong_type(self, each: Diagnostic, types: Sequence[str], owner: str | None) -> str:
        """Returns the type of the value that is used wrongly; empty when it may be another one."""
        if each.rule == "unsupported-operator":
            operands = types[1:]  # the first one is the operator
            if any(" | " in one or one in ("Any", "object", "None") for one in operands):
                return ""
            own = [one for one in operands if self._mentions(one) or _PENDING.match(one)]
            return own[0] if own else operands[0] if owner and operands else ""
        if each.rule == "invalid-argument-type":
            if each.is_of_subscript:
                return types[-1]
            found = each.found
            return found if (_PENDING.match(found) or _LATER.match(found)) and not _WAITING.search(each.text) else ""
        return re.sub(r" & ~\w+", "", types[0]) if types else ""

    def _mentions(self, value: str) -> bool:
        return any(word in self._stub.objects for word in re.findall(r"\w+", value))


def written_tool(name: str) -> str:
    """Returns how a program writes a tool."""
    return f"tools.{name}" if is_method_name(name) else f"tools[{quoted(name)}]"
