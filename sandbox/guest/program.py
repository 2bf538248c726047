"""From source text to an async function: top-level `await` and `return` are legal, names are module globals.

The program's top level becomes the body of one async function. Its names are declared global there, so that
functions of the program see and change them as they would in a module; only names that an inner function declares
`nonlocal` stay local to the body. Parsing and compiling happen here, in the guest, and nowhere else.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable

__all__ = ["FILENAME", "Returned", "compile_program"]

FILENAME = "<program>"
"""The file name under which the program's frames and source lines are known."""

_ENTRY = "<program>"
_RETURNED = "<returned>"
_STAR = "<import star>"


class Returned:
    """What the program gave back: with `return`, or as the value of its last statement (ruling 32)."""

    __slots__ = ("explicit", "value")

    def __init__(self, value: object, explicit: bool = True) -> None:
        self.value = value
        self.explicit = explicit


def compile_program(
    source: str, rewrite: Callable[[ast.Module], ast.Module] | None = None
) -> tuple[types.CodeType, dict[str, object]]:
    """Compiles a program.

    Args:
        source: the program's text.
        rewrite: takes the program's tree as it was parsed, and gives the one to compile; a dialect checks there what
            it admits. What it raises is raised.

    Returns:
        code that defines the async function in a namespace under the name `FILENAME`, and the names that the
        namespace must hold for it.

    Raises:
        SyntaxError: where the source is not a program; line numbers are the program's own.
        RecursionError, MemoryError, ValueError: where the source is beyond what the compiler takes.
    """
    module = ast.parse(source, FILENAME)
    if rewrite is not None:
        module = rewrite(module)
    futures = [node for node in module.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    top = _TopLevel()
    body = [top.visit(node) for node in module.body if node not in futures]
    if not top.returns:
        _give_last_expression(body)
    shared = sorted(top.bound - _nonlocal_names(module, source))
    start = ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)
    first: list[ast.stmt] = [ast.copy_location(ast.Global(names=shared), start)] if shared else []
    entry = ast.AsyncFunctionDef(
        name=_ENTRY,
        args=ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=[*first, *body, start],
        decorator_list=[],
    )
    module.body = [*futures, ast.copy_location(entry, start)]
    code = compile(module, FILENAME, "exec", dont_inherit=True)
    return code, {_RETURNED: Returned, _STAR: _import_star}


def _import_star(module: str, namespace: dict[str, object]) -> None:
    """Does `from module import *` for a top level that is really a function body."""
    source = __import__(module, namespace, None, ["*"], 0)
    names = getattr(source, "__all__", None)
    if names is None:
        names = [name for name in vars(source) if not name.startswith("_")]
    for name in names:
        namespace[name] = getattr(source, name)


def _call(place: ast.expr | ast.stmt, name: str, *args: ast.expr) -> ast.Call:
    """Makes a call that stands at the place of a node."""
    function = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), place)
    return ast.copy_location(ast.Call(func=function, args=list(args), keywords=[]), place)


def _constant(place: ast.expr | ast.stmt, value: str | bool) -> ast.Constant:
    return ast.copy_location(ast.Constant(value=value), place)


def _give_last_expression(body: list[ast.stmt]) -> None:
    if body and isinstance(body[-1], ast.Expr):
        last = body[-1]
        given = _call(last, _RETURNED, last.value, _constant(last, value=False))
        body[-1] = ast.copy_location(ast.Return(value=given), last)


def _nonlocal_names(module: ast.Module, source: str) -> set[str]:
    if "nonlocal" not in source:
        return set()
    return {name for node in ast.walk(module) if isinstance(node, ast.Nonlocal) for name in node.names}


class _TopLevel(ast.NodeTransformer):
    """Rewrites what is legal in a module but not in a function, and collects the names that are bound there.

    It does not go into functions, classes, lambdas and comprehensions: those are the program's own scopes.
    """

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.returns = False

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.returns = True
        self.generic_visit(node)
        if node.value is not None:
            node.value = _call(node.value, _RETURNED, node.value)
        return node

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom) -> ast.AST:
        raise SyntaxError("'yield' outside function", (FILENAME, node.lineno, node.col_offset + 1, None))

    visit_YieldFrom = visit_Yield

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        raise SyntaxError(
            "nonlocal declaration not allowed at module level", (FILENAME, node.lineno, node.col_offset + 1, None)
        )

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        # A global name cannot be annotated inside a function; the annotation has no effect at run time.
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        self.bound.add(node.target.id)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign(targets=[node.target], value=self.visit(node.value)), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        self.bound.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if [alias.name for alias in node.names] == ["*"] and node.module:
            given = _call(node, _STAR, _constant(node, node.module), _call(node, "globals"))
            return ast.copy_location(ast.Expr(given), node)
        self.bound.update(alias.asname or alias.name for alias in node.names)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.name:
            self.bound.add(node.name)
        return self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:
        if node.name:
            self.bound.add(node.name)
        return self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> ast.AST:
        if node.name:
            self.bound.add(node.name)
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:
        if node.rest:
            self.bound.add(node.rest)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> ast.AST:
        self.bound.add(node.name)
        self._bind_walrus(node.decorator_list)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_ListComp(self, node: ast.expr) -> ast.AST:
        # A walrus inside a comprehension binds in the scope around it.
        self._bind_walrus([node])
        return node

    visit_SetComp = visit_ListComp
    visit_DictComp = visit_ListComp
    visit_GeneratorExp = visit_ListComp

    def _bind_walrus(self, nodes: list[ast.expr]) -> None:
        pending: list[ast.AST] = list(nodes)
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Lambda):
                continue
            if isinstance(node, ast.NamedExpr):
                self.bound.add(node.target.id)
            pending.extend(ast.iter_child_nodes(node))
