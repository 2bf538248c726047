"""Where the definitions of one document contain themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..registry.steps import Step, descend
from .model import ReferenceType, TypeExpression, UnionType

__all__ = ["branches_of", "endless"]


def branches_of(type_: TypeExpression, *, constrained: bool) -> Iterator[TypeExpression]:
    """Yields the branches of a union, with unions in it taken apart; any other type is its only branch.

    Args:
        type_: the type.
        constrained: whether to take apart the inner unions that have constraints of their own as well.
    """
    pending = [type_]
    seen: set[int] = set()
    while pending:
        branch = pending.pop()
        whole = branch.constraints and branch is not type_ and not constrained
        if whole or not isinstance(branch, UnionType):
            yield branch
        elif id(branch.branches) not in seen:
            seen.add(id(branch.branches))
            pending.extend(reversed(branch.branches))


def endless(definitions: Mapping[str, TypeExpression]) -> set[str]:
    """Returns definitions that are themselves, or a union with themselves: without them none is left that is."""
    found: set[str] = set()
    inside: set[str] = set()
    visited: set[str] = set()

    def visit(target: str) -> Step[None]:
        visited.add(target)
        inside.add(target)
        for branch in branches_of(definitions[target], constrained=True):
            if not isinstance(branch, ReferenceType):
                continue
            if branch.target in inside:
                found.add(branch.target)
            elif branch.target in definitions and branch.target not in visited:
                yield visit(branch.target)
        inside.discard(target)

    for target in definitions:
        if target not in visited:
            descend(visit(target))
    return found
