"""The intersection of two types: what a value has that fits both (for `allOf`, and for keywords side by side)."""

from __future__ import annotations

import dataclasses

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

__all__ = ["fits", "is_bare", "narrow", "with_constraints"]


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


def narrow(first: TypeExpression, second: TypeExpression) -> TypeExpression | None:
    """Joins two types into the one of the values that fit both.

    Properties that both have are joined when one of them says it all; otherwise the first one's type stands.

    Returns:
        the joined type with the constraints of both; `None` when no single type says it.
    """
    if first is second:
        return first
    joined = _either(first, second)
    if joined is not None:
        other = second if joined is first else first
        return with_constraints(joined, other.constraints)
    if isinstance(first, ObjectType) and isinstance(second, ObjectType):
        return _objects(first, second)
    return None


def _either(first: TypeExpression, second: TypeExpression) -> TypeExpression | None:
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


def _objects(first: ObjectType, second: ObjectType) -> ObjectType:
    """Joins two objects: the properties of both, each required when either requires it; closed when either is."""
    properties = {item.name: item for item in first.properties}
    for item in second.properties:
        known = properties.get(item.name)
        properties[item.name] = item if known is None else _property(known, item)
    additional = None
    if first.additional is not None and second.additional is not None:
        additional = _either(first.additional, second.additional) or first.additional
    return ObjectType(
        properties=tuple(properties.values()),
        additional=additional,
        constraints=first.constraints + second.constraints,
        stated=first.stated or second.stated,
    )


def _property(first: Property, second: Property) -> Property:
    type_ = _either(first.type, second.type) or first.type
    other = second.type if type_ is first.type else first.type
    return Property(
        name=first.name,
        type=with_constraints(type_, other.constraints) if other is not type_ else type_,
        required=first.required or second.required,
        description=first.description or second.description,
    )
