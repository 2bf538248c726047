"""What a function has found out about its parameters, so that it does not ask again at each attribute.

A method writes to `self` again and again, and each time the type of `self` would be looked at. But a parameter that is
never bound anew is the same object for the whole call, and an object that is the program's own stays so. So a question
is left out where an earlier statement has asked it for certain, and elsewhere the answer is kept in a local variable,
under a name that no source can spell, if it may be asked for more than once:

    (self if known or (known := type(self) in classes_of_the_program) else guard(self, name)).attribute = value

What may be written does not hang on the name of the attribute, as long as it is public. A private name is asked for by
itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["KnownTargets"]

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PARTS_ALL_RUN: Final = (
    ast.Attribute,
    ast.Await,
    ast.BinOp,
    ast.Call,
    ast.Dict,
    ast.List,
    ast.Subscript,
    ast.Tuple,
    ast.UnaryOp,
    ast.keyword,
)
"""Expressions all of whose parts are evaluated."""


class KnownTargets:
    """The targets of one function that are looked at.

    Args:
        function: the function's node, with the body as it was parsed.
    """

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._body = function.body
        parameters = function.args
        self._parameters = {one.arg for one in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)}
        self._fixed: set[str] | None = None
        self._sites: dict[ast.IfExp, tuple[str, str]] = {}

    def add(self, target: str, known: str, look: ast.IfExp) -> None:
        """Notes a place where the function looks at a variable.

        Args:
            target: the variable.
            known: the name of the set that its type is looked up in.
            look: the expression; its test is the question.
        """
        if target not in self._parameters:
            return
        if self._fixed is None:
            self._fixed = self._parameters - set(_bound_in(self._body))
        if target in self._fixed:
            self._sites[look] = (target, known)

    def keep(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Returns the function's checked body, where no question is asked again whose answer is known."""
        if not self._sites:
            return body
        self._leave_out(body, set())
        # Looked for in the body as it was parsed: the guards bring no loops.
        repeats = any(isinstance(node, _LOOPS) for one in self._body for node in ast.walk(one))
        asked: dict[tuple[str, str], list[ast.IfExp]] = {}
        for look, question in self._sites.items():
            asked.setdefault(question, []).append(look)
        flags: list[ast.expr] = []
        for (target, known), looks in asked.items():
            if len(looks) == 1 and not repeats:
                continue
            flag = f"<known: {target} in {known}>"
            flags.append(ast.Name(flag, ast.Store()))
            for look in looks:
                ask = ast.NamedExpr(ast.Name(flag, ast.Store()), look.test)
                _replace_test(look, ast.BoolOp(ast.Or(), [ast.Name(flag, ast.Load()), ask]))
        if not flags:
            return body
        start = ast.copy_location(ast.Assign(targets=flags, value=ast.Constant(False)), body[0])
        after_docstring = 1 if _is_text(body[0]) else 0
        return [*body[:after_docstring], ast.fix_missing_locations(start), *body[after_docstring:]]

    def _leave_out(self, suite: list[ast.stmt], answered: set[tuple[str, str]]) -> None:
        """Takes out the questions that come after they have been asked; `answered` are those asked before the suite."""
        for statement in suite:
            for node in ast.walk(statement):
                if isinstance(node, ast.IfExp) and self._sites.get(node) in answered:
                    del self._sites[node]
                    _replace_test(node, ast.Constant(True))
            answered.update(self._sites[look] for look in self._surely_asked(statement))
            for inner in _suites(statement):
                self._leave_out(inner, set(answered))

    def _surely_asked(self, statement: ast.stmt) -> Iterator[ast.IfExp]:
        """Gives what a statement has asked for certain when it has ended, or when it comes to its inner statements."""
        pending: list[ast.AST] = []
        match statement:
            case ast.Assign(targets=targets, value=value):
                pending = [value, *targets]
            case ast.AugAssign(target=target, value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                pending = [target, value]
            case ast.Expr(value=value) | ast.If(test=value) | ast.While(test=value) | ast.For(iter=value):
                pending = [value]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.IfExp):
                if node in self._sites:
                    yield node
                else:
                    pending.append(node.test)
            elif isinstance(node, ast.BoolOp):
                pending.append(node.values[0])
            elif isinstance(node, ast.Compare):
                pending += [node.left, node.comparators[0]]
            elif isinstance(node, _PARTS_ALL_RUN):
                pending.extend(ast.iter_child_nodes(node))


def _suites(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Gives the statements inside a statement, not those of other scopes."""
    if isinstance(statement, _SCOPES):
        return
    for part in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        for field in ("body", "orelse", "finalbody"):
            if inner := getattr(part, field, None):
                yield inner


def _replace_test(look: ast.IfExp, test: ast.expr) -> None:
    look.test = ast.fix_missing_locations(ast.copy_location(test, look.test))


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _bound_in(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Gives every name that is bound or unbound anywhere in a body, in inner scopes as well: more than is needed."""
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                    yield name
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    yield name
                case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    yield name
                case ast.MatchMapping(rest=str(name)):
                    yield name
                case ast.alias(name=name, asname=given):
                    yield given or name.partition(".")[0]
