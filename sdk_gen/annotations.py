"""Type expressions as Python annotations, and the classes that they need (contract G12 to G20, G24)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..registry.steps import Step, descend
from .build import MAX_TYPES
from .model import (
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
from .names import ClassNames, camel, is_field_name, joined
from .notes import MAX_NOTE_CHARS, comment_lines, constraint_notes, cut, notes_under, with_notes
from .text import comment_text, quoted, scalar_text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Annotation", "AnnotationWriter", "ClassView", "FieldView", "annotate_plain", "annotate_root"]

MAX_BRACKETS = 180
"""The deepest nesting of brackets in one annotation: Python's tokenizer allows 200 (contract G14)."""

MAX_HEIGHT = 1000
"""The tallest syntax tree of one annotation, long unions included: `ast.parse` gives up at about three times this."""

MAX_INLINE_CHARS = 80
"""A definition that is no class stands where it is used up to this length; a longer one gets a name of its own."""

MAX_KEY_LINES = 50
"""How many keys of an object without a class are listed."""

_SCALARS = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation.

    Attributes:
        text: the source.
        names: what it uses from `typing`.
        brackets: how deep its brackets nest.
        height: how tall its syntax tree is.
        notes: what the type cannot say, in words for a comment.
        keys: a line for each key of an object that no TypedDict can have.
    """

    text: str
    names: frozenset[str] = frozenset()
    brackets: int = 0
    height: int = 1
    notes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldView:
    """One field of a class: the comment lines above it, its name, its type, and whether it must be there."""

    comments: tuple[str, ...]
    name: str
    type: str
    required: bool

    @property
    def annotation(self) -> str:
        """The type as a TypedDict declares it."""
        return self.type if self.required else f"NotRequired[{self.type}]"


@dataclass(frozen=True, slots=True)
class ClassView:
    """One named type of the block: a TypedDict, or an alias when `alias` is not empty.

    Attributes:
        name: the name.
        names: what it uses from `typing`.
        fields: the fields of the TypedDict.
        remark: the closing comment; empty when there is nothing to say.
        alias: the annotation that the name stands for.
        extra: the type of what undeclared keys hold, when the schema itself says that there may be some.
    """

    name: str
    names: frozenset[str]
    fields: tuple[FieldView, ...] = ()
    remark: str = ""
    alias: str = ""
    extra: str = ""


_NO_NAMES: frozenset[str] = frozenset()
_NOT_REQUIRED = frozenset({"NotRequired"})
_BARE = {kind: Annotation(name) for kind, name in _SCALARS.items()}
_ANY = Annotation("Any", frozenset({"Any"}))
_DICT = Annotation("dict[str, Any]", frozenset({"Any"}), 1, 3)


def annotate_root(document: TypeDocument, base: str, names: ClassNames) -> tuple[Annotation, list[ClassView]]:
    """Writes one schema's type.

    Args:
        document: the type.
        base: the name for its root class (contract G18).
        names: hands out the class names, over the whole block.

    Returns:
        the annotation, and the classes it needs, nested before parent (contract G20).
    """
    return AnnotationWriter(document, base, names).root()


def annotate_plain(document: TypeDocument) -> Annotation:
    """Writes one schema's type without any class: objects are `dict[str, Any]` (contract G24)."""
    return descend(AnnotationWriter(document, "", ClassNames()).annotation(document.root, None, 0))


class AnnotationWriter:
    """Writes the annotations of one document.

    A `hint` is the name that a class at this place would get; `None` asks for no classes. `_inside` holds the
    definitions that are being written into the same annotation: a type that contains itself needs a class to do so.
    """

    max_brackets = MAX_BRACKETS
    max_height = MAX_HEIGHT
    mapping = _DICT
    """What an object is that no class says more of."""

    def __init__(self, document: TypeDocument, base: str, names: ClassNames) -> None:
        self.classes: list[ClassView] = []
        self._root = document.root
        self._definitions = document.definitions
        self._names = names
        self._prefix = base
        self._base = base
        self._class_names: dict[int, str] = {}
        self._memo: dict[tuple[str, bool], Annotation] = {}
        self._inside: set[str] = set()
        self._types_left = MAX_TYPES
        self._root_targets = self._targets_of(document.root)

    def root(self) -> tuple[Annotation, list[ClassView]]:
        """Writes the whole document; see `annotate_root`."""
        return descend(self.annotation(self._root, self._base, 0)), self.classes

    def _targets_of(self, type_: TypeExpression) -> set[str]:
        """The definitions that are the root itself; their class takes the root's name."""
        targets: set[str] = set()
        while isinstance(type_, ReferenceType) and type_.target not in targets:
            targets.add(type_.target)
            type_ = self._definitions.get(type_.target, AnyType())
        return targets

    def annotation(self, type_: TypeExpression, hint: str | None, depth: int) -> Step[Annotation]:
        """Writes any type; `depth` counts the brackets around it (contract G14)."""
        self._types_left -= 1
        if self._types_left < 0:
            return _ANY
        written: Annotation
        match type_:
            case AnyType():
                written = _ANY
            case ScalarType():
                written = _BARE[type_.kind]
            case LiteralType():
                written = self.literal(type_)
            case ArrayType():
                written = yield self._wrapped("list[", type_.items, "each item", hint, depth)
            case TupleType():
                written = yield self._tuple(type_, hint, depth)
            case ObjectType():
                written = yield self.object(type_, hint, depth)
            case UnionType():
                written = yield self._union(type_, hint, depth)
            case ReferenceType():
                written = yield self._reference(type_, hint, depth)
        if written.height > self.max_height:
            written = _ANY
        if not type_.constraints:
            return written
        return replace(written, notes=constraint_notes(type_.constraints) + written.notes)

    def literal(self, type_: LiteralType) -> Annotation:
        """Writes the listed values."""
        values = ", ".join(scalar_text(value) for value in type_.values)
        return Annotation(f"Literal[{values}]", frozenset({"Literal"}), 1, 2)

    def _flat(self, type_: TypeExpression) -> Annotation | None:
        """Writes what most fields have, a scalar or a list of one; `None` when it takes more to write."""
        if self._types_left <= 1:
            return None
        if type(type_) is ArrayType:
            items = type_.items
            if type(items) is not ScalarType:
                return None
            self._types_left -= 2
            notes = constraint_notes(type_.constraints) + notes_under("each item", constraint_notes(items.constraints))
            return Annotation(f"list[{_SCALARS[items.kind]}]", _NO_NAMES, 1, 3, notes)
        if type(type_) is not ScalarType:
            return None
        self._types_left -= 1
        if not type_.constraints:
            return _BARE[type_.kind]
        return Annotation(_SCALARS[type_.kind], notes=constraint_notes(type_.constraints))

    def _wrapped(
        self, opening: str, item: TypeExpression, label: str, hint: str | None, depth: int
    ) -> Step[Annotation]:
        """Writes a container of one item type."""
        if depth >= self.max_brackets:
            return _ANY
        inner: Annotation = yield self.annotation(item, hint, depth + 1)
        return _container(opening, inner, notes_under(label, inner.notes))

    def _tuple(self, type_: TupleType, hint: str | None, depth: int) -> Step[Annotation]:
        """Writes a list, because that is what JSON gives; the order of its items goes into words."""
        if depth >= self.max_brackets:
            return _ANY
        every = type_.items if type_.rest is None else (*type_.items, type_.rest)
        items: list[Annotation] = []
        for number, item in enumerate(every, start=1):
            items.append((yield self.annotation(item, hint and joined(hint, str(number)), depth + 1)))
        inner = _alternatives(items)
        words = ", ".join(item.text for item in items[: len(type_.items)])
        rest = "" if type_.rest is None else f", then any number of {items[-1].text}"
        rest = ", then anything" if isinstance(type_.rest, AnyType) else rest
        note = cut(f"items in order: {words}{rest}")
        return _container("list[", inner, (note, *inner.notes))

    def _union(self, type_: UnionType, hint: str | None, depth: int) -> Step[Annotation]:
        branches: list[Annotation] = []
        for number, branch in enumerate(type_.branches, start=1):
            branches.append((yield self.annotation(branch, hint and joined(hint, str(number)), depth)))
        return _alternatives(branches)

    def object(self, type_: ObjectType, hint: str | None, depth: int) -> Step[Annotation]:
        """Writes an object: a class where it has keys, and a mapping where it has none, or where none may be named."""
        if hint is None:
            return self.mapping
        if not type_.properties and type_.additional is not None:
            opening = self.mapping.text.removesuffix("Any]")
            written: Annotation = yield self._wrapped(opening, type_.additional, "each value", hint, depth)
            return replace(written, names=written.names | self.mapping.names - {"Any"})
        if not all(self.is_field(item.name) for item in type_.properties):
            keys: tuple[str, ...] = yield self._keys(type_, hint)
            return replace(self.mapping, keys=keys)
        known = self._class_names.get(id(type_))
        if known is not None:
            return Annotation(known)
        name = self._class_names[id(type_)] = self._names.allocate(hint)
        if hint == self._base:
            self._prefix = name
        yield self._class(type_, name)
        return Annotation(name)

    def is_field(self, name: str) -> bool:
        """Whether a class can have a field of this name."""
        return is_field_name(name)

    def _class(self, type_: ObjectType, name: str) -> Step[None]:
        """Writes a TypedDict: its nested classes first, then itself."""
        around, self._inside = self._inside, set()
        fields: list[FieldView] = []
        used = {"TypedDict"}
        for item in type_.properties:
            written = self._flat(item.type)
            if written is None:
                written = yield self.annotation(item.type, joined(name, camel(item.name)), 1)
            used |= written.names
            used |= _NO_NAMES if item.required else _NOT_REQUIRED
            comments = comment_lines(item.description, written.notes, written.keys)
            fields.append(FieldView(comments, item.name, written.text, item.required))
        remark = extra = ""
        if isinstance(type_.additional, AnyType):
            remark = "undeclared keys are accepted"
        elif type_.additional is not None:
            plain: Annotation = yield self.annotation(type_.additional, None, 0)
            remark = comment_text(cut(f"undeclared keys are accepted, with values {plain.text}"))
            extra = plain.text
        if type_.stated and isinstance(type_.additional, AnyType):
            extra = _ANY.text
        self._inside = around
        self.classes.append(ClassView(name, frozenset(used), tuple(fields), remark, extra=extra))

    def _keys(self, type_: ObjectType, hint: str) -> Step[tuple[str, ...]]:
        """Lists the keys of an object that no TypedDict can have, because the type alone would hide them (G16)."""
        lines: list[str] = []
        for item in type_.properties[:MAX_KEY_LINES]:
            written: Annotation = yield self.annotation(item.type, joined(hint, camel(item.name)), 0)
            key = f"{quoted(item.name)}{'' if item.required else '?'}: {written.text}"
            words = with_notes(item.description, written.notes)
            lines += [f"{key} - {words}" if words else key, *(f"  {line}" for line in written.keys)]
        left = len(type_.properties) - MAX_KEY_LINES
        return (*lines[: 2 * MAX_KEY_LINES], f"and {left} more") if left > 0 else tuple(lines[: 2 * MAX_KEY_LINES])

    def _reference(self, type_: ReferenceType, hint: str | None, depth: int) -> Step[Annotation]:
        """Writes what a reference stands for: a class by its name, a short type in full, a long one under a name."""
        target = type_.target
        key = (target, hint is None)
        if key not in self._memo:
            if target in self._inside:
                return _ANY
            self._inside.add(target)
            definition = self._definitions.get(target, AnyType())
            inner_hint = None if hint is None else self._definition_hint(target)
            written: Annotation = yield self.annotation(definition, inner_hint, 0)
            self._inside.discard(target)
            if key not in self._memo:
                self._memo[key] = self._named(written, inner_hint)
        found = self._memo[key]
        return _ANY if depth + found.brackets > self.max_brackets else found

    def _definition_hint(self, target: str) -> str:
        if target in self._root_targets:
            return self._base
        return joined(self._prefix, camel(target.rsplit("/", 1)[-1]))

    def _named(self, written: Annotation, hint: str | None) -> Annotation:
        if len(written.text) <= MAX_INLINE_CHARS or written.text.isidentifier():
            return written
        if hint is None:
            return written if len(written.text) <= MAX_NOTE_CHARS else _ANY
        name = self._names.allocate(hint)
        self.classes.append(ClassView(name, written.names, alias=written.text))
        return Annotation(name, notes=written.notes, keys=written.keys)


def _container(opening: str, inner: Annotation, notes: tuple[str, ...]) -> Annotation:
    return Annotation(f"{opening}{inner.text}]", inner.names, inner.brackets + 1, inner.height + 2, notes, inner.keys)


def _alternatives(branches: Sequence[Annotation]) -> Annotation:
    """Joins annotations with ` | `, each text once (contract G13)."""
    by_text: dict[str, Annotation] = {}
    for branch in branches:
        by_text.setdefault(branch.text, branch)
    distinct = list(by_text.values())
    one = len([b for b in distinct if b.text != "None"]) == 1 and len([b for b in branches if b.notes]) == 1
    notes: tuple[str, ...] = ()
    for branch in branches:
        notes += branch.notes if one else notes_under(branch.text, branch.notes)
    return Annotation(
        " | ".join(branch.text for branch in distinct),
        frozenset[str]().union(*(branch.names for branch in distinct)),
        max(branch.brackets for branch in distinct),
        max(branch.height for branch in distinct) + len(distinct) - 1,
        notes,
        _either_keys(branches),
    )


def _either_keys(branches: Sequence[Annotation]) -> tuple[str, ...]:
    """Joins the listed keys of several alternatives: those of one object, `or`, those of another."""
    lines: list[str] = []
    for keys in dict.fromkeys(branch.keys for branch in branches if branch.keys):
        lines += ["or", *keys] if lines else keys
    if lines and any(branch.text == _DICT.text and not branch.keys for branch in branches):
        lines.append("or any other keys")
    return tuple(lines[: 2 * MAX_KEY_LINES])
