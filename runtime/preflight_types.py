"""Whether a value of a program can be what a tool takes: from the program's own words, and from the checker's types.

The answer is "no" only where no value fits. A type that may fit (`str` for one of three words, `str | None`, a dict
that was built up) is no reason to stop a program.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..registry import same_json
from ..sdk_gen.annotations import annotate_plain
from ..sdk_gen.model import (
    AnyType,
    ArrayType,
    LiteralType,
    ObjectType,
    ReferenceType,
    ScalarType,
    TupleType,
    TypeDocument,
    TypeExpression,
    UnionType,
)
from ..sdk_gen.narrow import fits
from ..sdk_gen.recursion import branches_of
from ..sdk_gen.text import scalar_text
from .preflight_tree import Node

__all__ = ["Problem", "Shape", "TypeOf", "near", "shown_type"]

_MAX_LISTED = 12
_MAX_TYPE_CHARS = 2_000
_KINDS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null"}
_WORDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_ARRAYS = frozenset({"list", "tuple", "List", "Tuple"})
_NO_JSON = frozenset({"set", "frozenset", "bytes", "bytearray", "CoroutineType", "Coroutine", "Task", "Future"})
_NO_JSON_NAMES = frozenset({"datetime", "date", "Decimal", "complex", "range", "Path", "UUID", "timedelta"})
_MADE_OF_CHARACTERS = frozenset({"JoinedStr", "FormattedValue", "TemplateStr"})
_PENDING = "a call that is not awaited"

TypeOf = Callable[[Node], str]
"""Gives the checker's type of an expression, as text; empty when it said nothing of it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where in the arguments, what, and the node that it is about."""

    path: str
    text: str
    node: Node


class Shape:
    """What one tool takes, to hold the expressions of a program against."""

    def __init__(self, document: TypeDocument, classes: Mapping[str, ObjectType], type_of: TypeOf) -> None:
        self._definitions = document.definitions
        self.root = self.resolved(document.root)
        self._classes = classes
        self._type_of = type_of

    def resolved(self, type_: TypeExpression) -> TypeExpression:
        """Returns what a reference stands for."""
        seen: set[str] = set()
        while isinstance(type_, ReferenceType):
            if type_.target in seen:
                return AnyType()
            seen.add(type_.target)
            type_ = self._definitions.get(type_.target, AnyType())
        return type_

    def problems(self, node: Node, type_: TypeExpression, path: str) -> Iterator[Problem]:
        """Yields why an expression cannot be of a type; nothing when it may be."""
        type_ = self.resolved(type_)
        if isinstance(type_, AnyType):
            return
        if isinstance(type_, UnionType):
            yield from self._union(node, type_, path)
        elif isinstance(type_, ObjectType) and node.kind == "Dict":
            yield from self._dict(node, type_, path)
        elif isinstance(type_, (ArrayType, TupleType)) and node.kind in ("List", "Tuple"):
            yield from self._list(node, type_, path)
        elif not self._may_be(node, type_):
            found = self._found(node, type_)
            expected = self._keys_of(type_) if found.startswith("dict") else ""
            yield Problem(path, f"must be {expected or self.words(type_)}, not {found}", node)

    def pairs(
        self, given: Sequence[tuple[str, Node]], type_: ObjectType, path: str, node: Node, *, complete: bool
    ) -> Iterator[Problem]:
        """Yields what is wrong with the keys of an object, and with what they hold.

        Args:
            given: the keys that the program names, with their values.
            type_: the object.
            path: where it is; empty for the arguments themselves.
            node: what is to blame for a missing key.
            complete: whether the program names all keys.
        """
        if not type_.properties and isinstance(type_.additional, AnyType):
            return
        declared = {item.name: item for item in type_.properties}
        what = "argument" if not path else "key"
        unknown: list[Problem] = []
        misspelt: set[str] = set()
        for name, value in given:
            inner = f"{path}.{name}" if path else name
            if name in declared:
                yield from self.problems(value, declared[name].type, inner)
            elif type_.additional is not None and type_.stated:
                yield from self.problems(value, type_.additional, inner)
            else:
                told = f"there is no {what} {scalar_text(name)}{near(name, declared)}"
                unknown.append(Problem(path, told, value))
                misspelt.update(_close(name, declared))
        yield from unknown
        if not complete:
            return
        named = {name for name, _value in given} | misspelt
        missing = [item.name for item in type_.properties if item.required and item.name not in named]
        if missing:
            listed = ", ".join(scalar_text(name) for name in missing)
            several = "s" if len(missing) > 1 else ""
            verb = "are" if several else "is"
            yield Problem(path, f"required {what}{several} {listed} {verb} missing", node)

    def _dict(self, node: Node, type_: ObjectType, path: str) -> Iterator[Problem]:
        given: list[tuple[str, Node]] = []
        complete = True
        for key, value in zip(node["keys"], node["values"], strict=True):
            name = key.constant if isinstance(key, Node) else NotImplemented
            if isinstance(name, str):
                given.append((name, value))
            else:
                complete = False
        yield from self.pairs(given, type_, path, node, complete=complete)

    def _list(self, node: Node, type_: ArrayType | TupleType, path: str) -> Iterator[Problem]:
        first: Sequence[TypeExpression] = type_.items if isinstance(type_, TupleType) else ()
        rest = type_.items if isinstance(type_, ArrayType) else type_.rest
        for number, item in enumerate(node["elts"]):
            if item.kind == "Starred":
                return
            expected = first[number] if number < len(first) else rest
            if expected is not None:
                yield from self.problems(item, expected, f"{path}[{number}]")

    def _union(self, node: Node, type_: UnionType, path: str) -> Iterator[Problem]:
        """Tells of the branch that was meant, the one with the fewest mistakes of its kind; else of the whole."""
        meant: list[list[Problem]] = []
        for branch in branches_of(type_, constrained=True):
            found = list(self.problems(node, branch, path))
            if not found:
                return
            resolved = self.resolved(branch)
            same_kind = (node.kind == "Dict" and isinstance(resolved, ObjectType)) or (
                node.kind in ("List", "Tuple") and isinstance(resolved, (ArrayType, TupleType))
            )
            if same_kind:
                meant.append(found)
        if meant:
            yield from min(meant, key=len)
        else:
            yield Problem(path, f"must be {self.words(type_)}, not {self._found(node, type_)}", node)

    def _may_be(self, node: Node, type_: TypeExpression) -> bool:
        """Whether an expression can have a value of this type, which is neither a union nor a reference."""
        value = node.constant
        if value is not NotImplemented:
            return self._value_may_be(value, type_)
        if node.kind in _MADE_OF_CHARACTERS:
            return self.may_be("str", type_)
        if node.kind in ("Dict", "DictComp"):
            return isinstance(type_, ObjectType)
        if node.kind in ("List", "Tuple", "ListComp"):
            return isinstance(type_, (ArrayType, TupleType))
        if node.kind in ("Set", "SetComp", "Lambda", "GeneratorExp"):
            return False
        text = self._type_of(node)
        return not text or self.may_be(text, type_)

    def _value_may_be(self, value: Any, type_: TypeExpression) -> bool:
        if isinstance(type_, LiteralType):
            return any(same_json(value, one) for one in type_.values)
        return isinstance(type_, ScalarType) and fits(value, type_.kind)

    def may_be(self, text: str, type_: TypeExpression) -> bool:
        """Whether a value of this type, in the checker's words, can be of that type."""
        if len(text) > _MAX_TYPE_CHARS:
            return True
        try:
            tree = ast.parse(_without_narrowing(text), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return not re.match(r"<class |def |bound method |<module ", text)
        return self._tree_may_be(tree, type_)

    def _tree_may_be(self, tree: ast.expr, type_: TypeExpression) -> bool:
        type_ = self.resolved(type_)
        if isinstance(type_, AnyType):
            return True
        if isinstance(type_, UnionType):
            return any(self._tree_may_be(tree, branch) for branch in type_.branches)
        if isinstance(tree, ast.BinOp):
            return self._tree_may_be(tree.left, type_) or self._tree_may_be(tree.right, type_)
        if isinstance(tree, ast.Constant) and tree.value is None:
            return self._value_may_be(None, type_)
        if isinstance(tree, ast.Name):
            return self._name_may_be(tree.id, type_)
        if isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name):
            return self._generic_may_be(tree.value.id, tree.slice, type_)
        return True

    def _name_may_be(self, name: str, type_: TypeExpression) -> bool:
        if name in self._classes or name in ("dict", "Mapping"):
            return isinstance(type_, ObjectType)
        if name in _ARRAYS:
            return isinstance(type_, (ArrayType, TupleType))
        if name in _NO_JSON or name in _NO_JSON_NAMES:
            return False
        kind = _KINDS.get(name)
        if kind is None:
            return True
        kinds = {kind, "number"} if kind == "integer" else {kind, "integer"} if kind == "number" else {kind}
        if isinstance(type_, ScalarType):
            return type_.kind in kinds
        return isinstance(type_, LiteralType) and any(fits(value, one) for value in type_.values for one in kinds)

    def _generic_may_be(self, name: str, inner: ast.expr, type_: TypeExpression) -> bool:
        if name == "Literal":
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            try:
                return any(self._value_may_be(ast.literal_eval(part), type_) for part in parts)
            except (ValueError, TypeError):
                return True
        if name in ("list", "List") and isinstance(type_, ArrayType):
            return self._tree_may_be(inner, type_.items)
        if name in ("dict", "Dict") and isinstance(type_, ObjectType):
            value = inner.elts[1] if isinstance(inner, ast.Tuple) and len(inner.elts) == 2 else None
            needed = [item.type for item in type_.properties if item.required]
            return value is None or all(self._tree_may_be(value, item) for item in needed)
        if name in _NO_JSON:
            return False
        return self._name_may_be(name, type_)

    def words(self, type_: TypeExpression) -> str:
        """Returns a type in the words of a message."""
        type_ = self.resolved(type_)
        if isinstance(type_, LiteralType):
            listed = [scalar_text(value) for value in type_.values[:_MAX_LISTED]]
            more = ", ..." if len(type_.values) > _MAX_LISTED else ""
            return ("one of " if len(type_.values) > 1 else "") + ", ".join(listed) + more
        text = annotate_plain(TypeDocument(type_, self._definitions)).text.replace("dict[str, Any]", "dict")
        return text if len(text) <= 120 else f"{text[:117]}..."

    def _keys_of(self, type_: TypeExpression) -> str:
        """Returns an object in words that tell it from another dict: its required keys, and what they hold."""
        if not isinstance(type_, ObjectType):
            return ""
        needed = [item for item in type_.properties if item.required][:_MAX_LISTED]
        return "dict with " + ", ".join(f"{scalar_text(item.name)}: {self.words(item.type)}" for item in needed)

    def _found(self, node: Node, type_: TypeExpression) -> str:
        """Returns what the program has in place of a type."""
        value = node.constant
        if value is None or isinstance(value, (bool, int, float, str)):
            if isinstance(type_, LiteralType) or value is None:
                text = scalar_text(value)
                return text if len(text) <= 60 else f"{text[:57]}..."
            return type(value).__name__
        known = {"Dict": "dict", "DictComp": "dict", "List": "list", "ListComp": "list", "Tuple": "tuple"}
        known |= {"Set": "set", "SetComp": "set", "Lambda": "a function", "GeneratorExp": "a generator"}
        known |= dict.fromkeys(_MADE_OF_CHARACTERS, "str")
        return known.get(node.kind) or shown_type(self._type_of(node), self._classes)


def _without_narrowing(text: str) -> str:
    return re.sub(r" & ~\w+", "", text)


def shown_type(text: str, classes: Mapping[str, ObjectType]) -> str:
    """Returns a checker's type as programs know it: their values are plain dicts, lists and scalars."""
    text = _without_narrowing(text)
    if text.startswith(("CoroutineType[", "Coroutine[")):
        return _PENDING
    if text.startswith("<class "):
        return "a class"
    if text.startswith(("def ", "bound method ")):
        return "a function"
    if " | " not in text:
        text = re.sub(r'^Literal\[(?:"[^"]*"(?:, )?)+\]$', "str", text)
        text = re.sub(r"^Literal\[(?:-?\d+(?:, )?)+\]$", "int", text)
    return re.sub(r"\w+", lambda match: "dict" if match.group() in classes else match.group(), text)


def _close(name: str, known: Mapping[str, Any] | Sequence[str]) -> list[str]:
    return difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)


def near(name: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """Returns what may have been meant, or all there is when that is little."""
    found = _close(name, known)
    if found:
        return "; did you mean " + " or ".join(scalar_text(one) for one in found) + "?"
    if not known:
        return "; there are none"
    listed = ", ".join(scalar_text(one) for one in list(known)[:_MAX_LISTED])
    return f"; there are: {listed}{', ...' if len(known) > _MAX_LISTED else ''}"
