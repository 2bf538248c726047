"""The intersection of two types: what a value has that fits both, for `allOf` and for keywords side by side.

What comes out may be wider than the intersection, and is never narrower: a type that refuses what is valid would make a
checker refuse a right program.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence

from ..registry import same_json
from ..registry.steps import Step
from .model import (
    AnyType,
    ArrayType,
    LiteralType,
    ObjectType,
    Property,
    ReferenceType,
    TypeExpression,
    UnionType,
)
from .narrow import either, keys_of, with_constraints
from .recursion import branches_of

__all__ = ["Intersection"]


class Intersection:
    """Joins the types of one document.

    Args:
        expand: gives what a reference refers to, and any other type as it is.
        spend: takes so many types off what is left of the document's size; says whether there was enough.
    """

    def __init__(self, expand: Callable[[TypeExpression], Step[TypeExpression]], spend: Callable[[int], bool]) -> None:
        self._expand = expand
        self._spend = spend
        self._joining: set[tuple[object, object]] = set()

    def narrow(self, first: TypeExpression, second: TypeExpression) -> Step[TypeExpression | None]:
        """Joins two types into the one of the values that fit both.

        Returns:
            the joined type with the constraints of both; `None` when no single type says it.
        """
        if first is second:
            return first
        plain = either(first, second)
        if plain is not None:
            other = second if plain is first else first
            return with_constraints(plain, other.constraints)
        joined: TypeExpression | None = None
        if isinstance(first, ObjectType) and isinstance(second, ObjectType):
            joined = yield from self._objects(first, second)
        elif isinstance(first, ArrayType) and isinstance(second, ArrayType):
            joined = ArrayType(items=(yield self._join(first.items, second.items)))
        elif isinstance(first, LiteralType) and isinstance(second, LiteralType):
            values = tuple(value for value in first.values if any(same_json(value, one) for one in second.values))
            joined = LiteralType(values=values) if values else None
        return None if joined is None else with_constraints(joined, first.constraints + second.constraints)

    def with_keys_of(self, type_: TypeExpression, other: TypeExpression) -> Step[TypeExpression]:
        """Declares in the objects of `type_` the keys that `other` declares; references that take some are expanded.

        For values that fit both types where `narrow` cannot join them. `type_` alone is true of such a value; but a
        checker that refuses undeclared keys would refuse those that the other type declares.
        """
        branches = list(branches_of(type_, constrained=True))
        if not any(isinstance(branch, (ObjectType, ReferenceType)) for branch in branches):
            return type_
        others: list[TypeExpression] = yield self._alternatives(other)
        keys = keys_of(others)
        told: list[TypeExpression] = []
        known: set[int] = set()
        for branch in branches if keys else ():
            if not self._spend(len(keys)):
                told.append(AnyType())
                continue
            parts: list[TypeExpression] = yield self._alternatives(branch)
            parts = [part for part in parts if id(part) not in known]  # a union may refer to itself
            known.update(map(id, parts))
            with_keys: list[TypeExpression] = yield self._each_with(parts, keys)
            is_same = all(
                new is old and not isinstance(old, AnyType) for new, old in zip(with_keys, parts, strict=True)
            )
            told += [branch] if is_same and parts else with_keys
        if len(told) in (0, len(branches)) and all(new is old for new, old in zip(told, branches, strict=False)):
            return type_
        joined = told[0] if len(told) == 1 else UnionType(branches=tuple(told))
        return with_constraints(joined, type_.constraints if isinstance(type_, UnionType) else ())

    def _each_with(self, parts: Sequence[TypeExpression], keys: Sequence[Property]) -> Step[list[TypeExpression]]:
        told: list[TypeExpression] = []
        for part in parts:
            with_keys: TypeExpression = yield self._with_more_keys(part, keys)
            told.append(with_keys)
        return told

    def _with_more_keys(self, type_: TypeExpression, keys: Sequence[Property]) -> Step[TypeExpression]:
        """Declares keys in an object: all where it is open, and in what it declares itself the keys that are inside."""
        if not isinstance(type_, ObjectType):
            return type_
        more = {key.name: key for key in keys}
        properties: list[Property] = []
        for item in type_.properties:
            key = more.pop(item.name, None)
            joined = item.type
            if key is not None and either(item.type, key.type) is None:
                joined = yield self._join(item.type, key.type)
            properties.append(item if joined is item.type else dataclasses.replace(item, type=joined, nodes=0))
        if type_.additional is not None:
            properties += more.values()
        is_same = len(properties) == len(type_.properties) and all(map(operator.is_, properties, type_.properties))
        return type_ if is_same else dataclasses.replace(type_, properties=tuple(properties))

    def _alternatives(self, type_: TypeExpression) -> Step[list[TypeExpression]]:
        """Takes a union apart, and what its references refer to, into types that are neither."""
        found: list[TypeExpression] = []
        seen: set[str] = set()
        pending = [type_]
        while pending:
            part = pending.pop()
            if isinstance(part, UnionType):
                pending += reversed(list(branches_of(part, constrained=True)))
            elif not isinstance(part, ReferenceType):
                found.append(part)
            elif part.target not in seen:
                seen.add(part.target)
                whole: TypeExpression = yield self._expand(part)
                pending.append(whole)
        return found

    def _join(self, first: TypeExpression, second: TypeExpression) -> Step[TypeExpression]:
        """Joins two types that stand at the same place in two others; where nothing says both the first one stands."""
        key = (_identity(first), _identity(second))
        if key in self._joining or not self._spend(1):
            return AnyType()  # only a name could say a joined type that is inside itself
        self._joining.add(key)
        one: TypeExpression = yield self._expand(first)
        other: TypeExpression = yield self._expand(second)
        both: TypeExpression | None = yield self.narrow(one, other)
        joined: TypeExpression = (yield self.with_keys_of(one, other)) if both is None else both
        self._joining.discard(key)
        return first if joined is one else joined

    def _objects(self, first: ObjectType, second: ObjectType) -> Step[ObjectType]:
        """Joins two objects: the properties of both, each required when either requires it; closed when either is."""
        properties = {item.name: item for item in first.properties}
        for item in second.properties:
            known = properties.get(item.name)
            properties[item.name] = item if known is None else (yield self._property(known, item))
        additional: TypeExpression | None = None
        if first.additional is not None and second.additional is not None:
            additional = either(first.additional, second.additional)
            if additional is None:
                additional = yield self._join(first.additional, second.additional)
        return ObjectType(
            properties=tuple(properties.values()), additional=additional, stated=first.stated or second.stated
        )

    def _property(self, first: Property, second: Property) -> Step[Property]:
        type_ = either(first.type, second.type)
        if type_ is None:
            type_ = yield self._join(first.type, second.type)
        elif type_ is not first.type or type_ is not second.type:
            type_ = with_constraints(type_, (second if type_ is first.type else first).type.constraints)
        return Property(
            name=first.name,
            type=type_,
            required=first.required or second.required,
            description=first.description or second.description,
        )


def _identity(type_: TypeExpression) -> object:
    """Returns what tells a type from others while both are there; two references to one definition are the same."""
    return type_.target if isinstance(type_, ReferenceType) else id(type_)
