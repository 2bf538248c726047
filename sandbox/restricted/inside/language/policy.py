"""What a program may be made of: one visitor for each construct, and whatever has none is refused.

Almost every construct compiles as it is written. What is changed: reading and writing attributes, where the name or the
target calls for a look at run time (`checker`); imports; and `__new__`.
"""

from __future__ import annotations

import ast
import sys
from typing import Final, NoReturn

from ....guest.program import FILENAME
from .checker import Checker, Refusal, Scope, Visited, guard_call
from .guard_names import CHECKED_NEW, IMPORT, IMPORT_FROM, IMPORT_STAR
from .known_targets import KnownTargets
from .names import DEFINABLE, is_dunder, kind_of

__all__ = ["Policy", "rewrite"]

_MOST_TOLD: Final = 5
_RECURSION: Final = 20_000
"""Levels of the interpreter's own stack for walking deep source; frames of pure Python take no native stack."""


def rewrite(module: ast.Module, source: str) -> tuple[ast.Module, set[str]]:
    """Returns the tree to compile, and the private names that it looks at without a call: see `OWNERS`.

    Raises:
        SyntaxError: where the program holds what the language does not have; the text tells of the first few.
    """
    policy = Policy()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        checked = ast.fix_missing_locations(policy.visit(module))
    except RecursionError:
        raise
    except Exception as error:  # noqa: BLE001 - a check that fails must not let anything through
        raise SyntaxError(f"this program cannot be checked ({type(error).__name__}: {error})") from None
    finally:
        sys.setrecursionlimit(limit)
    refusals = policy.refusals + policy.missing_builtins()
    if refusals:
        _refuse(sorted(refusals, key=lambda one: (one.line, one.column)), source)
    return checked, policy.private_names


def _refuse(refusals: list[Refusal], source: str) -> NoReturn:
    first, *others = refusals
    lines = source.splitlines()
    text = lines[first.line - 1] if 0 < first.line <= len(lines) else None
    told = first.text + "".join(f"\n  line {one.line}: {one.text}" for one in others[: _MOST_TOLD - 1])
    if len(refusals) > _MOST_TOLD:
        told += f"\n  and {len(refusals) - _MOST_TOLD} more"
    raise SyntaxError(told, (FILENAME, first.line, first.column, text))


class Policy(Checker):
    """Checks a program's tree, and puts the guards in."""

    # Definitions

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Visited:
        if is_dunder(node.name):
            if self._scope != "class" or node.name not in DEFINABLE:
                only = (
                    "can only be defined in a class" if node.name in DEFINABLE else "cannot be defined in this sandbox"
                )
                self.error(node, f"{node.name!r} {only}")
        else:
            self._bound.add(node.name)
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.args = self.visit_apart(node.args)
        if node.returns is not None:
            node.returns = self.visit_apart(node.returns)
        self._visit_type_parameters(node)
        if node.name == "__new__":
            node.decorator_list.insert(0, ast.copy_location(ast.Name(CHECKED_NEW, ast.Load()), node))
        outer, self._known = self._known, KnownTargets(node)
        node.body = self._known.keep(self._visit_body(node.body, "function", self._class_name))
        self._known = outer
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Lambda(self, node: ast.Lambda) -> Visited:
        node.args = self.visit_apart(node.args)
        outer = self._scope, self._prepared
        self._scope, self._prepared = "function", True
        node.body = self.visit_apart(node.body)
        self._scope, self._prepared = outer
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Visited:
        self._bind(node, node.name)
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        self._in_generic_header = bool(getattr(node, "type_params", None))
        node.bases = [self.visit_apart(one) for one in node.bases]
        node.keywords = [self.visit_apart(one) for one in node.keywords]
        self._visit_type_parameters(node)
        self._in_generic_header = False
        outer, self._known = self._known, None
        node.body = self._visit_body(node.body, "class", node.name)
        self._known = outer
        return node

    def _visit_type_parameters(self, node: ast.AST) -> None:
        parameters: list[ast.AST] = getattr(node, "type_params", [])
        if parameters:
            node.type_params = [self.visit_apart(one) for one in parameters]  # type: ignore[attr-defined]

    def _visit_body(self, body: list[ast.stmt], scope: Scope, class_name: str | None) -> list[ast.stmt]:
        kept = self._scope, self._class_name
        self._scope, self._class_name = scope, class_name
        visited: list[ast.stmt] = []
        for one in body:
            made = self.visit(one)
            visited.extend(made if isinstance(made, list) else [made])
        self._scope, self._class_name = kept
        return visited

    # Imports

    def visit_Import(self, node: ast.Import) -> Visited:
        made: list[ast.AST] = []
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._check_imported(node, alias.asname or top, alias.name.split("."))
            whole = ast.Constant(alias.asname is not None)
            made.append(_assign(node, alias.asname or top, guard_call(node, IMPORT, ast.Constant(alias.name), whole)))
        return made

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Visited:
        if node.module == "__future__" and not node.level:
            for alias in node.names:
                self._bind(node, alias.asname or alias.name)
            return node
        if node.level or not node.module:
            self.error(node, "relative imports are not available: a program is not part of a package")
            return node
        module = ast.Constant(node.module)
        if [alias.name for alias in node.names] == ["*"]:
            self._bound.add("*")
            return ast.copy_location(ast.Expr(guard_call(node, IMPORT_STAR, module)), node)
        made: list[ast.AST] = []
        for alias in node.names:
            self._check_imported(node, alias.asname or alias.name, [*node.module.split("."), alias.name])
            value = guard_call(node, IMPORT_FROM, module, ast.Constant(alias.name))
            made.append(_assign(node, alias.asname or alias.name, value))
        return made

    def _check_imported(self, node: ast.AST, bound: str, path: list[str]) -> None:
        self._bind(node, bound)
        for name in path:
            if name.startswith("_"):
                self.error(node, f"{'.'.join(path)!r} is private and cannot be imported")

    # Patterns

    def visit_Match(self, node: ast.Match) -> Visited:
        return self.node_contents_visit(node)

    def visit_match_case(self, node: ast.match_case) -> Visited:
        return self.node_contents_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> Visited:
        node.value = self._visit_in_pattern(node.value)
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> Visited:
        self._bind(node, node.rest)
        node.keys = [self._visit_in_pattern(key) for key in node.keys]
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        return node

    def visit_MatchClass(self, node: ast.MatchClass) -> Visited:
        # The names are plain text in the tree, read in C: only what needs no guard may stand there. What positional
        # patterns read is in `__match_args__`, which `classes.ProgramClasses` keeps to the same names.
        for name in node.kwd_attrs:
            if kind_of(name) != "public":
                self.error(node, f"{name!r} cannot be read in a pattern here; read it in the body of the case")
        node.cls = self._visit_in_pattern(node.cls)
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        node.kwd_patterns = [self.visit(pattern) for pattern in node.kwd_patterns]
        return node

    def visit_MatchStar(self, node: ast.MatchStar | ast.MatchAs) -> Visited:
        self._bind(node, node.name)
        return self.node_contents_visit(node)

    visit_MatchAs = visit_MatchStar

    def _visit_in_pattern(self, node: ast.expr) -> ast.expr:
        outer, self._in_pattern = self._in_pattern, True
        visited = self.visit(node)
        self._in_pattern = outer
        return visited

    # What may fail while the program runs

    def visit_Try(self, node: ast.Try) -> Visited:
        # What is refused inside `try` or `lambda` fails when it is reached: the program is prepared for that, or only
        # holds it ready. Everywhere else it is refused before anything has run.
        if node.handlers:
            node.body = self._visit_prepared(node.body)
            rest = ast.Try(body=[], handlers=node.handlers, orelse=node.orelse, finalbody=node.finalbody)
            rest = self.node_contents_visit(rest)
            node.handlers, node.orelse, node.finalbody = rest.handlers, rest.orelse, rest.finalbody
            return node
        return self.node_contents_visit(node)

    def _visit_prepared(self, body: list[ast.stmt]) -> list[ast.stmt]:
        outer, self._prepared = self._prepared, True
        visited = self._visit_body(body, self._scope, self._class_name)
        self._prepared = outer
        return visited

    # Refused

    def visit_TryStar(self, node: ast.AST) -> Visited:
        self.error(
            node,
            "except* is not available in this sandbox; write `except ExceptionGroup as group:` and look at"
            " `group.exceptions`",
        )
        return node

    # As they are written

    def _as_written(self, node: ast.AST) -> Visited:
        return self.node_contents_visit(node)

    def _apart(self, node: ast.AST) -> Visited:
        # A scope of its own.
        outer, self._known = self._known, None
        visited = self.node_contents_visit(node)
        self._known = outer
        return visited

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_TypeAlias = _apart

    visit_MatchSingleton = visit_MatchSequence = visit_MatchOr = _as_written
    visit_Subscript = visit_Call = visit_comprehension = visit_For = visit_With = _as_written  # type: ignore[assignment]
    visit_AsyncFor = visit_AsyncWith = visit_Await = visit_NamedExpr = _as_written  # type: ignore[assignment]
    visit_TemplateStr = visit_Interpolation = _as_written  # type: ignore[assignment]


def _assign(place: ast.stmt, name: str, value: ast.expr) -> ast.Assign:
    return ast.copy_location(ast.Assign(targets=[ast.Name(name, ast.Store())], value=value), place)
