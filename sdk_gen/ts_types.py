"""Type expressions as TypeScript types, and the named types that they need (contract G2, G3, G6 to G10, ruling 39).

A definition that types refer to is a named type, because only such a type can contain itself; a short one that does
not stands where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..registry.steps import Step, descend
from .build import MAX_TYPES
from .model import (
    AnyType,
    ArrayType,
    Constraint,
    LiteralType,
    ObjectType,
    ReferenceType,
    ScalarType,
    TupleType,
    TypeDocument,
    TypeExpression,
    UnionType,
)
from .notes import constraint_notes, notes_under
from .recursion import branches_of, endless
from .rope import MAX_WORDS, Braces, Rope, between, flat, joined
from .ts_text import ts_comment, ts_key, ts_scalar, ts_type_name

if TYPE_CHECKING:
    from .names import ClassNames

__all__ = ["MAX_NESTING", "Declaration", "TypeText", "declare_type", "plain_type"]

MAX_NESTING = 240
"""The deepest nesting of one type; below it stands `JsonValue`. A compiler on Node.js's own stack reads about 400."""


@dataclass(frozen=True, slots=True)
class _Written:
    """One type.

    Attributes:
        text: the source.
        operators: whether there is a `|` or `&` anywhere in it.
        notes: what the type cannot say, in words for a comment.
        returns: whether it is, or is a union with, or gives as a type argument, a definition that is being written.
        leads: the same, brackets left aside.
        named: whether it is, or is a union with, a named type; the compiler puts off to look into one in brackets.
    """

    text: Rope
    operators: bool = False
    notes: tuple[str, ...] = ()
    returns: bool = False
    leads: bool = False
    named: bool = False


@dataclass(frozen=True, slots=True)
class Declaration:
    """One named type of the block: the comment above it, or nothing; its name; its source."""

    comment: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class TypeText:
    """The source of a type, and what the type cannot say."""

    text: str
    notes: tuple[str, ...]


_SCALARS = {
    "string": _Written("string"),
    "number": _Written("number"),
    "integer": _Written("number"),
    "boolean": _Written("boolean"),
    "null": _Written("null"),
}
_JSON = _Written("JsonValue", named=True)
_UNKNOWN = TypeText("unknown", ())


def declare_type(document: TypeDocument, base: str, names: ClassNames) -> tuple[TypeText, list[Declaration]]:
    """Writes one schema's type.

    Args:
        document: the type.
        base: what the names of its definitions begin with.
        names: hands out names, over the whole block.

    Returns:
        the type as it stands in an interface of the block, and the named types that it needs, nested before parent.
    """
    if document.malformed:
        return _UNKNOWN, []
    writer = _Writer(document.definitions, base, names)
    written = descend(writer.root(document.root))
    return TypeText(flat(written.text, 1), written.notes), writer.declarations


def plain_type(document: TypeDocument) -> str:
    """Writes one schema's type without any named types: what would contain itself is `JsonValue` there."""
    if document.malformed:
        return _UNKNOWN.text
    return flat(descend(_Writer(document.definitions, "", None).write(document.root, 0)).text, 0)


class _Writer:
    """Writes the types of one document; without `names`, definitions are written where they are used."""

    def __init__(self, definitions: Mapping[str, TypeExpression], base: str, names: ClassNames | None) -> None:
        self.declarations: list[Declaration] = []
        self._definitions = definitions
        self._base = base
        self._names = names
        self._name_of: dict[str, str] = {}
        self._found: dict[str, _Written] = {}
        self._inside: set[str] = set()
        self._endless = endless(definitions)
        self._types_left = MAX_TYPES
        self._around = 1
        """How many braces and brackets are around in the same declaration; an interface is around the root."""

    def root(self, root: TypeExpression) -> Step[_Written]:
        """Writes the type of the schema itself, which is a definition when something in it refers to it."""
        return self.write(ReferenceType(target="#") if "#" in self._definitions else root, 0)

    def write(self, type_: TypeExpression, depth: int) -> Step[_Written]:
        """Writes any type; `depth` counts the braces, brackets and type arguments around it."""
        self._types_left -= 1
        nested = isinstance(type_, (ArrayType, TupleType, ObjectType))
        if self._types_left < 0 or (nested and depth >= MAX_NESTING):
            return _JSON
        written: _Written
        match type_:
            case AnyType() | ScalarType() | LiteralType():
                return _simple(type_)
            case ArrayType():
                item: _Written = yield self._within(type_.items, depth)
                written = _array(item)
            case TupleType():
                written = yield self._tuple(type_, depth)
            case ObjectType():
                written = yield self._object(type_, depth)
            case UnionType():
                written = yield self._union(type_, depth)
            case ReferenceType():
                written = yield self._reference(type_.target, depth)
        return _noted(written, _own_notes(type_))

    def _within(self, type_: TypeExpression, depth: int) -> Step[_Written]:
        """Writes a type inside braces or brackets."""
        self._around += 1
        written: _Written = yield self.write(type_, depth + 1)
        self._around -= 1
        return written

    def _tuple(self, type_: TupleType, depth: int) -> Step[_Written]:
        """Writes a tuple; only as many items as `minItems` says must be there."""
        least = min(type_.least, len(type_.items))
        items: list[_Written] = []
        for item_type in type_.items if type_.rest is None else (*type_.items, type_.rest):
            written: _Written = yield self._within(item_type, depth)
            items.append(written)
        if not any(item.named for item in items):
            items = items[:least] + [_loose(item) for item in items[least:]]
        parts: list[Rope] = []
        notes: tuple[str, ...] = ()
        for number, item in enumerate(items, start=1):
            if number > len(type_.items):
                parts.append(joined("...", _array(item).text))
                notes += notes_under("further items", item.notes)
                continue
            parts.append(item.text if number <= least else _optional(item))
            notes += notes_under(f"item {number}", item.notes)
        operators, leads = any(item.operators for item in items), any(item.leads for item in items)
        return _Written(joined("[", *between(", ", parts), "]"), operators, notes, leads=leads)

    def _object(self, type_: ObjectType, depth: int) -> Step[_Written]:
        lines: list[Rope] = []
        value: _Written
        values: list[_Written] = []
        operators = False
        self._types_left -= len(type_.properties)
        for item in type_.properties:
            if isinstance(item.type, (AnyType, ScalarType, LiteralType)):  # most are, and a step of its own costs more
                value = _simple(item.type)
            else:
                value = yield self._within(item.type, depth)
            values.append(value)
            comment = ts_comment(item.description, value.notes)
            key = f"{ts_key(item.name)}{':' if item.required else '?:'} "
            lines += [comment] if comment else []
            lines.append(f"{key}{value.text};" if isinstance(value.text, str) else (key, value.text, ";"))
            operators = operators or value.operators or _has_operator(comment) or _has_operator(key)
        additional: _Written | None = None
        if type_.additional is not None:
            additional = yield self.write(type_.additional, depth + 1)
        if not lines:
            return _Written("Record<string, never>", named=True) if additional is None else self._record(additional)
        braces = Braces(tuple(lines))
        if additional is None:
            return _Written(braces, operators)
        extra = self._undeclared(additional, values)
        return replace(extra, text=(braces, " & ", extra.text), operators=True)

    def _record(self, value: _Written, label: str = "each value") -> _Written:
        """Returns an object with any keys; `label` is what notes call their values (contract G8)."""
        notes = notes_under(label, value.notes)
        if value.returns and not self._around:  # the compiler would look at a type argument at once, and go round
            return _Written(joined("{ [key: string]: ", value.text, " }"), value.operators, notes)
        return _Written(
            joined("Record<string, ", value.text, ">"), value.operators, notes, leads=value.leads, named=True
        )

    def _undeclared(self, value: _Written, declared: Sequence[_Written]) -> _Written:
        """Returns what an open object has beside its declared keys.

        In TypeScript the declared keys must have this type too, so it takes in theirs: named one by one where these
        are few words, else as any JSON.
        """
        every = (value, *declared)
        texts = dict.fromkeys(each.text for each in every if isinstance(each.text, str))
        words = " | ".join(texts)
        are_few = all(isinstance(each.text, str) for each in every) and len(words) <= MAX_WORDS
        if value.text == _JSON.text or _JSON.text in texts or not are_few:
            both = _JSON
        else:
            # What is inside braces may go round where it stands; this is not inside of them.
            leads = any(each.leads for each in every)
            both = _Written(words, returns=leads, leads=leads)
        said = () if both.text == value.text else (_label(value),)
        return self._record(_noted(both, (*said, *value.notes)), "undeclared keys")

    def _union(self, type_: UnionType, depth: int) -> Step[_Written]:
        """Writes a union, with unions in it taken apart; a branch of few words is written once (contract G7)."""
        branches: list[_Written] = []
        distinct: dict[str | int, Rope] = {}
        for branch in branches_of(type_, constrained=False):
            written: _Written = yield self.write(branch, depth)
            branches.append(written)
            distinct.setdefault(written.text if isinstance(written.text, str) else len(branches), written.text)
        text = joined(*between(" | ", list(distinct.values())))
        operators = len(distinct) > 1 or branches[0].operators
        return _Written(
            text,
            operators,
            _union_notes(branches),
            returns=any(branch.returns for branch in branches),
            leads=any(branch.leads for branch in branches),
            named=any(branch.named for branch in branches),
        )

    def _reference(self, target: str, depth: int) -> Step[_Written]:
        """Writes what a reference stands for: a short type in full, any other by its name."""
        if target in self._endless or target not in self._definitions:
            return _JSON
        if target in self._inside:
            return _JSON if self._names is None else _named(self._name(target), returns=True)
        if target in self._found:
            return self._found[target]
        around, self._around = self._around, 0
        self._inside.add(target)
        body: _Written = yield self.write(self._definitions[target], depth if self._names is None else 0)
        self._inside.discard(target)
        self._around = around
        if self._names is None:
            return body
        self._found[target] = self._declared(target, body)
        return self._found[target]

    def _declared(self, target: str, body: _Written) -> _Written:
        is_short = isinstance(body.text, str) and len(body.text) <= MAX_WORDS
        if is_short and target not in self._name_of:
            return body
        name = self._name(target)
        self.declarations.append(Declaration(ts_comment("", body.notes), name, flat(body.text, 0)))
        return _named(name, returns=body.returns)

    def _name(self, target: str) -> str:
        if target not in self._name_of and self._names is not None:
            own = ts_type_name(target.rsplit("/", 1)[-1], head=False)
            self._name_of[target] = self._names.allocate(self._base + own)
        return self._name_of[target]


def _simple(type_: AnyType | ScalarType | LiteralType) -> _Written:
    """Writes a type that has no other types in it."""
    if isinstance(type_, LiteralType):
        text = " | ".join(dict.fromkeys(ts_scalar(value) for value in type_.values))
        written = _Written(text, _has_operator(text))
    else:
        written = _SCALARS[type_.kind] if isinstance(type_, ScalarType) else _JSON
    return _noted(written, _own_notes(type_))


def _noted(written: _Written, notes: tuple[str, ...]) -> _Written:
    """Returns a type with more notes before its own."""
    return replace(written, notes=(*notes, *written.notes)) if notes else written


def _named(name: str, *, returns: bool) -> _Written:
    """Returns a reference to a named type."""
    return _Written(name, returns=returns, leads=returns, named=True)


def _array(item: _Written) -> _Written:
    text = joined("(", item.text, ")[]") if item.operators else joined(item.text, "[]")
    return _Written(text, item.operators, notes_under("each item", item.notes), leads=item.leads)


def _optional(item: _Written) -> Rope:
    return joined("(", item.text, ")?") if item.operators else joined(item.text, "?")


def _loose(item: _Written) -> _Written:
    """Returns the type of a tuple's item that need not be there: any JSON where the compiler would go round in it.

    It does so in brackets at such a place, unless the tuple has an item that makes it put off the whole.
    """
    return _noted(_JSON, (_label(item), *item.notes)) if item.leads else item


def _union_notes(branches: Sequence[_Written]) -> tuple[str, ...]:
    noted = [branch for branch in branches if branch.notes]
    others = {_label(branch) for branch in branches if branch.text != "null"}
    if len(noted) == 1 and len(others) == 1:
        return noted[0].notes
    return tuple(note for branch in noted for note in notes_under(_label(branch), branch.notes))


def _label(written: _Written) -> str:
    """Returns what a note calls a type: itself when it is short."""
    text = written.text
    if isinstance(text, str):
        return text
    last = text[-1] if isinstance(text, tuple) else text
    return "array" if isinstance(last, str) and last.endswith("]") else "object"


def _own_notes(type_: TypeExpression) -> tuple[str, ...]:
    """Returns the type's own constraints as a note, without those that a tuple says."""
    constraints = type_.constraints
    if not constraints:
        return ()
    if isinstance(type_, TupleType):
        constraints = [item for item in constraints if not _is_said(item, type_)]
    return constraint_notes(constraints, ts_scalar)


def _is_said(constraint: Constraint, type_: TupleType) -> bool:
    """Whether a tuple says a constraint by itself."""
    value = constraint.value
    if not isinstance(value, (int, float)):
        return False
    length = len(type_.items)
    if constraint.keyword == "maxItems":
        return type_.rest is None and value == length
    return constraint.keyword == "minItems" and value <= length


def _has_operator(text: str) -> bool:
    return "|" in text or "&" in text
