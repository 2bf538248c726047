"""What is plain of types: whether a value is of a kind, which of two is the narrower, which keys a union has."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from .model import (
    AnyType,
    ArrayType,
    Constraint,
    LiteralType,
    ObjectType,
    Property,
    ReferenceType,
    ScalarType,
    TupleType,
    TypeExpression,
    UnionType,
)

__all__ = ["either", "fits", "is_bare", "keys_of", "with_constraints"]


def with_constraints(type_: TypeExpression, constraints: tuple[Constraint, ...]) -> TypeExpression:
    """Returns `type_` with `constraints` added to those that it has."""
    if not constraints:
        return type_
    return dataclasses.replace(type_, constraints=type_.constraints + constraints)


def fits(value: object, kind: str) -> bool:
    """Whether a JSON value is of a JSON Schema type; a bool is no number, and `1.0` is an integer (contract B29)."""
    if isinstance(value, bool) or value is None:
        return kind == ("null" if value is None else "boolean")
    if isinstance(value, str):
        return kind == "string"
    if isinstance(value, (int, float)):
        return kind == "number" or (kind == "integer" and (isinstance(value, int) or value.is_integer()))
    return kind == ("array" if isinstance(value, (list, tuple)) else "object")


def is_bare(type_: TypeExpression) -> bool:
    """Whether a type says no more than "an object" or "an array", or nothing."""
    if isinstance(type_, ObjectType):
        return not type_.properties and isinstance(type_.additional, AnyType)
    return isinstance(type_, AnyType) or (isinstance(type_, ArrayType) and isinstance(type_.items, AnyType))


def keys_of(branches: Sequence[TypeExpression]) -> tuple[Property, ...]:
    """Returns the keys that the objects among the branches of a union declare, as every value of the union has them."""
    known: dict[str, list[Property]] = {}
    refusing = 0
    declared_by_refusing: Counter[str] = Counter()
    for branch in branches:
        if isinstance(branch, ObjectType):
            for item in branch.properties:
                known.setdefault(item.name, []).append(item)
            if branch.additional is None:
                refusing += 1
                declared_by_refusing.update(item.name for item in branch.properties)
    keys: list[Property] = []
    for name, items in known.items():
        # In a branch that neither declares nor refuses the key it may hold anything.
        is_told = len(items) + refusing - declared_by_refusing[name] == len(branches)
        types = _distinct([item.type for item in items]) if is_told else [AnyType()]
        keys.append(
            Property(
                name=name,
                type=types[0] if len(types) == 1 else UnionType(branches=tuple(types)),
                required=len(items) == len(branches) and all(item.required for item in items),
                description=next((item.description for item in items if item.description), ""),
            )
        )
    return tuple(keys)


def _distinct(types: Sequence[TypeExpression]) -> list[TypeExpression]:
    """Leaves out scalars and references that stand there before, and the very types that do."""
    found: dict[object, TypeExpression] = {}
    for type_ in types:
        plain = (
            type_.kind if isinstance(type_, ScalarType) else type_.target if isinstance(type_, ReferenceType) else ""
        )
        found.setdefault((type(type_), plain) if plain and not type_.constraints else id(type_), type_)
    return list(found.values())


def either(first: TypeExpression, second: TypeExpression) -> TypeExpression | None:
    """Returns the one of two types that is at least as narrow as the other, as far as that is plain to see."""
    if isinstance(second, AnyType):
        return first
    if isinstance(first, AnyType):
        return second
    for wide, small in ((first, second), (second, first)):
        if _contains(wide, small):
            return small
    return None


def _contains(wide: TypeExpression, small: TypeExpression) -> bool:
    """Whether every value of `small` is plainly one of `wide`."""
    if isinstance(wide, ScalarType):
        if isinstance(small, LiteralType):
            return all(fits(value, wide.kind) for value in small.values)
        return isinstance(small, ScalarType) and (
            wide.kind == small.kind or (wide.kind, small.kind) == ("number", "integer")
        )
    if isinstance(wide, ReferenceType):
        return isinstance(small, ReferenceType) and wide.target == small.target
    if not is_bare(wide):
        return False
    # A bare "object" beside a union or a reference is how schemas repeat themselves: the other one says more.
    sayable = (ObjectType,) if isinstance(wide, ObjectType) else (ArrayType, TupleType)
    return isinstance(small, (*sayable, UnionType, ReferenceType))
