"""From what the type checker says of a program to what its writer is told: the line, the tool and the argument.

The checker's rules that count are those in `RULES`. A call of a tool counts when one of its arguments cannot be right
for any value; a use of a result counts when the type that the tool declares does not have it. The rest is the program's
own business. What the program builds up, changes or catches itself is given the benefit of the doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..sdk_gen.build import build_document
from ..sdk_gen.model import AnyType, ObjectType
from ..sdk_gen.names import is_method_name
from ..sdk_gen.stub import StubModule
from ..sdk_gen.text import quoted
from .preflight_tree import Node
from .preflight_types import Problem, Shape, near, shown_type

__all__ = ["RULES", "Diagnostic", "Finding", "explain"]

CALL_RULES = (
    "invalid-argument-type",
    "missing-argument",
    "missing-typed-dict-key",
    "no-matching-overload",
    "parameter-already-assigned",
    "positional-only-parameter-as-kwarg",
    "too-many-positional-arguments",
    "unknown-argument",
    "unknown-typed-dict-constructor-key",
)
"""What the checker calls a wrong call."""

RESULT_RULES = (
    "invalid-argument-type",
    "invalid-await",
    "invalid-context-manager",
    "invalid-typed-dict-key",
    "missing-attribute",
    "not-callable",
    "not-iterable",
    "not-subscriptable",
    "unsupported-operator",
)
"""What it calls a wrong use of a value, the unknown member of `tools` among them."""

RULES = tuple(sorted({*CALL_RULES, *RESULT_RULES}))

_FOUND = re.compile(r"(?:found|[Ff]ound|value of type) `(.*)`$", re.DOTALL)
_TYPES = re.compile("`([^`]*)`")
_PENDING = re.compile(r"^(?:CoroutineType|Coroutine)\[")
_CATCHES = frozenset({"KeyError", "LookupError", "IndexError", "TypeError", "AttributeError"})
_OF_THE_WHOLE = frozenset({"not-iterable", "not-callable", "invalid-await", "invalid-context-manager"})
_PROBLEMS = {
    "not-subscriptable": "has no items",
    "not-iterable": "cannot be iterated over",
    "not-callable": "cannot be called",
    "invalid-await": "is a value already and cannot be awaited",
    "invalid-context-manager": "cannot be used with `with`",
}
_ANY_OBJECT = ObjectType(properties=(), additional=AnyType())
_LITERAL_KINDS = frozenset(
    {"Constant", "UnaryOp", "JoinedStr", "Dict", "DictComp", "List", "ListComp", "Tuple", "Set", "SetComp", "Lambda"}
)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that the checker found; the place is the program's own, from 1, in characters."""

    rule: str
    text: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One mistake: the line, and what is wrong there, with the tool and the argument named."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


def explain(
    tree: Node,
    diagnostics: Sequence[Diagnostic],
    stub: StubModule,
    parameters: Mapping[str, object],
    known: Sequence[str],
) -> list[Finding]:
    """Returns the mistakes of a program, in order of lines.

    Args:
        tree: the program.
        diagnostics: what the checker found.
        stub: the stub that it read.
        parameters: the schema of what each tool takes, by name.
        known: the names of all tools that the program has.
    """
    return sorted(set(_Explanation(tree, diagnostics, stub, parameters, known).findings()))


class _Explanation:
    def __init__(
        self,
        tree: Node,
        diagnostics: Sequence[Diagnostic],
        stub: StubModule,
        parameters: Mapping[str, object],
        known: Sequence[str],
    ) -> None:
        self._nodes = list(tree.walk())
        self._diagnostics = diagnostics
        self._stub = stub
        self._parameters = parameters
        self._known = known
        self._found = {(each.line, each.column): found for each in diagnostics if (found := _found_type(each))}
        self._bound = self._bindings()
        self._is_own = "tools" in self._bound
        self._touched = {name for node in self._nodes for name in _touched(node)}

    def findings(self) -> Iterator[Finding]:
        """Yields the mistakes, some of them twice."""
        if self._is_own:  # the program has put something else in the place of `tools`
            return
        seen: set[int] = set()
        for each in self._diagnostics:
            call = self._call_at(each)
            if call is not None and each.rule in CALL_RULES:
                if id(call) not in seen:
                    seen.add(id(call))
                    yield from self._wrong_call(call)
                continue
            if each.rule in RESULT_RULES:
                yield from self._wrong_use(each)

    # Which tool

    def _bindings(self) -> dict[str, list[Node | None]]:
        """What each name is bound to; `None` stands for a binding that says nothing of the value."""
        bound: dict[str, list[Node | None]] = {}
        for node in self._nodes:
            if node.kind == "Name" and node["ctx"].kind == "Store":
                parent = node.parent
                is_plain = parent is not None and parent.kind == "Assign" and node in parent["targets"]
                bound.setdefault(node["id"], []).append(parent["value"] if parent is not None and is_plain else None)
            elif node.kind == "arg":
                bound.setdefault(node["arg"], []).append(None)
            elif node.kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
                bound.setdefault(node["name"], []).append(None)
            elif node.kind == "alias":
                bound.setdefault((node["asname"] or node["name"]).partition(".")[0], []).append(None)
        return bound

    def _tool_of(self, node: Node) -> str | None:
        """Returns the name of the tool that an expression is, as far as the program says it plainly."""
        if node.kind == "Name":
            bound = self._bound.get(node["id"], [])
            return self._tool_of(bound[0]) if len(bound) == 1 and bound[0] is not None and bound[0] != node else None
        name = None
        if node.kind == "Attribute" and _is_tools(node["value"]):
            name = node["attr"]
        elif node.kind == "Subscript" and _is_tools(node["value"]):
            name = node["slice"].constant
        return name if isinstance(name, str) and name in self._parameters else None

    def _call_at(self, each: Diagnostic) -> Node | None:
        """Returns the call of a tool that a finding is about: the innermost call that it lies in."""
        inner: Node | None = None
        for node in self._nodes:  # outer nodes come first
            if node.kind == "Call" and node.holds(each.line, each.column):
                inner = node
        if inner is None or self._tool_of(inner["func"]) is None:
            return None
        if each.rule == "invalid-argument-type" and not _is_of_call(each, self._stub):
            return None
        return None if _is_within(inner["func"], each) else inner

    def _is_from_tool(self, node: Node) -> bool:
        """Whether a value is plainly what a tool gave, or a part of it."""
        return self._owner(node) is not None

    # Calls

    def _wrong_call(self, call: Node) -> Iterator[Finding]:
        name = self._tool_of(call["func"])
        assert name is not None
        shape = Shape(build_document(self._parameters[name]), self._stub.objects, self._type_of)
        for problem in self._call_problems(call, shape):
            about = f"argument {quoted(problem.path)} " if problem.path else ""
            if problem.path and not problem.text.startswith("must"):
                about = f"in argument {quoted(problem.path)} "
            place = problem.node.place or call.place
            yield Finding(place[0] if place else 0, f"{_written(name)}(...): {about}{problem.text}")

    def _call_problems(self, call: Node, shape: Shape) -> Iterator[Problem]:
        root = shape.root
        args, keywords = call["args"], call["keywords"]
        if any(arg.kind == "Starred" for arg in args):
            return
        if len(args) == 1 and self._type_of(args[0]) == "" and args[0].kind not in _LITERAL_KINDS:
            return  # it may be a mapping, or the first argument
        if args and self._is_mapping(args[0], shape):
            if len(args) > 1 or keywords:
                yield Problem("", "takes one mapping or keywords, not both", call)
            elif len(args) == 1:
                yield from shape.problems(args[0], root, "")
            return
        if not isinstance(root, ObjectType):
            return
        order = [item.name for item in root.properties]
        if len(args) > len(order):
            yield Problem("", f"takes {len(order)} arguments, not {len(args)}", call)
            return
        given = list(zip(order, args, strict=False))
        complete = True
        for keyword in keywords:
            pairs = _pairs(keyword)
            complete = complete and pairs is not None
            given += pairs or ()
        yield from shape.pairs(given, root, "", call, complete=complete)

    def _is_mapping(self, node: Node, shape: Shape) -> bool:
        """Whether the first positional argument is, or may be, the mapping of all of them."""
        found = self._type_of(node)
        return node.kind in ("Dict", "DictComp") or (found != "" and shape.may_be(found, _ANY_OBJECT))

    def _type_of(self, node: Node) -> str:
        """The checker's type of an argument, where it has said it: at the argument itself, or at its keyword."""
        if node.kind == "Call" and self._tool_of(node["func"]) is not None:
            return "CoroutineType[Any, Any, Any]"
        places = [node.place] if node.place else []
        if node.parent is not None and node.parent.kind == "keyword" and node.parent.place:
            places.append(node.parent.place)
        for place in places:
            found = self._found.get(place[:2])
            if found:
                return found
        return ""

    # Results

    def _wrong_use(self, each: Diagnostic) -> Iterator[Finding]:
        types = _TYPES.findall(each.text)
        use = self._use_at(each)
        if use is None or _is_caught(use):
            return
        if "Tools" in types and use.kind in ("Attribute", "Subscript"):
            name = use["attr"] if use.kind == "Attribute" else use["slice"].constant
            if isinstance(name, str) and name not in self._touched:
                yield from self._unknown_tool(each, name)
            return
        if "may not" in each.text or any("Top[" in one or "Unknown" in one for one in types):
            return
        if self._is_changed(use):
            return
        text = self._use(each, use, types)
        if text:
            yield Finding(each.line, text)

    def _unknown_tool(self, each: Diagnostic, name: str) -> Iterator[Finding]:
        if name in self._known or name.startswith("__"):
            return
        hyphened = [known for known in self._known if re.match(rf"{re.escape(name)}\W", known)]
        meant = f"; did you mean tools[{quoted(hyphened[0])}]?" if hyphened else near(name, self._known)
        yield Finding(each.line, f"there is no tool {quoted(name)}{meant}")

    def _use(self, each: Diagnostic, use: Node, types: Sequence[str]) -> str:
        """Returns what is wrong with the use of a value; empty when that is none of a tool's."""
        subject = self._subject(each, use)
        owner = self._owner(subject)
        of = f"what {_written(owner)}(...) gives" if owner else "a tool's result"
        if each.rule == "invalid-typed-dict-key":
            return self._unknown_key(use, types, of)
        value = self._wrong_type(each, types)
        if not value or " | " in value:
            return ""
        if _PENDING.match(value):
            name = f"{_written(owner)}(...)" if owner else "the call of a tool"
            return f"{name} is not awaited: write (await ...) around the call before its value is used"
        if value in self._stub.protocols:
            return f"{_written(self._stub.protocols[value])} is a tool, not a value: call it, and await the call"
        if value in ("None", "Any", "object") or not (self._mentions(value) or self._is_from_tool(subject)):
            return ""
        shown = shown_type(value, self._stub.objects)
        if each.rule == "missing-attribute" and use.kind == "Attribute":
            return self._attribute(use, value, shown, of)
        if use.kind == "Subscript" and shown.startswith("list") and isinstance(use["slice"].constant, str):
            return f"{of} is {shown} here: its items have numbers, not the key {quoted(use['slice'].constant)}"
        if each.rule == "unsupported-operator":
            return f"{of}: {shown_type(each.text[:1].lower() + each.text[1:], self._stub.objects)}"
        problem = _PROBLEMS.get(each.rule)
        return f"{of} is {shown} here, which {problem}" if problem else ""

    def _use_at(self, each: Diagnostic) -> Node | None:
        """Returns the node in which a value is used wrongly: a subscript, an attribute, a call, or the value itself.

        The checker gives the place of the whole, or of the value in it, or of the key.
        """
        place = (each.line, each.column, each.end_line, each.end_column)
        at = [node for node in self._nodes if node.place == place and node.kind not in ("Expr", "keyword")]
        for node in reversed(at):
            parent = node.parent
            if (
                parent is not None
                and parent.kind == "Subscript"
                and (parent["slice"] is node or (parent["value"] is node and _is_of_subscript(each)))
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
            return next((part for part in parts if self._owner(part)), use)
        return use

    def _unknown_key(self, node: Node, types: Sequence[str], of: str) -> str:
        """Tells of a key that a result does not have; one that the program itself sets is its own."""
        slice_ = node["slice"] if node.kind == "Subscript" else node
        key = slice_.constant
        declared = self._stub.objects.get(types[0]) if types else None
        if not isinstance(key, str) or declared is None or key in self._touched or len(types) != 1:
            return ""
        if declared.additional is not None and declared.stated and not isinstance(declared.additional, AnyType):
            return ""
        names = [item.name for item in declared.properties]
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

    def _wrong_type(self, each: Diagnostic, types: Sequence[str]) -> str:
        """Returns the type of the value that is used wrongly; empty when it may be another one."""
        if each.rule == "unsupported-operator":
            own = [one for one in types if self._mentions(one) or _PENDING.match(one)]
            return own[0] if own and not any(" | " in one for one in types) else ""
        if each.rule == "invalid-argument-type":
            if _is_of_subscript(each):
                return types[-1]
            found = _found_type(each)
            return (
                found if _PENDING.match(found) and not re.search("Expected `[^`]*(Await|Corout|Fut)", each.text) else ""
            )
        return re.sub(r" & ~\w+", "", types[0]) if types else ""

    def _mentions(self, value: str) -> bool:
        return any(word in self._stub.objects for word in re.findall(r"\w+", value))

    def _owner(self, node: Node) -> str | None:
        """Returns the tool whose result a value is, or is a part of, where that is plain."""
        for _step in range(100):
            if node.kind == "Call":
                return self._tool_of(node["func"])
            if node.kind == "Name":
                bound = self._bound.get(node["id"], [])
                if len(bound) != 1 or bound[0] is None:
                    return None
                node = bound[0]
            elif node.kind in ("Subscript", "Attribute", "Await"):
                node = node["value"]
            else:
                return None
        return None

    def _is_changed(self, node: Node) -> bool:
        """Whether the program itself sets this key, or one on the way to it: then it knows better what is there."""
        if node["ctx"] is not None and node["ctx"].kind != "Load":
            return True
        while node.kind in ("Subscript", "Attribute"):
            if node.kind == "Subscript" and node["slice"].constant in self._touched:
                return True
            node = node["value"]
        return False


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


def _touched(node: Node) -> Iterator[str]:
    """Yields the keys that a program sets, looks for, or writes into a dict of its own."""
    named: list[Node | None] = []
    if node.kind == "Subscript" and node["ctx"].kind != "Load":
        named.append(node["slice"])
    elif node.kind == "Compare":
        named.append(node["left"])
    elif node.kind == "Call" and node["func"].kind == "Attribute" and not _is_tools(node["func"]["value"]):
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
            return func.kind in ("Attribute", "Subscript") and _is_tools(func["value"])
    return False


def _is_of_subscript(each: Diagnostic) -> bool:
    return each.rule == "not-subscriptable" or "`__getitem__`" in each.text


def _is_tools(node: Node) -> bool:
    return node.kind == "Name" and node["id"] == "tools"


def _is_within(node: Node, each: Diagnostic) -> bool:
    """Whether a finding is about a part of this node, as of `tools.find(...)["key"]` in a longer chain."""
    return (
        node.place is not None
        and node.place[:2] <= (each.line, each.column)
        and (
            each.end_line,
            each.end_column,
        )
        <= node.place[2:]
    )


def _is_of_call(each: Diagnostic, stub: StubModule) -> bool:
    """Whether a wrong argument is one of a tool, and not of some function inside its arguments."""
    protocol = re.search(r"bound method `(\w+)\.__call__`", each.text)
    if protocol:
        return protocol.group(1) in stub.protocols
    on = re.search(r"on TypedDict `(\w+)`", each.text)
    return on is not None and on.group(1) in stub.objects


def _is_caught(node: Node) -> bool:
    """Whether the program is ready for this mistake: it stands in a `try` that catches it by name."""
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


def _found_type(each: Diagnostic) -> str:
    match = _FOUND.search(each.text)
    return match.group(1) if match else ""


def _written(name: str) -> str:
    """Returns how a program writes a tool."""
    return f"tools.{name}" if is_method_name(name) else f"tools[{quoted(name)}]"
