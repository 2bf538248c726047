"""The part of the policy that looks at names and attributes.

A public name is read as it is written. The other kinds (`names.kind_of`), and every write, get a guard around the
target or in place of the whole. Every name that the source binds is checked, so that the guards' own names, which no
source can spell, cannot be taken.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from RestrictedPython.transformer import RestrictingNodeTransformer

from .formatting import reads_public_names_only
from .guard_names import DUNDER, GUARDED_READ, KIND_NAME, MADE, OWN, OWNERS, TYPE_OF, WRITE
from .known_targets import KnownTargets
from .names import DEFINABLE, LITERAL_ONLY, MODULE_DUNDERS, READABLE_DUNDERS, WRITABLE_DUNDERS, is_dunder, kind_of
from .refusals import BUILTINS, attribute_refusal

__all__ = ["Checker", "Refusal", "Scope", "Visited", "guard_call"]

Visited: TypeAlias = ast.AST | Iterable[ast.AST] | None
Scope: TypeAlias = Literal["class", "function", "module"]


class Refusal:
    """One construct that the language does not have."""

    __slots__ = ("column", "line", "text")

    def __init__(self, node: ast.AST, text: str) -> None:
        self.line: int = getattr(node, "lineno", 1)
        self.column: int = getattr(node, "col_offset", 0) + 1
        self.text = text


class Checker(RestrictingNodeTransformer):
    """Checks names and attributes, and keeps what the other visitors need to know."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[Refusal] = []
        self.private_names: set[str] = set()
        self._bound: set[str] = set()
        self._missing: list[ast.Name] = []
        self._scope: Scope = "module"
        self._class_name: str | None = None
        self._in_pattern = False
        self._in_generic_header = False
        self._prepared = False
        self._known: KnownTargets | None = None

    def error(self, node: ast.AST, info: str) -> None:
        self.refusals.append(Refusal(node, info))

    def not_allowed(self, node: ast.AST) -> None:
        self.error(node, f"{type(node).__name__} is not available in this sandbox")

    def missing_builtins(self) -> list[Refusal]:
        """Returns a refusal for each use of a builtin that is not there, unless the program makes a name like it."""
        return [
            Refusal(node, f"{node.id}() is not available in this sandbox: {BUILTINS[node.id]}")
            for node in self._missing
            if node.id not in self._bound
        ]

    def visit_Module(self, node: ast.Module) -> Visited:
        return self.node_contents_visit(node)

    # Names

    def _bind(self, node: ast.AST, name: str | None) -> None:
        if name is None:
            return
        self._bound.add(name)
        if is_dunder(name):
            self.error(node, f"{name!r} is a name of the language itself and cannot be given a value here")

    def visit_Name(self, node: ast.Name) -> Visited:
        if is_dunder(node.id):
            readable = isinstance(node.ctx, ast.Load) and node.id in ("__name__", "__debug__")
            readable = readable or node.id in MODULE_DUNDERS
            of_class = self._scope == "class" and node.id in DEFINABLE and node.id != "__new__"
            if not (readable or of_class):
                way_out = BUILTINS.get(node.id)
                self.error(node, f"{node.id!r} is not available in this sandbox" + (f": {way_out}" if way_out else ""))
        elif isinstance(node.ctx, ast.Load):
            if node.id in BUILTINS and not self._prepared:
                self._missing.append(node)
        else:
            self._bound.add(node.id)
        return node

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> Visited:
        for name in node.names:
            self._bind(node, name)
        return node

    visit_Nonlocal = visit_Global

    def visit_arg(self, node: ast.arg) -> Visited:
        self._bind(node, node.arg)
        return self.node_contents_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Visited:
        self._bind(node, node.name)
        return self.node_contents_visit(node)

    def visit_TypeVar(self, node: ast.AST) -> Visited:
        self._bind(node, getattr(node, "name", None))
        return self.node_contents_visit(node)

    visit_ParamSpec = visit_TypeVar
    visit_TypeVarTuple = visit_TypeVar

    # Attributes

    def visit_apart(self, node: Any) -> Any:
        """Visits what is not, or may not be, in the scope of the function around it: it keeps its answers nowhere."""
        outer, self._known = self._known, None
        visited = self.visit(node)
        self._known = outer
        return visited

    def visit_Attribute(self, node: ast.Attribute) -> Visited:
        name, kind = node.attr, kind_of(node.attr)
        unknown = kind == "denied" or (kind == "dunder" and name not in READABLE_DUNDERS)
        if unknown and not (self._prepared and isinstance(node.ctx, ast.Load)):
            self.error(node, attribute_refusal(name))
            return node
        if self._in_pattern and kind != "public":
            self.error(node, f"{name!r} cannot be read in a pattern here; give the value a name first")
            return node
        if self._in_generic_header and kind == "private" and name.startswith("__"):
            # Some versions of Python mangle it by the class to come, others do not: what is checked might not be read.
            self.error(node, f"{name!r} cannot be read in the header of a generic class; give the value a name first")
            return node
        if not isinstance(node.ctx, ast.Load):
            return self._written(node, kind)
        if name in ("__name__", "__qualname__") and isinstance(node.value, ast.Attribute):
            inner = node.value
            if inner.attr == "__class__" and isinstance(inner.ctx, ast.Load):
                return guard_call(node, KIND_NAME, self.visit(inner.value), ast.Constant(name))
        node = self.node_contents_visit(node)
        if kind == "public" or (kind == "guarded" and _is_plain_template(node)):
            return node
        if kind == "private":
            node.value = self._checked_target(node, kind)
            return node
        return guard_call(node, GUARDED_READ if kind == "guarded" else DUNDER, node.value, ast.Constant(name))

    def _written(self, node: ast.Attribute, kind: str) -> ast.AST:
        if kind == "dunder" and node.attr not in WRITABLE_DUNDERS:
            self.error(node, f"the attribute {node.attr!r} cannot be written in this sandbox")
            return node
        node = self.node_contents_visit(node)
        node.value = self._checked_target(node, kind)
        return node

    def _checked_target(self, node: ast.Attribute, kind: str) -> ast.expr:
        """Returns the target of an attribute with the guard around it.

        What most programs do most often, reading and writing attributes of `self` by its name, is looked at without a
        call: `(self if type(self) in classes_of_the_program else guard(self, name)).attribute`.
        """
        target, name = node.value, self._mangled(node.attr)
        guarded = guard_call(target, OWN if kind == "private" else WRITE, target, ast.Constant(name))
        if not isinstance(target, ast.Name) or kind == "dunder":
            return guarded
        known = MADE
        if kind == "private":
            known = OWNERS + name
            self.private_names.add(name)
        again = ast.Name(target.id, ast.Load())
        test = ast.Compare(guard_call(target, TYPE_OF, again), [ast.In()], [ast.Name(known, ast.Load())])
        look = ast.fix_missing_locations(ast.copy_location(ast.IfExp(test, target, guarded), target))
        if self._known is not None:
            self._known.add(target.id, known, look)
        return look

    def _mangled(self, name: str) -> str:
        if self._class_name is None or not name.startswith("__") or name.endswith("__"):
            return name
        prefix = self._class_name.lstrip("_")
        return f"_{prefix}{name}" if prefix else name

    def visit_AugAssign(self, node: ast.AugAssign) -> Visited:
        target = node.target
        if isinstance(target, ast.Attribute) and kind_of(target.attr) == "guarded":
            self.error(node, f"write `x.{target.attr} = x.{target.attr} + ...` instead of an augmented assignment")
            return node
        return self.node_contents_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Visited:
        literal = [name for name in map(self._literal_only, node.targets) if name]
        if literal and len(node.targets) == 1:
            node.value = self._checked_literal(node, literal[0], node.value)
            return node
        return self.node_contents_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Visited:
        node.annotation = self.visit_apart(node.annotation)
        if name := self._literal_only(node.target):
            node.value = node.value and self._checked_literal(node, name, node.value)
            return node
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node

    def _literal_only(self, target: ast.expr) -> str | None:
        if self._scope == "class" and isinstance(target, ast.Name) and target.id in LITERAL_ONLY:
            return target.id
        return None

    def _checked_literal(self, node: ast.AST, name: str, value: ast.expr) -> ast.expr:
        several = isinstance(value, (ast.Tuple, ast.List, ast.Set))
        listed = value.elts if several else [value]
        kinds = ("public", "private", "guarded") if name == "__slots__" else ("public",)
        for one in listed:
            if not (isinstance(one, ast.Constant) and isinstance(one.value, str)):
                self.error(node, "__slots__ and __match_args__ take a tuple of plain strings here")
            elif kind_of(one.value) not in kinds and one.value not in ("__dict__", "__weakref__"):
                self.error(node, f"{one.value!r} cannot be the name of an attribute here")
        # A list could be changed after it was checked.
        return ast.copy_location(ast.Tuple(listed, ast.Load()), value) if several else value


def _is_plain_template(node: ast.Attribute) -> bool:
    """Tells whether this is `"...".format` of a text that reads no attribute that calls for a guard."""
    text = node.value.value if isinstance(node.value, ast.Constant) else None
    return node.attr in ("format", "format_map") and type(text) is str and reads_public_names_only(text)


def guard_call(place: ast.AST, guard: str, *args: ast.expr) -> ast.Call:
    call = ast.Call(func=ast.Name(guard, ast.Load()), args=list(args), keywords=[])
    return ast.fix_missing_locations(ast.copy_location(call, place))
